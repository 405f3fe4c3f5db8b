// The functions of typing.h on types alone: their parts, their components, whether they have derivatives.
#include <algorithm>

#include "ir/typing.h"
#include "support/error.h"

namespace weft::ir {

Type part_type(Type type, std::span<const std::int64_t> path) {
    for (std::size_t i = 0; i < path.size();) {
        const std::int64_t at = path[i];
        const auto within = [&](std::int64_t size) {
            if (at < 0 || at >= size) {
                throw TypeMistake("part " + std::to_string(at) + " of '" + type.ir_name() + "', which has " +
                                  std::to_string(size));
            }
        };
        if (type.is_struct()) {
            within(static_cast<std::int64_t>(type.fields().size()));
            type = type.fields()[static_cast<std::size_t>(at)].type;
            ++i;
        } else if (type.is_tuple()) {
            within(static_cast<std::int64_t>(type.elements().size()));
            type = type.elements()[static_cast<std::size_t>(at)];
            ++i;
        } else if (type.is_matrix()) {
            within(type.rows());
            type = Type::vector(type.scalar(), type.cols());
            ++i;
        } else if (type.is_numeric_aggregate()) {
            within(type.components());
            type = type.scalar_type();
            ++i;
        } else {
            throw TypeMistake("'" + type.ir_name() + "' has no parts");
        }
    }
    return type;
}

bool holds_array(Type type) {
    switch (type.kind()) {
        case Kind::array:
            return true;
        case Kind::structure:
            for (const Type::Field& field : type.fields())
                if (holds_array(field.type)) return true;
            return false;
        case Kind::tuple:
            for (Type element : type.elements())
                if (holds_array(element)) return true;
            return false;
        default:
            return false;
    }
}

int most_components(Type type) {
    if (type.is_vector() || type.is_matrix()) return type.components();
    int most = 0;
    if (type.is_struct())
        for (const Type::Field& field : type.fields()) most = std::max(most, most_components(field.type));
    if (type.is_tuple())
        for (Type element : type.elements()) most = std::max(most, most_components(element));
    return most;
}

bool is_smooth(Type type) {
    if (type.is_scalar() || type.is_numeric_aggregate()) return info(type.scalar()).is_float();
    if (type.is_struct()) {
        for (const Type::Field& field : type.fields())
            if (is_smooth(field.type)) return true;
    } else if (type.is_tuple()) {
        for (Type element : type.elements())
            if (is_smooth(element)) return true;
    }
    return false;
}

bool has_constant_result(const Operation& call) {
    return std::none_of(call.operands.begin(), call.operands.end(),
                        [](const Value* operand) { return is_smooth(operand->type) || holds_array(operand->type); });
}

Type gradient_type(const Function& function) {
    std::vector<Type> types;
    for (const Value* parameter : function.parameters())
        if (is_smooth(parameter->type)) types.push_back(parameter->type);
    if (types.size() < 2) return types.empty() ? Type::none() : types[0];
    return Type::tuple(std::move(types));
}

std::int64_t leaf_count(Type type) {
    if (type.is_scalar() || type.is_numeric_aggregate()) return type.components();
    std::int64_t count = 0;
    if (type.is_struct()) {
        for (const Type::Field& field : type.fields()) count += leaf_count(field.type);
        return count;
    }
    if (type.is_tuple()) {
        for (Type element : type.elements()) count += leaf_count(element);
        return count;
    }
    throw TypeMistake("there are no constants of type '" + type.ir_name() + "'");
}

void append_leaves(Type type, std::vector<Scalar>& out) {
    if (type.is_scalar() || type.is_numeric_aggregate()) {
        out.insert(out.end(), static_cast<std::size_t>(type.components()), type.scalar());
    } else if (type.is_struct()) {
        for (const Type::Field& field : type.fields()) append_leaves(field.type, out);
    } else if (type.is_tuple()) {
        for (Type element : type.elements()) append_leaves(element, out);
    } else {
        throw TypeMistake("there are no constants of type '" + type.ir_name() + "'");
    }
}

}  // namespace weft::ir
