"""Mountains around a lake in the evening sun, path traced: a million triangles, and a mirror of water.

    python -m warp.examples.mountain_lake

A plain is displaced by octaves of noise; an octave counts less on the steep slopes of the ones before it, which leaves
ridges and filled valleys as erosion does. `wp.Mesh` builds a tree over its triangles, and each pixel follows paths of
light backwards. `wp.mesh_query_ray` finds the triangle that a path meets, `wp.mesh_query_ray_anyhit` asks whether the
sun can be seen from there, and the path goes on in a random direction, until it leaves for the sky. The lake mirrors a
path, as much as Fresnel's equations say. Between two points the air takes light away and adds some of the sky's.

Lengths are in kilometres, y is up, the lake lies at height 0.
"""

from __future__ import annotations

import time

import numpy as np

import warp as wp
from warp.examples import _raster, _show

FAR = 200.0
OFFSET = 2.0e-4  # new rays start this far above a surface, in km
EXTENT = 11.0  # edge of the plain
OCTAVES = 8  # finer ones would be finer than the grid


# ---- the mountains ----


@wp.func
def slope_of_noise(seed: wp.uint32, p: wp.vec2) -> wp.vec2:
    step = 0.02
    across = wp.noise(seed, p + wp.vec2(step, 0.0)) - wp.noise(seed, p - wp.vec2(step, 0.0))
    along = wp.noise(seed, p + wp.vec2(0.0, step)) - wp.noise(seed, p - wp.vec2(0.0, step))
    return wp.vec2(across, along) / (2.0 * step)


@wp.func
def height(x: float, z: float) -> float:
    """Octaves of noise above a basin."""
    seed = wp.rand_init(11)
    p = wp.vec2(0.33 * x + 4.7, 0.33 * z + 1.9)
    total = float(0.0)
    share = float(1.0)
    slope = wp.vec2(0.0, 0.0)
    for _ in range(OCTAVES):
        slope += 0.9 * slope_of_noise(seed, p)
        total += share * wp.noise(seed, p) / (1.0 + wp.length_sq(slope))
        share *= 0.5
        p = 2.0 * wp.vec2(0.8 * p[0] - 0.6 * p[1], 0.6 * p[0] + 0.8 * p[1])
    away = wp.length(wp.vec2(0.62 * (x + 0.1), 0.8 * (z - 3.3)))
    basin = wp.smoothstep(0.6, 4.6, away)
    return 2.0 * total * (0.12 + basin) + 2.1 * basin - 0.16


@wp.kernel
def displace(spacing: float, points: wp.array2d[wp.vec3]):
    row, column = wp.tid()
    x = spacing * float(column) - 0.5 * EXTENT
    z = spacing * float(row) - 0.68 * EXTENT
    points[row, column] = wp.vec3(x, height(x, z), z)


@wp.kernel
def paint(points: wp.array[wp.vec3], normals: wp.array[wp.vec3], colours: wp.array[wp.vec3]):
    """Share of light that the ground throws back: rock on steep slopes, else forest below and snow above."""
    i = wp.tid()
    p = points[i]
    level = normals[i][1]
    seed = wp.rand_init(5)
    rough = wp.noise(seed, 3.0 * p) + 0.5 * wp.noise(seed, 7.0 * p) + 0.25 * wp.noise(seed, 19.0 * p)
    bands = wp.noise(seed, wp.vec2(26.0 * p[1] + 1.5 * rough, 0.3 * p[0]))
    rock = wp.lerp(wp.vec3(0.24, 0.20, 0.17), wp.vec3(0.37, 0.32, 0.27), 0.5 + 0.5 * bands)
    forest = wp.lerp(wp.vec3(0.035, 0.055, 0.025), wp.vec3(0.12, 0.13, 0.05), 0.5 + 0.5 * rough)
    green = wp.smoothstep(0.55, 0.75, level + 0.1 * rough) * (1.0 - wp.smoothstep(0.65, 1.15, p[1] + 0.25 * rough))
    colour = wp.lerp(rock, forest, green)
    snow = wp.smoothstep(1.25, 1.6, p[1] + 0.2 * rough) * wp.smoothstep(0.58, 0.72, level + 0.05 * rough)
    colours[i] = wp.lerp(colour, wp.vec3(0.86, 0.88, 0.92), snow)


