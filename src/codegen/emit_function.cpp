// A function's arguments and regions, and the dispatch of operations to the other files.
#include <llvm/IR/MDBuilder.h>

#include <algorithm>

#include "codegen/emitter.h"
#include "ir/unroll_limit.h"
#include "ir/walk.h"
#include "support/error.h"

namespace weft::codegen {

Emitter::Emitter(const transform::KernelPlan& plan, int lanes, const Machine& machine, const Options& options,
                 llvm::Module& module, NativeFunctions& natives, Callees& callees)
    : plan_(plan),
      kernel_(*plan.function),
      machine_(machine),
      options_(options),
      module_(module),
      natives_(natives),
      callees_(callees),
      context_(module.getContext()),
      builder_(module.getContext()),
      lanes_(builder_, lanes, machine),
      conversions_(builder_, machine) {
    if (options.fast_math) {
        // All flags but "no NaN" and "no infinity": isnan() keeps its meaning.
        llvm::FastMathFlags flags;
        flags.setAllowReassoc();
        flags.setNoSignedZeros();
        flags.setAllowReciprocal();
        flags.setAllowContract(options.fuse_fp);
        flags.setApproxFunc();
        builder_.setFastMathFlags(flags);
    }
}

llvm::Value* Emitter::stack_slot(llvm::Type* type, llvm::Align alignment, const char* name) {
    Builder entry(&function_->getEntryBlock(), function_->getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    llvm::AllocaInst* memory = entry.CreateAlloca(type, module_.getDataLayout().getAllocaAddrSpace(), nullptr, name);
    memory->setAlignment(alignment);
    return entry.CreateAddrSpaceCast(memory, builder_.getPtrTy());
}

// Starts the entry block and the debug information.
void Emitter::open_function(llvm::Function* function) {
    function_ = function;
    if (options_.line_info) debug_.emplace(module_, kernel_, *function, machine_.only_lines);
    builder_.SetInsertPoint(new_block("entry"));
    if (debug_) debug_->set(builder_, kernel_.span);
    mostly_ = llvm::MDBuilder(context_).createLikelyBranchWeights();
}

std::vector<bool> Emitter::leaves_used(const ir::Value* parameter) const {
    const int count = leaf_count(parameter->type);
    if (count <= ir::kMostUnrolled) return {};
    std::vector<bool> used(static_cast<std::size_t>(count), false);
    ir::for_each_operation(kernel_.body, [&](const ir::Operation& operation) {
        if (operation.op == ir::Op::argument) return;
        if (std::ranges::find(operation.operands, parameter) == operation.operands.end()) return;
        LeafRange part{0, parameter->type};
        if (operation.op == ir::Op::extract) part = find_part(parameter->type, operation.ints);
        std::fill_n(used.begin() + part.first, leaf_count(part.type), true);
    });
    return used;
}

void Emitter::load_arguments(llvm::Value* arguments) {
    arguments_ = arguments;
    std::vector<Type> types;
    for (const ir::Value* parameter : kernel_.parameters()) types.push_back(parameter->type);
    ArgumentLayout layout = argument_layout(types);
    llvm::MDNode* nothing = llvm::MDNode::get(context_, {});
    for (std::size_t i = 0; i < types.size(); ++i) {
        LaneValue result{types[i], {}, {}};
        const std::vector<bool> used = leaves_used(kernel_.parameters()[i]);
        for (const LeafType& leaf : leaf_types(types[i])) {
            if (!used.empty() && !used[result.leaves.size()]) {
                result.leaves.push_back(Leaf::of_scalar(llvm::PoisonValue::get(register_type(leaf))));
                continue;
            }
            llvm::Value* address = builder_.CreateConstInBoundsGEP1_64(
                builder_.getInt8Ty(), arguments, static_cast<std::uint64_t>(layout.offsets[i] + leaf.offset));
            llvm::LoadInst* load = builder_.CreateAlignedLoad(
                memory_type(leaf), address,
                llvm::Align(leaf.pointer ? 8 : static_cast<std::uint64_t>(info(leaf.scalar).bytes())));
            load->setMetadata(llvm::LLVMContext::MD_invariant_load, nothing);
            result.leaves.push_back(Leaf::of_scalar(from_memory(load, leaf)));
        }
        if (types[i].is_array()) {
            result.root = {static_cast<int>(i), false};
            if (options_.dense && types[i].ndim() > 0) {
                std::size_t innermost = static_cast<std::size_t>(stride_leaf(types[i]) + types[i].ndim() - 1);
                result.leaves[innermost] = Leaf::of_scalar(i64(types[i].element().size_bytes()));
            }
        }
        set(kernel_.parameters()[i], std::move(result));
    }
}

void Emitter::emit_region(const ir::Region& region) {
    llvm::Value* const outer_stack = std::exchange(first_stack_, nullptr);
    for (const ir::Operation* operation : region.operations) emit_in_place(*operation);
    if (first_stack_) release_scratch(first_stack_);
    first_stack_ = outer_stack;
}

// Adds the source line, and the check for None before an access.
void Emitter::emit_in_place(const ir::Operation& operation) {
    if (debug_) debug_->set(builder_, operation.span);
    if (operation.op == ir::Op::load || ir::writes(operation.op)) guard_null(operation);
    emit_operation(operation);
}

void Emitter::emit_operation(const ir::Operation& operation) {
    using ir::Op;
    switch (operation.op) {
        case Op::yield:
        case Op::return_:
            return;
        case Op::constant:
            return emit_constant(operation);
        case Op::fma:
            return emit_fma(operation);
        case Op::select:
            return emit_select(operation);
        case Op::cast:
            return emit_cast(operation);
        case Op::bitcast:
            return emit_bitcast(operation);
        case Op::bit_count:
            return emit_bit_count(operation);
        case Op::make:
        case Op::splat:
            return emit_make(operation);
        case Op::extract:
            return emit_extract(operation);
        case Op::insert:
            return emit_insert(operation);
        case Op::extract_at:
            return emit_extract_at(operation);
        case Op::insert_at:
            return emit_insert_at(operation);
        case Op::reduce_add:
            return emit_reduce_add(operation);
        case Op::matmul:
            return emit_matmul(operation);
        case Op::transpose:
            return emit_transpose(operation);
        case Op::load:
            return emit_load(operation);
        case Op::store:
            return emit_store(operation);
        case Op::view:
            return emit_view(operation);
        case Op::components:
            return emit_components(operation);
        case Op::member:
            return emit_member(operation);
        case Op::dim:
            return emit_dim(operation);
        case Op::is_null:
            return emit_is_null(operation);
        case Op::grad_of:
            return emit_grad_of(operation);
        case Op::address:
            return emit_address(operation);
        case Op::slice:
            return emit_slice(operation);
        case Op::null:
            return set(operation.result(), zero_value(operation.result()->type, false));
        case Op::local_array:
            return emit_local_array(operation);
        case Op::stack:
            return emit_stack(operation);
        case Op::argument:
            return emit_argument(operation);
        case Op::array_at:
            return emit_array_at(operation);
        case Op::object:
            return emit_object(operation);
        case Op::overlay:
            return emit_overlay(operation);
#define WEFT_CLASS_atomic(id) case Op::id:
#include "ir/ops.def"
            return emit_atomic(operation);
#define WEFT_CLASS_unary(id) case Op::id:
#define WEFT_CLASS_binary(id) case Op::id:
#include "ir/ops.def"
            return emit_componentwise(operation);
#define WEFT_CLASS_compare(id) case Op::id:
#define WEFT_CLASS_classify(id) case Op::id:
#include "ir/ops.def"
            return emit_compare(operation);
        case Op::if_:
            return emit_if(operation);
        case Op::for_:
        case Op::while_:
            return emit_loop(operation);
        case Op::call_library:
            return operation.library->native ? emit_call_native(operation) : emit_call_library(operation);
        case Op::tid:
            return emit_tid(operation);
        case Op::block_dim: {
            llvm::Value* threads = threads_of_block();
            asks_blocks_ = true;
            return set(operation.result(), Leaf::of_scalar(threads ? threads : builder_.getInt32(1)));
        }
        case Op::print:
            return emit_print(operation);
        case Op::raise:
            return emit_raise(operation);
        case Op::require:
            return emit_require(operation, FaultKind::requirement);
        case Op::note_finite:
            return emit_require(operation, FaultKind::not_finite);
        case Op::assert_:
            return emit_assert(operation);
        case Op::call:
            return emit_call(operation);
        case Op::loaded:         // for transform/adjoint only
        case Op::tile_generate:  // transform/tiles has replaced these
        case Op::tile_each:
        case Op::tile_reduce:
        case Op::tile_matmul:
        case Op::lane:
        case Op::tile_of_lanes:
            break;
    }
    throw InternalError(std::string("codegen: no way to emit '") + ir::op_name(operation.op) + "'");
}

}  // namespace weft::codegen
