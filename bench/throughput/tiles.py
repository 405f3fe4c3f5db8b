"""Kernels of tiles, one block for each problem: a product of 64 x 64, factor and solution of 16 x 16, the dot product
of 256 numbers, 128 pairs sorted, the sum of 1024 numbers; and the dot product of the same numbers in plain loops."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

# As many as stay in the second cache, but for solve16.
BLOCKS = {"matmul64": 64, "solve16": 1024, "dot256": 256, "loop256": 256, "sort128": 512, "sum1024": 128}
LANES = 64  # of a block on devices that have as many; on the CPU a block has one


def problem(variant):
    n, random = BLOCKS[variant], np.random.default_rng(0)
    numbers = lambda *shape: random.standard_normal((n, *shape)).astype(np.float32)  # noqa: E731
    if variant == "matmul64":
        return {"a": numbers(64, 64), "b": numbers(64, 64)}
    if variant == "solve16":
        a = numbers(16, 16)
        return {"a": a @ a.transpose(0, 2, 1) + 4.0 * np.eye(16, dtype=np.float32), "b": numbers(16)}
    if variant == "sort128":
        return {"a": numbers(128), "b": np.tile(np.arange(128, dtype=np.int32), (n, 1))}
    width = 1024 if variant == "sum1024" else 256
    return {"a": numbers(width), "b": numbers(width)}


def expected(variant, data):
    a, b = (each.astype(np.float64) for each in (data["a"], data["b"]))
    if variant == "matmul64":
        return a @ b
    if variant == "solve16":
        return np.linalg.solve(a, b[..., None])[..., 0]
    if variant == "sort128":
        return np.argsort(a, axis=1)
    return a.sum(axis=1) if variant == "sum1024" else (a * b).sum(axis=1)


def with_warp(wp, variant, data, options):
    @wp.kernel(enable_backward=False)
    def matmul64(a: wp.array3d(dtype=float), b: wp.array3d(dtype=float), out: wp.array3d(dtype=float)):
        i = wp.tid()
        x = wp.tile_load(a[i], shape=(64, 64))
        y = wp.tile_load(b[i], shape=(64, 64))
        wp.tile_store(out[i], wp.tile_matmul(x, y))

    @wp.kernel(enable_backward=False)
    def solve16(a: wp.array3d(dtype=float), b: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
        i = wp.tid()
        factor = wp.tile_cholesky(wp.tile_load(a[i], shape=(16, 16)))
        wp.tile_store(out[i], wp.tile_cholesky_solve(factor, wp.tile_load(b[i], shape=16)))

    @wp.kernel(enable_backward=False)
    def dot256(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), out: wp.array(dtype=float)):
        i = wp.tid()
        product = wp.tile_map(wp.mul, wp.tile_load(a[i], shape=256), wp.tile_load(b[i], shape=256))
        wp.tile_store(out, wp.tile_sum(product), offset=i)

    @wp.kernel(enable_backward=False)
    def loop256(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), out: wp.array(dtype=float)):
        i = wp.tid()
        total = wp.float32(0.0)
        for j in range(256):
            total += a[i, j] * b[i, j]
        out[i] = total

    @wp.kernel(enable_backward=False)
    def sort128(a: wp.array2d(dtype=float), b: wp.array2d(dtype=int), out: wp.array2d(dtype=int)):
        i = wp.tid()
        keys = wp.tile_load(a[i], shape=128)
        values = wp.tile_load(b[i], shape=128)
        wp.tile_sort(keys, values)
        wp.tile_store(out[i], values)

    @wp.kernel(enable_backward=False)
    def sum1024(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), out: wp.array(dtype=float)):
        i = wp.tid()
        wp.tile_store(out, wp.tile_sum(wp.tile_load(a[i], shape=1024)), offset=i)

    kernels = dict(zip(BLOCKS, (matmul64, solve16, dot256, loop256, sort128, sum1024), strict=True))
    kernel, n = kernels[variant], BLOCKS[variant]
    shape = {"matmul64": (n, 64, 64), "solve16": (n, 16), "sort128": (n, 128)}.get(variant, (n,))
    out = wp.zeros(shape, dtype=int if variant == "sort128" else float, device="cpu")
    inputs = [*(wp.array(each, device="cpu") for each in (data["a"], data["b"])), out]
    if variant == "loop256":
        return measure.Job(lambda: wp.launch(kernel, dim=n, inputs=inputs, device="cpu"), out.numpy)
    return measure.Job(
        lambda: wp.launch_tiled(kernel, dim=[n], inputs=inputs, block_dim=LANES, device="cpu"), out.numpy
    )


if __name__ == "__main__":
    measure.throughput(
        "tiles",
        __doc__,
        tuple(BLOCKS),
        problem,
        expected,
        {"weft": with_warp, "peer": with_warp},
        lambda variant: {"rtol": 2e-3, "atol": 2e-3},
    )
