"""Three cloths fall over a ball, each on the one before: position-based dynamics with contact.

    python -m warp.examples.cloth

Every particle moves on its own for a fraction of a millisecond; then constraints move it back: edges keep their length
(stretching and shear), pairs of triangles keep their angle (bending), particles stay out of the ball, off the ground
and at a distance from each other. A compliance, the inverse of a stiffness, makes each constraint as soft as a
material is (extended position-based dynamics, one iteration for each of many small steps). Constraints that share a
particle must not run at the same time: they are coloured, and each colour is one launch.

Cloth meets cloth through a hash of cells, made anew every few steps: a list for each cell, to which all threads add at
once with an atomic exchange, and from which every particle notes its neighbours.

Units: metres, seconds, kilograms.
"""

from __future__ import annotations

import time

import numpy as np

import warp as wp
from warp.examples import _raster, _show

SIDE = 1.3  # of a cloth
DENSITY = 0.2  # per area
THICKNESS = 0.75  # of the spacing of particles: the distance that cloths keep
STRETCH = 1.0e-7  # compliances
SHEAR = 2.0e-5
BEND = 0.3
FRICTION = 0.35
CLOTH_FRICTION = 0.5
DRAG = 0.6  # of air, per area and speed
NEIGHBOURS = 24  # at most, for each particle
BALL = (0.0, 0.45, 0.0)
RADIUS = 0.35


@wp.struct
class World:
    gravity: wp.vec3
    wind: wp.vec3
    ball: wp.vec3
    radius: float
    thickness: float
    friction: float
    cloth_friction: float
    drag: float


@wp.struct
class Edges:
    """Two particles each, which keep their distance."""

    ends: wp.array[wp.vec2i]
    length: wp.array[float]
    compliance: wp.array[float]


@wp.struct
class Hinges:
    """Two triangles each: their far corners, then the ends of the edge that they share."""

    corners: wp.array[wp.vec4i]
    angle: wp.array[float]


# ---- moving ----


@wp.kernel
def push_air(
    world: World,
    triangles: wp.array2d[int],
    x: wp.array[wp.vec3],
    v: wp.array[wp.vec3],
    force: wp.array[wp.vec3],
):
    """Drag of the air on each triangle, along its normal."""
    t = wp.tid()
    i = triangles[t, 0]
    j = triangles[t, 1]
    k = triangles[t, 2]
    n = 0.5 * wp.cross(x[j] - x[i], x[k] - x[i])
    area = wp.length(n)
    if area > 0.0:
        n = n / area
        against = world.wind - (v[i] + v[j] + v[k]) / 3.0
        push = world.drag * area * wp.dot(against, n) / 3.0 * n
        wp.atomic_add(force, i, push)
        wp.atomic_add(force, j, push)
        wp.atomic_add(force, k, push)


@wp.kernel
def predict(
    world: World,
    dt: float,
    force: wp.array[wp.vec3],
    inverse_mass: wp.array[float],
    x: wp.array[wp.vec3],
    before: wp.array[wp.vec3],
    predicted: wp.array[wp.vec3],
    v: wp.array[wp.vec3],
):
    """Moves particles by gravity, forces and their velocity, before any constraint acts."""
    i = wp.tid()
    before[i] = x[i]
    if inverse_mass[i] > 0.0:
        v[i] += dt * (world.gravity + inverse_mass[i] * force[i])
        x[i] += dt * v[i]
    predicted[i] = x[i]
    force[i] = wp.vec3(0.0, 0.0, 0.0)


@wp.kernel
def settle(dt: float, fastest: float, predicted: wp.array[wp.vec3], x: wp.array[wp.vec3], v: wp.array[wp.vec3]):
    """Velocities change by the constraints' motion alone, so that rounding of positions does not slow a fall."""
    i = wp.tid()
    moved = v[i] + (x[i] - predicted[i]) / dt
    speed = wp.length(moved)
    if speed > fastest:  # no particle passes another within a step
        moved *= fastest / speed
    v[i] = moved


# ---- stretching and bending ----


