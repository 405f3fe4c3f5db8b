// Which arrays each thread of a kernel has an element of to itself.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "transform/analysis/thread_private_elements.h"

namespace weft::transform {
namespace {

using Own = std::optional<std::vector<int>>;

Own own(const std::string& body, const std::string& head = "tid 1",
        const std::string& parameters = "%n: array<i32, 1>, %x: array<f32, 1>, %y: array<f32, 1>, %m: array<f32, 2>") {
    const auto module =
        ir::parse("struct @Pair = \"Pair\" \"pair.py:Pair\" { a: array<f32, 1>, b: array<f32, 1> }\nkernel @k(" +
                  parameters + ") " + head +
                  " {\n  %i = tid 0\n  %zero = constant 0 : i32\n  %one = constant 1 : i32\n"
                  "  %f = constant 2 : f32\n" +
                  body + "  return\n}\n");
    ir::verify(*module);
    return thread_private_elements(*module->functions.front());
}

TEST(OwnElements, elements_at_the_thread_are_its_own) {
    EXPECT_EQ(own("  %v = load %x[%i]\n  store %y[%i], %v\n"), Own(std::vector<int>{1, 2}));
    EXPECT_EQ(own("  %a = atomic.add %y[%i], %f\n"), Own(std::vector<int>{2}));
    EXPECT_EQ(own("  %v = load %m[%i, %one]\n  store %m[%i, %zero], %v\n"), Own(std::vector<int>{3}));
    EXPECT_EQ(own("  %j = tid 1\n  store %m[%i, %j], %f\n  %v = load %x[%j]\n", "tid 2"), Own(std::vector<int>{3}));
}

TEST(OwnElements, others_are_not) {
    EXPECT_EQ(own("  %k = add %i, %one\n  %v = load %x[%k]\n  store %y[%i], %v\n"), Own(std::vector<int>{2}));
    EXPECT_EQ(own("  %v = load %x[%i]\n  store %y[%i], %v\n  %w = load %y[%zero]\n"), Own(std::vector<int>{1}));
    EXPECT_EQ(own("  %j = load %n[%i]\n  store %y[%j], %f\n"), Own(std::vector<int>{0}));
    EXPECT_EQ(own("  %j = tid 1\n  store %m[%j, %i], %f\n", "tid 2"), Own(std::vector<int>{}));
    EXPECT_EQ(own("  store %m[%zero, %i], %f\n"), Own(std::vector<int>{}));
    EXPECT_EQ(own("  %two = constant 2 : i32\n  %k = mul %i, %two\n  store %y[%k], %f\n"), Own(std::vector<int>{}));
}

TEST(OwnElements, what_does_more_than_that_is_not_known) {
    EXPECT_EQ(own("  print \"%d\", %one\n"), Own());
    EXPECT_EQ(own("  store %y[%i], %f\n", "tid 1", "%p: struct @Pair, %x: array<f32, 1>, %y: array<f32, 1>"), Own());
    EXPECT_EQ(own("  %g = grad_of %x\n  store %g[%i], %f\n"), Own());
}

}  // namespace
}  // namespace weft::transform
