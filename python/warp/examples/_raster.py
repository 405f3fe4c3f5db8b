"""Triangles to pictures, in kernels: the common part of the examples with surfaces.

A surface is points with normals and colours, and triangles. Drawing it is four launches: `project` the points, `fill`
the nearest triangle of each pixel into a depth buffer (an atomic maximum of nearness and triangle number in one
word), the same once more as the sun sees it, and `shade`. `resolve` then averages the samples of each pixel.
"""

from __future__ import annotations

import numpy as np

import warp as wp

SHADOW_TEXELS = 2048
FAR = 1.0e3  # nearness of parallel rays is FAR minus the distance


@wp.struct
class Camera:
    eye: wp.vec3
    right: wp.vec3
    up: wp.vec3
    forward: wp.vec3
    focal: float  # pixels per unit: at distance 1, or at any distance if the rays are parallel
    parallel: int  # 1 for parallel rays, as the sun's; else 0
    width: float
    height: float


@wp.struct
class Look:
    """Light and surroundings."""

    sun: wp.vec3  # direction towards the sun
    sunlight: wp.vec3
    sky: wp.vec3  # light from above
    ground: wp.vec3  # light from below, and the colour of the ground plane
    ground_level: float
    has_ground: int
    gloss: float


@wp.func
def to_screen(camera: Camera, p: wp.vec3) -> wp.vec3:
    """Pixel coordinates, and nearness: a number that is linear on the screen and greater for closer points."""
    d = p - camera.eye
    distance = wp.dot(d, camera.forward)
    scale = camera.focal
    nearness = FAR - distance
    if camera.parallel == 0:
        if distance < 1.0e-3:
            return wp.vec3(0.0, 0.0, -1.0)  # behind the eye
        scale = camera.focal / distance
        nearness = 1.0 / distance
    x = 0.5 * camera.width + scale * wp.dot(d, camera.right)
    y = 0.5 * camera.height - scale * wp.dot(d, camera.up)
    return wp.vec3(x, y, nearness)


@wp.func
def ray(camera: Camera, x: float, y: float) -> wp.vec3:
    """Direction from the eye through a pixel."""
    across = (x - 0.5 * camera.width) / camera.focal
    down = (y - 0.5 * camera.height) / camera.focal
    return wp.normalize(camera.forward + across * camera.right - down * camera.up)


@wp.kernel
def project(camera: Camera, points: wp.array[wp.vec3], screen: wp.array[wp.vec3]):
    i = wp.tid()
    screen[i] = to_screen(camera, points[i])


@wp.func
def twice_area(a: wp.vec3, b: wp.vec3, x: float, y: float) -> float:
    """Of the triangle a, b, (x, y) on the screen, with its sign."""
    return (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])


@wp.func
def weights(a: wp.vec3, b: wp.vec3, c: wp.vec3, x: float, y: float) -> wp.vec3:
    """Shares of the corners at (x, y); all of one sign inside. Zero for a triangle seen edge on."""
    whole = twice_area(a, b, c[0], c[1])
    if wp.abs(whole) < 1.0e-12:
        return wp.vec3(-1.0, -1.0, -1.0)
    return wp.vec3(twice_area(b, c, x, y), twice_area(c, a, x, y), twice_area(a, b, x, y)) / whole


@wp.kernel
def fill(triangles: wp.array2d[int], screen: wp.array[wp.vec3], buffer: wp.array2d[wp.uint64]):
    """One thread a triangle: every pixel centre that it covers keeps the nearest triangle."""
    t = wp.tid()
    a = screen[triangles[t, 0]]
    b = screen[triangles[t, 1]]
    c = screen[triangles[t, 2]]
    if a[2] <= 0.0 or b[2] <= 0.0 or c[2] <= 0.0:
        return
    left = wp.max(int(wp.ceil(wp.min(wp.min(a[0], b[0]), c[0]) - 0.5)), 0)
    right = wp.min(int(wp.floor(wp.max(wp.max(a[0], b[0]), c[0]) - 0.5)), buffer.shape[1] - 1)
    top = wp.max(int(wp.ceil(wp.min(wp.min(a[1], b[1]), c[1]) - 0.5)), 0)
    bottom = wp.min(int(wp.floor(wp.max(wp.max(a[1], b[1]), c[1]) - 0.5)), buffer.shape[0] - 1)
    for row in range(top, bottom + 1):
        for column in range(left, right + 1):
            w = weights(a, b, c, float(column) + 0.5, float(row) + 0.5)
            if w[0] >= 0.0 and w[1] >= 0.0 and w[2] >= 0.0:
                nearness = w[0] * a[2] + w[1] * b[2] + w[2] * c[2]
                # the bits of positive floats are ordered as the floats are
                key = (wp.uint64(wp.cast(nearness, wp.uint32)) << wp.uint64(32)) | wp.uint64(t)
                wp.atomic_max(buffer, row, column, key)


