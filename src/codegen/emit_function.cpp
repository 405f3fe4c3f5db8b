// The entry point of a kernel: void symbol(arguments, context, begin, end).
//
// before
//     for thread in begin .. end: body(coordinates of thread)
// after, with W lanes
//     arguments loaded once; coordinates of `begin` by division, once
//     for each row of the last axis that [begin, end) touches:
//         for k in first .. last - W + 1 step W:   body, all lanes on
//         if some threads are left:                body, the first few lanes on
//         step to the next row by incrementing, without division
//
// The body of a small kernel without loops is written twice, so that the loop over its threads has no masks; any other
// once, masked, which halves the time to compile it. There only accesses to memory ask whether the group is full
// (copied_access.cpp): arithmetic costs the same with a mask and without, and a loop in the body costs more than that.
#include <llvm/IR/MDBuilder.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include "codegen/emitter.h"
#include "support/error.h"

namespace weft::codegen {

namespace {

// Operations up to which the body is written a second time for the tail.
constexpr int kSmallBody = 64;

int count_operations(const ir::Region& region) {
    int count = 0;
    for (const ir::Operation* operation : region.operations) {
        count += operation->results.empty() ? 1 : leaf_count(operation->results[0]->type);
        for (const ir::Region* nested : operation->regions) count += count_operations(*nested);
    }
    return count;
}

bool has_loops(const ir::Region& region) {
    for (const ir::Operation* operation : region.operations) {
        if (operation->op == ir::Op::for_ || operation->op == ir::Op::while_) return true;
        for (const ir::Region* nested : operation->regions)
            if (has_loops(*nested)) return true;
    }
    return false;
}

}  // namespace

Machine::Machine(const TargetInfo& target)
    : vector_bits(target.vector_bits), fast_gathers(target.fast_gathers), fast_scatters(target.fast_scatters) {
    std::string features = "," + target.features + ",";
    if (target.features.empty() && !target.processor.empty()) {  // what the processor's name implies
        llvm::SmallVector<llvm::StringRef, 64> implied;
        if (target.triple.rfind("x86_64", 0) == 0) llvm::X86::getFeaturesForCPU(target.processor, implied);
        for (llvm::StringRef feature : implied) features += "+" + feature.str() + ",";
    }
    auto has = [&](const char* feature) {
        return features.find(std::string(",+") + feature + ",") != std::string::npos;
    };
    bool x86 = target.triple.rfind("x86_64", 0) == 0;
    if (!x86) {
        fma = half_conversions = true;  // part of every AArch64
        math_isa = "advsimd";
        return;
    }
    keeps_registers = returns_pairs_in_memory = true;
    wide_atomics = has("cx16");
    fma = has("fma");
    half_conversions = has("f16c");
    mask_registers = has("avx512vl") && has("avx512bw") && has("avx512dq");
    // A processor's name lists what it adds to its ancestors, not what that implies.
    bool avx512 = has("avx512f") || has("avx512vl"), sse4 = has("sse4.1") || has("sse4.2") || has("avx");
    if (avx512 && vector_bits >= 512) {
        math_isa = "avx512f";
        math_bits = 512;
    } else if (has("avx2") && fma) {
        math_isa = "avx2";
        math_bits = 256;
    } else {
        math_isa = sse4 ? "sse4" : "sse2";
    }
}

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
      lanes_(lanes) {
    if (options.fast_math) {
        // Everything but "no NaN" and "no infinity": isnan() keeps its meaning.
        llvm::FastMathFlags flags;
        flags.setAllowReassoc();
        flags.setNoSignedZeros();
        flags.setAllowReciprocal();
        flags.setAllowContract();
        flags.setApproxFunc();
        builder_.setFastMathFlags(flags);
    }
}

void Emitter::emit(KernelEntry& entry) {
    entry_ = &entry;
    checked_ = callees_.checked;
    llvm::Type* pointer = builder_.getPtrTy();
    auto* type = llvm::FunctionType::get(builder_.getVoidTy(),
                                         {pointer, pointer, builder_.getInt64Ty(), builder_.getInt64Ty()}, false);
    function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, entry.symbol, module_);
    function_->setDoesNotThrow();
    for (unsigned i : {0u, 1u}) {
        function_->addParamAttr(i, llvm::Attribute::NoAlias);
        function_->addParamAttr(i, llvm::Attribute::ReadOnly);
    }
    llvm::Value *arguments = function_->getArg(0), *context = function_->getArg(1);
    llvm::Value *begin = function_->getArg(2), *end = function_->getArg(3);
    if (options_.line_info) open_debug_info();

