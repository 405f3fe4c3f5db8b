// Volumes: values of NanoVDB grids (runtime/spatial/volume).
//
// The device library finds voxels (devlib/spatial/volume.cpp): the eight around a point, one, or the index of a voxel's
// value in a separate array. Interpolation is written here, so that the derivatives by the point and by the array
// follow from the arithmetic. Values in a grid are constants for gradients.
//
// Linear interpolation goes along the last axis first, then the second, then the first, each a + t (b - a), as
// NanoVDB's own sampler does. Cubic interpolation uses a cubic along each axis.
#include <array>
#include <functional>

#include "builtins/groups.h"
#include "builtins/objects.h"

namespace weft::builtins {

namespace {

constexpr int kClosest = 0, kLinear = 1, kCubic = 2;  // Volume.CLOSEST, LINEAR, CUBIC

// The suffix of the library's functions for values of a type; null if it has none.
const char* suffix_of(Type type) {
    if (type.is_scalar()) {
        switch (type.scalar()) {
            case Scalar::f32:
                return "f32";
            case Scalar::f64:
                return "f64";
            case Scalar::u8:
                return "u8";
            case Scalar::i16:
                return "i16";
            case Scalar::i32:
                return "i32";
            case Scalar::i64:
                return "i64";
            case Scalar::u32:
                return "u32";
            default:
                return nullptr;
        }
    }
    if (!type.is_vector()) return nullptr;
    if (type.scalar() == Scalar::f32) return type.rows() == 3 ? "vec3f" : type.rows() == 4 ? "vec4f" : nullptr;
    if (type.scalar() == Scalar::f64) return type.rows() == 3 ? "vec3d" : type.rows() == 4 ? "vec4d" : nullptr;
    return nullptr;
}

bool is_smooth(Type type) { return info(type.scalar()).is_float(); }

E open(const Call& call) { return object(ObjectKind::volume, argument(call, 0)); }

E voxel_of(E place) { return cast(place, Scalar::i32); }

// ---- values around a place ----

using Corners = std::vector<E>;  // of the voxel (i + x, j + y, k + z): number 4 x + 2 y + z

E mix(E a, E b, E t) { return a + t * (b - a); }

// Interpolates between the corners. With `without`, that axis is skipped: the corners are the differences along it.
E interpolate(const Corners& corners, const std::array<E, 3>& weights, int without = -1) {
    Corners left = corners;
    for (int axis = 2; axis >= 0; --axis) {
        if (axis == without) continue;
        // Neighbours in `left` differ in its last remaining axis.
        Corners next;
        for (std::size_t n = 0; n < left.size(); n += 2)
            next.push_back(mix(left[n], left[n + 1], weights[static_cast<std::size_t>(axis)]));
        left = std::move(next);
    }
    return left[0];
}

Corners differences(const Corners& corners, int axis) {
    const std::size_t step = std::size_t{1} << (2 - axis);
    Corners result;
    for (std::size_t c = 0; c < 8; ++c)
        if ((c & step) == 0) result.push_back(corners[c + step] - corners[c]);
    return result;
}

// The derivatives by i, j, k: a vector of three, or for vector values a matrix with a row for each component.
E as_gradient(const std::vector<E>& parts) {
    if (parts[0].type().is_scalar()) return make_vector(parts);
    std::vector<E> entries;
    for (int row = 0; row < parts[0].components(); ++row)
        for (const E& part : parts) entries.push_back(part[row]);
    return make_matrix(parts[0].components(), 3, entries);
}

E gradient(const Corners& corners, const std::array<E, 3>& weights) {
    std::vector<E> parts;
    for (int axis = 0; axis < 3; ++axis) parts.push_back(interpolate(differences(corners, axis), weights, axis));
    return as_gradient(parts);
}
Type gradient_type(Type value) {
    return value.is_scalar() ? Type::vector(value.scalar(), 3) : Type::matrix(value.scalar(), value.rows(), 3);
}

// The source of values: the grid itself, or a separate array.
struct Source {
    Type type;
    std::function<Corners(E)> around;  // the voxels around the one with these coordinates
    std::function<E(E)> at;
};

Source values_of(E volume, Type type) {
    const auto find = [=](const std::string& name, Type result, E voxel) {
        return volume.wrap(call_library(volume, "volume_" + name + suffix_of(type), result, {voxel}));
    };
    const auto around = [=](E voxel) {
        const bool is_scalar = type.is_scalar();
        const E all =
            find("stencil_", is_scalar ? Type::vector(type.scalar(), 8) : Type::matrix(type.scalar(), 8, type.rows()),
                 voxel);
        Corners corners;
        for (int c = 0; c < 8; ++c) {
            std::vector<E> parts;
            for (int n = 0; !is_scalar && n < type.rows(); ++n) parts.push_back(all.at(c, n));
            corners.push_back(is_scalar ? all[c] : make_vector(parts));
        }
        return corners;
    };
    return {type, around, [=](E voxel) { return find("lookup_", type, voxel); }};
}

Source values_in(E volume, E data, E background) {
    const Type type = background.type();
    const auto value = [=](E place) {
        const E count = data.wrap(data.builder().dim(data, 0));
        return branch(
            place >= 0 && place < count, type, [&] { return data.wrap(data.builder().load(data, {place})); },
            [&] { return background; });
    };
    const auto around = [=](E voxel) {
        const E places =
            volume.wrap(call_library(volume, "volume_stencil_index", Type::vector(Scalar::i32, 8), {voxel}));
        Corners corners;
        for (int c = 0; c < 8; ++c) corners.push_back(value(places[c]));
        return corners;
    };
    const auto at = [=](E voxel) {
        return value(volume.wrap(call_library(volume, "volume_lookup_index", i32_type(), {voxel})));
    };
    return {type, around, at};
}

// ---- sampling ----

E nearest(const Source& source, E place) {
    std::vector<E> voxel;
    for (int n = 0; n < 3; ++n) voxel.push_back(voxel_of(unary(ir::Op::round, place[n])));
    return source.at(make_vector(voxel));
}

E trilinear(const Source& source, E place, bool with_gradient) {
    std::vector<E> voxel, weights;
    for (int n = 0; n < 3; ++n) {
        const E low = floor(place[n]);
        voxel.push_back(voxel_of(low));
        weights.push_back(cast(place[n] - low, source.type.scalar()));
    }
    const std::array<E, 3> t{weights[0], weights[1], weights[2]};
    const Corners corners = source.around(make_vector(voxel));
    const E value = interpolate(corners, t);
    return with_gradient ? make_tuple({value, gradient(corners, t)}) : value;
}

// ---- cubic ----

// A cubic through four neighbours at -1, 0, 1, 2 for 0 <= t <= 1 (E. Catmull, R. Rom 1974): it has the values at 0 and
// 1, and there the slopes of central differences. The functions give the weights of the neighbours, and their
// derivatives.
using Weights = std::array<E, 4>;
Weights cubic_weights(E t) {
    return {((2.0 - t) * t - 1.0) * t * 0.5, ((t * 3.0 - 5.0) * t * t + 2.0) * 0.5,
            ((4.0 - t * 3.0) * t + 1.0) * t * 0.5, (t - 1.0) * t * t * 0.5};
}
Weights cubic_slopes(E t) {
    return {((4.0 - t * 3.0) * t - 1.0) * 0.5, (t * 9.0 - 10.0) * t * 0.5, ((8.0 - t * 9.0) * t + 1.0) * 0.5,
            (t * 3.0 - 2.0) * t * 0.5};
}

// Combines each four neighbouring values into one.
Corners weigh(const Corners& values, const Weights& weights) {
    Corners result;
    for (std::size_t n = 0; n < values.size(); n += 4)
        result.push_back(values[n] * weights[0] + values[n + 1] * weights[1] + values[n + 2] * weights[2] +
                         values[n + 3] * weights[3]);
    return result;
}

// The 64 voxels from (i - 1, j - 1, k - 1) to (i + 2, j + 2, k + 2), the last coordinate first: eight times eight.
Corners wide_neighbourhood(const Source& source, E voxel) {
    std::vector<Corners> parts;
    for (int part = 0; part < 8; ++part) {
        std::vector<E> at;
        for (int axis = 0; axis < 3; ++axis) at.push_back(voxel[axis] + ((part >> (2 - axis) & 1) ? 1.0 : -1.0));
        parts.push_back(source.around(make_vector(at)));
    }
    Corners all;
    for (unsigned n = 0; n < 64; ++n) {
        const unsigned i = n >> 4, j = n >> 2 & 3, k = n & 3;
        all.push_back(parts[(i >> 1) * 4 + (j >> 1) * 2 + (k >> 1)][(i & 1) * 4 + (j & 1) * 2 + (k & 1)]);
    }
    return all;
}

// As in NanoVDB's sampler of the third order, the slopes at the corners are central differences.
E tricubic(const Source& source, E place, bool with_gradient) {
    std::vector<E> voxel, parts;
    std::vector<Weights> weights, slopes;
    for (int n = 0; n < 3; ++n) {
        const E low = floor(place[n]), t = cast(place[n] - low, source.type.scalar());
        voxel.push_back(voxel_of(low));
        weights.push_back(cubic_weights(t));
        slopes.push_back(cubic_slopes(t));
    }
    const Corners all = wide_neighbourhood(source, make_vector(voxel));
    const Corners rows = weigh(all, weights[2]);
    const E value = weigh(weigh(rows, weights[1]), weights[0])[0];
    if (!with_gradient) return value;
    parts = {weigh(weigh(rows, weights[1]), slopes[0])[0], weigh(weigh(rows, slopes[1]), weights[0])[0],
             weigh(weigh(weigh(all, slopes[2]), weights[1]), weights[0])[0]};
    return make_tuple({value, as_gradient(parts)});
}

// Integers are never interpolated. An unknown mode gives zeros.
E sample(const Source& source, E place, E mode, bool with_gradient) {
    const Type type = source.type, slope = gradient_type(type);
    ir::Builder& b = place.builder();
    const auto with_zero = [&](E value) {
        return with_gradient ? make_tuple({value, place.wrap(b.zero(slope))}) : value;
    };
    if (!is_smooth(type)) return with_zero(nearest(source, place));
    const Type result = with_gradient ? Type::tuple({type, slope}) : type;
    return branch(
        mode == kLinear, result, [&] { return trilinear(source, place, with_gradient); },
        [&] {
            return branch(
                mode == kClosest, result, [&] { return with_zero(nearest(source, place)); },
                [&] {
                    return branch(
                        mode == kCubic, result, [&] { return tricubic(source, place, with_gradient); },
                        [&] { return with_zero(place.wrap(b.zero(type))); });
                });
        });
}

Type value_type(const Call& call) { return call.types.at("dtype"); }

// For floating types; the gradient is assigned to `.inout`.
ir::Value* with_gradient(Call& call, const Source& source, E given) {
    const E both = sample(source, argument(call, 1), argument(call, 2), true);
    const E slope = both[1];
    call.inout = {given.type() == slope.type() ? slope : slope.wrap(call.builder.cast(slope, given.type().scalar()))};
    return both[0];
}

template <Type (*type)()>
ir::Value* expand_sample(Call& call) {
    return sample(values_of(open(call), type()), argument(call, 1), argument(call, 2), false);
}
ir::Value* expand_sample_any(Call& call) {
    return sample(values_of(open(call), value_type(call)), argument(call, 1), argument(call, 2), false);
}
ir::Value* expand_sample_whole(Call& call) { return nearest(values_of(open(call), i32_type()), argument(call, 1)); }
ir::Value* expand_sample_gradient_f32(Call& call) {
    return with_gradient(call, values_of(open(call), f32_type()), argument(call, 3));
}
ir::Value* expand_sample_gradient_any(Call& call) {
    return with_gradient(call, values_of(open(call), value_type(call)), argument(call, 3));
}
ir::Value* expand_sample_index(Call& call) {
    return sample(values_in(open(call), argument(call, 3), argument(call, 4)), argument(call, 1), argument(call, 2),
                  false);
}
ir::Value* expand_sample_gradient_index(Call& call) {
    return with_gradient(call, values_in(open(call), argument(call, 3), argument(call, 4)), argument(call, 5));
}

// ---- single voxels ----

E voxel_argument(const Call& call) { return make_vector({argument(call, 1), argument(call, 2), argument(call, 3)}); }

Type vec3f_type() { return Type::vector(Scalar::f32, 3); }

template <Type (*type)()>
ir::Value* expand_lookup(Call& call) {
    return values_of(open(call), type()).at(voxel_argument(call));
}
ir::Value* expand_lookup_any(Call& call) { return values_of(open(call), value_type(call)).at(voxel_argument(call)); }
ir::Value* expand_lookup_index(Call& call) {
    return call_library(open(call), "volume_lookup_index", i32_type(), {voxel_argument(call)});
}
ir::Value* expand_store(Call& call) {
    const E value = argument(call, 4);
    call_library(open(call), std::string("volume_store_") + suffix_of(value.type()), Type::none(),
                 {voxel_argument(call), value},
                 /*writes=*/true);
    return nullptr;
}
ir::Value* expand_voxel_count(Call& call) { return Descriptor(ObjectKind::volume, open(call))["voxel_count"]; }

// ---- index space and the world ----

// The fields exist in f32 and f64; other floats are computed in f32.
E in_map(const Call& call, const std::function<E(const Descriptor&, const std::string&, E)>& compute) {
    const E place = argument(call, 1);
    const Scalar given = place.type().scalar(), scalar = given == Scalar::f64 ? Scalar::f64 : Scalar::f32;
    const std::string suffix = scalar == Scalar::f64 ? "_f64" : "_f32";
    return cast(compute(Descriptor(ObjectKind::volume, open(call)), suffix, cast(place, scalar)), given);
}

ir::Value* expand_index_to_world(Call& call) {
    return in_map(call, [](const Descriptor& volume, const std::string& suffix, E place) {
        return matmul(volume["matrix" + suffix], place) + volume["translation" + suffix];
    });
}
ir::Value* expand_world_to_index(Call& call) {
    return in_map(call, [](const Descriptor& volume, const std::string& suffix, E place) {
        return matmul(volume["inverse" + suffix], place - volume["translation" + suffix]);
    });
}
ir::Value* expand_index_to_world_dir(Call& call) {
    return in_map(call, [](const Descriptor& volume, const std::string& suffix, E direction) {
        return matmul(volume["matrix" + suffix], direction);
    });
}
ir::Value* expand_world_to_index_dir(Call& call) {
    return in_map(call, [](const Descriptor& volume, const std::string& suffix, E direction) {
        return matmul(volume["inverse" + suffix], direction);
    });
}

// ---- refused types ----

constexpr const char* kValueTypes =
    "float32, float64, int16, int32, int64, uint8, uint32, vec3f, vec3d, vec4f or vec4d";

std::string refuse_other_dtype(const Match& match) {
    const Type type = match.types.at("dtype");
    if (suffix_of(type)) return "";
    return "volumes have no values of type " + type.python_name() + ", only " + kValueTypes;
}

std::string refuse_other_value(const Match& match) {
    const Type type = match.types.at("T");
    if (suffix_of(type)) return "";
    return "argument 'value' is " + type.python_name() + ", and volumes have values of type " + kValueTypes;
}

bool is_numeric(Type type) { return (type.is_scalar() || type.is_vector()) && type.scalar() != Scalar::boolean; }

std::string refuse_other_slope(const Type value, const Type slope) {
    if (!is_numeric(value) || !is_smooth(value))
        return "values of type " + value.python_name() + " have no gradient, only floats and vectors of them";
    if (slope == gradient_type(value)) return "";
    return "argument 'grad' is " + slope.python_name() + ", expected " + gradient_type(value).python_name() +
           ": the derivatives of each component of the value by i, j and k";
}
std::string refuse_other_gradient(const Match& match) {
    const std::string refused = refuse_other_dtype(match);
    return refused.empty() ? refuse_other_slope(match.types.at("dtype"), match.types.at("U")) : refused;
}
std::string refuse_other_data(const Match& match) {
    const Type type = match.types.at("T");
    if (is_numeric(type)) return "";
    return "argument 'voxel_data' has elements of type " + type.python_name() + ", expected numbers or vectors";
}

constexpr Entry kEntries[] = {
    {"volume_sample", "(id: uint64, uvw: Vec[3,F], sampling_mode: int32, dtype: static type) -> dtype",
     "Value of a volume of this type at a point in index space: of the nearest voxel (wp.Volume.CLOSEST, halves away "
     "from zero), trilinear (wp.Volume.LINEAR) or tricubic (wp.Volume.CUBIC); integers are always of the nearest "
     "voxel.",
     expand_sample_any, true, refuse_other_dtype},
    {"volume_sample_grad",
     "(id: uint64, uvw: Vec[3,F], sampling_mode: int32, grad: inout U, dtype: static type) -> dtype",
     "The same, and the derivatives by i, j, k in `grad`: a vec3, or for vectors a matrix with a row for each "
     "component; zeros for the nearest voxel.",
     expand_sample_gradient_any, true, refuse_other_gradient},
    {"volume_lookup", "(id: uint64, i: int32, j: int32, k: int32, dtype: static type) -> dtype",
     "Value of one voxel of a volume of this type; the background if there is none.", expand_lookup_any, false,
     refuse_other_dtype},
    {"volume_store", "(id: uint64, i: int32, j: int32, k: int32, value: T) -> none",
     "Sets the value of a voxel that is in one of the volume's 8 x 8 x 8 tiles; stores to others have no effect.",
     expand_store, false, refuse_other_value},
    {"volume_sample_f", "(id: uint64, uvw: Vec[3,F], sampling_mode: int32) -> float32",
     "Value of a float32 volume at a point in index space: of the nearest voxel, trilinear or tricubic.",
     expand_sample<f32_type>},
    {"volume_sample_grad_f", "(id: uint64, uvw: Vec[3,F], sampling_mode: int32, grad: inout Vec[3,float32]) -> float32",
     "The same, and the derivatives by i, j, k in `grad`.", expand_sample_gradient_f32},
    {"volume_lookup_f", "(id: uint64, i: int32, j: int32, k: int32) -> float32",
     "Value of one voxel of a float32 volume; the background if there is none.", expand_lookup<f32_type>, false},
    {"volume_store_f", "(id: uint64, i: int32, j: int32, k: int32, value: float32) -> none",
     "Sets the value of a voxel of a float32 volume that is in one of its tiles.", expand_store, false},
    {"volume_sample_v", "(id: uint64, uvw: Vec[3,F], sampling_mode: int32) -> Vec[3,float32]",
     "Value of a vec3f volume at a point in index space: of the nearest voxel, trilinear or tricubic.",
     expand_sample<vec3f_type>},
    {"volume_lookup_v", "(id: uint64, i: int32, j: int32, k: int32) -> Vec[3,float32]",
     "Value of one voxel of a vec3f volume; the background if there is none.", expand_lookup<vec3f_type>, false},
    {"volume_store_v", "(id: uint64, i: int32, j: int32, k: int32, value: Vec[3,float32]) -> none",
     "Sets the value of a voxel of a vec3f volume that is in one of its tiles.", expand_store, false},
    {"volume_sample_i", "(id: uint64, uvw: Vec[3,F]) -> int32",
     "Value of the voxel of an int32 volume that is nearest to a point in index space.", expand_sample_whole, false},
    {"volume_lookup_i", "(id: uint64, i: int32, j: int32, k: int32) -> int32",
     "Value of one voxel of an int32 volume; the background if there is none.", expand_lookup<i32_type>, false},
    {"volume_store_i", "(id: uint64, i: int32, j: int32, k: int32, value: int32) -> none",
     "Sets the value of a voxel of an int32 volume that is in one of its tiles.", expand_store, false},
    {"volume_sample_index",
     "(id: uint64, uvw: Vec[3,F], sampling_mode: int32, voxel_data: Array[T,1], background: T) -> T",
     "Value at a point in index space, from an array with a value for each voxel of the volume "
     "(wp.volume_lookup_index); `background` for voxels without one.",
     expand_sample_index, true, refuse_other_data},
    {"volume_sample_grad_index",
     "(id: uint64, uvw: Vec[3,F], sampling_mode: int32, voxel_data: Array[F2,1], background: F2, grad: inout "
     "Vec[3,F2]) "
     "-> F2",
     "The same, and the derivatives by i, j, k in `grad`.", expand_sample_gradient_index},
    {"volume_sample_grad_index",
     "(id: uint64, uvw: Vec[3,F], sampling_mode: int32, voxel_data: Array[Vec[n,F2],1], background: Vec[n,F2], grad: "
     "inout "
     "Mat[n,3,F2]) -> Vec[n,F2]",
     "The same for vectors; `grad` has a row for each component.", expand_sample_gradient_index},
    {"volume_lookup_index", "(id: uint64, i: int32, j: int32, k: int32) -> int32",
     "The number of a voxel, by which arrays beside the volume are indexed; -1 for a voxel without one. In volumes "
     "with values the voxels of all tiles have numbers.",
     expand_lookup_index, false},
    {"volume_voxel_count", "(id: uint64) -> int32", "The number of voxels of a volume that have a number.",
     expand_voxel_count, false},
    {"volume_index_to_world", "(id: uint64, uvw: Vec[3,F]) -> Vec[3,F]",
     "Transforms a point from index space, in which voxel (i, j, k) is at (i, j, k), to world space.",
     expand_index_to_world},
    {"volume_world_to_index", "(id: uint64, xyz: Vec[3,F]) -> Vec[3,F]",
     "Transforms a point from world space to index space.", expand_world_to_index},
    {"volume_index_to_world_dir", "(id: uint64, uvw: Vec[3,F]) -> Vec[3,F]",
     "Transforms a direction from index space to world space, without the translation.", expand_index_to_world_dir},
    {"volume_world_to_index_dir", "(id: uint64, xyz: Vec[3,F]) -> Vec[3,F]",
     "Transforms a direction from world space to index space, without the translation.", expand_world_to_index_dir},
};

}  // namespace

std::span<const Entry> volume_entries() { return kEntries; }

}  // namespace weft::builtins
