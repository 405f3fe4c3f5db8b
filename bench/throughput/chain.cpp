// log(2 + cos(sqrt(exp(sin x)))). With -ffast-math the compiler calls the vector functions of libmvec, without it the
// scalar ones of libm.
#include <cmath>

#include "loops.h"

template <typename Real>
static void chain(int64_t n, const Real* __restrict x, Real* __restrict y) {
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; ++i) y[i] = std::log(Real(2) + std::cos(std::sqrt(std::exp(std::sin(x[i])))));
}

BENCH_EXPORT void chain_f32(int64_t n, const float* x, float* y) { chain(n, x, y); }
BENCH_EXPORT void chain_f64(int64_t n, const double* x, double* y) { chain(n, x, y); }
