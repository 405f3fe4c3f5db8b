// Scattered additions, on one thread: so few are done before others have started.
#include <cmath>
#include <cstring>

#include "loops.h"

struct Ends {
    int32_t a, b;
};

static void add_to(Vec3<float>& to, float x, float y, float z) {
    to.x += x;
    to.y += y;
    to.z += z;
}

BENCH_EXPORT void add(int64_t n, int64_t elements, const Ends* __restrict ends, const Vec3<float>* __restrict v,
                      Vec3<float>* __restrict result) {
    std::memset(result, 0, static_cast<std::size_t>(elements) * sizeof *result);
    for (int64_t i = 0; i < n; ++i) add_to(result[ends[i].a], v[i].x, v[i].y, v[i].z);
}

BENCH_EXPORT void pull(int64_t n, int64_t elements, const Ends* __restrict ends, const Vec3<float>* __restrict x,
                       Vec3<float>* __restrict result) {
    std::memset(result, 0, static_cast<std::size_t>(elements) * sizeof *result);
    for (int64_t i = 0; i < n; ++i) {
        const Vec3<float> a = x[ends[i].a], b = x[ends[i].b];
        const float dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z;
        const float scale = std::sqrt(dx * dx + dy * dy + dz * dz) - 1.0f;
        add_to(result[ends[i].a], dx * scale, dy * scale, dz * scale);
        add_to(result[ends[i].b], -dx * scale, -dy * scale, -dz * scale);
    }
}
