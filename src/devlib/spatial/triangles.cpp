// Whether two triangles have a common point, exactly; touching counts.
//
// They do if an edge of one has a common point with the other. An edge goes through a triangle if its ends are not on
// one side of the plane, and the triangle's edges go round it in one direction. Two cases are decided in the coordinate
// planes: an edge with both ends in the plane, and a triangle without area, which is its edges. An edge in the plane of
// a triangle, or of another edge, meets it if their images meet in all three. All results are signs of determinants
// (devlib/spatial/orientation.h).
#include "devlib/spatial/functions.h"
#include "devlib/spatial/orientation.h"

namespace weft::devlib {

namespace {

// The axes of a coordinate plane.
constexpr int kPlanes[3][2] = {{0, 1}, {1, 2}, {2, 0}};

bool ranges_meet(double a, double b, double c, double d) {
    return __builtin_elementwise_min(a, b) <= __builtin_elementwise_max(c, d) &&
           __builtin_elementwise_min(c, d) <= __builtin_elementwise_max(a, b);
}

// Whether the images of two segments in a coordinate plane meet. A segment may be a point.
bool images_meet(const Point& a, const Point& b, const Point& c, const Point& d, const int (&plane)[2]) {
    const int x = plane[0], y = plane[1];
    return ranges_meet(a[x], b[x], c[x], d[x]) && ranges_meet(a[y], b[y], c[y], d[y]) &&
           turn(a, b, c, x, y) * turn(a, b, d, x, y) <= 0 && turn(c, d, a, x, y) * turn(c, d, b, x, y) <= 0;
}

bool segments_meet(const Point& a, const Point& b, const Point& c, const Point& d) {
    for (const auto& plane : kPlanes)
        if (!images_meet(a, b, c, d, plane)) return false;
    return side_of_plane(a, b, c, d) == 0;
}

// Whether a point in the plane of a triangle is inside. False for a triangle without area.
bool is_inside(const Point& p, const Point (&triangle)[3]) {
    bool has_area = false;
    for (const auto& plane : kPlanes) {
        int signs[3];
        for (int i = 0; i < 3; ++i) signs[i] = turn(triangle[i], triangle[(i + 1) % 3], p, plane[0], plane[1]);
        const int area = turn(triangle[0], triangle[1], triangle[2], plane[0], plane[1]);
        if (area == 0) continue;
        has_area = true;
        if (signs[0] * area < 0 || signs[1] * area < 0 || signs[2] * area < 0) return false;
    }
    return has_area;
}

// For an edge in the plane of the triangle, or any edge and a triangle without area.
bool lies_in(const Point& a, const Point& b, const Point (&triangle)[3]) {
    for (int i = 0; i < 3; ++i)
        if (segments_meet(a, b, triangle[i], triangle[(i + 1) % 3])) return true;
    return is_inside(a, triangle);
}

bool go_round(int a, int b, int c) { return (a >= 0 && b >= 0 && c >= 0) || (a <= 0 && b <= 0 && c <= 0); }

bool meet(const Point (&first)[3], const Point (&second)[3]) {
    int of_first[3], of_second[3], around[3][3];  // sides of the corners of each
    for (int i = 0; i < 3; ++i) of_second[i] = side_of_plane(first[0], first[1], first[2], second[i]);
    if (of_second[0] != 0 && of_second[0] == of_second[1] && of_second[0] == of_second[2]) return false;
    for (int i = 0; i < 3; ++i) of_first[i] = side_of_plane(second[0], second[1], second[2], first[i]);
    if (of_first[0] != 0 && of_first[0] == of_first[1] && of_first[0] == of_first[2]) return false;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            around[i][j] = side_of_plane(first[i], first[(i + 1) % 3], second[j], second[(j + 1) % 3]);
    for (int i = 0; i < 3; ++i) {
        const int next = (i + 1) % 3;
        const auto crosses = [&](const int (&sides)[3]) {
            return sides[i] * sides[next] <= 0 && (sides[i] != 0 || sides[next] != 0);
        };
        if (crosses(of_first) && go_round(around[i][0], around[i][1], around[i][2])) return true;
        if (crosses(of_second) && go_round(around[0][i], around[1][i], around[2][i])) return true;
    }
    for (int i = 0; i < 3; ++i) {
        const int next = (i + 1) % 3;
        if (of_first[i] == 0 && of_first[next] == 0 && lies_in(first[i], first[next], second)) return true;
        if (of_second[i] == 0 && of_second[next] == 0 && lies_in(second[i], second[next], first)) return true;
    }
    return false;
}

// A power of 2 that scales coordinates so that products of three stay in the range of f64.
double scale_of(double largest) { return largest > 0x1p300 ? 0x1p-724 : largest < 0x1p-300 ? 0x1p700 : 1; }

template <typename T>
void triangles_meet(Int32* result, const T* const (&corners)[6], UInt64 mask, Int32 width) {
    for_each_lane(mask, [&](int lane) {
        Point seen[2][3];
        double largest = 0;
        bool is_finite = true;
        for (int i = 0; i < 6; ++i) {
            const Vec<T> corner = lane3(corners[i], width, lane);
            seen[i / 3][i % 3] = {double(corner[0]), double(corner[1]), double(corner[2])};
            for (int axis = 0; axis < 3; ++axis) {
                const double size = absolute(double(corner[axis]));
                is_finite &= size < kInfinity<double>;
                largest = greatest(largest, size);
            }
        }
        if (const double scale = scale_of(largest); scale != 1)
            for (auto& triangle : seen)
                for (Point& corner : triangle) corner = scale * corner;
        result[lane] = is_finite && meet(seen[0], seen[1]);
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
