// Five-point Laplacian of a square of side n, and its gradient: the same stencil over the seeds, but at the border.
// There `clamped` rows and columns take themselves for the missing neighbour; otherwise the border has no result.
#include <algorithm>

#include "../throughput/loops.h"

namespace {

// One row of the Laplacian, the ends taking themselves for the missing neighbour.
inline void row_of(int64_t n, const float* above, const float* here, const float* below, float* __restrict out) {
#pragma omp simd
    for (int64_t j = 1; j < n - 1; ++j) out[j] = above[j] + below[j] + here[j - 1] + here[j + 1] - 4.0f * here[j];
    out[0] = above[0] + below[0] + here[1] - 3.0f * here[0];
    out[n - 1] = above[n - 1] + below[n - 1] + here[n - 2] - 3.0f * here[n - 1];
}

inline void clamped_stencil(int64_t n, int64_t i, const float* u, float* result) {
    row_of(n, u + std::max<int64_t>(i - 1, 0) * n, u + i * n, u + std::min(i + 1, n - 1) * n, result + i * n);
}

inline void inner_stencil(int64_t n, int64_t i, const float* u, float* __restrict result) {
    const float* row = u + i * n;
    float* out = result + i * n;
#pragma omp simd
    for (int64_t j = 1; j < n - 1; ++j) out[j] = row[j - n] + row[j + n] + row[j - 1] + row[j + 1] - 4.0f * row[j];
}

// One row of the gradient where the border has no result: seeds there do not count.
inline void transposed_inner(int64_t n, int64_t i, const float* seed, float* __restrict gradient) {
    const bool up = i >= 2, here = i >= 1 && i <= n - 2, down = i <= n - 3;
    const float* s = seed + i * n;
    float* out = gradient + i * n;
    if (up && here && down) {
#pragma omp simd
        for (int64_t j = 2; j < n - 2; ++j) out[j] = s[j - n] + s[j + n] + s[j - 1] + s[j + 1] - 4.0f * s[j];
    }
    for (int64_t j = 0; j < n; ++j) {
        if (up && here && down && j == 2) j = n - 2;
        const bool inside = j >= 1 && j <= n - 2;
        float total = 0.0f;
        if (up && inside) total += s[j - n];
        if (down && inside) total += s[j + n];
        if (here && j >= 2) total += s[j - 1];
        if (here && j <= n - 3) total += s[j + 1];
        if (here && inside) total -= 4.0f * s[j];
        out[j] = total;
    }
}

}  // namespace

BENCH_EXPORT void forward(int64_t n, int64_t clamped, const float* u, float* result) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; ++i) {
        if (clamped)
            clamped_stencil(n, i, u, result);
        else if (i > 0 && i < n - 1)
            inner_stencil(n, i, u, result);
    }
}

BENCH_EXPORT void both(int64_t n, int64_t clamped, const float* u, const float* seed, float* result, float* gradient) {
    forward(n, clamped, u, result);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; ++i) {
        if (clamped)
            clamped_stencil(n, i, seed, gradient);  // its own transpose
        else
            transposed_inner(n, i, seed, gradient);
    }
}
