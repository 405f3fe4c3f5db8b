// Operators on typed values at Python scope, with the meaning they have in kernels: operands have one scalar type (a
// plain Python or NumPy number takes it where it fits), `*` is the matrix, quaternion or transform product, integer `/`
// and `%` are C's. Each result is computed in double or 64-bit integers and rounded to its type once.
#include <cmath>
#include <optional>
#include <vector>

#include "bindings/types.h"
#include "bindings/values.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

enum class Op { add, sub, mul, matmul, div, floordiv, mod };
struct OpNames {
    const char* symbol;
    const char* method;
    const char* reflected;
    PyObject* (*python)(PyObject*, PyObject*);
};
constexpr OpNames kOps[] = {
    {"+", "__add__", "__radd__", PyNumber_Add},
    {"-", "__sub__", "__rsub__", PyNumber_Subtract},
    {"*", "__mul__", "__rmul__", PyNumber_Multiply},
    {"@", "__matmul__", "__rmatmul__", PyNumber_MatrixMultiply},
    {"/", "__truediv__", "__rtruediv__", PyNumber_TrueDivide},
    {"//", "__floordiv__", "__rfloordiv__", PyNumber_FloorDivide},
    {"%", "__mod__", "__rmod__", PyNumber_Remainder},
};

nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }

// One operand, unpacked.
struct Operand {
    Type type;
    std::vector<Number> numbers;

    explicit Operand(Type type) : type(type), numbers(static_cast<std::size_t>(type.components())) {}
    explicit Operand(const Value& value) : Operand(value.type()) {
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = value.component(static_cast<int>(i));
    }
    Number& at(int row, int col) { return numbers[static_cast<std::size_t>(row * type.cols() + col)]; }
    const Number& at(int row, int col) const { return numbers[static_cast<std::size_t>(row * type.cols() + col)]; }

    // Components [first, first + count) as doubles; quaternions and transforms are always floating.
    std::vector<double> reals(std::size_t first, std::size_t count) const {
        std::vector<double> out;
        for (std::size_t i = first; i < first + count; ++i) out.push_back(numbers[i].f);
        return out;
    }
};

nb::object to_python(const Operand& operand) {
    nb::object made = new_value(operand.type);
    Value& value = *value_pointer(made);
    const Scalar scalar = operand.type.scalar();
    const bool is_float = info(scalar).is_float();
    for (std::size_t i = 0; i < operand.numbers.size(); ++i) {
        value.set_component(static_cast<int>(i),
                            convert(operand.numbers[i], is_float ? Scalar::f64 : Scalar::i64, scalar));
    }
    return made;
}

[[noreturn]] void throw_division_by_zero() {
    PyErr_SetString(PyExc_ZeroDivisionError, "integer division by zero");
    throw nb::python_error();
}

Number float_result(Op op, double a, double b) {
    switch (op) {
        case Op::add:
            return Number::real(a + b);
        case Op::sub:
            return Number::real(a - b);
        case Op::mul:
            return Number::real(a * b);
        case Op::div:
            return Number::real(a / b);
        case Op::floordiv:
            return Number::real(std::floor(a / b));
        case Op::mod:
            return Number::real(std::fmod(a, b));
        case Op::matmul:
            break;
    }
    throw InternalError("no scalar meaning of @");
}

// 64-bit two's complement; the caller wraps to the type.
Number integer_result(Op op, std::int64_t a, std::int64_t b, bool is_unsigned) {
    const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
    const auto integer = [](std::uint64_t bits) { return Number::integer(static_cast<std::int64_t>(bits)); };
    if (op == Op::add) return integer(ua + ub);
    if (op == Op::sub) return integer(ua - ub);
    if (op == Op::mul) return integer(ua * ub);
    if (b == 0) throw_division_by_zero();
    if (is_unsigned) return integer(op == Op::mod ? ua % ub : ua / ub);
    if (b == -1) return integer(op == Op::mod ? 0 : 0 - ua);  // the least int64 / -1 overflows in C
    if (op == Op::mod) return Number::integer(a % b);
    const std::int64_t quotient = a / b;
    return Number::integer(op == Op::floordiv && a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient);
}

Number scalar_result(Op op, Number a, Number b, Scalar scalar) {
    if (info(scalar).is_float()) return float_result(op, a.f, b.f);
    return integer_result(op, a.i, b.i, info(scalar).kind == ScalarKind::unsigned_int);
}

Operand componentwise(Op op, const Operand& a, const Operand& b) {
    Operand result(a.type.is_scalar() ? b.type : a.type);
    for (std::size_t i = 0; i < result.numbers.size(); ++i) {
        result.numbers[i] = scalar_result(op, a.numbers[a.type.is_scalar() ? 0 : i],
                                          b.numbers[b.type.is_scalar() ? 0 : i], result.type.scalar());
    }
    return result;
}

