// How small an integer can be: which indices are never negative.
//
// An index that may be negative counts from the end of its axis, which costs a comparison and a choice. Most never are:
// coordinates of the thread, loops from 0 upward, extents, max(x, 0), sums and products of such, and all that a
// condition around the place says. This is the one place that knows.
//
// Bounds are those of the mathematical value: sums, and products by extents and small factors, are taken not to
// overflow, since an index that did would not lie in the array. Longer products, as of hashes, are not taken so.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "ir/ir.h"

namespace weft::ir {

class LowerBounds {
public:
    static constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();

    // No larger than the integer ever is where the assumptions hold.
    std::int64_t least(const Value* value);
    bool is_never_negative(const Value* value) { return least(value) >= 0; }

    // Takes a condition to be true or false, until rewind() to a mark from before.
    void assume(const Value* condition, bool holds) {
        budget_ = kMostVisits;
        learn(condition, holds);
    }
    void assume_least(const Value* value, std::int64_t least);
    std::size_t mark() const { return facts_.size(); }
    void rewind(std::size_t mark) { facts_.resize(mark); }

private:
    static constexpr int kMostVisits = 300;  // of one question

    // value = base + offset; the base of a constant is null.
    struct BaseOffset {
        const Value* base;
        std::int64_t offset;
    };
    // a - b >= least; b is null where it is a - 0.
    struct Fact {
        const Value *a, *b;
        std::int64_t least;
    };
    struct Bound {
        std::int64_t low = kUnknown;
        std::int64_t factor = 1;  // the constants that it was multiplied by
    };

    static BaseOffset place_of(const Value* value);
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
