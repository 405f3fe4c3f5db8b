// Trees over a mesh of 184 k triangles from C++: how long builds, refits, rays and closest points take, on all threads,
// and what Embree takes for the same where this was compiled with it.
//
//     ninja -C build bench_trees && build/bench_trees [threads [rows of the mesh [what]]]
//
// `what` is a part of the names that are measured. Mesh and queries are those of bench/geometry/queries.py. 2237 rows
// make 10 million triangles; of more than 1000 only the builds are measured, and the memory they take.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "devlib/spatial/layout.h"
#include "runtime/cpu/library.h"
#include "runtime/cpu/thread_pool.h"
#include "runtime/spatial/parallel.h"
#include "runtime/spatial/tree.h"
#if defined(WEFT_EMBREE)
#include <embree3/rtcore.h>
#endif

namespace {

using namespace weft;
using namespace weft::runtime;
using namespace weft::runtime::spatial;

constexpr int kWidth = 16;  // lanes of a kernel
constexpr std::int64_t kQueries = 1 << 20;

struct Shape {
    std::vector<float> points;
    std::vector<std::int32_t> indices;
    std::int64_t faces() const { return static_cast<std::int64_t>(indices.size()) / 3; }
};

// The sphere with bumps of bench/geometry/queries.py: n rows of n corners.
Shape bumpy_sphere(int n) {
    Shape shape;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            const double theta = 0.02 + (M_PI - 0.04) * i / (n - 1), phi = 2 * M_PI * j / n;
            const double r =
                1 + 0.05 * std::sin(9 * theta) * std::cos(11 * phi) + 0.02 * std::sin(31 * theta + 17 * phi);
            for (const double x : {std::sin(theta) * std::cos(phi), std::sin(theta) * std::sin(phi), std::cos(theta)})
                shape.points.push_back(static_cast<float>(r * x));
        }
    for (int half = 0; half < 2; ++half)
        for (int i = 0; i + 1 < n; ++i)
            for (int j = 0; j < n; ++j) {
                const std::int32_t a = i * n + j, b = a + n, c = i * n + (j + 1) % n, d = c + n;
                const std::array<std::int32_t, 3> corners = half == 0 ? std::array{a, b, c} : std::array{c, b, d};
                shape.indices.insert(shape.indices.end(), corners.begin(), corners.end());
            }
    return shape;
}

// Of the wall, and of the processor divided by the threads: what it would take where nothing else runs.
struct Time {
    double wall_ms = 1e30, processor_ms = 1e30;
};

template <typename Body>
Time least_time(int repeats, const Body& body) {
    Time least;
    for (int i = 0; i < repeats; ++i) {
        const auto start = std::chrono::steady_clock::now();
        const std::clock_t before = std::clock();
        body();
        const double processor = 1e3 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC / cpu_threads();
        const double wall = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
        least.wall_ms = std::min(least.wall_ms, wall);
        least.processor_ms = std::min(least.processor_ms, processor);
    }
    return least;
}

struct Queries {
    std::vector<float> start, direction, limit;  // x y z of kWidth lanes after each other
    std::vector<std::int32_t> result;
};

template <typename Fill>
Queries make_queries(const Fill& fill) {
    Queries made;
    made.start.resize(3 * kQueries), made.direction.resize(3 * kQueries), made.limit.assign(kQueries, 1e30f);
    made.result.assign(kQueries, -1);
    for (std::int64_t i = 0; i < kQueries; ++i) {
        float start[3], direction[3] = {};
        fill(i, start, direction);
        for (int axis = 0; axis < 3; ++axis) {
            made.start[i / kWidth * 3 * kWidth + axis * kWidth + i % kWidth] = start[axis];
            made.direction[i / kWidth * 3 * kWidth + axis * kWidth + i % kWidth] = direction[axis];
        }
    }
    return made;
}

using RayFunction = void(std::int32_t*, const std::uint64_t*, const float*, const float*, const float*,
                         const std::int32_t*, std::uint64_t, std::int32_t);

template <typename Function>
Function* find(const char* name) {
    return reinterpret_cast<Function*>(find_library_function(name));
}

void trace(const devlib::MeshDescriptor<float>& mesh, Queries& queries, RayFunction* function) {
    std::uint64_t ids[kWidth];
    std::int32_t roots[kWidth];
    std::fill_n(ids, kWidth, reinterpret_cast<std::uint64_t>(&mesh));
    std::fill_n(roots, kWidth, -1);
    for_ranges(kQueries / kWidth, 256, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            function(&queries.result[i * kWidth], ids, &queries.start[i * 3 * kWidth],
                     &queries.direction[i * 3 * kWidth], &queries.limit[i * kWidth], roots, (1 << kWidth) - 1, kWidth);
    });
}

