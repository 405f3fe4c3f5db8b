// Sorts of pairs by radix on a CUDA device. devlib/cuda/radix_sort.h describes the method.
#pragma once

#include <cstdint>

#include "devlib/cuda/radix_sort.h"
#include "runtime/cuda/context.h"
#include "types/type.h"

namespace weft::runtime {

class RadixSort {
public:
    // Of the bits [begin_bit, end_bit) of the keys' codes. If they are not all bits, -0 is below 0, and NaNs are where
    // their bits say.
    RadixSort(Scalar keys, int begin_bit, int end_bit);

    struct Buffers {
        void *keys, *other_keys;
        void *values, *other_values;
        int value_bytes;       // 4 or 8
        bool makes_positions;  // values are the pairs' indices; `values` is not read
    };
    void set_buffers(const Buffers& buffers);
    // The first `count` pairs. Precondition: 0 < count <= kMostSorted.
    void set_count(std::int64_t count);
    // Instead of one range: segments, of which the device knows how many there are.
    struct Segments {
        const devlib::SortSegment* segments;
        const std::uint32_t *owners, *counts;
        std::int64_t most_segments, most_tiles;
    };
    void set_segments(const Segments& segments);

    // After these, the memory that the sort needs. It is used until the last launch has ended.
    std::int64_t workspace_bytes() const;
    void begin(void* workspace, CudaContext& device, Stream& stream);
    // Adds the keys' digits to plan().digits, or the caller's kernel does.
    void count_digits() const;
    void sort();

    // Where the result is: in the first buffers, or in the other ones.
    bool ends_in_first() const { return plan_.passes % 2 == 0; }
    const devlib::RadixSortPlan& plan() const { return plan_; }

private:
    unsigned blocks(std::int64_t most) const;

    devlib::RadixSortPlan plan_{};
    int kernels_;
    int value_bytes_ = 4;
    CudaContext* device_ = nullptr;
    Stream* stream_ = nullptr;
};

}  // namespace weft::runtime