// A vector is a column on the right and a row on the left.
std::optional<Operand> matrix_product(const Operand& a, const Operand& b) {
    const bool row = a.type.is_vector(), column = b.type.is_vector();
    const int rows = row ? 1 : a.type.rows();
    const int inner = row ? a.type.rows() : a.type.cols();
    const int cols = column ? 1 : b.type.cols();
    if (inner != b.type.rows()) return std::nullopt;
    const Scalar scalar = a.type.scalar();
    Operand result(row      ? Type::vector(scalar, cols)
                   : column ? Type::vector(scalar, rows)
                            : Type::matrix(scalar, rows, cols));
    for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < cols; ++c) {
            Number sum = info(scalar).is_float() ? Number::real(0) : Number::integer(0);
            for (int k = 0; k < inner; ++k) {
                const Number left = a.numbers[static_cast<std::size_t>(r * inner + k)];
                const Number right = b.numbers[static_cast<std::size_t>(k * cols + c)];
                sum = scalar_result(Op::add, sum, scalar_result(Op::mul, left, right, scalar), scalar);
            }
            result.numbers[static_cast<std::size_t>(r * cols + c)] = sum;
        }
    }
    return result;
}

// Hamilton's product of (x, y, z, w) with w the real part.
std::vector<double> quaternion_product(const std::vector<double>& a, const std::vector<double>& b) {
    return {
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1], a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3], a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2]};
}

// (p, q) applied after (p', q'): p + q p' q*, q q'.
std::vector<double> transform_product(const Operand& a, const Operand& b) {
    const std::vector<double> q = a.reals(3, 4);
    const std::vector<double> conjugate = {-q[0], -q[1], -q[2], q[3]};
    std::vector<double> moved = b.reals(0, 3);
    moved.push_back(0.0);
    moved = quaternion_product(quaternion_product(q, moved), conjugate);
    std::vector<double> result = a.reals(0, 3);
    for (int i = 0; i < 3; ++i) result[static_cast<std::size_t>(i)] += moved[static_cast<std::size_t>(i)];
    for (double component : quaternion_product(q, b.reals(3, 4))) result.push_back(component);
    return result;
}

Operand from_reals(Type type, const std::vector<double>& reals) {
    Operand result(type);
    for (std::size_t i = 0; i < reals.size(); ++i) result.numbers[i] = Number::real(reals[i]);
    return result;
}

std::optional<Operand> compute(Op op, const Operand& a, const Operand& b) {
    if (a.type.scalar() != b.type.scalar() || a.type.is_bool()) return std::nullopt;
    const bool a_scalar = a.type.is_scalar(), b_scalar = b.type.is_scalar();
    const auto is_linear = [](const Operand& x) { return x.type.is_vector() || x.type.is_matrix(); };
    if (op != Op::matmul && a_scalar && b_scalar) return componentwise(op, a, b);
    switch (op) {
        case Op::add:
        case Op::sub:
            return a.type == b.type ? std::optional(componentwise(op, a, b)) : std::nullopt;
        case Op::mul:
            if (a_scalar || b_scalar) return componentwise(op, a, b);
            if (a.type == b.type && a.type.is(Kind::quaternion)) {
                return from_reals(a.type, quaternion_product(a.reals(0, 4), b.reals(0, 4)));
            }
            if (a.type == b.type && a.type.is(Kind::transform)) return from_reals(a.type, transform_product(a, b));
            [[fallthrough]];
        case Op::matmul:
            if (!is_linear(a) || !is_linear(b)) return std::nullopt;
            if (a.type.is_vector() && b.type.is_vector()) {
                throw UsageError(
                    kOps[static_cast<int>(op)].symbol,
                    "two vectors have no such product. help: wp.dot(a, b), wp.cross(a, b), wp.cw_mul(a, b)",
                    ErrorCategory::type);
            }
            return matrix_product(a, b);
        case Op::div:
            return a_scalar || b_scalar ? std::optional(componentwise(op, a, b)) : std::nullopt;
        case Op::mod:
            return a.type == b.type && a.type.is_vector() ? std::optional(componentwise(op, a, b)) : std::nullopt;
        case Op::floordiv:
            return std::nullopt;
    }
    return std::nullopt;
}

// A plain number as the scalar type of its partner; empty where it does not fit.
std::optional<Operand> operand_of(nb::handle object, const Value* value, const Value* partner) {
    if (value) return Operand(*value);
    Number number;
    Scalar from;
    const Scalar scalar = partner->type().scalar();
    if (!read_number(object, number, from) || !fits(number, from, scalar)) return std::nullopt;
    Operand operand(Type::scalar(scalar));
    operand.numbers[0] = convert(number, from, scalar);
    return operand;
}

