"""The gradient of the forces among 2048 bodies, all pairs, f32, by their places."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N, SOFTENING = 2048, 0.01


def problem(variant):
    random = np.random.default_rng(2)
    return {name: random.uniform(-1.0, 1.0, (N, 3)).astype(np.float32) for name in ("x", "seed")}


def expected(variant, data):
    x, seed = data["x"].astype(np.float64), data["seed"].astype(np.float64)
    result = np.zeros_like(x)
    for begin in range(0, N, 256):
        d = x[None] - x[begin : begin + 256, None]
        inverse = 1.0 / np.sqrt((d * d).sum(axis=2) + SOFTENING)
        s = seed[begin : begin + 256, None]
        by_d = s * inverse[..., None] ** 3 - 3.0 * d * ((s * d).sum(axis=2) * inverse**5)[..., None]
        result += by_d.sum(axis=0)
        result[begin : begin + 256] -= by_d.sum(axis=1)
    return [result]


def with_warp(wp, variant, data, options):
    @wp.kernel
    def forces(n: int, softening: float, x: wp.array(dtype=wp.vec3), force: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        p = x[i]
        total = wp.vec3()
        for j in range(n):
            d = x[j] - p
            inverse = 1.0 / wp.sqrt(wp.dot(d, d) + softening)
            total = total + d * (inverse * inverse * inverse)
        force[i] = total

    x = wp.array(data["x"], dtype=wp.vec3, device="cpu", requires_grad=True)
    force = wp.zeros(N, dtype=wp.vec3, device="cpu", requires_grad=True)
    seed = wp.array(data["seed"], dtype=wp.vec3, device="cpu")
    launch = lambda: wp.launch(forces, dim=N, inputs=[N, SOFTENING, x, force], device="cpu")  # noqa: E731
    return measure.taped(wp, launch, lambda: {force: seed}, [x])


def with_jax(jax, variant, data, options):
    def forces(x):
        d = x[None, :, :] - x[:, None, :]
        inverse = jax.lax.rsqrt((d * d).sum(axis=2) + SOFTENING)
        return (d * (inverse**3)[..., None]).sum(axis=1)

    return measure.of_jax(forces, [data["x"]], data["seed"])


def with_torch(torch, variant, data, options):
    def forces(x):
        d = x[None, :, :] - x[:, None, :]
        inverse = torch.rsqrt((d * d).sum(dim=2) + SOFTENING)
        return (d * (inverse**3)[..., None]).sum(dim=1)

    return measure.of_torch(forces, [data["x"]], data["seed"])


def with_cpp(library, variant, data, options):
    x, seed = (measure.aligned(np.ascontiguousarray(data[name].T)) for name in ("x", "seed"))
    force, gradient = measure.aligned(np.zeros_like(x)), measure.aligned(np.zeros_like(x))
    softening = np.float32(SOFTENING)
    return measure.Gradient(
        measure.call_cpp(library.forward, N, softening, x, force),
        measure.call_cpp(library.both, N, softening, x, seed, force, gradient),
        lambda: [gradient.T],
    )


if __name__ == "__main__":
    implementations = {"weft": with_warp, "peer": with_warp, "jax": with_jax, "torch": with_torch, "cpp": with_cpp}
    measure.gradients("pairs", __doc__, ("forces",), problem, expected, implementations, tolerance=1e-3)
