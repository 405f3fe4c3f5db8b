// Packed trees (runtime/spatial/packed_topology.h): items in the order of a Hilbert curve, and leaves of them.
#include "devlib/cuda/geometry.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

namespace {

constexpr int kAxisBits = 21;  // of a code, 63 in all

// Integers in the order of the numbers.
UInt64 ordered_bits(double number) {
    const auto bits = __builtin_bit_cast(UInt64, number);
    return bits >> 63 != 0 ? ~bits : bits | UInt64(1) << 63;
}
double from_ordered_bits(UInt64 bits) {
    return __builtin_bit_cast(double, bits >> 63 != 0 ? bits & ~(UInt64(1) << 63) : ~bits);
}

bool is_finite(double number) { return number - number == 0; }

// The centre of an item. False if queries never find it.
template <typename T>
bool find_centre(const BuildPlan& plan, Int64 item, double (&centre)[3]) {
    bool is_found = true;
    if (plan.indices != nullptr) {
        const T* corners[3];
        for (int i = 0; i < 3; ++i)
            corners[i] = static_cast<const T*>(plan.first) + 3 * Int64(plan.indices[3 * item + i]);
        for (int axis = 0; axis < 3; ++axis) {
            double lower = double(corners[0][axis]), upper = lower;
            is_found &= is_finite(lower);
            for (int i = 1; i < 3; ++i) {
                const auto number = double(corners[i][axis]);
                lower = number < lower ? number : lower, upper = upper < number ? number : upper;
                is_found &= is_finite(number);
            }
            centre[axis] = lower / 2 + upper / 2;
        }
    } else {
        for (int axis = 0; axis < 3; ++axis) {
            const auto lower = double(static_cast<const T*>(plan.first)[3 * item + axis]);
            const auto upper = double(static_cast<const T*>(plan.second)[3 * item + axis]);
            is_found &= lower <= upper;
            // Sides of boxes may be infinite.
            const double middle = lower / 2 + upper / 2;
            centre[axis] = is_finite(middle) ? middle : is_finite(lower) ? lower : is_finite(upper) ? upper : 0;
        }
    }
    return is_found;
}

template <typename T>
void find_extents(const BuildPlan& plan) {
    UInt64 least_bits[3] = {~UInt64(0), ~UInt64(0), ~UInt64(0)}, greatest_bits[3] = {0, 0, 0};
    for (std::int64_t item = thread_index(); item < plan.items; item += threads()) {
        double centre[3];
        if (!find_centre<T>(plan, item, centre)) continue;
        for (int axis = 0; axis < 3; ++axis) {
            const UInt64 bits = ordered_bits(centre[axis]);
            least_bits[axis] = bits < least_bits[axis] ? bits : least_bits[axis];
            greatest_bits[axis] = bits > greatest_bits[axis] ? bits : greatest_bits[axis];
        }
    }
    for (int axis = 0; axis < 3; ++axis) {
        for (int half = kWarp / 2; half > 0; half /= 2) {
            const UInt64 less = from_lane_below(least_bits[axis], half, kWarp);
            const UInt64 more = from_lane_below(greatest_bits[axis], half, kWarp);
            least_bits[axis] = less < least_bits[axis] ? less : least_bits[axis];
            greatest_bits[axis] = more > greatest_bits[axis] ? more : greatest_bits[axis];
        }
        if (lane() != 0) continue;
        __scoped_atomic_fetch_min(plan.extents + axis, least_bits[axis], __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
        __scoped_atomic_fetch_max(plan.extents + 3 + axis, greatest_bits[axis], __ATOMIC_RELAXED,
                                  __MEMORY_SCOPE_DEVICE);
    }
}

// Cells of one width divide the extents of all centres: so many along the longest axis.
template <typename Extents>
double cells_by_length(Extents extents, double cells, double (&lower)[3]) {
    double longest = 0;
    for (int axis = 0; axis < 3; ++axis) {
        lower[axis] = from_ordered_bits(extents[axis]);
        const double extent = from_ordered_bits(extents[3 + axis]) - lower[axis];
        longest = extent > longest ? extent : longest;
    }
    return longest > 0 && is_finite(cells / longest) ? cells / longest : 0;
}
UInt32 cell_of(double distance, double scale, double cells) {
    const double at = distance * scale;
    return at < cells - 1 ? UInt32(at) : UInt32(cells - 1);
}

// The position on the curve (J. Skilling, Programming the Hilbert curve, 2004).
UInt64 hilbert_code(UInt32 (&x)[3]) {
    for (UInt32 bit = 1u << (kAxisBits - 1); bit > 1; bit >>= 1) {
        const UInt32 below = bit - 1;
        for (int axis = 0; axis < 3; ++axis) {
            if ((x[axis] & bit) != 0) {
                x[0] ^= below;
            } else {
                const UInt32 swapped = (x[0] ^ x[axis]) & below;
                x[0] ^= swapped, x[axis] ^= swapped;
            }
        }
    }
    x[1] ^= x[0], x[2] ^= x[1];
    UInt32 flipped = 0;
    for (UInt32 bit = 1u << (kAxisBits - 1); bit > 1; bit >>= 1)
        if ((x[2] & bit) != 0) flipped ^= bit - 1;
    UInt64 code = 0;
    for (int bit = kAxisBits - 1; bit >= 0; --bit)
        for (int axis = 0; axis < 3; ++axis) code = code << 1 | ((x[axis] ^ flipped) >> bit & 1);
    return code;
}

// Items that queries never find come last.
template <typename T>
void find_codes(const BuildPlan& plan) {
    constexpr double kCells = UInt32(1) << kAxisBits;
    double lower[3];
    const double scale = cells_by_length(plan.extents, kCells, lower);
    for (std::int64_t item = thread_index(); item < plan.items; item += threads()) {
        double centre[3];
        plan.order[item] = Int32(item);
        plan.codes[item] = ~UInt64(0);
        if (!find_centre<T>(plan, item, centre)) continue;
        UInt32 cell[3];
        for (int axis = 0; axis < 3; ++axis) cell[axis] = cell_of(centre[axis] - lower[axis], scale, kCells);
        plan.codes[item] = hilbert_code(cell);
    }
}

void take_groups(const BuildPlan& plan) {
    for (std::int64_t i = thread_index(); i < plan.items; i += threads())
        plan.sorted_groups[i] = plan.groups[plan.order[i]];
}

// ---- runs ----

// An item of a run: its number in the run in 12 bits, below three coordinates of 10 bits; all ones if there is none.
constexpr int kNumberBits = 12, kCoordinateBits = 10;
static_assert(kRunItems == 1 << kNumberBits);
constexpr UInt64 kNoItem = ~UInt64(0);

UInt32 coordinate(UInt64 item, int axis) {
    return UInt32(item >> (kNumberBits + kCoordinateBits * axis)) & ((1u << kCoordinateBits) - 1);
}
// Orders items along an axis, equal ones by their numbers, and places without an item last.
UInt32 key_along(UInt64 item, int axis) {
    return item == kNoItem ? ~0u : coordinate(item, axis) << kNumberBits | UInt32(item & (kRunItems - 1));
}

#define WEFT_SHARED [[clang::loader_uninitialized]] static __attribute__((address_space(3)))

// Sorts a run along its longest axis, each half along its own, and so on: a curve alone makes long leaves, which rays
// visit half as often again. `items` are `size` of them, a power of two.
using SharedItems = __attribute__((address_space(3))) UInt64*;
void halve_run(SharedItems items, int size) {
    constexpr int kLeast = 2 * kWidth;  // items of a segment
    WEFT_SHARED UInt32 least[3][kRunItems / kLeast], greatest[3][kRunItems / kLeast];
    constexpr int kItems = kRunItems / kRunThreads;  // of a thread, which belong to one segment
    static_assert(kLeast >= kItems);
    const int thread = int(block_thread());
    for (int segment = size; segment >= kLeast; segment /= 2) {
        for (int i = thread; i < size / segment; i += kRunThreads)
            for (int axis = 0; axis < 3; ++axis) least[axis][i] = ~0u, greatest[axis][i] = 0;
        __syncthreads();
        if (thread * kItems < size) {
            const int own = thread * kItems / segment;
            for (int axis = 0; axis < 3; ++axis) {
                UInt32 low = ~0u, high = 0;
                for (int i = 0; i < kItems && thread * kItems + i < size; ++i) {
                    const UInt64 item = items[thread * kItems + i];
                    if (item == kNoItem) continue;
                    const UInt32 at = coordinate(item, axis);
                    low = at < low ? at : low, high = at > high ? at : high;
                }
                if (low > high) continue;
                __scoped_atomic_fetch_min(&least[axis][own], low, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
                __scoped_atomic_fetch_max(&greatest[axis][own], high, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
            }
        }
        __syncthreads();
        // A bitonic sort of each segment (K. E. Batcher, Sorting networks and their applications, 1968).
        for (int width = 2; width <= segment; width *= 2) {
            for (int distance = width / 2; distance > 0; distance /= 2) {
                for (int pair = thread; pair < size / 2; pair += kRunThreads) {
                    const int first = 2 * pair - (pair & (distance - 1)), second = first + distance;
                    const int own = first / segment;
                    int axis = 0;
                    for (int other = 1; other < 3; ++other)
                        if (greatest[other][own] - least[other][own] > greatest[axis][own] - least[axis][own])
                            axis = other;
                    const UInt64 a = items[first], b = items[second];
                    const bool is_up = (first & width) == 0 || width == segment;
                    if ((key_along(a, axis) > key_along(b, axis)) == is_up) items[first] = b, items[second] = a;
                }
                __syncthreads();
            }
        }
    }
}

template <typename T>
void refine_run(const BuildPlan& plan, Int32 begin, Int32 end) {
    WEFT_SHARED UInt64 items[kRunItems];
    WEFT_SHARED UInt64 extents[6];
    const int thread = int(block_thread()), count = end - begin;
    int size = kWidth;
    while (size < count) size *= 2;
    if (thread < 6) extents[thread] = thread < 3 ? ~UInt64(0) : 0;
    __syncthreads();
    for (int i = thread; i < count; i += kRunThreads) {
        double centre[3];
        if (!find_centre<T>(plan, plan.order[begin + i], centre)) continue;
        for (int axis = 0; axis < 3; ++axis) {
            const UInt64 bits = ordered_bits(centre[axis]);
            __scoped_atomic_fetch_min(&extents[axis], bits, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
            __scoped_atomic_fetch_max(&extents[3 + axis], bits, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
        }
    }
    __syncthreads();
    constexpr double kCells = 1 << kCoordinateBits;
    double lower[3];
    const double scale = cells_by_length(extents, kCells, lower);
    for (int i = thread; i < size; i += kRunThreads) {
        double centre[3];
        UInt64 item = kNoItem;
        if (i < count) {
            item = UInt64(i);
            const bool is_found = find_centre<T>(plan, plan.order[begin + i], centre);
            for (int axis = 0; axis < 3; ++axis)
                item |= UInt64(is_found ? cell_of(centre[axis] - lower[axis], scale, kCells) : UInt32(kCells) - 1)
                        << (kNumberBits + kCoordinateBits * axis);
        }
        items[i] = item;
    }
    __syncthreads();
    halve_run(items, size);
    constexpr int kItems = kRunItems / kRunThreads;
    Int32 sorted[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
        const int i = thread + k * kRunThreads;
        sorted[k] = i < count ? plan.order[begin + Int32(items[i] & (kRunItems - 1))] : 0;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kItems; ++k)
        if (thread + k * kRunThreads < count) plan.order[begin + thread + k * kRunThreads] = sorted[k];
    __syncthreads();
}

template <typename T>
void refine_runs(const BuildPlan& plan) {
    for (std::int64_t run = block_index(); run < plan.run_count; run += blocks())
        refine_run<T>(plan, plan.runs[2 * run], plan.runs[2 * run + 1]);
}

template <typename T>
void fill_leaves(const BuildPlan& plan) {
    for (std::int64_t number = thread_index(); number < plan.block_count; number += threads()) {
        const Int32 begin = number == 0 ? 0 : plan.leaf_ends[number - 1], end = plan.leaf_ends[number];
        for (int lane = 0; lane < kWidth; ++lane) {
            const Int32 item = begin + lane < end ? plan.order[begin + lane] : -1;
            if (plan.indices == nullptr) {
                static_cast<BoxBlock<T>*>(plan.blocks)[number].item[lane] = item;
                continue;
            }
            TriangleBlock<T>& block = static_cast<TriangleBlock<T>*>(plan.blocks)[number];
            block.item[lane] = item;
            for (int corner = 0; corner < 3; ++corner) {
                plan.corners[(number * 3 + corner) * kWidth + lane] =
                    item < 0 ? -1 : plan.indices[3 * Int64(item) + corner];
                for (int axis = 0; axis < 3; ++axis) block.corner[corner][axis][lane] = __builtin_nanf("");
            }
        }
    }
}

void check_indices(const CheckPlan& plan) {
    Int64 first = plan.count;
    for (std::int64_t i = thread_index(); i < plan.count; i += threads()) {
        const bool is_wrong = plan.indices[i] < 0 || plan.indices[i] >= plan.points;
        if (is_wrong && i < first) first = i;
    }
    if (first < plan.count) __scoped_atomic_fetch_min(plan.first_wrong, first, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

}  // namespace

extern "C" {

[[clang::device_kernel]] void weft_build_extents_f32(BuildPlan plan) { find_extents<float>(plan); }
[[clang::device_kernel]] void weft_build_extents_f64(BuildPlan plan) { find_extents<double>(plan); }
[[clang::device_kernel]] void weft_build_codes_f32(BuildPlan plan) { find_codes<float>(plan); }
[[clang::device_kernel]] void weft_build_codes_f64(BuildPlan plan) { find_codes<double>(plan); }
[[clang::device_kernel]] void weft_build_groups(BuildPlan plan) { take_groups(plan); }
[[clang::device_kernel]] void weft_build_runs_f32(BuildPlan plan) { refine_runs<float>(plan); }
[[clang::device_kernel]] void weft_build_runs_f64(BuildPlan plan) { refine_runs<double>(plan); }
[[clang::device_kernel]] void weft_build_leaves_f32(BuildPlan plan) { fill_leaves<float>(plan); }
[[clang::device_kernel]] void weft_build_leaves_f64(BuildPlan plan) { fill_leaves<double>(plan); }
[[clang::device_kernel]] void weft_build_check(CheckPlan plan) { check_indices(plan); }

}  // extern "C"

}  // namespace weft::devlib
