// CUDA devices by their ordinals, and contexts other than the primary ones of GPUs, made by programs or other
// libraries, as devices with names.
#include <algorithm>
#include <map>

#include "runtime/cuda/device.h"
#include "runtime/cuda_devices.h"
#include "runtime/waiting.h"
#include "support/error.h"

namespace weft::runtime {

using namespace cuda;

namespace {

struct Mapped {
    std::mutex mutex;
    std::map<std::string, CudaDevice*, std::less<>> names;
    std::vector<CudaDevice*> devices;  // with contexts that are not primary
    std::atomic<bool> has_any{false};
};
// Never freed: arrays may outlive static objects.
Mapped& mapped() {
    static Mapped& made = *new Mapped;
    return made;
}

[[noreturn]] void refuse(const std::string& alias, const std::string& why) {
    throw UsageError("map_cuda_device()", "'" + alias + "' cannot name a context: " + why);
}

// The ordinal of the context's device.
int ordinal_of(CUcontext context, const std::string& alias) {
    CUdevice device = 0;
    CUcontext popped = nullptr;
    check(driver().cuCtxPushCurrent_v2(context), "cuCtxPushCurrent", alias);
    const CUresult result = driver().cuCtxGetDevice(&device);
    const CUresult left = driver().cuCtxPopCurrent_v2(&popped);
    check(result, "cuCtxGetDevice", alias);
    check(left, "cuCtxPopCurrent", alias);
    return device;
}

// The device whose primary context it is; null if there is none. Opens no device.
CudaDevice* primary_of(CUcontext context, int ordinal, const std::string& alias) {
    unsigned flags = 0;
    int is_active = 0;
    check(driver().cuDevicePrimaryCtxGetState(ordinal, &flags, &is_active), "cuDevicePrimaryCtxGetState", alias);
    CudaDevice* const device = gpus()[static_cast<std::size_t>(ordinal)];
    return is_active && device->context() == context ? device : nullptr;
}

}  // namespace

Device* mapped_device(std::string_view alias) {
    if (!mapped().has_any) return nullptr;
    const std::lock_guard lock(mapped().mutex);
    const auto found = mapped().names.find(alias);
    return found == mapped().names.end() ? nullptr : found->second;
}

std::vector<CudaDevice*> mapped_devices() {
    if (!mapped().has_any) return {};
    const std::lock_guard lock(mapped().mutex);
    return mapped().devices;
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

const std::string& cuda_problem() { return driver_problem(); }

Device& map_cuda_context(const std::string& alias, std::uint64_t handle) {
    if (gpus().empty()) refuse(alias, "there is no CUDA device: " + cuda_problem());
    auto context = reinterpret_cast<CUcontext>(handle);
    if (context == nullptr) {
        check(driver().cuCtxGetCurrent(&context), "cuCtxGetCurrent", alias);
        if (context == nullptr)
            refuse(alias, "no context is current in this thread. help: give its handle, or make it current first");
    }
    const int ordinal = ordinal_of(context, alias);
    Device* named = nullptr;  // the present device of the alias
    for (Device* each : devices())
        if (each->alias == alias) named = each;
    if (Device* const known = mapped_device(alias)) named = known;
    CudaDevice* found = primary_of(context, ordinal, alias);
    for (CudaDevice* each : mapped_devices())
        if (each->context() == context) found = each;
    if (alias.empty() || alias == "cuda" || (named && named != found))
        refuse(alias, named ? "it names another device. help: another name" : "expected a name of its own");
    if (!found) found = new CudaDevice(alias, ordinal, context);
    const std::lock_guard lock(mapped().mutex);
    mapped().names.emplace(alias, found);
    if (!found->is_primary() && !std::ranges::count(mapped().devices, found)) mapped().devices.push_back(found);
    mapped().has_any = true;
    return *found;
}

void unmap_cuda_context(const std::string& alias) {
    auto* const device = static_cast<CudaDevice*>(mapped_device(alias));
    if (!device)
        throw UsageError("unmap_cuda_device()",
                         "'" + alias + "' names no context. help: a name that wp.map_cuda_device() gave");
    const Uninterrupted uninterrupted;
    // Objects are freed in two steps, each of which waits until the device has no work.
    for (int step = 0; step < 3 && !device->is_primary(); ++step) device->synchronize();
    const Device& default_now = default_device();  // which may ask for the mapped devices
    const std::lock_guard lock(mapped().mutex);
    const auto names = std::ranges::count(mapped().names, device, [](const auto& each) { return each.second; });
    if (names == 1 && !device->is_primary()) {
        if (&default_now == device)
            throw UsageError("unmap_cuda_device()", "'" + alias +
                                                        "' is the default device. help: wp.set_device() to another "
                                                        "one first");
        device->close("unmap_cuda_device()");
        std::erase(mapped().devices, device);
    }
    mapped().names.erase(alias);
}

std::uint64_t cuda_context(Device& device) {
    return reinterpret_cast<std::uint64_t>(static_cast<CudaDevice&>(device).context());
}

}  // namespace weft::runtime
