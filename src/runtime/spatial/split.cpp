#include "runtime/spatial/split.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <mutex>
#include <numeric>

#include "runtime/cpu/primitives/radix_sort.h"
#include "runtime/spatial/parallel.h"

namespace weft::runtime::spatial {

namespace {

constexpr int kBins = 16;
constexpr std::int32_t kSplitChunk = 4096;  // items that are worth another thread
// There have to be enough parts for all threads, and each has to be large enough.
constexpr std::int32_t kLeastPart = 2 * kSplitChunk;
constexpr std::int32_t kMostParts = 512;

template <typename T>
struct BitsOf {
    using Type = std::int32_t;
};
template <>
struct BitsOf<double> {
    using Type = std::int64_t;
};
// Four integers of the same size.
template <typename T>
using FourInts = Four<typename BitsOf<T>::Type>;

template <typename T>
Four<T> four(T value) {
    return Four<T>{value, value, value, value};
}
template <typename T>
Four<T> load(const T* from) {
    return *reinterpret_cast<const Four<T>*>(from);
}
// Clears the fourth lane, which holds the field after the corner.
template <typename T>
Four<T> first_three(const Four<T>& value) {
    constexpr FourInts<T> kMask{-1, -1, -1, 0};
    return std::bit_cast<Four<T>>(std::bit_cast<FourInts<T>>(value) & kMask);
}
template <typename T>
Four<T> centre_of(const BuildItem<T>& item) {
    return first_three<T>(load(item.lower)) + first_three<T>(load(item.upper));
}
template <typename T>
void add_point(Box<T>& box, const Four<T>& point) {
    box.add({point, point});
}

// Maps centres to bin numbers.
template <typename T>
struct Binning {
    Four<T> origin, scale;
    Four<T> last;
    int count;

    Binning(const Range<T>& range) : origin(range.centres.lower) {
        count = std::min(kBins, 4 + range.count() / 16);
        const Four<T> extent = range.centres.upper - range.centres.lower;
        for (int axis = 0; axis < 4; ++axis) {
            // Slightly reduced, so that the greatest centre falls into the last bin.
            const T bins = static_cast<T>(count) * (1 - 4 * std::numeric_limits<T>::epsilon());
            scale[axis] = axis < 3 && extent[axis] > std::numeric_limits<T>::min() ? bins / extent[axis] : 0;
        }
        last = four(static_cast<T>(count - 1));
    }
    FourInts<T> operator()(const BuildItem<T>& item) const {
        const Four<T> place = (centre_of(item) - origin) * scale;
        return __builtin_convertvector(place < last ? place : last, FourInts<T>);
    }
};

template <typename T>
struct Bins {
    Box<T> boxes[3][kBins];
    std::int32_t counts[3][kBins];

