// Passes keep what programs do: random kernels are run before and after.
#include <gtest/gtest.h>

#include <bit>

#include "ir/interpreter.h"
#include "random_kernel.h"
#include "transform/inline/inline.h"
#include "transform/pipeline.h"
#include "transform/simplify/simplify.h"
#include "transform/vectors_in_memory/late_loads.h"
#include "transform/vectors_in_memory/vectors_in_memory.h"

namespace weft::transform {
namespace {

using ir::testing::Interpreter;
using ir::testing::Memory;

constexpr int kMostSteps = 20000;  // of the loops of these programs

struct Outcome {
    bool finished = false;
    std::string text;  // all bits of memory, and what was printed
};

// NaNs count as equal: their sign and payload are the machine's.
void append_bits(std::string& out, const Number& number) {
    out += std::isnan(number.f) ? "nan"
                                : std::to_string(number.is_float ? std::bit_cast<std::int64_t>(number.f) : number.i);
    out += ' ';
}

Outcome outcome(const ir::Function& kernel, bool aliasing) {
    Memory a{{5}, {0.0, 0.5, 1.0, 1.5, 2.0}}, b{{5}, {1, 0, -1, -2, -3}};
    a.wraps = b.wraps = true;
    Outcome result;
    Interpreter interpreter(kMostSteps);
    try {
        for (int thread = 0; thread < 4; ++thread) {
            interpreter.thread = {thread, 0};
            interpreter.run(kernel, {&a, aliasing ? &a : &b, 1.5, 2.0});
        }
    } catch (const Interpreter::TooLong&) {
        return result;
    }
    result.finished = true;
    for (const Memory* memory : {&a, &b})
        for (const Number& number : memory->data) append_bits(result.text, number);
    for (const Interpreter::Printed& line : interpreter.printed) {
        result.text += line.format;
        for (const Number& number : line.numbers) append_bits(result.text, number);
    }
    return result;
}

TEST(Meaning, inline_and_simplify_keep_what_random_kernels_do) {
    int compared = 0;
    for (unsigned seed = 0; seed < 600; ++seed) {
        const std::unique_ptr<ir::Module> module = RandomKernel(seed).make();
        ASSERT_NO_THROW(ir::verify(*module)) << seed;
        const std::string before = ir::print(*module);
        Outcome wanted[2];
        for (const bool aliasing : {false, true}) wanted[aliasing] = outcome(*module->find("kernel"), aliasing);
        run_pipeline(*module, {.after_pass = [&](std::string_view pass, const ir::Module& now) {
            ASSERT_NO_THROW(ir::verify(now)) << seed << " after " << pass;
            for (const bool aliasing : {false, true}) {
                if (!wanted[aliasing].finished) continue;
                const Outcome found = outcome(*now.find("kernel"), aliasing);
                ASSERT_TRUE(found.finished) << seed;
                ASSERT_EQ(found.text, wanted[aliasing].text) << "seed " << seed << " after " << pass << "\n"
                                                             << before << "\n"
                                                             << print(now);
                ++compared;
            }
        }});
        if (HasFatalFailure()) return;
    }
    EXPECT_GT(compared, 1600);
}

// With every vector a large one, which is indexed at run time, or whose operations are loops.
void expect_same_with_vectors_in_memory(const VectorsInMemoryOptions& options) {
    int compared = 0, moved = 0, delayed = 0;
    for (unsigned seed = 0; seed < 800; ++seed) {
        const std::unique_ptr<ir::Module> module = RandomKernel(seed, /*chooses=*/true).make();
        const Outcome wanted = outcome(*module->find("kernel"), false);
        if (!wanted.finished) continue;
        inline_calls(*module);
        if (seed % 2) simplify(*module->find("kernel"));
        const std::string before = ir::print(*module);
        moved += keep_vectors_in_memory(*module->find("kernel"), options);
        ASSERT_NO_THROW(ir::verify(*module)) << seed << "\n" << before << "\n" << print(*module);
        const Outcome found = outcome(*module->find("kernel"), false);
        if (!found.finished) continue;  // moves are steps of their own
        ASSERT_EQ(found.text, wanted.text) << "seed " << seed << "\n" << before << "\n" << print(*module);
        ++compared;
        const std::string in_memory = ir::print(*module);
        delay_component_loads(*module->find("kernel"));
        ASSERT_NO_THROW(ir::verify(*module)) << seed << "\n" << in_memory << "\n" << print(*module);
        delayed += ir::print(*module) != in_memory;
        const Outcome late = outcome(*module->find("kernel"), false);
        ASSERT_EQ(late.text, wanted.text) << "seed " << seed << "\n" << in_memory << "\n" << print(*module);
    }
    EXPECT_GT(compared, 500);
    EXPECT_GT(moved, 400);
    EXPECT_GT(delayed, 100);
}

TEST(Meaning, vectors_in_memory_keep_what_random_kernels_do) {
    expect_same_with_vectors_in_memory({.most_in_registers = 2});
}

TEST(Meaning, operations_in_loops_keep_what_random_kernels_do) {
    expect_same_with_vectors_in_memory({.most_in_registers = 2, .most_unrolled = 2});
    expect_same_with_vectors_in_memory({.most_in_registers = 2, .most_unrolled = 2, .noalias = false});
}

TEST(Meaning, simplify_finds_nothing_more_in_what_it_made) {
    int unsettled = 0;
    for (unsigned seed = 0; seed < 300; ++seed) {
        const std::unique_ptr<ir::Module> module = RandomKernel(seed).make();
        run_pipeline(*module);
        const std::string once = ir::print(*module, false);
        simplify(*module->find("kernel"));
        unsettled += ir::print(*module, false) != once;
    }
    // The rounds are bounded, so a few programs may have something left.
    EXPECT_LE(unsettled, 6);
}

}  // namespace
}  // namespace weft::transform
