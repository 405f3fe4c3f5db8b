#include "jit/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

namespace weft::jit {

namespace fs = std::filesystem;

fs::path find_program(const std::string& name) {
    const auto is_program = [](const fs::path& path) {
        std::error_code error;
        return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
    };
    if (name.find('/') != std::string::npos) return is_program(name) ? fs::path(name) : fs::path();
    const char* const variable = std::getenv("PATH");
    std::string_view folders = variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : variable;
    while (!folders.empty()) {
        const std::size_t colon = folders.find(':');
        const fs::path path = fs::path(folders.substr(0, colon)) / name;
        if (is_program(path)) return path;
        folders = colon == std::string_view::npos ? std::string_view() : folders.substr(colon + 1);
    }
    return {};
}

TemporaryFolder::TemporaryFolder() {
    std::error_code error;
    fs::path base = fs::temp_directory_path(error);
    if (error) base = "/tmp";
    std::string pattern = (base / "weft-native-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
        problem = "there is no room for temporary files in " + base.string() + ": " + std::strerror(errno);
    else
        path = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;  // files that cannot be removed are left behind
    if (!path.empty()) fs::remove_all(path, ignored);
}

std::string read_text(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string run_program(const std::vector<std::string>& command, const fs::path& output) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t process = 0;
    const int failure = ::posix_spawn(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) return std::string("it cannot be started: ") + std::strerror(failure);
    int status = 0;
    while (::waitpid(process, &status, 0) < 0) {
        if (errno == ECHILD) return {};  // a SIGCHLD handler of the program has reaped it; its output decides
        if (errno != EINTR) return std::string("it cannot be waited for: ") + std::strerror(errno);
    }
    if (WIFSIGNALED(status)) return "it was ended by signal " + std::to_string(WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? "" : "it ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace weft::jit