    explicit Bins(int count) {
        for (int axis = 0; axis < 3; ++axis)
            for (int i = 0; i < count; ++i) boxes[axis][i] = Box<T>::empty(), counts[axis][i] = 0;
    }
    void add(const Binning<T>& binning, const BuildItem<T>* items, std::int32_t count) {
        for (std::int32_t i = 0; i < count; ++i) {
            const FourInts<T> bin = binning(items[i]);
            const Box<T> box{load(items[i].lower), load(items[i].upper)};
            for (int axis = 0; axis < 3; ++axis) {
                boxes[axis][bin[axis]].add(box);
                ++counts[axis][bin[axis]];
            }
        }
    }
    void add(const Bins& other, int count) {
        for (int axis = 0; axis < 3; ++axis)
            for (int i = 0; i < count; ++i) {
                boxes[axis][i].add(other.boxes[axis][i]);
                counts[axis][i] += other.counts[axis][i];
            }
    }
};

// The plane between two bins at which a range is split.
template <typename T>
struct Plane {
    int axis = -1;
    int bin = 0;  // the first bin of the second half
    std::int32_t first_count = 0;
    Box<T> first, second;
};

// The plane with the least cost: for both halves, the area of the box times the least number of leaves.
template <typename T>
Plane<T> cheapest_plane(const Bins<T>& bins, int bin_count, std::int32_t leaf_size) {
    Plane<T> best;
    T least = std::numeric_limits<T>::infinity();
    const auto cost = [&](const Box<T>& box, std::int32_t count) {
        return box.half_area() * static_cast<T>((count + leaf_size - 1) / leaf_size);
    };
    for (int axis = 0; axis < 3; ++axis) {
        T costs[kBins];
        Box<T> boxes[kBins];
        Box<T> box = Box<T>::empty();
        std::int32_t count = 0;
        for (int i = bin_count - 1; i > 0; --i) {
            box.add(bins.boxes[axis][i]);
            count += bins.counts[axis][i];
            boxes[i] = box;
            costs[i] = count > 0 ? cost(box, count) : std::numeric_limits<T>::infinity();
        }
        box = Box<T>::empty();
        count = 0;
        for (int i = 1; i < bin_count; ++i) {
            box.add(bins.boxes[axis][i - 1]);
            count += bins.counts[axis][i - 1];
            if (count == 0) continue;
            const T both = cost(box, count) + costs[i];
            if (both < least) {
                least = both;
                best = {axis, i, count, box, boxes[i]};
            }
        }
    }
    return best;
}

// Spreads the lowest 21 bits: two zeros before each.
std::uint64_t spread(std::uint64_t bits) {
    bits &= 0x1FFFFF;
    bits = (bits | bits << 32) & 0x001F00000000FFFF;
    bits = (bits | bits << 16) & 0x001F0000FF0000FF;
    bits = (bits | bits << 8) & 0x100F00F00F00F00F;
    bits = (bits | bits << 4) & 0x10C30C30C30C30C3;
    return (bits | bits << 2) & 0x1249249249249249;
}

int ceil_log2(std::int32_t count) { return std::bit_width(static_cast<std::uint32_t>(count - 1)); }

}  // namespace

template <typename T>
Box<T> Box<T>::empty() {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    return {four(kInfinity), four(-kInfinity)};
}

template <typename T>
T Box<T>::half_area() const {
    const Four<T> size = upper - lower;
    return size[0] * size[1] + size[1] * size[2] + size[2] * size[0];
}

template <typename T>
Splitter<T>::Splitter(TreeBuffer<BuildItem<T>> items, const TreeOptions& options)
    : count_(static_cast<std::int32_t>(items.size())),
      leaf_size_(std::clamp(options.leaf_size, 1, devlib::kWidth)),
      part_size_(std::max(kLeastPart, count_ / kMostParts)),
      method_(options.method) {
    lists_[0] = std::move(items);
    if (method_ == TreeMethod::sah && count_ > part_size_) lists_[1] = TreeBuffer<BuildItem<T>>(count_);
    if (method_ == TreeMethod::linear) codes_.resize(static_cast<std::size_t>(count_));
}

template <typename T>
Range<T> Splitter<T>::everything() {
    Range<T> range;
    range.end = count_;
    measure(range);
    if (method_ == TreeMethod::linear) sort_along_curve(range);
    return range;
}

template <typename T>
std::vector<Range<T>> Splitter<T>::group_ranges(std::vector<std::int32_t>& groups) {
    std::vector<std::int32_t> order(static_cast<std::size_t>(count_));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](std::int32_t i) { return std::pair(lists_[0][i].group, i); });
    TreeBuffer<BuildItem<T>> sorted(count_);
    for_ranges(count_, kSplitChunk, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) sorted[i] = lists_[0][order[static_cast<std::size_t>(i)]];
    });
    lists_[0] = std::move(sorted);
    std::vector<Range<T>> ranges;
    for (std::int32_t begin = 0; begin < count_;) {
        Range<T> range;
        range.begin = begin;
        const std::int32_t group = lists_[0][begin].group;
        const std::span rest(lists_[0].data() + begin, static_cast<std::size_t>(count_ - begin));
        begin = range.end = begin + static_cast<std::int32_t>(
                                        std::ranges::upper_bound(rest, group, {}, &BuildItem<T>::group) - rest.begin());
        measure(range);
        if (method_ == TreeMethod::linear) sort_along_curve(range);
        ranges.push_back(range);
        groups.push_back(group);
    }
    return ranges;
}

template <typename T>
int Splitter<T>::longest_axis(const std::vector<Range<T>>& ranges, std::span<const std::int32_t> chosen) const {
    Box<T> centres = Box<T>::empty();
    for (const std::int32_t i : chosen) {
        const Box<T>& bounds = ranges[static_cast<std::size_t>(i)].bounds;
        add_point<T>(centres, bounds.lower + bounds.upper);
    }
    const Four<T> size = centres.upper - centres.lower;
    int axis = size[1] > size[0] ? 1 : 0;
    return size[2] > size[axis] ? 2 : axis;
}

