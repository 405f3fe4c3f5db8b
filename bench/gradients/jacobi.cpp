// Jacobi steps of a sparse system with a unit diagonal, and the gradient by matrix and right-hand side. The backward
// pass goes through the transposed matrix, which was made beforehand, so that no two threads meet.
#include <algorithm>

#include "../throughput/loops.h"

BENCH_EXPORT void forward(int64_t n, int64_t steps, const int32_t* first, const int32_t* column, const float* values,
                          const float* b, float* xs) {
    std::fill(xs, xs + n, 0.0f);
    for (int64_t t = 0; t < steps; ++t) {
        const float* x = xs + t * n;
        float* x_new = xs + (t + 1) * n;
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < n; ++i) {
            float total = 0.0f;
            for (int32_t k = first[i]; k < first[i + 1]; ++k) total += values[k] * x[column[k]];
            x_new[i] = b[i] - total;
        }
    }
}

BENCH_EXPORT void both(int64_t n, int64_t steps, const int32_t* first, const int32_t* column, const float* values,
                       const float* b, float* xs, const int32_t* firsts, const int32_t* place, const int32_t* row,
                       const float* seed, float* work, float* by_values, float* by_b) {
    forward(n, steps, first, column, values, b, xs);
    float *now = work, *before = work + n;
    std::copy(seed, seed + n, now);
    std::fill(by_values, by_values + first[n], 0.0f);
    std::fill(by_b, by_b + n, 0.0f);
    for (int64_t t = steps - 1; t >= 0; --t) {
        const float* x = xs + t * n;
#pragma omp parallel
        {
#pragma omp for schedule(static) nowait
            for (int64_t i = 0; i < n; ++i) {
                by_b[i] += now[i];
                for (int32_t k = first[i]; k < first[i + 1]; ++k) by_values[k] -= now[i] * x[column[k]];
            }
#pragma omp for schedule(static)
            for (int64_t j = 0; j < n; ++j) {
                float total = 0.0f;
                for (int32_t k = firsts[j]; k < firsts[j + 1]; ++k) total += values[place[k]] * now[row[k]];
                before[j] = -total;
            }
        }
        std::swap(now, before);
    }
}
