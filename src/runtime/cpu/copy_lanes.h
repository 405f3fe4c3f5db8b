// Called by compiled code (codegen/cpu/copied_access.cpp): copies of the elements of a group of threads, if some
// threads are inactive or the elements are not contiguous.
#pragma once

#include <cstddef>
#include <cstdint>

// On x86 they preserve every register, as the calls expect (LLVM's preserve_all). Instrumentation of sanitizers would
// not.
#if defined(__x86_64__)
#define WEFT_KEEPS_REGISTERS \
    __attribute__((no_caller_saved_registers, target("general-regs-only"), no_sanitize("address", "undefined")))
#else
#define WEFT_KEEPS_REGISTERS
#endif

namespace weft::runtime {

// Copies with one access of the number's size: other threads may be writing neighbouring bytes.
template <typename Number>
WEFT_KEEPS_REGISTERS inline void copy_number(std::byte*& to, const std::byte*& from, std::int64_t& bytes) {
    __builtin_memcpy(to, from, sizeof(Number));
    to += sizeof(Number);
    from += sizeof(Number);
    bytes -= static_cast<std::int64_t>(sizeof(Number));
}

WEFT_KEEPS_REGISTERS inline void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
    while (bytes >= 8) copy_number<std::uint64_t>(to, from, bytes);
    if (bytes >= 4) copy_number<std::uint32_t>(to, from, bytes);
    if (bytes >= 2) copy_number<std::uint16_t>(to, from, bytes);
    if (bytes >= 1) copy_number<std::uint8_t>(to, from, bytes);
}

// For each bit of `lanes`, copies `bytes` from from + lane * distance to to + lane * distance.
WEFT_KEEPS_REGISTERS inline void copy_lanes(std::byte* to, const std::byte* from, std::int64_t bytes,
                                            std::int64_t distance, std::uint64_t lanes) {
    while (lanes != 0) {
        // The run of active lanes from `first` on: one block if their elements are contiguous.
        const int first = __builtin_ctzll(lanes);
        const std::uint64_t off = ~(lanes >> first);
        const int count = bytes != distance ? 1 : off == 0 ? 64 : __builtin_ctzll(off);
        copy_bytes(to + first * distance, from + first * distance, count * bytes);
        lanes &= first + count >= 64 ? 0 : ~std::uint64_t{0} << (first + count);
    }
}

// For each bit of `lanes`, copies `bytes` from from + indices[lane] * distance to to + lane * distance.
WEFT_KEEPS_REGISTERS inline void gather_lanes(std::byte* to, const std::byte* from, const std::int64_t* indices,
                                              std::int64_t bytes, std::int64_t distance, std::uint64_t lanes) {
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctzll(lanes);
        copy_bytes(to + lane * distance, from + indices[lane] * distance, bytes);
    }
}

}  // namespace weft::runtime
