// Machine code for GPUs ("cubins"), made of PTX by NVIDIA's compiler. Weft may not pass that on: what the user has is
// taken, the program ptxas or the library nvJitLink.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace weft::jit {

// Machine code of a text for exactly the processor "sm_90", with line tables where the text has lines. Taken is the
// first of these that does it: $WARP_PTX_COMPILER alone, where it is set (a ptxas, or a libnvJitLink.so); else ptxas in
// the folders of PATH, in `folders`, in those of toolkits; then nvJitLink in `folders`, in toolkits, or as the system
// finds it. Throws UsageError in the name of `api` where there is none, or what each of them said.
std::vector<std::byte> assemble(std::string_view ptx, const std::string& processor,
                                const std::vector<std::filesystem::path>& folders, const char* api);

}  // namespace weft::jit
