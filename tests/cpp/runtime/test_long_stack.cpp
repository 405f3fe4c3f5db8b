#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>

#include "runtime/cpu/long_stack.h"
#include "runtime/cpu/stack.h"

namespace weft::runtime {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::int64_t number_at(const std::byte* memory, std::int64_t at) {
    std::int64_t number = 0;
    std::memcpy(&number, memory + at, sizeof number);
    return number;
}

// Places from the beginning to far into the part that is a file, one every 16 MiB, and both sides of its border.
template <class Visit>
void for_each_place(std::int64_t bytes, Visit&& visit) {
    for (std::int64_t at = 0; at + 8 <= std::min(bytes, 1024 * kMiB); at += 16 * kMiB) visit(at);
    for (const std::int64_t at : {256 * kMiB - 8, 256 * kMiB})
        if (at + 8 <= bytes) visit(at);
}

TEST(LongStack, holds_what_was_written_before_and_beyond_the_border_to_the_file) {
    LongStack stack;
    std::int64_t rows = 0;
    auto* const memory = static_cast<std::byte*>(stack.open(64, rows));
    ASSERT_NE(memory, nullptr);
    EXPECT_GE(rows, 256 * kMiB / 64);
    for_each_place(rows * 64, [&](std::int64_t at) { std::memcpy(memory + at, &at, sizeof at); });
    for_each_place(rows * 64, [&](std::int64_t at) { EXPECT_EQ(number_at(memory, at), at); });
}

TEST(LongStack, is_used_again_after_it_gave_its_memory_back) {
    LongStack stack;
    for (int pass = 1; pass < 4; ++pass) {
        std::int64_t rows = 0;
        auto* const memory = static_cast<std::byte*>(stack.open(8, rows));
        const std::int64_t bytes = rows * 8;
        for_each_place(bytes, [&](std::int64_t at) {
            const std::int64_t number = at + pass;
            std::memcpy(memory + at, &number, sizeof number);
        });
        for_each_place(bytes, [&](std::int64_t at) { EXPECT_EQ(number_at(memory, at), at + pass); });
        stack.trim();
    }
}

TEST(LongStack, rows_of_any_size_fit) {
    LongStack stack;
    std::int64_t most = 0;
    void* const memory = stack.open(1, most);
    EXPECT_EQ(most, (std::int64_t{1} << 31) - 1);  // positions are asked for as 32-bit numbers
    for (const std::int64_t bytes : {12, 64, 4096}) {
        std::int64_t rows = 0;
        EXPECT_EQ(stack.open(bytes, rows), memory);
        EXPECT_GT(rows, 0);
    }
}

TEST(LongStack, each_worker_and_each_number_has_one_of_its_own) {
    std::int64_t rows = 0;
    auto* const first = static_cast<std::byte*>(weft_long_stack(0, 8, &rows));
    auto* const second = static_cast<std::byte*>(weft_long_stack(1, 8, &rows));
    EXPECT_NE(first, second);
    EXPECT_EQ(weft_long_stack(0, 8, &rows), first);
    std::memset(first, 1, 8);
    std::thread([&] {
        auto* const other = static_cast<std::byte*>(weft_long_stack(0, 8, &rows));
        EXPECT_NE(other, first);
        std::memset(other, 2, 8);
    }).join();
    EXPECT_EQ(first[0], std::byte{1});
    weft_stack_trim();
}

TEST(LongStack, a_forked_process_has_one_of_its_own) {
    LongStack stack;
    std::int64_t rows = 0, mine = 1, other = 2;
    auto* const memory = static_cast<std::byte*>(stack.open(8, rows));
    const std::int64_t at = std::min(rows * 8 - 8, 300 * kMiB);  // in the file, where there is one
    std::memcpy(memory + at, &mine, sizeof mine);
    const pid_t child = ::fork();
    if (child == 0) {
        auto* const own = static_cast<std::byte*>(stack.open(8, rows));
        std::memcpy(own + at, &other, sizeof other);
        ::_exit(number_at(own, at) == other ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(number_at(memory, at), mine);
}

}  // namespace
}  // namespace weft::runtime
