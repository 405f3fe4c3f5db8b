#include <algorithm>
#include <limits>

#include "oracle.h"

namespace weft::oracle {

namespace {

using Quad = __float128;

bool is_nan(SmallFloat format, uint32_t bits) { return std::isnan(small_value(format, bits)); }

struct HalfModifiers {
    bool flush, saturate, relu, nan, sign_of_both, absolute;
};

uint32_t modified(SmallFloat format, uint32_t bits, const HalfModifiers& with) {
    const double value = small_value(format, bits);
    if (with.flush && value != 0 && std::fabs(value) < 0x1p-14) bits &= format.sign();
    if (with.saturate && (std::isnan(value) || std::signbit(value))) bits = 0;
    if (with.saturate && value > 1) bits = small_bits(format, 1, "rn");
    if (with.relu && std::signbit(value) && !std::isnan(value)) bits = 0;
    return bits;
}

std::optional<uint32_t> of_one(SmallFloat format, const std::string& name, const uint32_t* v,
                               const HalfModifiers& with) {
    const HalfModifiers flush{with.flush, false, false, false, false, false};
    uint32_t in[3];
    for (int i = 0; i < 3; ++i) in[i] = modified(format, v[i], flush);
    if (name == "neg") return in[0] ^ format.sign();
    if (name == "abs") return in[0] & ~format.sign();
    const Quad a = small_value(format, in[0]), b = small_value(format, in[1]), c = small_value(format, in[2]);
    if (name == "min" || name == "max") {
        const uint32_t sign = with.sign_of_both ? (in[0] ^ in[1]) & format.sign() : 0;
        uint32_t x = in[0], y = in[1];
        if (with.absolute) x &= ~format.sign(), y &= ~format.sign();
        if (is_nan(format, x) || is_nan(format, y)) {
            if (with.nan || (is_nan(format, x) && is_nan(format, y))) return 0x7fff;
            return (is_nan(format, x) ? y : x) | sign;
        }
        // by order as integers: the sign bit turns negative numbers round
        const auto key = [&](uint32_t bits) {
            return bits & format.sign() ? -int(bits & ~format.sign()) - 1 : int(bits);
        };
        return ((key(x) < key(y)) == (name == "min") ? x : y) | sign;
    }
    // sums of numbers that are far apart have more digits than even this
    if (name == "fma" && format.exponent_bits == 8) {
        const Quad product = a * b < 0 ? -(a * b) : a * b, other = c < 0 ? -c : c;
        if (product != 0 && other != 0 && (product / other > 0x1p60 || other / product > 0x1p60)) return {};
    }
    const Quad exact = name == "add" ? a + b : name == "sub" ? a - b : name == "mul" ? a * b : a * b + c;
    if (exact != exact) return modified(format, 0x7fff, with);
    uint32_t bits = small_bits(format, exact, "rn");
    if (exact == 0) bits = std::signbit(double(exact)) ? format.sign() : 0;
    return modified(format, bits, with);
}

// All finite numbers that are not negative, in their order.
const std::vector<double>& table_of(SmallFloat format) {
    static std::vector<double> tables[256];
    std::vector<double>& table = tables[format.exponent_bits * 16 + format.fraction_bits];
    if (table.empty()) {
        for (uint32_t bits = 0; bits < format.sign(); ++bits) {
            const double value = small_value(format, bits);
            if (std::isfinite(value)) table.push_back(value);
        }
    }
    return table;
}

}  // namespace

double small_value(SmallFloat format, uint32_t bits) {
    const uint32_t fraction = bits & ((1u << format.fraction_bits) - 1);
    const int exponent = int(bits >> format.fraction_bits & ((1u << format.exponent_bits) - 1));
    const int most = (1 << format.exponent_bits) - 1, bias = most / 2;
    double value;
    if (exponent == most && format.has_infinity)
        value = fraction ? NAN : INFINITY;
    else if (exponent == most && fraction == 7)
        value = NAN;
    else if (exponent == 0)
        value = std::ldexp(fraction, 1 - bias - format.fraction_bits);
    else
        value = std::ldexp(fraction + (1u << format.fraction_bits), exponent - bias - format.fraction_bits);
    return bits & format.sign() ? -value : value;
}

uint32_t small_bits(SmallFloat format, Quad x, const std::string& rounding) {
    const std::vector<double>& table = table_of(format);
    const bool negative = std::signbit(double(x)) || x < 0;
    const Quad size = x < 0 ? -x : x;
    const uint32_t sign = negative ? format.sign() : 0;
    const uint32_t infinity = uint32_t(table.size());  // the bits behind the largest number
    const bool up = rounding == (negative ? "rm" : "rp"),
               down = rounding == "rz" || rounding == (negative ? "rp" : "rm");
    if (size > table.back()) {
        // beyond it: the number that would follow decides what is nearest
        const Quad next = Quad(table.back()) + (Quad(table.back()) - table[table.size() - 2]);
        if (size > Quad(std::numeric_limits<double>::max())) return sign | infinity;
        if (down || (!up && size < (Quad(table.back()) + next) / 2)) return sign | (infinity - 1);
        return sign | infinity;
    }
    // the table has doubles: the first that is not below
    uint32_t above = uint32_t(
        std::lower_bound(table.begin(), table.end(), size, [](double a, const Quad& b) { return Quad(a) < b; }) -
        table.begin());
    if (Quad(table[above]) == size) return sign | above;
    const Quad low = size - Quad(table[above - 1]), high = Quad(table[above]) - size;
    if (down || (!up && (low < high || (low == high && above % 2 == 1)))) --above;
    return sign | above;
}

Oracle half_oracle(const Words& words) {
    static const char* kNames[] = {"add", "sub", "mul", "fma", "neg", "abs", "min", "max", "ex2", "tanh"};
    bool known = false;
    for (const char* name : kNames) known |= words[0] == name;
    std::string type = words.back();
    const bool pair = type.ends_with("x2") && type.size() > 4;
    if (pair) type.erase(type.size() - 2);
    if (!known || (type != "f16" && type != "bf16")) return {};
    const SmallFloat format = type == "f16" ? kHalf : kBrain;
    // of approximations .ftz is the only form there is, and numbers of bf16 keep their subnormals
    const bool approximate = has(words, "approx");
    const HalfModifiers with{has(words, "ftz") && !approximate,
                             has(words, "sat"),
                             has(words, "relu"),
                             has(words, "NaN"),
                             has(words, "xorsign"),
                             has(words, "abs")};
    return [=](const Input& in) -> std::optional<Answer> {
        uint64_t result = 0;
        for (int part = 0; part < (pair ? 2 : 1); ++part) {
            uint32_t v[3];
            for (int i = 0; i < 3; ++i) v[i] = uint32_t(in.operand[i] >> (16 * part)) & 0xffff;
            std::optional<uint32_t> bits;
            if (approximate) {
                const long double x = small_value(format, v[0]);
                const long double exact = words[0] == "ex2" ? powl(2, x) : tanhl(x);
                bits = std::isnan(exact) ? 0x7fff : small_bits(format, exact, "rn");
            } else {
                bits = of_one(format, words[0], v, with);
            }
            if (!bits) return {};
            result |= uint64_t(*bits) << (16 * part);
        }
        return Answer{result, {}, 0};
    };
}

}  // namespace weft::oracle
