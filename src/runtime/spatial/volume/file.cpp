#include "runtime/spatial/volume/file.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

#include "runtime/bytes.h"
#include "runtime/spatial/volume/blosc.h"
#include "support/error.h"

namespace weft::runtime::nanovdb {

namespace {

namespace header {
constexpr std::uint64_t kMagic = 0, kVersion = 8, kGrids = 12, kCodec = 14, kBytes = 16;
}
namespace description {
constexpr std::uint64_t kGridBytes = 0, kFileBytes = 8, kNameKey = 16, kVoxels = 24, kType = 32, kClass = 36,
                        kWorldBox = 40, kIndexBox = 88, kVoxelSize = 112, kNameBytes = 136, kNodes = 140, kTiles = 156,
                        kCodec = 168, kBlindArrays = 170, kVersion = 172, kBytes = 176;
}

constexpr std::uint64_t kOpenVdb = 0x56444220;
constexpr std::uint64_t kBloscBlock = 1ull << 30;

// The largest ratio of zlib's decompression.
constexpr std::uint64_t kMostZip = 1032;

[[noreturn]] void wrong(std::string_view api, const std::string& what) {
    throw UsageError(api, "this is no NanoVDB file that can be read: " + what);
}

// The unread part of a file.
class Rest {
public:
    Rest(Bytes file, std::string_view api) : file_(file), api_(api) {}