using PointFunction = void(std::int32_t*, const std::uint64_t*, const float*, const float*, std::uint64_t,
                           std::int32_t);

void ask(const devlib::MeshDescriptor<float>& mesh, Queries& queries, PointFunction* function) {
    std::uint64_t ids[kWidth];
    std::fill_n(ids, kWidth, reinterpret_cast<std::uint64_t>(&mesh));
    for_ranges(kQueries / kWidth, 64, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            std::int32_t result[2 * kWidth];
            function(result, ids, &queries.start[i * 3 * kWidth], &queries.limit[i * kWidth], (1 << kWidth) - 1,
                     kWidth);
            std::copy_n(result, kWidth, &queries.result[i * kWidth]);
        }
    });
}

std::int64_t hits(const Queries& queries) {
    return std::count_if(queries.result.begin(), queries.result.end(), [](std::int32_t face) { return face >= 0; });
}

std::string only;  // what is measured has this in its name

template <typename Work>
void report(const std::string& what, int runs, const Work& work) {
    if (what.find(only) == std::string::npos) return;
    const Time time = least_time(runs, work);
    std::printf("%-44s %9.2f ms  processor %9.2f ms\n", what.c_str(), time.wall_ms, time.processor_ms);
}

#if defined(WEFT_EMBREE)
// What the user of Embree's point query writes: the closest point of a triangle (C. Ericson, Real-Time Collision
// Detection, 5.1.5).
struct Nearest {
    const Shape* shape;
    float p[3];
    std::int32_t face = -1;
};
bool nearer_triangle(RTCPointQueryFunctionArguments* arguments) {
    auto& nearest = *static_cast<Nearest*>(arguments->userPtr);
    using V = std::array<float, 3>;
    const auto corner = [&](int i) {
        const float* at = &nearest.shape->points[static_cast<std::size_t>(
            3 * nearest.shape->indices[static_cast<std::size_t>(3 * arguments->primID) + static_cast<std::size_t>(i)])];
        return V{at[0] - nearest.p[0], at[1] - nearest.p[1], at[2] - nearest.p[2]};
    };
    const auto minus = [](V a, V b) { return V{a[0] - b[0], a[1] - b[1], a[2] - b[2]}; };
    const auto dot = [](V a, V b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; };
    const auto along = [](V a, float s, V d) { return V{a[0] + s * d[0], a[1] + s * d[1], a[2] + s * d[2]}; };
    const V a = corner(0), b = corner(1), c = corner(2), ab = minus(b, a), ac = minus(c, a);
    const float d1 = -dot(ab, a), d2 = -dot(ac, a), d3 = -dot(ab, b), d4 = -dot(ac, b), d5 = -dot(ab, c),
                d6 = -dot(ac, c);
    const float va = d3 * d6 - d5 * d4, vb = d5 * d2 - d1 * d6, vc = d1 * d4 - d3 * d2;
    V closest;
    if (d1 <= 0 && d2 <= 0)
        closest = a;
    else if (d3 >= 0 && d4 <= d3)
        closest = b;
    else if (d6 >= 0 && d5 <= d6)
        closest = c;
    else if (vc <= 0 && d1 >= 0 && d3 <= 0)
        closest = along(a, d1 / (d1 - d3), ab);
    else if (vb <= 0 && d2 >= 0 && d6 <= 0)
        closest = along(a, d2 / (d2 - d6), ac);
    else if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0)
        closest = along(b, (d4 - d3) / ((d4 - d3) + (d5 - d6)), minus(c, b));
    else
        closest = along(along(a, vb / (va + vb + vc), ab), vc / (va + vb + vc), ac);
    const float distance = std::sqrt(dot(closest, closest));
    if (distance >= arguments->query->radius) return false;
    arguments->query->radius = distance;
    nearest.face = static_cast<std::int32_t>(arguments->primID);
    return true;
}

