// NanoVDB grids: where their fields lie, and what kernels read from them, compared with NanoVDB's own classes.
#include <gtest/gtest.h>

#include <random>

#include "runtime/cpu/library.h"
#include "runtime/spatial/nanovdb_samples.h"
#include "runtime/spatial/volume/build.h"
#include "runtime/spatial/volume/volume.h"
#include "support/error.h"

namespace weft::runtime::nanovdb {
namespace {

using namespace samples;

// ---- the format ----

template <typename T>
void expect_layout(GridType type) {
    const Layout layout = layout_of(type);
    EXPECT_EQ(layout.leaf_bytes, sizeof(theirs::NanoLeaf<T>)) << type_name(type);
    EXPECT_EQ(layout.lower_bytes, sizeof(theirs::NanoLower<T>)) << type_name(type);
    EXPECT_EQ(layout.upper_bytes, sizeof(theirs::NanoUpper<T>)) << type_name(type);
    EXPECT_EQ(layout.root_bytes, sizeof(theirs::NanoRoot<T>)) << type_name(type);
    EXPECT_EQ(layout.tile_bytes, sizeof(typename theirs::NanoRoot<T>::Tile)) << type_name(type);
}

TEST(VolumeGrid, has_the_sizes_of_the_format) {
    expect_layout<float>(GridType::f32);
    expect_layout<double>(GridType::f64);
    expect_layout<std::int16_t>(GridType::i16);
    expect_layout<std::int32_t>(GridType::i32);
    expect_layout<std::int64_t>(GridType::i64);
    expect_layout<std::uint32_t>(GridType::u32);
    expect_layout<theirs::Vec3f>(GridType::vec3f);
    expect_layout<theirs::Vec3d>(GridType::vec3d);
    expect_layout<theirs::Vec4f>(GridType::vec4f);
    expect_layout<theirs::Vec4d>(GridType::vec4d);
    expect_layout<theirs::ValueMask>(GridType::mask);
    expect_layout<bool>(GridType::boolean);
    expect_layout<theirs::Fp4>(GridType::fp4);
    expect_layout<theirs::Fp8>(GridType::fp8);
    expect_layout<theirs::Fp16>(GridType::fp16);
    static_assert(grid::kBytes == sizeof(theirs::GridData) && tree::kBytes == sizeof(theirs::TreeData<>));
    static_assert(blind::kBytes == sizeof(theirs::GridBlindMetaData) && map::kBytes == sizeof(theirs::Map));
}

// NanoVDB builds no grids of bool; its leaves can be filled.
TEST(VolumeGrid, has_leaves_of_bits_where_nanovdb_writes_them) {
    using namespace devlib::volume;
    using Leaf = theirs::NanoLeaf<bool>::DataType;
    alignas(32) unsigned char memory[sizeof(Leaf)] = {};
    Leaf* const leaf = reinterpret_cast<Leaf*>(memory);
    std::mt19937 random(1);
    for (std::uint32_t n = 0; n < 512; ++n)
        if (random() % 3 != 0) leaf->setValue(n, random() % 2 != 0);
    const devlib::VolumeDescriptor volume{};
    for (unsigned n = 0; n < 512; ++n) {
        const auto read = Cell<GridType::boolean, Value<unsigned char, 1>>::in_leaf(volume, memory, n);
        ASSERT_EQ(read.numbers[0], leaf->getValue(n)) << n;
    }
}

// ---- values ----

// The functions that kernels call.
template <typename Number>
using Read = void(Number*, const std::uint64_t*, const std::int32_t*, std::uint64_t, std::int32_t);
template <typename Function>
Function* function(const std::string& name) {
    void* const found = find_library_function("weft_lib_volume_" + name);
    EXPECT_NE(found, nullptr) << name;
    return reinterpret_cast<Function*>(found);
}

constexpr int kLanes = 16;

// Reads `count` values at each place, in groups of lanes of which some are off.
template <typename Number>
std::vector<std::vector<Number>> read_all(const std::string& name, const devlib::VolumeDescriptor& volume,
                                          const std::vector<theirs::Coord>& at, int numbers) {
    auto* const read = function<Read<Number>>(name);
    std::vector<std::vector<Number>> result(at.size());
    const Number untouched{111};
    std::vector<Number> room(static_cast<std::size_t>(numbers * kLanes));
    for (std::size_t begin = 0; begin < at.size(); begin += kLanes / 2) {
        std::uint64_t id[kLanes] = {};
        std::int32_t voxel[3 * kLanes] = {};
        std::uint64_t mask = 0;
        // Every second lane is off, and what it holds leads nowhere.
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            id[lane] = 13;
            const std::size_t n = begin + lane / 2;
            if (lane % 2 == 0 || n >= at.size()) continue;
            mask |= 1ull << lane;
            id[lane] = reinterpret_cast<std::uint64_t>(&volume);
            for (int a = 0; a < 3; ++a) voxel[a * kLanes + lane] = at[n][a];
        }
        room.assign(room.size(), untouched);
        read(room.data(), id, voxel, mask, kLanes);
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            for (int c = 0; c < numbers; ++c) {
                const Number number = room[static_cast<std::size_t>(c) * kLanes + lane];
                if (mask >> lane & 1)
                    result[begin + lane / 2].push_back(number);
                else
                    EXPECT_EQ(number, untouched) << "lane " << lane << " is off";
            }
        }
    }
    return result;
}

