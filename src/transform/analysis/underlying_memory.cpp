#include "transform/analysis/underlying_memory.h"

#include <algorithm>

#include "ir/typing.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

Memory memory_of(const ir::Function& kernel, const Value* array) {
    bool gradient = false;
    while (const Operation* definition = array->definition) {
        const Op op = definition->op;
        if (op == Op::argument) return {definition->operands[0]->index, false};
        if (op == Op::grad_of) {
            if (gradient) return {};
            gradient = true;
        } else if (op != Op::view && op != Op::components && op != Op::member) {
            return {};
        }
        array = definition->operands[0];
    }
    if (array->region != &kernel.body || !array->type.is_array()) return {};
    return {array->index, gradient};
}

const ir::Operation* object_behind(const ir::Value* array) {
    const ir::Operation* made = ir::root_of(array)->definition;
    if (made && made->op == ir::Op::load) made = ir::root_of(made->operands[0])->definition;
    if (!made || made->op != ir::Op::array_at) return nullptr;
    const ir::Operation* address = made->operands[0]->definition;
    return address && address->op == ir::Op::object ? address : nullptr;
}

const Operation* object_reached(const Value* array) {
    for (;;) {
        if (const Operation* object = object_behind(array)) return object;
        const Operation* made = ir::root_of(array)->definition;
        if (made && made->op == Op::load) made = ir::root_of(made->operands[0])->definition;
        if (!made || made->op != Op::array_at) return nullptr;
        const Operation* address = made->operands[0]->definition;
        if (!address || address->op != Op::load) return nullptr;
        array = address->operands[0];
    }
}

bool hides_arrays(const ir::Function& kernel) {
    return std::any_of(kernel.parameters().begin(), kernel.parameters().end(), [](const Value* parameter) {
        return !parameter->type.is_array() && ir::holds_array(parameter->type);
    });
}

std::vector<const Value*> indices_from_start(const Operation& access) {
    const auto ndim = static_cast<std::ptrdiff_t>(access.operands[0]->type.ndim());
    std::vector<const Value*> indices(access.operands.begin() + 1, access.operands.begin() + 1 + ndim);
    for (const Value* array = access.operands[0]; array->definition; array = array->definition->operands[0]) {
        const Operation& part = *array->definition;
        if (part.op == Op::view)
            indices.insert(indices.begin(), part.operands.begin() + 1, part.operands.end());
        else if (part.op != Op::components && part.op != Op::member && part.op != Op::grad_of)
            break;
    }
    return indices;
}

std::optional<std::int64_t> constant_integer(const Value* value) {
    const ir::Operation* definition = value->definition;
    if (!definition || definition->op != Op::constant || !value->type.is_scalar() || !value->type.is_int()) return {};
    return definition->numbers[0].i;
}

bool is_launch_invariant(const ir::Function& function, const Value* value) {
    const Operation* definition = value->definition;
    if (!definition) return function.is_kernel && value->region == &function.body;
    switch (definition->op) {
        case Op::constant:
        case Op::neg:
        case Op::add:
        case Op::sub:
        case Op::mul:
        case Op::min:
        case Op::max:
        case Op::cmp_lt:
        case Op::cmp_le:
        case Op::cmp_gt:
        case Op::cmp_ge:
        case Op::cmp_eq:
        case Op::cmp_ne:
        case Op::select:
        case Op::cast:
        case Op::dim:
        case Op::extract:
        case Op::view:
        case Op::components:
        case Op::member:
        case Op::grad_of:
            break;
        default:
            return false;
    }
    for (const Value* operand : definition->operands)
        if (!is_launch_invariant(function, operand)) return false;
    return true;
}

}  // namespace weft::transform
