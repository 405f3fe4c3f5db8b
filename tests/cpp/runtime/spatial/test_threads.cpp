// Eight threads make, query, refit, rebuild, replace and free meshes, BVHs, hash grids and volumes at once. The address
// and thread sanitizers run these tests too (tools/test_sanitize.sh).
//
// A refit in place is its owner's: who refits while others query gets boxes of both, which is no test here.
//
// Traversals are object code without a sanitizer's checks, so that each query also reads what it walks over here.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "runtime/bytes.h"
#include "runtime/cpu/library.h"
#include "runtime/handles.h"
#include "runtime/spatial/bvh.h"
#include "runtime/spatial/geometry.h"
#include "runtime/spatial/hash_grid.h"
#include "runtime/spatial/mesh.h"
#include "runtime/spatial/volume/build.h"
#include "runtime/spatial/volume/volume.h"

namespace weft::runtime::spatial {
namespace {

constexpr int kThreads = 8, kRounds = 60;

template <typename E>
Array array_of(Type dtype, const std::vector<E>& numbers, std::int64_t count) {
    Array made = empty(dtype, std::vector<std::int64_t>{count}, device("cpu"));
    if (!numbers.empty()) std::memcpy(made.view.data, numbers.data(), numbers.size() * sizeof(E));
    return made;
}
Array points_array(const std::vector<float>& numbers) {
    return array_of(Type::vector(Scalar::f32, 3), numbers, static_cast<std::int64_t>(numbers.size()) / 3);
}

// Places whose number of a kind of object everybody may read, and one thread at a time replaces.
class Shelf {
public:
    std::uint64_t look(Random& random) const { return ids_[random() % ids_.size()].load(); }
    // The number that was there before.
    std::uint64_t put(Random& random, std::uint64_t id) { return ids_[random() % ids_.size()].exchange(id); }
    std::uint64_t take(std::size_t place) { return ids_[place].exchange(0); }
    std::size_t size() const { return ids_.size(); }

private:
    std::array<std::atomic<std::uint64_t>, 6> ids_{};
};

// As a kernel does.
const void* look_up(std::uint64_t id, ObjectKind kind) {
    return reinterpret_cast<const void*>(find_object(id, static_cast<std::int32_t>(kind)));
}

// The object that `look` finds by the id, if the id has the meaning that it had when the snapshot was taken.
template <typename Look>
auto in_snapshot(std::uint64_t id, const Snapshot& kept, const Look& look) {
    const Contents contents = kept.is_empty() ? Contents{} : kept.contents();
    PreviousObjects previous;
    previous.add(id, contents.descriptor, contents.object);
    const ThreadSnapshotScope here(previous);
    return look(id);
}

template <typename Body>
void on_all_threads(const Body& body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&body, i] {
            Random random(static_cast<std::uint64_t>(i) + 1);
            for (int round = 0; round < kRounds; ++round) body(random, static_cast<std::size_t>(i));
        });
    for (std::thread& thread : threads) thread.join();
}

// ---- meshes and BVHs ----

struct MeshObject : Object {
    explicit MeshObject(const TestMesh<float>& of)
        : mesh(points_array(of.points),
               array_of(Type::scalar(Scalar::i32), of.indices, static_cast<std::int64_t>(of.indices.size())), {},
               {.support_winding_number = true}, {}) {}
    Mesh mesh;
};

// Every node of the tree is read, and a ray is traced. -1: nothing was met, or there is no such mesh.
template <typename Descriptor>
void read_nodes(const Descriptor& descriptor) {
    std::int32_t children = 0;
    for (std::int32_t n = 0; n < descriptor.tree.node_count; ++n) children += descriptor.tree.nodes[n].count;
    ASSERT_TRUE(descriptor.tree.node_count == 0 || children >= descriptor.tree.node_count);
}
std::int32_t hit(std::uint64_t id) {
    const ReadLease reading;
    const void* const found = look_up(id, ObjectKind::mesh);
    read_nodes(*static_cast<const devlib::MeshDescriptor<float>*>(found));
    auto* const nearest = reinterpret_cast<void (*)(std::int32_t*, const std::uint64_t*, const float*, const float*,
                                                    const float*, const std::int32_t*, std::uint64_t, std::int32_t)>(
        find_library_function("weft_lib_mesh_ray_nearest_f32"));
    const auto address = reinterpret_cast<std::uint64_t>(found);
    const float start[3] = {0.1F, 0.2F, -9}, direction[3] = {0, 0, 1}, limit = 100;
    const std::int32_t root = -1;
    std::int32_t face = -2;
    nearest(&face, &address, start, direction, &limit, &root, 1, 1);
    return face;
}

