#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/cpu/stack.h"

namespace weft::runtime {
namespace {

struct Taken {
    unsigned char* memory;
    std::size_t size;
    unsigned char filling;
};

TEST(Stack, memory_is_ones_own_until_it_is_given_back) {
    std::mt19937 random(1);
    std::vector<Taken> stack;
    for (int step = 0; step < 20'000; ++step) {
        if (stack.size() < 40 && random() % 2 == 0) {
            const std::size_t size = random() % 4 == 0 ? random() % 3'000'000 : random() % 300;
            auto* const memory = static_cast<unsigned char*>(weft_stack_take(static_cast<std::int64_t>(size)));
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0u);
            stack.push_back({memory, size, static_cast<unsigned char>(step)});
            std::memset(memory, stack.back().filling, size);
        } else if (!stack.empty()) {
            const std::size_t first = random() % stack.size();
            for (std::size_t i = first; i < stack.size(); ++i)
                for (std::size_t at = 0; at < stack[i].size; at += 1 + stack[i].size / 7)
                    ASSERT_EQ(stack[i].memory[at], stack[i].filling);
            weft_stack_release(stack[first].memory);
            stack.resize(first);
            if (stack.empty()) weft_stack_trim();
        }
    }
    if (!stack.empty()) weft_stack_release(stack[0].memory);
    weft_stack_trim();
}

TEST(Stack, large_memory_stays_until_the_kernel_ends) {
    void* const first = weft_stack_take(std::int64_t{1} << 29);
    weft_stack_release(first);
    void* const again = weft_stack_take(std::int64_t{1} << 29);
    EXPECT_EQ(first, again);  // a group of lanes after the other uses what the system gave once
    weft_stack_release(again);
    weft_stack_trim();
    for (const std::int64_t size : {100, 1 << 20, 100, 1 << 25, 100}) {
        void* const memory = weft_stack_take(size);
        std::memset(memory, 1, static_cast<std::size_t>(size));
        weft_stack_release(memory);
        weft_stack_trim();
    }
}

}  // namespace
}  // namespace weft::runtime
