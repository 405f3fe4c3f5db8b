"""Arrays, vectors and matrices in kernels (S-IDX, parts of S-VEC and S-MAT)."""

import numpy as np
import pytest
import warp as wp


# fmt: off
@pytest.mark.seed("S-IDX-001")
@pytest.mark.seed("S-IDX-002")
def test_read_and_write_up_to_four_indices():
    @wp.kernel
    def k(a: wp.array4d[float], b: wp.array2d[float]):
        i,j = wp.tid()
        b[i,j] = a[i, j, 1, 2] + b[i, j]
        a[i, j, 0, 0] = -1.0

    a = np.random.default_rng(0).standard_normal((3, 5, 2, 3)).astype(np.float32)
    before, b = a.copy(), np.ones((3, 5), dtype=np.float32)
    wp.launch(k, dim=(3, 5), inputs=[a, b])
    np.testing.assert_array_equal(b, before[:, :, 1, 2] + 1)
    before[:, :, 0, 0] = -1
    np.testing.assert_array_equal(a, before)
# fmt: on


@pytest.mark.seed("S-IDX-003")
@pytest.mark.seed("S-IDX-004")
@pytest.mark.seed("S-IDX-005")
def test_slices_share_memory_and_chain():
    @wp.func
    def double(row: wp.array[float]):
        for k in range(row.shape[0]):
            row[k] = 2.0 * row[k]

    @wp.kernel
    def k(a: wp.array3d[float], out: wp.array[float]):
        i = wp.tid()
        plane = a[i]
        row = plane[1]
        row[0] = 100.0
        out[i] = a[i][1][0] + plane[0, 2] + a[i][0][1]
        double(a[i, 0])

    a = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    before, out = a.copy(), wp.zeros(4)
    wp.launch(k, dim=4, inputs=[a, out])
    assert out.numpy().tolist() == [100 + before[i, 0, 2] + before[i, 0, 1] for i in range(4)]
    before[:, 1, 0] = 100
    before[:, 0] *= 2
    np.testing.assert_array_equal(a, before)


@pytest.mark.seed("S-IDX-004")
def test_chained_indices_give_elements_and_slices():
    @wp.kernel
    def k(a: wp.array3d[float], b: wp.array4d[float], out: wp.array[float]):
        i, j, m = 1, 2, 3
        out[0] = a[i][j][m]
        out[1] = a[i, j][m]
        out[2] = a[i][j, m]
        line = b[i][j][m]
        other = b[i, j][m]
        out[3] = line[1]
        out[4] = other[0] + b[i, j, m][1] + b[i][j, m][0] + b[i][j][m][1]
        out[5] = float(line.shape[0] + 10 * b[i, j].shape[1] + 100 * b[i].shape[0])
        line[0] = -1.0

    a, b = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.arange(48, dtype=np.float32).reshape(2, 3, 4, 2)
    before, out = b.copy(), wp.zeros(6)
    wp.launch(k, dim=1, inputs=[a, b, out])
    x, y = before[1, 2, 3]
    assert out.numpy().tolist() == [a[1, 2, 3]] * 3 + [y, x + y + x + y, 2 + 10 * 2 + 100 * 3]
    before[1, 2, 3, 0] = -1.0
    np.testing.assert_array_equal(b, before)


@pytest.mark.seed("S-IDX-005")
def test_a_slice_of_another_number_of_dimensions_is_an_error_when_the_kernel_is_built():
    @wp.func
    def first(row: wp.array[float]):
        return row[0]

    @wp.kernel
    def plane(a: wp.array3d[float], out: wp.array[float]):
        out[0] = first(a[0])

    @wp.kernel
    def element(a: wp.array3d[float], out: wp.array[float]):
        out[0] = first(a[0, 1, 2])

    @wp.kernel
    def right(a: wp.array3d[float], out: wp.array[float]):
        out[0] = first(a[0, 1]) + first(a[1][0])

    a, out = wp.array(np.arange(24.0).reshape(2, 3, 4), dtype=float), wp.zeros(1)
    wp.launch(right, dim=1, inputs=[a, out])
    assert out.numpy()[0] == 4.0 + 12.0
    with pytest.raises(wp.CompileError, match=r"array2d\[float32\], expected array\[float32\]"):
        plane.compile()
    with pytest.raises(wp.CompileError, match=r"float32, expected array\[float32\]"):
        element.compile()


