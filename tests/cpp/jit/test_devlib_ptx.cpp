// The device library as code for GPUs: its bitcode through LLVM's NVPTX back end to PTX. With $WEFT_PTX, a folder, the
// texts are left there, and tests/cuda/test_devlib_ptx.py gives them to ptxas.
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
#include <span>
#include <string>

#include "jit/devlib.h"
#include "jit/optimize.h"

namespace weft::jit {
namespace {

struct LibraryFunction {
    const char* name;
    unsigned pointers;     // to the result and the arguments
    bool of_both = false;  // one function for objects of either precision
};
constexpr LibraryFunction kInlined[] = {
    {"closest_edge_edge", 6}, {"closest_edge_edge_tangent", 11}, {"closest_edge_edge_adjoint", 7}};
// They take a mask and the number of lanes besides.
constexpr LibraryFunction kTraversals[] = {
    {"mesh_ray_nearest", 6},
    {"mesh_ray_any", 6},
    {"mesh_ray_count", 5},
    {"mesh_point_closest", 4},
    {"mesh_point_side", 4},
    {"mesh_point_furthest", 4},
    {"bvh_next_box", 6},
    {"bvh_next_sphere", 6},
    {"bvh_next_ray", 7},
    {"bvh_next_capsule", 8},
    {"mesh_next_box", 6},
    {"mesh_next_sphere", 6},
    {"volume_stencil", 3},
    {"volume_lookup", 3},
    {"volume_store", 3},
    {"mesh_winding", 4},
    {"mesh_axes", 3},
    {"mesh_parity", 5},
    {"triangles_meet", 7},
    {"bvh_group_root", 3, true},
    {"mesh_group_root", 3, true},
};

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
void add_kernels(llvm::Module& module, const std::string& type, std::span<const LibraryFunction> functions) {
    llvm::IRBuilder<> builder(module.getContext());
    const bool is_masked = functions.data() == kTraversals;
    for (const LibraryFunction& function : functions) {
        const std::string name = std::string(function.name) + "_" + type;
        std::vector<llvm::Type*> parameters(function.pointers, builder.getPtrTy());
        if (is_masked) parameters.insert(parameters.end(), {builder.getInt64Ty(), builder.getInt32Ty()});
        auto* signature = llvm::FunctionType::get(builder.getVoidTy(), parameters, false);
        auto* kernel = llvm::Function::Create(signature, llvm::Function::ExternalLinkage, "call_" + name, module);
        kernel->setCallingConv(llvm::CallingConv::PTX_Kernel);
        builder.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", kernel));
        std::vector<llvm::Value*> arguments;
        for (llvm::Argument& argument : kernel->args()) arguments.push_back(&argument);
        const std::string symbol =
            "weft_lib_" + (function.of_both ? std::string(function.name) : name) + (is_masked ? "" : "_w1");
        builder.CreateCall(module.getOrInsertFunction(symbol, signature), arguments);
        builder.CreateRetVoid();
    }
}

std::string ptx(const std::string& type, const std::string& processor, std::span<const LibraryFunction> functions) {
    const std::unique_ptr<llvm::TargetMachine> machine = machine_for(processor);
    if (!machine) return "";
    llvm::LLVMContext context;
    llvm::Module module("devlib", context);
    module.setTargetTriple(machine->getTargetTriple());
    module.setDataLayout(machine->createDataLayout());
    add_kernels(module, type, functions);
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

class DevlibPtx : public testing::TestWithParam<std::tuple<const char*, const char*>> {
protected:
    // The text, which may refer to nothing outside.
    std::string text_of(std::span<const LibraryFunction> functions, const char* name) {
        const auto [type, processor] = GetParam();
        const std::string text = ptx(type, processor, functions);
        EXPECT_NE(text.find(std::string(".target ") + processor), std::string::npos);
        for (const LibraryFunction& function : functions)
            EXPECT_NE(text.find(std::string(".entry call_") + function.name + "_" + type + "("), std::string::npos);
        EXPECT_EQ(text.find(".extern"), std::string::npos);
        for (const char* inexact : {".approx", ".full", ".ftz"})
            EXPECT_EQ(text.find(inexact), std::string::npos) << inexact;
        if (const char* folder = std::getenv("WEFT_PTX"))
            std::ofstream(std::string(folder) + "/" + processor + "_" + type + "_" + name + ".ptx") << text;
        return text;
    }
    // Rounded once each, and in no other way: `mul` without `rn` may be fused by ptxas.
    void expect_rounded(const std::string& text, std::initializer_list<const char*> operations) {
        for (const char* operation : operations) {
            const std::string type = std::get<0>(GetParam());
            EXPECT_NE(text.find(std::string(operation) + ".rn." + type), std::string::npos) << operation;
            EXPECT_EQ(text.find(std::string(operation) + "." + type), std::string::npos) << operation;
        }
    }
};

TEST_P(DevlibPtx, holds_all_functions_with_the_arithmetic_of_the_source) {
    const std::string text = text_of(kInlined, "inlined");
    EXPECT_EQ(text.find("weft_lib_"), std::string::npos) << "inlined, and nothing left to be linked";
    expect_rounded(text, {"mul", "add", "sub", "div", "sqrt"});
    EXPECT_EQ(text.find("fma."), std::string::npos);
}

TEST_P(DevlibPtx, holds_the_traversals) {
    expect_rounded(text_of(kTraversals, "traversals"), {"mul", "add", "sub", "div"});
}

INSTANTIATE_TEST_SUITE_P(Targets, DevlibPtx,
                         testing::Combine(testing::Values("f32", "f64"), testing::Values("sm_75", "sm_90")),
                         [](const auto& tested) {
                             return std::string(std::get<0>(tested.param)) + "_" + std::get<1>(tested.param);
                         });

}  // namespace
}  // namespace weft::jit
