#include <algorithm>
#include <bitset>

#include "oracle.h"

namespace weft::oracle {

namespace {

using Wide = __int128;

struct Int {
    int bits;
    bool is_signed;
    Wide value(uint64_t raw) const {
        const Wide low = Wide(raw) & ((Wide(1) << bits) - 1);
        return is_signed && (low >> (bits - 1) & 1) ? low - (Wide(1) << bits) : low;
    }
    uint64_t raw(Wide value) const { return uint64_t(value) & (bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1); }
};

bool int_of(const std::string& type, Int& result) {
    if (type.size() < 2 || !std::strchr("usbf", type[0]) || type.find('x') != std::string::npos) return false;
    result = {std::atoi(type.c_str() + 1), type[0] == 's'};
    return result.bits == 16 || result.bits == 32 || result.bits == 64;
}

uint64_t ones(int bits) { return bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1; }

Answer just(uint64_t value) { return {value, {}, 0}; }

template <class F>
Oracle plain(F f) {
    return [f](const Input& in) -> std::optional<Answer> { return just(f(in.operand)); };
}

// Sums with the condition code: the carry is the bit above, of differences the borrow.
Oracle carried(const Words& words, Int type) {
    const std::string& name = words[0];
    const bool out = has(words, "cc"), in = name.back() == 'c', high = has(words, "hi");
    const std::string base = in ? name.substr(0, name.size() - 1) : name;
    if (base != "add" && base != "sub" && base != "mad") return {};
    return [=](const Input& input) -> std::optional<Answer> {
        const Int plain_type{type.bits, false};
        const unsigned __int128 carry = in && input.carry;
        unsigned __int128 a = plain_type.raw(Wide(input.operand[0])), b = plain_type.raw(Wide(input.operand[1]));
        if (base == "mad") {
            // products of 64-bit numbers by halves: their upper word
            const Wide x = type.value(input.operand[0]), y = type.value(input.operand[1]);
            const unsigned __int128 product = (unsigned __int128)(x) * (unsigned __int128)(y);
            a = high ? plain_type.raw(type.is_signed ? Wide(product) >> type.bits : Wide(product >> type.bits))
                     : plain_type.raw(Wide(product));
            b = plain_type.raw(Wide(input.operand[2]));
        }
        const unsigned __int128 sum = base == "sub" ? a - b - carry : a + b + carry;
        Answer answer = just(plain_type.raw(Wide(sum)));
        if (out) answer.carry = bool(sum >> type.bits & 1);
        return answer;
    };
}

Oracle arithmetic(const Words& words, Int t) {
    const std::string& name = words[0];
    const bool high = has(words, "hi");
    if (has(words, "sat")) {
        if (name != "add" && name != "sub") return {};
        return plain([=](const uint64_t* v) {
            const Wide sum = name == "add" ? t.value(v[0]) + t.value(v[1]) : t.value(v[0]) - t.value(v[1]);
            const Wide most = (Wide(1) << (t.bits - 1)) - 1;
            return t.raw(sum > most ? most : sum < -most - 1 ? -most - 1 : sum);
        });
    }
    if (has(words, "cc") || name == "addc" || name == "subc" || name == "madc") return carried(words, t);
    if (name == "add") return plain([=](const uint64_t* v) { return t.raw(t.value(v[0]) + t.value(v[1])); });
    if (name == "sub") return plain([=](const uint64_t* v) { return t.raw(t.value(v[0]) - t.value(v[1])); });
    if (name == "mul" || name == "mad") {
        const bool wide = has(words, "wide"), sum = name == "mad";
        const Int result{wide ? 2 * t.bits : t.bits, t.is_signed};
        return plain([=](const uint64_t* v) {
            const unsigned __int128 product = (unsigned __int128)t.value(v[0]) * (unsigned __int128)t.value(v[1]);
            const Wide shifted = t.is_signed ? Wide(product) >> t.bits : Wide(product >> t.bits);
            return result.raw((high ? shifted : Wide(product)) + (sum ? result.value(v[2]) : 0));
        });
    }
    if (name == "mul24") {
        const Int part{24, t.is_signed};
        return plain([=](const uint64_t* v) { return t.raw(part.value(v[0]) * part.value(v[1])); });
    }
    if (name == "div" || name == "rem") {
        return plain([=](const uint64_t* v) {
            const Wide a = t.value(v[0]), b = t.value(v[1]);
            if (b == 0) return name == "div" ? ones(t.bits) : t.raw(a);
            return t.raw(name == "div" ? a / b : a % b);
        });
    }
    if (name == "min") return plain([=](const uint64_t* v) { return t.raw(std::min(t.value(v[0]), t.value(v[1]))); });
    if (name == "max") return plain([=](const uint64_t* v) { return t.raw(std::max(t.value(v[0]), t.value(v[1]))); });
    if (name == "neg") return plain([=](const uint64_t* v) { return t.raw(-t.value(v[0])); });
    if (name == "abs")
        return plain([=](const uint64_t* v) { return t.raw(t.value(v[0]) < 0 ? -t.value(v[0]) : t.value(v[0])); });
    if (name == "sad") {
        return plain([=](const uint64_t* v) {
            const Wide distance = t.value(v[0]) - t.value(v[1]);
            return t.raw(t.value(v[2]) + (distance < 0 ? -distance : distance));
        });
    }
    return {};
}

Oracle of_bits(const Words& words, Int t) {
    const std::string& name = words[0];
    const auto text = [t](uint64_t v) {
        return std::bitset<64>(t.raw(Wide(v))).to_string().substr(size_t(64 - t.bits));
    };
    if (name == "and") return plain([=](const uint64_t* v) { return t.raw(Wide(v[0] & v[1])); });
    if (name == "or") return plain([=](const uint64_t* v) { return t.raw(Wide(v[0] | v[1])); });
    if (name == "xor") return plain([=](const uint64_t* v) { return t.raw(Wide(v[0] ^ v[1])); });
    if (name == "not") return plain([=](const uint64_t* v) { return t.raw(Wide(~v[0])); });
    if (name == "cnot") return plain([=](const uint64_t* v) { return uint64_t(t.raw(Wide(v[0])) == 0); });
    if (name == "mov") return plain([=](const uint64_t* v) { return t.raw(Wide(v[0])); });
    if (name == "selp") return plain([=](const uint64_t* v) { return t.raw(Wide(v[2] ? v[0] : v[1])); });
    if (name == "shl" || name == "shr") {
        return plain([=](const uint64_t* v) {
            Wide value = t.value(v[0]);
            for (uint64_t i = 0; i < std::min<uint64_t>(uint32_t(v[1]), 70); ++i)
                value = name == "shl" ? Wide(t.raw(value * 2)) : value >> 1;
            return t.raw(value);
        });
    }
    if (name == "popc") {
        return plain([=](const uint64_t* v) {
            const std::string digits = text(v[0]);
            return uint64_t(std::count(digits.begin(), digits.end(), '1'));
        });
    }
    if (name == "clz") {
        return plain([=](const uint64_t* v) {
            const size_t at = text(v[0]).find('1');
            return uint64_t(at == std::string::npos ? size_t(t.bits) : at);
        });
    }
    if (name == "brev") {
        return plain([=](const uint64_t* v) {
            const std::string digits = text(v[0]);
            return std::bitset<64>(std::string(digits.rbegin(), digits.rend())).to_ullong();
        });
    }
    if (name == "bfind") {
        return plain([=](const uint64_t* v) {
            const std::string digits = text(v[0]);
            const size_t at = digits.find(t.is_signed && digits[0] == '1' ? '0' : '1');
            if (at == std::string::npos) return uint64_t(0xffffffff);
            return uint64_t(has(words, "shiftamt") ? at : size_t(t.bits) - 1 - at);
        });
    }
    return {};
}

Oracle of_fields(const Words& words, Int t) {
    const std::string& name = words[0];
    if (name == "bfe") {
        return plain([=](const uint64_t* v) {
            const int position = int(v[1] & 255), length = int(v[2] & 255);
            const auto bit = [&](int at) { return v[0] >> at & 1; };
            const uint64_t sign = !t.is_signed || length == 0 ? 0 : bit(std::min(position + length - 1, t.bits - 1));
            uint64_t result = 0;
            for (int i = 0; i < t.bits; ++i)
                result |= (i < length && position + i < t.bits ? bit(position + i) : sign) << i;
            return result;
        });
    }
    if (name == "bfi") {
        return plain([=](const uint64_t* v) {
            const int position = int(v[2] & 255), length = int(v[3] & 255);
            std::bitset<64> result(v[1]);
            for (int i = 0; i < length && position + i < t.bits; ++i)
                result[size_t(position + i)] = i < 64 && (v[0] >> i & 1);
            return t.raw(Wide(result.to_ullong()));
        });
    }
    if (name == "shf") {
        const bool left = has(words, "l"), wraps = has(words, "wrap");
        return plain([=](const uint64_t* v) {
            const uint32_t by = wraps ? uint32_t(v[2]) % 32 : std::min<uint32_t>(uint32_t(v[2]), 32);
            const Wide both = Wide(uint32_t(v[1])) << 32 | uint32_t(v[0]);
            return uint64_t(uint32_t(left ? (both << by) >> 32 : both >> by));
        });
    }
    if (name == "lop3") {
        return plain([](const uint64_t* v) {
            uint64_t result = 0;
            for (int i = 0; i < 32; ++i) {
                const uint64_t index = (v[0] >> i & 1) * 4 + (v[1] >> i & 1) * 2 + (v[2] >> i & 1);
                result |= (v[3] >> index & 1) << i;
            }
            return result;
        });
    }
    return {};
}

// The modes of prmt, as the table of the manual has them: selectors for each value of the low two bits, lowest byte
// first.
Oracle permute(const Words& words) {
    const std::string mode = words.size() > 2 ? words[2] : "";
    static const struct {
        const char* name;
        const char* selectors[4];
    } kModes[] = {{"f4e", {"0123", "1234", "2345", "3456"}}, {"b4e", {"0765", "1076", "2107", "3210"}},
                  {"rc8", {"0000", "1111", "2222", "3333"}}, {"ecl", {"0123", "1123", "2223", "3333"}},
                  {"ecr", {"0000", "0111", "0122", "0123"}}, {"rc16", {"0101", "2323", "0101", "2323"}}};
    return plain([=](const uint64_t* v) {
        uint8_t bytes[8];
        const uint32_t a = uint32_t(v[0]), b = uint32_t(v[1]);
        std::memcpy(bytes, &a, 4);
        std::memcpy(bytes + 4, &b, 4);
        uint64_t result = 0;
        for (int i = 0; i < 4; ++i) {
            int pick = int(v[2] >> (4 * i) & 15);
            for (const auto& one : kModes) {
                if (mode == one.name) pick = one.selectors[v[2] & 3][i] - '0';
            }
            const uint8_t byte = bytes[pick & 7];
            result |= uint64_t(pick & 8 ? (byte & 128 ? 255 : 0) : byte) << (8 * i);
        }
        return result;
    });
}

Oracle select_by_sign(const Words& words, Int t) {
    const bool by_float = words.back() == "f32", flush = has(words, "ftz");
    return plain([=](const uint64_t* v) {
        const float real = from_bits<float>(v[2]);
        // a subnormal number is a zero, of whatever sign
        const bool zero = flush && std::fpclassify(real) == FP_SUBNORMAL;
        const bool first = by_float ? zero || real >= 0 : int32_t(v[2]) >= 0;
        return t.raw(Wide(first ? v[0] : v[1]));
    });
}

}  // namespace

Oracle integer_oracle(const Words& words) {
    const std::string& name = words[0];
    if (words.back() == "pred") {
        if (name == "and") return plain([](const uint64_t* v) { return v[0] & v[1]; });
        if (name == "or") return plain([](const uint64_t* v) { return v[0] | v[1]; });
        if (name == "xor") return plain([](const uint64_t* v) { return v[0] ^ v[1]; });
        if (name == "not") return plain([](const uint64_t* v) { return v[0] ^ 1; });
        if (name == "mov") return plain([](const uint64_t* v) { return v[0]; });
        return {};
    }
    Int type{};
    if (name == "prmt") return permute(words);
    if (name == "slct") return int_of(words[words.size() - 2], type) ? select_by_sign(words, type) : Oracle{};
    if (!int_of(words.back(), type)) return {};
    if (words.back()[0] == 'f' && name != "mov" && name != "selp") return {};
    if (Oracle found = of_bits(words, type)) return found;
    if (Oracle found = of_fields(words, type)) return found;
    return words.back()[0] == 'b' ? Oracle{} : arithmetic(words, type);
}

}  // namespace weft::oracle
