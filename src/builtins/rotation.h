// Quaternions (x, y, z, w) and rigid transforms (p, q) as staged expressions, shared by the operators and by the
// Quaternions, Transforms and Spatial groups. Quaternions of length 1 are rotations; formulas hold for others too.
#pragma once

#include "builtins/scaling.h"

namespace weft::builtins {

inline E imaginary(E q) { return make_vector({q[0], q[1], q[2]}); }
inline E make_quaternion(E xyz, E w) { return make_quaternion(xyz[0], xyz[1], xyz[2], w); }

// The Hamilton product: first the rotation b, then a.
inline E quaternion_product(E a, E b) {
    return make_quaternion(
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1], a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3], a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2]);
}
inline E conjugate(E q) { return make_quaternion(-q[0], -q[1], -q[2], q[3]); }

// Normalised; the identity for a zero quaternion.
inline E unit_quaternion(E q) {
    const E unit = in_working_scalar(q, [](E a) { return normalize(a); });
    E is_zero = unit[0] == 0;  // of numbers so small that their squares vanish too
    for (int i = 1; i < 4; ++i) is_zero = is_zero && (unit[i] == 0);
    return unit.with_component(3, select(is_zero, q.number(1), unit[3]));
}

// q v q* of a unit quaternion, written out: (2 w^2 - 1) v + 2 (u . v) u + 2 w (u x v) with u the imaginary part.
inline E rotate(E q, E v) {
    const E u = imaginary(q);
    const E w = q[3];
    return v * (2 * w * w - 1) + u * (2 * dot(u, v)) + cross(u, v) * (2 * w);
}

// Its columns are rotate(q, e_i), for quaternions of any length.
inline E rotation_matrix(E q) {
    const E x = q[0], y = q[1], z = q[2], w = q[3];
    return make_matrix(3, 3,
                       {2 * (w * w + x * x) - 1, 2 * (x * y - w * z), 2 * (x * z + w * y),  //
                        2 * (x * y + w * z), 2 * (w * w + y * y) - 1, 2 * (y * z - w * x),  //
                        2 * (x * z - w * y), 2 * (y * z + w * x), 2 * (w * w + z * z) - 1});
}
// Of length 1. Takes a rotation matrix, or a larger matrix with one as its upper left 3x3 entries.
E quaternion_from_matrix(E m);

inline E position(E transform) { return make_vector({transform[0], transform[1], transform[2]}); }
inline E rotation(E transform) { return make_quaternion(transform[3], transform[4], transform[5], transform[6]); }
inline E make_transform(E p, E q) {
    return make(Type::transform(p.type().scalar()), {p[0], p[1], p[2], q[0], q[1], q[2], q[3]});
}

// First b, then a.
inline E transform_product(E a, E b) {
    return make_transform(position(a) + rotate(rotation(a), position(b)), quaternion_product(rotation(a), rotation(b)));
}
inline E transform_inverse(E t) {
    const E q = conjugate(rotation(t));
    return make_transform(-rotate(q, position(t)), q);
}

}  // namespace weft::builtins
