// The joint between the wings: what the compiler wing makes and the runtime wing runs. Plain data; the disk cache,
// ahead-of-time files and embedding all carry exactly this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "types/layout.h"

namespace weft {

// 256-bit content hash, as 64 hexadecimal digits in text.
struct Digest {
    std::array<std::uint8_t, 32> bytes{};
    std::string hex() const;
    bool operator==(const Digest&) const = default;
    auto operator<=>(const Digest&) const = default;
};

// A place in the user's kernel that a debug check belongs to.
struct CheckSite {
    std::string path;
    std::int32_t line = 0;
    std::int32_t column = 0;
    std::string text;  // name of the array, or message of the assert
};

struct KernelEntry {
    std::string name;
    std::string symbol;
    std::int32_t tid_rank = 0;
    std::int32_t lanes = 1;
    std::vector<std::string> remarks;  // why it was not vectorised, where it was not
    std::vector<CheckSite> sites;      // debug builds
    // Numbers of the array parameters whose innermost stride this code takes to be the size of an element. A launch
    // that passes another stride needs the binary compiled with codegen::Options::dense = false, where this is empty.
    std::vector<std::int32_t> dense_parameters;
    double cost = 0.0;  // estimated nanoseconds of one thread, for the grain size of launches
};

struct Binary {
    std::string target;           // "cpu"
    std::vector<std::byte> code;  // relocatable object file (cpu), PTX text (cuda)
    std::vector<KernelEntry> kernels;
    Digest key;  // what it was compiled from (jit/cache.h)
};

// Bytes with a version, lengths and a checksum over everything; deserialize throws UsageError on any damage.
std::vector<std::byte> serialize(const Binary& binary);
Binary deserialize(const std::vector<std::byte>& bytes);

}  // namespace weft
