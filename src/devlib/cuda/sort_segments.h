// Arguments of the kernels that sort segments (sort_segments.cpp), filled in by runtime/cuda/primitives/sort.cpp.
//
// One kernel checks the segments and lists the longer ones. A warp sorts each short segment and a block each of the
// middle ones, in shared memory. The long ones are sorted by radix, all at once (radix_sort.h).
#pragma once

#include "devlib/cuda/radix_sort.h"

namespace weft::devlib {

inline constexpr int kMergeItems = 8;  // pairs of a thread
inline constexpr int kMostOfWarp = 32 * kMergeItems;
inline constexpr int kMostOfBlock = kSortThreads * kMergeItems;

struct SegmentsPlan {
    const Int32 *begins, *ends;
    Int64 segments;
    Int64 count;   // of pairs
    Int64* wrong;  // a segment that does not lie in [0, count]: its number plus 1, or 0; beginning, end
    // How many are listed: long segments, their tiles, middle segments, and the pairs of all. Zeros before.
    UInt32* counts;
    UInt32* middle;  // their numbers; null: a block sorts all pairs
    SortSegment* large;
    UInt32* owners;  // of each tile

    char* keys;
    char* values;
    Int64 value_bytes;
    KeyOrder order;
    Int32 key_bytes, is_float;
};

// Words of `counts`.
inline constexpr int kLargeSegments = 0, kLargeTiles = 1, kMiddleSegments = 2;
inline constexpr int kListedPairs = 4;  // of 64 bits
inline constexpr int kSegmentCounts = 6;

}  // namespace weft::devlib
