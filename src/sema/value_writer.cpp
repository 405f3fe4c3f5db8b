#include "sema/value_writer.h"

#include "sema/expected_types.h"
#include "sema/messages.h"

namespace weft::sema {

ir::Value* ValueWriter::array_of(const Value& value) {
    return value.pending.empty() ? value.ir : builder_.view(value.ir, value.pending);
}

ir::Value* ValueWriter::materialize(const Value& value, Span span) {
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

ir::Value* ValueWriter::index(const Value& value, Span span) {
    if (!type_of(value).is_int()) {
        fail(span, "an index must be an integer, not " + describe(value),
             {help(type_of(value).is_float() ? "write int(...) to convert" : "index with an int32 or another integer")},
             ErrorCategory::index);
    }
    return materialize(value, span);
}

void ValueWriter::flatten(const Value& value, Span span, std::vector<ir::Value*>& leaves) {
    if (value.is_tuple()) {
        for (const Value& element : value.elements) flatten(element, span, leaves);
    } else if (value.view) {  // the tile itself is another local
        ir::Value* const base = builder_.integer(value.view->base);
        leaves.push_back(value.view->offset ? builder_.binary(ir::Op::add, value.view->offset, base) : base);
    } else {
        leaves.push_back(materialize(value, span));
    }
}

Value ValueWriter::from_ir(ir::Value* value) {
    if (!value->type.is_tuple()) return Value::runtime(value);
    std::vector<Value> elements;
    for (std::size_t i = 0; i < value->type.elements().size(); ++i) {
        elements.push_back(from_ir(builder_.extract(value, {static_cast<std::int64_t>(i)})));
    }
    return Value::tuple(std::move(elements));
}

Value ValueWriter::zero_like(const Value& value) {
    if (value.is_tuple()) {
        Value result = value;
        for (Value& element : result.elements) element = zero_like(element);
        return result;
    }
    if (value.view) {
        Value result = value;
        auto view = std::make_shared<TileView>(*value.view);
        view->offset = nullptr;
        result.view = std::move(view);
        return result;
    }
    return Value::runtime(builder_.zero(value.type));
}

ir::Value* ValueWriter::truth(const Value& value, Span span) {
    if (const std::optional<bool> known = constant_truth(value)) return builder_.boolean(*known);
    const Type type = value.type;
    if (type.is_bool()) return materialize(value, span);
    if (type.is_int() || type.is_float()) {
        return builder_.compare(ir::Op::cmp_ne, materialize(value, span), builder_.zero(type));
    }
    // An array is true unless it was passed as None.
    if (type.is_array()) return builder_.unary(ir::Op::invert, builder_.is_null(materialize(value, span)));
    fail(span, "a condition must be a bool or a number, not " + describe(value),
         {help(type.is_numeric_aggregate() ? "compare components, or write wp.length(v) > 0.0"
                                           : "compare it with something")});
}

Value ValueWriter::logical_not(const Value& value, Span span) {
    if (const std::optional<bool> known = constant_truth(value)) return Value::boolean(!*known);
    if (value.type.is_array()) return Value::runtime(builder_.is_null(materialize(value, span)));
    return Value::runtime(builder_.unary(ir::Op::invert, truth(value, span)));
}

}  // namespace weft::sema
