"""Water as particles: its kernel, walls as mirrors, pressure at rest, and what a breaking dam keeps."""

import itertools

import numpy as np
import pytest
import warp as wp
from warp.examples import dam_break


@wp.kernel
def weights(reach: float, r: wp.array[float], w: wp.array[float], slopes: wp.array[float]):
    i = wp.tid()
    w[i] = dam_break.weight(r[i], reach)
    slopes[i] = r[i] * dam_break.slope(r[i], reach)


def wendland(r, reach):
    q = np.minimum(r / reach, 1.0)
    return 21.0 / (2.0 * np.pi * reach**3) * (1.0 - q) ** 4 * (4.0 * q + 1.0)


def test_the_kernel_has_volume_one_and_its_slope():
    r = np.linspace(0.0, 0.4, 4001)
    w, slopes = wp.zeros(len(r)), wp.zeros(len(r))
    wp.launch(weights, dim=len(r), inputs=[0.3, wp.array(r, dtype=float)], outputs=[w, slopes])
    np.testing.assert_allclose(w.numpy(), wendland(r, 0.3), rtol=1e-4, atol=1e-3)
    assert abs(np.trapezoid(4.0 * np.pi * r**2 * w.numpy(), r) - 1.0) < 1e-4
    middle = 0.5 * (slopes.numpy()[1:] + slopes.numpy()[:-1])
    np.testing.assert_allclose(middle, np.diff(wendland(r, 0.3)) / np.diff(r), atol=2e-3 * abs(middle).max())


def test_densities_and_forces_are_those_of_all_pairs_with_images():
    dam = dam_break.Dam(500, column=(0.5, 0.4, 0.6), tank=(0.7, 0.6))
    rng = np.random.default_rng(1)
    x = rng.uniform((0.01, 0.01, 0.01), (0.69, 0.45, 0.59), (dam.count, 3))
    v = rng.standard_normal((dam.count, 3))
    dam.x.assign(x)
    dam.v.assign(v)
    dam.water.dt = 0.0  # looks, and does not move
    dam.step()
    # in NumPy every image is a particle of its own
    all_x, all_v, of = [], [], []
    for along in itertools.product((None, 0.0, 0.7), (None, 0.0), (None, 0.0, 0.6)):
        image, turned = x.copy(), v.copy()
        for axis, wall in enumerate(along):
            if wall is not None:
                image[:, axis], turned[:, axis] = 2.0 * wall - image[:, axis], -turned[:, axis]
        all_x, all_v, of = [*all_x, image], [*all_v, turned], [*of, np.arange(dam.count)]
    all_x, all_v, of = np.concatenate(all_x), np.concatenate(all_v), np.concatenate(of)
    water = dam.water
    r = x[:, None] - all_x[None]
    distance = np.linalg.norm(r, axis=2)
    density = water.share * wendland(distance, water.reach).sum(axis=1)
    np.testing.assert_allclose(dam.density.numpy(), density, rtol=1e-4)

    stiff = dam_break.DENSITY * water.sound**2 / dam_break.STIFFNESS
    pressure = np.maximum(stiff * ((density / dam_break.DENSITY) ** dam_break.STIFFNESS - 1.0), 0.0) / density**2
    approach = np.minimum(((v[:, None] - all_v[None]) * r).sum(axis=2), 0.0)
    approach /= distance**2 + 0.01 * (0.5 * water.reach) ** 2
    viscous = -dam_break.VISCOSITY * water.sound * 0.5 * water.reach * approach
    viscous /= 0.5 * (density[:, None] + density[of][None])
    q = np.minimum(distance / water.reach, 1.0)
    slope = -210.0 / (np.pi * water.reach**5) * (1.0 - q) ** 3
    expected = -(water.share * (pressure[:, None] + pressure[of][None] + viscous) * slope)[..., None] * r
    expected = expected.sum(axis=1) - (0.0, dam_break.GRAVITY, 0.0)
    np.testing.assert_allclose(dam.a.numpy(), expected, rtol=2e-3, atol=2e-4 * abs(expected).max())


def test_two_drops_that_meet_keep_their_momentum_and_lose_energy():
    dam = dam_break.Dam(600, column=(0.6, 0.3, 0.3), tank=(9.0, 9.0))
    dam.water.gravity = wp.vec3(0.0, 0.0, 0.0)
    x = dam.x.numpy() + (4.0, 4.0, 4.0)
    left = x[:, 0] < 4.3
    x[left, 0] -= 0.05
    dam.x.assign(x)
    dam.v.assign(np.where(left[:, None], (1.5, 0.2, 0.0), (-1.0, 0.0, 0.3)))
    momentum, before = dam.v.numpy().astype(np.float64).sum(axis=0), dam.measure()
    for _ in range(150):
        dam.step()
    after = dam.measure()
    np.testing.assert_allclose(dam.v.numpy().astype(np.float64).sum(axis=0), momentum, atol=2e-3 * dam.count**0.5)
    assert 0.1 * before["kinetic"] < after["kinetic"] < 0.95 * before["kinetic"]


@pytest.mark.minutes_on_cuda
def test_water_at_rest_has_the_pressure_of_its_depth():
    dam = dam_break.Dam(1000, column=(0.5, 0.5, 0.5), tank=(0.5, 0.5))
    total = np.zeros(dam.count)
    for step in range(600):
        dam.step()
        if step < 400:
            dam.v.assign(0.97 * dam.v.numpy())  # it comes to rest sooner
        if step >= 500:
            total += dam.pressure.numpy().astype(np.float64) * dam.density.numpy().astype(np.float64) ** 2 / 100
    height = dam.x.numpy()[:, 1]
    inner = (height > 0.05) & (height < 0.4)
    gradient, _ = np.polyfit(height[inner], total[inner], 1)
    np.testing.assert_allclose(gradient, -dam_break.DENSITY * dam_break.GRAVITY, rtol=0.08)
    assert dam.measure()["kinetic"] < 1e-3 * dam.measure()["potential"]


@pytest.fixture(scope="module")
def broken():
    """A dam, and what was measured while it broke."""
    dam = dam_break.Dam(3000)
    found = []
    while dam.time < 0.55:
        dam.step()
        if len(found) < dam.time / 0.05:
            found.append((dam.time, dam.measure()))
    return dam, found


@pytest.mark.minutes_on_cuda
def test_a_breaking_dam_makes_no_energy_and_keeps_its_volume(broken):
    dam, found = broken
    energies = np.array([sum(m[kind] for kind in dam_break.ENERGIES) for _, m in found])
    assert (np.diff(energies) < 0.004 * energies[0]).all() and 0.8 < energies[-1] / energies[0] < 1.002
    assert found[-1][1]["kinetic"] > 0.2 * energies[0]
    assert all(abs(m["volume"] / found[0][1]["volume"] - 1.0) < 0.06 for _, m in found)
    x, tank = dam.x.numpy(), dam.water.tank
    assert x.min() > 0.0 and (x[:, 0] < tank[0]).all() and (x[:, 2] < tank[2]).all()


@pytest.mark.minutes_on_cuda
def test_the_front_runs_less_than_twice_as_fast_as_long_waves(broken):
    """Ritter's solution (1892) of the shallow-water equations: without friction the tip runs at 2 sqrt(g h)."""
    dam, found = broken
    waves = np.sqrt(dam_break.GRAVITY * dam.column[1])
    (early, before), (late, after) = found[4], found[-1]
    speed = (after["front"] - before["front"]) / (late - early)
    assert 1.0 * waves < speed < 2.0 * waves
