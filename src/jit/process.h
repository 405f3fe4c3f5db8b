// Running other compilers: finding programs, a folder for their files, their output.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace weft::jit {

// The program of this name in the folders of PATH, or at this path; empty if there is none.
std::filesystem::path find_program(const std::string& name);

// A new temporary folder, removed by the destructor.
class TemporaryFolder {
public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    std::filesystem::path path;
    std::string problem;  // the reason if there is no folder, else ""
};
// A help text for TemporaryFolder::problem.
inline constexpr const char* kTemporaryFolderHelp =
    "set the environment variable TMPDIR to a folder that can be written";

std::string read_text(const std::filesystem::path& path);

// Runs a program and waits for it; its output and errors go to a file. Returns a description of its failure, or "".
std::string run_program(const std::vector<std::string>& command, const std::filesystem::path& output);

}  // namespace weft::jit
