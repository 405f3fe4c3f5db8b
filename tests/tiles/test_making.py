"""Functions that make tiles: zeros, ones, full, arange, random numbers, values of lanes."""

import enum

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected

SCALARS = [
    wp.bool,
    wp.int8,
    wp.uint8,
    wp.int16,
    wp.uint16,
    wp.int32,
    wp.uint32,
    wp.int64,
    wp.uint64,
    wp.float16,
    wp.float32,
    wp.float64,
]
by_name = {"ids": lambda value: getattr(value, "__name__", str(value))}


@wp.struct
class Body:
    mass: float
    velocity: wp.vec3
    turn: wp.mat22
    index: int


def filled(dtype, shape):
    """An array whose elements a kernel has to overwrite."""
    out = wp.empty(shape, dtype=dtype)
    out.fill_(1 if dtype is wp.bool else 77)
    return out


@pytest.mark.parametrize("dtype", SCALARS, **by_name)
def test_zeros_ones_and_full_of_scalars(dtype, lanes):
    @wp.kernel
    def make(value: dtype, zeros: wp.array2d[dtype], ones: wp.array2d[dtype], full: wp.array2d[dtype]):
        wp.tile_store(zeros, wp.tile_zeros(shape=(3, 5), dtype=dtype))
        wp.tile_store(ones, wp.tile_ones(shape=(3, 5), dtype=dtype, storage="shared"))
        wp.tile_store(full, wp.tile_full(shape=(3, 5), value=value, dtype=dtype))

    zeros, ones, full = (filled(dtype, (3, 5)) for _ in range(3))
    wp.launch_tiled(make, dim=[1], inputs=[dtype(5), zeros, ones, full], block_dim=lanes)
    np.testing.assert_array_equal(zeros.numpy(), np.zeros((3, 5)))
    np.testing.assert_array_equal(ones.numpy(), np.ones((3, 5)))
    np.testing.assert_array_equal(full.numpy(), np.full((3, 5), dtype is wp.bool or 5))


@pytest.mark.parametrize("size", [1, 3, 64, 65, 1000, 4099])
@pytest.mark.parametrize("storage", ["register", "shared"])
def test_any_extent(size, storage, lanes):
    register = storage == "register"

    @wp.kernel
    def make(ones: wp.array[float], counted: wp.array[int]):
        if wp.static(register):
            wp.tile_store(ones, wp.tile_ones(dtype=float, shape=size))
            wp.tile_store(counted, wp.tile_arange(size, dtype=int, storage="register"))
        else:
            wp.tile_store(ones, wp.tile_ones(dtype=float, shape=size, storage="shared"))
            wp.tile_store(counted, wp.tile_arange(size, dtype=int, storage="shared"))

    ones, counted = wp.zeros(size + 1), wp.zeros(size + 1, dtype=int)
    wp.launch_tiled(make, dim=[1], inputs=[ones, counted], block_dim=lanes)
    np.testing.assert_array_equal(ones.numpy(), [1.0] * size + [0.0])
    np.testing.assert_array_equal(counted.numpy(), [*range(size), 0])


def test_the_default_type_is_float32(lanes):
    @wp.kernel
    def make(zeros: wp.array[wp.float32], ones: wp.array[wp.float32], out: wp.array[wp.float32]):
        wp.tile_store(zeros, wp.tile_zeros(4))
        wp.tile_store(ones, wp.tile_ones(4))
        empty = wp.tile_empty(4)
        for k in range(4):
            empty[k] = float(k)
        wp.tile_store(out, empty)

    zeros, ones, out = (filled(wp.float32, 4) for _ in range(3))
    wp.launch_tiled(make, dim=[1], inputs=[zeros, ones, out], block_dim=lanes)
    assert zeros.numpy().tolist() == [0.0] * 4
    assert ones.numpy().tolist() == [1.0] * 4
    assert out.numpy().tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("dtype", [wp.vec3, wp.vec2h, wp.vec4d, wp.mat33, wp.mat22d, wp.spatial_vector], **by_name)
def test_ones_of_vectors_and_matrices_are_all_components(dtype, lanes):
    @wp.kernel
    def make(zeros: wp.array[dtype], ones: wp.array[dtype]):
        wp.tile_store(zeros, wp.tile_zeros(shape=3, dtype=dtype))
        wp.tile_store(ones, wp.tile_ones(shape=3, dtype=dtype))

    zeros, ones = filled(dtype, 3), filled(dtype, 3)
    wp.launch_tiled(make, dim=[1], inputs=[zeros, ones], block_dim=lanes)
    assert not zeros.numpy().any()
    assert (ones.numpy() == 1).all()


