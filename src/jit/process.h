// Other programs, run for what they compile: where they are, a folder for their files, what they say.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace weft::jit {

// The program of this name in the folders of PATH, or at this path; empty where there is none.
std::filesystem::path find_program(const std::string& name);

// A folder of our own among the temporary files, gone at the end.
class TemporaryFolder {
public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    std::filesystem::path path;
    std::string problem;  // why there is none, else ""
};
// What helps then.
inline constexpr const char* kTemporaryFolderHelp =
    "set the environment variable TMPDIR to a folder that can be written";

std::string read_text(const std::filesystem::path& path);

// Runs a program with what it prints going to a file; what is wrong with the way it ended, "" where nothing is.
std::string run_program(const std::vector<std::string>& command, const std::filesystem::path& output);

}  // namespace weft::jit
