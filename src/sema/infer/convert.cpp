// From analysed values to IR values, and the rule for literals: a literal takes the expected type if it fits; a typed
// value is never converted implicitly (docs/semantics.md).
#include "sema/analyzer.h"
#include "sema/literals.h"
#include "types/struct_key.h"

namespace weft::sema {

ir::Value* FunctionAnalyzer::array_of(const Value& value) {
    return value.pending.empty() ? value.ir : builder_.view(value.ir, value.pending);
}

ir::Value* FunctionAnalyzer::materialize(const Value& value, Span span) {
    switch (value.kind) {
        case Value::Kind::runtime:
            return array_of(value);
        case Value::Kind::constant: {
            if (value.type.is_struct()) {
                std::vector<ir::Value*> fields;
                for (const Value& field : value.elements) fields.push_back(materialize(field, span));
                return builder_.make(value.type, fields);
            }
            const Value settled = settle(value, span);
            return builder_.constant(settled.type, settled.numbers);
        }
        case Value::Kind::tuple: {
            std::vector<ir::Value*> parts;
            for (const Value& element : value.elements) parts.push_back(materialize(element, span));
            return builder_.make(type_of(settle(value, span)), parts);
        }
        case Value::Kind::nothing:
            fail(span, "this call returns nothing, so it cannot be used as a value");
        case Value::Kind::binding:
            break;
    }
    fail(span, describe(value) + " is no value that a kernel can compute with");
}

Value FunctionAnalyzer::settle(const Value& value, Span span) {
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
Value FunctionAnalyzer::bound(Value value, Span span) {
    if (value.is_tuple()) {
        for (Value& element : value.elements) element = bound(std::move(element), span);
        return value;
    }
    if (!value.is_literal) return value;
    settle(value, span);
    value.is_named = true;
    return value;
}

std::optional<Value> FunctionAnalyzer::adapt(const Value& literal, Type type, Span span) {
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

Value FunctionAnalyzer::expect(const Value& value, Type type, Span span, const std::string& what) {
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

ir::Value* FunctionAnalyzer::index(const Value& value, Span span) {
    if (!type_of(value).is_int()) {
        fail(span, "an index must be an integer, not " + describe(value),
             {help(type_of(value).is_float() ? "write int(...) to convert" : "index with an int32 or another integer")},
             ErrorCategory::index);
    }
    return materialize(value, span);
}

void FunctionAnalyzer::flatten(const Value& value, Span span, std::vector<ir::Value*>& leaves) {
    if (value.is_tuple()) {
        for (const Value& element : value.elements) flatten(element, span, leaves);
    } else {
        leaves.push_back(materialize(value, span));
    }
}

Value FunctionAnalyzer::rebuild(const Value& shape, const std::vector<ir::Value*>& leaves, std::size_t& next) {
    if (!shape.is_tuple()) return Value::runtime(leaves[next++]);
    Value result = shape;
    for (Value& element : result.elements) element = rebuild(element, leaves, next);
    return result;
}

Value FunctionAnalyzer::from_ir(ir::Value* value) {
    if (!value->type.is_tuple()) return Value::runtime(value);
    std::vector<Value> elements;
    for (std::size_t i = 0; i < value->type.elements().size(); ++i) {
        elements.push_back(from_ir(builder_.extract(value, {static_cast<std::int64_t>(i)})));
    }
    return Value::tuple(std::move(elements));
}

bool FunctionAnalyzer::can_be_carried(const Value& value) const {
    if (value.is_tuple()) {
        for (const Value& element : value.elements) {
            if (!can_be_carried(element)) return false;
        }
        return true;
    }
    return value.is_constant() || value.is_runtime();
}

Value FunctionAnalyzer::zero_like(const Value& value) {
    if (value.is_tuple()) {
        Value result = value;
        for (Value& element : result.elements) element = zero_like(element);
        return result;
    }
    return Value::runtime(builder_.zero(value.type));
}

}  // namespace weft::sema
