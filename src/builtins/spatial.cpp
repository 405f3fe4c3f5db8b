// Spatial (6-D) algebra of rigid-body dynamics (Featherstone, "Rigid Body Dynamics Algorithms", 2008): a twist is
// (angular, linear) velocity, a wrench (torque, force), angular part first.
#include "builtins/expression.h"
#include "builtins/groups.h"
#include "builtins/rotation.h"

namespace weft::builtins {

namespace {

E top(E a) { return make_vector({a[0], a[1], a[2]}); }
E bottom(E a) { return make_vector({a[3], a[4], a[5]}); }
E joined(E w, E v) { return make_vector({w[0], w[1], w[2], v[0], v[1], v[2]}); }

ir::Value* expand_top(Call& call) { return top(argument(call, 0)); }
ir::Value* expand_bottom(Call& call) { return bottom(argument(call, 0)); }
ir::Value* expand_dot(Call& call) { return dot(argument(call, 0), argument(call, 1)); }

ir::Value* expand_cross(Call& call) {
    const E a = argument(call, 0), b = argument(call, 1);
    return joined(cross(top(a), top(b)), cross(bottom(a), top(b)) + cross(top(a), bottom(b)));
}
ir::Value* expand_cross_dual(Call& call) {
    const E a = argument(call, 0), b = argument(call, 1);
    return joined(cross(top(a), top(b)) + cross(bottom(a), bottom(b)), cross(top(a), bottom(b)));
}

// [r 0; s r]
ir::Value* expand_adjoint(Call& call) {
    const E r = argument(call, 0), s = argument(call, 1);
    std::vector<E> parts;
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 6; ++j)
            parts.push_back(i < 3 ? (j < 3 ? r.at(i, j) : r.number(0)) : (j < 3 ? s.at(i - 3, j) : r.at(i - 3, j - 3)));
    return make_matrix(6, 6, parts);
}

ir::Value* expand_velocity_at_point(Call& call) {
    const E twist = argument(call, 0);
    return cross(top(twist), argument(call, 1)) + bottom(twist);
}

ir::Value* expand_transform_twist(Call& call) {
    const E t = argument(call, 0), x = argument(call, 1);
    const E w = rotate(rotation(t), top(x));
    return joined(w, rotate(rotation(t), bottom(x)) + cross(position(t), w));
}
ir::Value* expand_transform_wrench(Call& call) {
    const E t = argument(call, 0), x = argument(call, 1);
    const E v = rotate(rotation(t), bottom(x));
    return joined(rotate(rotation(t), top(x)) + cross(position(t), v), v);
}

constexpr Entry kEntries[] = {
    {"spatial_adjoint", "(r: Mat[3,3,F], s: Mat[3,3,F]) -> Mat[6,6,F]",
     "6x6 matrix with r on its diagonal and s in the lower left.", expand_adjoint},
    {"spatial_dot", "(a: Vec[6,F], b: Vec[6,F]) -> F", "Inner product of 6-vectors.", expand_dot},
    {"spatial_cross", "(a: Vec[6,F], b: Vec[6,F]) -> Vec[6,F]", "Cross product of two twists.", expand_cross},
    {"spatial_cross_dual", "(a: Vec[6,F], b: Vec[6,F]) -> Vec[6,F]", "Cross product of a twist and a wrench.",
     expand_cross_dual},
    {"spatial_top", "(svec: Vec[6,F]) -> Vec[3,F]", "First three components.", expand_top},
    {"spatial_bottom", "(svec: Vec[6,F]) -> Vec[3,F]", "Last three components.", expand_bottom},
    {"velocity_at_point", "(qd: Vec[6,F], r: Vec[3,F]) -> Vec[3,F]", "Linear velocity of a twist at the offset r.",
     expand_velocity_at_point},
    {"transform_twist", "(t: Transform[F], x: Vec[6,F]) -> Vec[6,F]", "A twist in another frame.",
     expand_transform_twist},
    {"transform_wrench", "(t: Transform[F], x: Vec[6,F]) -> Vec[6,F]", "A wrench in another frame.",
     expand_transform_wrench},
};

}  // namespace

std::span<const Entry> spatial_entries() { return kEntries; }

}  // namespace weft::builtins
