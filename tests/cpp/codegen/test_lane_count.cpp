// The lane count that the plan chooses by itself: each rule of lane_count.cpp on both sides of its limit.
#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "ir/ir.h"

namespace weft::codegen {
namespace {

using transform::LaneChoice;

LaneChoice choice_of(const std::string& text, const TargetInfo& target, bool short_rows) {
    const std::unique_ptr<ir::Module> module = ir::parse(text);
    Options options;
    options.short_rows = short_rows;
    return transform::plan(*module, plan_options(options, target)).back().lane_choice;
}

LaneChoice choice(const std::string& body, int bits, bool short_rows, const std::string& more = "") {
    const std::string text = more +
                             "kernel @k(%x: array<f32, 1>, %y: array<f32, 1>, %d: array<f64, 1>, %e: array<f64, 1>,"
                             " %m: array<f32, 2>, %p: array<i32, 1>, %n: i32) tid 1 {\n"
                             "  %i = tid 0\n  %zero = constant 0 : i32\n  %one = constant 1 : i32\n" +
                             body + "  return\n}\n";
    TargetInfo target;
    target.vector_bits = bits;
    return choice_of(text, target, short_rows);
}

// At 128, 256 and 512 bits.
std::vector<int> lanes(const std::string& body, const std::string& more = "") {
    std::vector<int> found;
    for (const int bits : {128, 256, 512}) found.push_back(choice(body, bits, false, more).lanes);
    return found;
}

std::string repeated(int times, const std::string& operation) {
    std::string text;
    for (int i = 0; i < times; ++i) {
        std::string line = operation;
        for (const auto& [sign, number] : {std::pair("#+", i + 1), std::pair("#", i)})
            for (std::size_t at; (at = line.find(sign)) != std::string::npos;)
                line.replace(at, std::string(sign).size(), std::to_string(number));
        text += "  " + line + "\n";
    }
    return text;
}

std::string arithmetic(int operations, const std::string& input = "x", const std::string& output = "y") {
    return "  %v0 = load %" + input + "[%i]\n" + repeated(operations, "%v#+ = mul %v#, %v#") + "  store %" + output +
           "[%i], %v" + std::to_string(operations) + "\n";
}

const std::vector<int> kOneRegister = {4, 8, 16}, kTwoRegisters = {8, 16, 32};

TEST(LaneCount, a_register_full_and_two_where_there_is_next_to_nothing_to_do) {
    EXPECT_EQ(lanes(arithmetic(8)), kTwoRegisters);
    EXPECT_EQ(lanes(arithmetic(9)), kOneRegister);
    EXPECT_EQ(lanes(arithmetic(0)), kOneRegister) << "a copy waits for memory";
}

TEST(LaneCount, at_least_four_of_f64) {
    const std::vector<int> expected = {4, 4, 8};
    EXPECT_EQ(lanes(arithmetic(9, "d", "e")), expected);
    EXPECT_EQ(lanes(arithmetic(2, "d", "e")), expected) << "two registers of f64 would be too many";
}

TEST(LaneCount, what_is_the_same_for_all_threads_needs_no_lanes_of_f64) {
    const std::string uniform =
        "  %u0 = load %d[%n]\n" + repeated(9, "%u#+ = mul %u#, %u#") + "  store %e[%zero], %u9\n";
    EXPECT_EQ(lanes(uniform + arithmetic(9)), kOneRegister);
}

std::string loop(const std::string& body, const std::string& input = "x", const std::string& output = "y") {
    return "  %a = load %" + input + "[%i]\n  %b = for %k = %zero to %n step %one carry (%c = %a) {\n" + body +
           "  }\n  store %" + output + "[%i], %b\n" + repeated(9, "%w#+ = load %x[%i]");
}

std::string steps(int operations) {
    return "  %v0 = mul %c, %c\n" + repeated(operations - 1, "%v#+ = add %v#, %c") + "  yield %v" +
           std::to_string(operations - 1) + "\n";
}

TEST(LaneCount, two_registers_take_turns_in_a_short_loop_that_waits_for_itself) {
    EXPECT_EQ(lanes(loop(steps(1))), kTwoRegisters);
    EXPECT_EQ(lanes(loop(steps(24))), kTwoRegisters);
    EXPECT_EQ(lanes(loop(steps(25))), kOneRegister);
    EXPECT_EQ(lanes(loop(steps(24), "d", "e")), (std::vector<int>{8, 8, 16}));
}

TEST(LaneCount, a_loop_over_memory_or_with_calls_does_not_wait_for_itself) {
    EXPECT_EQ(lanes(loop("  %l = load %x[%k]\n  %v = add %c, %l\n  yield %v\n")), kOneRegister);
    EXPECT_EQ(lanes(loop("  store %y[%i], %c\n  %v = mul %c, %c\n  yield %v\n")), kOneRegister);
    EXPECT_EQ(lanes(loop("  %v = exp %c\n  yield %v\n")), kOneRegister);
    EXPECT_EQ(
        lanes(loop("  %s = cmp.lt %c, %a\n  %v = if %s {\n  %l = load %x[%k]\n  yield %l\n  } else {\n  yield %c\n"
                   "  }\n  yield %v\n")),
        kOneRegister);
    EXPECT_EQ(lanes(loop("  %s = cmp.lt %c, %a\n  %v = if %s {\n  %l = neg %c\n  yield %l\n  } else {\n  yield %c\n"
                         "  }\n  yield %v\n")),
              kTwoRegisters);
}

TEST(LaneCount, functions_of_each_others_results_stand_side_by_side) {
    const auto functions = [](int count, const char* name, const std::string& in, const std::string& out) {
        return "  %f0 = load %" + in + "[%i]\n" + repeated(count, std::string("%f#+ = ") + name + " %f#") +
               "  store %" + out + "[%i], %f" + std::to_string(count) + "\n";
    };
    EXPECT_EQ(lanes(functions(2, "sin", "x", "y")), kTwoRegisters);
    EXPECT_EQ(lanes(functions(2, "sin", "d", "e")), kTwoRegisters) << "four registers of f64";
    EXPECT_EQ(lanes(functions(1, "sin", "d", "e")), (std::vector<int>{4, 4, 8}));
    EXPECT_EQ(lanes(functions(9, "sqrt", "d", "e")), (std::vector<int>{4, 4, 8})) << "an instruction, no call";
    EXPECT_EQ(lanes(functions(2, "sin", "d", "e") + loop("  %v = exp %c\n  yield %v\n")), (std::vector<int>{4, 4, 8}));
    // 64 operations of a kernel: four of its beginning, the load, the store, and return.
    EXPECT_EQ(lanes(functions(2, "sin", "d", "e") + repeated(56, "%w#+ = load %x[%i]")), kTwoRegisters);
    EXPECT_EQ(lanes(functions(2, "sin", "d", "e") + repeated(57, "%w#+ = load %x[%i]")), (std::vector<int>{4, 4, 8}));
}

TEST(LaneCount, one_where_lanes_would_gather_and_wait) {
    const std::string rows =
        "  %a = constant 0 : f32\n  %q = load %p[%i]\n"
        "  %b = for %k = %zero to %q step %one carry (%c = %a) {\n"
        "  %l = load %m[%i, %k]\n  %v = add %c, %l\n  yield %v\n  }\n  store %y[%i], %b\n";
    EXPECT_EQ(lanes(rows), (std::vector<int>{1, 1, 1}));
    EXPECT_NE(choice(rows, 256, false).why.find("lanes would gather, and wait for each other"), std::string::npos);
    EXPECT_EQ(choice(arithmetic(9), 256, false).why, "");
}

// Loads elements that lie apart, and does something if a comparison says so.
std::string after_a_test(const std::string& condition) {
    return "  %q = load %p[%i]\n  %a = load %m[%q, %zero]\n  %b = load %m[%q, %one]\n  %c = load %m[%q, %n]\n"
           "  %e2 = load %m[%n, %q]\n  %f2 = load %m[%zero, %q]\n  %small = constant 0.1 : f32\n  %which = " +
           condition + "\n  if %which {\n  %v0 = mul %b, %c\n" + repeated(18, "%v#+ = mul %v#, %e2") +
           "  %v19 = mul %v18, %f2\n  store %y[%i], %v19\n  } else {\n  }\n";
}

TEST(LaneCount, eight_go_through_rows_of_a_grid_where_gathers_and_masks_are_quick) {
    const auto kernel = [](const std::string& in_loop) {
        return R"(struct @HashGridDescriptor = "HashGridDescriptor" "of the runtime" { starts: array<i32, 1>, points: array<i32, 1>,
 groups: array<i32, 1>, inverse_width: f64, grouped: u64, dims: vec3<i32>, count: i32 }
kernel @k(%grid: u64, %x: array<vec3<f32>, 1>, %cell: array<i32, 1>, %y: array<vec3<f32>, 1>) tid 1 {
  %i = tid 0
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %o = object %grid[3]
  %all = array_at %o, %one : array<struct @HashGridDescriptor, 1>
  %lists = member %all[0]
  %starts = load %lists[%zero]
  %own = load %cell[%i]
  %next = add %own, %one
  %from = load %starts[%own]
  %to = load %starts[%next]
  %start = load %x[%i]
  %sum = for %k = %from to %to step %one carry (%s = %start) {
    %n = load %cell[%k]
    %near = load %x[%n]
    %t = add %s, %near
)" + in_loop + R"(
    yield %t
  }
  store %y[%i], %sum
  return
}
)";
    };
    TargetInfo target;
    target.triple = "x86_64-unknown-linux-gnu";
    target.vector_bits = 512;
    target.fast_gathers = true;
    EXPECT_EQ(choice_of(kernel(""), target, false).lanes, 1) << "masks are vectors";
    EXPECT_FALSE(has_quick_lanes(target));
    target.features = "+avx512f,+avx512vl,+avx512bw,+avx512dq";
    EXPECT_TRUE(has_quick_lanes(target));
    EXPECT_EQ(choice_of(kernel(""), target, false).lanes, 8);
    EXPECT_EQ(choice_of(kernel("    store %y[%n], %t"), target, false).lanes, 1) << "threads write into each other";
    target.fast_gathers = false;
    EXPECT_EQ(choice_of(kernel(""), target, false).lanes, 1);
    EXPECT_FALSE(has_quick_lanes(target));
}

