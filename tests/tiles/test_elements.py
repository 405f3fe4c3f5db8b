"""Single elements of tiles: read, written, changed in place; components of vectors, entries of matrices, fields."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(9)


@wp.struct
class Spin:
    axis: wp.vec3
    rate: float


@wp.struct
class Wheel:
    spin: Spin
    turn: wp.mat22
    count: int


@wp.kernel
def read(a: wp.array[float], b: wp.array2d[float], c: wp.array3d[float], k: int, out: wp.array2d[float]):
    i, lane = wp.tid()
    t = wp.tile_load(a, shape=6)
    u = wp.tile_load(b, shape=(3, 4), storage="shared")
    v = wp.tile_load(c, shape=(2, 3, 4))
    out[0, lane] = t[0]
    out[1, lane] = t[k]
    out[2, lane] = t[-1]
    out[3, lane] = t[k - 6]
    out[4, lane] = u[1, k]
    out[5, lane] = u[1][k]
    out[6, lane] = u[-1, -2]
    out[7, lane] = v[1, k - 2, -4]
    out[8, lane] = v[k - 2][2][1]
    out[9, lane] = wp.tile_extract(t, k)
    out[10, lane] = wp.tile_extract(u, k - 1, 3)
    out[11, lane] = wp.tile_extract(v, 1, 2, k)
    out[12, lane] = t[lane % 6]
    out[13, lane] = u[lane % 3, -1 - lane % 4]


def test_reads_at_constant_and_computed_places(lanes):
    a, b, c = (RNG.standard_normal(shape).astype(np.float32) for shape in ((6,), (3, 4), (2, 3, 4)))
    out = wp.zeros((14, lanes))
    wp.launch_tiled(read, dim=[1], inputs=[wp.array(a), wp.array(b), wp.array(c), 2, out], block_dim=lanes)
    same = [a[0], a[2], a[-1], a[-4], b[1, 2], b[1, 2], b[-1, -2], c[1, 0, 0], c[0, 2, 1], a[2], b[1, 3], c[1, 2, 2]]
    np.testing.assert_array_equal(out.numpy()[:12], np.repeat(np.array(same)[:, None], lanes, axis=1))
    lane = np.arange(lanes)
    np.testing.assert_array_equal(out.numpy()[12], a[lane % 6])
    np.testing.assert_array_equal(out.numpy()[13], b[lane % 3, -1 - lane % 4])


def test_lanes_read_elements_of_their_own_in_branches(lanes):
    @wp.kernel
    def choose(a: wp.array[float], out: wp.array2d[float]):
        i, lane = wp.tid()
        t = wp.tile_load(a, shape=64, storage="shared")
        x = float(0.0)
        if lane % 3 == 0:
            x = t[lane]
        elif lane % 3 == 1:
            for j in range(lane):
                x += t[j]
        out[i, lane] = x

    a = RNG.integers(-9, 9, 64).astype(np.float32)
    out = wp.zeros((2, lanes))
    wp.launch_tiled(choose, dim=[2], inputs=[wp.array(a), out], block_dim=lanes)
    expected = [a[j] if j % 3 == 0 else a[:j].sum() if j % 3 == 1 else 0.0 for j in range(lanes)]
    np.testing.assert_array_equal(out.numpy(), [expected] * 2)


@wp.kernel
def write(k: int, a: wp.array[float], b: wp.array2d[float], c: wp.array3d[int], d: wp.array[wp.float16]):
    t = wp.tile_zeros(shape=6, dtype=float)
    t[0] = 1.5
    t[-1] = 2
    t[k] = float(k)
    t[k - 5] = -1.0
    wp.tile_store(a, t)
    u = wp.tile_ones(shape=(3, 4), dtype=float, storage="shared")
    u[0, 1] = 5.0
    u[k, -1] = 6.0
    u[-2, k] *= 7.0
    u[1][0] = 8.0
    u[1, 0] /= 2.0
    u[2, 0] += 3.0 if k > 100 else 0.0
    wp.tile_store(b, u)
    v = wp.tile_zeros(shape=(2, 2, 3), dtype=int)
    for i in range(2):
        for j in range(2):
            for m in range(3):
                v[i, j, m] = 100 * i + 10 * j + m
    wp.tile_store(c, v)
    h = wp.tile_zeros(shape=4, dtype=wp.float16)
    h[1] = wp.float16(0.5)
    wp.tile_store(d, h)


def test_writes(lanes):
    a, b = wp.zeros(6), wp.zeros((3, 4))
    c, d = wp.zeros((2, 2, 3), dtype=int), wp.zeros(4, dtype=wp.float16)
    wp.launch_tiled(write, dim=[1], inputs=[2, a, b, c, d], block_dim=lanes)
    assert a.numpy().tolist() == [1.5, 0.0, 2.0, -1.0, 0.0, 2.0]
    assert b.numpy().tolist() == [[1, 5, 1, 1], [4, 1, 7, 1], [1, 1, 1, 6]]
    assert c.numpy().tolist() == [[[0, 1, 2], [10, 11, 12]], [[100, 101, 102], [110, 111, 112]]]
    assert d.numpy().tolist() == [0.0, 0.5, 0.0, 0.0]


def test_changes_in_place_count_lanes_and_are_atomic(lanes):
    @wp.kernel
    def count(f: wp.array[float], n: wp.array[int]):
        i, lane = wp.tid()
        t = wp.tile_zeros(shape=3, dtype=float)
        t[0] += 1.0
        t[1] -= 2.0
        t[-1] += float(lane)
        wp.tile_store(f, t)
        u = wp.tile_zeros(shape=4, dtype=int, storage="shared")
        u[0] += 3
        u[1] |= 1 << (lane % 8)
        u[2] ^= 5
        u[3] = -1
        u[3] &= ~(1 << (lane % 8))
        wp.tile_store(n, u)

    f, n = wp.zeros(3), wp.zeros(4, dtype=int)
    wp.launch_tiled(count, dim=[1], inputs=[f, n], block_dim=lanes)
    assert f.numpy().tolist() == [lanes, -2.0 * lanes, sum(range(lanes))]
    bits = (1 << min(lanes, 8)) - 1
    assert n.numpy().tolist() == [3 * lanes, bits, 5 * (lanes % 2), ~bits]


def test_assignment_counts_once_whatever_the_lanes(lanes):
    """`t[k] = t[k] - x` by all lanes means once: solvers are written so."""

    @wp.kernel
    def relax(a: wp.array[float], y: wp.array[float], out: wp.array[float]):
        q = wp.tile_load(a, shape=5, storage="shared")
        s = wp.tile_load(y, shape=5)
        for j in range(5):
            q[j] = q[j] - 0.5 * s[j]
        q[2] = q[2] + 1.0
        q[0] *= 2.0
        wp.tile_store(out, q)

    a, y = RNG.integers(-9, 9, (2, 5)).astype(np.float32)
    out = wp.zeros(5)
    wp.launch_tiled(relax, dim=[1], inputs=[wp.array(a), wp.array(y), out], block_dim=lanes)
    expected = a - 0.5 * y
    expected[2] += 1.0
    expected[0] *= 2.0
    np.testing.assert_array_equal(out.numpy(), expected)


@wp.kernel
def components(
    vectors: wp.array[wp.vec3], matrices: wp.array[wp.mat22], turns: wp.array[wp.quat], k: int, out: wp.array2d[float],
    rows: wp.array2d[wp.vec2],
):  # fmt: skip
    i, lane = wp.tid()
    v = wp.tile_load(vectors, shape=4)
    m = wp.tile_load(matrices, shape=3, storage="shared")
    q = wp.tile_load(turns, shape=2)
    out[0, lane] = v[1, 2]
    out[1, lane] = v[1][2]
    out[2, lane] = v[k][k]
    out[3, lane] = wp.tile_extract(v, 3, 1)
    out[4, lane] = m[1][0, 1]
    out[5, lane] = wp.tile_extract(m, 1, 1, 0)
    turn = q[1]
    out[6, lane] = turn[3]
    w = v[k]
    out[7, lane] = w[0] + w[1]
    out[8, lane] = wp.dot(v[0], v[-1])
    rows[0, lane] = m[1, 0]
    rows[1, lane] = m[2][1]
    rows[2, lane] = wp.tile_extract(m, 0, 1)


def test_components_are_read(lanes):
    v = RNG.standard_normal((4, 3)).astype(np.float32)
    m = RNG.standard_normal((3, 2, 2)).astype(np.float32)
    q = RNG.standard_normal((2, 4)).astype(np.float32)
    out, rows = wp.zeros((9, lanes)), wp.zeros((3, lanes), dtype=wp.vec2)
    arrays = [wp.array(v, dtype=wp.vec3), wp.array(m, dtype=wp.mat22), wp.array(q, dtype=wp.quat)]
    wp.launch_tiled(components, dim=[1], inputs=[*arrays, 2, out, rows], block_dim=lanes)
    expected = [v[1, 2], v[1, 2], v[2, 2], v[3, 1], m[1, 0, 1], m[1, 1, 0], q[1, 3], v[2, 0] + v[2, 1], v[0] @ v[3]]
    np.testing.assert_allclose(out.numpy(), np.repeat(np.array(expected)[:, None], lanes, axis=1), rtol=1e-6)
    np.testing.assert_array_equal(rows.numpy(), np.repeat(np.stack([m[1, 0], m[2, 1], m[0, 1]])[:, None], lanes, 1))


@wp.kernel
def write_components(k: int, vectors: wp.array[wp.vec3], matrices: wp.array[wp.mat22], wheels: wp.array[Wheel]):
    x = wp.tile_zeros(shape=3, dtype=wp.vec3)
    x[0][1] = 1.0
    x[1, 2] = 2.0
    x[k][k] = 3.0
    x[1] = wp.vec3(4.0, 5.0, x[1, 2])
    wp.tile_store(vectors, x)
    m = wp.tile_zeros(shape=3, dtype=wp.mat22, storage="shared")
    m[0][0, 1] = 1.0
    m[1][1] = wp.vec2(2.0, 3.0)
    m[k] = wp.mat22(4.0, 5.0, 6.0, 7.0)
    wp.tile_store(matrices, m)
    wheel = Wheel()
    wheel.spin.axis = wp.vec3(1.0, 2.0, 3.0)
    wheel.spin.rate = 4.0
    wheel.turn = wp.mat22(1.0, 2.0, 3.0, 4.0)
    wheel.count = 5
    t = wp.tile_zeros(shape=3, dtype=Wheel)
    t[k] = wheel
    wp.tile_store(wheels, t)


def test_components_are_written(lanes):
    vectors, matrices = wp.zeros(3, dtype=wp.vec3), wp.zeros(3, dtype=wp.mat22)
    wheels = wp.zeros(3, dtype=Wheel)
    wp.launch_tiled(write_components, dim=[1], inputs=[2, vectors, matrices, wheels], block_dim=lanes)
    assert vectors.numpy().tolist() == [[0.0, 1.0, 0.0], [4.0, 5.0, 2.0], [0.0, 0.0, 3.0]]
    expected = [[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0]]]
    assert matrices.numpy().tolist() == expected
    found = wheels.numpy()
    assert found["spin"]["axis"].tolist() == [[0.0] * 3, [0.0] * 3, [1.0, 2.0, 3.0]]
    assert found["spin"]["rate"].tolist() == [0.0, 0.0, 4.0]
    assert found["turn"][2].tolist() == [[1.0, 2.0], [3.0, 4.0]] and found["count"].tolist() == [0, 0, 5]


@wp.kernel
def add_structs(a: wp.array[Wheel], out: wp.array[Wheel]):
    i, lane = wp.tid()
    t = wp.tile_load(a, shape=3)
    wheel = Wheel()
    if lane == 0:
        wheel.spin.rate = 1.5
        wheel.count = 2
    t[1] += wheel
    wp.tile_store(out, t)


def test_a_struct_is_added_to_an_element(lanes):
    a = np.zeros(3, dtype=Wheel.numpy_dtype())
    a["spin"]["rate"], a["count"] = [1.0, 2.0, 3.0], [4, 5, 6]
    out = wp.zeros(3, dtype=Wheel)
    wp.launch_tiled(add_structs, dim=[1], inputs=[wp.array(a, dtype=Wheel), out], block_dim=lanes)
    assert out.numpy()["spin"]["rate"].tolist() == [1.0, 3.5, 3.0]
    assert out.numpy()["count"].tolist() == [4, 7, 6]


@wp.kernel
def write_fields(k: int, wheels: wp.array[Wheel], vectors: wp.array[wp.vec3], matrices: wp.array[wp.mat22]):
    i, lane = wp.tid()
    first = float(wp.where(lane == 0, 1, 0))
    t = wp.tile_zeros(shape=3, dtype=Wheel)
    t[0].count = 7
    t[k].spin.rate = 2.5
    t[k].spin.axis = wp.vec3(1.0, 2.0, 3.0)
    t[k].spin.axis[1] = 9.0
    t[1].turn[1, 0] = 4.0
    t[1].spin.rate += 3.0 * first
    wp.tile_store(wheels, t)
    x = wp.tile_zeros(shape=3, dtype=wp.vec3)
    x[0].z += 2.0 * first
    x[k][1] += 3.0 * first
    x[1].y = 4.0
    wp.tile_store(vectors, x)
    m = wp.tile_ones(shape=2, dtype=wp.mat22, storage="shared")
    m[1][0, 1] += 5.0 * first
    m[0][1, 1] -= 2.0 * first
    wp.tile_store(matrices, m)


def test_fields_and_components_are_changed_in_place(lanes):
    wheels, vectors, matrices = (wp.zeros(3, dtype=Wheel), wp.zeros(3, dtype=wp.vec3), wp.zeros(2, dtype=wp.mat22))
    wp.launch_tiled(write_fields, dim=[1], inputs=[2, wheels, vectors, matrices], block_dim=lanes)
    found = wheels.numpy()
    assert found["count"].tolist() == [7, 0, 0]
    assert found["spin"]["rate"].tolist() == [0.0, 3.0, 2.5]
    assert found["spin"]["axis"].tolist() == [[0.0] * 3, [0.0] * 3, [1.0, 9.0, 3.0]]
    assert found["turn"].tolist() == [[[0.0] * 2] * 2, [[0.0, 0.0], [4.0, 0.0]], [[0.0] * 2] * 2]
    assert vectors.numpy().tolist() == [[0.0, 0.0, 2.0], [0.0, 4.0, 0.0], [0.0, 3.0, 0.0]]
    assert matrices.numpy().tolist() == [[[1.0, 1.0], [1.0, -1.0]], [[1.0, 6.0], [1.0, 1.0]]]


@wp.kernel
def facts(a: wp.array2d[float], out: wp.array[int]):
    i, lane = wp.tid()
    t = wp.tile_load(a, shape=(3, 5))
    m, n = t.shape
    if lane == 0:
        out[0] = len(t)
        out[1] = m * 10 + n
        out[2] = int(t.dtype(2.75))


@wp.kernel
def more_facts(a: wp.array2d[float], out: wp.array[int]):
    i, lane = wp.tid()
    t = wp.tile_load(a, shape=(3, 5))
    u = wp.tile_zeros(shape=t.shape[0], dtype=t.dtype)
    if lane == 0:
        out[0] = t.shape[0]
        out[1] = t.shape[1]
        out[2] = t.ndim
        out[3] = len(u)
        out[4] = t.size


def test_extents_size_and_type(lanes):
    out = wp.zeros(4, dtype=int)
    wp.launch_tiled(facts, dim=[1], inputs=[wp.zeros((3, 5)), out], block_dim=lanes)
    assert out.numpy().tolist() == [3, 35, 2, 0]


def test_single_extents_and_the_number_of_dimensions(lanes):
    out = wp.zeros(5, dtype=int)
    wp.launch_tiled(more_facts, dim=[1], inputs=[wp.zeros((3, 5)), out], block_dim=lanes)
    assert out.numpy().tolist() == [3, 5, 2, 3, 15]


@wp.kernel
def copies(a: wp.array[float], n: int, out: wp.array2d[float]):
    t = wp.tile_load(a, shape=4)
    u = t
    u[0] = 100.0
    wp.tile_store(out[0], t)
    wp.tile_store(out[1], u)
    s = wp.tile_load(a, shape=4, storage="shared")
    v = s
    v *= 2.0
    wp.tile_store(out[2], s)
    wp.tile_store(out[3], v)
    w = t
    for k in range(n):
        w = s
        w[1] = float(k)
    wp.tile_store(out[4], s)
    wp.tile_store(out[5], w)


def test_assignment_copies(lanes):
    a = RNG.standard_normal(4).astype(np.float32)
    out = wp.zeros((6, 4))
    wp.launch_tiled(copies, dim=[1], inputs=[wp.array(a), 3, out], block_dim=lanes)
    first, last = a.copy(), a.copy()
    first[0], last[1] = 100.0, 2.0
    np.testing.assert_array_equal(out.numpy(), [a, first, a, 2 * a, a, last])


def test_large_tiles_are_written_element_by_element(lanes):
    @wp.kernel
    def count(out: wp.array[int]):
        t = wp.tile_empty(shape=1000, dtype=int)
        for k in range(1000):
            t[k] = k * k
        for k in range(1, 1000):
            t[k] = t[k] + t[k - 1]
        wp.tile_store(out, t)

    out = wp.zeros(1000, dtype=int)
    wp.launch_tiled(count, dim=[1], inputs=[out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), np.cumsum(np.arange(1000) ** 2))
