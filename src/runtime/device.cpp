#include "runtime/device.h"

#include <atomic>
#include <mutex>

#include "runtime/cpu/device.h"
#include "support/error.h"

namespace weft::runtime {
namespace {

std::atomic<Device*> default_of_program = nullptr;

bool names_cuda(std::string_view name) { return name == "cuda" || name.starts_with("cuda:"); }

// Devices besides the CPU.
struct Others {
    std::mutex mutex;
    std::vector<Device*> devices;
};

Others& others() {
    static Others* const all = new Others;
    return *all;
}

}  // namespace

Device& host_device() {
    static Device* const device = &make_cpu_device("cpu");
    return *device;
}

Device& device(std::string_view name) {
    if (name == "cpu") return host_device();
    for (Device* other : devices())
        if (other->alias == name) return *other;
    if (names_cuda(name)) {
        throw UsageError("get_device()",
                         "there is no device '" + std::string(name) +
                             "': this build has no CUDA support, only 'cpu'. help: device=\"cpu\"",
                         name == "cuda" ? ErrorCategory::runtime : ErrorCategory::value);
    }
    throw UsageError("get_device()",
                     "there is no device '" + std::string(name) + "': expected a name like 'cpu'. help: device=\"cpu\"",
                     ErrorCategory::value);
}

std::vector<Device*> devices() {
    std::vector<Device*> all{&host_device()};
    const std::lock_guard lock(others().mutex);
    all.insert(all.end(), others().devices.begin(), others().devices.end());
    return all;
}

void add_device(Device& device) {
    for (const Device* known : devices())
        WEFT_CHECK(known->alias != device.alias, "there are two devices '" + device.alias + "'");
    const std::lock_guard lock(others().mutex);
    others().devices.push_back(&device);
}

Device& default_device() {
    Device* const set = default_of_program.load(std::memory_order_acquire);
    return set ? *set : host_device();
}

void set_default_device(Device& device) { default_of_program.store(&device, std::memory_order_release); }

}  // namespace weft::runtime
