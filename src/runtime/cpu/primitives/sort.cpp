// Sorting pairs: a radix sort from the lowest byte up, which keeps the order of equal keys.
//
//   1. Keys become unsigned numbers of the same order:  u -> u,  i -> i with its sign flipped,
//      f -> bits with the sign flipped; all bits flipped if it is negative.
//   2. For each byte that differs among keys: each chunk counts the byte's values; prefix sums of the counts give the
//      place of each value of each chunk; all chunks write concurrently.
//   3. The numbers become keys again.
//
// Step 3 would lose the sign of -0 (which has to equal 0) and the payload of NaNs. If such keys occur, only some bits
// decide, or values do not have 4 or 8 bytes, positions are sorted along with the keys, and keys and values are then
// gathered by them.
//
// Source: Knuth, The Art of Computer Programming 3, section 5.2.5; Herf, "Radix Tricks" (2001), for the floats.
#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/array_copies.h"
#include "runtime/cpu/device.h"
#include "runtime/cpu/primitives.h"
#include "runtime/cpu/primitives/numbers.h"
#include "runtime/cpu/primitives/radix_sort.h"

namespace weft::runtime {
namespace {

constexpr std::int64_t kInsertion = 32;   // up to here, insertion sort is faster
constexpr std::int64_t kChunk = 1 << 15;  // keys that are worth another thread

template <std::size_t kBytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
    using type = std::uint8_t;
};
template <>
struct UnsignedOf<2> {
    using type = std::uint16_t;
};
template <>
struct UnsignedOf<4> {
    using type = std::uint32_t;
};
template <>
struct UnsignedOf<8> {
    using type = std::uint64_t;
};

// ---- keys as unsigned numbers ----

// `T` is the type of the key.
template <typename T>
struct Code {
    using Bits = typename UnsignedOf<sizeof(T)>::type;
    static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
    static constexpr bool kIsSigned = !kIsReal<T> && std::is_signed_v<T>;
    // Of a float: the greatest bit pattern that is no NaN.
    static constexpr Bits last_number() {
        if constexpr (kIsSmallFloat<T>)
            return static_cast<Bits>(T::format.has_infinity ? T::format.overflow() : T::format.largest());
        if constexpr (std::is_same_v<T, float>) return static_cast<Bits>(0x7F800000);
        return static_cast<Bits>(0x7FF0000000000000);
    }

    // -0 and NaNs, which decode() would not restore.
    static bool is_special(Bits bits) {
        if constexpr (kIsReal<T>) return bits == kSign || static_cast<Bits>(bits & ~kSign) > last_number();
        return false;
    }
    static Bits encode(Bits bits) {
        if constexpr (kIsReal<T>) {
            if (bits == kSign) bits = 0;
            if (static_cast<Bits>(bits & ~kSign) > last_number()) return static_cast<Bits>(~Bits{0});
        }
        return encode_bits(bits);
    }
    // With -0 below 0, and NaNs beyond the infinity of their sign.
    static Bits encode_bits(Bits bits) {
        if constexpr (kIsReal<T>) return static_cast<Bits>(bits & kSign ? ~bits : bits | kSign);
        return kIsSigned ? bits ^ kSign : bits;
    }
    static Bits decode(Bits code) {
        if constexpr (kIsReal<T>) return static_cast<Bits>(code & kSign ? code & ~kSign : ~code);
        return kIsSigned ? code ^ kSign : code;
    }
};

// ---- sorting ----

template <typename Key, typename Payload>
void insertion_sort(Key* keys, Payload* payload, std::int64_t count) {
    for (std::int64_t i = 1; i < count; ++i) {
        Key key = keys[i];
        Payload carried = payload[i];
        std::int64_t at = i;
        for (; at > 0 && keys[at - 1] > key; --at) {
            keys[at] = keys[at - 1];
            payload[at] = payload[at - 1];
        }
        keys[at] = key;
        payload[at] = carried;
    }
}

// ---- a range of an array ----

// The bits of a key's code that decide.
struct BitRange {
    int begin, end;
};

template <typename T>
class Sorter {
    using Bits = typename Code<T>::Bits;

public:
    // Precondition: both are contiguous and one-dimensional.
    Sorter(const Array& keys, const Array& values, BitRange bits)
        : bits_(bits),
          keys_(static_cast<Bits*>(keys.view.data)),
          values_(static_cast<std::byte*>(values.view.data)),
          value_bytes_(values.dtype.size_bytes()) {}

    void sort(std::int64_t begin, std::int64_t end, bool parallel) const {
        std::int64_t count = end - begin;
        if (count < 2) return;
        std::int64_t chunks = parallel ? std::clamp<std::int64_t>(count / kChunk, 1, cpu_threads()) : 1;
        std::unique_ptr<Bits[]> codes(new Bits[static_cast<std::size_t>(2 * count)]);
        std::atomic<bool> special{false};
        std::atomic<Bits> varying{0};
        const bool by_all_bits = bits_.begin == 0 && bits_.end == static_cast<int>(8 * sizeof(Bits));
        const auto encode = [&](Bits bits) {
            if (by_all_bits) return Code<T>::encode(bits);
            const std::uint64_t mask = (std::uint64_t{1} << (bits_.end - bits_.begin)) - 1;
            return static_cast<Bits>(Code<T>::encode_bits(bits) >> bits_.begin & mask);
        };
        const Bits first = encode(keys_[begin]);
        for_each_block(chunks, kChunk, [&](std::int64_t chunk) {
            bool found = !by_all_bits;
            Bits differing = 0;
            for (std::int64_t i = count * chunk / chunks; i < count * (chunk + 1) / chunks; ++i) {
                Bits bits = keys_[begin + i];
                found |= Code<T>::is_special(bits);
                Bits code = encode(bits);
                codes[static_cast<std::size_t>(i)] = code;
                differing |= code ^ first;
            }
            if (found) special = true;
            varying |= differing;
        });
        Plan plan{begin, count, chunks, codes.get(), varying};
        if (!special && value_bytes_ == 4) return move<std::uint32_t>(plan);
        if (!special && value_bytes_ == 8) return move<std::uint64_t>(plan);
        gather(plan);
    }

private:
    struct Plan {
        std::int64_t begin, count, chunks;
        Bits* codes;  // followed by scratch of the same size
        Bits varying;
    };

