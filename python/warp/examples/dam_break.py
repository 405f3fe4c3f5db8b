"""A dam breaks: a hundred thousand particles of water (smoothed particle hydrodynamics), found by `wp.HashGrid`.

    python -m warp.examples.dam_break

Density and forces are sums over neighbours, weighted by Wendland's kernel W. Water is slightly compressible: Tait's
equation of state gives the pressure p of a density ρ, with a speed of sound several times that of the fastest wave
(Monaghan, Simulating free surface flows with SPH, J. Comput. Phys. 110, 1994):

    ρᵢ = Σ m W(xᵢ - xⱼ),      dvᵢ/dt = g - Σ m (pᵢ/ρᵢ² + pⱼ/ρⱼ² + Πᵢⱼ) ∇W(xᵢ - xⱼ)

Π is Monaghan's viscosity, between particles that approach each other. The tank's floor and sides are mirrors: near one,
every neighbour counts a second time as its image, which moves towards the mirror as the neighbour does. So water feels
no less density beside a wall, and slips along it.

The picture looks at the particles as one body of water: spheres are drawn into a depth buffer, which is smoothed; the
surface in it reflects the sky and lets the floor shine through, the bluer the more water is behind.

Units: metres, seconds, kilograms; y is up.
"""

from __future__ import annotations

import time

import numpy as np

import warp as wp
from warp.examples import _raster, _show

GRAVITY = 9.81
DENSITY = 1000.0  # of water at rest
STIFFNESS = 7.0  # the exponent of Tait's equation
VISCOSITY = 0.06  # Monaghan's α
ENERGIES = ("kinetic", "potential", "elastic")
COURANT = 0.5  # how far sound goes in a step, in lengths of the kernel


@wp.struct
class Water:
    reach: float  # of the kernel
    mass: float  # of a particle
    share: float  # its mass in sums, in which it counts too: such that particles at rest have the density of water
    sound: float  # its speed
    gravity: wp.vec3
    tank: wp.vec3  # the corner that is far from (0, 0, 0); the top is open
    dt: float


# ---- the kernel ----


@wp.func
def weight(r: float, reach: float) -> float:
    """Wendland's C2 kernel in space: its integral over the ball of radius `reach` is 1."""
    q = wp.min(r / reach, 1.0)
    s = (1.0 - q) * (1.0 - q)
    return 21.0 / (2.0 * wp.PI * reach * reach * reach) * s * s * (4.0 * q + 1.0)


@wp.func
def slope(r: float, reach: float) -> float:
    """Derivative of `weight` by r, over r."""
    q = wp.min(r / reach, 1.0)
    s = 1.0 - q
    square = reach * reach
    return -210.0 / (wp.PI * square * square * reach) * s * s * s


# ---- walls that are mirrors ----


@wp.func
def mirrors_near(water: Water, x: wp.vec3) -> int:
    """A bit for each axis along which a wall is within reach."""
    near = int(0)
    for axis in range(3):
        if x[axis] < water.reach or (axis != 1 and water.tank[axis] - x[axis] < water.reach):
            near |= 1 << axis
    return near


@wp.func
def mirrored(water: Water, x: wp.vec3, axes: int) -> wp.vec3:
    """The image of a place in the nearest wall of each of these axes."""
    for axis in range(3):
        if (axes >> axis) & 1 == 1:
            wall = wp.where(axis != 1 and x[axis] > 0.5 * water.tank[axis], water.tank[axis], 0.0)
            x[axis] = 2.0 * wall - x[axis]
    return x


@wp.func
def turned(v: wp.vec3, axes: int) -> wp.vec3:
    for axis in range(3):
        if (axes >> axis) & 1 == 1:
            v[axis] = -v[axis]
    return v


# ---- a step ----


@wp.func
def pressure_of(water: Water, density: float) -> float:
    """Tait's equation; 0 if particles are further apart than at rest, as in spray."""
    stiff = DENSITY * water.sound * water.sound / STIFFNESS
    return wp.max(stiff * (wp.pow(density / DENSITY, STIFFNESS) - 1.0), 0.0)


