"""The gradient of the five-point Laplacian of 2048² numbers, f32.

Variants: `border` leaves the border out with an `if`; `clamped` takes the nearest inside in its place.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N = 2048


def problem(variant):
    random = np.random.default_rng(4)
    return {name: random.uniform(-1.0, 1.0, (N, N)).astype(np.float32) for name in ("u", "seed")}


def expected(variant, data):
    seed = data["seed"].astype(np.float64)
    if variant == "border":
        inner = np.zeros_like(seed)
        inner[1:-1, 1:-1] = seed[1:-1, 1:-1]
        result = -4.0 * inner
        result[:-1] += inner[1:]
        result[1:] += inner[:-1]
        result[:, :-1] += inner[:, 1:]
        result[:, 1:] += inner[:, :-1]
        return [result]
    result = -4.0 * seed
    for axis in range(2):
        one, other = np.moveaxis(result, axis, 0), np.moveaxis(seed, axis, 0)
        one[:-1] += other[1:]
        one[0] += other[0]
        one[1:] += other[:-1]
        one[-1] += other[-1]
    return [result]


def with_warp(wp, variant, data, options):
    @wp.kernel
    def border(u: wp.array(dtype=float, ndim=2), result: wp.array(dtype=float, ndim=2)):
        i, j = wp.tid()
        if i > 0 and j > 0 and i < u.shape[0] - 1 and j < u.shape[1] - 1:
            result[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]

    @wp.kernel
    def clamped(u: wp.array(dtype=float, ndim=2), result: wp.array(dtype=float, ndim=2)):
        i, j = wp.tid()
        above = u[wp.max(i - 1, 0), j]
        below = u[wp.min(i + 1, u.shape[0] - 1), j]
        left = u[i, wp.max(j - 1, 0)]
        right = u[i, wp.min(j + 1, u.shape[1] - 1)]
        result[i, j] = above + below + left + right - 4.0 * u[i, j]

    kernel = border if variant == "border" else clamped
    u = wp.array(data["u"], dtype=float, device="cpu", requires_grad=True)
    result = wp.zeros((N, N), dtype=float, device="cpu", requires_grad=True)
    seed = wp.array(data["seed"], dtype=float, device="cpu")
    launch = lambda: wp.launch(kernel, dim=(N, N), inputs=[u, result], device="cpu")  # noqa: E731
    return measure.taped(wp, launch, lambda: {result: seed}, [u])


def laplacian(u):
    return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * u[1:-1, 1:-1]


def with_jax(jax, variant, data, options):
    if variant == "border":
        return measure.of_jax(lambda u: jax.numpy.pad(laplacian(u), 1), [data["u"]], data["seed"])
    return measure.of_jax(lambda u: laplacian(jax.numpy.pad(u, 1, mode="edge")), [data["u"]], data["seed"])


def with_torch(torch, variant, data, options):
    pad = torch.nn.functional.pad
    if variant == "border":
        return measure.of_torch(lambda u: pad(laplacian(u), (1, 1, 1, 1)), [data["u"]], data["seed"])
    return measure.of_torch(
        lambda u: laplacian(pad(u[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]), [data["u"]], data["seed"]
    )


def with_cpp(library, variant, data, options):
    u, seed = measure.aligned(data["u"]), measure.aligned(data["seed"])
    result, gradient = measure.aligned(np.zeros_like(u)), measure.aligned(np.zeros_like(u))
    clamped = int(variant == "clamped")
    return measure.Gradient(
        measure.call_cpp(library.forward, N, clamped, u, result),
        measure.call_cpp(library.both, N, clamped, u, seed, result, gradient),
        lambda: [gradient],
    )


if __name__ == "__main__":
    implementations = {"weft": with_warp, "peer": with_warp, "jax": with_jax, "torch": with_torch, "cpp": with_cpp}
    measure.gradients("stencil", __doc__, ("border", "clamped"), problem, expected, implementations)
