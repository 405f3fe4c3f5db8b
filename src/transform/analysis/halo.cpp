#include "transform/analysis/halo.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

#include "ir/indices.h"
#include "ir/lower_bounds.h"
#include "ir/typing.h"
#include "ir/walk.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

namespace {

// With a longer halo a chunk would hardly have an interior.
constexpr std::int64_t kFurthest = 16;

// A value lies between the first coordinate plus `low` and plus `high`.
struct Span {
    std::int64_t low, high;
};

class HaloFinder {
public:
    explicit HaloFinder(const ir::Function& kernel) : kernel_(kernel) {}

    // Assumes that coordinates are not negative, and that none is above the bounds.
    std::optional<Span> span(const Value* value) {
        const Operation* definition = value->definition;
        if (!definition) return {};
        const auto& operands = definition->operands;
        switch (definition->op) {
            case Op::tid:
                return definition->ints[0] == 0 ? std::optional(Span{0, 0}) : std::nullopt;
            case Op::cast:
                return value->type.is_int() ? span(operands[0]) : std::nullopt;
            case Op::add:
                return shifted(operands[0], operands[1], 1, true);
            case Op::sub:
                return shifted(operands[0], operands[1], -1, false);
            case Op::max:
                return larger(operands[0], operands[1]);
            case Op::min:
                return smaller(operands[0], operands[1]);
            case Op::select: {
                if (const Value* written = ir::as_written(value)) return counted(written);
                const std::optional<Span> a = span(operands[1]), b = span(operands[2]);
                if (!a || !b) return {};
                return Span{std::min(a->low, b->low), std::max(a->high, b->high)};
            }
            default:
                return {};
        }
    }

    std::vector<const Value*> take_bounds() { return std::move(bounds_); }

private:
    // An index that would count from the end if it were negative. It is not negative if the bounds hold, as coordinates
    // never are.
    std::optional<Span> counted(const Value* index) {
        const std::optional<Span> found = span(index);
        ir::LowerBounds bounds;
        for (const Value* bound : bounds_) bounds.assume_least(bound, 0);
        return bounds.is_never_negative(index) ? found : std::nullopt;
    }

    std::optional<Span> shifted(const Value* a, const Value* b, std::int64_t sign, bool commutes) {
        if (!constant_integer(b) && commutes) std::swap(a, b);
        const std::optional<std::int64_t> by = constant_integer(b);
        if (!by || std::abs(*by) > kFurthest) return {};
        const std::optional<Span> from = span(a);
        if (!from) return {};
        return Span{from->low + sign * *by, from->high + sign * *by};
    }

    // max(i - 1, 0)
    std::optional<Span> larger(const Value* a, const Value* b) {
        if (!constant_integer(b)) std::swap(a, b);
        const std::optional<std::int64_t> least = constant_integer(b);
        if (!least || *least > 0) return {};
        const std::optional<Span> from = span(a);
        if (!from) return {};
        return Span{from->low, std::max<std::int64_t>(from->high, 0)};
    }

    // min(i + 1, n - 1)
    std::optional<Span> smaller(const Value* a, const Value* b) {
        if (!is_launch_invariant(kernel_, b)) std::swap(a, b);
        if (!is_launch_invariant(kernel_, b)) return {};
        const std::optional<Span> from = span(a);
        if (!from) return {};
        bounds_.push_back(b);
        return Span{std::min<std::int64_t>(from->low, 0), from->high};
    }

    const ir::Function& kernel_;
    std::vector<const Value*> bounds_;
};

}  // namespace

Halo find_halo(const ir::Function& kernel) {
    Halo halo;
    if (!kernel.is_adjoint || kernel.tid_rank == 0) return halo;
    if (hides_arrays(kernel)) return halo;
    const std::unordered_set<const Value*> used = ir::used_values(kernel);
    bool all_known = true;
    HaloFinder finder(kernel);
    // By memory, for each index: how far it is from the coordinate in all atomics so far; empty if that is not known.
    std::map<Memory, std::vector<std::optional<std::int64_t>>> places;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        if (operation.op == Op::call || operation.op == Op::call_library)
            for (const Value* operand : operation.operands) all_known &= !ir::holds_array(operand->type);
        if (operation.op == Op::call_library) all_known &= !operation.library->reaches_memory();
        if (!ir::is_atomic(operation.op)) return;
        const Value* root = ir::root_of(operation.operands[0]);
        if (root->definition && root->definition->op == Op::local_array) return;
        const Memory memory = memory_of(kernel, operation.operands[0]);
        all_known &= memory.is_known();
        if (!memory.is_known() || !memory.gradient) return;
        const std::vector<const Value*> indices = indices_from_start(operation);
        const bool adds = operation.op == Op::atomic_add && !used.contains(operation.result());
        std::vector<std::optional<std::int64_t>> here(indices.size());
        for (std::size_t i = 0; i < indices.size() && adds; ++i)
            if (const std::optional<Span> span = finder.span(indices[i]))
                here[i] = std::max(std::abs(span->low), std::abs(span->high));
        const auto [known, fresh] = places.try_emplace(memory, here);
        if (fresh) return;
        known->second.resize(std::min(known->second.size(), here.size()));  // components() has more indices
        for (std::size_t i = 0; i < known->second.size(); ++i) {
            std::optional<std::int64_t>& so_far = known->second[i];
            if (so_far && here[i])
                so_far = std::max(*so_far, *here[i]);
            else
                so_far.reset();
        }
    });
    if (!all_known) return halo;
    for (const auto& [memory, distances] : places) {
        std::optional<std::size_t> place;  // of the index with the shortest distance
        for (std::size_t i = 0; i < distances.size(); ++i)
            if (distances[i] && (!place || *distances[i] < *distances[*place])) place = i;
        if (!place || *distances[*place] > kFurthest) continue;
        halo.memories.emplace(memory, *place);
        halo.most = std::max(halo.most, *distances[*place]);
    }
    if (!halo.memories.empty()) halo.bounds = finder.take_bounds();
    return halo;
}

}  // namespace weft::transform
