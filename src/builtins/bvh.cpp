// The items of a BVH, or faces of a mesh, whose boxes meet a shape: each call gives the next one.
//
// A function of the device library (devlib/spatial/overlap.h) walks over the tree to the next item. Four numbers in the
// query hold its position.
#include <bit>

#include "builtins/groups.h"
#include "builtins/objects.h"
#include "types/tree_of_mesh.h"

namespace weft::builtins {

namespace {

constexpr std::size_t kObject = 0, kRoot = 1, kWalk = 2, kShape = 3;  // fields of a query; the shape's follow

// `shape` has the numbers of the shape, in the order of the fields. In float64 the struct has another name.
ir::Value* begin(Call& call, std::string name, ObjectKind kind, std::vector<E> shape, ir::Value* root) {
    ir::Builder& b = call.builder;
    const E id = argument(call, 0), first = id.wrap(root ? root : b.integer(-1)), zero = first.zero();
    std::vector<E> fields = {object(kind, id), first, make_vector({first, zero.number(-1), zero, zero})};
    fields.insert(fields.end(), shape.begin(), shape.end());
    if (shape[0].type().scalar() == Scalar::f64) name += 'd';
    return make(find_known_struct(name)->type(), fields);
}

ir::Value* expand_bvh_aabb(Call& call) {
    return begin(call, "BvhQueryAabb", ObjectKind::bvh, {argument(call, 1), argument(call, 2)}, call.arguments[3]);
}
ir::Value* expand_bvh_ray(Call& call) {
    return begin(call, "BvhQueryRay", ObjectKind::bvh, {argument(call, 1), argument(call, 2)}, call.arguments[3]);
}
ir::Value* expand_bvh_sphere(Call& call) {
    return begin(call, "BvhQuerySphere", ObjectKind::bvh, {argument(call, 1), argument(call, 2)}, call.arguments[3]);
}
ir::Value* expand_bvh_capsule(Call& call) {
    return begin(call, "BvhQueryCapsule", ObjectKind::bvh, {argument(call, 1), argument(call, 2), argument(call, 3)},
                 call.arguments[4]);
}
ir::Value* expand_mesh_aabb(Call& call) {
    return begin(call, "MeshQueryAABB", ObjectKind::mesh, {argument(call, 1), argument(call, 2)}, nullptr);
}
ir::Value* expand_mesh_sphere(Call& call) {
    return begin(call, "MeshQuerySphere", ObjectKind::mesh, {argument(call, 1), argument(call, 2)}, nullptr);
}

// Continues the walk with the library's `function`: (object, shape..., [limit,] root, walk) -> (item, walk).
ir::Value* next(Call& call, const char* function, bool has_limit) {
    ir::Builder& b = call.builder;
    const E query = argument(call, 0), index = argument(call, 1);
    std::vector<ir::Value*> arguments;
    for (std::size_t i = kShape; i < query.type().fields().size(); ++i)
        arguments.push_back(query[static_cast<std::int64_t>(i)]);
    if (has_limit) arguments.push_back(call.arguments[2]);
    arguments.push_back(query[kRoot]);
    arguments.push_back(query[kWalk]);
    const bool is_double = query[kShape].type().scalar() == Scalar::f64;
    const E found = query.wrap(call_library(query[kObject], std::string(function) + (is_double ? "_f64" : "_f32"),
                                            Type::vector(Scalar::i32, 5), std::move(arguments)));
    const E has_item = found[0] >= 0;
    const E walk = make_vector({found[1], found[2], found[3], found[4]});
    call.inout = {b.insert(query, walk, {kWalk}), select(has_item, found[0], index)};
    return has_item;
}
ir::Value* expand_bvh_aabb_next(Call& call) { return next(call, "bvh_next_box", false); }
ir::Value* expand_bvh_sphere_next(Call& call) { return next(call, "bvh_next_sphere", false); }
ir::Value* expand_bvh_ray_next(Call& call) { return next(call, "bvh_next_ray", true); }
ir::Value* expand_bvh_capsule_next(Call& call) {
    // The limit comes before the root; the radius is part of the shape.
    return next(call, "bvh_next_capsule", true);
}
ir::Value* expand_mesh_aabb_next(Call& call) { return next(call, "mesh_next_box", false); }
ir::Value* expand_mesh_sphere_next(Call& call) { return next(call, "mesh_next_sphere", false); }

ir::Value* expand_mesh_get_bvh(Call& call) {
    const E id = argument(call, 0);
    return id | id.wrap(call.builder.integer(std::bit_cast<std::int64_t>(kTreeOfMesh), u64_type()));
}

// Groups are in ascending order, each with the root of its subtree.
ir::Value* group_root(Call& call, ObjectKind kind) {
    const char* const name = kind == ObjectKind::bvh ? "bvh_group_root" : "mesh_group_root";
    return call_library(object(kind, argument(call, 0)), name, i32_type(), {call.arguments[1]});
}
ir::Value* expand_bvh_group_root(Call& call) { return group_root(call, ObjectKind::bvh); }
ir::Value* expand_mesh_group_root(Call& call) { return group_root(call, ObjectKind::mesh); }

constexpr const char* kNextOverlap =
    "Whether there is another item; its number is assigned to index. Queries of boxes and spheres ignore max_dist, "
    "which is a limit along rays.";
constexpr const char* kNextRay =
    "Whether there is another item, at most max_dist from the start in lengths of the direction; its number is "
    "assigned to index.";
constexpr const char* kNextFace = "Whether there is another face; its number is assigned to index.";

constexpr const char* kBoxDoc =
    "The items of a BVH whose boxes overlap the box from low to high; of one group, if root is that of the group.";
constexpr const char* kRayDoc = "The items of a BVH whose boxes the ray hits, in no particular order.";
constexpr const char* kSphereDoc =
    "The items of a BVH whose boxes are within the radius of the center. A negative radius counts as 0.";
constexpr const char* kCapsuleDoc =
    "The items of a BVH whose boxes a sphere moving along the ray may touch: all that it touches, and some near "
    "corners.";
constexpr const char* kFacesDoc = "The faces of a mesh whose boxes overlap the box from low to high.";
constexpr const char* kFacesNearDoc =
    "The faces of a mesh that are within the radius of the center. A negative radius counts as 0.";

// The overloads of a query in float32 and in float64: F is the type, D the suffix of the query's struct.
#define WEFT_BOX(F, D) "(id: uint64, low: Vec[3," F "], high: Vec[3," F "], root: int32 = -1) -> BvhQueryAabb" D
#define WEFT_RAY(F, D) "(id: uint64, start: Vec[3," F "], dir: Vec[3," F "], root: int32 = -1) -> BvhQueryRay" D
#define WEFT_SPHERE(F, D) "(id: uint64, center: Vec[3," F "], radius: " F ", root: int32 = -1) -> BvhQuerySphere" D
#define WEFT_CAPSULE(F, D) \
    "(id: uint64, start: Vec[3," F "], dir: Vec[3," F "], radius: " F ", root: int32 = -1) -> BvhQueryCapsule" D
#define WEFT_NEXT(F, D, of) "(query: inout BvhQuery" of D ", index: inout int32, max_dist: " F " = inf) -> B"
#define WEFT_NEXT_OF_BOX(F, D) WEFT_NEXT(F, D, "Aabb")
#define WEFT_NEXT_OF_SPHERE(F, D) WEFT_NEXT(F, D, "Sphere")
#define WEFT_NEXT_OF_RAY(F, D) WEFT_NEXT(F, D, "Ray")
#define WEFT_NEXT_OF_CAPSULE(F, D) WEFT_NEXT(F, D, "Capsule")
#define WEFT_FACES(F, D) "(id: uint64, low: Vec[3," F "], high: Vec[3," F "]) -> MeshQueryAABB" D
#define WEFT_FACES_NEAR(F, D) "(id: uint64, center: Vec[3," F "], radius: " F ") -> MeshQuerySphere" D
#define WEFT_NEXT_FACE(F, D) "(query: inout MeshQueryAABB" D ", index: inout int32) -> B"
#define WEFT_NEXT_FACE_NEAR(F, D) "(query: inout MeshQuerySphere" D ", index: inout int32) -> B"
#define WEFT_BOTH(name, signature, doc, expand) \
    {name, signature("float32", ""), doc, expand, false}, { name, signature("float64", "d"), doc, expand, false }

constexpr Entry kEntries[] = {
    WEFT_BOTH("bvh_query_aabb", WEFT_BOX, kBoxDoc, expand_bvh_aabb),
    WEFT_BOTH("bvh_query_ray", WEFT_RAY, kRayDoc, expand_bvh_ray),
    WEFT_BOTH("bvh_query_sphere", WEFT_SPHERE, kSphereDoc, expand_bvh_sphere),
    WEFT_BOTH("bvh_query_capsule", WEFT_CAPSULE, kCapsuleDoc, expand_bvh_capsule),
    WEFT_BOTH("bvh_query_next", WEFT_NEXT_OF_BOX, kNextOverlap, expand_bvh_aabb_next),
    WEFT_BOTH("bvh_query_next", WEFT_NEXT_OF_SPHERE, kNextOverlap, expand_bvh_sphere_next),
    WEFT_BOTH("bvh_query_next", WEFT_NEXT_OF_RAY, kNextRay, expand_bvh_ray_next),
    WEFT_BOTH("bvh_query_next", WEFT_NEXT_OF_CAPSULE, kNextRay, expand_bvh_capsule_next),
    WEFT_BOTH("mesh_query_aabb", WEFT_FACES, kFacesDoc, expand_mesh_aabb),
    WEFT_BOTH("mesh_query_sphere", WEFT_FACES_NEAR, kFacesNearDoc, expand_mesh_sphere),
    WEFT_BOTH("mesh_query_next", WEFT_NEXT_FACE, kNextFace, expand_mesh_aabb_next),
    WEFT_BOTH("mesh_query_next", WEFT_NEXT_FACE_NEAR, kNextFace, expand_mesh_sphere_next),
    WEFT_BOTH("mesh_query_aabb_next", WEFT_NEXT_FACE, kNextFace, expand_mesh_aabb_next),
    WEFT_BOTH("mesh_query_aabb_next", WEFT_NEXT_FACE_NEAR, kNextFace, expand_mesh_sphere_next),
    {"mesh_get_bvh", "(id: uint64) -> uint64",
     "The id of a mesh's own tree, for wp.bvh_query_aabb() and the like: its items are the boxes of the faces.",
     expand_mesh_get_bvh, false},
    {"bvh_get_group_root", "(id: uint64, group: int32) -> int32",
     "The root of the subtree of a group's items, for the queries' root. If there is no such group it is -1, that of "
     "the whole tree.",
     expand_bvh_group_root, false},
    {"mesh_get_group_root", "(id: uint64, group: int32) -> int32",
     "The root of the subtree of a group's faces, for the queries' root. If there is no such group it is -1, that of "
     "the whole tree.",
     expand_mesh_group_root, false},
};
#undef WEFT_BOX
#undef WEFT_RAY
#undef WEFT_SPHERE
#undef WEFT_CAPSULE
#undef WEFT_NEXT
#undef WEFT_NEXT_OF_BOX
#undef WEFT_NEXT_OF_SPHERE
#undef WEFT_NEXT_OF_RAY
#undef WEFT_NEXT_OF_CAPSULE
#undef WEFT_FACES
#undef WEFT_FACES_NEAR
#undef WEFT_NEXT_FACE
#undef WEFT_NEXT_FACE_NEAR
#undef WEFT_BOTH

}  // namespace

std::span<const Entry> bvh_entries() { return kEntries; }

}  // namespace weft::builtins
