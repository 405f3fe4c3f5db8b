// Lower bounds of integers: which indices are never negative.
//
// A negative index counts from the end of its axis, which costs a comparison and a select. Most indices are never
// negative: coordinates of the thread, loops from 0 upward, extents, max(x, 0), sums and products of such, and values
// that an enclosing condition bounds. All passes ask this class.
//
// Bounds are those of the mathematical value. Sums, and products by extents and small factors, are assumed not to
// overflow, since an overflowed index would be out of range. Longer products, as in hashes, get no bound.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "ir/ir.h"

namespace weft::ir {

class LowerBounds {
public:
    static constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();

    // A lower bound of the integer under the current assumptions; kUnknown if there is none.
    std::int64_t least(const Value* value);
    bool is_never_negative(const Value* value) { return least(value) >= 0; }

    // Assumes a condition to be true or false, until rewind() to an earlier mark.
    void assume(const Value* condition, bool holds) {
        budget_ = kMostVisits;
        learn(condition, holds);
    }
    void assume_least(const Value* value, std::int64_t least);
    std::size_t mark() const { return facts_.size(); }
    void rewind(std::size_t mark) { facts_.resize(mark); }

private:
    static constexpr int kMostVisits = 300;  // for one query

    // value = base + offset; the base of a constant is null.
    struct BaseOffset {
        const Value* base;
        std::int64_t offset;
    };
    // a - b >= least; a null b stands for 0.
    struct Fact {
        const Value *a, *b;
        std::int64_t least;
    };
    struct Bound {
        std::int64_t low = kUnknown;
        std::int64_t factor = 1;  // the constants that it was multiplied by
    };

    static BaseOffset base_and_offset(const Value* value);
    Bound bound(const Value* value);
    Bound base_bound(const Value* base);
    Bound of_result(const Value* value);
    Bound of_argument(const Value* argument);
    Bound of_carried(const Value* argument, const Value* first, const Value* next, const Value* condition = nullptr);
    Bound of_downward(const Value* first, const Value* distance);
    Bound of_product(const Value* a, const Value* b);
    static Bound scaled(Bound bound, std::int64_t by);
    Bound of_difference(const Value* a, const Value* b);
    void learn(const Value* condition, bool holds);
    Bound given(const Value* condition, bool holds, const Value* value);
    void assume_difference(const Value* a, const Value* b, std::int64_t least);

    std::vector<Fact> facts_;
    std::vector<const Value*> assumed_;  // carried values whose bound is being proved
    int depth_ = 0, budget_ = 0;
};

}  // namespace weft::ir