@wp.kernel
def keep_lengths(dt: float, edges: Edges, inverse_mass: wp.array[float], x: wp.array[wp.vec3]):
    e = wp.tid()
    i = edges.ends[e][0]
    j = edges.ends[e][1]
    wi = inverse_mass[i]
    wj = inverse_mass[j]
    d = x[j] - x[i]
    length = wp.length(d)
    if wi + wj > 0.0 and length > 0.0:
        error = length - edges.length[e]
        pull = error / (wi + wj + edges.compliance[e] / (dt * dt)) / length * d
        x[i] += wi * pull
        x[j] -= wj * pull


@wp.func
def hinge_angle(a: wp.vec3, b: wp.vec3, c: wp.vec3, d: wp.vec3) -> float:
    """Angle between the triangles (a, c, d) and (b, d, c); 0 if they are flat."""
    n1 = wp.cross(a - c, a - d)
    n2 = wp.cross(b - d, b - c)
    along = wp.normalize(d - c)
    return wp.atan2(wp.dot(wp.cross(n1, n2), along), wp.dot(n1, n2))


@wp.func
def hinge_gradients(a: wp.vec3, b: wp.vec3, c: wp.vec3, d: wp.vec3):
    """How the angle changes with each of the four points."""
    edge = d - c
    length = wp.length(edge)
    n1 = wp.cross(a - c, a - d)
    n2 = wp.cross(b - d, b - c)
    n1 = n1 / wp.max(wp.dot(n1, n1), 1.0e-20)
    n2 = n2 / wp.max(wp.dot(n2, n2), 1.0e-20)
    along = edge / length
    ga = -length * n1
    gb = -length * n2
    gc = -wp.dot(a - d, along) * n1 - wp.dot(b - d, along) * n2
    gd = wp.dot(a - c, along) * n1 + wp.dot(b - c, along) * n2
    return ga, gb, gc, gd


@wp.kernel
def keep_angles(
    dt: float,
    compliance: float,
    hinges: Hinges,
    inverse_mass: wp.array[float],
    x: wp.array[wp.vec3],
):
    h = wp.tid()
    corner = hinges.corners[h]
    a = x[corner[0]]
    b = x[corner[1]]
    c = x[corner[2]]
    d = x[corner[3]]
    wa = inverse_mass[corner[0]]
    wb = inverse_mass[corner[1]]
    wc = inverse_mass[corner[2]]
    wd = inverse_mass[corner[3]]
    error = hinge_angle(a, b, c, d) - hinges.angle[h]
    ga, gb, gc, gd = hinge_gradients(a, b, c, d)
    weight = wa * wp.dot(ga, ga) + wb * wp.dot(gb, gb) + wc * wp.dot(gc, gc) + wd * wp.dot(gd, gd)
    if weight > 0.0:
        step = -error / (weight + compliance / (dt * dt))
        x[corner[0]] = a + step * wa * ga
        x[corner[1]] = b + step * wb * gb
        x[corner[2]] = c + step * wc * gc
        x[corner[3]] = d + step * wd * gd


# ---- contact ----


@wp.func
def rub(moved: wp.vec3, normal: wp.vec3, depth: float, friction: float) -> wp.vec3:
    """Friction's correction of a motion along a surface that was entered `depth` deep."""
    along = moved - wp.dot(moved, normal) * normal
    length = wp.length(along)
    if length <= 0.0:
        return wp.vec3(0.0, 0.0, 0.0)
    return -wp.min(friction * depth / length, 1.0) * along


@wp.kernel
def stay_outside(
    world: World,
    before: wp.array[wp.vec3],
    inverse_mass: wp.array[float],
    x: wp.array[wp.vec3],
):
    """Off the ground and out of the ball, with friction."""
    i = wp.tid()
    if inverse_mass[i] > 0.0:
        p = x[i]
        half = 0.5 * world.thickness
        if p[1] < half:
            depth = half - p[1]
            up = wp.vec3(0.0, 1.0, 0.0)
            p += depth * up
            p += rub(p - before[i], up, depth, world.friction)
        away = p - world.ball
        distance = wp.length(away)
        depth = world.radius + half - distance
        if depth > 0.0 and distance > 0.0:
            normal = away / distance
            p += depth * normal
            p += rub(p - before[i], normal, depth, world.friction)
        x[i] = p