@pytest.mark.seed("S-IDX-007")
def test_shape_in_kernels():
    @wp.kernel
    def k(a: wp.array2d[float], out: wp.array[int]):
        out[0] = a.shape[0]
        out[1] = a.shape[1]
        out[2] = len(a)

    out = wp.zeros(3, dtype=int)
    wp.launch(k, dim=1, inputs=[wp.zeros((3, 8)), out])
    assert out.numpy().tolist() == [3, 8, 3]


@pytest.mark.seed("S-IDX-009")
@pytest.mark.seed("S-VEC-011")
def test_components_and_swizzles():
    @wp.kernel
    def k(v: wp.array[wp.vec4], s: wp.array2d[float], w: wp.array[wp.vec3]):
        i = wp.tid()
        x = v[i]
        s[i, 0] = x[0]
        s[i, 1] = x.y
        s[i, 2] = x[-1]
        s[i, 3] = x[i % 4]
        s[i, 4] = v[i][2]
        s[i, 5] = v[i].w
        w[i] = x.zyx
        x.x = 7.0
        x[1] = 8.0
        x[(i + 2) % 4] = 9.0
        v[i] = x

    v = np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32)
    before, s, w = v.copy(), wp.zeros((9, 6)), wp.zeros(9, dtype=wp.vec3)
    wp.launch(k, dim=9, inputs=[v, s, w])
    i = np.arange(9)
    expected = np.stack(
        [before[:, 0], before[:, 1], before[:, 3], before[i, i % 4], before[:, 2], before[:, 3]], axis=1
    )
    np.testing.assert_array_equal(s.numpy(), expected)
    np.testing.assert_array_equal(w.numpy(), before[:, 2::-1])
    before[:, 0], before[:, 1] = 7, 8
    before[i, (i + 2) % 4] = 9
    np.testing.assert_array_equal(v, before)


@pytest.mark.seed("S-IDX-010")
def test_every_integer_type_is_an_index():
    for dtype in (wp.int8, wp.uint8, wp.int16, wp.uint16, wp.int32, wp.uint32, wp.int64, wp.uint64):

        @wp.kernel
        def k(index: wp.array(dtype=dtype), x: wp.array[float], out: wp.array[float]):
            i = wp.tid()
            n = index[i]
            out[i] = x[n]

        index = np.array([3, 0, 2, 1, 3], dtype=wp.dtype_to_numpy(dtype))
        x, out = np.array([1.0, 2.0, 4.0, 8.0], dtype=np.float32), wp.zeros(5)
        wp.launch(k, dim=5, inputs=[index, x, out])
        assert out.numpy().tolist() == [8.0, 1.0, 4.0, 2.0, 8.0]


def test_constant_negative_index_counts_from_the_end():
    @wp.kernel
    def k(x: wp.array[float], m: wp.array2d[float]):
        x[-1] = x[-2] + m[-1, 0]

    x, m = wp.array([1.0, 2.0, 3.0], dtype=float), wp.array([[1.0, 2.0], [3.0, 4.0]], dtype=float)
    wp.launch(k, dim=1, inputs=[x, m])
    assert x.numpy().tolist() == [1.0, 2.0, 5.0]


def test_gather_scatter_and_strided_access():
    @wp.kernel
    def k(perm: wp.array[int], x: wp.array[float], y: wp.array[float], z: wp.array[float]):
        i = wp.tid()
        y[perm[i]] = x[i]
        z[i] = x[x.shape[0] - 2 - i] + x[(i * 3) % x.shape[0]]  # the last thread reads x[-1]

    n = 101
    perm = np.random.default_rng(0).permutation(n).astype(np.int32)
    x = np.arange(n, dtype=np.float32)
    y, z = wp.zeros(n), wp.zeros(n)
    wp.launch(k, dim=n, inputs=[perm, x, y, z])
    expected = np.zeros(n)
    expected[perm] = x
    np.testing.assert_array_equal(y.numpy(), expected)
    np.testing.assert_array_equal(z.numpy(), x[n - 2 - np.arange(n)] + x[(np.arange(n) * 3) % n])


