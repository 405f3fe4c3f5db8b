// Which kernels leave something in memory that depends on the order of their atomics.
#include <gtest/gtest.h>

#include "ir/ir.h"
#include "transform/analysis/order_dependence.h"

namespace weft::transform {
namespace {

// Of a kernel with an array of integers and one of floats each that it touches by atomics, and the same to read.
bool depends(const std::string& body, bool noalias = true) {
    const auto module = ir::parse(
        "kernel @k(%n: array<i32, 1>, %x: array<f32, 1>, %m: array<i32, 1>, %v: array<vec3<f32>, 1>) tid 1 {\n"
        "  %i = tid 0\n  %one = constant 1 : i32\n  %f = cast %i : f32\n" +
        body + "  return\n}\n");
    ir::verify(*module);
    return depends_on_order(*module->functions.front(), noalias);
}

TEST(Order, sums_of_integers_extremes_and_bits_come_in_any_order) {
    EXPECT_FALSE(depends("  %a = atomic.add %n[%one], %i\n  %b = atomic.sub %n[%i], %one\n"));
    EXPECT_FALSE(depends("  %a = atomic.max %n[%one], %i\n"));
    EXPECT_FALSE(depends("  %a = atomic.min %x[%one], %f\n"));
    EXPECT_FALSE(depends("  %a = atomic.xor %n[%one], %i\n  %b = atomic.or %m[%one], %i\n"));
    EXPECT_FALSE(depends("  store %x[%i], %f\n"));
}

TEST(Order, sums_of_floats_are_rounded) {
    EXPECT_TRUE(depends("  %a = atomic.add %x[%one], %f\n"));
    EXPECT_TRUE(depends("  %a = atomic.sub %x[%one], %f\n"));
    EXPECT_TRUE(depends("  %w = splat %f : vec3<f32>\n  %a = atomic.add %v[%one], %w\n"));
}

TEST(Order, what_an_atomic_gave_tells_it) {
    EXPECT_TRUE(depends("  %a = atomic.add %n[%one], %one\n  store %m[%i], %a\n"));
    EXPECT_TRUE(depends("  %a = atomic.max %n[%one], %i\n  store %m[%i], %a\n"));
    EXPECT_TRUE(depends("  %a = atomic.exch %n[%one], %i\n"));
    EXPECT_TRUE(depends("  %a = atomic.cas %n[%one], %one, %i\n"));
}

TEST(Order, two_kinds_on_one_array_tell_it) {
    EXPECT_TRUE(depends("  %a = atomic.add %n[%one], %i\n  %b = atomic.max %n[%one], %i\n"));
    EXPECT_FALSE(depends("  %a = atomic.add %n[%one], %i\n  %b = atomic.max %m[%one], %i\n"));
    EXPECT_TRUE(depends("  %a = atomic.add %n[%one], %i\n  %b = atomic.max %m[%one], %i\n", /*noalias=*/false));
}

TEST(Order, what_else_the_kernel_does_to_the_array_tells_it) {
    EXPECT_TRUE(depends("  %a = atomic.add %n[%one], %i\n  %b = load %n[%one]\n  store %m[%i], %b\n"));
    EXPECT_TRUE(depends("  %a = atomic.add %n[%one], %i\n  store %n[%i], %one\n"));
    EXPECT_FALSE(depends("  %b = load %m[%one]\n  %a = atomic.add %n[%one], %b\n"));
    EXPECT_TRUE(depends("  %b = load %m[%one]\n  %a = atomic.add %n[%one], %b\n", /*noalias=*/false));
}

}  // namespace
}  // namespace weft::transform
