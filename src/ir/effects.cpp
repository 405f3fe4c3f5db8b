#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/ir.h"
#include "ir/origins.h"
#include "ir/typing.h"
#include "ir/walk.h"

namespace weft::ir {
bool has_effects(const Operation& operation) {
    switch (op_info(operation.op).effects) {
        case Effects::none:
            return false;
        case Effects::memory:
        case Effects::reports:
            return true;
        case Effects::inner:
            break;
    }
    if (operation.op == Op::call) return true;
    if (operation.op == Op::call_library) return !operation.library->pure;
    for (const Region* region : operation.regions)
        for (const Operation* inner : region->operations)
            if (has_effects(*inner)) return true;
    return false;
}

namespace {

// Whether an array is its parameter of origin (or a part of it), or was loaded from the memory of that parameter.
struct Depth {
    bool itself = true;
    bool within = true;
};

Depth depth_of(const Function& function, const Value& array) {
    const Value* origin = origin_of(&array);
    if (is_parameter(function, origin)) return {true, false};
    if (origin->definition && origin->definition->op == Op::load) return {false, true};
    return {};
}

// Whether the elements of its arrays hold arrays.
bool is_deep(Type type) {
    if (type.is_array()) return holds_array(type.element());
    return type.is_struct() && std::any_of(type.fields().begin(), type.fields().end(),
                                           [](const Type::Field& field) { return is_deep(field.type); });
}

using EffectsByFunction = std::unordered_map<const Function*, std::vector<ParameterEffects>>;

const std::vector<ParameterEffects>& effects_of(const Function& function, EffectsByFunction& known) {
    if (const auto found = known.find(&function); found != known.end()) return found->second;
    // Sema rejects recursive functions; if there were one, it would count as having every effect.
    known[&function].assign(function.parameters().size(), {true, true, true, true, true});

    std::vector<ParameterEffects> result(function.parameters().size());
    const Origins origins(function);
    const auto mark = [&](const Value& array, bool reads, bool itself, bool within) {
        const Depth depth = depth_of(function, array);
        origins.for_each(array, [&](std::size_t parameter) {
            ParameterEffects& of = result[parameter];
            of.reads |= reads;
            of.writes |= itself || within;
            of.writes_itself |= itself && depth.itself;
            of.writes_within |= within || (itself && depth.within);
        });
    };
    const auto mark_keeping = [&](const Value& array) {
        origins.for_each(array, [&](std::size_t parameter) { result[parameter].keeps = true; });
    };
    // Ids are numbers: their effects count for the parameters that they are computed from.
    const auto mark_library = [&](const Operation& call) {
        const auto reaches = [&](const std::vector<int>& operands, bool writes) {
            for (const int number : operands) {
                const Value& operand = *call.operands[static_cast<std::size_t>(number)];
                if (holds_array(operand.type)) continue;
                const std::set<std::size_t> behind = parameters_behind(function, operand);
                for (const std::size_t parameter : behind) {
                    result[parameter].reads = true;
                    result[parameter].writes |= writes;
                    result[parameter].writes_itself |= writes;
                }
                for (std::size_t i = 0; behind.empty() && i < result.size(); ++i) result[i].writes |= writes;
            }
        };
        reaches(call.library->reads, false);
        reaches(call.library->writes, true);
    };
    for_each_operation(function.body, [&](const Operation& operation) {
        if (operation.op == Op::load) {
            mark(*operation.operands[0], true, false, false);
        } else if (operation.op == Op::store) {
            mark(*operation.operands[0], false, true, false);
            if (holds_array(operation.operands.back()->type)) mark_keeping(*operation.operands[0]);
        } else if (is_atomic(operation.op)) {
            mark(*operation.operands[0], true, true, false);
            if (holds_array(operation.operands.back()->type)) mark_keeping(*operation.operands[0]);
        } else if (operation.op == Op::object) {
            const std::set<std::size_t> named = parameters_behind(function, *operation.operands[0]);
            for (const std::size_t parameter : named) {
                result[parameter].reads = true;
                result[parameter].names_objects = true;
            }
            // A constant id may name any object.
            for (std::size_t i = 0; named.empty() && i < result.size(); ++i) result[i].names_objects = true;
        } else if (operation.op == Op::call_library) {
            mark_library(operation);
            for (const Value* operand : operation.operands) {
                mark(*operand, true, !operation.library->pure, !operation.library->pure && is_deep(operand->type));
                const bool holds = operand->type.is_array() && holds_array(operand->type.element());
                if (operation.library->native && (holds || operand->type.is_struct())) mark_keeping(*operand);
            }
        } else if (operation.op == Op::call) {
            const std::vector<ParameterEffects> callee = effects_of(*operation.function, known);
            for (std::size_t i = 0; i < operation.operands.size(); ++i) {
                mark(*operation.operands[i], callee[i].reads, callee[i].writes_itself, callee[i].writes_within);
                if (callee[i].keeps) mark_keeping(*operation.operands[i]);
            }
        }
    });
    return known[&function] = std::move(result);
}

}  // namespace

std::set<std::size_t> parameters_behind(const Function& function, const Value& value) {
    std::set<std::size_t> found;
    std::set<const Value*> seen;
    const auto visit = [&](const auto& self, const Value& at) -> void {
        if (!seen.insert(&at).second) return;
        if (is_parameter(function, &at)) {
            found.insert(static_cast<std::size_t>(at.index));
        } else if (!at.definition || !at.definition->regions.empty()) {
            for (std::size_t i = 0; i < function.parameters().size(); ++i) found.insert(i);
        } else if (at.definition->op == Op::load) {
            self(self, *at.definition->operands[0]);  // the indices do not matter
        } else {
            for (const Value* operand : at.definition->operands) self(self, *operand);
        }
    };
    visit(visit, value);
    return found;
}

std::vector<ParameterEffects> effects(const Function& function) {
    EffectsByFunction known;
    return effects_of(function, known);
}

}  // namespace weft::ir
