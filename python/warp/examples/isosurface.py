"""Two fluids that were mixed part again: a labyrinth grows, and its surface is drawn.

    python -m warp.examples.isosurface

The mixture c is 1 in one fluid and -1 in the other. It follows the equation of Cahn and Hilliard, which keeps the
amount of each fluid and lowers the energy of their mixing:

    dc/dt = ∇²m,     m = c³ - c - w² ∇²c,     energy = ∫ (c² - 1)²/4 + w² |∇c|²/2

w is the width of the boundary between them. From noise, domains form within a few units of time and then coarsen, so
that their size grows as the cube root of time. Marching cubes finds the boundary within a ball, a few steps of Taubin
smooth it, and a march through the field tells how much sky each point of it sees. At the end the surface is measured
(its parts and handles, area, volume and curvatures), and drawn in the colours of its mean curvature.
"""

from __future__ import annotations

import time

import numpy as np

import warp as wp
from warp.examples import _cubes, _mesh, _raster, _show

WIDTH = 1.0  # of the boundary between the fluids, in cells
DUST = 8.0  # cells: surfaces that enclose less are noise
STEP = 0.0115  # of time; explicit steps are stable below 2 / (12 (12 w² + 2)), 12 being the Laplacian's largest rate


@wp.func
def around(f: wp.array3d[float], i: int, j: int, k: int) -> float:
    """Laplacian of f in a box whose opposite sides meet."""
    n0 = f.shape[0]
    n1 = f.shape[1]
    n2 = f.shape[2]
    total = f[(i + 1) % n0, j, k] + f[(i + n0 - 1) % n0, j, k]
    total += f[i, (j + 1) % n1, k] + f[i, (j + n1 - 1) % n1, k]
    total += f[i, j, (k + 1) % n2] + f[i, j, (k + n2 - 1) % n2]
    return total - 6.0 * f[i, j, k]


@wp.kernel
def stir(seed: int, share: float, c: wp.array3d[float]):
    """A mixture with `share` of the first fluid, and noise."""
    i, j, k = wp.tid()
    state = wp.rand_init(seed, (i * c.shape[1] + j) * c.shape[2] + k)
    c[i, j, k] = 2.0 * share - 1.0 + 0.1 * wp.randn(state)


@wp.kernel
def potential(c: wp.array3d[float], m: wp.array3d[float]):
    i, j, k = wp.tid()
    here = c[i, j, k]
    m[i, j, k] = here * here * here - here - WIDTH * WIDTH * around(c, i, j, k)


@wp.kernel
def diffuse(dt: float, m: wp.array3d[float], c: wp.array3d[float]):
    i, j, k = wp.tid()
    c[i, j, k] += dt * around(m, i, j, k)


@wp.kernel
def energy(c: wp.array3d[float], sums: wp.array[wp.float64]):
    """Amount of the first fluid less the second, and the energy."""
    i, j, k = wp.tid()
    here = c[i, j, k]
    along = c[(i + 1) % c.shape[0], j, k] - here
    across = c[i, (j + 1) % c.shape[1], k] - here
    up = c[i, j, (k + 1) % c.shape[2]] - here
    well = here * here - 1.0
    slope = along * along + across * across + up * up
    wp.atomic_add(sums, 0, wp.float64(here))
    wp.atomic_add(sums, 1, wp.float64(0.25 * well * well + 0.5 * WIDTH * WIDTH * slope))


@wp.kernel
def trim(c: wp.array3d[float], radius: float, field: wp.array3d[float]):
    """The first fluid inside a ball: positive in it, negative outside."""
    i, j, k = wp.tid()
    middle = 0.5 * wp.vec3(float(c.shape[0] - 1), float(c.shape[1] - 1), float(c.shape[2] - 1))
    distance = wp.length(wp.vec3(float(i), float(j), float(k)) - middle)
    ball = 0.7 * (radius - distance)
    # a minimum with a rounded edge, which the grid can follow
    blend = wp.clamp(0.5 + 0.5 * (ball - c[i, j, k]), 0.0, 1.0)
    field[i, j, k] = wp.lerp(ball, c[i, j, k], blend) - blend * (1.0 - blend)