template <typename T, typename Stored = T>
void expect_values(const std::string& name, T background, const char* type_text, bool has_stencil = true) {
    SCOPED_TRACE(name);
    const theirs::GridHandle<> made = sample<T, Stored>("a grid", background);
    const Array bytes = bytes_of(made);
    const GridDescription description = check_grid(span_of(bytes), "test()");
    EXPECT_EQ(type_name(description.type), type_text);
    EXPECT_EQ(description.name, "a grid");
    EXPECT_EQ(description.active_voxels, voxels().size());
    EXPECT_EQ(description.translation[2], 3.0);
    EXPECT_EQ(description.voxel_size[1], 0.5);
    const auto* grid = made.grid<Stored>();
    EXPECT_EQ(description.nodes[0], grid->tree().nodeCount(0));
    EXPECT_EQ(description.nodes[2], grid->tree().nodeCount(2));
    const auto accessor = grid->getAccessor();
    const spatial::VolumeView view(span_of(bytes), description, bytes);
    const devlib::VolumeDescriptor& volume = view.descriptor();

    using Number = typename decltype(numbers_of(background))::value_type;
    const std::vector<theirs::Coord> at = places(2000);
    const int count = static_cast<int>(numbers_of(background).size());
    const auto found = read_all<Number>("lookup_" + name, volume, at, count);
    for (std::size_t n = 0; n < at.size(); ++n)
        EXPECT_EQ(found[n], numbers_of(T(accessor.getValue(at[n])))) << at[n][0] << " " << at[n][1] << " " << at[n][2];
    if (!has_stencil) return;
    const auto around = read_all<Number>("stencil_" + name, volume, at, 8 * count);
    for (std::size_t n = 0; n < at.size(); ++n) {
        std::vector<Number> expected;
        for (int c = 0; c < 8; ++c) {
            const auto next = [](int x, int step) { return static_cast<int>(static_cast<unsigned>(x) + step); };
            const theirs::Coord corner(next(at[n][0], c >> 2), next(at[n][1], c >> 1 & 1), next(at[n][2], c & 1));
            for (const Number number : numbers_of(T(accessor.getValue(corner)))) expected.push_back(number);
        }
        EXPECT_EQ(around[n], expected) << at[n][0] << " " << at[n][1] << " " << at[n][2];
    }
}

