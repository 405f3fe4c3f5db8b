// Shared by the whole-array operations: the C++ type of each scalar type, the type of its sums, and loops over blocks
// on the pool.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/cpu/thread_pool.h"
#include "support/error.h"
#include "types/type.h"

// Whether functions may have a second form for processors with AVX2, by an attribute.
#if defined(__x86_64__) && defined(__GNUC__)
#define WEFT_WIDE_REGISTERS 1
#else
#define WEFT_WIDE_REGISTERS 0
#endif

namespace weft::runtime {

#if WEFT_WIDE_REGISTERS
inline const bool has_wide_registers = __builtin_cpu_supports("avx2");
#else
inline constexpr bool has_wide_registers = false;
#endif

// The C++ type of a scalar in memory (bool is a byte of 0 or 1) and its properties in the table.
template <Scalar scalar>
struct Row;
#define WEFT_SCALAR(id, ir, python, kind, bits, c_type, float_format, computed_in, suffix, numpy, number, letter) \
    template <>                                                                                                   \
    struct Row<Scalar::id> {                                                                                      \
        using ctype = c_type;                                                                                     \
        static constexpr FloatFormat format = float_format;                                                       \
        static constexpr bool is_small_float = Scalar::computed_in != Scalar::id;                                 \
    };
#include "types/types.def"
#undef WEFT_SCALAR

// A float of 8 or 16 bits in memory. It converts to float; nothing is computed in it.
template <Scalar kScalar>
struct SmallFloat {
    static constexpr Scalar scalar = kScalar;
    static constexpr FloatFormat format = Row<kScalar>::format;
    typename Row<kScalar>::ctype bits;
    operator float() const {
        return std::bit_cast<float>(small_float::widen(static_cast<std::uint32_t>(bits), format));
    }
};
template <typename T>
inline constexpr bool kIsSmallFloat = false;
template <Scalar scalar>
inline constexpr bool kIsSmallFloat<SmallFloat<scalar>> = true;

template <Scalar scalar>
using InMemory = std::conditional_t<Row<scalar>::is_small_float, SmallFloat<scalar>, typename Row<scalar>::ctype>;

template <typename T>
inline constexpr bool kIsReal = std::is_floating_point_v<T> || kIsSmallFloat<T>;

// The type of sums. Integers wrap, in unsigned arithmetic.
template <typename T>
using SumOf = std::conditional_t<kIsReal<T>, double, std::uint64_t>;

// A number converted to the type of its sum; signed integers are sign-extended.
template <typename T>
[[gnu::always_inline]] inline SumOf<T> widened(T value) {
    if constexpr (kIsSmallFloat<T>) {
        return static_cast<double>(static_cast<float>(value));
    } else {
        return static_cast<SumOf<T>>(value);
    }
}

// Calls visit(T{}) with the type InMemory of the scalar.
template <typename Visit>
decltype(auto) visit_scalar(Scalar scalar, Visit&& visit) {
    switch (scalar) {
#define WEFT_SCALAR(id, ...) \
    case Scalar::id:         \
        return visit(InMemory<Scalar::id>{});
#include "types/types.def"
#undef WEFT_SCALAR
    }
    throw InternalError("a scalar type without a C++ type");
}

// Calls body(index) for each index in [0, count). One call is worth `elements` elements of work; the pool is used if
// the whole is worth waking threads.
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
