// Splits of a range of items in two: the part in which the methods of topology.h differ.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/spatial/build_item.h"
#include "runtime/spatial/tree_buffer.h"

namespace weft::runtime::spatial {

// Three numbers and a padding, so that an item's corner is one load. (GCC and clang have this extension.)
template <typename T>
struct FourOf {
    typedef T Type __attribute__((vector_size(4 * sizeof(T))));
};
template <typename T>
using Four = typename FourOf<T>::Type;

template <typename T>
struct Box {
    Four<T> lower, upper;

    static Box empty();
    T centre(int axis) const { return lower[axis] + upper[axis]; }  // twice the centre
    T half_area() const;
    void add(const Box& other) {
        lower = other.lower < lower ? other.lower : lower;
        upper = other.upper > upper ? other.upper : upper;
    }
};

template <typename T>
struct Range {
    std::int32_t begin = 0, end = 0;
    std::int32_t depth = 0;
    std::int32_t side = 0;  // index of the splitter's list that has the items
    T weight = 0;           // the range with the largest weight is split first
    Box<T> bounds, centres;

    std::int32_t count() const { return end - begin; }
};

template <typename T>
class Splitter {
public:
    Splitter(TreeBuffer<BuildItem<T>> items, const TreeOptions& options);

    std::int32_t count() const { return count_; }
    std::int32_t leaf_size() const { return leaf_size_; }
    // Larger ranges are split by all threads together; smaller ones can be split concurrently.
    std::int32_t part_size() const { return part_size_; }
    Range<T> everything();
    // Sorts the items by group, and returns the range of each group.
    std::vector<Range<T>> group_ranges(std::vector<std::int32_t>& groups);
    // Axis of the largest extent of the centres of the chosen ranges.
    int longest_axis(const std::vector<Range<T>>& ranges, std::span<const std::int32_t> chosen) const;

    // Precondition: more than one item.
    void split(const Range<T>& range, Range<T>& first, Range<T>& second);

    std::int32_t item(const Range<T>& range, std::int32_t at) const { return lists_[range.side][at].item; }

private:
    void measure(Range<T>& range) const;
    void sort_along_curve(const Range<T>& range);
    bool split_by_bins(const Range<T>& range, Range<T>& first, Range<T>& second);
    void split_in_halves(const Range<T>& range, Range<T>& first, Range<T>& second);
    void split_along_curve(const Range<T>& range, Range<T>& first, Range<T>& second) const;
    BuildItem<T>* items(const Range<T>& range) { return lists_[range.side].data(); }

    std::int32_t count_, leaf_size_, part_size_;
    TreeMethod method_;
    TreeBuffer<BuildItem<T>> lists_[2];  // the second exists only while large ranges are split
    std::vector<std::uint64_t> codes_;   // of the items; used by splits along the curve
};

}  // namespace weft::runtime::spatial
