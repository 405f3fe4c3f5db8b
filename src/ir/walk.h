// Traversals of functions, for every pass: visiting, replacing values, cloning.
#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

#include "ir/ir.h"

namespace weft::ir {

// Calls visit(Operation&) for every operation in program order, an operation before those in its regions. `visit` may
// change operations, but not the lists of operations of regions being walked.
template <class Visit>
void for_each_operation(const Region& region, Visit&& visit) {
    for (Operation* operation : region.operations) {
        visit(*operation);
        for (Region* inner : operation->regions) for_each_operation(*inner, visit);
    }
}

// The number of operations that for_each_operation() visits.
inline int operation_count(const Region& region) {
    int count = 0;
    for_each_operation(region, [&](const Operation&) { ++count; });
    return count;
}

// Calls visit(Region&) for `region` and every region nested in it, outer ones first.
template <class Visit>
void for_each_region(Region& region, Visit&& visit) {
    visit(region);
    for (Operation* operation : region.operations)
        for (Region* inner : operation->regions) for_each_region(*inner, visit);
}

// The values that are operands of some operation.
std::unordered_set<const Value*> used_values(const Function& function);

// The arrays that an operation writes to, itself or in a function that it calls.
std::vector<const Value*> written_arrays(const Operation& operation);

// All operations in the order of for_each_operation(). The position of one is its number, the same in all functions
// that print alike without names.
std::vector<const Operation*> numbered_operations(const Function& function);
// Those of the kernel, then those of the functions that it calls.
std::vector<const Operation*> numbered_operations(const Module& module, const Function& kernel);

// The replacements of the values of one function: a table by id, since ids are dense. Other values stand for
// themselves.
class ValueMap {
public:
    explicit ValueMap(const Function& of) : to_(static_cast<std::size_t>(of.value_count()), nullptr) {}

    void set(const Value* from, Value* to) {
        const std::size_t id = static_cast<std::size_t>(from->id);
        if (id >= to_.size()) to_.resize(id + 1, nullptr);
        to_[id] = to;
    }
    // Null if nothing was set.
    Value* find(const Value* from) const {
        const std::size_t id = static_cast<std::size_t>(from->id);
        return id < to_.size() ? to_[id] : nullptr;
    }
    Value* operator[](Value* from) const {
        Value* to = find(from);
        return to ? to : from;
    }

private:
    std::vector<Value*> to_;
};

// Replaces every use of each mapped value, in one walk. Chains (a -> b, b -> c) are followed to their end; cycles are
// not allowed.
void replace_uses(Region& region, ValueMap& map);

// A copy of `operation` with its regions, not yet in any region. Operands are mapped; results and region arguments get
// fresh values, which are added to the map (a map of the function that `operation` is in).
Operation* clone(Function& into, const Operation& operation, ValueMap& map);

// Appends copies of the operations of `from` (without its terminator) to `to`.
void clone_operations(Function& into, const Region& from, Region& to, ValueMap& map);

// A copy of the whole module, with calls redirected to the copies.
std::unique_ptr<Module> clone(const Module& module);

}  // namespace weft::ir