@wp.func
def nearest(key: wp.uint64) -> float:
    return wp.cast(wp.uint32(key >> wp.uint64(32)), wp.float32)


@wp.func
def sunlit(sun: Camera, shadow: wp.array2d[wp.uint64], p: wp.vec3) -> float:
    """Share of the sun's light that reaches p: nine looks at the sun's depth buffer."""
    s = to_screen(sun, p)
    column = int(wp.floor(s[0]))
    row = int(wp.floor(s[1]))
    if column < 1 or row < 1 or column >= shadow.shape[1] - 1 or row >= shadow.shape[0] - 1:
        return 1.0
    light = float(0.0)
    for dr in range(-1, 2):
        for dc in range(-1, 2):
            if nearest(shadow[row + dr, column + dc]) <= s[2] + 3.0 / sun.focal:
                light += 1.0 / 9.0
    return light


@wp.func
def backdrop(look: Look, direction: wp.vec3) -> wp.vec3:
    return wp.lerp(look.sky * 0.55, look.sky, wp.smoothstep(-0.3, 0.7, direction[1]))


@wp.func
def lit(look: Look, colour: wp.vec3, n: wp.vec3, view: wp.vec3, sun_share: float, open_share: float) -> wp.vec3:
    """Light that a surface sends to the viewer: sun, sky, ground, and the sun's reflection."""
    facing = wp.max(wp.dot(n, look.sun), 0.0) * sun_share
    around = wp.lerp(look.ground, look.sky, 0.5 + 0.5 * n[1]) * open_share
    half_way = wp.normalize(look.sun - view)
    shine = look.gloss * sun_share * wp.pow(wp.max(wp.dot(n, half_way), 0.0), 60.0)
    rim = 0.35 * look.gloss * open_share * wp.pow(1.0 - wp.abs(wp.dot(n, view)), 4.0)
    return wp.cw_mul(colour, look.sunlight * facing + around) + look.sunlight * shine + look.sky * rim


@wp.kernel
def shade(
    camera: Camera,
    sun: Camera,
    look: Look,
    points: wp.array[wp.vec3],
    normals: wp.array[wp.vec3],
    colours: wp.array[wp.vec3],
    occlusion: wp.array[float],
    triangles: wp.array2d[int],
    screen: wp.array[wp.vec3],
    buffer: wp.array2d[wp.uint64],
    shadow: wp.array2d[wp.uint64],
    picture: wp.array2d[wp.vec3],
):
    """Colour of one sample, linear light."""
    row, column = wp.tid()
    x = float(column) + 0.5
    y = float(row) + 0.5
    direction = ray(camera, x, y)
    result = backdrop(look, direction)
    key = buffer[row, column]
    if key != wp.uint64(0):
        t = int(key & wp.uint64(0xFFFFFFFF))
        i = triangles[t, 0]
        j = triangles[t, 1]
        k = triangles[t, 2]
        w = weights(screen[i], screen[j], screen[k], x, y)
        if camera.parallel == 0:  # shares on the surface, not on the screen
            w = wp.vec3(w[0] * screen[i][2], w[1] * screen[j][2], w[2] * screen[k][2])
            w = w / (w[0] + w[1] + w[2])
        p = w[0] * points[i] + w[1] * points[j] + w[2] * points[k]
        n = wp.normalize(w[0] * normals[i] + w[1] * normals[j] + w[2] * normals[k])
        if wp.dot(n, direction) > 0.0:
            n = -n  # surfaces are seen from both sides
        colour = w[0] * colours[i] + w[1] * colours[j] + w[2] * colours[k]
        open_share = float(1.0)
        if occlusion.shape[0] > 0:
            open_share = w[0] * occlusion[i] + w[1] * occlusion[j] + w[2] * occlusion[k]
        share = sunlit(sun, shadow, p + 0.5 / sun.focal * n)
        result = lit(look, colour, n, direction, share, open_share)
    elif look.has_ground == 1 and direction[1] < -1.0e-3:
        distance = (look.ground_level - camera.eye[1]) / direction[1]
        p = camera.eye + distance * direction
        up = wp.vec3(0.0, 1.0, 0.0)
        ground = lit(look, look.ground, up, direction, sunlit(sun, shadow, p), 1.0)
        away = wp.length(wp.vec2(p[0], p[2])) * sun.focal / sun.width  # the ground fades into the sky
        result = wp.lerp(ground, result, wp.smoothstep(0.4, 2.5, away))
    picture[row, column] = result


@wp.kernel
def resolve(samples: wp.array2d[wp.vec3], each_way: int, picture: wp.array2d[wp.vec3]):
    """Mean of the samples of each pixel, with a shoulder in the highlights."""
    row, column = wp.tid()
    total = wp.vec3(0.0, 0.0, 0.0)
    for r in range(each_way):
        for c in range(each_way):
            s = samples[row * each_way + r, column * each_way + c]
            total += wp.cw_div(s, wp.vec3(1.0, 1.0, 1.0) + 0.25 * s) * 1.2
    picture[row, column] = total / float(each_way * each_way)


