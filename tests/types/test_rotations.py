"""Quaternions and random numbers as release 1.19 has them, off the unit sphere too: closed forms and its values."""

import math

import numpy as np
import pytest
import warp as wp

Q = wp.quatd


def numbers(value):
    return [float(x) for x in np.array(value).ravel()]


@pytest.mark.parametrize("q", [(0, 0, 0, 2), (1, 2, 3, 4), (0.5, -1, 0.2, -0.7), (0, 0, 0, 0), (0.6, 0, 0, 0.8)])
def test_the_columns_of_a_matrix_are_the_turned_axes(q):
    q = Q(*q)
    m = wp.quat_to_matrix(q)
    for axis in range(3):
        turned = wp.quat_rotate(q, wp.vec3d(*np.eye(3)[axis]))
        np.testing.assert_allclose(numbers(m)[axis::3], turned, rtol=1e-15, atol=1e-15)
    assert numbers(wp.quat_to_matrix(Q(0, 0, 0, 2))) == [7, 0, 0, 0, 7, 0, 0, 0, 7]


def test_normalize_of_nothing_is_the_identity():
    for nothing in (Q(), Q(0, 0, 0, 1e-300), wp.quat(), wp.quat(1e-30, 0, 0, 0)):
        assert numbers(wp.normalize(nothing)) == [0, 0, 0, 1]
    assert numbers(wp.normalize(Q(1e-20, 0, 0, 0))) == [1, 0, 0, 0] and numbers(wp.normalize(wp.vec4d())) == [0] * 4
    assert numbers(wp.quat_twist(wp.vec3(0.0, 0.0, 1.0), wp.quat(1.0, 0.0, 0.0, 0.0))) == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("a", "b", "t", "expected"),
    [
        ((0, 0, 0, 2), (0, 0, 1, 1), 0.5, [0, 0, 0.7653668647301796, 1.8477590650225735]),
        ((0, 0, 0, 1), (0, 0, 0, -1), 0.5, [0, 0, 0, 1]),
        ((1, 2, 3, 4), (4, -3, 2, 1), 0.25, [2.18524904055584, 0.72379987639675, 3.24056693556304, 3.76822588306664]),
        ((0.5, 0.5, 0.5, 0.5), (-0.5, 0.5, 0.5, -0.5), 2.0, [-0.5, -0.5, -0.5, -0.5]),
        ((0, 0, 0, 0), (0, 0, 1, 1), 0.5, [0, 0, 0, 0]),
    ],
)  # fmt: skip
def test_slerp_beside_1_19(a, b, t, expected):
    np.testing.assert_allclose(wp.quat_slerp(Q(*a), Q(*b), wp.float64(t)), expected, atol=1e-15)


def test_slerp_is_exact_where_it_begins():
    rng = np.random.default_rng(3)
    for _ in range(50):
        a, b = (Q(*rng.normal(size=4)) for _ in range(2))
        assert wp.quat_slerp(a, b, wp.float64(0.0)) == a
        axis, angle = wp.quat_to_axis_angle(wp.mul(wp.quat_inverse(a), b))
        t = wp.float64(rng.uniform(-1, 2))
        expected = a * wp.quat_from_axis_angle(axis, t * angle)
        np.testing.assert_allclose(wp.quat_slerp(a, b, t), expected, rtol=1e-14, atol=1e-14)


@wp.kernel
def between(a: wp.array[Q], b: wp.array[Q], t: wp.array[wp.float64], out: wp.array[Q]):
    i = wp.tid()
    out[i] = wp.quat_slerp(a[i], b[i], t[i])