    bool is_empty() const { return at_ == file_.size(); }
    std::uint64_t position() const { return at_; }
    std::uint64_t size() const { return file_.size() - at_; }
    Bytes take(std::uint64_t size, const std::string& what) {
        if (size > this->size())
            wrong(api_, "it ends in " + what + ", at byte " + std::to_string(file_.size()) + "; " +
                            std::to_string(size - this->size()) + " bytes are missing");
        at_ += size;
        return file_.subspan(at_ - size, size);
    }
    std::string_view api() const { return api_; }

private:
    Bytes file_;
    std::string_view api_;
    std::uint64_t at_ = 0;
};

void unzip(std::span<std::byte> to, Rest& rest) {
    const auto size = read<std::uint64_t>(rest.take(8, "the size of a compressed grid").data());
    const Bytes from = rest.take(size, "a compressed grid");
    uLongf written = to.size();
    const int status = uncompress(reinterpret_cast<Bytef*>(to.data()), &written,
                                  reinterpret_cast<const Bytef*>(from.data()), from.size());
    if (status != Z_OK || written != to.size())
        wrong(rest.api(), "a grid of " + std::to_string(to.size()) + " bytes cannot be decompressed by zlib (" +
                              zError(status) + ", " + std::to_string(written) + " bytes)");
}

void unblosc(std::span<std::byte> to, Rest& rest) {
    const Blosc& library = blosc(rest.api());
    while (!to.empty()) {
        const auto size = read<std::uint64_t>(rest.take(8, "the size of a compressed block").data());
        const Bytes from = rest.take(size, "a compressed block");
        const std::uint64_t expected = std::min<std::uint64_t>(to.size(), kBloscBlock);
        std::size_t says = 0;
        if (library.validate(from.data(), from.size(), &says) != 0 || says != expected ||
            library.decompress(from.data(), to.data(), expected, 1) != static_cast<int>(expected)) {
            wrong(rest.api(), "a block of " + std::to_string(expected) + " bytes cannot be decompressed by blosc");
        }
        to = to.subspan(expected);
    }
}

Codec checked_codec(std::uint16_t number, std::string_view api) {
    if (number > static_cast<std::uint16_t>(Codec::blosc))
        wrong(api,
              "its codec has the number " + std::to_string(number) + "; known are 0 (none), 1 (zip) and 2 (blosc)");
    return static_cast<Codec>(number);
}

using Memory = std::shared_ptr<Buffer>;

Memory host_memory(std::uint64_t size) { return allocate(static_cast<std::int64_t>(size), host_device()); }
std::span<std::byte> bytes_of(const Memory& memory) {
    return {static_cast<std::byte*>(memory->data), static_cast<std::size_t>(memory->size_bytes)};
}

// Returns a grid after checking its structure, size and checksum.
Memory checked(Memory memory, std::string_view api) {
    const Bytes bytes = bytes_of(memory);
    const GridDescription grid = check_grid(bytes, api);
    if (grid.size_bytes != bytes.size())
        wrong(api, "its description says that a grid has " + std::to_string(bytes.size()) +
                       " bytes, and the grid says " + std::to_string(grid.size_bytes));
    check_checksum(bytes, grid, api);
    return memory;
}

// Reads the next grid, of `grid_bytes` bytes after decompression.
Memory take_grid(Rest& rest, std::uint64_t grid_bytes, std::uint64_t file_bytes, Codec codec) {
    const std::uint64_t begin = rest.position();
    const std::uint64_t most = codec == Codec::none  ? rest.size()
                               : codec == Codec::zip ? rest.size() * kMostZip
                                                     : ~0ull;
    if (grid_bytes > most || grid_bytes < grid::kBytes + tree::kBytes || grid_bytes > 1ull << 46)
        wrong(rest.api(), "a grid is said to have " + std::to_string(grid_bytes) + " bytes, and " +
                              std::to_string(rest.size()) + " follow");
    Memory memory = host_memory(grid_bytes);
    switch (codec) {
        case Codec::none: {
            const Bytes from = rest.take(grid_bytes, "a grid");
            std::memcpy(memory->data, from.data(), from.size());
            break;
        }
        case Codec::zip:
            unzip(bytes_of(memory), rest);
            break;
        case Codec::blosc:
            unblosc(bytes_of(memory), rest);
            break;
    }
    // Some writers do not count the sizes of the compressed blocks here.
    const std::uint64_t blocks = codec == Codec::blosc ? (grid_bytes + kBloscBlock - 1) / kBloscBlock
                                 : codec == Codec::zip ? 1
                                                       : 0;
    const std::uint64_t taken = rest.position() - begin;
    if (file_bytes != taken && file_bytes + 8 * blocks != taken)
        wrong(rest.api(), "a grid is said to take " + std::to_string(file_bytes) + " bytes of the file, and takes " +
                              std::to_string(taken));
    return checked(std::move(memory), rest.api());
}

void take_segment(Rest& rest, std::vector<Memory>& grids) {
    const std::string_view api = rest.api();
    const std::byte* head = rest.take(header::kBytes, "a header").data();
    const auto magic = read<std::uint64_t>(head + header::kMagic);
    if (magic != kMagicAny && magic != kMagicFile) {
        const std::uint64_t swapped = __builtin_bswap64(magic);
        wrong(api,
              (magic & 0xffffffff) == kOpenVdb
                  ? "it is an OpenVDB file. help: convert it, with nanovdb_convert for example"
              : swapped == kMagicAny || swapped == kMagicFile
                  ? "it is of a computer with the other order of bytes"
                  : "there is no 'NanoVDB0' or 'NanoVDB2' at byte " + std::to_string(rest.position() - header::kBytes));
    }
    const auto major = read<std::uint32_t>(head + header::kVersion) >> 21;
    if (major != kMajorVersion)
        wrong(api, "the format's version is " + std::to_string(major) + ", and " + std::to_string(kMajorVersion) +
                       " is expected");
    const auto count = read<std::uint16_t>(head + header::kGrids);
    if (count == 0) wrong(api, "a segment has no grids");
    const Codec codec = checked_codec(read<std::uint16_t>(head + header::kCodec), api);
    std::vector<const std::byte*> described;
    for (unsigned n = 0; n < count; ++n) {
        described.push_back(rest.take(description::kBytes, "the description of a grid").data());
        rest.take(read<std::uint32_t>(described.back() + description::kNameBytes), "the name of a grid");
    }
    for (const std::byte* at : described)
        grids.push_back(take_grid(rest, read<std::uint64_t>(at + description::kGridBytes),
                                  read<std::uint64_t>(at + description::kFileBytes), codec));
}

void take_raw_grid(Rest& rest, std::vector<Memory>& grids) {
    if (rest.size() < grid::kBytes) rest.take(grid::kBytes, "the header of a grid");
    Rest ahead = rest;
    const auto size = read<std::uint64_t>(ahead.take(grid::kBytes, "").data() + grid::kSize);
    grids.push_back(take_grid(rest, size, size, Codec::none));
}

std::uint64_t name_key(std::string_view name) {
    std::uint64_t key = 0;
    for (const char letter : name) {
        const std::uint64_t overflow = key >> 56;
        key = key * 67 + static_cast<unsigned char>(letter) + overflow;
    }
    return key;
}

void append(std::vector<std::byte>& to, Bytes from) { to.insert(to.end(), from.begin(), from.end()); }
void append_size(std::vector<std::byte>& to, std::uint64_t size) { append(to, std::as_bytes(std::span(&size, 1))); }

void append_zip(std::vector<std::byte>& to, Bytes grid, std::string_view api) {
    uLongf size = compressBound(grid.size());
    const auto room = std::make_unique_for_overwrite<std::byte[]>(size);
    const int status =
        compress(reinterpret_cast<Bytef*>(room.get()), &size, reinterpret_cast<const Bytef*>(grid.data()), grid.size());
    if (status != Z_OK) throw UsageError(api, "zlib could not compress the grid: " + std::string(zError(status)));
    append_size(to, size);
    append(to, {room.get(), size});
}

void append_blosc(std::vector<std::byte>& to, Bytes grid, std::string_view api) {
    const Blosc& library = blosc(api);
    while (!grid.empty()) {
        const Bytes block = grid.first(std::min<std::uint64_t>(grid.size(), kBloscBlock));
        const std::size_t most = block.size() + kBloscOverhead;
        const auto room = std::make_unique_for_overwrite<std::byte[]>(most);
        // As NanoVDB's own tools do: four-byte numbers, byte-shuffled, compressed by LZ4.
        const int size = library.compress(9, 1, 4, block.size(), block.data(), room.get(), most, "lz4", 1 << 18, 1);
        if (size <= 0) throw UsageError(api, "blosc could not compress the grid");
        append_size(to, static_cast<std::uint64_t>(size));
        append(to, {room.get(), static_cast<std::size_t>(size)});
        grid = grid.subspan(block.size());
    }
}

// The grid as the only one of a file.
std::vector<std::byte> alone(Bytes bytes, const GridDescription& description) {
    std::vector<std::byte> grid(bytes.begin(), bytes.end());
    write(grid.data() + grid::kIndex, std::uint32_t{0});
    write(grid.data() + grid::kCount, std::uint32_t{1});
    const bool has_sum = description.version > version(32, 6, 0);
    write(grid.data() + grid::kChecksum, has_sum ? checksum_of(grid) : kNoChecksum);
    return grid;
}

// A grid without a file's header. Until version 32.8 both begin with the same eight bytes: then the version stands
// behind a checksum in a grid, and in a file before the number of a codec.
bool begins_with_grid(Bytes bytes) {
    if (bytes.size() < grid::kFlags) return false;
    const auto magic = read<std::uint64_t>(bytes.data());
    const auto is_version = [&](std::uint64_t at) {
        return read<std::uint32_t>(bytes.data() + at) >> 21 == kMajorVersion;
    };
    const bool is_file = is_version(header::kVersion) &&
                         read<std::uint16_t>(bytes.data() + header::kCodec) <= static_cast<std::uint16_t>(Codec::blosc);
    return magic == kMagicGrid || (magic == kMagicAny && !is_file && is_version(grid::kVersion));
}

}  // namespace

Array read_grids(Bytes file, std::string_view api) {
    Rest rest(file, api);
    std::vector<Memory> grids;
    if (rest.is_empty()) wrong(api, "it is empty");
    while (!rest.is_empty()) {
        begins_with_grid(file.subspan(rest.position())) ? take_raw_grid(rest, grids) : take_segment(rest, grids);
    }
    std::uint64_t size = 0;
    for (std::size_t n = 0; n < grids.size(); ++n) {
        std::byte* at = bytes_of(grids[n]).data();
        write(at + grid::kIndex, static_cast<std::uint32_t>(n));
        write(at + grid::kCount, static_cast<std::uint32_t>(grids.size()));
        write(at + grid::kChecksum, kNoChecksum);
        // Grids begin at multiples of 32.
        size += aligned(static_cast<std::uint64_t>(grids[n]->size_bytes), kAlignment);
    }
    const std::int64_t shape[] = {static_cast<std::int64_t>(size)};
    const Array result = zeros(Type::scalar(Scalar::u8), shape, host_device());
    std::byte* to = host_data(result);
    for (const Memory& memory : grids) {
        const Bytes from = bytes_of(memory);
        std::memcpy(to, from.data(), from.size());
        const std::uint64_t whole = aligned(from.size(), kAlignment);
        write(to + grid::kSize, whole);
        to += whole;
    }
    return result;
}

std::vector<std::byte> write_grid(Bytes bytes, const GridDescription& grid, Codec codec, std::string_view api) {
    const std::vector<std::byte> data = alone(bytes, grid);
    std::vector<std::byte> stored;
    switch (codec) {
        case Codec::none:
            stored = data;
            break;
        case Codec::zip:
            append_zip(stored, data, api);
            break;
        case Codec::blosc:
            append_blosc(stored, data, api);
            break;
    }
    std::vector<std::byte> file(header::kBytes + description::kBytes + grid.name.size() + 1);
    std::byte* head = file.data();
    write(head + header::kMagic, kMagicAny);
    write(head + header::kVersion, grid.version);
    write(head + header::kGrids, std::uint16_t{1});
    write(head + header::kCodec, codec);
    std::byte* about = head + header::kBytes;
    write(about + description::kGridBytes, static_cast<std::uint64_t>(data.size()));
    write(about + description::kFileBytes, static_cast<std::uint64_t>(stored.size()));
    write(about + description::kNameKey, name_key(grid.name));
    write(about + description::kVoxels, grid.active_voxels);
    write(about + description::kType, grid.type);
    write(about + description::kClass, grid.grid_class);
    std::memcpy(about + description::kWorldBox, data.data() + grid::kWorldBox, 48);
    const auto root = read<std::uint64_t>(data.data() + grid::kBytes + tree::kOffsets + 24) + grid::kBytes;
    std::memcpy(about + description::kIndexBox, data.data() + root + root::kBoxMin, 24);
    std::memcpy(about + description::kVoxelSize, grid.voxel_size.data(), sizeof grid.voxel_size);
    write(about + description::kNameBytes, static_cast<std::uint32_t>(grid.name.size() + 1));
    for (unsigned level = 0; level < 3; ++level) {
        const std::byte* tiles = data.data() + grid::kBytes + tree::kTileCounts;
        write(about + description::kNodes + 4 * level, grid.nodes[level]);
        write(about + description::kTiles + 4 * level, read<std::uint32_t>(tiles + 4 * level));
    }
    write(about + description::kNodes + 12, std::uint32_t{1});
    write(about + description::kCodec, codec);
    write(about + description::kBlindArrays, static_cast<std::uint16_t>(grid.blind_data.size()));
    write(about + description::kVersion, grid.version);
    std::memcpy(about + description::kBytes, grid.name.data(), grid.name.size());
    append(file, stored);
    return file;
}

}  // namespace weft::runtime::nanovdb
