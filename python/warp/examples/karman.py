"""A Kármán vortex street: air behind a cylinder, by the lattice Boltzmann method.

    python -m warp.examples.karman

Nine populations of particles per cell (D2Q9) stream to the neighbours and relax towards equilibrium (BGK, one
relaxation time), after S. Chen and G. D. Doolen, "Lattice Boltzmann Method for Fluid Flows", Annu. Rev. Fluid Mech. 30
(1998). The cylinder throws the particles back. At a Reynolds number of 160 vortices leave it in turn, with a Strouhal
number f D / U of nearly 0.2. The picture shows the vorticity: blue turns clockwise, red the other way.
"""

from __future__ import annotations

import time

import numpy as np

import warp as wp
from warp.examples import _show

SPEED = 0.1  # of the inflow, cells per step
REYNOLDS = 160.0

vec9 = wp.types.vector(length=9, dtype=wp.float32)
vec9i = wp.types.vector(length=9, dtype=wp.int32)

# The nine velocities; the opposite of direction k is OPPOSITE[k].
DX = wp.constant(vec9i(0, 1, 0, -1, 0, 1, -1, -1, 1))
DY = wp.constant(vec9i(0, 0, 1, 0, -1, 1, 1, -1, -1))
OPPOSITE = wp.constant(vec9i(0, 3, 4, 1, 2, 7, 8, 5, 6))
WEIGHT = wp.constant(vec9(4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36))


@wp.func
def equilibrium(k: int, rho: float, ux: float, uy: float):
    along = float(DX[k]) * ux + float(DY[k]) * uy
    return WEIGHT[k] * rho * (1.0 + 3.0 * along + 4.5 * along * along - 1.5 * (ux * ux + uy * uy))


@wp.kernel
def start(f: wp.array3d[float]):
    i, j = wp.tid()
    # a slight push up on one side, so that the street does not wait for rounding errors
    uy = 0.1 * SPEED * wp.exp(-0.001 * float((j - 160) * (j - 160)))
    for k in range(9):
        f[k, i, j] = equilibrium(k, 1.0, SPEED, uy)


@wp.kernel
def stream_and_collide(
    omega: float,
    solid: wp.array2d[wp.uint8],
    f: wp.array3d[float],
    f_new: wp.array3d[float],
    velocity: wp.array3d[float],
):
    i, j = wp.tid()
    rows = solid.shape[0]
    columns = solid.shape[1]

    # The populations that arrive from the neighbours. Rows are periodic.
    g = vec9()
    for k in range(9):
        from_i = (i - DY[k] + rows) % rows
        from_j = wp.clamp(j - DX[k], 0, columns - 1)
        arriving = f[k, from_i, from_j]
        if solid[from_i, from_j] != wp.uint8(0):
            arriving = f[OPPOSITE[k], i, j]
        g[k] = arriving

    rho = float(0.0)
    ux = float(0.0)
    uy = float(0.0)
    for k in range(9):
        rho += g[k]
        ux += g[k] * float(DX[k])
        uy += g[k] * float(DY[k])
    ux /= rho
    uy /= rho
    if j == 0:  # inflow
        rho = 1.0
        ux = SPEED
        uy = 0.0
        for k in range(9):
            g[k] = equilibrium(k, rho, ux, uy)

    for k in range(9):
        f_new[k, i, j] = g[k] + omega * (equilibrium(k, rho, ux, uy) - g[k])
    inside = solid[i, j] != wp.uint8(0)
    velocity[0, i, j] = wp.where(inside, 0.0, ux)
    velocity[1, i, j] = wp.where(inside, 0.0, uy)


@wp.kernel
def shade(velocity: wp.array3d[float], solid: wp.array2d[wp.uint8], picture: wp.array2d[wp.vec3]):
    i, j = wp.tid()
    above = wp.max(i - 1, 0)
    below = wp.min(i + 1, solid.shape[0] - 1)
    left = wp.max(j - 1, 0)
    right = wp.min(j + 1, solid.shape[1] - 1)
    curl = velocity[1, i, right] - velocity[1, i, left] - velocity[0, below, j] + velocity[0, above, j]
    t = wp.clamp(curl / SPEED * 7.0, -1.0, 1.0)
    strength = wp.pow(wp.abs(t), 0.7)
    tint = wp.where(t > 0.0, wp.vec3(0.85, 0.08, 0.05), wp.vec3(0.03, 0.18, 0.75))
    colour = wp.lerp(wp.vec3(0.93, 0.94, 0.92), tint, strength)
    picture[i, j] = wp.where(solid[i, j] != wp.uint8(0), wp.vec3(0.02, 0.02, 0.02), colour)


class Street:
    def __init__(self, rows: int = 256, columns: int = 768):
        self.shape = (rows, columns)
        self.diameter = rows / 8
        i, j = np.mgrid[0:rows, 0:columns]
        mask = (i - rows / 2 + 0.5) ** 2 + (j - columns / 5) ** 2 < (self.diameter / 2) ** 2
        self.solid = wp.array(mask.astype(np.uint8), dtype=wp.uint8)
        self.f = wp.empty((9, rows, columns), dtype=float)
        self.f_new = wp.empty_like(self.f)
        self.velocity = wp.zeros((2, rows, columns), dtype=float)
        viscosity = SPEED * self.diameter / REYNOLDS
        self.omega = 1.0 / (3.0 * viscosity + 0.5)
        wp.launch(start, dim=self.shape, inputs=[self.f])

    def step(self) -> None:
        inputs = [self.omega, self.solid, self.f]
        wp.launch(stream_and_collide, dim=self.shape, inputs=inputs, outputs=[self.f_new, self.velocity])
        self.f, self.f_new = self.f_new, self.f

    def picture(self) -> np.ndarray:
        result = wp.empty(self.shape, dtype=wp.vec3)
        wp.launch(shade, dim=self.shape, inputs=[self.velocity, self.solid], outputs=[result])
        return result.numpy()


def main() -> None:
    options = _show.arguments(__doc__, rows=256, columns=768, steps=9000)
    street = Street(options.rows, options.columns)
    frames, start_time = [], time.perf_counter()
    for step in _show.progress(options.steps, "kármán"):
        street.step()
        if step > options.steps // 3 and step % 60 == 0:
            frames.append(_show.to_bytes(street.picture()))
    seconds = time.perf_counter() - start_time
    cells = options.rows * options.columns
    rate = options.steps / seconds
    print(
        f"{options.steps} steps of {options.rows} × {options.columns} cells in {seconds:.1f} s: "
        f"{rate * cells / 1e6:.0f} million cells/s, {rate * cells * 18 * 4 / 1e9:.1f} GB/s"
    )
    _show.save_png(options.out / "karman.png", street.picture())
    _show.save_gif(options.out / "karman.gif", frames)


if __name__ == "__main__":
    main()
