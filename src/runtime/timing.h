// How long pieces of work of CUDA devices take: wp.timing_begin() and wp.ScopedTimer. While somebody asks, each piece
// is put between two events that measure time. What is captured for a graph is no work yet; launches of graphs are.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weft::runtime {

class Device;

// The numbers of wp.TIMING_KERNEL, ...
enum TimedKind : unsigned { kTimedKernel = 1, kTimedOwnKernel = 2, kTimedCopy = 4, kTimedFill = 8, kTimedGraph = 16 };

struct Activity {
    Device* device;
    std::string name;
    TimedKind kind;
    double ms;
};

// From now on work of these kinds is timed, until end_timing(). They nest.
void begin_timing(unsigned kinds);
// What was timed since the begin_timing() that it ends, in the order in which it was put, when that work is done.
// Throws UsageError where nothing was begun.
std::vector<Activity> end_timing();

}  // namespace weft::runtime
