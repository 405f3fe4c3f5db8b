#include <fenv.h>

#include <limits>

#include "oracle.h"

namespace weft::oracle {

namespace {

const std::string& rounding_of(const Words& words) {
    static const std::string nearest = "rn";
    for (const std::string& word : words) {
        if (word == "rz" || word == "rm" || word == "rp") return word;
    }
    return nearest;
}
int mode_of(const std::string& rounding) {
    return rounding == "rz"   ? FE_TOWARDZERO
           : rounding == "rm" ? FE_DOWNWARD
           : rounding == "rp" ? FE_UPWARD
                              : FE_TONEAREST;
}

template <class T>
bool is_subnormal(T x) {
    return x != 0 && std::fabs(x) < std::numeric_limits<T>::min();
}
template <class T>
T modified_input(T x, const Words& words) {
    return has(words, "ftz") && is_subnormal(x) ? std::copysign(T(0), x) : x;
}
template <class T>
T modified_output(T x, const Words& words) {
    if (has(words, "ftz") && is_subnormal(x)) x = std::copysign(T(0), x);
    if (has(words, "sat")) x = std::isnan(x) || x < 0 || (x == 0 && std::signbit(x)) ? T(0) : x > 1 ? T(1) : x;
    return x;
}

// The host's arithmetic in the rounding mode; the operands and the result are volatile, so that it stays between the
// calls.
template <class T, class F>
T in_mode(const std::string& rounding, F operation) {
    fesetround(mode_of(rounding));
    volatile T result = operation();
    fesetround(FE_TONEAREST);
    return result;
}

template <class T>
std::optional<T> computed(const std::string& name, const std::string& rounding, const T* v) {
    volatile T a = v[0], b = v[1], c = v[2];
    if (name == "add") return in_mode<T>(rounding, [&] { return a + b; });
    if (name == "sub") return in_mode<T>(rounding, [&] { return a - b; });
    if (name == "mul") return in_mode<T>(rounding, [&] { return a * b; });
    if (name == "div") return in_mode<T>(rounding, [&] { return a / b; });
    if (name == "rcp") return in_mode<T>(rounding, [&] { return T(1) / a; });
    if (name == "sqrt") return in_mode<T>(rounding, [&] { return std::sqrt(a); });
    if (name == "fma" || name == "mad") return in_mode<T>(rounding, [&] { return std::fma(T(a), T(b), T(c)); });
    return {};
}

// Of doubles the emulator uses the host's modes itself: here the nearest number is moved by what it misses, in numbers
// of 113 bits.
std::optional<double> moved(const std::string& name, const std::string& rounding, const double* v) {
    using Quad = __float128;
    const double nearest = *computed<double>(name, "rn", v);
    if (!std::isfinite(nearest) || nearest == 0 || std::fabs(nearest) < 1e-290) return {};
    const Quad a = v[0], b = v[1], c = v[2], r = nearest;
    Quad rest;  // exact − nearest, or something of its sign
    if (name == "add" || name == "sub") {
        const Quad second = name == "add" ? b : -b;
        if (std::fabs(std::log2(std::fabs(v[0]) / std::fabs(v[1]))) > 55) return {};
        rest = a + second - r;
    } else if (name == "mul") {
        rest = a * b - r;
    } else if (name == "fma" || name == "mad") {
        // exact only if the product has few digits
        if (double(float(v[0])) != v[0] || double(float(v[1])) != v[1]) return {};
        if (v[2] == 0 || std::fabs(std::log2(std::fabs(v[0] * v[1]) / std::fabs(v[2]))) > 55) return {};
        rest = a * b + c - r;
    } else if (name == "div" || name == "rcp") {
        const Quad x = name == "div" ? a : Quad(1), y = name == "div" ? b : a;
        rest = (x - r * y) * (y < 0 ? -1 : 1);
    } else {
        rest = a - r * r;
    }
    const double up = INFINITY, down = -INFINITY;
    const bool to_zero = rounding == "rz";
    if (rest > 0 && (rounding == "rp" || (to_zero && nearest < 0))) return std::nextafter(nearest, to_zero ? 0 : up);
    if (rest < 0 && (rounding == "rm" || (to_zero && nearest > 0))) return std::nextafter(nearest, to_zero ? 0 : down);
    return nearest;
}

template <class T>
T extreme(bool smallest, const Words& words, const T* v, int count) {
    T values[3];
    bool negative = false, any_nan = false;
    const bool absolute = has(words, "abs");
    for (int i = 0; i < count; ++i) {
        values[i] = modified_input(v[i], words);
        negative ^= std::signbit(values[i]);
        any_nan |= std::isnan(values[i]);
        if (absolute) values[i] = std::fabs(values[i]);
    }
    if (any_nan && has(words, "NaN")) return std::numeric_limits<T>::quiet_NaN();
    T best = std::numeric_limits<T>::quiet_NaN();
    for (int i = 0; i < count; ++i) {
        const T x = values[i];
        if (std::isnan(x)) continue;
        const bool below = x < best || (x == best && std::signbit(x) && !std::signbit(best));
        const bool above = x > best || (x == best && !std::signbit(x) && std::signbit(best));
        if (std::isnan(best) || (smallest ? below : above)) best = x;
    }
    if (has(words, "xorsign") && !std::isnan(best)) best = std::copysign(best, negative ? T(-1) : T(1));
    return best;
}

template <class T>
std::optional<T> of_type(const Words& words, const T* raw, int count) {
    const std::string& name = words[0];
    if (name == "min" || name == "max") return extreme(name == "min", words, raw, count);
    if (name == "copysign") return std::copysign(raw[1], raw[0]);
    T v[3];
    for (int i = 0; i < 3; ++i) v[i] = modified_input(raw[i], words);
    if (name == "neg") return -v[0];
    if (name == "abs") return std::fabs(v[0]);
    const std::string& rounding = rounding_of(words);
    std::optional<T> result;
    if constexpr (sizeof(T) == 8)
        result = rounding == "rn" ? computed(name, rounding, v) : moved(name, rounding, v);
    else
        result = computed(name, rounding, v);
    if (result) result = modified_output(*result, words);
    return result;
}

double approximated(const std::string& name, double a, double b) {
    if (name == "rcp") return 1 / a;
    if (name == "sqrt") return std::sqrt(a);
    if (name == "rsqrt") return 1 / std::sqrt(a);
    if (name == "ex2") return double(powl(2, a));
    if (name == "lg2") return double(logl(a) / logl(2));
    if (name == "sin") return double(sinl(a));
    if (name == "cos") return double(cosl(a));
    if (name == "tanh") return double(tanhl(a));
    return a / b;
}

// The manual grants about 2^-22; of doubles 2^-20.
Oracle approximation(const Words& words) {
    static const char* kNames[] = {"rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh", "div"};
    bool known = false;
    for (const char* name : kNames) known |= words[0] == name;
    if (!known) return {};
    const bool single = words.back() == "f32";
    if (!single && words.back() != "f64") return {};
    return [=](const Input& in) -> std::optional<Answer> {
        if (single) {
            const float a = modified_input(from_bits<float>(in.operand[0]), words),
                        b = modified_input(from_bits<float>(in.operand[1]), words);
            // a quotient by so great a number is zero, or NaN
            if (words[0] == "div" && has(words, "approx") && std::fabs(b) > 0x1p126f && std::isfinite(b))
                return Answer{to_bits(std::isfinite(a) ? std::copysign(0.0f, std::signbit(b) ? -a : a) : NAN), {}, 0};
            const double exact = approximated(words[0], a, b);
            // at the borders of the format an error changes the kind of the result
            if (std::isfinite(exact) && exact != 0 && (std::fabs(exact) < 1.2e-38 || std::fabs(exact) > 3.3e38))
                return {};
            return Answer{to_bits(float(exact)), {}, 4e-7};
        }
        const double a = modified_input(from_bits<double>(in.operand[0]), words);
        const double exact = approximated(words[0], a, 0);
        if (std::isfinite(exact) && exact != 0 && std::fabs(exact) < 1e-300) return {};
        return Answer{to_bits(exact), {}, 1e-6};
    };
}

template <class T>
Oracle exact_oracle(const Words& words) {
    return [=](const Input& in) -> std::optional<Answer> {
        T v[3];
        for (int i = 0; i < 3; ++i) v[i] = from_bits<T>(in.operand[i]);
        // extremes of three are those with a third operand: the test says so by its carry
        const std::optional<T> result = of_type(words, v, in.carry ? 3 : 2);
        if (!result) return {};
        return Answer{to_bits(*result), {}, 0};
    };
}

}  // namespace

Oracle float_oracle(const Words& words) {
    static const char* kNames[] = {"add", "sub", "mul", "div", "rcp", "sqrt",    "fma",
                                   "mad", "min", "max", "neg", "abs", "copysign"};
    if (has(words, "approx") || has(words, "full")) return approximation(words);
    bool known = false;
    for (const char* name : kNames) known |= words[0] == name;
    if (!known) return {};
    if (words.back() == "f32") return exact_oracle<float>(words);
    if (words.back() == "f64") return exact_oracle<double>(words);
    if (words.back() != "f32x2") return {};
    Words one = words;
    one.back() = "f32";
    return [single = exact_oracle<float>(one)](const Input& in) -> std::optional<Answer> {
        uint64_t result = 0;
        for (int part = 0; part < 2; ++part) {
            Input half = in;
            for (uint64_t& operand : half.operand) operand = operand >> (32 * part) & 0xffffffff;
            result |= single(half)->value << (32 * part);
        }
        return Answer{result, {}, 0};
    };
}

Oracle compare_oracle(const Words& words) {
    if (words[0] == "testp") {
        const bool single = words.back() == "f32";
        return [=](const Input& in) -> std::optional<Answer> {
            const int kind = single ? std::fpclassify(from_bits<float>(in.operand[0]))
                                    : std::fpclassify(from_bits<double>(in.operand[0]));
            const std::string& what = words[1];
            const bool result = what == "finite"       ? kind != FP_NAN && kind != FP_INFINITE
                                : what == "infinite"   ? kind == FP_INFINITE
                                : what == "number"     ? kind != FP_NAN
                                : what == "notanumber" ? kind == FP_NAN
                                : what == "normal"     ? kind == FP_NORMAL || kind == FP_ZERO
                                                       : kind == FP_SUBNORMAL;
            return Answer{result, {}, 0};
        };
    }
    if (words[0] != "setp") return {};
    const std::string how = words[1], type = words.back();
    return [=](const Input& in) -> std::optional<Answer> {
        // −1, 0, 1, or 2 if they have no order
        int order = 0;
        const auto compared = [](auto a, auto b) { return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2; };
        if (type[0] == 'f' || type == "bf16") {
            double v[2];
            for (int i = 0; i < 2; ++i) {
                v[i] = type == "f32"   ? double(modified_input(from_bits<float>(in.operand[i]), words))
                       : type == "f64" ? from_bits<double>(in.operand[i])
                                       : small_value(type == "f16" ? kHalf : kBrain, uint32_t(in.operand[i]) & 0xffff);
                if (type == "f16" && has(words, "ftz") && std::fabs(v[i]) < 0x1p-14) v[i] = 0;
            }
            order = compared(v[0], v[1]);
        } else {
            const int bits = std::atoi(type.c_str() + 1);
            const auto value = [&](uint64_t raw) {
                const __int128 low = __int128(raw) & ((__int128(1) << bits) - 1);
                return type[0] == 's' && (low >> (bits - 1) & 1) ? low - (__int128(1) << bits) : low;
            };
            order = compared(value(in.operand[0]), value(in.operand[1]));
        }
        static const struct {
            const char* name;
            bool less, equal, greater, unordered;
        } kTable[] = {{"eq", 0, 1, 0, 0},  {"ne", 1, 0, 1, 0},  {"lt", 1, 0, 0, 0},  {"le", 1, 1, 0, 0},
                      {"gt", 0, 0, 1, 0},  {"ge", 0, 1, 1, 0},  {"lo", 1, 0, 0, 0},  {"ls", 1, 1, 0, 0},
                      {"hi", 0, 0, 1, 0},  {"hs", 0, 1, 1, 0},  {"equ", 0, 1, 0, 1}, {"neu", 1, 0, 1, 1},
                      {"ltu", 1, 0, 0, 1}, {"leu", 1, 1, 0, 1}, {"gtu", 0, 0, 1, 1}, {"geu", 0, 1, 1, 1},
                      {"num", 1, 1, 1, 0}, {"nan", 0, 0, 0, 1}};
        for (const auto& row : kTable) {
            if (how == row.name)
                return Answer{order < 0    ? row.less
                              : order == 0 ? row.equal
                              : order == 1 ? row.greater
                                           : row.unordered,
                              {},
                              0};
        }
        return {};
    };
}

}  // namespace weft::oracle
