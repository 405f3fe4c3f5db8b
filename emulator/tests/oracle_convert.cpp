#include <fenv.h>

#include <limits>

#include "oracle.h"

namespace weft::oracle {

namespace {

using Wide = __int128;

struct Format {
    char kind = 0;  // u, s, f, b (bf16), 3 (e4m3x2), 5 (e5m2x2), x (f16x2), y (bf16x2)
    int bits = 0;
    bool integer() const { return kind == 'u' || kind == 's'; }
};

Format format_of(const std::string& type) {
    if (type == "e4m3x2") return {'3', 16};
    if (type == "e5m2x2") return {'5', 16};
    if (type == "f16x2") return {'x', 32};
    if (type == "bf16x2") return {'y', 32};
    if (type == "bf16") return {'b', 16};
    return {type[0], std::atoi(type.c_str() + 1)};
}

Wide integer_of(Format format, uint64_t raw) {
    const Wide low = Wide(raw) & ((Wide(1) << format.bits) - 1);
    return format.kind == 's' && (low >> (format.bits - 1) & 1) ? low - (Wide(1) << format.bits) : low;
}

// A result of 8 bits lies in 16 with its sign.
uint64_t raw_of(Format format, Wide value) {
    const int bits = format.bits == 8 ? 16 : format.bits;
    if (format.bits == 8) value = integer_of(format, uint64_t(value));
    return uint64_t(value) & (bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1);
}

Wide clamped(Format format, Wide value) {
    const Wide most = format.kind == 's' ? (Wide(1) << (format.bits - 1)) - 1 : (Wide(1) << format.bits) - 1;
    const Wide least = format.kind == 's' ? -most - 1 : 0;
    return value > most ? most : value < least ? least : value;
}

std::string rounding_of(const Words& words) {
    for (const std::string& word : words) {
        for (const char* rounding : {"rn", "rz", "rm", "rp"}) {
            if (word == rounding || word == std::string(rounding) + "i") return rounding;
        }
    }
    return "";
}

double integral(double x, const std::string& rounding) {
    if (rounding == "rz") return std::trunc(x);
    if (rounding == "rm") return std::floor(x);
    if (rounding == "rp") return std::ceil(x);
    return rounding == "rn" ? std::nearbyint(x) : x;
}

double float_value(Format format, uint64_t raw, bool flush) {
    if (format.kind == 'f' && format.bits == 64) return from_bits<double>(raw);
    double value = format.kind == 'b'  ? small_value(kBrain, raw & 0xffff)
                   : format.bits == 16 ? small_value(kHalf, raw & 0xffff)
                                       : double(from_bits<float>(raw));
    if (flush && format.bits == 32 && std::fabs(value) < 0x1p-126) value = std::copysign(0.0, value);
    return value;
}

// .ftz says nothing of a conversion from or to f16: a GPU keeps the subnormal numbers of both types.
bool flushes(const Words& words) { return has(words, "ftz") && !has(words, "f16"); }

// A double in a format, by the host's conversion or the table.
uint64_t in_format(Format format, long double x, const std::string& rounding, const Words& words) {
    const bool saturates = has(words, "sat"), relu = has(words, "relu"), flush = flushes(words);
    if (std::isnan(x))
        return saturates || (relu && false) ? 0
               : format.bits == 64          ? 0x7ff8000000000000
               : format.bits == 32          ? 0x7fffffff
                                            : 0x7fff;
    if (format.bits == 64 || format.bits == 32) {
        fesetround(rounding == "rz"   ? FE_TOWARDZERO
                   : rounding == "rm" ? FE_DOWNWARD
                   : rounding == "rp" ? FE_UPWARD
                                      : FE_TONEAREST);
        volatile long double exact = x;
        volatile double wide = double(exact);
        volatile float narrow = float(exact);
        fesetround(FE_TONEAREST);
        double result = format.bits == 64 ? double(wide) : double(narrow);
        if (flush && format.bits == 32 && result != 0 && std::fabs(result) < 0x1p-126)
            result = std::copysign(0.0, result);
        if (saturates) result = result > 1 ? 1 : result > 0 ? result : 0;
        return format.bits == 64 ? to_bits(result) : to_bits(float(result));
    }
    const SmallFloat small = format.kind == 'b' ? kBrain : kHalf;
    uint32_t bits = small_bits(small, x, rounding.empty() ? "rn" : rounding);
    const double value = small_value(small, bits);
    if (saturates && value > 1) bits = small_bits(small, 1, "rn");
    if (saturates && std::signbit(value)) bits = 0;
    if (relu && std::signbit(value)) bits = 0;
    return bits;
}

std::optional<Answer> to_integer(Format to, Format from, const Words& words, const Input& in) {
    const double value = integral(float_value(from, in.operand[0], flushes(words)), rounding_of(words));
    if (std::isnan(value)) {
        const bool zero = words.back() != "f64" && to.bits != 64;
        return Answer{zero ? 0 : raw_of(to, Wide(1) << (to.bits - 1)), {}, 0};
    }
    const Wide whole = value > 0x1p100 ? Wide(1) << 100 : value < -0x1p100 ? -(Wide(1) << 100) : Wide(value);
    return Answer{raw_of(to, clamped(to, whole)), {}, 0};
}

uint32_t eighth(SmallFloat format, double x, bool relu) {
    if (std::isnan(x)) return 0x7f;
    const uint32_t most = format.has_infinity ? 0x7b : 0x7e;
    uint32_t bits = std::fabs(x) > 1e30 ? most | (x < 0 ? 0x80 : 0) : small_bits(format, x, "rn");
    if ((bits & 0x7f) > most) bits = most | (bits & 0x80);
    if (relu && (bits & 0x80)) bits = 0;
    return bits;
}

Oracle pairs(const Words& words, Format to, Format from) {
    const bool relu = has(words, "relu");
    return [=](const Input& in) -> std::optional<Answer> {
        if (from.kind == '3' || from.kind == '5') {
            uint64_t result = 0;
            for (int part = 0; part < 2; ++part) {
                const double value =
                    small_value(from.kind == '3' ? kE4M3 : kE5M2, uint32_t(in.operand[0] >> (8 * part)) & 0xff);
                result |= in_format({'f', 16}, value, "rn", words) << (16 * part);
            }
            return Answer{result, {}, 0};
        }
        // the first operand is the upper half
        double low, high;
        if (from.kind == 'x') {
            low = small_value(kHalf, uint32_t(in.operand[0]) & 0xffff);
            high = small_value(kHalf, uint32_t(in.operand[0] >> 16) & 0xffff);
        } else {
            low = from_bits<float>(in.operand[1]);
            high = from_bits<float>(in.operand[0]);
        }
        if (to.kind == '3' || to.kind == '5') {
            const SmallFloat format = to.kind == '3' ? kE4M3 : kE5M2;
            return Answer{eighth(format, low, relu) | uint64_t(eighth(format, high, relu)) << 8, {}, 0};
        }
        const Format half{to.kind == 'x' ? 'f' : 'b', 16};
        return Answer{in_format(half, low, rounding_of(words), words) | in_format(half, high, rounding_of(words), words)
                                                                            << 16,
                      {},
                      0};
    };
}

// Numbers of 11 digits; those below 2^-126 are multiples of 2^-136.
std::optional<Answer> to_tf32(const Input& in) {
    const auto value = double(from_bits<float>(in.operand[0]));
    if (std::isnan(value)) return Answer{0x7fffffff, {}, 0};
    if (std::isinf(value) || value == 0) return Answer{in.operand[0] & 0xffffffff, {}, 0};
    const double unit = std::ldexp(1.0, std::max(std::ilogb(value) - 10, -136));
    return Answer{to_bits(float(std::round(value / unit) * unit)), {}, 0};
}

}  // namespace

Oracle convert_oracle(const Words& words) {
    if (words[0] != "cvt") return {};
    if (has(words, "tf32")) return to_tf32;
    const Format to = format_of(words[words.size() - 2]), from = format_of(words.back());
    if (std::strchr("35xy", to.kind) || std::strchr("35xy", from.kind)) return pairs(words, to, from);
    const std::string rounding = rounding_of(words);
    if (to.integer() && from.integer()) {
        return [=](const Input& in) -> std::optional<Answer> {
            const Wide value = integer_of(from, in.operand[0]);
            return Answer{raw_of(to, has(words, "sat") ? clamped(to, value) : value), {}, 0};
        };
    }
    if (to.integer()) return [=](const Input& in) { return to_integer(to, from, words, in); };
    if (from.integer()) {
        // 64 bits of a long double hold every integer
        return [=](const Input& in) -> std::optional<Answer> {
            return Answer{
                in_format(to, static_cast<long double>(integer_of(from, in.operand[0])), rounding, words), {}, 0};
        };
    }
    return [=](const Input& in) -> std::optional<Answer> {
        double value = float_value(from, in.operand[0], flushes(words));
        if (to.kind == from.kind && to.bits == from.bits)
            return Answer{in_format(to, integral(value, rounding), "rn", words), {}, 0};
        return Answer{in_format(to, value, rounding, words), {}, 0};
    };
}

}  // namespace weft::oracle