TEST(VolumeGrid, gives_the_values_that_nanovdb_gives) {
    expect_values<float>("f32", -1.0f, "float");
    expect_values<double>("f64", -1.0, "double");
    expect_values<std::int16_t>("i16", -5, "int16", false);
    expect_values<std::int32_t>("i32", -5, "int32", false);
    expect_values<std::int64_t>("i64", -5, "int64", false);
    expect_values<std::uint32_t>("u32", 7, "uint32", false);
    expect_values<theirs::Vec3f>("vec3f", theirs::Vec3f(1, 2, 3), "Vec3f");
    expect_values<theirs::Vec3d>("vec3d", theirs::Vec3d(1, 2, 3), "Vec3d");
    expect_values<theirs::Vec4f>("vec4f", theirs::Vec4f(7), "Vec4f");
    expect_values<theirs::Vec4d>("vec4d", theirs::Vec4d(7), "Vec4d");
}

TEST(VolumeGrid, decodes_quantised_floats) {
    expect_values<float, theirs::Fp4>("f32", -1.0f, "Float4");
    expect_values<float, theirs::Fp8>("f32", -1.0f, "Float8");
    expect_values<float, theirs::Fp16>("f32", -1.0f, "Float16");
    expect_values<float, theirs::FpN>("f32", -1.0f, "FloatN");
}

TEST(VolumeGrid, reads_tiles_inside_of_a_level_set) {
    const auto made = theirs::createFogVolumeSphere<float>(300.0f, theirs::Vec3f(0), 1.0, 3.0);
    const Array bytes = bytes_of(made);
    const GridDescription description = check_grid(span_of(bytes), "test()");
    const auto accessor = made.grid<float>()->getAccessor();
    const spatial::VolumeView view(span_of(bytes), description, bytes);
    const devlib::VolumeDescriptor& volume = view.descriptor();
    std::vector<theirs::Coord> at;
    for (int n = -310; n < 310; n += 3) at.emplace_back(n, n / 3, -n / 2);
    const auto found = read_all<float>("lookup_f32", volume, at, 1);
    int inside = 0;
    for (std::size_t n = 0; n < at.size(); ++n) {
        EXPECT_EQ(found[n][0], accessor.getValue(at[n]));
        inside += found[n][0] == 1.0f;
    }
    EXPECT_GT(inside, 50);
}

// The table of cells and the way down the tree give the same.
template <typename Number>
void expect_same_by_cells(const std::string& name, int numbers, const Array& bytes, int reach) {
    const spatial::VolumeView view(span_of(bytes), check_grid(span_of(bytes), "test()"), bytes);
    const devlib::VolumeDescriptor& with = view.descriptor();
    ASSERT_NE(with.cells.leaves, nullptr) << name;
    devlib::VolumeDescriptor without = with;
    without.cells = {};
    std::mt19937 random(9);
    std::uniform_int_distribution<int> any(-reach, reach);
    std::vector<theirs::Coord> at = places(0);
    for (int n = 0; n < 4000; ++n) at.emplace_back(any(random), any(random), any(random));
    EXPECT_EQ(read_all<Number>("stencil_" + name, with, at, 8 * numbers),
              read_all<Number>("stencil_" + name, without, at, 8 * numbers));
    EXPECT_EQ(read_all<Number>("lookup_" + name, with, at, numbers),
              read_all<Number>("lookup_" + name, without, at, numbers));
}

// A sphere of ones in zeros. NanoVDB's own has the background of the distance that it is made from.
Array fog_sphere(float radius, float centre) {
    const Array bytes = bytes_of(theirs::createFogVolumeSphere<float>(radius, theirs::Vec3f(centre)));
    const Size root = grid::kBytes + tree::kBytes;
    nanovdb::write(host_data(bytes) + root + layout_of(GridType::f32).background, 0.0f);
    return bytes;
}

