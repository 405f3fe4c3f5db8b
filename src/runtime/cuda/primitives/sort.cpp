#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "devlib/cuda/primitives.h"
#include "runtime/array_copies.h"
#include "runtime/cuda/capture.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/primitives.h"
#include "runtime/cuda/primitives/workplace.h"
#include "runtime/cuda_kernels.h"

namespace weft::runtime {

namespace {

constexpr OwnKernel kSortBegin{k_sort_ptx, "weft_sort_begin"}, kSortTakeSegments{k_sort_ptx, "weft_sort_take_segments"};
constexpr OwnKernel kSortCount{k_sort_ptx, "weft_sort_count"}, kSortMove{k_sort_ptx, "weft_sort_move"};
constexpr OwnKernel kSortPlaces{k_sort_ptx, "weft_places"}, kSortGather{k_sort_ptx, "weft_sort_gather"};
constexpr OwnKernel kSegmentsBegin{k_sort_ptx, "weft_segments_begin"};
constexpr OwnKernel kSegmentsMark{k_sort_ptx, "weft_segments_mark"};
constexpr std::int64_t kWrongWords = 3;  // of SegmentsPlan::wrong
using devlib::kSortDigits, devlib::kSortWarps;
constexpr unsigned kSortThreads = static_cast<unsigned>(kSortWarps * devlib::kWarp);

// The positions of the elements to sort, if they are not the first ones, and the segment number of each, which is
// below `segment_count`.
struct SegmentSelection {
    const std::int64_t* where = nullptr;
    const std::int64_t* segments = nullptr;
    std::int64_t segment_count = 0;
};

class DeviceSorter {
public:
    DeviceSorter(const Workplace& at, const Array& keys, std::int64_t count, const SegmentSelection& chosen)
        : at_(at),
          codes_(at.memory(2 * 8 * count)),
          order_(at.memory(2 * 8 * count)),
          counts_(at.memory(8 * (kSortDigits * chunks_of(count) + 1))) {
        const auto scalar = keys.dtype.scalar();
        auto* const codes = static_cast<std::uint64_t*>(codes_.data());
        auto* const order = static_cast<std::int64_t*>(order_.data());
        plan_ = {static_cast<const char*>(keys.view.data),
                 keys.dtype.size_bytes(),
                 chosen.where,
                 chosen.segments,
                 codes,
                 codes + count,
                 order,
                 order + count,
                 static_cast<std::int64_t*>(counts_.data()),
                 count,
                 chunks_of(count),
                 static_cast<std::int32_t>(scalar),
                 0};
        launch_own(kSortBegin, at_.device, at_.stream, count, plan_);
        sort_bytes(plan_.key_bytes);
        if (chosen.segments == nullptr) return;
        launch_own(kSortTakeSegments, at_.device, at_.stream, count, plan_);
        std::int64_t bytes = 1;
        while (chosen.segment_count > std::int64_t{1} << (8 * bytes)) ++bytes;
        sort_bytes(bytes);
    }

    // Permutes the elements of a contiguous array into the order of the keys.
    void gather(const Array& array) const {
        const std::int64_t bytes = array.dtype.size_bytes();
        const Array before = clone(array);
        const devlib::GatherPlan plan{static_cast<const char*>(before.view.data),
                                      static_cast<char*>(array.view.data),
                                      plan_.where,
                                      plan_.order,
                                      plan_.count,
                                      bytes};
        launch_own(kSortGather, at_.device, at_.stream, plan_.count, plan);
    }

private:
    static std::int64_t chunks_of(std::int64_t count) { return (count + devlib::kWarpItems - 1) / devlib::kWarpItems; }

    void sort_bytes(std::int64_t bytes) {
        const auto blocks =
            static_cast<unsigned>(std::min<std::int64_t>((plan_.chunks + kSortWarps - 1) / kSortWarps, 1 << 20));
        for (plan_.shift = 0; plan_.shift < 8 * bytes; plan_.shift += 8) {
            launch_own(kSortCount, at_.device, at_.stream, blocks, kSortThreads, &plan_);
            add_up_places(at_, plan_.counts, kSortDigits * plan_.chunks);
            launch_own(kSortMove, at_.device, at_.stream, blocks, kSortThreads, &plan_);
            std::swap(plan_.codes, plan_.other_codes);
            std::swap(plan_.order, plan_.other_order);
        }
    }

