"""Random numbers: their distributions, and that they depend on nothing but seed and offset. The numbers themselves are
compared with NumPy's in test_table.py."""

import numpy as np
import pytest
import scipy.stats
import warp as wp
from oracle_random import pcg

N = 100_000
SURE = 1e-4  # chance that a right generator fails; the seeds are fixed, so that it does so always or never


@wp.kernel
def numbers(
    seed: int,
    unit: wp.array(dtype=float),
    ranged: wp.array(dtype=float),
    normal: wp.array(dtype=float),
    whole: wp.array(dtype=int),
    bits: wp.array(dtype=wp.uint32),
    counts: wp.array(dtype=wp.uint32),
):
    i = wp.tid()
    state = wp.rand_init(seed, i)
    unit[i] = wp.randf(state)
    ranged[i] = wp.randf(state, -3.0, 5.0)
    normal[i] = wp.randn(state)
    whole[i] = wp.randi(state, -4, 9)
    bits[i] = wp.randu(state)
    counts[i] = wp.poisson(state, 6.5)


@wp.kernel
def one_sequence(seed: int, n: int, unit: wp.array(dtype=float)):
    state = wp.rand_init(seed)
    for k in range(n):
        unit[k] = wp.randf(state)


@wp.kernel(module_options={"lanes": 1})
def scalar_numbers(
    seed: int, unit: wp.array(dtype=float), normal: wp.array(dtype=float), counts: wp.array(dtype=wp.uint32)
):
    i = wp.tid()
    state = wp.rand_init(seed, i)
    unit[i] = wp.randf(state)
    wp.randf(state)
    normal[i] = wp.randn(state)
    wp.randi(state)
    wp.randu(state)
    counts[i] = wp.poisson(state, 6.5)


