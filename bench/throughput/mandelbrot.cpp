// The Mandelbrot set: blocks of pixels of a row iterate together, in vectors of the compiler, until none is inside.
#include <cstring>

#include "loops.h"

template <typename Real, typename Integer>
static void mandelbrot(int64_t n, Real left, Real bottom, Real pixel, int32_t iterations, int32_t* __restrict counts) {
#if defined(__AVX512F__)
    constexpr int kBytes = 64;
#else
    constexpr int kBytes = 32;
#endif
    constexpr int kLanes = kBytes / sizeof(Real);
    // Two vectors side by side: the chain of one iteration is long, and the next pixels fill its gaps.
    constexpr int kSide = 2;
    typedef Real Reals __attribute__((vector_size(kBytes)));
    typedef Integer Integers __attribute__((vector_size(kBytes)));
#pragma omp parallel for schedule(dynamic, 4)
    for (int64_t row = 0; row < n; ++row) {
        const Real cy = bottom + Real(row) * pixel;
        for (int64_t column = 0; column < n; column += kLanes * kSide) {
            Reals cx[kSide], x[kSide], y[kSide];
            Integers count[kSide];
            for (int s = 0; s < kSide; ++s) {
                for (int l = 0; l < kLanes; ++l) cx[s][l] = left + Real(column + s * kLanes + l) * pixel;
                x[s] = y[s] = Reals{};
                count[s] = Integers{};
            }
            for (int32_t i = 0; i < iterations; ++i) {
                Integers any{};
                for (int s = 0; s < kSide; ++s) {
                    const Reals xx = x[s] * x[s], yy = y[s] * y[s];
                    const Integers inside = xx + yy <= Real(4);
                    any |= inside;
                    count[s] -= inside;
                    const Reals next_y = Real(2) * x[s] * y[s] + cy, next_x = xx - yy + cx[s];
                    x[s] = inside ? next_x : x[s];
                    y[s] = inside ? next_y : y[s];
                }
                int64_t words[kBytes / 8];
                std::memcpy(words, &any, kBytes);
                int64_t some = 0;
                for (int64_t word : words) some |= word;
                if (!some) break;
            }
            for (int s = 0; s < kSide; ++s) {
                for (int l = 0; l < kLanes; ++l) {
                    const int64_t at = column + s * kLanes + l;
                    if (at < n) counts[row * n + at] = static_cast<int32_t>(count[s][l]);
                }
            }
        }
    }
}

BENCH_EXPORT void mandelbrot_f32(int64_t n, float left, float bottom, float pixel, int32_t iterations,
                                 int32_t* counts) {
    mandelbrot<float, int32_t>(n, left, bottom, pixel, iterations, counts);
}

BENCH_EXPORT void mandelbrot_f64(int64_t n, double left, double bottom, double pixel, int32_t iterations,
                                 int32_t* counts) {
    mandelbrot<double, int64_t>(n, left, bottom, pixel, iterations, counts);
}
