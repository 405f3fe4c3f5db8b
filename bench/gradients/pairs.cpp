// Forces among bodies, all pairs, and the gradient by their places. Coordinates lie one after the other (x, then y,
// then z), so that lanes load neighbours. A pair's gradient is that of d = x_j - x_i; body i gathers it from both of
// its ends.
#include <cmath>

#include "../throughput/loops.h"

BENCH_EXPORT void forward(int64_t n, float softening, const float* __restrict x, float* __restrict force) {
    const float *y = x + n, *z = x + 2 * n;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; ++i) {
        float fx = 0.0f, fy = 0.0f, fz = 0.0f;
#pragma omp simd reduction(+ : fx, fy, fz)
        for (int64_t j = 0; j < n; ++j) {
            const float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            const float inverse = 1.0f / std::sqrt(dx * dx + dy * dy + dz * dz + softening);
            const float weight = inverse * inverse * inverse;
            fx += weight * dx, fy += weight * dy, fz += weight * dz;
        }
        force[i] = fx, force[n + i] = fy, force[2 * n + i] = fz;
    }
}

BENCH_EXPORT void both(int64_t n, float softening, const float* __restrict x, const float* __restrict seed,
                       float* __restrict force, float* __restrict gradient) {
    const float *y = x + n, *z = x + 2 * n;
    const float *sx = seed, *sy = seed + n, *sz = seed + 2 * n;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; ++i) {
        float fx = 0.0f, fy = 0.0f, fz = 0.0f, gx = 0.0f, gy = 0.0f, gz = 0.0f;
#pragma omp simd reduction(+ : fx, fy, fz, gx, gy, gz)
        for (int64_t j = 0; j < n; ++j) {
            const float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            const float inverse = 1.0f / std::sqrt(dx * dx + dy * dy + dz * dz + softening);
            const float square = inverse * inverse;
            const float weight = square * inverse;
            fx += weight * dx, fy += weight * dy, fz += weight * dz;
            // the force on i has the seed of i, that on j the seed of j and the opposite d
            const float tx = sx[j] - sx[i], ty = sy[j] - sy[i], tz = sz[j] - sz[i];
            const float along = 3.0f * square * (tx * dx + ty * dy + tz * dz);
            gx += weight * (tx - along * dx), gy += weight * (ty - along * dy), gz += weight * (tz - along * dz);
        }
        force[i] = fx, force[n + i] = fy, force[2 * n + i] = fz;
        gradient[i] = gx, gradient[n + i] = gy, gradient[2 * n + i] = gz;
    }
}
