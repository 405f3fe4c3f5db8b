#include <gtest/gtest.h>

#include "ir/ir.h"
#include "transform/analysis/uniformity.h"

namespace weft::transform {
namespace {

using Kind = LaneShape::Kind;

// Shapes by the printed name of the value.
class Shapes {
public:
    explicit Shapes(const char* text) : module_(ir::parse(text)), uniformity_(find_uniformity(*module_->functions[0])) {
        collect(module_->functions[0]->body);
    }
    LaneShape operator[](const std::string& name) const { return uniformity_.shape(named_.at(name)); }
    const Uniformity& uniformity() const { return uniformity_; }

private:
    void collect(const ir::Region& region) {
        for (const ir::Value* argument : region.arguments) named_[argument->name] = argument;
        for (const ir::Operation* operation : region.operations) {
            for (const ir::Value* result : operation->results) named_[result->name] = result;
            for (const ir::Region* nested : operation->regions) collect(*nested);
        }
    }
    std::unique_ptr<ir::Module> module_;
    Uniformity uniformity_;
    std::unordered_map<std::string, const ir::Value*> named_;
};

constexpr LaneShape uniform{Kind::uniform, 0};
constexpr LaneShape varying{Kind::varying, 0};
constexpr LaneShape linear(std::int64_t stride) { return {Kind::linear, stride}; }

TEST(Uniformity, only_the_last_axis_differs_between_lanes) {
    Shapes shapes(
        "kernel @k(%n: i32) tid 2 {\n %i = tid 0\n %j = tid 1\n %a = add %i, %n\n %b = add %a, %j\n return\n}\n");
    EXPECT_EQ(shapes["i"], uniform);
    EXPECT_EQ(shapes["j"], linear(1));
    EXPECT_EQ(shapes["a"], uniform);
    EXPECT_EQ(shapes["b"], linear(1));
}

TEST(Uniformity, linear_arithmetic_keeps_its_stride) {
    Shapes shapes(R"(
kernel @k(%n: i32) tid 1 {
  %three = constant 3 : i32
  %i = tid 0
  %a = mul %i, %three
  %b = sub %n, %a
  %c = add %a, %b
  %d = neg %i
  %e = cast %i : i64
  %f = cast %i : f32
  %g = mul %i, %n
  %h = shl %i, %three
  %k = cast %i : i8
  %l = mul %i, %i
  return
}
)");
    EXPECT_EQ(shapes["a"], linear(3));
    EXPECT_EQ(shapes["b"], linear(-3));
    EXPECT_EQ(shapes["c"], uniform);
    EXPECT_EQ(shapes["d"], linear(-1));
    EXPECT_EQ(shapes["e"], linear(1));
    EXPECT_EQ(shapes["f"], varying);
    EXPECT_EQ(shapes["g"], varying);
    EXPECT_EQ(shapes["h"], linear(8));
    EXPECT_EQ(shapes["k"], varying);
    EXPECT_EQ(shapes["l"], varying);
}

TEST(Uniformity, what_may_wrap_in_32_bits_is_not_linear_in_64) {
    Shapes shapes(R"(
kernel @k(%n: i32) tid 1 {
  %three = constant 3 : i32
  %i = tid 0
  %thread = cast %i : i64
  %moved = add %i, %n
  %a = cast %moved : i64
  %u = cast %i : u32
  %minus = neg %u
  %b = cast %minus : i64
  %third = mul %i, %three
  %c = cast %third : i64
  %more = add %thread, %thread
  %d = cast %more : i32
  return
}
)");
    constexpr LaneShape runs{Kind::varying, 0, true};
    EXPECT_EQ(shapes["thread"], linear(1));
    EXPECT_EQ(shapes["a"], runs);
    EXPECT_EQ(shapes["u"], linear(1));
    EXPECT_EQ(shapes["b"], varying);
    EXPECT_EQ(shapes["c"], varying);
    EXPECT_EQ(shapes["d"], linear(2));
}

TEST(Uniformity, loads_and_atomics) {
    Shapes shapes(R"(
kernel @k(%x: array<i32, 1>) tid 1 {
  %zero = constant 0 : i32
  %i = tid 0
  %same = load %x[%zero]
  %own = load %x[%i]
  %ticket = atomic.add %x[%zero], %same
  return
}
)");
    EXPECT_EQ(shapes["same"], uniform);
    EXPECT_EQ(shapes["own"], varying);
    EXPECT_EQ(shapes["ticket"], varying);
}

TEST(Uniformity, results_of_a_varying_if_are_varying) {
    Shapes shapes(R"(
kernel @k(%n: i32, %u: bool) tid 1 {
  %i = tid 0
  %c = cmp.lt %i, %n
  %a, %b = if %c {
    yield %n, %n
  } else {
    %z = constant 0 : i32
    yield %z, %n
  }
  %d = if %u {
    yield %i
  } else {
    %j = add %i, %n
    yield %j
  }
  return
}
)");
    EXPECT_EQ(shapes["a"], varying);
    EXPECT_EQ(shapes["b"], uniform);
    EXPECT_EQ(shapes["d"], linear(1));
}

TEST(Uniformity, a_counter_is_uniform_inside_a_varying_loop_and_varying_after_it) {
    Shapes shapes(R"(
kernel @k(%x: array<f32, 1>, %n: i32) tid 1 {
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %i = tid 0
  %m = load %x[%i]
  %r, %s = while carry (%count = %zero, %v = %m) {
    %c = cmp.gt %v, %m
    yield %c
  } do (%count2, %v2) {
    %next = add %count2, %one
    %w = add %v2, %m
    yield %next, %w
  }
  return
}
)");
    EXPECT_EQ(shapes["count2"], uniform);
    EXPECT_EQ(shapes["next"], uniform);
    EXPECT_EQ(shapes["v2"], varying);
    EXPECT_EQ(shapes["r"], varying);
}

TEST(Uniformity, carried_values_settle_by_repetition) {
    // b becomes varying only because a does, one iteration later.
    Shapes shapes(R"(
kernel @k(%n: i32, %x: array<i32, 1>) tid 1 {
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %i = tid 0
  %r, %s, %p = for %k = %zero to %n step %one carry (%a = %zero, %b = %zero, %at = %i) {
    %v = load %x[%i]
    %next = add %at, %n
    yield %v, %a, %next
  }
  return
}
)");
    EXPECT_EQ(shapes["k"], uniform);
    EXPECT_EQ(shapes["a"], varying);
    EXPECT_EQ(shapes["b"], varying);
    EXPECT_EQ(shapes["at"], linear(1));
    EXPECT_EQ(shapes["p"], linear(1));
}

TEST(Uniformity, a_kernel_that_still_calls_runs_on_one_lane_and_says_so) {
    auto module = ir::parse("func @f() {\n return\n}\nkernel @k() tid 1 {\n %i = tid 0\n call @f()\n return\n}\n");
    const Uniformity found = find_uniformity(*module->find("k"));
    EXPECT_FALSE(found.runs_in_lanes);
    ASSERT_EQ(found.remarks.size(), 1u);
    EXPECT_NE(found.remarks[0].text.find("one thread at a time"), std::string::npos);
}

}  // namespace
}  // namespace weft::transform
