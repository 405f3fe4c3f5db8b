"""A puzzle ball, shells within shells, is carved from a volume of distances; rays find its surface by sphere tracing.

    python -m warp.examples.puzzle_ball

A `wp.Volume` holds the distance to the surface of a ball, negative inside. Carving a tool's shape T out of a solid S
leaves max(S, -T): kernels look up each voxel and store the greater number. First a lathe turns the gaps between the
shells, then drills that point at the centre go through each shell by itself, so that the shells seem turned against
each other. The result is a level set in a narrow band of tiles around the surface; it is written to a .nvdb file, read
back, and drawn from there.

A ray may always go as far as the distance says without a hit. The gradient of the distance is the normal. Paths of
light bounce between the shells, which makes the light inside warm.

The ball has radius 1; y is up.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import warp as wp
from warp.examples import _raster, _show

HALF = 1.08  # the volume reaches from -HALF to HALF
BAND = 3.0  # half the width of the narrow band, in voxels

# shells from outside: outer and inner radius
SHELLS = [(1.0, 0.87), (0.80, 0.69), (0.63, 0.53), (0.47, 0.0)]


@wp.struct
class Drill:
    """A cone whose tip is the centre."""

    axis: wp.vec3
    sine: float  # of the angle between axis and side
    cosine: float


@wp.func
def drilled(drill: Drill, p: wp.vec3) -> float:
    """Distance to a drill, negative inside."""
    along = wp.dot(drill.axis, p)
    across = wp.length(p - along * drill.axis)
    return drill.cosine * across - drill.sine * along


@wp.func
def between(p: wp.vec3, inner: float, outer: float) -> float:
    """Distance to the space between two spheres around the centre, negative inside."""
    r = wp.length(p)
    return wp.max(r - outer, inner - r)


# ---- carving ----


@wp.func
def place_of(volume: wp.uint64, i: int, j: int, k: int) -> wp.vec3:
    return wp.volume_index_to_world(volume, wp.vec3(float(i), float(j), float(k)))


@wp.kernel
def make_ball(volume: wp.uint64):
    i, j, k = wp.tid()
    wp.volume_store_f(volume, i, j, k, wp.length(place_of(volume, i, j, k)) - 1.0)


@wp.kernel
def turn_gap(volume: wp.uint64, inner: float, outer: float):
    i, j, k = wp.tid()
    tool = between(place_of(volume, i, j, k), inner, outer)
    wp.volume_store_f(volume, i, j, k, wp.max(wp.volume_lookup_f(volume, i, j, k), -tool))


@wp.kernel
def drill_shell(volume: wp.uint64, drills: wp.array[Drill], inner: float, outer: float, reach: float):
    """Drills work from `outer` to `inner`; further than `reach` away from there the distances stay."""
    i, j, k = wp.tid()
    p = place_of(volume, i, j, k)
    shell = between(p, inner, outer)
    if shell < reach:
        d = wp.volume_lookup_f(volume, i, j, k)
        for n in range(drills.shape[0]):
            d = wp.max(d, -wp.max(drilled(drills[n], p), shell))
        wp.volume_store_f(volume, i, j, k, d)


@wp.kernel
def mark_band(volume: wp.uint64, band: float, wanted: wp.array3d[int]):
    """Tiles, 8 voxels each way, with a voxel near the surface."""
    i, j, k = wp.tid()
    if wp.abs(wp.volume_lookup_f(volume, i, j, k)) < band:
        wanted[i // 8, j // 8, k // 8] = 1


@wp.kernel
def copy_tiles(source: wp.uint64, tiles: wp.array[wp.vec3i], target: wp.uint64):
    t, i, j, k = wp.tid()
    at = tiles[t] + wp.vec3i(i, j, k)
    wp.volume_store_f(target, at[0], at[1], at[2], wp.volume_lookup_f(source, at[0], at[1], at[2]))


def icosahedron() -> np.ndarray:
    """Directions of its twelve corners."""
    g = 0.5 * (1.0 + 5.0**0.5)
    corners = [np.roll((0.0, a, b * g), n) for n in range(3) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    return np.array(corners) / np.hypot(1.0, g)


def dodecahedron() -> np.ndarray:
    """Directions of its twenty corners, the middles of the icosahedron's faces."""
    g = 0.5 * (1.0 + 5.0**0.5)
    corners = [np.array((a, b, c)) for a in (-1.0, 1.0) for b in (-1.0, 1.0) for c in (-1.0, 1.0)]
    corners += [np.roll((0.0, a * g, b / g), n) for n in range(3) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    return np.array(corners) / 3.0**0.5


def icosidodecahedron() -> np.ndarray:
    """Directions of its thirty corners, the middles of the icosahedron's edges."""
    corners = icosahedron()
    middles = [0.5 * (a + b) for n, a in enumerate(corners) for b in corners[:n] if a @ b > 0.4]
    return np.array(middles) / np.linalg.norm(middles[0])


def turn(axis, angle: float) -> np.ndarray:
    """The matrix of a rotation."""
    x, y, z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    k = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * k @ k


def pattern(shell: int) -> tuple[np.ndarray, np.ndarray]:
    """Directions (n, 3) of a shell's holes, and their half angles in radians; no two of them meet."""
    families = [icosahedron(), dodecahedron(), icosidodecahedron()]
    turned = [np.eye(3), turn((0.3, 1.0, 0.2), 0.33), turn((1.0, -0.2, 0.6), 0.5), turn((0.1, 0.5, 1.0), 0.9)][shell]
    sizes = [(0.35, 0.155, 0.115), (0.36, 0.11, 0.0), (0.30, 0.20, 0.0), (0.0, 0.0, 0.0)][shell]
    angles = np.repeat(sizes, [len(family) for family in families])
    return (np.concatenate(families) @ turned.T)[angles > 0.0], angles[angles > 0.0]


def drills_of(shell: int) -> wp.array:
    drills = []
    for axis, angle in zip(*pattern(shell)):
        drill = Drill()
        drill.axis, drill.sine, drill.cosine = wp.vec3(*axis), float(np.sin(angle)), float(np.cos(angle))
        drills.append(drill)
    return wp.array(drills, dtype=Drill)


def carve(size: int) -> wp.Volume:
    """The ball in a cube of size³ voxels, all of which have distances; they are at most the true ones."""
    voxel = 2.0 * HALF / (size - 1)
    volume = wp.Volume.allocate((0, 0, 0), (size - 1,) * 3, voxel, bg_value=BAND * voxel, translation=(-HALF,) * 3)
    cube = (size, size, size)
    wp.launch(make_ball, dim=cube, inputs=[volume.id])
    for (_, inner), (outer, _) in zip(SHELLS, SHELLS[1:]):
        wp.launch(turn_gap, dim=cube, inputs=[volume.id, outer, inner])
    for shell, (outer, inner) in enumerate(SHELLS[:-1]):
        # a tool reaches into the gaps beside its shell
        start, end = outer + 0.03, inner - 0.03
        wp.launch(drill_shell, dim=cube, inputs=[volume.id, drills_of(shell), end, start, 4.0 * BAND * voxel])
    return volume


def narrow_band(volume: wp.Volume, size: int) -> wp.Volume:
    """The same level set without the tiles that are far from the surface."""
    voxel = volume.get_voxel_size()[0]
    tiles = -(-size // 8)
    wanted = wp.zeros((tiles, tiles, tiles), dtype=int)
    wp.launch(mark_band, dim=(size, size, size), inputs=[volume.id, BAND * voxel, wanted])
    first = wp.array(8 * np.argwhere(wanted.numpy() == 1), dtype=wp.vec3i)
    band = wp.Volume.allocate_by_tiles(first, voxel, bg_value=BAND * voxel, translation=(-HALF,) * 3)
    wp.launch(copy_tiles, dim=(len(first), 8, 8, 8), inputs=[volume.id, first, band.id])
    return band


# ---- the picture ----


@wp.struct
class Scene:
    volume: wp.uint64
    voxel: float  # its edge
    light: wp.vec3  # the direction of a large lamp
    lamp: wp.vec3  # its light on a surface that faces it
    lamp_radius: float
    bounces: int


@wp.func
def march(scene: Scene, start: wp.vec3, direction: wp.vec3) -> float:
    """The length of a ray until it meets the ball; -1 if it does not."""
    # The ray's part within the sphere around the ball.
    b = wp.dot(start, direction)
    inside = b * b - wp.length_sq(start) + 1.02
    if inside <= 0.0:
        return -1.0
    root = wp.sqrt(inside)
    t = wp.max(-b - root, 0.0)
    last = -b + root
    near = 0.05 * scene.voxel
    for _ in range(400):
        if t >= last:
            break
        at = wp.volume_world_to_index(scene.volume, start + t * direction)
        d = wp.volume_sample_f(scene.volume, at, wp.Volume.LINEAR)
        if d < near:
            return t
        t += wp.max(d, 0.3 * near)
    return -1.0


@wp.func
def normal_at(scene: Scene, p: wp.vec3) -> wp.vec3:
    slope = wp.vec3(0.0, 0.0, 0.0)
    wp.volume_sample_grad_f(scene.volume, wp.volume_world_to_index(scene.volume, p), wp.Volume.LINEAR, slope)
    return wp.normalize(slope)


@wp.func
def studio(direction: wp.vec3) -> wp.vec3:
    """Light of the room: dim below, a wide soft window on one side."""
    light = wp.lerp(wp.vec3(0.10, 0.10, 0.12), wp.vec3(0.42, 0.47, 0.55), 0.5 + 0.5 * direction[1])
    window = wp.max(wp.dot(direction, wp.normalize(wp.vec3(0.8, 0.35, 0.2))), 0.0)
    return light + 0.9 * wp.vec3(0.75, 0.86, 1.0) * wp.pow(window, 12.0)


@wp.func
def lacquer(p: wp.vec3) -> wp.vec3:
    """Each shell has its colour."""
    r = wp.length(p)
    colour = wp.vec3(0.87, 0.80, 0.66)
    if r < 0.84:
        colour = wp.vec3(0.20, 0.47, 0.38)
    if r < 0.66:
        colour = wp.vec3(0.80, 0.52, 0.16)
    if r < 0.50:
        colour = wp.vec3(0.62, 0.08, 0.06)
    return colour


@wp.func
def trace(scene: Scene, start: wp.vec3, towards: wp.vec3, state: wp.uint32) -> wp.vec3:
    """Light that comes along a ray, by one random path between the ball, the table and the room."""
    light = wp.vec3(0.0, 0.0, 0.0)
    share = wp.vec3(1.0, 1.0, 1.0)
    p = start
    direction = towards
    for bounce in range(scene.bounces + 1):
        t = march(scene, p, direction)
        n = wp.vec3(0.0, 1.0, 0.0)
        colour = wp.vec3(0.34, 0.31, 0.29)
        if t >= 0.0:
            p += t * direction
            n = normal_at(scene, p)
            colour = lacquer(p)
            if bounce == 0:  # a thin glossy coat
                mirrored = direction - 2.0 * wp.dot(n, direction) * n
                coat = 0.03 + 0.5 * wp.pow(1.0 - wp.clamp(-wp.dot(n, direction), 0.0, 1.0), 5.0)
                light += coat * studio(mirrored)
                half_way = wp.normalize(scene.light - direction)
                light += 0.25 * wp.pow(wp.max(wp.dot(n, half_way), 0.0), 120.0) * scene.lamp
        elif direction[1] < -1.0e-3 and p[1] > -1.0 and -(p[1] + 1.0) / direction[1] < 40.0:
            p -= (p[1] + 1.0) / direction[1] * direction
            fade = wp.exp(-0.02 * wp.length_sq(p))
            light += (1.0 - fade) * wp.cw_mul(share, studio(direction))
            share *= fade
        else:
            light += wp.cw_mul(share, studio(direction))
            break
        p += 0.6 * scene.voxel * n
        share = wp.cw_mul(share, colour)
        on_lamp = scene.lamp_radius * wp.sample_unit_sphere_surface(state)
        lampward = wp.normalize(scene.light + on_lamp)
        facing = wp.dot(n, lampward)
        if facing > 0.0:
            if march(scene, p, lampward) < 0.0:
                light += facing / wp.PI * wp.cw_mul(share, scene.lamp)
        direction = wp.normalize(n + wp.sample_unit_sphere_surface(state))
    return light


@wp.kernel
def render(scene: Scene, camera: _raster.Camera, samples: int, picture: wp.array2d[wp.vec3]):
    row, column = wp.tid()
    total = wp.vec3(0.0, 0.0, 0.0)
    for sample in range(samples):
        state = wp.rand_init(sample, row * picture.shape[1] + column)
        direction = _raster.ray(camera, float(column) + wp.randf(state), float(row) + wp.randf(state))
        c = trace(scene, camera.eye, direction, wp.rand_init(-1 - sample, row * picture.shape[1] + column))
        total += wp.cw_div(c, wp.vec3(1.0, 1.0, 1.0) + 0.3 * c) * 1.25  # a shoulder in the highlights
    picture[row, column] = total / float(samples)


def picture(volume: wp.Volume, pixels: int, samples: int) -> np.ndarray:
    """A picture (h, h, 3) of the ball on a table, in linear light."""
    scene = Scene()
    scene.volume, scene.voxel = volume.id, volume.get_voxel_size()[0]
    scene.light, scene.lamp = wp.normalize(wp.vec3(-0.55, 0.75, 0.55)), wp.vec3(3.3, 3.0, 2.6)
    scene.lamp_radius, scene.bounces = 0.12, 3
    view = _raster.camera((0.9, 1.5, 3.9), (0.0, -0.06, 0.0), pixels, pixels, field_of_view=36.0)
    result = wp.empty((pixels, pixels), dtype=wp.vec3)
    wp.launch(render, dim=result.shape, inputs=[scene, view, samples], outputs=[result])
    return result.numpy()


def through_file(volume: wp.Volume, path: Path) -> wp.Volume:
    """Writes a volume to a file and reads it back."""
    path.parent.mkdir(parents=True, exist_ok=True)
    volume.save_to_nvdb(path, codec="zip")
    return wp.Volume.load_from_nvdb(path)


def main() -> None:
    options = _show.arguments(__doc__, size=240, pixels=560, samples=16)
    carve(16)  # compiles the kernels
    start = time.perf_counter()
    solid = carve(options.size)
    wp.synchronize()
    seconds = time.perf_counter() - start
    band = narrow_band(solid, options.size)
    print(
        f"{options.size}³ voxels carved by {sum(len(pattern(n)[0]) for n in range(len(SHELLS)))} drills in "
        f"{seconds:.2f} s; {band.get_tile_count()} of {solid.get_tile_count()} tiles are near the surface"
    )
    path = options.out / "puzzle_ball.nvdb"
    volume = through_file(band, path)
    print(f"wrote {path}, {path.stat().st_size / 1e6:.1f} MB")
    picture(volume, 8, 1)
    start = time.perf_counter()
    image = picture(volume, options.pixels, options.samples)
    seconds = time.perf_counter() - start
    print(f"{options.samples * options.pixels**2 / seconds / 1e6:.2f} million paths/s")
    _show.save_png(options.out / "puzzle_ball.png", image)


if __name__ == "__main__":
    main()
