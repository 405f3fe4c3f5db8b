"""Products of matrices on CUDA devices: every tile and access against fused multiply-adds of the host, and NumPy."""

import ctypes

import numpy as np
import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("names the kernels that run")]
DEVICE = "cuda:0"
random = np.random.default_rng(23)

_libm = ctypes.CDLL("libm.so.6")
FMA = {np.float32: _libm.fmaf, np.float64: _libm.fma}
for _real, _function in FMA.items():
    _c = ctypes.c_float if _real is np.float32 else ctypes.c_double
    _function.argtypes, _function.restype = [_c] * 3, _c


def chain(a, b):
    """fma(a[k], b[k], s) for each k in order, by the C library."""
    fma, total = FMA[a.dtype.type], 0.0
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        total = fma(x, y, total)
    return a.dtype.type(total)


def numbers(dtype, *shape):
    return random.standard_normal(shape).astype(dtype)


def laid_out(values, layout):
    """An array of these values: its rows or its columns contiguous, or neither. The last may begin anywhere."""
    batch, rows, columns = values.shape
    if layout == "rows":
        return wp.array(values, device=DEVICE)
    if layout == "columns":
        return wp.array(np.ascontiguousarray(values.transpose(0, 2, 1)), device=DEVICE).transpose((0, 2, 1))
    wide = np.full((batch, rows + 1, 2 * columns + 1), np.nan, values.dtype)
    wide[:, 1:, 1::2] = values
    return wp.array(wide, device=DEVICE)[:, 1:, 1::2]


def kernels_of(work):
    wp.timing_begin()
    work()
    return [row.name.removeprefix("builtin kernel ") for row in wp.timing_end() if "weft_matmul" in row.name]


def multiplied(a, b, c=None, **options):
    D = c if c is not None else wp.zeros((a.shape[0], a.shape[1], b.shape[2]), dtype=a.dtype, device=DEVICE)
    names = kernels_of(lambda: wp.batched_matmul(a, b, D, D, **options))
    return D.numpy(), names


