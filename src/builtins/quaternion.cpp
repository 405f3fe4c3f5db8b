// Quaternions (x, y, z, w); those of length 1 are rotations.
#include <numbers>

#include "builtins/expression.h"
#include "builtins/groups.h"
#include "builtins/rotation.h"
#include "builtins/scaling.h"

namespace weft::builtins {

// Shepperd, "Quaternion from Rotation Matrix", 1978: the greatest of the four components is computed first, from the
// diagonal, and the others are divided by it. So the root is far from zero, in value and in gradient.
E quaternion_from_matrix(E m) {
    const E trace = m.at(0, 0) + m.at(1, 1) + m.at(2, 2);
    const Type type = Type::quaternion(m.type().scalar());
    // Component i greatest: 4 q[i] q[j] = m[i, j] + m[j, i], 4 q[i] w = m[k, j] - m[j, k], with (i, j, k) cyclic.
    const auto from_diagonal = [&](int i) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        const E root = sqrt(m.at(i, i) - m.at(j, j) - m.at(k, k) + 1);
        const E scale = 0.5 / root;
        E q = m.wrap(m.builder().zero(type));
        q = q.with_component(i, 0.5 * root);
        q = q.with_component(j, (m.at(i, j) + m.at(j, i)) * scale);
        q = q.with_component(k, (m.at(i, k) + m.at(k, i)) * scale);
        return q.with_component(3, (m.at(k, j) - m.at(j, k)) * scale);
    };
    const auto from_trace = [&] {
        const E root = sqrt(trace + 1);
        const E scale = 0.5 / root;
        return make_quaternion((m.at(2, 1) - m.at(1, 2)) * scale, (m.at(0, 2) - m.at(2, 0)) * scale,
                               (m.at(1, 0) - m.at(0, 1)) * scale, 0.5 * root);
    };
    // Normalised, as the components from a matrix that is no rotation have another length.
    return unit_quaternion(branch(trace >= 0, type, from_trace, [&] {
        return branch((m.at(0, 0) >= m.at(1, 1)) && (m.at(0, 0) >= m.at(2, 2)), type, [&] { return from_diagonal(0); },
                      [&] {
                          return branch(
                              m.at(1, 1) >= m.at(2, 2), type, [&] { return from_diagonal(1); },
                              [&] { return from_diagonal(2); });
                      });
    }));
}

namespace {

ir::Value* expand_zero(Call& call) { return call.builder.zero(Type::quaternion(call.types.at("dtype").scalar())); }
ir::Value* expand_components(Call& call) {
    return make_quaternion(argument(call, 0), argument(call, 1), argument(call, 2), argument(call, 3));
}
ir::Value* expand_parts(Call& call) { return make_quaternion(argument(call, 0), argument(call, 1)); }
ir::Value* expand_conversion(Call& call) { return cast(argument(call, 0), call.types.at("dtype").scalar()); }

ir::Value* expand_quat_identity(Call& call) {
    const Scalar scalar = call.types.at("dtype").scalar();
    return call.builder.constant(Type::quaternion(scalar),
                                 {Number::real(0), Number::real(0), Number::real(0), Number::real(1)});
}

std::string refuse_other_than_float(const Match& match) {
    const Type dtype = match.types.at("dtype");
    return dtype.is_float() ? "" : "argument 'dtype' is " + dtype.python_name() + ", expected a float type";
}

E from_axis_angle(E axis, E angle) {
    const E half = angle * 0.5;
    return make_quaternion(axis * sin(half), cos(half));
}
ir::Value* expand_from_axis_angle(Call& call) { return from_axis_angle(argument(call, 0), argument(call, 1)); }
ir::Value* expand_from_axis_angle_components(Call& call) {
    return from_axis_angle(make_vector({argument(call, 0), argument(call, 1), argument(call, 2)}), argument(call, 3));
}

// q and -q are the same rotation; the one with w >= 0 has its angle in [0, pi]. Without a rotation, axis and angle are
// zero.
struct AxisAngle {
    E axis, angle;
};
AxisAngle to_axis_angle(E q) {
    const E u = imaginary(q);
    const E w = q[3];
    return {normalize(u) * select(w < 0, w.number(-1), w.number(1)), 2 * atan2(length(u), abs(w))};
}
ir::Value* expand_to_axis_angle(Call& call) {
    const auto [axis, angle] = to_axis_angle(argument(call, 0));
    return make_tuple({axis, angle});
}
ir::Value* expand_to_axis_angle_out(Call& call) {
    const auto [axis, angle] = to_axis_angle(argument(call, 0));
    call.inout = {axis, angle};
    return nullptr;
}

ir::Value* expand_from_matrix(Call& call) { return quaternion_from_matrix(argument(call, 0)); }

// Roll about x, then pitch about y, then yaw about z: q = q_z(yaw) q_y(pitch) q_x(roll).
ir::Value* expand_rpy(Call& call) {
    const auto half_turn = [](E angle, int axis) {
        const E half = angle * 0.5;
        std::vector<E> parts(4, angle.number(0));
        parts[static_cast<std::size_t>(axis)] = sin(half);
        parts[3] = cos(half);
        return make_quaternion(parts[0], parts[1], parts[2], parts[3]);
    };
    return quaternion_product(half_turn(argument(call, 2), 2),
                              quaternion_product(half_turn(argument(call, 1), 1), half_turn(argument(call, 0), 0)));
}
ir::Value* expand_to_rpy(Call& call) {
    const E q = argument(call, 0);
    const E x = q[0], y = q[1], z = q[2], w = q[3];
    return make_vector({atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)), asin(2 * (w * y - z * x)),
                        atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))});
}

