#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "devlib/cuda/primitives.h"
#include "devlib/cuda/sort_segments.h"
#include "runtime/array_copies.h"
#include "runtime/cuda/capture.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/primitives.h"
#include "runtime/cuda/primitives/workplace.h"
#include "runtime/cuda/radix_sort.h"
#include "runtime/cuda_kernels.h"
#include "support/error.h"

namespace weft::runtime {

namespace {

constexpr OwnKernel kSortGather{k_sort_ptx, "weft_sort_gather"};
constexpr OwnKernel kSegmentsList{k_sort_segments_ptx, "weft_segments_list"};
// By whether codes have 64 bits.
constexpr OwnKernel kSegmentsShort[] = {{k_sort_segments_ptx, "weft_segments_short_32"},
                                        {k_sort_segments_ptx, "weft_segments_short_64"}};
constexpr OwnKernel kSegmentsMiddle[] = {{k_sort_segments_ptx, "weft_segments_middle_32"},
                                         {k_sort_segments_ptx, "weft_segments_middle_64"}};
constexpr std::int64_t kWrongWords = 3;  // of SegmentsPlan::wrong
constexpr std::int64_t kMostBlocks = 1 << 16;
using devlib::kSortThreads, devlib::kSortTile;

// The first elements of two arrays without gaps, which are copied back at the end if they were not so.
class PackedPairs {
public:
    PackedPairs(const Array& keys, const Array& values, std::int64_t count)
        : keys_(slice(keys, 0, 0, count, 1)),
          values_(slice(values, 0, 0, count, 1)),
          keys(contiguous(keys_)),
          values(contiguous(values_)) {}
    void copy_back() const {
        if (!keys_.is_contiguous()) copy(keys_, keys);
        if (!values_.is_contiguous()) copy(values_, values);
    }

private:
    Array keys_, values_;

public:
    Array keys, values;
};

// Sorts by radix. Values of 4 and 8 bytes move with the keys. Instead of others, positions do, and they are gathered.
// `choose(sort)` sets the pairs.
template <typename Choose>
void sort_by_radix(const Workplace& at, const PackedPairs& pairs, RadixSort sort, const Choose& choose) {
    const Array &keys = pairs.keys, &values = pairs.values;
    const std::int64_t count = keys.size(), value_bytes = values.dtype.size_bytes();
    const bool moves =
        (value_bytes == 4 || value_bytes == 8) &&
        reinterpret_cast<std::uintptr_t>(values.view.data) % static_cast<std::uintptr_t>(value_bytes) == 0;
    // The sort begins in the first buffer and ends in the first or the second one: the result belongs in the arrays.
    const bool in_first = sort.ends_in_first();
    const auto other = [&](const Array& array) {
        return in_first ? empty(array.dtype, array.shape(), *array.device) : clone(array);
    };
    std::optional<CudaMemory> positions;
    if (!moves) positions.emplace(at.device, 2 * 4 * count, /*zeroed=*/false, at.stream);
    const Array other_keys = other(keys), other_values = moves ? other(values) : values;
    auto* const first_positions = positions ? static_cast<std::uint32_t*>(positions->data()) : nullptr;
    RadixSort::Buffers buffers{keys.view.data,
                               other_keys.view.data,
                               moves ? values.view.data : first_positions,
                               moves ? other_values.view.data : first_positions + count,
                               static_cast<int>(moves ? value_bytes : 4),
                               !moves};
    if (!in_first) {
        std::swap(buffers.keys, buffers.other_keys);
        std::swap(buffers.values, buffers.other_values);
    }
    sort.set_buffers(buffers);
    choose(sort);
    const CudaMemory workspace = at.memory(sort.workspace_bytes());
    sort.begin(workspace.data(), at.device, at.stream);
    sort.count_digits();
    sort.sort();
    if (moves) return;
    const Array before = clone(values);
    const devlib::GatherPlan plan{
        sort.plan(), static_cast<const std::uint32_t*>(in_first ? buffers.values : buffers.other_values),
        static_cast<const char*>(before.view.data), static_cast<char*>(values.view.data), value_bytes};
    launch_own(kSortGather, at.device, at.stream,
               static_cast<unsigned>(std::min<std::int64_t>(plan.sort.most_tiles, kMostBlocks)), kSortThreads, &plan);
}

void check_count(std::int64_t count) {
    if (count <= devlib::kMostSorted) return;
    throw UsageError("radix_sort_pairs()",
                     "there are " + std::to_string(count) + " pairs; a CUDA device sorts at most " +
                         std::to_string(devlib::kMostSorted) + ". help: sort parts by the highest bits of the keys",
                     ErrorCategory::value);
}

// The pairs of a plan; without segments so far.
devlib::SegmentsPlan plan_of(const PackedPairs& pairs, const devlib::KeyOrder& order) {
    devlib::SegmentsPlan plan{};
    plan.count = pairs.keys.size();
    plan.keys = static_cast<char*>(pairs.keys.view.data);
    plan.values = static_cast<char*>(pairs.values.view.data);
    plan.value_bytes = pairs.values.dtype.size_bytes();
    plan.order = order;
    plan.key_bytes = static_cast<std::int32_t>(pairs.keys.dtype.size_bytes());
    plan.is_float = info(pairs.keys.dtype.scalar()).is_float();
    return plan;
}

// Segments of the arrays' first `count` pairs.
class SegmentSorter {
public:
    SegmentSorter(const Workplace& at, const Array& keys, const Array& values, const Array& begins, const Array& ends,
                  std::int64_t count)
        : at_(at),
          pairs_(keys, values, count),
          begins_(contiguous(begins)),
          ends_(contiguous(ends)),
          order_(keys.dtype.scalar(), 0, info(keys.dtype.scalar()).bits),
          most_middle_(std::min(begins.size(), count / (devlib::kMostOfWarp + 1))),
          most_large_(std::min(begins.size(), count / (devlib::kMostOfBlock + 1))),
          most_tiles_(most_large_ == 0 ? 0 : count / kSortTile + most_large_),
          memory_(at.memory(kWrongBytes + kCountBytes + 4 * (most_middle_ + 3 * most_large_ + most_tiles_))),
          plan_(plan_of(pairs_, order_.plan().order)) {
        auto* const wrong = static_cast<std::int64_t*>(memory_.data());
        auto* const counts = reinterpret_cast<std::uint32_t*>(wrong + kWrongWords);
        plan_.begins = static_cast<const std::int32_t*>(begins_.view.data);
        plan_.ends = static_cast<const std::int32_t*>(ends_.view.data);
        plan_.segments = begins_.size();
        plan_.wrong = wrong;
        plan_.counts = counts;
        plan_.middle = counts + devlib::kSegmentCounts;
        plan_.large = reinterpret_cast<devlib::SortSegment*>(plan_.middle + most_middle_);
        plan_.owners = plan_.middle + most_middle_ + 3 * most_large_;
        at_.device.clear(memory_.data(), kWrongBytes + kCountBytes, at_.stream);
        launch_own(kSegmentsList, at_.device, at_.stream, plan_.segments, plan_);
    }