def check_bits(found, a, b, samples=40):
    """Elements at the edges and some others are the chain to the bit; all are near NumPy's."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    size = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    assert (np.abs(found - exact) <= a.shape[2] * np.finfo(a.dtype).eps * size).all()
    places = [tuple(random.integers(0, found.shape)) for _ in range(samples)]
    places += [(0, 0, 0), tuple(np.array(found.shape) - 1)]
    for batch, row, column in places:
        assert found[batch, row, column] == chain(a[batch, row], b[batch, :, column]), (batch, row, column)


# The emulated device has 16 multiprocessors: a batch that gives each a tile of the size.
TILES = {
    "f32": [((128, 128), (5, 132, 132)), ((64, 64), (5, 68, 68)), ((32, 32), (1, 36, 40))],
    "f64": [((128, 64), (5, 130, 66)), ((64, 64), (5, 66, 66)), ((32, 32), (1, 34, 36))],
}
CASES = [(name, *tile) for name, tiles in TILES.items() for tile in tiles]


@pytest.mark.parametrize(
    "layouts", [("rows", "rows"), ("columns", "rows"), ("rows", "columns"), ("columns", "columns")]
)
@pytest.mark.parametrize("name, tile, shape", CASES, ids=lambda value: str(value).replace(" ", ""))
def test_vectors_are_read_along_either_axis(name, tile, shape, layouts):
    dtype = {"f32": np.float32, "f64": np.float64}[name]
    batch, rows, columns = shape
    a, b = numbers(dtype, batch, rows, 20), numbers(dtype, batch, 20, columns)
    found, names = multiplied(laid_out(a, layouts[0]), laid_out(b, layouts[1]))
    if wp.get_device(DEVICE).sm_count == 16:
        assert names == [f"weft_matmul_{name}_{tile[0]}x{tile[1]}"]
    check_bits(found, a, b)


@pytest.mark.parametrize("layouts", [("gaps", "rows"), ("rows", "gaps"), ("gaps", "gaps"), ("columns", "columns")])
@pytest.mark.parametrize("name, tile, shape", CASES, ids=lambda value: str(value).replace(" ", ""))
def test_numbers_are_read_along_either_axis(name, tile, shape, layouts):
    dtype = {"f32": np.float32, "f64": np.float64}[name]
    batch, rows, columns = shape
    rows, columns = rows - 1, columns - 1
    a, b = numbers(dtype, batch, rows, 19), numbers(dtype, batch, 19, columns)
    found, names = multiplied(laid_out(a, layouts[0]), laid_out(b, layouts[1]))
    if wp.get_device(DEVICE).sm_count == 16:
        assert names == [f"weft_matmul_{name}_{tile[0]}x{tile[1]}_any"]
    check_bits(found, a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "m, k, n", [(1, 1, 1), (1, 300, 1), (1, 7, 260), (260, 9, 1), (2, 8, 33), (33, 1, 2), (3, 0, 5)]
)
def test_narrow_shapes(dtype, m, k, n):
    a, b = numbers(dtype, 1, m, k), numbers(dtype, 1, k, n)
    found, _ = multiplied(wp.array(a, device=DEVICE), wp.array(b, device=DEVICE))
    check_bits(found, a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_matrix_for_a_batch(dtype):
    a, b = numbers(dtype, 4, 12, 16), numbers(dtype, 1, 16, 20)
    B = wp.array(b, device=DEVICE)
    repeated = wp.array(ptr=B.ptr, shape=(4, 16, 20), strides=(0, *B.strides[1:]), dtype=B.dtype, device=DEVICE)
    found, _ = multiplied(wp.array(a, device=DEVICE), repeated)
    check_bits(found, a, np.repeat(b, 4, axis=0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["rows", "columns", "gaps"])
def test_alpha_and_beta_round_once_each(dtype, layout):
    a, b, c = numbers(dtype, 2, 20, 12), numbers(dtype, 2, 12, 24), numbers(dtype, 2, 20, 24)
    found, _ = multiplied(
        wp.array(a, device=DEVICE), wp.array(b, device=DEVICE), laid_out(c, layout), alpha=0.7, beta=-1.3
    )
    for batch, row, column in np.ndindex(found.shape):
        total = dtype(0.7) * chain(a[batch, row], b[batch, :, column])
        assert found[batch, row, column] == total + dtype(-1.3) * c[batch, row, column]


def test_the_last_k_changes_no_sign_of_zero():
    # -1e-30 * 1e-30 is rounded to -0; the elements that fill the last tile keep it.
    a, b = np.full((1, 1, 1), -1e-30, np.float32), np.full((1, 1, 1), 1e-30, np.float32)
    found, _ = multiplied(wp.array(a, device=DEVICE), wp.array(b, device=DEVICE))
    assert chain(a[0, 0], b[0, :, 0]) == 0 and np.signbit(found[0, 0, 0])


def test_nan_and_infinity_stay_in_their_rows_and_columns():
    a, b = np.ones((1, 40, 40), np.float32), np.ones((1, 40, 40), np.float32)
    a[0, 39, 3], b[0, 39, 39] = np.nan, np.inf
    found, _ = multiplied(wp.array(a, device=DEVICE), wp.array(b, device=DEVICE))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, a @ b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_adjoint_reads_transposed_factors_in_vectors(dtype):
    arrays = [wp.array(numbers(dtype, *shape), device=DEVICE, requires_grad=True) for shape in [(32, 40), (40, 48)]]
    with wp.Tape() as tape:
        product = arrays[0] @ arrays[1]
    seed = numbers(dtype, 32, 48)
    names = kernels_of(lambda: tape.backward(grads={product: wp.array(seed, device=DEVICE)}))
    assert len(names) == 2 and not any(name.endswith("_any") for name in names)
    a, b = (x.numpy().astype(np.float64) for x in arrays)
    np.testing.assert_allclose(arrays[0].grad.numpy(), seed.astype(np.float64) @ b.T, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(arrays[1].grad.numpy(), a.T @ seed.astype(np.float64), rtol=1e-4, atol=1e-4)


def test_products_in_graphs():
    a, b = numbers(np.float32, 1, 40, 24), numbers(np.float32, 1, 24, 36)
    A, B = wp.zeros((40, 24), device=DEVICE), wp.zeros((24, 36), device=DEVICE)
    D, half = wp.zeros((40, 36), device=DEVICE), wp.zeros((40, 36), dtype=wp.float16, device=DEVICE)
    A16, B16 = wp.zeros((40, 24), dtype=wp.float16, device=DEVICE), wp.zeros((24, 36), dtype=wp.float16, device=DEVICE)
    with wp.ScopedCapture(DEVICE) as capture:
        wp.matmul(A, B, D, D)
        wp.matmul(A16, B16, half, half)
    for x, y in ((A, a), (B, b), (A16, a.astype(np.float16)), (B16, b.astype(np.float16))):
        x.assign(y[0])
    wp.capture_launch(capture.graph)
    check_bits(D.numpy()[None], a, b)
    exact = a[0].astype(np.float16).astype(np.float64) @ b[0].astype(np.float16).astype(np.float64)
    np.testing.assert_allclose(half.numpy(), exact, rtol=2e-3, atol=2e-3)
