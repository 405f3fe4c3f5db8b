#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cpu/fault.h"
#include "runtime/print.h"

namespace weft::runtime {
namespace {

std::int64_t word(double number) { return std::bit_cast<std::int64_t>(number); }
std::int64_t word(std::int64_t number) { return number; }

template <typename... Numbers>
void print(const char* format, Numbers... numbers) {
    const std::int64_t words[] = {word(numbers)..., 0};
    weft_print_words(format, words, sizeof...(Numbers));
}

template <typename Number>
std::string formatted_by_c(const char* format, Number number) {
    std::string text(2000, '\0');
    text.resize(static_cast<std::size_t>(std::snprintf(text.data(), text.size(), format, number)));
    return text;
}

TEST(Print, keeps_the_order_and_is_taken_once) {
    take_prints();
    EXPECT_FALSE(has_prints());
    print("%d apples\n", std::int64_t{3});
    print("%g\n", 2.5);
    EXPECT_TRUE(has_prints());
    EXPECT_EQ(take_prints(), "3 apples\n2.5\n");
    EXPECT_FALSE(has_prints());
    EXPECT_EQ(take_prints(), "");
}

TEST(Print, takes_lines_of_any_length) {
    take_prints();
    for (const std::size_t length : {126u, 127u, 128u, 129u, 20'000u}) {
        print(("%" + std::to_string(length) + "d|").c_str(), std::int64_t{7});
        EXPECT_EQ(take_prints(), std::string(length - 1, ' ') + "7|");
    }
}

// Integers come as sema promotes them: 32 bits without a length, 64 bits with "ll".
TEST(Print, formats_numbers_as_c_does) {
    constexpr std::int64_t kIntegers[] = {0, 1, -1, 65, 127, 255, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    for (const std::int64_t number : kIntegers) {
        for (const char* format : {"%d", "%5d", "%-5d|", "%05d", "%+d", "% d", "%.3d", "%i", "%c", "%3c"})
            EXPECT_EQ(format_text(format, &number, 1), formatted_by_c(format, static_cast<int>(number)))
                << format << " of " << number;
        for (const char* format : {"%u", "%x", "%#X", "%#o", "%08x", "%.0x"})
            EXPECT_EQ(format_text(format, &number, 1), formatted_by_c(format, static_cast<unsigned>(number)))
                << format << " of " << number;
        for (const char* format : {"%lld", "%+21lld", "%-21lli|", "%021lld", "%llu", "%#llx", "%.30llo"})
            EXPECT_EQ(format_text(format, &number, 1), formatted_by_c(format, static_cast<long long>(number)))
                << format << " of " << number;
    }
    constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                     kNan = std::numeric_limits<double>::quiet_NaN();
    for (const double number : {0.0, -0.0, 1.5, -2.25, 1e-300, 1e300, 5e-324, kInfinity, -kInfinity, kNan, -kNan}) {
        const std::int64_t bits = word(number);
        for (const char* format : {"%f", "%e", "%g", "%G", "%10.3f", "%-10.3f|", "%+.2e", "%#g", "%010.4f", "% .300f"})
            EXPECT_EQ(format_text(format, &bits, 1), formatted_by_c(format, number)) << format << " of " << number;
    }
}

TEST(Print, a_character_may_be_zero) {
    take_prints();
    print("[%c]", std::int64_t{0});
    EXPECT_EQ(take_prints(), std::string("[\0]", 3));
}

TEST(Print, pieces_of_two_threads_never_mix) {
    take_prints();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([t] {
            for (int i = 0; i < 500; ++i) print("<%d %d>", std::int64_t{t}, std::int64_t{i});
        });
    for (std::thread& thread : threads) thread.join();
    const std::string text = take_prints();
    int next[4] = {0, 0, 0, 0};
    std::size_t at = 0;
    while (at < text.size()) {
        int t = -1, i = -1, used = 0;
        ASSERT_EQ(std::sscanf(text.c_str() + at, "<%d %d>%n", &t, &i, &used), 2) << text.substr(at, 40);
        ASSERT_EQ(i, next[t]++);  // in order within each thread
        at += static_cast<std::size_t>(used);
    }
    for (const int count : next) EXPECT_EQ(count, 500);
}

TEST(Fault, the_first_one_wins_and_says_which_thread) {
    Fault fault{};
    const LaunchContext context{{4, 5, 6, 1}, &fault};
    weft_fault(&context, static_cast<std::int32_t>(FaultKind::bounds), (2 * 5 + 3) * 6 + 4, -5, 10, 1, 7);
    weft_fault(&context, static_cast<std::int32_t>(FaultKind::division), 9, 9, 9, 9, 9);
    EXPECT_EQ(fault.claimed, 1);
    EXPECT_EQ(fault.kind, static_cast<std::int32_t>(FaultKind::bounds));
    EXPECT_EQ(fault.thread[0], 2);
    EXPECT_EQ(fault.thread[1], 3);
    EXPECT_EQ(fault.thread[2], 4);
    EXPECT_EQ(fault.thread[3], 0);
    EXPECT_EQ(fault.index, -5);
    EXPECT_EQ(fault.size, 10);
    EXPECT_EQ(fault.axis, 1);
    EXPECT_EQ(fault.site, 7);
}

TEST(Fault, raise_keeps_what_it_says_as_far_as_it_fits) {
    Fault fault{};
    const LaunchContext context{{4, 5, 1, 1}, &fault};
    const std::int64_t words[] = {std::bit_cast<std::int64_t>(0.5), -3};
    const std::string format = "ValueError: %g of %d %% " + std::string(300, 'x');
    weft_raise(&context, 3 * 5 + 2, 6, format.c_str(), words, 2);
    weft_raise(&context, 1, 1, "IndexError", nullptr, 0);
    EXPECT_EQ(fault.kind, static_cast<std::int32_t>(FaultKind::raised));
    EXPECT_EQ(fault.thread[0], 3);
    EXPECT_EQ(fault.thread[1], 2);
    EXPECT_EQ(fault.site, 6);
    const std::string message = fault.message;
    EXPECT_EQ(message.substr(0, 26), "ValueError: 0.5 of -3 % xx");
    EXPECT_EQ(message.size(), sizeof fault.message - 1);
    EXPECT_EQ(message.substr(message.size() - 5), "xx...");
}

TEST(Fault, a_cut_message_has_whole_characters) {
    constexpr std::size_t kMost = sizeof Fault{}.message - 1;
    for (std::size_t lead = 0; lead < 4; ++lead) {
        std::string text(lead, 'x');
        while (text.size() <= kMost) text += "\u2713";  // three bytes
        Fault fault{};
        set_message(fault, text);
        const std::string message = fault.message;
        ASSERT_EQ(message.substr(message.size() - 3), "...");
        EXPECT_EQ((message.size() - 3 - lead) % 3, 0u);
        EXPECT_GT(message.size(), kMost - 3);
        EXPECT_EQ(message.substr(0, message.size() - 3), text.substr(0, message.size() - 3));
    }
    Fault fault{};
    set_message(fault, std::string(kMost, 'y'));
    EXPECT_EQ(fault.message, std::string(kMost, 'y'));
}

TEST(Fault, does_nothing_without_a_record) {
    const LaunchContext context{{1, 1, 1, 1}, nullptr};
    weft_raise(&context, 0, 0, "ValueError", nullptr, 0);
    weft_fault(&context, 1, 0, 0, 0, 0, 0);
}

}  // namespace
}  // namespace weft::runtime
