// Neighbours of points by a list of cells, as one writes it by hand: points are sorted by cells, and a loop in that
// order looks at the nine rows of three cells around each.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "../throughput/loops.h"

namespace {

using Point = Vec3<float>;

// Of points in the box from 0 to 1, in cells of one width, with a border of empty cells.
struct CellList {
    float inverse_width = 0;
    int64_t side = 0;
    std::vector<int32_t> starts, order, cell_of, counts;
    std::vector<Point> sorted;

    int64_t cell(const Point& p) const {
        const auto at = [&](float x) { return static_cast<int64_t>(x * inverse_width) + 1; };
        return (at(p.z) * side + at(p.y)) * side + at(p.x);
    }

    void build(int64_t n, const Point* points, float width, bool with_points) {
        constexpr int kParts = 2;
        inverse_width = 1 / width;
        side = static_cast<int64_t>(inverse_width) + 3;
        const int64_t cells = side * side * side;
        starts.resize(static_cast<size_t>(cells + 1)), order.resize(static_cast<size_t>(n));
        cell_of.resize(static_cast<size_t>(n)), counts.assign(static_cast<size_t>(kParts * cells), 0);
#pragma omp parallel for schedule(static, 1)
        for (int part = 0; part < kParts; ++part)
            for (int64_t i = n * part / kParts; i < n * (part + 1) / kParts; ++i)
                ++counts[part * cells + (cell_of[i] = static_cast<int32_t>(cell(points[i])))];
        int32_t before = 0;
        for (int64_t c = 0; c < cells; ++c) {
            starts[c] = before;
            for (int part = 0; part < kParts; ++part) before += std::exchange(counts[part * cells + c], before);
        }
        starts[cells] = before;
#pragma omp parallel for schedule(static, 1)
        for (int part = 0; part < kParts; ++part)
            for (int64_t i = n * part / kParts; i < n * (part + 1) / kParts; ++i)
                order[counts[part * cells + cell_of[i]]++] = static_cast<int32_t>(i);
        if (!with_points) return;
        sorted.resize(static_cast<size_t>(n));
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < n; ++i) sorted[i] = points[order[i]];
    }
};

CellList list;

}  // namespace

BENCH_EXPORT void build(int64_t n, const Point* points, float width) { list.build(n, points, width, false); }

BENCH_EXPORT void sort(int64_t n, const Point* points, float width) { list.build(n, points, width, true); }

// The points that sort() had last.
BENCH_EXPORT void neighbours(int64_t n, float radius, Point* out) {
#pragma omp parallel for schedule(dynamic, 4096)
    for (int64_t i = 0; i < n; ++i) {
        const Point x = list.sorted[i];
        const int64_t own = list.cell(x);
        Point total{0, 0, 0};
        for (int64_t z = -1; z <= 1; ++z)
            for (int64_t y = -1; y <= 1; ++y) {
                const int64_t row = own + (z * list.side + y) * list.side;
                for (int32_t k = list.starts[row - 1]; k < list.starts[row + 2]; ++k) {
                    const Point d{x.x - list.sorted[k].x, x.y - list.sorted[k].y, x.z - list.sorted[k].z};
                    if (std::sqrt(d.x * d.x + d.y * d.y + d.z * d.z) >= radius) continue;
                    total.x += d.x, total.y += d.y, total.z += d.z;
                }
            }
        out[list.order[i]] = total;
    }
}
