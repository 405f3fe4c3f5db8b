// y = a x + y.
#include "loops.h"

template <typename Real>
static void saxpy(int64_t n, Real a, const Real* __restrict x, Real* __restrict y) {
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}

BENCH_EXPORT void saxpy_f32(int64_t n, float a, const float* x, float* y) { saxpy(n, a, x, y); }
BENCH_EXPORT void saxpy_f64(int64_t n, double a, const double* x, double* y) { saxpy(n, a, x, y); }
