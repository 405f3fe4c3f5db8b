// The code that is made of one analysed kernel, and when.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "program/kernel/code.h"
#include "program/kernel/grid.h"
#include "program/launch/run.h"
#include "runtime/device.h"
#include "support/error.h"

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
    options.cache = false;
    return options;
}

TEST(KernelCode, is_made_once_for_the_same_options) {
    KernelCode code(ir::parse(kRows));
    const CompileOptions options = uncached();
    EXPECT_EQ(code.find(options), nullptr);
    const auto compiled = code.compiled(options);
    EXPECT_EQ(code.compiled(options), compiled);
    EXPECT_EQ(code.find(options), compiled);
    EXPECT_EQ(code.facts(options.passes()), code.facts(options.passes()));
    CompileOptions strided = options;
    strided.dense = false;
    EXPECT_EQ(code.find(strided), nullptr);
    EXPECT_NE(code.compiled(strided), compiled);
}

TEST(KernelCode, of_one_lane_serves_short_rows_too) {
    KernelCode code(ir::parse(kRows));
    for (const int lanes : {1, 4}) {
        CompileOptions options = uncached(), short_rows = options;
        options.lanes = short_rows.lanes = lanes;
        short_rows.short_rows = true;
        const auto compiled = code.compiled(options);
        ASSERT_EQ(compiled->description.cpu().lanes, lanes);
        EXPECT_EQ(code.find(short_rows) == compiled, lanes == 1);
    }
}

TEST(KernelCode, what_is_derived_comes_from_the_kernel_as_it_was_analysed) {
    KernelCode code(ir::parse(kRows));
    const std::string before = ir::print(code.analysed());
    PassOptions adjoint;
    adjoint.derivation.gradients = {transform::Gradient::used, transform::Gradient::used};
    const auto transformed = code.transformed(adjoint);
    EXPECT_EQ(ir::print(code.analysed()), before);
    EXPECT_NE(transformed, code.transformed({}));
    // Effects are those of the kernel itself, and the adjoint needs no contents: it is linear.
    ASSERT_EQ(transformed->effects.size(), 2u);
    EXPECT_TRUE(transformed->effects[1].writes && !transformed->effects[0].writes);
    EXPECT_EQ(transformed->overwritten, (std::vector<std::vector<int>>{{}, {0, 1}}));
    ASSERT_EQ(transformed->contents.size(), 2u);
    EXPECT_FALSE(transformed->contents[0].before || transformed->contents[1].before);
    EXPECT_TRUE(code.transformed({})->contents.empty());
}

// The loop of a target whose threads have no stack that grows: x ** n, for n that only the launch knows.
constexpr const char* kPower = R"(
kernel @power(%x: array<f64, 1>, %n: i32, %y: array<f64, 1>) tid 1 {
  %i = tid 0
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %start = constant 1 : f64
  %v = load %x[%i]
  %p = for %k = %zero to %n step %one carry (%s = %start) {
    %q = mul %s, %v
    yield %q
  }
  store %y[%i], %p
  return
}
)";

TEST(KernelCode, of_an_adjoint_keeps_as_many_states_as_the_target_allows) {
    KernelCode code(ir::parse(kPower));
    CompileOptions growing = uncached();
    growing.derivation.gradients.assign(3, transform::Gradient::used);
    CompileOptions bounded = growing;
    bounded.stack_slots = 3;
    const auto has_stack = [&](const CompileOptions& options) {
        return ir::print(*code.transformed(options.passes())->module).find(" stack ") != std::string::npos;
    };
    EXPECT_TRUE(has_stack(growing));
    EXPECT_FALSE(has_stack(bounded));
    EXPECT_NE(code.compiled(growing), code.compiled(bounded));
    for (const CompileOptions& options : {growing, bounded}) {
        const auto compiled = code.compiled(options);
        double x[] = {1.5, 0.5}, y[] = {0.0, 0.0}, dx[] = {0.0, 0.0}, dy[] = {1.0, 10.0};
        std::vector<std::byte> block(static_cast<std::size_t>(compiled->layout.size_bytes));
        view_at(block.data(), compiled->layout.offsets[0]) = {x, dx, {2}, {8}};
        view_at(block.data(), compiled->layout.offsets[2]) = {y, dy, {2}, {8}};
        const std::int32_t n = 20;
        std::memcpy(block.data() + compiled->layout.offsets[1], &n, sizeof n);
        const std::int64_t dim[] = {2};
        run(*compiled, runtime::host_device().default_stream(), block.data(), make_grid(dim, 1, "power"));
        EXPECT_NEAR(dx[0], 20 * std::pow(1.5, 19), 1e-9);
        EXPECT_NEAR(dx[1], 200 * std::pow(0.5, 19), 1e-15);
    }
    bounded.stack_slots = 1;
    EXPECT_THROW(code.transformed(bounded.passes()), CompileError);
}

}  // namespace
}  // namespace weft::program
