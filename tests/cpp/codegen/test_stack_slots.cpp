// Adjoints whose loops keep a constant number of states: the same gradients, and nothing of the worker's stack.
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/harness.h"
#include "support/error.h"
#include "transform/pipeline.h"

namespace weft::test {
namespace {

// The value of `make` for the loop, whose result goes to y: x ** n in each of these.
const char* const kCounted =
    "  %p = for %k = %zero to %n step %one carry (%s = %start) {\n    %q = mul %s, %v\n    yield %q\n  }\n";
const char* const kGuarded =
    "  %p, %g = for %k = %zero to %n step %one carry (%s = %start, %go = %yes) guarded {\n    %q = mul %s, %v\n"
    "    yield %q, %go\n  }\n";
const char* const kWhile =
    "  %p, %e = while carry (%s = %start, %k = %zero) {\n    %more = cmp.lt %k, %n\n    yield %more\n  } do (%a, %b) "
    "{\n"
    "    %q = mul %a, %v\n    %next = add %b, %one\n    yield %q, %next\n  }\n";
const char* const kNested =
    "  %p = for %k = %zero to %n step %one carry (%s = %start) {\n"
    "    %r = for %j = %zero to %n step %one carry (%t = %s) {\n      %u = mul %t, %v\n      yield %u\n    }\n"
    "    yield %r\n  }\n";

std::string adjoint_of(const std::string& loop, std::optional<std::int64_t> slots) {
    const auto module = ir::parse(
        "kernel @k(%x: array<f64, 1>, %n: i32, %y: array<f64, 1>) tid 1 {\n  %i = tid 0\n"
        "  %zero = constant 0 : i32\n  %one = constant 1 : i32\n  %start = constant 1 : f64\n"
        "  %yes = constant true : bool\n  %v = load %x[%i]\n" +
        loop + "  store %y[%i], %p\n  return\n}\n");
    ir::verify(*module);
    transform::PipelineOptions options;
    options.adjoint.emplace();
    options.adjoint->gradients.assign(3, transform::Gradient::used);
    options.adjoint->stack_slots = slots;
    transform::run_pipeline(*module, options);
    return ir::print(*module);
}

// d(x ** power)/dx at some places, by the compiled adjoint.
void expect_slopes(const std::string& loop, std::int64_t slots, int lanes, std::int32_t n, int power) {
    codegen::Options options;
    options.lanes = lanes;
    const std::string text = adjoint_of(loop, slots);
    EXPECT_EQ(text.find(" stack "), std::string::npos) << text;
    Compiled adjoint(text, options);
    EXPECT_EQ(adjoint.llvm_text().find("weft_stack"), std::string::npos);
    std::vector<double> x, y(11), dx(11), dy(11, 1.0);
    for (int i = 0; i < 11; ++i) x.push_back(0.9 + 0.02 * i);
    ArrayView xs = view(x), ys = view(y);
    xs.grad = dx.data(), ys.grad = dy.data();
    adjoint.run(11, xs, n, ys);
    for (std::size_t i = 0; i < x.size(); ++i)
        EXPECT_NEAR(dx[i], power * std::pow(x[i], power - 1), 1e-9 * (1.0 + std::abs(dx[i])))
            << "n = " << n << ", lanes = " << lanes;
}

TEST(StackSlots, give_the_gradient_of_loops_of_any_length) {
    for (const int lanes : {1, 4})
        for (const char* loop : {kCounted, kGuarded, kWhile})
            for (const std::int32_t n : {0, 1, 2, 3, 4, 5, 29, 100}) expect_slopes(loop, 3, lanes, n, n);
}

TEST(StackSlots, hold_for_each_loop_of_a_nest) {
    for (const std::int32_t n : {1, 2, 3, 6}) expect_slopes(kNested, 2, 1, n, n * n);
}

// As much memory as for that many states of 64 bytes: with 8 slots 512 bytes, of 12 for each iteration here.
TEST(StackSlots, are_enough_for_all_iterations_of_a_loop_of_few) {
    const auto of_iterations = [](int count) {
        return "  %few = constant " + std::to_string(count) +
               " : i32\n  %p = for %k = %zero to %few step %one carry (%s = %start) {\n    %q = mul %s, %v\n"
               "    yield %q\n  }\n";
    };
    const std::string few = adjoint_of(of_iterations(40), 8), many = adjoint_of(of_iterations(43), 8);
    EXPECT_NE(few.find("local_array [40]"), std::string::npos) << few;
    EXPECT_EQ(few.find("while"), std::string::npos) << few;
    EXPECT_NE(many.find("local_array [8]"), std::string::npos) << many;
    for (const int lanes : {1, 4}) {
        expect_slopes(of_iterations(40), 8, lanes, 0, 40);
        expect_slopes(of_iterations(43), 8, lanes, 0, 43);
    }
}

TEST(StackSlots, are_not_there_where_threads_have_a_stack) {
    EXPECT_NE(adjoint_of(kCounted, {}).find(" stack "), std::string::npos);
}

TEST(StackSlots, take_two_places_or_say_so) {
    try {
        adjoint_of(kCounted, 1);
        FAIL() << "one place is not enough";
    } catch (const CompileError& error) {
        EXPECT_NE(std::string(error.what()).find("there is room for 1 of them in a thread; it takes 2"),
                  std::string::npos)
            << error.what();
    }
}

// Slots are for states of loops. Values that a kernel reads again go to a log, which gets all room that a target has.
TEST(StackSlots, leave_logs_to_the_target) {
    const std::string in_place =
        "  for %k = %zero to %n step %one {\n    %at = load %y[%i]\n    %q = mul %at, %v\n    store %y[%i], %q\n"
        "    yield\n  }\n  %p = load %y[%i]\n";
    for (const std::optional<std::int64_t> slots : {std::optional<std::int64_t>(), std::optional<std::int64_t>(8)})
        EXPECT_NE(adjoint_of(in_place, slots).find(" stack "), std::string::npos);
}

}  // namespace
}  // namespace weft::test
