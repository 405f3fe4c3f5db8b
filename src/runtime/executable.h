// Code that a device can run: a Binary that has been loaded, and its kernels, ready to be launched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "binary/binary.h"
#include "runtime/device.h"
#include "types/layout.h"

namespace weft::runtime {

// The extents of a launch as the kernel sees it.
struct Grid {
    std::int64_t dim[kMaxDims] = {1, 1, 1, 1};
    std::int64_t count = 0;  // threads in all; 0 where any extent is 0
    // Of a launch on a CUDA device; 0: as the device likes it.
    std::int32_t block_dim = 0;   // threads of a block
    std::int32_t max_blocks = 0;  // of the launch: then threads take several points of the grid
};

// A gradient of which each worker of a launch gets one of its own, where the device does that.
struct PrivateGradient {
    std::int64_t offset;  // of its array in the arguments
    Type array;
};

// One that a launch may give its workers of their own, as the block of its arguments shows it.
struct GradientView {
    const ArrayView* view;
    Type array;
    std::int64_t additions;  // of one thread
};

struct LaunchOptions {
    // What checks find, and who first wrote what is not finite: filled at the latest when the stream has been
    // synchronized. Null where nobody asks.
    Fault* fault = nullptr;
    Fault* not_finite = nullptr;
    bool serial = false;       // one thread after the other
    bool keeps_order = false;  // the same order of threads each time
    std::span<const PrivateGradient> private_gradients = {};
    // Where not null, a launch that runs on the host asks now and then whether it should end.
    bool (*interrupted)() = nullptr;
};

class LoadedKernel;

// One of several launches over one grid that run as one.
struct Joined {
    const LoadedKernel* kernel;
    const std::byte* arguments;
};

class LoadedKernel {
public:
    const KernelEntry& description() const { return description_; }
    // Estimated time that a launch keeps its caller, in nanoseconds for each thread of the grid.
    double cost_ns() const { return cost_ns_; }
    // Whether what it leaves in memory depends on the order of its threads.
    bool is_ordered() const { return is_ordered_; }
    // Whether it may take much longer than that: it has loops of unknown length. They ask LaunchOptions::interrupted.
    bool may_be_long() const { return may_be_long_; }

    // Loads the code on a device where that is done apart from launches. Throws UsageError where the driver does not
    // take it.
    virtual void prepare(Device& /*device*/) const {}
    // The same, and what the code there was made of, in words: "machine code for sm_90", "PTX for sm_75, compiled …".
    virtual std::string origin(Device& /*device*/) const { return "machine code of this process"; }
    // Threads of a block, and the least number of blocks, that keep most of a device at work.
    virtual std::pair<int, int> suggested_block(Device& /*device*/) const { return {1, 1}; }

    // Puts a launch into the stream. `arguments` is used during the call only. False where it was interrupted.
    virtual bool launch(std::span<const std::byte> arguments, const Grid& grid, const LaunchOptions& options,
                        Stream& stream) const = 0;

    // The launches of `all`, in their order, of which this is the first: all of them over the first `piece` threads of
    // the grid, then all over the next, so that what one writes is in the cache for the next. Precondition: nobody can
    // tell (KernelEntry, CpuEntry::joins), and they are of this device. False where it was interrupted.
    virtual bool launch_joined(std::span<const Joined> all, std::int64_t piece, const Grid& grid,
                               const LaunchOptions& options) const;

    // One thread in memory of the host, on the caller's own, done when the call returns. Throws InternalError where the
    // device's code does not run there.
    virtual void call(const std::byte* arguments, Fault& fault) const;

protected:
    LoadedKernel(KernelEntry description, double cost_ns, bool is_ordered, bool may_be_long)
        : description_(std::move(description)), cost_ns_(cost_ns), is_ordered_(is_ordered), may_be_long_(may_be_long) {}
    virtual ~LoadedKernel() = default;

private:
    KernelEntry description_;
    double cost_ns_;
    bool is_ordered_;
    bool may_be_long_;
};

class Executable {
public:
    virtual ~Executable() = default;
    Executable(const Executable&) = delete;
    Executable& operator=(const Executable&) = delete;

    const Binary& binary() const { return binary_; }
    // They live as long as the executable. Throws InternalError where there is no such kernel.
    virtual const LoadedKernel& kernel(std::string_view name) const = 0;

protected:
    explicit Executable(Binary binary) : binary_(std::move(binary)) {}

private:
    Binary binary_;
};

// For all devices of the kind that the binary names. Throws InternalError where there is none, and where the code is
// damaged; UsageError where functions in C++ want what the process does not have.
std::shared_ptr<const Executable> load(Binary binary);

}  // namespace weft::runtime