TEST(LaneCount, a_thread_goes_one_way_where_floats_decide_and_lanes_go_both) {
    EXPECT_EQ(lanes(after_a_test("cmp.lt %a, %small")), (std::vector<int>{1, 1, 1}));
    EXPECT_EQ(lanes(after_a_test("cmp.lt %q, %n")), kOneRegister) << "integers mostly send neighbours the same way";
    EXPECT_GT(choice("  %u = load %x[%zero]\n" + after_a_test("cmp.lt %u, %small"), 256, false).lanes, 1)
        << "all go one way";
}

TEST(LaneCount, most_threads_are_done_after_a_test_that_stores_their_result) {
    const auto tested = [](int work, int otherwise) {
        return lanes(
            "  %q = load %p[%i]\n  %a = load %m[%q, %zero]\n  %c = load %m[%q, %one]\n"
            "  %r = load %m[%q, %n]\n  %s = load %m[%n, %q]\n  %cr = add %c, %r\n  %b = add %cr, %s\n"
            "  %small = constant 0.1 : f32\n  %which = cmp.lt %a, %small\n  if %which {\n" +
            repeated(otherwise, "store %y[%i], %small") + "  } else {\n  %v0 = mul %a, %b\n" +
            repeated(work, "%v#+ = mul %v#, %b") + "  store %y[%i], %v" + std::to_string(work) + "\n  }\n");
    };
    const std::vector<int> one{1, 1, 1};
    EXPECT_EQ(tested(24, 1), one);
    EXPECT_NE(tested(24, 0), one) << "some are left out, and most go on";
    EXPECT_NE(tested(24, 4), one) << "both ways have something to do";
    EXPECT_NE(tested(60, 1), one) << "enough to do for those that go on";
}

