// The CUDA toolkits on this machine.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <vector>

namespace weft::jit {

// The folders $CUDA_HOME, $CUDA_PATH and /usr/local/cuda, which need not exist, then /usr/local/cuda-*, in descending
// order of their names.
std::vector<std::filesystem::path> cuda_toolkits();

// The folders nvidia/<name> of NVIDIA's Python packages, which need not exist, if this code was installed beside them.
std::vector<std::filesystem::path> nvidia_packages_beside(std::initializer_list<const char*> names);

}  // namespace weft::jit
