// Vector and matrix math: products, lengths, and construction of vectors and matrices. inverse and determinant are in
// matrix.cpp.
#include "builtins/expression.h"
#include "builtins/groups.h"
#include "builtins/rotation.h"

namespace weft::builtins {

namespace {

using ir::Op;

template <Op op>
ir::Value* expand_binary(Call& call) {
    return binary(op, argument(call, 0), argument(call, 1));
}

ir::Value* expand_dot(Call& call) { return dot(argument(call, 0), argument(call, 1)); }
// Squares in half precision underflow below 2e-4 and overflow above 256.
ir::Value* expand_length(Call& call) {
    return in_working_scalar(argument(call, 0), [](E a) { return length(a); });
}
ir::Value* expand_length_sq(Call& call) { return dot(argument(call, 0), argument(call, 0)); }
ir::Value* expand_normalize(Call& call) {
    return in_working_scalar(argument(call, 0), [](E a) { return normalize(a); });
}
ir::Value* expand_normalize_quaternion(Call& call) { return unit_quaternion(argument(call, 0)); }
ir::Value* expand_cross(Call& call) { return cross(argument(call, 0), argument(call, 1)); }
ir::Value* expand_transpose(Call& call) { return transpose(argument(call, 0)); }

// The first of equal components wins. A component that does not compare (NaN) is never preferred to the first one.
template <Op better>
ir::Value* expand_best_index(Call& call) {
    const E a = argument(call, 0);
    E best = a[0];
    E index = a.wrap(call.builder.integer(0, u32_type()));
    if (needs_loop(a)) {
        return over_components(a, {best, index}, [&](const auto& carried, const auto& indices) {
            const E found = a.wrap(call.builder.extract_at(a, indices));
            const E is_better = compare(better, found, a.wrap(carried[0]));
            const E at = a.wrap(call.builder.cast(indices[0], Scalar::u32));
            return std::vector<ir::Value*>{select(is_better, found, a.wrap(carried[0])),
                                           select(is_better, at, a.wrap(carried[1]))};
        })[1];
    }
    for (int i = 1; i < a.components(); ++i) {
        const E is_better = compare(better, a[i], best);
        best = select(is_better, a[i], best);
        index = select(is_better, index.number(i), index);
    }
    return index;
}

// Column times row, as a product of matrices: one operation for vectors of any length.
ir::Value* expand_outer(Call& call) {
    const E a = argument(call, 0), b = argument(call, 1);
    std::vector<E> column, row;
    for (int i = 0; i < a.components(); ++i) column.push_back(a[i]);
    for (int i = 0; i < b.components(); ++i) row.push_back(b[i]);
    return matmul(make_matrix(a.components(), 1, column), make_matrix(1, b.components(), row));
}

ir::Value* expand_skew(Call& call) {
    const E v = argument(call, 0);
    const E zero = v.number(0);
    return make_matrix(3, 3, {zero, -v[2], v[1], v[2], zero, -v[0], -v[1], v[0], zero});
}

ir::Value* expand_trace(Call& call) {
    const E m = argument(call, 0);
    E result = m.at(0, 0);
    for (int i = 1; i < m.type().rows(); ++i) result = result + m.at(i, i);
    return result;
}

ir::Value* expand_diag(Call& call) {
    const E v = argument(call, 0);
    const int n = v.components();
    ir::Builder& builder = call.builder;
    if (n * n > ir::kMostUnrolled) {
        const Type type = Type::matrix(v.type().scalar(), n, n);
        const auto step = [&](const std::vector<ir::Value*>& carried, const std::vector<ir::Value*>& at) {
            return std::vector<ir::Value*>{builder.insert_at(carried[0], builder.extract_at(v, at), {at[0], at[0]})};
        };
        return over_components(v, {builder.zero(type)}, step)[0];
    }
    std::vector<E> parts(static_cast<std::size_t>(n * n), v.number(0));
    for (int i = 0; i < n; ++i) parts[static_cast<std::size_t>(i * n + i)] = v[i];
    return make_matrix(n, n, parts);
}

ir::Value* expand_get_diag(Call& call) {
    const E m = argument(call, 0);
    std::vector<E> parts;
    for (int i = 0; i < m.type().rows(); ++i) parts.push_back(m.at(i, i));
    return make_vector(parts);
}

E stacked_rows(const Call& call) {
    std::vector<E> parts;
    for (std::size_t row = 0; row < call.arguments.size(); ++row)
        for (int col = 0; col < call.arguments[row]->type.components(); ++col)
            parts.push_back(argument(call, row)[col]);
    return make_matrix(static_cast<int>(call.arguments.size()), call.arguments[0]->type.components(), parts);
}
ir::Value* expand_matrix_from_rows(Call& call) { return stacked_rows(call); }
ir::Value* expand_matrix_from_cols(Call& call) { return transpose(stacked_rows(call)); }

ir::Value* expand_identity_matrix(Call& call) {
    const int n = static_cast<int>(call.sizes.at("n"));
    const Type scalar = call.types.at("dtype");
    const auto number = [&](double v) {
        return scalar.is_float() ? Number::real(v) : Number::integer(static_cast<std::int64_t>(v));
    };
    if (n * n > ir::kMostUnrolled) {
        ir::Builder& builder = call.builder;
        const Type matrix = Type::matrix(scalar.scalar(), n, n);
        ir::Value* one = builder.constant(scalar, {number(1)});
        const auto step = [&](const std::vector<ir::Value*>& carried, const std::vector<ir::Value*>& at) {
            return std::vector<ir::Value*>{builder.insert_at(carried[0], one, {at[0], at[0]})};
        };
        return ir::over_components(builder, Type::vector(scalar.scalar(), n), {builder.zero(matrix)}, step)[0];
    }
    std::vector<Number> numbers(static_cast<std::size_t>(n) * n, number(0));
    for (int i = 0; i < n; ++i) numbers[static_cast<std::size_t>(i) * n + i] = number(1);
    return call.builder.constant(Type::matrix(scalar.scalar(), n, n), std::move(numbers));
}

std::string refuse_empty_matrix(const Match& match) {
    return match.sizes.at("n") == 0 ? "argument 'n' is 0, expected 1 or more" : "";
}

constexpr Entry kEntries[] = {
    {"dot", "(a: Vec[n,S], b: Vec[n,S]) -> S", "Inner product of vectors.", expand_dot},
    {"dot", "(a: Quat[F], b: Quat[F]) -> F", "Inner product of quaternions as 4-vectors.", expand_dot},
    {"ddot", "(a: Mat[r,c,S], b: Mat[r,c,S]) -> S", "Sum of the products of all entries.", expand_dot},
    {"argmin", "(a: Vec[n,S]) -> uint32", "Index of the least component, the first of equal ones.",
     expand_best_index<Op::cmp_lt>, false},
    {"argmax", "(a: Vec[n,S]) -> uint32", "Index of the greatest component, the first of equal ones.",
     expand_best_index<Op::cmp_gt>, false},
    {"outer", "(a: Vec[r,S], b: Vec[c,S]) -> Mat[r,c,S]", "Outer product: entry (i, j) is a[i] * b[j].", expand_outer},
    {"cross", "(a: Vec[3,S], b: Vec[3,S]) -> Vec[3,S]", "Cross product.", expand_cross},
    {"skew", "(vec: Vec[3,S]) -> Mat[3,3,S]", "The matrix K for which K * b is cross(vec, b).", expand_skew},
    {"length", "(a: Vec[n,F]) -> F", "Euclidean length.", expand_length},
    {"length", "(a: Quat[F]) -> F", "Euclidean length of a quaternion.", expand_length},
    {"length_sq", "(a: Vec[n,S]) -> S", "Square of the Euclidean length.", expand_length_sq},
    {"length_sq", "(a: Quat[F]) -> F", "Square of the length of a quaternion.", expand_length_sq},
    {"normalize", "(a: Vec[n,F]) -> Vec[n,F]", "Vector of length 1 in the same direction; zero stays zero.",
     expand_normalize},
    {"normalize", "(a: Quat[F]) -> Quat[F]", "Unit quaternion; of zero the identity (0, 0, 0, 1).",
     expand_normalize_quaternion},
    {"transpose", "(a: Mat[r,c,S]) -> Mat[c,r,S]", "Rows and columns exchanged.", expand_transpose},
    {"trace", "(a: Mat[n,n,S]) -> S", "Sum of the diagonal.", expand_trace},
    {"diag", "(vec: Vec[n,S]) -> Mat[n,n,S]", "Matrix with that diagonal, zero elsewhere.", expand_diag},
    {"get_diag", "(mat: Mat[n,n,S]) -> Vec[n,S]", "Diagonal of a matrix.", expand_get_diag},
    {"cw_mul", "(a: Vec[n,S], b: Vec[n,S]) -> Vec[n,S]", "Product of each pair of components.", expand_binary<Op::mul>},
    {"cw_mul", "(a: Mat[r,c,S], b: Mat[r,c,S]) -> Mat[r,c,S]", "Product of each pair of entries.",
     expand_binary<Op::mul>},
    {"cw_div", "(a: Vec[n,S], b: Vec[n,S]) -> Vec[n,S]", "Quotient of each pair of components.",
     expand_binary<Op::div>},
    {"cw_div", "(a: Mat[r,c,S], b: Mat[r,c,S]) -> Mat[r,c,S]", "Quotient of each pair of entries.",
     expand_binary<Op::div>},
    {"vector", "(*args: S) -> Vec[args,S]",
     "Vector of these components; with length= of one number repeated, with length= and dtype= of zeros.", nullptr},
    {"matrix", "(*args: S) -> T",
     "Matrix of these entries, row by row; with shape= of one number repeated, with shape= and dtype= of zeros.",
     nullptr},
    {"matrix_from_cols", "(*args: Vec[n,S]) -> Mat[n,args,S]", "Matrix with these columns.", expand_matrix_from_cols},
    {"matrix_from_rows", "(*args: Vec[n,S]) -> Mat[args,n,S]", "Matrix with these rows.", expand_matrix_from_rows},
    {"identity", "(n: static int, dtype: static type = float32) -> Mat[n,n,dtype]", "Identity matrix.",
     expand_identity_matrix, false, refuse_empty_matrix},
};

}  // namespace

std::span<const Entry> vector_entries() { return kEntries; }

}  // namespace weft::builtins
