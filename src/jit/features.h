// The features of processors that code may use.
#pragma once

#include <string>
#include <vector>

#include "binary/target.h"

namespace weft::jit {

// Names of the processor's features that code for a CPU may use, beyond those of every machine of its kind; sorted.
std::vector<std::string> required_features(const Target& target);

}  // namespace weft::jit
