// Files of grids: NanoVDB's are read, ours are read by NanoVDB, and damaged ones are refused or harmless.
#include <gtest/gtest.h>

#include <sstream>

#include "runtime/spatial/nanovdb_samples.h"
#include "runtime/spatial/volume/build.h"
#include "runtime/spatial/volume/file.h"
#include "runtime/spatial/volume/volume.h"
#include "support/error.h"

namespace weft::runtime::nanovdb {
namespace {

using namespace samples;

constexpr std::pair<Codec, theirs::io::Codec> kCodecs[] = {{Codec::none, theirs::io::Codec::NONE},
                                                           {Codec::zip, theirs::io::Codec::ZIP},
                                                           {Codec::blosc, theirs::io::Codec::BLOSC}};

// NanoVDB goes back in the stream to a place that a string without text has not.
std::vector<std::byte> file_of(const std::vector<const theirs::GridHandle<>*>& grids, theirs::io::Codec codec) {
    std::vector<std::byte> result;
    for (const auto* grid : grids) {
        std::stringstream file(std::string(1 << 22, ' '));
        theirs::io::writeGrid(file, *grid, codec);
        const std::string text = file.str().substr(0, static_cast<std::size_t>(file.tellp()));
        const auto bytes = std::as_bytes(std::span(text));
        result.insert(result.end(), bytes.begin(), bytes.end());
    }
    return result;
}

// The grids in an array of bytes.
std::vector<GridDescription> grids_in(const Array& bytes) {
    std::vector<GridDescription> result;
    std::span<std::byte> rest = span_of(bytes);
    while (!rest.empty()) {
        result.push_back(check_grid(rest, "test()"));
        rest = rest.subspan(result.back().size_bytes);
    }
    return result;
}

TEST(VolumeFile, of_nanovdb_is_read_with_each_codec) {
    const auto grid = sample<float>("pressure", -1.0f);
    for (const auto& [codec, their_codec] : kCodecs) {
        const Array bytes = read_grids(file_of({&grid}, their_codec), "test()");
        const auto grids = grids_in(bytes);
        ASSERT_EQ(grids.size(), 1u);
        EXPECT_EQ(grids[0].name, "pressure");
        EXPECT_EQ(bytes.size(), static_cast<std::int64_t>(grid.size()));
        EXPECT_EQ(std::memcmp(host_data(bytes) + grid::kVersion,
                              static_cast<const std::byte*>(static_cast<const void*>(grid.data())) + grid::kVersion,
                              grid.size() - grid::kVersion),
                  0);
        EXPECT_EQ(nanovdb::read<std::uint64_t>(host_data(bytes) + grid::kChecksum), kNoChecksum);
    }
}

TEST(VolumeFile, may_have_several_grids) {
    const auto first = sample<float>("first", -1.0f);
    const auto second = sample<theirs::Vec3d>("second", theirs::Vec3d(0));
    std::vector<std::byte> file = file_of({&first, &second}, theirs::io::Codec::ZIP);
    const std::vector<std::byte> more = file_of({&second}, theirs::io::Codec::NONE);
    file.insert(file.end(), more.begin(), more.end());
    const auto grids = grids_in(read_grids(file, "test()"));
    ASSERT_EQ(grids.size(), 3u);
    const std::string names[] = {"first", "second", "second"};
    for (unsigned n = 0; n < 3; ++n) {
        EXPECT_EQ(grids[n].name, names[n]);
        EXPECT_EQ(grids[n].index, n);
        EXPECT_EQ(grids[n].count, 3u);
    }
    EXPECT_EQ(grids[1].type, GridType::vec3d);
}

TEST(VolumeFile, may_be_a_grid_alone) {
    const Topology topology = tiles_of(std::vector<Coordinate>{{1, 2, 3}});
    const Capacity capacity = capacity_of(topology);
    std::vector<std::byte> grid(grid_bytes(GridType::f32, capacity));
    build_grid(grid, topology, {GridType::f32, {}, {}, "raw"}, capacity);
    std::vector<std::byte> file = grid;
    file.insert(file.end(), grid.begin(), grid.end());
    const auto grids = grids_in(read_grids(file, "test()"));
    ASSERT_EQ(grids.size(), 2u);
    EXPECT_EQ(grids[1].name, "raw");
    EXPECT_EQ(grids[1].index, 1u);
}

TEST(VolumeFile, has_blind_data_of_points) {
    const auto made = theirs::createPointSphere<float>(1, 20.0f, theirs::Vec3f(0), 1.0, theirs::Vec3d(0), "points");
    const auto grids = grids_in(read_grids(file_of({&made}, theirs::io::Codec::NONE), "test()"));
    ASSERT_EQ(grids[0].blind_data.size(), 1u);
    const BlindData& data = grids[0].blind_data[0];
    EXPECT_EQ(data.type, GridType::vec3f);
    EXPECT_EQ(data.value_size, 12u);
    EXPECT_EQ(data.value_count, made.grid<std::uint32_t>()->blindMetaData(0).mElementCount);
    EXPECT_GT(data.value_count, 1000u);
}

TEST(VolumeFile, gives_blind_data_as_an_array) {
    const auto made = theirs::createPointSphere<float>(1, 20.0f, theirs::Vec3f(0), 1.0, theirs::Vec3d(0), "points");
    const spatial::Volume volume(read_grids(file_of({&made}, theirs::io::Codec::NONE), "test()"), "test()");
    const auto* grid = made.grid<std::uint32_t>();
    const theirs::Vec3f* const theirs_points = grid->blindMetaData(0).getBlindData<theirs::Vec3f>();
    const auto count = static_cast<std::int64_t>(grid->blindMetaData(0).mElementCount);
    const Array points = volume.blind_data(0);
    EXPECT_EQ(points.dtype, Type::vector(Scalar::f32, 3));
    ASSERT_EQ(points.size(), count);
    EXPECT_EQ(std::memcmp(host_data(points), theirs_points, static_cast<std::size_t>(12 * count)), 0);
    const Array numbers = volume.blind_data(0, Type::scalar(Scalar::f32));
    EXPECT_EQ(numbers.size(), 3 * count);
    EXPECT_EQ(numbers.view.data, points.view.data);
    EXPECT_THROW(volume.blind_data(0, Type::vector(Scalar::f64, 4)), UsageError);
}

TEST(VolumeFile, that_we_write_is_read_by_nanovdb) {
    const auto made = sample<float>("a name", -1.0f);
    const Array bytes = bytes_of(made);
    const GridDescription description = check_grid(span_of(bytes), "test()");
    for (const auto& [codec, their_codec] : kCodecs) {
        const std::vector<std::byte> file = write_grid(span_of(bytes), description, codec, "test()");
        std::istringstream stream(std::string(reinterpret_cast<const char*>(file.data()), file.size()));
        const auto about = theirs::io::readGridMetaData(stream);
        ASSERT_EQ(about.size(), 1u);
        EXPECT_EQ(about[0].gridName, "a name");
        EXPECT_EQ(about[0].voxelCount, voxels().size());
        EXPECT_EQ(about[0].indexBBox, made.grid<float>()->indexBBox());
        EXPECT_EQ(about[0].worldBBox, made.grid<float>()->worldBBox());
        EXPECT_EQ(about[0].codec, their_codec);
        stream.clear();
        stream.seekg(0);
        const auto again = theirs::io::readGrid(stream, "a name");
        ASSERT_EQ(again.size(), made.size());
        const auto accessor = again.grid<float>()->getAccessor(), expected = made.grid<float>()->getAccessor();
        for (const theirs::Coord& at : places(300)) EXPECT_EQ(accessor.getValue(at), expected.getValue(at));
    }
}

TEST(VolumeFile, that_we_write_has_a_checksum_of_what_it_holds) {
    const Topology topology = tiles_of(std::vector<Coordinate>{{1, 2, 3}, {100, 0, 0}});
    const Capacity capacity = capacity_of(topology);
    const std::vector<std::byte> room(grid_bytes(GridType::f32, capacity));
    const Array grid = bytes_of(room.data(), room.size());
    build_grid(span_of(grid), topology, {GridType::f32, {}, {}, ""}, capacity);
    std::vector<std::byte> file = write_grid(span_of(grid), check_grid(span_of(grid), "test()"), Codec::none, "test()");
    EXPECT_NO_THROW(read_grids(file, "test()"));
    file[file.size() - 100] ^= std::byte{4};
    try {
        read_grids(file, "load()");
        FAIL() << "a wrong value was not noticed";
    } catch (const UsageError& error) {
        EXPECT_STREQ(error.what(), "load(): the grid '' has been damaged: its nodes do not fit its checksum");
    }
}

std::string refusal(const std::vector<std::byte>& file) {
    try {
        read_grids(file, "load()");
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

TEST(VolumeFile, is_refused_with_what_is_wrong) {
    const auto grid = sample<float>("", -1.0f);
    const std::vector<std::byte> whole = file_of({&grid}, theirs::io::Codec::NONE);
    const auto expect = [](const std::string& part, const std::vector<std::byte>& file) {
        const std::string text = refusal(file);
        EXPECT_EQ(text.substr(0, 8), "load(): ") << part;
        EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
    };
    const auto with = [](std::vector<std::byte> file, std::size_t at, auto value) {
        nanovdb::write(file.data() + at, value);
        return file;
    };
    expect("it is empty", {});
    expect("ends in a header, at byte 7; 9 bytes are missing", {whole.begin(), whole.begin() + 7});
    expect("ends in the description of a grid", {whole.begin(), whole.begin() + 100});
    expect("a grid is said to have", {whole.begin(), whole.end() - 1});
    expect("no 'NanoVDB0' or 'NanoVDB2' at byte 0", with(whole, 0, std::uint64_t{1}));
    expect("other order of bytes", with(whole, 0, __builtin_bswap64(kMagicFile)));
    expect("it is an OpenVDB file", with(whole, 0, std::uint64_t{0x56444220}));
    expect("version is 33", with(whole, 8, version(33, 0, 0)));
    expect("a segment has no grids", with(whole, 12, std::uint16_t{0}));
    expect("its codec has the number 9", with(whole, 14, std::uint16_t{9}));
    expect("is said to take 5 bytes of the file", with(whole, 16 + 8, std::uint64_t{5}));
    expect("ends in the name of a grid", with(whole, 16 + 136, ~0u));
    std::vector<std::byte> twice = whole;
    twice.push_back(std::byte{1});
    expect("ends in a header", twice);
    const std::vector<std::byte> zipped = file_of({&grid}, theirs::io::Codec::ZIP);
    expect("cannot be decompressed by zlib", with(zipped, zipped.size() / 2, ~0ull));
    expect("a grid is said to have", with(zipped, 16, std::uint64_t{1} << 45));
    const std::vector<std::byte> packed = file_of({&grid}, theirs::io::Codec::BLOSC);
    expect("cannot be decompressed by blosc", with(packed, 16 + 176 + 1 + 8 + 4, ~0u));
}

// ---- fuzzing ----

// Everything that kernels can do with a grid, compiled for this test, so that sanitizers see it too.
template <typename V, typename Types>
void read_everywhere(const devlib::VolumeDescriptor& volume, std::span<const theirs::Coord> at) {
    using namespace devlib::volume;
    Types::visit(volume, [&](auto finder) {
        for (const theirs::Coord& c : at) {
            V around[8];
            stencil(finder, volume, c[0], c[1], c[2], around);
            const V one = lookup<V>(finder, volume, c[0], c[1], c[2]);
            EXPECT_EQ(std::memcmp(&one, &around[0], sizeof one), 0);
        }
    });
}

void use(const Array& bytes, std::mt19937& random) {
    std::span<std::byte> rest = span_of(bytes);
    while (!rest.empty()) {
        const GridDescription grid = check_grid(rest, "test()");
        const std::int64_t begin = rest.data() - host_data(bytes), size = static_cast<std::int64_t>(rest.size());
        const spatial::VolumeView view(rest, grid, slice(bytes, 0, begin, size, 1));
        const devlib::VolumeDescriptor& volume = view.descriptor();
        std::vector<theirs::Coord> at = places(20);
        for (const LeafLocation& leaf : leaves_of(rest)) {
            const int n = static_cast<int>(random() % 8);
            const auto beside = [&](std::int32_t x) { return static_cast<int>(static_cast<unsigned>(x) + n); };
            at.emplace_back(beside(leaf.origin.i), beside(leaf.origin.j), beside(leaf.origin.k));
            if (at.size() > 60) break;
        }
        using namespace devlib::volume;
        using enum GridType;
        read_everywhere<Value<float, 1>, Types<f32, f16, fp4, fp8, fp16, fpn>>(volume, at);
        read_everywhere<Value<double, 1>, Types<f64>>(volume, at);
        read_everywhere<Value<float, 3>, Types<vec3f>>(volume, at);
        read_everywhere<Value<unsigned, 1>, Types<u32>>(volume, at);
        read_everywhere<Value<unsigned char, 1>, Types<u8, boolean>>(volume, at);
        read_everywhere<VoxelIndex, AllTypes>(volume, at);
        for (const BlindData& data : grid.blind_data)
            EXPECT_LE(data.offset + data.value_count * data.value_size, rest.size());
        rest = rest.subspan(grid.size_bytes);
    }
}

struct Outcome {
    int refused = 0, used = 0;
};

// Mutates fields of the header and of nodes: a bit, a byte, a number that is large, small or negative, or cuts the
// file.
Outcome fuzz(const std::vector<std::byte>& file, int rounds, unsigned seed) {
    std::mt19937 random(seed);
    // Where offsets and counts are: the headers, the root, the first nodes' masks and tables.
    const std::size_t hot = std::min<std::size_t>(file.size(), 16 + 176 + 8 + 672 + 64 + 256);
    Outcome outcome;
    for (int round = 0; round < rounds; ++round) {
        std::vector<std::byte> spoiled = file;
        for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
            const std::size_t at = random() % (random() % 4 == 0 ? file.size() : hot);
            const std::uint64_t numbers[] = {0,          1,          31,         32,          ~0ull,
                                             1ull << 31, 1ull << 40, ~0ull << 5, file.size(), random()};
            switch (random() % 4) {
                case 0:
                    spoiled[at] ^= std::byte(1 << random() % 8);
                    break;
                case 1:
                    spoiled[at] = std::byte(random());
                    break;
                case 2: {
                    const std::uint64_t number = numbers[random() % std::size(numbers)];
                    std::memcpy(&spoiled[at & ~7ull], &number, std::min<std::size_t>(8, spoiled.size() - (at & ~7ull)));
                    break;
                }
                default: {
                    const auto number = static_cast<std::uint32_t>(numbers[random() % std::size(numbers)]);
                    std::memcpy(&spoiled[at & ~3ull], &number, std::min<std::size_t>(4, spoiled.size() - (at & ~3ull)));
                }
            }
        }
        if (random() % 16 == 0) spoiled.resize(random() % spoiled.size());
        try {
            use(read_grids(spoiled, "fuzz()"), random);
            ++outcome.used;
        } catch (const UsageError&) {
            ++outcome.refused;
        }
    }
    return outcome;
}

// Few nodes of few bytes, so that a round is short.
theirs::GridHandle<> small_points() {
    return theirs::createPointSphere<float>(1, 3.0f, theirs::Vec3f(4), 1.0, theirs::Vec3d(0), "points");
}

TEST(VolumeFile, damaged_by_chance_is_refused_or_harmless) {
    theirs::GridBuilder<float> builder(-1.0f);
    auto accessor = builder.getAccessor();
    accessor.setValue(theirs::Coord(1, 2, 3), 4.0f);
    const auto one = builder.getHandle(1.0, theirs::Vec3d(0), "");
    const auto points = small_points();
    const std::vector<Coordinate> some{{0, 0, 0}, {1, 2, 3}, {7, 7, 7}, {8, 0, 0}, {5000, 0, 0}};
    std::vector<std::vector<std::byte>> files{
        file_of({&one}, theirs::io::Codec::NONE), file_of({&one}, theirs::io::Codec::ZIP),
        file_of({&points}, theirs::io::Codec::NONE), file_of({&points}, theirs::io::Codec::BLOSC)};
    for (const GridType type : {GridType::on_index, GridType::index}) {
        const Topology topology = type == GridType::on_index ? voxels_of(some) : tiles_of(some);
        const Capacity capacity = capacity_of(topology);
        std::vector<std::byte> grid(grid_bytes(type, capacity));
        build_grid(grid, topology, {type, {}, {}, "indices"}, capacity);
        files.push_back(grid);
    }
    Outcome all;
    for (unsigned n = 0; n < files.size(); ++n) {
        const Outcome outcome = fuzz(files[n], 400, n);
        EXPECT_GT(outcome.refused, 0) << n;
        all.refused += outcome.refused, all.used += outcome.used;
    }
    EXPECT_GT(all.refused, 500);
    EXPECT_GT(all.used, 500);
}

}  // namespace
}  // namespace weft::runtime::nanovdb