def test_quaternions_transforms_and_structs(lanes):
    @wp.kernel
    def make(zero: wp.array[wp.quat], one: wp.array[wp.quat], still: wp.array[wp.transform], bodies: wp.array[Body]):
        wp.tile_store(zero, wp.tile_zeros(shape=3, dtype=wp.quat))
        wp.tile_store(one, wp.tile_ones(shape=3, dtype=wp.quat))
        wp.tile_store(still, wp.tile_zeros(shape=2, dtype=wp.transform))
        wp.tile_store(bodies, wp.tile_zeros(shape=2, dtype=Body))

    zero, one, still = filled(wp.quat, 3), filled(wp.quat, 3), filled(wp.transform, 2)
    one_body = Body()
    one_body.mass, one_body.velocity, one_body.index = 2.0, wp.vec3(1.0, 2.0, 3.0), 9
    bodies = wp.array([one_body] * 3, dtype=Body)
    wp.launch_tiled(make, dim=[1], inputs=[zero, one, still, bodies], block_dim=lanes)
    assert not zero.numpy().any() and not still.numpy().any()
    assert one.numpy().tolist() == [[1.0, 0.0, 0.0, 0.0]] * 3
    assert bodies.numpy()["mass"].tolist() == [0.0, 0.0, 2.0]
    assert bodies.numpy()["velocity"].tolist() == [[0.0] * 3, [0.0] * 3, [1.0, 2.0, 3.0]]
    assert bodies.numpy()["index"].tolist() == [0, 0, 9]


@wp.kernel
def fill(
    x: float, v: wp.vec3, body: Body, ints: wp.array[wp.int32], floats: wp.array[float], doubles: wp.array[wp.float64],
    splat: wp.array[wp.vec3], vectors: wp.array[wp.vec3], matrices: wp.array[wp.mat22], bodies: wp.array[Body],
):  # fmt: skip
    wp.tile_store(ints, wp.tile_full(4, 3))
    wp.tile_store(floats, wp.tile_full((4,), 2.0 * x))
    wp.tile_store(doubles, wp.tile_full(shape=4, value=x, dtype=wp.float64))
    wp.tile_store(splat, wp.tile_full(shape=4, value=x, dtype=wp.vec3))
    wp.tile_store(vectors, wp.tile_full(shape=4, value=v))
    wp.tile_store(matrices, wp.tile_full(shape=4, value=wp.mat22(1.0, 2.0, 3.0, x)))
    wp.tile_store(bodies, wp.tile_full(shape=4, value=body, storage="shared"))


def test_full_takes_the_type_of_its_value_and_converts_scalars(lanes):
    body = Body()
    body.mass, body.velocity, body.turn, body.index = 1.5, wp.vec3(1.0, 2.0, 3.0), wp.mat22(1.0, 2.0, 3.0, 4.0), -3
    types = [wp.int32, float, wp.float64, wp.vec3, wp.vec3, wp.mat22]
    arrays = [filled(dtype, 5) for dtype in types] + [wp.zeros(5, dtype=Body)]
    wp.launch_tiled(fill, dim=[1], inputs=[2.5, wp.vec3(4.0, 5.0, 6.0), body, *arrays], block_dim=lanes)
    ints, floats, doubles, splat, vectors, matrices, bodies = (array.numpy() for array in arrays)
    assert ints.tolist() == [3] * 4 + [77]
    assert floats.tolist() == [5.0] * 4 + [77.0]
    assert doubles.tolist() == [2.5] * 4 + [77.0]
    assert splat[:4].tolist() == [[2.5] * 3] * 4
    assert vectors[:4].tolist() == [[4.0, 5.0, 6.0]] * 4
    assert matrices[:4].tolist() == [[[1.0, 2.0], [3.0, 2.5]]] * 4
    assert bodies["mass"].tolist() == [1.5] * 4 + [0.0]
    assert bodies["velocity"].tolist() == [[1.0, 2.0, 3.0]] * 4 + [[0.0] * 3]
    assert bodies["turn"].tolist() == [[[1.0, 2.0], [3.0, 4.0]]] * 4 + [[[0.0] * 2] * 2]
    assert bodies["index"].tolist() == [-3] * 4 + [0]


def test_elements_of_bfloat16(lanes):
    @wp.kernel
    def make(out: wp.array[float]):
        t = wp.tile_full(shape=4, value=1.5, dtype=wp.bfloat16)
        wp.tile_store(out, wp.tile_astype(t, wp.float32))

    out = wp.zeros(4)
    wp.launch_tiled(make, dim=[1], inputs=[out], block_dim=lanes)
    assert out.numpy().tolist() == [1.5] * 4


CAPTURED = 3
CONSTANT = wp.constant(4)


class Sizes:
    ROWS = 2
    COLUMNS = 3


class Extent(enum.IntEnum):
    FIVE = 5


