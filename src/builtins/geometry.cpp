// Geometry: functions of the device library (src/devlib), each with its adjoint and its tangent there.
#include <memory>
#include <string>
#include <vector>

#include "builtins/groups.h"

namespace weft::builtins {

namespace {

// `name` is the function's name in src/devlib, which has it in f32 and f64.
std::shared_ptr<const ir::LibraryFunction> library_function(const std::string& name, Scalar scalar) {
    const std::string type = scalar == Scalar::f64 ? "_f64" : "_f32";
    auto function = std::make_shared<ir::LibraryFunction>();
    function->symbol = "weft_lib_" + name + type;
    function->adjoint = "weft_lib_" + name + "_adjoint" + type;
    function->tangent = "weft_lib_" + name + "_tangent" + type;
    function->form = ir::LibraryFunction::Form::lanes;
    return function;
}

// Floats of 16 bits are computed in f32, as in all their arithmetic.
ir::Value* expand_closest_point_edge_edge(Call& call) {
    ir::Builder& b = call.builder;
    const Scalar given = call.arguments[0]->type.scalar();
    const Scalar scalar = given == Scalar::f64 ? Scalar::f64 : Scalar::f32;
    const auto as = [&](ir::Value* value, Scalar to) { return given == scalar ? value : b.cast(value, to); };
    std::vector<ir::Value*> arguments;
    for (ir::Value* argument : call.arguments) arguments.push_back(as(argument, scalar));
    const Type point = arguments[0]->type;
    ir::Value* result = b.call_library(library_function("closest_edge_edge", scalar), point, std::move(arguments));
    return as(result, given);
}

// The device library tests triangles in f32 and f64 only; other floats are converted.
ir::Value* expand_intersect_tri_tri(Call& call) {
    const Scalar given = call.arguments[0]->type.scalar(), scalar = given == Scalar::f64 ? Scalar::f64 : Scalar::f32;
    auto function = std::make_shared<ir::LibraryFunction>();
    function->symbol = std::string("weft_lib_triangles_meet_") + (scalar == Scalar::f64 ? "f64" : "f32");
    function->form = ir::LibraryFunction::Form::masked;
    function->pure = true;
    std::vector<ir::Value*> corners;
    for (ir::Value* corner : call.arguments)
        corners.push_back(given == scalar ? corner : call.builder.cast(corner, scalar));
    return call.builder.call_library(std::move(function), i32_type(), std::move(corners));
}

constexpr Entry kEntries[] = {
    {"closest_point_edge_edge", "(p1: Vec[3,F], q1: Vec[3,F], p2: Vec[3,F], q2: Vec[3,F], epsilon: F) -> Vec[3,F]",
     "The closest points of two segments p1 q1 and p2 q2: their positions along each segment, from 0 to 1, and their "
     "distance. A segment whose squared length is at most epsilon counts as its first point.",
     expand_closest_point_edge_edge},
    {"intersect_tri_tri",
     "(v0: Vec[3,F], v1: Vec[3,F], v2: Vec[3,F], u0: Vec[3,F], u1: Vec[3,F], u2: Vec[3,F]) -> int32",
     "1 if the triangles v0 v1 v2 and u0 u1 u2 have a point in common, else 0. Touching triangles intersect. One "
     "without area is a segment or a point. One with a coordinate that is not finite intersects nothing.",
     expand_intersect_tri_tri, false},
};

}  // namespace

std::span<const Entry> geometry_entries() { return kEntries; }

}  // namespace weft::builtins