@wp.kernel
def find_density(
    grid: wp.uint64, water: Water, x: wp.array[wp.vec3], density: wp.array[float], pressure: wp.array[float]
):
    """Density, and pressure over squared density."""
    i = wp.tid()
    near = mirrors_near(water, x[i])
    total = float(0.0)
    for j in wp.hash_grid_query(grid, x[i], water.reach):
        distance = wp.length(x[i] - x[j])
        if distance < water.reach:
            total += weight(distance, water.reach)
            axes = near
            while axes > 0:  # every part of the bits of `near`: one wall, two of an edge, three of a corner
                total += weight(wp.length(x[i] - mirrored(water, x[j], axes)), water.reach)
                axes = (axes - 1) & near
    rho = water.share * total
    density[i] = rho
    pressure[i] = pressure_of(water, rho) / (rho * rho)


@wp.func
def push(water: Water, r: wp.vec3, v: wp.vec3, pressures: float, densities: float) -> wp.vec3:
    """Acceleration by a neighbour at distance r that moves at v, seen from it."""
    distance = wp.length(r)
    if distance >= water.reach:
        return wp.vec3(0.0, 0.0, 0.0)
    approach = wp.min(wp.dot(v, r), 0.0) / (distance * distance + 0.0025 * water.reach * water.reach)
    viscous = -VISCOSITY * water.sound * water.reach * approach / densities
    return -water.share * (pressures + viscous) * slope(distance, water.reach) * r


@wp.kernel
def accelerate(
    grid: wp.uint64,
    water: Water,
    x: wp.array[wp.vec3],
    v: wp.array[wp.vec3],
    density: wp.array[float],
    pressure: wp.array[float],
    a: wp.array[wp.vec3],
):
    i = wp.tid()
    near = mirrors_near(water, x[i])
    total = water.gravity
    for j in wp.hash_grid_query(grid, x[i], water.reach):
        if wp.length_sq(x[i] - x[j]) < water.reach * water.reach:
            pressures = pressure[i] + pressure[j]
            densities = density[i] + density[j]
            total += push(water, x[i] - x[j], v[i] - v[j], pressures, densities)
            axes = near
            while axes > 0:
                away = x[i] - mirrored(water, x[j], axes)
                total += push(water, away, v[i] - turned(v[j], axes), pressures, densities)
                axes = (axes - 1) & near
    a[i] = total


@wp.kernel
def move(water: Water, a: wp.array[wp.vec3], x: wp.array[wp.vec3], v: wp.array[wp.vec3]):
    """Velocities first, then places with the new ones; nothing leaves the tank."""
    i = wp.tid()
    u = v[i] + water.dt * a[i]
    p = x[i] + water.dt * u
    for axis in range(3):
        least = 0.02 * water.reach
        most = wp.where(axis == 1, 1.0e6, water.tank[axis] - least)
        if p[axis] < least or p[axis] > most:
            p[axis] = wp.clamp(p[axis], least, most)
            u[axis] = 0.0
    v[i] = u
    x[i] = p


@wp.func
def elastic_energy(water: Water, density: float) -> float:
    """Of a kilogram: the integral of the pressure over the squared density, from the density at rest on."""
    s = density / DENSITY
    if s < 1.0:
        return 0.0
    power = STIFFNESS - 1.0
    return water.sound * water.sound / STIFFNESS * ((wp.pow(s, power) - 1.0) / power + 1.0 / s - 1.0)


@wp.kernel
def measure(
    water: Water, x: wp.array[wp.vec3], v: wp.array[wp.vec3], density: wp.array[float], sums: wp.array[wp.float64]
):
    """Kinetic, potential and elastic energy; volume; where the front is."""
    i = wp.tid()
    wp.atomic_add(sums, 0, wp.float64(0.5 * water.mass * wp.length_sq(v[i])))
    wp.atomic_add(sums, 1, wp.float64(-water.mass * wp.dot(water.gravity, x[i])))
    wp.atomic_add(sums, 2, wp.float64(water.mass * elastic_energy(water, density[i])))
    wp.atomic_add(sums, 3, wp.float64(water.mass / wp.max(density[i], DENSITY)))
    wp.atomic_max(sums, 4, wp.float64(x[i][0]))


# ---- the picture ----


DRAWN = 0.75  # radius of the spheres, in distances between particles
THICKNESS = 2.0 / (4.0 / 3.0 * np.pi * DRAWN**3)  # of the water for half a chord, as spheres overlap


