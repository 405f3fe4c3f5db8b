#include "runtime/cuda/own_kernels.h"

#include <map>
#include <utility>

#include "runtime/cuda/module.h"
#include "runtime/cuda/relaxed_capture.h"
#include "runtime/cuda/stream.h"
#include "runtime/cuda/timing.h"

namespace weft::runtime {

using namespace cuda;

namespace {

struct OwnModule {
    std::mutex mutex;
    CUmodule handle = nullptr;
    std::map<const char*, CUfunction> functions;  // by their names in this program
};

// Modules live as long as the process, as devices do.
OwnModule& module_of(OwnKernel kernel, CudaContext& device) {
    static std::mutex mutex;
    static std::map<std::pair<const CudaContext*, const char*>, OwnModule> modules;
    const std::lock_guard lock(mutex);
    return modules[{&device, kernel.ptx}];
}

// Loads the module at the first launch of one of its kernels; other modules may be loaded meanwhile.
CUfunction function_of(OwnKernel kernel, CudaContext& device) {
    OwnModule& module = module_of(kernel, device);
    const std::lock_guard lock(module.mutex);
    CUfunction& function = module.functions[kernel.name];
    if (function) return function;
    if (module.handle == nullptr) module.handle = load_module({kernel.ptx}, device).handle;
    const CudaContext::Inside inside(device);
    const RelaxedCapture relaxed;
    device.check(driver().cuModuleGetFunction(&function, module.handle, kernel.name), "cuModuleGetFunction");
    return function;
}

}  // namespace

void launch_own(OwnKernel kernel, CudaContext& device, Stream& stream, unsigned blocks, unsigned threads,
                const void* plan) {
    const CUfunction function = function_of(kernel, device);
    void* parameters[] = {const_cast<void*>(plan)};
    const CudaContext::Inside inside(device);
    const TimedWork timed(static_cast<CudaStream&>(stream), kTimedOwnKernel, "builtin kernel ", kernel.name);
    device.check(driver().cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0,
                                         static_cast<CudaStream&>(stream).handle(), parameters, nullptr),
                 "cuLaunchKernel");
}

devlib::Strided strided(const CopyPlan& plan) {
    devlib::Strided elements{{static_cast<char*>(plan.to), static_cast<const char*>(plan.from)},
                             plan.size_bytes() / plan.element,
                             plan.ndim,
                             {}};
    for (int i = 0; i < plan.ndim; ++i) elements.axes[i] = {plan.axes[i].count, plan.axes[i].to, plan.axes[i].from};
    return elements;
}

}  // namespace weft::runtime