@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (3, 100), (64, 3)])
@pytest.mark.parametrize("order", ["C", "F", "sliced", "broadcast"])
def test_any_strides_in_two_dimensions(shape, order):
    @wp.kernel
    def k(a: wp.array2d[float], b: wp.array2d[float]):
        i, j = wp.tid()
        b[i, j] = 2.0 * a[i, j]

    rng = np.random.default_rng(0)
    if order == "C":
        a = rng.standard_normal(shape).astype(np.float32)
    elif order == "F":
        a = np.asfortranarray(rng.standard_normal(shape).astype(np.float32))
    elif order == "sliced":
        a = rng.standard_normal((2 * shape[0], 3 * shape[1])).astype(np.float32)[::2, ::-3]
    else:
        a = np.broadcast_to(rng.standard_normal((1, shape[1])).astype(np.float32), shape).copy()
        a = np.lib.stride_tricks.as_strided(a, shape, (0, a.strides[1]))
    b = np.zeros(shape, dtype=np.float32)
    wp.launch(k, dim=shape, inputs=[a, b])
    np.testing.assert_array_equal(b, 2 * a)


@pytest.mark.parametrize("length", [2, 3, 4, 5, 6, 9])
@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int32", "uint8", "int64"])
def test_arrays_of_vectors_of_every_kind(length, name):
    dtype = wp.types.vector(length=length, dtype=getattr(wp, name))

    @wp.kernel
    def k(a: wp.array(dtype=dtype), b: wp.array(dtype=dtype), n: int):
        i = wp.tid()
        v = a[i]
        w = v + v
        w[1] = v[0]
        if i % 3 != 1:
            b[n - 1 - i] = w

    n = 29
    a = np.random.default_rng(0).integers(0, 100, (n, length)).astype(name)
    b = wp.zeros(n, dtype=dtype)
    wp.launch(k, dim=n, inputs=[a, b, n])
    expected = a + a
    expected[:, 1] = a[:, 0]
    expected[np.arange(n) % 3 == 1] = 0
    np.testing.assert_array_equal(b.numpy(), expected[::-1])


