#include "transform/analysis/privatised.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_set>

#include "ir/typing.h"
#include "ir/walk.h"
#include "transform/analysis/halo.h"
#include "transform/analysis/underlying_memory.h"
#include "types/objects.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

namespace {

// The kind of an atomic that may arrive in any order; empty for others. Atomics on small floats are excluded: their
// sums round at every step, and few additions are exact.
std::optional<Op> commuting_kind(const Operation& operation) {
    Type type = operation.operands.back()->type;
    if (!type.is_scalar() && !type.is_numeric_aggregate()) return std::nullopt;
    Scalar scalar = type.scalar();
    if (scalar == Scalar::boolean || info(scalar).is_small_float() || !ir::applied(operation.op)) return std::nullopt;
    return operation.op == Op::atomic_sub ? Op::atomic_add : operation.op;
}

// The memory of a hash grid belongs to the grid and is no array of the launch.
bool reads_grid(const Operation& operation) {
    const Operation* object = operation.op == Op::load ? object_reached(operation.operands[0]) : nullptr;
    return object && object->ints[0] == static_cast<std::int64_t>(ObjectKind::hash_grid);
}

// A guess at how often a thread reaches an operation, as trip counts are not known.
std::int64_t visits(const Operation& operation) {
    constexpr std::int64_t kTrips = 8, kMost = 512;
    std::int64_t count = 1;
    for (const ir::Region* region = operation.parent; region->owner; region = region->owner->parent)
        if (region->owner->op != Op::if_) count = std::min(count * kTrips, kMost);
    return count;
}

bool is_added_in_any_order(Type element) {
    if (!element.is_scalar() && !element.is_numeric_aggregate()) return false;
    return element.scalar() == Scalar::f32 || element.scalar() == Scalar::f64;
}

}  // namespace

std::map<Memory, Op> privatised_memories(const ir::Function& kernel) {
    if (hides_arrays(kernel)) return {};
    const std::unordered_set<const Value*> used = ir::used_values(kernel);
    bool all_known = true;
    std::map<Memory, Op> kinds;
    std::set<Memory> excluded;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        const bool atomic = ir::is_atomic(operation.op);
        if (atomic || operation.op == Op::load || operation.op == Op::store) {
            if (ir::is_of_thread(operation.operands[0]) || reads_grid(operation)) return;
            const Memory memory = memory_of(kernel, operation.operands[0]);
            if (!memory.is_known() || (memory.gradient && !kernel.is_adjoint)) {
                all_known = false;
                return;
            }
            const std::optional<Op> kind = atomic ? commuting_kind(operation) : std::nullopt;
            const bool looked_at = !operation.results.empty() && used.contains(operation.result());
            const auto at = kinds.find(memory);
            if (!kind || looked_at || (at != kinds.end() && at->second != *kind)) excluded.insert(memory);
            if (kind) kinds.insert_or_assign(memory, *kind);
            // An array read from memory may be any array.
            if (operation.op == Op::load && ir::holds_array(operation.result()->type)) all_known = false;
            return;
        }
        if (operation.op != Op::call && operation.op != Op::call_library) return;
        for (const Value* operand : operation.operands) all_known &= !ir::holds_array(operand->type);
        if (operation.op == Op::call_library) all_known &= !operation.library->reaches_memory();
    });
    if (!all_known) return {};
    for (const Memory& memory : excluded) kinds.erase(memory);
    return kinds;
}

std::vector<Scattered> scattered_gradients(const ir::Function& adjoint) {
    if (!adjoint.is_adjoint) return {};
    const std::map<Memory, Op> privatised = privatised_memories(adjoint);
    const Halo halo = find_halo(adjoint);
    std::map<int, std::int64_t> additions;
    ir::for_each_operation(adjoint.body, [&](const Operation& operation) {
        if (!ir::is_atomic(operation.op)) return;
        const Memory memory = memory_of(adjoint, operation.operands[0]);
        const auto found = privatised.find(memory);
        if (found == privatised.end() || !memory.gradient || found->second != Op::atomic_add) return;
        const Type type = adjoint.parameters()[static_cast<std::size_t>(memory.parameter)]->type;
        if (halo.memories.contains(memory) || !type.is_array() || !is_added_in_any_order(type.element())) return;
        const std::vector<const Value*> indices = indices_from_start(operation);
        const auto is_fixed = [&](const Value* index) { return is_launch_invariant(adjoint, index); };
        if (!std::all_of(indices.begin(), indices.end(), is_fixed)) additions[memory.parameter] += visits(operation);
    });
    std::vector<Scattered> result;
    for (const auto& [parameter, count] : additions) result.push_back({parameter, count});
    return result;
}

}  // namespace weft::transform
