#include "runtime/cuda/radix_sort.h"

#include <algorithm>
#include <bit>

#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda_kernels.h"

namespace weft::runtime {

namespace {

using devlib::kDigits, devlib::kSortThreads, devlib::kSortTile;

constexpr OwnKernel kSteps{k_sort_ptx, "weft_sort_steps"};

struct KernelsOfKey {
    OwnKernel digits, pass_4, pass_8;
};
#define WEFT_KERNELS(bits, type)                                         \
    {                                                                    \
        {k_radix_sort_##bits##_ptx, "weft_sort_digits_" #type #bits},    \
        {k_radix_sort_##bits##_ptx, "weft_sort_pass_" #type #bits "_4"}, \
        {k_radix_sort_##bits##_ptx, "weft_sort_pass_" #type #bits "_8"}, \
    }
// By the logarithm of the bytes, integers before floats.
constexpr KernelsOfKey kKernels[] = {
    WEFT_KERNELS(8, u),  WEFT_KERNELS(8, f),  WEFT_KERNELS(16, u), WEFT_KERNELS(16, f),
    WEFT_KERNELS(32, u), WEFT_KERNELS(32, f), WEFT_KERNELS(64, u), WEFT_KERNELS(64, f),
};
#undef WEFT_KERNELS

// Blocks that count: each adds all its digits to those of the others.
constexpr std::int64_t kMostCounting = 1024;

devlib::KeyOrder order_of(const ScalarInfo& key, bool by_all_bits) {
    const std::uint64_t sign = std::uint64_t{1} << (key.bits - 1), all = sign | (sign - 1);
    devlib::KeyOrder order{};
    order.flip = key.is_signed() ? sign : 0;
    order.last = key.is_signed() ? all ^ sign : all;
    order.infinity = all;
    if (!key.is_float() || !by_all_bits) return order;
    order.minus_zero = all ^ sign;
    order.zero = sign;
    const FloatFormat& format = key.format;
    order.infinity = format.has_infinity ? ((std::uint64_t{1} << format.exponent_bits) - 1) << format.fraction_bits
                                         : format.largest();
    return order;
}

}  // namespace

RadixSort::RadixSort(Scalar keys, int begin_bit, int end_bit)
    : kernels_(2 * std::countr_zero(static_cast<unsigned>(info(keys).bytes())) + info(keys).is_float()) {
    plan_.begin_bit = begin_bit;
    plan_.end_bit = end_bit;
    plan_.passes = (end_bit - begin_bit + devlib::kDigitBits - 1) / devlib::kDigitBits;
    plan_.order = order_of(info(keys), begin_bit == 0 && end_bit == info(keys).bits);
}

void RadixSort::set_buffers(const Buffers& buffers) {
    plan_.keys = buffers.keys;
    plan_.other_keys = buffers.other_keys;
    plan_.values = buffers.values;
    plan_.other_values = buffers.other_values;
    plan_.makes_positions = buffers.makes_positions;
    value_bytes_ = buffers.value_bytes;
}

void RadixSort::set_count(std::int64_t count) {
    plan_.only = {0, static_cast<std::uint32_t>(count), 0};
    plan_.most_segments = 1;
    plan_.most_tiles = static_cast<std::uint32_t>((count + kSortTile - 1) / kSortTile);
}

void RadixSort::set_segments(const Segments& segments) {
    plan_.segments = segments.segments;
    plan_.owners = segments.owners;
    plan_.counts = segments.counts;
    plan_.most_segments = static_cast<std::uint32_t>(segments.most_segments);
    plan_.most_tiles = static_cast<std::uint32_t>(segments.most_tiles);
}

std::int64_t RadixSort::workspace_bytes() const {
    const std::int64_t segment_words = std::int64_t{plan_.most_segments} * (kDigits + 1);
    return 4 * plan_.passes * (1 + segment_words + std::int64_t{plan_.most_tiles} * kDigits);
}

void RadixSort::begin(void* workspace, CudaContext& device, Stream& stream) {
    device_ = &device;
    stream_ = &stream;
    auto* const words = static_cast<std::uint32_t*>(workspace);
    plan_.next_tile = words;
    plan_.digits = words + plan_.passes;
    plan_.progress = plan_.digits + std::int64_t{plan_.passes} * plan_.most_segments * kDigits;
    std::uint32_t* const end = plan_.progress + std::int64_t{plan_.passes} * plan_.most_tiles * kDigits;
    plan_.steps = reinterpret_cast<std::int32_t*>(end);
    device.clear(workspace, 4 * (end - words), stream);
}

unsigned RadixSort::blocks(std::int64_t most) const {
    return static_cast<unsigned>(std::min<std::int64_t>(plan_.most_tiles, most));
}

void RadixSort::count_digits() const {
    launch_own(kKernels[kernels_].digits, *device_, *stream_, blocks(kMostCounting), kSortThreads, &plan_);
}

void RadixSort::sort() {
    launch_own(kSteps, *device_, *stream_, std::min<unsigned>(plan_.most_segments, 1 << 16), kSortThreads, &plan_);
    const KernelsOfKey& kernels = kKernels[kernels_];
    const OwnKernel pass = value_bytes_ == 8 ? kernels.pass_8 : kernels.pass_4;
    const int threads = devlib::sort_threads(1 << kernels_ / 2, value_bytes_, kernels_ % 2 == 1);
    for (plan_.pass = 0; plan_.pass < plan_.passes; ++plan_.pass)
        launch_own(pass, *device_, *stream_, plan_.most_tiles, static_cast<unsigned>(threads), &plan_);
}

}  // namespace weft::runtime