@wp.kernel
def of_constants(out: wp.array2d[float], sums: wp.array[float]):
    i, lane = wp.tid()
    local = 2
    own = Sizes.COLUMNS
    literal = wp.tile_ones(shape=(2, 3), dtype=float)
    of_local = wp.tile_ones(shape=local, dtype=float)
    captured = wp.tile_ones(shape=(CAPTURED, CAPTURED), dtype=float)
    constant = wp.tile_ones(shape=(CONSTANT,), dtype=float)
    attributes = wp.tile_ones(shape=(Sizes.ROWS, own), dtype=float)
    member = wp.tile_ones(shape=Extent.FIVE, dtype=float)
    static = wp.tile_ones(shape=(wp.static(CAPTURED * 2 + 1), wp.static(Sizes.ROWS)), dtype=float)
    a, b, c, d = wp.tile_sum(literal)[0], wp.tile_sum(of_local)[0], wp.tile_sum(captured)[0], wp.tile_sum(constant)[0]
    e, f, g = wp.tile_sum(attributes)[0], wp.tile_sum(member)[0], wp.tile_sum(static)[0]
    if lane == 0:
        sums[0] = a
        sums[1] = b
        sums[2] = c
        sums[3] = d
        sums[4] = e
        sums[5] = f
        sums[6] = g
    for k in range(1, 4):
        wp.tile_store(out[k], wp.tile_full(shape=k, value=float(k)))


def test_extents_are_literals_captured_numbers_constants_and_static_expressions(lanes):
    out, sums = wp.zeros((4, 4)), wp.zeros(7)
    wp.launch_tiled(of_constants, dim=[1], inputs=[out, sums], block_dim=lanes)
    assert sums.numpy().tolist() == [6, 2, 9, 4, 6, 5, 14]
    np.testing.assert_array_equal(out.numpy(), [[0, 0, 0, 0], [1, 0, 0, 0], [2, 2, 0, 0], [3, 3, 3, 0]])


@wp.kernel
def ranges(
    a: wp.array[float], b: wp.array[float], c: wp.array[float], d: wp.array[float], e: wp.array[int],
    f: wp.array[wp.float64], g: wp.array[wp.int64],
):  # fmt: skip
    wp.tile_store(a, wp.tile_arange(5))
    wp.tile_store(b, wp.tile_arange(2, 7))
    wp.tile_store(c, wp.tile_arange(0.5, 2.0, 0.25))
    wp.tile_store(d, wp.tile_arange(7, 0, -3))
    wp.tile_store(e, wp.tile_arange(3, 20, 4, dtype=int, storage="shared"))
    wp.tile_store(f, wp.tile_arange(1.0, dtype=wp.float64))
    wp.tile_store(g, wp.tile_arange(-2, 3, dtype=wp.int64))


def test_ranges(lanes):
    types = [float, float, float, float, int, wp.float64, wp.int64]
    arrays = [filled(dtype, 8) for dtype in types]
    wp.launch_tiled(ranges, dim=[1], inputs=arrays, block_dim=lanes)
    expected = [
        np.arange(5),
        np.arange(2, 7),
        np.arange(0.5, 2.0, 0.25),
        np.arange(7, 0, -3),
        np.arange(3, 20, 4),
        np.arange(1.0),
        np.arange(-2, 3),
    ]
    for found, row in zip(arrays, expected, strict=True):
        assert found.numpy().tolist() == [*row.tolist(), *[77] * (8 - len(row))]


@wp.kernel
def throw(seed: int, f: wp.array3d[float], n: wp.array3d[int], wide: wp.array[int]):
    i, lane = wp.tid()
    rng = wp.rand_init(seed, i)
    wp.tile_store(f[0], wp.tile_randf(shape=(16, 16), rng=rng), offset=(i * 16, 0))
    wp.tile_store(f[1], wp.tile_randf((16, 16), rng), offset=(i * 16, 0))
    wp.tile_store(f[2], wp.tile_randf(shape=(16, 16), rng=rng, min=-3.0, max=5.0), offset=(i * 16, 0))
    wp.tile_store(n[0], wp.tile_randi((16, 16), rng, -4, 12), offset=(i * 16, 0))
    wp.tile_store(n[1], wp.tile_randi(shape=(16, 16), rng=rng, min=-4, max=12), offset=(i * 16, 0))
    wp.tile_store(wide, wp.tile_randi(shape=256, rng=rng), offset=i * 256)


