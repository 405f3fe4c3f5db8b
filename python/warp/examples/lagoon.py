"""Swell rolls into a lagoon: the shallow-water equations on a grid, shaded by a second set of kernels.

    python -m warp.examples.lagoon

Water of depth h over a sea floor b (both in metres) moves with velocity (u, v) in m/s, on a staggered grid (h in the
middle of cells, u and v on their faces):

    du/dt + (u·∇)u = -g ∂(h + b)/∂x - drag,       dh/dt + ∇·(h u) = 0

Depths are carried by upwind fluxes, so that water is neither made nor lost inside the lagoon; velocities by first-order
upwind differences. Dry cells (the islands) let nothing through until the water outside stands higher than they do. A
paddle along the left edge sends in a swell of 12 s period.

The picture looks straight down: sunlight refracted at the surface gathers on the sea floor in caustics, is absorbed on
its way through the water (red first, which makes shallow water turquoise), and glitters on the surface.
"""

from __future__ import annotations

import math
import time

import warp as wp
from warp.examples import _show

GRAVITY = 9.81  # m/s²
DRY = 0.01  # m; thinner films do not flow
SPACING = 1.0  # m, edge of a cell
DRAG = 0.02  # 1/s
SWELL_PERIOD = 12.0  # s
SWELL_HEIGHT = 0.45  # m, amplitude


@wp.kernel
def sea_floor(size: float, floor: wp.array2d[float], depth: wp.array2d[float]):
    """Two islands, a reef and a shore; still water at height 0."""
    i, j = wp.tid()
    x = float(j) / size
    y = float(i) / size

    b = -11.0 + 4.0 * x + 1.2 * wp.sin(9.0 * x + 3.0 * wp.sin(7.0 * y)) * wp.cos(8.0 * y)
    # the islands: smooth hills, their shores made irregular
    ripple = 0.02 * wp.sin(31.0 * x + 5.0 * y) + 0.015 * wp.sin(23.0 * y - 11.0 * x)
    d0 = wp.length(wp.vec2(x - 0.56, (y - 0.36) * 1.2)) + ripple
    d1 = wp.length(wp.vec2(x - 0.68, (y - 0.74) * 1.1)) - ripple
    b += 20.0 * wp.exp(-120.0 * d0 * d0) + 17.0 * wp.exp(-170.0 * d1 * d1)
    # the reef: a ring of shallows around the first island, open to the west
    ring = wp.exp(-900.0 * (d0 - 0.2) * (d0 - 0.2))
    b += 5.5 * ring * wp.smoothstep(-0.24, -0.1, x - 0.56)
    # the shore
    b += 16.0 * wp.smoothstep(0.86, 1.02, x + 0.04 * wp.sin(9.0 * y) + ripple)

    floor[i, j] = b
    depth[i, j] = wp.max(-b, 0.0)


@wp.kernel
def accelerate(
    dt: float,
    time: float,
    h: wp.array2d[float],
    b: wp.array2d[float],
    u: wp.array2d[float],
    v: wp.array2d[float],
    u_new: wp.array2d[float],
    v_new: wp.array2d[float],
):
    """Velocities on the left (u) and upper (v) face of each cell."""
    i, j = wp.tid()
    rows = h.shape[0]
    columns = h.shape[1]

    here = h[i, j]
    level = here + b[i, j]
    u_here = u[i, j]
    v_here = v[i, j]
    left = wp.max(j - 1, 0)
    right = wp.min(j + 1, columns - 1)
    above = wp.max(i - 1, 0)
    below = wp.min(i + 1, rows - 1)

    # the face to the left
    h_left = h[i, left]
    level_left = h_left + b[i, left]
    v_at_u = 0.25 * (v_here + v[below, j] + v[i, left] + v[below, left])
    du_dx = wp.where(u_here > 0.0, u_here - u[i, left], u[i, right] - u_here)
    du_dy = wp.where(v_at_u > 0.0, u_here - u[above, j], u[below, j] - u_here)
    pull = -GRAVITY * (level - level_left) - u_here * du_dx - v_at_u * du_dy
    new_u = (u_here + dt / SPACING * pull) / (1.0 + DRAG * dt)
    wet = (here > DRY or level_left > level) and (h_left > DRY or level > level_left)
    wet = wet and (here > DRY or h_left > DRY)
    new_u = wp.where(wet, new_u, 0.0)
    if j == 0:  # the paddle
        omega = 2.0 * wp.pi / SWELL_PERIOD
        front = 0.6 + 0.4 * wp.cos(3.0 * float(i) / float(rows) - 0.13 * time)
        start = wp.smoothstep(0.0, SWELL_PERIOD, time)
        new_u = start * front * SWELL_HEIGHT * wp.sqrt(GRAVITY / wp.max(here, 1.0)) * wp.sin(omega * time)
    u_new[i, j] = wp.clamp(new_u, -0.45 * SPACING / dt, 0.45 * SPACING / dt)

    # the face above
    h_above = h[above, j]
    level_above = h_above + b[above, j]
    u_at_v = 0.25 * (u_here + u[i, right] + u[above, j] + u[above, right])
    dv_dy = wp.where(v_here > 0.0, v_here - v[above, j], v[below, j] - v_here)
    dv_dx = wp.where(u_at_v > 0.0, v_here - v[i, left], v[i, right] - v_here)
    pull = -GRAVITY * (level - level_above) - v_here * dv_dy - u_at_v * dv_dx
    new_v = (v_here + dt / SPACING * pull) / (1.0 + DRAG * dt)
    wet = (here > DRY or level_above > level) and (h_above > DRY or level > level_above)
    wet = wet and (here > DRY or h_above > DRY)
    new_v = wp.where(wet and i > 0, new_v, 0.0)
    v_new[i, j] = wp.clamp(new_v, -0.45 * SPACING / dt, 0.45 * SPACING / dt)


