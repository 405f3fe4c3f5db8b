// Python's functions of sequences, min(a, b, c), sum(v), any(t); and the arrays that kernels make:
//
//   wp.zeros(shape=(3, 4), dtype=float)           →   local_array [3, 4] : array<f32, 2>
//   wp.array(ptr=p, shape=n, dtype=wp.vec3)       →   array_at %p, %n : array<vec3<f32>, 1>
#include "sema/analyzer.h"

namespace weft::sema {

// Empty if the builtin table decides about the call: one with keywords, two arguments, or one argument that is no tuple
// if the table has the function.
std::optional<Value> FunctionAnalyzer::fold_sequence(const std::string& name, const std::vector<Actual>& arguments,
                                                     Span span) {
    const bool is_choice = name == "min" || name == "max";
    for (const Actual& a : arguments) {
        if (!a.keyword.empty()) return std::nullopt;
    }
    std::vector<Actual> values;
    if (is_choice && arguments.size() > 2) {
        values = arguments;
    } else if (arguments.size() == 1) {
        const Actual& only = arguments[0];
        if (!only.value.is_tuple() && !builtins::overloads(name).empty()) return std::nullopt;
        const std::optional<std::vector<Value>> found = parts_.elements(only.value);
        if (!found) {
            fail(only.span, name + "() takes a tuple or a vector in kernels, not " + describe(only.value),
                 {help(type_of(only.value).is_array() ? "loop over the elements, or use an atomic" : "write a tuple")});
        }
        for (const Value& value : *found) values.push_back(Actual{value, only.span, {}, nullptr});
    } else {
        return std::nullopt;
    }
    if (name == "any" || name == "all") {
        Value result = Value::boolean(name == "all");
        for (const Actual& a : values) {
            const std::optional<bool> known = constant_truth(a.value);
            if (known && *known == (name == "any")) return Value::boolean(*known);
            if (known) continue;
            ir::Value* one = values_.truth(a.value, a.span);
            const ir::Op op = name == "any" ? ir::Op::or_ : ir::Op::and_;
            result = Value::runtime(result.is_constant() ? one : builder_.binary(op, result.ir, one));
        }
        return result;
    }
    if (values.empty()) {
        if (name == "sum") return Value::literal(Number::integer(0));
        fail(span, name + "() of nothing has no value", {}, ErrorCategory::value);
    }
    Value result = values[0].value;
    for (std::size_t i = 1; i < values.size(); ++i) {
        if (name == "sum")
            result = binary(syntax::BinaryOperator::add, result, values[i].value, span, values[0].span, values[i].span);
        else
            result = call_builtin(name, {Actual{result, values[0].span, {}, nullptr}, values[i]}, span);
    }
    return result;
}

namespace {

struct ArrayArguments {
    const Actual *pointer = nullptr, *shape = nullptr;
    Type element = f32_type();
};

// wp.zeros(shape, dtype) and wp.array(ptr, shape, dtype).
ArrayArguments array_arguments(const std::string& name, const std::vector<Actual>& arguments, Span span) {
    std::vector<std::string> order = {"shape", "dtype"};
    if (name == "array") order.insert(order.begin(), "ptr");
    ArrayArguments result;
    std::size_t next = 0;
    for (const Actual& a : arguments) {
        if (a.keyword.empty() && next >= order.size())
            fail(a.span, "wp." + name + "() has no argument after dtype in kernels");
        const std::string which = a.keyword.empty() ? order[next++] : a.keyword;
        if (which == "ptr" && name == "array") {
            result.pointer = &a;
        } else if (which == "shape") {
            result.shape = &a;
        } else if (which == "dtype") {
            if (!a.value.is_binding(Binding::Kind::type))
                fail(a.span, "dtype of wp." + name + "() must be a type, not " + describe(a.value));
            result.element = a.value.binding->type;
            if (result.element.is_array()) fail(a.span, "arrays of arrays cannot be made in kernels");
        } else {
            fail(a.span, "wp." + name + "() has no parameter '" + which + "' in kernels",
                 {help(name == "array" ? "it has ptr, shape and dtype" : "it has shape and dtype")});
        }
    }
    if (!result.shape) {
        fail(span, "wp." + name + "() needs its shape in kernels",
             {help(name == "array" ? "write wp.array(ptr=address, shape=(n,), dtype=float)"
                                   : "write wp.zeros(shape=(3,), dtype=float)")});
    }
    return result;
}

std::vector<Value> extents_of(const Actual& shape, const std::string& name) {
    const std::vector<Value> extents = shape.value.is_tuple() ? shape.value.elements : std::vector<Value>{shape.value};
    if (extents.empty() || extents.size() > 4) {
        fail(shape.span, "arrays have 1 to 4 dimensions, wp." + name + "() got " + std::to_string(extents.size()), {},
             ErrorCategory::value);
    }
    return extents;
}

}  // namespace

Value FunctionAnalyzer::local_array(const std::vector<Actual>& arguments, Span span) {
    const ArrayArguments given = array_arguments("zeros", arguments, span);
    std::vector<std::int64_t> shape;
    for (const Value& extent : extents_of(*given.shape, "zeros")) {
        if (!extent.is_constant_integer()) {
            fail(given.shape->span,
                 "the shape of wp.zeros() in a kernel must be known at compile time, not " + describe(extent),
                 {help("write numbers or constants; an array of another size is an argument of the kernel")});
        }
        if (extent.numbers[0].i < 1 || extent.numbers[0].i > 1 << 20) {
            fail(given.shape->span,
                 "an extent of wp.zeros() in a kernel is " + std::to_string(extent.numbers[0].i) +
                     ", expected 1 to 1048576",
                 {}, ErrorCategory::value);
        }
        shape.push_back(extent.numbers[0].i);
    }
    builder_.span = span;
    const Type type = Type::array(given.element, static_cast<int>(shape.size()));
    return Value::runtime(builder_.local_array(type, std::move(shape)));
}

Value FunctionAnalyzer::array_at(const std::vector<Actual>& arguments, Span span) {
    const ArrayArguments given = array_arguments("array", arguments, span);
    if (!given.pointer) {
        fail(span, "wp.array() in a kernel makes a view of memory at an address and needs ptr",
             {help("write wp.array(ptr=address, shape=(n,), dtype=float), or wp.zeros(shape=(3,), dtype=float) for a "
                   "small array of this thread")});
    }
    ir::Value* address = values_.materialize(
        expect(given.pointer->value, u64_type(), given.pointer->span, "ptr of wp.array()"), given.pointer->span);
    std::vector<ir::Value*> extents;
    for (const Value& extent : extents_of(*given.shape, "array")) {
        ir::Value* number = values_.index(extent, given.shape->span);
        extents.push_back(number->type == i32_type() ? number : builder_.cast(number, Scalar::i32));
    }
    builder_.span = span;
    const Type type = Type::array(given.element, static_cast<int>(extents.size()));
    return Value::runtime(builder_.array_at(type, address, std::move(extents)));
}

}  // namespace weft::sema
