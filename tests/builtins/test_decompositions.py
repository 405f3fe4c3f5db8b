"""svd2, svd3, qr3, eig3, inverse and determinant on matrices that are easy and hard: random, of any rank, with repeated
or nearly repeated values, graded, huge, tiny and zero. Compared with NumPy in float64."""

import math
from fractions import Fraction

import numpy as np
import pytest
import warp as wp
from sweep import FLOATS, Type, load

SCALARS = {s: np.dtype(s) for s in FLOATS}


def random_rotations(rng, count, n):
    q, r = np.linalg.qr(rng.normal(size=(count, n, n)))
    q *= np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]
    q[:, :, 0] *= np.linalg.det(q)[:, None]
    return q


def with_values(rng, n, values):
    """U diag(values) V^T for each row of values, with random rotations."""
    values = np.atleast_2d(values)
    u, v = random_rotations(rng, len(values), n), random_rotations(rng, len(values), n)
    return u * values[:, None, :] @ v.transpose(0, 2, 1)


def hard_matrices(n, dtype, symmetric=False):
    """(matrices of the type, of moderate size)"""
    rng = np.random.default_rng(n)
    eps = float(np.finfo(dtype).eps)
    values = rng.uniform(0.1, 2, (300, n))
    repeated = np.repeat(rng.uniform(0.5, 2, (40, 1)), n, axis=1)
    nearly = repeated * (1 + eps * rng.integers(-40, 40, (40, n)))
    pairs = repeated.copy()
    pairs[:, 0] *= 1.5
    graded = 10.0 ** rng.uniform(-6, 0, (60, n))
    near_singular = rng.uniform(0.5, 2, (60, n))
    near_singular[:, -1] *= eps * rng.uniform(0.1, 10, 60)
    rank_two = rng.uniform(0.5, 2, (40, n))
    rank_two[:, -1] = 0
    rank_one = np.zeros((40, n))
    rank_one[:, 0] = rng.uniform(0.5, 2, 40)
    families = [values, repeated, nearly, pairs, graded, near_singular, rank_two, rank_one]
    made = []
    for family in families:
        if symmetric:
            q = random_rotations(rng, len(family), n)
            signed = family * rng.choice([-1, 1], family.shape)
            made.append(q * signed[:, None, :] @ q.transpose(0, 2, 1))
        else:
            made.append(with_values(rng, n, family * rng.choice([-1, 1], family.shape)))
    small = rng.integers(-2, 3, (200, n, n)).astype(float)
    special = [
        np.zeros((n, n)),
        np.eye(n),
        -np.eye(n),
        np.ones((n, n)),
        np.eye(n)[::-1],
        np.roll(np.eye(n), 1, axis=0),
        np.diag(np.arange(n)),
        np.outer(np.arange(n), np.arange(n)) * 0.1,
        np.full((n, n), 0.1),
    ]
    if not symmetric:
        special += [
            np.triu(np.ones((n, n))),
            np.outer(np.eye(n)[0], np.eye(n)[1]),
            0.1 + np.outer(np.ones(n), np.eye(n)[0]),
        ]
    else:
        small = small + small.transpose(0, 2, 1)
    m = np.concatenate([*made, small, np.stack(special)]).astype(dtype)
    return (m + m.transpose(0, 2, 1)) / 2 if symmetric else m


def sized(m, dtype):
    """The same matrices, and as large and as small as the type has normal and subnormal numbers for."""
    if dtype == np.float16:
        return np.concatenate([m, m * dtype.type(1024)])
    limits = np.finfo(dtype)
    high, low = 2.0 ** (limits.maxexp - 5), 2.0 ** (limits.minexp + 30)
    return np.concatenate([m, m * dtype.type(high), m * dtype.type(low)])