TEST(VolumeGrid, gives_the_same_by_its_table_of_cells) {
    // Values of tiles inside and outside; of inner nodes too.
    expect_same_by_cells<float>("f32", 1, bytes_of(theirs::createLevelSetSphere<float>(20.0f, theirs::Vec3f(0))), 30);
    expect_same_by_cells<float>("f32", 1, fog_sphere(100.0f, 0.0f), 120);
    expect_same_by_cells<float>("f32", 1, fog_sphere(300.0f, 7.0f), 320);
    theirs::GridBuilder<float, theirs::Fp8> quantised(-1.0f);
    theirs::GridBuilder<theirs::Vec3d> vectors(theirs::Vec3d(1, 2, 3));
    auto some = quantised.getAccessor();
    auto more = vectors.getAccessor();
    std::vector<Coordinate> active;
    for (const theirs::Coord& c : voxels()) {
        if (std::abs(c[0]) > 100 || std::abs(c[1]) > 100) continue;
        some.setValue(c, value_at<float>(c[0], c[1], c[2]));
        more.setValue(c, value_at<theirs::Vec3d>(c[0], c[1], c[2]));
        active.push_back({c[0], c[1], c[2]});
    }
    expect_same_by_cells<float>("f32", 1, bytes_of(quantised.getHandle(1.0)), 20);
    expect_same_by_cells<double>("vec3d", 3, bytes_of(vectors.getHandle(1.0)), 20);
    const Topology topology = voxels_of(active);
    std::vector<std::byte> grid(grid_bytes(GridType::on_index, capacity_of(topology)));
    build_grid(grid, topology, {GridType::on_index, {}, {}, ""}, capacity_of(topology));
    expect_same_by_cells<std::int32_t>("index", 1, bytes_of(grid.data(), grid.size()), 20);
}

TEST(VolumeGrid, has_no_table_of_cells_where_that_would_be_large) {
    const Array bytes = bytes_of(sample<float>("", -1.0f));
    const spatial::VolumeView view(span_of(bytes), check_grid(span_of(bytes), "test()"), bytes);
    EXPECT_EQ(view.descriptor().cells.leaves, nullptr);
}

TEST(VolumeGrid, of_another_type_is_zero_and_has_no_place) {
    const Array bytes = bytes_of(sample<std::int32_t>("", 3));
    const spatial::VolumeView whole(span_of(bytes), check_grid(span_of(bytes), "test()"), bytes);
    for (const devlib::VolumeDescriptor& volume : {whole.descriptor(), devlib::VolumeDescriptor{}}) {
        for (const auto& around : read_all<float>("stencil_f32", volume, places(20), 8))
            EXPECT_EQ(around, std::vector<float>(8));
    }
    for (const auto& place : read_all<std::int32_t>("lookup_index", devlib::VolumeDescriptor{}, places(20), 1))
        EXPECT_EQ(place[0], -1);
}

TEST(VolumeGrid, writes_voxels_of_leaves_alone) {
    const Array bytes = bytes_of(sample<theirs::Vec3f>("", theirs::Vec3f(0)));
    const spatial::VolumeView view(span_of(bytes), check_grid(span_of(bytes), "test()"), bytes);
    const devlib::VolumeDescriptor& volume = view.descriptor();
    const std::vector<std::byte> before(span_of(bytes).begin(), span_of(bytes).end());
    using Write = void(const std::uint64_t*, const std::int32_t*, const float*, std::uint64_t, std::int32_t);
    auto* const write = function<Write>("store_vec3f");
    const auto id = reinterpret_cast<std::uint64_t>(&volume);
    // Two lanes in leaves, one in no leaf, one that is off; components lie one after the other.
    const std::uint64_t ids[4] = {id, id, id, 13};
    const std::int32_t voxel[12] = {1, 5000, 1000, 0, 2, -3, 1000, 0, 3, 7, 1000, 0};
    const float value[12] = {1, 2, 9, 9, 10, 20, 9, 9, 100, 200, 9, 9};
    write(ids, voxel, value, 0b0111, 4);
    const std::vector<theirs::Coord> at{{1, 2, 3}, {5000, -3, 7}, {1000, 1000, 1000}};
    const auto found = read_all<float>("lookup_vec3f", volume, at, 3);
    EXPECT_EQ(found[0], (std::vector<float>{1, 10, 100}));
    EXPECT_EQ(found[1], (std::vector<float>{2, 20, 200}));
    EXPECT_EQ(found[2], (std::vector<float>{0, 0, 0}));
    int changed = 0;
    for (std::size_t n = 0; n < before.size(); ++n) changed += before[n] != span_of(bytes)[n];
    EXPECT_GT(changed, 0);
    EXPECT_LE(changed, 24);
}

