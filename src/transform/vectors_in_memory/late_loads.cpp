#include "transform/vectors_in_memory/late_loads.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "ir/walk.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

class LateLoads {
public:
    LateLoads(const ir::Function& function, Region& region)
        : function_(function), region_(region), operations_(region.operations) {}

    void run() {
        find_writes();
        find_uses();
        // A load is judged at the latest place that it might get. If it has to stay, so do operations that use it,
        // and other loads move less far.
        find_movable([](std::size_t) { return true; });
        find_places();
        const std::vector<std::size_t> latest = place_;
        find_movable([&](std::size_t load) { return !is_written(load, latest[load]); });
        if (std::find(movable_.begin(), movable_.end(), true) == movable_.end()) return;
        find_places();
        reorder();
    }

private:
    // The local array that a load at constant indices reads; null for other operations.
    static const Value* memory_read(const Operation& operation) {
        if (operation.op != Op::load) return nullptr;
        const Value* memory = operation.operands[0];
        if (!memory->definition || memory->definition->op != Op::local_array) return nullptr;
        const bool is_constant = std::all_of(operation.operands.begin() + 1, operation.operands.end(), constant);
        return is_constant ? memory : nullptr;
    }

    static bool constant(const Value* value) { return value->definition && value->definition->op == Op::constant; }

    // The operations that may write each local array. A null pointer stands for writes to arrays of unknown origin.
    void find_writes() {
        for (std::size_t at = 0; at < operations_.size(); ++at) {
            const auto mark = [&](const Value* array) {
                const Value* root = ir::root_of(array);
                const bool is_local = root->definition && root->definition->op == Op::local_array;
                if (!ir::is_parameter(function_, root)) writes_[is_local ? root : nullptr].push_back(at);
            };
            const auto look = [&](const Operation& operation) {
                for (const Value* array : ir::written_arrays(operation)) mark(array);
                if (operation.op != Op::call_library) return;
                for (const Value* operand : operation.operands)
                    if (operand->type.is_array() || operand->type.is_struct()) mark(operand);
            };
            look(*operations_[at]);
            for (const Region* inner : operations_[at]->regions) ir::for_each_operation(*inner, look);
        }
    }

    // Whether memory that a load reads is written before `place`.
    bool is_written(std::size_t load, std::size_t place) const {
        const Value* memory = memory_read(*operations_[load]);
        if (!memory) return false;
        const auto between = [&](const Value* written) {
            const auto found = writes_.find(written);
            if (found == writes_.end()) return false;
            const auto next = std::ranges::upper_bound(found->second, load);
            return next != found->second.end() && *next < place;
        };
        return between(memory) || between(nullptr);
    }

    // The operations of this region that use each result, directly or in their regions.
    void find_uses() {
        std::unordered_map<const Value*, std::size_t> number;
        uses_.resize(operations_.size());
        for (std::size_t at = 0; at < operations_.size(); ++at) {
            const auto look = [&](const Operation& operation) {
                for (const Value* operand : operation.operands) {
                    const auto found = number.find(operand);
                    if (found != number.end()) uses_[found->second].push_back(at);
                }
            };
            look(*operations_[at]);
            for (const Region* inner : operations_[at]->regions) ir::for_each_operation(*inner, look);
            for (const Value* result : operations_[at]->results) number.emplace(result, at);
        }
    }

    template <class MayMove>
    void find_movable(MayMove may_move) {
        movable_.assign(operations_.size(), false);
        std::unordered_map<const Value*, bool> moves;
        for (std::size_t at = 0; at < operations_.size(); ++at) {
            const Operation& operation = *operations_[at];
            bool is_movable = false;
            if (operation.results.size() != 1 || !operation.regions.empty() || uses_[at].empty()) {
                // stays
            } else if (memory_read(operation)) {
                is_movable = may_move(at);
            } else if (operation.op != Op::load && !ir::has_effects(operation)) {
                bool any = false, all = true;
                for (const Value* operand : operation.operands) {
                    any |= moves[operand];
                    all &= moves[operand] || constant(operand);
                }
                is_movable = any && all;
            }
            movable_[at] = is_movable;
            for (const Value* result : operation.results) moves[result] = is_movable;
        }
    }

    // The operation before which each one is put: itself if it stays.
    void find_places() {
        place_.resize(operations_.size());
        for (std::size_t at = operations_.size(); at-- > 0;) {
            place_[at] = at;
            if (!movable_[at]) continue;
            place_[at] = operations_.size();
            for (const std::size_t use : uses_[at]) place_[at] = std::min(place_[at], place_[use]);
        }
    }

    void reorder() {
        std::vector<std::vector<Operation*>> before(operations_.size());
        for (std::size_t at = 0; at < operations_.size(); ++at) before[place_[at]].push_back(operations_[at]);
        std::vector<Operation*> ordered;
        ordered.reserve(operations_.size());
        for (const std::vector<Operation*>& each : before) ordered.insert(ordered.end(), each.begin(), each.end());
        region_.operations = std::move(ordered);
    }

    const ir::Function& function_;
    Region& region_;
    const std::vector<Operation*> operations_;
    std::unordered_map<const Value*, std::vector<std::size_t>> writes_;
    std::vector<std::vector<std::size_t>> uses_;
    std::vector<bool> movable_;
    std::vector<std::size_t> place_;
};

}  // namespace

void delay_component_loads(ir::Function& function) {
    ir::for_each_region(function.body, [&](Region& region) { LateLoads(function, region).run(); });
}

}  // namespace weft::transform
