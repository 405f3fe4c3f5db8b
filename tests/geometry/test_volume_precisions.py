"""Volumes of float32 and of float64, each read and written in both types."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.own_launches("a launch with other numbers has no volume, or stores into it again")

F32, F64 = (wp.float32, wp.vec3f, wp.vec4f), (wp.float64, wp.vec3d, wp.vec4d)


def dense(count):
    shape = (8, 8, 8) if count == 1 else (8, 8, 8, count)
    return np.random.default_rng(count).random(shape).astype(np.float32)


def background(dtype, count):
    return dtype(0.5) if count == 1 else dtype(*[0.5] * count)


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("of", [F32, F64])
@pytest.mark.parametrize("asked", [F32, F64])
def test_values_are_converted(of, asked, which):
    T, count = asked[which], (1, 3, 4)[which]

    @wp.kernel(module="unique")
    def read(volume: wp.uint64, out: wp.array(dtype=T)):
        out[0] = wp.volume_lookup(volume, 1, 2, 3, dtype=T)
        out[1] = wp.volume_lookup(volume, 100, 2, 3, dtype=T)
        out[2] = wp.volume_sample(volume, wp.vec3(1.0, 2.0, 3.5), wp.Volume.LINEAR, dtype=T)
        wp.volume_store(volume, 4, 5, 6, T(out[0] + out[1]))
        out[3] = wp.volume_lookup(volume, 4, 5, 6, dtype=T)

    values = dense(count)
    volume = wp.Volume.load_from_numpy(values, bg_value=background(of[which], count))
    assert volume.dtype is of[which]
    out = wp.zeros(4, dtype=T)
    wp.launch(read, 1, [volume.id, out])
    half = np.full(values.shape[3:], 0.5)
    here = values[1, 2, 3].astype(np.float64)
    between = 0.5 * (here + values[1, 2, 4])
    np.testing.assert_allclose(out.numpy(), [here, half, between, here + 0.5], rtol=1e-6)


@pytest.mark.parametrize("of", [F32, F64])
@pytest.mark.parametrize("asked", [F32, F64])
def test_slopes_of_samples(of, asked):
    T = asked[0]

    @wp.kernel(module="unique")
    def sample(volume: wp.uint64, x: wp.array(dtype=wp.vec3), out: wp.array(dtype=T)):
        out[0] = wp.volume_sample(volume, x[0], wp.Volume.LINEAR, dtype=T)

    i, j, k = np.meshgrid(*[np.arange(8.0)] * 3, indexing="ij")
    volume = wp.Volume.load_from_numpy(i + 10 * j - 3 * k, bg_value=background(of[0], 1))
    x = wp.array([[1.25, 2.5, 3.75]], dtype=wp.vec3, requires_grad=True)
    out = wp.zeros(1, dtype=T, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(sample, 1, [volume.id, x, out])
    tape.backward(grads={out: wp.ones_like(out)})
    np.testing.assert_allclose(out.numpy(), [1.25 + 25 - 11.25], rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), [[1, 10, -3]], rtol=1e-5)