def test_random_numbers_are_spread_over_their_range_and_repeat_for_a_state(lanes):
    arguments = []
    for _ in range(2):
        f, n, wide = wp.zeros((3, 64, 16)), wp.zeros((2, 64, 16), dtype=int), wp.zeros(1024, dtype=int)
        wp.launch_tiled(throw, dim=[4], inputs=[11, f, n, wide], block_dim=lanes)
        arguments.append([f.numpy(), n.numpy(), wide.numpy()])
    for one, other in zip(*arguments):
        np.testing.assert_array_equal(one, other)
    f, n, wide = arguments[0]
    np.testing.assert_array_equal(f[0], f[1])
    np.testing.assert_array_equal(n[0], n[1])
    assert f[0].min() >= 0.0 and f[0].max() < 1.0 and len(np.unique(f[0])) > 1000
    assert f[2].min() >= -3.0 and f[2].max() < 5.0
    np.testing.assert_allclose(f[2], f[0] * 8.0 - 3.0, atol=1e-5)
    assert set(n[0].ravel()) == set(range(-4, 12))
    assert len(np.unique(wide)) > 1000 and wide.min() < -(2**30) and wide.max() > 2**30
    # 1024 numbers in 8 classes: the standard deviation of a count is 10.6.
    counts = np.histogram(f[0], bins=8, range=(0.0, 1.0))[0]
    assert np.abs(counts - 128).max() < 60


@wp.kernel
def of_lanes(
    scalars: wp.array2d[float], parts: wp.array3d[float], entries: wp.array4d[float], vectors: wp.array2d[wp.vec3],
    quats: wp.array2d[wp.quat], bodies: wp.array2d[Body], again: wp.array2d[float],
):  # fmt: skip
    i, lane = wp.tid()
    x = float(10 * i + lane)
    v = wp.vec3(x, 2.0 * x, 3.0)
    m = wp.mat22(x, 1.0, 2.0, -x)
    body = Body()
    body.mass = x
    body.velocity = v
    wp.tile_store(scalars[i], wp.tile(x))
    wp.tile_store(parts[i], wp.tile(v))
    wp.tile_store(entries[i], wp.tile(m))
    wp.tile_store(vectors[i], wp.tile(v, preserve_type=True))
    wp.tile_store(quats[i], wp.tile(wp.quat(x, 0.0, 0.0, 1.0), preserve_type=True))
    wp.tile_store(bodies[i], wp.tile(body))
    s = wp.untile(wp.tile(x) + wp.tile(x))
    w = wp.untile(wp.tile(v) * 2.0)
    n = wp.untile(wp.tile(m))
    p = wp.untile(wp.tile(v, preserve_type=True))
    again[i, lane] = s + w[1] + n[1, 1] + p[2]


def test_one_value_of_each_lane(lanes):
    scalars, again = wp.zeros((3, lanes)), wp.zeros((3, lanes))
    parts, entries = wp.zeros((3, 3, lanes)), wp.zeros((3, 2, 2, lanes))
    vectors, quats = wp.zeros((3, lanes), dtype=wp.vec3), wp.zeros((3, lanes), dtype=wp.quat)
    bodies = wp.zeros((3, lanes), dtype=Body)
    inputs = [scalars, parts, entries, vectors, quats, bodies, again]
    wp.launch_tiled(of_lanes, dim=[3], inputs=inputs, block_dim=lanes)
    x = 10.0 * np.arange(3)[:, None] + np.arange(lanes)
    three, one, two, none = np.full_like(x, 3.0), np.ones_like(x), np.full_like(x, 2.0), np.zeros_like(x)
    np.testing.assert_array_equal(scalars.numpy(), x)
    np.testing.assert_array_equal(parts.numpy(), np.stack([x, 2 * x, three], axis=1))
    np.testing.assert_array_equal(entries.numpy(), np.stack([x, one, two, -x], axis=1).reshape(3, 2, 2, lanes))
    np.testing.assert_array_equal(vectors.numpy(), np.stack([x, 2 * x, three], axis=2))
    np.testing.assert_array_equal(quats.numpy(), np.stack([x, none, none, one], axis=2))
    np.testing.assert_array_equal(bodies.numpy()["mass"], x)
    np.testing.assert_array_equal(bodies.numpy()["velocity"], np.stack([x, 2 * x, three], axis=2))
    np.testing.assert_array_equal(again.numpy(), 2 * x + 4 * x - x + 3)


def test_a_tile_of_the_value_of_one_lane(lanes):
    chosen = 3 if lanes > 1 else 0

    @wp.kernel
    def spread(which: int, out: wp.array2d[int], vectors: wp.array[wp.vec2]):
        i, lane = wp.tid()
        wp.tile_store(out, wp.tile_from_thread(shape=(2, 3), value=100 + lane, thread_idx=which))
        wp.tile_store(vectors, wp.tile_from_thread(3, wp.vec2(float(lane), 1.0), which, storage="shared"))

    out, vectors = wp.zeros((2, 3), dtype=int), wp.zeros(3, dtype=wp.vec2)
    wp.launch_tiled(spread, dim=[1], inputs=[chosen, out, vectors], block_dim=lanes)
    assert out.numpy().tolist() == [[100 + chosen] * 3] * 2
    assert vectors.numpy().tolist() == [[float(chosen), 1.0]] * 3
