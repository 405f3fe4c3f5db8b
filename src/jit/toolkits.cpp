#include "jit/toolkits.h"

#include <dlfcn.h>

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

std::vector<fs::path> nvidia_packages_beside(std::initializer_list<const char*> names) {
    Dl_info info;
    if (dladdr(reinterpret_cast<const void*>(&nvidia_packages_beside), &info) == 0 || info.dli_fname == nullptr)
        return {};
    std::error_code error;
    const fs::path file = fs::canonical(info.dli_fname, error);
    if (error) return {};
    std::vector<fs::path> folders;
    for (const char* const name : names) folders.push_back(file.parent_path().parent_path() / "nvidia" / name);
    return folders;
}

}  // namespace weft::jit
