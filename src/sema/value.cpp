#include "sema/value.h"

#include <algorithm>

#include "sema/literals.h"

namespace weft::sema {

Value Value::runtime(ir::Value* ir) {
    Value v;
    v.kind = Kind::runtime;
    v.type = ir->type;
    v.ir = ir;
    return v;
}

Value Value::constant(Type type, std::vector<Number> numbers) {
    Value v;
    v.kind = Kind::constant;
    v.type = type;
    v.numbers = std::move(numbers);
    return v;
}

Value Value::integer(std::int64_t value, Type type) { return constant(type, {Number::integer(value)}); }

Value Value::boolean(bool value) { return constant(bool_type(), {Number::integer(value ? 1 : 0)}); }

Value Value::literal(Number number) {
    Value v = constant(number.is_float ? f32_type() : i32_type(), {number});
    v.is_literal = true;
    return v;
}

Value Value::tuple(std::vector<Value> elements) {
    Value v;
    v.kind = Kind::tuple;
    v.elements = std::move(elements);
    return v;
}

Value Value::list(std::vector<Value> elements) {
    Value v = tuple(std::move(elements));
    v.is_list = true;
    return v;
}

Value Value::of_binding(Binding binding) {
    Value v;
    v.kind = Kind::binding;
    v.binding = std::make_shared<const Binding>(std::move(binding));
    return v;
}

Type type_of(const Value& value) {
    if (!value.is_tuple()) return value.type;
    std::vector<Type> types;
    for (const Value& element : value.elements) types.push_back(type_of(element));
    return Type::tuple(std::move(types));
}

std::string describe(const Value& value) {
    switch (value.kind) {
        case Value::Kind::nothing:
            return "nothing";
        case Value::Kind::runtime:
            return value.type.python_name();
        case Value::Kind::constant:
            if (!value.is_literal) return value.type.python_name();
            return (value.numbers[0].is_float ? "the float literal " : "the int literal ") + spelling(value.numbers[0]);
        case Value::Kind::tuple: {
            std::string text = value.is_list ? "a list of (" : "a tuple of (";
            for (std::size_t i = 0; i < value.elements.size(); ++i) {
                text += (i ? ", " : "") + describe(value.elements[i]);
            }
            return text + ")";
        }
        case Value::Kind::binding:
            break;
    }
    const Binding& b = *value.binding;
    switch (b.kind) {
        case Binding::Kind::string:
            return "the string \"" + b.text + "\"";
        case Binding::Kind::none:
            return "None";
        case Binding::Kind::type:
            return "the type " + b.type.python_name();
        case Binding::Kind::builtin:
            return "the built-in function '" + b.text + "'";
        case Binding::Kind::function:
            return "the function '" + b.function->tree->name + "'";
        case Binding::Kind::closure:
            return b.lambda->function->name == "lambda" ? "a lambda"
                                                        : "the inner function '" + b.lambda->function->name + "'";
        case Binding::Kind::exception:
            return "the exception class " + b.text;
        case Binding::Kind::object:
            return b.text.empty() ? "a Python object" : b.text;
        case Binding::Kind::unsupported:
            return b.text;
        default:
            return "an unknown name";
    }
}

namespace {

bool same_binding(const Binding& a, const Binding& b) {
    if (a.kind != b.kind || !(a.type == b.type) || a.text != b.text || a.object != b.object || a.lambda != b.lambda)
        return false;
    if (a.kind == Binding::Kind::function) return a.function->key == b.function->key;
    return true;
}

}  // namespace

Value detached(Value value) {
    value.view = nullptr;
    return value;
}

bool show_alike(const Value& a, const Value& b) {
    if (!a.view || !b.view) return !a.view && !b.view;
    return a.view->root == b.view->root && a.view->strides == b.view->strides;
}

bool identical(const Value& a, const Value& b) {
    if (a.kind != b.kind) return false;
    if (a.view || b.view) return a.view && b.view && a.type == b.type && *a.view == *b.view;
    switch (a.kind) {
        case Value::Kind::nothing:
            return true;
        case Value::Kind::runtime:
            return a.ir == b.ir && a.pending == b.pending;
        case Value::Kind::constant: {
            if (!(a.type == b.type) || a.is_literal != b.is_literal || a.numbers.size() != b.numbers.size())
                return false;
            for (std::size_t i = 0; i < a.numbers.size(); ++i) {
                if (!same_bits(a.numbers[i], b.numbers[i])) return false;
            }
            [[fallthrough]];  // of a struct: its fields
        }
        case Value::Kind::tuple:
            if (a.elements.size() != b.elements.size()) return false;
            for (std::size_t i = 0; i < a.elements.size(); ++i) {
                if (!identical(a.elements[i], b.elements[i])) return false;
            }
            return true;
        case Value::Kind::binding:
            if (a.binding != b.binding && !same_binding(*a.binding, *b.binding)) return false;
            return std::ranges::equal(a.elements, b.elements, identical);
    }
    return false;
}

Binding to_binding(const Value& value) {
    Binding b;
    if (value.is_binding()) return *value.binding;
    if (value.is_constant() && !value.type.is_struct()) {
        b.kind = Binding::Kind::constant;
        b.type = value.type;
        b.numbers = value.numbers;
        b.is_literal = value.is_literal;
    } else if (value.is_tuple()) {
        b.kind = Binding::Kind::tuple;
        for (const Value& element : value.elements) {
            b.elements.push_back(to_binding(element));
            if (b.elements.back().kind == Binding::Kind::unknown) return Binding{};
        }
    }
    return b;
}

}  // namespace weft::sema
