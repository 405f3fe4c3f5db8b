// Radix sort of unsigned keys with a payload, byte by byte from the lowest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/cpu/primitives/numbers.h"

namespace weft::runtime {

// `varying` has the bits set in which keys differ. The result is in `keys` and `payload`; the other arrays are scratch.
// Each of `chunks` is worth another thread. Equal keys keep their order.
template <typename Key, typename Payload>
void radix_sort(Key* keys, Payload* payload, Key* other_keys, Payload* other_payload, std::int64_t count, Key varying,
                std::int64_t chunks) {
    constexpr int kDigits = 256;
    Key* const result_keys = keys;
    Payload* const result_payload = payload;
    std::vector<std::int64_t> places(static_cast<std::size_t>(chunks * kDigits));
    auto each_chunk = [&](const auto& body) {
        for_each_block(chunks, 1 << 15, [&](std::int64_t chunk) {
            body(&places[static_cast<std::size_t>(chunk * kDigits)], count * chunk / chunks,
                 count * (chunk + 1) / chunks);
        });
    };
    for (unsigned shift = 0; shift < 8 * sizeof(Key); shift += 8) {
        if ((varying >> shift & 0xFF) == 0) continue;
        auto digit = [=](Key key) { return static_cast<unsigned>(key >> shift) & 0xFF; };
        std::fill(places.begin(), places.end(), 0);
        each_chunk([&](std::int64_t* counts, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) ++counts[digit(keys[i])];
        });
        std::int64_t place = 0;
        for (int value = 0; value < kDigits; ++value) {
            for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
                std::int64_t& here = places[static_cast<std::size_t>(chunk * kDigits + value)];
                place += std::exchange(here, place);
            }
        }
        each_chunk([&](std::int64_t* next, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
                std::int64_t to = next[digit(keys[i])]++;
                other_keys[to] = keys[i];
                other_payload[to] = payload[i];
            }
        });
        std::swap(keys, other_keys);
        std::swap(payload, other_payload);
    }
    if (keys == result_keys) return;
    std::copy(keys, keys + count, result_keys);
    std::copy(payload, payload + count, result_payload);
}

}  // namespace weft::runtime
