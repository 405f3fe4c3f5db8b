// A histogram: each thread counts into bins of its own, in two sets in turn, so that equal neighbours do not wait for
// each other; at the end they are added up.
#include <vector>

#include "loops.h"

template <typename Number, typename Weight>
static void histogram(int64_t n, int64_t bins, const float* __restrict x, Number* result, Weight weight) {
    for (int64_t b = 0; b < bins; ++b) result[b] = 0;
    const float scale = static_cast<float>(bins);
#pragma omp parallel
    {
        std::vector<Number> even(bins), odd(bins);
#pragma omp for schedule(static) nowait
        for (int64_t pair = 0; pair < n / 2; ++pair) {
            even[static_cast<int32_t>(x[2 * pair] * scale)] += weight(2 * pair);
            odd[static_cast<int32_t>(x[2 * pair + 1] * scale)] += weight(2 * pair + 1);
        }
#pragma omp critical
        for (int64_t b = 0; b < bins; ++b) result[b] += even[b] + odd[b];
    }
    if (n % 2) result[static_cast<int32_t>(x[n - 1] * scale)] += weight(n - 1);
}

BENCH_EXPORT void count(int64_t n, int64_t bins, const float* x, int32_t* result) {
    histogram(n, bins, x, result, [](int64_t) { return 1; });
}

BENCH_EXPORT void weigh(int64_t n, int64_t bins, const float* x, const float* weight, float* result) {
    histogram(n, bins, x, result, [=](int64_t i) { return weight[i]; });
}
