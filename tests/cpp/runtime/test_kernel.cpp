// How launches are spread over threads.
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "runtime/cpu/kernel.h"
#include "runtime/cpu/thread_pool.h"

namespace weft::runtime {
namespace {

// The threads that run a launch of a kernel that takes a while, by LaunchOptions::deterministic and CpuEntry::ordered.
std::size_t threads_of_launch(bool deterministic, bool ordered) {
    struct Seen {
        std::mutex mutex;
        std::set<std::thread::id> threads;
    } seen;
    KernelEntry description{.name = "kernel", .symbol = "kernel", .tid_rank = 1};
    description.cpu().cost = 1e6;
    description.cpu().ordered = ordered;
    const auto entry = [](const void* arguments, const LaunchContext*, std::int64_t, std::int64_t) {
        Seen& into = *static_cast<Seen*>(const_cast<void*>(arguments));
        {
            const std::lock_guard lock(into.mutex);
            into.threads.insert(std::this_thread::get_id());
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // so that others come to their pieces
    };
    Grid grid;
    grid.dim[0] = grid.count = 1000;
    const std::span arguments(reinterpret_cast<const std::byte*>(&seen), sizeof seen);
    const CpuKernel kernel(description, entry);
    EXPECT_TRUE(kernel.launch(arguments, grid, {.keeps_order = kernel.is_ordered() && deterministic},
                              host_device().default_stream()));
    return seen.threads.size();
}

TEST(CpuKernel, what_depends_on_the_order_runs_on_one_thread_where_that_is_asked) {
    const int before = cpu_threads();
    set_cpu_threads(4);
    EXPECT_EQ(threads_of_launch(/*deterministic=*/true, /*ordered=*/true), 1U);
    EXPECT_GT(threads_of_launch(/*deterministic=*/true, /*ordered=*/false), 1U);
    EXPECT_GT(threads_of_launch(/*deterministic=*/false, /*ordered=*/true), 1U);
    set_cpu_threads(before);
}

}  // namespace
}  // namespace weft::runtime
