// The CUDA toolkits on this machine.
#pragma once

#include <filesystem>
#include <vector>

namespace weft::jit {

// The folders $CUDA_HOME, $CUDA_PATH and /usr/local/cuda, which need not exist, then /usr/local/cuda-*, in descending
// order of their names.
std::vector<std::filesystem::path> cuda_toolkits();

}  // namespace weft::jit