# ---- the light ----


@wp.struct
class Scene:
    mesh: wp.uint64
    normals: wp.array[wp.vec3]  # at the points of the mesh
    colours: wp.array[wp.vec3]
    sun: wp.vec3  # the direction it is in
    sunlight: wp.vec3  # on a surface that faces it
    sun_radius: float  # in radians
    zenith: wp.vec3  # light of the sky
    horizon: wp.vec3
    glow: wp.vec3  # around the sun
    clouds: float  # how much of the sky they may cover
    haze: wp.vec3  # how much of the light the air takes from a ray, in 1/km
    water: int  # 1 with a lake, else 0
    bounces: int  # diffuse ones


@wp.func
def cloud_cover(direction: wp.vec3) -> float:
    """Veils in a layer far above."""
    if direction[1] < 0.02:
        return 0.0
    seed = wp.rand_init(77)
    p = wp.vec2(direction[0], direction[2]) * (0.9 / (direction[1] + 0.12))
    p += 0.35 * wp.vec2(wp.noise(seed, 1.7 * p), wp.noise(seed, 1.7 * p + wp.vec2(5.2, 1.3)))
    total = float(0.0)
    share = float(0.5)
    for octave in range(5):
        stretched = wp.vec2(1.0 * p[0] + 0.4 * p[1], 2.2 * p[1]) * wp.pow(2.1, float(octave))
        total += share * wp.noise(seed, stretched)
        share *= 0.55
    return wp.smoothstep(-0.08, 0.5, total) * wp.smoothstep(0.02, 0.14, direction[1])


@wp.func
def sky(scene: Scene, direction: wp.vec3, is_seen: bool) -> wp.vec3:
    """Light from a direction, without the sun itself; clouds and the glow close to the sun only if `is_seen`."""
    up = wp.max(direction[1], 0.0)
    light = wp.lerp(scene.zenith, scene.horizon, wp.exp(-5.0 * up))
    towards = wp.max(wp.dot(direction, scene.sun), 0.0)
    light += 0.35 * wp.pow(towards, 6.0) * scene.glow
    if is_seen and scene.clouds > 0.0:
        light += wp.pow(towards, 90.0) * scene.glow
        cover = scene.clouds * cloud_cover(direction)
        lit = 1.25 * scene.horizon + scene.glow * (0.25 + 0.5 * wp.pow(towards, 3.0))
        light = wp.lerp(light, lit, cover)
    return light


@wp.func
def sun_disc(scene: Scene, direction: wp.vec3) -> wp.vec3:
    """Light of the sun's disc, for rays that see it directly or in the water."""
    if wp.dot(direction, scene.sun) < wp.cos(scene.sun_radius):
        return wp.vec3(0.0, 0.0, 0.0)
    return scene.sunlight / (wp.PI * scene.sun_radius * scene.sun_radius)


@wp.func
def towards_sun(scene: Scene, on_disc: wp.vec2) -> wp.vec3:
    """The direction of a point of the sun's disc."""
    side = wp.normalize(wp.cross(scene.sun, wp.vec3(0.0, 0.0, 1.0)))
    other = wp.cross(scene.sun, side)
    at = scene.sun_radius * on_disc
    return wp.normalize(scene.sun + at[0] * side + at[1] * other)


@wp.func
def ripples(p: wp.vec3, distance: float) -> wp.vec3:
    """Normal of the water: small waves, weaker with distance, as a pixel then covers many."""
    seed = wp.rand_init(3)
    strength = 0.012 / (1.0 + 0.8 * distance)
    a = wp.vec2(38.0 * p[0], 120.0 * p[2])
    b = wp.vec2(150.0 * p[0] + 40.0 * p[2], 320.0 * p[2])
    x = 0.5 * wp.noise(seed, a) + 0.5 * wp.noise(seed, b)
    z = wp.noise(seed, a + wp.vec2(9.1, 3.7)) + 0.6 * wp.noise(seed, b + wp.vec2(2.7, 8.3))
    return wp.normalize(wp.vec3(strength * x, 1.0, strength * z))


@wp.func
def mirrored_share(cosine: float) -> float:
    """Schlick's approximation of Fresnel's equations for water."""
    return 0.02 + 0.98 * wp.pow(1.0 - cosine, 5.0)


