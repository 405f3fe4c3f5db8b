// Rays and meshes: the nearest face, any face, the number of faces.
#include "devlib/spatial/functions.h"
#if !defined(__NVPTX__)
#include "devlib/spatial/packet.h"
#endif
#include "devlib/spatial/ray.h"

namespace weft::devlib {

namespace {

// A ray, and the visitor of the triangles that it crosses.
template <typename T, typename Triangles>
struct RayQuery {
    Tree<T> tree;
    Ray<T> shape;
    Triangles visitor;
    Int32 root;

    // False if there is no node to visit.
    bool begin(const Tree<T>& of, Vec<T> start, Vec<T> direction, T limit, Int32 from) {
        tree = of, shape = Ray<T>(of, start, direction), root = from;
        visitor = Triangles{of.triangles, shape, limit * shape.scale};
        return shape.is_valid && find_root(tree, root);
    }
};

// Traces the ray of each lane separately; finish(lane, triangles) receives the result.
template <bool kOrdered, template <typename> typename Triangles, typename T, typename Limit, typename Finish>
void trace_each(const UInt64* mesh, const T* start, const T* direction, const Int32* root, UInt64 mask, Int32 width,
                const Limit& limit, const Finish& finish) {
    using Query = RayQuery<T, Triangles<T>>;
    traverse_each<kOrdered, T, Query>(
        mask,
        [&](int lane, Query& query) {
            return query.begin(tree_of<T, MeshDescriptor>(mesh[lane]), lane3(start, width, lane),
                               lane3(direction, width, lane), limit(lane), root[lane]);
        },
        [&](int lane, const Query& query) { finish(lane, query.visitor); });
}

#if !defined(__NVPTX__)
// Traces kRays lanes from `first` on as a packet, if their rays are similar.
template <bool kAny, int kRays, typename T>
bool trace_together(Int32* result, const UInt64* mesh, const T* start, const T* direction, const T* limit,
                    const Int32* root, UInt64 mask, int first, Int32 width) {
    const int some = first + __builtin_ctzll(mask >> first);
    for (UInt64 rest = mask; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctzll(rest);
        if (mesh[lane] != mesh[some] || root[lane] != root[some]) return false;
    }
    const Tree<T> tree = tree_of<T, MeshDescriptor>(mesh[some]);
    Int32 from = root[some];
    Packet<T, kRays> packet;
    if (!find_root(tree, from) || !packet.load(tree, start, direction, limit, mask, first, width)) return false;
    PacketTriangles<T, kRays, kAny> visitor{tree, packet, greatest_of(packet.limit)};
    traverse<true>(tree, packet, from, visitor);
    for (; mask != 0; mask &= mask - 1) {
        const int lane = __builtin_ctzll(mask);
        result[lane] = packet.face[lane - first];
    }
    return true;
}
#endif

template <template <typename> typename Triangles, bool kAny, typename T>
void trace(Int32* result, const UInt64* mesh, const T* start, const T* direction, const T* limit, const Int32* root,
           UInt64 mask, Int32 width) {
#if !defined(__NVPTX__)
    // As packets if at least half of their lanes are active.
    const int size = width >= 16 ? 16 : 8;
    for (int first = 0; first + size <= width; first += size) {
        const UInt64 lanes = mask & ((UInt64(1) << size) - 1) << first;
        if (2 * __builtin_popcountll(lanes) < size) continue;
        const bool done =
            size == 16 ? trace_together<kAny, 16>(result, mesh, start, direction, limit, root, lanes, first, width)
                       : trace_together<kAny, 8>(result, mesh, start, direction, limit, root, lanes, first, width);
        if (done) mask &= ~lanes;
    }
#endif
    trace_each<true, Triangles>(
        mesh, start, direction, root, mask, width, [&](int lane) { return limit[lane]; },
        [&](int lane, const Triangles<T>& found) { result[lane] = found.face; });
}

template <typename T>
void count(Int32* result, const UInt64* mesh, const T* start, const T* direction, const Int32* root, UInt64 mask,
           Int32 width) {
    trace_each<false, CountTriangles>(
        mesh, start, direction, root, mask, width, [](int) { return kInfinity<T>; },
        [&](int lane, const CountTriangles<T>& found) { result[lane] = found.count; });
}

}  // namespace

#define WEFT_DEFINE(T, type)                                                                                           \
    WEFT_LIBRARY(weft_lib_mesh_ray_nearest_##type)(Int32 * result, const UInt64* mesh, const T* start,                 \
                                                   const T* direction, const T* limit, const Int32* root, UInt64 mask, \
                                                   Int32 width) {                                                      \
        trace<NearestTriangle, false, T>(result, mesh, start, direction, limit, root, mask, width);                    \
    }                                                                                                                  \
    WEFT_LIBRARY(weft_lib_mesh_ray_any_##type)(Int32 * result, const UInt64* mesh, const T* start, const T* direction, \
                                               const T* limit, const Int32* root, UInt64 mask, Int32 width) {          \
        trace<AnyTriangle, true, T>(result, mesh, start, direction, limit, root, mask, width);                         \
    }                                                                                                                  \
    WEFT_LIBRARY(weft_lib_mesh_ray_count_##type)(Int32 * result, const UInt64* mesh, const T* start,                   \
                                                 const T* direction, const Int32* root, UInt64 mask, Int32 width) {    \
        count<T>(result, mesh, start, direction, root, mask, width);                                                   \
    }
WEFT_DEFINE(float, f32)
WEFT_DEFINE(double, f64)
#undef WEFT_DEFINE

}  // namespace weft::devlib
