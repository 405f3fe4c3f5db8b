// Powers of two factored out of a matrix, so that products of its entries neither overflow nor underflow. Shared by the
// inverses and the decompositions.
#pragma once

#include "builtins/expression.h"

namespace weft::builtins {

// Half precision is computed in float32 and rounded once, at the end.
inline Scalar working_scalar(E a) { return a.scalar().bits < 32 ? Scalar::f32 : a.type().scalar(); }

// The result of f on an aggregate, computed in the working scalar.
template <typename Function>
E in_working_scalar(E a, const Function& f) {
    const Scalar given = a.type().scalar();
    return cast(f(cast(a, working_scalar(a))), given);
}

// The power of two at or below a positive number of float32 or float64; of a subnormal number and of 0 the smallest
// normal one, so that its reciprocal is always finite.
inline E power_of_two_below(E positive) {
    const bool is_wide = positive.scalar().bits == 64;
    const double smallest_normal = is_wide ? 0x1p-1022 : 0x1p-126;
    const E bits = bitcast(max(positive, smallest_normal), is_wide ? Scalar::u64 : Scalar::u32);
    const E exponent = bits & (is_wide ? 0x7ff0000000000000p0 : 0x7f800000p0);
    return bitcast(exponent, positive.type().scalar());
}

inline E largest_magnitude(E aggregate) {
    E largest = abs(aggregate.component(0));
    for (int i = 1; i < aggregate.components(); ++i) largest = max(largest, abs(aggregate.component(i)));
    return largest;
}

// given = matrix * factor with a power of two as the factor. The greatest entry of the matrix is in [1, 2); for a
// matrix of subnormal numbers it is smaller, and for zeros it is 0.
struct Scaled {
    E matrix, factor;
};
inline Scaled scaled(E m) {
    const E factor = power_of_two_below(largest_magnitude(m));
    return {m * (1 / factor), factor};
}

}  // namespace weft::builtins