@wp.kernel
def draw_spheres(
    camera: _raster.Camera,
    radius: float,
    x: wp.array[wp.vec3],
    depth: wp.array2d[float],
    thickness: wp.array2d[float],
):
    """Each sphere keeps the nearest depth of every pixel that it covers, and adds its water there."""
    i = wp.tid()
    d = x[i] - camera.eye
    distance = wp.dot(d, camera.forward)
    scale = camera.focal / distance
    column = 0.5 * camera.width + scale * wp.dot(d, camera.right)
    row = 0.5 * camera.height - scale * wp.dot(d, camera.up)
    reach = radius * scale
    for r in range(wp.max(int(row - reach), 0), wp.min(int(row + reach) + 1, depth.shape[0])):
        for c in range(wp.max(int(column - reach), 0), wp.min(int(column + reach) + 1, depth.shape[1])):
            across = (float(c) + 0.5 - column) / reach
            down = (float(r) + 0.5 - row) / reach
            inside = 1.0 - across * across - down * down
            if inside > 0.0:
                half = radius * wp.sqrt(inside)
                wp.atomic_min(depth, r, c, distance - half)
                wp.atomic_add(thickness, r, c, THICKNESS * half)


@wp.kernel
def smooth(camera: _raster.Camera, radius: float, vertical: int, depth: wp.array2d[float], smoother: wp.array2d[float]):
    """Mean depth along a row or a column, of pixels about as far away (a bilateral filter, one axis at a time)."""
    row, column = wp.tid()
    middle = depth[row, column]
    if middle > 1.0e3:
        smoother[row, column] = middle
        return
    width = wp.clamp(int(1.6 * radius * camera.focal / middle), 1, 24)
    total = float(0.0)
    share = float(0.0)
    for k in range(-width, width + 1):
        r = row + wp.where(vertical == 1, k, 0)
        c = column + wp.where(vertical == 1, 0, k)
        if r >= 0 and c >= 0 and r < depth.shape[0] and c < depth.shape[1]:
            off = (depth[r, c] - middle) / (2.5 * radius)
            near = 2.0 * float(k) / float(width)
            w = wp.exp(-0.5 * near * near - off * off)
            if wp.abs(off) < 4.0:
                total += w * depth[r, c]
                share += w
    smoother[row, column] = total / share


@wp.func
def at_depth(camera: _raster.Camera, depth: wp.array2d[float], row: int, column: int) -> wp.vec3:
    """The place that a pixel shows."""
    r = wp.clamp(row, 0, depth.shape[0] - 1)
    c = wp.clamp(column, 0, depth.shape[1] - 1)
    across = (float(c) + 0.5 - 0.5 * camera.width) / camera.focal
    down = (float(r) + 0.5 - 0.5 * camera.height) / camera.focal
    return camera.eye + depth[r, c] * (camera.forward + across * camera.right - down * camera.up)


@wp.func
def shorter(a: wp.vec3, b: wp.vec3) -> wp.vec3:
    return wp.where(wp.length_sq(a) < wp.length_sq(b), a, b)


@wp.func
def surroundings(water: Water, sun: wp.vec3, p: wp.vec3, direction: wp.vec3) -> wp.vec3:
    """The view from p without the water: a tiled floor, and the sky."""
    sky = wp.lerp(wp.vec3(0.40, 0.48, 0.58), wp.vec3(0.12, 0.22, 0.40), wp.smoothstep(-0.05, 0.6, direction[1]))
    sky += wp.vec3(1.0, 0.9, 0.7) * wp.pow(wp.max(wp.dot(direction, sun), 0.0), 300.0) * 6.0
    if direction[1] > -1.0e-3:
        return sky
    t = -p[1] / direction[1]
    q = p + t * direction
    fade = wp.exp(-0.06 * wp.length(wp.vec2(q[0] - 0.5 * water.tank[0], q[2])))
    tile = 0.25
    across = wp.abs(q[0] / tile - wp.round(q[0] / tile))
    along = wp.abs(q[2] / tile - wp.round(q[2] / tile))
    grout = 1.0 - wp.smoothstep(0.012, 0.03, wp.min(across, along))
    inside = q[0] > 0.0 and q[0] < water.tank[0] and q[2] > 0.0 and q[2] < water.tank[2]
    stone = wp.where(inside, wp.vec3(0.46, 0.48, 0.46), wp.vec3(0.17, 0.17, 0.18))
    return wp.lerp(sky, stone * (1.0 - 0.35 * grout), fade)


