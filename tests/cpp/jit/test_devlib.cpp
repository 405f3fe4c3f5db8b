// The device library as it lies in this program.
#include <gtest/gtest.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MemoryBufferRef.h>

#include "ir/ir.h"
#include "jit/devlib.h"
#include "jit/jit.h"
#include "support/error.h"

namespace weft::jit {
namespace {

// Whether a part for this kind of target defines the function.
bool defines(Target::Kind kind, const std::string& symbol) {
    bool found = false;
    for (const DevlibPart& part : devlib_parts()) {
        if (part.kind != kind) continue;
        llvm::LLVMContext context;
        const llvm::StringRef bytes(reinterpret_cast<const char*>(part.bitcode), part.size);
        auto module = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(bytes, "part"), context);
        EXPECT_TRUE(static_cast<bool>(module));
        const llvm::Function* function = (*module)->getFunction(symbol);
        found |= function && !function->isDeclaration();
    }
    return found;
}

TEST(Devlib, has_each_function_for_each_number_of_lanes_and_for_gpus) {
    for (const char* derivative : {"", "_adjoint", "_tangent"})
        for (const char* type : {"_f32", "_f64"}) {
            const std::string symbol = std::string("weft_lib_closest_edge_edge") + derivative + type + "_w";
            for (const char* lanes : {"1", "2", "4", "8", "16", "32", "64"})
                EXPECT_TRUE(defines(Target::Kind::cpu, symbol + lanes)) << symbol << lanes;
            EXPECT_TRUE(defines(Target::Kind::cuda, symbol + "1"));
            EXPECT_FALSE(defines(Target::Kind::cuda, symbol + "8"));
        }
}

std::string kernel_with(const std::string& symbol) {
    return "kernel @k(%x: array<vec3<f32>, 1>, %e: f32) tid 1 {\n  %i = tid 0\n  %v = load %x[%i]\n"
           "  %r = call_library \"" +
           symbol + "\"(%v, %v, %v, %v, %e) pure lanes : vec3<f32>\n  store %x[%i], %r\n  return\n}\n";
}

TEST(Devlib, gives_a_module_what_it_calls_and_nothing_else) {
    Options options;
    options.codegen.lanes = 8;
    const auto module = ir::parse(kernel_with("weft_lib_closest_edge_edge_f32"));
    const std::string text = listing(*module, options, Listing::llvm);
    EXPECT_EQ(text.find("weft_lib"), std::string::npos) << "inlined, and the function gone";
    EXPECT_NE(text.find("<8 x float>"), std::string::npos);
    EXPECT_EQ(text.find("target-features"), std::string::npos) << "it is for the kernel's processor";
    EXPECT_FALSE(compile(*module, options, {}).code.empty());
}

TEST(Devlib, has_no_effect_on_modules_that_do_not_call_it) {
    const auto module = ir::parse("kernel @k(%x: array<f32, 1>) tid 1 {\n  %i = tid 0\n  return\n}\n");
    const std::string text = listing(*module, {}, Listing::llvm);
    const std::size_t first = text.find("define ");
    ASSERT_NE(first, std::string::npos);
    EXPECT_EQ(text.find("define ", first + 1), std::string::npos) << "one function, the kernel:\n" << text;
}

TEST(Devlib, says_what_it_lacks) {
    const auto module = ir::parse(kernel_with("weft_lib_nothing"));
    try {
        listing(*module, {}, Listing::llvm);
        FAIL() << "there is no such function";
    } catch (const InternalError& error) {
        EXPECT_NE(std::string(error.what()).find("the device library has no function 'weft_lib_nothing_w"),
                  std::string::npos);
    }
}

}  // namespace
}  // namespace weft::jit
