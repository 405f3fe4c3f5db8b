// Five-point and seven-point Laplacian of a square and of a cube of side n; the border stays as it is.
#include "loops.h"

BENCH_EXPORT void laplacian_2d(int64_t n, const float* __restrict u, float* __restrict result) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 1; i < n - 1; ++i) {
        const float* __restrict row = u + i * n;
        float* __restrict out = result + i * n;
#pragma omp simd
        for (int64_t j = 1; j < n - 1; ++j) out[j] = row[j - n] + row[j + n] + row[j - 1] + row[j + 1] - 4.0f * row[j];
    }
}

BENCH_EXPORT void laplacian_3d(int64_t n, const float* __restrict u, float* __restrict result) {
    const int64_t plane = n * n;
#pragma omp parallel for schedule(static)
    for (int64_t i = 1; i < n - 1; ++i) {
        for (int64_t j = 1; j < n - 1; ++j) {
            const float* __restrict row = u + i * plane + j * n;
            float* __restrict out = result + i * plane + j * n;
#pragma omp simd
            for (int64_t k = 1; k < n - 1; ++k)
                out[k] =
                    row[k - plane] + row[k + plane] + row[k - n] + row[k + n] + row[k - 1] + row[k + 1] - 6.0f * row[k];
        }
    }
}
