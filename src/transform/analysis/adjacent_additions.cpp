#include "transform/analysis/adjacent_additions.h"

#include <algorithm>
#include <cstdlib>

#include "ir/indices.h"
#include "ir/walk.h"
#include "transform/analysis/underlying_memory.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

namespace {

constexpr std::int64_t kFurthestNeighbour = 4;

struct BaseOffset {
    const Value* base;
    std::int64_t offset;
};

// The value that an index is counted from, without clamps and counting from the end. Code that uses the result tests
// whether these really had no effect.
BaseOffset base_and_offset(const ir::Function& kernel, const Value* index) {
    const Operation* definition = index->definition;
    if (!definition || !index->type.is_scalar() || !index->type.is_int()) return {index, 0};
    const auto& operands = definition->operands;
    if (const Value* written = ir::as_written(index)) return base_and_offset(kernel, written);
    switch (definition->op) {
        case Op::cast:
            return operands[0]->type.is_int() ? base_and_offset(kernel, operands[0]) : BaseOffset{index, 0};
        case Op::add:
        case Op::sub: {
            const bool swaps = definition->op == Op::add && constant_integer(operands[0]);
            const std::optional<std::int64_t> by = constant_integer(operands[swaps ? 0 : 1]);
            if (!by || std::abs(*by) > kFurthestNeighbour) return {index, 0};
            BaseOffset split = base_and_offset(kernel, operands[swaps ? 1 : 0]);
            split.offset += definition->op == Op::add ? *by : -*by;
            return split;
        }
        case Op::max:
        case Op::min:
            for (std::size_t i : {std::size_t{0}, std::size_t{1}})
                if (is_launch_invariant(kernel, operands[1 - i])) return base_and_offset(kernel, operands[i]);
            return {index, 0};
        default:
            return {index, 0};
    }
}

class NeighbourFinder {
public:
    NeighbourFinder(const ir::Function& kernel, const std::function<bool(const Operation&)>& is_plain)
        : kernel_(kernel), is_plain_(is_plain) {}

    std::vector<AdjacentAdditions> run() {
        region(kernel_.body);
        return std::move(found_);
    }

private:
    struct Open {
        Memory memory;
        const Value* base;
        AdjacentAdditions group;
    };

    void region(const ir::Region& from) {
        std::vector<Open> open;
        for (const Operation* operation : from.operations) {
            if (operation->op == Op::atomic_add && is_plain_(*operation)) {
                add(open, *operation);
            } else if (!operation->regions.empty() || operation->op == Op::call) {
                close(open, [](const Open&) { return true; });
            } else if (operation->op == Op::load || ir::writes(operation->op)) {
                const Memory memory = memory_of(kernel_, operation->operands[0]);
                close(open, [&](const Open& one) { return !memory.is_known() || one.memory == memory; });
            }
            for (const ir::Region* inner : operation->regions) region(*inner);
        }
        close(open, [](const Open&) { return true; });
    }

    // Additions commute: one that fits no open group may stand between the members of a group.
    void add(std::vector<Open>& open, const Operation& operation) {
        const std::vector<Value*>& operands = operation.operands;
        const BaseOffset split = base_and_offset(kernel_, operands[operands.size() - 2]);
        for (Open& one : open) {
            const std::vector<Value*>& first = one.group.members[0].add->operands;
            const auto& members = one.group.members;
            const bool is_near =
                std::all_of(members.begin(), members.end(), [&](const AdjacentAdditions::Member& member) {
                    return std::abs(member.offset - split.offset) <= kFurthestNeighbour;
                });
            if (one.base != split.base || !is_near || operands.size() != first.size()) continue;
            if (!std::equal(operands.begin(), operands.end() - 2, first.begin())) continue;
            one.group.members.push_back({&operation, split.offset});
            return;
        }
        open.push_back({memory_of(kernel_, operands[0]), split.base, {{{&operation, split.offset}}}});
    }

    template <class Test>
    void close(std::vector<Open>& open, const Test& test) {
        std::erase_if(open, [&](Open& one) {
            if (!test(one)) return false;
            if (one.group.members.size() > 1) found_.push_back(std::move(one.group));
            return true;
        });
    }

    const ir::Function& kernel_;
    const std::function<bool(const Operation&)>& is_plain_;
    std::vector<AdjacentAdditions> found_;
};

}  // namespace

std::vector<AdjacentAdditions> find_adjacent_additions(const ir::Function& kernel,
                                                       const std::function<bool(const Operation&)>& is_plain) {
    return NeighbourFinder(kernel, is_plain).run();
}

}  // namespace weft::transform
