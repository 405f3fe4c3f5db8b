#include "runtime/cuda/backend.h"

#include "runtime/cuda/device.h"
#include "runtime/cuda/executable.h"
#include "runtime/cuda_devices.h"
#include "support/error.h"

namespace weft::runtime {
namespace {

[[noreturn]] void throw_no_device(std::string_view name, const std::vector<Device*>& there) {
    std::string why = cuda_problem();
    if (!there.empty()) why = "the last one is '" + there.back()->alias + "'";
    throw UsageError("get_device()",
                     "there is no device '" + std::string(name) + "': " + why + ". help: device=\"" +
                         (there.empty() ? "cpu" : "cuda") + "\"",
                     name == "cuda" ? ErrorCategory::runtime : ErrorCategory::value);
}

Device* find_gpu(std::string_view name) {
    if (Device* const mapped = mapped_device(name)) return mapped;
    const bool is_any = name == "cuda";
    if (!is_any && !name.starts_with("cuda:")) return nullptr;
    if (is_any && default_device().gpu() != nullptr) return &default_device();
    const std::vector<Device*> there = cuda_devices();
    for (Device* device : there)
        if (is_any || device->alias == name) return device;
    throw_no_device(name, there);
}

std::vector<Device*> used_gpus() { return has_used_cuda() ? cuda_devices() : std::vector<Device*>(); }

std::shared_ptr<const Executable> load_for_gpus(Binary binary) {
    return std::make_shared<CudaExecutable>(std::move(binary));
}

}  // namespace

const Backend kCudaBackend = {Target::Kind::cuda, cuda_devices, used_gpus, find_gpu, load_for_gpus};

}  // namespace weft::runtime
