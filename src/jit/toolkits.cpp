#include "jit/toolkits.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <system_error>

namespace weft::jit {

namespace fs = std::filesystem;

std::vector<fs::path> cuda_toolkits() {
    std::vector<fs::path> found;
    for (const char* const name : {"CUDA_HOME", "CUDA_PATH"})
        if (const char* const value = std::getenv(name); value != nullptr && *value != '\0') found.emplace_back(value);
    found.emplace_back("/usr/local/cuda");
    std::vector<fs::path> versions;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator("/usr/local", error))
        if (entry.path().filename().string().starts_with("cuda-")) versions.push_back(entry.path());
    std::ranges::sort(versions, std::greater<>());
    found.insert(found.end(), versions.begin(), versions.end());
    return found;
}

}  // namespace weft::jit
