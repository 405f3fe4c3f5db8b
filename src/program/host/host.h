// The services that this room needs from the program around it: Python, through bindings/, or a C++ program, through
// embed/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weft::program {

void print_to_stdout(const std::string& text);

// The numbers of Python's logging module, and the names wp.LOG_DEBUG, ... for them.
enum class LogLevel { debug = 10, info = 20, warning = 30, error = 40 };

// All but `print` may be null; the service is then left out.
struct Host {
    // A long launch asks now and then whether it should end. If so, `stop` throws the caller's exception.
    bool (*interrupted)() = nullptr;
    void (*stop)() = nullptr;
    // Between these two, other threads of the program may call in. `enter` takes the result of `leave`.
    void* (*leave)() = nullptr;
    void (*enter)(void*) = nullptr;
    // Output of kernels; by default to C's stdout.
    void (*print)(const std::string& text) = print_to_stdout;
    // Progress of a compilation that a launch waits for: called several times a second if it takes long, with the
    // seconds so far, and once without them at its end. Called without the host's lock.
    void (*compiling)(const std::string& kernel, std::optional<double> seconds) = nullptr;
    // Messages of Weft about its own work.
    void (*log)(LogLevel level, const std::string& text) = nullptr;
};
Host& host();

// Forwards printed output of machine code to the host.
void flush_prints();
// Runs `wait`, then shows what kernels have printed, also if it throws: the prints often say why.
template <typename Wait>
void with_prints(const Wait& wait) {
    try {
        wait();
    } catch (...) {
        flush_prints();
        throw;
    }
    flush_prints();
}

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

// Runs `work`, without the host's lock if it moves enough bytes to make up for that.
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
