// Additions to elements that no other thread has.
#include "loops.h"

BENCH_EXPORT void add(int64_t n, const float* __restrict x, float* __restrict a) {
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; ++i) a[i] += x[i] * 0.5f;
}

BENCH_EXPORT void loop(int64_t n, int64_t terms, const float* __restrict x, float* __restrict a) {
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < n; first += 1024)
        for (int64_t k = 0; k < terms; ++k)
            for (int64_t i = first; i < first + 1024; ++i) a[i] += x[k * n + i];
}

BENCH_EXPORT void parts(int64_t n, const Vec3<float>* __restrict x, Vec3<float>* __restrict a) {
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; ++i) {
        a[i].x += x[i].x * 0.5f;
        a[i].y = a[i].y + x[i].y * 0.5f - x[i].x;
        a[i].z += x[i].z * 0.5f;
    }
}
