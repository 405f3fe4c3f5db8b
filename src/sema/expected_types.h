// Types of values, without writing IR. A literal takes the expected type if it fits; a typed value is never converted
// implicitly (docs/semantics.md).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sema/environment.h"
#include "sema/value.h"

namespace weft::sema {

// Gives literals their own type, inside tuples too.
Value settle(const Value& value, Span span);
// The value of a local that is bound to this value. A literal stays one; it must fit its default type.
Value bound(Value value, Span span);
// The literal in this type; empty if the value is no literal, or one of another kind.
std::optional<Value> adapt(const Value& literal, Type type, Span span);
// The value in this type: a literal adapts, all others must have it. Messages call the value `what`.
Value expect(const Value& value, Type type, Span span, const std::string& what);
// Whether the value is known at compile time to be true or false.
std::optional<bool> constant_truth(const Value& value);
// Whether a branch or a loop can yield it.
bool can_be_carried(const Value& value);
// A value of this shape of the leaves from `next` on, in the order of ValueWriter::flatten().
Value rebuild(const Value& shape, const std::vector<ir::Value*>& leaves, std::size_t& next);
// The value of a name of the environment. Messages call it `spelled`.
Value from_binding(Binding binding, const std::string& spelled, Span span);

}  // namespace weft::sema
