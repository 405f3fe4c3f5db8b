#include "program/kernel/grid.h"

#include <algorithm>

#include "runtime/array.h"
#include "support/error.h"

namespace weft::program {

Grid make_grid(std::span<const std::int64_t> dims, int tid_rank, std::string_view kernel_name) {
    auto name = [&] { return "kernel '" + std::string(kernel_name) + "'"; };
    if (dims.empty() || dims.size() > kMaxDims) {
        throw UsageError("launch()", "dim has " + std::to_string(dims.size()) + " extents, expected 1 to 4",
                         ErrorCategory::value);
    }
    Grid grid;
    std::int64_t count = 1;
    bool empty = false;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
        if (dims[axis] < 0) {
            throw UsageError(
                "launch()",
                "dim " + runtime::shape_text(dims) + " of " + name() + " is negative; expected extents of 0 or more",
                ErrorCategory::value);
        }
        empty |= dims[axis] == 0;
        if (!empty && __builtin_mul_overflow(count, dims[axis], &count)) {
            throw UsageError("launch()",
                             "dim " + runtime::shape_text(dims) + " of " + name() + " is more than 2^63 threads",
                             ErrorCategory::value);
        }
    }
    grid.count = empty ? 0 : count;
    if (tid_rank == 0) {
        grid.dim[0] = grid.count;
    } else if (static_cast<int>(dims.size()) > tid_rank && launch_rank(dims) > tid_rank) {
        throw UsageError("launch()",
                         "dim " + runtime::shape_text(dims) + " has " + std::to_string(dims.size()) + " axes, but " +
                             name() + " was compiled for " + std::to_string(tid_rank) +
                             ", the number of names that it unpacks wp.tid() to. help: unpack as many names as dim "
                             "has axes, and do without those that you don't need: i, _ = wp.tid()",
                         ErrorCategory::value);
    } else {
        std::copy_n(dims.begin(), std::min<std::size_t>(dims.size(), static_cast<std::size_t>(tid_rank)), grid.dim);
    }
    // wp.tid() is an int32: threads of a longer axis would run with wrong indices.
    for (int axis = 0; axis < tid_rank; ++axis) {
        if (grid.dim[axis] > std::int64_t{1} << 31) {
            throw UsageError("launch()",
                             "dim " + runtime::shape_text(dims) + " gives axis " + std::to_string(axis) + " of " +
                                 name() + " " + std::to_string(grid.dim[axis]) +
                                 " threads, and wp.tid() is an int32 that counts to 2147483648. help: "
                                 "split the axis: dim=(n // m, m) with i, j = wp.tid()",
                             ErrorCategory::value);
        }
    }
    return grid;
}

}  // namespace weft::program
