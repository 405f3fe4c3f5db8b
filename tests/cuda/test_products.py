"""Products of matrices on CUDA devices: every tile and access against fused multiply-adds of the host, and NumPy."""

import ctypes
import os
import subprocess
import sys

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


# ---- tensor cores: wp.config.matmul_precision ----

# The unit of rounding of a factor, and the bits of the type.
TENSOR = {
    "float16": (0.0, 2.0**-11),
    "bfloat16": (0.0, 2.0**-8),
    "tf32": (2.0**-11, 0.0),
    "fast": (1.3 * 2.0**-21, 0.0),
}


@pytest.fixture
def precision():
    """Sets it for our own kernels: test_cublas.py is about cuBLAS."""
    if wp.get_device(DEVICE).arch < 80:
        pytest.skip("needs tensor cores: sm_80")

    def choose(name):
        wp.config.matmul_precision = name

    wp.config.use_cublas = False
    yield choose
    wp.config.matmul_precision, wp.config.use_cublas = "exact", True


def rounded(values, dtype):
    """As float64, and as an array of a type that NumPy may not have."""
    array = wp.array(values, dtype=dtype, device="cpu")
    return array.astype(wp.float64).numpy(), array


def laid_out_as(values, dtype, layout):
    if layout == "gaps":
        batch, rows, columns = values.shape
        wide = np.zeros((batch, rows + 1, 2 * columns + 1))
        wide[:, 1:, 1::2] = values
        return wp.array(wide, dtype=dtype, device=DEVICE)[:, 1:, 1::2]
    turned = values.transpose(0, 2, 1) if layout == "columns" else values
    array = wp.array(np.ascontiguousarray(turned), dtype=dtype, device=DEVICE)
    return array.transpose((0, 2, 1)) if layout == "columns" else array


def check_tensor(kind, a, b, layouts, c=None, alpha=1.0, beta=0.0):
    """Against float64 of the rounded factors. The bound: two roundings of factors to TF32, or what three products
    leave; single precision for the sums, in any order; the result's own rounding."""
    dtype = {"float16": wp.float16, "bfloat16": wp.bfloat16}.get(kind, wp.float32)
    factor, result = TENSOR[kind]
    (a, _), (b, _) = rounded(a, dtype), rounded(b, dtype)
    A, B = laid_out_as(a, dtype, layouts[0]), laid_out_as(b, dtype, layouts[1])
    exact, size = alpha * (a @ b), abs(alpha) * (np.abs(a) @ np.abs(b))
    D = wp.zeros(exact.shape, dtype=dtype, device=DEVICE)
    if c is not None:
        c, C = rounded(c, dtype)
        D = C.to(DEVICE)
        exact, size = exact + beta * c, size + abs(beta * c)
    names = kernels_of(lambda: wp.batched_matmul(A, B, D, D, alpha=alpha, beta=beta))
    found = D.astype(wp.float64).numpy()
    inner = a.shape[2]
    single = (inner + 4) * 2.0**-23
    bound = (2 * factor + factor**2 + single) * size + result * np.abs(exact) * (1 + single)
    assert (np.abs(found - exact) <= bound + np.finfo(np.float32).tiny).all(), np.max(np.abs(found - exact) / bound)
    return names


KINDS = {"float16": "f16", "bfloat16": "bf16", "tf32": "tf32", "fast": "tf32x3"}
LETTERS = {"rows": ("k", "n"), "columns": ("m", "k")}


@pytest.mark.parametrize(
    "layouts", [("rows", "rows"), ("columns", "rows"), ("rows", "columns"), ("columns", "columns")]
)
@pytest.mark.parametrize("shape", [(5, 136, 144), (1, 72, 40)])
@pytest.mark.parametrize("kind", KINDS)
def test_tensor_cores_of_aligned_operands(kind, shape, layouts, precision):
    precision("tf32" if kind == "tf32" else "fast")
    batch, rows, columns = shape
    a, b = numbers(np.float64, batch, rows, 88), numbers(np.float64, batch, 88, columns)
    names = check_tensor(kind, a, b, layouts)
    device = wp.get_device(DEVICE)
    if device.sm_count == 16:
        side = 128 if batch > 1 else 64
        letters = LETTERS[layouts[0]][0] + LETTERS[layouts[1]][1]
        assert names == [f"weft_matmul_{KINDS[kind]}_{side}x{side}_{letters}"]


