// Writes analysed values as IR.
#pragma once

#include <vector>

#include "ir/builder.h"
#include "sema/value.h"

namespace weft::sema {

class ValueWriter {
public:
    explicit ValueWriter(ir::Builder& builder) : builder_(builder) {}

    ir::Value* materialize(const Value& value, Span span);
    // The array, with its pending indices applied.
    ir::Value* array_of(const Value& value);
    // An integer, as it is.
    ir::Value* index(const Value& value, Span span);
    // Appends the IR values of which the value consists: several for a tuple.
    void flatten(const Value& value, Span span, std::vector<ir::Value*>& leaves);
    // The value; a tuple is taken apart.
    Value from_ir(ir::Value* value);
    Value zero_like(const Value& value);
    ir::Value* truth(const Value& value, Span span);
    Value logical_not(const Value& value, Span span);

private:
    ir::Builder& builder_;
};

}  // namespace weft::sema
