#include "builtins/expression.h"
#include "builtins/groups.h"

namespace weft::builtins {

namespace {

ir::Value* expand_norm_l1(Call& call) { return sum(abs(argument(call, 0))); }
ir::Value* expand_norm_l2(Call& call) { return length(argument(call, 0)); }

// The Huber loss of the Euclidean norm (Huber, "Robust Estimation of a Location Parameter", 1964).
ir::Value* expand_norm_huber(Call& call) {
    const E v = argument(call, 0), delta = argument(call, 1);
    const E square = dot(v, v);
    return branch(
        square <= delta * delta, delta.type(), [&] { return square * 0.5; },
        [&] { return delta * (root_of_squares(square) - delta * 0.5); });
}

// delta * sqrt(1 + dot(v, v) / delta**2) without the quotient: its derivative by delta would be a difference of two
// numbers that nearly cancel if delta is small.
E pseudo_huber(E v, E delta) { return binary(ir::Op::copysign, sqrt(dot(v, v) + delta * delta), delta); }
ir::Value* expand_norm_pseudo_huber(Call& call) { return pseudo_huber(argument(call, 0), argument(call, 1)); }
ir::Value* expand_smooth_normalize(Call& call) {
    return argument(call, 0) / pseudo_huber(argument(call, 0), argument(call, 1));
}

constexpr Entry kEntries[] = {
    {"norm_l1", "(v: Vec[n,F]) -> F", "Sum of the absolute components.", expand_norm_l1},
    {"norm_l2", "(v: Vec[n,F]) -> F", "Euclidean norm.", expand_norm_l2},
    {"norm_huber", "(v: Vec[n,F], delta: F = 1.0) -> F",
     "Half the square of the Euclidean norm up to delta, linear beyond.", expand_norm_huber},
    {"norm_pseudo_huber", "(v: Vec[n,F], delta: F = 1.0) -> F",
     "Smooth form of the Huber norm: delta * sqrt(1 + dot(v, v) / delta**2).", expand_norm_pseudo_huber},
    {"smooth_normalize", "(v: Vec[n,F], delta: F = 1.0) -> Vec[n,F]", "v over its pseudo-Huber norm; smooth at zero.",
     expand_smooth_normalize},
};

}  // namespace

std::span<const Entry> norm_entries() { return kEntries; }

}  // namespace weft::builtins
