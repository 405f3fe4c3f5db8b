"""A histogram of 1 M values in 256 bins by atomics: `count` counts in int32, `weighted` adds an f32 weight."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N = 1 << 20
BINS = 256


def problem(variant):
    random = np.random.default_rng(4)
    return {
        "x": random.random(N, dtype=np.float32),
        "weight": random.integers(1, 4, N).astype(np.float32),
        "dtype": np.float32 if variant == "weighted" else np.int32,
    }


def expected(variant, data):
    index = (data["x"] * np.float32(BINS)).astype(np.int32)
    return np.bincount(index, data["weight"] if variant == "weighted" else None, BINS)


def with_warp(wp, variant, data, options):
    number = wp.float32 if variant == "weighted" else wp.int32

    @wp.kernel
    def count(bins: float, x: wp.array(dtype=float), histogram: wp.array(dtype=wp.int32)):
        i = wp.tid()
        wp.atomic_add(histogram, int(x[i] * bins), 1)

    @wp.kernel
    def weigh(bins: float, x: wp.array(dtype=float), weight: wp.array(dtype=float), histogram: wp.array(dtype=float)):
        i = wp.tid()
        wp.atomic_add(histogram, int(x[i] * bins), weight[i])

    x = wp.array(data["x"], dtype=float, device="cpu")
    weight = wp.array(data["weight"], dtype=float, device="cpu")
    histogram = wp.zeros(BINS, dtype=number, device="cpu")

    def run():
        histogram.zero_()
        if variant == "weighted":
            wp.launch(weigh, dim=N, inputs=[float(BINS), x, weight, histogram], device="cpu")
        else:
            wp.launch(count, dim=N, inputs=[float(BINS), x, histogram], device="cpu")

    return measure.Job(run, histogram.numpy)


def with_numba(numba, variant, data, options):
    # Numba has no atomics on the CPU: each thread has bins of its own, added up at the end.
    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def count(bins, x, histogram, threads):
        own = np.zeros((threads, histogram.shape[0]), dtype=histogram.dtype)
        size = (x.shape[0] + threads - 1) // threads
        for thread in numba.prange(threads):
            for i in range(thread * size, min((thread + 1) * size, x.shape[0])):
                own[thread, int(x[i] * bins)] += 1
        histogram[:] = own.sum(axis=0)

    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def weigh(bins, x, weight, histogram, threads):
        own = np.zeros((threads, histogram.shape[0]), dtype=histogram.dtype)
        size = (x.shape[0] + threads - 1) // threads
        for thread in numba.prange(threads):
            for i in range(thread * size, min((thread + 1) * size, x.shape[0])):
                own[thread, int(x[i] * bins)] += weight[i]
        histogram[:] = own.sum(axis=0)

    x, weight, bins, threads = data["x"], data["weight"], np.float32(BINS), numba.get_num_threads()
    histogram = np.zeros(BINS, dtype=data["dtype"])
    if variant == "weighted":
        return measure.Job(lambda: weigh(bins, x, weight, histogram, threads), lambda: histogram)
    return measure.Job(lambda: count(bins, x, histogram, threads), lambda: histogram)


def with_cpp(library, variant, data, options):
    x, weight = measure.aligned(data["x"]), measure.aligned(data["weight"])
    histogram = np.zeros(BINS, dtype=data["dtype"])
    if variant == "weighted":
        run = measure.call_cpp(library.weigh, N, BINS, x, weight, histogram)
    else:
        run = measure.call_cpp(library.count, N, BINS, x, histogram)
    return measure.Job(run, lambda: histogram)


if __name__ == "__main__":
    measure.throughput(
        "histogram",
        __doc__,
        ("count", "weighted"),
        problem,
        expected,
        {"weft": with_warp, "peer": with_warp, "numba": with_numba, "cpp": with_cpp},
        lambda variant: {"rtol": 0.0},
    )
