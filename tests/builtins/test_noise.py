"""Noise: zero mean, bounds, smoothness, periods, no divergence, and that threads and lanes change nothing. The values
themselves are compared with NumPy's in test_table.py."""

import numpy as np
import pytest
import warp as wp
from sweep import load

N = 40_000
SOURCE = """import warp as wp


@wp.kernel{options}
def fields(
    seed: int,
    p: wp.array(dtype=wp.vec4),
    n1: wp.array(dtype=float),
    n2: wp.array(dtype=float),
    n3: wp.array(dtype=float),
    n4: wp.array(dtype=float),
    p1: wp.array(dtype=float),
    p2: wp.array(dtype=float),
    p3: wp.array(dtype=float),
    p4: wp.array(dtype=float),
    c2: wp.array(dtype=wp.vec2),
    c3: wp.array(dtype=wp.vec3),
    c4: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    state = wp.rand_init(seed)
    q = p[i]
    xy = wp.vec2(q[0], q[1])
    xyz = wp.vec3(q[0], q[1], q[2])
    n1[i] = wp.noise(state, q[0])
    n2[i] = wp.noise(state, xy)
    n3[i] = wp.noise(state, xyz)
    n4[i] = wp.noise(state, q)
    p1[i] = wp.pnoise(state, q[0], 3)
    p2[i] = wp.pnoise(state, xy, 3, 5)
    p3[i] = wp.pnoise(state, xyz, 3, 5, 4)
    p4[i] = wp.pnoise(state, q, 3, 5, 4, 2)
    c2[i] = wp.curlnoise(state, xy)
    c3[i] = wp.curlnoise(state, xyz)
    c4[i] = wp.curlnoise(state, q)
"""
RESULTS = [float] * 8 + [wp.vec2, wp.vec3, wp.vec3]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    return load(SOURCE.format(options=""), tmp_path_factory.mktemp("noise"), "noise_fields").fields


def evaluate(kernel, points, seed=7):
    points = np.asarray(points, dtype=np.float32)
    out = [wp.zeros(len(points), dtype=t) for t in RESULTS]
    wp.launch(kernel, dim=len(points), inputs=[seed, wp.array(points, dtype=wp.vec4), *out])
    return [a.numpy().astype(np.float64) for a in out]


def points(seed=0, n=N, size=1000):
    return np.random.default_rng(seed).uniform(-size, size, (n, 4)).astype(np.float32)


def test_mean_is_zero_and_values_are_bounded(kernel):
    for field in evaluate(kernel, points())[:8]:
        spread = field.std()
        assert 0.08 < spread < 0.6
        assert np.abs(field).max() <= 1
    # Periodic noise has few corners, so that its mean over one field is not 0.
    for field in evaluate(kernel, points())[:4]:
        assert abs(field.mean()) < 5 * field.std() / np.sqrt(N)


def test_it_is_zero_at_the_corners_and_differs_between_states(kernel):
    corners = np.random.default_rng(1).integers(-500, 500, (1000, 4))
    for field in evaluate(kernel, corners)[:8]:
        assert not field.any()
    for one, other in zip(evaluate(kernel, points())[:4], evaluate(kernel, points(), seed=8)[:4]):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.05


def test_distant_points_are_uncorrelated_and_no_direction_is_favoured(kernel):
    p = points(2)
    for axis in range(4):
        moved = p.copy()
        moved[:, axis] += 8
        for field, there in zip(evaluate(kernel, p)[axis:4], evaluate(kernel, moved)[axis:4]):
            assert abs(np.corrcoef(field, there)[0, 1]) < 0.05
    # Mean square of the change over a small step, along each axis and a diagonal.
    step = 1 / 16
    three = evaluate(kernel, p)[2]
    changes = []
    for direction in ([1, 0, 0], [0, 1, 0], [0, 0, 1], np.ones(3) / np.sqrt(3)):
        moved = p.copy()
        moved[:, :3] += step * np.asarray(direction, dtype=np.float32)
        changes.append(np.mean((evaluate(kernel, moved)[2] - three) ** 2))
    assert max(changes) < 1.1 * min(changes)


def test_second_derivatives_have_no_jump_at_the_corners(kernel):
    step = 1 / 64
    at = np.arange(-40, 40)[:, None] + step * np.arange(-8, 9)[None, :]
    p = np.zeros((at.size, 4), dtype=np.float32)
    p[:, 0] = at.ravel()
    p[:, 1:] = [0.3, 0.6, 0.2]
    for field in evaluate(kernel, p)[:4]:
        second = np.diff(field.reshape(at.shape), n=2, axis=1) / step**2
        jumps = np.abs(np.diff(second, axis=1))
        # The third derivative is bounded by about 100, so that a step changes the second by less than 2.
        assert jumps.max() < 2.0 and np.abs(second).max() > 0.5


