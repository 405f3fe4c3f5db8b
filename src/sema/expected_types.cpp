#include "sema/expected_types.h"

#include "sema/literals.h"
#include "sema/messages.h"
#include "types/struct_key.h"

namespace weft::sema {

Value settle(const Value& value, Span span) {
    if (value.is_tuple()) {
        Value result = value;
        for (Value& element : result.elements) element = settle(element, span);
        return result;
    }
    if (!value.is_constant() || !value.is_literal) return value;
    const Number number = value.numbers[0];
    const Scalar scalar = number.is_float ? Scalar::f32 : Scalar::i32;
    if (!literal_fits(number, scalar)) {
        if (number.is_float) {
            fail(span, "the number " + spelling(number) + " is too large for float32",
                 {help("write wp.float64(" + spelling(number) + ")")}, ErrorCategory::value);
        }
        fail(span, "the integer " + spelling(number) + " does not fit int32, whose range is " + range_text(scalar),
             {help("write wp.int64(" + spelling(number) + ")")}, ErrorCategory::value);
    }
    return Value::constant(Type::scalar(scalar), {literal_as(number, scalar)});
}

// The value of a local that is bound to this value. A literal stays one; it must fit its default type.
Value bound(Value value, Span span) {
    if (value.is_tuple()) {
        for (Value& element : value.elements) element = bound(std::move(element), span);
        return value;
    }
    if (!value.is_literal) return value;
    settle(value, span);
    value.is_named = true;
    return value;
}

std::optional<Value> adapt(const Value& literal, Type type, Span span) {
    if (!literal.is_constant() || !literal.is_literal || !type.is_scalar()) return std::nullopt;
    const Number number = literal.numbers[0];
    if (literal_fits(number, type.scalar())) return Value::constant(type, {literal_as(number, type.scalar())});
    if (!number.is_float && type.is_int()) {
        fail(span,
             "the integer " + spelling(number) + " does not fit " + type.python_name() + ", whose range is " +
                 range_text(type.scalar()),
             {help("write wp.int64(" + spelling(number) + ") and make the other operand a wp.int64 too")},
             ErrorCategory::value);
    }
    return std::nullopt;
}

Value expect(const Value& value, Type type, Span span, const std::string& what) {
    if (std::optional<Value> adapted = adapt(value, type, span)) return *adapted;
    if (value.is_tuple() && type.is_tuple() && value.elements.size() == type.elements().size()) {
        Value result = value;
        for (std::size_t i = 0; i < result.elements.size(); ++i) {
            result.elements[i] = expect(value.elements[i], type.elements()[i], span, what);
        }
        return result;
    }
    if (type_of(value) == type && !value.is_binding() && !value.is_nothing()) return settle(value, span);
    std::vector<Note> notes;
    if (type.is_scalar() && type_of(value).is_scalar()) {
        const std::string constructor = type.is_bool() ? "bool" : "wp." + type.python_name();
        notes.push_back(help("values never convert by themselves; write " + constructor + "(...)"));
    }
    if (std::string again = redefinition_text(type_of(value), type); !again.empty()) notes.push_back(help(again));
    fail(span, what + " is " + describe(value) + ", expected " + type.python_name(), std::move(notes));
}

Value rebuild(const Value& shape, const std::vector<ir::Value*>& leaves, std::size_t& next) {
    if (!shape.is_tuple() && !shape.view) return Value::runtime(leaves[next++]);
    Value result = shape;
    if (shape.view) {
        auto view = std::make_shared<TileView>(*shape.view);
        view->base = 0;
        view->offset = leaves[next++];
        result.view = std::move(view);
        return result;
    }
    for (Value& element : result.elements) element = rebuild(element, leaves, next);
    return result;
}

bool can_be_carried(const Value& value) {
    if (value.is_tuple()) {
        for (const Value& element : value.elements) {
            if (!can_be_carried(element)) return false;
        }
        return true;
    }
    return value.is_constant() || value.is_runtime();
}

std::optional<bool> constant_truth(const Value& value) {
    if (value.is_binding(Binding::Kind::none)) return false;
    if (value.is_tuple()) return !value.elements.empty();
    if (!value.is_constant_scalar()) return std::nullopt;
    const Number n = value.numbers[0];
    return n.is_float ? n.f != 0.0 : n.i != 0;
}

Value from_binding(Binding binding, const std::string& spelled, Span span) {
    switch (binding.kind) {
        case Binding::Kind::constant: {
            WEFT_CHECK(!binding.numbers.empty(), "a constant binding has no numbers");
            // An int that only fits uint64 has that type; its bits would not tell it from a negative one.
            const bool is_untyped = binding.is_literal && !binding.type.is_bool() && !(binding.type == u64_type());
            if (is_untyped) return Value::literal(binding.numbers[0]);
            return Value::constant(binding.type, std::move(binding.numbers));
        }
        case Binding::Kind::tuple: {
            std::vector<Value> elements;
            for (Binding& element : binding.elements)
                elements.push_back(from_binding(std::move(element), spelled, span));
            if (!binding.type.is_struct()) return Value::tuple(std::move(elements));
            Value value = Value::constant(binding.type, {});
            for (std::size_t i = 0; i < elements.size(); ++i) {
                const Type::Field& field = binding.type.fields()[i];
                value.elements.push_back(
                    expect(elements[i], field.type, span, "field '" + field.name + "' of '" + spelled + "'"));
            }
            return value;
        }
        case Binding::Kind::unsupported:
            if (binding.text.find("are not there yet") != std::string::npos) fail(span, binding.text);
            // A function of the program itself may have any name.
            if (std::vector<Note> ours = weft_counterpart(spelled);
                !ours.empty() && !binding.text.ends_with("made with @wp.func)"))
                fail(span, "kernels cannot use '" + spelled + "', which is " + binding.text, std::move(ours));
            if (binding.text.starts_with("the Python function") && !binding.text.ends_with(")"))
                fail(span, "kernels cannot use '" + spelled + "', which is " + binding.text,
                     {help("kernels have nothing of that name: write it as a @wp.func, or run it before the launch; "
                           "wp.static(...) runs it when the kernel is built")});
            // Some texts say already how to proceed.
            if (binding.text.ends_with(")"))
                fail(span, "kernels cannot use '" + spelled + "', which is " + binding.text);
            fail(span, "kernels cannot use '" + spelled + "', which is " + binding.text,
                 {help("pass arrays and values that change as arguments; constants may be Python numbers, vectors and "
                       "matrices, or wp.constant(...)")});
        case Binding::Kind::unknown:
            fail(span, "'" + spelled + "' is not defined", {}, ErrorCategory::name);
        default:
            return Value::of_binding(std::move(binding));
    }
}

}  // namespace weft::sema