TEST(SpatialThreads, make_query_refit_and_free_meshes) {
    Shelf shelf;
    std::atomic<int> hits{0};
    on_all_threads([&](Random& random, std::size_t) {
        auto object = std::make_shared<MeshObject>(bumpy<float>(6 + static_cast<int>(random() % 10)));
        // Before anybody knows it, its points may change.
        auto* const points = static_cast<float*>(object->mesh.points().view.data);
        for (std::int64_t i = 0; i < 3 * object->mesh.points().size(); ++i) points[i] *= 1.5F;
        object->mesh.refit();
        const std::uint64_t id = publish(ObjectKind::mesh, {object->mesh.descriptor(), object});
        object.reset();
        EXPECT_GE(hit(id), 0);
        withdraw(shelf.put(random, id));
        for (int i = 0; i < 4; ++i) {
            const std::uint64_t other = shelf.look(random);
            const Snapshot kept(other);
            const std::int32_t face = hit(other),
                               kept_face = in_snapshot(other, kept, [](std::uint64_t id) { return hit(id); });
            ASSERT_TRUE(face >= -1 && kept_face >= (kept.is_empty() ? -1 : 0));
            hits += face >= 0;
        }
    });
    for (std::size_t i = 0; i < shelf.size(); ++i) {
        const std::uint64_t id = shelf.take(i);
        withdraw(id);
        EXPECT_EQ(hit(id), -1);
    }
    EXPECT_GT(hits, kThreads * kRounds);
}

struct BvhObject : Object {
    BvhObject(const Array& lowers, const Array& uppers, TreeMethod method)
        : bvh(lowers, uppers, {.method = method}, {}) {}
    Bvh bvh;
};

// How many boxes the walk over everything gives.
std::int32_t count_boxes(std::uint64_t id) {
    const ReadLease reading;
    const void* const found = look_up(id, ObjectKind::bvh);
    read_nodes(*static_cast<const devlib::BvhDescriptor<float>*>(found));
    auto* const next =
        reinterpret_cast<void (*)(std::int32_t*, const std::uint64_t*, const float*, const float*, const std::int32_t*,
                                  const std::int32_t*, std::uint64_t, std::int32_t)>(
            find_library_function("weft_lib_bvh_next_box_f32"));
    const auto address = reinterpret_cast<std::uint64_t>(found);
    const float low[3] = {-9, -9, -9}, high[3] = {9, 9, 9};
    const std::int32_t root = -1;
    std::int32_t state[5] = {0, 0, -1, 0, 0}, count = -1;
    do {
        std::int32_t walk[4];
        std::memcpy(walk, state + 1, sizeof walk);
        next(state, &address, low, high, &root, walk, 1, 1);
        ++count;
    } while (state[0] >= 0);
    return count;
}

TEST(SpatialThreads, rebuild_bvhs_under_the_same_id) {
    constexpr std::int32_t kBoxes = 900;
    std::vector<float> low, high;
    Random random(4);
    for (int i = 0; i < 3 * kBoxes; ++i) {
        low.push_back(static_cast<float>(uniform(random, -1, 1)));
        high.push_back(low.back() + 0.05F);
    }
    const Array lowers = points_array(low), uppers = points_array(high);
    std::array<std::uint64_t, 3> ids{};
    const auto made = [&](TreeMethod method) {
        auto object = std::make_shared<BvhObject>(lowers, uppers, method);
        return Contents{object->bvh.descriptor(), object};
    };
    for (std::uint64_t& id : ids) id = publish(ObjectKind::bvh, made(TreeMethod::sah));
    on_all_threads([&](Random& mine, std::size_t) {
        const std::uint64_t id = ids[mine() % ids.size()];
        if (mine() % 3 == 0) replace(id, made(mine() % 2 == 0 ? TreeMethod::sah : TreeMethod::linear));
        ASSERT_EQ(count_boxes(id), kBoxes);
        ASSERT_EQ(in_snapshot(id, Snapshot(id), [](std::uint64_t of) { return count_boxes(of); }), kBoxes);
    });
    for (const std::uint64_t id : ids) {
        withdraw(id);
        EXPECT_EQ(count_boxes(id), 0);
    }
}

// ---- hash grids ----

// Every point of a grid once, or none.
std::int64_t count_points(std::uint64_t id) {
    const ReadLease reading;
    const auto& grid = *static_cast<const HashGridDescriptor*>(look_up(id, ObjectKind::hash_grid));
    std::vector<bool> seen(static_cast<std::size_t>(grid.count));
    for (std::int32_t i = 0; i < grid.count; ++i) {
        const std::int32_t point = static_cast<const std::int32_t*>(grid.points.data)[i];
        EXPECT_TRUE(point >= 0 && point < grid.count && !seen[static_cast<std::size_t>(point)]);
        seen[static_cast<std::size_t>(point)] = true;
    }
    if (grid.count > 0) {
        const auto* const starts = static_cast<const std::int32_t*>(grid.starts.data);
        const std::int64_t cells = static_cast<std::int64_t>(grid.dims[0]) * grid.dims[1] * grid.dims[2];
        EXPECT_EQ(starts[cells], grid.count);
    }
    return grid.count;
}

