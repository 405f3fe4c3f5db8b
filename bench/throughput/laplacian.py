"""The five-point Laplacian of 4096² and the seven-point one of 256³, f32: bound by memory.

Variants: `2d` launches over the whole grid and leaves the border out with an `if`; `2d_inner` launches over the inside
only; `3d` is `2d` with a dimension more.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N2, N3 = 4096, 256


def problem(variant):
    shape = (N3,) * 3 if variant == "3d" else (N2,) * 2
    return {"u": np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)}


def expected(variant, data):
    u = data["u"]
    inside = (slice(1, -1),) * u.ndim
    result = np.zeros_like(u)
    result[inside] = -2.0 * u.ndim * u[inside]
    for axis in range(u.ndim):
        for shift in (slice(0, -2), slice(2, None)):
            result[inside] += u[inside[:axis] + (shift,) + inside[axis + 1 :]]
    return result


def with_warp(wp, variant, data, options):
    @wp.kernel
    def laplacian_2d(u: wp.array(dtype=float, ndim=2), result: wp.array(dtype=float, ndim=2)):
        i, j = wp.tid()
        if i > 0 and j > 0 and i < u.shape[0] - 1 and j < u.shape[1] - 1:
            result[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]

    @wp.kernel
    def laplacian_2d_inner(u: wp.array(dtype=float, ndim=2), result: wp.array(dtype=float, ndim=2)):
        ti, tj = wp.tid()
        i = ti + 1
        j = tj + 1
        result[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]

    @wp.kernel
    def laplacian_3d(u: wp.array(dtype=float, ndim=3), result: wp.array(dtype=float, ndim=3)):
        i, j, k = wp.tid()
        if i > 0 and i < u.shape[0] - 1 and j > 0 and j < u.shape[1] - 1 and k > 0 and k < u.shape[2] - 1:
            result[i, j, k] = (
                u[i - 1, j, k]
                + u[i + 1, j, k]
                + u[i, j - 1, k]
                + u[i, j + 1, k]
                + u[i, j, k - 1]
                + u[i, j, k + 1]
                - 6.0 * u[i, j, k]
            )

    kernel = {"2d": laplacian_2d, "2d_inner": laplacian_2d_inner, "3d": laplacian_3d}[variant]
    dim = (N2 - 2, N2 - 2) if variant == "2d_inner" else data["u"].shape
    u = wp.array(data["u"], dtype=float)
    result = wp.zeros(data["u"].shape, dtype=float)
    return measure.Job(lambda: wp.launch(kernel, dim=dim, inputs=[u, result]), result.numpy)


def with_numba(numba, variant, data, options):
    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def laplacian_2d(u, result):
        for i in numba.prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                result[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - np.float32(4.0) * u[i, j]

    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def laplacian_3d(u, result):
        for i in numba.prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                for k in range(1, u.shape[2] - 1):
                    result[i, j, k] = (
                        u[i - 1, j, k]
                        + u[i + 1, j, k]
                        + u[i, j - 1, k]
                        + u[i, j + 1, k]
                        + u[i, j, k - 1]
                        + u[i, j, k + 1]
                        - np.float32(6.0) * u[i, j, k]
                    )

    kernel = laplacian_3d if variant == "3d" else laplacian_2d
    u, result = data["u"], np.zeros_like(data["u"])
    return measure.Job(lambda: kernel(u, result), lambda: result)


def with_cpp(library, variant, data, options):
    u = measure.aligned(data["u"])
    result = measure.aligned(np.zeros_like(u))
    function = library.laplacian_3d if variant == "3d" else library.laplacian_2d
    return measure.Job(measure.call_cpp(function, u.shape[0], u, result), lambda: result)


if __name__ == "__main__":
    measure.throughput(
        "laplacian",
        __doc__,
        ("2d", "2d_inner", "3d"),
        problem,
        expected,
        {"weft": with_warp, "peer": with_warp, "numba": with_numba, "cpp": with_cpp},
        lambda variant: {"rtol": 1e-5, "atol": 2e-6},
    )
