// The parts that sums over rows (reduce.cpp) and over columns (reduce_columns.cpp) share: reading summands, adding
// pairs, writing totals.
#pragma once

#include <cstdint>

#include "devlib/cuda/numbers.h"
#include "devlib/cuda/primitives.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

// ---- summands ----

// Numbers of a type known to the compiler; integers of 32 bits are sign-extended if they are signed.
template <typename Number>
struct Plain {
    static constexpr bool kIsReal = static_cast<Number>(0.5) != Number{};
    template <bool is_real, typename = void>
    struct SumOf {
        using Type = std::uint64_t;
    };
    template <typename Unused>
    struct SumOf<true, Unused> {
        using Type = double;
    };
    using Sum = typename SumOf<kIsReal>::Type;
    static constexpr int kTogether = 16 / sizeof(Number);
    static constexpr int kSteps = 8;  // loads in flight
    struct alignas(16) Some {
        Number numbers[kTogether];
    };

    static Some load_piece(const SumPlan&, const char* from, std::int64_t at) {
        using Piece = std::uint32_t __attribute__((vector_size(16)));
        const Piece piece = *reinterpret_cast<const Piece*>(from + at * std::int64_t{sizeof(Number)});
        return __builtin_bit_cast(Some, piece);
    }
    static Sum widened(const SumPlan& plan, Number number) {
        if constexpr (!kIsReal && sizeof(Number) == 4)
            return static_cast<std::uint64_t>(static_cast<std::int32_t>(number) >> 31 & plan.sign_mask) << 32 | number;
        else
            return static_cast<Sum>(number);
    }
    static Sum load_number_of(const SumPlan& plan, const char* from, std::int64_t at) {
        return widened(plan, reinterpret_cast<const Number*>(from)[at]);
    }

    static Some load_together(const SumPlan& plan, std::int64_t at) { return load_piece(plan, plan.a, at); }
    static Sum summand(const SumPlan& plan, const Some& some, int i) { return widened(plan, some.numbers[i]); }
    static Sum load(const SumPlan& plan, std::int64_t at) { return load_number_of(plan, plan.a, at); }
};

// Of the type that the plan says.
template <typename SumType>
struct Widened {
    using Sum = SumType;
    static constexpr int kTogether = 1;
    static constexpr int kSteps = 1;  // the type decides at each load, so that loads are not put together
    using Some = Sum;

    static Some load_piece(const SumPlan& plan, const char* from, std::int64_t at) {
        return load_number_of(plan, from, at);
    }
    static Sum widened(const SumPlan&, Sum number) { return number; }
    static Sum load_number_of(const SumPlan& plan, const char* from, std::int64_t at) {
        return load_number<Sum>(static_cast<Scalar>(plan.scalar), from + at * plan.bytes);
    }

    static Some load_together(const SumPlan& plan, std::int64_t at) { return load(plan, at); }
    static Sum summand(const SumPlan&, const Some& some, int) { return some; }
    static Sum load(const SumPlan& plan, std::int64_t at) { return load_number_of(plan, plan.a, at); }
};

// The products of the numbers of two arrays.
template <typename Format>
struct Products {
    using Sum = typename Format::Sum;
    static constexpr int kTogether = Format::kTogether;
    static constexpr int kSteps = Format::kSteps;
    struct Some {
        typename Format::Some a, b;
    };

    static Some load_together(const SumPlan& plan, std::int64_t at) {
        return {Format::load_piece(plan, plan.a, at), Format::load_piece(plan, plan.b, at)};
    }
    static Sum summand(const SumPlan& plan, const Some& some, int i) {
        return Format::summand(plan, some.a, i) * Format::summand(plan, some.b, i);
    }
    static Sum load(const SumPlan& plan, std::int64_t at) {
        return Format::load_number_of(plan, plan.a, at) * Format::load_number_of(plan, plan.b, at);
    }
};

// ---- pairs ----

// The sum of `count` numbers, at most kSumThreads, in shared memory that was written before a barrier: neighbours
// first, then pairs of them. For all threads of the block; the first has the sum.
template <typename Sum>
Sum add_pairs(__attribute__((address_space(3))) Sum* sums, std::int64_t count) {
    for (std::int64_t step = 1; step < count; step *= 2) {
        const std::int64_t i = block_thread() * 2 * step;
        if (i + step < count) sums[i] += sums[i + step];
        __syncthreads();
    }
    return sums[0];
}

// Adds as add_pairs() would, for sums that come one after the other.
template <typename Sum>
class PairStack {
public:
    void push(Sum sum) {
        for (std::int64_t pushed = pushed_++; pushed & 1; pushed >>= 1) sum = sums_[--depth_] + sum;
        sums_[depth_++] = sum;
    }
    Sum total() const {
        Sum sum = sums_[depth_ - 1];
        for (int i = depth_ - 1; i-- > 0;) sum = sums_[i] + sum;
        return sum;
    }

private:
    Sum sums_[48];
    int depth_ = 0;
    std::int64_t pushed_ = 0;
};

// ---- totals ----

// Not inlined: the conversions between all types are long, and each thread does one at most.
template <typename Sum>
[[gnu::noinline]] void convert_and_store(Sum sum, std::int32_t of, std::int32_t to, char* place) {
    store_number(sum, static_cast<Scalar>(of), static_cast<Scalar>(to), place);
}

template <typename Sum>
void write_total(const SumPlan& plan, std::int64_t at, Sum sum) {
    convert_and_store(sum, plan.scalar, plan.to_scalar, plan.to + at * plan.to_bytes);
}

// The kernels of a form of sums: KERNEL(name, summands).
#define WEFT_SUMMANDS(KERNEL)                        \
    KERNEL(f32, Plain<float>)                        \
    KERNEL(f64, Plain<double>)                       \
    KERNEL(w32, Plain<std::uint32_t>)                \
    KERNEL(w64, Plain<std::uint64_t>)                \
    KERNEL(real, Widened<double>)                    \
    KERNEL(whole, Widened<std::uint64_t>)            \
    KERNEL(f32_products, Products<Plain<float>>)     \
    KERNEL(f64_products, Products<Plain<double>>)    \
    KERNEL(real_products, Products<Widened<double>>) \
    KERNEL(whole_products, Products<Widened<std::uint64_t>>)

}  // namespace weft::devlib
