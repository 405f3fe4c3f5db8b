"""Tiles loaded from arrays, stored and added to them: at any offset, with any element type, from any view."""

import itertools

import numpy as np
import pytest
import warp as wp
from windows import window, written

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(7)
by_name = {"ids": lambda value: getattr(value, "__name__", str(value))}


@wp.struct
class Inner:
    flag: wp.bool
    turn: wp.quat


@wp.struct
class Particle:
    kind: wp.int8
    position: wp.vec3d
    inner: Inner
    weight: float


@wp.kernel
def shifted(
    a: wp.array[float], b: wp.array2d[float], c: wp.array3d[float], at: wp.array2d[int],
    a_out: wp.array2d[float], b_out: wp.array3d[float], c_out: wp.array4d[float],
    a_to: wp.array2d[float], b_to: wp.array3d[float], c_to: wp.array4d[float],
):  # fmt: skip
    i = wp.tid()
    x, y, z = at[i, 0], at[i, 1], at[i, 2]
    s = wp.tile_load(a, shape=5, offset=x)
    wp.tile_store(a_out[i], s)
    wp.tile_store(a_to[i], wp.tile_ones(shape=5, dtype=float), offset=(x,))
    t = wp.tile_load(b, shape=(3, 4), offset=(x, y), storage="shared")
    wp.tile_store(b_out[i], t)
    wp.tile_store(b_to[i], wp.tile_ones(shape=(3, 4), dtype=float), offset=(x, y))
    place = (x, y, z)
    u = wp.tile_load(c, shape=(2, 3, 2), offset=place)
    wp.tile_store(c_out[i], u)
    wp.tile_store(c_to[i], wp.tile_ones(shape=(2, 3, 2), dtype=float), offset=place)


def check_shifted(offsets, lanes):
    n = len(offsets)
    a, b, c = (RNG.standard_normal(shape).astype(np.float32) for shape in ((7,), (6, 7), (4, 5, 3)))
    outs = [wp.full((n, *shape), 9.0, dtype=float) for shape in ((5,), (3, 4), (2, 3, 2))]
    targets = [wp.zeros((n, *array.shape)) for array in (a, b, c)]
    at = wp.array(np.array(offsets, dtype=np.int32), dtype=int)
    inputs = [wp.array(a), wp.array(b), wp.array(c), at, *outs, *targets]
    wp.launch_tiled(shifted, dim=[n], inputs=inputs, block_dim=lanes)
    for i, offset in enumerate(offsets):
        for array, out, target in zip((a, b, c), outs, targets, strict=True):
            shape, place = out.shape[1:], offset[: array.ndim]
            np.testing.assert_array_equal(out.numpy()[i], window(array, shape, place), err_msg=f"{shape} at {place}")
            expected = written(np.zeros_like(array), np.ones(shape, np.float32), place)
            np.testing.assert_array_equal(target.numpy()[i], expected, err_msg=f"{shape} to {place}")


def test_beyond_the_end_is_zero_and_stores_are_dropped(lanes):
    check_shifted(list(itertools.product((0, 1, 4, 7, 2**30), (0, 2, 5, 9), (0, 1, 2, 3))), lanes)


def test_before_the_start_is_zero_and_stores_are_dropped(lanes):
    check_shifted(list(itertools.product((-(2**30), -7, -2, -1, 0, 3), (-5, -4, -1, 0, 5), (-2, -1, 2))), lanes)


def test_offsets_that_would_wrap_around(lanes):
    check_shifted([(2**31 - 1,) * 3, (2**31 - 3,) * 3], lanes)
    check_shifted([(-(2**31),) * 3, (0, -(2**31), 2**31 - 1)], lanes)


def test_four_dimensions(lanes):
    @wp.kernel
    def copy(a: wp.array4d[wp.float64], at: wp.array[wp.vec4i], out: wp.array4d[wp.float64]):
        i = wp.tid()
        p = at[i]
        t = wp.tile_load(a, shape=(2, 3, 1, 4), offset=(p[0], p[1], p[2], p[3]))
        wp.tile_store(out, t, offset=(2 * i, 0, 0, 0))

    a = RNG.standard_normal((3, 4, 2, 5))
    at = [(0, 0, 0, 0), (1, 1, 1, 1), (2, 3, 1, 4), (3, 0, 0, 0), (0, 0, 2, 0)]
    out = wp.zeros((10, 3, 1, 4), dtype=wp.float64)
    wp.launch_tiled(copy, dim=[5], inputs=[wp.array(a), wp.array(at, dtype=wp.vec4i), out], block_dim=lanes)
    expected = [window(a, (2, 3, 1, 4), offset) for offset in at]
    np.testing.assert_array_equal(out.numpy(), np.concatenate(expected))


