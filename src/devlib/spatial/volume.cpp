// Volumes: the eight voxels around a place, one voxel, and writing one. Objects and coordinates are passed as in
// functions.h; eight voxels are one result of eight values.
#include "devlib/spatial/volume.h"

#include "devlib/spatial/functions.h"

namespace weft::devlib {

namespace {

using namespace volume;
using enum GridType;

// Calls body(volume, lanes) for the lanes that have the same volume.
template <typename Body>
void for_each_volume(const UInt64* volumes, UInt64 mask, const Body& body) {
    while (mask != 0) {
        const UInt64 address = volumes[__builtin_ctzll(mask)];
        UInt64 lanes = 0;
        for_each_lane(mask, [&](int lane) { lanes |= static_cast<UInt64>(volumes[lane] == address) << lane; });
        body(*reinterpret_cast<const VolumeDescriptor*>(address), lanes);
        mask &= ~lanes;
    }
}

template <typename V, int count>
void put(typename V::Number* result, Int32 width, int lane, const V (&values)[count]) {
    for (int c = 0; c < count; ++c)
        for (int n = 0; n < V::kNumbers; ++n) result[(c * V::kNumbers + n) * width + lane] = values[c].numbers[n];
}

// `read` returns `count` values for a voxel; if the volume's type is not supported, the values are `nothing`.
template <typename V, typename Sources, int count, typename Read>
void read_lanes(typename V::Number* result, const UInt64* volumes, const Int32* voxel, UInt64 mask, Int32 width,
                V nothing, const Read& read) {
    for_each_volume(volumes, mask, [&](const VolumeDescriptor& volume, UInt64 lanes) {
        const bool can_read = Sources::visit(volume, [&](auto finder) {
            for_each_lane(lanes, [&](int lane) {
                V values[count];
                read(finder, volume, voxel[lane], voxel[width + lane], voxel[2 * width + lane], values);
                put(result, width, lane, values);
            });
        });
        if (can_read) return;
        V values[count];
        for (V& value : values) value = nothing;
        for_each_lane(lanes, [&](int lane) { put(result, width, lane, values); });
    });
}

template <typename V, typename Sources>
void stencils(typename V::Number* result, const UInt64* volumes, const Int32* voxel, UInt64 mask, Int32 width,
              V nothing) {
    read_lanes<V, Sources, 8>(result, volumes, voxel, mask, width, nothing,
                              [](auto& finder, const VolumeDescriptor& volume, int i, int j, int k, V(&values)[8]) {
                                  stencil(finder, volume, i, j, k, values);
                              });
}

template <typename V, typename Sources>
void lookups(typename V::Number* result, const UInt64* volumes, const Int32* voxel, UInt64 mask, Int32 width,
             V nothing) {
    read_lanes<V, Sources, 1>(result, volumes, voxel, mask, width, nothing,
                              [](auto& finder, const VolumeDescriptor& volume, int i, int j, int k, V(&values)[1]) {
                                  values[0] = lookup<V>(finder, volume, i, j, k);
                              });
}

// Voxels without a leaf are not changed. `source` is a grid type with values V, `other` one with values Other.
template <typename V, GridType source, typename Other, GridType other>
void stores(const UInt64* volumes, const Int32* voxel, const typename V::Number* value, UInt64 mask, Int32 width) {
    for_each_volume(volumes, mask, [&](const VolumeDescriptor& volume, UInt64 lanes) {
        const auto store_lanes = [&](auto& finder, const auto& stored) {
            for_each_lane(lanes, [&](int lane) {
                V of_lane;
                for (int n = 0; n < V::kNumbers; ++n) of_lane.numbers[n] = value[n * width + lane];
                write(finder, volume, voxel[lane], voxel[width + lane], voxel[2 * width + lane], stored(of_lane));
            });
        };
        if (Types<source>::visit(volume,
                                 [&](auto finder) { store_lanes(finder, [](const V& given) { return given; }); }))
            return;
        if constexpr (other != source)
            Types<other>::visit(volume, [&](auto finder) {
                store_lanes(finder, [](const V& given) { return converted<Other>(given); });
            });
    });
}

}  // namespace

// `source`: the type of grids that are written; `...`: those that can be read. Grids of type `other`, whose numbers are
// `other_number`, can be written too.
#define WEFT_DEFINE(name, number, count, source, other_number, other, ...)                                          \
    WEFT_LIBRARY(weft_lib_volume_lookup_##name)(number * result, const UInt64* volume, const Int32* voxel,          \
                                                UInt64 mask, Int32 width) {                                         \
        lookups<Value<number, count>, Types<__VA_ARGS__>>(result, volume, voxel, mask, width, {});                  \
    }                                                                                                               \
    WEFT_LIBRARY(weft_lib_volume_store_##name)(const UInt64* volume, const Int32* voxel, const number* value,       \
                                               UInt64 mask, Int32 width) {                                          \
        stores<Value<number, count>, source, Value<other_number, count>, other>(volume, voxel, value, mask, width); \
    }
#define WEFT_DEFINE_SMOOTH(name, number, count, other_number, other, ...)                                   \
    WEFT_DEFINE(name, number, count, name, other_number, other, name, __VA_ARGS__)                          \
    WEFT_LIBRARY(weft_lib_volume_stencil_##name)(number * result, const UInt64* volume, const Int32* voxel, \
                                                 UInt64 mask, Int32 width) {                                \
        stencils<Value<number, count>, Types<name, __VA_ARGS__>>(result, volume, voxel, mask, width, {});   \
    }
WEFT_DEFINE_SMOOTH(f32, float, 1, double, f64, f16, fp4, fp8, fp16, fpn, f64)
WEFT_DEFINE_SMOOTH(f64, double, 1, float, f32, f32, f16, fp4, fp8, fp16, fpn)
WEFT_DEFINE_SMOOTH(vec3f, float, 3, double, vec3d, vec3d)
WEFT_DEFINE_SMOOTH(vec3d, double, 3, float, vec3f, vec3f)
WEFT_DEFINE_SMOOTH(vec4f, float, 4, double, vec4d, vec4d)
WEFT_DEFINE_SMOOTH(vec4d, double, 4, float, vec4f, vec4f)
#define WEFT_DEFINE_INTEGER(name, number, ...) \
    WEFT_DEFINE(name, number, 1, name, number, name, name __VA_OPT__(, ) __VA_ARGS__)
WEFT_DEFINE_INTEGER(u8, unsigned char, boolean)
WEFT_DEFINE_INTEGER(i16, short)
WEFT_DEFINE_INTEGER(i32, int)
WEFT_DEFINE_INTEGER(i64, long)
WEFT_DEFINE_INTEGER(u32, unsigned, rgba8)
#undef WEFT_DEFINE_INTEGER
#undef WEFT_DEFINE_SMOOTH
#undef WEFT_DEFINE

WEFT_LIBRARY(weft_lib_volume_lookup_index)(Int32* result, const UInt64* volume, const Int32* voxel, UInt64 mask,
                                           Int32 width) {
    lookups<VoxelIndex, AllTypes>(result, volume, voxel, mask, width, {-1});
}
WEFT_LIBRARY(weft_lib_volume_stencil_index)(Int32* result, const UInt64* volume, const Int32* voxel, UInt64 mask,
                                            Int32 width) {
    stencils<VoxelIndex, AllTypes>(result, volume, voxel, mask, width, {-1});
}

}  // namespace weft::devlib
