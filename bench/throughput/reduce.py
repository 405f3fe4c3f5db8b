"""The sum of 1 M elements into one cell: every thread adds atomically to the same address."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N = 1 << 20


def problem(variant):
    # Whole numbers whose sum fits 24 bits: exact in any order, in f32 too.
    return {"x": (np.arange(N) % 13).astype(np.float32 if variant == "f32" else np.int32)}


def expected(variant, data):
    return np.array([data["x"].sum(dtype=np.float64)])


def with_warp(wp, variant, data, options):
    number = wp.float32 if variant == "f32" else wp.int32

    @wp.kernel
    def add(x: wp.array(dtype=number), total: wp.array(dtype=number)):
        i = wp.tid()
        wp.atomic_add(total, 0, x[i])

    x = wp.array(data["x"], dtype=number, device="cpu")
    total = wp.zeros(1, dtype=number, device="cpu")

    def run():
        total.zero_()
        wp.launch(add, dim=N, inputs=[x, total], device="cpu")

    return measure.Job(run, total.numpy)


def with_numba(numba, variant, data, options):
    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def add(zero, x, total):
        result = zero
        for i in numba.prange(x.shape[0]):
            result += x[i]
        total[0] = result

    x = data["x"]
    total = np.zeros(1, dtype=x.dtype)
    return measure.Job(lambda: add(x.dtype.type(0), x, total), lambda: total)


def with_cpp(library, variant, data, options):
    x = measure.aligned(data["x"])
    total = np.zeros(1, dtype=x.dtype)
    return measure.Job(measure.call_cpp(library[f"add_{variant}"], N, x, total), lambda: total)


if __name__ == "__main__":
    measure.throughput(
        "reduce",
        __doc__,
        ("f32", "i32"),
        problem,
        expected,
        {"weft": with_warp, "peer": with_warp, "numba": with_numba, "cpp": with_cpp},
        lambda variant: {"rtol": 0.0},
    )
