// Numbers of any scalar type, in the type of their sums: floats in double precision, all others in 64 bits. The scalar
// type is an argument of the kernels, so one kernel serves all types. types/number.cpp is the host's implementation;
// results are bitwise equal.
#pragma once

#include <cstdint>

#include "types/float_format.h"

namespace weft::devlib {

enum class Scalar : std::int32_t {
#define WEFT_SCALAR(id, ...) id,
#include "types/types.def"
#undef WEFT_SCALAR
};

enum class Kind { boolean, signed_int, unsigned_int, floating };

struct ScalarFacts {
    Kind kind;
    int bits;
    FloatFormat format;
};

// The C++ types of floats of 8 and 16 bits are integers.
template <Scalar scalar>
struct Row;
#define WEFT_SCALAR(id, ir, python, its_kind, size, c_type, float_format, ...)     \
    template <>                                                                    \
    struct Row<Scalar::id> {                                                       \
        using ctype = c_type;                                                      \
        static constexpr ScalarFacts facts = {Kind::its_kind, size, float_format}; \
    };
#include "types/types.def"
#undef WEFT_SCALAR

inline ScalarFacts facts_of(Scalar scalar) {
    switch (scalar) {
#define WEFT_SCALAR(id, ...) \
    case Scalar::id:         \
        return Row<Scalar::id>::facts;
#include "types/types.def"
#undef WEFT_SCALAR
    }
    __builtin_unreachable();
}

// ---- reading ----

template <Scalar scalar, typename Sum>
Sum load_row(const void* from) {
    using Type = typename Row<scalar>::ctype;
    constexpr ScalarFacts facts = Row<scalar>::facts;
    const Type value = *static_cast<const Type*>(from);
    if constexpr (facts.kind == Kind::floating && facts.bits < 32)
        return static_cast<Sum>(
            std::bit_cast<float>(small_float::widen(static_cast<std::uint32_t>(value), facts.format)));
    else
        return static_cast<Sum>(value);
}

// `Sum`: float or double for floats, else std::uint64_t, to which signed numbers are sign-extended.
template <typename Sum>
Sum load_number(Scalar scalar, const void* from) {
    constexpr bool kIsReal = static_cast<Sum>(0.5) != Sum{};
    switch (scalar) {
#define WEFT_SCALAR(id, ...)                                                      \
    case Scalar::id:                                                              \
        if constexpr (kIsReal == (Row<Scalar::id>::facts.kind == Kind::floating)) \
            return load_row<Scalar::id, Sum>(from);                               \
        else                                                                      \
            __builtin_unreachable();
#include "types/types.def"
#undef WEFT_SCALAR
    }
    __builtin_unreachable();
}

// ---- converting and writing ----

inline void store_bits(std::uint64_t bits, int count, void* to) {
    switch (count) {
        case 8:
            *static_cast<std::uint8_t*>(to) = static_cast<std::uint8_t>(bits);
            return;
        case 16:
            *static_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(bits);
            return;
        case 32:
            *static_cast<std::uint32_t*>(to) = static_cast<std::uint32_t>(bits);
            return;
        default:
            *static_cast<std::uint64_t*>(to) = bits;
            return;
    }
}

// Rounds toward zero and clamps to the type's range; a NaN gives 0.
inline std::uint64_t whole_part(double value, ScalarFacts to) {
    if (value != value) return 0;
    const bool is_signed = to.kind == Kind::signed_int;
    const int digits = is_signed ? to.bits - 1 : to.bits;
    const std::uint64_t most = digits == 64 ? ~0ull : (1ull << digits) - 1;
    const double limit = 2.0 * static_cast<double>(1ull << (digits - 1));
    if (value >= limit) return most;
    if (!is_signed) return value <= 0 ? 0 : static_cast<std::uint64_t>(value);
    if (value <= -limit) return ~most;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

// The bits of a float of type `to`, rounded once.
inline std::uint64_t float_bits(double value, ScalarFacts to) {
    if (to.bits == 64) return std::bit_cast<std::uint64_t>(value);
    if (to.bits == 32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return small_float::narrow(odd_float_bits(value), to.format);
}

inline void store_number(double value, Scalar, Scalar scalar, void* to) {
    const ScalarFacts facts = facts_of(scalar);
    switch (facts.kind) {
        case Kind::boolean:
            return store_bits(value != 0, facts.bits, to);
        case Kind::floating:
            return store_bits(float_bits(value, facts), facts.bits, to);
        default:
            return store_bits(whole_part(value, facts), facts.bits, to);
    }
}

// A magnitude as a double rounded to odd, so that rounding it to a narrower float is exact.
inline double odd_double(std::uint64_t magnitude) {
    const int surplus = magnitude ? 11 - __builtin_clzll(magnitude) : 0;
    if (surplus > 0) {
        const std::uint64_t lost = magnitude & ((1ull << surplus) - 1);
        magnitude = (magnitude - lost) | (lost ? 1ull << surplus : 0);
    }
    return static_cast<double>(magnitude);
}

// `from` is the type of the summed numbers. Narrow integers keep the low bits.
inline void store_number(std::uint64_t value, Scalar from, Scalar scalar, void* to) {
    const ScalarFacts facts = facts_of(scalar);
    if (facts.kind == Kind::boolean) return store_bits(value != 0, facts.bits, to);
    if (facts.kind != Kind::floating) return store_bits(value, facts.bits, to);
    const bool is_negative = facts_of(from).kind == Kind::signed_int && static_cast<std::int64_t>(value) < 0;
    const std::uint64_t magnitude = is_negative ? 0 - value : value;
    if (facts.bits == 32) {
        const auto number = static_cast<float>(magnitude);
        return store_bits(std::bit_cast<std::uint32_t>(is_negative ? -number : number), 32, to);
    }
    const double number = facts.bits == 64 ? static_cast<double>(magnitude) : odd_double(magnitude);
    store_bits(float_bits(is_negative ? -number : number, facts), facts.bits, to);
}

}  // namespace weft::devlib
