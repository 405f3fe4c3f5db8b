// Staged expressions: C++ that reads like the mathematics and writes IR.
//
//   const E l = sqrt(dot(v, v));
//   return select(l > 0, v / l, 0);
//
// An E is a value of the function being built, together with the builder that writes its uses. Arithmetic is component
// by component. A scalar is broadcast to the shape of an aggregate, and a C++ number takes the scalar type of the other
// operand: one formula serves f16, f32, f64 and integers. Nothing is folded here: transform/simplify does that.
#pragma once

#include <functional>
#include <initializer_list>
#include <vector>

#include "ir/builder.h"
#include "ir/loop_builder.h"

namespace weft::ir::staged {

class E {
public:
    E(Builder& builder, Value* value) : builder_(&builder), value_(value) {}

    operator Value*() const { return value_; }
    Value* value() const { return value_; }
    Builder& builder() const { return *builder_; }
    Type type() const { return value_->type; }
    const ScalarInfo& scalar() const { return info(value_->type.scalar()); }
    int components() const { return value_->type.components(); }

    // A number in the scalar type of this expression.
    E number(double v) const {
        const Type scalar_type = value_->type.scalar_type();
        return {*builder_, scalar().is_float() ? builder_->real(v, scalar_type)
                                               : builder_->integer(static_cast<std::int64_t>(v), scalar_type)};
    }
    E wrap(Value* v) const { return {*builder_, v}; }
    E zero() const { return wrap(builder_->zero(type())); }

