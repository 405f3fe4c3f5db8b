// The CPU's memory for arrays: blocks of some hundred size classes, which are kept for reuse when they are freed.
// Programs create and drop arrays of the same few sizes all the time, and a fresh page costs more than the kernel that
// fills it.
//
//   size           comes from                      rounded up to
//   1 … 1 KiB      the C library, 64-byte aligned   a multiple of 64 bytes
//   … 1 MiB        the C library, 64-byte aligned   a quarter of a power of two (at most 25 % is lost)
//   … 64 MiB       mmap, huge pages asked for       a quarter of a power of two
//   above          mmap, never kept                 whole pages
//
// The total of kept bytes is bounded. All functions may be called from any thread, and again after fork().
#pragma once

#include <cstdint>

namespace weft::runtime {

inline constexpr std::int64_t kArrayAlignment = 64;

struct Block {
    void* data = nullptr;
    bool is_zero = false;  // fresh from the system: already all zero bytes
};

// At least `size_bytes` > 0 bytes, 64-byte aligned. Null data if the system has no more memory.
Block take_block(std::int64_t size_bytes);
// `size_bytes` as given to take_block.
void give_block(void* data, std::int64_t size_bytes);

// Returns all kept blocks to the system.
void trim_blocks();
// Bytes of freed blocks that are kept for reuse.
std::int64_t kept_block_bytes();
void set_kept_block_limit(std::int64_t size_bytes);

}  // namespace weft::runtime
