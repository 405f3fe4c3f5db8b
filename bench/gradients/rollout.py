"""The gradient of 100 steps of 16 k particles in a field, f32, by their first positions and velocities.

Variants: `launches` is a launch for each step, from one array to the next; `loop` is one launch with the loop in the
kernel. The others run the same program for both.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N, STEPS, DT, DRAG = 16384, 100, 0.02, 0.1


def problem(variant):
    random = np.random.default_rng(3)
    return {name: random.uniform(-1.0, 1.0, (N, 3)).astype(np.float32) for name in ("x", "v", "seed")}


def expected(variant, data):
    x, v = data["x"].astype(np.float64), data["v"].astype(np.float64)
    kept = []
    for _ in range(STEPS):
        kept.append(x)
        r2 = (x * x).sum(axis=1, keepdims=True) + 0.1
        v = v + DT * (-x / r2 - DRAG * v)
        x = x + DT * v
    by_x, by_v = data["seed"].astype(np.float64), np.zeros_like(v)
    for x in reversed(kept):
        by_v = by_v + DT * by_x
        r2 = (x * x).sum(axis=1, keepdims=True) + 0.1
        by_x = by_x - DT * (by_v / r2 - 2.0 * x * (by_v * x).sum(axis=1, keepdims=True) / r2**2)
        by_v = by_v * (1.0 - DT * DRAG)
    return [by_x, by_v]


def with_warp(wp, variant, data, options):
    @wp.kernel
    def step(
        x: wp.array(dtype=wp.vec3),
        v: wp.array(dtype=wp.vec3),
        x_new: wp.array(dtype=wp.vec3),
        v_new: wp.array(dtype=wp.vec3),
    ):
        i = wp.tid()
        p = x[i]
        speed = v[i]
        speed = speed + (p * (-1.0 / (wp.dot(p, p) + 0.1)) - speed * 0.1) * 0.02
        v_new[i] = speed
        x_new[i] = p + speed * 0.02

    @wp.kernel
    def fly(
        steps: int,
        x: wp.array(dtype=wp.vec3),
        v: wp.array(dtype=wp.vec3),
        x_new: wp.array(dtype=wp.vec3),
    ):
        i = wp.tid()
        p = x[i]
        speed = v[i]
        for _ in range(steps):
            speed = speed + (p * (-1.0 / (wp.dot(p, p) + 0.1)) - speed * 0.1) * 0.02
            p = p + speed * 0.02
        x_new[i] = p

    def start(values):
        return wp.array(values, dtype=wp.vec3, device="cpu", requires_grad=True)

    def empty():
        return wp.zeros(N, dtype=wp.vec3, device="cpu", requires_grad=True)

    x, v, seed = start(data["x"]), start(data["v"]), wp.array(data["seed"], dtype=wp.vec3, device="cpu")
    if variant == "loop":
        end = empty()
        launch = lambda: wp.launch(fly, dim=N, inputs=[STEPS, x, v, end], device="cpu")  # noqa: E731
        return measure.taped(wp, launch, lambda: {end: seed}, [x, v])
    xs, vs = [x] + [empty() for _ in range(STEPS)], [v] + [empty() for _ in range(STEPS)]

    def forward():
        for t in range(STEPS):
            wp.launch(step, dim=N, inputs=[xs[t], vs[t], xs[t + 1], vs[t + 1]], device="cpu")

    return measure.taped(wp, forward, lambda: {xs[-1]: seed}, [x, v])


def with_jax(jax, variant, data, options):
    def step(state, _):
        x, v = state
        r2 = (x * x).sum(axis=1, keepdims=True) + 0.1
        v = v + DT * (-x / r2 - DRAG * v)
        return (x + DT * v, v), None

    return measure.of_jax(
        lambda x, v: jax.lax.scan(step, (x, v), None, length=STEPS)[0][0], [data["x"], data["v"]], data["seed"]
    )


def with_torch(torch, variant, data, options):
    def rollout(x, v):
        for _ in range(STEPS):
            r2 = (x * x).sum(dim=1, keepdim=True) + 0.1
            v = v + DT * (-x / r2 - DRAG * v)
            x = x + DT * v
        return x

    return measure.of_torch(rollout, [data["x"], data["v"]], data["seed"])


def with_cpp(library, variant, data, options):
    x, v, seed = (measure.aligned(data[name]) for name in ("x", "v", "seed"))
    end, by_x, by_v = (measure.aligned(np.zeros_like(x)) for _ in range(3))
    return measure.Gradient(
        measure.call_cpp(library.forward, N, x, v, end),
        measure.call_cpp(library.both, N, x, v, seed, end, by_x, by_v),
        lambda: [by_x, by_v],
    )


if __name__ == "__main__":
    implementations = {"weft": with_warp, "peer": with_warp, "jax": with_jax, "torch": with_torch, "cpp": with_cpp}
    measure.gradients("rollout", __doc__, ("launches", "loop"), problem, expected, implementations)