def random_elements(dtype, count):
    """An array of `dtype` with random elements, in NumPy."""
    numpy_type, shape = wp.zeros(1, dtype=dtype).numpy().dtype, wp.zeros(1, dtype=dtype).numpy().shape[1:]
    if numpy_type.names or numpy_type.kind in "biu":
        bytes_of = RNG.integers(0, 2, (count, numpy_type.itemsize)).astype(np.uint8)
        return np.ascontiguousarray(bytes_of).view(numpy_type).reshape(count)
    return RNG.standard_normal((count, *shape)).astype(numpy_type)


TYPES = [
    wp.bool,
    wp.int8,
    wp.uint16,
    wp.int32,
    wp.int64,
    wp.uint64,
    wp.float16,
    wp.float64,
    wp.vec3,
    wp.vec2h,
    wp.vec4d,
    wp.mat33,
    wp.mat22d,
    wp.quat,
    wp.transform,
    wp.spatial_vector,
]


@pytest.mark.parametrize("dtype", TYPES, **by_name)
@pytest.mark.parametrize("storage", ["register", "shared"])
def test_elements_of_any_type(dtype, storage, lanes):
    register = storage == "register"

    @wp.kernel
    def copy(a: wp.array[dtype], out: wp.array[dtype]):
        i = wp.tid()
        if wp.static(register):
            t = wp.tile_load(a, shape=7, offset=i * 7)
            wp.tile_store(out, t, offset=i * 7)
        else:
            s = wp.tile_load(a, shape=7, offset=i * 7, storage="shared")
            wp.tile_store(out, s, offset=i * 7)

    a = random_elements(dtype, 40)
    out = wp.zeros(40, dtype=dtype)
    wp.launch_tiled(copy, dim=[6], inputs=[wp.array(a, dtype=dtype), out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), a)


def test_structs_with_padding(lanes):
    @wp.kernel
    def copy(a: wp.array2d[Particle], out: wp.array2d[Particle]):
        i = wp.tid()
        t = wp.tile_load(a, shape=(2, 3), offset=(i, 2))
        wp.tile_store(out, t, offset=(i, 1))

    a = np.zeros((3, 4), dtype=Particle.numpy_dtype())
    a["kind"] = RNG.integers(-100, 100, (3, 4))
    a["position"] = RNG.standard_normal((3, 4, 3))
    a["inner"]["flag"] = RNG.integers(0, 2, (3, 4))
    a["inner"]["turn"] = RNG.standard_normal((3, 4, 4))
    a["weight"] = RNG.standard_normal((3, 4))
    out = wp.array(a, dtype=Particle)
    wp.launch_tiled(copy, dim=[1], inputs=[wp.array(a, dtype=Particle), out], block_dim=lanes)
    for field in ("kind", "position", "weight"):
        expected = written(a[field], window(a[field], (2, 3), (0, 2)), (0, 1))
        np.testing.assert_array_equal(out.numpy()[field], expected)
    for field in ("flag", "turn"):
        part = a["inner"][field]
        expected = written(part, window(part, (2, 3), (0, 2)), (0, 1))
        np.testing.assert_array_equal(out.numpy()["inner"][field], expected)


@wp.struct
class Holder:
    values: wp.array2d[float]


@wp.kernel
def from_views(a: wp.array3d[float], turned: wp.array3d[float], holder: Holder, out: wp.array3d[float]):
    i, lane = wp.tid()
    wp.tile_store(out[0], wp.tile_load(a[i], shape=(3, 3)))
    wp.tile_store(out[1, 1], wp.tile_load(a[i, 2], shape=3, offset=1))
    wp.tile_store(out[2], wp.tile_load(a[1:, 0], shape=(2, 3)))
    wp.tile_store(out[3], wp.tile_load(a[i, ::2, 1:], shape=(3, 3)))
    wp.tile_store(out[4], wp.tile_load(turned[:, :, i], shape=(3, 3), offset=(1, 1)))
    wp.tile_store(out[5], wp.tile_load(holder.values, shape=(3, 3), offset=(1, 0)))
    wp.tile_store(out[6, 0:2], wp.tile_load(a[i], shape=(3, 3)))


def test_rows_slices_transposes_and_fields(lanes):
    a = RNG.standard_normal((3, 4, 5)).astype(np.float32)
    holder = Holder()
    holder.values = wp.array(a[2])
    out = wp.zeros((7, 3, 3))
    turned = wp.array(a).transpose()
    wp.launch_tiled(from_views, dim=[1], inputs=[wp.array(a), turned, holder, out], block_dim=lanes)
    expected = np.zeros((7, 3, 3), np.float32)
    expected[0] = a[0, :3, :3]
    expected[1, 1] = a[0, 2, 1:4]
    expected[2, :2] = a[1:, 0, :3]
    expected[3, :2] = a[0, ::2, 1:4]
    expected[4] = a[0].T[1:4, 1:4]
    expected[5] = a[2, 1:4, :3]
    expected[6, :2] = a[0, :2, :3]
    np.testing.assert_array_equal(out.numpy(), expected)


