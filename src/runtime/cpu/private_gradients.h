// Gradients of their own for the workers of a launch.
//
// Threads that scatter what they add to a gradient (transform::scattered_gradients) meet at elements that nobody knows
// beforehand, and use atomics: some 8 ns each. Where a launch brings much to an array that is small beside it, each
// worker adds to a gradient of its own instead, plainly; they are added up in the end. The caller works on the real
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "binary/cpu_abi.h"
#include "runtime/executable.h"

namespace weft::runtime {

// Whether these gradients are there, packed, and small beside a launch of so many threads.
bool pays_to_own(std::span<const GradientView> gradients, std::int64_t threads);

// Those of one launch.
class PrivateGradients {
public:
    PrivateGradients(KernelEntryPoint entry, std::span<const std::byte> arguments,
                     std::span<const PrivateGradient> gradients);
    ~PrivateGradients();
    PrivateGradients(const PrivateGradients&) = delete;
    PrivateGradients& operator=(const PrivateGradients&) = delete;

    // A KernelEntryPoint whose arguments are an object of this class.
    static void run_piece(const void* self, const LaunchContext* context, std::int64_t begin, std::int64_t end);
    void add_up();

private:
    struct Worker;
    const std::byte* arguments_of_this_thread();

    const KernelEntryPoint entry_;
    const std::span<const std::byte> arguments_;
    const std::span<const PrivateGradient> gradients_;
    const std::thread::id caller_ = std::this_thread::get_id();
    std::mutex mutex_;
    std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace weft::runtime
