// Queries of meshes. A function of the device library (devlib/spatial) finds the face. The smooth part is computed
// here, from the corners of the face: it is differentiable by the query and by the points of the mesh. Faces and signs
// are constant for derivatives.
//
// The search for the face uses the mesh's scalar type. A query of another type is converted to it first. Its result is
// that of a query in the mesh's own type, to the precision of float32. The other results for that face are computed in
// float64, from the query as given, and rounded to the query's type.
#include "builtins/groups.h"
#include "builtins/objects.h"

namespace weft::builtins {

namespace {

// ---- reading a mesh ----

Scalar other(Scalar scalar) { return scalar == Scalar::f64 ? Scalar::f32 : Scalar::f64; }

E cast_floats(E value, Scalar to) { return value.scalar().is_float() ? cast(value, to) : value; }

// A mesh with query values of type `scalar`; the mesh's own scalar type may be another.
class Mesh {
public:
    Mesh(E id, Scalar scalar)
        : address_(object(ObjectKind::mesh, id)), scalar_(scalar), descriptor_(ObjectKind::mesh, address_, scalar) {}

    E address() const { return address_; }
    Scalar scalar() const { return scalar_; }
    E array(std::string_view name) const { return descriptor_[name]; }
    E is_of(Scalar scalar) const { return descriptor_["scalar_bytes"] == static_cast<double>(info(scalar).bytes()); }

    E corner_index(E corner) const { return element(descriptor_, "indices", corner, i32_type()); }
    // The points, or the velocities, with these indices, converted to type `as`.
    std::vector<E> elements(std::string_view name, const std::vector<E>& indices, Scalar as) const {
        return either(std::vector<Type>(indices.size(), Type::vector(as, 3)),
                      [&](Scalar own) { return elements_of(own, name, indices, as); });
    }
    // The same for a mesh whose scalar type is known to be `own`.
    std::vector<E> elements_of(Scalar own, std::string_view name, const std::vector<E>& indices, Scalar as) const {
        const Descriptor descriptor(ObjectKind::mesh, address_, own);
        std::vector<E> found;
        for (const E& index : indices)
            found.push_back(cast(element(descriptor, name, index, Type::vector(own, 3)), as));
        return found;
    }
    std::vector<E> corner_indices(E face) const {
        return {corner_index(face * 3 + 0), corner_index(face * 3 + 1), corner_index(face * 3 + 2)};
    }
    // The elements of a face's three corners.
    std::vector<E> corners(std::string_view name, E face, Scalar as) const {
        return elements(name, corner_indices(face), as);
    }

    // The results of `make`, called with the scalar type of the mesh.
    template <typename Make>
    std::vector<E> either(std::vector<Type> types, const Make& make) const {
        return branch(
            is_of(scalar_), std::move(types), [&] { return make(scalar_); }, [&] { return make(other(scalar_)); });
    }
    // The results of `make` if the condition holds, otherwise zeros.
    template <typename Make>
    static std::vector<E> choose(E condition, const std::vector<Type>& types, const Make& make) {
        return branch(condition, types, make, [&] {
            std::vector<E> zeros;
            for (const Type type : types) zeros.push_back(condition.wrap(condition.builder().zero(type)));
            return zeros;
        });
    }

private:
    static E count(E array) { return array.wrap(array.builder().dim(array, 0)); }
    // Element `index` of one of the arrays; zeros if out of range.
    static E element(const Descriptor& descriptor, std::string_view name, E index, Type type) {
        const E values = descriptor[name];
        return choose(index >= 0 && index < count(values), {type},
                      [&] { return std::vector<E>{values.wrap(index.builder().load(values, {index}))}; })[0];
    }
    template <typename Then, typename Else>
    static std::vector<E> branch(E condition, std::vector<Type> types, const Then& then, const Else& otherwise) {
        ir::Builder& b = condition.builder();
        ir::Operation* chosen = b.if_(condition, std::move(types));
        const auto fill = [&](int body, const auto& make) {
            ir::Builder::Inside inside(b, chosen->body(body));
            const std::vector<E> made = make();
            b.yield({made.begin(), made.end()});
        };
        fill(0, then);
        fill(1, otherwise);
        std::vector<E> results;
        for (ir::Value* result : chosen->results) results.push_back(condition.wrap(result));
        return results;
    }

