"""The gradient of a chain of functions, sqrt(b + 1) cos(b) with b = exp(-(x sin x)²), of 4 M numbers, f32."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N = 1 << 22


def problem(variant):
    random = np.random.default_rng(1)
    return {
        "x": random.uniform(-1.5, 1.5, N).astype(np.float32),
        "seed": random.uniform(0.5, 1.5, N).astype(np.float32),
    }


def expected(variant, data):
    x = data["x"].astype(np.float64)
    a = np.sin(x) * x
    b = np.exp(-a * a)
    by_b = 0.5 / np.sqrt(b + 1.0) * np.cos(b) - np.sqrt(b + 1.0) * np.sin(b)
    return [data["seed"] * by_b * b * -2.0 * a * (np.cos(x) * x + np.sin(x))]


def with_warp(wp, variant, data, options):
    @wp.kernel
    def chain(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        v = x[i]
        a = wp.sin(v) * v
        b = wp.exp(-a * a)
        y[i] = wp.sqrt(b + 1.0) * wp.cos(b)

    x = wp.array(data["x"], dtype=float, device="cpu", requires_grad=True)
    y = wp.zeros(N, dtype=float, device="cpu", requires_grad=True)
    seed = wp.array(data["seed"], dtype=float, device="cpu")
    return measure.taped(wp, lambda: wp.launch(chain, dim=N, inputs=[x, y], device="cpu"), lambda: {y: seed}, [x])


def chain_of(library):
    def chain(x):
        a = library.sin(x) * x
        b = library.exp(-a * a)
        return library.sqrt(b + 1.0) * library.cos(b)

    return chain


def with_jax(jax, variant, data, options):
    return measure.of_jax(chain_of(jax.numpy), [data["x"]], data["seed"])


def with_torch(torch, variant, data, options):
    return measure.of_torch(chain_of(torch), [data["x"]], data["seed"])


def with_cpp(library, variant, data, options):
    x, seed = measure.aligned(data["x"]), measure.aligned(data["seed"])
    y, gradient = measure.aligned(np.zeros_like(x)), measure.aligned(np.zeros_like(x))
    return measure.Gradient(
        measure.call_cpp(library.forward, N, x, y),
        measure.call_cpp(library.both, N, x, seed, y, gradient),
        lambda: [gradient],
    )


if __name__ == "__main__":
    implementations = {"weft": with_warp, "peer": with_warp, "jax": with_jax, "torch": with_torch, "cpp": with_cpp}
    measure.gradients("elementwise", __doc__, ("chain",), problem, expected, implementations)
