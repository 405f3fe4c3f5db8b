// object.name: components and swizzles of vectors, halves of transforms, fields of structs, the shape of arrays, and
// attributes of modules and classes.
#include <string_view>

#include "sema/analyzer.h"

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

Value type_value(Type type) {
    Binding binding;
    binding.kind = Binding::Kind::type;
    binding.type = type;
    return Value::of_binding(std::move(binding));
}

}  // namespace

std::optional<PartStep> FunctionAnalyzer::part_attribute(Type type, const std::string& name) const {
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

std::vector<std::string> FunctionAnalyzer::attribute_candidates(Type type) const {
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

Value FunctionAnalyzer::attribute(const syntax::Attribute& attribute, Span span) {
    if (is_field_of_adjoint(attribute)) {
        AssignmentTarget base = place(*attribute.object);
        if (const std::optional<PartStep> step = part_attribute(base.type, attribute.name))
            return read(target_of_part(std::move(base), *step));
    }
    return attribute_of(expression(*attribute.object), attribute.name, span);
}

Value FunctionAnalyzer::attribute_of(const Value& object, const std::string& name, Span span) {
    if (object.is_binding()) {
        const Binding& binding = *object.binding;
        if (binding.kind == Binding::Kind::type) {
            if (std::optional<Value> value = type_attribute(binding.type, name)) return *value;
            if (binding.type.is_struct()) {  // S.method(s, x)
                Binding method = look_up_method(binding.type, name, span);
                if (method.kind == Binding::Kind::function && !method.is_property)
                    return Value::of_binding(std::move(method));
            }
        }
        Binding found;
        if (binding.kind == Binding::Kind::object || binding.kind == Binding::Kind::type ||
            binding.kind == Binding::Kind::function) {
            found = look_up_attribute(binding, name, span);
        }
        if (found.kind == Binding::Kind::unknown) {
            fail(span, describe(object) + " has no attribute '" + name + "'",
                 did_you_mean(name, source_.environment->attribute_names(binding)), ErrorCategory::attribute);
        }
        return from_binding(std::move(found), name, span);
    }
    const Type type = type_of(object);
    if (type.is_array() && object.is_runtime()) {
        const int leading = static_cast<int>(object.pending.size());
        const auto extent = [&](int axis) { return Value::runtime(builder_.dim(object.ir, leading + axis)); };
        const int ndim = type.ndim();
        if (name == "shape") {
            std::vector<Value> extents;
            for (int axis = 0; axis < ndim; ++axis) extents.push_back(extent(axis));
            return Value::tuple(std::move(extents));
        }
        if (name == "ndim") return Value::integer(ndim);
        if (name == "size") {
            ir::Value* size = extent(0).ir;
            for (int axis = 1; axis < ndim; ++axis) size = builder_.binary(ir::Op::mul, size, extent(axis).ir);
            return Value::runtime(size);
        }
        if (name == "dtype") return type_value(type.element());
        if (name == "grad") return Value::runtime(builder_.grad_of(materialize(object, span)));
        if (name == "ptr") return Value::runtime(builder_.address(materialize(object, span)));
    }
    if (name == "dtype" && (type.is_scalar() || type.is_numeric_aggregate())) return type_value(type.scalar_type());
    if (name == "length") {
        if (std::optional<Value> value = type_attribute(type, name)) return *value;
    }
    if (std::optional<Value> value = indexed_attribute(object, name, span)) return *value;
    if (const std::optional<PartStep> step = part_attribute(type, name)) return read_part(object, *step);
    if (type.is_struct()) {
        const Binding method = look_up_method(type, name, span);
        if (method.is_property) {
            Actual self{object, span, {}, nullptr, std::make_shared<const AssignmentTarget>()};
            return call_function(method.function, {std::move(self)}, span);
        }
        if (method.kind == Binding::Kind::function)
            fail(span, "a method can only be called", {help("write " + name + "(...)")});
    }
    const std::vector<std::string> candidates = attribute_candidates(type);
    std::vector<Note> notes;
    if (!candidates.empty()) {
        std::string list;
        for (const std::string& candidate : candidates) list += (list.empty() ? "" : ", ") + candidate;
        notes.push_back(note("it has: " + list));
        for (Note& n : did_you_mean(name, candidates)) notes.push_back(std::move(n));
    }
    fail(span, describe(object) + " has no attribute '" + name + "'", std::move(notes), ErrorCategory::attribute);
}

// Attributes of vector and array types: type(v).length, a.dtype.dtype.
std::optional<Value> FunctionAnalyzer::type_attribute(Type type, const std::string& name) {
    if (name == "dtype" && type.is_numeric_aggregate()) return type_value(type.scalar_type());
    const bool has_length = type.is_vector() || type.is(Kind::quaternion) || type.is(Kind::transform);
    if (name == "length" && has_length) return Value::integer(type.rows());
    return std::nullopt;
}

Value FunctionAnalyzer::read_part(const Value& object, const PartStep& step) {
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
    return Value::runtime(extract_part(materialize(object, builder_.span), step));
}

ir::Value* FunctionAnalyzer::extract_part(ir::Value* object, const PartStep& step) {
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

}  // namespace weft::sema
