// Whether additions to elements next to each other are put together. tests/gradients checks their sums.
#include <gtest/gtest.h>

#include "codegen/harness.h"

namespace weft::test {
namespace {

bool are_put_together(const std::string& body, codegen::Options options = {}) {
    options.lanes = options.lanes ? options.lanes : 4;
    const std::string text =
        "kernel @k(%u: array<f32, 2>, %d: array<f32, 1>) adjoint tid 2 {\n"
        "  %i = tid 0\n  %j = tid 1\n  %one = constant 1 : i32\n  %next = add %j, %one\n"
        "  %g = grad_of %u\n  %v = load %d[%j]\n" +
        body + "  return\n}\n";
    return Compiled(text, options).llvm_text().find("\ntogether") != std::string::npos;
}

const std::string kRow = "  %a = atomic.add %g[%i, %next], %v\n  %b = atomic.add %g[%i, %j], %v\n";

TEST(AdjacentAdditions, of_one_row_are_put_together) {
    EXPECT_TRUE(are_put_together(kRow));
    EXPECT_TRUE(
        are_put_together("  %a = atomic.add %g[%i, %j], %v\n  %w = neg %v\n  %b = atomic.add %g[%i, %j], %w\n"));
}

TEST(AdjacentAdditions, of_other_rows_and_columns_are_not) {
    EXPECT_FALSE(
        are_put_together("  %below = add %i, %one\n"
                         "  %a = atomic.add %g[%below, %j], %v\n  %b = atomic.add %g[%i, %j], %v\n"));
    EXPECT_FALSE(are_put_together("  %a = atomic.add %g[%i, %j], %v\n"));
}

TEST(AdjacentAdditions, need_packed_rows_that_no_other_array_overlaps_and_lanes) {
    codegen::Options options;
    options.dense = false;
    EXPECT_FALSE(are_put_together(kRow, options));
    options = {};
    options.noalias = false;
    EXPECT_FALSE(are_put_together(kRow, options));
    options = {};
    options.debug = true;
    EXPECT_FALSE(are_put_together(kRow, options));
    options = {};
    options.lanes = 1;
    EXPECT_FALSE(are_put_together(kRow, options));
}

TEST(AdjacentAdditions, of_columns_chosen_at_run_time_are_not) {
    EXPECT_FALSE(
        are_put_together("  %q = cast %v : i32\n"
                         "  %a = atomic.add %g[%q, %next], %v\n  %b = atomic.add %g[%q, %j], %v\n"));
    EXPECT_TRUE(
        are_put_together("  %row = view %g[%i]\n"
                         "  %a = atomic.add %row[%next], %v\n  %b = atomic.add %row[%j], %v\n"));
}

}  // namespace
}  // namespace weft::test
