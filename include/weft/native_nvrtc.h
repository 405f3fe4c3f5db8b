// In place of native_cuda.h if NVIDIA's NVRTC compiles the C++ of a @wp.func_native. NVRTC has CUDA's names itself.
// This text has those of clang that native.h uses.
#pragma once

#define __CUDA__ 1
#define __builtin_memcpy ::memcpy
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_nanf(text) __int_as_float(0x7fc00000)
#define __nvvm_isspacep_local(place) __isLocal(place)
#ifndef __INT8_TYPE__
#define __INT8_TYPE__ signed char
#define __INT16_TYPE__ short
#define __INT32_TYPE__ int
#define __INT64_TYPE__ long
#define __UINT8_TYPE__ unsigned char
#define __UINT16_TYPE__ unsigned short
#define __UINT32_TYPE__ unsigned int
#define __UINT64_TYPE__ unsigned long
#endif
#ifndef __SIZE_TYPE__
#define __SIZE_TYPE__ unsigned long
#endif
#ifndef __FLT_MAX__
#define __FLT_MAX__ 3.402823466e+38f
#define __FLT_EPSILON__ 1.192092896e-07f
#endif
#ifndef __ATOMIC_RELAXED
#define __ATOMIC_RELAXED 0
#endif

#define __builtin_acosf ::acosf
#define __builtin_acos ::acos
#define __builtin_asinf ::asinf
#define __builtin_asin ::asin
#define __builtin_atanf ::atanf
#define __builtin_atan ::atan
#define __builtin_cbrtf ::cbrtf
#define __builtin_cbrt ::cbrt
#define __builtin_ceilf ::ceilf
#define __builtin_ceil ::ceil
#define __builtin_cosf ::cosf
#define __builtin_cos ::cos
#define __builtin_coshf ::coshf
#define __builtin_cosh ::cosh
#define __builtin_erff ::erff
#define __builtin_erf ::erf
#define __builtin_erfcf ::erfcf
#define __builtin_erfc ::erfc
#define __builtin_expf ::expf
#define __builtin_exp ::exp
#define __builtin_exp2f ::exp2f
#define __builtin_exp2 ::exp2
#define __builtin_fabsf ::fabsf
#define __builtin_fabs ::fabs
#define __builtin_floorf ::floorf
#define __builtin_floor ::floor
#define __builtin_logf ::logf
#define __builtin_log ::log
#define __builtin_log10f ::log10f
#define __builtin_log10 ::log10
#define __builtin_log2f ::log2f
#define __builtin_log2 ::log2
#define __builtin_rintf ::rintf
#define __builtin_rint ::rint
#define __builtin_roundf ::roundf
#define __builtin_round ::round
#define __builtin_sinf ::sinf
#define __builtin_sin ::sin
#define __builtin_sinhf ::sinhf
#define __builtin_sinh ::sinh
#define __builtin_sqrtf ::sqrtf
#define __builtin_sqrt ::sqrt
#define __builtin_tanf ::tanf
#define __builtin_tan ::tan
#define __builtin_tanhf ::tanhf
#define __builtin_tanh ::tanh
#define __builtin_truncf ::truncf
#define __builtin_trunc ::trunc
#define __builtin_atan2f ::atan2f
#define __builtin_atan2 ::atan2
#define __builtin_copysignf ::copysignf
#define __builtin_copysign ::copysign
#define __builtin_fmaxf ::fmaxf
#define __builtin_fmax ::fmax
#define __builtin_fminf ::fminf
#define __builtin_fmin ::fmin
#define __builtin_fmodf ::fmodf
#define __builtin_fmod ::fmod
#define __builtin_hypotf ::hypotf
#define __builtin_hypot ::hypot
#define __builtin_powf ::powf
#define __builtin_pow ::pow
#define __builtin_fmaf ::fmaf
#define __builtin_fma ::fma

// A constant, as in native_cuda.h.
#define warpSize 32

