// Code for other machines than this one: it does without the instructions that an older one lacks, and uses those of a
// newer one.
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <cmath>

#include "codegen/harness.h"
#include "ir/ir.h"

namespace weft::test {
namespace {

codegen::TargetInfo machine(const char* triple, const char* cpu, const char* features, int vector_bits) {
    codegen::TargetInfo target;
    target.triple = triple;
    target.processor = cpu;
    target.features = features;
    target.vector_bits = vector_bits;
    return target;
}

const char* kDivergent = R"(
kernel @divergent(%x: array<f32, 1>, %y: array<f32, 1>, %n: i32) tid 1 {
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %i = tid 0
  %a = load %x[%i]
  %s, %c = while carry (%v = %a, %k = %zero) {
    %limit = constant 100 : f32
    %small = cmp.lt %v, %limit
    %few = cmp.lt %k, %n
    %go = and %small, %few
    yield %go
  } do (%w, %l) {
    %e = exp %w
    %next = add %w, %e
    %m = add %l, %one
    yield %next, %m
  }
  %f = cast %c : f32
  %r = add %s, %f
  store %y[%i], %r
  return
}
)";

std::string lowered(const codegen::TargetInfo& target, int& lanes) {
    auto module = ir::parse(kDivergent);
    llvm::LLVMContext context;
    codegen::Lowered result =
        codegen::lower(*module, transform::plan(*module, codegen::plan_options({}, target)), target, {}, context);
    std::string text;
    llvm::raw_string_ostream stream(text);
    EXPECT_FALSE(llvm::verifyModule(*result.module, &stream)) << text;
    result.module->print(stream, nullptr);
    lanes = result.kernels.at(0).cpu().lanes;
    return text;
}

TEST(Machines, each_gets_its_width_and_math_routines) {
    int lanes = 0;
    std::string text = lowered(machine("x86_64-pc-linux-gnu", "x86-64", "", 128), lanes);
    EXPECT_EQ(lanes, 4);
    EXPECT_NE(text.find("Sleef_expf4_u10sse2"), std::string::npos);
    text = lowered(machine("x86_64-pc-linux-gnu", "x86-64-v3", "", 256), lanes);
    EXPECT_EQ(lanes, 8);
    EXPECT_NE(text.find("Sleef_expf8_u10avx2"), std::string::npos);
    EXPECT_NE(text.find("sext <8 x i1>"), std::string::npos) << "masks are packed to be carried";
    text = lowered(machine("x86_64-pc-linux-gnu", "x86-64-v4", "", 512), lanes);
    EXPECT_EQ(lanes, 16);
    EXPECT_NE(text.find("Sleef_expf16_u10avx512f"), std::string::npos);
    EXPECT_EQ(text.find("sext <16 x i1>"), std::string::npos) << "masks have registers of their own";
    text = lowered(machine("aarch64-linux-gnu", "generic", "+neon", 128), lanes);
    EXPECT_EQ(lanes, 4);
    EXPECT_NE(text.find("Sleef_expf4_u10advsimd"), std::string::npos);
}

TEST(Machines, half_conversions_without_the_instruction) {
    const char* text = R"(
kernel @halves(%x: array<f16, 1>, %y: array<f32, 1>, %z: array<f16, 1>) tid 1 {
  %i = tid 0
  %a = load %x[%i]
  %b = cast %a : f32
  %c = load %y[%i]
  store %y[%i], %b
  %d = cast %c : f16
  store %z[%i], %d
  return
}
)";
    codegen::Options options;
    options.lanes = 4;
    Compiled kernel(text, options, machine(host().triple.c_str(), "x86-64", "", 128));
    constexpr std::size_t count = 1 << 16;
    std::vector<std::uint16_t> x(count), z(count);
    std::vector<float> y(count), before(count);
    for (std::size_t i = 0; i < count; ++i) {
        x[i] = static_cast<std::uint16_t>(i);
        // On, just below and just above the middle between neighbours, subnormal ones too, and past both ends.
        before[i] = y[i] = std::ldexp(1.0f + static_cast<float>(i % 4099) / 4096.0f, static_cast<int>(i % 47) - 28) *
                           (i % 2 ? 1.0f : -1.0f);
    }
    kernel.run(static_cast<std::int64_t>(count), view(x), view(y), view(z));
    for (std::size_t i = 0; i < count; ++i) {
        double widened = read_scalar(Scalar::f16, &x[i]).f;
        if (std::isnan(widened)) {
            EXPECT_TRUE(std::isnan(y[i]));
        } else {
            EXPECT_EQ(y[i], widened) << i;
        }
        EXPECT_EQ(read_scalar(Scalar::f16, &z[i]).f, convert(Number::real(before[i]), Scalar::f32, Scalar::f16).f)
            << before[i];
    }
}

}  // namespace
}  // namespace weft::test
