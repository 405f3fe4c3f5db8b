// The hooks of codegen/target.h are enough for a target that is no CPU: one with an entry that runs a single thread, as
// on a GPU, functions of a library of its own, memory of a thread in its frame and atomics of a smaller scope.
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "codegen/emitter.h"
#include "ir/ir.h"

namespace weft::codegen {
namespace {

class OneThread final : public Emitter {
public:
    using Emitter::Emitter;

    // void kernel(arguments, coordinates): no chunk, no loop, no LaunchContext.
    void emit_entry(KernelEntry& entry) override {
        llvm::Type* pointer = builder_.getPtrTy();
        auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer}, false);
        auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, entry.symbol, module_);
        open_function(function);
        if (options_.noalias) alias_scopes_.open(kernel_, context_);
        load_arguments(function->getArg(0));
        for (int axis = 0; axis < kernel_.tid_rank; ++axis) {
            llvm::Value* place = builder_.CreateConstGEP1_64(builder_.getInt64Ty(), function->getArg(1),
                                                             static_cast<std::uint64_t>(axis));
            coordinates_.push_back(builder_.CreateLoad(builder_.getInt64Ty(), place));
            dims_.push_back(i64(1));
        }
        leave_ = new_block("leave");
        emit_region(kernel_.body);
        builder_.CreateBr(leave_);
        builder_.SetInsertPoint(leave_);
        builder_.CreateRetVoid();
    }

protected:
    llvm::Value* math_function(ir::Op op, Scalar scalar, Values operands) override {
        llvm::Type* type = register_type(scalar);
        const std::string symbol = std::string("__device_") + ir::op_name(op) + (scalar == Scalar::f64 ? "" : "f");
        const llvm::SmallVector<llvm::Type*, 2> types(operands.size(), type);
        return builder_.CreateCall(module_.getOrInsertFunction(symbol, llvm::FunctionType::get(type, types, false)),
                                   operands);
    }
    llvm::Value* take_scratch(const ir::Operation&, llvm::Value*) override {
        return stack_slot(bytes_type(1024), llvm::Align(16), "scratch");
    }
    void release_scratch(llvm::Value*) override {}
    std::pair<llvm::Value*, llvm::Value*> take_long_scratch(const ir::Operation&, std::int64_t) override {
        return {stack_slot(bytes_type(1024), llvm::Align(16), "scratch"), i64(1)};
    }
    void report_fault(const FaultReport& fault) override {
        call("device_fault", {i64(static_cast<int>(fault.kind)), fault.thread, fault.index});
    }
    void report_raise(llvm::Value* thread, std::uint32_t, llvm::Value*, llvm::Value*, std::int64_t) override {
        call("device_raise", {thread});
    }
    llvm::Value* find_object(llvm::Value* id, std::int64_t) override { return id; }
    llvm::Value* has_object(llvm::Value*, std::int64_t) override { return builder_.getTrue(); }
    void report_print(llvm::Value* format, llvm::Value* words, std::int64_t count) override {
        call("device_print", {format, words, i64(count)});
    }
    llvm::SyncScope::ID atomic_scope() const override { return context_.getOrInsertSyncScopeID("device"); }
    bool has_atomic(ir::Op op, Scalar scalar) const override {
        return !info(scalar).is_float() || (op != ir::Op::atomic_min && op != ir::Op::atomic_max);
    }

private:
    void call(const char* symbol, Values arguments) {
        llvm::SmallVector<llvm::Type*, 4> types;
        for (llvm::Value* argument : arguments) types.push_back(argument->getType());
        auto* type = llvm::FunctionType::get(builder_.getVoidTy(), types, false);
        builder_.CreateCall(module_.getOrInsertFunction(symbol, type), arguments);
    }
};

std::string lowered(const std::string& body, const Options& options = {}) {
    const auto module = ir::parse(
        "kernel @k(%x: array<f32, 1>, %n: array<i32, 1>, %count: i32) tid 2 {\n  %i = tid 0\n  %j = tid 1\n"
        "  %zero = constant 0 : i32\n  %one = constant 1 : i32\n  %f = constant 1 : f32\n" +
        body + "  return\n}\n");
    ir::verify(*module);
    llvm::LLVMContext context;
    llvm::Module into("device", context);
    const transform::ModulePlan plans = transform::plan(*module, plan_options(options, TargetInfo()));
    NativeFunctions natives;
    Callees callees;
    const Machine machine;
    OneThread emitter(plans[0], 1, machine, options, into, natives, callees);
    KernelEntry entry;
    entry.symbol = "k";
    emitter.emit_entry(entry);
    std::string text;
    llvm::raw_string_ostream stream(text);
    EXPECT_FALSE(llvm::verifyModule(into, &stream)) << text;
    into.print(stream, nullptr);
    EXPECT_EQ(text.find("weft_"), std::string::npos) << "something of the CPU's runtime is called:\n" << text;
    EXPECT_EQ(text.find("Sleef"), std::string::npos) << text;
    return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Target, has_an_entry_of_its_own) {
    const std::string text = lowered("  %a = load %x[%j]\n  %b = add %a, %f\n  store %x[%i], %b\n");
    EXPECT_TRUE(has(text, "define void @k(ptr %0, ptr %1)")) << text;
    EXPECT_FALSE(has(text, " x float>")) << "one thread has no lanes:\n" << text;
}

TEST(Target, brings_its_own_math) {
    EXPECT_TRUE(has(lowered("  %s = sin %f\n  store %x[%i], %s\n"), "call float @__device_sinf("));
}

TEST(Target, says_between_whom_atomics_hold_and_which_are_loops) {
    EXPECT_TRUE(has(lowered("  %a = atomic.add %n[%j], %one\n"), "atomicrmw add ptr"));
    EXPECT_TRUE(has(lowered("  %a = atomic.add %n[%j], %one\n"), "syncscope(\"device\")"));
    const std::string least = lowered("  %a = atomic.min %x[%j], %f\n");
    EXPECT_TRUE(has(least, "cmpxchg") && has(least, "syncscope(\"device\")") && !has(least, "atomicrmw")) << least;
    EXPECT_TRUE(has(lowered("  %a = atomic.max %x[%j], %f\n  store %x[%i], %a\n"), "cmpxchg"));
}

TEST(Target, reports_in_its_own_way) {
    Options options;
    options.debug = true;
    EXPECT_TRUE(has(lowered("  %a = load %x[%j]\n  store %x[%i], %a\n", options), "@device_fault("));
    EXPECT_TRUE(has(lowered("  print \"%d\\n\", %i\n"), "@device_print("));
}

TEST(Target, gives_threads_memory_in_its_own_way) {
    const std::string text = lowered(
        "  %t = stack %count : array<f32, 1>\n  store %t[%zero], %f\n  %a = load %t[%zero]\n  store %x[%i], %a\n");
    EXPECT_TRUE(has(text, "%scratch = alloca [1024 x i8]")) << text;
}

}  // namespace
}  // namespace weft::codegen
