#include "ir/walk.h"

namespace weft::ir {

std::unordered_set<const Value*> used_values(const Function& function) {
    std::unordered_set<const Value*> used;
    for_each_operation(function.body, [&](const Operation& operation) {
        used.insert(operation.operands.begin(), operation.operands.end());
    });
    return used;
}

std::vector<const Value*> written_arrays(const Operation& operation) {
    if (writes(operation.op)) return {operation.operands[0]};
    std::vector<const Value*> written;
    if (operation.op != Op::call) return written;
    const std::vector<ParameterEffects> of_callee = effects(*operation.function);
    for (std::size_t i = 0; i < operation.operands.size(); ++i)
        if (of_callee[i].writes) written.push_back(operation.operands[i]);
    return written;
}

std::vector<const Operation*> numbered_operations(const Function& function) {
    std::vector<const Operation*> operations;
    for_each_operation(function.body, [&](const Operation& operation) { operations.push_back(&operation); });
    return operations;
}

void replace_uses(Region& region, ValueMap& map) {
    for_each_operation(region, [&](Operation& operation) {
        for (Value*& operand : operation.operands) {
            Value* to = map.find(operand);
            if (!to) continue;
            while (Value* next = map.find(to)) to = next;
            map.set(operand, to);  // the next use of the same value gets there in one step
            operand = to;
        }
    });
}

namespace {

void clone_region(Function& into, const Region& from, Operation* owner, ValueMap& map) {
    Region* region = into.new_region(owner);
    for (const Value* argument : from.arguments) {
        map.set(argument, into.add_argument(region, argument->type, argument->name));
    }
    region->operations.reserve(from.operations.size());
    for (const Operation* operation : from.operations) {
        Operation* copy = clone(into, *operation, map);
        copy->parent = region;
        region->operations.push_back(copy);
    }
}

}  // namespace

Operation* clone(Function& into, const Operation& operation, ValueMap& map) {
    Operation* copy = into.new_operation(operation.op, operation.span);
    copy->operands.reserve(operation.operands.size());
    for (Value* operand : operation.operands) copy->operands.push_back(map[operand]);
    copy->inlined = operation.inlined;
    copy->numbers = operation.numbers;
    copy->ints = operation.ints;
    copy->text = operation.text;
    copy->guarded = operation.guarded;
    copy->likely = operation.likely;
    copy->unset = operation.unset;
    copy->function = operation.function;
    copy->library = operation.library;
    for (const Region* region : operation.regions) clone_region(into, *region, copy, map);
    for (const Value* result : operation.results) map.set(result, into.add_result(copy, result->type, result->name));
    return copy;
}

void clone_operations(Function& into, const Region& from, Region& to, ValueMap& map) {
    for (std::size_t i = 0; i + 1 < from.operations.size(); ++i) {
        Operation* copy = clone(into, *from.operations[i], map);
        copy->parent = &to;
        to.operations.push_back(copy);
    }
}

}  // namespace weft::ir
