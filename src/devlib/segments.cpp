// The closest points of two segments, p1 q1 and p2 q2: their parameters s and t in 0 .. 1 along the segments, and their
// distance.
//
// The squared distance of p1 + s d1 from p2 + t d2 is least at the solution of
//
//     a s - b t + c = 0        a = d1.d1   b = d1.d2   c = d1.r
//    -b s + e t - f = 0        e = d2.d2   f = d2.r    r = p1 - p2
//
// or at an end of a segment, which fixes one of the two (C. Ericson, Real-Time Collision Detection, 5.1.9). A segment
// whose squared length is at most epsilon counts as its first point. Derivatives go through the equations that hold;
// fixed parameters are constant.
#include "devlib/lanes.h"

namespace weft::devlib {

namespace {

template <typename T, int W>
struct Segments {
    using V = Lanes<T, W>;
    using Condition = decltype(V() < V());

    Vec3<V> d1, d2, r;
    V a, b, c, e, f;
    V s, t;
    V frees, freet;  // 1 if an equation determines s, t; 0 if it is fixed
    V determinant;   // of both equations if both hold, else 1
    Vec3<V> normal;  // from the point on the second segment to the one on the first
    V distance;

    Segments(const T* p1, const T* q1, const T* p2, const T* q2, const T* epsilon_of) {
        const V epsilon = load<W>(epsilon_of), zero = all<T, W>(0), one = all<T, W>(1);
        d1 = load3<W>(q1) - load3<W>(p1), d2 = load3<W>(q2) - load3<W>(p2), r = load3<W>(p1) - load3<W>(p2);
        a = dot(d1, d1), b = dot(d1, d2), c = dot(d1, r), e = dot(d2, d2), f = dot(d2, r);
        const V first_is_point = choose(a <= epsilon, one, zero), second_is_point = choose(e <= epsilon, one, zero);
        const V safe_a = choose(a > zero, a, one), safe_e = choose(e > zero, e, one);

        // The lines first, then the ends. For parallel lines, any s will do.
        const V whole = a * e - b * b;
        const V is_line = choose(whole > zero, one, zero) * (one - first_is_point) * (one - second_is_point);
        determinant = choose(is_line > zero, whole, one);
        const V line_s = is_line * (b * f - c * e) / determinant;
        s = clamp(line_s, zero, one);
        frees = is_line * inside(line_s);
        const V line_t = (one - second_is_point) * (b * s + f) / safe_e;
        t = clamp(line_t, zero, one);
        freet = (one - second_is_point) * inside(line_t);
        // If t is fixed, s follows from it.
        const V given_s = (one - first_is_point) * (b * t - c) / safe_a;
        const V follows = choose(line_t < zero, one, choose(line_t > one, one, second_is_point));
        s = choose(follows > zero, clamp(given_s, zero, one), s);
        frees = choose(follows > zero, (one - first_is_point) * inside(given_s), frees);
        determinant = choose(frees * freet > zero, determinant, one);

        const Vec3<V> between = r + s * d1 - t * d2;
        distance = square_root(dot(between, between));
        const V scale = choose(distance > zero, one / choose(distance > zero, distance, one), zero);
        normal = scale * between;
    }

    static V inside(V value) {
        const V zero = all<T, W>(0), one = all<T, W>(1);
        return choose(value >= zero, choose(value <= one, one, zero), zero);
    }

