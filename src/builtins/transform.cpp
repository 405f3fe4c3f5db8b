// Rigid transforms (p, q): rotate by the unit quaternion q, then translate by p.
#include "builtins/expression.h"
#include "builtins/groups.h"
#include "builtins/rotation.h"

namespace weft::builtins {

namespace {

ir::Value* expand_parts(Call& call) { return make_transform(argument(call, 0), argument(call, 1)); }
ir::Value* expand_translation(Call& call) {
    const E p = argument(call, 0);
    return make_transform(p, make_quaternion(p.number(0), p.number(0), p.number(0), p.number(1)));
}
ir::Value* expand_components(Call& call) {
    std::vector<E> parts;
    for (std::size_t i = 0; i < 7; ++i) parts.push_back(argument(call, i));
    return make(Type::transform(parts[0].type().scalar()), parts);
}

ir::Value* expand_identity(Call& call) {
    std::vector<Number> numbers(7, Number::real(0));
    numbers[6] = Number::real(1);
    return call.builder.constant(Type::transform(call.types.at("dtype").scalar()), std::move(numbers));
}

std::string refuse_other_than_float(const Match& match) {
    const Type dtype = match.types.at("dtype");
    return dtype.is_float() ? "" : "argument 'dtype' is " + dtype.python_name() + ", expected a float type";
}

ir::Value* expand_get_translation(Call& call) { return position(argument(call, 0)); }
ir::Value* expand_get_rotation(Call& call) { return rotation(argument(call, 0)); }

E with_translation(E t, E p) { return make_transform(p, rotation(t)); }
E with_rotation(E t, E q) { return make_transform(position(t), q); }
ir::Value* expand_set_translation(Call& call) {
    call.inout = {with_translation(argument(call, 0), argument(call, 1))};
    return nullptr;
}
ir::Value* expand_set_rotation(Call& call) {
    call.inout = {with_rotation(argument(call, 0), argument(call, 1))};
    return nullptr;
}

ir::Value* expand_multiply(Call& call) { return transform_product(argument(call, 0), argument(call, 1)); }
ir::Value* expand_inverse(Call& call) { return transform_inverse(argument(call, 0)); }

ir::Value* expand_point(Call& call) {
    const E t = argument(call, 0);
    return position(t) + rotate(rotation(t), argument(call, 1));
}
ir::Value* expand_vector(Call& call) { return rotate(rotation(argument(call, 0)), argument(call, 1)); }

// The first three components of m * (v, w).
E affine(E m, E v, double w) {
    const E product = matmul(m, make_vector({v[0], v[1], v[2], v.number(w)}));
    return make_vector({product[0], product[1], product[2]});
}
ir::Value* expand_matrix_point(Call& call) { return affine(argument(call, 0), argument(call, 1), 1); }
ir::Value* expand_matrix_vector(Call& call) { return affine(argument(call, 0), argument(call, 1), 0); }

// The 4x4 matrix that scales each axis, rotates and translates.
E affine_matrix(E p, E rotation_3x3, E scale) {
    std::vector<E> parts;
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) parts.push_back(rotation_3x3.at(i, j) * scale[j]);
        parts.push_back(p[i]);
    }
    for (double last : {0.0, 0.0, 0.0, 1.0}) parts.push_back(p.number(last));
    return make_matrix(4, 4, parts);
}
ir::Value* expand_to_matrix(Call& call) {
    const E t = argument(call, 0);
    const E one = t.number(1);
    return affine_matrix(position(t), rotation_matrix(rotation(t)), make_vector({one, one, one}));
}
ir::Value* expand_compose(Call& call) {
    return affine_matrix(argument(call, 0), rotation_matrix(argument(call, 1)), argument(call, 2));
}

E column(E m, int j) { return make_vector({m.at(0, j), m.at(1, j), m.at(2, j)}); }

ir::Value* expand_from_matrix(Call& call) {
    const E m = argument(call, 0);
    return make_transform(column(m, 3), quaternion_from_matrix(m));
}

