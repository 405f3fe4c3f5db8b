// How small integers can be. A bound that is too high would read memory in front of an array, one that is too low only
// costs time: each is compared with the smallest value that the same arithmetic gives, over all inputs in a range.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

#include "ir/lower_bounds.h"

namespace weft::ir {
namespace {

// The bound of %x, computed by `lines` from a coordinate %i and from %n, of which nothing is known.
std::optional<std::int64_t> least_of(const std::string& lines, std::optional<std::int64_t> of_n = {}) {
    const std::string text =
        "kernel @k(%n: i32, %u: u32, %w: i64) tid 1 {\n  %i = tid 0\n  %one = constant 1 : i32\n"
        "  %three = constant 3 : i32\n  %five = constant 5 : i32\n  %minus = constant -2 : i32\n" +
        lines + "  return\n}\n";
    const auto module = parse(text);
    const Function& kernel = *module->functions.front();
    const Value* asked = nullptr;
    for (const Operation* operation : kernel.body.operations)
        for (const Value* result : operation->results)
            if (result->name == "x") asked = result;
    LowerBounds bounds;
    if (of_n) bounds.assume_least(kernel.body.arguments[0], *of_n);
    const std::int64_t found = bounds.least(asked);
    if (found == LowerBounds::kUnknown) return {};
    return found;
}

// The smallest value for coordinates from 0 and n from `from`.
std::int64_t smallest(int from, const std::function<std::int64_t(std::int64_t, std::int64_t)>& value) {
    std::int64_t least = value(0, from);
    for (int i = 0; i < 40; ++i)
        for (int n = from; n < from + 40; ++n) least = std::min(least, value(i, n));
    return least;
}

TEST(LowerBounds, sums_with_constants) {
    EXPECT_EQ(least_of("  %x = add %i, %three\n"), smallest(-20, [](auto i, auto) { return i + 3; }));
    EXPECT_EQ(least_of("  %x = add %minus, %i\n"), smallest(-20, [](auto i, auto) { return -2 + i; }));
    EXPECT_EQ(least_of("  %a = sub %i, %five\n  %x = add %a, %three\n"), -2);
    EXPECT_EQ(least_of("  %x = sub %n, %one\n"), std::nullopt);
    EXPECT_EQ(least_of("  %x = sub %n, %one\n", 7), 6);
    EXPECT_EQ(least_of("  %x = sub %three, %i\n"), std::nullopt);
}

TEST(LowerBounds, of_a_number_in_another_width) {
    EXPECT_EQ(least_of("  %a = max %n, %five\n  %b = cast %a : i64\n  %c = constant 3 : i64\n  %x = sub %b, %c\n"), 2);
    EXPECT_EQ(least_of("  %b = cast %n : i64\n  %c = constant 3 : i64\n  %x = add %b, %c\n", 4), 7);
    EXPECT_EQ(least_of("  %x = cast %u : i64\n"), 0);
    EXPECT_EQ(least_of("  %x = cast %u : i32\n"), std::nullopt);  // 2^31 and more are negative then
    EXPECT_EQ(least_of("  %c = constant 5 : i64\n  %a = max %w, %c\n  %x = cast %a : i32\n"), std::nullopt);
}

TEST(LowerBounds, extremes_quotients_and_bits) {
    EXPECT_EQ(least_of("  %x = max %n, %three\n"), 3);
    EXPECT_EQ(least_of("  %x = max %minus, %n\n"), -2);
    EXPECT_EQ(least_of("  %x = min %i, %minus\n"), -2);
    EXPECT_EQ(least_of("  %x = min %i, %n\n"), std::nullopt);
    EXPECT_EQ(least_of("  %x = div %i, %three\n"), 0);
    EXPECT_EQ(least_of("  %x = div %i, %minus\n"), std::nullopt);
    EXPECT_EQ(least_of("  %x = rem %i, %minus\n"), 0);  // has the sign of the dividend
    EXPECT_EQ(least_of("  %x = rem %n, %three\n"), std::nullopt);
    EXPECT_EQ(least_of("  %x = shr %i, %one\n"), 0);
    EXPECT_EQ(least_of("  %x = and %n, %three\n"), 0);
    EXPECT_EQ(least_of("  %x = and %n, %minus\n"), std::nullopt);
    EXPECT_EQ(least_of("  %x = or %n, %three\n"), std::nullopt);
    EXPECT_EQ(least_of("  %x = xor %i, %three\n"), 0);
    EXPECT_EQ(least_of("  %x = xor %i, %minus\n"), std::nullopt);
}

TEST(LowerBounds, a_choice_is_as_small_as_the_smaller_way_where_it_is_taken) {
    const std::string ways = "  %a = add %i, %three\n  %b = add %i, %minus\n";
    EXPECT_EQ(least_of(ways + "  %c = cmp.lt %n, %three\n  %x = select %c, %a, %b\n"), -2);
    EXPECT_EQ(least_of(ways + "  %c = cmp.lt %n, %three\n  %x = select %c, %b, %a\n"), -2);
    // n >= 3 ? n - 1 : 1, and the same the other way round.
    EXPECT_EQ(least_of("  %c = cmp.ge %n, %three\n  %a = sub %n, %one\n  %x = select %c, %a, %one\n"), 1);
    EXPECT_EQ(least_of("  %c = cmp.lt %n, %three\n  %a = sub %n, %one\n  %x = select %c, %one, %a\n"), 1);
    EXPECT_EQ(least_of("  %c = cmp.lt %n, %three\n  %a = sub %n, %one\n  %x = select %c, %a, %one\n"), std::nullopt);
    // n > 3 says one more than n >= 3.
    EXPECT_EQ(least_of("  %c = cmp.gt %n, %three\n  %x = select %c, %n, %five\n"), 4);
    EXPECT_EQ(least_of("  %c = cmp.le %n, %three\n  %x = select %c, %five, %n\n"), 4);
}

TEST(LowerBounds, what_is_assumed_holds_until_it_is_taken_back) {
    const auto module = parse("kernel @k(%n: i32) tid 1 {\n  return\n}\n");
    const Value* n = module->functions.front()->body.arguments[0];
    LowerBounds bounds;
    const std::size_t before = bounds.mark();
    bounds.assume_least(n, 4);
    EXPECT_EQ(bounds.least(n), 4);
    bounds.assume_least(n, 2);
    EXPECT_EQ(bounds.least(n), 4);
    bounds.rewind(before);
    EXPECT_EQ(bounds.least(n), LowerBounds::kUnknown);
}

}  // namespace
}  // namespace weft::ir
