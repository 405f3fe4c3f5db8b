#include "transform/analysis/cost/thread_cost.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

#include "ir/indices.h"
#include "ir/loops.h"
#include "ir/walk.h"
#include "transform/analysis/cost/op_costs.h"
#include "types/leaves.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;

// The trips of a loop of unknown length.
constexpr double kUnknownTrips = 32.0;

double trips(const Operation& loop) {
    const std::optional<std::int64_t> known = ir::known_trips(loop);
    return known ? static_cast<double>(*known) : kUnknownTrips;
}

// An access to separate elements takes the lanes one by one, and moves each into or out of the vector register: several
// times the cost of a scalar access, whose address is ready and which overlaps with arithmetic. Under a mask the
// pointers are selected first. bench/throughput/bodies.py has kernels for which this decides.
constexpr double kApart = 1.7, kMaskedApart = 2.0;
// Adjacent vectors are loaded and stored as fast as numbers, but lane by lane under a mask with inactive lanes
// (codegen/cpu/copied_access.cpp).
constexpr double kMaskedVector = 0.6;
// An operation on the lanes one after the other also costs its loop.
constexpr double kOneByOne = 1.2;
// A traversal takes all lanes in one call: 1 M samples of a volume take 17 ms of CPU time in lanes, and 25 one by one.
constexpr double kTogether = 0.8;
// The average share of active lanes in a loop that each lane leaves after its own number of iterations.
constexpr double kBusyLanes = 0.6;
// A branch that threads take irregularly is mispredicted now and then.
constexpr double kBranch = 1.5;
// The share of the cost of both ways of a branch that one scalar thread takes, if a comparison of floats that differ
// between threads decides. (Integers, as kinds of elements and places at borders, mostly send neighbours the same way.)
constexpr double kOneWay = 0.5;
// The share of threads that take the long way of a branch, if the other way only stores known values: an early exit for
// most threads. (If the other way is empty, most threads take the long one: bodies that move, points that are held.)
constexpr double kRestOfWork = 0.25;
// An addition to thread-private elements, per lane.
constexpr double kPlainAtomic = 0.5;

// All values of one thread are uniform.
const Uniformity kOneThread;

class Estimate {
public:
    Estimate(const ir::Function& kernel, const Uniformity& uniformity, int lanes,
             const std::unordered_set<const Operation*>& plain)
        : used_(ir::used_values(kernel)), uniformity_(uniformity), lanes_(lanes), plain_(plain) {
        ir::for_each_operation(kernel.body, [&](const Operation& operation) {
            if (operation.op != Op::select || !ir::as_written(operation.result())) return;
            from_end_.insert(&operation);
            for (std::size_t i : {std::size_t{0}, std::size_t{1}})
                if (const Operation* part = operation.operands[i]->definition) from_end_.insert(part);
        });
        if (lanes == 1) find_shares(kernel.body, 1.0);
    }

    // The cost for one group of lanes.
    double cost_of(const ir::Region& region, bool masked = false) const {
        double sum = 0.0;
        for (const Operation* operation : region.operations) {
            bool loops = operation->op == Op::for_ || operation->op == Op::while_;
            bool splits = divides_lanes(*operation);
            double nested = 0.0;
            for (const ir::Region* inner : operation->regions) {
                const bool is_rare = operation->likely && inner == operation->regions[1];
                if (!is_rare) nested += cost_of(*inner, masked || splits);
            }
            if (loops) nested = (nested + 0.5) * trips(*operation) / (splits && lanes_ > 1 ? kBusyLanes : 1.0);
            const double itself = cost_of(*operation, masked) + (splits && lanes_ == 1 ? kBranch : 0.0);
            sum += nested + itself * (lanes_ == 1 ? shares_.at(operation) : 1.0);
        }
        return sum;
    }

private:
    bool varying(const ir::Value* value) const { return uniformity_.shape(value).kind == LaneShape::Kind::varying; }

