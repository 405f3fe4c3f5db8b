// The lane functions of lanes/convert.def.
#include "lanes/floats.h"
#include "lanes/loops.h"

namespace weft::emulator::WEFT_LEVEL {

namespace {

using f16 = Half;
using bf16 = Brain;

template <class T>
constexpr T kMost = std::is_signed_v<T> ? T(T(~T(0)) ^ T(T(1) << (sizeof(T) * 8 - 1))) : T(~T(0));
template <class T>
constexpr T kLeast = std::is_signed_v<T> ? T(T(1) << (sizeof(T) * 8 - 1)) : T(0);

template <class To, class From>
To exactly(From x) {
    return To(x);
}
template <class To, class From>
To saturated(From x) {
    const s128 value = x;
    return value > s128(kMost<To>) ? kMost<To> : value < s128(kLeast<To>) ? kLeast<To> : To(value);
}

// An integer as a double, rounded to odd; only integers of more than 53 bits are inexact.
f64 odd(u64 x) {
    if (x >> 53 == 0) return f64(x);
    const int cut = 11 - __builtin_clzll(x);
    const u64 kept = x >> cut | ((x & ((u64(1) << cut) - 1)) != 0);
    return f64(kept) * f64(u64(1) << cut);
}
// Conversions to double round by the mode.
f64 rounded(u64 x, bool negative, int mode) {
    f64 result = f64(x);
    const u128 value = u128(result);
    const bool up = (mode & kRoundMask) == (negative ? kRoundDown : kRoundUp);
    if ((mode & kRoundMask) != kRoundNearest) {
        if (value > x && !up) result = bits_to<f64>(bits_to<u64>(result) - 1);
        if (value < x && up) result = bits_to<f64>(bits_to<u64>(result) + 1);
    }
    return negative ? -result : result;
}
template <class F, class T>
F from_integer(T x, Flags flags) {
    const bool negative = x < 0;
    const u64 size = negative ? 0 - u64(x) : u64(x);
    F result;
    if constexpr (std::is_same_v<F, f64>)
        result = rounded(size, negative, flags);
    else
        result = narrow<F>(negative ? -odd(size) : odd(size), flags & kRoundMask);
    if (flags & kSaturate) {
        if constexpr (std::is_same_v<F, f64>)
            result = saturate(result);
        else
            result = narrow<F>(saturate(wide(result)));
    }
    return result;
}

f64 as_double(f64 x, Flags) { return x; }
f64 as_double(f32 x, Flags flags) { return flags & kFlush ? flushed(x) : x; }
f64 as_double(Half x, Flags) { return wide(x); }
f64 as_double(Brain x, Flags) { return wide(x); }

f64 to_integral(f64 x, Flags flags) {
    if (!(__builtin_fabs(x) < 4503599627370496.0)) return x;
    const f64 size = __builtin_fabs(x);
    f64 whole = f64(u64(size));
    const f64 rest = size - whole;
    const bool negative = __builtin_signbit(x);
    // compares the doubled remainder with doubled one half, which is exact
    const u64 part = rest == 0 ? 0 : rest < 0.5 ? 1 : rest == 0.5 ? 2 : 3;
    whole += rounds_up(negative, u64(whole) & 1, part, 2, flags & kRoundMask);
    return negative ? -whole : whole;
}
// Numbers out of range become the nearest in range. NaN becomes zero or, if either type has 64 bits, the integer with
// only the highest bit set.
template <class T, class F>
T to_integer(F x, Flags flags) {
    const f64 value = to_integral(as_double(x, flags), flags);
    if (value != value) return sizeof(F) == 8 || sizeof(T) == 8 ? T(T(1) << (sizeof(T) * 8 - 1)) : T(0);
    const f64 least = f64(kLeast<T>), beyond = std::is_signed_v<T> ? -f64(kLeast<T>) : f64(kMost<T>);
    if (value < least) return kLeast<T>;
    if (std::is_signed_v<T> ? value >= beyond : sizeof(T) == 8 ? value >= 18446744073709551616.0 : value > beyond)
        return kMost<T>;
    return T(value);
}
s32 truncated(f32 x) {
    const f32 inside = x < 2147483648.0f ? (x >= -2147483648.0f ? x : -2147483648.0f) : 0;
    const s32 value = s32(inside);
    return x >= 2147483648.0f ? INT32_MAX : value;
}

f64 widened(f32 x) { return x; }
f32 narrowed(f64 x) { return canonical(f32(x)); }
f64 widened_any(f32 x, Flags flags) {
    const f64 result = as_double(x, flags);
    return flags & kSaturate ? saturate(result) : result;
}
template <class F>
f64 to_wide(F x, Flags flags) {
    return flags & kSaturate ? saturate(wide(x)) : wide(x);
}
// Between f16 and f32, .ftz has no effect: subnormals of both are kept.
template <class To, class From>
To to_small(From x, Flags flags) {
    if (std::is_same_v<To, Half> || std::is_same_v<From, Half>) flags = Flags(flags & ~kFlush);
    To result = narrow<To>(as_double(x, flags), flags & kRoundMask);
    if constexpr (std::is_same_v<To, f32>) {
        if (flags & kFlush) result = flushed(result);
    }
    if (flags & kSaturate) result = narrow<To>(saturate(wide(result)));
    if ((flags & kRelu) && wide(result) <= 0) result = narrow<To>(0);
    return result;
}
template <class T>
Pair<T> to_pair(f32 high, f32 low, Flags flags) {
    return {to_small<T>(low, flags), to_small<T>(high, flags)};
}
template <class F>
F integral(F x, Flags flags) {
    // without a rounding it is a copy
    f64 value = as_double(x, flags);
    if (!(flags & kUnrounded)) value = to_integral(value, flags);
    if (flags & kSaturate) value = saturate(value);
    if constexpr (std::is_same_v<F, f64>)
        return value;
    else
        return narrow<F>(value);
}

// To the nearest number with 10 digits behind the point, halves away from zero.
f32 to_tf32(f32 x, Flags) {
    if (x != x) return bits_to<f32>(kNan32);
    return bits_to<f32>((bits_to<u32>(x) + 0x1000) & 0xffffe000);
}

// E4M3 has no infinities: its largest exponent is used for numbers, and for one NaN of each sign.
constexpr Format kE4M3{4, 3}, kE5M2{5, 2};
template <Format format>
u8 to_eighth(f64 x, Flags flags) {
    const u32 largest = format.fraction_bits == 3 ? 0x7e : 0x7b;
    if (x != x) return 0x7f;
    if ((flags & kRelu) && x <= 0) return 0;
    const u32 sign = __builtin_signbit(x) ? 0x80 : 0;
    const f64 size = __builtin_fabs(x);
    u32 bits = largest;
    // IEEE would call these infinite: numbers 32 * 8 to 32 * 14
    if (format.fraction_bits == 3 && size >= 256)
        bits = size >= 448 ? largest : 0x70 + u32(to_integral(size / 32, Flags(0)));
    else
        bits = round_to(format, size, kRoundNearest);
    return u8((bits > largest ? largest : bits) | sign);
}
template <Format format>
f64 from_eighth(u8 x) {
    const u32 size = x & 0x7f;
    f64 value;
    if (format.fraction_bits == 3 && size >= 0x78)
        value = size == 0x7f ? __builtin_nan("") : f64((size - 0x70) * 32);
    else
        value = widen(format, size);
    return x & 0x80 ? -value : value;
}
template <Format format>
u16 to_eighths(f32 high, f32 low, Flags flags) {
    return u16(to_eighth<format>(high, flags) << 8 | to_eighth<format>(low, flags));
}
template <Format format>
u16 halves_to_eighths(Pair<Half> x, Flags flags) {
    return u16(to_eighth<format>(wide(x.high), flags) << 8 | to_eighth<format>(wide(x.low), flags));
}
template <Format format>
Pair<Half> from_eighths(u16 x, Flags flags) {
    Pair<Half> result{narrow<Half>(from_eighth<format>(u8(x))), narrow<Half>(from_eighth<format>(u8(x >> 8)))};
    if ((flags & kRelu) && wide(result.low) <= 0) result.low.bits = 0;
    if ((flags & kRelu) && wide(result.high) <= 0) result.high.bits = 0;
    return result;
}

#define WEFT_FROM_EACH_INTEGER(WITH, T) \
    WITH(T, u8) WITH(T, s8) WITH(T, u16) WITH(T, s16) WITH(T, u32) WITH(T, s32) WITH(T, u64) WITH(T, s64)
#define WEFT_FROM_EACH_SIGNED(WITH, T) WITH(T, s8) WITH(T, s16) WITH(T, s32) WITH(T, s64)
#define WEFT_TO_INTEGER(To, From) LANES("cvt." #To "." #From, exactly<To, From>)
#define WEFT_SATURATED(To, From) SLOW("cvt.sat." #To "." #From, saturated<To, From>)
#define WEFT_TO_FLOAT(F, T) SLOW("cvt(.rn|.rz|.rm|.rp)[.sat]." #F "." #T, from_integer<F, T>)
#define WEFT_TO_BRAIN(T) SLOW("cvt(.rn|.rz|.rm|.rp).bf16." #T, from_integer<bf16, T>)
#define WEFT_SINGLE_TO_INTEGER(F, T) SLOW("cvt(.rni|.rzi|.rmi|.rpi)[.ftz][.sat]." #T "." #F, to_integer<T, F>)
#define WEFT_FLOAT_TO_INTEGER(F, T) SLOW("cvt(.rni|.rzi|.rmi|.rpi)[.sat]." #T "." #F, to_integer<T, F>)
#define WEFT_BRAIN_TO_INTEGER(T) SLOW("cvt(.rni|.rzi|.rmi|.rpi)." #T ".bf16", to_integer<T, bf16>)

constexpr Row kRows[] = {
#include "lanes/convert.def"
};

}  // namespace

RowTable rows_of_conversions() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace weft::emulator::WEFT_LEVEL
