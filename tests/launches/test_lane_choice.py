"""The lane count that Weft chooses by itself: results do not depend on it. It is one if lanes would wait for memory."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.cpu_only("is about the CPU's lanes")


@wp.kernel
def scale(x: wp.array2d(dtype=float), factor: float, y: wp.array2d(dtype=float)):
    i, j = wp.tid()
    y[i, j] = wp.exp(x[i, j] * factor)


@wp.kernel
def columns_at(at: wp.array(dtype=int), x: wp.array2d(dtype=wp.vec3), y: wp.array2d(dtype=wp.vec3)):
    i, j = wp.tid()
    y[i, at[j]] = x[i, at[j]] * 2.0 + x[i, j]


@wp.kernel
def rows(count: wp.array(dtype=int), x: wp.array2d(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    s = float(0.0)
    for k in range(count[i]):
        if x[i, k] > 0.0:
            s += x[i, k]
    y[i] = s


def test_neighbouring_elements_use_lanes():
    assert scale.compile()["lanes"] > 1


def test_loops_over_rows_of_each_thread_use_one_lane():
    assert rows.compile()["lanes"] == 1
    x = np.random.default_rng(1).uniform(-1, 1, (50, 9)).astype(np.float32)
    count = np.arange(50, dtype=np.int32) % 10
    y = wp.zeros(50, dtype=float)
    wp.launch(rows, dim=50, inputs=[wp.array(count), wp.array(x), y])
    expected = [sum(v for v in x[i, : count[i]] if v > 0) for i in range(50)]
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("width", [1, 3, 4, 5, 40])
def test_rows_of_any_length_give_the_same(width):
    numbers = np.random.default_rng(2)
    x = numbers.uniform(-1, 1, (30, width)).astype(np.float32)
    y = wp.zeros((30, width), dtype=float)
    wp.launch(scale, dim=(30, width), inputs=[wp.array(x), 0.5, y])
    np.testing.assert_allclose(y.numpy(), np.exp(x * np.float32(0.5)), rtol=1e-6)

    vectors = numbers.uniform(-1, 1, (30, width, 3)).astype(np.float32)
    at = numbers.permutation(width).astype(np.int32)
    out = wp.zeros((30, width), dtype=wp.vec3)
    wp.launch(columns_at, dim=(30, width), inputs=[wp.array(at), wp.array(vectors, dtype=wp.vec3), out])
    expected = np.zeros_like(vectors)
    expected[:, at] = vectors[:, at] * 2 + vectors
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


def test_a_recorded_launch_follows_its_dimensions():
    x = np.random.default_rng(3).uniform(-1, 1, (6, 40)).astype(np.float32)
    y = wp.zeros((6, 40), dtype=float)
    launch = wp.launch(scale, dim=(6, 40), inputs=[wp.array(x), 1.0, y], record_cmd=True)
    launch.launch()
    np.testing.assert_allclose(y.numpy(), np.exp(x), rtol=1e-6)
    y.zero_()
    launch.set_dim((6, 2))
    launch.launch()
    expected = np.exp(x)
    expected[:, 2:] = 0
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)