// The scale is the lengths of the columns, the first one negative if the matrix mirrors. A column of zeros has scale 0,
// and the rotation cannot be recovered from it.
ir::Value* expand_decompose(Call& call) {
    const E m = argument(call, 0);
    const E x = column(m, 0), y = column(m, 1), z = column(m, 2);
    const E is_mirror = dot(x, cross(y, z)) < 0;
    const E length_x = length(x);
    const E scale = make_vector({select(is_mirror, -length_x, length_x), length(y), length(z)});
    const E unit_x = normalize(x);
    const E unit[] = {select(is_mirror, -unit_x, unit_x), normalize(y), normalize(z)};
    std::vector<E> parts;
    for (int i = 0; i < 3; ++i)
        for (const E& axis : unit) parts.push_back(axis[i]);
    return make_tuple({column(m, 3), quaternion_from_matrix(make_matrix(3, 3, parts)), scale});
}

constexpr Entry kEntries[] = {
    {"transformation", "(p: Vec[3,F], q: Quat[F]) -> Transform[F]", "Transform of translation and rotation.",
     expand_parts},
    {"transformation", "(p: Vec[3,F]) -> Transform[F]", "Transform that only translates.", expand_translation},
    {"transformation", "(px: F, py: F, pz: F, qx: F, qy: F, qz: F, qw: F) -> Transform[F]",
     "Transform of its seven components.", expand_components},
    {"transform_identity", "(dtype: static type = float32) -> Transform[dtype]", "The transform that changes nothing.",
     expand_identity, true, refuse_other_than_float},
    {"transform_get_translation", "(xform: Transform[F]) -> Vec[3,F]", "Translation p of a transform.",
     expand_get_translation},
    {"transform_get_rotation", "(xform: Transform[F]) -> Quat[F]", "Rotation q of a transform.", expand_get_rotation},
    {"transform_set_translation", "(xform: inout Transform[F], p: Vec[3,F]) -> none",
     "Assigns the translation of a transform.", expand_set_translation},
    {"transform_set_rotation", "(xform: inout Transform[F], q: Quat[F]) -> none",
     "Assigns the rotation of a transform.", expand_set_rotation},
    {"transform_multiply", "(a: Transform[F], b: Transform[F]) -> Transform[F]", "The transform b, then a.",
     expand_multiply},
    {"transform_point", "(xform: Transform[F], point: Vec[3,F]) -> Vec[3,F]", "Rotates a point, then translates it.",
     expand_point},
    {"transform_point", "(mat: Mat[4,4,F], point: Vec[3,F]) -> Vec[3,F]",
     "Transforms a point by an affine matrix, as (x, y, z, 1).", expand_matrix_point},
    {"transform_vector", "(xform: Transform[F], vec: Vec[3,F]) -> Vec[3,F]", "Rotates a vector.", expand_vector},
    {"transform_vector", "(mat: Mat[4,4,F], vec: Vec[3,F]) -> Vec[3,F]",
     "Transforms a direction by an affine matrix, as (x, y, z, 0).", expand_matrix_vector},
    {"transform_inverse", "(xform: Transform[F]) -> Transform[F]", "Inverse transform.", expand_inverse},
    {"transform_from_matrix", "(mat: Mat[4,4,F]) -> Transform[F]", "Transform of a rigid 4x4 matrix.",
     expand_from_matrix},
    {"transform_to_matrix", "(xform: Transform[F]) -> Mat[4,4,F]", "4x4 matrix of a transform.", expand_to_matrix},
    {"transform_compose", "(position: Vec[3,F], rotation: Quat[F], scale: Vec[3,F]) -> Mat[4,4,F]",
     "4x4 matrix that scales, then rotates, then translates.", expand_compose},
    {"transform_decompose", "(m: Mat[4,4,F]) -> (Vec[3,F], Quat[F], Vec[3,F])",
     "Translation, rotation and scale of a 4x4 matrix, as transform_compose takes them.", expand_decompose},
};

}  // namespace

std::span<const Entry> transform_entries() { return kEntries; }

}  // namespace weft::builtins
