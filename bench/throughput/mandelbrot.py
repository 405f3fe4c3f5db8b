"""The Mandelbrot set, 1024², at most 256 iterations: threads leave their loop at very different times."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N = 1024
ITERATIONS = 256
LEFT, BOTTOM, SIZE = -2.0, -1.25, 2.5


def problem(variant):
    dtype = np.float32 if variant == "f32" else np.float64
    return {"dtype": dtype, "pixel": dtype(SIZE / N)}


def expected(variant, data):
    dtype, pixel = data["dtype"], data["pixel"]
    cx = (dtype(LEFT) + np.arange(N, dtype=dtype) * pixel)[None, :].repeat(N, 0).ravel()
    cy = (dtype(BOTTOM) + np.arange(N, dtype=dtype) * pixel)[:, None].repeat(N, 1).ravel()
    counts = np.zeros(N * N, dtype=np.int32)
    index = np.arange(N * N)
    x, y = np.zeros_like(cx), np.zeros_like(cy)
    for _ in range(ITERATIONS):
        inside = x * x + y * y <= dtype(4.0)
        index, x, y, cx, cy = index[inside], x[inside], y[inside], cx[inside], cy[inside]
        counts[index] += 1
        x, y = x * x - y * y + cx, dtype(2.0) * x * y + cy
    return np.array([counts.mean(), np.count_nonzero(counts == ITERATIONS)], dtype=np.float64)


def summary(counts):
    # Near the border of the set the count depends on the rounding of each operation (a fused multiply-add rounds once,
    # NumPy twice), so the picture is compared by its mean and its number of pixels inside.
    return np.array([counts.mean(), np.count_nonzero(counts == ITERATIONS)], dtype=np.float64)


def with_warp(wp, variant, data, options):
    real = wp.float32 if variant == "f32" else wp.float64

    @wp.kernel
    def mandelbrot(left: real, bottom: real, pixel: real, iterations: int, counts: wp.array(dtype=wp.int32, ndim=2)):
        row, column = wp.tid()
        cx = left + real(column) * pixel
        cy = bottom + real(row) * pixel
        x = real(0.0)
        y = real(0.0)
        count = int(0)  # noqa: UP018  (the peer wants a variable, not a constant)
        while count < iterations and x * x + y * y <= real(4.0):
            next = x * x - y * y + cx
            y = real(2.0) * x * y + cy
            x = next
            count += 1
        counts[row, column] = count

    counts = wp.zeros((N, N), dtype=wp.int32, device="cpu")
    pixel = float(data["pixel"])

    def run():
        wp.launch(mandelbrot, dim=(N, N), inputs=[LEFT, BOTTOM, pixel, ITERATIONS, counts], device="cpu")

    return measure.Job(run, lambda: summary(counts.numpy()))


def with_numba(numba, variant, data, options):
    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def mandelbrot(left, bottom, pixel, zero, two, four, iterations, counts):
        for row in numba.prange(counts.shape[0]):
            for column in range(counts.shape[1]):
                cx = left + pixel * np.float32(column)
                cy = bottom + pixel * np.float32(row)
                x, y = zero, zero
                count = 0
                while count < iterations and x * x + y * y <= four:
                    x, y = x * x - y * y + cx, two * x * y + cy
                    count += 1
                counts[row, column] = count

    dtype = data["dtype"]
    counts = np.zeros((N, N), dtype=np.int32)
    values = [dtype(v) for v in (LEFT, BOTTOM, data["pixel"], 0.0, 2.0, 4.0)]
    return measure.Job(lambda: mandelbrot(*values, ITERATIONS, counts), lambda: summary(counts))


def with_cpp(library, variant, data, options):
    counts = measure.aligned(np.zeros((N, N), dtype=np.int32))
    values = [data["dtype"](v) for v in (LEFT, BOTTOM, data["pixel"])]
    run = measure.call_cpp(library[f"mandelbrot_{variant}"], N, *values, np.int32(ITERATIONS), counts)
    return measure.Job(run, lambda: summary(counts))


if __name__ == "__main__":
    measure.throughput(
        "mandelbrot",
        __doc__,
        ("f32", "f64"),
        problem,
        expected,
        {"weft": with_warp, "peer": with_warp, "numba": with_numba, "cpp": with_cpp},
        lambda variant: {"rtol": 1e-2},
    )