@wp.func
def sample(f: wp.array3d[float], p: wp.vec3) -> float:
    """Trilinear value at p, in cells; the border goes on outside."""
    x = wp.clamp(p[0], 0.0, float(f.shape[0]) - 1.001)
    y = wp.clamp(p[1], 0.0, float(f.shape[1]) - 1.001)
    z = wp.clamp(p[2], 0.0, float(f.shape[2]) - 1.001)
    i = int(x)
    j = int(y)
    k = int(z)
    u = x - float(i)
    v = y - float(j)
    w = z - float(k)
    near = wp.lerp(wp.lerp(f[i, j, k], f[i, j, k + 1], w), wp.lerp(f[i, j + 1, k], f[i, j + 1, k + 1], w), v)
    far_j = wp.lerp(f[i + 1, j, k], f[i + 1, j, k + 1], w)
    far_k = wp.lerp(f[i + 1, j + 1, k], f[i + 1, j + 1, k + 1], w)
    return wp.lerp(near, wp.lerp(far_j, far_k, v), u)


@wp.kernel
def bend(f: wp.array3d[float], mean: wp.array3d[float], gauss: wp.array3d[float]):
    """Curvatures of the surface of constant f through each node: how its normal, which points to lower values, turns.

    Goldman, "Curvature formulas for implicit curves and surfaces" (2005), with central differences."""
    i, j, k = wp.tid()
    mean[i, j, k] = 0.0
    gauss[i, j, k] = 0.0
    if i < 1 or j < 1 or k < 1 or i > f.shape[0] - 2 or j > f.shape[1] - 2 or k > f.shape[2] - 2:
        return
    here = f[i, j, k]
    g = 0.5 * wp.vec3(
        f[i + 1, j, k] - f[i - 1, j, k],
        f[i, j + 1, k] - f[i, j - 1, k],
        f[i, j, k + 1] - f[i, j, k - 1],
    )
    xx = f[i + 1, j, k] - 2.0 * here + f[i - 1, j, k]
    yy = f[i, j + 1, k] - 2.0 * here + f[i, j - 1, k]
    zz = f[i, j, k + 1] - 2.0 * here + f[i, j, k - 1]
    xy = 0.25 * (f[i + 1, j + 1, k] - f[i + 1, j - 1, k] - f[i - 1, j + 1, k] + f[i - 1, j - 1, k])
    xz = 0.25 * (f[i + 1, j, k + 1] - f[i + 1, j, k - 1] - f[i - 1, j, k + 1] + f[i - 1, j, k - 1])
    yz = 0.25 * (f[i, j + 1, k + 1] - f[i, j + 1, k - 1] - f[i, j - 1, k + 1] + f[i, j - 1, k - 1])
    second = wp.mat33(xx, xy, xz, xy, yy, yz, xz, yz, zz)
    adjugate = wp.matrix_from_rows(
        wp.cross(second[1], second[2]), wp.cross(second[2], second[0]), wp.cross(second[0], second[1])
    )
    steep = wp.length(g)
    if steep > 1.0e-3:
        along = wp.dot(g, second @ g)
        mean[i, j, k] = (along - steep * steep * wp.trace(second)) / (2.0 * steep * steep * steep)
        gauss[i, j, k] = wp.dot(g, adjugate @ g) / (steep * steep * steep * steep)


@wp.kernel
def bend_at(
    nodes: wp.array3d[float],
    more_nodes: wp.array3d[float],
    to_cells: float,
    middle: wp.vec3,
    points: wp.array[wp.vec3],
    mean: wp.array[float],
    gauss: wp.array[float],
):
    """Curvatures at the points of the surface, in the points' unit of length."""
    p = wp.tid()
    here = points[p] * to_cells + middle
    mean[p] = sample(nodes, here) * to_cells
    gauss[p] = sample(more_nodes, here) * to_cells * to_cells


@wp.kernel
def bend_in_all(mean: wp.array[float], gauss: wp.array[float], area: wp.array[float], sums: wp.array[wp.float64]):
    """Integrals over the surface: of 1, of the mean curvature and of its square; and how much of it is a saddle."""
    p = wp.tid()
    wp.atomic_add(sums, 0, wp.float64(area[p]))
    wp.atomic_add(sums, 1, wp.float64(area[p] * mean[p]))
    wp.atomic_add(sums, 2, wp.float64(area[p] * mean[p] * mean[p]))
    if gauss[p] < 0.0:
        wp.atomic_add(sums, 3, wp.float64(area[p]))