@wp.func
def cell_of(p: wp.vec3, size: float) -> wp.vec3i:
    return wp.vec3i(int(wp.floor(p[0] / size)), int(wp.floor(p[1] / size)), int(wp.floor(p[2] / size)))


@wp.func
def slot_of(cell: wp.vec3i, slots: int) -> int:
    """Place of a cell in the hash."""
    mixed = (cell[0] * 73856093) ^ (cell[1] * 19349663) ^ (cell[2] * 83492791)
    return (mixed & 0x7FFFFFFF) % slots


@wp.kernel
def enter_cells(size: float, x: wp.array[wp.vec3], first: wp.array[int], following: wp.array[int]):
    """Each particle becomes the first of its cell's list; -1 ends a list."""
    i = wp.tid()
    slot = slot_of(cell_of(x[i], size), first.shape[0])
    following[i] = wp.atomic_exch(first, slot, i)


@wp.kernel
def find_neighbours(
    size: float,
    closest: float,
    x: wp.array[wp.vec3],
    rest: wp.array[wp.vec3],
    first: wp.array[int],
    following: wp.array[int],
    counts: wp.array[int],
    neighbours: wp.array2d[int],
):
    """Particles within `size` that were farther apart than `closest` when the cloth was cut."""
    i = wp.tid()
    here = x[i]
    home = cell_of(here, size)
    count = int(0)
    for dx in range(-1, 2):
        for dy in range(-1, 2):
            for dz in range(-1, 2):
                cell = home + wp.vec3i(dx, dy, dz)
                j = first[slot_of(cell, first.shape[0])]
                while j >= 0:
                    there = cell_of(x[j], size)
                    # two cells may share a slot: only this cell's particles count
                    same = there[0] == cell[0] and there[1] == cell[1] and there[2] == cell[2]
                    if same and j != i and count < neighbours.shape[1]:
                        near = wp.length_sq(x[j] - here) < size * size
                        if near and wp.length_sq(rest[j] - rest[i]) > closest * closest:
                            neighbours[i, count] = j
                            count += 1
                    j = following[j]
    counts[i] = count


@wp.kernel
def keep_apart(
    world: World,
    counts: wp.array[int],
    neighbours: wp.array2d[int],
    before: wp.array[wp.vec3],
    inverse_mass: wp.array[float],
    x: wp.array[wp.vec3],
    moves: wp.array[wp.vec3],
):
    """Each particle's half of the way apart from all that are too close; all look at the same positions."""
    i = wp.tid()
    move = wp.vec3(0.0, 0.0, 0.0)
    w = inverse_mass[i]
    for n in range(counts[i]):
        j = neighbours[i, n]
        d = x[i] - x[j]
        distance = wp.length(d)
        depth = world.thickness - distance
        if depth > 0.0 and distance > 0.0 and w + inverse_mass[j] > 0.0:
            share = w / (w + inverse_mass[j])
            normal = d / distance
            sliding = (x[i] - before[i]) - (x[j] - before[j])
            move += share * (depth * normal + rub(sliding, normal, depth, world.cloth_friction))
    moves[i] = 0.5 * move  # a particle between two layers is pushed from both sides


@wp.kernel
def apply(moves: wp.array[wp.vec3], x: wp.array[wp.vec3]):
    i = wp.tid()
    x[i] += moves[i]


# ---- looking ----


