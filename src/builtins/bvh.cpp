// Items of a BVH, and faces of a mesh, whose boxes meet a shape: one after the other.
//
// The walk over the tree is a function of the device library (devlib/spatial/overlap.h), which goes on from where the
// query is to the next item. Where that is are four numbers in the query.
#include <bit>

#include "builtins/groups.h"
#include "builtins/objects.h"
#include "types/tree_of_mesh.h"

namespace weft::builtins {

namespace {

constexpr std::size_t kObject = 0, kRoot = 1, kWalk = 2, kShape = 3;  // fields of a query; from there on the shape

// `shape` are the numbers of the shape, in the order of the fields.
ir::Value* begin(Call& call, const char* name, ObjectKind kind, std::vector<E> shape, ir::Value* root) {
    ir::Builder& b = call.builder;
    const E id = argument(call, 0), first = id.wrap(root ? root : b.integer(-1)), zero = first.zero();
    std::vector<E> fields = {object(kind, id), first, make_vector({first, zero.number(-1), zero, zero})};
    fields.insert(fields.end(), shape.begin(), shape.end());
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

// `function` walks on: (object, shape..., [limit,] root, walk) -> (item, walk).
ir::Value* next(Call& call, const char* function, bool has_limit) {
    ir::Builder& b = call.builder;
    const E query = argument(call, 0), index = argument(call, 1);
    std::vector<ir::Value*> arguments;
    for (std::size_t i = kShape; i < query.type().fields().size(); ++i)
        arguments.push_back(query[static_cast<std::int64_t>(i)]);
    if (has_limit) arguments.push_back(call.arguments[2]);
    arguments.push_back(query[kRoot]);
    arguments.push_back(query[kWalk]);
    const E found = query.wrap(call_library(query[kObject], std::string(function) + "_f32",
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
    // The limit stands before the root, the radius among the shape.
    return next(call, "bvh_next_capsule", true);
}
ir::Value* expand_mesh_aabb_next(Call& call) { return next(call, "mesh_next_box", false); }
ir::Value* expand_mesh_sphere_next(Call& call) { return next(call, "mesh_next_sphere", false); }

ir::Value* expand_mesh_get_bvh(Call& call) {
    const E id = argument(call, 0);
    return id | id.wrap(call.builder.integer(std::bit_cast<std::int64_t>(kTreeOfMesh), u64_type()));
}

// Groups stand in ascending order, each with the node that it is below.
ir::Value* group_root(Call& call, ObjectKind kind) {
    const char* const name = kind == ObjectKind::bvh ? "bvh_group_root" : "mesh_group_root";
    return call_library(object(kind, argument(call, 0)), name, i32_type(), {call.arguments[1]});
}
ir::Value* expand_bvh_group_root(Call& call) { return group_root(call, ObjectKind::bvh); }
ir::Value* expand_mesh_group_root(Call& call) { return group_root(call, ObjectKind::mesh); }

constexpr const char* kNextOverlap =
    "Whether there is another item; its number goes to index. A box or a sphere gives all that it meets, whatever "
    "max_dist is: that is a limit along rays.";
constexpr const char* kNextRay =
    "Whether there is another item, at most max_dist from the start in lengths of the direction; its number goes to "
    "index.";
constexpr const char* kNextFace = "Whether there is another face; its number goes to index.";

constexpr Entry kEntries[] = {
    {"bvh_query_aabb", "(id: uint64, low: Vec[3,float32], high: Vec[3,float32], root: int32 = -1) -> BvhQueryAabb",
     "The items of a BVH whose boxes meet the box from low to high; of a group, where root is the group's.",
     expand_bvh_aabb, false},
    {"bvh_query_ray", "(id: uint64, start: Vec[3,float32], dir: Vec[3,float32], root: int32 = -1) -> BvhQueryRay",
     "The items of a BVH whose boxes the ray meets, in no order.", expand_bvh_ray, false},
    {"bvh_query_sphere", "(id: uint64, center: Vec[3,float32], radius: float32, root: int32 = -1) -> BvhQuerySphere",
     "The items of a BVH whose boxes are at most the radius from the center. A negative radius counts as 0.",
     expand_bvh_sphere, false},
    {"bvh_query_capsule",
     "(id: uint64, start: Vec[3,float32], dir: Vec[3,float32], radius: float32, root: int32 = -1) -> BvhQueryCapsule",
     "The items of a BVH whose boxes a sphere may touch that moves along the ray: all of them, and some near corners.",
     expand_bvh_capsule, false},
    {"bvh_query_next", "(query: inout BvhQueryAabb, index: inout int32, max_dist: float32 = inf) -> B", kNextOverlap,
     expand_bvh_aabb_next, false},
    {"bvh_query_next", "(query: inout BvhQuerySphere, index: inout int32, max_dist: float32 = inf) -> B", kNextOverlap,
     expand_bvh_sphere_next, false},
    {"bvh_query_next", "(query: inout BvhQueryRay, index: inout int32, max_dist: float32 = inf) -> B", kNextRay,
     expand_bvh_ray_next, false},
    {"bvh_query_next", "(query: inout BvhQueryCapsule, index: inout int32, max_dist: float32 = inf) -> B", kNextRay,
     expand_bvh_capsule_next, false},
    {"mesh_query_aabb", "(id: uint64, low: Vec[3,float32], high: Vec[3,float32]) -> MeshQueryAABB",
     "The faces of a mesh whose boxes meet the box from low to high.", expand_mesh_aabb, false},
    {"mesh_query_sphere", "(id: uint64, center: Vec[3,float32], radius: float32) -> MeshQuerySphere",
     "The faces of a mesh that are at most the radius from the center. A negative radius counts as 0.",
     expand_mesh_sphere, false},
    {"mesh_query_next", "(query: inout MeshQueryAABB, index: inout int32) -> B", kNextFace, expand_mesh_aabb_next,
     false},
    {"mesh_query_next", "(query: inout MeshQuerySphere, index: inout int32) -> B", kNextFace, expand_mesh_sphere_next,
     false},
    {"mesh_query_aabb_next", "(query: inout MeshQueryAABB, index: inout int32) -> B", kNextFace, expand_mesh_aabb_next,
     false},
    {"mesh_query_aabb_next", "(query: inout MeshQuerySphere, index: inout int32) -> B", kNextFace,
     expand_mesh_sphere_next, false},
    {"mesh_get_bvh", "(id: uint64) -> uint64",
     "The id of the tree that a mesh has itself, for wp.bvh_query_aabb() and its relatives: its items are the faces, "
     "by "
     "their boxes.",
     expand_mesh_get_bvh, false},
    {"bvh_get_group_root", "(id: uint64, group: int32) -> int32",
     "The node below which the items of a group are, for the queries' root; one of nothing where there is no such "
     "group.",
     expand_bvh_group_root, false},
    {"mesh_get_group_root", "(id: uint64, group: int32) -> int32",
     "The node below which the faces of a group are, for the queries' root; one of nothing where there is no such "
     "group.",
     expand_mesh_group_root, false},
};

}  // namespace

std::span<const Entry> bvh_entries() { return kEntries; }

}  // namespace weft::builtins
