// The sum of an array. `omp simd reduction` allows the order to change, in strict mathematics too: that is what a sum
// by atomics promises as well.
#include "loops.h"

template <typename Number>
static void add(int64_t n, const Number* __restrict x, Number* total) {
    Number sum = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    *total = sum;
}

BENCH_EXPORT void add_f32(int64_t n, const float* x, float* total) { add(n, x, total); }
BENCH_EXPORT void add_i32(int64_t n, const int32_t* x, int32_t* total) { add(n, x, total); }
