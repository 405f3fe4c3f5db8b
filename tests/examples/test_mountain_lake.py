"""Light by paths: in a hollow under a bright sky, behind a roof, and in a mirror of water."""

import numpy as np
import pytest
import warp as wp
from warp.examples import _raster, mountain_lake


@wp.kernel
def follow(
    scene: mountain_lake.Scene,
    starts: wp.array[wp.vec3],
    towards: wp.array[wp.vec3],
    samples: int,
    light: wp.array[wp.vec3],
    rays: wp.array[int],
):
    i = wp.tid()
    total = wp.vec3(0.0, 0.0, 0.0)
    count = int(0)
    for sample in range(samples):
        found, count = mountain_lake.trace(scene, starts[i], towards[i], wp.rand_init(sample, i), count)
        total += found
    light[i] = total / float(samples)
    rays[i] = count


def scene_of(points, faces, albedo, sky=0.0, sun=(0.0, 1.0, 0.0), sunlight=0.0):
    """Bare ground in clear air; and what has to be kept for as long as it is used."""
    points, faces = wp.array(points, dtype=wp.vec3), wp.array(faces, dtype=int)
    mesh = wp.Mesh(points, faces.flatten())
    scene = mountain_lake.Scene()
    scene.mesh, scene.normals = mesh.id, _raster.vertex_normals(points, faces)
    scene.colours = wp.full(len(points), wp.vec3(albedo, albedo, albedo), dtype=wp.vec3)
    scene.sun, scene.sun_radius = wp.normalize(wp.vec3(*sun)), 1.0e-4
    scene.sunlight = wp.vec3(sunlight, sunlight, sunlight)
    scene.zenith = scene.horizon = wp.vec3(sky, sky, sky)
    return scene, mesh


def seen(scene, starts, towards, samples=1):
    starts, towards = wp.array(starts, dtype=wp.vec3), wp.array(towards, dtype=wp.vec3)
    light, rays = wp.zeros(len(starts), dtype=wp.vec3), wp.zeros(len(starts), dtype=int)
    wp.launch(follow, dim=len(starts), inputs=[scene, starts, towards, samples], outputs=[light, rays])
    return light.numpy(), rays.numpy()


def bowl(rows=48, columns=96):
    """The lower half of a unit sphere, seen from inside."""
    down = np.linspace(0.0, np.pi / 2, rows)[:, None]
    around = np.linspace(0.0, 2.0 * np.pi, columns)[None]
    x, z = np.cos(down) * np.cos(around), np.cos(down) * np.sin(around)
    points = np.stack([x, np.broadcast_to(-np.sin(down), x.shape), z], axis=-1).reshape(-1, 3)
    return points, mountain_lake.grid_faces(rows, columns)


@pytest.mark.minutes_on_cuda
def test_light_in_a_bowl_is_that_of_the_series_of_bounces():
    """In a sphere every place sees every other alike (Sumpner, 1892): half of what a hemisphere sees is sky."""
    albedo = 0.7
    rng = np.random.default_rng(2)
    towards = rng.standard_normal((2000, 3)) * (0.5, 0.0, 0.5) - (0.0, 1.0, 0.0)
    towards /= np.linalg.norm(towards, axis=1)[:, None]
    for bounces in (1, 3):
        scene, mesh = scene_of(*bowl(), albedo, sky=2.0)
        scene.bounces = bounces
        light, _ = seen(scene, np.full((2000, 3), (0.0, -0.05, 0.0)), towards, samples=64)
        expected = 2.0 * sum(albedo**k * 0.5**k for k in range(1, bounces + 1))
        np.testing.assert_allclose(light.mean(), expected, rtol=0.01)
        steep = towards[:, 1] > -0.8
        np.testing.assert_allclose(light[steep].mean(), light[~steep].mean(), rtol=0.03)
    del mesh


def test_a_roof_throws_its_shadow_where_the_sun_says():
    ground = np.array([(-5.0, 0.0, -5.0), (-5.0, 0.0, 5.0), (5.0, 0.0, -5.0), (5.0, 0.0, 5.0)])
    roof = 0.1 * ground + (0.0, 1.0, 0.0)
    faces = np.array([(0, 1, 2), (2, 1, 3)])
    sun = np.array((0.6, 0.7, -0.2))
    scene, mesh = scene_of(np.concatenate([ground, roof]), np.concatenate([faces, faces + 4]), 0.5, 0.0, sun, 3.0)
    places = np.random.default_rng(4).uniform(-2.0, 2.0, (4000, 3)) * (1.0, 0.0, 1.0)
    light, rays = seen(scene, places + (0.0, 0.5, 0.0), np.full(places.shape, (0.0, -1.0, 0.0)))
    on_roof = np.abs(places + sun / sun[1])[:, [0, 2]].max(axis=1)
    clear = abs(on_roof - 0.5) > 1e-3
    expected = np.where(on_roof > 0.5, 0.5 / np.pi * 3.0 * sun[1] / np.linalg.norm(sun), 0.0)
    np.testing.assert_allclose(light[clear], np.repeat(expected[clear, None], 3, axis=1), rtol=1e-4)
    assert 100 < (expected == 0.0).sum() < 1000 and (rays == 2).all()
    del mesh


def test_water_mirrors_as_fresnel_says_and_air_takes_its_share():
    far_away = np.array([(500.0, 1.0, 0.0), (501.0, 1.0, 0.0), (500.0, 1.0, 1.0)])
    scene, mesh = scene_of(far_away, np.array([(0, 1, 2)]), 0.5, sky=1.0)
    scene.water, scene.haze = 1, wp.vec3(0.1, 0.1, 0.1)
    start = np.array([(0.0, 2.0, 0.0)])
    light, _ = seen(scene, start, np.array([(0.0, -1.0, 0.0)]))
    air = np.exp(-0.2)
    below = np.array((0.03, 0.10, 0.11))
    expected = 1.0 - air + air * (0.02 + 0.98 * below)  # 0.02: of light that falls in straight
    np.testing.assert_allclose(light[0], expected, rtol=2e-3)
    flat = np.array([(1.0, -0.02, 0.0)]) / np.hypot(1.0, 0.02)
    light, _ = seen(scene, np.array([(0.0, 0.002, 0.0)]), flat)
    assert (light > 0.85).all()  # nearly all of it
    del mesh


def test_the_mountains_stand_around_water():
    land = mountain_lake.Landscape(160)
    heights = land.points.numpy()[:, 1]
    assert 0.05 < (heights < 0.0).mean() < 0.5 and 1.5 < heights.max() < 4.0
    normals = land.scene.normals.numpy()
    assert normals[:, 1].min() > 0.0
    image, rays = land.picture(64, 4)
    assert rays > 1.5 * 4 * image.shape[0] * image.shape[1]
    # the sky above is blue, and the lake below is darker than what it mirrors
    assert (image[:8, :, 2] > image[:8, :, 0]).mean() > 0.8
    assert image[-12:].mean() < image[:32].mean()