@wp.func
def trace(scene: Scene, start: wp.vec3, towards: wp.vec3, state: wp.uint32, rays: int):
    """Light that comes along a ray, by one random path; how many rays that took."""
    light = wp.vec3(0.0, 0.0, 0.0)
    share = wp.vec3(1.0, 1.0, 1.0)  # of the light at the end of the path that reaches its start
    p = start
    direction = towards
    sees_sun = bool(True)  # light that comes straight from the sun is added at diffuse surfaces, not found by chance
    bounce = int(0)
    for _ in range(16):
        hit = wp.mesh_query_ray(scene.mesh, p, direction, FAR)
        rays += 1
        t = wp.where(hit.result, hit.t, FAR)
        is_water = bool(False)
        if scene.water == 1 and direction[1] < 0.0 and -p[1] / direction[1] < t:
            t = -p[1] / direction[1]
            is_water = True

        air = wp.vec3(wp.exp(-scene.haze[0] * t), wp.exp(-scene.haze[1] * t), wp.exp(-scene.haze[2] * t))
        if hit.result or is_water:
            level = wp.normalize(wp.vec3(direction[0], 0.06, direction[2]))
            light += wp.cw_mul(share, wp.cw_mul(wp.vec3(1.0, 1.0, 1.0) - air, sky(scene, level, False)))
            share = wp.cw_mul(share, air)
            p += t * direction
        else:
            light += wp.cw_mul(share, sky(scene, direction, sees_sun))
            if sees_sun:
                light += wp.cw_mul(share, sun_disc(scene, direction))
            break

        if is_water:
            n = ripples(p, wp.length(p - start))
            mirrored = mirrored_share(wp.max(-wp.dot(n, direction), 0.0))
            # the rest goes into the water, of which little comes back
            light += (1.0 - mirrored) * wp.cw_mul(share, wp.cw_mul(wp.vec3(0.03, 0.10, 0.11), scene.zenith))
            share *= mirrored
            direction = direction - 2.0 * wp.dot(n, direction) * n
            if direction[1] < 0.0:
                direction = wp.vec3(direction[0], -direction[1], direction[2])
            p = wp.vec3(p[0], OFFSET, p[2])
            sees_sun = bounce == 0  # the sun that water throws on the mountains would be noise
            continue

        i = wp.mesh_get_index(scene.mesh, 3 * hit.face)
        j = wp.mesh_get_index(scene.mesh, 3 * hit.face + 1)
        k = wp.mesh_get_index(scene.mesh, 3 * hit.face + 2)
        w = 1.0 - hit.u - hit.v
        n = wp.normalize(hit.u * scene.normals[i] + hit.v * scene.normals[j] + w * scene.normals[k])
        flat = hit.normal
        if wp.dot(flat, direction) > 0.0:
            flat = -flat
        if wp.dot(n, flat) < 0.0:
            n = -n
        p += OFFSET * flat
        share = wp.cw_mul(share, hit.u * scene.colours[i] + hit.v * scene.colours[j] + w * scene.colours[k])
        sunward = towards_sun(scene, wp.sample_unit_disk(state))
        facing = wp.dot(n, sunward)
        if facing > 0.0 and wp.dot(flat, sunward) > 0.0:
            rays += 1
            if not wp.mesh_query_ray_anyhit(scene.mesh, p, sunward, FAR):
                light += facing / wp.PI * wp.cw_mul(share, scene.sunlight)
        bounce += 1
        if bounce > scene.bounces:
            break
        direction = wp.normalize(n + wp.sample_unit_sphere_surface(state))  # sampled in proportion to the cosine
        if wp.dot(direction, flat) <= 0.0:
            break
        sees_sun = False
    return light, rays


@wp.kernel
def render(scene: Scene, camera: _raster.Camera, samples: int, picture: wp.array2d[wp.vec3], rays: wp.array2d[int]):
    """Mean of the light that paths through a pixel bring."""
    row, column = wp.tid()
    pixel = row * picture.shape[1] + column
    total = wp.vec3(0.0, 0.0, 0.0)
    count = int(0)
    for sample in range(samples):
        state = wp.rand_init(sample, pixel)
        direction = _raster.ray(camera, float(column) + wp.randf(state), float(row) + wp.randf(state))
        light, count = trace(scene, camera.eye, direction, wp.rand_init(-1 - sample, pixel), count)
        total += light
    picture[row, column] = total / float(samples)
    rays[row, column] = count


