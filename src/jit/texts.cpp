#include "jit/texts.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/error.h"

namespace weft::jit {

namespace {

constexpr char kKeep[] = "WEFT_KEEP_PTX", kTake[] = "WEFT_TAKE_PTX";

// Read once, at the first compilation; later changes of the environment have no effect.
const char* folder_to_keep() {
    static const char* const folder = std::getenv(kKeep);
    return folder;
}
const char* folder_to_take() {
    static const char* const folder = std::getenv(kTake);
    return folder;
}

std::filesystem::path file_of(const char* folder, const Binary& binary) {
    return std::filesystem::path(folder) / (binary.key.hex() + ".ptx");
}

[[noreturn]] void refuse(const char* variable, const char* folder, const std::string& why) {
    throw UsageError("launch()", std::string(variable) + " is '" + folder + "', and " + why, ErrorCategory::runtime);
}

}  // namespace

void keep_text(const Binary& binary, const ir::Module& module) {
    const char* const folder = folder_to_keep();
    if (folder == nullptr || binary.target.kind != Target::Kind::cuda) return;
    const std::filesystem::path path = file_of(folder, binary);
    const std::string fresh = path.string() + "." + std::to_string(getpid());  // other processes may write it too
    std::ofstream file(fresh, std::ios::binary);
    for (const auto& function : module.functions)
        if (function->is_kernel)
            file << (function->is_adjoint ? "// adjoint of kernel " : "// kernel ") << function->name << '\n';
    file.write(reinterpret_cast<const char*>(binary.code.data()), static_cast<std::streamsize>(binary.code.size()) - 1);
    file.close();
    std::error_code error;
    if (file) std::filesystem::rename(fresh, path, error);
    if (!file || error) refuse(kKeep, folder, "no file can be written there");
}

bool takes_texts(const Target& target) { return target.kind == Target::Kind::cuda && folder_to_take() != nullptr; }

void take_text(Binary& binary) {
    if (!takes_texts(binary.target)) return;
    const char* const folder = folder_to_take();
    if (!std::filesystem::is_directory(folder)) refuse(kTake, folder, "that is no folder");
    std::ifstream file(file_of(folder, binary), std::ios::binary);
    if (!file) return;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text.empty()) refuse(kTake, folder, "a file of it cannot be read: " + binary.key.hex() + ".ptx");
    binary.code.resize(text.size() + 1);
    std::memcpy(binary.code.data(), text.c_str(), binary.code.size());
}

}  // namespace weft::jit
