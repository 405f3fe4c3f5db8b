"""warp.fem.linalg: eigenvalues of symmetric matrices against NumPy's, sums of arrays."""

import numpy as np
import pytest
import warp as wp
from warp.fem import linalg


def make(n, dtype, tol):
    matrix, vector = wp.types.matrix((n, n), dtype), wp.types.vector(n, dtype)

    @wp.kernel
    def solve(a: wp.array[matrix], d: wp.array[vector], p: wp.array[matrix]):
        i = wp.tid()
        values, rows = linalg.symmetric_eigenvalues_qr(a[i], dtype(tol))
        d[i] = values
        p[i] = rows

    return solve, matrix, vector


def matrices(n):
    """Symmetric: random, of equal, zero, tiny and large eigenvalues, graded, with zeros on the diagonal."""
    rng = np.random.default_rng(n)
    made = rng.normal(size=(40, n, n))
    made = made + made.transpose(0, 2, 1)
    made[0] = 0.0
    made[1] = np.eye(n)
    made[2] = 1.0
    made[3] = np.diag(np.arange(n)[::-1])
    made[4] *= 1e-12
    made[5] *= 1e12
    scales = 10.0 ** -np.arange(n)
    made[6] *= scales[:, None] * scales
    made[7] = np.ones((n, n)) - np.eye(n)
    return made


@pytest.mark.parametrize("dtype, epsilon", [(wp.float32, 2.0**-23), (wp.float64, 2.0**-52)], ids=["f32", "f64"])
@pytest.mark.parametrize("n", [1, 2, 3, 6, 9])
@pytest.mark.parametrize("tol", [0.0, 1e-6])
def test_eigenvalues_and_rows_of_eigenvectors(device, n, dtype, epsilon, tol):
    solve, matrix, vector = make(n, dtype, tol)
    a = wp.array(matrices(n), dtype=matrix, device=device)
    d, p = wp.zeros(len(a), dtype=vector, device=device), wp.zeros(len(a), dtype=matrix, device=device)
    wp.launch(solve, dim=len(a), inputs=[a, d, p], device=device)
    given, values, rows = (x.numpy().astype(np.float64) for x in (a, d, p))
    values, rows, given = values.reshape(-1, n), rows.reshape(-1, n, n), given.reshape(-1, n, n)
    size = np.abs(np.linalg.eigvalsh(given)).max(1)
    error = (8 * n * epsilon + 2 * n * tol) * size + 1e-300
    expected = np.linalg.eigvalsh(given)
    assert (np.abs(np.sort(values, 1) - expected).max(1) <= error).all()
    again = rows.transpose(0, 2, 1) @ (values[:, :, None] * rows)
    assert (np.abs(again - given).max((1, 2)) <= error).all()
    np.testing.assert_allclose(
        rows @ rows.transpose(0, 2, 1), np.broadcast_to(np.eye(n), rows.shape), atol=32 * epsilon
    )


def test_the_matrix_of_the_caller_stays():
    @wp.kernel
    def solve(a: wp.array[wp.mat33], out: wp.array[wp.mat33]):
        m = a[0]
        d, p = linalg.symmetric_eigenvalues_qr(m, 0.0)
        out[0] = m
        out[1] = wp.transpose(p) * wp.diag(d) * p

    m = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 1.0]], dtype=np.float32)
    out = wp.zeros(2, dtype=wp.mat33)
    wp.launch(solve, dim=1, inputs=[wp.array(m[None], dtype=wp.mat33), out])
    np.testing.assert_array_equal(out.numpy()[0], m)
    np.testing.assert_allclose(out.numpy()[1], m, atol=2e-6)


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64, wp.vec3], ids=["f32", "f64", "vec3"])
@pytest.mark.parametrize("alpha, beta", [(1.0, 1.0), (2.0, -0.5), (0.5, 0.0)])
def test_sums_of_arrays(device, dtype, alpha, beta):
    rng = np.random.default_rng(0)
    x, y = rng.integers(-8, 8, size=(2, 5, 3 if dtype is wp.vec3 else 1)).astype(np.float64)
    if beta == 0.0:
        y[0] = np.nan
    expected = alpha * x + (beta * y if beta else 0.0)
    to, of = wp.array(y.squeeze(), dtype=dtype, device=device), wp.array(x.squeeze(), dtype=dtype, device=device)
    linalg.array_axpy(of, to, alpha, beta)
    np.testing.assert_array_equal(to.numpy().reshape(expected.shape), expected)


def test_sums_of_arrays_that_do_not_fit_are_errors():
    with pytest.raises(TypeError, match="x is an array of float32 and y of float64"):
        linalg.array_axpy(wp.zeros(3), wp.zeros(3, dtype=wp.float64))
    with pytest.raises(ValueError, match=r"x has the shape \(3,\) and y \(4,\)"):
        linalg.array_axpy(wp.zeros(3), wp.zeros(4))


def test_other_functions_say_that_they_are_not_there():
    with pytest.raises(NotImplementedError, match=r"warp.fem.linalg.inverse_qr\(\): finite elements are not there yet"):
        linalg.inverse_qr(wp.mat33())