@wp.kernel
def develop(exposure: float, picture: wp.array2d[wp.vec3]):
    """Film: bright light saturates slowly (Narkowicz's fit of the ACES curve)."""
    row, column = wp.tid()
    c = exposure * picture[row, column]
    for channel in range(3):
        x = c[channel]
        c[channel] = x * (2.51 * x + 0.03) / (x * (2.43 * x + 0.59) + 0.14)
    picture[row, column] = c


def grid_faces(rows: int, columns: int) -> np.ndarray:
    """Triangles (n, 3) between rows × columns points, facing up if rows go along z and columns along x."""
    at = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = at[:-1, :-1], at[:-1, 1:], at[1:, :-1], at[1:, 1:]
    return np.stack([a, c, b, b, c, d], axis=-1).reshape(-1, 3)


class Landscape:
    """The mountains as a mesh, in the evening."""

    def __init__(self, size: int = 768):
        points = wp.empty((size, size), dtype=wp.vec3)
        wp.launch(displace, dim=points.shape, inputs=[EXTENT / (size - 1)], outputs=[points])
        self.points = points.flatten()
        self.faces = wp.array(grid_faces(size, size), dtype=int)
        start = time.perf_counter()
        self.mesh = wp.Mesh(self.points, self.faces.flatten())
        self.seconds_to_build = time.perf_counter() - start

        self.scene = Scene()
        self.scene.mesh = self.mesh.id
        self.scene.normals = _raster.vertex_normals(self.points, self.faces)
        self.scene.colours = wp.empty(size * size, dtype=wp.vec3)
        wp.launch(paint, dim=size * size, inputs=[self.points, self.scene.normals], outputs=[self.scene.colours])
        self.scene.sun = wp.normalize(wp.vec3(-0.80, 0.30, 0.33))
        self.scene.sunlight, self.scene.sun_radius = wp.vec3(7.6, 4.9, 2.7), 0.012
        self.scene.zenith, self.scene.horizon = wp.vec3(0.16, 0.28, 0.55), wp.vec3(0.70, 0.62, 0.58)
        self.scene.glow, self.scene.clouds = wp.vec3(1.1, 0.62, 0.30), 0.75
        self.scene.haze = wp.vec3(0.014, 0.020, 0.032)
        self.scene.water, self.scene.bounces = 1, 2

    def picture(self, pixels: int, samples: int) -> tuple[np.ndarray, int]:
        """A picture (h, 1.5 h, 3) in linear light, and how many rays it took."""
        wide = 3 * pixels // 2
        view = _raster.camera((0.35, 0.14, 4.9), (-0.25, 0.66, 0.0), wide, pixels, field_of_view=40.0)
        picture, rays = wp.empty((pixels, wide), dtype=wp.vec3), wp.empty((pixels, wide), dtype=int)
        wp.launch(render, dim=picture.shape, inputs=[self.scene, view, samples], outputs=[picture, rays])
        wp.launch(develop, dim=picture.shape, inputs=[1.05, picture])
        return picture.numpy(), int(rays.numpy().sum())


def main() -> None:
    wp.set_device("cpu")  # meshes are for the CPU, so far
    options = _show.arguments(__doc__, size=768, pixels=640, samples=24)
    land = Landscape(options.size)
    print(f"{len(land.faces)} triangles; their tree was built in {1e3 * land.seconds_to_build:.0f} ms")
    land.picture(8, 1)  # compiles the kernels
    start = time.perf_counter()
    picture, rays = land.picture(options.pixels, options.samples)
    seconds = time.perf_counter() - start
    paths = options.samples * picture.shape[0] * picture.shape[1]
    print(
        f"{paths / 1e6:.1f} million paths, {rays / 1e6:.0f} million rays in {seconds:.1f} s: "
        f"{rays / seconds / 1e6:.1f} million rays/s"
    )
    _show.save_png(options.out / "mountain_lake.png", picture)


if __name__ == "__main__":
    main()
