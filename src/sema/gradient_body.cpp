#include "sema/gradient_body.h"

#include <algorithm>

#include "ir/typing.h"
#include "sema/messages.h"

namespace weft::sema {

void GradientBody::begin() {
    for (std::size_t i = 0; i < own_; ++i) {
        const syntax::Parameter& parameter = tree_.parameters[i];
        const Value value = locals_.find(parameter.name)->value;
        const Type type = type_of(value);
        builder_.span = parameter.span;
        if (type.is_array() && ir::is_smooth(type.element()))
            locals_.assign(adjoint_name(parameter.name), Value::runtime(builder_.grad_of(values_.array_of(value))),
                           parameter.span);
        else if (!value.is_binding() && (ir::is_smooth(type) || (type.is_struct() && ir::holds_array(type)))) {
            locals_.assign(adjoint_name(parameter.name), values_.zero_like(value), parameter.span);
            if (type.is_struct()) struct_parameters_.emplace(adjoint_name(parameter.name), value);
        }
    }
}

// Whether this is a field of wp.adjoint[x], for a struct x, or of a struct in that.
bool GradientBody::is_field_of_adjoint(const syntax::Attribute& attribute) const {
    const syntax::Expression* object = attribute.object.get();
    while (const auto* outer = std::get_if<syntax::Attribute>(&object->node)) object = outer->object.get();
    const auto* name = std::get_if<syntax::Name>(&object->node);
    return name && struct_parameters_.contains(name->id);
}

// The value of an array field of wp.adjoint[x]: the gradient of the array in x.
Value GradientBody::gradient_of_field(const AssignmentTarget& place) {
    Value value = struct_parameters_.at(place.name);
    for (const PartStep& step : place.steps) value = parts_.read(value, step);
    return Value::runtime(builder_.grad_of(values_.array_of(value)));
}

bool GradientBody::is_gradient_element(const AssignmentTarget& place) {
    return place.array && ir::gradient_holding(place.array);
}

void GradientBody::finish() {
    std::vector<ir::Value*> adjoints;
    for (std::size_t i = 0; i < own_; ++i) {
        const Local* local = locals_.find(adjoint_name(tree_.parameters[i].name));
        if (!local || type_of(local->value).is_array()) continue;
        if (local->state != Local::State::assigned)
            fail(local->assigned, "the adjoint of '" + tree_.parameters[i].name + "' " + local->reason);
        values_.flatten(local->value, local->assigned, adjoints);
    }
    std::erase_if(adjoints, [](const ir::Value* adjoint) { return !ir::is_smooth(adjoint->type); });
    std::vector<Type> types;
    for (const ir::Value* adjoint : adjoints) types.push_back(adjoint->type);
    if (types.size() == 1) function_.result = types[0];
    if (types.size() > 1) function_.result = Type::tuple(std::move(types));
    builder_.return_(std::move(adjoints));
}

}  // namespace weft::sema