@wp.kernel
def paint_bends(mean: wp.array[float], most: float, colours: wp.array[wp.vec3]):
    """Hollows are blue, ridges red, and surfaces without mean curvature, as soap films, white."""
    p = wp.tid()
    bent = wp.clamp(mean[p] / most, -1.0, 1.0)
    side = wp.where(bent < 0.0, wp.vec3(0.06, 0.20, 0.62), wp.vec3(0.72, 0.10, 0.06))
    colours[p] = wp.lerp(wp.vec3(0.85, 0.83, 0.78), side, wp.abs(bent))


@wp.kernel
def look_around(
    field: wp.array3d[float],
    to_cells: float,
    middle: wp.vec3,
    points: wp.array[wp.vec3],
    normals: wp.array[wp.vec3],
    radius: float,
    occlusion: wp.array[float],
    colours: wp.array[wp.vec3],
):
    """How open the space above each point is, by rays through the field; and its colour."""
    p = wp.tid()
    n = normals[p]
    here = points[p] * to_cells + middle
    side = wp.normalize(wp.cross(n, wp.where(wp.abs(n[1]) < 0.8, wp.vec3(0.0, 1.0, 0.0), wp.vec3(1.0, 0.0, 0.0))))
    other = wp.cross(n, side)
    open_rays = float(0.0)
    for ray in range(9):
        direction = n
        if ray > 0:
            angle = 0.25 * wp.pi * float(ray)
            tilt = 0.6 + 0.5 * float(ray % 2)
            direction = wp.normalize(n + tilt * (wp.cos(angle) * side + wp.sin(angle) * other))
        through = float(1.0)
        distance = float(1.5)
        while distance < 22.0 and through > 0.02:
            value = sample(field, here + distance * direction)
            through *= 1.0 - wp.smoothstep(-0.2, 0.5, value)
            distance += 1.0 + 0.12 * distance
        open_rays += through / 9.0
    occlusion[p] = open_rays
    depth = wp.smoothstep(0.55, 1.0, wp.length(points[p]) * to_cells / radius)
    outside = wp.vec3(0.93, 0.72, 0.42)  # the cut through the ball; deeper points are redder, then blue
    inside = wp.lerp(wp.vec3(0.10, 0.20, 0.42), wp.vec3(0.75, 0.22, 0.12), depth)
    cut = wp.smoothstep(0.985, 0.999, wp.length(points[p]) * to_cells / radius)
    colours[p] = wp.lerp(inside, outside, cut)


