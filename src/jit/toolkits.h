// Where CUDA toolkits are on this machine.
#pragma once

#include <filesystem>
#include <vector>

namespace weft::jit {

// $CUDA_HOME, $CUDA_PATH, /usr/local/cuda and /usr/local/cuda-*, the newest first; whether they are there or not.
std::vector<std::filesystem::path> cuda_toolkits();

}  // namespace weft::jit