@wp.kernel
def measure(
    world: World,
    inverse_mass: wp.array[float],
    x: wp.array[wp.vec3],
    v: wp.array[wp.vec3],
    sums: wp.array[wp.float64],
    momentum: wp.array[wp.vec3d],
    deepest: wp.array[float],
):
    """Kinetic and potential energy, momentum and angular momentum, and the deepest point in ball or ground."""
    i = wp.tid()
    if inverse_mass[i] > 0.0:
        m = 1.0 / inverse_mass[i]
        wp.atomic_add(sums, 0, wp.float64(0.5 * m * wp.length_sq(v[i])))
        wp.atomic_add(sums, 1, wp.float64(-m * wp.dot(world.gravity, x[i])))
        p = m * v[i]
        turn = wp.cross(x[i], p)
        wp.atomic_add(momentum, 0, wp.vec3d(wp.float64(p[0]), wp.float64(p[1]), wp.float64(p[2])))
        wp.atomic_add(momentum, 1, wp.vec3d(wp.float64(turn[0]), wp.float64(turn[1]), wp.float64(turn[2])))
    half = 0.5 * world.thickness
    inside = wp.max(half - x[i][1], world.radius + half - wp.length(x[i] - world.ball))
    wp.atomic_max(deepest, 0, inside)


@wp.kernel
def longest(edges: Edges, x: wp.array[wp.vec3], worst: wp.array[float]):
    """Greatest strain of an edge."""
    e = wp.tid()
    length = wp.length(x[edges.ends[e][1]] - x[edges.ends[e][0]])
    wp.atomic_max(worst, 0, wp.abs(length / edges.length[e] - 1.0))


