#include "runtime/executable.h"

#include "runtime/backend.h"
#include "support/error.h"

namespace weft::runtime {

void LoadedKernel::call(const std::byte*, Fault&) const {
    throw InternalError("kernel " + description_.name + " does not run on the host, which calls it");
}

bool LoadedKernel::launch_fused(std::span<const FusedLaunch>, std::int64_t, const Grid&, const LaunchOptions&) const {
    throw InternalError("launches of kernel " + description_.name + " are not joined on its device");
}

std::shared_ptr<const Executable> load(Binary binary) {
    for (const Backend& backend : backends())
        if (backend.code == binary.target.kind) return backend.load(std::move(binary));
    throw InternalError("no device runs code of this kind");
}

}  // namespace weft::runtime
