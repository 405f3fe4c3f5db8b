// Choices between codes with the same results: each is made if it holds, and not made otherwise.
#include <gtest/gtest.h>

#include "codegen/harness.h"

namespace weft::test {
namespace {

constexpr const char* kParameters =
    "%x: array<f32, 1>, %y: array<f32, 1>, %n: array<i32, 1>, %v: array<vec3<f32>, 1>, %w: array<vec3<f32>, 1>";

std::string lowered(const std::string& body, codegen::Options options = {}, codegen::TargetInfo target = host(),
                    const std::string& word = "") {
    if (options.lanes == 0) options.lanes = 8;
    const std::string text = "kernel @k(" + std::string(kParameters) + ") " + word +
                             "tid 1 {\n  %i = tid 0\n  %zero = constant 0 : i32\n  %one = constant 1 : f32\n" + body +
                             "  return\n}\n";
    return Compiled(text, options, target).llvm_text();
}

int count(const std::string& text, const std::string& part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

bool has(const std::string& text, const std::string& part) { return count(text, part) > 0; }

const std::string kLookedAt = "  store %y[%i], %s\n";

codegen::TargetInfo with_gathers(bool are_fast) {
    codegen::TargetInfo target = host();
    target.fast_gathers = target.fast_scatters = are_fast;
    target.loads_rows = false;
    return target;
}

TEST(Choices, what_all_threads_add_to_one_place_arrives_at_once) {
    const std::string total = "  %a = load %y[%i]\n  %s = atomic.add %x[%zero], %a\n";
    EXPECT_EQ(count(lowered(total), "atomicrmw"), 1);
    EXPECT_TRUE(has(lowered(total), "\ncontribute:"));
    codegen::Options options;
    options.noalias = false;
    for (const std::string& each : {lowered(total + kLookedAt), lowered(total, options)}) {
        EXPECT_FALSE(has(each, "\ncontribute:"));
        EXPECT_EQ(count(each, "atomicrmw"), 2) << "one in full groups, one in the last";
    }
}

TEST(Choices, bins_of_a_small_array_have_a_private_copy) {
    const std::string bins = "  %q = load %n[%i]\n  %s = atomic.add %x[%q], %one\n";
    EXPECT_TRUE(has(lowered(bins), "\nprivate:"));
    EXPECT_FALSE(has(lowered(bins + kLookedAt), "\nprivate:"));
    codegen::Options options;
    options.noalias = false;
    EXPECT_FALSE(has(lowered(bins, options), "\nprivate:"));
}

TEST(Choices, gradients_of_neighbours_are_added_plainly_in_the_middle) {
    const std::string own = "  %g = grad_of %x\n  %s = atomic.add %g[%i], %one\n";
    EXPECT_TRUE(has(lowered(own, {}, host(), "adjoint "), "\nmiddle:"));
    EXPECT_FALSE(has(lowered(own + kLookedAt, {}, host(), "adjoint "), "\nmiddle:"));
    EXPECT_FALSE(has(lowered(own), "\nmiddle:"));
}

TEST(Choices, neighbouring_vectors_are_shuffled_and_not_gathered) {
    const std::string vectors = "  %a = load %v[%i]\n  store %w[%i], %a\n";
    for (const bool are_fast : {false, true}) {
        const std::string text = lowered(vectors, {}, with_gathers(are_fast));
        EXPECT_GT(count(text, "shufflevector"), 12);
        EXPECT_FALSE(has(text, "masked.gather") || has(text, "masked.scatter") || has(text, "extractelement"));
        const bool is_x86 = host().triple.rfind("x86_64", 0) == 0;
        EXPECT_EQ(has(text, "weft_copy_lanes"), is_x86) << "where some lanes are off";
    }
    codegen::Options options;
    options.dense = false;  // components that may lie apart
    EXPECT_LE(count(lowered(vectors, options, with_gathers(false)), "shufflevector"), 4);
}

TEST(Choices, vectors_of_three_and_four_take_the_fewest_shuffles) {
    for (const auto& [type, most] : {std::pair("vec3<f32>", 35), std::pair("vec4<f32>", 49)}) {
        const std::string array = "array<" + std::string(type) + ", 1>";
        const std::string text = "kernel @k(%v: " + array + ", %w: " + array +
                                 ") tid 1 {\n  %i = tid 0\n  %a = load %v[%i]\n  store %w[%i], %a\n  return\n}\n";
        codegen::Options options;
        options.lanes = 8;
        EXPECT_LE(count(Compiled(text, options).llvm_text(), "shufflevector"), most) << type;
    }
}

TEST(Choices, gathers_are_the_processors_own_where_these_are_fast) {
    const std::string scalars = "  %q = load %n[%i]\n  %a = load %x[%q]\n  store %y[%q], %a\n";
    const std::string vectors = "  %q = load %n[%i]\n  %a = load %v[%q]\n  store %w[%q], %a\n";
    for (const std::string& body : {scalars, vectors}) {
        const std::string fast = lowered(body, {}, with_gathers(true)), slow = lowered(body, {}, with_gathers(false));
        EXPECT_TRUE(has(fast, "masked.gather") && has(fast, "masked.scatter") && !has(fast, "extractelement"));
        EXPECT_TRUE(!has(slow, "masked.gather") && !has(slow, "masked.scatter") && has(slow, "extractelement"));
    }
}

TEST(Choices, vectors_here_and_there_are_loaded_whole_where_gathers_are_slower) {
    codegen::TargetInfo target = with_gathers(true);
    target.loads_rows = true;
    const auto text = [&](const std::string& type, bool by_rows) {
        target.loads_rows = by_rows;
        codegen::Options options;
        options.lanes = 8;
        const std::string array = "array<" + type + ", 1>";
        return Compiled("kernel @k(%n: array<i32, 1>, %v: " + array + ", %w: " + array +
                            ") tid 1 {\n  %i = tid 0\n  %q = load %n[%i]\n  %a = load %v[%q]\n  store %w[%i], %a\n"
                            "  return\n}\n",
                        options, target)
            .llvm_text();
    };
    for (const char* type : {"vec2<f32>", "vec3<f32>", "vec4<f32>"}) {
        EXPECT_FALSE(has(text(type, true), "masked.gather")) << type;
        EXPECT_TRUE(has(text(type, false), "masked.gather")) << type;
    }
    EXPECT_TRUE(has(text("vec4<f32>", true), "load <4 x float>"));
    for (const char* type : {"f32", "vec3<f64>", "vec3<i32>", "vec5<f32>"})
        EXPECT_TRUE(has(text(type, true), "masked.gather")) << type;
}

TEST(Choices, numbers_side_by_side_are_one_access) {
    const std::string text = lowered("  %a = load %x[%i]\n  store %y[%i], %a\n", {}, with_gathers(false));
    EXPECT_TRUE(has(text, "load <8 x float>") && has(text, "store <8 x float>"));
    EXPECT_TRUE(has(text, "masked.load") && has(text, "masked.store")) << "where some lanes are off";
    EXPECT_FALSE(has(text, "extractelement"));
}

TEST(Choices, the_entry_says_whether_the_order_of_atomics_matters) {
    const std::string head =
        "kernel @k(%x: array<f32, 1>, %n: array<i32, 1>) tid 1 {\n  %i = tid 0\n  %f = cast %i : f32\n";
    codegen::Options options;
    EXPECT_TRUE(Compiled(head + "  %a = atomic.add %x[%i], %f\n  return\n}\n", options).entry().cpu().ordered);
    EXPECT_FALSE(Compiled(head + "  %a = atomic.add %n[%i], %i\n  return\n}\n", options).entry().cpu().ordered);
}

}  // namespace
}  // namespace weft::test
