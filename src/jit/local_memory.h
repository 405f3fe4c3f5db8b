// The local memory of a kernel for GPUs, which its threads have to have when it is launched.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "binary/binary.h"

namespace llvm {
class Module;
}

namespace weft::jit {

// Throws UsageError if a kernel and the functions that it calls have more variables in local memory than a thread of a
// GPU may have: the driver would only refuse the launch. `ptx` was emitted from `module`.
void check_local_memory(const llvm::Module& module, std::string_view ptx, std::span<const KernelEntry> kernels,
                        const std::string& processor);

}  // namespace weft::jit
