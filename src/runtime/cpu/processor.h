// Tells whether this machine can run code that was compiled on another one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

// The features of the code (LLVM's names: "avx2") that this processor lacks; the triple itself if it names another kind
// of machine.
std::vector<std::string> missing_features(std::string_view triple, const std::vector<std::string>& features);

}  // namespace weft::runtime
