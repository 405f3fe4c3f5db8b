// What is made of one analysed kernel, and when.
#include <gtest/gtest.h>

#include "program/code.h"

namespace weft::program {
namespace {

constexpr const char* kRows = R"(
kernel @rows(%a: array<f32, 2>, %b: array<f32, 2>) tid 2 {
  %i = tid 0
  %j = tid 1
  %v = load %a[%i, %j]
  %w = add %v, %v
  store %b[%i, %j], %w
  return
}
)";

CompileOptions uncached() {
    CompileOptions options;
    options.code.cache = false;
    return options;
}

TEST(KernelCode, is_made_once_for_the_same_options) {
    KernelCode code(ir::parse(kRows));
    const CompileOptions options = uncached();
    EXPECT_EQ(code.find(options), nullptr);
    const auto compiled = code.compiled(options);
    EXPECT_EQ(code.compiled(options), compiled);
    EXPECT_EQ(code.find(options), compiled);
    EXPECT_EQ(code.facts(options.lowering), code.facts(options.lowering));
    CompileOptions strided = options;
    strided.code.dense = false;
    EXPECT_EQ(code.find(strided), nullptr);
    EXPECT_NE(code.compiled(strided), compiled);
}

TEST(KernelCode, of_one_lane_serves_short_rows_too) {
    KernelCode code(ir::parse(kRows));
    for (const int lanes : {1, 4}) {
        CompileOptions options = uncached(), short_rows = options;
        options.code.lanes = short_rows.code.lanes = lanes;
        short_rows.code.short_rows = true;
        const auto compiled = code.compiled(options);
        ASSERT_EQ(compiled->description.cpu().lanes, lanes);
        EXPECT_EQ(code.find(short_rows) == compiled, lanes == 1);
    }
}

TEST(KernelCode, what_is_derived_comes_from_the_kernel_as_it_was_analysed) {
    KernelCode code(ir::parse(kRows));
    const std::string before = ir::print(code.analysed());
    LoweringOptions adjoint;
    adjoint.gradients = {transform::Gradient::used, transform::Gradient::used};
    const auto lowered = code.lowered(adjoint);
    EXPECT_EQ(ir::print(code.analysed()), before);
    EXPECT_NE(lowered, code.lowered({}));
    // Effects are those of the kernel itself, and the adjoint needs no contents: it is linear.
    ASSERT_EQ(lowered->effects.size(), 2u);
    EXPECT_TRUE(lowered->effects[1].writes && !lowered->effects[0].writes);
    EXPECT_EQ(lowered->overwritten, (std::vector<std::vector<int>>{{}, {0, 1}}));
    ASSERT_EQ(lowered->contents.size(), 2u);
    EXPECT_FALSE(lowered->contents[0].before || lowered->contents[1].before);
    EXPECT_TRUE(code.lowered({})->contents.empty());
}

}  // namespace
}  // namespace weft::program
