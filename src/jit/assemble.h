// Machine code for GPUs ("cubins"), assembled from PTX by NVIDIA's compiler, the program ptxas or the library
// nvJitLink. Weft may not distribute these: it uses the user's.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace weft::jit {

// Assembles PTX for exactly `processor` (such as "sm_90"), with line tables if the text has lines. If
// $WARP_PTX_COMPILER is set (a ptxas, or a libnvJitLink.so), it alone is used. Otherwise the first of these that
// succeeds:
//
// - ptxas in the folders of PATH, in `folders`, in toolkits;
// - nvJitLink in `folders`, in toolkits, or on the system's library path.
//
// Throws UsageError in the name of `api` if there is none, or with the message of each that failed.
std::vector<std::byte> assemble(std::string_view ptx, const std::string& processor,
                                const std::vector<std::filesystem::path>& folders, const char* api);

// Assembles with nvJitLink alone, in this process: the library that $WARP_PTX_COMPILER names, or one of NVIDIA's Python
// packages beside this one, of a toolkit, or on the system's library path. Any number of threads may do so at once.
// Empty if there is no such library, if $WARP_PTX_COMPILER names something else, or if it refuses the PTX.
std::vector<std::byte> assemble_in_library(std::string_view ptx, const std::string& processor);

// Whether $WARP_PTX_COMPILER names a libnvJitLink.so.
bool names_library();

}  // namespace weft::jit
