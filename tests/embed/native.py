"""Kernels of main.cpp that call C++: a C++ compiler is there when the file is written, not when the program runs."""

import warp as wp


@wp.struct
class Range:
    low: wp.vec3
    scale: float
    weights: wp.array(dtype=float)


@wp.func_native("""
    #include <algorithm>
    #include <vector>
    std::vector<float> sorted;
    for (int64 k = 0; k < x.shape[1]; ++k) sorted.push_back(x(row, k));
    std::sort(sorted.begin(), sorted.end());
    atomic_add(&calls[0], 1);
    return sorted[sorted.size() / 2];
""")
def median(x: wp.array2d(dtype=float), row: int, calls: wp.array(dtype=int)) -> float: ...


@wp.func_native("""
    #include <cmath>
    float total = 0.0f;
    for (int k = 0; k < 3; ++k) total += (v[k] - range.low[k]) * range.weights[k];
    return vec3(total * range.scale, std::floor(total), v[0]);
""")
def scaled(v: wp.vec3, range: Range) -> wp.vec3: ...


@wp.func_native("""
#if defined(__AVX512BW__)
    return 4;
#elif defined(__AVX2__)
    return 3;
#elif defined(__SSE4_2__)
    return 2;
#else
    return 1;
#endif
""")
def level() -> int:
    """Which of the levels of x86-64 the C++ was compiled for."""


@wp.kernel
def medians(x: wp.array2d(dtype=float), out: wp.array(dtype=float), calls: wp.array(dtype=int)):
    row = wp.tid()
    if row % 3 != 1:
        out[row] = median(x, row, calls)


@wp.kernel
def scales(range: Range, v: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    v[i] = scaled(v[i], range) + wp.vec3(0.0, 0.0, 1.0)


@wp.kernel
def levels(out: wp.array(dtype=int)):
    out[0] = level()
