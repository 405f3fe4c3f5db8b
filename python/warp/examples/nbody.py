"""Two disc galaxies pass each other: every star pulls at every other one.

    python -m warp.examples.nbody

Units: G = 1, mass of a galaxy 1, radius of its disc 1. Plummer softening; leapfrog (kick, drift, kick), so that energy
is kept over thousands of steps.
"""

from __future__ import annotations

import math
import time

import numpy as np

import warp as wp
from warp.examples import _show

SOFTENING = 0.08
CENTRE = 0.88  # share of a galaxy's mass


@wp.kernel
def attract(mass: wp.array[float], x: wp.array[wp.vec3], a: wp.array[wp.vec3]):
    """Acceleration of each star by all."""
    i = wp.tid()
    here = x[i]
    total = wp.vec3(0.0, 0.0, 0.0)
    for k in range(x.shape[0]):
        d = x[k] - here
        r2 = wp.dot(d, d) + SOFTENING * SOFTENING
        total += d * (mass[k] / (r2 * wp.sqrt(r2)))
    a[i] = total


@wp.kernel
def kick_drift(dt: float, a: wp.array[wp.vec3], v: wp.array[wp.vec3], x: wp.array[wp.vec3]):
    i = wp.tid()
    v[i] += 0.5 * dt * a[i]
    x[i] += dt * v[i]


@wp.kernel
def kick(dt: float, a: wp.array[wp.vec3], v: wp.array[wp.vec3]):
    i = wp.tid()
    v[i] += 0.5 * dt * a[i]


@wp.kernel
def energy(mass: wp.array[float], x: wp.array[wp.vec3], v: wp.array[wp.vec3], total: wp.array[wp.float64]):
    """Kinetic and potential energy, summed in double precision."""
    i = wp.tid()
    e = 0.5 * mass[i] * wp.dot(v[i], v[i])
    for k in range(x.shape[0]):
        if k != i:
            d = x[k] - x[i]
            e -= 0.5 * mass[i] * mass[k] / wp.sqrt(wp.dot(d, d) + SOFTENING * SOFTENING)
    wp.atomic_add(total, 0, wp.float64(e))


@wp.kernel
def splat(x: wp.array[wp.vec3], colour: wp.array[wp.vec3], zoom: float, picture: wp.array2d[wp.vec3]):
    """Adds the light of each star to the picture."""
    i = wp.tid()
    size = picture.shape[0]
    column = int(float(size) * (0.5 + zoom * x[i][0]))
    row = int(float(size) * (0.5 - zoom * x[i][1]))
    if row >= 1 and row < size - 1 and column >= 1 and column < size - 1:
        for dr in range(-1, 2):
            for dc in range(-1, 2):
                weight = 1.0 / (1.0 + 3.0 * float(dr * dr + dc * dc))
                wp.atomic_add(picture, row + dr, column + dc, weight * colour[i])


def galaxy(stars: int, rng: np.random.Generator, position, velocity, tilt: float) -> tuple[np.ndarray, ...]:
    """A heavy centre with most of the mass, which keeps the disc from breaking up, and stars on circular orbits."""
    r = np.sqrt(rng.uniform(0.04, 1.0, stars))
    angle = rng.uniform(0.0, 2.0 * np.pi, stars)
    inside = CENTRE + (1.0 - CENTRE) * r**2
    speed = np.sqrt(inside * r**2 / (r**2 + SOFTENING**2) ** 1.5)
    x = np.stack([r * np.cos(angle), r * np.sin(angle), 0.02 * rng.standard_normal(stars)], axis=1)
    v = np.stack([-speed * np.sin(angle), speed * np.cos(angle), np.zeros(stars)], axis=1)
    turn = np.array([[1, 0, 0], [0, math.cos(tilt), -math.sin(tilt)], [0, math.sin(tilt), math.cos(tilt)]])
    x, v = x @ turn.T, v @ turn.T
    x[0], v[0] = 0.0, 0.0
    mass = np.full(stars, (1.0 - CENTRE) / (stars - 1))
    mass[0] = CENTRE
    return mass, x + position, v + velocity


class Galaxies:
    def __init__(self, stars: int = 6144):
        rng = np.random.default_rng(42)
        half = stars // 2
        first = galaxy(half, rng, (-1.7, -0.9, 0.0), (0.45, 0.0, 0.0), 0.3)
        second = galaxy(half, rng, (1.7, 0.9, 0.2), (-0.45, 0.0, 0.0), -0.5)
        mass, x, v = (np.concatenate(pair) for pair in zip(first, second))
        self.stars = len(mass)
        self.mass = wp.array(mass, dtype=float)
        self.x = wp.array(x, dtype=wp.vec3)
        self.v = wp.array(v, dtype=wp.vec3)
        self.a = wp.zeros(self.stars, dtype=wp.vec3)
        warm = np.where(np.arange(self.stars)[:, None] < half, (0.9, 0.55, 0.25), (0.25, 0.5, 0.95))
        self.colour = wp.array(warm * rng.uniform(0.15, 0.7, (self.stars, 1)), dtype=wp.vec3)
        self.accelerate()

    def accelerate(self) -> None:
        wp.launch(attract, dim=self.stars, inputs=[self.mass, self.x], outputs=[self.a])

    def step(self, dt: float) -> None:
        wp.launch(kick_drift, dim=self.stars, inputs=[dt, self.a, self.v, self.x])
        self.accelerate()
        wp.launch(kick, dim=self.stars, inputs=[dt, self.a, self.v])

    def energy(self) -> float:
        total = wp.zeros(1, dtype=wp.float64)
        wp.launch(energy, dim=self.stars, inputs=[self.mass, self.x, self.v, total])
        return float(total.numpy()[0])

    def picture(self, pixels: int) -> np.ndarray:
        result = wp.zeros((pixels, pixels), dtype=wp.vec3)
        wp.launch(splat, dim=self.stars, inputs=[self.x, self.colour, 0.16], outputs=[result])
        return 1.0 - np.exp(-2.2 * result.numpy())


def main() -> None:
    options = _show.arguments(__doc__, stars=6144, steps=500, pixels=512)
    galaxies = Galaxies(options.stars)
    before = galaxies.energy()
    frames, start = [], time.perf_counter()
    for step in _show.progress(options.steps, "n-body"):
        galaxies.step(0.008)
        if step % 8 == 0:
            frames.append(_show.to_bytes(galaxies.picture(options.pixels)))
    seconds = time.perf_counter() - start
    pairs = options.steps * galaxies.stars**2 / seconds / 1e9
    change = abs(galaxies.energy() / before - 1.0)
    print(f"{options.steps} steps in {seconds:.1f} s: {pairs:.2f} billion pairs/s; energy kept to {change:.1e}")
    _show.save_png(options.out / "nbody.png", galaxies.picture(options.pixels + options.pixels // 2))
    _show.save_gif(options.out / "nbody.gif", frames)


if __name__ == "__main__":
    main()