@wp.kernel
def add_normals(points: wp.array[wp.vec3], triangles: wp.array2d[int], normals: wp.array[wp.vec3]):
    """Each triangle adds its normal, as long as twice its area, to its corners."""
    t = wp.tid()
    i = triangles[t, 0]
    j = triangles[t, 1]
    k = triangles[t, 2]
    n = wp.cross(points[j] - points[i], points[k] - points[i])
    wp.atomic_add(normals, i, n)
    wp.atomic_add(normals, j, n)
    wp.atomic_add(normals, k, n)


@wp.kernel
def normalize_all(normals: wp.array[wp.vec3]):
    i = wp.tid()
    normals[i] = wp.normalize(normals[i])


def vertex_normals(points: wp.array, triangles: wp.array) -> wp.array:
    """Unit normals at the points, each triangle counting with its area."""
    normals = wp.zeros(len(points), dtype=wp.vec3)
    wp.launch(add_normals, dim=len(triangles), inputs=[points, triangles, normals])
    wp.launch(normalize_all, dim=len(points), inputs=[normals])
    return normals


def camera(eye, target, width: int, height: int, field_of_view: float = 40.0) -> Camera:
    """A camera at ``eye`` that looks at ``target``; ``field_of_view`` in degrees, from top to bottom; y is up."""
    result = _frame(eye, target, width, height)
    result.focal = 0.5 * height / np.tan(np.radians(0.5 * field_of_view))
    return result


def _frame(eye, target, width: int, height: int) -> Camera:
    eye, target = np.asarray(eye, dtype=float), np.asarray(target, dtype=float)
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, (0.0, 1.0, 0.0))
    right /= np.linalg.norm(right)
    result = Camera()
    result.eye, result.forward, result.right = wp.vec3(*eye), wp.vec3(*forward), wp.vec3(*right)
    result.up = wp.vec3(*np.cross(right, forward))
    result.width, result.height = float(width), float(height)
    return result


def daylight(sun=(0.5, 0.8, 0.35), ground_level: float | None = None, gloss: float = 0.25) -> Look:
    look = Look()
    sun = np.asarray(sun, dtype=float)
    look.sun = wp.vec3(*(sun / np.linalg.norm(sun)))
    look.sunlight, look.sky = wp.vec3(1.05, 0.93, 0.74), wp.vec3(0.26, 0.34, 0.46)
    look.ground = wp.vec3(0.19, 0.17, 0.15)
    look.has_ground = int(ground_level is not None)
    look.ground_level = float(ground_level or 0.0)
    look.gloss = gloss
    return look


def draw(
    view: Camera,
    look: Look,
    points: wp.array,
    triangles: wp.array,
    colours: wp.array,
    *,
    normals: wp.array | None = None,
    occlusion: wp.array | None = None,
    reach: float = 1.0,
    centre=(0.0, 0.0, 0.0),
    samples: int = 2,
) -> np.ndarray:
    """Picture (h, w, 3) in linear light. ``reach``: radius around ``centre`` in which things throw shadows."""
    wide, high = int(view.width), int(view.height)
    if normals is None:
        normals = vertex_normals(points, triangles)

    def depth(eyes: Camera, rows: int, columns: int) -> tuple[wp.array, wp.array]:
        screen = wp.empty(len(points), dtype=wp.vec3)
        buffer = wp.zeros((rows, columns), dtype=wp.uint64)
        wp.launch(project, dim=len(points), inputs=[eyes, points], outputs=[screen])
        wp.launch(fill, dim=len(triangles), inputs=[triangles, screen], outputs=[buffer])
        return screen, buffer

    toward = np.array([look.sun[0], look.sun[1], look.sun[2]])
    sun = _frame(np.asarray(centre) + 3.0 * reach * toward, centre, SHADOW_TEXELS, SHADOW_TEXELS)
    sun.parallel, sun.focal = 1, SHADOW_TEXELS / (2.0 * reach)
    _, shadow = depth(sun, SHADOW_TEXELS, SHADOW_TEXELS)

    fine = Camera()
    fine.eye, fine.right, fine.up, fine.forward = view.eye, view.right, view.up, view.forward
    fine.focal, fine.width, fine.height = view.focal * samples, view.width * samples, view.height * samples
    screen, buffer = depth(fine, high * samples, wide * samples)
    many = wp.empty((high * samples, wide * samples), dtype=wp.vec3)
    inputs = [fine, sun, look, points, normals, colours, occlusion, triangles, screen, buffer, shadow]
    wp.launch(shade, dim=many.shape, inputs=inputs, outputs=[many])
    picture = wp.empty((high, wide), dtype=wp.vec3)
    wp.launch(resolve, dim=picture.shape, inputs=[many, samples], outputs=[picture])
    return picture.numpy()
