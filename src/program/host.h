// What this room asks of the program that Weft runs in: Python, through bindings/, or one in C++, through embed/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weft::program {

void print_to_stdout(const std::string& text);

// The numbers of Python's logging module, and the names wp.LOG_DEBUG, ... for them.
enum class LogLevel { debug = 10, info = 20, warning = 30, error = 40 };

// All but `print` may be null: then nothing is asked and nothing is told.
struct Host {
    // A long launch asks now and then whether it should end; where it does, `stop` throws what the caller gets.
    bool (*interrupted)() = nullptr;
    void (*stop)() = nullptr;
    // Between these two other threads of the program may call in. `leave` gives what `enter` takes.
    void* (*leave)() = nullptr;
    void (*enter)(void*) = nullptr;
    // What kernels print; to C's stdout where nobody says otherwise.
    void (*print)(const std::string& text) = print_to_stdout;
    // A launch waits for the compiler of a kernel: told several times a second if that takes long, with the seconds so
    // far, and once without when it has ended. Called without the host's lock.
    void (*compiling)(const std::string& kernel, std::optional<double> seconds) = nullptr;
    // What Weft says about its own work.
    void (*log)(LogLevel level, const std::string& text) = nullptr;
};
Host& host();

// While it lives, other threads of the program may call in.
class WithoutHost {
public:
    WithoutHost() : state_(host().leave ? host().leave() : nullptr) {}
    ~WithoutHost() {
        if (host().enter) host().enter(state_);
    }
    WithoutHost(const WithoutHost&) = delete;
    WithoutHost& operator=(const WithoutHost&) = delete;

private:
    void* state_;
};

// Runs `work`, without the host's lock where it moves enough bytes to be worth that.
template <typename Work>
void without_host(std::int64_t size_bytes, Work&& work) {
    constexpr std::int64_t kWorthLeaving = 1 << 18;
    if (size_bytes < kWorthLeaving) {
        work();
    } else {
        const WithoutHost without;
        work();
    }
}

}  // namespace weft::program