    // Whether the operation is divergent.
    bool divides_lanes(const Operation& operation) const {
        switch (operation.op) {
            case Op::if_:
                return varying(operation.operands[0]);
            case Op::while_:
                return varying(operation.body(0).terminator()->operands[0]);
            case Op::for_:
                return varying(operation.operands[0]) || varying(operation.operands[1]) ||
                       varying(operation.operands[2]) ||
                       (operation.guarded && varying(operation.body().arguments.back()));
            default:
                return false;
        }
    }

    // Finds the share of scalar threads that reach each operation. LLVM sinks operations into the only way of a branch
    // that needs them, but neither loops nor branches. Goes backwards, so that users are known first.
    void find_shares(const ir::Region& region, double share) {
        for (const Operation* operation : std::views::reverse(region.operations)) {
            double own = share;
            if (operation->regions.empty() && !ir::has_effects(*operation)) {
                double needed = 0.0;
                for (const ir::Value* result : operation->results) needed = std::max(needed, needed_[result]);
                if (needed > 0.0) own = needed;
            }
            shares_[operation] = own;
            const bool by_floats = operation->op == Op::if_ && compares_floats(operation->operands[0]);
            for (const ir::Region* way : operation->regions)
                find_shares(*way, own * (by_floats ? share_of(*way, *operation) : 1.0));
            for (const ir::Value* operand : operation->operands) {
                double& needed = needed_[operand];
                needed = std::max(needed, own);
            }
        }
    }

    // The share of threads that take this way of a branch on floats.
    static double share_of(const ir::Region& way, const Operation& branch) {
        constexpr int kNextToNothing = 3, kMuch = 24;  // operations
        const bool is_rest_of_work = std::ranges::all_of(branch.regions, [&](const ir::Region* region) {
            const int count = ir::operation_count(*region);
            if (region == &way) return count >= kMuch;
            return count <= kNextToNothing && std::ranges::any_of(region->operations, [](const Operation* operation) {
                       return operation->op == Op::store;
                   });
        });
        return is_rest_of_work ? kRestOfWork : kOneWay;
    }

    // Whether a condition comes from a comparison of floats that differ between threads.
    bool compares_floats(const ir::Value* condition) const {
        const Operation* operation = condition->definition;
        if (!operation || !varying(condition)) return false;
        switch (operation->op) {
            case Op::and_:
            case Op::or_:
            case Op::invert: {
                const auto [known, is_new] = compares_floats_.try_emplace(condition, false);
                if (!is_new) return known->second;
                const bool found = std::ranges::any_of(operation->operands,
                                                       [&](const ir::Value* part) { return compares_floats(part); });
                return compares_floats_[condition] = found;
            }
            case Op::if_: {  // from Python's `and` and `or`
                const auto at = std::ranges::find(operation->results, condition) - operation->results.begin();
                return std::ranges::any_of(operation->regions, [&](const ir::Region* way) {
                    return compares_floats(way->terminator()->operands[static_cast<std::size_t>(at)]);
                });
            }
            default:
                return ir::op_class(operation->op) == ir::OpClass::compare && operation->operands[0]->type.is_float();
        }
    }

    // Whether the lanes' elements of a load or store are not adjacent.
    bool is_apart(const Operation& access) const {
        constexpr int kMostPacked = 4;  // components that are loaded together (codegen/cpu/interleave.cpp)
        const ir::Value* array = access.operands[0];
        const int ndim = array->type.ndim();
        // A thread's own arrays are interleaved: adjacent if all lanes have the same index.
        const bool is_own = ir::is_of_thread(array);
        if (varying(array) && !is_own) return true;
        bool differ = false;
        for (int axis = 1; axis <= ndim; ++axis) {
            const LaneShape shape = uniformity_.shape(access.operands[static_cast<std::size_t>(axis)]);
            if (shape.kind == LaneShape::Kind::uniform) continue;
            const bool is_next = shape.mostly_contiguous ||
                                 (shape.kind == LaneShape::Kind::linear && (shape.stride == 1 || shape.stride == -1));
            if (is_own || axis < ndim || !is_next) return true;
            differ = true;
        }
        return differ && leaf_count(array->type.element()) > kMostPacked;
    }

