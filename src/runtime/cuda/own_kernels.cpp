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

// Modules live as long as the process, as devices do.
CUfunction function_of(OwnKernel kernel, CudaContext& device) {
    static std::mutex mutex;
    static std::map<std::pair<const CudaContext*, const char*>, CUmodule> modules;
    static std::map<std::pair<const CudaContext*, const char*>, CUfunction> functions;
    const std::lock_guard lock(mutex);
    CUfunction& function = functions[{&device, kernel.name}];
    if (function) return function;
    CUmodule& module = modules[{&device, kernel.ptx}];
    if (module == nullptr) module = load_module({kernel.ptx}, device).handle;
    const CudaContext::Inside inside(device);
    const RelaxedCapture relaxed;
    device.check(driver().cuModuleGetFunction(&function, module, kernel.name), "cuModuleGetFunction");
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
