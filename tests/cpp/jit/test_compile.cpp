#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include <thread>
#include <vector>

#include "ir/ir.h"
#include "jit/backend.h"
#include "jit/hash.h"
#include "jit/jit.h"

namespace weft::jit {
namespace {

// A sum over an inner loop of 4, written with locals in memory as a plain front end would.
const char* const kLoop = R"(
    define void @entry(ptr %arguments, ptr %context, i64 %begin, i64 %end) {
    start:
        %sum = alloca float
        %k = alloca i64
        store float 0.0, ptr %sum
        store i64 0, ptr %k
        br label %head
    head:
        %now = load i64, ptr %k
        %more = icmp slt i64 %now, 4
        br i1 %more, label %body, label %done
    body:
        %data = load ptr, ptr %arguments
        %at = getelementptr float, ptr %data, i64 %now
        %value = load float, ptr %at
        %before = load float, ptr %sum
        %after = fadd float %before, %value
        store float %after, ptr %sum
        %next = add i64 %now, 1
        store i64 %next, ptr %k
        br label %head
    done:
        %result = load float, ptr %sum
        %out = load ptr, ptr %arguments
        store float %result, ptr %out
        ret void
    })";

std::string optimized(const char* text, int level) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic problem;
    const auto module = llvm::parseAssemblyString(text, problem, context);
    EXPECT_NE(module, nullptr) << problem.getMessage().str();
    backend(Target::Kind::cpu).optimize(*module, host_target(), level);
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    EXPECT_FALSE(backend(Target::Kind::cpu).emit(*module, host_target(), level).empty());
    std::string result;
    llvm::raw_string_ostream stream(result);
    module->print(stream, nullptr);
    return result;
}

TEST(Optimize, puts_locals_into_registers_from_level_1_on) {
    EXPECT_NE(optimized(kLoop, 0).find("alloca"), std::string::npos);
    for (const int level : {1, 2, 3}) EXPECT_EQ(optimized(kLoop, level).find("alloca"), std::string::npos) << level;
}

TEST(Optimize, unrolls_short_loops_at_level_3) {
    EXPECT_NE(optimized(kLoop, 2).find("phi"), std::string::npos);
    EXPECT_EQ(optimized(kLoop, 3).find("phi"), std::string::npos);
}

TEST(HostTarget, is_described) {
    const codegen::TargetInfo target = describe(host_target());
    EXPECT_FALSE(target.triple.empty());
    EXPECT_FALSE(target.processor.empty());
    EXPECT_TRUE(target.vector_bits == 128 || target.vector_bits == 256 || target.vector_bits == 512);
#if defined(__x86_64__)
    if (std::getenv("WEFT_CPU") == nullptr) {
        EXPECT_EQ(target.vector_bits >= 256, __builtin_cpu_supports("avx2") != 0);
        EXPECT_EQ(target.vector_bits == 512, __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
                                                 __builtin_cpu_supports("avx512dq"));
    }
#endif
}

const char* const kScale = R"(
kernel @scale(%a: f32, %x: array<f32, 1>) tid 1 {
  %i = tid 0
  %xi = load %x[%i]
  %p = mul %a, %xi
  store %x[%i], %p
  return
}
)";

TEST(Compile, makes_a_binary_for_every_kernel_of_the_module) {
    const auto module = ir::parse(kScale);
    const Digest key = cache_key(*module, {});
    const Binary binary = compile(*module, {}, key);
    EXPECT_EQ(binary.target, host_target());
    EXPECT_EQ(binary.key, key);
    EXPECT_FALSE(binary.code.empty());
    ASSERT_EQ(binary.kernels.size(), 1u);
    EXPECT_EQ(binary.kernels[0].name, "scale");
}

TEST(Compile, gives_the_same_bytes_each_time_and_on_each_thread) {
    const auto reference = compile(*ir::parse(kScale), {}, {}).code;
    std::vector<std::thread> threads;
    std::vector<int> same(4);
    for (std::size_t t = 0; t < same.size(); ++t)
        threads.emplace_back([&, t] { same[t] = compile(*ir::parse(kScale), {}, {}).code == reference; });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(same, std::vector<int>(4, 1));
}

TEST(Listing, shows_each_stage) {
    const auto module = ir::parse(kScale);
    EXPECT_NE(listing(*module, {}, Listing::llvm).find("define"), std::string::npos);
    EXPECT_NE(listing(*module, {}, Listing::optimized_llvm).find("fmul"), std::string::npos);
    EXPECT_NE(listing(*module, {}, Listing::assembly).find(".text"), std::string::npos);
}

TEST(CacheKey, differs_in_everything_that_changes_the_code) {
    const auto module = ir::parse(kScale);
    std::vector<Options> variants(9);
    variants[1].codegen.debug = true;
    variants[2].codegen.fast_math = true;
    variants[3].codegen.line_info = true;
    variants[4].codegen.lanes = 4;
    variants[5].codegen.dense = false;
    variants[6].codegen.noalias = false;
    variants[7].optimization_level = 1;
    std::string other = kScale;
    other.replace(other.find("mul"), 3, "add");
    std::vector<Digest> keys;
    for (const Options& options : variants) keys.push_back(cache_key(*module, options));
    keys[8] = cache_key(*ir::parse(other), {});
    for (std::size_t i = 0; i < keys.size(); ++i)
        for (std::size_t k = 0; k < i; ++k) EXPECT_NE(keys[i], keys[k]) << i << " and " << k;
}

TEST(CacheKey, does_not_depend_on_names_of_values) {
    std::string renamed = kScale;
    for (std::size_t at; (at = renamed.find("%xi")) != std::string::npos;) renamed.replace(at, 3, "%element");
    EXPECT_EQ(cache_key(*ir::parse(kScale), {}), cache_key(*ir::parse(renamed), {}));
}

TEST(HashBytes, is_blake3) {
    // The published test vector of the empty input.
    EXPECT_EQ(hash_bytes("").hex(), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
}

}  // namespace
}  // namespace weft::jit