@wp.func
def flux(velocity: float, behind: float, ahead: float):
    """Water that crosses a face, per metre and second: the depth it comes from times its speed."""
    return velocity * wp.where(velocity > 0.0, behind, ahead)


@wp.kernel
def carry(
    dt: float,
    h: wp.array2d[float],
    u: wp.array2d[float],
    v: wp.array2d[float],
    h_new: wp.array2d[float],
    foam: wp.array2d[float],
):
    """New depths from the fluxes through the four faces; foam grows as the water piles up."""
    i, j = wp.tid()
    rows = h.shape[0]
    columns = h.shape[1]
    left = wp.max(j - 1, 0)
    right = wp.min(j + 1, columns - 1)
    above = wp.max(i - 1, 0)
    below = wp.min(i + 1, rows - 1)

    here = h[i, j]
    u_right = wp.where(j + 1 < columns, u[i, right], 0.0)
    v_below = wp.where(i + 1 < rows, v[below, j], 0.0)
    in_left = flux(u[i, j], h[i, left], here)
    out_right = flux(u_right, here, h[i, right])
    in_above = flux(v[i, j], h[above, j], here)
    out_below = flux(v_below, here, h[below, j])
    h_new[i, j] = wp.max(here + dt / SPACING * (in_left - out_right + in_above - out_below), 0.0)

    squeeze = u[i, j] - u_right + v[i, j] - v_below
    made = wp.where(here > DRY, wp.clamp(0.9 * squeeze - 0.12, 0.0, 1.0), 0.0)
    foam[i, j] = wp.min(foam[i, j] * (1.0 - 0.35 * dt) + made * dt * 6.0, 1.0)


@wp.kernel
def shade(
    h: wp.array2d[float],
    b: wp.array2d[float],
    foam: wp.array2d[float],
    stride: int,
    picture: wp.array2d[wp.vec3],
):
    """Colour of one pixel, linear light; `stride` cells per pixel."""
    row, column = wp.tid()
    rows = h.shape[0]
    columns = h.shape[1]
    i = wp.clamp(row * stride, 2, rows - 3)
    j = wp.clamp(column * stride, 2, columns - 3)

    depth = h[i, j]
    level = depth + b[i, j]

    # surface normal, and the floor that is seen through it
    gx = 0.25 * (h[i, j + 2] + b[i, j + 2] - h[i, j - 2] - b[i, j - 2])
    gy = 0.25 * (h[i + 2, j] + b[i + 2, j] - h[i - 2, j] - b[i - 2, j])
    normal = wp.normalize(wp.vec3(-4.0 * gx, -4.0 * gy, 1.0))
    seen_i = wp.clamp(i - int(2.0 * depth * gy), 0, rows - 1)
    seen_j = wp.clamp(j - int(2.0 * depth * gx), 0, columns - 1)
    floor_level = b[seen_i, seen_j]

    # the floor: sand, darker rock on the slopes, green above the beach
    bx = 0.5 * (b[i, j + 1] - b[i, j - 1])
    by = 0.5 * (b[i + 1, j] - b[i - 1, j])
    sunlit = wp.clamp(0.75 - 1.4 * (0.7 * bx + 0.5 * by), 0.15, 1.3)
    grain = 0.04 * wp.sin(0.9 * float(i) + 2.0 * wp.sin(0.31 * float(j))) * wp.sin(0.7 * float(j))
    sand = wp.vec3(0.78, 0.66, 0.45) * (1.0 + grain)
    grass = wp.vec3(0.10, 0.22, 0.05) * (1.0 + 4.0 * grain)
    ground = wp.lerp(sand, grass, wp.smoothstep(1.6, 3.2, floor_level)) * sunlit

    # caustics: the curved surface gathers light on the floor
    curve = (
        h[i, j + 2]
        + b[i, j + 2]
        + h[i, j - 2]
        + b[i, j - 2]
        + h[i + 2, j]
        + b[i + 2, j]
        + h[i - 2, j]
        + b[i - 2, j]
        - 4.0 * level
    )
    gather = wp.clamp(1.0 - 2.2 * curve * wp.min(depth, 6.0), 0.35, 3.5)

    # through the water: red goes first
    path = wp.max(level - floor_level, 0.0) * 2.0
    through = wp.vec3(wp.exp(-0.30 * path), wp.exp(-0.055 * path), wp.exp(-0.035 * path))
    scattered = wp.vec3(0.005, 0.07, 0.11)
    water = wp.cw_mul(ground * gather, through) + wp.cw_mul(scattered, wp.vec3(1.0, 1.0, 1.0) - through)

    # the sky and the sun on the surface
    sun = wp.normalize(wp.vec3(-0.45, -0.35, 0.75))
    half_way = wp.normalize(sun + wp.vec3(0.0, 0.0, 1.0))
    glitter = wp.pow(wp.max(wp.dot(normal, half_way), 0.0), 260.0)
    slope = 1.0 - normal[2]
    mirror = wp.clamp(0.02 + 2.5 * slope, 0.0, 0.35)
    water = wp.lerp(water, wp.vec3(0.55, 0.72, 0.92), mirror) + wp.vec3(1.0, 0.95, 0.8) * glitter

    white = wp.smoothstep(0.1, 0.9, foam[i, j]) * 0.85
    water = wp.lerp(water, wp.vec3(0.93, 0.96, 0.97), white)
    picture[row, column] = wp.lerp(ground, water, wp.smoothstep(0.0, 0.12, depth))


