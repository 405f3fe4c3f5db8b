// Numbers, texts and lists as bytes, and back: the elements of this room's formats.
//
// Numbers are little-endian; a text or a list is a u32 length and its items. A reader compares every length with the
// bytes that are left before it uses the length. So damage that the checksum misses does no harm.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "support/error.h"

namespace weft {

static_assert(std::endian::native == std::endian::little, "the formats are the memory of little-endian machines");

// Detects damage, not malice: a cache folder is trusted as much as the program. Four multiply-mix lanes over 8-byte
// words, as in wyhash, take less time than reading the file.
inline std::uint64_t checksum(const std::byte* data, std::size_t size) {
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

// `Items` inherits from Writer<Items> and overloads write() for types other than numbers and texts.
template <typename Items>
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
    template <typename Item>
    void write(const std::vector<Item>& items) {
        write(static_cast<std::uint32_t>(items.size()));
        for (const Item& item : items) static_cast<Items*>(this)->write(item);
    }
    void write_bytes(const void* from, std::size_t count) {
        const auto* const bytes = static_cast<const std::byte*>(from);
        bytes_.insert(bytes_.end(), bytes, bytes + count);
    }
    void write_blob(const std::vector<std::byte>& blob) {
        write(static_cast<std::uint64_t>(blob.size()));
        write_bytes(blob.data(), blob.size());
    }

    // The file: `magic`, the checksum of the rest, the rest.
    static std::vector<std::byte> file(std::string_view magic, const Items& rest) {
        Items whole;
        whole.write_bytes(magic.data(), magic.size());
        whole.write(checksum(rest.bytes_.data(), rest.bytes_.size()));
        whole.write_bytes(rest.bytes_.data(), rest.bytes_.size());
        return std::move(whole.bytes_);
    }

private:
    std::vector<std::byte> bytes_;
};

template <typename Items>
class Reader {
public:
    // The bytes of a file of this magic; errors name it `what`: "a Binary".
    Reader(const std::vector<std::byte>& bytes, std::string_view magic, std::string what)
        : bytes_(bytes), what_(std::move(what)) {
        if (bytes.size() < magic.size() + sizeof(std::uint64_t) ||
            std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
            fail("these bytes do not begin as " + what_ + " does");
        at_ = magic.size();
        std::uint64_t sum = 0;
        read(sum);
        if (sum != checksum(bytes.data() + at_, left())) fail("the checksum of " + what_ + " is wrong");
    }

    template <typename Number>
        requires std::is_arithmetic_v<Number>
    void read(Number& value) {
        read_bytes(&value, sizeof value);
    }
    void read(std::string& text) {
        text.resize(read_count(1));
        read_bytes(text.data(), text.size());
    }
    template <typename Item>
    void read(std::vector<Item>& items) {
        items.resize(read_count(std::is_arithmetic_v<Item> ? sizeof(Item) : 4));
        for (Item& item : items) static_cast<Items*>(this)->read(item);
    }
    void read_bytes(void* to, std::size_t count) {
        if (count > left()) fail(what_ + " ends in the middle of a value");
        if (count != 0) std::memcpy(to, bytes_.data() + at_, count);
        at_ += count;
    }
    void read_blob(std::vector<std::byte>& blob) {
        std::uint64_t size = 0;
        read(size);
        if (size > left()) fail("a part of " + what_ + " is longer than its bytes");
        blob.resize(size);
        read_bytes(blob.data(), blob.size());
    }
    void expect_end() const {
        if (left() != 0) fail("bytes follow the end of " + what_);
    }
    [[noreturn]] void fail(const std::string& text) const {
        throw UsageError("deserialize()", text + "; the file is damaged or was written by another version",
                         ErrorCategory::value);
    }

private:
    std::size_t left() const { return bytes_.size() - at_; }
    // A number of items. One that exceeds the bytes left, at `least` bytes an item, is damage; memory is never reserved
    // for it.
    std::size_t read_count(std::size_t least) {
        std::uint32_t count = 0;
        read(count);
        if (count > left() / least)
            fail(what_ + " holds a length of " + std::to_string(count) + ", more than its bytes");
        return count;
    }

    const std::vector<std::byte>& bytes_;
    std::string what_;
    std::size_t at_ = 0;
};

}  // namespace weft