TEST(SpatialThreads, build_and_free_hash_grids) {
    constexpr std::int64_t kDims[3] = {9, 8, 7};
    std::array<std::atomic<std::uint64_t>, kThreads> ids{};
    std::array<std::unique_ptr<HashGrid>, kThreads> grids;
    std::atomic<int> found{0};
    on_all_threads([&](Random& random, std::size_t thread) {
        std::unique_ptr<HashGrid>& own = grids[thread];
        if (!own || random() % 8 == 0) {
            own = std::make_unique<HashGrid>(kDims, Scalar::f32, device("cpu"));
            ids[thread] = own->id();
        }
        std::vector<float> places;
        const std::uint64_t count = 1 + random() % 3000;
        for (std::uint64_t i = 0; i < 3 * count; ++i) places.push_back(static_cast<float>(uniform(random, -2, 2)));
        own->build(points_array(places), 0.3, nullptr);
        EXPECT_EQ(count_points(own->id()), static_cast<std::int64_t>(count));
        for (int i = 0; i < 6; ++i) {
            const std::uint64_t other = ids[random() % ids.size()];
            const Snapshot kept(other);
            found += count_points(other) > 0;
            in_snapshot(other, kept, [](std::uint64_t id) { return count_points(id); });
        }
    });
    EXPECT_GT(found, kThreads * kRounds);
    for (std::size_t i = 0; i < grids.size(); ++i) {
        grids[i].reset();
        EXPECT_EQ(count_points(ids[i]), 0);
    }
}

// ---- volumes ----

std::unique_ptr<Volume> make_volume(Random& random, float background, float value) {
    namespace nano = runtime::nanovdb;
    std::vector<nano::Coordinate> tiles;
    for (int i = 0; i < 6; ++i) {
        const auto any = [&] { return static_cast<std::int32_t>(random() % 80) - 40; };
        tiles.push_back({any(), any(), any()});
    }
    tiles.push_back({0, 0, 0});
    const nano::Topology topology = nano::tiles_of(tiles);
    nano::Recipe recipe;
    recipe.background.resize(sizeof background);
    std::memcpy(recipe.background.data(), &background, sizeof background);
    const nano::Capacity capacity = nano::capacity_of(topology);
    const std::int64_t shape[] = {static_cast<std::int64_t>(nano::grid_bytes(recipe.type, capacity))};
    const Array bytes = empty(Type::scalar(Scalar::u8), shape, device("cpu"));
    const std::span grid(host_data(bytes), static_cast<std::size_t>(shape[0]));
    nano::build_grid(grid, topology, recipe, capacity);
    const std::vector<float> values(512, value);
    nano::write_dense(grid, std::as_bytes(std::span(values)), {8, 8, 8}, {0, 0, 0});
    return std::make_unique<Volume>(bytes, "test()");
}

// The value of a voxel; 0 if there is no such volume.
float value_at(std::uint64_t id, std::int32_t i, std::int32_t j, std::int32_t k) {
    const ReadLease reading;
    const void* const found = look_up(id, ObjectKind::volume);
    auto* const lookup =
        reinterpret_cast<void (*)(float*, const std::uint64_t*, const std::int32_t*, std::uint64_t, std::int32_t)>(
            find_library_function("weft_lib_volume_lookup_f32"));
    const auto address = reinterpret_cast<std::uint64_t>(found);
    const std::int32_t voxel[3] = {i, j, k};
    float value = -1;
    lookup(&value, &address, voxel, 1, 1);
    return value;
}

TEST(SpatialThreads, make_look_up_and_free_volumes) {
    std::array<std::atomic<std::uint64_t>, kThreads> ids{};
    std::array<std::unique_ptr<Volume>, kThreads> volumes;
    std::atomic<int> found{0};
    on_all_threads([&](Random& random, std::size_t thread) {
        volumes[thread] = make_volume(random, 7, 3);
        ids[thread] = volumes[thread]->id();
        for (int i = 0; i < 8; ++i) {
            const std::uint64_t other = ids[random() % ids.size()];
            const Snapshot kept(other);
            for (const bool is_kept : {false, true}) {
                const auto value = [&](std::int32_t x, std::int32_t z) {
                    const auto at = [&](std::uint64_t id) { return value_at(id, x, 2, z); };
                    return is_kept ? in_snapshot(other, kept, at) : at(other);
                };
                const float inside = value(1, static_cast<std::int32_t>(random() % 8)), outside = value(1000, 3);
                ASSERT_TRUE((inside == 3 || inside == 0) && (outside == 7 || outside == 0));
                found += inside == 3;
            }
        }
    });
    EXPECT_GT(found, kThreads * kRounds);
    for (std::size_t i = 0; i < volumes.size(); ++i) {
        volumes[i].reset();
        EXPECT_EQ(value_at(ids[i], 1, 2, 3), 0);
    }
}

}  // namespace
}  // namespace weft::runtime::spatial
