"""The cloth's physics: lengths that its constraints keep, depths that contact forbids, the search for neighbours."""

import numpy as np
import pytest
import warp as wp
from warp.examples import cloth

pytestmark = pytest.mark.own_launches("its numbers keep threads apart")


def free(across=16, cloths=1, **changes):
    """A cloth in empty space: nothing below, no air, no weight, unless ``changes`` of the world say so."""
    result = cloth.Cloths(cloths, across)
    result.world.gravity, result.world.drag = wp.vec3(0.0, 0.0, 0.0), 0.0
    result.world.ball, result.world.radius = wp.vec3(0.0, -50.0, 0.0), 0.1
    for name, value in changes.items():
        setattr(result.world, name, value)
    return result


def test_no_two_constraints_of_a_colour_share_a_particle():
    members = np.random.default_rng(1).integers(0, 60, (400, 4))
    members = members[[len(set(row)) == 4 for row in members.tolist()]]
    groups = cloth.colouring(members, 60)
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(members)))
    for group in groups:
        used = members[group].ravel()
        assert len(np.unique(used)) == len(used)


@wp.kernel
def angle_and_gradients(p: wp.array2d[wp.vec3], angle: wp.array[float], gradient: wp.array2d[wp.vec3]):
    i = wp.tid()
    angle[i] = cloth.hinge_angle(p[i, 0], p[i, 1], p[i, 2], p[i, 3])
    a, b, c, d = cloth.hinge_gradients(p[i, 0], p[i, 1], p[i, 2], p[i, 3])
    gradient[i, 0] = a
    gradient[i, 1] = b
    gradient[i, 2] = c
    gradient[i, 3] = d


def fold(p):
    """Angle between two triangles, by the directions from their common edge to the far corners."""
    a, b, c, d = p
    along = (d - c) / np.linalg.norm(d - c)
    to_a = (a - c) - np.dot(a - c, along) * along
    to_b = (b - c) - np.dot(b - c, along) * along
    cosine = np.dot(to_a, to_b) / np.linalg.norm(to_a) / np.linalg.norm(to_b)
    return np.pi - np.arccos(np.clip(cosine, -1.0, 1.0))


def test_hinge_angles_and_their_gradients():
    rng = np.random.default_rng(3)
    flat = np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    p = flat + 0.4 * rng.standard_normal((40, 4, 3))
    angle, gradient = wp.zeros(40, dtype=float), wp.zeros((40, 4), dtype=wp.vec3)
    wp.launch(angle_and_gradients, dim=40, inputs=[wp.array(p, dtype=wp.vec3)], outputs=[angle, gradient])
    signs = np.sign(angle.numpy())
    np.testing.assert_allclose(np.abs(angle.numpy()), [fold(q) for q in p], atol=2e-6)
    step = 1e-6
    for i in range(40):
        for corner in range(4):
            for axis in range(3):
                more, less = p[i].copy(), p[i].copy()
                more[corner, axis] += step
                less[corner, axis] -= step
                slope = signs[i] * (fold(more) - fold(less)) / (2.0 * step)
                assert abs(gradient.numpy()[i, corner, axis] - slope) < 2e-3 * max(1.0, abs(slope))


def test_constraints_keep_momentum_and_give_no_energy():
    cloths = free()
    rng = np.random.default_rng(5)
    cloths.v.assign(0.4 * rng.standard_normal((cloths.count, 3)))
    before = cloths.measure()
    for _ in range(4):
        cloths.step()
        after = cloths.measure()
        mass = cloths.count / cloths.inverse_mass.numpy()[0]
        np.testing.assert_allclose(after["momentum"], before["momentum"], atol=2e-4 * mass)
        np.testing.assert_allclose(after["angular momentum"], before["angular momentum"], atol=2e-4 * mass)
        assert after["kinetic"] < 0.5 * before["kinetic"]  # most of it was stretching, which is damped


def test_a_cloth_falls_as_everything_falls():
    cloths = free(gravity=wp.vec3(0.0, -9.81, 0.0))
    height = cloths.x.numpy()[:, 1].mean()
    for _ in range(12):
        cloths.step()
    seconds = 12 / 60
    # the steps are those of Euler's method with velocities first: half a step more than the parabola
    expected = 0.5 * 9.81 * seconds * (seconds + 1.0 / 60.0 / cloths.substeps)
    assert abs(height - cloths.x.numpy()[:, 1].mean() - expected) < 1e-4
    assert cloths.measure()["strain"] < 1e-3


def test_air_slows_a_flat_fall_to_its_final_speed():
    cloths = free(gravity=wp.vec3(0.0, -9.81, 0.0), drag=20.0)
    for _ in range(30):
        cloths.step(1.0 / 240.0)
    weight = 9.81 * cloths.count / cloths.inverse_mass.numpy()[0]
    assert abs(cloths.v.numpy()[:, 1].mean() + weight / (20.0 * cloth.SIDE**2)) < 0.01


def test_neighbours_are_those_of_a_full_search():
    cloths = free(across=12, cloths=2)
    rng = np.random.default_rng(8)
    x = rng.uniform(-0.4, 0.4, (cloths.count, 3))
    cloths.x.assign(x)
    cloths.look_for_neighbours()
    size, closest = 2.0 * cloths.world.thickness, 1.001 * cloths.world.thickness
    x, rest = cloths.x.numpy().astype(float), cloths.rest.numpy().astype(float)
    near = np.linalg.norm(x[:, None] - x[None], axis=2) < size
    near &= np.linalg.norm(rest[:, None] - rest[None], axis=2) > closest
    counts, neighbours = cloths.counts.numpy(), cloths.neighbours.numpy()
    assert near.sum(axis=1).max() <= cloth.NEIGHBOURS and near.any()
    for i in range(cloths.count):
        assert sorted(neighbours[i, : counts[i]]) == np.flatnonzero(near[i]).tolist()


@pytest.mark.minutes_on_cuda
def test_cloths_come_to_lie_on_ball_and_ground_and_on_each_other():
    cloths = cloth.Cloths(2, 26)
    start = cloths.measure()
    for _ in range(50):
        cloths.step()
        assert cloths.measure()["deepest"] < 1e-5
    end = cloths.measure()
    assert end["kinetic"] + end["potential"] < start["kinetic"] + start["potential"]
    assert end["strain"] < 0.25
    x = cloths.x.numpy()
    lower, upper = x[: cloths.count // 2], x[cloths.count // 2 :]
    apart = np.linalg.norm(lower[:, None] - upper[None], axis=2)
    assert apart.min() > 0.6 * cloths.world.thickness
    # over the ball the second cloth lies on the first
    top_lower = lower[np.hypot(lower[:, 0], lower[:, 2]) < 0.15, 1]
    top_upper = upper[np.hypot(upper[:, 0], upper[:, 2]) < 0.15, 1]
    assert top_upper.min() > top_lower.min() and top_upper.mean() > top_lower.mean()
    assert top_lower.min() > cloth.BALL[1]
