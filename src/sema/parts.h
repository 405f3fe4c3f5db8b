// Parts of values: components, swizzles, slices, fields of structs, and elements of lists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "sema/assignment_target.h"
#include "sema/value.h"
#include "sema/value_writer.h"

namespace weft::sema {

inline constexpr std::size_t kMostListComponents = 256;  // of lists with an index that only a launch knows

// The part that value.name is, of a value of this type; empty if it is none.
std::optional<PartStep> part_attribute(Type type, const std::string& name);
// The names that a value of this type has, for messages.
std::vector<std::string> attribute_candidates(Type type);
Value part_of_list(const Value& list, const std::vector<std::int64_t>& path);
// The position of this index, which counts from the end if it is negative.
std::int64_t static_position(const Value& list, std::int64_t index, Span span);

class PartAccess {
public:
    explicit PartAccess(ir::Builder& builder) : builder_(builder), values_(builder) {}

    // A fixed part of a constant is a constant.
    Value read(const Value& object, const PartStep& step);
    ir::Value* extract(ir::Value* object, const PartStep& step);
    // `whole` with this part at the end of the steps from number `from` on.
    ir::Value* replace(ir::Value* whole, const std::vector<PartStep>& steps, std::size_t from, ir::Value* part);
    // The elements of a sequence that is known at compile time.
    std::optional<std::vector<Value>> elements(const Value& value);
    // The list as a vector of its numbers or a matrix of its vectors; null if it has other elements.
    ir::Value* as_aggregate(const Value& list, Span span);
    // The element of a list at an index that only a launch knows.
    Value element_at(const Value& list, const Value& index, Span span);

private:
    ir::Builder& builder_;
    ValueWriter values_;
};

}  // namespace weft::sema
