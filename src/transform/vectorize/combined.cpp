#include "transform/vectorize/combined.h"

#include <unordered_set>

#include "ir/typing.h"
#include "ir/walk.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

namespace {

// The atomics that may arrive in any order, as one of their kind. Not those of 16-bit floats: their sums round at every
// step, and few additions are exact.
std::optional<Op> commuting_kind(const Operation& operation) {
    Type type = operation.operands.back()->type;
    if (!type.is_scalar() && !type.is_numeric_aggregate()) return std::nullopt;
    Scalar scalar = type.scalar();
    if (scalar == Scalar::boolean || scalar == Scalar::f16 || scalar == Scalar::bf16) return std::nullopt;
    switch (operation.op) {
        case Op::atomic_add:
        case Op::atomic_sub:
            return Op::atomic_add;
        case Op::atomic_min:
        case Op::atomic_max:
        case Op::atomic_and:
        case Op::atomic_or:
        case Op::atomic_xor:
            return operation.op;
        default:
            return std::nullopt;
    }
}

}  // namespace

int array_parameter(const ir::Function& kernel, const Value* array) {
    while (const Operation* definition = array->definition) {
        if (definition->op != Op::view && definition->op != Op::components && definition->op != Op::member) return -1;
        array = definition->operands[0];
    }
    return array->region == &kernel.body && array->type.is_array() ? array->index : -1;
}

bool is_launch_invariant(const ir::Function& kernel, const Value* value) {
    const Operation* definition = value->definition;
    if (!definition) return value->region == &kernel.body;
    switch (definition->op) {
        case Op::constant:
        case Op::neg:
        case Op::add:
        case Op::sub:
        case Op::mul:
        case Op::min:
        case Op::max:
        case Op::cast:
        case Op::dim:
        case Op::extract:
        case Op::view:
        case Op::components:
        case Op::member:
            break;
        default:
            return false;
    }
    for (const Value* operand : definition->operands)
        if (!is_launch_invariant(kernel, operand)) return false;
    return true;
}

std::vector<std::optional<Op>> combined_parameters(const ir::Function& kernel) {
    std::size_t count = kernel.parameters().size();
    const std::vector<std::optional<Op>> none(count);
    std::vector<std::optional<Op>> kinds(count);
    std::vector<bool> excluded(count, false);

    // Arrays inside structs are not looked at when a launch compares the memory of its arguments.
    for (const Value* parameter : kernel.parameters())
        if (!parameter->type.is_array() && ir::holds_array(parameter->type)) return none;

    std::unordered_set<const Value*> used;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        used.insert(operation.operands.begin(), operation.operands.end());
    });
    bool all_known = true;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        const bool atomic = ir::is_atomic(operation.op);
        if (atomic || operation.op == Op::load || operation.op == Op::store) {
            int parameter = array_parameter(kernel, operation.operands[0]);
            if (parameter < 0) {
                all_known = false;
                return;
            }
            auto at = static_cast<std::size_t>(parameter);
            std::optional<Op> kind = atomic ? commuting_kind(operation) : std::nullopt;
            bool looked_at = !operation.results.empty() && used.contains(operation.result());
            if (!kind || looked_at || (kinds[at] && kinds[at] != kind)) excluded[at] = true;
            kinds[at] = kind;
            // An array read from memory leads anywhere.
            if (operation.op == Op::load && ir::holds_array(operation.result()->type)) all_known = false;
            return;
        }
        bool calls = operation.op == Op::call || operation.op == Op::call_library;
        if (!calls && operation.op != Op::grad_of) return;
        for (const Value* operand : operation.operands) all_known &= !ir::holds_array(operand->type);
    });
    if (!all_known) return none;
    for (std::size_t i = 0; i < count; ++i)
        if (excluded[i]) kinds[i].reset();
    return kinds;
}

}  // namespace weft::transform