    // The head of the lists.
    struct Found {
        std::int64_t wrong[kWrongWords];
        std::uint32_t counts[devlib::kSegmentCounts];
    };
    static void check(const Found& found, std::int64_t count) {
        if (found.wrong[0] != 0) check_segment(found.wrong[0] - 1, {found.wrong[1], found.wrong[2]}, count);
    }
    const void* found() const { return memory_.data(); }
    // Fits the launches to the lists; else they are for all segments that there could be.
    void fit(const Found& found) {
        most_middle_ = found.counts[devlib::kMiddleSegments];
        most_large_ = found.counts[devlib::kLargeSegments];
        most_tiles_ = found.counts[devlib::kLargeTiles];
    }

    void sort() const {
        const bool is_wide = plan_.key_bytes == 8;
        launch_own(kSegmentsShort[is_wide], at_.device, at_.stream, plan_.segments * devlib::kWarp, plan_);
        if (most_middle_ > 0)
            launch_own(kSegmentsMiddle[is_wide], at_.device, at_.stream,
                       static_cast<unsigned>(std::min(most_middle_, kMostBlocks)), kSortThreads, &plan_);
        if (most_large_ > 0)
            sort_by_radix(at_, pairs_, order_, [&](RadixSort& sort) {
                sort.set_segments({plan_.large, plan_.owners, plan_.counts, most_large_, most_tiles_});
            });
        pairs_.copy_back();
    }

private:
    static constexpr std::int64_t kWrongBytes = 8 * kWrongWords, kCountBytes = 4 * devlib::kSegmentCounts;
    static_assert(sizeof(Found) == kWrongBytes + kCountBytes && sizeof(devlib::SortSegment) == 3 * 4);

    const Workplace& at_;
    PackedPairs pairs_;
    Array begins_, ends_;
    RadixSort order_;
    std::int64_t most_middle_, most_large_, most_tiles_;
    CudaMemory memory_;
    devlib::SegmentsPlan plan_;
};

}  // namespace

void CudaPrimitives::sort_pairs(const Array& keys, const Array& values, std::int64_t count, int begin_bit,
                                int end_bit) {
    if (count < 2 || begin_bit == end_bit) return;
    check_count(count);
    const Workplace at(keys);
    const PackedPairs pairs(keys, values, count);
    const RadixSort sort(keys.dtype.scalar(), begin_bit, end_bit);
    const int bits = info(keys.dtype.scalar()).bits;
    if (count <= devlib::kMostOfBlock && end_bit - begin_bit == bits) {
        const devlib::SegmentsPlan plan = plan_of(pairs, sort.plan().order);
        launch_own(kSegmentsMiddle[bits == 64], at.device, at.stream, 1, kSortThreads, &plan);
    } else {
        sort_by_radix(at, pairs, sort, [&](RadixSort& chosen) { chosen.set_count(count); });
    }
    pairs.copy_back();
}

void CudaPrimitives::sort_segments(const Array& keys, const Array& values, const Array& begins, const Array& ends,
                                   std::int64_t count) {
    if (begins.size() == 0) return;
    check_count(count);
    const Workplace at(keys);
    SegmentSorter sorter(at, keys, values, begins, ends, count);
    using Found = SegmentSorter::Found;
    if (CudaRecording* const recording = cuda_recording(at.stream)) {
        recording->add_check("check of segments", recording->leave_bytes(sorter.found(), sizeof(Found), at.stream),
                             [count](const std::byte* bytes) {
                                 Found found;
                                 std::memcpy(&found, bytes, sizeof found);
                                 SegmentSorter::check(found, count);
                             });
    } else {
        Found found;
        static_cast<CudaStream&>(at.stream).read(&found, sorter.found(), sizeof found);
        SegmentSorter::check(found, count);
        sorter.fit(found);
    }
    sorter.sort();
}

}  // namespace weft::runtime
