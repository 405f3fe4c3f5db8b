"""Each thread adds to an element of its own, 256 k of them: `add` by `a[i] += x`, which is atomic by its meaning,
`assign` by `a[i] = a[i] + x`; `loop` adds eight numbers one after the other, `parts` to a vec3 and to a component."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N = 1 << 18
TERMS = 8


def problem(variant):
    random = np.random.default_rng(5)
    return {"x": random.random((TERMS, N), dtype=np.float32), "v": random.random((N, 3), dtype=np.float32)}


def expected(variant, data):
    if variant == "parts":
        result = data["v"] * np.float32(0.5)
        result[:, 1] -= data["v"][:, 0]
        return result
    return data["x"].sum(axis=0) if variant == "loop" else data["x"][0] * np.float32(0.5)


def with_warp(wp, variant, data, options):
    @wp.kernel
    def add(x: wp.array2d(dtype=float), a: wp.array(dtype=float)):
        i = wp.tid()
        a[i] += x[0, i] * 0.5

    @wp.kernel
    def assign(x: wp.array2d(dtype=float), a: wp.array(dtype=float)):
        i = wp.tid()
        a[i] = a[i] + x[0, i] * 0.5

    @wp.kernel
    def loop(x: wp.array2d(dtype=float), a: wp.array(dtype=float)):
        i = wp.tid()
        for k in range(x.shape[0]):
            a[i] += x[k, i]

    @wp.kernel
    def parts(x: wp.array(dtype=wp.vec3), a: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        a[i] += x[i] * 0.5
        a[i].y -= x[i].x

    kernel = {"add": add, "assign": assign, "loop": loop, "parts": parts}[variant]
    if variant == "parts":
        x, a = wp.array(data["v"], dtype=wp.vec3, device="cpu"), wp.zeros(N, dtype=wp.vec3, device="cpu")
    else:
        x, a = wp.array(data["x"], dtype=float, device="cpu"), wp.zeros(N, dtype=float, device="cpu")
    return measure.Job(lambda: wp.launch(kernel, dim=N, inputs=[x, a], device="cpu"), a.numpy)


def with_numba(numba, variant, data, options):
    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def add(x, a):
        for i in numba.prange(a.shape[0]):
            a[i] += x[0, i] * np.float32(0.5)

    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def loop(x, a):
        for i in numba.prange(a.shape[0]):
            for k in range(x.shape[0]):
                a[i] += x[k, i]

    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def parts(x, a):
        for i in numba.prange(a.shape[0]):
            for k in range(3):
                a[i, k] += x[i, k] * np.float32(0.5)
            a[i, 1] -= x[i, 0]

    function = {"loop": loop, "parts": parts}.get(variant, add)
    x = data["v" if variant == "parts" else "x"]
    a = np.zeros((N, 3) if variant == "parts" else N, dtype=np.float32)
    return measure.Job(lambda: function(x, a), lambda: a)


def with_cpp(library, variant, data, options):
    x = measure.aligned(data["v" if variant == "parts" else "x"])
    a = measure.aligned(np.zeros((N, 3) if variant == "parts" else N, dtype=np.float32))
    function = {"loop": library.loop, "parts": library.parts}.get(variant, library.add)
    return measure.Job(measure.call_cpp(function, N, *([TERMS] if variant == "loop" else []), x, a), lambda: a)


if __name__ == "__main__":
    measure.throughput(
        "own",
        __doc__,
        ("add", "assign", "loop", "parts"),
        problem,
        expected,
        {"weft": with_warp, "peer": with_warp, "numba": with_numba, "cpp": with_cpp},
    )
