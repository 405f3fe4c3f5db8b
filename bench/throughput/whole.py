"""Operations on whole arrays beside NumPy: operators, sum, running sums and sort of 1 M elements, operators of 1000,
products of 1024² matrices."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N = 1 << 20
SMALL = 1000
SIDE = 1024
VARIANTS = ("2a + b", "2a + b, small", "sum", "scan", "sort i32", "sort f32", "product f32", "product f64")


def problem(variant):
    random = np.random.default_rng(1)
    if variant.startswith("product"):
        dtype = np.float32 if variant.endswith("f32") else np.float64
        return {name: random.standard_normal((SIDE, SIDE)).astype(dtype) for name in "ab"}
    if variant == "sort i32":
        return {"keys": random.integers(-(2**31), 2**31, N).astype(np.int32)}
    if variant.startswith("2a + b"):
        a, b = random.standard_normal((2, SMALL if variant.endswith("small") else N)).astype(np.float32)
        return {"a": a, "b": b}
    return {"keys": random.standard_normal(N).astype(np.float32)}


def numpy_call(variant, data):
    """A function that does the work in NumPy and returns the result; of a sort, the sorted keys."""
    if variant.startswith("product"):
        return lambda: data["a"] @ data["b"]
    if variant.startswith("2a + b"):
        return lambda: 2.0 * data["a"] + data["b"]
    keys = data["keys"]
    if variant == "sum":
        return lambda: np.array([keys.sum()])
    if variant == "scan":
        return lambda: np.cumsum(keys)

    def sort():
        order = np.argsort(keys, kind="stable")
        return keys[order]

    return sort


def expected(variant, data):
    if variant in ("sum", "scan"):
        data = {"keys": data["keys"].astype(np.float64)}
    return numpy_call(variant, data)()


def with_weft(wp, variant, data, options):
    if variant.startswith("product"):
        a, b = wp.array(data["a"]), wp.array(data["b"])
        d = wp.zeros_like(a)
        return measure.Job(lambda: wp.matmul(a, b, d, d), d.numpy)
    if variant.startswith("2a + b"):
        a, b = wp.array(data["a"]), wp.array(data["b"])
        return measure.Job(lambda: 2.0 * a + b, lambda: (2.0 * a + b).numpy())
    keys = wp.array(data["keys"])
    if variant == "sum":
        total = wp.zeros(1)
        return measure.Job(lambda: wp.utils.array_sum(keys, out=total), total.numpy)
    if variant == "scan":
        out = wp.zeros_like(keys)
        return measure.Job(lambda: wp.utils.array_scan(keys, out), out.numpy)
    work, values = wp.zeros_like(keys), wp.zeros(N, dtype=int)

    def sort():
        wp.copy(work, keys)
        wp.utils.radix_sort_pairs(work, values, N)

    return measure.Job(sort, work.numpy)


def with_numpy(numpy, variant, data, options):
    call = numpy_call(variant, data)
    return measure.Job(call, call)


if __name__ == "__main__":
    measure.throughput(
        "whole",
        __doc__,
        VARIANTS,
        problem,
        expected,
        {"weft": with_weft, "numpy": with_numpy},
        lambda variant: {"rtol": 1e-4, "atol": 1e-2},
    )
