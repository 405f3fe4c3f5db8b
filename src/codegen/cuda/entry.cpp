// The entry of a kernel (binary/cuda_abi.h): its signature, its loads of the launch's fields and its facts for the
// host.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "binary/cuda_abi.h"
#include "codegen/cuda/emitter.h"
#include "ir/walk.h"
#include "support/error.h"

namespace weft::codegen {

namespace {

bool calls_native(const ir::Function& kernel) {
    bool found = false;
    ir::for_each_operation(
        kernel.body, [&](const ir::Operation& operation) { found |= operation.library && operation.library->native; });
    return found;
}

}  // namespace

void CudaEmitter::emit_entry(KernelEntry& entry) {
    checked_ = callees_.checked;
    entry.code = CudaEntry();
    CudaEntry& cuda = std::get<CudaEntry>(entry.code);
    std::vector<Type> types;
    for (const ir::Value* parameter : kernel_.parameters()) types.push_back(parameter->type);
    cuda.argument_bytes = argument_layout(types).size_bytes;
    cuda.arguments_in_memory = cuda.argument_bytes > kMostCudaArgumentBytes;

    llvm::Function* function = declare_entry(entry.symbol, cuda);
    open_function(function);
    if (options_.programmatic) wait_for_previous_launch();
    if (options_.noalias) alias_scopes_.open(kernel_, context_);
    load_launch(function->getArg(0));
    if (cuda.argument_bytes > 0) load_arguments(function->getArg(1));
    cuda.together = plan_.coarsening.combines ? 1 : plan_.coarsening.elements;
    cuda.whole_blocks = calls_native(kernel_);
    if (!cuda.whole_blocks) open_block_sums();
    emit_elements(cuda.together, cuda.whole_blocks);
    function->addFnAttr(kThreadLoops, "1");
    cuda.most_threads = options_.most_threads;
    if (options_.most_threads > 0) function->addFnAttr("nvvm.maxntid", std::to_string(options_.most_threads));
    // Without an explicit limit, ptxas waits between loads rather than take more than 32 registers.
    const bool waits = plan_.coarsening.elements > 1 && options_.most_threads == 0;
    const int registers = options_.max_registers > 0 ? options_.max_registers : waits ? kRegistersTogether : 0;
    if (registers > 0) function->addFnAttr("nvvm.maxnreg", std::to_string(registers));
    if (options_.least_blocks > 0) function->addFnAttr("nvvm.minctasm", std::to_string(options_.least_blocks));
    if (debug_) debug_->finalize();
    describe(cuda);
}

// Before all accesses to memory, so that the launch may begin early. The next one may begin then: it waits for this
// one, and so for all before it. At most two launches are on the device at a time.
void CudaEmitter::wait_for_previous_launch() {
    constexpr int kFirst = 90;  // the first architecture that has them
    if (architecture_ < kFirst) return;
    llvm::FunctionType* const type = llvm::FunctionType::get(builder_.getVoidTy(), false);
    // In assembly, as LLVM's intrinsics do not say that no load may come before.
    for (const char* const text : {"griddepcontrol.wait;", "griddepcontrol.launch_dependents;"})
        builder_.CreateCall(llvm::InlineAsm::get(type, text, "~{memory}", /*hasSideEffects=*/true));
}

llvm::Function* CudaEmitter::declare_entry(const std::string& symbol, const CudaEntry& entry) {
    llvm::SmallVector<llvm::Type*, 2> parameters{builder_.getPtrTy()};
    if (entry.argument_bytes > 0) parameters.push_back(builder_.getPtrTy());
    auto* function = llvm::Function::Create(llvm::FunctionType::get(builder_.getVoidTy(), parameters, false),
                                            llvm::Function::ExternalLinkage, symbol, module_);
    function->setCallingConv(llvm::CallingConv::PTX_Kernel);
    function->setDoesNotThrow();
    const auto pass_by_value = [&](unsigned number, std::int64_t bytes) {
        function->addParamAttr(number, llvm::Attribute::getWithByValType(context_, bytes_type(bytes)));
        function->addParamAttr(number, llvm::Attribute::getWithAlignment(context_, llvm::Align(16)));
    };
    pass_by_value(0, sizeof(CudaLaunch));
    if (entry.argument_bytes > 0 && !entry.arguments_in_memory) pass_by_value(1, entry.argument_bytes);
    for (unsigned i = 0; i < parameters.size(); ++i) {
        function->addParamAttr(i, llvm::Attribute::NoAlias);
        function->addParamAttr(i, llvm::Attribute::ReadOnly);
    }
    return function;
}

llvm::Value* CudaEmitter::of_launch(llvm::Value* launch, std::size_t offset, llvm::Type* type) {
    llvm::Value* address = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), launch, offset);
    llvm::LoadInst* load = builder_.CreateAlignedLoad(type, address, llvm::Align(type->isIntegerTy(32) ? 4 : 8));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    return load;
}