    // (x, y) with  a x - b y = first,  -b x + e y = second,  if both equations hold; if one does, its solution alone.
    void solve(V first, V second, V& x, V& y) const {
        const V one = all<T, W>(1), both = frees * freet;
        const V safe_a = choose(frees > all<T, W>(0), a, one), safe_e = choose(freet > all<T, W>(0), e, one);
        x = both * (e * first + b * second) / determinant + (one - both) * frees * first / safe_a;
        y = both * (b * first + a * second) / determinant + (one - both) * freet * second / safe_e;
    }
};

template <typename T, int W>
void closest(T* result, const T* p1, const T* q1, const T* p2, const T* q2, const T* epsilon) {
    const Segments<T, W> at(p1, q1, p2, q2, epsilon);
    store3<W>(result, {at.s, at.t, at.distance});
}

// The tangents of the points, in the same order; that of epsilon has no effect.
template <typename T, int W>
void closest_tangent(T* result, const T* p1, const T* q1, const T* p2, const T* q2, const T* epsilon, const T* dp1,
                     const T* dq1, const T* dp2, const T* dq2) {
    using V = Lanes<T, W>;
    const Segments<T, W> at(p1, q1, p2, q2, epsilon);
    const V two = all<T, W>(2);
    const Vec3<V> dd1 = load3<W>(dq1) - load3<W>(dp1), dd2 = load3<W>(dq2) - load3<W>(dp2),
                  dr = load3<W>(dp1) - load3<W>(dp2);
    const V da = two * dot(at.d1, dd1), db = dot(dd1, at.d2) + dot(at.d1, dd2), dc = dot(dd1, at.r) + dot(at.d1, dr),
            de = two * dot(at.d2, dd2), df = dot(dd2, at.r) + dot(at.d2, dr);
    V ds, dt;
    at.solve(db * at.t - da * at.s - dc, db * at.s - de * at.t + df, ds, dt);
    const Vec3<V> between = dr + at.s * dd1 + ds * at.d1 - (at.t * dd2 + dt * at.d2);
    store3<W>(result, {ds, dt, dot(at.normal, between)});
}

// Adjoints of the four points and of epsilon, one after the other, from the adjoint of the result.
template <typename T, int W>
void closest_adjoint(T* result, const T* p1, const T* q1, const T* p2, const T* q2, const T* epsilon,
                     const T* adjoint) {
    using V = Lanes<T, W>;
    const Segments<T, W> at(p1, q1, p2, q2, epsilon);
    const V two = all<T, W>(2);
    const Vec3<V> of = load3<W>(adjoint), between = of.z * at.normal;
    // The matrix of the equations is symmetric.
    V x, y;
    at.solve(of.x + dot(between, at.d1), of.y - dot(between, at.d2), x, y);
    const V of_a = -x * at.s, of_b = x * at.t + y * at.s, of_c = -x, of_e = -y * at.t, of_f = y;
    const Vec3<V> of_r = between + of_c * at.d1 + of_f * at.d2;
    const Vec3<V> of_d1 = at.s * between + (two * of_a) * at.d1 + of_b * at.d2 + of_c * at.r;
    const Vec3<V> of_d2 = (two * of_e) * at.d2 + of_b * at.d1 + of_f * at.r - at.t * between;
    store3<W>(result, of_r - of_d1);
    store3<W>(result + 3 * W, of_d1);
    store3<W>(result + 6 * W, -of_r - of_d2);
    store3<W>(result + 9 * W, of_d2);
    store<W>(result + 12 * W, all<T, W>(0));
}

}  // namespace

#define WEFT_DEFINE(type, name, width)                                                                                 \
    extern "C" void weft_lib_closest_edge_edge_##name##_w##width(                                                      \
        type* result, const type* p1, const type* q1, const type* p2, const type* q2, const type* epsilon) {           \
        closest<type, width>(result, p1, q1, p2, q2, epsilon);                                                         \
    }                                                                                                                  \
    extern "C" void weft_lib_closest_edge_edge_tangent_##name##_w##width(                                              \
        type* result, const type* p1, const type* q1, const type* p2, const type* q2, const type* epsilon,             \
        const type* dp1, const type* dq1, const type* dp2, const type* dq2, const type*) {                             \
        closest_tangent<type, width>(result, p1, q1, p2, q2, epsilon, dp1, dq1, dp2, dq2);                             \
    }                                                                                                                  \
    extern "C" void weft_lib_closest_edge_edge_adjoint_##name##_w##width(type* result, const type* p1, const type* q1, \
                                                                         const type* p2, const type* q2,               \
                                                                         const type* epsilon, const type* adjoint) {   \
        closest_adjoint<type, width>(result, p1, q1, p2, q2, epsilon, adjoint);                                        \
    }
#define WEFT_DEFINE_BOTH(width) WEFT_DEFINE(float, f32, width) WEFT_DEFINE(double, f64, width)
WEFT_FOR_EACH_WIDTH(WEFT_DEFINE_BOTH)

}  // namespace weft::devlib
