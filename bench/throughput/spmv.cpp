// A sparse matrix in compressed rows, times a vector.
#include "loops.h"

template <typename Real>
static void multiply(int64_t rows, const int32_t* __restrict offsets, const int32_t* __restrict columns,
                     const Real* __restrict values, const Real* __restrict x, Real* __restrict y) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        Real total = 0;
        for (int32_t i = offsets[row]; i < offsets[row + 1]; ++i) total += values[i] * x[columns[i]];
        y[row] = total;
    }
}

BENCH_EXPORT void multiply_f32(int64_t rows, const int32_t* offsets, const int32_t* columns, const float* values,
                               const float* x, float* y) {
    multiply(rows, offsets, columns, values, x, y);
}

BENCH_EXPORT void multiply_f64(int64_t rows, const int32_t* offsets, const int32_t* columns, const double* values,
                               const double* x, double* y) {
    multiply(rows, offsets, columns, values, x, y);
}
