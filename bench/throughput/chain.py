"""log(2 + cos(sqrt(exp(sin x)))) of 4 M elements: bound by the math library."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N = 1 << 22


def problem(variant):
    dtype = np.float32 if variant == "f32" else np.float64
    return {"x": np.linspace(-10.0, 10.0, N, dtype=dtype), "dtype": dtype}


def expected(variant, data):
    x = data["x"]
    return np.log(x.dtype.type(2.0) + np.cos(np.sqrt(np.exp(np.sin(x)))))


def with_warp(wp, variant, data, options):
    real = wp.float32 if variant == "f32" else wp.float64

    @wp.kernel
    def chain(x: wp.array(dtype=real), y: wp.array(dtype=real)):
        i = wp.tid()
        y[i] = wp.log(real(2.0) + wp.cos(wp.sqrt(wp.exp(wp.sin(x[i])))))

    x = wp.array(data["x"], dtype=real, device="cpu")
    y = wp.zeros(N, dtype=real, device="cpu")
    return measure.Job(lambda: wp.launch(chain, dim=N, inputs=[x, y], device="cpu"), y.numpy)


def with_numba(numba, variant, data, options):
    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def chain(two, x, y):
        for i in numba.prange(x.shape[0]):
            y[i] = np.log(two + np.cos(np.sqrt(np.exp(np.sin(x[i])))))

    two, x, y = data["dtype"](2.0), data["x"].copy(), np.zeros_like(data["x"])
    return measure.Job(lambda: chain(two, x, y), lambda: y)


def with_cpp(library, variant, data, options):
    x = measure.aligned(data["x"])
    y = measure.aligned(np.zeros_like(x))
    return measure.Job(measure.call_cpp(library[f"chain_{variant}"], N, x, y), lambda: y)


if __name__ == "__main__":
    measure.throughput(
        "chain",
        __doc__,
        ("f32", "f64"),
        problem,
        expected,
        {"weft": with_warp, "peer": with_warp, "numba": with_numba, "cpp": with_cpp},
        lambda variant: {"rtol": 2e-5, "atol": 2e-6},
    )