@wp.kernel
def points(
    seed: int,
    triangle: wp.array(dtype=wp.vec2),
    ring: wp.array(dtype=wp.vec2),
    disk: wp.array(dtype=wp.vec2),
    square: wp.array(dtype=wp.vec2),
    surface: wp.array(dtype=wp.vec3),
    ball: wp.array(dtype=wp.vec3),
    half_surface: wp.array(dtype=wp.vec3),
    half_ball: wp.array(dtype=wp.vec3),
    cube: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    state = wp.rand_init(seed, i)
    triangle[i] = wp.sample_triangle(state)
    ring[i] = wp.sample_unit_ring(state)
    disk[i] = wp.sample_unit_disk(state)
    square[i] = wp.sample_unit_square(state)
    surface[i] = wp.sample_unit_sphere_surface(state)
    ball[i] = wp.sample_unit_sphere(state)
    half_surface[i] = wp.sample_unit_hemisphere_surface(state)
    half_ball[i] = wp.sample_unit_hemisphere(state)
    cube[i] = wp.sample_unit_cube(state)


@wp.kernel
def indices(seed: int, cdf: wp.array(dtype=float), out: wp.array(dtype=int), states: wp.array(dtype=wp.uint32)):
    i = wp.tid()
    state = wp.rand_init(seed, i)
    out[i] = wp.sample_cdf(state, cdf)
    states[i] = state


def draw(seed=42, n=N):
    out = [wp.zeros(n, dtype=t) for t in (float, float, float, int, wp.uint32, wp.uint32)]
    wp.launch(numbers, dim=n, inputs=[seed, *out])
    return [a.numpy().copy() for a in out]


def follows(values, distribution):
    return scipy.stats.kstest(np.asarray(values, dtype=np.float64), distribution).pvalue > SURE


@pytest.mark.parametrize("seed", [0, 1, 42, -7])
def test_numbers_follow_their_distributions(seed):
    unit, ranged, normal, whole, bits, counts = draw(seed)
    assert follows(unit, scipy.stats.uniform().cdf)
    assert unit.min() >= 0 and unit.max() < 1
    assert follows(ranged, scipy.stats.uniform(-3, 8).cdf)
    assert follows(normal, scipy.stats.norm().cdf)
    assert set(whole) == set(range(-4, 9))
    assert scipy.stats.chisquare(np.bincount(whole + 4)).pvalue > SURE
    # Each bit is set half of the time, and any two of them are independent.
    set_bits = (bits[:, None] >> np.arange(32, dtype=np.uint32) & 1).astype(np.float64) - 0.5
    correlation = 4 * set_bits.T @ set_bits / N
    assert np.abs(2 * set_bits.mean(axis=0)).max() < 5 / np.sqrt(N)
    assert np.abs(correlation - np.eye(32)).max() < 6 / np.sqrt(N)
    expected = scipy.stats.poisson(6.5).pmf(np.arange(18))
    found = np.bincount(np.minimum(counts, 17), minlength=18)
    expected[17] = 1 - expected[:17].sum()
    assert scipy.stats.chisquare(found, expected * N).pvalue > SURE


def test_moments_of_normal_and_poisson_numbers():
    _, _, normal, _, bits, counts = draw(seed=3)
    normal = normal.astype(np.float64)
    # Standard errors of mean, variance, skewness and kurtosis of n normal numbers.
    assert abs(normal.mean()) < 5 / np.sqrt(N)
    assert abs(normal.var() - 1) < 5 * np.sqrt(2 / N)
    assert abs(scipy.stats.skew(normal)) < 5 * np.sqrt(6 / N)
    assert abs(scipy.stats.kurtosis(normal)) < 5 * np.sqrt(24 / N)
    assert np.isfinite(normal).all() and np.abs(normal).max() > 3.5
    # Mean and variance are both lambda; the variance of the variance is (lambda + 2 lambda^2) / n.
    assert abs(counts.mean() - 6.5) < 5 * np.sqrt(6.5 / N)
    assert abs(counts.var() - 6.5) < 5 * np.sqrt((6.5 + 2 * 6.5**2) / N)
    # Each byte of the bits takes each value equally often.
    for byte in bits.view(np.uint8).reshape(-1, 4).T:
        assert scipy.stats.chisquare(np.bincount(byte, minlength=256)).pvalue > SURE


def test_numbers_of_one_sequence_are_uniform_and_uncorrelated():
    out = wp.zeros(N, dtype=float)
    wp.launch(one_sequence, dim=1, inputs=[5, N, out])
    values = out.numpy()
    assert follows(values, scipy.stats.uniform().cdf)
    for lag in (1, 2, 7):
        assert abs(np.corrcoef(values[:-lag], values[lag:])[0, 1]) < 5 / np.sqrt(N)


def test_points_follow_their_distributions():
    out = [wp.zeros(N, dtype=wp.vec2) for _ in range(4)] + [wp.zeros(N, dtype=wp.vec3) for _ in range(5)]
    wp.launch(points, dim=N, inputs=[11, *out])
    triangle, ring, disk, square, surface, ball, half_surface, half_ball, cube = (
        a.numpy().astype(np.float64) for a in out
    )
    uniform = scipy.stats.uniform().cdf

    def turn(p):
        return np.arctan2(p[:, 1], p[:, 0]) / (2 * np.pi) + 0.5

    # The area of the triangle beyond a barycentric coordinate t is (1 - t)^2 of the whole.
    rest = 1 - triangle.sum(axis=1)
    assert triangle.min() >= 0 and rest.min() >= -1e-6
    for coordinate in (*triangle.T, rest):
        assert follows((1 - np.clip(coordinate, 0, 1)) ** 2, uniform)
    for circle in (ring, disk, surface, ball, half_surface, half_ball):
        assert follows(turn(circle), uniform)
    for on_surface in (ring, surface, half_surface):
        assert np.abs(np.linalg.norm(on_surface, axis=1) - 1).max() < 1e-6
    assert follows(np.sum(disk**2, axis=1), uniform)
    assert follows(surface[:, 2] / 2 + 0.5, uniform)
    assert follows(half_surface[:, 2], uniform)
    for solid in (ball, half_ball):
        radius = np.linalg.norm(solid, axis=1)
        assert follows(radius**3, uniform)
    assert follows(ball[:, 2] / np.linalg.norm(ball, axis=1) / 2 + 0.5, uniform)
    assert half_ball[:, 2].min() >= 0
    assert follows(half_ball[:, 2] / np.linalg.norm(half_ball, axis=1), uniform)
    for box in (square, cube):
        for coordinate in box.T:
            assert follows(coordinate + 0.5, uniform)


def test_indices_follow_the_cumulative_distribution():
    probabilities = np.array([0.1, 0.0, 0.25, 0.05, 0.6])
    cdf = np.cumsum(probabilities).astype(np.float32)
    out, states = wp.zeros(N, dtype=int), wp.zeros(N, dtype=wp.uint32)
    wp.launch(indices, dim=N, inputs=[9, cdf, out, states])
    found = np.bincount(out.numpy(), minlength=5)
    assert found[1] == 0
    used = probabilities > 0
    assert scipy.stats.chisquare(found[used], probabilities[used] * N).pvalue > SURE
    # Each index is that of the sorted array, of the same number as randf() gives.
    state = pcg(pcg(np.uint32(9) + pcg(np.arange(N, dtype=np.uint32))))
    assert np.array_equal(states.numpy(), state)
    u = ((state >> np.uint32(8)) * 2.0**-24).astype(np.float32)
    assert np.array_equal(out.numpy(), np.minimum(np.searchsorted(cdf, u), 4))


def test_an_index_stays_in_the_array_where_the_sums_end_below_one():
    out, states = wp.zeros(1000, dtype=int), wp.zeros(1000, dtype=wp.uint32)
    wp.launch(indices, dim=1000, inputs=[9, np.array([0.25, 0.5], dtype=np.float32), out, states])
    assert set(out.numpy()) == {0, 1}


def test_numbers_depend_on_seed_and_offset_only():
    reference = draw()
    threads = wp.config.cpu_threads
    try:
        for count in (1, 2, 3):
            wp.config.cpu_threads = count
            for first, again in zip(reference, draw()):
                assert np.array_equal(first, again)
    finally:
        wp.config.cpu_threads = threads
    for first, part in zip(reference, draw(n=37)):
        assert np.array_equal(first[:37], part)
    unit, normal, counts = (wp.zeros(1000, dtype=t) for t in (float, float, wp.uint32))
    wp.launch(scalar_numbers, dim=1000, inputs=[42, unit, normal, counts])
    assert np.array_equal(unit.numpy(), reference[0][:1000])
    assert np.array_equal(normal.numpy(), reference[2][:1000])
    assert np.array_equal(counts.numpy(), reference[5][:1000])
    assert not np.array_equal(reference[0], draw(seed=43)[0])


@wp.kernel
def counts_of(lam: wp.array(dtype=float), out: wp.array2d(dtype=wp.uint32), states: wp.array2d(dtype=wp.uint32)):
    i, j = wp.tid()
    state = wp.rand_init(i)
    out[i, j] = wp.poisson(state, lam[j])
    states[i, j] = state


def test_counts_are_those_of_release_119():
    lam = np.array([0.1, 1.0, 3.0, 6.5, 9.9, 10.0, 12.0, 30.0, 100.0, 1000.0], dtype=np.float32)
    out, states = (wp.zeros((4, len(lam)), dtype=wp.uint32) for _ in range(2))
    wp.launch(counts_of, dim=out.shape, inputs=[lam, out, states])
    assert out.numpy().tolist() == [
        [0, 0, 3, 5, 9, 7, 8, 24, 90, 969],
        [1, 1, 2, 4, 5, 15, 18, 39, 116, 1051],
        [0, 1, 4, 6, 13, 10, 12, 30, 99, 998],
        [0, 1, 1, 6, 9, 13, 16, 36, 111, 1033],
    ]
    # The state after two draws of each of the large ones, and one draw more for each of the small ones.
    assert [len(set(row)) for row in states.numpy()[:, 5:].tolist()] == [1] * 4


@pytest.mark.parametrize("lam", [0.05, 2.0, 9.99, 10.0, 11.5, 80.0, 5000.0])
def test_counts_follow_the_distribution_of_poisson(lam):
    out, states = (wp.zeros((N, 1), dtype=wp.uint32) for _ in range(2))
    wp.launch(counts_of, dim=out.shape, inputs=[np.array([lam], dtype=np.float32), out, states])
    found = out.numpy()[:, 0].astype(np.int64)
    distribution = scipy.stats.poisson(np.float64(np.float32(lam)))
    edges = np.unique(distribution.ppf(np.linspace(0, 1, 42)[1:-1])).astype(np.int64)  # bins of similar weight
    chances = np.diff(np.concatenate([[0.0], distribution.cdf(edges), [1.0]]))
    numbers = np.bincount(np.searchsorted(edges, found), minlength=len(chances))
    kept = chances * N > 5
    assert scipy.stats.chisquare(numbers[kept], chances[kept] / chances[kept].sum() * numbers[kept].sum()).pvalue > SURE
    assert abs(found.mean() - lam) < 5 * np.sqrt(lam / N)


def test_counts_of_odd_means_end():
    lam = np.array([0.0, -1.0, np.nan], dtype=np.float32)
    out, states = (wp.zeros((8, len(lam)), dtype=wp.uint32) for _ in range(2))
    wp.launch(counts_of, dim=out.shape, inputs=[lam, out, states])
    assert not out.numpy().any()
