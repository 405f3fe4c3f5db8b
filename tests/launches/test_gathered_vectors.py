"""Vectors that lanes load from here and there, by gathers or whole (codegen/cpu/interleave.cpp), against NumPy."""

import numpy as np
import pytest
import warp as wp

COUNT = 137  # full groups, and some lanes that are off

TYPES = {"vec2": wp.vec2, "vec3": wp.vec3, "vec4": wp.vec4, "quat": wp.quat, "mat22": wp.mat22}


@wp.struct
class Sphere:
    number: wp.int64
    centre: wp.vec3
    radius: float


@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 32])
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("strided", [False, True])
def test_elements_at_any_index(lanes, name, strided):
    dtype = TYPES[name]

    @wp.kernel(module_options={"lanes": lanes}, module="unique")
    def pick(x: wp.array(dtype=dtype), at: wp.array(dtype=int), y: wp.array(dtype=dtype), z: wp.array(dtype=dtype)):
        i = wp.tid()
        y[i] = x[at[i]]
        if at[i] % 3 != 0:
            z[i] = x[at[i]] + x[at[at[i]]]

    random = np.random.default_rng(lanes)
    shape = (2 * COUNT, *wp.zeros(1, dtype=dtype).numpy().shape[1:])
    data = random.normal(size=shape).astype(np.float32)
    x = wp.array(data, dtype=dtype)
    x, data = (x[::2], data[::2]) if strided else (x[:COUNT], data[:COUNT])
    at = random.integers(0, COUNT, COUNT).astype(np.int32)
    at[:2] = COUNT - 1, 0  # the ends of the array
    y, z = wp.zeros(COUNT, dtype=dtype), wp.zeros(COUNT, dtype=dtype)
    wp.launch(pick, dim=COUNT, inputs=[x, wp.array(at), y, z])
    np.testing.assert_array_equal(y.numpy(), data[at])
    expected = data[at] + data[at[at]]
    expected[at % 3 == 0] = 0
    np.testing.assert_array_equal(z.numpy(), expected)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_vectors_in_structs_and_in_loops(lanes):
    @wp.kernel(module_options={"lanes": lanes}, module="unique")
    def total(spheres: wp.array(dtype=Sphere), first: wp.array(dtype=int), y: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        sum = wp.vec3(0.0, 0.0, 0.0)
        for k in range(first[i], first[i + 1]):
            s = spheres[(k * 7) % 50]
            sum += s.centre * s.radius
        y[i] = sum

    random = np.random.default_rng(3)
    centres, radii = random.integers(-9, 9, (50, 3)), random.integers(1, 5, 50)
    spheres = wp.zeros(50, dtype=Sphere)
    records = spheres.numpy()
    records["centre"], records["radius"] = centres, radii
    spheres.assign(records)
    first = np.cumsum(random.integers(0, 6, COUNT + 1)).astype(np.int32)
    y = wp.zeros(COUNT, dtype=wp.vec3)
    wp.launch(total, dim=COUNT, inputs=[spheres, wp.array(first), y])
    terms = centres * radii[:, None]
    expected = [terms[np.arange(a, b) * 7 % 50].sum(axis=0) for a, b in zip(first, first[1:], strict=False)]
    np.testing.assert_array_equal(y.numpy(), np.array(expected, np.float32))
