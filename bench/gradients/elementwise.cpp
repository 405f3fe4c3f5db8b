// sqrt(b + 1) cos(b) with b = exp(-(x sin x)²), and its gradient. Blocks stay in the first cache; sines and cosines of
// the same numbers are loops of their own, because together g++ makes one call of them that it cannot vectorise.
#include <cmath>

#include "../throughput/loops.h"

namespace {

constexpr int64_t kBlock = 1024;

}  // namespace

BENCH_EXPORT void forward(int64_t n, const float* __restrict x, float* __restrict y) {
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; ++i) {
        const float a = std::sin(x[i]) * x[i];
        const float b = std::exp(-a * a);
        y[i] = std::sqrt(b + 1.0f) * std::cos(b);
    }
}

BENCH_EXPORT void both(int64_t n, const float* __restrict x, const float* __restrict seed, float* __restrict y,
                       float* __restrict gradient) {
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < n; first += kBlock) {
        const float* __restrict in = x + first;
        float sine[kBlock], cosine[kBlock], b[kBlock], sine_b[kBlock];
#pragma omp simd
        for (int64_t i = 0; i < kBlock; ++i) sine[i] = std::sin(in[i]);
#pragma omp simd
        for (int64_t i = 0; i < kBlock; ++i) cosine[i] = std::cos(in[i]);
#pragma omp simd
        for (int64_t i = 0; i < kBlock; ++i) b[i] = std::exp(-(sine[i] * in[i]) * (sine[i] * in[i]));
#pragma omp simd
        for (int64_t i = 0; i < kBlock; ++i) sine_b[i] = std::sin(b[i]);
#pragma omp simd
        for (int64_t i = 0; i < kBlock; ++i) {
            const float a = sine[i] * in[i];
            const float root = std::sqrt(b[i] + 1.0f);
            const float cosine_b = std::cos(b[i]);
            y[first + i] = root * cosine_b;
            const float by_b = seed[first + i] * (0.5f / root * cosine_b - root * sine_b[i]);
            gradient[first + i] = by_b * b[i] * -2.0f * a * (cosine[i] * in[i] + sine[i]);
        }
    }
}
