// The operators of the language, by the names of Python's operator module: sema looks up `a + b` as add(a, b),
// `a @ b` as matmul, `a // b` as floordiv, `a ** b` as pow, `not a` as unot. Comparisons, `and` and `or` are sema's.
#include "builtins/expression.h"
#include "builtins/groups.h"
#include "builtins/rotation.h"

namespace weft::builtins {

namespace {

using ir::Op;

template <Op op>
ir::Value* expand_unary(Call& call) {
    return unary(op, argument(call, 0));
}

// Also takes a scalar with an aggregate: the scalar is broadcast.
template <Op op>
ir::Value* expand_binary(Call& call) {
    return binary(op, argument(call, 0), argument(call, 1));
}

ir::Value* expand_matmul(Call& call) { return matmul(argument(call, 0), argument(call, 1)); }

ir::Value* expand_quaternion_product(Call& call) { return quaternion_product(argument(call, 0), argument(call, 1)); }

ir::Value* expand_transform_product(Call& call) { return transform_product(argument(call, 0), argument(call, 1)); }

ir::Value* expand_floordiv(Call& call) {
    const E a = argument(call, 0), b = argument(call, 1);
    const E quotient = a / b;
    // A negative quotient may vanish: it rounds down to -1, too.
    if (a.scalar().is_float())
        return select(quotient == 0.0 && a != 0.0 && (a < 0.0) != (b < 0.0), -1.0, floor(quotient));
    if (!a.scalar().is_signed()) return quotient;
    // C's division truncates; a negative quotient with a remainder is one less.
    const E rest = a % b;
    return select(rest != 0 && (rest ^ b) < 0, quotient - 1, quotient);
}

ir::Value* expand_identity(Call& call) { return call.arguments[0]; }

ir::Value* expand_not_bool(Call& call) { return !argument(call, 0); }
ir::Value* expand_not_int(Call& call) { return argument(call, 0) == 0; }
ir::Value* expand_not_array(Call& call) { return call.builder.is_null(call.arguments[0]); }

// x ** 3 for integers: by squaring, as many products as the exponent has bits.
ir::Value* expand_integer_power(Call& call) {
    const E x = argument(call, 0);
    E square = x;
    E result = x.number(1);
    bool is_one = true;
    for (std::int64_t n = call.sizes.at("y"); n > 0; n >>= 1) {
        if (n & 1) {
            result = is_one ? square : result * square;
            is_one = false;
        }
        if (n > 1) square = square * square;
    }
    return result;
}

constexpr Entry kEntries[] = {
    {"add", "(a: S, b: S) -> S", "Sum, `a + b`.", expand_binary<Op::add>},
    {"add", "(a: Vec[n,S], b: Vec[n,S]) -> Vec[n,S]", "Sum of vectors.", expand_binary<Op::add>},
    {"add", "(a: Mat[r,c,S], b: Mat[r,c,S]) -> Mat[r,c,S]", "Sum of matrices.", expand_binary<Op::add>},
    {"add", "(a: Quat[F], b: Quat[F]) -> Quat[F]", "Sum of the components of quaternions.", expand_binary<Op::add>},
    {"add", "(a: Transform[F], b: Transform[F]) -> Transform[F]", "Sum of the components of transforms.",
     expand_binary<Op::add>},

    {"sub", "(a: S, b: S) -> S", "Difference, `a - b`.", expand_binary<Op::sub>},
    {"sub", "(a: Vec[n,S], b: Vec[n,S]) -> Vec[n,S]", "Difference of vectors.", expand_binary<Op::sub>},
    {"sub", "(a: Mat[r,c,S], b: Mat[r,c,S]) -> Mat[r,c,S]", "Difference of matrices.", expand_binary<Op::sub>},
    {"sub", "(a: Quat[F], b: Quat[F]) -> Quat[F]", "Difference of the components of quaternions.",
     expand_binary<Op::sub>},
    {"sub", "(a: Transform[F], b: Transform[F]) -> Transform[F]", "Difference of the components of transforms.",
     expand_binary<Op::sub>},

    {"mul", "(a: S, b: S) -> S", "Product, `a * b`.", expand_binary<Op::mul>},
    {"mul", "(a: Vec[n,S], b: S) -> Vec[n,S]", "Vector times a number.", expand_binary<Op::mul>},
    {"mul", "(a: S, b: Vec[n,S]) -> Vec[n,S]", "Number times a vector.", expand_binary<Op::mul>},
    {"mul", "(a: Mat[r,c,S], b: S) -> Mat[r,c,S]", "Matrix times a number.", expand_binary<Op::mul>},
    {"mul", "(a: S, b: Mat[r,c,S]) -> Mat[r,c,S]", "Number times a matrix.", expand_binary<Op::mul>},
    {"mul", "(a: Mat[r,c,S], b: Vec[c,S]) -> Vec[r,S]", "Matrix times a column vector.", expand_matmul},
    {"mul", "(a: Vec[r,S], b: Mat[r,c,S]) -> Vec[c,S]", "Row vector times a matrix.", expand_matmul},
    {"mul", "(a: Mat[r,n,S], b: Mat[n,c,S]) -> Mat[r,c,S]", "Product of matrices.", expand_matmul},
    {"mul", "(a: Quat[F], b: Quat[F]) -> Quat[F]", "Product of quaternions: the rotation b, then a.",
     expand_quaternion_product},
    {"mul", "(a: Quat[F], b: F) -> Quat[F]", "Quaternion times a number.", expand_binary<Op::mul>},
    {"mul", "(a: F, b: Quat[F]) -> Quat[F]", "Number times a quaternion.", expand_binary<Op::mul>},
    {"mul", "(a: Transform[F], b: Transform[F]) -> Transform[F]", "Product of transforms: b, then a.",
     expand_transform_product},
    {"mul", "(a: Transform[F], b: F) -> Transform[F]", "Components of a transform times a number.",
     expand_binary<Op::mul>},
    {"mul", "(a: F, b: Transform[F]) -> Transform[F]", "Number times the components of a transform.",
     expand_binary<Op::mul>},

    {"matmul", "(a: Mat[r,c,S], b: Vec[c,S]) -> Vec[r,S]", "Matrix times a column vector, `a @ b`.", expand_matmul},
    {"matmul", "(a: Vec[r,S], b: Mat[r,c,S]) -> Vec[c,S]", "Row vector times a matrix, `a @ b`.", expand_matmul},
    {"matmul", "(a: Mat[r,n,S], b: Mat[n,c,S]) -> Mat[r,c,S]", "Product of matrices, `a @ b`.", expand_matmul},

    {"div", "(a: S, b: S) -> S", "Quotient, `a / b`; of integers toward zero.", expand_binary<Op::div>},
    {"div", "(a: Vec[n,S], b: S) -> Vec[n,S]", "Vector over a number.", expand_binary<Op::div>},
    {"div", "(a: S, b: Vec[n,S]) -> Vec[n,S]", "Number over each component of a vector.", expand_binary<Op::div>},
    {"div", "(a: Mat[r,c,S], b: S) -> Mat[r,c,S]", "Matrix over a number.", expand_binary<Op::div>},
    {"div", "(a: S, b: Mat[r,c,S]) -> Mat[r,c,S]", "Number over each entry of a matrix.", expand_binary<Op::div>},
    {"div", "(a: Quat[F], b: F) -> Quat[F]", "Quaternion over a number.", expand_binary<Op::div>},
    {"div", "(a: F, b: Quat[F]) -> Quat[F]", "Number over each component of a quaternion.", expand_binary<Op::div>},

    {"div_approx", "(a: F, b: F) -> F", "Quotient, perhaps less exact on GPUs; the same as div on CPUs.",
     expand_binary<Op::div>},
    {"div_approx", "(a: Vec[n,F], b: F) -> Vec[n,F]", "Vector over a number, perhaps less exact.",
     expand_binary<Op::div>},
    {"div_approx", "(a: F, b: Vec[n,F]) -> Vec[n,F]", "Number over each component, perhaps less exact.",
     expand_binary<Op::div>},
    {"div_approx", "(a: Mat[r,c,F], b: F) -> Mat[r,c,F]", "Matrix over a number, perhaps less exact.",
     expand_binary<Op::div>},
    {"div_approx", "(a: F, b: Mat[r,c,F]) -> Mat[r,c,F]", "Number over each entry, perhaps less exact.",
     expand_binary<Op::div>},
    {"div_approx", "(a: Quat[F], b: F) -> Quat[F]", "Quaternion over a number, perhaps less exact.",
     expand_binary<Op::div>},
    {"div_approx", "(a: F, b: Quat[F]) -> Quat[F]", "Number over each component, perhaps less exact.",
     expand_binary<Op::div>},

    {"floordiv", "(a: S, b: S) -> S", "Quotient rounded down, `a // b`.", expand_floordiv, false},
    {"mod", "(a: S, b: S) -> S", "Remainder, `a % b`, with the sign of the dividend.", expand_binary<Op::rem>},
    {"mod", "(a: Vec[n,S], b: Vec[n,S]) -> Vec[n,S]", "Remainder of each component.", expand_binary<Op::rem>},
    {"pow", "(x: I, y: static int) -> I", "Integer to a power known at compile time, `x ** 3`.", expand_integer_power,
     false},

    {"bit_and", "(a: I, b: I) -> I", "Bitwise and, `a & b`.", expand_binary<Op::and_>, false},
    {"bit_and", "(a: B, b: B) -> B", "Logical and of both operands.", expand_binary<Op::and_>, false},
    {"bit_and", "(a: Vec[n,I], b: Vec[n,I]) -> Vec[n,I]", "Bitwise and of vectors.", expand_binary<Op::and_>, false},
    {"bit_and", "(a: Mat[r,c,I], b: Mat[r,c,I]) -> Mat[r,c,I]", "Bitwise and of matrices.", expand_binary<Op::and_>,
     false},
    {"bit_or", "(a: I, b: I) -> I", "Bitwise or, `a | b`.", expand_binary<Op::or_>, false},
    {"bit_or", "(a: B, b: B) -> B", "Logical or of both operands.", expand_binary<Op::or_>, false},
    {"bit_or", "(a: Vec[n,I], b: Vec[n,I]) -> Vec[n,I]", "Bitwise or of vectors.", expand_binary<Op::or_>, false},
    {"bit_or", "(a: Mat[r,c,I], b: Mat[r,c,I]) -> Mat[r,c,I]", "Bitwise or of matrices.", expand_binary<Op::or_>,
     false},
    {"bit_xor", "(a: I, b: I) -> I", "Bitwise exclusive or, `a ^ b`.", expand_binary<Op::xor_>, false},
    {"bit_xor", "(a: B, b: B) -> B", "Whether exactly one is true.", expand_binary<Op::xor_>, false},
    {"bit_xor", "(a: Vec[n,I], b: Vec[n,I]) -> Vec[n,I]", "Bitwise exclusive or of vectors.", expand_binary<Op::xor_>,
     false},
    {"bit_xor", "(a: Mat[r,c,I], b: Mat[r,c,I]) -> Mat[r,c,I]", "Bitwise exclusive or of matrices.",
     expand_binary<Op::xor_>, false},
    {"lshift", "(a: I, b: I) -> I", "Bits shifted left, `a << b`; the count is taken modulo the width.",
     expand_binary<Op::shl>, false},
    {"lshift", "(a: Vec[n,I], b: Vec[n,I]) -> Vec[n,I]", "Bits of each component shifted left.", expand_binary<Op::shl>,
     false},
    {"lshift", "(a: Mat[r,c,I], b: Mat[r,c,I]) -> Mat[r,c,I]", "Bits of each entry shifted left.",
     expand_binary<Op::shl>, false},
    {"rshift", "(a: I, b: I) -> I", "Bits shifted right, `a >> b`, keeping the sign of signed types.",
     expand_binary<Op::shr>, false},
    {"rshift", "(a: Vec[n,I], b: Vec[n,I]) -> Vec[n,I]", "Bits of each component shifted right.",
     expand_binary<Op::shr>, false},
    {"rshift", "(a: Mat[r,c,I], b: Mat[r,c,I]) -> Mat[r,c,I]", "Bits of each entry shifted right.",
     expand_binary<Op::shr>, false},
    {"invert", "(a: I) -> I", "All bits inverted, `~a`.", expand_unary<Op::invert>, false},
    {"invert", "(a: Vec[n,I]) -> Vec[n,I]", "All bits of a vector inverted.", expand_unary<Op::invert>, false},
    {"invert", "(a: Mat[r,c,I]) -> Mat[r,c,I]", "All bits of a matrix inverted.", expand_unary<Op::invert>, false},

    {"pos", "(x: S) -> S", "The value itself, `+x`.", expand_identity},
    {"pos", "(x: Vec[n,S]) -> Vec[n,S]", "The vector itself.", expand_identity},
    {"pos", "(x: Mat[r,c,S]) -> Mat[r,c,S]", "The matrix itself.", expand_identity},
    {"pos", "(x: Quat[F]) -> Quat[F]", "The quaternion itself.", expand_identity},
    {"neg", "(x: S) -> S", "Negative, `-x`; of unsigned types modulo their range.", expand_unary<Op::neg>},
    {"neg", "(x: Vec[n,S]) -> Vec[n,S]", "Negative of a vector.", expand_unary<Op::neg>},
    {"neg", "(x: Mat[r,c,S]) -> Mat[r,c,S]", "Negative of a matrix.", expand_unary<Op::neg>},
    {"neg", "(x: Quat[F]) -> Quat[F]", "Negative of the components of a quaternion.", expand_unary<Op::neg>},
    {"unot", "(a: B) -> B", "Logical not, `not a`.", expand_not_bool, false},
    {"unot", "(a: I) -> B", "Whether an integer is zero.", expand_not_int, false},
    {"unot", "(a: Array[T,d]) -> B", "Whether an array was passed as None.", expand_not_array, false},
};

}  // namespace

std::span<const Entry> operator_entries() { return kEntries; }

}  // namespace weft::builtins
