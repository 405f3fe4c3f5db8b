// CUDA's names in the C++ of a @wp.func_native that is compiled for a CUDA device. This text goes before native.h, and
// clang compiles both as CUDA, for the device alone. No CUDA toolkit is needed.
//
//   threadIdx, blockIdx, blockDim, gridDim, warpSize
//   __shared__, __device__, __host__, __constant__, __forceinline__
//   __syncthreads, __syncthreads_count, _and, _or; __syncwarp
//   __shfl_sync, _up_sync, _down_sync, _xor_sync     of numbers and small structs
//   __ballot_sync, __any_sync, __all_sync, __activemask
//   __threadfence, _block, _system; __ldg; __nanosleep
//
// WEFT_INCLUDES is defined if the snippet includes headers. The functions of <cmath>, and malloc and printf, are the
// device's.
//
// Launches have one-dimensional blocks and grids: threadIdx.y is 0. All threads of a block run the same elements in the
// same order, but the last block may have fewer: its other threads have ended. Barriers do not wait for these.
#pragma once

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))

// All functions behind this line are the device's and the host's at once: those of headers that a snippet includes have
// no __device__. The operators of <new> are two functions each, which clang's <new> defines by malloc and free.
#pragma clang force_cuda_host_device begin
#if defined(WEFT_INCLUDES) && __has_include(<new>)
extern "C" void* malloc(__SIZE_TYPE__) noexcept;
extern "C" void free(void*) noexcept;
#pragma clang force_cuda_host_device end
#include <new>
#pragma clang force_cuda_host_device begin
#endif

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1) : x(of_x), y(of_y), z(of_z) {}
};

namespace weft_detail {

#define WEFT_REGISTERS(type, name, converted)                                  \
    struct type {                                                              \
        static unsigned read_x() { return __nvvm_read_ptx_sreg_##name##_x(); } \
        static unsigned read_y() { return __nvvm_read_ptx_sreg_##name##_y(); } \
        static unsigned read_z() { return __nvvm_read_ptx_sreg_##name##_z(); } \
        __declspec(property(get = read_x)) unsigned x;                         \
        __declspec(property(get = read_y)) unsigned y;                         \
        __declspec(property(get = read_z)) unsigned z;                         \
        operator converted() const { return {read_x(), read_y(), read_z()}; }  \
    };
WEFT_REGISTERS(ThreadIndex, tid, uint3)
WEFT_REGISTERS(BlockIndex, ctaid, uint3)
WEFT_REGISTERS(BlockShape, ntid, dim3)
WEFT_REGISTERS(GridShape, nctaid, dim3)
#undef WEFT_REGISTERS

// Moves a value of any size, by words of 32 bits.
template <typename T, typename Move>
T moved(T value, Move move) {
    constexpr int kWords = (sizeof(T) + 3) / 4;
    int words[kWords] = {};
    __builtin_memcpy(words, &value, sizeof(T));
    for (int i = 0; i < kWords; ++i) words[i] = move(words[i]);
    __builtin_memcpy(&value, words, sizeof(T));
    return value;
}
// The operand of shfl.sync that limits it to parts of the warp.
inline int segment(int width, int last) { return (32 - width) << 8 | last; }

}  // namespace weft_detail

inline constexpr weft_detail::ThreadIndex threadIdx{};
inline constexpr weft_detail::BlockIndex blockIdx{};
inline constexpr weft_detail::BlockShape blockDim{};
inline constexpr weft_detail::GridShape gridDim{};
inline constexpr int warpSize = 32;

// __syncthreads is a built-in function of clang.
inline int __syncthreads_count(int predicate) { return __nvvm_bar0_popc(predicate); }
inline int __syncthreads_and(int predicate) { return __nvvm_bar0_and(predicate); }
inline int __syncthreads_or(int predicate) { return __nvvm_bar0_or(predicate); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { __nvvm_bar_warp_sync(mask); }

#define WEFT_SHUFFLE(name, builtin, by, last)                                                               \
    template <typename T>                                                                                   \
    T name(unsigned mask, T value, by lane, int width = warpSize) {                                         \
        const int within = weft_detail::segment(width, last);                                               \
        return weft_detail::moved(value, [=](int word) { return builtin(mask, word, int(lane), within); }); \
    }
WEFT_SHUFFLE(__shfl_sync, __nvvm_shfl_sync_idx_i32, int, 31)
WEFT_SHUFFLE(__shfl_up_sync, __nvvm_shfl_sync_up_i32, unsigned, 0)
WEFT_SHUFFLE(__shfl_down_sync, __nvvm_shfl_sync_down_i32, unsigned, 31)
WEFT_SHUFFLE(__shfl_xor_sync, __nvvm_shfl_sync_bfly_i32, int, 31)
#undef WEFT_SHUFFLE

inline unsigned __ballot_sync(unsigned mask, int predicate) { return __nvvm_vote_ballot_sync(mask, predicate != 0); }
inline int __any_sync(unsigned mask, int predicate) { return __nvvm_vote_any_sync(mask, predicate != 0); }
inline int __all_sync(unsigned mask, int predicate) { return __nvvm_vote_all_sync(mask, predicate != 0); }
inline unsigned __activemask() {
    unsigned mask;
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    return mask;
}

inline void __threadfence() { __nvvm_membar_gl(); }
inline void __threadfence_block() { __nvvm_membar_cta(); }
inline void __threadfence_system() { __nvvm_membar_sys(); }
inline void __nanosleep(unsigned nanoseconds) { asm volatile("nanosleep.u32 %0;" : : "r"(nanoseconds)); }

template <typename T>
T __ldg(const T* place) {
    return *place;
}