@wp.kernel
def weave(across: int, tints: wp.array[wp.vec3], cloth: wp.array[int], colours: wp.array[wp.vec3]):
    """Colour of each particle: stripes and a border in the cloth's tint."""
    i = wp.tid()
    within = i % (across * across)
    row = within // across
    column = within % across
    tint = tints[cloth[i]]
    stripe = (row // 6) % 2 == 0 or (column // 6) % 2 == 0
    edge = wp.min(wp.min(row, column), wp.min(across - 1 - row, across - 1 - column))
    shade = wp.where(stripe, 1.0, 0.72)
    colour = shade * tint
    if edge >= 3 and edge < 5:
        colour = wp.vec3(0.85, 0.82, 0.76)
    colours[i] = colour


def colouring(members: np.ndarray, particles: int) -> list[np.ndarray]:
    """Rows of ``members`` in groups, no two rows of a group with a particle in common: the first colour that fits."""
    taken = [0] * particles  # a bit for each colour that a particle has met
    colours = np.empty(len(members), dtype=np.int32)
    for row, particles_of_row in enumerate(members.tolist()):
        used = 0
        for particle in particles_of_row:
            used |= taken[particle]
        free = ~used & (used + 1)
        colours[row] = free.bit_length() - 1
        for particle in particles_of_row:
            taken[particle] |= free
    return [np.flatnonzero(colours == colour) for colour in range(colours.max() + 1)]


def sheet(across: int) -> tuple[np.ndarray, ...]:
    """Triangles, edges (stretch first, then shear) and hinges of a square of across × across particles."""
    at = np.arange(across * across).reshape(across, across)
    a, b, c, d = at[:-1, :-1].ravel(), at[:-1, 1:].ravel(), at[1:, :-1].ravel(), at[1:, 1:].ravel()
    even = (np.add.outer(np.arange(across - 1), np.arange(across - 1)) % 2 == 0).ravel()
    # the diagonals alternate, so that no direction is favoured
    one = np.where(even[:, None], np.stack([a, c, d], 1), np.stack([a, c, b], 1))
    two = np.where(even[:, None], np.stack([a, d, b], 1), np.stack([b, c, d], 1))
    triangles = np.concatenate([one, two])
    straight = np.concatenate(
        [np.stack([at[:, :-1], at[:, 1:]], -1).reshape(-1, 2), np.stack([at[:-1], at[1:]], -1).reshape(-1, 2)]
    )
    diagonal = np.concatenate([np.stack([a, d], 1), np.stack([b, c], 1)])
    beside: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for i, j, k in triangles.tolist():
        for p, q, far in ((i, j, k), (j, k, i), (k, i, j)):
            beside.setdefault((min(p, q), max(p, q)), []).append((far, p, q))
    hinges = [(x[0], y[0], x[1], x[2]) for x, y in (pair for pair in beside.values() if len(pair) == 2)]
    return triangles, straight, diagonal, np.array(hinges)


class Cloths:
    def __init__(self, cloths: int = 3, across: int = 72, substeps: int = 20):
        self.across, self.substeps = across, substeps
        self.spacing = SIDE / (across - 1)
        each = across * across
        triangles, straight, diagonal, hinges = sheet(across)
        offsets = (np.arange(cloths) * each)[:, None, None]

        def all_of(rows: np.ndarray) -> np.ndarray:
            return (rows[None] + offsets).reshape(-1, rows.shape[1])

        line = np.linspace(-0.5 * SIDE, 0.5 * SIDE, across)
        flat = np.stack(np.meshgrid(line, [0.0], line, indexing="ij"), -1).reshape(-1, 3)
        places = []
        for n in range(cloths):
            angle = 0.25 * np.pi * n + 0.1
            turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
            places.append(flat @ turn.T + np.array([0.03 * n, 0.86 + 0.22 * n, -0.02 * n]))
        x = np.concatenate(places)
        self.count = len(x)
        self.x, self.rest, self.before, self.predicted = (wp.array(x, dtype=wp.vec3) for _ in range(4))
        self.v, self.force, self.moves = (wp.zeros(self.count, dtype=wp.vec3) for _ in range(3))
        self.inverse_mass = wp.full(self.count, each / (DENSITY * SIDE**2), dtype=float)
        self.triangles = wp.array(all_of(triangles), dtype=int)

        self.edges, self.hinges = [], []
        ends = np.concatenate([all_of(straight), all_of(diagonal)])
        compliance = np.where(np.arange(len(ends)) < cloths * len(straight), STRETCH, SHEAR)
        for group in colouring(ends, self.count):
            edges = Edges()
            edges.ends = wp.array(ends[group], dtype=wp.vec2i)
            edges.length = wp.array(np.linalg.norm(x[ends[group, 1]] - x[ends[group, 0]], axis=1), dtype=float)
            edges.compliance = wp.array(compliance[group], dtype=float)
            self.edges.append(edges)
        corners = all_of(hinges)
        for group in colouring(corners, self.count):
            one = Hinges()
            one.corners = wp.array(corners[group], dtype=wp.vec4i)
            one.angle = wp.zeros(len(group), dtype=float)
            self.hinges.append(one)

        self.first = wp.empty(4 * self.count, dtype=int)
        self.following = wp.empty(self.count, dtype=int)
        self.counts = wp.zeros(self.count, dtype=int)
        self.neighbours = wp.empty((self.count, NEIGHBOURS), dtype=int)

        self.world = World()
        self.world.gravity, self.world.wind = wp.vec3(0.0, -9.81, 0.0), wp.vec3(0.0, 0.0, 0.0)
        self.world.ball, self.world.radius = wp.vec3(*BALL), RADIUS
        self.world.thickness = THICKNESS * self.spacing
        self.world.friction, self.world.cloth_friction, self.world.drag = FRICTION, CLOTH_FRICTION, DRAG

        cloth = np.arange(self.count) // each
        self.cloth = wp.array(cloth, dtype=int)
        self.colours = wp.empty(self.count, dtype=wp.vec3)
        tints = wp.array(np.array([[0.72, 0.16, 0.13], [0.10, 0.33, 0.55], [0.80, 0.55, 0.14]]), dtype=wp.vec3)
        wp.launch(weave, dim=self.count, inputs=[across, tints, self.cloth], outputs=[self.colours])

    def look_for_neighbours(self) -> None:
        size = 2.0 * self.world.thickness
        self.first.fill_(-1)
        wp.launch(enter_cells, dim=self.count, inputs=[size, self.x, self.first], outputs=[self.following])
        inputs = [size, self.world.thickness * 1.001, self.x, self.rest, self.first, self.following]
        wp.launch(find_neighbours, dim=self.count, inputs=inputs, outputs=[self.counts, self.neighbours])

    def step(self, seconds: float = 1.0 / 60.0) -> None:
        dt = seconds / self.substeps
        everyone = self.count
        fastest = 0.25 * self.world.thickness / dt
        for substep in range(self.substeps):
            if substep % 4 == 0:  # nothing moves farther than half of `thickness` meanwhile
                self.look_for_neighbours()
            air = [self.world, self.triangles, self.x, self.v]
            wp.launch(push_air, dim=len(self.triangles), inputs=air, outputs=[self.force])
            state = [self.inverse_mass, self.x]
            moving = [self.before, self.predicted, self.v]
            wp.launch(predict, dim=everyone, inputs=[self.world, dt, self.force, *state, *moving])
            for hinges in self.hinges:
                wp.launch(keep_angles, dim=len(hinges.corners), inputs=[dt, BEND, hinges, *state])
            for edges in self.edges:
                wp.launch(keep_lengths, dim=len(edges.ends), inputs=[dt, edges, *state])
            contact = [self.world, self.counts, self.neighbours, self.before, *state]
            wp.launch(keep_apart, dim=everyone, inputs=contact, outputs=[self.moves])
            wp.launch(apply, dim=everyone, inputs=[self.moves, self.x])
            wp.launch(stay_outside, dim=everyone, inputs=[self.world, self.before, *state])
            wp.launch(settle, dim=everyone, inputs=[dt, fastest, self.predicted, self.x, self.v])

    def measure(self) -> dict[str, float | np.ndarray]:
        """Energies, momentum, angular momentum, the deepest point in ball or ground, the greatest strain."""
        sums, momentum = wp.zeros(2, dtype=wp.float64), wp.zeros(2, dtype=wp.vec3d)
        deepest, strain = wp.full(1, -1.0, dtype=float), wp.zeros(1, dtype=float)
        inputs = [self.world, self.inverse_mass, self.x, self.v]
        wp.launch(measure, dim=self.count, inputs=inputs, outputs=[sums, momentum, deepest])
        for edges in self.edges:
            wp.launch(longest, dim=len(edges.ends), inputs=[edges, self.x], outputs=[strain])
        kinetic, potential = sums.numpy()
        return {
            "kinetic": float(kinetic),
            "potential": float(potential),
            "momentum": momentum.numpy()[0],
            "angular momentum": momentum.numpy()[1],
            "deepest": float(deepest.numpy()[0]),
            "strain": float(strain.numpy()[0]),
        }

    def picture(self, pixels: int) -> np.ndarray:
        view = _raster.camera((1.5, 1.25, 1.9), (0.0, 0.36, 0.0), pixels, pixels, field_of_view=40.0)
        look = _raster.daylight(sun=(0.35, 1.0, 0.55), ground_level=0.0, gloss=0.08)
        return _raster.draw(view, look, self.x, self.triangles, self.colours, reach=1.5)


def main() -> None:
    options = _show.arguments(__doc__, cloths=3, across=72, frames=100, substeps=20, pixels=400)
    cloths = Cloths(options.cloths, options.across, options.substeps)
    frames, stepping = [], 0.0
    for frame in _show.progress(options.frames, "cloth"):
        start = time.perf_counter()
        cloths.step()
        stepping += time.perf_counter() - start
        if frame % 2 == 0:
            frames.append(_show.to_bytes(cloths.picture(options.pixels)))
    found = cloths.measure()
    constraints = sum(len(e.ends) for e in cloths.edges) + sum(len(h.corners) for h in cloths.hinges)
    rate = options.frames * options.substeps * constraints / stepping / 1e6
    print(
        f"{cloths.count} particles, {constraints} constraints, {options.frames * options.substeps} steps in "
        f"{stepping:.1f} s: {rate:.0f} million constraints/s"
    )
    print(
        f"greatest strain {100 * found['strain']:.1f} %, deepest contact {1e3 * found['deepest']:.2f} mm, "
        f"kinetic energy {found['kinetic']:.3f} J"
    )
    _show.save_png(options.out / "cloth.png", cloths.picture(2 * options.pixels))
    _show.save_gif(options.out / "cloth.gif", frames, frame_ms=40)


if __name__ == "__main__":
    main()
