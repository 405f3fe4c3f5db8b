// Loaded code of a device: a Binary, and its kernels, ready to be launched.
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
    std::int64_t count = 0;  // threads in total; 0 if any extent is 0
    // Of a launch on a GPU; 0: the device chooses.
    std::int32_t block_dim = 0;   // threads per block
    std::int32_t max_blocks = 0;  // limit of the launch: threads then take several points of the grid
};

// A gradient of which each worker of a launch gets a private copy, if the device supports that.
struct PrivateGradient {
    std::int64_t offset;  // of its array in the arguments, in bytes
    Type array;
};

// A gradient that may get private copies, with its array as the block of arguments shows it.
struct GradientView {
    const ArrayView* view;
    Type array;
    std::int64_t additions;  // of one thread
};

// The fault of a launch that its caller does not wait for: the next wait for its stream throws it.
class LateFault {
public:
    virtual ~LateFault() = default;
    // Throws the fault of the launch as a UsageError.
    virtual void throw_fault() = 0;

    Fault fault{};

protected:
    LateFault() = default;
    LateFault(const LateFault&) = delete;
    LateFault& operator=(const LateFault&) = delete;
};

struct LaunchOptions {
    // Records of failed checks, and of the first thread that wrote a NaN or infinity. They are filled at the latest
    // when the stream has been synchronized. Null: not wanted.
    Fault* fault = nullptr;
    Fault* not_finite = nullptr;
    // In place of `fault`, if Stream::keeps_faults(): the stream owns it until a wait has found no fault or has thrown
    // it.
    const std::shared_ptr<LateFault>* late_fault = nullptr;
    bool serial = false;       // one thread after the other, in order
    bool keeps_order = false;  // the order of threads is the same in each run
    std::span<const PrivateGradient> private_gradients = {};
    int cluster = 1;  // blocks of a cluster on GPUs that have clusters
    // May begin before the kernel in front of it in its stream has ended: the code waits for it.
    bool programmatic = false;
    // If not null, a launch on the host polls this function and ends early when it returns true.
    bool (*interrupted)() = nullptr;
};

class LoadedKernel;

// One of several fused launches over the same grid.
struct FusedLaunch {
    const LoadedKernel* kernel;
    const std::byte* arguments;
};

class LoadedKernel {
public:
    const KernelEntry& description() const { return description_; }
    // Estimated time for which a launch blocks its caller, in nanoseconds per thread of the grid.
    double cost_ns() const { return cost_ns_; }
    // Whether the contents of memory after a launch depend on the order of its threads.
    bool is_ordered() const { return is_ordered_; }
    // Whether it may take much longer than that, because of loops of unknown length. They poll
    // LaunchOptions::interrupted.
    bool may_be_long() const { return may_be_long_; }

    // Loads the code, on devices that load it separately from launches. Throws UsageError if the driver rejects it.
    virtual void prepare(Device& /*device*/) const {}
    // Does the same, and describes the source of the code: "machine code for sm_90", "PTX for sm_75, compiled …".
    virtual std::string origin(Device& /*device*/) const { return "machine code of this process"; }
    // Threads per block, and the least number of blocks, that occupy most of the device.
    virtual std::pair<int, int> max_occupancy_block(Device& /*device*/) const { return {1, 1}; }
    // Registers, and bytes of local memory, of a thread on a GPU.
    virtual std::pair<int, int> thread_needs(Device& /*device*/) const { return {0, 0}; }
    // The most blocks of a cluster, with blocks of so many threads and so much shared memory besides the kernel's own.
    virtual int most_clustered(Device& /*device*/, int /*threads*/, int /*shared_bytes*/) const { return 1; }

    // Enqueues a launch. `arguments` is only used during the call. False if the launch was interrupted.
    virtual bool launch(std::span<const std::byte> arguments, const Grid& grid, const LaunchOptions& options,
                        Stream& stream) const = 0;

    // Runs fused launches, of which this kernel's is the first: all of them on the first `piece` threads of the grid,
    // then all on the next, so that values written by one are in the cache for the next. Precondition: the result is
    // the same as one after the other (KernelEntry, CpuEntry::can_fuse), and all are of this device. False if
    // interrupted.
    virtual bool launch_fused(std::span<const FusedLaunch> all, std::int64_t piece, const Grid& grid,
                              const LaunchOptions& options) const;

    // Runs one thread on memory of the host, on the calling thread. Throws InternalError if the device's code does not
    // run on the host.
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
    // The kernel lives as long as the executable. Throws InternalError if there is none of this name.
    virtual const LoadedKernel& kernel(std::string_view name) const = 0;

protected:
    explicit Executable(Binary binary) : binary_(std::move(binary)) {}

private:
    Binary binary_;
};

// Loads code for all devices of the kind that the binary names. Throws InternalError if there is no such kind or the
// code is damaged; UsageError if functions in C++ need symbols that the process does not have.
std::shared_ptr<const Executable> load(Binary binary);

}  // namespace weft::runtime
