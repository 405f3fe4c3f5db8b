// Grids that we build, read by NanoVDB's own classes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/cpu/thread_pool.h"
#include "runtime/spatial/nanovdb_samples.h"
#include "runtime/spatial/volume/build.h"

namespace weft::runtime::nanovdb {
namespace {

using namespace samples;

std::vector<Coordinate> random_points(int count, int reach, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> any(-reach, reach);
    std::vector<Coordinate> result;
    for (int n = 0; n < count; ++n) result.push_back({any(random), any(random), any(random)});
    return result;
}

struct Built {
    Array bytes;
    GridDescription description;

    Bytes span() const { return span_of(bytes); }
    template <typename T>
    const theirs::NanoGrid<T>& grid() const {
        return *reinterpret_cast<const theirs::NanoGrid<T>*>(span_of(bytes).data());
    }
};

Built build(const Topology& topology, const Recipe& recipe, std::byte before = std::byte{0xa5}) {
    const Capacity capacity = capacity_of(topology);
    const std::vector<std::byte> garbage(grid_bytes(recipe.type, capacity), before);
    Built result{bytes_of(garbage.data(), garbage.size()), {}};
    build_grid(span_of(result.bytes), topology, recipe, capacity);
    result.description = check_grid(result.span(), "test()");
    return result;
}

template <typename T>
std::vector<std::byte> value_bytes(const T& value) {
    const auto numbers = numbers_of(value);
    const auto bytes = std::as_bytes(std::span(numbers));
    return {bytes.begin(), bytes.end()};
}

template <typename T>
void expect_tiles(GridType type, T background) {
    SCOPED_TRACE(type_name(type));
    const std::vector<Coordinate> points = random_points(60, 5000, 1);
    const Map map = *make_map({0.5, 0, 0, 0, 0.25, 0, 0, 0, 2}, {1, 2, 3});
    const Built built = build(tiles_of(points), {type, value_bytes(background), map, "tiles"});
    const auto& grid = built.grid<T>();
    EXPECT_STREQ(grid.gridName(), "tiles");
    EXPECT_EQ(grid.voxelSize(), theirs::Vec3d(0.5, 0.25, 2));
    EXPECT_EQ(grid.indexToWorld(theirs::Vec3d(2, 4, 1)), theirs::Vec3d(2, 3, 5));
    EXPECT_EQ(grid.worldToIndex(theirs::Vec3d(2, 3, 5)), theirs::Vec3d(2, 4, 1));
    std::set<std::array<int, 3>> leaves;
    for (const auto [i, j, k] : points) leaves.insert({i & ~7, j & ~7, k & ~7});
    EXPECT_EQ(grid.tree().nodeCount(0), leaves.size());
    EXPECT_EQ(grid.activeVoxelCount(), leaves.size() * 512);
    EXPECT_EQ(built.description.nodes[0], leaves.size());
    theirs::CoordBBox box;
    const auto accessor = grid.getAccessor();
    EXPECT_EQ(numbers_of(T(grid.tree().background())), numbers_of(background));
    for (const auto& [i, j, k] : leaves) {
        box.expand(theirs::Coord(i, j, k));
        box.expand(theirs::Coord(i + 7, j + 7, k + 7));
        const theirs::Coord at(i + 3, j + 7, k);
        EXPECT_TRUE(accessor.isActive(at));
        EXPECT_EQ(numbers_of(T(accessor.getValue(at))), numbers_of(background));
        const auto* leaf = grid.tree().root().probeLeaf(at);
        ASSERT_NE(leaf, nullptr);
        EXPECT_EQ(leaf->origin(), theirs::Coord(i, j, k));
        EXPECT_EQ(leaf->bbox(), theirs::CoordBBox(theirs::Coord(i, j, k), theirs::Coord(i + 7, j + 7, k + 7)));
    }
    EXPECT_EQ(grid.indexBBox(), box);
    EXPECT_FALSE(accessor.isActive(theirs::Coord(100000, 0, 0)));
    EXPECT_EQ(grid.worldBBox().min(), grid.indexToWorld(theirs::Vec3d(box.min()[0], box.min()[1], box.min()[2])));
}

TEST(VolumeBuild, makes_tiles_that_nanovdb_reads) {
    expect_tiles<float>(GridType::f32, -1.5f);
    expect_tiles<double>(GridType::f64, -1.5);
    expect_tiles<std::int32_t>(GridType::i32, -7);
    expect_tiles<std::int64_t>(GridType::i64, -7);
    expect_tiles<std::uint32_t>(GridType::u32, 7);
    expect_tiles<theirs::Vec3f>(GridType::vec3f, theirs::Vec3f(1, 2, 3));
    expect_tiles<theirs::Vec3d>(GridType::vec3d, theirs::Vec3d(1, 2, 3));
    expect_tiles<theirs::Vec4f>(GridType::vec4f, theirs::Vec4f(4));
    expect_tiles<theirs::Vec4d>(GridType::vec4d, theirs::Vec4d(4));
}

TEST(VolumeBuild, orders_leaves_by_the_tree) {
    const std::vector<Coordinate> points{{4096, 0, 0}, {0, 0, 0}, {-1, 0, 0}, {0, 0, 130},  {0, 130, 0},
                                         {0, 0, 8},    {0, 8, 0}, {0, 0, 9},  {0, -1, 5000}};
    const Built built = build(tiles_of(points), {GridType::f32, value_bytes(0.0f), {}, ""});
    std::vector<Coordinate> origins;
    for (const LeafLocation& leaf : leaves_of(built.span())) origins.push_back(leaf.origin);
    EXPECT_EQ(origins,
              (std::vector<Coordinate>{
                  {-8, 0, 0}, {0, -8, 5000}, {0, 0, 0}, {0, 0, 8}, {0, 8, 0}, {0, 0, 128}, {0, 128, 0}, {4096, 0, 0}}));
}

TEST(VolumeBuild, is_the_same_for_any_order_of_points_and_any_threads) {
    std::vector<Coordinate> points = random_points(40000, 60, 2);
    const int threads = cpu_threads();
    std::vector<std::byte> first;
    for (const int count : {1, 2, 1}) {
        set_cpu_threads(count);
        const Built built = build(voxels_of(points), {GridType::on_index, {}, {}, ""});
        const std::vector<std::byte> bytes(built.span().begin(), built.span().end());
        if (first.empty()) first = bytes;
        EXPECT_EQ(bytes, first);
        std::reverse(points.begin(), points.end());
        points.push_back(points[17]);
    }
    set_cpu_threads(threads);
}

TEST(VolumeBuild, gives_each_active_voxel_a_place_of_its_own) {
    for (const auto& [reach, count] : {std::pair{5, 3000}, {12, 3000}, {200, 3000}, {9000, 100}}) {
        const std::vector<Coordinate> points = random_points(count, reach, 3);
        const Built built = build(voxels_of(points), {GridType::on_index, {}, {}, ""});
        std::set<std::array<int, 3>> unique;
        for (const auto [i, j, k] : points) unique.insert({i, j, k});
        EXPECT_EQ(built.description.value_count, unique.size() + 1);
        EXPECT_EQ(built.description.active_voxels, unique.size());
        // The places are 1, 2, ... in the order of the leaves' voxels.
        std::uint64_t next = 1;
        for (const LeafLocation& leaf : leaves_of(built.span())) {
            const std::byte* at = built.span().data() + leaf.offset;
            EXPECT_EQ(nanovdb::read<std::uint64_t>(at + leaf::kFirstIndex), next);
            for (int n = 0; n < kLeafVoxels; ++n) {
                const std::array<int, 3> voxel{leaf.origin.i + n / 64, leaf.origin.j + n / 8 % 8,
                                               leaf.origin.k + n % 8};
                const bool is_active = (static_cast<unsigned>(at[leaf::kValueMask + n / 8]) >> (n % 8) & 1) != 0;
                EXPECT_EQ(is_active, unique.contains(voxel));
                next += is_active;
            }
        }
        EXPECT_EQ(next, unique.size() + 1);
    }
}

TEST(VolumeBuild, takes_the_ends_of_the_numbers) {
    const std::vector<Coordinate> points{{INT32_MIN, INT32_MAX, 0}, {INT32_MAX, INT32_MIN, -1}};
    const Built built = build(voxels_of(points), {GridType::on_index, {}, {}, ""});
    const std::vector<LeafLocation> leaves = leaves_of(built.span());
    ASSERT_EQ(leaves.size(), 2u);
    EXPECT_EQ(leaves[0].origin, (Coordinate{INT32_MIN, INT32_MAX - 7, 0}));
    EXPECT_EQ(leaves[1].origin, (Coordinate{INT32_MAX - 7, INT32_MIN, -8}));
}

TEST(VolumeBuild, leaves_room_for_more_nodes) {
    const Topology few = tiles_of(random_points(3, 20, 4)), many = tiles_of(random_points(50, 20, 5));
    const Capacity capacity{50 * kLeafVoxels, 50, 8, 8};
    const Recipe recipe{GridType::f32, value_bytes(2.0f), {}, ""};
    std::vector<std::byte> room(grid_bytes(recipe.type, capacity));
    const Array bytes = bytes_of(room.data(), room.size());
    for (const Topology* topology : {&few, &many, &few}) {
        build_grid(span_of(bytes), *topology, recipe, capacity);
        const GridDescription description = check_grid(span_of(bytes), "test()");
        EXPECT_EQ(description.nodes[0], topology->leaves.size());
        EXPECT_EQ(description.size_bytes, room.size());
    }
}

TEST(VolumeBuild, copies_dense_values_into_leaves) {
    const std::array<std::int64_t, 3> extent{10, 3, 17};
    const Coordinate first{-5, 2, -9};
    std::vector<float> values(10 * 3 * 17);
    for (std::size_t n = 0; n < values.size(); ++n) values[n] = static_cast<float>(n);
    std::vector<Coordinate> points;
    for (int i = -5; i < 5; ++i)
        for (int j = 2; j < 5; ++j)
            for (int k = -9; k < 8; ++k) points.push_back({i, j, k});
    const Built built = build(tiles_of(points), {GridType::f32, value_bytes(-1.0f), {}, ""});
    write_dense(span_of(built.bytes), std::as_bytes(std::span(values)), extent, first);
    const auto accessor = built.grid<float>().getAccessor();
    for (int i = -9; i < 12; ++i) {
        for (int j = -9; j < 12; ++j) {
            for (int k = -17; k < 20; ++k) {
                const int x = i - first.i, y = j - first.j, z = k - first.k;
                const bool is_inside = x >= 0 && x < 10 && y >= 0 && y < 3 && z >= 0 && z < 17;
                EXPECT_EQ(accessor.getValue(theirs::Coord(i, j, k)),
                          is_inside ? static_cast<float>((x * 3 + y) * 17 + z) : -1);
            }
        }
    }
}

TEST(VolumeBuild, inverts_maps_that_have_an_inverse) {
    const auto map = make_map({1, 2, 3, 4, 5, 6, 7, 8, 10}, {1, 2, 3});
    ASSERT_TRUE(map);
    for (int row = 0; row < 3; ++row) {
        for (int column = 0; column < 3; ++column) {
            double sum = 0;
            for (int n = 0; n < 3; ++n) sum += map->matrix[3 * row + n] * map->inverse[3 * n + column];
            EXPECT_NEAR(sum, row == column, 1e-12);
        }
    }
    EXPECT_FALSE(make_map({1, 2, 3, 2, 4, 6, 7, 8, 10}, {}));
    EXPECT_FALSE(make_map({NAN, 0, 0, 0, 1, 0, 0, 0, 1}, {}));
}

TEST(VolumeBuild, no_byte_depends_on_what_the_memory_held_before) {
    const std::vector<Coordinate> points = random_points(60, 5000, 7);
    const auto expect = [&](const Topology& topology, const Recipe& recipe) {
        const Built one = build(topology, recipe), other = build(topology, recipe, std::byte{0x3c});
        EXPECT_TRUE(std::ranges::equal(one.span(), other.span())) << type_name(recipe.type);
    };
    expect(tiles_of(points), {GridType::f32, value_bytes(0.25F), {}, "tiles"});
    expect(tiles_of(points), {GridType::i16, value_bytes(std::int16_t{3}), {}, "tiles"});
    expect(tiles_of(points), {GridType::f64, value_bytes(0.25), {}, "tiles"});
    expect(tiles_of(points), {GridType::vec3f, value_bytes(theirs::Vec3f(1, 2, 3)), {}, "tiles"});
    expect(tiles_of(points), {GridType::index, {}, {}, "tiles"});
    expect(voxels_of(points), {GridType::on_index, {}, {}, "voxels"});
}

}  // namespace
}  // namespace weft::runtime::nanovdb