@pytest.mark.parametrize("layouts", [("rows", "rows"), ("columns", "columns"), ("gaps", "rows"), ("rows", "gaps")])
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (1, 33, 17, 65), (2, 70, 3, 129), (1, 5, 200, 2)])
@pytest.mark.parametrize("kind", KINDS)
def test_tensor_cores_of_odd_sizes(kind, shape, layouts, precision):
    precision("tf32" if kind == "tf32" else "fast")
    batch, rows, inner, columns = shape
    check_tensor(kind, numbers(np.float64, batch, rows, inner), numbers(np.float64, batch, inner, columns), layouts)


@pytest.mark.parametrize("kind", KINDS)
def test_tensor_cores_add_alpha_and_beta(kind, precision):
    precision("tf32" if kind == "tf32" else "fast")
    a, b, c = numbers(np.float64, 1, 40, 24), numbers(np.float64, 1, 24, 48), numbers(np.float64, 1, 40, 48)
    check_tensor(kind, a, b, ("rows", "rows"), c, alpha=0.75, beta=-1.5)


def test_three_products_are_nearer_than_one(precision):
    a, b = numbers(np.float32, 64, 64), numbers(np.float32, 64, 64)
    A, B = wp.array(a, device=DEVICE), wp.array(b, device=DEVICE)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    errors = {}
    for name in ("exact", "fast", "tf32"):
        precision(name)
        errors[name] = np.abs((A @ B).numpy() - exact).max()
    assert errors["exact"] < 1e-5 and errors["fast"] < 2e-5 and 1e-4 < errors["tf32"] < 1e-1


def test_one_call_allows_three_products_and_so_do_its_gradients(precision):
    A, B = (wp.array(numbers(np.float32, 40, 40), device=DEVICE, requires_grad=True) for _ in range(2))
    D = wp.zeros((40, 40), device=DEVICE, requires_grad=True)
    with wp.Tape() as tape:
        assert kernels_of(lambda: wp.matmul(A, B, D, D, allow_tf32x3_arith=True)) == ["weft_matmul_tf32x3_64x64_kn"]
    seed = wp.array(numbers(np.float32, 40, 40), device=DEVICE)
    assert kernels_of(lambda: tape.backward(grads={D: seed})) == [
        "weft_matmul_tf32x3_64x64_kk",
        "weft_matmul_tf32x3_64x64_mn",
    ]
    np.testing.assert_allclose(A.grad.numpy(), seed.numpy() @ B.numpy().T, rtol=1e-4, atol=1e-4)
    half = wp.zeros((8, 8), dtype=wp.float16, device=DEVICE)
    names = kernels_of(lambda: wp.matmul(half, half, half, half, allow_tf32x3_arith=True))
    assert names == ["weft_matmul_f32_32x32"]  # exact


def test_not_a_number_stays_in_its_row(precision):
    for name in ("fast", "tf32"):
        precision(name)
        a = np.ones((16, 16), np.float32)
        a[3, 5] = np.nan
        found = (wp.array(a, device=DEVICE) @ wp.array(np.ones((16, 16), np.float32), device=DEVICE)).numpy()
        assert np.isnan(found[3]).all() and (np.delete(found, 3, axis=0) == 16).all()


def test_tensor_cores_in_graphs(precision):
    precision("fast")
    a, b = numbers(np.float32, 24, 17), numbers(np.float32, 17, 9)
    A, B = wp.zeros((24, 17), device=DEVICE), wp.zeros((17, 9), device=DEVICE)
    D = wp.zeros((24, 9), device=DEVICE)
    with wp.ScopedCapture(DEVICE) as capture:
        wp.matmul(A, B, D, D)
    A.assign(a)
    B.assign(b)
    wp.capture_launch(capture.graph)
    np.testing.assert_allclose(D.numpy(), a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


OLD_GPU = """
import warp as wp
wp.config.matmul_precision = "tf32"
for dtype in (wp.float16, wp.float32):
    a = wp.ones((40, 40), dtype=dtype, device="cuda:0")
    wp.timing_begin()
    assert (a @ a).numpy().tolist() == [[40.0] * 40] * 40
    print([row.name for row in wp.timing_end() if "128x" in row.name or "32x32" in row.name or "64x" in row.name])
"""


def test_gpus_without_tensor_cores_are_exact():
    if not os.environ.get("WARP_CUDA_DRIVER"):
        pytest.skip("chooses the architecture of the emulated device")
    run = [sys.executable, "-c", OLD_GPU]
    done = subprocess.run(run, env=os.environ | {"WEFT_EMULATED_ARCH": "75"}, capture_output=True, text=True)
    assert done.stdout == "['builtin kernel weft_matmul_f32_32x32']\n" * 2, done.stderr


def test_other_precisions_are_refused():
    with pytest.raises(ValueError, match="matmul_precision: is 'high', expected 'exact', 'fast' or 'tf32'"):
        wp.config.matmul_precision = "high"
    assert wp.config.matmul_precision == "exact"
