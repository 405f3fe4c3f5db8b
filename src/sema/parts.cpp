#include "sema/parts.h"

#include <string_view>

#include "ir/indices.h"
#include "sema/expected_types.h"
#include "sema/messages.h"

namespace weft::sema {

namespace {

constexpr std::string_view kComponentNames = "xyzw";

// "zyx" -> {2, 1, 0}; empty if a letter names no component.
std::vector<std::int64_t> swizzle(Type type, const std::string& name) {
    if (!type.is_vector() && !type.is(Kind::quaternion)) return {};
    if (name.empty() || name.size() > 4) return {};
    std::vector<std::int64_t> components;
    for (const char letter : name) {
        const std::size_t component = kComponentNames.find(letter);
        if (component == std::string_view::npos || static_cast<int>(component) >= type.rows()) return {};
        components.push_back(static_cast<std::int64_t>(component));
    }
    return components;
}

}  // namespace

std::vector<std::int64_t> component_path(Type aggregate, std::int64_t number) {
    if (!aggregate.is_matrix()) return {number};
    return {number / aggregate.cols(), number % aggregate.cols()};
}

std::optional<PartStep> part_attribute(Type type, const std::string& name) {
    PartStep step;
    if (type.is_struct()) {
        const std::optional<int> field = type.field_index(name);
        if (!field) return std::nullopt;
        step.path = {*field};
        step.type = type.fields()[*field].type;
        return step;
    }
    if (type.is(Kind::transform) && (name == "p" || name == "q")) {
        step.kind = PartStep::Kind::several;
        step.whole = type;
        step.components = name == "p" ? std::vector<std::int64_t>{0, 1, 2} : std::vector<std::int64_t>{3, 4, 5, 6};
        step.type = name == "p" ? Type::vector(type.scalar(), 3) : Type::quaternion(type.scalar());
        return step;
    }
    std::vector<std::int64_t> components = swizzle(type, name);
    if (components.empty()) return std::nullopt;
    if (components.size() == 1) {
        step.path = std::move(components);
        step.type = type.scalar_type();
        return step;
    }
    step.kind = PartStep::Kind::several;
    step.whole = type;
    step.type = Type::vector(type.scalar(), static_cast<int>(components.size()));
    step.components = std::move(components);
    return step;
}

std::vector<std::string> attribute_candidates(Type type) {
    std::vector<std::string> names;
    if (type.is_struct()) {
        for (const Type::Field& field : type.fields()) names.push_back(field.name);
    } else if (type.is_vector() || type.is(Kind::quaternion)) {
        for (int i = 0; i < type.rows() && i < 4; ++i) names.emplace_back(1, kComponentNames[i]);
    } else if (type.is(Kind::transform)) {
        names = {"p", "q"};
    } else if (type.is_array()) {
        names = {"shape", "ndim", "size", "dtype", "grad", "ptr"};
    }
    return names;
}

Value part_of_list(const Value& list, const std::vector<std::int64_t>& path) {
    Value part = list;
    for (const std::int64_t at : path) {
        Value element = part.elements[static_cast<std::size_t>(at)];
        part = std::move(element);
    }
    return part;
}

// The position of this index, which counts from the end if it is negative.
std::int64_t static_position(const Value& list, std::int64_t index, Span span) {
    const auto size = static_cast<std::int64_t>(list.elements.size());
    const std::int64_t at = index < 0 ? index + size : index;
    if (at < 0 || at >= size) {
        fail(span,
             "index " + std::to_string(index) + " is outside a " + (list.is_list ? "list" : "tuple") + " of " +
                 std::to_string(size) + (size == 1 ? " element" : " elements"),
             {}, ErrorCategory::index);
    }
    return at;
}

Value PartAccess::read(const Value& object, const PartStep& step) {
    if (object.is_constant() && object.type.is_struct()) return object.elements[static_cast<std::size_t>(step.path[0])];
    // Fixed components of constants stay constants.
    if (object.is_constant() && object.type.is_numeric_aggregate() && step.kind != PartStep::Kind::dynamic &&
        step.kind != PartStep::Kind::several_at) {
        std::vector<Number> numbers;
        if (step.kind == PartStep::Kind::several) {
            for (const std::int64_t c : step.components) numbers.push_back(object.numbers[c]);
        } else {
            const std::int64_t columns = object.type.cols();
            const std::int64_t first = step.path[0] * columns + (step.path.size() > 1 ? step.path[1] : 0);
            const std::int64_t count = step.type.components();
            numbers.assign(object.numbers.begin() + first, object.numbers.begin() + first + count);
        }
        return Value::constant(step.type, std::move(numbers));
    }
    return Value::runtime(extract(values_.materialize(object, builder_.span), step));
}

ir::Value* PartAccess::extract(ir::Value* object, const PartStep& step) {
    switch (step.kind) {
        case PartStep::Kind::path:
            return builder_.extract(object, step.path);
        case PartStep::Kind::dynamic:
            return builder_.extract_at(object, step.indices);
        case PartStep::Kind::several: {
            std::vector<ir::Value*> parts;
            for (const std::int64_t c : step.components)
                parts.push_back(builder_.extract(object, component_path(object->type, c)));
            return builder_.make(step.type, parts);
        }
        case PartStep::Kind::several_at: {
            std::vector<ir::Value*> parts;
            for (const auto& position : step.positions) parts.push_back(builder_.extract_at(object, position));
            return builder_.make(step.type, parts);
        }
    }
    throw InternalError("unknown kind of part");
}

ir::Value* PartAccess::replace(ir::Value* whole, const std::vector<PartStep>& steps, std::size_t from,
                               ir::Value* part) {
    if (from == steps.size()) return part;
    const PartStep& step = steps[from];
    if (step.kind == PartStep::Kind::several) {
        const Type type = whole->type;
        for (std::size_t i = 0; i < step.components.size(); ++i) {
            ir::Value* component = builder_.extract(part, component_path(part->type, static_cast<std::int64_t>(i)));
            whole = builder_.insert(whole, component, component_path(type, step.components[i]));
        }
        return whole;
    }
    if (step.kind == PartStep::Kind::several_at) {
        for (std::size_t i = 0; i < step.positions.size(); ++i) {
            ir::Value* component = builder_.extract(part, component_path(part->type, static_cast<std::int64_t>(i)));
            whole = builder_.insert_at(whole, component, step.positions[i]);
        }
        return whole;
    }
    if (from + 1 < steps.size()) part = replace(extract(whole, step), steps, from + 1, part);
    if (step.kind == PartStep::Kind::dynamic) return builder_.insert_at(whole, part, step.indices);
    return builder_.insert(whole, part, step.path);
}

// The elements of a sequence that is known at compile time.
std::optional<std::vector<Value>> PartAccess::elements(const Value& value) {
    if (value.is_tuple()) return value.elements;
    const Type type = type_of(value);
    if (value.is_binding() || value.is_nothing() || !type.is_numeric_aggregate() || type.is(Kind::transform))
        return std::nullopt;
    std::vector<Value> result;
    for (std::int64_t i = 0; i < type.rows(); ++i) {
        PartStep step;
        step.path = {i};
        step.type = type.is_matrix() ? Type::vector(type.scalar(), type.cols()) : type.scalar_type();
        result.push_back(read(value, step));
    }
    return result;
}

// The list as a vector of its numbers or a matrix of its vectors; null if it has other elements.
ir::Value* PartAccess::as_aggregate(const Value& list, Span span) {
    const Value settled = settle(list, span);
    const auto count = static_cast<int>(settled.elements.size());
    const Type type = count ? type_of(settled.elements[0]) : Type::none();
    std::vector<ir::Value*> components;
    for (const Value& element : settled.elements) {
        if (element.is_binding() || !(type_of(element) == type)) return nullptr;
        if (!type.is_scalar() && !type.is_vector()) return nullptr;
        ir::Value* value = values_.materialize(element, span);
        for (int i = 0; i < type.components(); ++i)
            components.push_back(type.is_scalar() ? value : builder_.extract(value, {i}));
    }
    if (components.empty() || components.size() > kMostListComponents) return nullptr;
    const Type whole =
        type.is_scalar() ? Type::vector(type.scalar(), count) : Type::matrix(type.scalar(), count, type.components());
    return builder_.make(whole, std::move(components));
}

Value PartAccess::element_at(const Value& list, const Value& index, Span span) {
    ir::Value* at = values_.index(index, span);
    ir::Value* whole = as_aggregate(list, span);
    if (!whole) {
        fail(span, "an index of " + describe(list) + " must be known at compile time",
             {help("only elements of one type, numbers or vectors, can be chosen by a launch")}, ErrorCategory::index);
    }
    PartStep step;
    step.kind = PartStep::Kind::dynamic;
    step.indices = {ir::counted_from_end(
        builder_, at, [&] { return builder_.integer(static_cast<std::int64_t>(list.elements.size())); })};
    step.type =
        whole->type.is_matrix() ? Type::vector(whole->type.scalar(), whole->type.cols()) : whole->type.scalar_type();
    return read(Value::runtime(whole), step);
}

}  // namespace weft::sema