ir::Value* expand_inverse(Call& call) { return conjugate(argument(call, 0)); }
ir::Value* expand_rotate(Call& call) { return rotate(argument(call, 0), argument(call, 1)); }
ir::Value* expand_rotate_inv(Call& call) { return rotate(conjugate(argument(call, 0)), argument(call, 1)); }

// a times the part t of the rotation from a to b on the shorter arc. That rotation has the angle 2 h, with tan h = |u|
// / |w|. The components sin(t h) u / |u| and cos(t h) are smooth at u = 0. For small x = tan^2 h they are power series:
// there |u| has no derivative, and second derivatives of the quotient would be differences of huge numbers.
ir::Value* expand_slerp(Call& call) {
    const E a = argument(call, 0), t = argument(call, 2);
    const E turn = quaternion_product(conjugate(a), argument(call, 1));
    // Not abs(), whose derivative at 0 is 0: on this arc half a turn is approached from w > 0.
    const E zero = turn[3].number(0), one = turn[3].number(1), is_far = turn[3] < zero;
    const E u = imaginary(turn), w = select(is_far, -turn[3], turn[3]);
    const E is_small = dot(u, u) < 1e-4 * w * w;
    const E near = select(is_small, w, one), x = dot(u, u) / (near * near), tt = t * t;
    const E slope_near =
        t / near *
        (1 - x * ((2 + tt) / 6 - x * (1.0 / 5 + tt / 6 + tt * tt / 120 -
                                      x * (1.0 / 7 + tt * 7 / 45 + tt * tt / 72 + tt * tt * tt / 5040))));
    const E cosine_near =
        1 - x * (tt / 2 - x * (tt / 3 + tt * tt / 24 - x * (tt * 23 / 90 + tt * tt / 18 + tt * tt * tt / 720)));
    const E size = length(u), far = select(size > 0, size, one), angle = t * atan2(size, w);
    const E slope = select(is_small, slope_near, sin(angle) / far);
    return quaternion_product(
        a, make_quaternion(u * select(is_far, -slope, slope), select(is_small, cosine_near, cos(angle))));
}

ir::Value* expand_to_matrix(Call& call) { return rotation_matrix(argument(call, 0)); }

// The factor of q that rotates about the axis (swing-twist decomposition).
E twist(E axis, E q) { return unit_quaternion(make_quaternion(axis * dot(imaginary(q), axis), q[3])); }
ir::Value* expand_twist(Call& call) { return twist(argument(call, 0), argument(call, 1)); }
// The angles of q and -q differ by a full turn, so the sign of w matters.
ir::Value* expand_twist_angle(Call& call) {
    const E axis = argument(call, 0), q = argument(call, 1);
    return 2 * atan2(abs(dot(imaginary(q), axis)), q[3]);
}
ir::Value* expand_twist_angle_signed(Call& call) {
    const E axis = argument(call, 0), q = argument(call, 1);
    return 2 * atan2(dot(imaginary(q), axis), q[3]);
}

// ---- Euler angles, about any three axes ----

// One of three values by an axis 0, 1 or 2.
E by_axis(E axis, E x, E y, E z) { return select(axis == 0, x, select(axis == 1, y, z)); }