    builder_.SetInsertPoint(new_block("entry"));
    set_location(kernel_.span);
    make_alias_scopes();
    mostly_ = llvm::MDBuilder(context_).createLikelyBranchWeights();
    load_arguments(arguments);
    load_dimensions(context);
    open_accumulators();
    open_seams(begin, end);
    llvm::BasicBlock *work = new_block("work"), *done = new_block("done");
    leave_ = done;
    builder_.CreateCondBr(builder_.CreateICmpSLT(begin, end), work, done);
    builder_.SetInsertPoint(work);
    emit_chunk(begin, end);
    builder_.CreateBr(done);
    builder_.SetInsertPoint(done);
    if (has_trails_) trim_trails();
    builder_.CreateRetVoid();
    function_->addFnAttr(kThreadLoops, std::to_string(thread_loops_));
    if (debug_) debug_->finalize();
}

void Emitter::emit_threads(llvm::Value* begin, llvm::Value* end) {
    if (kernel_.tid_rank <= 1)
        emit_segment(begin, end);
    else
        emit_rows(begin, end);
}

void Emitter::load_arguments(llvm::Value* arguments) {
    std::vector<Type> types;
    for (const ir::Value* parameter : kernel_.parameters()) types.push_back(parameter->type);
    ArgumentLayout layout = argument_layout(types);
    llvm::MDNode* nothing = llvm::MDNode::get(context_, {});
    for (std::size_t i = 0; i < types.size(); ++i) {
        LaneValue result{types[i], {}, {}};
        for (const LeafType& leaf : leaf_types(types[i])) {
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

void Emitter::load_dimensions(llvm::Value* context) {
    llvm::MDNode* nothing = llvm::MDNode::get(context_, {});
    for (int axis = 0; axis < kernel_.tid_rank; ++axis) {
        llvm::Value* address = builder_.CreateConstInBoundsGEP1_64(
            builder_.getInt8Ty(), context, offsetof(LaunchContext, dim) + 8 * static_cast<std::uint64_t>(axis));
        llvm::LoadInst* load = builder_.CreateAlignedLoad(builder_.getInt64Ty(), address, llvm::Align(8));
        load->setMetadata(llvm::LLVMContext::MD_invariant_load, nothing);
        dims_.push_back(load);
    }
    coordinates_.assign(static_cast<std::size_t>(std::max(1, kernel_.tid_rank)), i64(0));
    launch_ = context;
}

void Emitter::emit_rows(llvm::Value* begin, llvm::Value* end) {
    std::size_t rank = dims_.size();
    // The coordinates of `begin`, last axis first.
    llvm::SmallVector<llvm::Value*, kMaxDims> start(rank);
    llvm::Value* flat = begin;
    for (std::size_t axis = rank; axis-- > 1;) {
        start[axis] = builder_.CreateURem(flat, dims_[axis]);
        flat = builder_.CreateUDiv(flat, dims_[axis]);
    }
    start[0] = flat;

    llvm::BasicBlock *before = builder_.GetInsertBlock(), *row = new_block("row"), *after = new_block("rows.done");
    llvm::Value* count = builder_.CreateSub(end, begin);
    builder_.CreateBr(row);
    builder_.SetInsertPoint(row);
    ++thread_loops_;
    llvm::SmallVector<llvm::PHINode*, kMaxDims> at(rank);
    for (std::size_t axis = 0; axis < rank; ++axis) {
        at[axis] = builder_.CreatePHI(builder_.getInt64Ty(), 2);
        at[axis]->addIncoming(start[axis], before);
        coordinates_[axis] = at[axis];
    }
    llvm::PHINode* left = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    left->addIncoming(count, before);
    llvm::Value* room = builder_.CreateSub(dims_[rank - 1], at[rank - 1]);
    llvm::Value* length = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, room, left);
    emit_segment(at[rank - 1], builder_.CreateAdd(at[rank - 1], length));

    // The next row: the axis before the last moves on, and carries into the ones before it.
    llvm::Value* carry = builder_.getTrue();
    llvm::BasicBlock* latch = builder_.GetInsertBlock();
    for (std::size_t axis = rank - 1; axis-- > 0;) {
        llvm::Value* moved = builder_.CreateAdd(at[axis], builder_.CreateZExt(carry, builder_.getInt64Ty()));
        llvm::Value* wraps = axis > 0 ? builder_.CreateICmpEQ(moved, dims_[axis]) : builder_.getFalse();
        at[axis]->addIncoming(axis > 0 ? builder_.CreateSelect(wraps, i64(0), moved) : moved, latch);
        carry = wraps;
    }
    at[rank - 1]->addIncoming(i64(0), latch);
    llvm::Value* rest = builder_.CreateSub(left, length);
    left->addIncoming(rest, latch);
    builder_.CreateCondBr(builder_.CreateICmpSGT(rest, i64(0)), row, after);
    builder_.SetInsertPoint(after);
}

// The threads first .. last of the last axis; there is at least one.
void Emitter::emit_segment(llvm::Value* first, llvm::Value* last) {
    bool twice = lanes_ == 1 || worth_writing_twice();
    llvm::Value* group = i64(lanes_);
    llvm::Value* length = builder_.CreateSub(last, first);
    llvm::Value* full_length = twice ? builder_.CreateAnd(length, i64(-lanes_)) : length;
    llvm::Value* full_end = builder_.CreateAdd(first, full_length);

    llvm::BasicBlock *before = builder_.GetInsertBlock(), *loop = new_block("group"), *after = new_block("groups.done");
    if (lanes_ == 1 || !twice)
        builder_.CreateBr(loop);
    else
        builder_.CreateCondBr(builder_.CreateICmpSGT(full_length, i64(0)), loop, after);
    builder_.SetInsertPoint(loop);
    ++thread_loops_;
    llvm::PHINode* k = builder_.CreatePHI(builder_.getInt64Ty(), 2, "k");
    k->addIncoming(first, before);
    // The lanes of the threads at, at + 1, ... that come before `last`.
    auto mask_from = [&](llvm::Value* at) {
        llvm::Value* rest = builder_.CreateTrunc(
            builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, builder_.CreateSub(last, at), group),
            builder_.getInt32Ty());
        return builder_.CreateICmpSLT(iota(builder_.getInt32Ty()), splat(rest));
    };
    llvm::Value* next = builder_.CreateAdd(k, group, "", true, true);
    emit_group(k, twice ? nullptr : mask_from(k));
    k->addIncoming(next, builder_.GetInsertBlock());
    builder_.CreateCondBr(builder_.CreateICmpSLT(next, full_end), loop, after);
    builder_.SetInsertPoint(after);
    if (lanes_ == 1 || !twice) return;

    llvm::BasicBlock *tail = new_block("tail"), *tail_done = new_block("tail.done");
    builder_.CreateCondBr(builder_.CreateICmpSLT(full_end, last), tail, tail_done);
    builder_.SetInsertPoint(tail);
    in_tail_ = true;
    emit_group(full_end, mask_from(full_end));
    in_tail_ = false;
    builder_.CreateBr(tail_done);
    builder_.SetInsertPoint(tail_done);
}

void Emitter::emit_group(llvm::Value* first_lane, llvm::Value* mask) {
    llvm::Value* row_start = coordinates_.back();
    coordinates_.back() = first_lane;
    mask_ = mask;
    emit_region(kernel_.body);
    mask_ = nullptr;
    coordinates_.back() = row_start;
}

int Emitter::body_size() const { return count_operations(kernel_.body); }

// Private copies of cells (emit_combined.cpp) are filled by unmasked code only.
bool Emitter::worth_writing_twice() const {
    return (body_size() <= kSmallBody && !has_loops(kernel_.body)) || !private_memories_.empty();
}

void Emitter::emit_region(const ir::Region& region) {
    llvm::Value* const outer_trail = std::exchange(first_trail_, nullptr);
    for (const ir::Operation* operation : region.operations) {
        if (options_.line_info) set_location(operation->span);
        if (operation->op == ir::Op::load || ir::writes(operation->op)) guard_null(*operation);
        emit_operation(*operation);
    }
    if (first_trail_) release_trails();
    first_trail_ = outer_trail;
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
        case Op::trail:
            return emit_trail(operation);
        case Op::array_at:
            return emit_array_at(operation);
        case Op::overlay:
            return emit_overlay(operation);
        case Op::atomic_add:
        case Op::atomic_sub:
        case Op::atomic_min:
        case Op::atomic_max:
        case Op::atomic_and:
        case Op::atomic_or:
        case Op::atomic_xor:
        case Op::atomic_exch:
        case Op::atomic_cas:
            return emit_atomic(operation);
        case Op::if_:
            return emit_if(operation);
        case Op::for_:
        case Op::while_:
            return emit_loop(operation);
        case Op::call_library:
            return operation.library->native ? emit_call_native(operation) : emit_call_library(operation);
        case Op::tid:
            return emit_tid(operation);
        case Op::block_dim:
            return set(operation.result(), Leaf::of_scalar(builder_.getInt32(1)));
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
        default:
            break;
    }
    switch (ir::op_class(operation.op)) {
        case ir::OpClass::unary:
        case ir::OpClass::binary:
            return emit_componentwise(operation);
        case ir::OpClass::compare:
        case ir::OpClass::classify:
            return emit_compare(operation);
        case ir::OpClass::other:
            break;
    }
    throw InternalError(std::string("codegen: no way to emit '") + ir::op_name(operation.op) + "'");
}

}  // namespace weft::codegen
