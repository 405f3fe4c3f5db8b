// The lane functions of lanes/approx.def.
#include <math.h>

#include "lanes/floats.h"
#include "lanes/loops.h"

namespace weft::emulator::WEFT_LEVEL {

namespace {

f64 reciprocal(f64 x) { return 1 / x; }
f64 square_root(f64 x) { return ::sqrt(x); }
f64 reciprocal_root(f64 x) { return 1 / ::sqrt(x); }
f64 power_of_two(f64 x) { return ::exp2(x); }
f64 logarithm(f64 x) { return ::log2(x); }
f64 sine(f64 x) { return ::sin(x); }
f64 cosine(f64 x) { return ::cos(x); }
f64 hyperbolic_tangent(f64 x) { return ::tanh(x); }

template <auto fn>
f32 approximate(f32 x, Flags flags) {
    const f32 result = narrow<f32>(fn(flags & kFlush ? flushed(x) : x));
    return flags & kFlush ? flushed(result) : result;
}
f32 approximate_quotient(f32 a, f32 b, Flags flags) {
    if (flags & kFlush) a = flushed(a), b = flushed(b);
    const f32 result = canonical(a / b);
    return flags & kFlush ? flushed(result) : result;
}
// A product with the reciprocal, which is flushed to zero if it is subnormal.
f32 quotient_by_reciprocal(f32 a, f32 b, Flags flags) {
    const f32 size = __builtin_fabsf(b);
    if (size > 0x1p126f && size < __builtin_inff()) return canonical(a * __builtin_copysignf(0, b));
    return approximate_quotient(a, b, flags);
}
// "A gross approximation": the lower half of the significand is zero.
template <auto fn>
f64 upper_half(f64 x) {
    const f64 result = flushed(fn(flushed(x)));
    return bits_to<f64>(bits_to<u64>(result) & 0xffffffff00000000);
}
template <class T, auto fn>
T approximate_half(T x) {
    return narrow<T>(fn(wide(x)));
}
template <class T, auto fn>
Pair<T> approximate_pair(Pair<T> x) {
    return {narrow<T>(fn(wide(x.low))), narrow<T>(fn(wide(x.high)))};
}

constexpr Row kRows[] = {
#include "lanes/approx.def"
};

}  // namespace

RowTable rows_of_approximations() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace weft::emulator::WEFT_LEVEL