// Computes the boxes of a range, and its weight.
template <typename T>
void Splitter<T>::measure(Range<T>& range) const {
    const BuildItem<T>* const list = lists_[range.side].data() + range.begin;
    range.bounds = range.centres = Box<T>::empty();
    std::mutex mutex;
    for_ranges(range.count(), range.count() > part_size_ ? kSplitChunk : part_size_,
               [&](std::int64_t begin, std::int64_t end) {
                   Box<T> bounds = Box<T>::empty(), centres = Box<T>::empty();
                   for (std::int64_t i = begin; i < end; ++i) {
                       bounds.add({load(list[i].lower), load(list[i].upper)});
                       add_point(centres, centre_of(list[i]));
                   }
                   const std::lock_guard lock(mutex);
                   range.bounds.add(bounds);
                   range.centres.add(centres);
               });
    range.weight = method_ == TreeMethod::sah ? range.bounds.half_area() : static_cast<T>(range.count());
}

template <typename T>
void Splitter<T>::sort_along_curve(const Range<T>& range) {
    const auto count = static_cast<std::size_t>(range.count());
    BuildItem<T>* const list = items(range) + range.begin;
    std::vector<std::uint64_t> codes(count), other_codes(count);
    std::vector<std::int32_t> order(count), other_order(count);
    Four<T> scale;
    const Four<T> size = range.centres.upper - range.centres.lower;
    for (int axis = 0; axis < 4; ++axis)
        scale[axis] =
            axis < 3 && size[axis] > std::numeric_limits<T>::min() ? static_cast<T>(0x1FFFFF) / size[axis] : 0;
    for_ranges(range.count(), kSplitChunk, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const Four<T> place = (centre_of(list[i]) - range.centres.lower) * scale;
            std::uint64_t code = 0;
            for (int axis = 0; axis < 3; ++axis)
                code |= spread(static_cast<std::uint64_t>(std::min<T>(place[axis], 0x1FFFFF))) << axis;
            codes[static_cast<std::size_t>(i)] = code;
            order[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i);
        }
    });
    radix_sort<std::uint64_t, std::int32_t>(codes.data(), order.data(), other_codes.data(), other_order.data(),
                                            range.count(), ~std::uint64_t{0} >> 1,
                                            std::clamp(range.count() / (1 << 15), 1, cpu_threads()));
    TreeBuffer<BuildItem<T>> sorted(range.count());
    for_ranges(range.count(), kSplitChunk, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) sorted[i] = list[order[static_cast<std::size_t>(i)]];
    });
    std::copy_n(sorted.data(), range.count(), list);
    std::ranges::copy(codes, codes_.begin() + range.begin);
}

template <typename T>
void Splitter<T>::split(const Range<T>& range, Range<T>& first, Range<T>& second) {
    first = second = range;
    first.depth = second.depth = range.depth + 1;
    // Halves need ceil_log2(count) levels; the method may choose while more levels are left.
    const bool is_deep = range.depth + ceil_log2(range.count()) >= devlib::kMostLevels - 1;
    if (method_ == TreeMethod::linear) {
        split_along_curve(range, first, second);
        if (is_deep) first.end = second.begin = range.begin + range.count() / 2;
        first.weight = static_cast<T>(first.count());
        second.weight = static_cast<T>(second.count());
    } else if (method_ == TreeMethod::median || is_deep || !split_by_bins(range, first, second)) {
        split_in_halves(range, first, second);
    }
}

