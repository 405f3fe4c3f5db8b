"""Scattered additions to an array of vec3, as of forces to the corners of a mesh: `vec3` adds 8,064 vectors to 2,145
elements through an index array, `springs` the force of each of 8,064 springs to its two ends."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N, ELEMENTS = 8064, 2145


def problem(variant):
    random = np.random.default_rng(6)
    return {
        "ends": random.integers(0, ELEMENTS, (N, 2)).astype(np.int32),
        "v": random.random((N, 3), dtype=np.float32),
        "x": random.random((ELEMENTS, 3), dtype=np.float32),
    }


def expected(variant, data):
    result = np.zeros((ELEMENTS, 3))
    first, second = data["ends"].T
    if variant == "vec3":
        np.add.at(result, first, data["v"])
        return result
    distance = data["x"][second].astype(np.float64) - data["x"][first]
    force = distance * (np.linalg.norm(distance, axis=1, keepdims=True) - 1.0)
    np.add.at(result, first, force)
    np.subtract.at(result, second, force)
    return result


def with_warp(wp, variant, data, options):
    @wp.kernel
    def add(ends: wp.array2d(dtype=int), v: wp.array(dtype=wp.vec3), result: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        wp.atomic_add(result, ends[i, 0], v[i])

    @wp.kernel
    def pull(ends: wp.array2d(dtype=int), x: wp.array(dtype=wp.vec3), result: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        a = ends[i, 0]
        b = ends[i, 1]
        distance = x[b] - x[a]
        force = distance * (wp.length(distance) - 1.0)
        wp.atomic_add(result, a, force)
        wp.atomic_sub(result, b, force)

    ends = wp.array(data["ends"], dtype=int, device="cpu")
    values = wp.array(data["v" if variant == "vec3" else "x"], dtype=wp.vec3, device="cpu")
    result = wp.zeros(ELEMENTS, dtype=wp.vec3, device="cpu")
    kernel = add if variant == "vec3" else pull

    def run():
        result.zero_()
        wp.launch(kernel, dim=N, inputs=[ends, values, result], device="cpu")

    return measure.Job(run, result.numpy)


def with_numba(numba, variant, data, options):
    # Numba has no atomics on the CPU, and threads would take longer to start than one takes for all.
    @numba.njit(fastmath=options.fast, cache=True)
    def add(ends, v, result):
        result[:] = 0.0
        for i in range(ends.shape[0]):
            for k in range(3):
                result[ends[i, 0], k] += v[i, k]

    @numba.njit(fastmath=options.fast, cache=True)
    def pull(ends, x, result):
        result[:] = 0.0
        for i in range(ends.shape[0]):
            a, b = ends[i, 0], ends[i, 1]
            d0, d1, d2 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
            scale = np.sqrt(d0 * d0 + d1 * d1 + d2 * d2) - np.float32(1.0)
            for k, d in enumerate((d0, d1, d2)):
                result[a, k] += d * scale
                result[b, k] -= d * scale

    result = np.zeros((ELEMENTS, 3), dtype=np.float32)
    if variant == "vec3":
        return measure.Job(lambda: add(data["ends"], data["v"], result), lambda: result)
    return measure.Job(lambda: pull(data["ends"], data["x"], result), lambda: result)


def with_cpp(library, variant, data, options):
    ends, result = measure.aligned(data["ends"]), measure.aligned(np.zeros((ELEMENTS, 3), dtype=np.float32))
    values = measure.aligned(data["v" if variant == "vec3" else "x"])
    function = library.add if variant == "vec3" else library.pull
    return measure.Job(measure.call_cpp(function, N, ELEMENTS, ends, values, result), lambda: result)


if __name__ == "__main__":
    measure.throughput(
        "scatter",
        __doc__,
        ("vec3", "springs"),
        problem,
        expected,
        {"weft": with_warp, "peer": with_warp, "numba": with_numba, "cpp": with_cpp},
        lambda variant: {"rtol": 1e-4, "atol": 1e-5},
    )