def test_arrays_with_strides_of_their_own(lanes):
    @wp.kernel
    def copy(a: wp.array2d[float], out: wp.array2d[float]):
        i, j = wp.tid()
        wp.tile_store(out, wp.tile_load(a, shape=(2, 4), offset=(2 * i, 4 * j)), offset=(2 * i, 4 * j))

    values = RNG.standard_normal((12, 14)).astype(np.float32)
    whole = wp.array(values)
    for view, expected in (
        (whole[::2], values[::2]),
        (whole[:, 3::2], values[:, 3::2]),
        (whole.transpose(), values.T),
        (whole[2:9, 1:6], values[2:9, 1:6]),
    ):
        target = wp.zeros((14, 28))
        out = target[: expected.shape[0], : 2 * expected.shape[1] : 2]
        blocks = ((expected.shape[0] + 1) // 2, (expected.shape[1] + 3) // 4)
        wp.launch_tiled(copy, dim=blocks, inputs=[view, out], block_dim=lanes)
        np.testing.assert_array_equal(out.numpy(), expected)
        rest = target.numpy()
        rest[: expected.shape[0], : 2 * expected.shape[1] : 2] = 0.0
        assert not rest.any()


def test_an_array_that_the_kernel_makes(lanes):
    @wp.kernel
    def sums(out: wp.array[float]):
        i, lane = wp.tid()
        own = wp.zeros(shape=8, dtype=float)
        for k in range(6):
            own[k] = float(k * (i + 1))
        s = wp.tile_sum(wp.tile_load(own, shape=16))[0]
        if lane == 0:
            out[i] = s

    out = wp.zeros(3)
    wp.launch_tiled(sums, dim=[3], inputs=[out], block_dim=lanes)
    assert out.numpy().tolist() == [15.0, 30.0, 45.0]


def test_hints_change_no_values(lanes):
    @wp.kernel
    def copy(a: wp.array2d[float], out: wp.array3d[float], checked: wp.bool):
        i = wp.tid()
        wp.tile_store(out[0], wp.tile_load(a, shape=(8, 16), offset=(8 * i, 0), bounds_check=False), offset=(8 * i, 0))
        t = wp.tile_load(a, (8, 16), (8 * i, 0), "shared", False, True)
        wp.tile_store(out[1], t, offset=(8 * i, 0), bounds_check=False, aligned=True)
        wp.tile_store(a=out[2], t=t, offset=(8 * i, 0), aligned=True)
        wp.tile_store(out[3], wp.tile_load(a=a, shape=(8, 16), offset=(8 * i, 0), aligned=False), (8 * i, 0), True)

    a = RNG.standard_normal((24, 16)).astype(np.float32)
    out = wp.zeros((4, 24, 16))
    wp.launch_tiled(copy, dim=[3], inputs=[wp.array(a), out, True], block_dim=lanes)
    for k in range(4):
        np.testing.assert_array_equal(out.numpy()[k], a)


def test_large_tiles(lanes):
    @wp.kernel
    def copy(a: wp.array2d[float], out: wp.array2d[float]):
        wp.tile_store(out, wp.tile_load(a, shape=(65, 63)))

    a = RNG.standard_normal((61, 67)).astype(np.float32)
    out = wp.full((70, 70), 3.0, dtype=float)
    wp.launch_tiled(copy, dim=[1], inputs=[wp.array(a), out], block_dim=lanes)
    expected = np.full((70, 70), 3.0, np.float32)
    expected[:65, :63] = window(a, (65, 63), (0, 0))
    np.testing.assert_array_equal(out.numpy(), expected)


def test_loads_see_earlier_stores_of_the_block(lanes):
    @wp.kernel
    def pass_on(a: wp.array2d[float]):
        t = wp.tile_load(a[0], shape=100)
        for k in range(1, 5):
            wp.tile_store(a[k], t * float(k))
            t = wp.tile_load(a[k], shape=100) + wp.tile_load(a[k - 1], shape=100)

    a = np.zeros((5, 100), np.float32)
    a[0] = RNG.integers(-8, 8, 100)
    out = wp.array(a)
    wp.launch_tiled(pass_on, dim=[1], inputs=[out], block_dim=lanes)
    t = a[0]
    for k in range(1, 5):
        a[k] = t * k
        t = a[k] + a[k - 1]
    np.testing.assert_array_equal(out.numpy(), a)


ADDED = [wp.int32, wp.uint32, wp.int64, wp.uint64, wp.float16, wp.float32, wp.float64, wp.vec3, wp.vec2d, wp.mat22]


@pytest.mark.parametrize("dtype", ADDED, **by_name)
def test_atomic_sums_of_many_blocks(dtype, lanes):
    @wp.kernel
    def add(a: wp.array2d[dtype], out: wp.array2d[dtype]):
        i, j = wp.tid()
        t = wp.tile_load(a, shape=(2, 5), offset=(2 * i, 5 * j))
        wp.tile_atomic_add(out, t, offset=(i % 2, 3))

    shape = wp.zeros(1, dtype=dtype).numpy().shape[1:]
    numpy_type = wp.zeros(1, dtype=dtype).numpy().dtype
    a = RNG.integers(0, 9, (8, 10, *shape)).astype(numpy_type)
    before = RNG.integers(0, 9, (3, 7, *shape)).astype(numpy_type)
    out = wp.array(before, dtype=dtype)
    wp.launch_tiled(add, dim=(4, 2), inputs=[wp.array(a, dtype=dtype), out], block_dim=lanes)
    expected = before.copy()
    for i, j in np.ndindex(4, 2):
        block = a[2 * i : 2 * i + 2, 5 * j : 5 * j + 5]
        expected[i % 2 : i % 2 + 2, 3:] += block[:, :4]
    np.testing.assert_array_equal(out.numpy(), expected)


@wp.kernel
def add_and_tell(out: wp.array2d[float], before: wp.array2d[float], x: int, y: int):
    t = wp.tile_atomic_add(out, wp.tile_ones(shape=(3, 3), dtype=float), offset=(x, y))
    wp.tile_store(before, t)


def check_old_values(offsets, lanes):
    a = RNG.standard_normal((4, 5)).astype(np.float32)
    for offset in offsets:
        out, before = wp.array(a), wp.full((3, 3), 9.0, dtype=float)
        wp.launch_tiled(add_and_tell, dim=[1], inputs=[out, before, *offset], block_dim=lanes)
        np.testing.assert_array_equal(before.numpy(), window(a, (3, 3), offset))
        np.testing.assert_array_equal(out.numpy(), written(a, window(a, (3, 3), offset) + np.float32(1), offset))


def test_atomic_sums_return_the_old_values(lanes):
    check_old_values([(0, 0), (1, 2), (2, 4), (9, 9)], lanes)


def test_atomic_sums_before_the_start_return_zero(lanes):
    check_old_values([(-1, -2), (-3, 0), (2, -1)], lanes)


@wp.struct
class Sums:
    count: int
    mass: float
    momentum: wp.vec3


def test_atomic_sums_of_structs(lanes):
    @wp.kernel
    def add(a: wp.array[Sums], out: wp.array[Sums]):
        i = wp.tid()
        wp.tile_atomic_add(out, wp.tile_load(a, shape=3, offset=3 * i))

    a = np.zeros(12, dtype=Sums.numpy_dtype())
    a["count"], a["mass"] = np.arange(12), np.arange(12) * 0.5
    a["momentum"] = RNG.integers(-5, 5, (12, 3))
    out = wp.zeros(3, dtype=Sums)
    wp.launch_tiled(add, dim=[4], inputs=[wp.array(a, dtype=Sums), out], block_dim=lanes)
    for field in ("count", "mass", "momentum"):
        expected = a[field].reshape(4, 3, -1).sum(axis=0)
        np.testing.assert_array_equal(out.numpy()[field].reshape(3, -1), expected)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_blocks_beyond_the_last_element_of_a_grid(rank, lanes):
    """A ragged array in blocks: each block clips on its own, and all together cover it once."""

    @wp.kernel
    def add_one(a: wp.array(dtype=float, ndim=rank), out: wp.array(dtype=float, ndim=rank)):
        i, j, k = wp.tid()
        if wp.static(rank == 1):
            wp.tile_atomic_add(out, wp.tile_load(a, shape=4, offset=4 * i), offset=4 * i)
        elif wp.static(rank == 2):
            wp.tile_atomic_add(out, wp.tile_load(a, shape=(4, 3), offset=(4 * i, 3 * j)), offset=(4 * i, 3 * j))
        else:
            place = (4 * i, 3 * j, 2 * k)
            wp.tile_atomic_add(out, wp.tile_load(a, shape=(4, 3, 2), offset=place), offset=place)

    shape, tile = (9, 7, 3)[:rank], (4, 3, 2)[:rank]
    blocks = [-(-n // m) for n, m in zip(shape, tile)] + [1] * (3 - rank)
    a = RNG.standard_normal(shape).astype(np.float32)
    out = wp.zeros(shape)
    wp.launch_tiled(add_one, dim=blocks, inputs=[wp.array(a), out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), a)
