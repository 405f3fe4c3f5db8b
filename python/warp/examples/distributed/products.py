"""A product of matrices with JAX: the left factor is cut by rows, each process multiplies its rows.

    mpirun -np 2 python -m warp.examples.distributed.products

`shard_map` calls the kernel once for each device with the device's part of the arrays, so the kernel sees its own rows
only. JAX moves the rest: here the right factor, which every device needs, and the rows of the result when they are
gathered.
"""

from __future__ import annotations

import argparse
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.multihost_utils import process_allgather
from jax.sharding import NamedSharding, PartitionSpec

import warp as wp
from warp.jax_experimental import jax_kernel


@wp.kernel
def multiply(a: wp.array2d[float], b: wp.array2d[float], c: wp.array2d[float]):
    i, j = wp.tid()
    total = float(0.0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[k, j]
    c[i, j] = total


@wp.kernel
def double(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = 2.0 * x[i]


def on_each_device(function, inputs, outputs):
    """The function of one device's parts of arrays, as a function of the arrays that lie on all devices."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()), "x")
    return mesh, jax.jit(jax.shard_map(function, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False))


def doubled(x: np.ndarray) -> np.ndarray:
    """Twice the numbers, each device its part."""
    kernel = jax_kernel(double)
    mesh, run = on_each_device(lambda part: kernel(part)[0], (PartitionSpec("x"),), PartitionSpec("x"))
    return process_allgather(run(jax.device_put(x, NamedSharding(mesh, PartitionSpec("x")))), tiled=True)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of two matrices, each device some rows; their number is a multiple of the devices."""
    rows = len(a) // jax.device_count()
    kernel = jax_kernel(multiply, launch_dims=(rows, b.shape[1]))
    by_rows, everywhere = PartitionSpec("x", None), PartitionSpec(None, None)
    mesh, run = on_each_device(lambda own, whole: kernel(own, whole)[0], (by_rows, everywhere), by_rows)
    found = run(jax.device_put(a, NamedSharding(mesh, by_rows)), jax.device_put(b, NamedSharding(mesh, everywhere)))
    assert all(part.data.shape == (rows, b.shape[1]) for part in found.addressable_shards)
    return process_allgather(found, tiled=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=256)
    size = parser.parse_args().size
    if "OMPI_COMM_WORLD_SIZE" in os.environ:
        jax.distributed.initialize()  # before anything else that JAX does
    size -= size % jax.device_count()
    random = np.random.default_rng(5)
    a, b = (random.normal(size=(size, size)).astype(np.float32) for _ in range(2))
    found, x = product(a, b), np.arange(size, dtype=np.float32)
    is_doubled = np.array_equal(doubled(x), 2.0 * x)
    if jax.process_index() == 0:
        print(f"{jax.process_count()} processes, {jax.device_count()} devices, {size} rows")
        print(f"doubled: {is_doubled}")
        print(f"largest difference from NumPy: {np.abs(found - a @ b).max():.2g}")
        print(f"largest difference from JAX: {float(jnp.abs(found - jnp.matmul(a, b)).max()):.2g}")


if __name__ == "__main__":
    main()