TEST(LaneCount, vectors_that_some_lanes_need_are_taken_one_by_one) {
    const auto of_vectors = [](const std::string& trips) {
        const std::string text =
            "kernel @k(%x: array<vec3<f32>, 1>, %y: array<vec3<f32>, 1>, %p: array<i32, 1>, %n: i32) tid 1 {\n"
            "  %i = tid 0\n  %one = constant 1 : i32\n  %zero = constant 0 : i32\n  %a = load %x[%i]\n"
            "  %q = load %p[%i]\n  %last = add %i, %" +
            trips + "\n" +
            "  %b = for %k = %i to %last step %one carry (%c = %a) {\n"
            "  %l = load %x[%k]\n  %v = add %c, %l\n  yield %v\n  }\n  store %y[%i], %b\n  return\n}\n";
        TargetInfo target;
        target.vector_bits = 512;
        return choice_of(text, target, false).lanes;
    };
    EXPECT_GT(of_vectors("n"), 1);
    EXPECT_EQ(of_vectors("q"), 1);
}

TEST(LaneCount, traversals_get_a_packet_full_of_rays) {
    const auto with_call = [](const std::string& words) {
        return "  %id = constant 7 : u64\n  %r = call_library \"ask\"(%id) pure masked varying" + words + " : f64\n" +
               repeated(9, "%v#+ = mul %r, %r") + "  store %e[%i], %r\n";
    };
    EXPECT_EQ(lanes(with_call(" reads 0")), (std::vector<int>{16, 16, 16}));
    EXPECT_EQ(lanes(with_call("")), (std::vector<int>{4, 4, 8})) << "no tree";
}

