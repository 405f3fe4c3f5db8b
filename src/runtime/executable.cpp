#include "runtime/executable.h"

#include "runtime/cpu/loader.h"
#include "runtime/cuda/executable.h"
#include "support/error.h"

namespace weft::runtime {

void LoadedKernel::call(const std::byte*, Fault&) const {
    throw InternalError("kernel " + description_.name + " does not run on the host, which calls it");
}

bool LoadedKernel::launch_fused(std::span<const FusedLaunch>, std::int64_t, const Grid&, const LaunchOptions&) const {
    throw InternalError("launches of kernel " + description_.name + " are not joined on its device");
}

std::shared_ptr<const Executable> load(Binary binary) {
    switch (binary.target.kind) {
        case Target::Kind::cpu:
            return std::make_shared<CpuExecutable>(std::move(binary));
        case Target::Kind::cuda:
            return std::make_shared<CudaExecutable>(std::move(binary));
    }
    throw InternalError("no device runs code of this kind");
}

}  // namespace weft::runtime
