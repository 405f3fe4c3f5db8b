// Rays and meshes: the nearest face, any face, the number of faces.
#include "devlib/spatial/functions.h"
#if !defined(__NVPTX__)
#include "devlib/spatial/packet.h"
#endif
#include "devlib/spatial/ray.h"

namespace weft::devlib {

namespace {

template <bool kOrdered, template <typename> typename Visitor, typename T>
Visitor<T> visit(const Tree<T>& tree, Ray<T> ray, T limit, Int32 root) {
    Visitor<T> visitor{tree.triangles, ray, limit * ray.scale};
    if (ray.is_valid && find_root(tree, root)) traverse<kOrdered>(tree, ray, root, visitor);
    return visitor;
}

#if !defined(__NVPTX__)
// Traces the lanes from `first` on together, if they are on the same way; kRays of them.
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
    PacketTriangles<T, kRays, kAny> visitor{tree, packet, __builtin_reduce_max(packet.limit)};
    traverse<true>(tree, packet, from, visitor);
    for (; mask != 0; mask &= mask - 1) {
        const int lane = __builtin_ctzll(mask);
        result[lane] = packet.face[lane - first];
    }
    return true;
}
#endif

template <bool kAny, typename T>
void trace(Int32* result, const UInt64* mesh, const T* start, const T* direction, const T* limit, const Int32* root,
           UInt64 mask, Int32 width) {
#if !defined(__NVPTX__)
    // In packets where half of their lanes are on.
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
    for_each_lane(mask, [&](int lane) {
        const Tree<T> tree = tree_of<T, MeshDescriptor>(mesh[lane]);
        Ray<T> ray(tree, lane3(start, width, lane), lane3(direction, width, lane));
        if constexpr (kAny)
            result[lane] = visit<true, AnyTriangle>(tree, ray, limit[lane], root[lane]).face;
        else
            result[lane] = visit<true, NearestTriangle>(tree, ray, limit[lane], root[lane]).face;
    });
}

template <typename T>
void count(Int32* result, const UInt64* mesh, const T* start, const T* direction, const Int32* root, UInt64 mask,
           Int32 width) {
    for_each_lane(mask, [&](int lane) {
        const Tree<T> tree = tree_of<T, MeshDescriptor>(mesh[lane]);
        Ray<T> ray(tree, lane3(start, width, lane), lane3(direction, width, lane));
        result[lane] = visit<false, CountTriangles>(tree, ray, kInfinity<T>, root[lane]).count;
    });
}

}  // namespace

#define WEFT_DEFINE(T, type)                                                                                           \
    WEFT_LIBRARY(weft_lib_mesh_ray_nearest_##type)(Int32 * result, const UInt64* mesh, const T* start,                 \
                                                   const T* direction, const T* limit, const Int32* root, UInt64 mask, \
                                                   Int32 width) {                                                      \
        trace<false, T>(result, mesh, start, direction, limit, root, mask, width);                                     \
    }                                                                                                                  \
    WEFT_LIBRARY(weft_lib_mesh_ray_any_##type)(Int32 * result, const UInt64* mesh, const T* start, const T* direction, \
                                               const T* limit, const Int32* root, UInt64 mask, Int32 width) {          \
        trace<true, T>(result, mesh, start, direction, limit, root, mask, width);                                      \
    }                                                                                                                  \
    WEFT_LIBRARY(weft_lib_mesh_ray_count_##type)(Int32 * result, const UInt64* mesh, const T* start,                   \
                                                 const T* direction, const Int32* root, UInt64 mask, Int32 width) {    \
        count<T>(result, mesh, start, direction, root, mask, width);                                                   \
    }
WEFT_DEFINE(float, f32)
WEFT_DEFINE(double, f64)
#undef WEFT_DEFINE

}  // namespace weft::devlib
