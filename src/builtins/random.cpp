// Random numbers. The state is one uint32; each draw advances it by pcg() and derives the number from the new state.
#include <cmath>
#include <numbers>

#include "builtins/expression.h"
#include "builtins/groups.h"
#include "builtins/pcg.h"

namespace weft::builtins {

namespace {

// Draws numbers within one call; the caller's variable gets the state after the last one.
class Draws {
public:
    explicit Draws(Call& call) : call_(call), state_(argument(call, 0)) {}
    ~Draws() { call_.inout = {state_}; }
    Draws(const Draws&) = delete;
    Draws& operator=(const Draws&) = delete;

    E bits() { return state_ = pcg(state_); }
    // Uniform in [0, 1): the upper 24 bits, the precision of float32.
    E unit() { return cast(bits() >> 8, Scalar::f32) * 0x1p-24; }
    E angle() { return unit() * (2.0 * std::numbers::pi); }
    // Two independent standard normal numbers come from two uniform ones (Box and Muller, 1958); the first is used. A
    // uniform 0 has no logarithm: it is replaced by the smallest number that programs of release 1.19 see.
    E normal() {
        const E radius = sqrt(-2.0 * log(max(unit(), 5.96e-8)));
        return radius * cos(angle());
    }

private:
    Call& call_;
    E state_;
};

ir::Value* expand_rand_init(Call& call) { return pcg(bitcast(argument(call, 0), Scalar::u32)); }
ir::Value* expand_rand_init_offset(Call& call) {
    return pcg(bitcast(argument(call, 0), Scalar::u32) + pcg(bitcast(argument(call, 1), Scalar::u32)));
}

ir::Value* expand_randi(Call& call) { return bitcast(Draws(call).bits(), Scalar::i32); }
ir::Value* expand_randi_range(Call& call) {
    const E low = bitcast(argument(call, 1), Scalar::u32), high = bitcast(argument(call, 2), Scalar::u32);
    return bitcast(low + Draws(call).bits() % (high - low), Scalar::i32);
}
ir::Value* expand_randu(Call& call) { return Draws(call).bits(); }
ir::Value* expand_randu_range(Call& call) {
    const E low = argument(call, 1), high = argument(call, 2);
    return low + Draws(call).bits() % (high - low);
}
ir::Value* expand_randf(Call& call) { return Draws(call).unit(); }
ir::Value* expand_randf_range(Call& call) {
    const E low = argument(call, 1), high = argument(call, 2);
    return low + (high - low) * Draws(call).unit();
}
ir::Value* expand_randn(Call& call) { return Draws(call).normal(); }

ir::Value* expand_sample_cdf(Call& call) {
    const E u = Draws(call).unit();
    const E zero = u.wrap(call.builder.integer(0));
    const E count = u.wrap(call.builder.dim(call.arguments[1], 0));
    // Rounding in the sums may leave the last value below u; the index is clamped to the array.
    return min(lower_bound(argument(call, 1), zero, count, u), max(count - 1, zero));
}

// Uniform in a triangle (Osada et al., "Shape Distributions", 2002): the third barycentric coordinate is 1 - x - y.
ir::Value* expand_sample_triangle(Call& call) {
    Draws draws(call);
    const E root = sqrt(draws.unit());
    return make_vector({1 - root, draws.unit() * root});
}

ir::Value* expand_sample_unit_ring(Call& call) {
    const E phi = Draws(call).angle();
    return make_vector({cos(phi), sin(phi)});
}

ir::Value* expand_sample_unit_disk(Call& call) {
    Draws draws(call);
    const E radius = sqrt(draws.unit());
    const E phi = draws.angle();
    return make_vector({radius * cos(phi), radius * sin(phi)});
}

// A point of the unit sphere at height z (Archimedes: uniform z is uniform area).
E sphere_point(E z, E phi) {
    const E radius = sqrt(max(1 - z * z, 0));
    return make_vector({radius * cos(phi), radius * sin(phi), z});
}

template <bool is_upper_half, bool is_solid>
ir::Value* expand_sample_sphere(Call& call) {
    Draws draws(call);
    const E u = draws.unit();
    const E point = sphere_point(is_upper_half ? 1 - u : 1 - 2 * u, draws.angle());
    if (!is_solid) return point;
    return point * cbrt(draws.unit());
}

template <int dimensions>
ir::Value* expand_sample_cube(Call& call) {
    Draws draws(call);
    std::vector<E> parts;
    for (int i = 0; i < dimensions; ++i) parts.push_back(draws.unit() - 0.5);
    return make_vector(parts);
}

// A count, and the state after the draws for it.
struct Drawn {
    E state, count;
};

E unit_of(E state) { return cast(cast(state >> 8, Scalar::f32) * 0x1p-24, Scalar::f64); }

// The count is the most uniform factors whose product is above exp(-lam) (Knuth, "Seminumerical Algorithms", 3.4.1).
// Takes about lam steps.
Drawn few_of_poisson(E state, E lam) {
    const E least = exp(-lam), first = pcg(state);
    const std::vector<E> last = while_loop(
        {first, unit_of(first), state.number(0)}, [&](const std::vector<E>& carried) { return carried[1] > least; },
        [&](const std::vector<E>& carried) -> std::vector<E> {
            const E next = pcg(carried[0]);
            return {next, carried[1] * unit_of(next), carried[2] + 1};
        });
    return {last[0], last[2]};
}

// log k! by Stirling's series, evaluated at k + 9, so that it has 12 digits.
E log_factorial(E k) {
    constexpr int kShift = 8;
    const E z = k + (kShift + 1.0);
    E product = k + 1;
    for (int i = 2; i <= kShift; ++i) product = product * (k + static_cast<double>(i));
    const E inverse = 1 / z, square = inverse * inverse;
    const E series = inverse * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260)));
    return (z - 0.5) * log(z) - z + 0.5 * std::log(2 * std::numbers::pi) + series - log(product);
}