nb::object as_array(nb::handle value) {
    return is_numpy_array(value) ? nb::borrow(value) : nb::module_::import_("numpy").attr("asarray")(value);
}

bool is_proper_array(nb::handle object) { return is_numpy_array(object) && nb::cast<int>(object.attr("ndim")) > 0; }

// With a NumPy array, all is as if the value were one too.
nb::object binary(Op op, nb::handle left, nb::handle right) {
    if (is_proper_array(left) || is_proper_array(right)) {
        nb::object result = nb::steal(kOps[static_cast<int>(op)].python(as_array(left).ptr(), as_array(right).ptr()));
        if (!result.is_valid()) throw nb::python_error();
        return result;
    }
    const Value* a = value_pointer(left);
    const Value* b = value_pointer(right);
    const std::optional<Operand> x = operand_of(left, a, b), y = operand_of(right, b, a);
    if (!x || !y) return not_implemented();
    const std::optional<Operand> result = compute(op, *x, *y);
    return result ? to_python(*result) : not_implemented();
}

nb::object negate(const Value& self) {
    const Type type = self.type();
    if (type.is_bool() || type.is(Kind::transform)) return not_implemented();
    Operand operand(self);
    for (Number& number : operand.numbers) {
        number = number.is_float ? Number::real(-number.f)
                                 : Number::integer(static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(number.i)));
    }
    return to_python(operand);
}

bool equal(const Value& a, const Value& b) {
    if (a.type() != b.type()) return false;
    for (int i = 0; i < a.type().components(); ++i) {
        const Number x = a.component(i), y = b.component(i);
        if (x.is_float ? x.f != y.f : x.i != y.i) return false;
    }
    return true;
}

// Scalars compare as their numbers, aggregates of one type component by component.
nb::object compare(nb::handle left, nb::handle right, int op) {
    const auto plain = [](nb::handle object) {
        const Value* value = value_pointer(object);
        return value && value->type().is_scalar() ? number_to_python(value->component(0), value->type().scalar())
                                                  : nb::borrow(object);
    };
    const Value& self = *value_pointer(left);
    if (is_proper_array(right) || self.type().is_scalar()) {
        nb::object x = is_proper_array(right) ? as_array(left) : plain(left), y = plain(right);
        if (value_pointer(y))
            return not_implemented();  // a vector: Python then tries the other side, and compares identity
        nb::object result = nb::steal(PyObject_RichCompare(x.ptr(), y.ptr(), op));
        if (!result.is_valid()) throw nb::python_error();
        return result;
    }
    const Value* other = value_pointer(right);
    if (!other || (op != Py_EQ && op != Py_NE)) return not_implemented();
    return nb::bool_(equal(self, *other) == (op == Py_EQ));
}

template <int index>
void bind_operators(nb::class_<Value>& value_class) {
    if constexpr (index < std::size(kOps)) {
        constexpr Op op = static_cast<Op>(index);
        value_class.def(kOps[index].method, [](nb::handle self, nb::handle other) { return binary(op, self, other); });
        value_class.def(kOps[index].reflected,
                        [](nb::handle self, nb::handle other) { return binary(op, other, self); });
        bind_operators<index + 1>(value_class);
    }
}

}  // namespace

void bind_arithmetic(nb::class_<Value>& value_class) {
    bind_operators<0>(value_class);
    value_class.def("__neg__", &negate);
    value_class.def("__pos__", [](const Value& self) { return to_python(Operand(self)); });
    value_class.def("__abs__", [](const Value& self) {
        const Type type = self.type();
        if (!type.is_scalar() || type.is_bool()) return not_implemented();
        const Number number = self.component(0);
        const bool is_signed = info(type.scalar()).is_signed();
        if (number.is_float ? !std::signbit(number.f) : !is_signed || number.i >= 0) return to_python(Operand(self));
        return negate(self);
    });
    value_class.def("__eq__", [](nb::handle a, nb::handle b) { return compare(a, b, Py_EQ); });
    value_class.def("__ne__", [](nb::handle a, nb::handle b) { return compare(a, b, Py_NE); });
    value_class.def("__lt__", [](nb::handle a, nb::handle b) { return compare(a, b, Py_LT); });
    value_class.def("__le__", [](nb::handle a, nb::handle b) { return compare(a, b, Py_LE); });
    value_class.def("__gt__", [](nb::handle a, nb::handle b) { return compare(a, b, Py_GT); });
    value_class.def("__ge__", [](nb::handle a, nb::handle b) { return compare(a, b, Py_GE); });
}

}  // namespace weft::bindings
