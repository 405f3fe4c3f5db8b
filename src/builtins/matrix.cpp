// Determinant and inverse of 2x2, 3x3 and 4x4 matrices by cofactors. A singular matrix (determinant exactly 0) has the
// zero matrix as its inverse.
//
// Differences of products are rounded as if they were formed exactly. So rows that are multiples of each other cancel
// to 0, and nearly singular matrices keep their digits. If the determinant leaves the range of the type, the rows are
// scaled by powers of two first; that arm runs only then.
#include <cmath>

#include "builtins/expression.h"
#include "builtins/groups.h"
#include "builtins/scaling.h"

namespace weft::builtins {

namespace {

// a * b - c * d with an error below two units in the last place (Kahan; Jeannerod, Louvet and Muller, "Further Analysis
// of Kahan's Algorithm for the Accurate Computation of 2x2 Determinants", 2013).
E difference_of_products(E a, E b, E c, E d) {
    const E product = c * d;
    const E error = fma(-c, d, product);
    return fma(a, b, -product) + error;
}

// The matrix of cofactors, transposed: m * adjugate(m) = determinant(m) * identity. The entries of one column serve
// both the determinant and the inverse.
struct Adjugate {
    std::vector<E> entries;  // row-major
    E determinant;
};

Adjugate adjugate2(E m) {
    return {{m.at(1, 1), -m.at(0, 1), -m.at(1, 0), m.at(0, 0)},
            difference_of_products(m.at(0, 0), m.at(1, 1), m.at(0, 1), m.at(1, 0))};
}

// The columns of the adjugate are the cross products of the rows.
Adjugate adjugate3(E m) {
    const auto exact_cross = [](E a, E b) {
        std::vector<E> parts;
        for (int i = 0; i < 3; ++i) {
            const int j = (i + 1) % 3, k = (i + 2) % 3;
            parts.push_back(difference_of_products(a[j], b[k], a[k], b[j]));
        }
        return make_vector(parts);
    };
    const E a = m[0], b = m[1], c = m[2];
    const E columns[] = {exact_cross(b, c), exact_cross(c, a), exact_cross(a, b)};
    std::vector<E> entries;
    for (int row = 0; row < 3; ++row)
        for (const E& column : columns) entries.push_back(column[row]);
    return {entries, dot(a, columns[0])};
}

// Laplace expansion over the 2x2 minors of the upper and of the lower two rows (Eberly, "The Laplace Expansion
// Theorem: Computing the Determinants and Inverses of Matrices", 2008).
Adjugate adjugate4(E m) {
    const auto a = [&](int i, int j) { return m.at(i, j); };
    const auto minor = [&](int row, int i, int j) {
        return difference_of_products(a(row, i), a(row + 1, j), a(row + 1, i), a(row, j));
    };
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

// Whether no product of entries overflowed, and no significant one lost digits to underflow: an entry of the inverse is
// at least 1 / (rows * largest entry) somewhere, far above the smallest number over the determinant.
E is_in_range(E m, E determinant) {
    const bool is_wide = m.scalar().bits == 64;
    const double largest = std::ldexp(1.0, (is_wide ? 1000 : 120) / m.type().rows());
    return (abs(determinant) >= (is_wide ? 0x1p-700 : 0x1p-80)) && (largest_magnitude(m) <= largest);
}

// given[i, j] = matrix[i, j] * factors[i], with powers of two for factors and the greatest entry of each row in [1, 2).
struct RowScaled {
    E matrix;
    std::vector<E> factors;
};
RowScaled scaled_rows(E m) {
    const int n = m.type().rows();
    std::vector<E> entries, factors;
    for (int i = 0; i < n; ++i) {
        // A row of zeros keeps the factor 1: the gradient of the determinant, times a factor of 2^-126, would be
        // subnormal.
        const E largest = largest_magnitude(m[i]);
        const E factor = power_of_two_below(select(largest == 0, 1, largest));
        const E row = m[i] * (1 / factor);
        factors.push_back(factor);
        for (int j = 0; j < n; ++j) entries.push_back(row[j]);
    }
    return {make_matrix(n, n, entries), factors};
}

ir::Value* expand_determinant(Call& call) {
    const E given = argument(call, 0);
    const E m = cast(given, working_scalar(given));
    const E plain = adjugate(m).determinant;
    const E found = branch(
        is_in_range(m, plain), plain.type(), [&] { return plain; },
        [&] {
            const auto [matrix, factors] = scaled_rows(m);
            E result = adjugate(matrix).determinant;
            for (const E& factor : factors) result = result * factor;
            return result;
        });
    return cast(found, given.type().scalar());
}

// The inverse from the adjugate if the determinant is not 0. Otherwise the divisor is 1, so that neither value nor
// gradient of the unused arm is infinite.
E inverse_of(E m, const Adjugate& adj) {
    const E regular = adj.determinant != 0;
    const E found = make(m.type(), adj.entries) * (1 / select(regular, adj.determinant, 1));
    return select(regular, found, 0);
}

ir::Value* expand_inverse(Call& call) {
    const E given = argument(call, 0);
    const E m = cast(given, working_scalar(given));
    const Adjugate plain = adjugate(m);
    const E found = branch(
        is_in_range(m, plain.determinant), m.type(), [&] { return inverse_of(m, plain); },
        [&] {
            // The factors of the rows divide the columns of the inverse.
            const auto [matrix, factors] = scaled_rows(m);
            const E inverse = inverse_of(matrix, adjugate(matrix));
            const int n = m.type().rows();
            std::vector<E> entries;
            for (int i = 0; i < n; ++i)
                for (int j = 0; j < n; ++j)
                    entries.push_back(inverse.at(i, j) * (1 / factors[static_cast<std::size_t>(j)]));
            return make_matrix(n, n, entries);
        });
    return cast(found, given.type().scalar());
}

constexpr Entry kEntries[] = {
    {"inverse", "(a: Mat[2,2,F]) -> Mat[2,2,F]", "Inverse matrix; zero if a is singular.", expand_inverse},
    {"inverse", "(a: Mat[3,3,F]) -> Mat[3,3,F]", "Inverse matrix; zero if a is singular.", expand_inverse},
    {"inverse", "(a: Mat[4,4,F]) -> Mat[4,4,F]", "Inverse matrix; zero if a is singular.", expand_inverse},
    {"inverse_approx", "(a: Mat[2,2,F]) -> Mat[2,2,F]",
     "Inverse matrix, perhaps less exact on GPUs; the same as inverse on CPUs.", expand_inverse},
    {"inverse_approx", "(a: Mat[3,3,F]) -> Mat[3,3,F]",
     "Inverse matrix, perhaps less exact on GPUs; the same as inverse on CPUs.", expand_inverse},
    {"inverse_approx", "(a: Mat[4,4,F]) -> Mat[4,4,F]",
     "Inverse matrix, perhaps less exact on GPUs; the same as inverse on CPUs.", expand_inverse},
    {"determinant", "(a: Mat[2,2,F]) -> F", "Determinant.", expand_determinant},
    {"determinant", "(a: Mat[3,3,F]) -> F", "Determinant.", expand_determinant},
    {"determinant", "(a: Mat[4,4,F]) -> F", "Determinant.", expand_determinant},
};

}  // namespace

std::span<const Entry> matrix_entries() { return kEntries; }

}  // namespace weft::builtins
