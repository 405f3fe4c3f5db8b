// Arguments of the kernels for operations on whole arrays, filled in by runtime/cuda/primitives. Arrays are contiguous
// unless strides are given; strides are in bytes. `scalar` is the number of a type in types/types.def.
#pragma once

#include <cstdint>

#include "devlib/cuda/strided.h"

namespace weft::devlib {

inline constexpr std::int64_t kWarp = 32;         // lanes
inline constexpr std::int64_t kWarpItems = 1024;  // of a warp's chunk in sorts and runs

// ---- sums (reduce.cpp) ----

inline constexpr std::int64_t kSumRows = 2048;  // per block, as on the CPU
inline constexpr int kSumLanes = 16;            // threads that sum a block of single numbers

// The array as (outer, count, width): the sum is over `count`, in blocks of kSumRows.
struct SumPlan {
    const char* a;
    const char* b;  // null for plain sums
    void* partial;  // 8 bytes for each row of `outer`, block and column
    std::int64_t outer, count, width, blocks;
    std::int64_t bytes;  // per number
    std::int32_t scalar;
};

struct TotalsPlan {
    const void* partial;  // result of the sums
    char* to;
    std::int64_t count;  // of results
    std::int64_t width, blocks;
    std::int64_t components;  // summed into one result
    std::int64_t bytes;       // per result
    std::int32_t of, to_scalar;
};

// ---- running sums (scan.cpp) ----

inline constexpr std::int64_t kScanBlock = 1 << 14;  // numbers, as on the CPU
inline constexpr int kScanGroup = 8;

// Each component of the elements is scanned separately.
struct ScanPlan {
    const char* from;
    char* to;
    void* carries;  // 8 bytes for each component and block
    std::int64_t count, components, blocks;
    std::int64_t bytes;  // per number
    std::int32_t scalar, inclusive;
};

// ---- places (sort.cpp) ----

// Exclusive prefix sums of counts, in place; the total follows the last.
struct PlacesPlan {
    std::int64_t* counts;
    std::int64_t count;
};

// ---- runs (run_length_encode.cpp) ----

struct RunsPlan {
    const char* values;
    std::int64_t count, chunks;
    std::int64_t bytes;    // per value
    std::int64_t* counts;  // of the runs that begin in each chunk, then their places in the output
    std::int64_t* starts;
    char *run_values, *run_lengths;
    std::int64_t values_stride, lengths_stride;
    std::int64_t values_room, lengths_room;  // no more runs than that are written
    // Behind the counts: how many runs there are; one whose length is no int32, plus 1, or 0; where it begins; its
    // length.
    std::int64_t* found;
    std::int32_t* told;  // how many there are; may be null
    std::int32_t scalar;
};

// ---- products (matmul.cpp) ----

struct MatrixView {
    char* data;
    std::int64_t batch, row, column;  // strides
};

// How threads read an operand: neighbours take neighbours along its rows or columns ("outer") or along the summed axis
// ("k"), 16 bytes each or one number. Vectors need a stride of one number along their axis, a multiple of their numbers
// there, and 16-byte boundaries.
enum MatrixAccess : std::int32_t { kVectorsAlongOuter, kVectorsAlongK, kNumbersAlongOuter, kNumbersAlongK };

struct MatmulPlan {
    MatrixView a, b, c, d;
    std::int64_t batches, rows, inner, columns;
    double alpha, beta;
    std::int32_t a_access, b_access;  // MatrixAccess
    std::int32_t stores_vectors;      // to d, along its rows
};

// Between a matrix of small floats and a contiguous one of f32.
struct MatrixConversion {
    MatrixView small;
    float* wide;
    std::int64_t batches, rows, columns;
    std::int32_t scalar;  // of the small ones
};

// ---- additions (add.cpp) ----

inline constexpr int kMostFloats = 16;

struct AddPlan {
    // Contiguous floats in an element.
    struct Floats {
        std::int64_t offset, count, bytes;
        std::int32_t scalar;
    };
    Strided elements;
    std::int32_t kinds;
    Floats floats[kMostFloats];
};

}  // namespace weft::devlib
