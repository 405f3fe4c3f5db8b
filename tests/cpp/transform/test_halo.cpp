// How far threads of an adjoint reach: against the threads themselves, one coordinate after the other.
#include <gtest/gtest.h>

#include "ir/ir.h"
#include "transform/analysis/halo.h"

namespace weft::transform {
namespace {

// Of a kernel that adds to the gradient of %u at the index %at, computed by `lines` from the coordinate %i.
Halo halo_of(const std::string& lines, const std::string& kind = " adjoint") {
    const std::string text = "kernel @k(%u: array<f32, 1>, %chosen: array<bool, 1>, %n: i32)" + kind + " tid 1 {\n" +
                             "  %i = tid 0\n  %d = constant 2.0 : f32\n  %zero = constant 0 : i32\n" +
                             "  %one = constant 1 : i32\n  %two = constant 2 : i32\n  %three = constant 3 : i32\n" +
                             "  %c = load %chosen[%i]\n" + lines +
                             "  %gradient = grad_of %u\n  %old = atomic.add %gradient[%at], %d\n  return\n}\n";
    const auto module = ir::parse(text);
    return find_halo(*module->functions.front());
}

std::int64_t most(const std::string& lines) {
    const Halo found = halo_of(lines);
    return found.memories.empty() ? -1 : found.most;
}

TEST(Halo, sums_and_differences_with_constants) {
    EXPECT_EQ(most("  %at = add %i, %zero\n"), 0);
    EXPECT_EQ(most("  %at = add %i, %two\n"), 2);
    EXPECT_EQ(most("  %at = add %three, %i\n"), 3);
    EXPECT_EQ(most("  %at = sub %i, %two\n"), 2);
    EXPECT_EQ(most("  %b = sub %i, %three\n  %at = add %b, %one\n"), 2);
    EXPECT_EQ(most("  %at = sub %two, %i\n"), -1);
    EXPECT_EQ(most("  %at = add %i, %i\n"), -1);
    EXPECT_EQ(most("  %at = add %i, %n\n"), -1);
    EXPECT_EQ(most("  %at = mul %i, %two\n"), -1);
    EXPECT_EQ(most("  %far = constant 17 : i32\n  %at = add %i, %far\n"), -1);
}

TEST(Halo, of_two_ways_the_one_that_leads_further_counts) {
    const std::string ways = "  %a = sub %i, %three\n  %b = add %i, %one\n";
    EXPECT_EQ(most(ways + "  %at = select %c, %a, %b\n"), 3);
    EXPECT_EQ(most(ways + "  %at = select %c, %b, %a\n"), 3);
    const std::string others = "  %a = add %i, %three\n  %b = sub %i, %one\n";
    EXPECT_EQ(most(others + "  %at = select %c, %a, %b\n"), 3);
    EXPECT_EQ(most(others + "  %at = select %c, %b, %a\n"), 3);
    EXPECT_EQ(most("  %a = sub %i, %three\n  %at = select %c, %a, %n\n"), -1);
}

TEST(Halo, an_index_that_is_held_at_the_ends_of_the_array) {
    EXPECT_EQ(most("  %a = sub %i, %two\n  %at = max %a, %zero\n"), 2);
    EXPECT_EQ(most("  %a = sub %i, %two\n  %at = max %zero, %a\n"), 2);
    EXPECT_EQ(most("  %at = max %i, %one\n"), -1);  // the first thread reaches any distance with a larger constant
    const Halo held = halo_of("  %a = add %i, %three\n  %last = sub %n, %one\n  %at = min %a, %last\n");
    EXPECT_EQ(held.most, 3);
    EXPECT_EQ(held.bounds.size(), 1U);  // no thread is past it, says the launch
    EXPECT_TRUE(halo_of("  %at = add %i, %one\n").bounds.empty());
    // If threads may be past it, the distance to the bound from below is 0.
    EXPECT_EQ(most("  %a = add %i, %one\n  %last = sub %n, %one\n  %b = min %a, %last\n  %at = sub %b, %three\n"), 3);
}

TEST(Halo, other_atomics_on_the_same_memory) {
    const std::string more = "  %near = add %i, %one\n  %g = grad_of %u\n  %o = atomic.add %g[%near], %d\n";
    EXPECT_EQ(most(more + "  %at = sub %i, %three\n"), 3);
    EXPECT_EQ(most(more + "  %at = add %i, %zero\n"), 1);
    EXPECT_EQ(most(more + "  %at = add %n, %zero\n"), -1);
}

TEST(Halo, nothing_is_known_of_kernels_that_are_no_adjoints) {
    EXPECT_TRUE(halo_of("  %at = add %i, %one\n", "").memories.empty());
}

}  // namespace
}  // namespace weft::transform
