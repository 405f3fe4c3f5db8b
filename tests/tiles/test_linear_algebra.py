"""Products of matrices, Cholesky factors, triangular solves, Fourier transforms."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(14)
by_name = {"ids": lambda value: getattr(value, "__name__", str(value))}
TOLERANCE = {wp.float16: 4e-3, wp.float32: 1e-5, wp.float64: 1e-12}


def numpy_type(dtype):
    return np.dtype(wp.dtype_to_numpy(dtype))


def check(found, expected, dtype, factor=1.0):
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=factor * TOLERANCE[dtype] * scale)


def random(shape, dtype):
    return RNG.standard_normal(shape).astype(numpy_type(dtype))


EXTENTS = [(1, 1, 1), (3, 5, 2), (6, 6, 6), (8, 16, 4), (17, 1, 33), (1, 40, 1), (32, 32, 32), (65, 63, 30)]


@pytest.mark.parametrize("extents", EXTENTS, ids=str)
@pytest.mark.parametrize("dtype", [wp.float16, wp.float32, wp.float64], **by_name)
def test_products_of_any_extent(extents, dtype, lanes):
    m, k, n = extents

    @wp.kernel
    def multiply(a: wp.array2d[dtype], b: wp.array2d[dtype], c: wp.array2d[dtype], out: wp.array3d[dtype]):
        t = wp.tile_load(a, shape=(m, k))
        u = wp.tile_load(b, shape=(k, n), storage="shared")
        wp.tile_store(out[0], wp.tile_matmul(t, u))
        v = wp.tile_load(c, shape=(m, n))
        wp.tile_matmul(t, u, v)
        wp.tile_store(out[1], v)

    a, b, c = random((m, k), dtype), random((k, n), dtype), random((m, n), dtype)
    out = wp.zeros((2, m, n), dtype=dtype)
    wp.launch_tiled(multiply, dim=[1], inputs=[wp.array(a), wp.array(b), wp.array(c), out], block_dim=lanes)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    check(out.numpy()[0], exact, dtype, np.sqrt(k))
    check(out.numpy()[1], exact + c, dtype, np.sqrt(k))


@wp.kernel
def scaled(
    a: wp.array2d[float], b: wp.array2d[float], c: wp.array2d[float], alpha: float, beta: float, out: wp.array3d[float]
):
    t = wp.tile_load(a, shape=(5, 7))
    u = wp.tile_load(b, shape=(7, 6))
    v = wp.tile_load(c, shape=(5, 6))
    wp.tile_matmul(t, u, v, alpha=alpha, beta=beta)
    wp.tile_store(out[0], v)
    w = wp.tile_load(c, shape=(5, 6), storage="shared")
    wp.tile_matmul(t, u, w, alpha=-1.0)
    wp.tile_store(out[1], w)
    wp.tile_store(out[2], wp.tile_matmul(t, u, alpha=alpha))
    x = wp.tile_load(c, shape=(5, 6))
    wp.tile_matmul(t, u, out=x, beta=0.0)
    wp.tile_store(out[3], x)
    y = wp.tile_load(c, shape=(5, 6))
    y += wp.tile_matmul(a=t, b=u, alpha=0.5)
    wp.tile_store(out[4], y)


def test_alpha_and_beta(lanes):
    a, b, c = random((5, 7), wp.float32), random((7, 6), wp.float32), random((5, 6), wp.float32)
    out = wp.zeros((5, 5, 6))
    inputs = [wp.array(a), wp.array(b), wp.array(c), 2.5, -0.5, out]
    wp.launch_tiled(scaled, dim=[1], inputs=inputs, block_dim=lanes)
    check(out.numpy(), np.stack([2.5 * a @ b - 0.5 * c, c - a @ b, 2.5 * a @ b, a @ b, c + 0.5 * a @ b]), wp.float32)


def test_a_factor_of_zero_does_not_read_the_result(lanes):
    @wp.kernel
    def multiply(a: wp.array2d[float], c: wp.array2d[float], beta: float, out: wp.array3d[float]):
        t = wp.tile_load(a, shape=(9, 9))
        v = wp.tile_load(c, shape=(9, 9))
        wp.tile_matmul(t, t, v, beta=0.0)
        wp.tile_store(out[0], v)
        w = wp.tile_load(c, shape=(9, 9))
        wp.tile_matmul(t, t, w, alpha=1.0, beta=beta)
        wp.tile_store(out[1], w)

    a, c = random((9, 9), wp.float32), np.full((9, 9), np.nan, np.float32)
    c[0] = np.inf
    out = wp.zeros((2, 9, 9))
    wp.launch_tiled(multiply, dim=[1], inputs=[wp.array(a), wp.array(c), 0.0, out], block_dim=lanes)
    check(out.numpy(), np.stack([a @ a, a @ a]), wp.float32)


@wp.kernel
def of_views(a: wp.array2d[float], b: wp.array2d[float], k: int, out: wp.array3d[float]):
    t = wp.tile_load(a, shape=(6, 8), storage="shared")
    u = wp.tile_load(b, shape=(6, 8))
    wp.tile_store(out[0], wp.tile_matmul(wp.tile_transpose(t), u))
    wp.tile_store(out[1], wp.tile_matmul(t, wp.tile_transpose(u)))
    wp.tile_store(out[2], wp.tile_matmul(wp.tile_transpose(t), t))
    v = wp.tile_zeros(shape=(8, 8), dtype=float)
    wp.tile_matmul(wp.tile_transpose(t), u, wp.tile_transpose(v))
    wp.tile_store(out[3], v)
    w = wp.tile_zeros(shape=(8, 8), dtype=float, storage="shared")
    x = wp.tile_view(t, offset=(k, 1), shape=(3, 5))
    y = wp.tile_view(u, offset=(0, k), shape=(5, 2))
    wp.tile_matmul(x, y, wp.tile_view(w, offset=(k, k + 1), shape=(3, 2)), alpha=-1.0)
    wp.tile_store(out[4], w)
    wp.tile_store(out[5], wp.tile_matmul(t[::2, ::-1], wp.tile_transpose(u[:, ::-1])))
    wp.tile_store(out[6], wp.tile_matmul(wp.tile_reshape(t[k], (8, 1)), wp.tile_reshape(u[1], (1, 8))))


def test_operands_and_results_may_be_views(lanes):
    a, b = random((6, 8), wp.float32), random((6, 8), wp.float32)
    out = wp.zeros((7, 8, 8))
    wp.launch_tiled(of_views, dim=[1], inputs=[wp.array(a), wp.array(b), 2, out], block_dim=lanes)
    w = np.zeros((8, 8), np.float32)
    w[2:5, 3:5] = -(a[2:5, 1:6] @ b[0:5, 2:4])
    parts = [a.T @ b, a @ b.T, a.T @ a, (a.T @ b).T, w, a[::2] @ b.T, np.outer(a[2], b[1])]
    for found, part in zip(out.numpy(), parts, strict=True):
        check(found[: part.shape[0], : part.shape[1]], part, wp.float32)


@pytest.mark.parametrize("types", [(wp.float16, wp.float16, wp.float32), (wp.float32, wp.float64, wp.float64),
                                   (wp.float16, wp.float32, wp.float64), (wp.float64, wp.float32, wp.float32)],
                         ids=lambda types: "-".join(t.__name__ for t in types))  # fmt: skip
def test_mixed_types_add_in_the_type_of_the_result(types, lanes):
    left, right, result = types

    @wp.kernel
    def multiply(a: wp.array2d[left], b: wp.array2d[right], out: wp.array2d[result]):
        t = wp.tile_zeros(shape=(16, 16), dtype=result)
        for k in range(4):
            x = wp.tile_load(a, shape=(16, 32), offset=(0, 32 * k))
            y = wp.tile_load(b, shape=(32, 16), offset=(32 * k, 0))
            wp.tile_matmul(x, y, t)
        wp.tile_store(out, t)

    a, b = random((16, 128), left), random((128, 16), right)
    out = wp.zeros((16, 16), dtype=result)
    wp.launch_tiled(multiply, dim=[1], inputs=[wp.array(a), wp.array(b), out], block_dim=lanes)
    check(out.numpy(), a.astype(np.float64) @ b.astype(np.float64), result, 4.0)


def test_the_precision_of_a_product(lanes):
    @wp.kernel
    def multiply(a: wp.array2d[float], out: wp.array3d[float]):
        t = wp.tile_load(a, shape=(16, 16))
        wp.tile_store(out[0], wp.tile_matmul(t, t, precision="default"))
        wp.tile_store(out[1], wp.tile_matmul(t, t, precision="tf32"))

    a = random((16, 16), wp.float32)
    out = wp.zeros((2, 16, 16))
    wp.launch_tiled(multiply, dim=[1], inputs=[wp.array(a), out], block_dim=lanes)
    check(out.numpy()[0], a @ a, wp.float32)
    check(out.numpy()[1], a @ a, wp.float16)


def test_a_product_in_blocks(lanes):
    """(48 x 40) (40 x 33) by blocks of 16, with ragged edges."""

    @wp.kernel
    def multiply(a: wp.array2d[float], b: wp.array2d[float], out: wp.array2d[float]):
        i, j = wp.tid()
        t = wp.tile_zeros(shape=(16, 16), dtype=float)
        for k in range(int(wp.ceil(float(a.shape[1]) / 16.0))):
            x = wp.tile_load(a, shape=(16, 16), offset=(16 * i, 16 * k))
            y = wp.tile_load(b, shape=(16, 16), offset=(16 * k, 16 * j))
            t += wp.tile_matmul(x, y)
        wp.tile_store(out, t, offset=(16 * i, 16 * j))

    a, b = random((47, 40), wp.float32), random((40, 33), wp.float32)
    out = wp.zeros((47, 33))
    wp.launch_tiled(multiply, dim=(3, 3), inputs=[wp.array(a), wp.array(b), out], block_dim=lanes)
    check(out.numpy(), a @ b, wp.float32, 4.0)


def test_not_a_number_passes_through_a_product(lanes):
    @wp.kernel
    def multiply(a: wp.array2d[float], b: wp.array2d[float], out: wp.array2d[float]):
        wp.tile_store(out, wp.tile_matmul(wp.tile_load(a, shape=(8, 8)), wp.tile_load(b, shape=(8, 8))))

    a, b = np.ones((8, 8), np.float32), np.zeros((8, 8), np.float32)
    a[2, 3] = np.nan
    a[5, 6] = np.inf
    out = wp.zeros((8, 8))
    wp.launch_tiled(multiply, dim=[1], inputs=[wp.array(a), wp.array(b), out], block_dim=lanes)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(out.numpy(), a @ b)


# Cholesky factors and triangular solves.


def positive(n, dtype, rng=RNG):
    a = rng.standard_normal((n, n))
    return (a @ a.T + n * np.eye(n)).astype(numpy_type(dtype))


SIZES = [1, 2, 3, 6, 16, 33, 64]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [wp.float32, wp.float64], **by_name)
def test_cholesky_factors(n, dtype, lanes):
    @wp.kernel
    def factor(a: wp.array2d[dtype], out: wp.array3d[dtype]):
        t = wp.tile_load(a, shape=(n, n))
        wp.tile_store(out[0], wp.tile_cholesky(t))
        wp.tile_store(out[1], wp.tile_cholesky(t, fill_mode="upper"))
        u = wp.tile_load(a, shape=(n, n), storage="shared")
        wp.tile_cholesky_inplace(u)
        wp.tile_store(out[2], u)
        v = wp.tile_load(a, shape=(n, n), storage="shared")
        wp.tile_cholesky_inplace(v, "upper")
        wp.tile_store(out[3], v)
        wp.tile_store(out[4], t)

    a = positive(n, dtype)
    out = wp.full((5, n, n), dtype(9.0), dtype=dtype)
    wp.launch_tiled(factor, dim=[1], inputs=[wp.array(a), out], block_dim=lanes)
    lower = np.linalg.cholesky(a.astype(np.float64))
    check(out.numpy(), np.stack([lower, lower.T, lower, lower.T, a]), dtype, n)


def test_only_the_named_triangle_is_read(lanes):
    @wp.kernel
    def factor(a: wp.array3d[float], out: wp.array3d[float]):
        wp.tile_store(out[0], wp.tile_cholesky(wp.tile_load(a[0], shape=(7, 7)), fill_mode="lower"))
        wp.tile_store(out[1], wp.tile_cholesky(wp.tile_load(a[1], shape=(7, 7)), "upper"))
        u = wp.tile_load(a[0], shape=(7, 7), storage="shared")
        wp.tile_cholesky_inplace(u, fill_mode="lower")
        wp.tile_store(out[2], u)
        v = wp.tile_load(a[1], shape=(7, 7), storage="shared")
        wp.tile_cholesky_inplace(v, fill_mode="upper")
        wp.tile_store(out[3], v)

    a = positive(7, wp.float32)
    lower_only, upper_only = np.tril(a), np.triu(a)
    lower_only[np.triu_indices(7, 1)] = np.nan
    upper_only[np.tril_indices(7, -1)] = np.nan
    out = wp.zeros((4, 7, 7))
    wp.launch_tiled(factor, dim=[1], inputs=[wp.array(np.stack([lower_only, upper_only])), out], block_dim=lanes)
    lower = np.linalg.cholesky(a.astype(np.float64))
    check(out.numpy(), np.stack([lower, lower.T, lower, lower.T]), wp.float32, 7)


def test_matrices_that_have_no_factor_give_nan(lanes):
    @wp.kernel
    def factor(a: wp.array3d[float], out: wp.array2d[float]):
        i = wp.tid()
        t = wp.tile_cholesky(wp.tile_load(a[i], shape=(5, 5)))
        x = wp.tile_cholesky_solve(t, wp.tile_ones(shape=5, dtype=float))
        wp.tile_store(out[i], x)

    indefinite = np.eye(5, dtype=np.float32)
    indefinite[2, 2] = -1.0
    with_nan = np.eye(5, dtype=np.float32)
    with_nan[0, 0] = np.nan
    matrices = np.stack([np.eye(5, dtype=np.float32), indefinite, with_nan])
    out = wp.zeros((3, 5))
    wp.launch_tiled(factor, dim=[3], inputs=[wp.array(matrices), out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy()[0], np.ones(5))
    assert np.isnan(out.numpy()[1]).any() and np.isnan(out.numpy()[2]).any()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [wp.float32, wp.float64], **by_name)
def test_solves(n, dtype, lanes):
    @wp.kernel
    def solve(a: wp.array2d[dtype], b: wp.array2d[dtype], lines: wp.array2d[dtype], tables: wp.array3d[dtype]):
        lower = wp.tile_cholesky(wp.tile_load(a, shape=(n, n)))
        upper = wp.tile_cholesky(wp.tile_load(a, shape=(n, n)), fill_mode="upper")
        y = wp.tile_load(b[0], shape=n)
        z = wp.tile_load(b, shape=(n, 3), storage="shared")
        wp.tile_store(lines[0], wp.tile_cholesky_solve(lower, y))
        wp.tile_store(lines[1], wp.tile_cholesky_solve(upper, y, fill_mode="upper"))
        wp.tile_store(lines[2], wp.tile_lower_solve(lower, y))
        wp.tile_store(lines[3], wp.tile_upper_solve(upper, y))
        wp.tile_store(tables[0], wp.tile_cholesky_solve(lower, z))
        wp.tile_store(tables[1], wp.tile_cholesky_solve(upper, z, "upper"))
        wp.tile_store(tables[2], wp.tile_lower_solve(lower, z))
        wp.tile_store(tables[3], wp.tile_upper_solve(wp.tile_transpose(lower), z))
        wp.tile_store(lines[4], y)

    a = positive(n, dtype)
    b = RNG.standard_normal((n + 3, n + 3)).astype(numpy_type(dtype))
    lines, tables = wp.zeros((5, n), dtype=dtype), wp.zeros((4, n, 3), dtype=dtype)
    wp.launch_tiled(solve, dim=[1], inputs=[wp.array(a), wp.array(b), lines, tables], block_dim=lanes)
    exact = a.astype(np.float64)
    lower = np.linalg.cholesky(exact)
    y, z = b[0, :n], b[:n, :3]
    solved = [np.linalg.solve(exact, y), np.linalg.solve(exact, y), np.linalg.solve(lower, y)]
    check(lines.numpy(), np.stack([*solved, np.linalg.solve(lower.T, y), y]), dtype, n)
    solved = [np.linalg.solve(exact, z), np.linalg.solve(exact, z), np.linalg.solve(lower, z)]
    check(tables.numpy(), np.stack([*solved, np.linalg.solve(lower.T, z)]), dtype, n)


def test_solves_in_place_and_of_views(lanes):
    @wp.kernel
    def solve(l: wp.array2d[float], b: wp.array2d[float], k: int, lines: wp.array2d[float], tables: wp.array3d[float]):
        lower = wp.tile_load(l, shape=(6, 6), storage="shared")
        y = wp.tile_load(b[0], shape=6, storage="shared")
        wp.tile_lower_solve_inplace(lower, y)
        wp.tile_store(lines[0], y)
        wp.tile_upper_solve_inplace(wp.tile_transpose(lower), y)
        wp.tile_store(lines[1], y)
        z = wp.tile_load(b[0], shape=6, storage="shared")
        wp.tile_cholesky_solve_inplace(lower, z)
        wp.tile_store(lines[2], z)
        upper = wp.tile_load(l, shape=(6, 6), storage="shared")
        rhs = wp.tile_load(b, shape=(12, 4), storage="shared")
        part = wp.tile_view(rhs, offset=(k, 1), shape=(6, 2))
        wp.tile_lower_solve_inplace(lower, part)
        wp.tile_store(tables[0], rhs)
        turned = wp.tile_load(b, shape=(4, 6), storage="shared")
        wp.tile_lower_solve_inplace(lower, wp.tile_transpose(turned))
        wp.tile_store(tables[1], turned)
        wp.tile_upper_solve_inplace(wp.tile_transpose(upper), wp.tile_transpose(turned))
        wp.tile_store(tables[2], turned)

    a = positive(6, wp.float32)
    lower = np.linalg.cholesky(a).astype(np.float32)
    # The other triangle must not be read.
    given = lower + np.triu(np.full((6, 6), np.nan, np.float32), 1)
    b = random((12, 6), wp.float32)
    lines, tables = wp.zeros((3, 6)), wp.zeros((3, 12, 6))
    wp.launch_tiled(solve, dim=[1], inputs=[wp.array(given), wp.array(b), 3, lines, tables], block_dim=lanes)
    y = np.linalg.solve(lower, b[0])
    check(lines.numpy(), np.stack([y, np.linalg.solve(a, b[0]), np.linalg.solve(a, b[0])]), wp.float32, 8)
    rhs = b[:, :4].copy()
    rhs[3:9, 1:3] = np.linalg.solve(lower, rhs[3:9, 1:3])
    check(tables.numpy()[0, :, :4], rhs, wp.float32, 8)
    check(tables.numpy()[1, :4], np.linalg.solve(lower, b[:4].T).T, wp.float32, 8)
    check(tables.numpy()[2, :4], np.linalg.solve(a, b[:4].T).T, wp.float32, 8)


def test_a_diagonal_is_added(lanes):
    @wp.kernel
    def add(a: wp.array2d[float], d: wp.array[float], out: wp.array3d[float]):
        t = wp.tile_load(a, shape=(9, 9))
        wp.tile_store(out[0], wp.tile_diag_add(t, wp.tile_load(d, shape=9)))
        wp.tile_store(out[1], t)

    a, d = random((9, 9), wp.float32), random(9, wp.float32)
    out = wp.zeros((2, 9, 9))
    wp.launch_tiled(add, dim=[1], inputs=[wp.array(a), wp.array(d), out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), [a + np.diag(d), a])


@pytest.mark.parametrize("dtype", [wp.vec2f, wp.vec2d], ids=["vec2f", "vec2d"])
@pytest.mark.parametrize("n", [2, 8, 64, 12, 15, 512])
def test_fourier_transforms(dtype, n, lanes):
    @wp.kernel
    def transform(a: wp.array2d[dtype], out: wp.array3d[dtype]):
        t = wp.tile_load(a, shape=(3, n))
        wp.tile_fft(t)
        wp.tile_store(out[0], t)
        u = wp.tile_load(a, shape=(3, n))
        wp.tile_ifft(u)
        wp.tile_store(out[1], u)
        wp.tile_ifft(t)
        wp.tile_store(out[2], t)

    kind = np.float32 if dtype is wp.vec2f else np.float64
    a = RNG.standard_normal((3, n, 2)).astype(kind)
    out = wp.zeros((3, 3, n), dtype=dtype)
    wp.launch_tiled(transform, dim=[1], inputs=[wp.array(a, dtype=dtype), out], block_dim=min(lanes, max(1, n // 2)))
    z = a[..., 0].astype(np.float64) + 1j * a[..., 1]
    found = out.numpy().astype(np.float64)
    expected = np.stack([np.fft.fft(z), np.fft.ifft(z) * n, z * n])
    check(found[..., 0] + 1j * found[..., 1], expected, wp.float32 if kind is np.float32 else wp.float64, 4.0)


@wp.kernel
def product_of_tiles(a: wp.array2d[float], b: wp.array2d[float], out: wp.array2d[float]):
    x, y = wp.tile_load(a, shape=(12, 20)), wp.tile_load(b, shape=(20, 9))
    wp.tile_store(out, wp.tile_matmul(x, y))


@pytest.mark.seed("D-29")
def test_a_product_of_arrays_and_of_tiles_mean_the_same(lanes):
    a, b = RNG.standard_normal((12, 20)).astype(np.float32), RNG.standard_normal((20, 9)).astype(np.float32)
    whole, tiled = wp.zeros((12, 9)), wp.zeros((12, 9))
    wp.matmul(wp.array(a), wp.array(b), wp.zeros((12, 9)), whole)
    wp.launch_tiled(product_of_tiles, dim=[1], inputs=[wp.array(a), wp.array(b), tiled], block_dim=lanes)
    for found in (whole, tiled):
        np.testing.assert_allclose(found.numpy(), a @ b, rtol=1e-5, atol=1e-5)
