"""Kernels for the tests of jax_kernel, each with the same formula in JAX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import jax.numpy as jnp
import numpy as np
import warp as wp


@wp.kernel
def wave(x: wp.array[float], y: wp.array[float], z: wp.array[float]):
    i = wp.tid()
    z[i] = wp.sin(x[i]) * y[i] + x[i] * x[i]


@wp.kernel
def pair(x: wp.array[float], y: wp.array[float], total: wp.array[float], product: wp.array2d[float]):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i] * y[i])
    product[i, 0] = x[i] * x[i]
    product[i, 1] = wp.exp(y[i])


@wp.kernel
def turn(x: wp.array[wp.vec3], y: wp.array[float], z: wp.array[wp.vec3]):
    i = wp.tid()
    z[i] = wp.cross(x[i], wp.vec3(1.0, 2.0, 3.0)) * y[i] + x[i] * wp.dot(x[i], x[i])


@dataclass(frozen=True)
class Case:
    """`options` are those of jax_kernel; `inner` the shape of an element of the first argument."""

    name: str
    kernel: Any
    options: dict
    formula: Callable
    inner: tuple[int, ...] = ()

    def function(self) -> Callable:
        return wp.jax_kernel(self.kernel, **self.options)

    def arguments(self, *leading: int, seed: int = 0) -> tuple:
        """Two arrays of numbers, the last dimension but the elements' being 5."""
        rng = np.random.default_rng(seed)
        return (
            jnp.asarray(rng.uniform(-1, 1, (*leading, 5, *self.inner)).astype(np.float32)),
            jnp.asarray(rng.uniform(-1, 1, (*leading, 5)).astype(np.float32)),
        )


def _turned(x, y):
    axis = jnp.array([1.0, 2.0, 3.0])
    return [jnp.cross(x, axis) * y[..., None] + x * jnp.sum(x * x, axis=-1, keepdims=True)]


CASES = [
    Case("one output", wave, {}, lambda x, y: [jnp.sin(x) * y + x * x]),
    Case(
        "two outputs",
        pair,
        {"num_outputs": 2, "output_dims": {"total": 1, "product": (5, 2)}},
        lambda x, y: [jnp.sum(x * y)[None], jnp.stack([x * x, jnp.exp(y)], axis=-1)],
    ),
    Case("vectors", turn, {}, _turned, (3,)),
]


def loss(function: Callable) -> Callable:
    """A number from all outputs, in which each has a weight of its own."""

    def total(*args):
        return sum(
            jnp.sum(jnp.cos(output * (1.0 + jnp.arange(output.size).reshape(output.shape) / output.size)))
            for output in function(*args)
        )

    return total


def agree(found, expected, tolerance=2e-5):
    """Each array of the first agrees with that of the second; gradients that vanish would prove nothing."""
    import jax

    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        assert np.any(np.asarray(other) != 0)
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
