// The right results of queries of geometry, by brute force: every triangle and every point is looked at, without a tree
// or a grid, in double precision and, if the answer is close, in long double. Nothing of Weft is used.
//
// A library, whose functions spatial_oracle.py calls from several threads.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace {

template <typename R>
struct Vec {
    R x, y, z;
};
template <typename R>
Vec<R> operator-(Vec<R> a, Vec<R> b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <typename R>
Vec<R> operator+(Vec<R> a, Vec<R> b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <typename R>
Vec<R> operator*(R s, Vec<R> a) {
    return {s * a.x, s * a.y, s * a.z};
}
template <typename R>
R dot(Vec<R> a, Vec<R> b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <typename R>
Vec<R> cross(Vec<R> a, Vec<R> b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <typename R>
Vec<R> vec(const double* p) {
    return {static_cast<R>(p[0]), static_cast<R>(p[1]), static_cast<R>(p[2])};
}

// ---- distances ----

template <typename R>
R to_segment(Vec<R> p, Vec<R> a, Vec<R> b) {  // squared
    const Vec<R> d = b - a, s = p - a;
    const R size = dot(d, d);
    const R t = size > 0 ? std::clamp(dot(s, d) / size, R(0), R(1)) : R(0);
    const Vec<R> off = s - t * d;
    return dot(off, off);
}

// Squared: the least of the edges, and of the plane if the foot of the perpendicular is inside.
template <typename R>
R to_triangle(Vec<R> p, Vec<R> a, Vec<R> b, Vec<R> c) {
    R least = std::min({to_segment(p, a, b), to_segment(p, b, c), to_segment(p, c, a)});
    const Vec<R> n = cross(b - a, c - a);
    const R area = dot(n, n);
    if (!(area > 0)) return least;
    const Vec<R> pa = a - p, pb = b - p, pc = c - p;
    const bool is_inside = dot(cross(pa, pb), n) >= 0 && dot(cross(pb, pc), n) >= 0 && dot(cross(pc, pa), n) >= 0;
    if (is_inside) {
        const R height = dot(pa, n);
        least = std::min(least, height * height / area);
    }
    return least;
}

// ---- balls around triangles ----

// A triangle whose ball is too far away to matter is not looked at any closer. A hair larger than need be.
struct Ball {
    Vec<double> middle;
    double radius;
};
std::vector<Ball> balls_of(std::int64_t faces, const double* corners) {
    std::vector<Ball> balls;
    for (std::int64_t f = 0; f < faces; ++f) {
        const double* at = corners + 9 * f;
        const Vec<double> a = vec<double>(at), b = vec<double>(at + 3), c = vec<double>(at + 6);
        const Vec<double> middle = (1.0 / 3) * (a + b + c);
        const double size = std::sqrt(
            std::max({dot(a - middle, a - middle), dot(b - middle, b - middle), dot(c - middle, c - middle)}));
        const double largest = std::max({std::abs(middle.x), std::abs(middle.y), std::abs(middle.z)});
        balls.push_back({middle, size * (1 + 1e-9) + largest * 1e-14});
    }
    return balls;
}

// ---- rays ----

// Of a ray and a triangle, in lengths: how far the ray passes from the triangle as seen along it, whether it passes
// inside, between which distances along the ray the triangle is met, and the distance of its plane.
struct Meeting {
    double off, rim;  // outside: the distance from the triangle; inside: that from the nearest edge
    double low, high;
    double plane, slack;  // how much the latter changes if the ray is moved by the band
    bool is_inside;
};

// `d` has length 1. Places closer than `band` count as one.
Meeting meet(Vec<double> a, Vec<double> b, Vec<double> c, Vec<double> d, double band) {
    const auto across = [&](Vec<double> v) { return v - dot(v, d) * d; };
    const Vec<double> flat[3] = {across(a), across(b), across(c)};
    double edge = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) edge = std::min(edge, to_segment(Vec<double>{0, 0, 0}, flat[i], flat[(i + 1) % 3]));
    edge = std::sqrt(edge);
    const double ab = dot(cross(a, b), d), bc = dot(cross(b, c), d), ca = dot(cross(c, a), d);
    const bool is_inside = (ab > 0 && bc > 0 && ca > 0) || (ab < 0 && bc < 0 && ca < 0);
    const double depths[3] = {dot(a, d), dot(b, d), dot(c, d)};
    const double nearest = *std::min_element(depths, depths + 3), farthest = *std::max_element(depths, depths + 3);
    const double middle = (nearest + farthest) / 2;
    Meeting result{
        is_inside ? 0 : edge, is_inside ? edge : 0, nearest, farthest, middle, farthest - nearest, is_inside};
    const Vec<double> n = cross(b - a, c - a);
    const double facing = dot(n, d);
    if (facing == 0) return result;
    result.plane = dot(n, a) / facing;
    result.slack = band * std::sqrt(dot(n, n)) / std::abs(facing);
    result.low = std::clamp(result.plane - result.slack, nearest, farthest);
    result.high = std::clamp(result.plane + result.slack, nearest, farthest);
    return result;
}

}  // namespace

extern "C" {

// Distances of places from triangles (nine numbers each): the least, the largest from a corner, and that from the face
// `answer[i]`, if it is not negative.
void oracle_distances(std::int64_t count, const double* place, std::int64_t faces, const double* corners,
                      const std::int32_t* answer, double* least, double* largest, double* answered) {
    using Long = long double;
    const std::vector<Ball> balls = balls_of(faces, corners);
    std::vector<double> squared(static_cast<std::size_t>(faces));
    for (std::int64_t i = 0; i < count; ++i) {
        const Vec<double> p = vec<double>(place + 3 * i);
        double best = std::numeric_limits<double>::infinity(), most = 0;
        for (std::int64_t f = 0; f < faces; ++f) {
            const double* at = corners + 9 * f;
            const Vec<double> a = vec<double>(at), b = vec<double>(at + 3), c = vec<double>(at + 6);
            most = std::max({most, dot(a - p, a - p), dot(b - p, b - p), dot(c - p, c - p)});
            const Ball& ball = balls[static_cast<std::size_t>(f)];
            const double outside = std::sqrt(dot(p - ball.middle, p - ball.middle)) - ball.radius;
            const bool is_far = outside > 0 && outside * outside > best * (1 + 1e-5);
            squared[static_cast<std::size_t>(f)] =
                is_far ? std::numeric_limits<double>::infinity() : to_triangle(p, a, b, c);
            best = std::min(best, squared[static_cast<std::size_t>(f)]);
        }
        // Those that may be the closest, again.
        const auto exact = [&](std::int64_t f) {
            const double* at = corners + 9 * f;
            return to_triangle(vec<Long>(place + 3 * i), vec<Long>(at), vec<Long>(at + 3), vec<Long>(at + 6));
        };
        const double bound = best * (1 + 1e-6) + std::numeric_limits<double>::min();
        Long closest = std::numeric_limits<Long>::infinity();
        for (std::int64_t f = 0; f < faces; ++f)
            if (squared[static_cast<std::size_t>(f)] <= bound) closest = std::min(closest, exact(f));
        least[i] = static_cast<double>(std::sqrt(closest));
        largest[i] = std::sqrt(most);
        answered[i] = answer[i] >= 0 ? static_cast<double>(std::sqrt(exact(answer[i]))) : -1;
    }
}

// Winding numbers: the solid angles of all faces (van Oosterom and Strackee 1983).
void oracle_winding(std::int64_t count, const double* place, std::int64_t faces, const double* corners,
                    double* number) {
    for (std::int64_t i = 0; i < count; ++i) {
        const Vec<double> p = vec<double>(place + 3 * i);
        double sum = 0;
        for (std::int64_t f = 0; f < faces; ++f) {
            const double* at = corners + 9 * f;
            const Vec<double> a = vec<double>(at) - p, b = vec<double>(at + 3) - p, c = vec<double>(at + 6) - p;
            const double la = std::sqrt(dot(a, a)), lb = std::sqrt(dot(b, b)), lc = std::sqrt(dot(c, c));
            const double volume = dot(a, cross(b, c));
            sum += std::atan2(volume, la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb);
        }
        number[i] = sum / (2 * 3.14159265358979323846);
    }
}

// Rays and triangles. A ray meets a triangle for sure if it passes inside, further than `band` from its edges, and
// between band and limit - band; maybe if it passes at most `band` outside. All lengths along rays are in units of
// the coordinates. For each ray: how many triangles are met for sure, how many maybe or for sure; the distance by which
// one is met for sure (inf: none); and of the face `answer[i]`, if it is not negative, whether it is met at least
// maybe, from which distance on, and the distance of its plane, give or take the slack.
void oracle_rays(std::int64_t count, const double* start, const double* direction, const double* band, double limit,
                 std::int64_t faces, const double* corners, const std::int32_t* answer, std::int32_t* sure,
                 std::int32_t* maybe, double* met_by, std::int32_t* rivals, std::int32_t* is_met, double* low,
                 double* plane, double* slack) {
    const std::vector<Ball> balls = balls_of(faces, corners);
    std::vector<double> lows;
    for (std::int64_t i = 0; i < count; ++i) {
        const Vec<double> from = vec<double>(start + 3 * i);
        Vec<double> d = vec<double>(direction + 3 * i);
        d = (1 / std::sqrt(dot(d, d))) * d;
        const double e = band[i];
        sure[i] = maybe[i] = is_met[i] = 0;
        met_by[i] = std::numeric_limits<double>::infinity();
        low[i] = plane[i] = slack[i] = 0;
        lows.clear();
        for (std::int64_t f = 0; f < faces; ++f) {
            const Ball& ball = balls[static_cast<std::size_t>(f)];
            const Vec<double> to = ball.middle - from, off = to - dot(to, d) * d;
            const double reach = ball.radius + 2 * e + 1e-12 * std::abs(dot(to, d));
            if (dot(off, off) > reach * reach) continue;
            const double* at = corners + 9 * f;
            const Vec<double> a = vec<double>(at) - from, b = vec<double>(at + 3) - from,
                              c = vec<double>(at + 6) - from;
            const Meeting m = meet(a, b, c, d, e);
            const bool is_maybe = m.off <= e && m.high >= -e && m.low <= limit + e;
            if (!is_maybe) continue;
            ++maybe[i];
            lows.push_back(m.low);
            if (f == answer[i]) is_met[i] = 1, low[i] = m.low, plane[i] = m.plane, slack[i] = m.slack;
            if (!(m.is_inside && m.rim > e && m.low > e && m.high < limit - e)) continue;
            ++sure[i];
            met_by[i] = std::min(met_by[i], m.high);
        }
        // How many could be the first.
        rivals[i] = static_cast<std::int32_t>(
            std::count_if(lows.begin(), lows.end(), [&](double l) { return l <= met_by[i]; }));
    }
}

// Points near places: given[first[i] .. first[i + 1]] are the numbers that a query gave for place i. Returns by place
// what is wrong: 1 a point within the radius is missing, 2 a number was given twice, 4 it is no point or of another
// group. Groups may be null.
void oracle_neighbours(std::int64_t count, const double* place, const std::int32_t* place_group, std::int64_t points,
                       const double* point, const std::int32_t* group, double radius, const std::int64_t* first,
                       const std::int32_t* given, std::int32_t* wrong, std::int32_t* inside) {
    std::vector<char> seen(static_cast<std::size_t>(points));
    for (std::int64_t i = 0; i < count; ++i) {
        std::fill(seen.begin(), seen.end(), 0);
        wrong[i] = inside[i] = 0;
        for (std::int64_t n = first[i]; n < first[i + 1]; ++n) {
            const std::int32_t j = given[n];
            const bool is_one = j >= 0 && j < points && (!group || group[j] == place_group[i]);
            if (!is_one) wrong[i] |= 4;
            if (j >= 0 && j < points && ++seen[static_cast<std::size_t>(j)] > 1) wrong[i] |= 2;
        }
        const Vec<double> p = vec<double>(place + 3 * i);
        for (std::int64_t j = 0; j < points; ++j) {
            if (group && group[j] != place_group[i]) continue;
            const Vec<double> d = vec<double>(point + 3 * j) - p;
            // Not those for which rounding decides.
            if (!(dot(d, d) <= radius * radius * (1 - 1e-12))) continue;
            ++inside[i];
            if (!seen[static_cast<std::size_t>(j)]) wrong[i] |= 1;
        }
    }
}
}
