// The floating-point environment of a thread: the rounding direction, and whether subnormal numbers are flushed to
// zero.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif
#include <cstdint>

namespace weft {

// During its life this thread rounds to nearest and keeps subnormal numbers, as the compiler and kernels require. Then
// the program's own settings return (torch.set_flush_denormal() and the start-up code of -ffast-math flush subnormals).
class DefaultFloats {
public:
    DefaultFloats() : found_(read()) {
        if ((found_ & kControl) != kDefault) write(kDefault);
    }
    ~DefaultFloats() {
        if ((found_ & kControl) != kDefault) write(found_);
    }
    DefaultFloats(const DefaultFloats&) = delete;
    DefaultFloats& operator=(const DefaultFloats&) = delete;

private:
#if defined(__x86_64__)
    // MXCSR without the flags of past exceptions. The default masks exceptions.
    static constexpr std::uint64_t kControl = 0xffc0, kDefault = 0x1f80;
    static std::uint64_t read() { return _mm_getcsr(); }
    static void write(std::uint64_t value) { _mm_setcsr(static_cast<unsigned>(value)); }
#elif defined(__aarch64__)
    static constexpr std::uint64_t kControl = ~std::uint64_t{0}, kDefault = 0;
    static std::uint64_t read() {
        std::uint64_t value;
        asm volatile("mrs %0, fpcr" : "=r"(value));
        return value;
    }
    static void write(std::uint64_t value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
#else
    static constexpr std::uint64_t kControl = 0, kDefault = 0;
    static std::uint64_t read() { return 0; }
    static void write(std::uint64_t) {}
#endif
    const std::uint64_t found_;
};

}  // namespace weft
