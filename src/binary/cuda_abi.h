// The ABI between launches and kernels on a CUDA device. src/devlib/cuda/reports.h repeats the structs that lie in the
// device's memory, without headers; runtime/cuda/abi.cpp compares the two.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "types/layout.h"

namespace weft {

// An entry is
//     kernel symbol(CudaLaunch launch, byte arguments[n])     both by value, in the memory of parameters
//     kernel symbol(CudaLaunch launch, const byte* arguments) if n is more than kMostCudaArgumentBytes
//     kernel symbol(CudaLaunch launch)                        if n is 0
// It runs with any one-dimensional grid: each thread takes the elements index, index + threads, ... below `count`.
// Under CudaLaunch::together, a thread has n = CudaEntry::together elements instead, and the grid is
//     of one axis       x: blocks of n * threads elements; those of a thread are a block's threads apart
//     of several axes   x: the last axis, threads of a block by threads; y: the axis before it, n by n, which are those
//                       of a thread; z: the others, the last of them first
struct CudaReports;

// Constants that split an index into coordinates without a division: n / extent is mulhi(n, multiplier) >> shift for
// all n below 2^63. `short_multiplier` does the same in 32 bits for all n below 2^31. An extent of 1 needs neither.
// T. Granlund, P. L. Montgomery, "Division by invariant integers using multiplication", 1994, theorem 4.2 for 63 and 31
// bits.
struct CudaAxis {
    std::int64_t extent = 1;
    std::uint64_t multiplier = 0;
    std::uint32_t shift = 0, short_multiplier = 0;  // the latter if the extent is below 2^31
};

struct CudaLaunch {
    CudaAxis axes[kMaxDims];         // of the axes of tid()
    std::int64_t count = 0;          // elements in all
    CudaReports* reports = nullptr;  // set under CudaEntry::reports
    // Memory of threads, if CudaEntry::logs: the parts of all threads for the first log, then those for the next one.
    std::byte* logs = nullptr;
    std::int64_t log_bytes = 0;     // of one part
    std::int64_t together = 0;      // whether threads have several elements: in launches up to kMostTogether
    const void* objects = nullptr;  // a devlib::ObjectTable, set under CudaEntry::finds_objects
    // Which of CudaEntry::shared_copies there are, a bit each. They lie in dynamic shared memory in this order, each at
    // a multiple of kSharedCopyAlignment.
    std::int64_t shared_copies = 0;
};
static_assert(sizeof(CudaLaunch) == 152);
inline constexpr std::int64_t kSharedCopyAlignment = 16;
inline constexpr std::int64_t kMostTogether = std::int64_t{1} << 30;

// The alignment of the elements of array parameters in code for dense arrays: the most bytes that one access of several
// numbers takes.
inline constexpr std::int64_t kMostCudaAccessBytes = 16;
inline std::int64_t cuda_alignment(std::int64_t element_bytes) {
    return std::min(kMostCudaAccessBytes, element_bytes & -element_bytes);
}

// Memory of all logs of one launch. Fewer threads have longer logs.
inline constexpr std::int64_t kCudaLogBytes = std::int64_t{256} << 20;
inline constexpr std::int64_t kMostLoggingThreads = 8192;

// Parameters of a kernel take at most 4 KiB on every GPU.
inline constexpr std::int64_t kMostCudaArgumentBytes = 3840;

// A failed check of a thread, which names itself by its index; the launch finds the coordinates.
inline constexpr int kMostRaisedArguments = 29;
struct CudaFault {
    std::int32_t claimed;  // 1: by the first thread, which writes the rest
    std::int32_t kind;     // FaultKind
    std::int64_t thread, index, size;
    std::int32_t axis, site;
    std::int64_t format;  // raised: the number of its text (CudaEntry::formats)
    std::int64_t arguments[kMostRaisedArguments];
};

// One for each launch that reports, in memory of the device and zero at first. The words behind it hold the printed
// records: the number of a format, the number of its arguments, and the arguments.
inline constexpr std::int64_t kCudaPrintWords = 128 * 1024;
struct CudaReports {
    CudaFault fault, not_finite;
    std::int64_t printed;  // words that threads asked for; there may be room for fewer
};

}  // namespace weft