def test_periodic_noise_repeats_after_its_period(kernel):
    p = points(3, size=20)
    p = np.round(p * 256) / 256  # so that a whole period is added exactly
    here = evaluate(kernel, p)[4:8]
    for axis, period in enumerate((3, 5, 4, 2)):
        for times in (1, -2):
            moved = p.copy()
            moved[:, axis] += period * times
            for field, there in zip(here[axis:], evaluate(kernel, moved)[4 + axis : 8]):
                assert np.array_equal(field, there)
    plain = evaluate(kernel, p)[:4]
    assert all(np.abs(a - b).max() > 0.1 for a, b in zip(here, plain))


def test_curl_noise_has_no_divergence(kernel):
    p = np.round(points(4, n=4000, size=10) * 64) / 64 + 1 / 128
    step = 1 / 256
    divergence, size = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    for axis in range(3):
        ahead, behind = p.copy(), p.copy()
        ahead[:, axis] += step
        behind[:, axis] -= step
        for k, (a, b) in enumerate(zip(evaluate(kernel, ahead)[8:], evaluate(kernel, behind)[8:])):
            if axis < a.shape[1]:
                slope = (a[:, axis] - b[:, axis]) / (2 * step)
                divergence[k] = divergence[k] + slope
                size[k] += np.abs(slope).mean()
    for k in range(3):
        assert np.abs(divergence[k]).max() < 0.01 * size[k] + 0.01
        assert size[k] > 0.5


def test_octaves_add_finer_fields(tmp_path):
    module = load(
        """import warp as wp


@wp.kernel
def octaves(p: wp.array(dtype=wp.vec3), count: wp.uint32, out: wp.array(dtype=wp.vec3), named: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    state = wp.rand_init(3)
    out[i] = wp.curlnoise(state, p[i], count)
    named[i] = wp.curlnoise(state, p[i], octaves=count, lacunarity=2.0, gain=0.25)
""",
        tmp_path,
        "noise_octaves",
    )
    p = wp.array(points(5, n=2000, size=50)[:, :3], dtype=wp.vec3)

    def run(count):
        out, named = wp.zeros(2000, dtype=wp.vec3), wp.zeros(2000, dtype=wp.vec3)
        wp.launch(module.octaves, dim=2000, inputs=[p, count, out, named])
        return out.numpy().astype(np.float64), named.numpy().astype(np.float64)

    assert not run(0)[0].any()
    one, two, three = run(1)[0], run(2)[0], run(3)[0]
    second, third = two - one, three - two
    np.testing.assert_allclose(second.std() / one.std(), 0.5, rtol=0.1)
    np.testing.assert_allclose(third.std() / one.std(), 0.25, rtol=0.1)
    np.testing.assert_allclose(run(2)[1] - one, second / 2, atol=1e-6)


def test_threads_and_lanes_change_nothing(kernel, tmp_path):
    p = points(6, n=1037)
    reference = evaluate(kernel, p)
    threads = wp.config.cpu_threads
    try:
        for count in (1, 2, 3):
            wp.config.cpu_threads = count
            assert all(np.array_equal(a, b) for a, b in zip(reference, evaluate(kernel, p)))
    finally:
        wp.config.cpu_threads = threads
    scalar = load(SOURCE.format(options='(module_options={"lanes": 1})'), tmp_path, "noise_scalar").fields
    assert all(np.array_equal(a, b) for a, b in zip(reference, evaluate(scalar, p)))


def test_far_away_and_undefined_points(kernel):
    far = np.array([[1e9, -1e9, 2e9, 4e9], [1e30, 1e30, -1e30, 1e30], [np.nan] * 4, [np.inf] * 4], dtype=np.float32)
    fields = evaluate(kernel, far)
    for field in fields[:8]:
        assert not field[:2].any()  # every such number is whole
        assert np.isnan(field[2:]).all()


def test_the_state_stays_as_it_is(tmp_path):
    module = load(
        """import warp as wp


@wp.kernel
def k(out: wp.array(dtype=wp.uint32), value: wp.array(dtype=float)):
    state = wp.rand_init(1)
    out[0] = state
    p = wp.vec2(0.3, 0.4)
    value[0] = wp.noise(state, 0.3) + wp.pnoise(state, p, 2, 2) + wp.curlnoise(state, p)[0]
    out[1] = state
""",
        tmp_path,
        "noise_state",
    )
    out, value = wp.zeros(2, dtype=wp.uint32), wp.zeros(1, dtype=float)
    wp.launch(module.k, dim=1, inputs=[out, value])
    assert out.numpy()[0] == out.numpy()[1] and value.numpy()[0] != 0