// Transformed rejection (Hoermann, "The transformed rejection method for generating Poisson random variables", 1993,
// algorithm PTRS), for lam of at least 10: two uniform numbers a try, and rarely more than three tries.
Drawn many_of_poisson(E state, E lam) {
    ir::Builder& b = state.builder();
    const E width = 0.931 + 2.53 * sqrt(lam), slope = -0.059 + 0.02483 * width;
    const E inverse_alpha = 1.1239 + 1.1328 / (width - 3.4), quick_below = 0.9277 - 3.6224 / (width - 2);
    const E none = state.wrap(b.boolean(false));
    const auto attempt = [&](const std::vector<E>& carried) -> std::vector<E> {
        const E first = pcg(carried[0]), second = pcg(first);
        const E u = unit_of(first) - 0.5, v = unit_of(second), distance = 0.5 - abs(u);
        const E k = floor((2 * slope / distance + width) * u + lam + 0.43);
        const E is_quick = distance >= 0.07 && v <= quick_below;
        const E is_outside = k < 0 || (distance < 0.013 && v > distance);
        const E accepted = ir::staged::branch(
            is_quick || is_outside, bool_type(), [&] { return is_quick; },
            [&] {
                const E bound = log(v) + log(inverse_alpha) - log(slope / (distance * distance) + width);
                return bound <= k * log(lam) - lam - log_factorial(k);
            });
        return {second, k, accepted};
    };
    const std::vector<E> last =
        while_loop({state, lam.zero(), none}, [](const std::vector<E>& carried) { return !carried[2]; }, attempt);
    return {last[0], cast(last[1], Scalar::u32)};
}

ir::Value* expand_poisson(Call& call) {
    ir::Builder& b = call.builder;
    const E state = argument(call, 0), lam = cast(argument(call, 1), Scalar::f64);
    ir::Operation* chosen = b.if_(lam >= 10, {u32_type(), u32_type()});
    for (const int arm : {0, 1}) {
        ir::Builder::Inside inside(b, chosen->body(arm));
        const Drawn drawn = arm == 0 ? many_of_poisson(state, lam) : few_of_poisson(state, lam);
        b.yield({drawn.state, drawn.count});
    }
    call.inout = {chosen->result(0)};
    return chosen->result(1);
}

constexpr Entry kEntries[] = {
    {"rand_init", "(seed: int32) -> uint32", "State of a random sequence.", expand_rand_init, false},
    {"rand_init", "(seed: int32, offset: int32) -> uint32",
     "State of the offset-th of many independent random sequences, e.g. one per thread.", expand_rand_init_offset,
     false},
    {"randi", "(state: inout uint32) -> int32", "Random integer, any of the 2**32.", expand_randi, false},
    {"randi", "(state: inout uint32, low: int32, high: int32) -> int32", "Random integer in [low, high).",
     expand_randi_range, false},
    {"randu", "(state: inout uint32) -> uint32", "Random unsigned integer, any of the 2**32.", expand_randu, false},
    {"randu", "(state: inout uint32, low: uint32, high: uint32) -> uint32", "Random unsigned integer in [low, high).",
     expand_randu_range, false},
    {"randf", "(state: inout uint32) -> float32", "Random number, uniform in [0, 1).", expand_randf, false},
    {"randf", "(state: inout uint32, low: float32, high: float32) -> float32",
     "Random number, uniform from low to high.", expand_randf_range},
    {"randn", "(state: inout uint32) -> float32", "Random number of the standard normal distribution.", expand_randn,
     false},
    {"sample_cdf", "(state: inout uint32, cdf: Array[float32,1]) -> int32",
     "Random index with the probabilities of a cumulative distribution.", expand_sample_cdf, false},
    {"sample_triangle", "(state: inout uint32) -> Vec[2,float32]",
     "First two barycentric coordinates of a random point of a triangle.", expand_sample_triangle, false},
    {"sample_unit_ring", "(state: inout uint32) -> Vec[2,float32]", "Random point of the unit circle.",
     expand_sample_unit_ring, false},
    {"sample_unit_disk", "(state: inout uint32) -> Vec[2,float32]", "Random point inside the unit circle.",
     expand_sample_unit_disk, false},
    {"sample_unit_sphere_surface", "(state: inout uint32) -> Vec[3,float32]", "Random point of the unit sphere.",
     expand_sample_sphere<false, false>, false},
    {"sample_unit_sphere", "(state: inout uint32) -> Vec[3,float32]", "Random point inside the unit sphere.",
     expand_sample_sphere<false, true>, false},
    {"sample_unit_hemisphere_surface", "(state: inout uint32) -> Vec[3,float32]",
     "Random point of the half of the unit sphere with z > 0.", expand_sample_sphere<true, false>, false},
    {"sample_unit_hemisphere", "(state: inout uint32) -> Vec[3,float32]",
     "Random point inside the half of the unit sphere with z >= 0.", expand_sample_sphere<true, true>, false},
    {"sample_unit_square", "(state: inout uint32) -> Vec[2,float32]", "Random point of the square [-1/2, 1/2)**2.",
     expand_sample_cube<2>, false},
    {"sample_unit_cube", "(state: inout uint32) -> Vec[3,float32]", "Random point of the cube [-1/2, 1/2)**3.",
     expand_sample_cube<3>, false},
    {"poisson", "(state: inout uint32, lam: float32) -> uint32",
     "Random count of the Poisson distribution with mean lam.", expand_poisson, false},
};

}  // namespace

std::span<const Entry> random_entries() { return kEntries; }

}  // namespace weft::builtins
