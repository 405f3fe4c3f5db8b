#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "codegen/codegen.h"
#include "codegen/cost.h"
#include "codegen/emitter.h"
#include "support/error.h"

namespace weft::codegen {

namespace {

// Whether f64 values that differ between lanes make up the kernel's arithmetic.
bool computes_in_f64(const ir::Region& region, const transform::VectorPlan& plan) {
    for (const ir::Operation* operation : region.operations) {
        for (const ir::Value* result : operation->results) {
            bool numeric = result->type.is_scalar() || result->type.is_numeric_aggregate();
            if (numeric && result->type.scalar() == Scalar::f64 &&
                plan.shape(result).kind != transform::LaneShape::Kind::uniform)
                return true;
        }
        for (const ir::Region* nested : operation->regions)
            if (computes_in_f64(*nested, plan)) return true;
    }
    return false;
}

// The arithmetic of a region in numbers computed per thread, or nothing where it holds what takes long anyway: calls,
// atomics, further loops.
std::optional<int> short_arithmetic(const ir::Region& region, bool memory_allowed) {
    using ir::Op;
    int count = 0;
    for (const ir::Operation* operation : region.operations) {
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
            case Op::floor:
                if (operation->operands[0]->type.scalar() == Scalar::f32)
                    count += leaf_count(operation->operands[0]->type);
                break;
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

// Whether the kernel waits for its own results: a short loop whose iterations depend on each other keeps the units of
// the processor idle unless two registers full of threads take turns. (A loop over memory has its loads to overlap.)
bool has_short_serial_loop(const ir::Region& region) {
    constexpr int kShortLoop = 24, kFewCarried = 4;
    for (const ir::Operation* operation : region.operations) {
        bool loops = operation->op == ir::Op::for_ || operation->op == ir::Op::while_;
        if (loops && operation->results.size() <= kFewCarried) {
            int count = 0;
            bool is_short = true;
            for (const ir::Region* part : operation->regions) {
                auto arithmetic = short_arithmetic(*part, false);
                is_short &= arithmetic.has_value();
                count += arithmetic.value_or(0);
            }
            if (is_short && count > 0 && count <= kShortLoop) return true;
        }
        for (const ir::Region* nested : operation->regions)
            if (has_short_serial_loop(*nested)) return true;
    }
    return false;
}

// A register full of the kernel's numbers, and at least four lanes: fewer would not pay for masks. Two registers for
// short loops (above) and for kernels that do next to nothing, where counting threads would cost as much as the work.
int preferred_lanes(const ir::Function& kernel, const Machine& machine) {
    constexpr int kFewest = 4, kNextToNothing = 8;
    transform::VectorPlan plan = transform::vectorize(kernel, kFewest);
    if (plan.lanes == 1) return 1;
    if (computes_in_f64(kernel.body, plan)) return std::max(kFewest, machine.vector_bits / 64);
    int lanes = std::max(kFewest, machine.vector_bits / 32);
    std::optional<int> arithmetic = short_arithmetic(kernel.body, true);
    bool idle = has_short_serial_loop(kernel.body) || (arithmetic && *arithmetic > 0 && *arithmetic <= kNextToNothing);
    return idle ? 2 * lanes : lanes;
}

std::string symbol_of(const ir::Function& kernel, std::size_t number) {
    std::string symbol = "weft_" + std::to_string(number) + "_";
    for (char c : kernel.name) symbol += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return symbol;
}

}  // namespace

Lowered lower(const ir::Module& module, const TargetInfo& target, const Options& options, llvm::LLVMContext& context) {
    Machine machine(target);
    Lowered lowered{std::make_unique<llvm::Module>("weft", context), {}};
    lowered.module->setTargetTriple(llvm::Triple(target.triple));
    for (std::size_t number = 0; number < module.functions.size(); ++number) {
        const ir::Function& kernel = *module.functions[number];
        WEFT_CHECK(kernel.is_kernel,
                   "codegen: '" + kernel.name + "' is not a kernel; user functions are inlined before");
        int lanes = options.debug ? 1 : options.lanes > 0 ? options.lanes : preferred_lanes(kernel, machine);
        transform::VectorPlan plan = transform::vectorize(kernel, lanes);
        KernelEntry entry;
        entry.name = kernel.name;
        entry.symbol = symbol_of(kernel, number);
        entry.tid_rank = kernel.tid_rank;
        entry.lanes = plan.lanes;
        entry.cost = estimate_cost(kernel, plan.lanes);
        for (const auto& remark : plan.remarks)
            entry.remarks.push_back(remark.span ? remark.span.place() + ": " + remark.text : remark.text);
        Emitter(kernel, plan, machine, options, *lowered.module).emit(entry);
        lowered.kernels.push_back(std::move(entry));
    }
#ifndef NDEBUG
    std::string problem;
    llvm::raw_string_ostream text(problem);
    if (llvm::verifyModule(*lowered.module, &text)) throw InternalError("codegen made invalid LLVM IR: " + problem);
#endif
    return lowered;
}

}  // namespace weft::codegen
