// The lane functions of lanes/half.def. Sums and products of two halves are exact in a double, or rounded to odd there,
// so that only one rounding remains.
#include "lanes/floats.h"
#include "lanes/loops.h"

namespace weft::emulator::WEFT_LEVEL {

namespace {

inline Brain flushed(Brain x) { return x; }  // bf16 has no .ftz

template <class T>
T input(T x, Flags flags) {
    if constexpr (std::is_same_v<T, Half>) return flags & kFlush ? emulator::WEFT_LEVEL::flushed(x) : x;
    return x;
}
template <class T>
bool is_nan(T x) {
    return wide(x) != wide(x);
}
template <class T>
T output(f64 odd, Flags flags) {
    T result = input(narrow<T>(odd), flags);
    if (flags & kSaturate) result = narrow<T>(saturate(wide(result)));
    if ((flags & kRelu) && (result.bits >> 15) && !is_nan(result)) result.bits = 0;
    return result;
}
template <class T>
T half_sum(f64 a, f64 b, Flags flags) {
    return output<T>(signed_zero(odd_sum(a, b), a, b, kRoundNearest), flags);
}
template <class T>
T half_add(T a, T b, Flags flags) {
    return half_sum<T>(wide(input(a, flags)), wide(input(b, flags)), flags);
}
template <class T>
T half_sub(T a, T b, Flags flags) {
    return half_sum<T>(wide(input(a, flags)), -wide(input(b, flags)), flags);
}
template <class T>
T half_mul(T a, T b, Flags flags) {
    return output<T>(wide(input(a, flags)) * wide(input(b, flags)), flags);
}
template <class T>
T half_fma(T a, T b, T c, Flags flags) {
    return half_sum<T>(wide(input(a, flags)) * wide(input(b, flags)), wide(input(c, flags)), flags);
}
template <class T>
T half_neg(T a, Flags flags) {
    return {u16(input(a, flags).bits ^ 0x8000)};
}
template <class T>
T half_abs(T a, Flags flags) {
    return {u16(input(a, flags).bits & 0x7fff)};
}
// If one operand is NaN, the result is the other; -0 is less than +0.
template <bool smallest, class T>
T extreme(T a, T b, Flags flags) {
    a = input(a, flags), b = input(b, flags);
    const u16 sign = flags & kAway ? (a.bits ^ b.bits) & 0x8000 : 0;
    if (flags & kAway) a.bits &= 0x7fff, b.bits &= 0x7fff;
    if (is_nan(a) || is_nan(b)) {
        if ((flags & kNan) || (is_nan(a) && is_nan(b))) return {kNan16};
        return {u16((is_nan(a) ? b : a).bits | sign)};
    }
    const f64 x = wide(a), y = wide(b);
    const bool first = x == y ? (a.bits >> 15 != 0) == smallest : (x < y) == smallest;
    return {u16((first ? a : b).bits | sign)};
}
template <class T>
T half_min(T a, T b, Flags flags) {
    return extreme<true>(a, b, flags);
}
template <class T>
T half_max(T a, T b, Flags flags) {
    return extreme<false>(a, b, flags);
}

// The functions of pairs apply one to each half.
template <class F>
struct Paired;
template <class T>
struct Paired<T (*)(T, Flags)> {
    template <T (*fn)(T, Flags)>
    static Pair<T> of(Pair<T> a, Flags flags) {
        return {fn(a.low, flags), fn(a.high, flags)};
    }
};
template <class T>
struct Paired<T (*)(T, T, Flags)> {
    template <T (*fn)(T, T, Flags)>
    static Pair<T> of(Pair<T> a, Pair<T> b, Flags flags) {
        return {fn(a.low, b.low, flags), fn(a.high, b.high, flags)};
    }
};
template <class T>
struct Paired<T (*)(T, T, T, Flags)> {
    template <T (*fn)(T, T, T, Flags)>
    static Pair<T> of(Pair<T> a, Pair<T> b, Pair<T> c, Flags flags) {
        return {fn(a.low, b.low, c.low, flags), fn(a.high, b.high, c.high, flags)};
    }
};
#define WEFT_PAIRED(fn) Paired<decltype(&fn)>::template of<&fn>
#define WEFT_HALVES(KIND, half, brain, fn) \
    KIND(half, fn<Half>)                   \
    KIND(brain, fn<Brain>)                 \
    KIND(half "x2", WEFT_PAIRED(fn<Half>)) \
    KIND(brain "x2", WEFT_PAIRED(fn<Brain>))

constexpr Row kRows[] = {
#include "lanes/half.def"
};

}  // namespace

RowTable rows_of_halves() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace weft::emulator::WEFT_LEVEL