    template <typename Payload>
    static void run(const Plan& plan, Payload* payload) {
        if (plan.count <= kInsertion) return insertion_sort(plan.codes, payload, plan.count);
        radix_sort(plan.codes, payload, plan.codes + plan.count, payload + plan.count, plan.count, plan.varying,
                   plan.chunks);
    }

    // Sorts the values along with the keys.
    template <typename Value>
    void move(const Plan& plan) const {
        std::unique_ptr<Value[]> payload(new Value[static_cast<std::size_t>(2 * plan.count)]);
        std::byte* values = values_ + plan.begin * value_bytes_;
        auto bytes = static_cast<std::size_t>(plan.count * value_bytes_);
        std::memcpy(payload.get(), values, bytes);
        run(plan, payload.get());
        std::memcpy(values, payload.get(), bytes);
        for (std::int64_t i = 0; i < plan.count; ++i) keys_[plan.begin + i] = Code<T>::decode(plan.codes[i]);
    }

    // Sorts positions along with the keys, then gathers.
    void gather(const Plan& plan) const {
        auto size = static_cast<std::size_t>(plan.count);
        std::unique_ptr<std::int64_t[]> from(new std::int64_t[2 * size]);
        std::iota(from.get(), from.get() + size, std::int64_t{0});
        run(plan, from.get());
        Bits* keys = keys_ + plan.begin;
        std::byte* values = values_ + plan.begin * value_bytes_;
        std::vector<Bits> old_keys(keys, keys + size);
        std::vector<std::byte> old_values(values, values + plan.count * value_bytes_);
        auto value_bytes = static_cast<std::size_t>(value_bytes_);
        for (std::size_t i = 0; i < size; ++i) {
            auto source = static_cast<std::size_t>(from[i]);
            keys[i] = old_keys[source];
            std::memcpy(values + i * value_bytes, old_values.data() + source * value_bytes, value_bytes);
        }
    }

    BitRange bits_;
    Bits* keys_;
    std::byte* values_;
    std::int64_t value_bytes_;
};

// Calls sort(Sorter) on contiguous memory with the elements [0, count), and copies the result back to arrays with gaps.
template <typename Sort>
void with_sorter(const Array& keys, const Array& values, std::int64_t count, BitRange bits, const Sort& sort) {
    Array key_part = slice(keys, 0, 0, count, 1), value_part = slice(values, 0, 0, count, 1);
    Array packed_keys = contiguous(key_part), packed_values = contiguous(value_part);
    visit_scalar(keys.dtype.scalar(),
                 [&](auto number) { sort(Sorter<decltype(number)>(packed_keys, packed_values, bits)); });
    if (!key_part.is_contiguous()) copy(key_part, packed_keys);
    if (!value_part.is_contiguous()) copy(value_part, packed_values);
}

}  // namespace

void CpuPrimitives::sort_pairs(const Array& keys, const Array& values, std::int64_t count, int begin_bit, int end_bit) {
    const CpuDevice::Access access(*keys.device);
    if (count < 2 || begin_bit == end_bit) return;
    with_sorter(keys, values, count, {begin_bit, end_bit}, [&](const auto& sorter) { sorter.sort(0, count, true); });
}

void CpuPrimitives::sort_segments(const Array& keys, const Array& values, const Array& begins, const Array& ends,
                                  std::int64_t pairs) {
    const CpuDevice::Access access(*keys.device);
    const Array first = contiguous(begins), last = contiguous(ends);
    const auto* const from = static_cast<const std::int32_t*>(first.view.data);
    const auto* const to = static_cast<const std::int32_t*>(last.view.data);
    std::vector<Segment> segments(static_cast<std::size_t>(first.size()));
    for (std::size_t i = 0; i < segments.size(); ++i) {
        segments[i] = {from[i], to[i]};
        check_segment(static_cast<std::int64_t>(i), segments[i], pairs);
    }
    std::int64_t end = 0, longest = 0, total = 0;
    for (const Segment& segment : segments) {
        end = std::max(end, segment.end);
        longest = std::max(longest, segment.end - segment.begin);
        total += std::max<std::int64_t>(0, segment.end - segment.begin);
    }
    if (longest < 2) return;
    // All threads share each long segment, one after the other; many short ones are distributed among threads.
    bool inside = longest > std::max(kChunk, total / 8);
    auto count = static_cast<std::int64_t>(segments.size());
    with_sorter(keys, values, end, {0, info(keys.dtype.scalar()).bits}, [&](const auto& sorter) {
        auto one = [&](std::int64_t i) {
            const Segment& segment = segments[static_cast<std::size_t>(i)];
            sorter.sort(segment.begin, segment.end, inside);
        };
        if (inside) {
            for (std::int64_t i = 0; i < count; ++i) one(i);
        } else {
            for_each_block(count, 8 * (total / count + 1), one);
        }
    });
}

}  // namespace weft::runtime
