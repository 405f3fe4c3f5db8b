// Arguments of the kernels for operations on whole arrays, filled in by runtime/cuda/primitives. Arrays are contiguous
// unless strides are given; strides are in bytes. `scalar` is the number of a type in types/types.def.
#pragma once

#include <cstdint>

#include "devlib/cuda/strided.h"

namespace weft::devlib {

inline constexpr std::int64_t kWarp = 32;         // lanes
inline constexpr std::int64_t kWarpItems = 1024;  // of a warp's chunk in sorts and runs

// ---- sums (reduce.cpp, reduce_columns.cpp) ----

inline constexpr std::int64_t kSumRows = 2048;    // per block, as on the CPU
inline constexpr int kSumLanes = 16;              // interleaved sums of a block of single numbers, as on the CPU
inline constexpr std::int64_t kSumThreads = 256;  // of a block of threads

// The array as (outer, count, width): the sum is over `count`, in blocks of kSumRows.
struct SumPlan {
    const char* a;
    const char* b;         // null for plain sums
    void* partial;         // columns: 8 bytes for each row of `outer`, block and column; null if a sum is a result
    std::uint64_t* state;  // rows of several parts: of a look-back (look_back.h), with an entry for each row and part
    char* to;
    std::int64_t outer, count, width, blocks;
    std::int64_t parts;            // rows: blocks of threads for each
    std::int64_t components;       // columns: summed into one result
    std::int64_t bytes, to_bytes;  // per number
    std::int32_t scalar, to_scalar;
    std::int32_t sign_mask;  // -1 for signed numbers, else 0
    std::int32_t in_pieces;  // rows: whether each begins at a multiple of 16 bytes
};

// ---- running sums (scan.cpp) ----

// A block of threads scans a tile, a thread kScanItems numbers that follow each other. As on the CPU.
inline constexpr int kScanItems = 16, kScanThreads = 256;
inline constexpr std::int64_t kScanTile = kScanItems * kScanThreads;
inline constexpr int kScanFan = 32;  // tiles in a group, groups in a span
// The state of a look-back (look_back.h): the ticket and a gap, then a value's 32-bit parts, each in a word of 8 bytes.
inline constexpr int kScanHeaderWords = 16;

constexpr std::int64_t scan_state_bytes(std::int64_t chains, std::int64_t tiles, std::int64_t value_bytes) {
    const std::int64_t groups = (tiles + kScanFan - 1) / kScanFan, spans = (groups + kScanFan - 1) / kScanFan;
    return 8 * kScanHeaderWords + 2 * value_bytes * chains * (tiles + groups + spans);
}

// For rows of several parts (SumPlan).
constexpr std::int64_t sum_state_bytes(std::int64_t entries) { return 8 * (kScanHeaderWords + 2 * entries); }

// Each component of the elements is scanned separately. Blocks of the launch: components * tiles.
struct ScanPlan {
    const char* from;
    char* to;
    std::uint64_t* state;
    std::int64_t count, components, tiles;
    std::int64_t bytes;  // per number
    std::int32_t scalar, inclusive;
    std::int32_t in_pieces;  // whether both arrays are aligned to 16 bytes, and the numbers follow each other
};

// ---- runs (run_length_encode.cpp) ----

// Blocks of the launch: tiles of kScanTile values.
struct RunsPlan {
    const char* values;
    std::uint64_t* state;  // of a look-back with values of 16 bytes
    std::int64_t count, tiles;
    std::int64_t bytes;  // per value
    char *run_values, *run_lengths;
    std::int64_t values_stride, lengths_stride;
    std::int64_t values_room, lengths_room;  // no more runs than that are written
    // How many runs there are; one whose length is no int32, plus 1, or 0; its begin; its length. Zeros before the
    // launch if there may be such a run.
    std::int64_t* found;
    std::int32_t* told;  // how many there are; may be null
    std::int32_t scalar;
    std::int32_t in_pieces;  // whether `values` are aligned to 16 bytes
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
