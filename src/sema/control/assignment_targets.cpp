// Assignment targets: found once, then read and written.
//
// A local has no address; writing a part of it makes a new whole:
//     v.y = 2.0        →   %v1 = insert %v0, 2.0 at 1
// In memory only the part is written, so that other threads may write the rest:
//     a[i].y = 2.0     →   store (components %a)[%i, 1], 2.0
#include <set>

#include "sema/analyzer.h"
#include "types/pattern.h"

namespace weft::sema {

namespace {

bool is_memory(const AssignmentTarget& place) { return place.array != nullptr; }

}  // namespace

AssignmentTarget FunctionAnalyzer::assignment_target(const syntax::Expression& expression_node) {
    const Span span = expression_node.span;
    if (const auto* name = std::get_if<syntax::Name>(&expression_node.node)) {
        const Value value = this->name(*name, span);
        if (value.view) return target_of_view(value, span);
        AssignmentTarget result;
        if (locals_.find(name->id)) result.name = name->id;
        result.type = type_of(value);
        result.span = span;
        return result;
    }
    if (const auto* attribute = std::get_if<syntax::Attribute>(&expression_node.node)) {
        // Module attributes and the like cannot be assigned; reading them gives the message.
        AssignmentTarget base = assignment_target(*attribute->object);
        const std::optional<PartStep> step = part_attribute(base.type, attribute->name);
        if (!step) {
            const Value value = attribute_of(read(base), attribute->name, span);
            if (!type_of(value).is_array()) {
                fail(span, "'" + attribute->name + "' of " + base.type.python_name() + " cannot be assigned", {},
                     ErrorCategory::attribute);
            }
            return target_of_array(value, span);  // a.grad[i] = ...
        }
        return target_of_part(std::move(base), *step);
    }
    if (const auto* subscript = std::get_if<syntax::Subscript>(&expression_node.node))
        return target_of_subscript(*subscript, span);
    // Expressions that compute an array: chosen(a, b)[i] = ..., (a if flag else b)[i] = ...
    if (std::holds_alternative<syntax::Call>(expression_node.node) ||
        std::holds_alternative<syntax::IfExpression>(expression_node.node)) {
        const Value value = with_view(expression_node);
        if (value.view) return target_of_view(value, span);
        if (type_of(value).is_array()) return target_of_array(value, span);
    }
    fail(span, "this cannot be assigned", {help("assign to a variable, an array element, a component or a field")},
         ErrorCategory::syntax);
}

AssignmentTarget FunctionAnalyzer::target_of_subscript(const syntax::Subscript& subscript, Span span) {
    if (const std::optional<Binding> fixed = names_.static_binding(*subscript.object)) reject_adjoint(*fixed, span);
    AssignmentTarget base = assignment_target(*subscript.object);
    if (base.type.is_tile()) return target_in_tile(base, subscript.indices, span);
    if (base.type.is_array()) {
        // The target so far is either the array itself, or a view that waits for more indices.
        Value array;
        if (is_memory(base) && base.steps.empty()) {
            array.kind = Value::Kind::runtime;
            array.ir = base.array;
            array.pending = base.indices;
            array.type = base.type;
        } else {
            array = read(base);
        }
        AssignmentTarget result;
        if (has_slice(subscript.indices)) return target_of_array(array_slice(array, subscript.indices), span);
        result.indices = array_indices(array, subscript.indices);
        result.array = array.ir;
        result.span = span;
        const int left = array.type.ndim() - static_cast<int>(subscript.indices.size());
        result.type = left > 0 ? Type::array(array.type.element(), left) : array.type.element();
        return result;
    }
    if (is_indexed(base.type)) {
        if (static_cast<int>(subscript.indices.size()) < indexed_type(base.type).ndim() &&
            !has_slice(subscript.indices)) {
            AssignmentTarget row;
            row.value = indexed_row(read(base), subscript.indices, span);
            row.type = type_of(*row.value);
            row.span = span;
            return row;
        }
        IndexedElement element = indexed_element(read(base), subscript.indices, span);
        AssignmentTarget result;
        result.array = element.array;
        result.indices = std::move(element.indices);
        result.type = element.array->type.element();
        result.span = span;
        return result;
    }
    if (base.type.is_numeric_aggregate()) {
        AssignmentTarget result = target_of_part(std::move(base), part_subscript(base.type, subscript.indices, span));
        result.span = span;
        return result;
    }
    const Value object = read(base);
    if (object.is_tuple() && !base.name.empty()) return target_of_element(std::move(base), object, subscript, span);
    if (object.is_tuple()) {  // of arrays: pair[0][i] = ...
        const Value element = subscript_of(object, subscript.indices, span);
        if (type_of(element).is_array()) return target_of_array(element, span);
    }
    fail(span, "elements of " + describe(object) + " cannot be assigned",
         {help("elements of arrays and lists and components of vectors and matrices can")});
}

AssignmentTarget FunctionAnalyzer::target_of_array(const Value& value, Span span) {
    AssignmentTarget result;
    result.array = values_.array_of(value);
    result.type = result.array->type;
    result.span = span;
    return result;
}

AssignmentTarget FunctionAnalyzer::target_of_part(AssignmentTarget base, PartStep step) {
    // A part of several components is again a list of components: v.zyx[0], m[1:3][0], v[0:3][1:].
    if (!base.steps.empty() && base.steps.back().kind == PartStep::Kind::several &&
        step.kind != PartStep::Kind::dynamic && step.kind != PartStep::Kind::several_at) {
        PartStep& last = base.steps.back();
        std::vector<std::int64_t> chosen;
        if (step.kind == PartStep::Kind::several) {
            chosen = step.components;
        } else {
            const std::int64_t count = step.type.components();
            const std::int64_t first = last.type.is_matrix()
                                           ? step.path[0] * last.type.cols() + (step.path.size() > 1 ? step.path[1] : 0)
                                           : step.path[0];
            for (std::int64_t i = 0; i < count; ++i) chosen.push_back(first + i);
        }
        for (std::int64_t& c : chosen) c = last.components[static_cast<std::size_t>(c)];
        last.type = base.type = step.type;
        if (step.type.is_scalar()) {
            last.kind = PartStep::Kind::path;
            last.path = component_path(last.whole, chosen[0]);
            chosen.clear();
        }
        last.components = std::move(chosen);
        return base;
    }
    if (!base.steps.empty() &&
        (base.steps.back().kind == PartStep::Kind::several || base.steps.back().kind == PartStep::Kind::several_at)) {
        fail(base.span, "only components at fixed places of this part can be assigned",
             {help("assign the whole part, or index the vector or matrix itself")});
    }
    base.type = step.type;
    base.steps.push_back(std::move(step));
    return base;
}

Value FunctionAnalyzer::read(const AssignmentTarget& place) {
    Value value;
    if (is_memory(place)) {
        const bool is_element = place.type.is_array() ? !place.steps.empty() : true;
        if (is_element) {
            value = Value::runtime(builder_.load(place.array, place.indices));
        } else {
            value.kind = Value::Kind::runtime;
            value.ir = place.array;
            value.pending = place.indices;
            value.type = place.type;
        }
    } else if (place.tile) {
        value = read_tile(place);
    } else if (place.value) {
        value = *place.value;
    } else if (place.name.empty()) {
        // A constant of the module is no local of the function.
        fail(place.span, "this name is no local variable, so nothing of it can be assigned",
             {help("kernels cannot change Python globals; use an array")});
    } else if (place.type.is_array() && gradient_ && gradient_->is_adjoint_of_struct(place.name)) {
        return gradient_->gradient_of_field(place);
    } else {
        value = part_of_list(locals_.find(place.name)->value, place.elements);
        if (place.element) value = parts_.element_at(value, Value::runtime(place.element), place.span);
    }
    for (const PartStep& step : place.steps) value = parts_.read(value, step);
    return value;
}

void FunctionAnalyzer::write(const AssignmentTarget& place, const Value& value, Span value_span,
                             std::optional<ir::Op> atomic) {
    if (place.tile) return write_tile(place, value, value_span);
    if (place.value) {
        fail(place.span, "an index is missing: this is " + place.type.python_name() + ", not an element of it",
             {help("give one index per dimension, or loop over the rest")}, ErrorCategory::index);
    }
    if (place.type.is_array() && is_memory(place) && place.steps.empty()) {
        fail(place.span, "an index is missing: this is " + place.type.python_name() + ", not an element of it",
             {help("give one index per dimension, or loop over the rest")}, ErrorCategory::index);
    }
    if (place.type.is_array() && is_memory(place)) {
        fail(place.span, "arrays in structs in memory cannot be replaced in kernels",
             {help("assign to their elements, or replace the array of a local struct")});
    }
    const std::string what = is_memory(place)
                                 ? "the value stored here"
                                 : "the value assigned to this part of '" + syntax::spelled(place.name) + "'";
    if (!place.elements.empty() || place.element) {
        if (place.steps.empty()) return write_element(place, value, value_span);
        // A temporary local holds the element while its part is assigned.
        const std::string name = place.name + "'0";
        AssignmentTarget inner = place;
        inner.name = name;
        inner.elements.clear();
        inner.element = nullptr;
        AssignmentTarget outer = place;
        outer.steps.clear();
        const Value before = read(outer);
        outer.type = type_of(before);
        locals_.assign(name, before, place.span);
        write(inner, value, value_span);
        const Value changed = locals_.find(name)->value;
        locals_.scope.erase(name);
        return write_element(outer, changed, value_span, true);
    }
    ir::Value* part = nullptr;
    const bool is_slice = !place.steps.empty() && place.steps.back().is_slice();
    if (is_slice && type_of(value).is_scalar()) {
        // v[0:3] = 0.0: the value goes to each component.
        part = builder_.splat(
            place.type, values_.materialize(expect(value, place.type.scalar_type(), value_span, what), value_span));
    } else if (is_slice && value.is_tuple() && place.type.is_vector()) {
        part = values_.materialize(
            constructors_.construct_aggregate(place.type, {Actual{value, value_span, {}, nullptr}}, value_span),
            value_span);
    } else {
        part = values_.materialize(expect(value, place.type, value_span, what), value_span);
    }
    if (!place.steps.empty() && place.steps.back().kind == PartStep::Kind::several) {
        const auto& components = place.steps.back().components;
        if (std::set<std::int64_t>(components.begin(), components.end()).size() != components.size()) {
            fail(place.span, "a component appears twice as a target", {}, ErrorCategory::value);
        }
    }
    if (is_memory(place)) {
        if (!atomic && gradient_ && gradient_->is_gradient_element(place)) {
            fail(place.span, "the gradient of an array collects what all threads add to it",
                 {help("add to it, or subtract from it: wp.adjoint[array][i] += ...")});
        }
        store_part(place, part, atomic);
        return;
    }
    if (place.name.empty()) {
        fail(place.span, "this name is no local variable, so nothing of it can be assigned",
             {help("kernels cannot change Python globals; use an array")});
    }
    const Value whole = locals_.find(place.name)->value;
    ir::Value* changed = parts_.replace(values_.materialize(whole, place.span), place.steps, 0, part);
    locals_.assign(place.name, Value::runtime(changed), place.span);
}

// Follows fields through `member` and components through `components`: views of the parts of all elements.
void FunctionAnalyzer::store_part(const AssignmentTarget& place, ir::Value* value, std::optional<ir::Op> atomic) {
    ir::Value* array = place.array;
    Type type = array->type.element();
    const auto store = [&](ir::Value* to, const std::vector<ir::Value*>& at, ir::Value* part) {
        std::vector<ir::Value*> indices = place.indices;
        indices.insert(indices.end(), at.begin(), at.end());
        if (atomic)
            builder_.atomic(*atomic, to, std::move(indices), {part});
        else
            builder_.store(to, std::move(indices), part);
    };
    std::size_t next = 0;
    while (next < place.steps.size() && type.is_struct()) {
        const int field = static_cast<int>(place.steps[next++].path[0]);
        array = builder_.member(array, field);
        type = type.fields()[field].type;
    }
    if (next == place.steps.size()) return store(array, {}, value);

    ir::Value* components = builder_.components(array);
    const std::size_t wanted = type.is_matrix() ? 2 : 1;
    std::vector<ir::Value*> component;  // indices into the element
    const PartStep* several = nullptr;
    for (; next < place.steps.size(); ++next) {
        const PartStep& step = place.steps[next];
        if (step.kind == PartStep::Kind::several || step.kind == PartStep::Kind::several_at) {
            several = &step;
        } else if (step.kind == PartStep::Kind::dynamic) {
            component.insert(component.end(), step.indices.begin(), step.indices.end());
        } else {
            for (const std::int64_t i : step.path) component.push_back(builder_.integer(i));
        }
    }
    if (component.size() == wanted) return store(components, component, value);
    // A swizzle, a slice, a half of a transform, or a whole row of a matrix.
    for (std::int64_t i = 0; i < value->type.components(); ++i) {
        std::vector<ir::Value*> at = component;
        if (several && several->kind == PartStep::Kind::several_at) {
            const auto& position = several->positions[static_cast<std::size_t>(i)];
            at.insert(at.end(), position.begin(), position.end());
        } else {
            const std::vector<std::int64_t> path =
                several ? component_path(several->whole, several->components[static_cast<std::size_t>(i)])
                        : std::vector<std::int64_t>{i};
            for (const std::int64_t part : path) at.push_back(builder_.integer(part));
        }
        store(components, at, builder_.extract(value, component_path(value->type, i)));
    }
}

}  // namespace weft::sema
