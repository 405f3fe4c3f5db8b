// Determinant and inverse of 2x2, 3x3 and 4x4 matrices by cofactors. A singular matrix (determinant exactly 0) has the
// zero matrix as its inverse.
#include "builtins/expression.h"
#include "builtins/groups.h"

namespace weft::builtins {

namespace {

// The matrix of cofactors, transposed: m * adjugate(m) = determinant(m) * identity. The entries of one column serve
// both the determinant and the inverse.
struct Adjugate {
    std::vector<E> entries;  // row-major
    E determinant;
};

Adjugate adjugate2(E m) {
    return {{m.at(1, 1), -m.at(0, 1), -m.at(1, 0), m.at(0, 0)}, m.at(0, 0) * m.at(1, 1) - m.at(0, 1) * m.at(1, 0)};
}

// The columns of the adjugate are the cross products of the rows.
Adjugate adjugate3(E m) {
    const E a = m[0], b = m[1], c = m[2];
    const E columns[] = {cross(b, c), cross(c, a), cross(a, b)};
    std::vector<E> entries;
    for (int row = 0; row < 3; ++row)
        for (const E& column : columns) entries.push_back(column[row]);
    return {entries, dot(a, columns[0])};
}

// Laplace expansion over the 2x2 minors of the upper and of the lower two rows (Eberly, "The Laplace Expansion
// Theorem: Computing the Determinants and Inverses of Matrices", 2008).
Adjugate adjugate4(E m) {
    const auto a = [&](int i, int j) { return m.at(i, j); };
    const auto minor = [&](int row, int i, int j) { return a(row, i) * a(row + 1, j) - a(row + 1, i) * a(row, j); };
    const E s0 = minor(0, 0, 1), s1 = minor(0, 0, 2), s2 = minor(0, 0, 3);
    const E s3 = minor(0, 1, 2), s4 = minor(0, 1, 3), s5 = minor(0, 2, 3);
    const E c0 = minor(2, 0, 1), c1 = minor(2, 0, 2), c2 = minor(2, 0, 3);
    const E c3 = minor(2, 1, 2), c4 = minor(2, 1, 3), c5 = minor(2, 2, 3);
    return {{a(1, 1) * c5 - a(1, 2) * c4 + a(1, 3) * c3, -a(0, 1) * c5 + a(0, 2) * c4 - a(0, 3) * c3,
             a(3, 1) * s5 - a(3, 2) * s4 + a(3, 3) * s3, -a(2, 1) * s5 + a(2, 2) * s4 - a(2, 3) * s3,
             -a(1, 0) * c5 + a(1, 2) * c2 - a(1, 3) * c1, a(0, 0) * c5 - a(0, 2) * c2 + a(0, 3) * c1,
             -a(3, 0) * s5 + a(3, 2) * s2 - a(3, 3) * s1, a(2, 0) * s5 - a(2, 2) * s2 + a(2, 3) * s1,
             a(1, 0) * c4 - a(1, 1) * c2 + a(1, 3) * c0, -a(0, 0) * c4 + a(0, 1) * c2 - a(0, 3) * c0,
             a(3, 0) * s4 - a(3, 1) * s2 + a(3, 3) * s0, -a(2, 0) * s4 + a(2, 1) * s2 - a(2, 3) * s0,
             -a(1, 0) * c3 + a(1, 1) * c1 - a(1, 2) * c0, a(0, 0) * c3 - a(0, 1) * c1 + a(0, 2) * c0,
             -a(3, 0) * s3 + a(3, 1) * s1 - a(3, 2) * s0, a(2, 0) * s3 - a(2, 1) * s1 + a(2, 2) * s0},
            s0 * c5 - s1 * c4 + s2 * c3 + s3 * c2 - s4 * c1 + s5 * c0};
}

Adjugate adjugate(E m) {
    switch (m.type().rows()) {
        case 2:
            return adjugate2(m);
        case 3:
            return adjugate3(m);
        default:
            return adjugate4(m);
    }
}

ir::Value* expand_determinant(Call& call) { return adjugate(argument(call, 0)).determinant; }

ir::Value* expand_inverse(Call& call) {
    const E m = argument(call, 0);
    const Adjugate adj = adjugate(m);
    const E regular = adj.determinant != 0;
    // The divisor is 1 where the result is not used, so that neither value nor gradient of the other arm is infinite.
    const E inverse = make(m.type(), adj.entries) * (1 / select(regular, adj.determinant, 1));
    return select(regular, inverse, 0);
}

constexpr Entry kEntries[] = {
    {"inverse", "(a: Mat[2,2,F]) -> Mat[2,2,F]", "Inverse matrix; zero where a is singular.", expand_inverse},
    {"inverse", "(a: Mat[3,3,F]) -> Mat[3,3,F]", "Inverse matrix; zero where a is singular.", expand_inverse},
    {"inverse", "(a: Mat[4,4,F]) -> Mat[4,4,F]", "Inverse matrix; zero where a is singular.", expand_inverse},
    {"inverse_approx", "(a: Mat[2,2,F]) -> Mat[2,2,F]",
     "Inverse where the device may divide less exactly; the same as inverse on CPUs.", expand_inverse},
    {"inverse_approx", "(a: Mat[3,3,F]) -> Mat[3,3,F]",
     "Inverse where the device may divide less exactly; the same as inverse on CPUs.", expand_inverse},
    {"inverse_approx", "(a: Mat[4,4,F]) -> Mat[4,4,F]",
     "Inverse where the device may divide less exactly; the same as inverse on CPUs.", expand_inverse},
    {"determinant", "(a: Mat[2,2,F]) -> F", "Determinant.", expand_determinant},
    {"determinant", "(a: Mat[3,3,F]) -> F", "Determinant.", expand_determinant},
    {"determinant", "(a: Mat[4,4,F]) -> F", "Determinant.", expand_determinant},
};

}  // namespace

std::span<const Entry> matrix_entries() { return kEntries; }

}  // namespace weft::builtins