def test_atomics_count_exactly():
    @wp.kernel
    def k(bins: wp.array[int], total: wp.array[float], top: wp.array[int], low: wp.array[float], v: wp.array[wp.vec3]):
        i = wp.tid()
        wp.atomic_add(bins, i % 7, 1)
        wp.atomic_add(total, 0, 1.0)
        wp.atomic_max(top, 0, (i * 7919) % 100003)
        wp.atomic_min(low, 0, float(-i))
        wp.atomic_add(v, 0, wp.vec3(1.0, 2.0, 3.0))
        if i % 2 == 0:
            wp.atomic_sub(total, 1, 2.0)

    n = 100_003
    bins, total = wp.zeros(7, dtype=int), wp.zeros(2)
    top, low, v = wp.zeros(1, dtype=int), wp.zeros(1), wp.zeros(1, dtype=wp.vec3)
    wp.launch(k, dim=n, inputs=[bins, total, top, low, v])
    i = np.arange(n)
    assert bins.numpy().tolist() == np.bincount(i % 7).tolist()
    assert total.numpy().tolist() == [n, -2.0 * ((n + 1) // 2)]
    assert top.numpy()[0] == ((i * 7919) % 100003).max()
    assert low.numpy()[0] == -(n - 1)
    assert v.numpy()[0].tolist() == [n, 2 * n, 3 * n]


def test_atomic_results_are_unique():
    @wp.kernel
    def k(counter: wp.array[int], seen: wp.array[int]):
        i = wp.tid()
        if i % 3 == 0:
            slot = wp.atomic_add(counter, 0, 1)
            seen[slot] = i + 1

    n = 30_000
    counter, seen = wp.zeros(1, dtype=int), wp.zeros(n, dtype=int)
    wp.launch(k, dim=n, inputs=[counter, seen])
    assert counter.numpy()[0] == n // 3
    assert sorted(seen.numpy()[: n // 3].tolist()) == list(range(1, n + 1, 3))


@pytest.mark.seed("S-MAT-003")
@pytest.mark.seed("S-MAT-004")
@pytest.mark.seed("S-MAT-005")
def test_matrix_entries_rows_inverse_and_product():
    @wp.kernel
    def k(m: wp.array[wp.mat33], out: wp.array[wp.mat33], v: wp.array[wp.vec3], d: wp.array[float]):
        i = wp.tid()
        a = m[i]
        out[i] = wp.inverse(a) * a
        v[i] = a[1]
        d[i] = wp.determinant(a) + a[2, 0] + a[i % 3, 1]
        a[0, 0] = 5.0
        m[i] = a

    m = np.random.default_rng(0).standard_normal((11, 3, 3)).astype(np.float32) + 2 * np.eye(3, dtype=np.float32)
    before = m.copy()
    out, v, d = wp.zeros(11, dtype=wp.mat33), wp.zeros(11, dtype=wp.vec3), wp.zeros(11)
    wp.launch(k, dim=11, inputs=[m, out, v, d])
    np.testing.assert_allclose(out.numpy(), np.broadcast_to(np.eye(3), (11, 3, 3)), atol=1e-3)
    np.testing.assert_array_equal(v.numpy(), before[:, 1])
    i = np.arange(11)
    expected = np.linalg.det(before) + before[:, 2, 0] + before[i, i % 3, 1]
    np.testing.assert_allclose(d.numpy(), expected, rtol=1e-4, atol=1e-4)
    before[:, 0, 0] = 5
    np.testing.assert_array_equal(m, before)


@pytest.mark.seed("S-MAT-004")
@pytest.mark.parametrize("name, tolerance", [("float16", 2e-2), ("float32", 1e-4), ("float64", 1e-12)])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_inverses_of_every_size_and_float_type(n, name, tolerance):
    dtype = wp.types.matrix((n, n), getattr(wp, name))

    @wp.kernel(module="unique")
    def k(m: wp.array(dtype=dtype), out: wp.array(dtype=dtype)):
        i = wp.tid()
        out[i] = wp.inverse(m[i])

    rng = np.random.default_rng(n)
    m = (rng.uniform(-1.0, 1.0, (23, n, n)) + 3.0 * np.eye(n)).astype(name)
    m[1] = m[1][::-1]  # pivots off the diagonal
    out = wp.zeros(23, dtype=dtype)
    wp.launch(k, dim=23, inputs=[m, out])
    np.testing.assert_allclose(out.numpy(), np.linalg.inv(m.astype(np.float64)), rtol=tolerance, atol=tolerance)


SHAPES = [(1,), (2,), (5,), (17,), (1, 1), (2, 3), (3, 2), (5, 5)]


def quotient(a, s):
    """Of integers toward zero, as in C; by zero it is 0, as is the smallest one divided by -1 (docs/ir.md)."""
    if a.dtype.kind == "f":
        return a / s
    if s == 0:
        return np.zeros_like(a)
    size = np.abs(a.astype(object)) // abs(int(s))
    exact = np.where((a < 0) != (s < 0), -size, size)
    return np.where(exact > np.iinfo(a.dtype).max, 0, exact).astype(a.dtype)


@pytest.mark.seed("S-VEC-009")
@pytest.mark.seed("S-MAT-010")
@pytest.mark.parametrize("name", ["float16", "float32", "float64", "int8", "int32", "uint64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_arithmetic_of_vectors_and_matrices_of_any_size_and_type(shape, name):
    scalar = getattr(wp, name)
    dtype = wp.types.vector(shape[0], scalar) if len(shape) == 1 else wp.types.matrix(shape, scalar)

    @wp.kernel(module="unique")
    def k(a: wp.array(dtype=dtype), b: wp.array(dtype=dtype), s: scalar, out: wp.array2d(dtype=dtype)):
        i = wp.tid()
        out[0, i] = a[i] + b[i]
        out[1, i] = a[i] - b[i]
        out[2, i] = a[i] * s
        out[3, i] = s * a[i]
        out[4, i] = a[i] / s
        out[5, i] = -a[i]
        v = a[i]
        v += b[i]
        v -= a[i] * s
        out[6, i] = v

    least = 0 if name.startswith("u") else -9
    a, b = np.random.default_rng(0).integers(least, 9, (2, 11, *shape)).astype(name)
    if not name.startswith("float"):
        a[::3], a[1::3] = np.iinfo(name).min, np.iinfo(name).max
    for number in (2, 3, *(() if least == 0 else (-3, -1)), *(() if name.startswith("float") else (0,))):
        out = wp.zeros((7, 11), dtype=dtype)
        wp.launch(k, dim=11, inputs=[a, b, number, out])
        s = np.dtype(name).type(number)
        expected = [a + b, a - b, a * s, a * s, quotient(a, s), -a, a + b - a * s]
        np.testing.assert_array_equal(out.numpy(), np.stack(expected).astype(name))


@pytest.mark.seed("S-VEC-009")
@pytest.mark.seed("S-MAT-010")
def test_anonymous_vectors_and_matrices_compute_and_a_product_may_change_the_length():
    @wp.kernel
    def k(v: wp.array[wp.vec2d], m: wp.array(dtype=wp.types.matrix((2, 3), wp.float64))):
        a = wp.vector(wp.float64(1.0), wp.float64(2.0), wp.float64(3.0))
        b = wp.vector(wp.float64(0.5), length=3)
        n = wp.matrix(wp.float64(2.0), shape=(2, 3))
        v[0] = n * (a - b + wp.float64(2.0) * b)
        v[1] = (-n + m[0]) * a / wp.float64(2.0)
        m[1] = (n - m[0] * wp.float64(3.0)) / wp.float64(4.0)

    v, m = wp.zeros(2, dtype=wp.vec2d), wp.zeros(2, dtype=wp.types.matrix((2, 3), wp.float64))
    given = np.arange(6.0).reshape(2, 3)
    m.assign(np.stack([given, given]))
    wp.launch(k, dim=1, inputs=[v, m])
    a, n = np.array([1.0, 2.0, 3.0]), np.full((2, 3), 2.0)
    np.testing.assert_allclose(v.numpy(), [n @ (a + 0.5), (-n + given) @ a / 2.0], rtol=1e-15)
    np.testing.assert_allclose(m.numpy()[1], (n - given * 3.0) / 4.0, rtol=1e-15)


@pytest.mark.seed("S-VEC-009")
@pytest.mark.seed("S-MAT-010")
def test_sizes_that_do_not_fit_are_an_error_when_the_kernel_is_built():
    @wp.kernel
    def lengths(v: wp.array[wp.vec3], w: wp.array[wp.vec2]):
        v[0] = v[0] + w[0]

    @wp.kernel
    def shapes(m: wp.array[wp.mat22], n: wp.array[wp.mat33]):
        m[0] = m[0] - n[0]

    @wp.kernel
    def product(m: wp.array[wp.mat22], v: wp.array[wp.vec3]):
        v[0] = m[0] * v[0]

    for kernel, names in ((lengths, "vec3f and vec2f"), (shapes, "mat22f and mat33f"), (product, "mat22f and vec3f")):
        with pytest.raises(wp.CompileError, match=f"does not take {names}"):
            kernel.compile()


@pytest.mark.seed("S-VEC-005")
@pytest.mark.seed("S-VEC-009")
@pytest.mark.seed("S-VEC-010")
def test_vector_algebra():
    @wp.kernel
    def k(a: wp.vec3, b: wp.vec3, v: wp.array[wp.vec3], s: wp.array[float], w: wp.array[wp.vec2]):
        v[0] = a + b
        v[1] = a - b
        v[2] = a * 0.5 + wp.vec3(0.5, 0.5, 0.5)
        v[3] = 2.0 * a
        v[4] = wp.cross(a, b)
        v[5] = -a
        v[6] = a / 2.0
        v[7] = wp.normalize(a)
        s[0] = wp.dot(a, b)
        s[1] = wp.length(a)
        m = wp.matrix(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, shape=(2, 3))
        w[0] = m * a

    assert wp.vec3.__doc__ and wp.vec4.__doc__
    a, b = np.array([1.0, -2.0, 3.0]), np.array([0.5, 4.0, -1.0])
    v, s, w = wp.zeros(8, dtype=wp.vec3), wp.zeros(2), wp.zeros(1, dtype=wp.vec2)
    wp.launch(k, dim=1, inputs=[a, b, v, s, w])
    expected = [a + b, a - b, a * 0.5 + 0.5, 2 * a, np.cross(a, b), -a, a / 2, a / np.linalg.norm(a)]
    np.testing.assert_allclose(v.numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(s.numpy(), [a @ b, np.linalg.norm(a)], rtol=1e-6)
    np.testing.assert_allclose(w.numpy()[0], np.array([[1, 2, 3], [4, 5, 6]]) @ a, rtol=1e-6)


@pytest.mark.seed("S-IDX-006")
def test_single_index_slices_of_every_rank():
    @wp.func
    def fill(plane: wp.array2d[float], value: float):
        for i in range(plane.shape[0]):
            for j in range(plane.shape[1]):
                plane[i, j] = value

    @wp.kernel
    def k(a: wp.array4d[float]):
        i = wp.tid()
        cube = a[i]
        fill(cube[1], float(i))

    a = wp.full((3, 2, 2, 2), -1.0, dtype=float)
    wp.launch(k, dim=3, inputs=[a])
    assert (a.numpy()[:, 0] == -1).all()
    np.testing.assert_array_equal(a.numpy()[:, 1], np.broadcast_to(np.arange(3)[:, None, None], (3, 2, 2)))


@pytest.mark.seed("D-16")
def test_slices_by_an_index_and_by_bounds_share_memory():
    @wp.func
    def total(line: wp.array[float]):
        s = float(0.0)
        for k in range(line.shape[0]):
            s += line[k]
        return s

    @wp.kernel
    def k(a: wp.array3d[float], lo: int, hi: int, out: wp.array2d[float]):
        i = wp.tid()
        out[i, 0] = total(a[i][1]) + total(a[i, 0])
        out[i, 1] = total(a[i, 1, lo:hi])
        out[i, 2] = total(a[i, :, hi]) + total(a[i][0][1:-1])
        part = a[i, :, lo:hi]
        part[1, 0] = -1.0
        out[i, 3] = float(part.shape[0] * 10 + part.shape[1])

    a = np.arange(40, dtype=np.float32).reshape(4, 2, 5)
    before, out = a.copy(), wp.zeros((4, 4))
    wp.launch(k, dim=4, inputs=[a, 1, 3, out])
    expected = [before.sum(axis=(1, 2)), before[:, 1, 1:3].sum(axis=1),
                before[:, :, 3].sum(axis=1) + before[:, 0, 1:-1].sum(axis=1), np.full(4, 22)]  # fmt: skip
    np.testing.assert_array_equal(out.numpy(), np.stack(expected, axis=1))
    before[:, 1, 1] = -1.0
    np.testing.assert_array_equal(a, before)


@pytest.mark.seed("S-MAT-009")
def test_at_between_matrices_of_fitting_shapes():
    mat23, mat34, mat24 = (wp.types.matrix(shape=s, dtype=float) for s in ((2, 3), (3, 4), (2, 4)))

    @wp.kernel
    def k(a: wp.array(dtype=mat23), b: wp.array(dtype=mat34), c: wp.array(dtype=mat24)):
        i = wp.tid()
        c[i] = a[i] @ b[i]

    @wp.kernel
    def wrong(a: wp.array(dtype=mat23), c: wp.array(dtype=mat24)):
        c[0] = a[0] @ a[0]

    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((9, 2, 3)).astype(np.float32), rng.standard_normal((9, 3, 4)).astype(np.float32)
    c = wp.zeros(9, dtype=mat24)
    wp.launch(k, dim=9, inputs=[a, b, c])
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5, atol=1e-6)
    with pytest.raises(wp.CompileError):
        wp.launch(wrong, dim=1, inputs=[wp.zeros(1, dtype=mat23), c])


def clamped_neighbours(a, b):
    i = np.arange(len(a))
    n = len(a) - 1
    return np.stack(
        [
            a[np.maximum(i - 1, 0)],
            a[np.minimum(i + 1, n)],
            a[(i + 3) % len(a)],
            a[np.where(i > 5, i - 5, n)],
            b[np.maximum(i - 2, 0)].sum(axis=1),
        ]
    )


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 64, 1001])
def test_indices_clamped_and_wrapped_at_a_border(n):
    @wp.kernel
    def k(a: wp.array[float], b: wp.array[wp.vec3], out: wp.array2d[float]):
        i = wp.tid()
        last = a.shape[0] - 1
        out[0, i] = a[wp.max(i - 1, 0)]
        out[1, i] = a[wp.min(i + 1, last)]
        out[2, i] = a[(i + 3) % a.shape[0]]
        wrapped = last
        if i > 5:
            wrapped = i - 5
        out[3, i] = a[wrapped]
        v = b[wp.max(i - 2, 0)]
        out[4, i] = v[0] + v[1] + v[2]

    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 100, n).astype(np.float32), rng.integers(0, 100, (n, 3)).astype(np.float32)
    out = wp.zeros((5, n))
    wp.launch(k, dim=n, inputs=[a, b, out])
    np.testing.assert_array_equal(out.numpy(), clamped_neighbours(a, b))
