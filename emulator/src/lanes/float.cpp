// The lane functions of lanes/float.def. Rounding to nearest is the host's. For floats, the other roundings use a
// double rounded to odd (formats.h); for doubles, they use the host's rounding mode.
#include <fenv.h>

#include "lanes/floats.h"
#include "lanes/loops.h"

namespace weft::emulator::WEFT_LEVEL {

namespace {

inline f32 host_fma(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
inline f64 host_fma(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
inline f32 host_sqrt(f32 a) { return __builtin_sqrtf(a); }
inline f64 host_sqrt(f64 a) { return __builtin_sqrt(a); }

template <class T>
T plain_add(T a, T b) {
    return canonical(a + b);
}
template <class T>
T plain_sub(T a, T b) {
    return canonical(a - b);
}
template <class T>
T plain_mul(T a, T b) {
    return canonical(a * b);
}
template <class T>
T plain_fma(T a, T b, T c) {
    return canonical(host_fma(a, b, c));
}
template <class T>
T plain_div(T a, T b) {
    return canonical(a / b);
}
template <class T>
T plain_sqrt(T a) {
    return canonical(host_sqrt(a));
}
template <class T>
T plain_rcp(T a) {
    return canonical(1 / a);
}
template <auto fn>
f32 flushed1(f32 a) {
    return flushed(fn(flushed(a)));
}
template <auto fn>
f32 flushed2(f32 a, f32 b) {
    return flushed(fn(flushed(a), flushed(b)));
}
template <auto fn>
f32 flushed3(f32 a, f32 b, f32 c) {
    return flushed(fn(flushed(a), flushed(b), flushed(c)));
}
template <auto fn>
Pair<f32> pair2(Pair<f32> a, Pair<f32> b) {
    return {fn(a.low, b.low), fn(a.high, b.high)};
}
template <auto fn>
Pair<f32> pair3(Pair<f32> a, Pair<f32> b, Pair<f32> c) {
    return {fn(a.low, b.low, c.low), fn(a.high, b.high, c.high)};
}

f64 input(f32 x, Flags flags) { return flags & kFlush ? flushed(x) : x; }
f32 output(f64 odd, Flags flags) {
    f32 x = narrow<f32>(odd, flags);
    if (flags & kFlush) x = flushed(x);
    return flags & kSaturate ? saturate(x) : x;
}
f32 any_sum(f64 a, f64 b, Flags flags) { return output(signed_zero(odd_sum(a, b), a, b, flags), flags); }
f32 any_add(f32 a, f32 b, Flags flags) { return any_sum(input(a, flags), input(b, flags), flags); }
f32 any_sub(f32 a, f32 b, Flags flags) { return any_sum(input(a, flags), -input(b, flags), flags); }
f32 any_mul(f32 a, f32 b, Flags flags) { return output(input(a, flags) * input(b, flags), flags); }
f32 any_fma(f32 a, f32 b, f32 c, Flags flags) {
    return any_sum(input(a, flags) * input(b, flags), input(c, flags), flags);
}
f32 any_div(f32 a, f32 b, Flags flags) {
    const f64 x = input(a, flags), y = input(b, flags), quotient = x / y;
    if (quotient == 0 || quotient - quotient != 0) return output(quotient, flags);
    const f64 rest = __builtin_fma(-quotient, y, x);
    return output(to_odd(quotient, y < 0 ? -rest : rest), flags);
}
f32 any_rcp(f32 a, Flags flags) { return any_div(1, a, flags); }
f32 any_sqrt(f32 a, Flags flags) {
    const f64 x = input(a, flags), root = __builtin_sqrt(x);
    if (root == 0 || root - root != 0) return output(root, flags);
    return output(to_odd(root, __builtin_fma(-root, root, x)), flags);
}

// The operands are volatile so that the operation stays between the calls that set the mode.
template <class F>
f64 directed(F operation, Flags flags) {
    static const int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    fesetround(kModes[flags & kRoundMask]);
    volatile f64 result = operation();
    fesetround(FE_TONEAREST);
    return result;
}
f64 directed_add(f64 a, f64 b, Flags flags) {
    volatile f64 x = a, y = b;
    return directed([&] { return x + y; }, flags);
}
f64 directed_sub(f64 a, f64 b, Flags flags) {
    volatile f64 x = a, y = b;
    return directed([&] { return x - y; }, flags);
}
f64 directed_mul(f64 a, f64 b, Flags flags) {
    volatile f64 x = a, y = b;
    return directed([&] { return x * y; }, flags);
}
f64 directed_div(f64 a, f64 b, Flags flags) {
    volatile f64 x = a, y = b;
    return directed([&] { return x / y; }, flags);
}
f64 directed_rcp(f64 a, Flags flags) { return directed_div(1, a, flags); }
f64 directed_fma(f64 a, f64 b, f64 c, Flags flags) {
    volatile f64 x = a, y = b, z = c;
    return directed([&] { return __builtin_fma(x, y, z); }, flags);
}
f64 directed_sqrt(f64 a, Flags flags) {
    volatile f64 x = a;
    return directed([&] { return __builtin_sqrt(x); }, flags);
}

// If one operand is NaN, the result is the other; -0 is less than +0.
template <class T>
T least(T a, T b) {
    T result = a < b ? a : b;
    result = a == b ? (__builtin_signbit(a) ? a : b) : result;
    result = a != a ? b : result;
    return canonical(b != b ? a : result);
}
template <class T>
T greatest(T a, T b) {
    T result = a > b ? a : b;
    result = a == b ? (__builtin_signbit(a) ? b : a) : result;
    result = a != a ? b : result;
    return canonical(b != b ? a : result);
}
template <auto fn>
f32 any_extreme(f32 a, f32 b, Flags flags) {
    a = f32(input(a, flags));
    b = f32(input(b, flags));
    if ((flags & kNan) && (a != a || b != b)) return canonical(f32(__builtin_nanf("")));
    if (!(flags & kAway)) return fn(a, b);
    const bool negative = __builtin_signbit(a) != __builtin_signbit(b);
    const f32 result = fn(__builtin_fabsf(a), __builtin_fabsf(b));
    return result != result ? result : __builtin_copysignf(result, negative ? -1.0f : 1.0f);
}
f32 any_min(f32 a, f32 b, Flags flags) { return any_extreme<least<f32>>(a, b, flags); }
f32 any_max(f32 a, f32 b, Flags flags) { return any_extreme<greatest<f32>>(a, b, flags); }
template <auto fn>
f32 any_extreme3(f32 a, f32 b, f32 c, Flags flags) {
    const Flags plain = Flags(flags & ~kAway);
    const bool absolute = flags & kAway;
    if (absolute) a = __builtin_fabsf(a), b = __builtin_fabsf(b), c = __builtin_fabsf(c);
    return any_extreme<fn>(any_extreme<fn>(a, b, plain), c, plain);
}
f32 any_min3(f32 a, f32 b, f32 c, Flags flags) { return any_extreme3<least<f32>>(a, b, c, flags); }
f32 any_max3(f32 a, f32 b, f32 c, Flags flags) { return any_extreme3<greatest<f32>>(a, b, c, flags); }

template <class T>
T plain_neg(T a) {
    return -a;
}
inline f32 fabs_of(f32 a) { return __builtin_fabsf(a); }
inline f64 fabs_of(f64 a) { return __builtin_fabs(a); }
template <class T>
T plain_abs(T a) {
    return fabs_of(a);
}
f32 flushed_neg(f32 a) { return -flushed(a); }
f32 flushed_abs(f32 a) { return __builtin_fabsf(flushed(a)); }
// The result has the sign of the first operand.
template <class T, class U>
T copy_sign(T a, T b) {
    constexpr U sign = U(1) << (sizeof(U) * 8 - 1);
    return bits_to<T>(U((bits_to<U>(a) & sign) | (bits_to<U>(b) & ~sign)));
}

constexpr Row kRows[] = {
#include "lanes/float.def"
};

}  // namespace

RowTable rows_of_floats() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace weft::emulator::WEFT_LEVEL
