// Whether this machine can run code that was compiled on another one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

// Of the features that code was compiled with, as LLVM calls them ("avx2"), those that this processor lacks; the triple
// itself where it names another kind of machine.
std::vector<std::string> missing_features(std::string_view triple, const std::vector<std::string>& features);

}  // namespace weft::runtime
