// Dead code elimination, by marking the values that are needed: operands of effects, the function's results, and the
// operands of all of these. A carried value is a slot of its loop: its init, arguments, yield and result are needed
// together or not at all. This also removes values that only feed themselves round the loop. A store to a stack is
// needed if something is loaded from the stack.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "transform/simplify/simplifier.h"

namespace weft::transform {
namespace {

using ir::Function;
using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

// The target of a store or atomic that only this thread or this launch can ever see: a stack or a copy. Null for other
// operations. The write is needed if something is loaded from the target.
const Value* private_target(const Function& function, const Operation& operation) {
    if (!ir::writes(operation.op)) return nullptr;
    const Value* array = ir::origin_of(operation.operands[0]);
    if (!array->definition) return function.is_copy(array) ? array : nullptr;
    return array->definition->op == Op::stack ? array : nullptr;
}

class Marker {
public:
    explicit Marker(const Function& function)
        : function_(function), needed_(static_cast<std::size_t>(function.value_count()), false) {
        ir::for_each_operation(function.body, [&](const Operation& operation) {
            if (const Value* target = private_target(function, operation)) stores_[target].push_back(&operation);
        });
        roots(function.body);
        while (!work_.empty()) {
            const Value* value = work_.back();
            work_.pop_back();
            follow(*value);
        }
    }

    bool needs(const Value* value) const { return needed_[static_cast<std::size_t>(value->id)]; }

private:
    void need(const Value* value) {
        if (needs(value)) return;
        needed_[static_cast<std::size_t>(value->id)] = true;
        work_.push_back(value);
    }

    // Needs the operands of operations with effects, and the conditions under which they run. True if the region has
    // any.
    bool roots(const Region& region) {
        bool any = false;
        for (const Operation* operation : region.operations) {
            bool effect = false;
            if (operation->regions.empty()) {
                effect = operation->op == Op::return_ || (ir::has_effects(*operation) && operation->op != Op::stack &&
                                                          !private_target(function_, *operation));
                if (effect) {
                    for (const Value* operand : operation->operands) need(operand);
                }
            } else {
                for (const Region* inner : operation->regions) effect |= roots(*inner);
                if (effect) need_control(*operation);
            }
            any |= effect;
        }
        return any;
    }

    // Needs the values that decide whether and how often the regions run.
    void need_control(const Operation& operation) {
        switch (operation.op) {
            case Op::if_:
                need(operation.operands[0]);
                break;
            case Op::for_:
                for (std::size_t i = 0; i < 3; ++i) need(operation.operands[i]);
                if (operation.guarded) need(operation.results.back());
                break;
            default:
                if (operation.body(0).terminator()) need(operation.body(0).terminator()->operands[0]);
        }
    }

    // An operation that is needed also needs the control flow that makes it run. Each region is visited once, as loops
    // with many breaks have deeply nested regions.
    void need_owners(const Region* region) {
        for (; region && region->owner && running_.insert(region).second; region = region->owner->parent)
            need_control(*region->owner);
    }

    void follow(const Value& value) {
        if (value.region) {
            if (function_.is_copy(&value)) stored_on_copies(value);
            if (const Operation* owner = value.region->owner) {
                need_owners(value.region);
                slot(*owner, value.index - static_cast<int>(ir::carried_arguments(*owner)));
            }
            return;
        }
        const Operation& operation = *value.definition;
        need_owners(operation.parent);
        if (operation.regions.empty()) {
            for (const Value* operand : operation.operands) need(operand);
            if (operation.op == Op::stack) stored_on(value);
            return;
        }
        need_control(operation);
        slot(operation, value.index);
    }

    void stored_on(const Value& target) {
        for (const Operation* store : stores_[&target]) {
            need_owners(store->parent);
            for (const Value* operand : store->operands) need(operand);
        }
    }

