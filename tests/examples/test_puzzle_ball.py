"""The carved level set: its volume in closed form, distances that no ray oversteps, and its file."""

import numpy as np
import pytest
import warp as wp
from warp.examples import puzzle_ball

pytestmark = pytest.mark.own_launches("a launch with other numbers has no volume, or stores into it again")

SIZE = 104
VOXEL = 2.0 * puzzle_ball.HALF / (SIZE - 1)


@pytest.fixture(scope="module")
def carved():
    volume = puzzle_ball.carve(SIZE)
    return volume, puzzle_ball.narrow_band(volume, SIZE)


@wp.kernel
def look_up(volume: wp.uint64, values: wp.array3d[float]):
    i, j, k = wp.tid()
    values[i, j, k] = wp.volume_lookup_f(volume, i, j, k)


def values_of(volume):
    values = wp.empty((SIZE, SIZE, SIZE), dtype=float)
    wp.launch(look_up, dim=values.shape, inputs=[volume.id], outputs=[values])
    return values.numpy().astype(np.float64)


def carved_distance(p):
    """The same solid by hand: shells without their cones; p is (..., 3)."""
    r = np.linalg.norm(p, axis=-1)
    solid = np.full(r.shape, 9.0)
    for shell, (outer, inner) in enumerate(puzzle_ball.SHELLS):
        d = np.maximum(r - outer, inner - r if inner > 0.0 else -1.0)
        for axis, angle in zip(*puzzle_ball.pattern(shell)):
            along = p @ axis
            across = np.sqrt(np.maximum(r**2 - along**2, 0.0))
            d = np.maximum(d, np.sin(angle) * along - np.cos(angle) * across)
        solid = np.minimum(solid, d)
    return solid


def test_no_two_holes_of_a_shell_meet():
    for shell in range(len(puzzle_ball.SHELLS)):
        axes, angles = puzzle_ball.pattern(shell)
        apart = np.arccos(np.clip(axes @ axes.T, -1.0, 1.0)) + 9.0 * np.eye(len(axes))
        assert len(axes) == 0 or (apart > angles[:, None] + angles[None] + 0.05).all()


def test_the_volume_is_that_of_shells_without_their_cones(carved):
    expected = 0.0
    for shell, (outer, inner) in enumerate(puzzle_ball.SHELLS):
        left = 1.0 - (0.5 * (1.0 - np.cos(puzzle_ball.pattern(shell)[1]))).sum()
        expected += 4.0 / 3.0 * np.pi * (outer**3 - inner**3) * left
    d = values_of(carved[0])
    found = np.clip(0.5 - d / VOXEL, 0.0, 1.0).sum() * VOXEL**3
    np.testing.assert_allclose(found, expected, rtol=0.01)


def test_distances_are_at_most_those_of_the_solid_and_change_no_faster_than_places(carved):
    d = values_of(carved[0])
    line = np.linspace(-puzzle_ball.HALF, puzzle_ball.HALF, SIZE)
    p = np.stack(np.meshgrid(line, line, line, indexing="ij"), -1)[::3, ::3, ::3]
    expected = carved_distance(p)
    near = abs(expected) < 1.5 * VOXEL
    found, expected = d[::3, ::3, ::3][near], expected[near]
    assert (found < expected + 1e-5).all()
    assert (abs(found - expected) < 1e-5).mean() > 0.95
    assert ((found < 0.0) == (expected < 0.0))[abs(expected) > 1e-5].all()
    for axis in range(3):
        assert abs(np.diff(d, axis=axis)).max() < 1.0001 * VOXEL


@wp.kernel
def shoot(
    scene: puzzle_ball.Scene, starts: wp.array[wp.vec3], towards: wp.array[wp.vec3], t: wp.array[float],
    normals: wp.array[wp.vec3],
):  # fmt: skip
    i = wp.tid()
    t[i] = puzzle_ball.march(scene, starts[i], towards[i])
    normals[i] = puzzle_ball.normal_at(scene, starts[i] + t[i] * towards[i])


def test_rays_stop_at_the_surface_and_pass_through_nothing(carved):
    rng = np.random.default_rng(3)
    starts = rng.standard_normal((400, 3))
    starts *= 2.0 / np.linalg.norm(starts, axis=1)[:, None]
    towards = rng.uniform(-0.9, 0.9, (400, 3)) - starts
    towards /= np.linalg.norm(towards, axis=1)[:, None]
    scene = puzzle_ball.Scene()
    scene.volume, scene.voxel = carved[1].id, VOXEL
    t, normals = wp.empty(400), wp.empty(400, dtype=wp.vec3)
    inputs = [scene, wp.array(starts, dtype=wp.vec3), wp.array(towards, dtype=wp.vec3)]
    wp.launch(shoot, dim=400, inputs=inputs, outputs=[t, normals])
    t, normals = t.numpy(), normals.numpy()
    # in NumPy: small steps through the solid as it was meant
    along = np.linspace(0.0, 4.0, 2001)
    d = carved_distance(starts[:, None] + along[None, :, None] * towards[:, None])
    before = along[None] < np.where(t < 0.0, 4.0, t - 0.5 * VOXEL)[:, None]
    assert d[before].min() > -0.8 * VOXEL
    hit = t > 0.0
    assert 200 < hit.sum() < 400
    at = carved_distance(starts[hit] + t[hit, None] * towards[hit])
    assert np.quantile(abs(at), 0.95) < 0.25 * VOXEL and abs(at).max() < VOXEL
    assert np.quantile((normals[hit] * towards[hit]).sum(axis=1), 0.99) < 0.05  # they face the ray


def test_a_file_gives_the_narrow_band_back(carved, tmp_path):
    volume, band = carved
    again = puzzle_ball.through_file(band, tmp_path / "ball.nvdb")
    np.testing.assert_array_equal(values_of(again), values_of(band))
    assert again.get_tile_count() == band.get_tile_count() < volume.get_tile_count()
    kept = abs(values_of(volume)) < puzzle_ball.BAND * VOXEL
    np.testing.assert_array_equal(values_of(again)[kept], values_of(volume)[kept])
    np.testing.assert_allclose(again.get_voxel_size(), 3 * [VOXEL], rtol=1e-6)
