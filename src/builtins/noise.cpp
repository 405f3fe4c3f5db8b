// Gradient noise (Perlin, "Improving Noise", 2002): smooth random fields of one to four dimensions. Corners of the unit
// lattice have random gradients, hashed from the state and their integer coordinates. Between them a polynomial of
// degree 5 blends, so that the field and its first two derivatives are continuous. The field is 0 at the corners, has
// mean 0, and stays within [-1, 1].
//
// The components of a gradient are independent and uniform in an interval around 0, instead of one of a few directions.
// So the field's second moments favour no direction. Nothing here advances the state: one state is one field.
#include "builtins/expression.h"
#include "builtins/groups.h"
#include "builtins/pcg.h"
#include "ir/loop_builder.h"

namespace weft::builtins {

namespace {

// A value and its derivatives along the axes.
struct Jet {
    E value;
    std::vector<E> slopes;
};

class Field {
public:
    // With periods, the corners repeat after that many along each axis.
    Field(const std::vector<E>& point, const std::vector<E>& periods = {}) {
        for (std::size_t axis = 0; axis < point.size(); ++axis) {
            const E x = point[axis];
            const E base = floor(x);
            const E cell = cast(base, Scalar::i32);
            const auto corner = [&](int step) {
                E index = cell + step;
                if (!periods.empty()) index = (index % periods[axis] + periods[axis]) % periods[axis];
                return bitcast(index, Scalar::u32);
            };
            const E t = x - base;
            axes_.push_back(
                {t, t * t * t * (t * (t * 6 - 15) + 10), 30 * t * t * ((t - 1) * (t - 1)), {corner(0), corner(1)}});
        }
    }

    Jet at(E state) const { return blended(0, pcg(state), {}); }

private:
    struct Axis {
        E offset, blend, blend_slope;
        std::vector<E> corners;  // per axis, the coordinates of the two corners beside the point
    };

    // Blends the corners whose coordinates along the first axes are already part of the hash.
    Jet blended(std::size_t axis, E hash, const std::vector<int>& steps) const {
        if (axis == axes_.size()) return corner(hash, steps);
        const auto side = [&](int step) {
            std::vector<int> more = steps;
            more.push_back(step);
            return blended(axis + 1, pcg(hash + axes_[axis].corners[static_cast<std::size_t>(step)]), more);
        };
        const Jet low = side(0), high = side(1);
        const auto mix = [&](E a, E b) { return a + axes_[axis].blend * (b - a); };
        Jet jet{mix(low.value, high.value), {}};
        for (std::size_t k = 0; k < axes_.size(); ++k) jet.slopes.push_back(mix(low.slopes[k], high.slopes[k]));
        jet.slopes[axis] = jet.slopes[axis] + axes_[axis].blend_slope * (high.value - low.value);
        return jet;
    }

    // The linear function of one corner: 0 there, with the corner's gradient. The components share the bits of the
    // hash. Their range 2 / dimensions bounds the blend of all corners by 1.
    Jet corner(E hash, const std::vector<int>& steps) const {
        const int dimensions = static_cast<int>(axes_.size());
        const int bits = dimensions == 1 ? 24 : 32 / dimensions;
        const double unit = 4.0 / dimensions / static_cast<double>(1 << bits);
        std::vector<E> gradient;
        for (int k = 0; k < dimensions; ++k) {
            const E part = (hash >> (k * bits)) & static_cast<double>((1 << bits) - 1);
            const E number = cast(bitcast(part, Scalar::i32), Scalar::f32);
            gradient.push_back(number * unit + (0.5 * unit - 2.0 / dimensions));
        }
        E value = gradient[0] * (axes_[0].offset - steps[0]);
        for (std::size_t k = 1; k < axes_.size(); ++k) value = value + gradient[k] * (axes_[k].offset - steps[k]);
        return {value, gradient};
    }