void run_embree(const Shape& shape, Queries& coherent, Queries& incoherent, Queries& anywhere, Queries& near,
                int threads) {
    RTCDevice device = rtcNewDevice(("threads=" + std::to_string(threads)).c_str());
    const auto build = [&](RTCBuildQuality quality) {
        RTCScene scene = rtcNewScene(device);
        rtcSetSceneBuildQuality(scene, quality);
        RTCGeometry geometry = rtcNewGeometry(device, RTC_GEOMETRY_TYPE_TRIANGLE);
        rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3, shape.points.data(), 0, 12,
                                   shape.points.size() / 3);
        rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, shape.indices.data(), 0, 12,
                                   shape.indices.size() / 3);
        rtcSetGeometryBuildQuality(geometry, quality);
        rtcCommitGeometry(geometry);
        rtcAttachGeometry(scene, geometry);
        rtcReleaseGeometry(geometry);
        rtcCommitScene(scene);
        return scene;
    };
    report("Embree: build, medium quality", 5, [&] { rtcReleaseScene(build(RTC_BUILD_QUALITY_MEDIUM)); });
    report("Embree: build, low quality", 5, [&] { rtcReleaseScene(build(RTC_BUILD_QUALITY_LOW)); });
    RTCScene scene = build(RTC_BUILD_QUALITY_MEDIUM);
    const auto rays = [&](Queries& queries) {
        for_ranges(kQueries / kWidth, 256, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i)
                for (int lane = 0; lane < kWidth; ++lane) {
                    RTCIntersectContext context;
                    rtcInitIntersectContext(&context);
                    RTCRayHit hit;
                    const float* const start = &queries.start[i * 3 * kWidth + lane];
                    const float* const direction = &queries.direction[i * 3 * kWidth + lane];
                    hit.ray = {start[0],
                               start[kWidth],
                               start[2 * kWidth],
                               0,
                               direction[0],
                               direction[kWidth],
                               direction[2 * kWidth],
                               0,
                               1e30f,
                               ~0u,
                               0,
                               0};
                    hit.hit.geomID = hit.hit.instID[0] = RTC_INVALID_GEOMETRY_ID;
                    rtcIntersect1(scene, &context, &hit);
                    queries.result[i * kWidth + lane] =
                        hit.hit.geomID == RTC_INVALID_GEOMETRY_ID ? -1 : static_cast<std::int32_t>(hit.hit.primID);
                }
        });
    };
    report("Embree: coherent rays", 5, [&] { rays(coherent); });
    report("Embree: incoherent rays", 5, [&] { rays(incoherent); });
    const auto packets = [&](Queries& queries) {
        for_ranges(kQueries / kWidth, 256, [&](std::int64_t begin, std::int64_t end) {
            alignas(64) int valid[kWidth];
            std::fill_n(valid, kWidth, -1);
            for (std::int64_t i = begin; i < end; ++i) {
                RTCIntersectContext context;
                rtcInitIntersectContext(&context);
                context.flags = RTC_INTERSECT_CONTEXT_FLAG_COHERENT;
                RTCRayHit16 hit;
                std::memcpy(hit.ray.org_x, &queries.start[i * 3 * kWidth], sizeof hit.ray.org_x * 3);
                std::memcpy(hit.ray.dir_x, &queries.direction[i * 3 * kWidth], sizeof hit.ray.dir_x * 3);
                for (int lane = 0; lane < kWidth; ++lane) {
                    hit.ray.tnear[lane] = hit.ray.time[lane] = 0, hit.ray.tfar[lane] = 1e30f, hit.ray.mask[lane] = ~0u;
                    hit.ray.flags[lane] = 0;
                    hit.hit.geomID[lane] = hit.hit.instID[0][lane] = RTC_INVALID_GEOMETRY_ID;
                }
                rtcIntersect16(valid, scene, &context, &hit);
                for (int lane = 0; lane < kWidth; ++lane)
                    queries.result[i * kWidth + lane] = hit.hit.geomID[lane] == RTC_INVALID_GEOMETRY_ID
                                                            ? -1
                                                            : static_cast<std::int32_t>(hit.hit.primID[lane]);
            }
        });
    };
    report("Embree: coherent rays, packets of 16", 5, [&] { packets(coherent); });
    report("Embree: incoherent rays, packets of 16", 5, [&] { packets(incoherent); });
    const auto points = [&](Queries& queries) {
        for_ranges(kQueries / kWidth, 64, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin * kWidth; i < end * kWidth; ++i) {
                const float* const at = &queries.start[i / kWidth * 3 * kWidth + i % kWidth];
                Nearest nearest{&shape, {at[0], at[kWidth], at[2 * kWidth]}};
                RTCPointQuery query{at[0], at[kWidth], at[2 * kWidth], 0, std::numeric_limits<float>::infinity()};
                RTCPointQueryContext context;
                rtcInitPointQueryContext(&context);
                rtcPointQuery(scene, &query, &context, nearer_triangle, &nearest);
                queries.result[i] = nearest.face;
            }
        });
    };
    report("Embree: points", 1, [&] { points(anywhere); });
    report("Embree: points near the mesh", 1, [&] { points(near); });
    rtcReleaseScene(scene);
    rtcReleaseDevice(device);
}
#endif

}  // namespace

