// Arguments of the kernels that sort pairs by radix (radix_sort_pass.h), filled in by runtime/cuda/radix_sort.cpp.
//
// Pairs move between two buffers, digit by digit from the lowest; equal keys keep their order. One kernel counts the
// digits of all passes, one turns the counts into places, and each pass is one kernel: a block sorts a tile in shared
// memory and learns the place of its pairs of each digit from the blocks before it (Adinets and Merrill, "Onesweep",
// 2022).
//
// A pass in which all keys have one digit would change nothing. The second kernel finds these passes, which then return
// at once; the host does not know of them. Without them the result could be in the wrong buffer. If so, one of them
// copies the pairs to the other buffer.
//
// One sort may have several segments: then each tile belongs to one, each has its own counts and passes, and blocks
// learn places from earlier tiles of their segment only.
#pragma once

#include "devlib/spatial/layout.h"

namespace weft::devlib {

inline constexpr int kSortTile = 4096;    // pairs
inline constexpr int kSortThreads = 256;  // per block, but for passes
// Threads of a pass, after the registers that ptxas gives it: with 8 bytes in a key or a value, 256 threads of 16 pairs
// leave room for 16 warps on a multiprocessor, and 512 threads of 8 pairs for 32. Codes of 64-bit floats need so many
// registers that one block of 512 threads would fit.
constexpr int sort_threads(int key_bytes, int value_bytes, bool is_float) {
    if (key_bytes == 8) return is_float ? 256 : 512;
    return value_bytes == 8 ? 512 : 256;
}
inline constexpr int kDigitBits = 8;
inline constexpr int kDigits = 1 << kDigitBits;
inline constexpr int kMostPasses = 64 / kDigitBits;
inline constexpr Int64 kMostSorted = (Int64(1) << 31) - 1;  // pairs

// A key's code is an unsigned number of the same order. Buffers hold keys; codes are computed when a digit is needed,
// because -0 and NaNs could not be restored from them.
struct KeyOrder {
    UInt64 flip;  // integers: code = key ^ flip
    // Floats: the code of -0 becomes that of 0, and NaNs, which are those beyond infinity, become the last code.
    UInt64 minus_zero, zero, infinity;
    UInt64 last;  // a key that has the last code
};

struct SortSegment {
    UInt32 begin, count, first_tile;
};

// The work of a pass on a segment; 0: none.
enum SortStep : Int32 {
    kStepCopies = 1,
    kStepSorts = 2,
    kStepReadsSecond = 4,  // buffer
    kStepIsFirst = 8,
};

// The pairs are in the first buffer at first; the result is in the first or second one as the number of passes is even
// or odd.
struct RadixSortPlan {
    void *keys, *other_keys;
    void *values, *other_values;
    Int32 makes_positions;  // the first pass takes a pair's index for its value
    Int32 passes, begin_bit, end_bit;
    KeyOrder order;
    SortSegment only;             // if there are no segments
    const SortSegment* segments;  // null if `only` is the one
    const UInt32* owners;         // the number of each tile's segment
    const UInt32* counts;         // how many segments and tiles there are
    UInt32* digits;               // of each segment and pass: how many keys have each; then their places in the segment
    Int32* steps;                 // of each segment and pass
    // For each pass, tile and digit. 0: not known yet. With the highest bit: the digit's place in the next tile. Else:
    // 1 more than the number of keys in the tile. Zeros before, as `digits` and `next_tile`.
    UInt32* progress;
    UInt32* next_tile;                 // of each pass
    UInt32 most_tiles, most_segments;  // exact without segments
    Int32 pass;
};

// Moves elements to the places that positions say.
struct GatherPlan {
    RadixSortPlan sort;  // whose tiles are moved
    const UInt32* positions;
    const char* from;
    char* to;
    Int64 bytes;  // per element
};

}  // namespace weft::devlib