    std::vector<Axis> axes_;
};

std::vector<E> components_of(E point) {
    std::vector<E> parts;
    for (int i = 0; i < point.components(); ++i) parts.push_back(point.component(i));
    return parts;
}

ir::Value* expand_noise(Call& call) { return Field(components_of(argument(call, 1))).at(argument(call, 0)).value; }

ir::Value* expand_pnoise(Call& call) {
    std::vector<E> periods;
    for (std::size_t i = 2; i < call.arguments.size(); ++i) periods.push_back(argument(call, i));
    return Field(components_of(argument(call, 1)), periods).at(argument(call, 0)).value;
}

// The curl of a random potential, which has no divergence (Bridson, Hourihan and Nordenstam, "Curl-Noise for Procedural
// Fluid Flow", 2007): of one scalar field in the plane, of three in space. The fourth of four coordinates is time.
std::vector<E> curl(const std::vector<E>& point, E state) {
    const Field field(point);
    if (point.size() == 2) {
        const Jet potential = field.at(state);
        return {potential.slopes[1], -potential.slopes[0]};
    }
    const Jet x = field.at(state), y = field.at(state + 1), z = field.at(state + 2);
    return {z.slopes[1] - y.slopes[2], x.slopes[2] - z.slopes[0], y.slopes[0] - x.slopes[1]};
}

// Octave k has frequency lacunarity^k, amplitude gain^k, and a field of its own.
ir::Value* expand_curlnoise(Call& call) {
    ir::Builder& b = call.builder;
    const E point = argument(call, 1);
    const E octaves = cast(argument(call, 2), Scalar::i32), lacunarity = argument(call, 3), gain = argument(call, 4);
    const std::size_t results = point.components() == 2 ? 2 : 3;
    std::vector<ir::Value*> start = {argument(call, 0), point.number(1), point.number(1)};
    start.resize(3 + results, point.number(0));
    const auto octave = [&](ir::Value*, const std::vector<ir::Value*>& carried) {
        const E state = pcg(point.wrap(carried[0])), frequency = point.wrap(carried[1]),
                amplitude = point.wrap(carried[2]);
        const std::vector<E> velocity = curl(components_of(point * frequency), state);
        std::vector<ir::Value*> next = {state, frequency * lacunarity, amplitude * gain};
        for (std::size_t i = 0; i < results; ++i) next.push_back(point.wrap(carried[3 + i]) + amplitude * velocity[i]);
        return next;
    };
    const std::vector<ir::Value*> last = ir::build_for(b, b.integer(0), octaves, b.integer(1), start, octave);
    std::vector<E> sum;
    for (std::size_t i = 0; i < results; ++i) sum.push_back(point.wrap(last[3 + i]));
    return make_vector(sum);
}

constexpr Entry kEntries[] = {
    {"noise", "(state: uint32, x: float32) -> float32",
     "Smooth random function of x with values in [-1, 1], 0 at whole numbers; one for each state.", expand_noise},
    {"noise", "(state: uint32, xy: Vec[2,float32]) -> float32",
     "Smooth random field of the plane with values in [-1, 1].", expand_noise},
    {"noise", "(state: uint32, xyz: Vec[3,float32]) -> float32", "Smooth random field of space with values in [-1, 1].",
     expand_noise},
    {"noise", "(state: uint32, xyzt: Vec[4,float32]) -> float32",
     "Smooth random field of four coordinates with values in [-1, 1].", expand_noise},
    {"pnoise", "(state: uint32, x: float32, px: int32) -> float32",
     "Smooth random function that repeats after px; periods are integers other than 0.", expand_pnoise},
    {"pnoise", "(state: uint32, xy: Vec[2,float32], px: int32, py: int32) -> float32",
     "Smooth random field of the plane that repeats after px and py.", expand_pnoise},
    {"pnoise", "(state: uint32, xyz: Vec[3,float32], px: int32, py: int32, pz: int32) -> float32",
     "Smooth random field of space that repeats after px, py and pz.", expand_pnoise},
    {"pnoise", "(state: uint32, xyzt: Vec[4,float32], px: int32, py: int32, pz: int32, pt: int32) -> float32",
     "Smooth random field of four coordinates that repeats after px, py, pz and pt.", expand_pnoise},
    {"curlnoise",
     "(state: uint32, xy: Vec[2,float32], octaves: uint32 = 1, lacunarity: float32 = 2.0, gain: float32 = 0.5) -> "
     "Vec[2,float32]",
     "Random velocity field of the plane without divergence: a sum of octaves, each lacunarity times as fine and gain "
     "times as strong as the one before.",
     expand_curlnoise},
    {"curlnoise",
     "(state: uint32, xyz: Vec[3,float32], octaves: uint32 = 1, lacunarity: float32 = 2.0, gain: float32 = 0.5) -> "
     "Vec[3,float32]",
     "Random velocity field of space without divergence, as a sum of octaves.", expand_curlnoise},
    {"curlnoise",
     "(state: uint32, xyzt: Vec[4,float32], octaves: uint32 = 1, lacunarity: float32 = 2.0, gain: float32 = 0.5) -> "
     "Vec[3,float32]",
     "Random velocity field of space that changes with time and has no divergence in space, as a sum of octaves.",
     expand_curlnoise},
};

}  // namespace

std::span<const Entry> noise_entries() { return kEntries; }

}  // namespace weft::builtins
