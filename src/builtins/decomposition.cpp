// Singular values, eigenvalues and QR of small matrices, by plane rotations only. U, V and Q are products of rotations,
// so their determinant is 1. The sign of det(A) goes to the last singular value or the last diagonal entry of R.
// Orthogonality does not depend on the matrix: singular ones, repeated values and zeros need no special case.
//
// All threads run the same number of steps, without branches. Matrices are scaled by a power of two first. An entry
// that is not finite gives NaNs.
#include "builtins/expression.h"
#include "builtins/groups.h"
#include "builtins/scaling.h"
#include "ir/loop_builder.h"

namespace weft::builtins {

namespace {

// Sweeps over all pairs of columns after which random, graded, singular and nearly repeated matrices have converged.
// Hard cases are in tests/builtins/test_decompositions.py.
int sweeps(E m) { return m.scalar().bits == 64 ? 6 : 5; }

using ir::Op;
using Columns = std::vector<E>;

Columns columns_of(E m) {
    Columns columns;
    for (int j = 0; j < m.type().cols(); ++j) {
        std::vector<E> parts;
        for (int i = 0; i < m.type().rows(); ++i) parts.push_back(m.at(i, j));
        columns.push_back(make_vector(parts));
    }
    return columns;
}
E matrix_of_rows(const std::vector<E>& rows) {
    const int n = static_cast<int>(rows.size());
    std::vector<E> parts;
    for (const E& row : rows)
        for (int j = 0; j < n; ++j) parts.push_back(row[j]);
    return make_matrix(n, n, parts);
}
E matrix_of_columns(const Columns& columns) { return transpose(matrix_of_rows(columns)); }

E unit_vector(E like, int n, int axis) {
    std::vector<E> parts(static_cast<std::size_t>(n), like.number(0));
    parts[static_cast<std::size_t>(axis)] = like.number(1);
    return make_vector(parts);
}
Columns identity_columns(E like, int n) {
    Columns columns;
    for (int j = 0; j < n; ++j) columns.push_back(unit_vector(like, n, j));
    return columns;
}

// A result in the scalar type of the given matrix; all NaN if one of its entries is not finite.
E result(E found, E given) { return cast(found, given.type().scalar()) + sum(given * 0); }

// The rotation (c, s) that turns the columns p and q of a pair: p' = c p - s q, q' = s p + c q.
struct Rotation {
    E tangent, cosine, sine;
};
// Its tangent is the smaller root of t^2 + 2 zeta t = 1 (Rutishauser, "The Jacobi Method for Real Symmetric Matrices",
// 1966): a turn of at most 45 degrees. zeta may be infinite: no turn.
Rotation smaller_rotation(E zeta, E is_idle) {
    const E size = abs(zeta) + sqrt(1 + zeta * zeta);
    const E tangent = select(is_idle, 0, select(zeta < 0, -1 / size, 1 / size));
    const E cosine = 1 / sqrt(1 + tangent * tangent);
    return {tangent, cosine, tangent * cosine};
}
void turn(Columns& columns, std::size_t p, std::size_t q, const Rotation& r) {
    const E first = columns[p], second = columns[q];
    columns[p] = first * r.cosine - second * r.sine;
    columns[q] = first * r.sine + second * r.cosine;
}

// Exchanges two columns if the condition holds, by a rotation of 90 degrees.
void exchange(Columns& columns, std::size_t p, std::size_t q, E condition) {
    const E first = columns[p], second = columns[q];
    columns[p] = select(condition, second, first);
    columns[q] = select(condition, -first, second);
}

// Runs `body` on the carried values `times` times.
std::vector<E> repeat(int times, const std::vector<E>& start, const std::function<void(std::vector<E>&)>& body) {
    ir::Builder& b = start[0].builder();
    const auto staged = [&](const std::vector<ir::Value*>& values) {
        std::vector<E> result;
        for (ir::Value* value : values) result.push_back(start[0].wrap(value));
        return result;
    };
    return staged(ir::build_for(b, b.integer(0), b.integer(times), b.integer(1), {start.begin(), start.end()},
                                [&](ir::Value*, const std::vector<ir::Value*>& values) {
                                    std::vector<E> carried = staged(values);
                                    body(carried);
                                    return std::vector<ir::Value*>(carried.begin(), carried.end());
                                }));
}

// ---- derivatives ----
//
// The iterations find rotations step by step and stop when nothing is left to turn, so their derivatives are
// meaningless. The factors that they find count as constants. One step of first order follows, whose value is zero and
// whose derivative is that of the factors. For factors U, V of A the step is U + U X with the skew X that keeps
// transpose(U) A V diagonal.
//
// There are two such steps. The first gives the factors tangents. Reverse mode goes through the second one alone,
// directly to A, as the factors that it starts from are constants to reverse mode. Forward mode over that sees them
// move, and so has the second derivative.
template <class Factors>
Factors moved_twice(E a, const Factors& found) {
    return moved(a, moved(a, found.through(Op::detach)).through(Op::detach_reverse));
}

// Zero, with the derivative of `value`.
E change(E value) { return value - unary(Op::detach, value); }

// 1 / gap, and 0 if the gap is only rounding (for matrices whose largest entry is about 1): the factors of equal values
// are not unique, and stay unchanged.
E reciprocal_gap(E gap) {
    const double rounding = gap.scalar().bits == 64 ? 0x1p-35 : 0x1p-15;
    const E is_apart = abs(gap) > rounding;
    return select(is_apart, 1 / select(is_apart, gap, 1), 0);
}

// The skew matrix with these entries above its diagonal.
E skew_of(int n, const std::function<E(int row, int col)>& above) {
    std::vector<E> parts(static_cast<std::size_t>(n * n), above(0, 1).zero());
    for (int i = 0; i < n; ++i)
        for (int j = i + 1; j < n; ++j) {
            const E entry = above(i, j);
            parts[static_cast<std::size_t>(i * n + j)] = entry;
            parts[static_cast<std::size_t>(j * n + i)] = -entry;
        }
    return make_matrix(n, n, parts);
}
E diagonal(E m) {
    std::vector<E> parts;
    for (int i = 0; i < m.type().rows(); ++i) parts.push_back(m.at(i, i));
    return make_vector(parts);
}
E without_diagonal(E m, E values) {
    for (int i = 0; i < m.type().rows(); ++i) m = m.with_component(i * m.type().cols() + i, m.at(i, i) - values[i]);
    return m;
}

// ---- singular values ----

// One-sided Jacobi (Hestenes, "Inversion of Matrices by Biorthogonalization and Related Results", 1958): columns of A
// are turned until they are orthogonal to each other, A V = U diag(sigma). A is never squared, so small singular values
// are as accurate as large ones. Pairs that are orthogonal up to rounding are left unchanged: turning equal columns by
// rounding errors would only add more.
void orthogonalize(Columns& a, Columns& v, std::size_t p, std::size_t q) {
    const E first = dot(a[p], a[p]), second = dot(a[q], a[q]), mixed = dot(a[p], a[q]);
    const double rounding = mixed.scalar().bits == 64 ? 0x1p-51 : 0x1p-22;
    const E is_idle = mixed * mixed <= (first * (rounding * rounding)) * second;
    const Rotation r = smaller_rotation((second - first) / (2 * select(is_idle, 1, mixed)), is_idle);
    turn(a, p, q, r);
    turn(v, p, q, r);
}

void sort_pair(Columns& a, Columns& v, std::size_t p, std::size_t q) {
    const E is_behind = dot(a[p], a[p]) < dot(a[q], a[q]);
    exchange(a, p, q, is_behind);
    exchange(v, p, q, is_behind);
}

// A vector orthogonal to a unit vector, not shorter than sqrt(1/2).
E perpendicular(E u) {
    const E zero = u.number(0);
    return select(abs(u[0]) > abs(u[2]), make_vector({-u[1], u[0], zero}), make_vector({zero, -u[2], u[1]}));
}

struct Svd {
    E u, sigma, v;
    Svd through(Op op) const { return {unary(op, u), unary(op, sigma), unary(op, v)}; }
};

// If two singular values are equal, the sum of the turns of U and V is not unique. Their difference, on which U
// transpose(V) depends, is.
Svd moved(E a, const Svd& found) {
    const auto& [u, sigma, v] = found;
    const E e = change(without_diagonal(matmul(transpose(u), matmul(a, v)), sigma));
    const auto turn = [&](bool of_u) {
        return skew_of(a.type().rows(), [&, of_u](int p, int q) {
            const E sum = (e.at(p, q) + e.at(q, p)) * reciprocal_gap(found.sigma[q] - found.sigma[p]);
            const E difference = (e.at(p, q) - e.at(q, p)) * reciprocal_gap(found.sigma[q] + found.sigma[p]);
            return 0.5 * (of_u ? sum + difference : sum - difference);
        });
    };
    return {u + matmul(u, turn(true)), sigma + diagonal(e), v + matmul(v, turn(false))};
}

Svd svd3(E a) {
    Columns start = columns_of(a), v = identity_columns(a, 3);
    start.insert(start.end(), v.begin(), v.end());
    const std::vector<E> turned = repeat(sweeps(a), start, [](std::vector<E>& carried) {
        Columns b(carried.begin(), carried.begin() + 3), w(carried.begin() + 3, carried.end());
        orthogonalize(b, w, 0, 1);
        orthogonalize(b, w, 0, 2);
        orthogonalize(b, w, 1, 2);
        carried = {b[0], b[1], b[2], w[0], w[1], w[2]};
    });
    Columns b(turned.begin(), turned.begin() + 3);
    v.assign(turned.begin() + 3, turned.end());
    sort_pair(b, v, 0, 1);
    sort_pair(b, v, 1, 2);
    sort_pair(b, v, 0, 1);

    // U from the columns by Gram-Schmidt, twice for the second column. If that column is only the rounding of the first
    // (a matrix of rank 1 or 0), any orthogonal vector serves.
    const E square = dot(b[0], b[0]);
    const E u0 = select(square == 0, unit_vector(a, 3, 0), normalize(b[0]));
    const E rest = b[1] - u0 * dot(u0, b[1]);
    const E is_found = dot(rest, rest) > dot(b[1], b[1]) * 0.01;
    const E rough = normalize(select(is_found, rest, perpendicular(u0)));
    const E unsigned_u1 = normalize(rough - u0 * dot(u0, rough));
    const E projected = dot(unsigned_u1, b[1]);
    const E u1 = select(projected < 0, -unsigned_u1, unsigned_u1);
    const E u2 = cross(u0, u1);
    // Values that are equal up to rounding stay in order.
    const E s0 = sqrt(square);
    const E s1 = select(abs(projected) > s0, s0, abs(projected));
    const E last = dot(u2, b[2]);
    const E s2 = select(last > s1, s1, select(last < -s1, -s1, last));
    return {matrix_of_columns({u0, u1, u2}), make_vector({s0, s1, s2}), matrix_of_columns(v)};
}

// The same with one pair, for which one turn is exact; the second removes its rounding.
Svd svd2(E a) {
    Columns b = columns_of(a), v = identity_columns(a, 2);
    orthogonalize(b, v, 0, 1);
    orthogonalize(b, v, 0, 1);
    sort_pair(b, v, 0, 1);
    const E square = dot(b[0], b[0]);
    const E u0 = select(square == 0, unit_vector(a, 2, 0), normalize(b[0]));
    const E u1 = make_vector({-u0[1], u0[0]});
    const E s0 = sqrt(square);
    const E last = dot(u1, b[1]);
    const E s1 = select(last > s0, s0, select(last < -s0, -s0, last));
    return {matrix_of_columns({u0, u1}), make_vector({s0, s1}), matrix_of_columns(v)};
}

Svd svd(E given) {
    const auto [a, factor] = scaled(cast(given, working_scalar(given)));
    const Svd found = moved_twice(a, a.type().rows() == 2 ? svd2(a) : svd3(a));
    return {result(found.u, given), result(found.sigma * factor, given), result(found.v, given)};
}

ir::Value* expand_svd(Call& call) {
    const auto [u, sigma, v] = svd(argument(call, 0));
    return make_tuple({u, sigma, v});
}
ir::Value* expand_svd_out(Call& call) {
    const auto [u, sigma, v] = svd(argument(call, 0));
    call.inout = {u, sigma, v};
    return nullptr;
}

// ---- eigenvalues ----

// The six entries of a symmetric matrix during diagonalization.
struct Symmetric {
    std::vector<E> diagonal;  // 3
    std::vector<E> beside;    // beside[i]: the entry of the two axes other than i
};

// One step of Jacobi's method on the pair (p, q): the entry between them becomes 0.
void diagonalize(Symmetric& a, Columns& q_columns, std::size_t p, std::size_t q) {
    const std::size_t r = 3 - p - q;
    const E between = a.beside[r];
    const E is_idle = between == 0;
    const Rotation turned =
        smaller_rotation((a.diagonal[q] - a.diagonal[p]) / (2 * select(is_idle, 1, between)), is_idle);
    const E change = turned.tangent * between;
    a.diagonal[p] = a.diagonal[p] - change;
    a.diagonal[q] = a.diagonal[q] + change;
    a.beside[r] = between.number(0);
    const E with_p = a.beside[q], with_q = a.beside[p];  // the entries (r, p) and (r, q)
    a.beside[q] = with_p * turned.cosine - with_q * turned.sine;
    a.beside[p] = with_p * turned.sine + with_q * turned.cosine;
    turn(q_columns, p, q, turned);
}

struct Eigen {
    E q, d;
    Eigen through(Op op) const { return {unary(op, q), unary(op, d)}; }
};

Eigen moved(E a, const Eigen& found) {
    const auto& [q, d] = found;
    const E e = change(without_diagonal(matmul(transpose(q), matmul(0.5 * (a + transpose(a)), q)), d));
    const E turn = skew_of(3, [&](int i, int j) { return e.at(i, j) * reciprocal_gap(found.d[j] - found.d[i]); });
    return {q + matmul(q, turn), d + diagonal(e)};
}

Eigen eig3(E given) {
    const auto [a, factor] = scaled(cast(given, working_scalar(given)));
    const auto mean = [&](int i, int j) { return 0.5 * (a.at(i, j) + a.at(j, i)); };
    std::vector<E> start = {a.at(0, 0), a.at(1, 1), a.at(2, 2), mean(1, 2), mean(0, 2), mean(0, 1)};
    for (const E& column : identity_columns(a, 3)) start.push_back(column);
    const std::vector<E> turned = repeat(sweeps(a), start, [](std::vector<E>& carried) {
        Symmetric s{{carried.begin(), carried.begin() + 3}, {carried.begin() + 3, carried.begin() + 6}};
        Columns q(carried.begin() + 6, carried.end());
        diagonalize(s, q, 0, 1);
        diagonalize(s, q, 0, 2);
        diagonalize(s, q, 1, 2);
        carried = {s.diagonal[0], s.diagonal[1], s.diagonal[2], s.beside[0], s.beside[1],
                   s.beside[2],   q[0],          q[1],          q[2]};
    });
    std::vector<E> d(turned.begin(), turned.begin() + 3);
    Columns q(turned.begin() + 6, turned.end());
    const auto sort = [&](std::size_t i, std::size_t j) {
        const E is_behind = d[j] < d[i];
        exchange(q, i, j, is_behind);
        const E low = select(is_behind, d[j], d[i]);
        d[j] = select(is_behind, d[i], d[j]);
        d[i] = low;
    };
    sort(0, 1);
    sort(1, 2);
    sort(0, 1);
    const Eigen found = moved_twice(a, Eigen{matrix_of_columns(q), make_vector(d)});
    return {result(found.q, given), result(found.d * factor, given)};
}

ir::Value* expand_eig3(Call& call) {
    const auto [q, d] = eig3(argument(call, 0));
    return make_tuple({q, d});
}
ir::Value* expand_eig3_out(Call& call) {
    const auto [q, d] = eig3(argument(call, 0));
    call.inout = {q, d};
    return nullptr;
}

// ---- QR ----

// Turns the rows i and j of R (and of the transpose of Q) so that the entry (j, column) of R vanishes (Givens,
// "Computation of Plane Unitary Rotations Transforming a General Matrix to Triangular Form", 1958). Both
// entries are divided by the greater of them before the square root.
void eliminate(std::vector<E>& r, std::vector<E>& q, std::size_t i, std::size_t j, int column) {
    const E a = r[i][column], b = r[j][column];
    const E size = max(abs(a), abs(b));
    const E is_zero = size == 0;
    const E divisor = select(is_zero, 1, size);
    const E x = select(is_zero, 1, a / divisor), y = b / divisor;
    const E root = 1 / sqrt(x * x + y * y);
    const E cosine = x * root, sine = y * root;
    for (std::vector<E>* rows : {&r, &q}) {
        const E first = (*rows)[i], second = (*rows)[j];
        (*rows)[i] = first * cosine + second * sine;
        (*rows)[j] = second * cosine - first * sine;
    }
    r[j] = r[j].with_component(column, a.number(0));
}

struct Qr {
    E q, r;
    Qr through(Op op) const { return {unary(op, q), unary(op, r)}; }
};

// The turn of Q that keeps R triangular, column by column. It does not depend on the last column.
Qr moved(E a, const Qr& found) {
    const auto& [q, r] = found;
    const E e = change(matmul(transpose(q), a) - r);
    const E first = reciprocal_gap(r.at(0, 0)), second = reciprocal_gap(r.at(1, 1));
    const E down = e.at(2, 0) * first;
    const E below[] = {e.at(1, 0) * first, down, (e.at(2, 1) - down * r.at(0, 1)) * second};
    const E turn = skew_of(3, [&](int i, int j) { return -below[i + j - 1]; });
    const E moved_r = e - matmul(turn, r);
    std::vector<E> upper;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) upper.push_back(i <= j ? moved_r.at(i, j) : e.number(0));
    return {q + matmul(q, turn), r + make_matrix(3, 3, upper)};
}

Qr qr3(E given) {
    const auto [a, factor] = scaled(cast(given, working_scalar(given)));
    std::vector<E> r = {a[0], a[1], a[2]}, q = identity_columns(a, 3);
    eliminate(r, q, 1, 2, 0);
    eliminate(r, q, 0, 1, 0);
    eliminate(r, q, 1, 2, 1);
    const Qr found = moved_twice(a, Qr{matrix_of_columns(q), matrix_of_rows(r)});
    return {result(found.q, given), result(found.r * factor, given)};
}

ir::Value* expand_qr3(Call& call) {
    const auto [q, r] = qr3(argument(call, 0));
    return make_tuple({q, r});
}
ir::Value* expand_qr3_out(Call& call) {
    const auto [q, r] = qr3(argument(call, 0));
    call.inout = {q, r};
    return nullptr;
}

#define WEFT_SVD                                                                                          \
    "Singular values: A = U * diag(sigma) * transpose(V), U and V rotations; sigma in descending order, " \
    "of which only the last may be negative, as it has the sign of the determinant of A."
#define WEFT_EIG                                                                                                    \
    "Eigenvalues of the symmetric part of A, ascending in d, and its eigenvectors, the columns of the rotation Q: " \
    "A = Q * diag(d) * transpose(Q)."
#define WEFT_QR                                                                                                  \
    "A = Q * R with a rotation Q and an upper triangular R, whose diagonal is non-negative except for the last " \
    "entry, "                                                                                                    \
    "which has the sign of the determinant of A."

constexpr Entry kEntries[] = {
    {"svd2", "(A: Mat[2,2,F]) -> (Mat[2,2,F], Vec[2,F], Mat[2,2,F])", WEFT_SVD, expand_svd},
    {"svd2", "(A: Mat[2,2,F], U: inout Mat[2,2,F], sigma: inout Vec[2,F], V: inout Mat[2,2,F]) -> none",
     "Assigns U, sigma and V, as the other form returns them.", expand_svd_out},
    {"svd3", "(A: Mat[3,3,F]) -> (Mat[3,3,F], Vec[3,F], Mat[3,3,F])", WEFT_SVD, expand_svd},
    {"svd3", "(A: Mat[3,3,F], U: inout Mat[3,3,F], sigma: inout Vec[3,F], V: inout Mat[3,3,F]) -> none",
     "Assigns U, sigma and V, as the other form returns them.", expand_svd_out},
    {"qr3", "(A: Mat[3,3,F]) -> (Mat[3,3,F], Mat[3,3,F])", WEFT_QR, expand_qr3},
    {"qr3", "(A: Mat[3,3,F], Q: inout Mat[3,3,F], R: inout Mat[3,3,F]) -> none",
     "Assigns Q and R, as the other form returns them.", expand_qr3_out},
    {"eig3", "(A: Mat[3,3,F]) -> (Mat[3,3,F], Vec[3,F])", WEFT_EIG, expand_eig3},
    {"eig3", "(A: Mat[3,3,F], Q: inout Mat[3,3,F], d: inout Vec[3,F]) -> none",
     "Assigns Q and d, as the other form returns them.", expand_eig3_out},
};
#undef WEFT_SVD
#undef WEFT_EIG
#undef WEFT_QR

}  // namespace

std::span<const Entry> decomposition_entries() { return kEntries; }

}  // namespace weft::builtins