@wp.kernel
def shade(
    camera: _raster.Camera,
    water: Water,
    sun: wp.vec3,
    depth: wp.array2d[float],
    thickness: wp.array2d[float],
    picture: wp.array2d[wp.vec3],
):
    row, column = wp.tid()
    direction = _raster.ray(camera, float(column) + 0.5, float(row) + 0.5)
    if depth[row, column] > 1.0e3:
        picture[row, column] = surroundings(water, sun, camera.eye, direction)
        return
    p = at_depth(camera, depth, row, column)
    # of the neighbours on either side the one that is on the same surface: nearer to this one
    right = at_depth(camera, depth, row, column + 1) - p
    left = p - at_depth(camera, depth, row, column - 1)
    below = at_depth(camera, depth, row + 1, column) - p
    above = p - at_depth(camera, depth, row - 1, column)
    n = wp.normalize(wp.cross(shorter(below, above), shorter(right, left)))
    cosine = wp.clamp(-wp.dot(n, direction), 0.0, 1.0)
    mirrored_share = 0.02 + 0.98 * wp.pow(1.0 - cosine, 5.0)
    reflected = surroundings(water, sun, p, wp.normalize(direction + 2.0 * cosine * n))
    bent = wp.normalize(direction - 0.25 * (n + cosine * direction))
    thick = thickness[row, column]
    clear = wp.vec3(wp.exp(-2.6 * thick), wp.exp(-0.75 * thick), wp.exp(-0.45 * thick))
    body = wp.vec3(0.02, 0.16, 0.24) * (0.6 + 0.4 * wp.max(wp.dot(n, sun), 0.0))
    through = wp.cw_mul(clear, surroundings(water, sun, p, bent))
    through += wp.cw_mul(wp.vec3(1.0, 1.0, 1.0) - clear, body)
    colour = wp.lerp(through, reflected, mirrored_share)
    half_way = wp.normalize(sun - direction)
    colour += 0.8 * wp.vec3(1.0, 0.95, 0.85) * wp.pow(wp.max(wp.dot(n, half_way), 0.0), 200.0)
    picture[row, column] = colour


def lattice_sum(reach: float) -> float:
    """Sum of the kernel over a cubic lattice of spacing 1, around one of its points; nearly 1."""
    line = np.arange(-3, 4)
    r = np.linalg.norm(np.stack(np.meshgrid(line, line, line), -1).reshape(-1, 3), axis=1)
    q = np.minimum(r / reach, 1.0)
    return float((21.0 / (2.0 * np.pi * reach**3) * (1.0 - q) ** 4 * (4.0 * q + 1.0)).sum())