class Mixture:
    def __init__(self, size: int = 96, share: float = 0.5, seed: int = 7):
        self.shape = (size, size, size)
        self.radius = 0.5 * size - 3.0
        self.time, self.c = 0.0, wp.empty(self.shape, dtype=float)
        self.m, self.field = wp.empty(self.shape, dtype=float), wp.empty(self.shape, dtype=float)
        wp.launch(stir, dim=self.shape, inputs=[seed, share], outputs=[self.c])
        # the picture's unit is the radius of the ball, its origin the middle
        self.spacing = 1.0 / self.radius
        corner = -0.5 * (size - 1) * self.spacing
        self.middle = wp.vec3(0.5 * (size - 1), 0.5 * (size - 1), 0.5 * (size - 1))
        self.surface = _cubes.Surface(self.shape, (corner, corner, corner), self.spacing)

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            wp.launch(potential, dim=self.shape, inputs=[self.c], outputs=[self.m])
            wp.launch(diffuse, dim=self.shape, inputs=[STEP, self.m], outputs=[self.c])
            self.time += STEP

    def amount_and_energy(self) -> tuple[float, float]:
        sums = wp.zeros(2, dtype=wp.float64)
        wp.launch(energy, dim=self.shape, inputs=[self.c, sums])
        amount, total = sums.numpy()
        return float(amount), float(total)

    def mesh(self, smoothing: int = 4, refined: bool = False) -> tuple[wp.array, wp.array]:
        """Closed surface of the first fluid in the ball: points, triangles. ``refined``: without drops that are smaller
        than a few cells, and without needles among its triangles."""
        wp.launch(trim, dim=self.shape, inputs=[self.c, self.radius], outputs=[self.field])
        points, triangles = self.surface.extract(self.field)
        if refined:
            points, triangles = _mesh.without_dust(points, triangles, DUST * self.spacing**3)
            points, triangles = _mesh.collapse(points, triangles, 0.5 * self.spacing)
        _mesh.smooth(points, triangles, smoothing)
        return points, triangles

    def curvatures(self, points: wp.array) -> tuple[wp.array, wp.array]:
        """Mean and Gaussian curvature of the surface that ``mesh`` found, at its points."""
        nodes, more_nodes = wp.empty(self.shape, dtype=float), wp.empty(self.shape, dtype=float)
        wp.launch(bend, dim=self.shape, inputs=[self.field], outputs=[nodes, more_nodes])
        mean, gauss = wp.empty(len(points), dtype=float), wp.empty(len(points), dtype=float)
        inputs = [nodes, more_nodes, self.radius, self.middle, points]
        wp.launch(bend_at, dim=len(points), inputs=inputs, outputs=[mean, gauss])
        return mean, gauss

    def report(self) -> str:
        """The topology of the labyrinth and the curvatures of its boundary, as text."""
        points, triangles = self.mesh(refined=True)
        edges = _mesh.edge_table(triangles)
        _, faults = _mesh.audit(edges)
        parts = _mesh.parts(points, triangles, edges)
        mean, gauss = self.curvatures(points)
        sums = wp.zeros(4, dtype=wp.float64)
        wp.launch(bend_in_all, dim=len(points), inputs=[mean, gauss, _mesh.areas(points, triangles), sums])
        area, bent, squared, saddle = sums.numpy()
        handles = int((1 - parts.euler // 2).sum())
        state = "closed" if faults == 0 else f"open at {faults} edges"
        return (
            f"surface of {len(triangles)} triangles, {state}: {len(parts.euler)} parts with {handles} handles, "
            f"area {area:.1f}, volume {parts.volume.sum():.2f} of the ball's {4 / 3 * np.pi:.2f}\n"
            f"mean curvature {bent / area:.1f} ± {np.sqrt(squared / area - (bent / area) ** 2):.1f}, "
            f"saddles are {100 * saddle / area:.0f} % of it; the Euler characteristic is {parts.euler.sum()}"
        )

    def picture(self, pixels: int, angle: float = 0.6, bends: bool = False) -> np.ndarray:
        """The surface in daylight; ``bends``: in the colours of its mean curvature."""
        points, triangles = self.mesh(refined=bends)
        normals = _raster.vertex_normals(points, triangles)
        occlusion, colours = wp.empty(len(points), dtype=float), wp.empty(len(points), dtype=wp.vec3)
        inputs = [self.field, self.radius, self.middle, points, normals, self.radius]
        wp.launch(look_around, dim=len(points), inputs=inputs, outputs=[occlusion, colours])
        if bends:
            mean, _ = self.curvatures(points)
            wp.launch(paint_bends, dim=len(points), inputs=[mean, 0.2 * self.radius], outputs=[colours])
        view = _raster.camera(
            (3.1 * np.sin(angle), 1.25, 3.1 * np.cos(angle)), (0.0, -0.08, 0.0), pixels, pixels, field_of_view=43.0
        )
        look = _raster.daylight(sun=(np.sin(angle + 0.9), 1.1, np.cos(angle + 0.9)), ground_level=-1.0, gloss=0.3)
        return _raster.draw(view, look, points, triangles, colours, normals=normals, occlusion=occlusion, reach=1.6)


def main() -> None:
    options = _show.arguments(__doc__, size=96, before=1600, frames=48, steps=70, pixels=400)
    mixture = Mixture(options.size)
    for _ in _show.progress(options.before, "domains form"):
        mixture.step()
    amount, before = mixture.amount_and_energy()
    frames, stepping, drawing = [], 0.0, 0.0
    for frame in _show.progress(options.frames, "isosurface"):
        start = time.perf_counter()
        mixture.step(options.steps)
        middle = time.perf_counter()
        angle = 0.6 + 2.0 * np.pi * frame / options.frames
        frames.append(_show.to_bytes(mixture.picture(options.pixels, angle)))
        stepping += middle - start
        drawing += time.perf_counter() - middle
    kept, after = mixture.amount_and_energy()
    rate = options.frames * options.steps * options.size**3 / stepping / 1e6
    print(
        f"{options.frames * options.steps} steps of {options.size}³ cells at {rate:.0f} million cells/s; "
        f"{drawing / options.frames * 1e3:.0f} ms a picture"
    )
    print(f"energy {before:.0f} -> {after:.0f}, amount moved by {abs(kept - amount) / options.size**3:.1e}")
    print(mixture.report())
    _show.save_png(options.out / "isosurface.png", mixture.picture(2 * options.pixels))
    _show.save_png(options.out / "isosurface_curvature.png", mixture.picture(2 * options.pixels, bends=True))
    _show.save_gif(options.out / "isosurface.gif", frames, frame_ms=60)


if __name__ == "__main__":
    main()