def call(tmp_path, name, scalar, n, results, matrices, out_form=False):
    """The result of a builtin for each matrix; also checks that vectors and scalar code give the same bits."""
    matrix = Type("matrix", scalar, (n, n))
    kinds = {"m": matrix, "v": Type("vector", scalar, (n,)), "s": Type("scalar", scalar)}
    outputs = [kinds[r] for r in results]
    header = ", ".join(["a: wp.array(dtype=M)"] + [f"o{i}: wp.array(dtype=T{i})" for i in range(len(outputs))])
    names = [f"r{i}" for i in range(len(outputs))]
    types = "".join(f"T{i} = {kind.source}\n" for i, kind in enumerate(outputs))
    body = "    i = wp.tid()\n"
    if out_form:
        body += "".join(f"    r{i} = T{i}()\n" for i in range(len(outputs)))
        body += f"    wp.{name}(a[i], {', '.join(names)})\n"
    else:
        body += f"    {', '.join(names)} = wp.{name}(a[i])\n"
    body += "".join(f"    o{i}[i] = r{i}\n" for i in range(len(outputs)))
    source = f"import warp as wp\n\nM = {matrix.source}\n{types}\n"
    for options, kernel in (("", "lanes"), ('(module_options={"lanes": 1})', "alone")):
        source += f"\n@wp.kernel{options}\ndef {kernel}({header}):\n{body}\n"
    module = load(source, tmp_path, f"{name}_{scalar}_{n}_{out_form}")
    taken = []
    for kernel in (module.lanes, module.alone):
        arrays = [wp.zeros(len(matrices), dtype=kind.dtype) for kind in outputs]
        wp.launch(kernel, dim=len(matrices), inputs=[wp.array(matrices, dtype=matrix.dtype), *arrays])
        taken.append([a.numpy() for a in arrays])
    for one, other in zip(*taken):
        assert np.array_equal(one, other, equal_nan=True)
    return taken[0]


def worst(errors, matrices, allowed, what):
    errors = np.where(np.isnan(errors), np.inf, errors)
    row = int(np.argmax(errors))
    assert errors[row] <= allowed, f"{what}: {errors[row]:.3g} > {allowed:.3g} for\n{matrices[row].tolist()}"


def norm(m):
    """Greatest entry, so that huge matrices have one."""
    return np.abs(m).reshape(len(m), -1).max(axis=1)


def relative(error, matrices):
    size = norm(matrices)
    return norm(error) / np.where(size > 0, size, 1)


def check_rotation(q, matrices, eps, what):
    n = q.shape[1]
    worst(norm(q.transpose(0, 2, 1) @ q - np.eye(n)), matrices, eps, f"{what} is not orthogonal")
    worst(np.abs(np.linalg.det(q) - 1), matrices, eps, f"{what} is no rotation")


def wide(*arrays):
    return tuple(a.astype(np.longdouble).astype(np.float64) for a in arrays)


@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize("n", [2, 3])
def test_singular_values(tmp_path, scalar, n):
    dtype = SCALARS[scalar]
    given = sized(hard_matrices(n, dtype), dtype)
    found = call(tmp_path, f"svd{n}", scalar, n, "mvm", given)
    assert all(np.array_equal(a, b) for a, b in zip(found, call(tmp_path, f"svd{n}", scalar, n, "mvm", given, True)))
    # Everything below is relative to the matrix; powers of two keep float64 from overflowing.
    scale = np.exp2(-np.floor(np.log2(np.where(norm(given) > 0, norm(given), 1).astype(np.float64))))
    (a, u, sigma, v) = wide(given, *found)
    a, sigma = a * scale[:, None, None], sigma * scale[:, None]
    eps = float(np.finfo(dtype).eps)
    check_rotation(u, given, 16 * eps, "U")
    check_rotation(v, given, 16 * eps, "V")
    worst(relative(u * sigma[:, None, :] @ v.transpose(0, 2, 1) - a, a), given, 24 * eps, "the product is not A")
    expected = np.linalg.svd(a, compute_uv=False)
    # LAPACK's own error reaches 40 eps if values are nearly repeated; by the residual above ours are closer.
    worst(relative(np.abs(sigma) - expected, a), given, 64 * eps, "other singular values than NumPy's")
    assert (np.abs(sigma[:, :-1]) >= np.abs(sigma[:, 1:])).all()
    assert (sigma[:, :-1] >= 0).all()
    decided = np.abs(expected[:, -1]) > 100 * eps * expected[:, 0]
    assert (np.sign(sigma[decided, -1]) == np.sign(np.linalg.det(a[decided]))).all()


