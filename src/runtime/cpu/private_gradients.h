// Private gradients for the workers of a launch.
//
// Threads that scatter additions to a gradient (transform::scattered_gradients) may meet at the same elements, and use
// atomics: some 8 ns each. If a launch adds much to a comparatively small array, each worker adds to a private copy
// without atomics. The copies are summed at the end. The caller's thread uses the gradient itself.
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

// Whether these gradients exist, are packed, and are small in comparison with a launch of so many threads.
bool should_privatise(std::span<const GradientView> gradients, std::int64_t threads);

// The private gradients of one launch.
class PrivateGradients {
public:
    PrivateGradients(KernelEntryPoint entry, std::span<const std::byte> arguments,
                     std::span<const PrivateGradient> gradients);
    ~PrivateGradients();
    PrivateGradients(const PrivateGradients&) = delete;
    PrivateGradients& operator=(const PrivateGradients&) = delete;

    // A KernelEntryPoint whose `arguments` is an object of this class.
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
