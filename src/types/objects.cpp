#include "types/objects.h"

#include "support/error.h"

namespace weft {

namespace {

Type of_runtime(std::string name, std::vector<Type::Field> fields) {
    return Type::structure(std::move(name), "of the runtime", std::move(fields));
}

Type hash_grid_descriptor() {
    static const Type type = of_runtime("HashGridDescriptor", {{"starts", Type::array(i32_type(), 1)},
                                                               {"points", Type::array(i32_type(), 1)},
                                                               {"groups", Type::array(i32_type(), 1)},
                                                               {"inverse_width", f64_type()},
                                                               {"grouped", u64_type()},  // address of another one
                                                               {"dims", Type::vector(Scalar::i32, 3)},
                                                               {"count", i32_type()}});
    return type;
}

// The first fields of devlib/spatial/volume.h. World position = matrix * index + translation.
Type volume_descriptor() {
    const auto matrix = [](Scalar scalar) { return Type::matrix(scalar, 3, 3); };
    const auto vector = [](Scalar scalar) { return Type::vector(scalar, 3); };
    static const Type type = of_runtime("VolumeDescriptor", {{"matrix_f64", matrix(Scalar::f64)},
                                                             {"inverse_f64", matrix(Scalar::f64)},
                                                             {"translation_f64", vector(Scalar::f64)},
                                                             {"matrix_f32", matrix(Scalar::f32)},
                                                             {"inverse_f32", matrix(Scalar::f32)},
                                                             {"translation_f32", vector(Scalar::f32)},
                                                             {"voxel_count", i32_type()}});
    return type;
}

// runtime/spatial/texture.h has these fields in this order. All arrays of texels are views of the same memory.
Type texture_descriptor() {
    const auto numbers = [](Scalar scalar) { return Type::array(Type::scalar(scalar), 1); };
    const auto vectors = [](int length) { return Type::array(Type::vector(Scalar::f32, length), 1); };
    static const Type type = of_runtime("TextureDescriptor", {{"float32", numbers(Scalar::f32)},
                                                              {"float32x2", vectors(2)},
                                                              {"float32x4", vectors(4)},
                                                              {"uint8", numbers(Scalar::u8)},
                                                              {"uint16", numbers(Scalar::u16)},
                                                              {"float16", numbers(Scalar::f16)},
                                                              {"uint32", numbers(Scalar::u32)},
                                                              {"level_starts", numbers(Scalar::i32)},  // in texels
                                                              {"extents", Type::vector(Scalar::i32, 3)},
                                                              {"address_modes", Type::vector(Scalar::i32, 3)},
                                                              {"channels", i32_type()},
                                                              {"format", i32_type()},  // runtime/spatial/texture.h
                                                              {"divisor", f32_type()},
                                                              {"filter_mode", i32_type()},
                                                              {"mip_filter_mode", i32_type()},
                                                              {"is_normalized", i32_type()},
                                                              {"levels", i32_type()}});
    return type;
}

template <int kDims>
Type texture() {
    const Type extent = i32_type();
    static const Type type = [&] {
        std::vector<Type::Field> fields{{"id", u64_type()}, {"width", extent}};
        if (kDims > 1) fields.push_back({"height", extent});
        if (kDims > 2) fields.push_back({"depth", extent});
        return of_runtime("Texture" + std::to_string(kDims) + "D", std::move(fields));
    }();
    return type;
}

// The state of a walk over rows of cells, contiguous along x. A row that wraps around the end of the grid has two
// parts.
Type hash_grid_query() {
    static const Type type = of_runtime("HashGridQuery", {{"_grid", u64_type()},  // address of the descriptor
                                                          {"_first", Type::vector(Scalar::i32, 3)},
                                                          {"_counts", Type::vector(Scalar::i32, 3)},
                                                          {"_part", i32_type()},  // of the row: 0 or 1
                                                          {"_y", i32_type()},
                                                          {"_z", i32_type()},
                                                          {"_at", i32_type()},  // the next point, and the row's end
                                                          {"_end", i32_type()},
                                                          {"_has_group", i32_type()},
                                                          {"_group", i32_type()}});
    return type;
}

// Fields that kernels read come first; those that only traversals read follow (devlib/spatial/layout.h).
Type mesh_descriptor(Scalar scalar) {
    const Type vec3 = Type::vector(scalar, 3);
    return of_runtime(std::string("MeshDescriptor_") + info(scalar).ir, {{"points", Type::array(vec3, 1)},
                                                                         {"velocities", Type::array(vec3, 1)},
                                                                         {"indices", Type::array(i32_type(), 1)},
                                                                         {"scalar_bytes", i32_type()}});
}

template <Scalar kScalar>
Type mesh_query_point() {
    const Type scalar = Type::scalar(kScalar);
    static const Type type =
        of_runtime(kScalar == Scalar::f64 ? "MeshQueryPointd" : "MeshQueryPoint",
                   {{"result", bool_type()}, {"sign", scalar}, {"face", i32_type()}, {"u", scalar}, {"v", scalar}});
    return type;
}

template <Scalar kScalar>
Type mesh_query_ray() {
    const Type scalar = Type::scalar(kScalar);
    static const Type type =
        of_runtime(kScalar == Scalar::f64 ? "MeshQueryRayd" : "MeshQueryRay", {{"result", bool_type()},
                                                                               {"sign", scalar},
                                                                               {"face", i32_type()},
                                                                               {"t", scalar},
                                                                               {"u", scalar},
                                                                               {"v", scalar},
                                                                               {"normal", Type::vector(kScalar, 3)}});
    return type;
}

// The object's descriptor, the query's shape, and the position of the walk (devlib/spatial/overlap.h).
Type overlap_query(const char* name, std::vector<Type::Field> shape) {
    std::vector<Type::Field> fields{
        {"_object", u64_type()}, {"_root", i32_type()}, {"_walk", Type::vector(Scalar::i32, 4)}};
    fields.insert(fields.end(), shape.begin(), shape.end());
    return of_runtime(name, std::move(fields));
}
template <int kNumber, Scalar kScalar = Scalar::f32>
Type query_of() {
    const Type number = Type::scalar(kScalar), vec3 = Type::vector(kScalar, 3);
    constexpr bool is_double = kScalar == Scalar::f64;
    static const Type type = [&] {
        switch (kNumber) {
            case 0:
                return overlap_query(is_double ? "BvhQueryAabbd" : "BvhQueryAabb",
                                     {{"_lower", vec3}, {"_upper", vec3}});
            case 1:
                return overlap_query(is_double ? "BvhQuerySphered" : "BvhQuerySphere",
                                     {{"_centre", vec3}, {"_radius", number}});
            case 2:
                return overlap_query(is_double ? "BvhQueryRayd" : "BvhQueryRay",
                                     {{"_start", vec3}, {"_direction", vec3}});
            case 3:
                return overlap_query(is_double ? "BvhQueryCapsuled" : "BvhQueryCapsule",
                                     {{"_start", vec3}, {"_direction", vec3}, {"_radius", number}});
            case 4:
                return overlap_query(is_double ? "MeshQueryAABBd" : "MeshQueryAABB",
                                     {{"_lower", vec3}, {"_upper", vec3}});
            default:
                return overlap_query(is_double ? "MeshQuerySphered" : "MeshQuerySphere",
                                     {{"_centre", vec3}, {"_radius", number}});
        }
    }();
    return type;
}

// The result of wp.mesh_get(): the mesh's arrays. Its class in Python is wp.Mesh.
Type mesh() {
    const Type points = Type::array(Type::vector(Scalar::f32, 3), 1);
    static const Type type =
        of_runtime("Mesh", {{"points", points}, {"velocities", points}, {"indices", Type::array(i32_type(), 1)}});
    return type;
}

constexpr KnownStruct kKnownStructs[] = {
    {"HashGridQuery",
     "The points near a place, as wp.hash_grid_query() gives them; a for loop runs over their numbers.",
     hash_grid_query, "hash_grid_query_next"},
    {"BvhQueryAabb", "The boxes of a BVH that meet a box; a for loop runs over their numbers.", query_of<0>,
     "bvh_query_next"},
    {"BvhQuerySphere", "The boxes of a BVH that meet a sphere; a for loop runs over their numbers.", query_of<1>,
     "bvh_query_next"},
    {"BvhQueryRay", "The boxes of a BVH that meet a ray; a for loop runs over their numbers.", query_of<2>,
     "bvh_query_next"},
    {"BvhQueryCapsule", "The boxes of a BVH near a ray; a for loop runs over their numbers.", query_of<3>,
     "bvh_query_next"},
    {"MeshQueryAABB", "The faces of a mesh whose boxes meet a box; a for loop runs over their numbers.", query_of<4>,
     "mesh_query_next"},
    {"MeshQuerySphere", "The faces of a mesh whose boxes meet a sphere; a for loop runs over their numbers.",
     query_of<5>, "mesh_query_next"},
    {"BvhQueryAabbd", "BvhQueryAabb in float64.", query_of<0, Scalar::f64>, "bvh_query_next"},
    {"BvhQuerySphered", "BvhQuerySphere in float64.", query_of<1, Scalar::f64>, "bvh_query_next"},
    {"BvhQueryRayd", "BvhQueryRay in float64.", query_of<2, Scalar::f64>, "bvh_query_next"},
    {"BvhQueryCapsuled", "BvhQueryCapsule in float64.", query_of<3, Scalar::f64>, "bvh_query_next"},
    {"MeshQueryAABBd", "MeshQueryAABB in float64.", query_of<4, Scalar::f64>, "mesh_query_next"},
    {"MeshQuerySphered", "MeshQuerySphere in float64.", query_of<5, Scalar::f64>, "mesh_query_next"},
    {"MeshQueryPoint",
     "The closest point of a mesh: whether there is one (result), on which side of the surface the place is (sign: 1 "
     "outside, -1 inside), the face, and the weights u and v of its first two corners.",
     mesh_query_point<Scalar::f32>, nullptr},
    {"MeshQueryPointd", "MeshQueryPoint in float64.", mesh_query_point<Scalar::f64>, nullptr},
    {"MeshQueryRay",
     "Where a ray meets a mesh: whether it does (result), on which side (sign: 1 the front), the face, how far along "
     "the "
     "ray (t, in lengths of its direction), the weights u and v of the face's first two corners, and its normal.",
     mesh_query_ray<Scalar::f32>, nullptr},
    {"MeshQueryRayd", "MeshQueryRay in float64.", mesh_query_ray<Scalar::f64>, nullptr},
    {"Mesh", nullptr, mesh, nullptr},
    {"Texture1D", nullptr, texture<1>, nullptr},
    {"Texture2D", nullptr, texture<2>, nullptr},
    {"Texture3D", nullptr, texture<3>, nullptr},
};

}  // namespace

const char* object_name(ObjectKind kind) {
    constexpr const char* kNames[] = {"BVH", "mesh", "hash grid", "volume", "texture"};
    return kNames[static_cast<int>(kind) - 1];
}

Type descriptor_type(ObjectKind kind, Scalar scalar) {
    if (kind == ObjectKind::hash_grid) return hash_grid_descriptor();
    if (kind == ObjectKind::mesh) return mesh_descriptor(scalar);
    if (kind == ObjectKind::volume) return volume_descriptor();
    if (kind == ObjectKind::texture) return texture_descriptor();
    throw InternalError(std::string("kernels do not look into a ") + object_name(kind));
}

std::span<const KnownStruct> known_structs() { return kKnownStructs; }

const KnownStruct* find_known_struct(std::string_view name) {
    for (const KnownStruct& known : kKnownStructs)
        if (name == known.name) return &known;
    return nullptr;
}

const KnownStruct* find_known_struct(Type type) {
    if (!type.is_struct()) return nullptr;
    const KnownStruct* const known = find_known_struct(type.struct_name());
    return known && known->type() == type ? known : nullptr;
}

Type texture_type(int dims) { return dims == 1 ? texture<1>() : dims == 2 ? texture<2>() : texture<3>(); }

int texture_dims(Type type) {
    for (int dims = 1; type.is_struct() && dims <= kMostTextureDims; ++dims)
        if (texture_type(dims) == type) return dims;
    return 0;
}

}  // namespace weft