class Dam:
    """Water behind a dam that is taken away at the start.

    Args:
        particles: about how many.
        column: extent of the water along x, y and z; `tank`: of the tank, whose z is that of the column.
        sound: speed of sound, in units of the speed of long waves, sqrt(g height).
    """

    def __init__(self, particles: int = 100_000, column=(2.0, 1.0, 1.4), tank=(5.0, 1.4), sound: float = 6.0):
        spacing = float((np.prod(column) / particles) ** (1.0 / 3.0))
        counts = [max(1, round(extent / spacing)) for extent in column]
        lines = [(np.arange(n) + 0.5) * extent / n for n, extent in zip(counts, column)]
        x = np.stack(np.meshgrid(*lines, indexing="ij"), -1).reshape(-1, 3)
        self.count = len(x)
        self.column, self.spacing = column, spacing
        water = self.water = Water()
        water.reach = 2.1 * spacing
        water.mass = DENSITY * float(np.prod(column)) / self.count
        water.share = water.mass / lattice_sum(water.reach / spacing)
        water.sound = sound * float(np.sqrt(GRAVITY * column[1]))
        water.gravity = wp.vec3(0.0, -GRAVITY, 0.0)
        water.tank = wp.vec3(tank[0], 1.0e6, tank[1])
        water.dt = COURANT * 0.5 * water.reach / water.sound
        self.time = 0.0
        self.x, self.v = wp.array(x, dtype=wp.vec3), wp.zeros(self.count, dtype=wp.vec3)
        self.a = wp.empty(self.count, dtype=wp.vec3)
        self.density, self.pressure = wp.full(self.count, DENSITY, dtype=float), wp.zeros(self.count, dtype=float)
        cells = [int(np.ceil(extent / water.reach)) for extent in (tank[0], 2.0 * column[1], tank[1])]
        self.grid = wp.HashGrid(*cells)

    def step(self) -> None:
        self.grid.build(self.x, self.water.reach)
        found = [self.grid.id, self.water, self.x]
        state = [self.density, self.pressure]
        wp.launch(find_density, dim=self.count, inputs=found, outputs=state)
        wp.launch(accelerate, dim=self.count, inputs=[*found, self.v, *state], outputs=[self.a])
        wp.launch(move, dim=self.count, inputs=[self.water, self.a, self.x, self.v])
        self.time += self.water.dt

    def measure(self) -> dict[str, float]:
        """Energies in joules, the volume of the water as far as it is compressed, and how far its front has come."""
        sums = wp.zeros(5, dtype=wp.float64)
        wp.launch(measure, dim=self.count, inputs=[self.water, self.x, self.v, self.density], outputs=[sums])
        return dict(zip(("kinetic", "potential", "elastic", "volume", "front"), sums.numpy().tolist()))

    def picture(self, pixels: int) -> np.ndarray:
        """A picture (h, 16/9 h, 3) in linear light."""
        samples, (length, width) = 2, (self.water.tank[0], self.water.tank[2])
        high, wide = samples * pixels, samples * (16 * pixels // 9)
        view = _raster.camera((0.58 * length, 1.7, width + 4.6), (0.495 * length, 0.42, 0.5), wide, high, 33.0)
        sun = wp.normalize(wp.vec3(0.55, 0.62, -0.45))
        radius = DRAWN * self.spacing
        depth, smoother = wp.full((high, wide), 1.0e4, dtype=float), wp.empty((high, wide), dtype=float)
        thickness = wp.zeros((high, wide), dtype=float)
        layers = [depth, thickness]
        wp.launch(draw_spheres, dim=self.count, inputs=[view, radius, self.x], outputs=layers)
        for _ in range(2):
            wp.launch(smooth, dim=depth.shape, inputs=[view, radius, 0, depth], outputs=[smoother])
            wp.launch(smooth, dim=depth.shape, inputs=[view, radius, 1, smoother], outputs=[depth])
        many, picture = wp.empty((high, wide), dtype=wp.vec3), wp.empty((pixels, wide // samples), dtype=wp.vec3)
        wp.launch(shade, dim=many.shape, inputs=[view, self.water, sun, *layers], outputs=[many])
        wp.launch(_raster.resolve, dim=picture.shape, inputs=[many, samples], outputs=[picture])
        return picture.numpy()


def main() -> None:
    wp.set_device("cpu")  # hash grids are for the CPU, so far
    options = _show.arguments(__doc__, particles=100_000, seconds=1.8, frames=72, pixels=270)
    dam = Dam(options.particles)
    dam.step()
    before, frames, steps, stepping = dam.measure(), [], 0, 0.0
    for frame in _show.progress(options.frames, "dam break"):
        start = time.perf_counter()
        while dam.time < options.seconds * frame / options.frames:
            dam.step()
            steps += 1
        stepping += time.perf_counter() - start
        frames.append(_show.to_bytes(dam.picture(options.pixels)))
    after = dam.measure()
    energy = sum(after[kind] for kind in ENERGIES) / sum(before[kind] for kind in ENERGIES)
    print(
        f"{dam.count} particles, {steps} steps in {stepping:.1f} s: {steps / stepping:.1f} steps/s, "
        f"{steps * dam.count / stepping / 1e6:.1f} million particles/s"
    )
    print(f"{100 * energy:.1f} % of the energy is left, {100 * after['volume'] / before['volume']:.1f} % of the volume")
    _show.save_png(options.out / "dam_break.png", dam.picture(2 * options.pixels))
    _show.save_gif(options.out / "dam_break.gif", frames, frame_ms=40)


if __name__ == "__main__":
    main()
