// The lane functions of lanes/compare.def.
#include "lanes/floats.h"
#include "lanes/loops.h"

namespace weft::emulator::WEFT_LEVEL {

namespace {

inline f32 as_is(f32 x) { return x; }
inline f64 as_is(f64 x) { return x; }
inline f32 as_is(Brain x) { return f32(wide(x)); }
// Subnormal halves compare by value, or with .ftz as zeros; the row's flags decide.
inline f32 as_float(Half x, Flags flags) { return f32(wide(flags & kFlush ? flushed(x) : x)); }

template <class T>
bool equal(T a, T b) {
    return a == b;
}
template <class T>
bool different(T a, T b) {
    return a != b;
}
template <class T>
bool less(T a, T b) {
    return a < b;
}
template <class T>
bool less_equal(T a, T b) {
    return a <= b;
}
template <class T>
bool greater(T a, T b) {
    return a > b;
}
template <class T>
bool greater_equal(T a, T b) {
    return a >= b;
}

// Comparisons of floats: ordered ones are false if an operand is NaN; those with u are true.
enum class Compare { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

template <Compare how, class T>
inline bool compare(T a, T b) {
    switch (how) {
        case Compare::eq:
            return a == b;
        case Compare::ne:
            return (a < b) | (a > b);
        case Compare::lt:
            return a < b;
        case Compare::le:
            return a <= b;
        case Compare::gt:
            return a > b;
        case Compare::ge:
            return a >= b;
        case Compare::equ:
            return !((a < b) | (a > b));
        case Compare::neu:
            return a != b;
        case Compare::ltu:
            return !(a >= b);
        case Compare::leu:
            return !(a > b);
        case Compare::gtu:
            return !(a <= b);
        case Compare::geu:
            return !(a < b);
        case Compare::num:
            return (a == a) & (b == b);
        case Compare::nan:
            return (a != a) | (b != b);
    }
}

#define WEFT_COMPARED(through)                       \
    template <Compare how, class T>                  \
    bool compare_##through(T a, T b) {               \
        return compare<how>(through(a), through(b)); \
    }
WEFT_COMPARED(as_is)
WEFT_COMPARED(flushed)
template <Compare how, class T>
bool compare_half_flushed(T a, T b, Flags flags) {
    return compare<how>(as_float(a, flags), as_float(b, flags));
}

template <class T>
bool is_nan(T a) {
    return a != a;
}
template <class T>
bool is_number(T a) {
    return a == a;
}
template <class T>
bool is_infinite(T a) {
    return (a == T(__builtin_inf())) | (a == -T(__builtin_inf()));
}
template <class T>
bool is_finite(T a) {
    return (a - a) == 0;
}
template <class T>
constexpr T kLeast = sizeof(T) == 4 ? T(kLeastNormal32) : T(kLeastNormal64);
// PTX counts zeros as normal.
template <class T>
bool is_normal(T a) {
    return is_finite(a) & ((a >= kLeast<T>) | (a <= -kLeast<T>) | (a == 0));
}
template <class T>
bool is_subnormal(T a) {
    return (a < kLeast<T>)&(a > -kLeast<T>)&(a != 0);
}

#define WEFT_EQUALITY(T, types) LANES("setp.eq." types, equal<T>) LANES("setp.ne." types, different<T>)
#define WEFT_ORDER(T)                   \
    LANES("setp.lt." #T, less<T>)       \
    LANES("setp.le." #T, less_equal<T>) \
    LANES("setp.gt." #T, greater<T>)    \
    LANES("setp.ge." #T, greater_equal<T>)
#define WEFT_UNSIGNED_ORDER(T)          \
    LANES("setp.lo." #T, less<T>)       \
    LANES("setp.ls." #T, less_equal<T>) \
    LANES("setp.hi." #T, greater<T>)    \
    LANES("setp.hs." #T, greater_equal<T>)
#define WEFT_ONE_ORDER(KIND, T, type, through, how) KIND("setp." #how "." type, compare_##through<Compare::how, T>)
#define WEFT_FLOAT_ORDER(KIND, T, type, through) \
    WEFT_ONE_ORDER(KIND, T, type, through, eq)   \
    WEFT_ONE_ORDER(KIND, T, type, through, ne)   \
    WEFT_ONE_ORDER(KIND, T, type, through, lt)   \
    WEFT_ONE_ORDER(KIND, T, type, through, le)   \
    WEFT_ONE_ORDER(KIND, T, type, through, gt)   \
    WEFT_ONE_ORDER(KIND, T, type, through, ge)   \
    WEFT_ONE_ORDER(KIND, T, type, through, equ)  \
    WEFT_ONE_ORDER(KIND, T, type, through, neu)  \
    WEFT_ONE_ORDER(KIND, T, type, through, ltu)  \
    WEFT_ONE_ORDER(KIND, T, type, through, leu)  \
    WEFT_ONE_ORDER(KIND, T, type, through, gtu)  \
    WEFT_ONE_ORDER(KIND, T, type, through, geu)  \
    WEFT_ONE_ORDER(KIND, T, type, through, num)  \
    WEFT_ONE_ORDER(KIND, T, type, through, nan)

constexpr Row kRows[] = {
#include "lanes/compare.def"
};

}  // namespace

RowTable rows_of_comparisons() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace weft::emulator::WEFT_LEVEL
