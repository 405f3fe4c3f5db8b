// Gravity among n bodies, all pairs. The outer loop is cut into blocks whose bodies are the lanes: the sum of each body
// then keeps its order, so that strict mathematics can use all lanes too.
#include <algorithm>
#include <cmath>

#include "loops.h"

constexpr int64_t kBlock = 64;

// Calls weight(j, r²) for each pair; the force is the sum of weight · d.
template <typename Real, typename Weight>
static void forces(int64_t n, Real softening, const Vec3<Real>* __restrict x, Vec3<Real>* __restrict force,
                   Weight weight) {
#pragma omp parallel for schedule(static)
    for (int64_t begin = 0; begin < n; begin += kBlock) {
        const int64_t count = std::min(kBlock, n - begin);
        Real px[kBlock] = {}, py[kBlock] = {}, pz[kBlock] = {};
        Real fx[kBlock] = {}, fy[kBlock] = {}, fz[kBlock] = {};
        for (int64_t l = 0; l < count; ++l) {
            px[l] = x[begin + l].x;
            py[l] = x[begin + l].y;
            pz[l] = x[begin + l].z;
        }
        for (int64_t j = 0; j < n; ++j) {
            const Vec3<Real> other = x[j];
#pragma omp simd
            for (int64_t l = 0; l < kBlock; ++l) {
                const Real dx = other.x - px[l], dy = other.y - py[l], dz = other.z - pz[l];
                const Real w = weight(j, dx * dx + dy * dy + dz * dz + softening);
                fx[l] += dx * w;
                fy[l] += dy * w;
                fz[l] += dz * w;
            }
        }
        for (int64_t l = 0; l < count; ++l) force[begin + l] = {fx[l], fy[l], fz[l]};
    }
}

template <typename Real>
static Real inverse_cube(Real r2) {
    const Real inverse = Real(1) / std::sqrt(r2);
    return inverse * inverse * inverse;
}

BENCH_EXPORT void forces_f32(int64_t n, float softening, const Vec3<float>* x, Vec3<float>* force) {
    forces(n, softening, x, force, [](int64_t, float r2) { return inverse_cube(r2); });
}

BENCH_EXPORT void forces_f64(int64_t n, double softening, const Vec3<double>* x, Vec3<double>* force) {
    forces(n, softening, x, force, [](int64_t, double r2) { return inverse_cube(r2); });
}

BENCH_EXPORT void forces_terms(int64_t n, float softening, float exponent, const Vec3<float>* x, const float* mass,
                               Vec3<float>* force) {
    forces(n, softening, x, force, [=](int64_t j, float r2) { return mass[j] * std::pow(r2, -exponent); });
}
