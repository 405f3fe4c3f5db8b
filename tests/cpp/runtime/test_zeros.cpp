#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime/zeros.h"

namespace weft::runtime {
namespace {

TEST(Zeros, nothing_is_known_unless_somebody_says_so) {
    Zeros zeros;
    EXPECT_FALSE(zeros.hold({0, 8}));
    zeros.know_all();
    EXPECT_TRUE(zeros.hold({0, 8}));
    zeros.forget();
    EXPECT_FALSE(zeros.hold({0, 8}));
}

TEST(Zeros, rows_that_are_used_up_one_after_the_other) {
    Zeros zeros;
    zeros.know_all();
    const int writer = 0;
    for (std::int64_t row = 9; row > 0; --row) {
        zeros.begin({row * 8 - 8, row * 8}, &writer);
        zeros.begin({row * 8, row * 8 + 8}, &writer);
        zeros.end({row * 8 - 8, row * 8}, &writer, false);
        zeros.end({row * 8, row * 8 + 8}, &writer, true);
    }
    EXPECT_TRUE(zeros.hold({8, 80}));
    EXPECT_FALSE(zeros.hold({0, 8}));
}

TEST(Zeros, what_is_cleared_while_another_writes_is_not_known) {
    Zeros zeros;
    zeros.know_all();
    const int one = 0, other = 0;
    zeros.begin({0, 8}, &one);
    zeros.begin({0, 8}, &other);
    zeros.end({0, 8}, &one, false);
    zeros.end({0, 8}, &other, true);
    EXPECT_FALSE(zeros.hold({0, 8}));
    zeros.begin({0, 8}, &other);
    zeros.end({0, 8}, &other, true);
    EXPECT_TRUE(zeros.hold({0, 8}));
}

// Writers that begin and end in any order, over bytes: a write sets its own at any time between the two. One that
// clears leaves zeros at its end, unless others ran meanwhile.
TEST(Zeros, what_is_known_holds_of_any_writes) {
    constexpr int kSize = 12;
    std::mt19937 random(7);
    const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    int known = 0;
    for (int program = 0; program < 300; ++program) {
        Zeros zeros;
        zeros.know_all();
        std::vector<char> bytes(kSize, 0);
        struct Write {
            ByteRange range;
            bool clears, is_running, is_alone;
        };
        Write writers[3] = {};
        const auto set = [&](const Write& write, char value) {
            std::fill(bytes.begin() + write.range.begin, bytes.begin() + write.range.end, value);
        };
        for (int step = 0; step < 60; ++step) {
            Write& write = writers[program % 2 ? draw(3) : 0];
            if (!write.is_running) {
                const int begin = draw(kSize), end = begin + draw(kSize - begin + 1);
                const bool is_alone = std::ranges::none_of(writers, &Write::is_running);
                for (Write& other : writers) other.is_alone = false;
                write = {{begin, end}, draw(3) > 0, true, is_alone};
                zeros.begin(write.range, &write);
            } else if (draw(2) == 0) {
                set(write, write.clears && draw(2) ? 0 : 1);
            } else {
                if (write.clears && write.is_alone) set(write, 0);
                zeros.end(write.range, &write, write.clears);
                write.is_running = false;
            }
            for (int begin = 0; begin < kSize; ++begin)
                for (int end = begin + 1; end <= kSize; ++end)
                    if (zeros.hold({begin, end})) {
                        ++known;
                        ASSERT_EQ(std::count(bytes.begin() + begin, bytes.begin() + end, 0), end - begin);
                    }
        }
    }
    EXPECT_GT(known, 100000);
}

}  // namespace
}  // namespace weft::runtime