namespace weft_detail {

// Moves a value of any size, by words of 32 bits.
template <typename T, typename Move>
T moved(T value, Move move) {
    constexpr int kWords = (sizeof(T) + 3) / 4;
    int words[kWords] = {};
    memcpy(words, &value, sizeof(T));
    for (int i = 0; i < kWords; ++i) words[i] = move(words[i]);
    memcpy(&value, words, sizeof(T));
    return value;
}

// A number of the size that atomicCAS takes.
template <int bytes>
struct Word {
    using type = unsigned;
};
template <>
struct Word<8> {
    using type = unsigned long long;
};

template <typename T>
void atomic_load(const T* place, T* value) {
    *value = *const_cast<const volatile T*>(place);
}

// Numbers of one or two bytes are changed within their word.
template <typename T>
bool atomic_compare_exchange(T* place, T* expected, const T* made) {
    using Bits = typename Word<sizeof(T)>::type;
    Bits before = 0, after = 0;
    memcpy(&before, expected, sizeof(T));
    memcpy(&after, made, sizeof(T));
    if constexpr (sizeof(T) == sizeof(Bits)) {
        const Bits found = atomicCAS(reinterpret_cast<Bits*>(place), before, after);
        memcpy(expected, &found, sizeof(T));
        return found == before;
    } else {
        const unsigned long address = reinterpret_cast<unsigned long>(place);
        unsigned* const word = reinterpret_cast<unsigned*>(address & ~3ul);
        const unsigned shift = unsigned(address & 3) * 8, mask = ((1u << 8 * sizeof(T)) - 1) << shift;
        unsigned whole = *const_cast<volatile unsigned*>(word);
        for (;;) {
            const unsigned found = (whole & mask) >> shift;
            if (found != before) {
                memcpy(expected, &found, sizeof(T));
                return false;
            }
            const unsigned seen = atomicCAS(word, whole, (whole & ~mask) | after << shift);
            if (seen == whole) return true;
            whole = seen;
        }
    }
}

template <typename T>
void atomic_exchange(T* place, const T* value, T* old) {
    atomic_load(place, old);
    while (!atomic_compare_exchange(place, old, value)) {
    }
}

// By CUDA's own functions, of numbers of 32 and 64 bits with and without a sign.
inline float fetch_add(float* place, float value) { return atomicAdd(place, value); }
inline double fetch_add(double* place, double value) { return atomicAdd(place, value); }
template <typename T>
T fetch_add(T* place, T value) {
    using Bits = typename Word<sizeof(T)>::type;
    return T(atomicAdd(reinterpret_cast<Bits*>(place), Bits(value)));
}
#define WEFT_FETCH(name, cuda)                                       \
    template <typename T>                                            \
    T name(T* place, T value) {                                      \
        using Bits = typename Word<sizeof(T)>::type;                 \
        return T(cuda(reinterpret_cast<Bits*>(place), Bits(value))); \
    }
WEFT_FETCH(fetch_and, atomicAnd)
WEFT_FETCH(fetch_or, atomicOr)
WEFT_FETCH(fetch_xor, atomicXor)
#undef WEFT_FETCH
// The sign decides about the order.
template <bool has_sign, int bytes>
struct Ordered {
    using type = unsigned;
};
template <>
struct Ordered<true, 4> {
    using type = int;
};
template <>
struct Ordered<false, 8> {
    using type = unsigned long long;
};
template <>
struct Ordered<true, 8> {
    using type = long long;
};
#define WEFT_FETCH(name, cuda)                                          \
    template <typename T>                                               \
    T name(T* place, T value) {                                         \
        using Bits = typename Ordered<(T(-1) < T(0)), sizeof(T)>::type; \
        return T(cuda(reinterpret_cast<Bits*>(place), Bits(value)));    \
    }
WEFT_FETCH(fetch_min, atomicMin)
WEFT_FETCH(fetch_max, atomicMax)
#undef WEFT_FETCH

}  // namespace weft_detail

// Of small structs; NVRTC has those of numbers.
#define WEFT_SHUFFLE(name, by)                                                                     \
    template <typename T>                                                                          \
    T name(unsigned mask, T value, by lane, int width = 32) {                                      \
        return weft_detail::moved(value, [=](int word) { return name(mask, word, lane, width); }); \
    }
WEFT_SHUFFLE(__shfl_sync, int)
WEFT_SHUFFLE(__shfl_up_sync, unsigned)
WEFT_SHUFFLE(__shfl_down_sync, unsigned)
WEFT_SHUFFLE(__shfl_xor_sync, int)
#undef WEFT_SHUFFLE

#define __atomic_load(place, value, order) weft_detail::atomic_load(place, value)
#define __atomic_compare_exchange(place, expected, made, weak, order, other) \
    weft_detail::atomic_compare_exchange(place, expected, made)
#define __atomic_exchange(place, value, old, order) weft_detail::atomic_exchange(place, value, old)
#define __atomic_fetch_add(place, value, order) weft_detail::fetch_add(place, value)
#define __atomic_fetch_min(place, value, order) weft_detail::fetch_min(place, value)
#define __atomic_fetch_max(place, value, order) weft_detail::fetch_max(place, value)
#define __atomic_fetch_and(place, value, order) weft_detail::fetch_and(place, value)
#define __atomic_fetch_or(place, value, order) weft_detail::fetch_or(place, value)
#define __atomic_fetch_xor(place, value, order) weft_detail::fetch_xor(place, value)
