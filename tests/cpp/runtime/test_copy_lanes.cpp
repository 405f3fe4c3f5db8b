#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "runtime/cpu/copy_lanes.h"

namespace weft::runtime {
namespace {

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

// Sizes of elements, their distances, and lanes that are on.
constexpr std::int64_t kSizes[][2] = {{1, 1}, {4, 4}, {6, 6}, {12, 12}, {4, 12}, {15, 16}, {64, 64}};
constexpr std::uint64_t kLanes[] = {0, 1, 0x80, 0xff, 0x7f, 0xfe, 0x5a, 0x8000000000000001, ~std::uint64_t{0}};

TEST(CopyLanes, copies_the_lanes_that_are_on_and_nothing_else) {
    for (const auto& [bytes, distance] : kSizes)
        for (const std::uint64_t lanes : kLanes) {
            const auto from = random_bytes(static_cast<std::size_t>(64 * distance), 1);
            auto to = random_bytes(from.size(), 2), expected = to;
            for (std::int64_t lane = 0; lane < 64; ++lane)
                for (std::int64_t at = lane * distance; at < lane * distance + bytes; ++at)
                    if (lanes >> lane & 1) expected[static_cast<std::size_t>(at)] = from[static_cast<std::size_t>(at)];
            copy_lanes(to.data(), from.data(), bytes, distance, lanes);
            EXPECT_EQ(to, expected) << bytes << " bytes every " << distance << ", lanes " << std::hex << lanes;
        }
}

TEST(CopyLanes, gathers_by_index) {
    std::vector<std::int64_t> indices(64);
    for (std::size_t lane = 0; lane < 64; ++lane) indices[lane] = static_cast<std::int64_t>(lane * 37 % 64);
    for (const auto& [bytes, distance] : kSizes)
        for (const std::uint64_t lanes : kLanes) {
            const auto from = random_bytes(static_cast<std::size_t>(64 * distance), 3);
            auto to = random_bytes(from.size(), 4), expected = to;
            for (std::size_t lane = 0; lane < 64; ++lane)
                for (std::int64_t at = 0; at < bytes; ++at)
                    if (lanes >> lane & 1)
                        expected[lane * static_cast<std::size_t>(distance) + static_cast<std::size_t>(at)] =
                            from[static_cast<std::size_t>(indices[lane] * distance + at)];
            gather_lanes(to.data(), from.data(), indices.data(), bytes, distance, lanes);
            EXPECT_EQ(to, expected) << bytes << " bytes every " << distance << ", lanes " << std::hex << lanes;
        }
}

}  // namespace
}  // namespace weft::runtime
