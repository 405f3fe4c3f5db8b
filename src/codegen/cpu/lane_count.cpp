#include "codegen/cpu/lane_count.h"

#include <algorithm>
#include <optional>

#include "codegen/codegen.h"
#include "codegen/cpu/cost.h"
#include "codegen/math.h"
#include "ir/walk.h"
#include "transform/analysis/underlying_memory.h"
#include "types/objects.h"

namespace weft::codegen {

namespace {

using ir::Op;
using ir::Operation;

// Whether the kernel computes f64 values that differ between lanes.
bool computes_in_f64(const ir::Function& kernel, const transform::Uniformity& uniformity) {
    bool found = false;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        for (const ir::Value* result : operation.results) {
            bool numeric = result->type.is_scalar() || result->type.is_numeric_aggregate();
            found |= numeric && result->type.scalar() == Scalar::f64 &&
                     uniformity.shape(result).kind != transform::LaneShape::Kind::uniform;
        }
    });
    return found;
}

// The number of floating-point operations of a region, or nothing if it holds longer operations: calls, atomics,
// further loops.
std::optional<int> short_arithmetic(const ir::Region& region, bool memory_allowed) {
    int count = 0;
    for (const Operation* operation : region.operations) {
        switch (operation->op) {
            case Op::load:
            case Op::store:
            case Op::view:
                if (!memory_allowed) return std::nullopt;
                break;
            case Op::neg:
            case Op::abs:
            case Op::add:
            case Op::sub:
            case Op::mul:
            case Op::min:
            case Op::max:
            case Op::fma:
            case Op::select:
            case Op::reduce_add:
            case Op::cmp_lt:
            case Op::cmp_le:
            case Op::cmp_gt:
            case Op::cmp_ge:
            case Op::cmp_eq:
            case Op::cmp_ne:
            case Op::and_:
            case Op::or_:
            case Op::floor: {
                Scalar scalar = operation->operands[0]->type.scalar();
                if (scalar == Scalar::f32 || scalar == Scalar::f64) count += leaf_count(operation->operands[0]->type);
                break;
            }
            case Op::constant:
            case Op::make:
            case Op::splat:
            case Op::extract:
            case Op::insert:
            case Op::cast:
            case Op::tid:
            case Op::dim:
            case Op::yield:
            case Op::return_:
                break;
            case Op::if_: {
                auto a = short_arithmetic(operation->body(0), memory_allowed),
                     b = short_arithmetic(operation->body(1), memory_allowed);
                if (!a || !b) return std::nullopt;
                count += *a + *b;
                break;
            }
            default:
                return std::nullopt;
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
        functions += is_library_math(operation.op) && operation.operands[0]->type.is_float() ? 1 : 0;
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
        const Operation* object = transform::object_reached(load->operands[0]);
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

}  // namespace

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
LaneChoice preferred_lanes(const transform::KernelPlan& plan, const Machine& machine, bool short_rows) {
    constexpr int kFewest = 4, kNextToNothing = 8, kPacket = 16, kInRows = 8;
    const ir::Function& kernel = *plan.function;
    const auto one = [](const char* reason) { return LaneChoice{1, reason}; };
    if (!plan.uniformity.runs_in_lanes)
        return one("runs one thread at a time: the kernel is large, and would take seconds to compile for lanes");
    if (short_rows && kernel.tid_rank > 1) {
        constexpr double kTypicalRow = 0.5 * (1 + kShortRow);
        const double row = estimate_cost(plan, kFewest) * kFewest;  // one group is a row
        if (row <= estimate_scalar_cost(plan) * kTypicalRow) return {kFewest};
        return one("runs one thread at a time: the launch's last axis has few threads");
    }
    const bool wide = computes_in_f64(kernel, plan.uniformity);
    const int lanes = std::max(kFewest, machine.vector_bits / (wide ? 64 : 32));
    if (estimate_cost(plan, lanes) > estimate_scalar_cost(plan)) {
        if (machine.fast_gathers && machine.mask_registers && reads_rows_of_grids(kernel)) return {kInRows};
        return one("runs one thread at a time: lanes would gather, and wait for each other, for longer than they save");
    }
    if (calls_traversals(kernel)) return {std::max(kPacket, lanes)};
    if (is_chain_of_functions(kernel)) return {std::max(kFewest, machine.vector_bits / 32) * 2};
    if (has_short_serial_loop(kernel)) return {2 * lanes};
    std::optional<int> arithmetic = short_arithmetic(kernel.body, true);
    return {!wide && arithmetic && *arithmetic > 0 && *arithmetic <= kNextToNothing ? 2 * lanes : lanes};
}

}  // namespace weft::codegen
