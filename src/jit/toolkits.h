// The CUDA toolkits on this machine.
#pragma once

#include <filesystem>
#include <vector>

namespace weft::jit {

// The folders $CUDA_HOME, $CUDA_PATH, /usr/local/cuda and /usr/local/cuda-*, in this order; the first three need not
// exist.
std::vector<std::filesystem::path> cuda_toolkits();

}  // namespace weft::jit
