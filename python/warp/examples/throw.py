"""A soft ball is thrown so that it bounces off the floor and a wall into a ring: the throw is found by gradients.

    python -m warp.examples.throw

The ball is a shell of particles and one in the middle, with springs between neighbours, next neighbours and to the
middle, and dampers along them. Floor and wall push back particles that have gone into them, and rub. The loss is the
squared distance of the ball's centre from the ring's at the end; its gradient comes back through more than a thousand
steps, contacts and friction included, to the six numbers of the throw: velocity and spin of the ball at the start.

Every step is a launch of one kernel, from row to row of an array that holds the whole motion.

Units: metres, seconds, kilograms.
"""

from __future__ import annotations

import time

import numpy as np

import warp as wp
from warp.examples import _descent, _raster, _show

RADIUS = 0.3  # of the ball
MASS = 1.0
SHELL = 200.0  # stiffness of springs in the shell, N/m
SPOKES = 60.0  # and of those to the middle
DAMPING = 0.05  # N s/m
CONTACT = 600.0  # of floor and wall, N/m for each particle
CONTACT_DAMPING = 0.15  # N s/m
FRICTION = 0.2
WALL = 1.9  # x of the wall
RING = (0.3, 0.7, -0.8)
RING_RADIUS = 0.5
START = (-1.6, 1.0, 0.6)
SECONDS = 1.5


@wp.struct
class Body:
    """Particles, and for each of them the neighbours that springs lead to: `first[i]` to `first[i + 1]`."""

    first: wp.array[int]
    neighbour: wp.array[int]
    length: wp.array[float]
    stiffness: wp.array[float]
    mass: float  # of a particle


@wp.func
def against_plane(x: wp.vec3, v: wp.vec3, normal: wp.vec3, offset: float) -> wp.vec3:
    """Force of a plane on a particle: it pushes the particle out if it has gone in, and rubs."""
    depth = offset - wp.dot(x, normal)
    force = wp.vec3(0.0, 0.0, 0.0)
    if depth > 0.0:
        inward = -wp.dot(v, normal)
        push = wp.max(CONTACT * depth + CONTACT_DAMPING * inward, 0.0)
        slide = v + inward * normal
        speed = wp.sqrt(wp.dot(slide, slide) + 1.0e-2)  # no jump when the sliding turns round
        force = push * (normal - FRICTION / speed * slide)
    return force


@wp.kernel
def throw(
    body: Body,
    shape: wp.array[wp.vec3],
    how: wp.array[wp.vec3],
    x: wp.array[wp.vec3],
    v: wp.array[wp.vec3],
):
    """The ball at the start: `how` is its velocity and its spin."""
    i = wp.tid()
    x[i] = wp.vec3(START[0], START[1], START[2]) + shape[i]
    v[i] = how[0] + wp.cross(how[1], shape[i])


@wp.kernel
def move(
    dt: float,
    body: Body,
    x: wp.array[wp.vec3],
    v: wp.array[wp.vec3],
    x_new: wp.array[wp.vec3],
    v_new: wp.array[wp.vec3],
):
    i = wp.tid()
    here = x[i]
    speed = v[i]
    force = wp.vec3(0.0, -9.81 * body.mass, 0.0)
    for k in range(body.first[i], body.first[i + 1]):
        j = body.neighbour[k]
        d = x[j] - here
        length = wp.length(d)
        along = d / length
        force += (body.stiffness[k] * (length - body.length[k]) + DAMPING * wp.dot(v[j] - speed, along)) * along
    force += against_plane(here, speed, wp.vec3(0.0, 1.0, 0.0), 0.0)
    force += against_plane(here, speed, wp.vec3(-1.0, 0.0, 0.0), -WALL)
    speed += dt / body.mass * force
    v_new[i] = speed
    x_new[i] = here + dt * speed


@wp.kernel
def centre_of(x: wp.array[wp.vec3], centre: wp.array[wp.vec3]):
    i = wp.tid()
    wp.atomic_add(centre, 0, x[i] / float(x.shape[0]))


@wp.kernel
def miss(centre: wp.array[wp.vec3], loss: wp.array[float]):
    """Squared distance from the ring's middle."""
    loss[0] = wp.length_sq(centre[0] - wp.vec3(RING[0], RING[1], RING[2]))