void CudaEmitter::load_launch(llvm::Value* launch) {
    llvm::Type* number = builder_.getInt64Ty();
    count_ = of_launch(launch, offsetof(CudaLaunch, count), number);
    is_together_ = builder_.CreateICmpNE(of_launch(launch, offsetof(CudaLaunch, together), number), i64(0));
    launch_ = of_launch(launch, offsetof(CudaLaunch, reports), builder_.getPtrTy());
    logs_ = of_launch(launch, offsetof(CudaLaunch, logs), builder_.getPtrTy());
    log_bytes_ = of_launch(launch, offsetof(CudaLaunch, log_bytes), number);
    objects_ = of_launch(launch, offsetof(CudaLaunch, objects), builder_.getPtrTy());
    shared_flags_ = of_launch(launch, offsetof(CudaLaunch, shared_copies), number);
    for (int axis = 0; axis < kernel_.tid_rank; ++axis) {
        const std::size_t at = offsetof(CudaLaunch, axes) + sizeof(CudaAxis) * static_cast<std::size_t>(axis);
        dims_.push_back(of_launch(launch, at + offsetof(CudaAxis, extent), number));
        multipliers_.push_back(of_launch(launch, at + offsetof(CudaAxis, multiplier), number));
        shifts_.push_back(of_launch(launch, at + offsetof(CudaAxis, shift), builder_.getInt32Ty()));
        short_multipliers_.push_back(
            of_launch(launch, at + offsetof(CudaAxis, short_multiplier), builder_.getInt32Ty()));
    }
    coordinates_.assign(static_cast<std::size_t>(std::max(1, kernel_.tid_rank)), nullptr);
}

llvm::Value* CudaEmitter::threads_of_block() {
    return builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x, {});
}

void CudaEmitter::describe(CudaEntry& entry) {
    entry.ordered = plan_.depends_on_order || callees_.depend_on_order;
    entry.logs = static_cast<std::int32_t>(log_numbers_.size());
    entry.finds_objects = finds_objects_ || callees_.find_objects;
    entry.asks_blocks = entry.whole_blocks || asks_blocks_ || callees_.ask_blocks;
    describe_block_sums(entry);
    entry.reports = reporting_.reports;
    entry.prints = reporting_.prints;
    entry.formats = reporting_.formats;
    for (llvm::GlobalVariable* text : reporting_.texts)
        if (text->use_empty()) text->eraseFromParent();
    reporting_.texts.clear();
}

// ---- memory of a thread ----

// Unreachable: adjoints for targets without a growing stack keep the state of loops in arrays of fixed size
// (jit::Backend::stack_slots()), and only adjoints need scratch memory.
llvm::Value* CudaEmitter::take_scratch(const ir::Operation&, llvm::Value*) {
    throw InternalError("kernel '" + kernel_.name + "' asks for memory that grows, which threads of a GPU do not have");
}

std::pair<llvm::Value*, llvm::Value*> CudaEmitter::take_long_scratch(const ir::Operation& operation,
                                                                     std::int64_t row_bytes) {
    const std::int64_t number =
        log_numbers_.try_emplace(&operation, static_cast<std::int64_t>(log_numbers_.size())).first->second;
    llvm::Value* part = builder_.CreateAdd(builder_.CreateMul(i64(number), threads_), first_);
    llvm::Value* memory = builder_.CreateGEP(builder_.getInt8Ty(), logs_, builder_.CreateMul(part, log_bytes_));
    return {memory, builder_.CreateUDiv(log_bytes_, i64(row_bytes))};
}

}  // namespace weft::codegen
