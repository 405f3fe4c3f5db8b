"""Loads and stores at places that differ between the threads, under conditions."""

import numpy as np
import pytest
import warp as wp

LANES = {"lanes": 8}
"""One lane would be chosen for most of these kernels."""
FAR = 2_000_000_000
"""An index that no array has: an access there is a crash."""


@wp.struct
class Mixed:
    flag: bool
    position: wp.vec3
    weight: wp.float64
    count: wp.int8


def indices(size):
    """A shuffled index for half of the threads, FAR for the others."""
    draw = np.random.default_rng(5)
    index = draw.permutation(size).astype(np.int32)
    return np.where(draw.random(size) < 0.5, index, FAR).astype(np.int32)


@pytest.mark.parametrize("size", [1, 7, 8, 333])
@pytest.mark.parametrize("dtype", [wp.float32, wp.float64, wp.int8, wp.bool, wp.vec3, wp.mat33d])
def test_threads_behind_a_condition_touch_nothing(size, dtype):
    @wp.kernel(module="unique", module_options=LANES)
    def move(index: wp.array(dtype=int), x: wp.array(dtype=dtype), y: wp.array(dtype=dtype)):
        i = wp.tid()
        k = index[i]
        if k < 1000000:
            y[k] = x[k]

    index = indices(size)
    kept = index[index < FAR]
    shape = np.asarray(wp.zeros(size, dtype=dtype).numpy()).shape
    values = np.random.default_rng(6).integers(0, 2, shape) if dtype is wp.bool else np.arange(np.prod(shape)) % 100
    x = wp.array(values.reshape(shape).astype(wp.dtype_to_numpy(wp.types.type_scalar_type(dtype))), dtype=dtype)
    y = wp.zeros(size, dtype=dtype)
    wp.launch(move, dim=size, inputs=[wp.array(index), x, y])
    expected = np.zeros_like(x.numpy())
    expected[kept] = x.numpy()[kept]
    np.testing.assert_array_equal(y.numpy(), expected)


def test_structs_behind_a_condition():
    @wp.kernel(module_options=LANES)
    def move(index: wp.array(dtype=int), x: wp.array(dtype=Mixed), y: wp.array(dtype=Mixed)):
        i = wp.tid()
        k = index[i]
        if k < 1000000:
            item = x[k]
            if item.flag:
                item.position = item.position * 2.0
            item.weight += wp.float64(1.0)
            y[k] = item

    size = 100
    index = indices(size)
    x = wp.zeros(size, dtype=Mixed)
    values = x.numpy()
    values["flag"] = np.arange(size) % 3 == 0
    values["position"] = np.arange(3 * size).reshape(size, 3)
    values["weight"] = np.arange(size) * 0.1
    values["count"] = np.arange(size)
    x = wp.array(values, dtype=Mixed)
    y = wp.zeros(size, dtype=Mixed)
    wp.launch(move, dim=size, inputs=[wp.array(index), x, y])
    kept = index[index < FAR]
    expected = np.zeros_like(values)
    expected[kept] = values[kept]
    expected["position"][kept] *= np.where(values["flag"], 2, 1)[kept][:, None]
    expected["weight"][kept] += 1.0
    for name in ("flag", "position", "weight", "count"):
        np.testing.assert_array_equal(y.numpy()[name], expected[name])


@pytest.mark.host_memory("threads of a GPU come in no order", on="cuda")
def test_of_threads_that_store_in_one_place_the_last_wins():
    @wp.kernel(module_options=LANES)
    def store(index: wp.array(dtype=int), y: wp.array(dtype=int)):
        i = wp.tid()
        if i % 3 != 2:
            y[index[i] * 2] = i

    index = np.array([0, 0, 0, 1, 0, 1, 1, 1], dtype=np.int32)
    y = wp.full(4, -1, dtype=int)
    wp.launch(store, dim=8, inputs=[wp.array(index), y])
    assert y.numpy().tolist() == [4, -1, 7, -1]
