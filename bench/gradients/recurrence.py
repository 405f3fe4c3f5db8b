"""The gradient of a loop of 1000 steps that feeds itself, s = s + dt sin(p s) - drag s³, in 16 k threads, f32."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N, STEPS = 16384, 1000
DT, DRAG = 0.001, 0.0001


def problem(variant):
    random = np.random.default_rng(7)
    ranges = {"s": (0.2, 1.0), "p": (0.5, 1.5), "seed": (-1.0, 1.0)}
    return {name: random.uniform(low, high, N).astype(np.float32) for name, (low, high) in ranges.items()}


def expected(variant, data):
    s, p = data["s"].astype(np.float64), data["p"].astype(np.float64)
    kept = []
    for _ in range(STEPS):
        kept.append(s)
        s = s + DT * np.sin(p * s) - DRAG * s * s * s
    by_s, by_p = data["seed"].astype(np.float64), np.zeros(N)
    for s in reversed(kept):
        slope = by_s * DT * np.cos(p * s)
        by_p += slope * s
        by_s = by_s * (1.0 - 3.0 * DRAG * s * s) + slope * p
    return [by_s, by_p]


def with_warp(wp, variant, data, options):
    @wp.kernel
    def grow(steps: int, start: wp.array(dtype=float), rate: wp.array(dtype=float), end: wp.array(dtype=float)):
        i = wp.tid()
        s = start[i]
        p = rate[i]
        for _ in range(steps):
            s = s + 0.001 * wp.sin(p * s) - 0.0001 * s * s * s
        end[i] = s

    s, p = (wp.array(data[name], dtype=float, device="cpu", requires_grad=True) for name in ("s", "p"))
    end = wp.zeros(N, dtype=float, device="cpu", requires_grad=True)
    seed = wp.array(data["seed"], dtype=float, device="cpu")
    launch = lambda: wp.launch(grow, dim=N, inputs=[STEPS, s, p, end], device="cpu")  # noqa: E731
    return measure.taped(wp, launch, lambda: {end: seed}, [s, p])


def with_jax(jax, variant, data, options):
    def grow(s, p):
        def step(s, _):
            return s + DT * jax.numpy.sin(p * s) - DRAG * s * s * s, None

        return jax.lax.scan(step, s, None, length=STEPS)[0]

    return measure.of_jax(grow, [data["s"], data["p"]], data["seed"])


def with_torch(torch, variant, data, options):
    def grow(s, p):
        for _ in range(STEPS):
            s = s + DT * torch.sin(p * s) - DRAG * s * s * s
        return s

    return measure.of_torch(grow, [data["s"], data["p"]], data["seed"])


def with_cpp(library, variant, data, options):
    s, p, seed = (measure.aligned(data[name]) for name in ("s", "p", "seed"))
    end, by_s, by_p = (measure.aligned(np.zeros_like(s)) for _ in range(3))
    return measure.Gradient(
        measure.call_cpp(library.forward, N, STEPS, s, p, end),
        measure.call_cpp(library.both, N, STEPS, s, p, seed, end, by_s, by_p),
        lambda: [by_s, by_p],
    )


if __name__ == "__main__":
    implementations = {"weft": with_warp, "peer": with_warp, "jax": with_jax, "torch": with_torch, "cpp": with_cpp}
    measure.gradients("recurrence", __doc__, ("loop",), problem, expected, implementations, tolerance=1e-3)
