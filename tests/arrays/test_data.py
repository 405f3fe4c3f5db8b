"""Array data: dtype and shape from lists, NumPy arrays and Weft values, fill values, strides, views."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        ([1, 2], wp.int64, (2,)),
        ([1.0, 2], wp.float64, (2,)),
        (([1, 2.5], (3, 4)), wp.float64, (2, 2)),
        ([True, False], wp.bool, (2,)),
        ([True, 2], wp.int64, (2,)),
        ([1, 2**40], wp.int64, (2,)),
        ([2**63], wp.uint64, (1,)),
        ([], wp.float64, (0,)),
        ([[]], wp.float64, (1, 0)),
        (range(3), wp.int64, (3,)),
        ([np.float32(1.0)], wp.float32, (1,)),
        ([np.int16(1), np.int16(2)], wp.int16, (2,)),
        ([wp.vec3(1.0, 2.0, 3.0), wp.vec3()], wp.float32, (2, 3)),
        ([[wp.vec2d(1.0, 2.0)], [wp.vec2d()]], wp.float64, (2, 1, 2)),
        ([wp.quat(0.0, 0.0, 0.0, 1.0)], wp.float32, (1, 4)),
        ([wp.mat22(1.0, 2.0, 3.0, 4.0)], wp.float32, (1, 4)),
        (wp.vec3(1.0, 2.0, 3.0), wp.float32, (3,)),
        ([wp.float16(1.0), 2.0], wp.float16, (2,)),
        ([wp.zeros(2), wp.zeros(2)], wp.float32, (2, 2)),
        (np.array(3.0), wp.float64, (1,)),
        (wp.zeros(2, dtype=wp.vec3), wp.float32, (2, 3)),
        (wp.zeros((2, 1), dtype=wp.mat22d), wp.float64, (2, 1, 4)),
        (wp.zeros(2, dtype=wp.int8), wp.int8, (2,)),
    ],
)
def test_without_dtype_the_elements_are_the_scalars_that_numpy_sees(data, dtype, shape):
    a = wp.array(data)
    assert a.dtype is dtype and a.shape == shape and a.is_contiguous


def test_values_in_lists_keep_their_numbers():
    assert wp.array([wp.vec3(1.0, 2.0, 3.0), wp.vec3(4.0, 5.0, 6.0)]).numpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    assert wp.array([wp.mat22(1.0, 2.0, 3.0, 4.0)], dtype=float).numpy().tolist() == [[1, 2, 3, 4]]
    assert wp.array([wp.mat22(1.0, 2.0, 3.0, 4.0)], dtype=wp.mat22d).numpy().tolist() == [[[1, 2], [3, 4]]]
    assert wp.array([wp.vec3(1.5, -2.5, 3.0)], dtype=wp.vec3i).numpy().tolist() == [[1, -2, 3]]
    assert wp.array([wp.vec3d(1.0, 2.0, 3.0), (4, 5, 6)], dtype=wp.vec3).numpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(RuntimeError, match="more than 4 dimensions"):
        wp.array(wp.zeros((1, 1, 1, 1), dtype=wp.vec2))
    chosen = wp.indexedarray(wp.array([1.0, 2.0, 3.0], dtype=float), [wp.array([2, 0], dtype=int)])
    assert wp.array(chosen).list() == [3.0, 1.0]


@pytest.mark.parametrize("number", [5.0, 3, True, np.float32(3.0), wp.float64(1.0)])
def test_a_lone_number_is_no_data(number):
    for dtype in (None, float):
        with pytest.raises(RuntimeError, match="data is one number"):
            wp.array(number, dtype=dtype)


def test_trailing_dimensions_of_one_fit_vectors():
    assert wp.array(np.ones((2, 2, 1)), dtype=wp.vec2).shape == (2,)
    assert wp.array(np.ones((2, 2, 1, 1)), dtype=wp.vec2).shape == (2,)
    assert wp.array(np.ones((3, 1)), dtype=float).shape == (3, 1)
    strided = np.arange(12, dtype=np.float32).reshape(2, 2, 3)[:, :, 1:2]
    assert wp.array(strided, dtype=wp.vec2, copy=False).numpy().tolist() == [[1, 4], [7, 10]]


def test_from_numpy_with_a_shape():
    assert wp.from_numpy(np.ones((2, 3)), shape=(2,)).dtype is wp.vec3d
    assert wp.from_numpy(np.ones((2, 3)), dtype=float, shape=(3, 2)).shape == (3, 2)
    assert wp.from_numpy(np.ones((2, 3)), dtype=float, shape=(-1, 2)).shape == (3, 2)
    assert wp.from_numpy(np.ones((0, 3))).shape == (0,) and wp.from_numpy(np.array(1.0)).shape == (1,)
    with pytest.raises(RuntimeError):
        wp.from_numpy(np.ones((2, 3)), shape=(3, 2))
    with pytest.raises(ValueError, match="too long for vectors.*dtype=wp.float64"):
        wp.from_numpy(np.ones((1, (1 << 16) + 1)))


def test_ndim_beside_data_is_what_the_data_say():
    assert wp.array([1.0, 2.0], ndim=1).shape == wp.array([1.0, 2.0], ndim=2).shape == (2,)
    assert wp.array([(1, 2, 3)], dtype=wp.vec3, ndim=2).shape == (1,)
    assert wp.array([], dtype=float, ndim=2).shape == (0, 0) and wp.array([], ndim=3).dtype is wp.float64
    assert wp.array(np.zeros((0, 3)), dtype=float, ndim=2).shape == (0, 3)
    assert wp.empty(2, ndim=2).shape == wp.zeros(2, ndim=1).shape == wp.full(2, 1.0, ndim=1).shape == (2,)


def test_no_shape_is_no_elements():
    assert wp.zeros().shape == wp.empty(shape=None).shape == wp.ones().shape == (0,)


def test_strides_of_new_arrays():
    a = wp.zeros((2, 3), dtype=float, strides=(16, 4))
    assert a.strides == (16, 4) and a.capacity == 28 and not a.is_contiguous
    assert wp.zeros(3, dtype=float, strides=(8,)).capacity == 20
    turned = wp.empty((2, 3), dtype=wp.float64, strides=(8, 16))
    turned.assign(np.arange(6.0).reshape(2, 3))
    assert turned.numpy().tolist() == [[0, 1, 2], [3, 4, 5]] and turned.capacity == 48
    shared = wp.zeros(3, dtype=int, strides=(0,))
    shared.fill_(4)
    assert shared.capacity == 4 and shared.list() == [4, 4, 4]
    assert wp.full((2, 2), 7, dtype=wp.int8, strides=(3, 1)).numpy().tolist() == [[7, 7], [7, 7]]
    assert wp.ones(2, dtype=wp.vec2, strides=(16,)).numpy().tolist() == [[1, 1], [1, 1]]
    assert wp.zeros((0, 3), dtype=float, strides=(12, 4)).capacity == 0
    gradient = wp.zeros((2, 2), dtype=float, strides=(16, 4), requires_grad=True).grad
    assert gradient.strides == (16, 4) and gradient.numpy().tolist() == [[0, 0], [0, 0]]
    for strides in ((8, 8), (), (-4,), (2,), (1 << 62,)):
        with pytest.raises(ValueError, match="strides"):
            wp.zeros(3, dtype=float, strides=strides)


@pytest.mark.parametrize(
    ("dtype", "value", "filled"),
    [
        (wp.vec3, (1, 2, 3), [1, 2, 3]),
        (wp.vec3, np.arange(3), [0, 1, 2]),
        (wp.vec3, wp.vec3d(1.0, 2.0, 3.0), [1, 2, 3]),
        (wp.vec3ub, (-1, 256, 3), [255, 0, 3]),
        (wp.mat22, ((1, 2), (3, 4)), [[1, 2], [3, 4]]),
        (wp.mat22, (1, 2, 3, 4), [[1, 2], [3, 4]]),
        (wp.mat22, wp.mat22(1.0, 2.0, 3.0, 4.0), [[1, 2], [3, 4]]),
        (wp.quat, (1, 2, 3, 4), [1, 2, 3, 4]),
        (wp.quat, 2, [2, 2, 2, 2]),
        (wp.transform, (1, 2, 3, 4, 5, 6, 7), [1, 2, 3, 4, 5, 6, 7]),
        (wp.transform, ((1, 2, 3), (4, 5, 6, 7)), [1, 2, 3, 4, 5, 6, 7]),
        (wp.transform, 5, [5] * 7),
        (wp.types.vector(3, wp.bool), (1, 0, 2.5), [True, False, True]),
    ],
)
def test_elements_of_several_numbers_are_filled(dtype, value, filled):
    assert wp.full(1, value, dtype=dtype).numpy().tolist() == [filled]
    a = wp.zeros(1, dtype=dtype)
    a.fill_(value)
    assert a.numpy().tolist() == [filled] and wp.full_like(a, value).numpy().tolist() == [filled]


def test_ones_of_quaternions_and_transforms():
    assert wp.ones(1, dtype=wp.quat).numpy().tolist() == [[1] * 4]
    assert wp.ones(1, dtype=wp.transform).numpy().tolist() == [[1] * 7]
    assert wp.ones_like(wp.zeros(1, dtype=wp.quatd)).numpy().tolist() == [[1] * 4]
