#include "transform/analysis/cost/lane_count.h"

#include <algorithm>
#include <optional>

#include "ir/walk.h"
#include "transform/analysis/cost/op_costs.h"
#include "transform/analysis/cost/speculation.h"
#include "transform/analysis/cost/thread_cost.h"
#include "transform/analysis/underlying_memory.h"
#include "types/leaves.h"
#include "types/objects.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;

// Whether the kernel computes f64 values that differ between lanes.
bool computes_in_f64(const ir::Function& kernel, const Uniformity& uniformity) {
    bool found = false;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        for (const ir::Value* result : operation.results) {
            bool numeric = result->type.is_scalar() || result->type.is_numeric_aggregate();
            found |= numeric && result->type.scalar() == Scalar::f64 &&
                     uniformity.shape(result).kind != LaneShape::Kind::uniform;
        }
    });
    return found;
}

// Whether the operation is one instruction on numbers, or none at all. Code on bits computes addresses and random
// numbers, which is no arithmetic of this kind.
bool is_short(const Operation& operation) {
    switch (operation.op) {
        case Op::invert:
        case Op::xor_:
        case Op::shl:
        case Op::shr:
        case Op::bitcast:
            return false;
        default:
            return is_cheap_to_speculate(operation) && ir::op_info(operation.op).cost <= kSimpleCost;
    }
}

// The number of floating-point operations of a region, or nothing if it holds longer operations: calls, atomics,
// further loops.
std::optional<int> short_arithmetic(const ir::Region& region, bool memory_allowed) {
    int count = 0;
    for (const Operation* operation : region.operations) {
        if (operation->op == Op::if_) {
            auto a = short_arithmetic(operation->body(0), memory_allowed),
                 b = short_arithmetic(operation->body(1), memory_allowed);
            if (!a || !b) return std::nullopt;
            count += *a + *b;
        } else if (operation->op == Op::load || operation->op == Op::store || operation->op == Op::view) {
            if (!memory_allowed) return std::nullopt;
        } else if (!is_short(*operation)) {
            return std::nullopt;
        } else if (ir::op_info(operation->op).cost > 0.0 && operation->op != Op::cast) {
            const Type type = operation->operands[0]->type;
            const bool is_number = type.is_scalar() || type.is_numeric_aggregate();
            if (is_number && (type.scalar() == Scalar::f32 || type.scalar() == Scalar::f64)) count += leaf_count(type);
        }
    }
    return count;
}

bool is_loop(const Operation& operation) { return operation.op == Op::for_ || operation.op == Op::while_; }

// Whether the kernel is bound by the latency of a short loop with dependent iterations: two registers full of threads
// then keep the processor's units busy. (A loop over memory can overlap its loads.)
bool has_short_serial_loop(const ir::Function& kernel) {
    constexpr int kShortLoop = 24;
    constexpr std::size_t kFewCarried = 4;
    bool found = false;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        if (!is_loop(operation) || operation.results.size() > kFewCarried) return;
        int count = 0;
        for (const ir::Region* part : operation.regions)
            count += short_arithmetic(*part, false).value_or(kShortLoop + 1);
        found |= count > 0 && count <= kShortLoop;
    });
    return found;
}

// Whether the operation is a call of the math library. The remainder of floats is one, beside an instruction for
// integers.
bool is_function(const Operation& operation) {
    const ir::OpClass cls = ir::op_class(operation.op);
    if ((cls != ir::OpClass::unary && cls != ir::OpClass::binary) || !operation.operands[0]->type.is_float())
        return false;
    const double cost = ir::op_info(operation.op).cost;
    return operation.op == Op::rem || (cost >= kFunctionCost && cost < kProgramCost);
}

// Whether the kernel is mostly transcendental functions of each other's results. One call is a chain of some sixty
// cycles that leaves most units idle, and is too long for the processor to look past. So several calls of each must be
// independent.
bool is_chain_of_functions(const ir::Function& kernel) {
    constexpr int kFewest = 2, kMostOperations = 64;
    int functions = 0, operations = 0;
    bool loops = false;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        ++operations;
        loops |= is_loop(operation);
        functions += is_function(operation) ? 1 : 0;
    });
    return !loops && functions >= kFewest && operations <= kMostOperations;
}

// Whether the kernel queries trees for all lanes together (devlib/spatial).
bool calls_traversals(const ir::Function& kernel) {
    bool found = false;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        found |= operation.op == Op::call_library && operation.library->form == ir::LibraryFunction::Form::masked &&
                 operation.library->reaches_memory();
    });
    return found;
}

