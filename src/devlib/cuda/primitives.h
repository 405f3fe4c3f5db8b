// What the kernels for operations on whole arrays are launched with: runtime/cuda/primitives fills these in. Arrays lie
// in a line unless strides are given; strides are in bytes. `scalar` is the number of a type in types/types.def.
#pragma once

#include <cstdint>

#include "devlib/cuda/strided.h"

namespace weft::devlib {

inline constexpr std::int64_t kWarp = 32;         // lanes
inline constexpr std::int64_t kWarpItems = 1024;  // what a warp of sorts and runs takes at a time

// ---- sums (reduce.cpp) ----

inline constexpr std::int64_t kSumRows = 2048;  // of a block, as on the CPU
inline constexpr int kSumLanes = 16;            // that add a block whose rows are single numbers

// The array as (outer, count, width): the sum is over `count`, in blocks of kSumRows.
struct SumPlan {
    const char* a;
    const char* b;  // null unless products are added
    void* partial;  // 8 bytes for each row of `outer`, block and column
    std::int64_t outer, count, width, blocks;
    std::int64_t bytes;  // of a number
    std::int32_t scalar;
};

struct TotalsPlan {
    const void* partial;  // as the sums left it
    char* to;
    std::int64_t count;  // of results
    std::int64_t width, blocks;
    std::int64_t components;  // that are added to one result
    std::int64_t bytes;       // of a result
    std::int32_t of, to_scalar;
};

// ---- running sums (scan.cpp) ----

inline constexpr std::int64_t kScanBlock = 1 << 14;  // numbers, as on the CPU
inline constexpr int kScanGroup = 8;

// Each component of the elements by itself.
struct ScanPlan {
    const char* from;
    char* to;
    void* carries;  // 8 bytes for each component and block
    std::int64_t count, components, blocks;
    std::int64_t bytes;  // of a number
    std::int32_t scalar, inclusive;
};

// ---- sorts (sort.cpp) ----

inline constexpr int kSortDigits = 256;
inline constexpr int kSortWarps = 4;  // of a block: each has counters in shared memory

struct SortPlan {
    const char* keys;
    std::int64_t key_bytes;
    // Which elements are sorted, and the segment of each; null where they are the first `count`.
    const std::int64_t* where;
    const std::int64_t* segments;
    std::uint64_t *codes, *other_codes;
    std::int64_t *order, *other_order;
    std::int64_t* counts;  // of each digit and chunk
    std::int64_t count, chunks;
    std::int32_t scalar, shift;
};

struct GatherPlan {
    const char* from;
    char* to;
    const std::int64_t* where;
    const std::int64_t* order;
    std::int64_t count, bytes;
};

// Exclusive running sums of counts, in place; the total comes behind the last.
struct PlacesPlan {
    std::int64_t* counts;
    std::int64_t count;
};

// ---- runs (runs.cpp) ----

struct RunsPlan {
    const char* values;
    std::int64_t count, chunks;
    std::int64_t bytes;    // of a value
    std::int64_t* counts;  // of the runs that begin in each chunk, then where these go
    std::int64_t* starts;
    char *run_values, *run_lengths;
    std::int64_t values_stride, lengths_stride, runs;
    std::int64_t* too_long;  // a run whose length is no int32; -1 before
    std::int32_t scalar;
};

// ---- products (matmul.cpp) ----

inline constexpr int kTile = 16;

struct MatrixView {
    char* data;
    std::int64_t batch, row, column;  // strides
};

struct MatmulPlan {
    MatrixView a, b, c, d;
    std::int64_t batches, rows, inner, columns;
    double alpha, beta;
    std::int32_t scalar;
};

// ---- additions (add.cpp) ----

inline constexpr int kMostFloats = 16;

struct AddPlan {
    // Floats that lie one behind the other in an element.
    struct Floats {
        std::int64_t offset, count, bytes;
        std::int32_t scalar;
    };
    Strided elements;
    std::int32_t kinds;
    Floats floats[kMostFloats];
};

}  // namespace weft::devlib
