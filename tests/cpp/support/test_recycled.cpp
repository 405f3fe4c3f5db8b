#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "support/recycled.h"

namespace weft {
namespace {

struct alignas(128) Wide {
    int number = 7;
};

TEST(Recycled, what_was_freed_is_used_again_and_made_anew) {
    auto first = std::allocate_shared<Wide>(Recycled<Wide>());
    const Wide* const place = first.get();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place) % 128, 0u);
    first->number = 1;
    first.reset();
    const auto second = std::allocate_shared<Wide>(Recycled<Wide>());
    EXPECT_EQ(second.get(), place);
    EXPECT_EQ(second->number, 7);
    EXPECT_NE(std::allocate_shared<Wide>(Recycled<Wide>()).get(), place);
}

TEST(Recycled, several_at_once_and_many_go_back_to_the_system) {
    std::vector<long, Recycled<long>> many(1000, 3);
    many.resize(5000, 4);
    EXPECT_EQ(many[999] + many[4999], 7);
    std::vector<std::shared_ptr<std::vector<char>>> all;
    for (int i = 0; i < 100'000; ++i)
        all.push_back(std::allocate_shared<std::vector<char>>(Recycled<std::vector<char>>()));
}

TEST(Recycled, from_several_threads) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([t] {
            for (int i = 0; i < 2000; ++i) {
                auto one = std::allocate_shared<int>(Recycled<int>(), t),
                     other = std::allocate_shared<int>(Recycled<int>(), -t);
                ASSERT_EQ(*one + *other, 0);
            }
        });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace weft
