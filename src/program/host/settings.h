// The user's wp.config, for the compiler and the runtime. The bindings set it when a wp.config option is assigned; each
// launch reads it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace weft::program {

// Whether $WARP_SERIAL is set, and not 0.
bool serial_by_environment();

struct Settings {
    bool debug = false;           // config.mode is "debug" or "check"
    bool notes_accesses = false;  // config.mode is "check"
    bool fast_math = false;
    bool line_info = false;
    bool cache_kernels = true;
    bool print_launches = false;
    bool verify_fp = false;
    bool legacy_scalar_return_types = false;  // builtins called from Python give plain numbers
    bool deterministic = false;               // sums of floats by atomics are the same in every run
    bool serial = serial_by_environment();    // one thread after the other, in the order of the grid
    int log_level = 20;                       // config.log_level: bindings/python/log.h
    std::optional<int> optimization_level;    // empty: 3, and 0 in debug mode
    int max_unroll = 16;
    std::int64_t gradient_loop_bytes = std::int64_t{1} << 24;
    std::int64_t gradient_log_bytes = std::int64_t{1} << 30;
    std::filesystem::path cache_folder;  // config.kernel_cache_dir; empty: jit::cache_folder() chooses
    std::string host_compiler;           // of functions in C++; empty: the first that is found
    bool enable_cpu_blocks = false;      // blocks of the CPU have as many lanes as a launch asks for
};
extern Settings current_settings;
inline Settings& settings() { return current_settings; }  // a launch asks several times

// While it lives, launches of this thread are deterministic, or not, in place of the options of kernels and wp.config.
class Determinism {
public:
    explicit Determinism(std::optional<bool> wanted) : before_(wanted_) { wanted_ = wanted; }
    ~Determinism() { wanted_ = before_; }
    Determinism(const Determinism&) = delete;
    Determinism& operator=(const Determinism&) = delete;

private:
    friend bool is_deterministic(std::optional<bool> of_kernel);
    static thread_local std::optional<bool> wanted_;
    std::optional<bool> before_;
};
// Whether launches of a kernel with this option (empty: none) give the same sums in every run.
bool is_deterministic(std::optional<bool> of_kernel);

}  // namespace weft::program
