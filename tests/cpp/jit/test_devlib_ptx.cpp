// The device library as code for GPUs: its bitcode through LLVM's NVPTX back end to PTX. With $WEFT_PTX, a folder, the
// texts are left there, and tests/python/test_devlib_ptx.py gives them to ptxas.
#include <gtest/gtest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "jit/devlib.h"
#include "jit/optimize.h"

namespace weft::jit {
namespace {

const char* const kFunctions[] = {"", "_tangent", "_adjoint"};
// The pointers that each of them takes: the result, the four points and epsilon, and what derivatives take besides.
constexpr unsigned kPointers[] = {6, 11, 7};

std::unique_ptr<llvm::TargetMachine> machine_for(const std::string& processor) {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    const llvm::Triple triple("nvptx64-nvidia-cuda");
    std::string error;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
    EXPECT_NE(target, nullptr) << error;
    if (!target) return nullptr;
    return std::unique_ptr<llvm::TargetMachine>(
        target->createTargetMachine(triple, processor, "", {}, std::nullopt, std::nullopt));
}

// A kernel for each function of the library, which calls it with its own arguments.
void add_kernels(llvm::Module& module, const std::string& type) {
    llvm::IRBuilder<> builder(module.getContext());
    for (std::size_t i = 0; i < std::size(kFunctions); ++i) {
        const std::string name = std::string("closest_edge_edge") + kFunctions[i] + "_" + type;
        const std::vector<llvm::Type*> pointers(kPointers[i], builder.getPtrTy());
        auto* signature = llvm::FunctionType::get(builder.getVoidTy(), pointers, false);
        auto* kernel = llvm::Function::Create(signature, llvm::Function::ExternalLinkage, "call_" + name, module);
        kernel->setCallingConv(llvm::CallingConv::PTX_Kernel);
        builder.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", kernel));
        std::vector<llvm::Value*> arguments;
        for (llvm::Argument& argument : kernel->args()) arguments.push_back(&argument);
        builder.CreateCall(module.getOrInsertFunction("weft_lib_" + name + "_w1", signature), arguments);
        builder.CreateRetVoid();
    }
}

std::string ptx(const std::string& type, const std::string& processor) {
    const std::unique_ptr<llvm::TargetMachine> machine = machine_for(processor);
    if (!machine) return "";
    llvm::LLVMContext context;
    llvm::Module module("devlib", context);
    module.setTargetTriple(machine->getTargetTriple());
    module.setDataLayout(machine->createDataLayout());
    add_kernels(module, type);
    link_devlib(module, Target::Kind::cuda);
    std::string problem;
    llvm::raw_string_ostream problems(problem);
    EXPECT_FALSE(llvm::verifyModule(module, &problems)) << problem;
    run_passes(module, *machine, 2);
    llvm::SmallString<0> text;
    llvm::raw_svector_ostream stream(text);
    llvm::legacy::PassManager emission;
    EXPECT_FALSE(machine->addPassesToEmitFile(emission, stream, nullptr, llvm::CodeGenFileType::AssemblyFile));
    emission.run(module);
    return text.str().str();
}

class DevlibPtx : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(DevlibPtx, holds_all_functions_with_the_arithmetic_of_the_source) {
    const auto [type, processor] = GetParam();
    const std::string text = ptx(type, processor);
    const std::string bits = std::string(type) == "f32" ? "f32" : "f64";
    EXPECT_NE(text.find(std::string(".target ") + processor), std::string::npos);
    for (const char* function : kFunctions)
        EXPECT_NE(text.find(std::string(".entry call_closest_edge_edge") + function + "_" + type + "("),
                  std::string::npos);
    EXPECT_EQ(text.find("weft_lib_"), std::string::npos) << "inlined, and nothing left to be linked";
    EXPECT_EQ(text.find(".extern"), std::string::npos);
    // Rounded once each, and in no other way: `mul` without `rn` may be fused by ptxas.
    for (const char* operation : {"mul", "add", "sub", "div", "sqrt"}) {
        EXPECT_NE(text.find(std::string(operation) + ".rn." + bits), std::string::npos) << operation;
        EXPECT_EQ(text.find(std::string(operation) + "." + bits), std::string::npos) << operation;
    }
    for (const char* inexact : {"fma.", ".approx", ".full", ".ftz"})
        EXPECT_EQ(text.find(inexact), std::string::npos) << inexact;
    if (const char* folder = std::getenv("WEFT_PTX"))
        std::ofstream(std::string(folder) + "/" + processor + "_" + type + ".ptx") << text;
}

INSTANTIATE_TEST_SUITE_P(Targets, DevlibPtx,
                         testing::Combine(testing::Values("f32", "f64"), testing::Values("sm_75", "sm_90")),
                         [](const auto& tested) {
                             return std::string(std::get<0>(tested.param)) + "_" + std::get<1>(tested.param);
                         });

}  // namespace
}  // namespace weft::jit