    // Component of a vector, quaternion or transform; entry of a matrix; element of a tuple.
    E operator[](std::int64_t i) const { return wrap(builder_->extract(value_, {i})); }
    E at(std::int64_t row, std::int64_t col) const { return wrap(builder_->extract(value_, {row, col})); }
    // The i-th component in memory order, of any numeric aggregate; a scalar is its own only component.
    E component(int i) const {
        if (type().is_scalar()) return *this;
        return type().is_matrix() ? at(i / type().cols(), i % type().cols()) : (*this)[i];
    }
    E with_component(int i, E part) const {
        return type().is_matrix() ? wrap(builder_->insert(value_, part, {i / type().cols(), i % type().cols()}))
                                  : wrap(builder_->insert(value_, part, {i}));
    }

private:
    Builder* builder_;
    Value* value_;
};

// ---- making ----
inline E make(Type type, const std::vector<E>& parts) {
    return parts.front().wrap(parts.front().builder().make(type, {parts.begin(), parts.end()}));
}
inline E make_vector(const std::vector<E>& parts) {
    return make(Type::vector(parts.front().type().scalar(), static_cast<int>(parts.size())), parts);
}
inline E make_quaternion(E x, E y, E z, E w) { return make(Type::quaternion(x.type().scalar()), {x, y, z, w}); }
// Row-major.
inline E make_matrix(int rows, int cols, const std::vector<E>& parts) {
    return make(Type::matrix(parts.front().type().scalar(), rows, cols), parts);
}
inline E make_tuple(const std::vector<E>& parts) {
    std::vector<Type> types;
    for (const E& part : parts) types.push_back(part.type());
    return make(Type::tuple(std::move(types)), parts);
}
inline E splat(Type type, E scalar) { return scalar.wrap(scalar.builder().splat(type, scalar)); }
inline E cast(E a, Scalar to) { return a.type().scalar() == to ? a : a.wrap(a.builder().cast(a, to)); }
inline E bitcast(E a, Scalar to) { return a.type().scalar() == to ? a : a.wrap(a.builder().bitcast(a, to)); }

// ---- operations, component by component ----
inline E unary(Op op, E a) { return a.wrap(a.builder().unary(op, a)); }
inline E binary(Op op, E a, E b) {
    if (a.type().is_scalar() && !b.type().is_scalar()) a = splat(b.type(), a);
    if (b.type().is_scalar() && !a.type().is_scalar()) b = splat(a.type(), b);
    return a.wrap(a.builder().binary(op, a, b));
}
inline E compare(Op op, E a, E b) { return a.wrap(a.builder().compare(op, a, b)); }

inline E operator-(E a) { return unary(Op::neg, a); }
inline E operator!(E a) { return unary(Op::invert, a); }

#define WEFT_BINARY(function, op)                                               \
    inline E function(E a, E b) { return binary(Op::op, a, b); }                \
    inline E function(E a, double b) { return binary(Op::op, a, a.number(b)); } \
    inline E function(double a, E b) { return binary(Op::op, b.number(a), b); }
WEFT_BINARY(operator+, add)
WEFT_BINARY(operator-, sub)
WEFT_BINARY(operator*, mul)
WEFT_BINARY(operator/, div)
WEFT_BINARY(operator%, rem)
WEFT_BINARY(operator&, and_)
WEFT_BINARY(operator|, or_)
WEFT_BINARY(operator^, xor_)
WEFT_BINARY(operator<<, shl)
WEFT_BINARY(operator>>, shr)
WEFT_BINARY(min, min)
WEFT_BINARY(max, max)
WEFT_BINARY(pow, pow)
WEFT_BINARY(atan2, atan2)
#undef WEFT_BINARY
#define WEFT_COMPARE(function, op)                                \
    inline E function(E a, E b) { return compare(Op::op, a, b); } \
    inline E function(E a, double b) { return compare(Op::op, a, a.number(b)); }
WEFT_COMPARE(operator<, cmp_lt)
WEFT_COMPARE(operator<=, cmp_le)
WEFT_COMPARE(operator>, cmp_gt)
WEFT_COMPARE(operator>=, cmp_ge)
WEFT_COMPARE(operator==, cmp_eq)
WEFT_COMPARE(operator!=, cmp_ne)
#undef WEFT_COMPARE
inline E operator&&(E a, E b) { return binary(Op::and_, a, b); }  // both evaluated
inline E operator||(E a, E b) { return binary(Op::or_, a, b); }

inline E abs(E a) { return a.scalar().is_signed() ? unary(Op::abs, a) : a; }
inline E sqrt(E a) { return unary(Op::sqrt, a); }
inline E cbrt(E a) { return unary(Op::cbrt, a); }
inline E sin(E a) { return unary(Op::sin, a); }
inline E cos(E a) { return unary(Op::cos, a); }
inline E asin(E a) { return unary(Op::asin, a); }
inline E acos(E a) { return unary(Op::acos, a); }
inline E exp(E a) { return unary(Op::exp, a); }
inline E log(E a) { return unary(Op::log, a); }
inline E floor(E a) { return unary(Op::floor, a); }
inline E trunc(E a) { return unary(Op::trunc, a); }

// a * b + c, rounded once.
inline E fma(E a, E b, E c) { return a.wrap(a.builder().fma(a, b, c)); }

inline E select(E condition, E a, E b) { return a.wrap(a.builder().select(condition, a, b)); }
inline E select(E condition, E a, double b) {
    return select(condition, a, a.type().is_scalar() ? a.number(b) : splat(a.type(), a.number(b)));
}
inline E select(E condition, double a, E b) {
    return select(condition, b.type().is_scalar() ? b.number(a) : splat(b.type(), b.number(a)), b);
}
// At equality the gradient goes to x: min and max give their first operand if both are equal.
inline E clamp(E x, E low, E high) { return min(max(x, low), high); }

// ---- algebra ----
inline E sum(E aggregate) { return aggregate.wrap(aggregate.builder().reduce_add(aggregate)); }
inline E dot(E a, E b) { return sum(a * b); }
// The root of a sum of squares. The gradient at zero is zero and not NaN: the square root never sees a zero.
inline E root_of_squares(E sum_of_squares) {
    const E is_zero = sum_of_squares == 0;
    return select(is_zero, 0, sqrt(select(is_zero, 1, sum_of_squares)));
}
inline E length(E a) { return root_of_squares(dot(a, a)); }
inline E matmul(E a, E b) { return a.wrap(a.builder().matmul(a, b)); }
inline E transpose(E a) { return a.wrap(a.builder().transpose(a)); }
// Zero stays zero. The square root and the quotient never see a zero, so the gradient there is zero and not NaN.
inline E normalize(E a) {
    const E square = dot(a, a);
    const E is_positive = square > 0;
    return select(is_positive, a / sqrt(select(is_positive, square, 1)), 0);
}
inline E cross(E a, E b) {
    return make_vector({a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]});
}

// ---- control ----
// Runs one of the two and gives its value: for arms that must not be evaluated (or differentiated) unless taken.
inline E branch(E condition, Type type, const std::function<E()>& then, const std::function<E()>& otherwise) {
    Builder& b = condition.builder();
    Operation* chosen = b.if_(condition, {type});
    for (std::size_t arm = 0; arm < 2; ++arm) {
        Builder::Inside inside(b, chosen->body(arm));
        b.yield({arm == 0 ? then() : otherwise()});
    }
    return {b, chosen->result()};
}

// Runs `body` on the carried values, at first `start`, as long as `condition` holds. Returns the last ones.
inline std::vector<E> while_loop(const std::vector<E>& start, const std::function<E(const std::vector<E>&)>& condition,
                                 const std::function<std::vector<E>(const std::vector<E>&)>& body) {
    Builder& b = start[0].builder();
    const auto staged = [&](const std::vector<Value*>& values) {
        std::vector<E> carried;
        for (Value* value : values) carried.emplace_back(b, value);
        return carried;
    };
    return staged(build_while(
        b, {start.begin(), start.end()}, [&](const auto& values) -> Value* { return condition(staged(values)); },
        [&](const auto& values) {
            const std::vector<E> next = body(staged(values));
            return std::vector<Value*>(next.begin(), next.end());
        }));
}

}  // namespace weft::ir::staged
