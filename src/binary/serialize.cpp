// The bytes of a Binary:
//
//   "WEFTBIN1"   8 bytes: what this is, and the version of the layout below
//   checksum     u64 over all that follows
//   key          32 bytes
//   target       text
//   code         u64 length, bytes
//   kernels      u32 count, each field in the order of KernelEntry
//
// Numbers are little-endian; a text or a list is a u32 length and its items. A reader checks every length against what
// is left before it believes it, so that damage that the checksum lets pass can still not do harm.
#include <bit>
#include <cstring>
#include <type_traits>

#include "binary/binary.h"
#include "support/error.h"

namespace weft {

static_assert(std::endian::native == std::endian::little, "the layout above is the memory of little-endian machines");

namespace {

constexpr std::string_view kMagic = "WEFTBIN1";

// Detects damage, not malice (a cache folder is as trusted as the program): four multiply-mix lanes over 8-byte words,
// as in wyhash, at some bytes per cycle, so that it costs nothing beside reading the file.
std::uint64_t checksum(const std::byte* data, std::size_t size) {
    constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15u;
    std::uint64_t lanes[4] = {1, 2, 3, 4};
    const auto mix = [](std::uint64_t lane, std::uint64_t word) {
        lane = (lane ^ word) * kMultiplier;
        return lane ^ lane >> 29;
    };
    std::size_t at = 0;
    for (int turn = 0; at + 8 <= size; at += 8, turn = (turn + 1) & 3) {
        std::uint64_t word;
        std::memcpy(&word, data + at, 8);
        lanes[turn] = mix(lanes[turn], word);
    }
    std::uint64_t rest = 0;
    if (at < size) std::memcpy(&rest, data + at, size - at);
    std::uint64_t sum = mix(size, rest);
    for (const std::uint64_t lane : lanes) sum = mix(sum, lane);
    return sum;
}

class Writer {
public:
    template <typename Number>
        requires std::is_arithmetic_v<Number>
    void write(Number value) {
        write_bytes(&value, sizeof value);
    }
    void write(std::string_view text) {
        write(static_cast<std::uint32_t>(text.size()));
        write_bytes(text.data(), text.size());
    }
    void write(const std::string& text) { write(std::string_view(text)); }
    void write(const CheckSite& site) {
        write(site.path);
        write(site.line);
        write(site.column);
        write(site.text);
    }
    void write(const KernelEntry& kernel) {
        write(kernel.name);
        write(kernel.symbol);
        write(kernel.tid_rank);
        write(kernel.lanes);
        write(kernel.remarks);
        write(kernel.sites);
        write(kernel.dense_parameters);
        write(kernel.cost);
    }
    template <typename Item>
    void write(const std::vector<Item>& items) {
        write(static_cast<std::uint32_t>(items.size()));
        for (const Item& item : items) write(item);
    }
    void write_bytes(const void* from, std::size_t count) {
        const auto* const bytes = static_cast<const std::byte*>(from);
        bytes_.insert(bytes_.end(), bytes, bytes + count);
    }
    std::vector<std::byte>& bytes() { return bytes_; }

private:
    std::vector<std::byte> bytes_;
};

[[noreturn]] void fail(const std::string& what) {
    throw UsageError("deserialize()", what + "; the file is damaged or was written by another version",
                     ErrorCategory::value);
}

class Reader {
public:
    explicit Reader(const std::vector<std::byte>& bytes, std::size_t start) : bytes_(bytes), at_(start) {}

    template <typename Number>
        requires std::is_arithmetic_v<Number>
    void read(Number& value) {
        read_bytes(&value, sizeof value);
    }
    void read(std::string& text) {
        text.resize(read_count(1));
        read_bytes(text.data(), text.size());
    }
    void read(CheckSite& site) {
        read(site.path);
        read(site.line);
        read(site.column);
        read(site.text);
    }
    void read(KernelEntry& kernel) {
        read(kernel.name);
        read(kernel.symbol);
        read(kernel.tid_rank);
        read(kernel.lanes);
        read(kernel.remarks);
        read(kernel.sites);
        read(kernel.dense_parameters);
        read(kernel.cost);
    }
    template <typename Item>
    void read(std::vector<Item>& items) {
        items.resize(read_count(std::is_arithmetic_v<Item> ? sizeof(Item) : 4));
        for (Item& item : items) read(item);
    }
    void read_bytes(void* to, std::size_t count) {
        if (count > left()) fail("a Binary ends in the middle of a value");
        if (count != 0) std::memcpy(to, bytes_.data() + at_, count);
        at_ += count;
    }
    std::size_t left() const { return bytes_.size() - at_; }

private:
    // A length that cannot be right, given that each item takes at least `least` bytes, is damage and never an
    // allocation.
    std::size_t read_count(std::size_t least) {
        std::uint32_t count = 0;
        read(count);
        if (count > left() / least)
            fail("a Binary holds a length of " + std::to_string(count) + ", more than its bytes");
        return count;
    }

    const std::vector<std::byte>& bytes_;
    std::size_t at_;
};

constexpr std::size_t kBodyStart = kMagic.size() + sizeof(std::uint64_t);

}  // namespace

std::vector<std::byte> serialize(const Binary& binary) {
    Writer writer;
    writer.write_bytes(kMagic.data(), kMagic.size());
    writer.write(std::uint64_t{0});  // the checksum, once the rest is there
    writer.write_bytes(binary.key.bytes.data(), binary.key.bytes.size());
    writer.write(binary.target);
    writer.write(static_cast<std::uint64_t>(binary.code.size()));
    writer.write_bytes(binary.code.data(), binary.code.size());
    writer.write(binary.kernels);

    std::vector<std::byte>& bytes = writer.bytes();
    const std::uint64_t sum = checksum(bytes.data() + kBodyStart, bytes.size() - kBodyStart);
    std::memcpy(bytes.data() + kMagic.size(), &sum, sizeof sum);
    return std::move(bytes);
}

Binary deserialize(const std::vector<std::byte>& bytes) {
    if (bytes.size() < kBodyStart || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
        fail("these bytes do not begin as a Binary does");
    std::uint64_t sum = 0;
    std::memcpy(&sum, bytes.data() + kMagic.size(), sizeof sum);
    if (sum != checksum(bytes.data() + kBodyStart, bytes.size() - kBodyStart))
        fail("the checksum of a Binary is wrong");

    Reader reader(bytes, kBodyStart);
    Binary binary;
    reader.read_bytes(binary.key.bytes.data(), binary.key.bytes.size());
    reader.read(binary.target);
    std::uint64_t code_size = 0;
    reader.read(code_size);
    if (code_size > reader.left()) fail("a Binary's code is longer than its bytes");
    binary.code.resize(code_size);
    reader.read_bytes(binary.code.data(), binary.code.size());
    reader.read(binary.kernels);
    if (reader.left() != 0) fail("bytes follow the end of a Binary");
    return binary;
}

}  // namespace weft
