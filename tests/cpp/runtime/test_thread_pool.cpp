#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "runtime/cpu/thread_pool.h"
#include "support/error.h"

namespace weft::runtime {
namespace {

// A stand-in for a kernel: counts how often each thread ran, and keeps the pieces it was called with.
struct Work {
    std::vector<std::atomic<int>> runs;
    std::chrono::nanoseconds each{0};
    std::mutex mutex;
    std::vector<std::pair<std::int64_t, std::int64_t>> pieces;
    std::set<std::thread::id> threads;

    explicit Work(std::int64_t count) : runs(static_cast<std::size_t>(count)) {}

    bool all_ran_once() const {
        for (const auto& run : runs)
            if (run.load() != 1) return false;
        return true;
    }
};

void work_kernel(const void* arguments, const LaunchContext*, std::int64_t begin, std::int64_t end) {
    Work& work = **static_cast<Work* const*>(arguments);
    for (std::int64_t i = begin; i < end; ++i) ++work.runs[static_cast<std::size_t>(i)];
    if (work.each.count() > 0) {
        const auto until = std::chrono::steady_clock::now() + work.each * (end - begin);
        while (std::chrono::steady_clock::now() < until) continue;
    }
    const std::lock_guard lock(work.mutex);
    work.pieces.emplace_back(begin, end);
    work.threads.insert(std::this_thread::get_id());
}

bool launch(Work& work, std::int64_t row, double cost_ns, bool (*interrupted)() = nullptr, int threads = 0) {
    const Work* const arguments = &work;
    const LaunchContext context{{static_cast<std::int64_t>(work.runs.size()), 1, 1, 1}, nullptr};
    Interrupts interrupts(interrupted);
    parallel_launch(work_kernel, &arguments, context, static_cast<std::int64_t>(work.runs.size()), row, cost_ns,
                    interrupts, /*least=*/0, threads);
    return !interrupts.is_stopped();
}

class ThreadPool : public ::testing::Test {
protected:
    void SetUp() override { before_ = cpu_threads(); }
    void TearDown() override { set_cpu_threads(before_); }

private:
    int before_ = 1;
};

TEST_F(ThreadPool, runs_every_thread_once_whatever_the_size_and_cost) {
    for (const int threads : {1, 2, 3, 8}) {
        set_cpu_threads(threads);
        for (const std::int64_t count : {0, 1, 2, 63, 64, 65, 127, 1000, 4096, 100'003})
            for (const double cost : {0.0, 1.0, 300.0, 1e6})
                for (const std::int64_t row : {std::int64_t{1}, std::int64_t{7}, std::int64_t{640}, count}) {
                    Work work(count);
                    EXPECT_TRUE(launch(work, row, cost));
                    EXPECT_TRUE(work.all_ran_once()) << threads << " threads, " << count << ", " << cost << ", " << row;
                }
    }
}

TEST_F(ThreadPool, small_work_stays_on_the_caller_in_one_piece) {
    set_cpu_threads(4);
    Work work(40);
    launch(work, 40, 5.0);
    EXPECT_EQ(work.pieces, (std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 40}}));
    EXPECT_EQ(work.threads, std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST_F(ThreadPool, one_thread_runs_in_order_on_the_caller) {
    set_cpu_threads(1);
    Work work(100'000);
    work.each = std::chrono::nanoseconds(50);
    launch(work, 1000, 50.0);
    EXPECT_TRUE(std::is_sorted(work.pieces.begin(), work.pieces.end()));
    EXPECT_EQ(work.threads, std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST_F(ThreadPool, in_order_the_pieces_are_the_same_however_long_they_take_and_whoever_asks) {
    set_cpu_threads(4);
    for (const double cost_ns : {0.01, 3.0, 1e4}) {
        std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> pieces;
        for (const auto each : {std::chrono::nanoseconds(0), std::chrono::nanoseconds(800)}) {
            for (bool (*interrupted)() : {static_cast<bool (*)()>(nullptr), +[] { return false; }}) {
                Work work(30'000);
                work.each = each;
                EXPECT_TRUE(launch(work, 30'000, cost_ns, interrupted, /*threads=*/1));
                EXPECT_EQ(work.threads.size(), 1U);
                EXPECT_TRUE(std::is_sorted(work.pieces.begin(), work.pieces.end()));
                EXPECT_TRUE(work.all_ran_once());
                pieces.push_back(work.pieces);
            }
        }
        for (const auto& others : pieces) EXPECT_EQ(others, pieces.front());
    }
}

TEST_F(ThreadPool, long_work_uses_several_threads_even_where_the_estimate_is_far_too_low) {
    set_cpu_threads(2);
    // A busy machine may wake the second thread too late for one launch; not for all of them.
    std::size_t most_threads = 0;
    for (int attempt = 0; attempt < 50 && most_threads < 2; ++attempt) {
        Work work(20'000);
        work.each = std::chrono::microseconds(5);  // 100 ms, estimated as 20 us
        launch(work, 20'000, 1.0);
        EXPECT_TRUE(work.all_ran_once());
        most_threads = std::max(most_threads, work.threads.size());
    }
    EXPECT_EQ(most_threads, 2u);
}

TEST_F(ThreadPool, cuts_short_rows_at_their_ends_and_long_ones_at_whole_groups) {
    set_cpu_threads(3);
    Work short_rows(70 * 3000);
    short_rows.each = std::chrono::nanoseconds(100);
    launch(short_rows, 70, 100.0);
    EXPECT_GT(short_rows.pieces.size(), 3u);
    int inside_a_row = 0;  // the first piece after the part that was run as a probe
    for (const auto& [begin, end] : short_rows.pieces) inside_a_row += begin % 70 != 0;
    EXPECT_LE(inside_a_row, 1);

    Work one_row(200'000);
    one_row.each = std::chrono::nanoseconds(100);
    launch(one_row, 200'000, 100.0);
    EXPECT_GT(one_row.pieces.size(), 3u);
    for (const auto& [begin, end] : one_row.pieces) EXPECT_EQ(begin % 16, 0) << begin;  // the widest SIMD group
}

TEST_F(ThreadPool, launches_from_many_threads_at_once) {
    set_cpu_threads(2);
    std::vector<std::thread> callers;
    std::atomic<int> right{0};
    for (int caller = 0; caller < 8; ++caller)
        callers.emplace_back([&] {
            for (int round = 0; round < 20; ++round) {
                Work work(30'000);
                work.each = std::chrono::nanoseconds(20);
                launch(work, 100, 20.0);
                right += work.all_ran_once();
            }
        });
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(right.load(), 8 * 20);
}

std::atomic<int> polls{0};
std::thread::id poller;
bool interrupt_at_third_poll() {
    poller = std::this_thread::get_id();
    return ++polls >= 3;
}

TEST_F(ThreadPool, an_interrupt_ends_a_long_launch_early) {
    for (const int threads : {1, 2}) {
        set_cpu_threads(threads);
        polls = 0;
        Work work(1'000'000);
        work.each = std::chrono::microseconds(20);  // 20 s in all, were it not stopped
        const auto start = std::chrono::steady_clock::now();
        EXPECT_FALSE(launch(work, 1'000'000, 20'000.0, interrupt_at_third_poll));
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
        EXPECT_EQ(poller, std::this_thread::get_id());
    }
}

bool never() { return false; }

TEST_F(ThreadPool, the_thread_that_launches_asks_and_the_others_learn_of_the_answer) {
    static std::atomic<bool> answer{false};
    Interrupts nothing(nullptr), interrupts([] { return answer.load(); });
    EXPECT_FALSE(nothing.poll());
    EXPECT_FALSE(interrupts.poll());
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_FALSE(interrupts.poll());
    answer = true;
    bool seen = true;
    std::thread([&] { seen = interrupts.poll(); }).join();
    EXPECT_FALSE(seen) << "the thread that launches asks, and no other one";
    while (!interrupts.poll()) std::this_thread::yield();
    answer = false;
    std::thread([&] { seen = interrupts.poll(); }).join();
    EXPECT_TRUE(seen);
    EXPECT_TRUE(interrupts.is_stopped());
}

TEST_F(ThreadPool, the_caller_asks_while_it_waits_for_the_others) {
    set_cpu_threads(2);
    static std::atomic<bool> stopped;
    static std::thread::id caller;
    stopped = false;
    caller = std::this_thread::get_id();
    const KernelEntryPoint worker_waits = [](const void*, const LaunchContext*, std::int64_t, std::int64_t) {
        if (std::this_thread::get_id() == caller) return std::this_thread::sleep_for(std::chrono::microseconds(500));
        while (!stopped) std::this_thread::yield();
    };
    LaunchContext context{{1, 1, 1, 1}, nullptr};
    Interrupts interrupts([] { return stopped = true; });
    parallel_launch(worker_waits, nullptr, context, 10'000, 10'000, 5'000.0, interrupts);
    EXPECT_TRUE(interrupts.is_stopped());
}

TEST_F(ThreadPool, a_launch_that_is_not_interrupted_runs_to_its_end) {
    set_cpu_threads(2);
    Work work(50'000);
    work.each = std::chrono::microseconds(4);
    EXPECT_TRUE(launch(work, 50'000, 4000.0, never));
    EXPECT_TRUE(work.all_ran_once());
}

TEST_F(ThreadPool, launches_again_in_a_child_after_fork) {
    set_cpu_threads(3);
    Work before(100'000);
    before.each = std::chrono::nanoseconds(50);
    launch(before, 1000, 50.0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(20);  // a hang becomes a death by signal, which the parent reports
        Work after(100'000);
        after.each = std::chrono::nanoseconds(50);
        const bool is_right = launch(after, 1000, 50.0) && after.all_ran_once();
        _exit(is_right ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
    Work again(100'000);
    launch(again, 1000, 500.0);
    EXPECT_TRUE(again.all_ran_once());
}

TEST_F(ThreadPool, ranges_cover_every_index_once) {
    struct Ranges {
        std::vector<std::atomic<int>> seen;
        std::atomic<int> pieces{0}, empty{0}, small{0};
        std::int64_t grain;
    };
    const auto body = [](void* state, std::int64_t begin, std::int64_t end) {
        auto& ranges = *static_cast<Ranges*>(state);
        ++ranges.pieces;
        ranges.empty += begin >= end;
        ranges.small += end - begin < ranges.grain && end < static_cast<std::int64_t>(ranges.seen.size());
        for (std::int64_t i = begin; i < end; ++i) ++ranges.seen.at(static_cast<std::size_t>(i));
    };
    for (const int threads : {1, 2, 4}) {
        set_cpu_threads(threads);
        for (const std::int64_t grain : {0, 1, 10}) {
            std::vector<std::int64_t> counts = {-1, 0, 12'345, 12'799, 12'800};
            for (std::int64_t count = 1; count < 200; ++count) counts.push_back(count);
            for (const std::int64_t count : counts) {
                Ranges ranges{
                    std::vector<std::atomic<int>>(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)))};
                ranges.grain = std::max<std::int64_t>(grain, 1);
                parallel_range(count, grain, body, &ranges);
                for (const auto& times : ranges.seen) EXPECT_EQ(times.load(), 1) << count;
                EXPECT_EQ(ranges.empty, 0) << count;
                EXPECT_EQ(ranges.small, 0) << count;
                if (count <= 0) {
                    EXPECT_EQ(ranges.pieces, 0);
                }
                if (threads == 1 || count < 2 * ranges.grain) {
                    EXPECT_LE(ranges.pieces, 1) << count;
                }
                if (threads > 1 && count >= 2 * ranges.grain) {
                    EXPECT_GT(ranges.pieces, 1) << count;
                }
            }
        }
    }
}

TEST_F(ThreadPool, refuses_a_thread_count_that_is_none) {
    EXPECT_THROW(set_cpu_threads(0), UsageError);
    EXPECT_THROW(set_cpu_threads(-2), UsageError);
    EXPECT_THROW(set_cpu_threads(1'000'000), UsageError);
}

}  // namespace
}  // namespace weft::runtime
