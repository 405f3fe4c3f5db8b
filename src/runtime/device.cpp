#include "runtime/device.h"

#include <atomic>
#include <mutex>

#include "runtime/cpu/device.h"
#include "runtime/cuda/device.h"
#include "support/error.h"

namespace weft::runtime {
namespace {

std::atomic<Device*> default_of_program = nullptr;

bool names_cuda(std::string_view name) { return name == "cuda" || name.starts_with("cuda:"); }

// Devices other than the CPU and GPUs.
struct Others {
    std::mutex mutex;
    std::vector<Device*> devices;

    std::vector<Device*> all() {
        const std::lock_guard lock(mutex);
        return devices;
    }
};

Others& others() {
    static Others* const all = new Others;
    return *all;
}

[[noreturn]] void throw_no_cuda(std::string_view name) {
    const std::vector<Device*> there = cuda_devices();
    std::string why = cuda_problem();
    if (!there.empty()) why = "the last one is '" + there.back()->alias + "'";
    throw UsageError("get_device()",
                     "there is no device '" + std::string(name) + "': " + why + ". help: device=\"" +
                         (there.empty() ? "cpu" : "cuda") + "\"",
                     name == "cuda" ? ErrorCategory::runtime : ErrorCategory::value);
}

}  // namespace

Device& host_device() {
    static Device* const device = &make_cpu_device("cpu");
    return *device;
}

Device& device(std::string_view name) {
    if (name == "cpu") return host_device();
    if (Device* const mapped = mapped_device(name)) return *mapped;
    if (names_cuda(name)) {
        if (name == "cuda" && default_device().cuda() != nullptr) return default_device();
        for (Device* device : cuda_devices())
            if (name == "cuda" || device->alias == name) return *device;
        throw_no_cuda(name);
    }
    for (Device* other : others().all())
        if (other->alias == name) return *other;
    throw UsageError("get_device()",
                     "there is no device '" + std::string(name) +
                         "': expected a name like 'cpu' or 'cuda:0'. "
                         "help: device=\"cpu\"",
                     ErrorCategory::value);
}

std::vector<Device*> devices() {
    std::vector<Device*> all{&host_device()};
    for (const std::vector<Device*>& more : {cuda_devices(), others().all()})
        all.insert(all.end(), more.begin(), more.end());
    return all;
}

std::vector<Device*> cuda_devices() {
    const std::span<CudaDevice* const> primary = gpus();
    std::vector<Device*> all(primary.begin(), primary.end());
    const std::vector<CudaDevice*> mapped = mapped_devices();
    all.insert(all.end(), mapped.begin(), mapped.end());
    return all;
}

Device& cuda_device(int ordinal) { return *gpus()[static_cast<std::size_t>(ordinal)]; }

Target cuda_target(int arch) { return {Target::Kind::cuda, "nvptx64-nvidia-cuda", "sm_" + std::to_string(arch), ""}; }

const std::string& cuda_problem() { return cuda::driver_problem(); }

std::vector<Device*> cpu_devices() {
    std::vector<Device*> all = others().all();
    all.insert(all.begin(), &host_device());
    return all;
}

void synchronize_devices() {
    for (Device* device : cpu_devices()) device->synchronize();
    if (!has_used_cuda()) return;
    for (Device* device : cuda_devices()) device->synchronize();
}

void add_device(Device& device) {
    for (const Device* known : devices())
        WEFT_CHECK(known->alias != device.alias, "there are two devices '" + device.alias + "'");
    const std::lock_guard lock(others().mutex);
    others().devices.push_back(&device);
}

// The first GPU, or the CPU if there is none, until the program chooses another.
Device& default_device() {
    if (Device* const set = default_of_program.load(std::memory_order_acquire)) return *set;
    Device* const found = gpus().empty() ? &host_device() : gpus().front();
    Device* nobody = nullptr;
    return default_of_program.compare_exchange_strong(nobody, found) ? *found : *nobody;
}

void set_default_device(Device& device) { default_of_program.store(&device, std::memory_order_release); }

}  // namespace weft::runtime
