// What the whole-array operations share: the C++ type of each scalar type, the type its sums are kept in, and loops
// over blocks on the pool.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/cpu/pool.h"
#include "support/error.h"
#include "types/type.h"

namespace weft::runtime {

// The 16-bit floats in memory; they convert to float and are never computed with.
struct Half {
    std::uint16_t bits;
    operator float() const {
        std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
        std::uint32_t rest = static_cast<std::uint32_t>(bits & 0x7FFF) << 13;
        float value, scaled;
        // Infinity and NaN keep their fraction; everything else is scaled by 2^112, which is exact for subnormals too.
        if (rest >= 0x0F800000) {
            rest = (rest + 0x70000000) | sign;
            std::memcpy(&value, &rest, sizeof value);
            return value;
        }
        std::memcpy(&scaled, &rest, sizeof scaled);
        scaled *= 0x1p112f;
        std::memcpy(&rest, &scaled, sizeof rest);
        rest |= sign;
        std::memcpy(&value, &rest, sizeof value);
        return value;
    }
};
struct Brain {
    std::uint16_t bits;
    operator float() const {
        std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
        float value;
        std::memcpy(&value, &wide, sizeof value);
        return value;
    }
};

template <typename T>
inline constexpr bool kIsReal = std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, Brain>;

// Wraps: the arithmetic of unsigned integers.
template <typename T>
using SumOf = std::conditional_t<kIsReal<T>, double, std::uint64_t>;

// A number as its sum takes it: signed ones are extended with their sign.
template <typename T>
[[gnu::always_inline]] inline SumOf<T> widened(T value) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>) {
        return static_cast<double>(static_cast<float>(value));
    } else {
        return static_cast<SumOf<T>>(value);
    }
}

// Calls visit(T{}) with the C++ type of the scalar; bool is held as a byte of 0 or 1.
template <typename Visit>
decltype(auto) visit_scalar(Scalar scalar, Visit&& visit) {
    switch (scalar) {
        case Scalar::boolean:
        case Scalar::u8:
            return visit(std::uint8_t{});
        case Scalar::i8:
            return visit(std::int8_t{});
        case Scalar::i16:
            return visit(std::int16_t{});
        case Scalar::u16:
            return visit(std::uint16_t{});
        case Scalar::i32:
            return visit(std::int32_t{});
        case Scalar::u32:
            return visit(std::uint32_t{});
        case Scalar::i64:
            return visit(std::int64_t{});
        case Scalar::u64:
            return visit(std::uint64_t{});
        case Scalar::f16:
            return visit(Half{});
        case Scalar::bf16:
            return visit(Brain{});
        case Scalar::f32:
            return visit(float{});
        case Scalar::f64:
            return visit(double{});
    }
    throw InternalError("a scalar type without a C++ type");
}

// body(index) for each index in [0, count), on the pool where one is worth `elements` elements of work and all together
// are worth waking threads.
template <typename Body>
void for_each_block(std::int64_t count, std::int64_t elements, const Body& body) {
    constexpr std::int64_t kGrain = 1 << 15;  // some microseconds of adding
    std::int64_t grain = (kGrain + elements - 1) / (elements > 0 ? elements : 1);
    parallel_range(
        count, grain,
        [](void* state, std::int64_t begin, std::int64_t end) {
            const Body& each = *static_cast<const Body*>(state);
            for (std::int64_t i = begin; i < end; ++i) each(i);
        },
        const_cast<Body*>(&body));
}

}  // namespace weft::runtime