    E address_;
    Scalar scalar_;
    Descriptor descriptor_;
};

E find(const Mesh& mesh, const std::string& name, Type result, const std::vector<ir::Value*>& arguments) {
    const E address = mesh.address();
    return mesh.either({result}, [&](Scalar own) {
        const bool is_real = result.is_scalar() && info(result.scalar()).is_float();
        std::vector<ir::Value*> given;
        for (ir::Value* argument : arguments) given.push_back(cast_floats(address.wrap(argument), own));
        const E found = address.wrap(call_library(address, name + (own == Scalar::f64 ? "_f64" : "_f32"),
                                                  is_real ? Type::scalar(own) : result, std::move(given)));
        return std::vector<E>{is_real ? cast(found, mesh.scalar()) : found};
    })[0];
}

// ---- the closest point of a triangle ----

// a / b if `yes` holds. Otherwise the divisor is 1, so that derivatives of the unused value are finite.
E quotient(E yes, E a, E b) { return a / select(yes, b, b.number(1)); }

// A point of a triangle: the weights of the first two corners, and the squared distance from the query point.
struct TrianglePoint {
    E u, v, squared;
};
TrianglePoint nearer(E is_nearer, const TrianglePoint& first, const TrianglePoint& second) {
    return {select(is_nearer, first.u, second.u), select(is_nearer, first.v, second.v),
            select(is_nearer, first.squared, second.squared)};
}

// The closest point of an edge: the position along it, from 0 to 1, and the squared distance. `to` leads from the query
// point to the edge's start.
std::pair<E, E> closest_on_edge(E to, E along) {
    const E size = dot(along, along), has_length = size > 0.0, t = quotient(has_length, -dot(to, along), size);
    const E at = select(has_length && t > 0.0, select(t < 1.0, t, t.number(1)), t.zero());
    const E rest = to + along * at;
    return {at, dot(rest, rest)};
}

// The projection of the query point onto the plane of the triangle. In a long thin triangle the rounding of the cross
// products grows with the ratio of its lengths: one correction step removes the error within the plane.
TrianglePoint foot_of(E to_a, E to_b, E to_c, E ab, E ac, E normal, E inverse) {
    const E one = inverse.number(1);
    const auto part = [&](E x, E y) { return dot(cross(x, y), normal) * inverse; };
    E v = part(to_c, to_a), w = part(to_a, to_b);
    const E off = to_a * (one - v - w) + to_b * v + to_c * w;
    v = v - part(off, ac);
    w = w - part(ab, off);
    const E u = one - v - w, rest = to_a * u + to_b * v + to_c * w;
    return {u, v, dot(rest, rest)};
}

// The weights of the first two corners at the closest point: the nearest of one on each edge and of the projection, if
// that is inside. All of these are points of the triangle, of any shape, so that rounding never makes one appear
// closer than it is.
std::pair<E, E> closest_weights(E p, const std::vector<E>& corners) {
    const E to_a = corners[0] - p, to_b = corners[1] - p, to_c = corners[2] - p;
    const E ab = corners[1] - corners[0], ac = corners[2] - corners[0], bc = corners[2] - corners[1];
    const auto [on_ab, from_ab] = closest_on_edge(to_a, ab);
    const auto [on_ac, from_ac] = closest_on_edge(to_a, ac);
    const auto [on_bc, from_bc] = closest_on_edge(to_b, bc);
    const E one = on_ab.number(1), zero = on_ab.zero();
    TrianglePoint best{one - on_ab, on_ab, from_ab};
    best = nearer(from_ac < best.squared, {one - on_ac, zero, from_ac}, best);
    best = nearer(from_bc < best.squared, {zero, one - on_bc, from_bc}, best);

    const E normal = cross(ab, ac), area = dot(normal, normal), has_area = area > 0.0;
    const TrianglePoint foot = foot_of(to_a, to_b, to_c, ab, ac, normal, quotient(has_area, one, area));
    // For a distant query point the distances are equal up to rounding: then the projection is right.
    const E is_inside = has_area && foot.u >= 0.0 && foot.v >= 0.0 && foot.u + foot.v <= 1.0;
    best = nearer(is_inside && foot.squared * (1 - 1e-10) <= best.squared, foot, best);
    return {best.u, best.v};
}

// The furthest point of a triangle, which is always a corner.
std::pair<E, E> furthest_weights(E p, const std::vector<E>& corners) {
    std::vector<E> squared;
    for (const E& corner : corners) squared.push_back(dot(p - corner, p - corner));
    const E zero = squared[0].zero(), one = squared[0].number(1);
    const E is_a = squared[0] >= squared[1] && squared[0] >= squared[2], is_b = squared[1] >= squared[2];
    return {select(is_a, one, zero), select(is_a, zero, select(is_b, one, zero))};
}

struct PointResult {
    E result, sign, face, u, v;
};

using Weights = std::pair<E, E> (*)(E, const std::vector<E>&);

// `found` is the face, or a vector of the face and the side.
PointResult point_result(const Mesh& mesh, E point, E found, Weights weights_of) {
    const bool has_side = !found.type().is_scalar();
    const E face = has_side ? found[0] : found;
    const E is_found = face >= 0;
    const Type scalar = Type::scalar(mesh.scalar());
    const std::vector<E> weights = Mesh::choose(is_found, {scalar, scalar}, [&] {
        const std::vector<E> corners = mesh.corners("points", face, Scalar::f64);
        const auto [u, v] = weights_of(cast(point, Scalar::f64), corners);
        return std::vector<E>{cast(u, mesh.scalar()), cast(v, mesh.scalar())};
    });
    const E zero = weights[0].zero();
    const E side = has_side ? cast(found[1], mesh.scalar()) : zero;
    return {is_found, select(is_found, side, zero), select(is_found, face, 0), weights[0], weights[1]};
}

ir::Value* as_struct(const PointResult& r) {
    const bool is_double = r.u.type().scalar() == Scalar::f64;
    return make(find_known_struct(is_double ? "MeshQueryPointd" : "MeshQueryPoint")->type(),
                {r.result, r.sign, r.face, r.u, r.v});
}

// The outputs of earlier releases: locals that keep their values if nothing is found. The sign is omitted for queries
// without a side.
ir::Value* as_outputs(Call& call, const PointResult& r, bool has_side) {
    std::vector<E> outputs;
    if (has_side) outputs.push_back(r.sign);
    outputs.insert(outputs.end(), {r.face, r.u, r.v});
    for (std::size_t i = 0; i < outputs.size(); ++i)
        call.inout.push_back(select(r.result, outputs[i], argument(call, 3 + i)));
    return r.result;
}

// The method that finds the side of the surface: none, the closest feature, rays along the axes or around a diagonal,
// the winding number.
enum class Side { none, normal, axes, parity, winding };

// The options of the side begin at argument `first_option`.
PointResult query_point(Call& call, Side side, std::size_t first_option) {
    const E point = argument(call, 1);
    const Mesh mesh(argument(call, 0), point.type().scalar());
    const Type scalar = Type::scalar(mesh.scalar());
    const char* const function = side == Side::normal ? "mesh_point_side" : "mesh_point_closest";
    const Type found = side == Side::normal ? Type::vector(Scalar::i32, 2) : i32_type();
    PointResult result =
        point_result(mesh, point, find(mesh, function, found, {point, call.arguments[2]}), closest_weights);
    if (side == Side::winding) {
        const E number = find(mesh, "mesh_winding", scalar, {point, call.arguments[first_option]});
        const E sign = select(number > argument(call, first_option + 1), number.number(-1), number.number(1));
        result.sign = select(result.result, sign, number.zero());
    } else if (side == Side::axes || side == Side::parity) {
        std::vector<ir::Value*> arguments = {point};
        if (side == Side::parity)
            arguments.insert(arguments.end(), {call.arguments[first_option], call.arguments[first_option + 1]});
        const char* const parity = side == Side::axes ? "mesh_axes" : "mesh_parity";
        result.sign = Mesh::choose(result.result, {scalar}, [&] {
            return std::vector<E>{cast(find(mesh, parity, i32_type(), std::move(arguments)), mesh.scalar())};
        })[0];
    }
    return result;
}

template <Side kSide>
ir::Value* expand_point(Call& call) {
    return as_struct(query_point(call, kSide, 3));
}
template <Side kSide>
ir::Value* expand_point_outputs(Call& call) {
    constexpr bool has_side = kSide != Side::none;
    return as_outputs(call, query_point(call, kSide, has_side ? 7 : 6), has_side);
}

PointResult query_furthest(Call& call) {
    const E point = argument(call, 1);
    const Mesh mesh(argument(call, 0), point.type().scalar());
    const E face = find(mesh, "mesh_point_furthest", i32_type(), {point, call.arguments[2]});
    return point_result(mesh, point, face, furthest_weights);
}
ir::Value* expand_furthest(Call& call) { return as_struct(query_furthest(call)); }
ir::Value* expand_furthest_outputs(Call& call) { return as_outputs(call, query_furthest(call), false); }

// ---- rays ----

struct RayResult {
    E result, sign, face, t, u, v, normal;
};

// How far outside of a face's edges, in barycentric weights, a hit may be because of the rounding of its corners.
constexpr double kOutside = 1e-3;

// The point at which a ray passes a triangle that it sees edge-on: the distance along the ray, and the weights of the
// first two corners. It is the first among the points of the edges that are closest to the ray. Distances count as
// equal within `rounding`, relative to the corners' distances. `to` leads from the ray's start to the corners.
std::vector<E> pass_edge_on(const std::vector<E>& to, E along, double rounding) {
    const E zero = to[0][0].zero(), one = zero.number(1), size = dot(along, along);
    const E slack = (dot(to[0], to[0]) + dot(to[1], to[1]) + dot(to[2], to[2])) * (rounding * rounding);
    E t = zero, u = zero, v = zero, least = zero;
    for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t j = (i + 1) % 3;
        const E edge = to[j] - to[i], both = dot(along, edge), ahead = dot(along, to[i]);
        const E area = size * dot(edge, edge) - both * both, has_area = area > 0.0;
        const E part = quotient(has_area, both * ahead - size * dot(edge, to[i]), area);
        const E s = select(has_area && part > 0.0, select(part < 1.0, part, one), zero);
        const E reached = (ahead + s * both) / size, at = select(reached > 0.0, reached, zero);
        const E rest = to[i] + s * edge - at * along, squared = dot(rest, rest);
        const E of_first = i == 0 ? one - s : j == 0 ? s : zero, of_second = i == 1 ? one - s : j == 1 ? s : zero;
        if (i == 0) {
            t = at, u = of_first, v = of_second, least = squared;
            continue;
        }
        const E is_better = squared + slack < least || (squared <= least + slack && at < t);
        t = select(is_better, at, t), least = select(is_better, squared, least);
        u = select(is_better, of_first, u), v = select(is_better, of_second, v);
    }
    return {t, u, v};
}

RayResult query_ray(Call& call, ir::Value* root) {
    const E start = argument(call, 1), direction = argument(call, 2);
    const Scalar scalar = start.type().scalar();
    const Mesh mesh(argument(call, 0), scalar);
    const E face = find(mesh, "mesh_ray_nearest", i32_type(), {start, direction, call.arguments[3], root});
    const E is_hit = face >= 0;
    const Type number = Type::scalar(scalar), vector = Type::vector(scalar, 3);
    // Cramer's rule, for start + t direction = u a + v b + (1 - u - v) c.
    const std::vector<E> numbers = Mesh::choose(is_hit, {number, number, number, number, vector}, [&] {
        const std::vector<E> corners = mesh.corners("points", face, Scalar::f64);
        const E from = cast(start, Scalar::f64), along = cast(direction, Scalar::f64);
        const E ca = corners[0] - corners[2], cb = corners[1] - corners[2], to = from - corners[2];
        const E normal = cross(corners[1] - corners[0], corners[2] - corners[0]);
        const E facing = -dot(along, normal), has_area = facing != 0.0;
        const E across = cross(along, to);
        const E t = quotient(has_area, dot(to, normal), facing);
        const E u = quotient(has_area, -dot(across, cb), facing), v = quotient(has_area, dot(across, ca), facing);
        // For a ray (nearly) in the plane of a face, rounding decides about the hit and about these numbers.
        const E is_flat = facing * facing <= dot(along, along) * dot(normal, normal) * 0x1p-84;
        const E is_edge_on = is_flat || u < -kOutside || v < -kOutside || u + v > 1 + kOutside;
        const std::vector<E> edge = Mesh::choose(is_edge_on, {t.type(), t.type(), t.type()}, [&] {
            return pass_edge_on({corners[0] - from, corners[1] - from, to * -1.0}, along,
                                scalar == Scalar::f64 ? 0x1p-46 : 0x1p-17);
        });
        const E squared = dot(normal, normal), is_proper = squared > 0.0;
        const E unit = normal / sqrt(select(is_proper, squared, squared.number(1)));
        const E sign = select(facing < 0.0, facing.number(-1), facing.number(1));
        const auto number_of = [&](std::size_t i, E usual) { return cast(select(is_edge_on, edge[i], usual), scalar); };
        return std::vector<E>{cast(sign, scalar), number_of(0, t), number_of(1, u), number_of(2, v),
                              cast(unit, scalar)};
    });
    return {is_hit, numbers[0], select(is_hit, face, 0), numbers[1], numbers[2], numbers[3], numbers[4]};
}

ir::Value* expand_ray(Call& call) {
    const RayResult r = query_ray(call, call.arguments[4]);
    const bool is_double = r.t.type().scalar() == Scalar::f64;
    return make(find_known_struct(is_double ? "MeshQueryRayd" : "MeshQueryRay")->type(),
                {r.result, r.sign, r.face, r.t, r.u, r.v, r.normal});
}
ir::Value* expand_ray_outputs(Call& call) {
    const RayResult r = query_ray(call, call.arguments[10]);
    const E outputs[] = {r.t, r.u, r.v, r.sign, r.normal, r.face};
    for (std::size_t i = 0; i < 6; ++i) call.inout.push_back(select(r.result, outputs[i], argument(call, 4 + i)));
    return r.result;
}
ir::Value* expand_ray_any(Call& call) {
    const Mesh mesh(argument(call, 0), argument(call, 1).type().scalar());
    const E face = find(mesh, "mesh_ray_any", i32_type(),
                        {call.arguments[1], call.arguments[2], call.arguments[3], call.arguments[4]});
    return face >= 0;
}
ir::Value* expand_ray_count(Call& call) {
    const Mesh mesh(argument(call, 0), argument(call, 1).type().scalar());
    return find(mesh, "mesh_ray_count", i32_type(), {call.arguments[1], call.arguments[2], call.arguments[3]});
}

// ---- evaluation ----

E weighted(const std::vector<E>& corners, E u, E v) {
    return corners[0] * u + corners[1] * v + corners[2] * (1.0 - u - v);
}
ir::Value* eval(Call& call, const char* name) {
    const Scalar scalar = argument(call, 2).type().scalar();
    const Mesh mesh(argument(call, 0), scalar);
    return weighted(mesh.corners(name, argument(call, 1), scalar), argument(call, 2), argument(call, 3));
}
ir::Value* expand_position(Call& call) { return eval(call, "points"); }
ir::Value* expand_velocity(Call& call) { return eval(call, "velocities"); }

Scalar result_scalar(const Call& call) { return call.types.at("dtype").scalar(); }

// Computed in float64 if the mesh or the result is of that type.
ir::Value* expand_normal(Call& call) {
    const Scalar scalar = result_scalar(call);
    const Mesh mesh(argument(call, 0), scalar);
    const std::vector<E> indices = mesh.corner_indices(argument(call, 1));
    return mesh.either({Type::vector(scalar, 3)}, [&](Scalar own) {
        const Scalar computed = own == Scalar::f64 ? own : scalar;
        const std::vector<E> corners = mesh.elements_of(own, "points", indices, computed);
        const E normal = cross(corners[1] - corners[0], corners[2] - corners[0]);
        const E squared = dot(normal, normal), is_proper = squared > 0.0;
        const E unit = normal / sqrt(select(is_proper, squared, squared.number(1)));
        return std::vector<E>{cast(select(is_proper, unit, normal.zero()), scalar)};
    })[0];
}
ir::Value* expand_get_index(Call& call) { return Mesh(argument(call, 0), Scalar::f32).corner_index(argument(call, 1)); }
ir::Value* get_element(Call& call, const char* name) {
    const Mesh mesh(argument(call, 0), result_scalar(call));
    return mesh.elements(name, {mesh.corner_index(argument(call, 1))}, result_scalar(call))[0];
}
ir::Value* expand_get_point(Call& call) { return get_element(call, "points"); }
ir::Value* expand_get_velocity(Call& call) { return get_element(call, "velocities"); }
// Its arrays have float32 elements.
ir::Value* expand_get(Call& call) {
    const Mesh mesh(argument(call, 0), Scalar::f32);
    call.builder.require(!mesh.is_of(Scalar::f64),
                         "mesh_get() gives arrays of vec3f, and this mesh is of vec3d. help: read it with "
                         "mesh_get_point(mesh, index, dtype=wp.float64), or give its arrays to the kernel");
    return make(find_known_struct("Mesh")->type(),
                {mesh.array("points"), mesh.array("velocities"), mesh.array("indices")});
}

// ---- the table ----

// Meshes are of float32 or float64.
std::string refuse_small(const Match& match) {
    const auto found = match.types.find("F");
    const Type type = found == match.types.end() ? f32_type() : found->second;
    if (type == f32_type() || type == f64_type()) return "";
    return "it is of " + type.python_name() + ", and meshes are of float32 or float64";
}

std::string refuse_small_result(const Match& match) {
    const Type dtype = match.types.at("dtype");
    if (dtype == f32_type() || dtype == f64_type()) return "";
    return "argument 'dtype' is " + dtype.python_name() + ", expected float32 or float64";
}

// The options are of the type of the query.
#define WEFT_POINT_OVERLOADS(name, outputs, options32, options64, options, doc, side)                                  \
    {name, "(id: uint64, point: Vec[3,float32], max_dist: float32" options32 ") -> MeshQueryPoint", doc,               \
     expand_point<side>},                                                                                              \
        {name, "(id: uint64, point: Vec[3,float64], max_dist: float64" options64 ") -> MeshQueryPointd", doc,          \
         expand_point<side>},                                                                                          \
    {                                                                                                                  \
        name, "(id: uint64, point: Vec[3,F], max_dist: F, " outputs options ") -> B", doc, expand_point_outputs<side>, \
            true, refuse_small                                                                                         \
    }
#define WEFT_SIGNED(name, options32, options64, options, doc, side)                                               \
    WEFT_POINT_OVERLOADS(name, "inside: inout F, face: inout int32, bary_u: inout F, bary_v: inout F", options32, \
                         options64, options, doc, side)

constexpr const char* kPointDoc =
    "The point of a mesh closest to the given one, at most max_dist away, with the side of the surface: -1 inside, 1 "
    "outside. A ray from inside hits the surface an odd number of times; the majority of the rays along x, y and z "
    "decides. The orientation of faces does not matter. wp.mesh_query_point_sign_normal() is faster.";
constexpr const char* kNormalDoc =
    "The point of a mesh closest to the given one, at most max_dist away, with the side of the surface: -1 inside, 1 "
    "outside, by the normal of the closest corner, edge or face. Correct for closed meshes without self-intersections "
    "whose faces are counter-clockwise from outside.";
constexpr const char* kParityDoc =
    "The point of a mesh closest to the given one, at most max_dist away, with the side that at least half of n_sample "
    "rays give: a ray from inside hits the surface an odd number of times. The rays have the direction (1, 1, 1), "
    "perturbed by up to perturbation_scale along each axis. Without rays every point is inside.";
constexpr const char* kWindingDoc =
    "The point of a mesh closest to the given one, at most max_dist away, with the side by the winding number: inside "
    "if it is above the threshold. For meshes made with support_winding_number=True, also open ones and those that "
    "intersect themselves. A higher accuracy sums over more faces one by one.";
constexpr const char* kNoSignDoc = "The point of a mesh closest to the given one, at most max_dist away.";
constexpr const char* kFurthestDoc =
    "The point of a mesh furthest from the given one, at least min_dist away: a corner of the face.";
constexpr const char* kRayDoc = "The first hit of a ray on a mesh, at most max_t lengths of dir from its start.";

constexpr Entry kEntries[] = {
    WEFT_SIGNED("mesh_query_point", "", "", "", kPointDoc, Side::axes),
    WEFT_SIGNED("mesh_query_point_sign_normal", ", epsilon: float32 = 0.001", ", epsilon: float64 = 0.001",
                ", epsilon: F = 0.001", kNormalDoc, Side::normal),
    WEFT_SIGNED("mesh_query_point_sign_parity", ", n_sample: int32 = 1, perturbation_scale: float32 = 0.1",
                ", n_sample: int32 = 1, perturbation_scale: float64 = 0.1",
                ", n_sample: int32 = 1, perturbation_scale: F = 0.1", kParityDoc, Side::parity),
    WEFT_SIGNED("mesh_query_point_sign_winding_number", ", accuracy: float32 = 2.0, threshold: float32 = 0.5",
                ", accuracy: float64 = 2.0, threshold: float64 = 0.5", ", accuracy: F = 2.0, threshold: F = 0.5",
                kWindingDoc, Side::winding),
    WEFT_POINT_OVERLOADS("mesh_query_point_no_sign", "face: inout int32, bary_u: inout F, bary_v: inout F", "", "", "",
                         kNoSignDoc, Side::none),
    {"mesh_query_furthest_point_no_sign", "(id: uint64, point: Vec[3,float32], min_dist: float32) -> MeshQueryPoint",
     kFurthestDoc, expand_furthest},
    {"mesh_query_furthest_point_no_sign", "(id: uint64, point: Vec[3,float64], min_dist: float64) -> MeshQueryPointd",
     kFurthestDoc, expand_furthest},
    {"mesh_query_furthest_point_no_sign",
     "(id: uint64, point: Vec[3,F], min_dist: F, face: inout int32, bary_u: inout F, bary_v: inout F) -> B",
     kFurthestDoc, expand_furthest_outputs, true, refuse_small},
    {"mesh_query_ray",
     "(id: uint64, start: Vec[3,float32], dir: Vec[3,float32], max_t: float32, root: int32 = -1) -> MeshQueryRay",
     kRayDoc, expand_ray},
    {"mesh_query_ray",
     "(id: uint64, start: Vec[3,float64], dir: Vec[3,float64], max_t: float64, root: int32 = -1) -> MeshQueryRayd",
     kRayDoc, expand_ray},
    {"mesh_query_ray",
     "(id: uint64, start: Vec[3,F], dir: Vec[3,F], max_t: F, t: inout F, bary_u: inout F, bary_v: inout F, sign: inout "
     "F, normal: inout Vec[3,F], face: inout int32, root: int32 = -1) -> B",
     kRayDoc, expand_ray_outputs, true, refuse_small},
    {"mesh_query_ray_anyhit", "(id: uint64, start: Vec[3,F], dir: Vec[3,F], max_t: F, root: int32 = -1) -> B",
     "Whether a ray hits a mesh, at most max_t lengths of dir from its start.", expand_ray_any, false, refuse_small},
    {"mesh_query_ray_count_intersections", "(id: uint64, start: Vec[3,F], dir: Vec[3,F], root: int32 = -1) -> int32",
     "The number of faces of a mesh that a ray hits.", expand_ray_count, false, refuse_small},
    {"mesh_eval_position", "(id: uint64, face: int32, bary_u: F, bary_v: F) -> Vec[3,F]",
     "The point of a face of a mesh with these barycentric weights of its first two corners.", expand_position, true,
     refuse_small},
    {"mesh_eval_velocity", "(id: uint64, face: int32, bary_u: F, bary_v: F) -> Vec[3,F]",
     "The velocity on a face of a mesh with these barycentric weights of its first two corners.", expand_velocity, true,
     refuse_small},
    {"mesh_eval_face_normal", "(id: uint64, face: int32, dtype: static type = float32) -> Vec[3,dtype]",
     "The unit normal of a face of a mesh; zeros if the face has no area.", expand_normal, true, refuse_small_result},
    {"mesh_get_index", "(id: uint64, index: int32) -> int32",
     "The number of the point at a corner of a face: index is three times the face plus 0, 1 or 2.", expand_get_index,
     false},
    {"mesh_get_point", "(id: uint64, index: int32, dtype: static type = float32) -> Vec[3,dtype]",
     "The point at a corner of a face: index is three times the face plus 0, 1 or 2.", expand_get_point, true,
     refuse_small_result},
    {"mesh_get_velocity", "(id: uint64, index: int32, dtype: static type = float32) -> Vec[3,dtype]",
     "The velocity at a corner of a face: index is three times the face plus 0, 1 or 2.", expand_get_velocity, true,
     refuse_small_result},
    {"mesh_get", "(id: uint64) -> Mesh", "The arrays of a mesh of float32: points, velocities, indices.", expand_get},
};
#undef WEFT_SIGNED
#undef WEFT_POINT_OVERLOADS

}  // namespace

std::span<const Entry> mesh_entries() { return kEntries; }

}  // namespace weft::builtins