// ---- what is refused ----

std::string refusal(const std::function<void(std::span<std::byte>)>& spoil) {
    const Array bytes = bytes_of(sample<float>("", -1.0f));
    spoil(span_of(bytes));
    try {
        check_grid(span_of(bytes), "Volume()");
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

void expect_refusal(const std::string& part, const std::function<void(std::span<std::byte>)>& spoil) {
    const std::string text = refusal(spoil);
    EXPECT_EQ(text.substr(0, 10), "Volume(): ") << part;
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST(VolumeGrid, is_refused_where_a_field_is_wrong) {
    EXPECT_EQ(refusal([](auto) {}), "");
    const auto set = [](Size at, auto value) {
        return [=](std::span<std::byte> grid) { nanovdb::write(grid.data() + at, value); };
    };
    const Size tree = grid::kBytes, root = grid::kBytes + tree::kBytes,
               tile = root + layout_of(GridType::f32).root_bytes;
    expect_refusal("do not begin with", set(grid::kMagic, std::uint64_t{7}));
    expect_refusal("other order of bytes", set(grid::kMagic, __builtin_bswap64(kMagicGrid)));
    expect_refusal("version is 31", set(grid::kVersion, version(31, 0, 0)));
    expect_refusal("says that it has 7 bytes", set(grid::kSize, std::uint64_t{7}));
    expect_refusal("says that it has 1099511627776 bytes", set(grid::kSize, std::uint64_t{1} << 40));
    expect_refusal("has the number 99, which is not known", set(grid::kType, 99u));
    expect_refusal("class has the number 77", set(grid::kClass, 77u));
    expect_refusal("name has no end", [](std::span<std::byte> grid) { std::memset(&grid[grid::kName], 'a', 256); });
    expect_refusal("arrays of blind data", set(grid::kBlindCount, 1u << 30));
    expect_refusal("the root of 64 bytes is said to begin", set(tree + tree::kOffsets + 24, std::uint64_t{1} << 60));
    expect_refusal("the root of 64 bytes is said to begin", set(tree + tree::kOffsets + 24, std::uint64_t{65}));
    expect_refusal("its root has 4294967295 tiles", set(root + root::kTileCount, ~0u));
    expect_refusal("an upper node of", set(tile + root::tile::kChild, std::uint64_t{32} << 40));
    expect_refusal("more leaves than", set(tree + tree::kNodeCounts, 3u));
    expect_refusal("its root leads to", set(tree + tree::kNodeCounts, 300u));
}

TEST(VolumeGrid, has_checksums_that_nanovdb_wrote) {
    const auto made = theirs::createLevelSetSphere<float>(20.0f, theirs::Vec3f(0), 1.0, 3.0, theirs::Vec3d(0), "sphere",
                                                          theirs::StatsMode::All, theirs::ChecksumMode::Full);
    const Array bytes = bytes_of(made);
    const GridDescription description = check_grid(span_of(bytes), "test()");
    EXPECT_NE(nanovdb::read<std::uint64_t>(host_data(bytes) + grid::kChecksum), kNoChecksum);
    EXPECT_NO_THROW(check_checksum(span_of(bytes), description, "test()"));
    host_data(bytes)[grid::kVoxelSize] ^= std::byte{1};
    EXPECT_THROW(check_checksum(span_of(bytes), description, "test()"), UsageError);
}

}  // namespace
}  // namespace weft::runtime::nanovdb