// Whether there are loops over rows of a hash grid's cells (transform/passes/neighbour_rows.cpp), and none of them has
// effects.
bool reads_rows_of_grids(const ir::Function& kernel) {
    const auto is_of_grid = [](const ir::Value* bound) {
        const Operation* load = bound->definition;
        if (!load || load->op != Op::load) return false;
        const Operation* object = object_reached(load->operands[0]);
        return object && object->ints[0] == static_cast<std::int64_t>(ObjectKind::hash_grid);
    };
    bool found = false, only_reads = true;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        if (operation.op != Op::for_ || !is_of_grid(operation.operands[0]) || !is_of_grid(operation.operands[1]))
            return;
        found = true;
        only_reads &= !ir::has_effects(operation);
    });
    return found && only_reads;
}

// The largest power of two for which the arrays that passes gave each thread fit on a worker's stack.
int most_lanes_on_stack(const ir::Function& kernel) {
    constexpr std::int64_t kMostBytes = 1024 * 1024;
    constexpr int kMost = 64;
    std::int64_t bytes = 0;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        if (operation.op != Op::local_array || !operation.unset) return;
        std::int64_t of_array = operation.result()->type.element().size_bytes();
        for (const std::int64_t extent : operation.ints) of_array *= extent;
        bytes += of_array;
    });
    int lanes = kMost;
    while (lanes > 1 && lanes * bytes > kMostBytes) lanes /= 2;
    return lanes;
}

// The lane count, by the first rule that applies:
//
// - One lane in kernels that are large or call functions: lanes would take seconds to compile, and few would gain.
// - On short rows, the fewest lanes that pay for masks, four, or one lane, by the estimated cost.
// - One lane if threads gather in loops of different lengths and do little else: a gather is as many loads as there are
//   lanes, and finished lanes wait for the others. But eight lanes if each goes through rows of a hash grid's cells and
//   the processor has fast gathers: the rows are about equally long, and with more lanes each waits for the longest.
// - A packet full of rays (devlib/spatial/packet.h) for traversals, which take most of the time.
// - Two registers full of f32 for chains of functions, which is four of f64.
// - Two registers full for short serial loops, and for kernels with little arithmetic, in which counting threads costs
//   as much as the work.
// - Else one register full of the kernel's numbers, and at least four lanes.
LaneChoice preferred_lanes(const ir::Function& kernel, const Uniformity& uniformity, const VectorUnit& unit,
                           bool short_rows) {
    constexpr int kFewest = 4, kNextToNothing = 8, kPacket = 16, kInRows = 8;
    const auto one = [](const char* reason) { return LaneChoice{1, reason}; };
    if (!uniformity.runs_in_lanes)
        return one("runs one thread at a time: the kernel is large, and would take seconds to compile for lanes");
    if (short_rows && kernel.tid_rank > 1) {
        constexpr double kTypicalRow = 0.5 * (1 + kShortRow);
        const double row = thread_cost(kernel, uniformity, kFewest) * kFewest;  // one group is a row
        if (row <= scalar_cost(kernel, uniformity) * kTypicalRow) return {kFewest};
        return one("runs one thread at a time: the launch's last axis has few threads");
    }
    const bool wide = computes_in_f64(kernel, uniformity);
    const int lanes = std::max(kFewest, unit.bits / (wide ? 64 : 32));
    if (thread_cost(kernel, uniformity, lanes) > scalar_cost(kernel, uniformity)) {
        if (unit.fast_gathers && unit.mask_registers && reads_rows_of_grids(kernel)) return {kInRows};
        return one("runs one thread at a time: lanes would gather, and wait for each other, for longer than they save");
    }
    if (calls_traversals(kernel)) return {std::max(kPacket, lanes)};
    if (is_chain_of_functions(kernel)) return {std::max(kFewest, unit.bits / 32) * 2};
    if (has_short_serial_loop(kernel)) return {2 * lanes};
    std::optional<int> arithmetic = short_arithmetic(kernel.body, true);
    return {!wide && arithmetic && *arithmetic > 0 && *arithmetic <= kNextToNothing ? 2 * lanes : lanes};
}

}  // namespace

LaneChoice choose_lanes(const ir::Function& kernel, const Uniformity& uniformity, const VectorUnit& unit, int asked,
                        bool short_rows) {
    LaneChoice choice{asked};
    if (asked == 0) choice = preferred_lanes(kernel, uniformity, unit, short_rows);
    if (asked > 1 && !uniformity.runs_in_lanes) choice.lanes = 1;
    choice.lanes = std::min(choice.lanes, most_lanes_on_stack(kernel));
    return choice;
}

}  // namespace weft::transform