class Lagoon:
    """State of the simulation: `size` cells each way, `SPACING` metres apart; with gradients if they are wanted."""

    def __init__(self, size: int = 1024, requires_grad: bool = False):
        self.size = size
        self.time = 0.0  # s
        # waves run at sqrt(g h); the deepest water is some 13 m
        self.dt = 0.4 * SPACING / math.sqrt(GRAVITY * 13.0)
        shape = (size, size)
        self.floor = wp.zeros(shape, dtype=float)
        moving = [wp.zeros(shape, dtype=float, requires_grad=requires_grad) for _ in range(7)]
        self.depth, self.depth_new, self.u, self.u_new, self.v, self.v_new, self.foam = moving
        wp.launch(sea_floor, dim=shape, inputs=[float(size)], outputs=[self.floor, self.depth])

    def step(self) -> None:
        shape = (self.size, self.size)
        wp.launch(
            accelerate,
            dim=shape,
            inputs=[self.dt, self.time, self.depth, self.floor, self.u, self.v],
            outputs=[self.u_new, self.v_new],
        )
        self.u, self.u_new = self.u_new, self.u
        self.v, self.v_new = self.v_new, self.v
        wp.launch(carry, dim=shape, inputs=[self.dt, self.depth, self.u, self.v], outputs=[self.depth_new, self.foam])
        self.depth, self.depth_new = self.depth_new, self.depth
        self.time += self.dt

    def picture(self, pixels: int) -> wp.array:
        result = wp.empty((pixels, pixels), dtype=wp.vec3)
        inputs = [self.depth, self.floor, self.foam, max(1, self.size // pixels)]
        wp.launch(shade, dim=(pixels, pixels), inputs=inputs, outputs=[result])
        return result

    @property
    def bytes_per_step(self) -> int:
        """Least traffic of a step: each array that a kernel touches goes through memory once."""
        return self.size * self.size * 4 * (6 + 6)  # accelerate: 4 read, 2 written; carry: 4 read, 2 written


def main() -> None:
    options = _show.arguments(__doc__, size=1024, frames=120, steps=22, pixels=512)

    start = time.perf_counter()
    lagoon = Lagoon(options.size)
    lagoon.step()
    lagoon.picture(options.pixels)
    first = time.perf_counter() - start
    kernels = [sea_floor, accelerate, carry, shade]
    compiled = [kernel.compile() for kernel in kernels]
    cached = sum(report["from_cache"] for report in compiled)
    spent = sum(report["milliseconds"] for report in compiled)
    print(
        f"{len(kernels)} kernels ready after {spent:.0f} ms ({cached} from the disk cache); first frame {first:.2f} s"
    )

    frames, simulating = [], 0.0
    for _ in _show.progress(options.frames, "lagoon"):
        begin = time.perf_counter()
        for _ in range(options.steps):
            lagoon.step()
        simulating += time.perf_counter() - begin
        frames.append(_show.to_bytes(lagoon.picture(options.pixels).numpy()))

    steps = options.frames * options.steps
    rate = steps / simulating
    print(
        f"{steps} steps of {options.size}² cells ({lagoon.time:.0f} s of water) in {simulating:.1f} s: "
        f"{rate:.0f} steps/s, {rate * options.size**2 / 1e6:.0f} million cells/s, "
        f"{rate * lagoon.bytes_per_step / 1e9:.1f} GB/s"
    )
    _show.save_png(options.out / "lagoon.png", lagoon.picture(options.size).numpy())
    _show.save_gif(options.out / "lagoon.gif", frames)


if __name__ == "__main__":
    main()
