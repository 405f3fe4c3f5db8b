#include "common.cuh"
GLOBAL void saxpy(float a, const float* __restrict x, float* __restrict y, int n) { int i = I; if (i < n) y[i] = __builtin_fmaf(a, x[i], y[i]); }
