// Run-length encoding, in two passes over blocks. Each block counts the runs that begin in it; prefix sums give its
// place in the output; each block then writes the values and starts of its runs. Lengths are differences of starts.
#include <algorithm>
#include <limits>

#include "runtime/array_copies.h"
#include "runtime/cpu/device.h"
#include "runtime/cpu/primitives.h"
#include "runtime/cpu/primitives/numbers.h"

namespace weft::runtime {
namespace {

constexpr std::int64_t kBlockValues = 1 << 15;

template <typename T>
bool equal(T a, T b) {
    if constexpr (kIsReal<T>) {
        return static_cast<double>(a) == static_cast<double>(b);
    } else {
        return a == b;
    }
}

template <typename T>
std::int64_t encode(const T* values, std::int64_t count, const Array& run_values, const Array& run_lengths) {
    std::int64_t blocks = (count + kBlockValues - 1) / kBlockValues;
    std::vector<std::int64_t> places(static_cast<std::size_t>(blocks + 1), 0);
    auto begins = [&](std::int64_t i) { return i == 0 || !equal(values[i], values[i - 1]); };
    auto end_of = [&](std::int64_t block) { return std::min(count, (block + 1) * kBlockValues); };
    for_each_block(blocks, kBlockValues, [&](std::int64_t block) {
        std::int64_t found = 0;
        for (std::int64_t i = block * kBlockValues; i < end_of(block); ++i) found += begins(i);
        places[static_cast<std::size_t>(block + 1)] = found;
    });
    for (std::size_t block = 1; block < places.size(); ++block) places[block] += places[block - 1];
    std::int64_t runs = places.back();
    check_room_for_runs(run_values.size(), runs, "run_values");
    check_room_for_runs(run_lengths.size(), runs, "run_lengths");
    std::vector<std::int64_t> starts(static_cast<std::size_t>(runs + 1), count);
    auto* found = static_cast<std::byte*>(run_values.view.data);
    for_each_block(blocks, kBlockValues, [&](std::int64_t block) {
        std::int64_t place = places[static_cast<std::size_t>(block)];
        for (std::int64_t i = block * kBlockValues; i < end_of(block); ++i) {
            if (!begins(i)) continue;
            std::memcpy(found + place * run_values.view.strides[0], &values[i], sizeof(T));
            starts[static_cast<std::size_t>(place++)] = i;
        }
    });
    for (std::size_t run = 0; run + 1 < starts.size(); ++run) {
        std::int64_t length = starts[run + 1] - starts[run];
        if (length > std::numeric_limits<std::int32_t>::max()) throw_long_run(starts[run], length);
    }
    auto* lengths = static_cast<std::byte*>(run_lengths.view.data);
    for_each_block(runs, 1, [&](std::int64_t run) {
        std::int64_t length = starts[static_cast<std::size_t>(run + 1)] - starts[static_cast<std::size_t>(run)];
        auto narrow = static_cast<std::int32_t>(length);
        std::memcpy(lengths + run * run_lengths.view.strides[0], &narrow, sizeof narrow);
    });
    return runs;
}

}  // namespace

std::int64_t CpuPrimitives::encode_runs(const Array& values, std::int64_t count, const Array& run_values,
                                        const Array& run_lengths) {
    const CpuDevice::Access access(*values.device);
    if (count == 0) return 0;
    Array part = slice(values, 0, 0, count, 1);
    Array packed = overlap(part, run_values) || overlap(part, run_lengths) ? clone(part) : contiguous(part);
    return visit_scalar(values.dtype.scalar(), [&](auto number) {
        return encode(static_cast<const decltype(number)*>(packed.view.data), count, run_values, run_lengths);
    });
}

}  // namespace weft::runtime
