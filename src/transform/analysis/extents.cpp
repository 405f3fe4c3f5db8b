#include "transform/analysis/extents.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <ranges>
#include <set>
#include <span>
#include <unordered_map>

#include "ir/walk.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

// The extents that a number may come from: (parameter, axis).
using Sources = std::set<std::pair<int, int>>;

class ExtentFinder {
public:
    explicit ExtentFinder(const ir::Function& function) : function_(function) {}

    std::vector<NarrowExtent> run() {
        ir::for_each_operation(function_.body, [&](const Operation& operation) { visit(operation); });
        return std::move(found_);
    }

private:
    // An upper bound of a number, from constants: a[0:5] has five elements at most.
    static std::int64_t most(const Value* value) {
        const Operation* of = value->definition;
        if (!of) return std::numeric_limits<std::int64_t>::max();
        const auto operand = [&](std::size_t i) { return most(of->operands[i]); };
        switch (of->op) {
            case Op::constant:
                return value->type.is_scalar() && value->type.is_int() ? of->numbers[0].i
                                                                       : std::numeric_limits<std::int64_t>::max();
            case Op::min:
                return std::min(operand(0), operand(1));
            case Op::max:
                return std::max(operand(0), operand(1));
            case Op::select:
                return std::max(operand(1), operand(2));
            case Op::sub: {
                const Operation* start = of->operands[1]->definition;
                const bool is_constant = start && start->op == Op::constant && start->numbers[0].i >= 0;
                return is_constant || is_never_negative(of->operands[1]) ? operand(0)
                                                                         : std::numeric_limits<std::int64_t>::max();
            }
            default:
                return std::numeric_limits<std::int64_t>::max();
        }
    }
    static bool is_never_negative(const Value* value) {
        const Operation* of = value->definition;
        if (!of) return false;
        if (of->op == Op::constant) return value->type.is_int() && of->numbers[0].i >= 0;
        if (of->op == Op::dim || of->op == Op::tid) return true;
        if (of->op == Op::max) return is_never_negative(of->operands[0]) || is_never_negative(of->operands[1]);
        if (of->op == Op::min) return is_never_negative(of->operands[0]) && is_never_negative(of->operands[1]);
        return false;
    }

    // The axes of parameters that the array's `axis` may lie along. Empty if it cannot exceed 32 bits.
    Sources sources_of(const Value* array, int axis) const {
        const Operation* of = array->definition;
        if (!of) {
            const auto parameters = function_.parameters();
            for (std::size_t i = 0; function_.is_kernel && i < parameters.size(); ++i)
                if (parameters[i] == array) return {{static_cast<int>(i), axis}};
            return {{-1, -1}};
        }
        switch (of->op) {
            case Op::view:
                return sources_of(of->operands[0], axis + static_cast<int>(of->operands.size()) - 1);
            case Op::grad_of:
            case Op::member:
                return sources_of(of->operands[0], axis);
            case Op::components:  // the last axes are those of an element
                if (axis >= of->operands[0]->type.ndim()) return {};
                return sources_of(of->operands[0], axis);
            case Op::slice: {
                const int cut = static_cast<int>(of->ints[0]);
                const bool is_gone = of->operands.size() == 2;
                if (is_gone) return sources_of(of->operands[0], axis >= cut ? axis + 1 : axis);
                if (axis == cut && most(of->operands[2]) <= kMost) return {};
                return sources_of(of->operands[0], axis);
            }
            case Op::local_array:
            case Op::stack:
            case Op::array_at:
            case Op::overlay:
            case Op::argument:
                return {};       // an int32 gave its extent
            case Op::extract: {  // of a struct
                const Value* whole = of->operands[0];
                const auto parameters = function_.parameters();
                for (std::size_t i = 0; function_.is_kernel && i < parameters.size(); ++i)
                    if (parameters[i] == whole) return {{static_cast<int>(i), -1}};
                return {{-1, -1}};
            }
            default:
                return {{-1, -1}};
        }
    }

    void note(const Sources& sources, Span span) {
        for (const auto& [parameter, axis] : sources) {
            const bool is_known = std::ranges::any_of(
                found_, [&](const NarrowExtent& one) { return one.parameter == parameter && one.axis == axis; });
            if (!is_known) found_.push_back({parameter, axis, span});
        }
    }

    void visit(const Operation& operation) {
        if (operation.op == Op::dim) {
            const Sources sources = sources_of(operation.operands[0], static_cast<int>(operation.ints[0]));
            if (!sources.empty()) wide_[operation.result()] = sources;
            return;
        }
        Sources sources;
        for (const Value* operand : operation.operands)
            if (const auto found = wide_.find(operand); found != wide_.end())
                sources.insert(found->second.begin(), found->second.end());
        if (sources.empty()) return;
        switch (operation.op) {
            case Op::neg:
            case Op::add:
            case Op::sub:
            case Op::mul:
            case Op::div:
            case Op::rem:
            case Op::min:
            case Op::max:
            case Op::select:
                if (operation.result()->type == i32_type()) {
                    wide_[operation.result()] = std::move(sources);
                    return;
                }
                break;
            case Op::cast:
                if (info(operation.result()->type.scalar()).bits == 64) return;
                break;
            case Op::cmp_eq:
            case Op::cmp_ne:
            case Op::cmp_lt:
            case Op::cmp_le:
            case Op::cmp_gt:
            case Op::cmp_ge:
            case Op::load:
            case Op::view:
            case Op::slice:
                return;
            case Op::for_:
                if (std::ranges::none_of(operation.operands | std::views::drop(3),
                                         [&](const Value* init) { return wide_.contains(init); }))
                    return;
                break;
            default:
                if (operation.op == Op::store || ir::is_atomic(operation.op)) {
                    const std::size_t values = ir::values_behind_indices(operation.op);
                    const auto stored = std::span<ir::Value* const>(operation.operands).last(values);
                    if (std::ranges::none_of(stored, [&](const Value* one) { return wide_.contains(one); })) return;
                }
                break;
        }
        note(sources, operation.span);
    }

    const ir::Function& function_;
    std::unordered_map<const Value*, Sources> wide_;
    std::vector<NarrowExtent> found_;
};

}  // namespace

std::vector<NarrowExtent> narrow_extents(const ir::Module& module) {
    std::vector<NarrowExtent> all;
    for (const auto& function : module.functions)
        for (NarrowExtent& one : ExtentFinder(*function).run()) all.push_back(one);
    return all;
}

}  // namespace weft::transform