E turn_about(E axis, E angle) {
    const E half = angle * 0.5;
    const E sine = sin(half), zero = half.number(0);
    return make_quaternion(select(axis == 0, sine, zero), select(axis == 1, sine, zero), select(axis == 2, sine, zero),
                           cos(half));
}
// The axes are fixed (extrinsic): the first rotation is applied first, as in quat_rpy. The angle of an axis is the
// component of its number.
ir::Value* expand_from_euler(Call& call) {
    const E e = argument(call, 0);
    const auto turn = [&](int number) {
        const E axis = argument(call, number);
        return turn_about(axis, by_axis(axis, e[0], e[1], e[2]));
    };
    return quaternion_product(turn(3), quaternion_product(turn(2), turn(1)));
}

// Bernardes and Viollet, "Quaternion to Euler angles conversion: A direct, general and computationally efficient
// method", 2022. The middle angle follows from the lengths of two pairs of (rotated) components. Half the sum and half
// the difference of the other two follow from the pairs' directions. If one pair vanishes, only the sum or only the
// difference is determined; the third angle is 0 then.
ir::Value* expand_to_euler(Call& call) {
    const E q = argument(call, 0);
    const E i = argument(call, 1), j = argument(call, 2), last = argument(call, 3);
    const double pi = std::numbers::pi;
    const E is_proper = i == last;  // first and last rotation are about the same axis
    const E k = select(is_proper, 3 - i - j, last);
    const E sign = cast((i - j) * (j - k) * (k - i) / 2, q.type().scalar());  // of the permutation
    const E x = by_axis(i, q[0], q[1], q[2]), y = by_axis(j, q[0], q[1], q[2]);
    const E z = by_axis(k, q[0], q[1], q[2]) * sign, w = q[3];
    const E a = select(is_proper, w, w - y), b = select(is_proper, x, x + z);
    const E c = select(is_proper, y, y + w), d = select(is_proper, z, z - x);
    const E first_size = a * a + b * b, second_size = c * c + d * d;
    const E middle = 2 * atan2(root_of_squares(second_size), root_of_squares(first_size));
    const E half_sum = atan2(b, a), half_difference = atan2(d, c);
    const double rounding = q.scalar().bits == 64 ? 1e-30 : q.scalar().bits == 32 ? 1e-12 : 1e-5;
    const E whole = first_size + second_size;
    const E only_sum = second_size <= whole * rounding, only_difference = first_size <= whole * rounding;
    const E first =
        select(only_sum, 2 * half_sum, select(only_difference, -2 * half_difference, half_sum - half_difference));
    const E third = select(only_sum || only_difference, 0, half_sum + half_difference);
    const E second = select(is_proper, middle, middle - 0.5 * pi), last_turn = select(is_proper, third, third * sign);
    std::vector<E> angles;
    for (const double axis : {0.0, 1.0, 2.0})
        angles.push_back(select(i == axis, first, select(j == axis, second, last_turn)));
    return make_vector(angles);
}

// ---- the rotation from one direction to another ----

// The sum of the two directions is halfway between them. If they point away from each other, the sum is small and its
// direction uncertain. Then a is rotated to -b, and half a turn about an axis orthogonal to b follows.
E between(E from, E to) {
    const E a = normalize(from), b = normalize(to);
    const E is_away = dot(a, b) < 0;
    const E goal = select(is_away, -b, b);
    const E middle = normalize(a + goal);
    const E direct = make_quaternion(cross(a, middle), dot(a, middle));
    const E across = cross(a, b), zero = a.number(0);
    const E perpendicular =
        select(abs(b[0]) > abs(b[2]), make_vector({-b[1], b[0], zero}), make_vector({zero, -b[2], b[1]}));
    const E rough = normalize(select(dot(across, across) > 0, across, perpendicular));
    const E axis = normalize(rough - b * dot(b, rough));
    const E found = select(is_away, quaternion_product(make_quaternion(axis, zero), direct), direct);
    const E is_nothing = (dot(a, a) == 0) || (dot(b, b) == 0);
    return select(is_nothing, make_quaternion(zero, zero, zero, a.number(1)), found);
}
ir::Value* expand_between(Call& call) {
    const E a = argument(call, 0), b = argument(call, 1);
    const Scalar working = working_scalar(a);
    return cast(between(cast(a, working), cast(b, working)), a.type().scalar());
}

