"""Compile time of a kernel of about 80 lines of vector math with loops: spheres lit by lamps, with shadows."""

import numpy as np
import scenario

# The constant {number} makes the kernels of all modules differ.
WARP = """
import warp as wp


@wp.func
def hit_sphere(origin: wp.vec3, direction: wp.vec3, center: wp.vec3, radius: float):
    offset = origin - center
    b = wp.dot(offset, direction)
    c = wp.dot(offset, offset) - radius * radius
    discriminant = b * b - c
    distance = float(-1.0)
    if discriminant > 0.0:
        root = wp.sqrt(discriminant)
        near = -b - root
        if near > 0.001:
            distance = near
        elif root - b > 0.001:
            distance = root - b
    return distance


@wp.func
def fresnel(cosine: float, index: float):
    r0 = (1.0 - index) / (1.0 + index)
    r0 = r0 * r0
    m = wp.clamp(1.0 - cosine, 0.0, 1.0)
    return r0 + (1.0 - r0) * m * m * m * m * m


@wp.kernel
def render(
    width: int,
    height: int,
    spheres: wp.array(dtype=wp.vec4),
    lamps: wp.array(dtype=wp.vec3),
    image: wp.array(dtype=wp.vec3, ndim=2),
):
    row, column = wp.tid()
    u = (float(column) + 0.5) / float(width) - 0.5
    v = (float(row) + 0.5) / float(height) - 0.5
    origin = wp.vec3(0.0, 0.0, -{number}.0)
    direction = wp.normalize(wp.vec3(u, v, 1.0))
    light = wp.vec3(0.0, 0.0, 0.0)
    strength = float(1.0)
    for bounce in range(3):
        nearest = float(1.0e6)
        found = int(-1)
        for s in range(spheres.shape[0]):
            sphere = spheres[s]
            t = hit_sphere(origin, direction, wp.vec3(sphere[0], sphere[1], sphere[2]), sphere[3])
            if t > 0.0 and t < nearest:
                nearest = t
                found = s
        if found < 0:
            sky = 0.5 * (direction[1] + 1.0)
            light += strength * ((1.0 - sky) * wp.vec3(1.0, 1.0, 1.0) + sky * wp.vec3(0.5, 0.7, 1.0))
            break
        sphere = spheres[found]
        point = origin + nearest * direction
        normal = wp.normalize(point - wp.vec3(sphere[0], sphere[1], sphere[2]))
        color = wp.vec3(
            0.5 + 0.5 * wp.sin(3.0 * float(found)),
            0.5 + 0.5 * wp.cos(2.0 * float(found)),
            0.5 + 0.5 * wp.sin(5.0 * float(found) + 1.0),
        )
        shade = float(0.1)
        for l in range(lamps.shape[0]):
            way = lamps[l] - point
            distance = wp.length(way)
            way = way / distance
            facing = wp.dot(way, normal)
            if facing > 0.0:
                dark = float(1.0)
                for s in range(spheres.shape[0]):
                    other = spheres[s]
                    t = hit_sphere(point, way, wp.vec3(other[0], other[1], other[2]), other[3])
                    if t > 0.0 and t < distance:
                        dark = 0.0
                        break
                half = wp.normalize(way - direction)
                gloss = wp.pow(wp.max(wp.dot(half, normal), 0.0), 32.0)
                shade += dark * (facing + 0.5 * gloss) / (1.0 + 0.1 * distance * distance)
        mirror = fresnel(wp.abs(wp.dot(direction, normal)), 1.5)
        light += strength * (1.0 - mirror) * shade * color
        strength *= mirror
        origin = point + 0.001 * normal
        direction = direction - 2.0 * wp.dot(direction, normal) * normal
    image[row, column] = light
"""


def launch_warp(wp, loaded):
    spheres = wp.array(np.array([[0, 0, 0, 1], [2, 0, 1, 1]], dtype=np.float32), dtype=wp.vec4, device=scenario.device)
    lamps = wp.array(np.array([[5, 5, -5]], dtype=np.float32), dtype=wp.vec3, device=scenario.device)
    image = wp.zeros((8, 8), dtype=wp.vec3, device=scenario.device)
    wp.launch(loaded.render, dim=(8, 8), inputs=[8, 8, spheres, lamps, image], device=scenario.device)
    return lambda: check(image.numpy(), int(loaded.__name__[-1]))


def check(pixels, number):
    assert np.isfinite(pixels).all() and pixels.max() > 0.1
    # The corner sees the sky only.
    v = (0.5 / 8.0) - 0.5
    sky = 0.5 * (v / np.sqrt(2.0 * v * v + 1.0) + 1.0)
    if number > 2:
        np.testing.assert_allclose(pixels[0, 0], (1 - sky) + sky * np.array([0.5, 0.7, 1.0]), rtol=1e-4)


def source(number):
    return WARP.replace("{number}", str(number + 2))


if __name__ == "__main__":
    scenario.measure_compile(
        "compile medium",
        __doc__,
        {"weft": source, "peer": source},
        {"weft": launch_warp, "peer": launch_warp},
    )