@pytest.mark.parametrize("scalar", ["float32", "float64"])
def test_small_singular_values_of_graded_columns_keep_their_digits(tmp_path, scalar):
    """One-sided rotations find them to the precision of the type, however small beside the others."""
    dtype = SCALARS[scalar]
    rng = np.random.default_rng(3)
    columns = 10.0 ** -np.array([[0, 6, 12], [3, 0, 9], [10, 5, 0]])
    given = (random_rotations(rng, 300, 3) * columns[rng.integers(0, 3, 300)][:, None, :]).astype(dtype)
    given = given @ np.eye(3, dtype=dtype)
    _, sigma, _ = call(tmp_path, "svd3", scalar, 3, "mvm", given)
    # The columns are orthogonal to rounding, so their lengths are the singular values.
    expected = -np.sort(-np.linalg.norm(given.astype(np.float64), axis=1), axis=1)
    np.testing.assert_allclose(np.abs(sigma), expected, rtol=64 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("scalar", FLOATS)
def test_qr(tmp_path, scalar):
    dtype = SCALARS[scalar]
    given = sized(hard_matrices(3, dtype), dtype)
    found = call(tmp_path, "qr3", scalar, 3, "mm", given)
    assert all(np.array_equal(a, b) for a, b in zip(found, call(tmp_path, "qr3", scalar, 3, "mm", given, True)))
    scale = np.exp2(-np.floor(np.log2(np.where(norm(given) > 0, norm(given), 1).astype(np.float64))))
    a, q, r = wide(given, *found)
    a, r = a * scale[:, None, None], r * scale[:, None, None]
    eps = float(np.finfo(dtype).eps)
    check_rotation(q, given, 8 * eps, "Q")
    worst(relative(q @ r - a, a), given, 12 * eps, "the product is not A")
    assert not np.tril(r, -1).any()
    assert (r[:, [0, 1], [0, 1]] >= 0).all()
    numpy_r = np.abs(np.diagonal(np.linalg.qr(a)[1], axis1=1, axis2=2))
    decided = numpy_r.min(axis=1) > 0.01
    found_r = np.abs(np.diagonal(r, axis1=1, axis2=2))
    np.testing.assert_allclose(found_r[decided], numpy_r[decided], atol=2000 * eps)


@pytest.mark.parametrize("scalar", FLOATS)
def test_eigenvalues(tmp_path, scalar):
    dtype = SCALARS[scalar]
    given = sized(hard_matrices(3, dtype, symmetric=True), dtype)
    found = call(tmp_path, "eig3", scalar, 3, "mv", given)
    assert all(np.array_equal(a, b) for a, b in zip(found, call(tmp_path, "eig3", scalar, 3, "mv", given, True)))
    scale = np.exp2(-np.floor(np.log2(np.where(norm(given) > 0, norm(given), 1).astype(np.float64))))
    a, q, d = wide(given, *found)
    a, d = a * scale[:, None, None], d * scale[:, None]
    eps = float(np.finfo(dtype).eps)
    check_rotation(q, given, 16 * eps, "Q")
    worst(relative(q * d[:, None, :] @ q.transpose(0, 2, 1) - a, a), given, 24 * eps, "the product is not A")
    assert (np.diff(d, axis=1) >= 0).all()
    worst(relative(d - np.linalg.eigvalsh(a), a), given, 64 * eps, "other eigenvalues than NumPy's")


def test_only_the_symmetric_part_has_eigenvalues(tmp_path):
    m = np.random.default_rng(4).normal(size=(50, 3, 3))
    q, d = call(tmp_path, "eig3", "float64", 3, "mv", m)
    symmetric = (m + m.transpose(0, 2, 1)) / 2
    np.testing.assert_allclose(d, np.linalg.eigvalsh(symmetric), atol=1e-13)


@pytest.mark.parametrize(
    ("name", "n", "results"), [("svd2", 2, "mvm"), ("svd3", 3, "mvm"), ("qr3", 3, "mm"), ("eig3", 3, "mv")]
)
def test_what_is_not_finite_gives_nan(tmp_path, name, n, results):
    m = np.tile(np.eye(n), (4, 1, 1))
    m[0, 0, 0], m[1, -1, 0], m[2, 0, 1], m[3, 1, 1] = np.nan, np.nan, np.inf, -np.inf
    m[1, 0, -1] = m[1, -1, 0]
    m[2, 1, 0] = m[2, 0, 1]
    for out in call(tmp_path, name, "float32", n, results, m.astype(np.float32)):
        assert np.isnan(out).all()


# ---- inverse and determinant ----


def exact_determinant(m):
    """Of one matrix, in fractions."""
    rows = [[Fraction(float(x)) for x in row] for row in m]
    if len(rows) == 1:
        return rows[0][0]
    total = Fraction(0)
    for j, x in enumerate(rows[0]):
        minor = [[*row[:j], *row[j + 1 :]] for row in rows[1:]]
        total += (-1) ** j * x * exact_determinant(np.array(minor, dtype=object)) if x else 0
    return total


def exact_inverse(m, determinant):
    n = len(m)
    rows = [[Fraction(float(x)) for x in row] for row in m]
    result = np.empty((n, n), dtype=object)
    for i in range(n):
        for j in range(n):
            minor = [[rows[r][c] for c in range(n) if c != i] for r in range(n) if r != j]
            result[i, j] = (-1) ** (i + j) * exact_determinant(np.array(minor, dtype=object)) / determinant
    return result


@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_inverse_and_determinant_against_fractions(tmp_path, scalar, n):
    dtype = SCALARS[scalar]
    eps = float(np.finfo(dtype).eps)
    given = hard_matrices(n, dtype)[::19]
    given = sized(given, dtype) if n < 4 else given
    (inverse,) = call(tmp_path, "inverse", scalar, n, "m", given)
    (determinant,) = call(tmp_path, "determinant", scalar, n, "s", given)
    largest = float(np.finfo(dtype).max)
    for m, found, value in zip(given, inverse, determinant):
        bound = math.prod(Fraction(float(np.abs(row).max())) for row in m)
        expected = exact_determinant(m)
        allowed = 40 * Fraction(eps) * bound + Fraction(float(np.finfo(dtype).smallest_subnormal))
        if abs(expected) < largest:
            assert abs(Fraction(float(value)) - expected) <= allowed, (m.tolist(), float(value), float(expected))
        if not expected or abs(expected) <= allowed:
            continue  # singular but for rounding: the next tests
        exact = exact_inverse(m, expected)
        size = max(abs(x) for x in exact.ravel())
        if size > largest / 2:
            continue
        # The relative error may grow with the quotient of the bound on the determinant and its value.
        slack = 40 * Fraction(eps) * max(bound / abs(expected), 1) * 4
        floor = Fraction(float(np.finfo(dtype).smallest_subnormal))
        error = max(abs(Fraction(float(x)) - y) for x, y in zip(found.ravel(), exact.ravel()))
        assert error <= slack * size + floor, (m.tolist(), found.tolist(), float(error / size))


@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_singular_matrices_have_the_zero_matrix_as_inverse(tmp_path, scalar, n):
    dtype = SCALARS[scalar]
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(60, 1, n)).astype(dtype)
    multiples = (rows * np.exp2(np.arange(n)).reshape(1, n, 1)).astype(dtype)  # exact multiples of one row
    whole = rng.integers(-3, 4, (60, n, n))
    whole[:, -1] = whole[:, 0] * 2 if n == 2 else whole[:, 0] - 2 * whole[:, 1]
    given = np.concatenate([np.zeros((1, n, n)), np.full((1, n, n), 0.1), multiples, whole]).astype(dtype)
    (inverse,) = call(tmp_path, "inverse", scalar, n, "m", given)
    (determinant,) = call(tmp_path, "determinant", scalar, n, "s", given)
    assert not inverse.any() and not determinant.any()