template <typename T>
bool Splitter<T>::split_by_bins(const Range<T>& range, Range<T>& first, Range<T>& second) {
    const Binning<T> binning(range);
    Bins<T> bins(binning.count);
    BuildItem<T>* const list = items(range) + range.begin;
    const bool in_parallel = range.count() > part_size_;
    if (in_parallel) {
        std::mutex mutex;
        for_ranges(range.count(), kSplitChunk, [&](std::int64_t begin, std::int64_t end) {
            Bins<T> part(binning.count);
            part.add(binning, list + begin, static_cast<std::int32_t>(end - begin));
            const std::lock_guard lock(mutex);
            bins.add(part, binning.count);
        });
    } else {
        bins.add(binning, list, range.count());
    }
    const Plane<T> plane = cheapest_plane(bins, binning.count, leaf_size_);
    if (plane.axis < 0) return false;

    first.end = second.begin = range.begin + plane.first_count;
    first.bounds = plane.first, second.bounds = plane.second;
    first.weight = plane.first.half_area(), second.weight = plane.second.half_area();
    first.centres = second.centres = Box<T>::empty();
    const auto is_first = [&](const BuildItem<T>& item) { return binning(item)[plane.axis] < plane.bin; };
    if (!in_parallel) {
        Box<T> first_centres = Box<T>::empty(), second_centres = Box<T>::empty();
        BuildItem<T>*left = list, *right = list + range.count() - 1;
        while (true) {
            for (; left <= right && is_first(*left); ++left) add_point(first_centres, centre_of(*left));
            for (; left <= right && !is_first(*right); --right) add_point(second_centres, centre_of(*right));
            if (left > right) break;
            std::swap(*left, *right);
        }
        first.centres = first_centres, second.centres = second_centres;
        return true;
    }
    // Partitions into the other list: prefix sums give each chunk of items the places of its first and second halves.
    first.side = second.side = 1 - range.side;
    BuildItem<T>* const to = items(first) + range.begin;
    const std::int32_t chunks = (range.count() + kSplitChunk - 1) / kSplitChunk;
    std::vector<std::int32_t> places(static_cast<std::size_t>(chunks));
    const auto chunk_end = [&](std::int64_t chunk) {
        return static_cast<std::int32_t>(std::min<std::int64_t>(range.count(), (chunk + 1) * kSplitChunk));
    };
    for_ranges(chunks, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t chunk = begin; chunk < end; ++chunk) {
            std::int32_t count = 0;
            for (auto i = static_cast<std::int32_t>(chunk * kSplitChunk); i < chunk_end(chunk); ++i)
                count += is_first(list[i]);
            places[static_cast<std::size_t>(chunk)] = count;
        }
    });
    std::exclusive_scan(places.begin(), places.end(), places.begin(), std::int32_t{0});
    std::mutex mutex;
    for_ranges(chunks, 1, [&](std::int64_t begin, std::int64_t end) {
        Box<T> first_centres = Box<T>::empty(), second_centres = Box<T>::empty();
        for (std::int64_t chunk = begin; chunk < end; ++chunk) {
            std::int32_t left = places[static_cast<std::size_t>(chunk)];
            std::int32_t right = plane.first_count + static_cast<std::int32_t>(chunk * kSplitChunk) - left;
            for (auto i = static_cast<std::int32_t>(chunk * kSplitChunk); i < chunk_end(chunk); ++i) {
                const bool goes_left = is_first(list[i]);
                add_point(goes_left ? first_centres : second_centres, centre_of(list[i]));
                to[goes_left ? left++ : right++] = list[i];
            }
        }
        const std::lock_guard lock(mutex);
        first.centres.add(first_centres);
        second.centres.add(second_centres);
    });
    return true;
}

// By the centres along the longest axis. The result is deterministic even if many centres are equal.
template <typename T>
void Splitter<T>::split_in_halves(const Range<T>& range, Range<T>& first, Range<T>& second) {
    const Four<T> size = range.centres.upper - range.centres.lower;
    int axis = size[1] > size[0] ? 1 : 0;
    if (size[2] > size[axis]) axis = 2;
    BuildItem<T>* const list = items(range);
    first.end = second.begin = range.begin + range.count() / 2;
    std::nth_element(list + range.begin, list + first.end, list + range.end,
                     [axis](const BuildItem<T>& a, const BuildItem<T>& b) {
                         const T centre_a = a.lower[axis] + a.upper[axis], centre_b = b.lower[axis] + b.upper[axis];
                         return centre_a != centre_b ? centre_a < centre_b : a.item < b.item;
                     });
    measure(first);
    measure(second);
}

template <typename T>
void Splitter<T>::split_along_curve(const Range<T>& range, Range<T>& first, Range<T>& second) const {
    const auto begin = codes_.begin() + range.begin, end = codes_.begin() + range.end;
    first.end = second.begin = range.begin + range.count() / 2;
    const std::uint64_t differing = *begin ^ *(end - 1);
    if (differing == 0) return;
    // The first code that has the highest differing bit set.
    const std::uint64_t bit = std::bit_floor(differing), boundary = (*begin | (bit - 1)) + 1;
    first.end = second.begin = static_cast<std::int32_t>(std::lower_bound(begin, end, boundary) - codes_.begin());
}

template struct Box<float>;
template struct Box<double>;
template class Splitter<float>;
template class Splitter<double>;

}  // namespace weft::runtime::spatial
