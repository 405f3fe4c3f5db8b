"""One explicit step of 1 M particles, arrays of vec3: 24 bytes read and written per particle, unaligned to the lanes.

Variants: `vec3`; `terms` adds drag and a bounce off the floor; `vec3d` is `vec3` in f64.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N = 1 << 20
DT, GRAVITY, DRAG, BOUNCE = 0.001, -9.81, 0.1, 0.7


def problem(variant):
    dtype = np.float64 if variant == "vec3d" else np.float32
    random = np.random.default_rng(1)
    return {
        "x": random.uniform(0.0, 1.0, (N, 3)).astype(dtype),
        "v": random.uniform(-1.0, 1.0, (N, 3)).astype(dtype),
        "dtype": dtype,
    }


def expected(variant, data):
    dtype = data["dtype"]
    x, v = data["x"], data["v"]
    acceleration = np.array([0.0, GRAVITY, 0.0], dtype=dtype)
    if variant == "terms":
        speed = np.sqrt((v * v).sum(axis=1, keepdims=True))
        acceleration = acceleration - dtype(DRAG) * speed * v
    v = v + acceleration * dtype(DT)
    x = x + v * dtype(DT)
    if variant == "terms":
        below = x[:, 1] < 0.0
        x[below, 1] *= -1.0
        v[below, 1] *= -dtype(BOUNCE)
    return np.stack([x, v])


def with_warp(wp, variant, data, options):
    real = wp.float64 if variant == "vec3d" else wp.float32
    vector = wp.vec3d if variant == "vec3d" else wp.vec3

    @wp.kernel
    def step(dt: real, gravity: vector, x: wp.array(dtype=vector), v: wp.array(dtype=vector)):
        i = wp.tid()
        velocity = v[i] + gravity * dt
        v[i] = velocity
        x[i] = x[i] + velocity * dt

    @wp.kernel
    def step_terms(
        dt: float, gravity: wp.vec3, drag: float, bounce: float, x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3)
    ):
        i = wp.tid()
        velocity = v[i]
        velocity = velocity + (gravity - drag * wp.length(velocity) * velocity) * dt
        position = x[i] + velocity * dt
        if position[1] < 0.0:
            position = wp.vec3(position[0], -position[1], position[2])
            velocity = wp.vec3(velocity[0], -bounce * velocity[1], velocity[2])
        x[i] = position
        v[i] = velocity

    x = wp.array(data["x"], dtype=vector)
    v = wp.array(data["v"], dtype=vector)
    gravity = vector(0.0, GRAVITY, 0.0)

    def run():
        if variant == "terms":
            wp.launch(step_terms, dim=N, inputs=[DT, gravity, DRAG, BOUNCE, x, v])
        else:
            wp.launch(step, dim=N, inputs=[DT, gravity, x, v])

    return measure.Job(run, lambda: np.stack([x.numpy(), v.numpy()]))


def with_numba(numba, variant, data, options):
    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def step(dt, gravity, x, v):
        for i in numba.prange(x.shape[0]):
            for c in range(3):
                velocity = v[i, c] + gravity[c] * dt
                v[i, c] = velocity
                x[i, c] = x[i, c] + velocity * dt

    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def step_terms(dt, gravity, drag, bounce, x, v):
        for i in numba.prange(x.shape[0]):
            vx, vy, vz = v[i, 0], v[i, 1], v[i, 2]
            slow = drag * np.sqrt(vx * vx + vy * vy + vz * vz)
            vx = vx + (gravity[0] - slow * vx) * dt
            vy = vy + (gravity[1] - slow * vy) * dt
            vz = vz + (gravity[2] - slow * vz) * dt
            px = x[i, 0] + vx * dt
            py = x[i, 1] + vy * dt
            pz = x[i, 2] + vz * dt
            if py < 0.0:
                py = -py
                vy = -bounce * vy
            x[i, 0], x[i, 1], x[i, 2] = px, py, pz
            v[i, 0], v[i, 1], v[i, 2] = vx, vy, vz

    dtype = data["dtype"]
    x, v = data["x"].copy(), data["v"].copy()
    gravity = np.array([0.0, GRAVITY, 0.0], dtype=dtype)
    dt, drag, bounce = dtype(DT), dtype(DRAG), dtype(BOUNCE)

    def run():
        if variant == "terms":
            step_terms(dt, gravity, drag, bounce, x, v)
        else:
            step(dt, gravity, x, v)

    return measure.Job(run, lambda: np.stack([x, v]))


def with_cpp(library, variant, data, options):
    x, v = measure.aligned(data["x"]), measure.aligned(data["v"])
    dtype = data["dtype"]
    if variant == "terms":
        run = measure.call_cpp(library.step_terms, N, dtype(DT), dtype(GRAVITY), dtype(DRAG), dtype(BOUNCE), x, v)
    else:
        run = measure.call_cpp(library[f"step_{variant}"], N, dtype(DT), dtype(GRAVITY), x, v)
    return measure.Job(run, lambda: np.stack([x, v]))


if __name__ == "__main__":
    measure.throughput(
        "particles",
        __doc__,
        ("vec3", "terms", "vec3d"),
        problem,
        expected,
        {"weft": with_warp, "peer": with_warp, "numba": with_numba, "cpp": with_cpp},
        lambda variant: {"rtol": 1e-5, "atol": 1e-6},
    )