def test_slerp_between_equal_rotations_has_its_gradient():
    """By differences across the place where the turn from a to b is none."""
    rng = np.random.default_rng(5)
    start = rng.normal(size=(1, 4))
    for scale in (1.0, 2.5):
        values = [start, start * scale, np.array([0.3])]

        def run(values, seed=None):
            a, b = (wp.array(v, dtype=Q, requires_grad=True) for v in values[:2])
            t, out = wp.array(values[2], requires_grad=True), wp.zeros(1, dtype=Q, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(between, 1, [a, b, t], [out])
            if seed is None:
                return out.numpy()
            tape.backward(grads={out: wp.array(seed, dtype=Q)})
            return [x.grad.numpy() for x in (a, b, t)]

        seed, h = rng.normal(size=(1, 4)), 1e-5
        for gradient, which in zip(run(values, seed), range(3)):
            for place in np.ndindex(values[which].shape):
                ends = []
                for step in (h, -h):
                    moved = [v.copy() for v in values]
                    moved[which][place] += step
                    ends.append(run(moved))
                assert gradient[place] == pytest.approx(np.sum(seed * (ends[0] - ends[1])) / (2 * h), abs=1e-8)


@pytest.mark.parametrize(
    ("m", "expected"),
    [
        (2 * np.eye(3), [0, 0, 0, 1]),
        (-np.eye(3), [1, 0, 0, 0]),
        (np.zeros((3, 3)), [0, 0, 0, 1]),
        (np.diag([0.5, 0.2, -1.5]), [1, 0, 0, 0]),
        (np.diag([-0.5, -0.5, 0.0]), [0, 0, 1, 0]),
        ([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]], [0.5**0.5, 0.5**0.5, 0, 0]),
        (
            [[0.345584, 0.821618, 0.330437], [-1.303157, 0.905356, 0.446375], [-0.536953, 0.581118, 0.364572]],
            [0.038694336, 0.249088707, -0.61017231, 0.751097408],
        ),
        (
            [[0.294132, 0.028422, 0.546713], [-0.736454, -0.16291, -0.482119], [0.598846, 0.039722, -0.292457]],
            [0.771170001, -0.312096696, 0.504956442, 0.230024941],
        ),
    ],
)
def test_matrices_that_are_no_rotations(m, expected):
    q = wp.quat_from_matrix(wp.types.matrix((3, 3), wp.float64)(m))
    np.testing.assert_allclose(q, expected, rtol=0, atol=2e-6 if len(np.unique(m)) > 5 else 1e-15)
    assert wp.length(q) == pytest.approx(1.0)


@pytest.mark.parametrize("angle", [0.0, 1.0, math.pi, 4.0, 6.0, 2 * math.pi])
@pytest.mark.parametrize("axis", [(0, 0, 1), (0.6, 0, 0.8)])
def test_the_twist_angle_is_the_angle_of_the_turn(angle, axis):
    axis = wp.vec3d(*axis)
    swing = wp.quat_from_axis_angle(wp.vec3d(0, 1, 0), wp.float64(0.4))
    q = swing * wp.quat_from_axis_angle(axis, wp.float64(angle))
    assert float(wp.quat_twist_angle(axis, q)) == pytest.approx(angle, abs=1e-12)
    assert float(wp.quat_twist_angle_signed(axis, q)) == pytest.approx(angle, abs=1e-12)
    if 0 < angle < 6.2:
        assert float(wp.quat_twist_angle_signed(-axis, q)) == pytest.approx(-angle, abs=1e-12)
        assert float(wp.quat_twist_angle(-axis, q)) == pytest.approx(angle, abs=1e-12)
        assert float(wp.quat_twist_angle(axis, wp.mul(q, wp.float64(-1)))) == pytest.approx(2 * math.pi - angle)


def test_randn_beside_1_19():
    assert wp.randn(wp.rand_init(42, 0)) == pytest.approx(0.210224, abs=1e-6)
    found = [wp.randn(wp.uint32(state)) for state in (1, 2, 3, 4734895, 94771043)]
    np.testing.assert_allclose(found, [0.77332646, -1.2012929, 0.53232926, -3.7820582, 5.739911], rtol=3e-6)
    state, again = wp.rand_init(7), wp.rand_init(7)
    u, v = wp.randf(again), wp.randf(again)
    assert wp.randn(state) == pytest.approx(math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v), rel=1e-5)
    assert state == again
