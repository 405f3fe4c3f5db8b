#pragma once
// Common parts of float arithmetic: flushing of subnormals, saturation, PTX's canonical NaN.
#include "lanes/formats.h"

namespace weft::emulator::WEFT_LEVEL {

constexpr f32 kLeastNormal32 = 1.17549435e-38f;
constexpr f64 kLeastNormal64 = 2.2250738585072014e-308;

inline f32 flushed(f32 x) { return __builtin_fabsf(x) < kLeastNormal32 ? __builtin_copysignf(0, x) : x; }
inline f64 flushed(f64 x) { return __builtin_fabs(x) < kLeastNormal64 ? __builtin_copysign(0, x) : x; }
inline Half flushed(Half x) { return x.bits & 0x7c00 ? x : Half{u16(x.bits & 0x8000)}; }

inline f32 canonical(f32 x) { return x != x ? bits_to<f32>(kNan32) : x; }
inline f64 canonical(f64 x) { return x; }  // payloads of doubles are kept

// NaN becomes zero.
inline f32 saturate(f32 x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
inline f64 saturate(f64 x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

// A zero sum of two numbers of different signs, or of zeros, has a sign that depends on the rounding.
inline f64 signed_zero(f64 sum, f64 a, f64 b, int mode) {
    if (sum != 0 || __builtin_signbit(a) == __builtin_signbit(b)) return sum;
    return (mode & kRoundMask) == kRoundDown ? -0.0 : 0.0;
}

}  // namespace weft::emulator::WEFT_LEVEL
