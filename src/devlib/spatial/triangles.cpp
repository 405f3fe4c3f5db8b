// Whether two triangles have a point in common.
//
// They have none where an axis separates them: the intervals that they cover on it are apart. Of two flat convex shapes
// it is enough to try the normals of both, the cross products of their edges, and in each plane the normals of the
// edges of both (S. Gottschalk, M. C. Lin, D. Manocha, OBBTree, 1996, for boxes). A triangle without area is a segment
// or a point: for these more axes are tried. What touches meets. Everything is computed in f64.
#include "devlib/spatial/functions.h"

namespace weft::devlib {

namespace {

using Point = Vec<double>;

struct Pair {
    Point first[3], second[3];

    // Whether the intervals on this axis are apart. One of length 0 separates nothing.
    bool is_apart(const Point& axis) const {
        double low[2], high[2];
        for (int which = 0; which < 2; ++which) {
            const Point* const corners = which == 0 ? first : second;
            const double a = dot(corners[0], axis), b = dot(corners[1], axis), c = dot(corners[2], axis);
            low[which] = __builtin_elementwise_min(a, __builtin_elementwise_min(b, c));
            high[which] = __builtin_elementwise_max(a, __builtin_elementwise_max(b, c));
        }
        return low[0] > high[1] || low[1] > high[0];
    }
};

bool is_zero(const Point& v) { return v[0] == 0 && v[1] == 0 && v[2] == 0; }

// Axes for segments and points: the planes and lines that two of them may lie in.
bool are_apart_without_area(const Pair& pair, const Point (&edges)[6]) {
    const Point between = pair.second[0] - pair.first[0];
    if (pair.is_apart(between)) return true;
    for (int i = 0; i < 6; ++i) {
        const Point& along = edges[i];
        if (pair.is_apart(along)) return true;
        // Across parallel segments, in their plane.
        if (pair.is_apart(dot(along, along) * between - dot(between, along) * along)) return true;
        for (int j = i + 1; j < 6; ++j) {
            const Point normal = cross(along, edges[j]);
            if (pair.is_apart(cross(normal, along)) || pair.is_apart(cross(normal, edges[j]))) return true;
        }
    }
    return false;
}

bool meet(const Pair& pair) {
    Point edges[6];
    for (int i = 0; i < 3; ++i) {
        edges[i] = pair.first[(i + 1) % 3] - pair.first[i];
        edges[3 + i] = pair.second[(i + 1) % 3] - pair.second[i];
    }
    const Point normals[2] = {cross(edges[0], edges[1]), cross(edges[3], edges[4])};
    for (const Point& normal : normals) {
        if (pair.is_apart(normal)) return false;
        for (const Point& edge : edges)
            if (pair.is_apart(cross(normal, edge))) return false;
    }
    for (int i = 0; i < 3; ++i)
        for (int j = 3; j < 6; ++j)
            if (pair.is_apart(cross(edges[i], edges[j]))) return false;
    return !((is_zero(normals[0]) || is_zero(normals[1])) && are_apart_without_area(pair, edges));
}

// Corners as seen from the first one, so that what is far from the origin loses no digits.
template <typename T>
void triangles_meet(Int32* result, const T* const (&corners)[6], UInt64 mask, Int32 width) {
    for_each_lane(mask, [&](int lane) {
        const Vec<T> start = lane3(corners[0], width, lane);
        const Point origin{double(start[0]), double(start[1]), double(start[2])};
        Point seen[6];
        bool is_finite = true;
        for (int i = 0; i < 6; ++i) {
            const Vec<T> corner = lane3(corners[i], width, lane);
            seen[i] = Point{double(corner[0]), double(corner[1]), double(corner[2])} - origin;
            for (int axis = 0; axis < 3; ++axis) is_finite &= seen[i][axis] - seen[i][axis] == 0;
        }
        const Pair pair{{seen[0], seen[1], seen[2]}, {seen[3], seen[4], seen[5]}};
        result[lane] = is_finite && meet(pair);
    });
}

}  // namespace

#define WEFT_DEFINE(T, type)                                                                                         \
    WEFT_LIBRARY(weft_lib_triangles_meet_##type)(Int32 * result, const T* v0, const T* v1, const T* v2, const T* u0, \
                                                 const T* u1, const T* u2, UInt64 mask, Int32 width) {               \
        triangles_meet<T>(result, {v0, v1, v2, u0, u1, u2}, mask, width);                                            \
    }
WEFT_DEFINE(float, f32)
WEFT_DEFINE(double, f64)
#undef WEFT_DEFINE

}  // namespace weft::devlib
