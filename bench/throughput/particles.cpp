// One explicit step of n particles; `step_terms` adds drag and a bounce off the floor.
#include <cmath>

#include "loops.h"

template <typename Real>
static void step(int64_t n, Real dt, Real gravity, Real* __restrict x, Real* __restrict v) {
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; ++i) {
        const Real vx = v[3 * i], vy = v[3 * i + 1] + gravity * dt, vz = v[3 * i + 2];
        v[3 * i + 1] = vy;
        x[3 * i] += vx * dt;
        x[3 * i + 1] += vy * dt;
        x[3 * i + 2] += vz * dt;
    }
}

BENCH_EXPORT void step_vec3(int64_t n, float dt, float gravity, float* x, float* v) { step(n, dt, gravity, x, v); }

BENCH_EXPORT void step_vec3d(int64_t n, double dt, double gravity, double* x, double* v) { step(n, dt, gravity, x, v); }

BENCH_EXPORT void step_terms(int64_t n, float dt, float gravity, float drag, float bounce, float* __restrict x,
                             float* __restrict v) {
    // Plain numbers instead of structs: that is what the compiler turns into vectors.
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; ++i) {
        const float vx = v[3 * i], vy = v[3 * i + 1], vz = v[3 * i + 2];
        const float slow = drag * std::sqrt(vx * vx + vy * vy + vz * vz);
        const float wx = vx - slow * vx * dt, wy = vy + (gravity - slow * vy) * dt, wz = vz - slow * vz * dt;
        const float py = x[3 * i + 1] + wy * dt;
        const float side = py < 0.0f ? -1.0f : 1.0f, keep = py < 0.0f ? -bounce : 1.0f;
        x[3 * i] += wx * dt;
        x[3 * i + 1] = side * py;
        x[3 * i + 2] += wz * dt;
        v[3 * i] = wx;
        v[3 * i + 1] = keep * wy;
        v[3 * i + 2] = wz;
    }
}
