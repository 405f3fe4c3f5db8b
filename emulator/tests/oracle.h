#pragma once
// The right result of each opcode, from the PTX manual and without the emulator's tables and functions: integers
// by 128-bit numbers, roundings by the host's rounding mode and by numbers of 113 bits, floats of 16 and 8 bits by a
// search among all of them.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::oracle {

struct Input {
    uint64_t operand[4];
    bool carry;
};
struct Answer {
    uint64_t value = 0;
    std::optional<bool> carry;
    double tolerance = 0;  // relative, of a float
};
// No answer: this oracle cannot judge these operands.
using Oracle = std::function<std::optional<Answer>(const Input&)>;

using Words = std::vector<std::string>;
inline Words words_of(std::string_view opcode) {
    Words words;
    for (size_t at = 0; at <= opcode.size();) {
        const size_t end = std::min(opcode.find('.', at), opcode.size());
        words.emplace_back(opcode.substr(at, end - at));
        at = end + 1;
    }
    return words;
}
inline bool has(const Words& words, std::string_view word) {
    for (const std::string& one : words) {
        if (one == word) return true;
    }
    return false;
}

template <class T>
T from_bits(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T>
uint64_t to_bits(T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

// An empty function: not of this family, or unknown.
Oracle integer_oracle(const Words& words);
Oracle compare_oracle(const Words& words);
Oracle float_oracle(const Words& words);
Oracle half_oracle(const Words& words);
Oracle convert_oracle(const Words& words);

// Floats of few bits, by their table.
struct SmallFloat {
    int exponent_bits, fraction_bits;
    bool has_infinity;  // E4M3 has none
    uint32_t count() const { return 1u << (1 + exponent_bits + fraction_bits); }
    uint32_t sign() const { return count() / 2; }
};
constexpr SmallFloat kHalf{5, 10, true}, kBrain{8, 7, true}, kE4M3{4, 3, false}, kE5M2{5, 2, true};

double small_value(SmallFloat format, uint32_t bits);
// The neighbour of x that the rounding asks for: "rn", "rz", "rm", "rp". x is exact, or of 113 bits.
uint32_t small_bits(SmallFloat format, __float128 x, const std::string& rounding);

}  // namespace weft::oracle
