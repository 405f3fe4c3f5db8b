#include "ir/walk.h"

#include <unordered_map>

#include "support/error.h"

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

std::vector<const Operation*> numbered_operations(const Module& module, const Function& kernel) {
    std::vector<const Operation*> operations = numbered_operations(kernel);
    for (const auto& function : module.functions)
        if (!function->is_kernel)
            for_each_operation(function->body, [&](const Operation& operation) { operations.push_back(&operation); });
    return operations;
}

void replace_uses(Region& region, ValueMap& map) {
    for_each_operation(region, [&](Operation& operation) {
        for (Value*& operand : operation.operands) {
            Value* to = map.find(operand);
            if (!to) continue;
            while (Value* next = map.find(to)) to = next;
            map.set(operand, to);  // shortens the chain for the next use
            operand = to;
        }
    });
}

namespace {

// Copies arguments and operations of `from` into an empty region.
void clone_into(Region& region, Function& into, const Region& from, ValueMap& map) {
    for (const Value* argument : from.arguments)
        map.set(argument, into.add_argument(&region, argument->type, argument->name));
    region.operations.reserve(from.operations.size());
    for (const Operation* operation : from.operations) {
        Operation* copy = clone(into, *operation, map);
        copy->parent = &region;
        region.operations.push_back(copy);
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
    for (const Region* region : operation.regions) clone_into(*into.new_region(copy), into, *region, map);
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

std::unique_ptr<Module> clone(const Module& module) {
    auto copy = std::make_unique<Module>();
    copy->sources = module.sources;
    std::unordered_map<const Function*, Function*> functions;
    functions.emplace(nullptr, nullptr);
    for (const auto& function : module.functions) functions.emplace(function.get(), copy->add(function->name));
    for (const auto& from : module.functions) {
        Function& to = *functions.at(from.get());
        to.is_kernel = from->is_kernel;
        to.is_adjoint = from->is_adjoint;
        to.tid_rank = from->tid_rank;
        to.implicit_parameters = from->implicit_parameters;
        to.uncontended_parameters = from->uncontended_parameters;
        to.result = from->result;
        to.span = from->span;
        to.gradient = functions.at(from->gradient);
        to.replay = functions.at(from->replay);
        to.sees_after = from->sees_after;
        to.reverse_of = functions.at(from->reverse_of);
        ValueMap map(*from);
        clone_into(to.body, to, from->body, map);
        // Of the values that calls were given, those of this function.
        std::unordered_map<const CallLocation*, const CallLocation*> calls{{nullptr, nullptr}};
        const auto copied = [&](const auto& self, const CallLocation* call) -> const CallLocation* {
            if (const auto found = calls.find(call); found != calls.end()) return found->second;
            CallLocation made{call->function, call->span, {}, self(self, call->outer)};
            for (const auto& [value, name] : call->arguments)
                if (const Value* known = map.find(value)) made.arguments.emplace_back(known, name);
            return calls[call] = &copy->calls.emplace_back(std::move(made));
        };
        for_each_operation(to.body, [&](Operation& operation) {
            operation.function = functions.at(operation.function);
            operation.inlined = copied(copied, operation.inlined);
        });
    }
    return copy;
}

}  // namespace weft::ir