    // Copies of arrays that overlap do so again: a value stored through one of them may be loaded through another.
    void stored_on_copies(const Value& loaded) {
        for (const Value* copy : function_.parameters()) {
            if (!function_.is_copy(copy)) continue;
            const bool is_apart = function_.is_adjoint && copy->type.is_array() && loaded.type.is_array();
            if (copy == &loaded || !is_apart) stored_on(*copy);
        }
    }

    // Needs result `index` of a structured operation with all that flows into it. -1 is the counter of a for.
    void slot(const Operation& operation, int index) {
        if (index < 0) return;
        const std::size_t i = static_cast<std::size_t>(index);
        need(operation.results[i]);
        if (operation.op == Op::if_) {
            for (const Region* arm : operation.regions) need(arm->terminator()->operands[i]);
            return;
        }
        need(operation.operands[i + ir::carried_operands(operation)]);
        const Region& body = operation.body(operation.op == Op::for_ ? 0 : 1);
        need(body.terminator()->operands[i]);
    }

    const Function& function_;
    std::vector<bool> needed_;
    std::vector<const Value*> work_;
    std::unordered_set<const Region*> running_;
    std::unordered_map<const Value*, std::vector<const Operation*>> stores_;  // by stack
};

class Sweeper {
public:
    Sweeper(const Function& function, const Marker& marker) : function_(function), marker_(marker) {}

    // True if something was removed.
    bool run(Region& body) {
        region(body);
        return any_;
    }

private:
    // True if an operation with effects stays.
    bool region(Region& region) {
        bool any_effects = false;
        std::size_t kept = 0;
        for (Operation* operation : region.operations) {
            bool effects = operation->regions.empty() && ir::has_effects(*operation);
            for (Region* inner : operation->regions) effects |= this->region(*inner);
            if (!stays(*operation, effects)) {
                any_ = true;
                continue;
            }
            if (!operation->regions.empty()) any_ |= drop_slots(*operation);
            any_effects |= effects;
            region.operations[kept++] = operation;
        }
        region.operations.resize(kept);
        return any_effects;
    }

    bool stays(const Operation& operation, bool effects) const {
        if (operation.op == Op::yield || operation.op == Op::return_) return true;
        if (const Value* target = private_target(function_, operation)) return marker_.needs(target);
        if (operation.op != Op::stack && effects) return true;
        return std::any_of(operation.results.begin(), operation.results.end(),
                           [&](const Value* v) { return marker_.needs(v); });
    }

    // Removes the elements of `list` (counted from `first`) whose result is not needed.
    template <class List>
    void filter(List& list, std::size_t first, const std::vector<bool>& needed) const {
        std::size_t kept = first;
        for (std::size_t i = 0; i < needed.size(); ++i)
            if (needed[i]) list[kept++] = list[first + i];
        list.resize(kept);
    }

    bool drop_slots(Operation& operation) const {
        std::vector<bool> needed;
        for (const Value* result : operation.results) needed.push_back(marker_.needs(result));
        if (std::find(needed.begin(), needed.end(), false) == needed.end()) return false;
        if (operation.op != Op::if_) {
            filter(operation.operands, ir::carried_operands(operation), needed);
            for (Region* region : operation.regions) {
                filter(region->arguments, ir::carried_arguments(operation), needed);
                for (std::size_t i = 0; i < region->arguments.size(); ++i)
                    region->arguments[i]->index = static_cast<int>(i);
            }
        }
        for (Region* region : operation.regions) {
            const bool yields_condition = operation.op == Op::while_ && region == operation.regions[0];
            if (!yields_condition) filter(region->terminator()->operands, 0, needed);
        }
        filter(operation.results, 0, needed);
        for (std::size_t i = 0; i < operation.results.size(); ++i) operation.results[i]->index = static_cast<int>(i);
        return true;
    }

    const Function& function_;
    const Marker& marker_;
    bool any_ = false;
};

}  // namespace

bool remove_dead(Function& function) {
    const Marker marker(function);
    return Sweeper(function, marker).run(function.body);
}

}  // namespace weft::transform
