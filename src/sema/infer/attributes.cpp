// object.name: components and swizzles of vectors, halves of transforms, fields of structs, the shape of arrays, and
// attributes of modules and classes.
#include "sema/analyzer.h"

namespace weft::sema {

namespace {

Value type_value(Type type) {
    Binding binding;
    binding.kind = Binding::Kind::type;
    binding.type = type;
    return Value::of_binding(std::move(binding));
}

// Attributes of vector and array types: type(v).length, a.dtype.dtype.
std::optional<Value> type_attribute(Type type, const std::string& name) {
    if (name == "dtype" && type.is_numeric_aggregate()) return type_value(type.scalar_type());
    const bool has_length = type.is_vector() || type.is(Kind::quaternion) || type.is(Kind::transform);
    if (name == "length" && has_length) return Value::integer(type.rows());
    return std::nullopt;
}

}  // namespace

Value FunctionAnalyzer::attribute(const syntax::Attribute& attribute, Span span) {
    if (gradient_ && gradient_->is_field_of_adjoint(attribute)) {
        AssignmentTarget base = assignment_target(*attribute.object);
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
                Binding method = names_.look_up_method(binding.type, name, span);
                if (method.kind == Binding::Kind::function && !method.is_property)
                    return Value::of_binding(std::move(method));
            }
        }
        Binding found;
        if (binding.kind == Binding::Kind::object || binding.kind == Binding::Kind::type ||
            binding.kind == Binding::Kind::function) {
            found = names_.look_up_attribute(binding, name, span);
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
        if (name == "grad") return Value::runtime(builder_.grad_of(values_.materialize(object, span)));
        if (name == "ptr") return Value::runtime(builder_.address(values_.materialize(object, span)));
    }
    if (type.is_tile()) {
        if (std::optional<Value> value = tile_attribute(type, name)) return *value;
    }
    if (name == "dtype" && (type.is_scalar() || type.is_numeric_aggregate())) return type_value(type.scalar_type());
    if (name == "length") {
        if (std::optional<Value> value = type_attribute(type, name)) return *value;
    }
    if (std::optional<Value> value = indexed_attribute(object, name, span)) return *value;
    if (const std::optional<PartStep> step = part_attribute(type, name)) return parts_.read(object, *step);
    if (type.is_struct()) {
        const Binding method = names_.look_up_method(type, name, span);
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

}  // namespace weft::sema