TEST(LaneCount, few_lanes_or_one_in_launches_with_short_rows) {
    const auto of_rank_2 = [](const std::string& body, bool short_rows) {
        const std::string text =
            "kernel @k(%m: array<f32, 2>, %p: array<i32, 1>) tid 2 {\n"
            "  %i = tid 0\n  %j = tid 1\n" +
            body + "  return\n}\n";
        TargetInfo target;
        target.vector_bits = 512;
        return choice_of(text, target, short_rows);
    };
    const std::string next_to_each_other =
        "  %a = load %m[%i, %j]\n" + repeated(9, "%v#+ = mul %a, %a") + "  store %m[%i, %j], %v9\n";
    EXPECT_EQ(of_rank_2(next_to_each_other, false).lanes, 16);
    EXPECT_EQ(of_rank_2(next_to_each_other, true).lanes, 4);
    const std::string apart = "  %q = load %p[%j]\n  %a = load %m[%q, %i]\n  store %m[%q, %i], %a\n";
    EXPECT_EQ(of_rank_2(apart, true).lanes, 1);
    EXPECT_NE(of_rank_2(apart, true).why.find("the launch's last axis has few threads"), std::string::npos);
    EXPECT_EQ(choice(arithmetic(9), 512, true).lanes, 16) << "one row";
}

TEST(LaneCount, one_in_kernels_that_are_large_or_call_functions) {
    EXPECT_EQ(lanes(arithmetic(9000)), kOneRegister);
    EXPECT_EQ(lanes(arithmetic(10000)), (std::vector<int>{1, 1, 1}));
    EXPECT_NE(choice(arithmetic(10000), 256, false).why.find("the kernel is large"), std::string::npos);
    EXPECT_EQ(lanes("  %a = load %x[%i]\n  %b = call @f(%a)\n  store %y[%i], %b\n",
                    "func @f(%a: f32) -> f32 {\n  %b = mul %a, %a\n  return %b\n}\n"),
              (std::vector<int>{1, 1, 1}));
}

}  // namespace
}  // namespace weft::codegen