constexpr Entry kEntries[] = {
    {"quaternion", "(dtype: static type = float32) -> Quat[dtype]", "Quaternion of zeros.", expand_zero, true,
     refuse_other_than_float},
    {"quaternion", "(x: F, y: F, z: F, w: F) -> Quat[F]", "Quaternion of four components.", expand_components},
    {"quaternion", "(ijk: Vec[3,F], real: F) -> Quat[F]", "Quaternion of imaginary part and real part.", expand_parts},
    {"quaternion", "(quat: Quat[F], dtype: static type) -> Quat[dtype]", "Quaternion of another scalar type.",
     expand_conversion, true, refuse_other_than_float},
    {"quat_identity", "(dtype: static type = float32) -> Quat[dtype]", "The rotation that changes nothing.",
     expand_quat_identity, true, refuse_other_than_float},
    {"quat_from_axis_angle", "(axis: Vec[3,F], angle: F) -> Quat[F]",
     "Rotation about an axis of length 1 by an angle in radians.", expand_from_axis_angle},
    {"quat_from_axis_angle", "(x: F, y: F, z: F, angle: F) -> Quat[F]",
     "Rotation about the axis (x, y, z) of length 1 by an angle in radians.", expand_from_axis_angle_components},
    {"quat_to_axis_angle", "(quat: Quat[F]) -> (Vec[3,F], F)", "Axis, and angle in [0, pi], of a rotation.",
     expand_to_axis_angle},
    {"quat_to_axis_angle", "(quat: Quat[F], axis: inout Vec[3,F], angle: inout F) -> none",
     "Assigns axis, and angle in [0, pi], of a rotation.", expand_to_axis_angle_out},
    {"quat_from_matrix", "(mat: Mat[3,3,F]) -> Quat[F]", "Unit quaternion of a rotation matrix.", expand_from_matrix},
    {"quat_from_matrix", "(mat: Mat[4,4,F]) -> Quat[F]",
     "Unit quaternion of the rotation in the upper left 3x3 entries.", expand_from_matrix},
    {"quat_rpy", "(roll: F, pitch: F, yaw: F) -> Quat[F]", "Rotation about x by roll, then y by pitch, then z by yaw.",
     expand_rpy},
    {"quat_to_rpy", "(q: Quat[F]) -> Vec[3,F]", "Roll, pitch and yaw in radians, as quat_rpy takes them.",
     expand_to_rpy},
    {"quat_from_euler", "(e: Vec[3,F], i: int32, j: int32, k: int32) -> Quat[F]",
     "Rotation about the axis i (0, 1 or 2) by e[i], then about j by e[j], then about k by e[k]; the axes are fixed.",
     expand_from_euler},
    {"quat_to_euler", "(q: Quat[F], i: int32, j: int32, k: int32) -> Vec[3,F]",
     "Angles in radians as quat_from_euler takes them, for i != j != k; that about j is in [-pi/2, pi/2]. If i is k, "
     "it is in [0, pi], and the angle of the last rotation is the remaining component.",
     expand_to_euler},
    {"quat_between_vectors", "(a: Vec[3,F], b: Vec[3,F]) -> Quat[F]",
     "The shortest rotation from the direction of a to that of b; the identity if one of them is zero.",
     expand_between},
    {"quat_inverse", "(quat: Quat[F]) -> Quat[F]", "Inverse rotation: the conjugate.", expand_inverse},
    {"quat_rotate", "(quat: Quat[F], vec: Vec[3,F]) -> Vec[3,F]", "Rotates a vector.", expand_rotate},
    {"quat_rotate_inv", "(quat: Quat[F], vec: Vec[3,F]) -> Vec[3,F]", "Rotates a vector backwards.", expand_rotate_inv},
    {"quat_slerp", "(a: Quat[F], b: Quat[F], t: F) -> Quat[F]",
     "Spherical interpolation on the shorter arc from a to b, at the fraction t; it has the length of a.",
     expand_slerp},
    {"quat_to_matrix", "(quat: Quat[F]) -> Mat[3,3,F]",
     "Rotation matrix: its columns are quat_rotate(quat, e_i), for quaternions of any length.", expand_to_matrix},
    {"quat_twist", "(axis: Vec[3,F], q: Quat[F]) -> Quat[F]", "The part of a rotation about an axis of length 1.",
     expand_twist},
    {"quat_twist_angle", "(axis: Vec[3,F], q: Quat[F]) -> F",
     "Angle in [0, 2 pi] of the part of a rotation about an axis of length 1.", expand_twist_angle},
    {"quat_twist_angle_signed", "(axis: Vec[3,F], q: Quat[F]) -> F",
     "Angle in [-2 pi, 2 pi] of the part of a rotation about an axis of length 1, negative if it is backwards.",
     expand_twist_angle_signed},
};

}  // namespace

std::span<const Entry> quaternion_entries() { return kEntries; }

}  // namespace weft::builtins
