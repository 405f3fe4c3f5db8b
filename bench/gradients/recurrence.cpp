// s = s + dt sin(p s) - drag s³, many steps, and the gradient by s and p. Blocks of 32, a lane for each; the states of
// a block are kept for the backward pass.
#include <algorithm>
#include <cmath>
#include <vector>

#include "../throughput/loops.h"

namespace {

constexpr int kBlock = 32;
constexpr float kDt = 0.001f, kDrag = 0.0001f;

}  // namespace

BENCH_EXPORT void forward(int64_t n, int64_t steps, const float* start, const float* rate, float* end) {
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < n; first += kBlock) {
        float s[kBlock];
        const float* p = rate + first;
        std::copy(start + first, start + first + kBlock, s);
        for (int64_t t = 0; t < steps; ++t) {
#pragma omp simd
            for (int i = 0; i < kBlock; ++i) s[i] += kDt * std::sin(p[i] * s[i]) - kDrag * s[i] * s[i] * s[i];
        }
        std::copy(s, s + kBlock, end + first);
    }
}

BENCH_EXPORT void both(int64_t n, int64_t steps, const float* start, const float* rate, const float* seed, float* end,
                       float* by_s, float* by_p) {
#pragma omp parallel
    {
        std::vector<float> kept(steps * kBlock);
#pragma omp for schedule(static)
        for (int64_t first = 0; first < n; first += kBlock) {
            float s[kBlock], g[kBlock], h[kBlock] = {};
            const float* p = rate + first;
            std::copy(start + first, start + first + kBlock, s);
            for (int64_t t = 0; t < steps; ++t) {
                float* keep = kept.data() + t * kBlock;
#pragma omp simd
                for (int i = 0; i < kBlock; ++i) {
                    keep[i] = s[i];
                    s[i] += kDt * std::sin(p[i] * s[i]) - kDrag * s[i] * s[i] * s[i];
                }
            }
            std::copy(s, s + kBlock, end + first);
            std::copy(seed + first, seed + first + kBlock, g);
            for (int64_t t = steps - 1; t >= 0; --t) {
                const float* was = kept.data() + t * kBlock;
#pragma omp simd
                for (int i = 0; i < kBlock; ++i) {
                    const float slope = g[i] * kDt * std::cos(p[i] * was[i]);
                    h[i] += slope * was[i];
                    g[i] = g[i] * (1.0f - 3.0f * kDrag * was[i] * was[i]) + slope * p[i];
                }
            }
            std::copy(g, g + kBlock, by_s + first);
            std::copy(h, h + kBlock, by_p + first);
        }
    }
}