    const Workplace& at_;
    CudaMemory codes_, order_, counts_;
    devlib::SortPlan plan_{};
};

// Sorts the chosen among the first `length` elements, and copies the result back to arrays with gaps.
void sort_on_device(const Array& keys, const Array& values, std::int64_t length, std::int64_t count,
                    const SegmentSelection& chosen) {
    const Workplace at(keys);
    const Array key_part = slice(keys, 0, 0, length, 1), value_part = slice(values, 0, 0, length, 1);
    const Array packed_keys = contiguous(key_part), packed_values = contiguous(value_part);
    const DeviceSorter sorter(at, packed_keys, count, chosen);
    sorter.gather(packed_keys);
    sorter.gather(packed_values);
    if (!key_part.is_contiguous()) copy(key_part, packed_keys);
    if (!value_part.is_contiguous()) copy(value_part, packed_values);
}

}  // namespace

void add_up_places(const Workplace& at, std::int64_t* counts, std::int64_t count) {
    const devlib::PlacesPlan plan{counts, count};
    launch_own(kSortPlaces, at.device, at.stream, 1, kOwnThreads, &plan);
}

void CudaPrimitives::sort_pairs(const Array& keys, const Array& values, std::int64_t count) {
    if (count >= 2) sort_on_device(keys, values, count, count, {});
}

void CudaPrimitives::sort_segments(const Array& keys, const Array& values, const std::vector<Segment>& segments) {
    std::vector<std::int64_t> where, numbers;
    std::int64_t end = 0;
    for (std::size_t number = 0; number < segments.size(); ++number) {
        end = std::max(end, segments[number].end);
        for (std::int64_t i = segments[number].begin; i < segments[number].end; ++i) {
            where.push_back(i);
            numbers.push_back(static_cast<std::int64_t>(number));
        }
    }
    const auto count = static_cast<std::int64_t>(where.size());
    if (count < 2) return;
    const Workplace at(keys);
    const CudaMemory memory = at.memory(2 * 8 * count);
    auto* const there = static_cast<std::int64_t*>(memory.data());
    at.device.from_host(there, where.data(), 8 * count, at.stream);
    at.device.from_host(there + count, numbers.data(), 8 * count, at.stream);
    sort_on_device(keys, values, end, count, {there, there + count, static_cast<std::int64_t>(segments.size())});
}

void CudaPrimitives::sort_segments_between(const Array& keys, const Array& values, const Array& begins,
                                           const Array& ends, std::int64_t count) {
    const Workplace at(keys);
    CudaRecording* const recording = cuda_recording(at.stream);
    if (!recording) return Primitives::sort_segments_between(keys, values, begins, ends, count);
    const Array first = contiguous(begins), last = contiguous(ends);
    const CudaMemory memory = at.memory(8 * (count + kWrongWords));
    auto* const wrong = static_cast<std::int64_t*>(memory.data());
    const devlib::SegmentsPlan plan{static_cast<const std::int32_t*>(first.view.data),
                                    static_cast<const std::int32_t*>(last.view.data),
                                    first.size(),
                                    wrong + kWrongWords,
                                    count,
                                    wrong};
    launch_own(kSegmentsBegin, at.device, at.stream, count + 1, plan);
    launch_own(kSegmentsMark, at.device, at.stream, plan.segments * devlib::kWarp, plan);
    recording->add_check("check of segments", recording->leave_bytes(wrong, 8 * kWrongWords, at.stream),
                         [count](const std::byte* bytes) {
                             std::int64_t found[kWrongWords];
                             std::memcpy(found, bytes, sizeof found);
                             if (found[0] != 0) check_segment(found[0] - 1, {found[1], found[2]}, count);
                         });
    // An element without a segment is one of its own, so that it stays in its place.
    if (count >= 2) sort_on_device(keys, values, count, count, {nullptr, plan.of, count});
}

}  // namespace weft::runtime
