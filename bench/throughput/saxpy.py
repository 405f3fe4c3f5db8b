"""y = a x + y over 16 M elements: bound by memory."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N = 1 << 24
A = 0.25


def problem(variant):
    dtype = np.float32 if variant == "f32" else np.float64
    x = np.linspace(-1.0, 1.0, N, dtype=dtype)
    return {"x": x, "y": x[::-1].copy(), "dtype": dtype}


def expected(variant, data):
    return data["dtype"](A) * data["x"] + data["y"]


def with_warp(wp, variant, data, options):
    real = wp.float32 if variant == "f32" else wp.float64

    @wp.kernel
    def saxpy(a: real, x: wp.array(dtype=real), y: wp.array(dtype=real)):
        i = wp.tid()
        y[i] = a * x[i] + y[i]

    x = wp.array(data["x"], dtype=real)
    y = wp.array(data["y"], dtype=real)
    return measure.Job(lambda: wp.launch(saxpy, dim=N, inputs=[A, x, y]), y.numpy)


def with_numba(numba, variant, data, options):
    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def saxpy(a, x, y):
        for i in numba.prange(x.shape[0]):
            y[i] = a * x[i] + y[i]

    a, x, y = data["dtype"](A), data["x"].copy(), data["y"].copy()
    return measure.Job(lambda: saxpy(a, x, y), lambda: y)


def with_cpp(library, variant, data, options):
    y = measure.aligned(data["y"])
    x = measure.aligned(data["x"])
    return measure.Job(measure.call_cpp(library[f"saxpy_{variant}"], N, data["dtype"](A), x, y), lambda: y)


if __name__ == "__main__":
    measure.throughput(
        "saxpy",
        __doc__,
        ("f32", "f64"),
        problem,
        expected,
        {"weft": with_warp, "peer": with_warp, "numba": with_numba, "cpp": with_cpp},
        lambda variant: {"rtol": 1e-5, "atol": 1e-6},
    )