    // Whether the lanes access adjacent vectors. Precondition: is_apart() is false.
    bool is_row_of_vectors(const Operation& access) const {
        if (ir::is_of_thread(access.operands[0]) || leaf_count(access.operands[0]->type.element()) == 1) return false;
        return std::any_of(
            access.operands.begin() + 1, access.operands.begin() + 1 + access.operands[0]->type.ndim(),
            [&](const ir::Value* index) { return uniformity_.shape(index).kind != LaneShape::Kind::uniform; });
    }

    // Whether the lanes are reduced first, to one atomic (codegen/emit_atomic.cpp).
    bool is_summed(const Operation& operation) const {
        if (!ir::applied(operation.op)) return false;
        return !used_.contains(operation.result()) &&
               std::all_of(operation.operands.begin(), operation.operands.end() - 1, [&](const ir::Value* operand) {
                   return uniformity_.shape(operand).kind == LaneShape::Kind::uniform;
               });
    }

    // Whether an atomic on neighbours' gradients is one load and store for all lanes
    // (codegen/cpu/adjacent_additions.cpp).
    bool is_side_by_side(const Operation& operation) const {
        return ir::is_atomic(operation.op) && !used_.contains(operation.result()) && !is_apart(operation);
    }

    double cost_of(const Operation& operation, bool masked) const {
        int leaves = 1;
        if (from_end_.contains(&operation)) return 0.0;
        if (operation.op == Op::call) return cost_of_call(*operation.function);
        if (!operation.results.empty())
            leaves = leaf_count(operation.result()->type);
        else if (!operation.operands.empty())
            leaves = leaf_count(operation.operands.back()->type);
        double each = plain_.contains(&operation) ? kPlainAtomic : ir::op_info(operation.op).cost;
        if (operation.op == Op::matmul) each += kSimpleCost * operation.operands[0]->type.cols();
        bool one_by_one = ir::is_atomic(operation.op) || operation.op == Op::print;
        using Form = ir::LibraryFunction::Form;
        const bool calls = operation.op == Op::call_library;
        one_by_one |= calls && operation.library->form == Form::each_lane;
        const bool accesses = operation.op == Op::load || operation.op == Op::store;
        if (accesses && lanes_ > 1 && is_apart(operation))
            each = lanes_ * (masked ? kMaskedApart : kApart);
        else if (accesses && lanes_ > 1 && masked && is_row_of_vectors(operation))
            each = lanes_ * kMaskedVector;
        else if (one_by_one && lanes_ > 1 && !is_summed(operation) && !is_side_by_side(operation))
            each *= kOneByOne * lanes_;
        else if (calls && lanes_ > 1 && operation.library->form == Form::masked)
            each *= kTogether * lanes_;
        return each * leaves;
    }

    double cost_of_call(const ir::Function& callee) const {
        if (const auto known = of_callees_.find(&callee); known != of_callees_.end()) return known->second;
        static const std::unordered_set<const Operation*> none;
        Estimate inside(callee, kOneThread, 1, none);
        inside.of_callees_ = of_callees_;
        const double cost = inside.cost_of(callee.body);
        of_callees_ = std::move(inside.of_callees_);
        return of_callees_[&callee] = cost;
    }

    const std::unordered_set<const ir::Value*> used_;
    mutable std::unordered_map<const ir::Function*, double> of_callees_;
    mutable std::unordered_map<const ir::Value*, bool> compares_floats_;
    std::unordered_map<const Operation*, double> shares_;
    std::unordered_map<const ir::Value*, double> needed_;  // the share of threads that need a value
    std::unordered_set<const Operation*> from_end_;        // the handling of negative indices, off the critical path
    const Uniformity& uniformity_;
    int lanes_;
    const std::unordered_set<const Operation*>& plain_;
};

}  // namespace

double thread_cost(const ir::Function& kernel, const Uniformity& uniformity, int lanes,
                   const std::unordered_set<const Operation*>& plain) {
    return 0.2 + Estimate(kernel, lanes == 1 ? kOneThread : uniformity, lanes, plain).cost_of(kernel.body) / lanes;
}

double scalar_cost(const ir::Function& kernel, const Uniformity& uniformity) {
    return 0.2 + Estimate(kernel, uniformity, 1, {}).cost_of(kernel.body);
}

}  // namespace weft::transform
