#include "runtime/executable.h"

#include "runtime/cpu/loader.h"
#include "support/error.h"

namespace weft::runtime {

void LoadedKernel::call(const std::byte*, Fault&) const {
    throw InternalError("kernel " + description_.name + " does not run on the host, which calls it");
}

std::shared_ptr<const Executable> load(Binary binary) { return std::make_shared<CpuExecutable>(std::move(binary)); }

}  // namespace weft::runtime
