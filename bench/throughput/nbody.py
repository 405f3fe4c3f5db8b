"""Gravity among 4096 bodies, all pairs: bound by arithmetic, with one square root and one division per pair.

Variants: `f32`, `f64`; `terms` gives each body a mass and a softening with an exponent of its own, (r² + ε²)^-p.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N = 4096
SOFTENING, EXPONENT = 0.01, 1.4


def problem(variant):
    dtype = np.float64 if variant == "f64" else np.float32
    random = np.random.default_rng(2)
    return {
        "x": random.uniform(-1.0, 1.0, (N, 3)).astype(dtype),
        "mass": random.uniform(0.5, 1.5, N).astype(dtype),
        "dtype": dtype,
    }


def expected(variant, data):
    x = data["x"].astype(np.float64)
    mass = data["mass"].astype(np.float64)
    result = np.empty_like(x)
    for begin in range(0, N, 256):
        d = x[None, :, :] - x[begin : begin + 256, None, :]
        r2 = np.einsum("ijk,ijk->ij", d, d) + SOFTENING
        weight = mass * r2**-EXPONENT if variant == "terms" else r2**-1.5
        result[begin : begin + 256] = np.einsum("ij,ijk->ik", weight, d)
    return result


def with_warp(wp, variant, data, options):
    real = wp.float64 if variant == "f64" else wp.float32
    vector = wp.vec3d if variant == "f64" else wp.vec3

    @wp.kernel
    def forces(n: int, softening: real, x: wp.array(dtype=vector), force: wp.array(dtype=vector)):
        i = wp.tid()
        p = x[i]
        total = vector()
        for j in range(n):
            d = x[j] - p
            r2 = wp.dot(d, d) + softening
            inverse = real(1.0) / wp.sqrt(r2)
            total = total + d * (inverse * inverse * inverse)
        force[i] = total

    @wp.kernel
    def forces_terms(
        n: int,
        softening: float,
        exponent: float,
        x: wp.array(dtype=wp.vec3),
        mass: wp.array(dtype=float),
        force: wp.array(dtype=wp.vec3),
    ):
        i = wp.tid()
        p = x[i]
        total = wp.vec3()
        for j in range(n):
            d = x[j] - p
            r2 = wp.dot(d, d) + softening
            total = total + d * (mass[j] * wp.pow(r2, -exponent))
        force[i] = total

    x = wp.array(data["x"], dtype=vector, device="cpu")
    mass = wp.array(data["mass"], dtype=real, device="cpu")
    force = wp.zeros(N, dtype=vector, device="cpu")

    def run():
        if variant == "terms":
            wp.launch(forces_terms, dim=N, inputs=[N, SOFTENING, EXPONENT, x, mass, force], device="cpu")
        else:
            wp.launch(forces, dim=N, inputs=[N, SOFTENING, x, force], device="cpu")

    return measure.Job(run, force.numpy)


def with_numba(numba, variant, data, options):
    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def forces(softening, zero, one, x, force):
        for i in numba.prange(x.shape[0]):
            px, py, pz = x[i, 0], x[i, 1], x[i, 2]
            fx, fy, fz = zero, zero, zero
            for j in range(x.shape[0]):
                dx, dy, dz = x[j, 0] - px, x[j, 1] - py, x[j, 2] - pz
                r2 = dx * dx + dy * dy + dz * dz + softening
                inverse = one / np.sqrt(r2)
                inverse = inverse * inverse * inverse
                fx = fx + dx * inverse
                fy = fy + dy * inverse
                fz = fz + dz * inverse
            force[i, 0], force[i, 1], force[i, 2] = fx, fy, fz

    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def forces_terms(softening, exponent, zero, x, mass, force):
        for i in numba.prange(x.shape[0]):
            px, py, pz = x[i, 0], x[i, 1], x[i, 2]
            fx, fy, fz = zero, zero, zero
            for j in range(x.shape[0]):
                dx, dy, dz = x[j, 0] - px, x[j, 1] - py, x[j, 2] - pz
                r2 = dx * dx + dy * dy + dz * dz + softening
                weight = mass[j] * r2**-exponent
                fx = fx + dx * weight
                fy = fy + dy * weight
                fz = fz + dz * weight
            force[i, 0], force[i, 1], force[i, 2] = fx, fy, fz

    dtype = data["dtype"]
    x, mass, force = data["x"], data["mass"], np.zeros_like(data["x"])

    def run():
        if variant == "terms":
            forces_terms(dtype(SOFTENING), dtype(EXPONENT), dtype(0), x, mass, force)
        else:
            forces(dtype(SOFTENING), dtype(0), dtype(1), x, force)

    return measure.Job(run, lambda: force)


def with_cpp(library, variant, data, options):
    dtype = data["dtype"]
    x, mass = measure.aligned(data["x"]), measure.aligned(data["mass"])
    force = measure.aligned(np.zeros_like(x))
    if variant == "terms":
        run = measure.call_cpp(library.forces_terms, N, dtype(SOFTENING), dtype(EXPONENT), x, mass, force)
    else:
        run = measure.call_cpp(library[f"forces_{variant}"], N, dtype(SOFTENING), x, force)
    return measure.Job(run, lambda: force)


if __name__ == "__main__":
    measure.throughput(
        "nbody",
        __doc__,
        ("f32", "terms", "f64"),
        problem,
        expected,
        {"weft": with_warp, "peer": with_warp, "numba": with_numba, "cpp": with_cpp},
        lambda variant: {"rtol": 1e-3, "atol": 2e-1 if variant != "f64" else 1e-6},
    )