def sphere(subdivisions: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of a unit sphere and its triangles, an icosahedron whose triangles are quartered again and again."""
    g = 0.5 * (1.0 + 5.0**0.5)
    corners = [(0, a, b * g) for a in (-1, 1) for b in (-1, 1)]
    points = [np.roll(c, n) / np.hypot(1.0, g) for n in range(3) for c in corners]
    gaps = np.linalg.norm(np.array(points)[:, None] - np.array(points)[None], axis=2)
    near = (gaps > 0.0) & (gaps < 1.1)
    triangles = [
        (i, j, k) if np.linalg.det([points[i], points[j], points[k]]) > 0.0 else (i, k, j)
        for i in range(12)
        for j in range(i + 1, 12)
        for k in range(j + 1, 12)
        if near[i, j] and near[j, k] and near[i, k]
    ]
    for _ in range(subdivisions):
        middles: dict[tuple[int, int], int] = {}

        def middle(i: int, j: int, middles=middles) -> int:
            key = (min(i, j), max(i, j))
            if key not in middles:
                middles[key] = len(points)
                between = points[i] + points[j]
                points.append(between / np.linalg.norm(between))
            return middles[key]

        finer = []
        for i, j, k in triangles:
            a, b, c = middle(i, j), middle(j, k), middle(k, i)
            finer += [(i, a, c), (a, j, b), (c, b, k), (a, b, c)]
        triangles = finer
    return np.array(points), np.array(triangles)


class Thrower:
    """A ball whose shell is `sphere(subdivisions)`, and `steps` steps of its flight."""

    def __init__(self, subdivisions: int = 2, steps: int = 1200):
        self.steps, self.dt = steps, SECONDS / steps
        shell, self.triangles = sphere(subdivisions)
        shape = RADIUS * np.concatenate([shell, np.zeros((1, 3))])
        self.count = len(shape)
        edges = np.concatenate([self.triangles[:, [0, 1]], self.triangles[:, [1, 2]], self.triangles[:, [2, 0]]])
        beside = np.zeros((self.count, self.count), dtype=int)
        beside[edges[:, 0], edges[:, 1]] = 1
        linked = (beside + beside @ beside > 0) & ~np.eye(self.count, dtype=bool)
        linked[-1, :-1] = linked[:-1, -1] = True
        i, j = np.nonzero(linked)
        self.body = Body()
        self.body.first = wp.array(np.concatenate([[0], linked.sum(axis=1).cumsum()]), dtype=int)
        self.body.neighbour = wp.array(j, dtype=int)
        self.body.length = wp.array(np.linalg.norm(shape[i] - shape[j], axis=1), dtype=float)
        self.body.stiffness = wp.array(np.where(np.maximum(i, j) == self.count - 1, SPOKES, SHELL), dtype=float)
        self.body.mass = MASS / self.count
        self.shape = wp.array(shape, dtype=wp.vec3)
        self.how = wp.zeros(2, dtype=wp.vec3, requires_grad=True)
        self.x = wp.zeros((steps + 1, self.count), dtype=wp.vec3, requires_grad=True)
        self.v = wp.zeros((steps + 1, self.count), dtype=wp.vec3, requires_grad=True)
        self.centre = wp.zeros(1, dtype=wp.vec3, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def fly(self) -> None:
        """The whole motion, in `x` and `v`, after a throw as `how` says, and its loss."""
        x, v = [self.x[t] for t in range(self.steps + 1)], [self.v[t] for t in range(self.steps + 1)]
        wp.launch(throw, dim=self.count, inputs=[self.body, self.shape, self.how], outputs=[x[0], v[0]])
        for t in range(self.steps):
            inputs = [self.dt, self.body, x[t], v[t]]
            wp.launch(move, dim=self.count, inputs=inputs, outputs=[x[t + 1], v[t + 1]])
        self.centre.zero_()
        wp.launch(centre_of, dim=self.count, inputs=[x[-1]], outputs=[self.centre])
        wp.launch(miss, dim=1, inputs=[self.centre], outputs=[self.loss])

    def missed(self, how: np.ndarray) -> float:
        """How far from the middle of the ring the ball ends after a throw with this velocity and spin, (2, 3)."""
        self.how.assign(how.astype(np.float32))
        self.fly()
        return float(np.linalg.norm(self.centre.numpy()[0] - RING))

    def gradient(self, how: np.ndarray) -> tuple[float, np.ndarray]:
        """The loss, and its gradient by velocity and spin."""
        self.how.assign(how.astype(np.float32))
        with wp.Tape() as tape:
            self.fly()
        tape.backward(self.loss)
        result = float(self.loss.numpy()[0]), self.how.grad.numpy().astype(np.float64)
        tape.zero()
        return result


# ---- pictures ----


def ring(around: int = 72, along: int = 14, thick: float = 0.035) -> tuple[np.ndarray, np.ndarray]:
    """Points and triangles of the ring."""
    turn, roll = np.meshgrid(
        np.linspace(0, 2 * np.pi, around, endpoint=False),
        np.linspace(0, 2 * np.pi, along, endpoint=False),
        indexing="ij",
    )
    far = RING_RADIUS + thick * np.cos(roll)
    points = np.stack([far * np.cos(turn), far * np.sin(turn), thick * np.sin(roll)], -1).reshape(-1, 3) + RING
    i, j = np.meshgrid(np.arange(around), np.arange(along), indexing="ij")
    a, b = i * along + j, (i + 1) % around * along + j
    c, d = (i + 1) % around * along + (j + 1) % along, i * along + (j + 1) % along
    triangles = np.concatenate([np.stack([a, b, c], -1).reshape(-1, 3), np.stack([a, c, d], -1).reshape(-1, 3)])
    return points, triangles


def wall() -> tuple[np.ndarray, np.ndarray]:
    x = WALL + 0.01
    points = np.array([(x, 0.0, -1.7), (x, 0.0, 1.1), (x, 1.7, 1.1), (x, 1.7, -1.7)])
    return points, np.array([(0, 1, 2), (0, 2, 3)])


def picture(thrower: Thrower, motion: np.ndarray, times: list[int], wide: int, high: int) -> np.ndarray:
    """The scene with the ball at each of the times: paler the longer ago."""
    parts = [(*wall(), (0.30, 0.33, 0.36)), (*ring(), (0.95, 0.45, 0.08))]
    # the ball in panels: those of the shell's triangles whose middles lie in every second quarter
    middle = thrower.shape.numpy()[thrower.triangles].mean(axis=1)
    panel = (np.floor(np.arctan2(middle[:, 2], middle[:, 0]) / (np.pi / 3.0)).astype(int) % 2) == 0
    for n, t in enumerate(times):
        pale = 0.75 * (1.0 - (n + 1) / len(times))
        for chosen, colour in ((panel, (0.85, 0.10, 0.12)), (~panel, (0.90, 0.86, 0.78))):
            tint = tuple(pale * np.array([0.36, 0.40, 0.46]) + (1.0 - pale) * np.array(colour))
            parts.append((motion[t], thrower.triangles[chosen], tint))
    points = np.concatenate([part for part, _, _ in parts])
    offsets = np.cumsum([0] + [len(part) for part, _, _ in parts])
    triangles = np.concatenate([corners + offset for (_, corners, _), offset in zip(parts, offsets)])
    colours = np.concatenate([np.tile(colour, (len(part), 1)) for part, _, colour in parts])
    view = _raster.camera((-1.1, 2.0, 5.4), (0.1, 0.72, -0.2), wide, high, field_of_view=34.0)
    look = _raster.daylight(sun=(-0.35, 1.0, 0.65), ground_level=0.0, gloss=0.1)
    corners, tints = wp.array(triangles, dtype=int), wp.array(colours, dtype=wp.vec3)
    return _raster.draw(view, look, wp.array(points, dtype=wp.vec3), corners, tints, reach=3.0)


FIRST_GUESS = np.array([(6.2, -0.5, 0.3), (0.0, 0.0, 0.0)])


def main() -> None:
    options = _show.arguments(__doc__, subdivisions=2, steps=1200, iterations=60, pixels=560)
    plt = _descent.pyplot()
    thrower = Thrower(options.subdivisions, options.steps)
    wide, high = options.pixels * 4 // 3, options.pixels
    times = list(range(0, options.steps + 1, max(1, options.steps // 9)))

    missed = thrower.missed(FIRST_GUESS)
    before = picture(thrower, thrower.x.numpy(), times, wide, high)
    start = time.perf_counter()
    how, losses = _descent.descend(thrower.gradient, FIRST_GUESS, options.iterations, 0.12, "throws")
    seconds = time.perf_counter() - start
    off = thrower.missed(how)
    motion = thrower.x.numpy().copy()
    after = picture(thrower, motion, times, wide, high)
    print(f"{options.iterations} gradients through {options.steps} steps of {thrower.count} particles: {seconds:.1f} s")
    print(
        f"loss {losses[0]:.3f} -> {min(losses):.5f}; the first throw misses by {missed:.2f} m, the last by {off:.3f} m"
    )
    print(f"velocity {how[0].round(2)} m/s, spin {how[1].round(2)} rad/s")

    figure, axes = plt.subplots(1, 3, figsize=(20, 5.2), width_ratios=(1.5, 1.5, 1.0), layout="constrained")
    _descent.show(axes[0], _show.to_bytes(before), f"the first throw: {missed:.2f} m from the middle of the ring")
    _descent.show(axes[1], _show.to_bytes(after), f"after {options.iterations} gradients: {100 * off:.1f} cm")
    _descent.show_losses(axes[2], losses, "squared distance from the ring, m²")
    _descent.save(options.out / "throw.png", figure)
    every = max(1, options.steps // 45)
    frames = [
        _show.to_bytes(picture(thrower, motion, [t], wide // 2, high // 2)) for t in range(0, options.steps + 1, every)
    ]
    _show.save_gif(options.out / "throw.gif", [*frames, *frames[-1:] * 12], frame_ms=40)


if __name__ == "__main__":
    main()