int main(int argc, char** argv) {
    set_cpu_threads(argc > 1 ? std::atoi(argv[1]) : 2);
    const int rows = argc > 2 ? std::atoi(argv[2]) : 304;
    only = argc > 3 ? argv[3] : "";
    const Shape shape = bumpy_sphere(rows);
    const Points<float> points{reinterpret_cast<const std::byte*>(shape.points.data())};
    std::printf("%lld triangles, %d threads, level %s\n", static_cast<long long>(shape.faces()), cpu_threads(),
                library_levels()[static_cast<std::size_t>(best_library_level())]);
    for (const auto& [name, method] : {std::pair("sah", TreeMethod::sah), std::pair("linear", TreeMethod::linear),
                                       std::pair("median", TreeMethod::median)})
        report(std::string("build, ") + name, rows > 1000 ? 2 : 7,
               [&] { TriangleTree<float>(points, shape.indices, {.method = method}); });

    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    std::printf("%.0f MB of memory at most, %.0f of them for the mesh\n", static_cast<double>(usage.ru_maxrss) / 1024,
                static_cast<double>(shape.points.size() * 4 + shape.indices.size() * 4) / 1e6);
    if (rows > 1000) return 0;

    TriangleTree<float> tree(points, shape.indices, {});
    report("refit", 9, [&] { tree.refit(points); });
    std::printf("%d nodes, %.1f MB\n", tree.tree().node_count, static_cast<double>(tree.size_bytes()) / 1e6);
    devlib::MeshDescriptor<float> mesh;
    mesh.scalar_bytes = 4;
    mesh.tree = tree.tree();

    // A picture of 1024 x 1024, row by row; and rays between places on a sphere around the mesh.
    Queries coherent = make_queries([](std::int64_t i, float* start, float* direction) {
        const std::int64_t row = i / 1024, column = i % 1024;
        start[0] = start[2] = 0, start[1] = -4;
        direction[0] = 1.1f * (static_cast<float>(column) / 512 - 1);
        direction[1] = 4;
        direction[2] = 1.1f * (static_cast<float>(row) / 512 - 1);
    });
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const auto on_sphere = [&](float* place) {
        for (int axis = 0; axis < 3; ++axis) place[axis] = normal(random);
        const float scale = 1.5f / std::hypot(place[0], place[1], place[2]);
        for (int axis = 0; axis < 3; ++axis) place[axis] *= scale;
    };
    Queries incoherent = make_queries([&](std::int64_t, float* start, float* direction) {
        float end[3];
        on_sphere(start), on_sphere(end);
        for (int axis = 0; axis < 3; ++axis) direction[axis] = end[axis] - start[axis];
    });
    for (const char* what : {"nearest", "any"}) {
        auto* const function = find<RayFunction>((std::string("weft_lib_mesh_ray_") + what + "_f32").c_str());
        report(std::string("coherent rays, ") + what, 7, [&] { trace(mesh, coherent, function); });
        report(std::string("incoherent rays, ") + what, 7, [&] { trace(mesh, incoherent, function); });
    }
    std::printf("%lld and %lld hits\n", static_cast<long long>(hits(coherent)),
                static_cast<long long>(hits(incoherent)));
    // Points in the box around the mesh, and near its surface.
    std::uniform_real_distribution<float> uniform(-1.2f, 1.2f);
    Queries anywhere = make_queries([&](std::int64_t, float* point, float*) {
        for (int axis = 0; axis < 3; ++axis) point[axis] = uniform(random);
    });
    Queries near = make_queries([&](std::int64_t, float* point, float*) {
        const float* const corner = &shape.points[random() % (shape.points.size() / 3) * 3];
        for (int axis = 0; axis < 3; ++axis) point[axis] = corner[axis] + 0.01f * normal(random);
    });
    for (const char* what : {"closest", "side"}) {
        auto* const function = find<PointFunction>((std::string("weft_lib_mesh_point_") + what + "_f32").c_str());
        report(std::string("points, ") + what, 3, [&] { ask(mesh, anywhere, function); });
        report(std::string("points near the mesh, ") + what, 3, [&] { ask(mesh, near, function); });
    }
    // Winding numbers take an accuracy where the others take a distance, and give floats.
    TriangleTree<float> with_moments(points, shape.indices, {}, {}, true);
    report("refit with moments", 9, [&] { with_moments.refit(points); });
    mesh.tree = with_moments.tree();
    std::ranges::fill(anywhere.limit, 2.0f);
    auto* const winding = find<PointFunction>("weft_lib_mesh_winding_f32");
    report("points, winding number", 3, [&] { ask(mesh, anywhere, winding); });
#if defined(WEFT_EMBREE)
    run_embree(shape, coherent, incoherent, anywhere, near, cpu_threads());
    std::printf("%lld and %lld hits\n", static_cast<long long>(hits(coherent)),
                static_cast<long long>(hits(incoherent)));
#endif
}