@pytest.mark.parametrize("scalar", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_inverse_of_huge_and_tiny_matrices(tmp_path, scalar, n):
    """Their determinants overflow or vanish; the inverses do neither."""
    dtype = SCALARS[scalar]
    limits = np.finfo(dtype)
    rng = np.random.default_rng(8)
    base = (rng.normal(size=(20, n, n)) * 0.2 + np.eye(n)).astype(dtype)
    given, factors = [], []
    for power in (limits.maxexp - 6, limits.minexp + 6, limits.maxexp // 2, limits.minexp // 2):
        given.append(np.ldexp(base, power))
        factors.append(np.full((20, 1, n), -power))
    mixed = np.array([limits.maxexp - 10, limits.minexp + 10, 0, limits.maxexp // 3])[:n]
    given.append(np.ldexp(base, mixed[:, None]))
    factors.append(np.broadcast_to(-mixed, (20, 1, n)))
    given, factors = np.concatenate(given), np.concatenate(factors)
    (inverse,) = call(tmp_path, "inverse", scalar, n, "m", given)
    (plain,) = call(tmp_path, "inverse", scalar, n, "m", base)
    expected = np.ldexp(np.tile(plain, (5, 1, 1)).astype(np.float64), factors)
    np.testing.assert_allclose(inverse, expected, rtol=32 * limits.eps, atol=0)
