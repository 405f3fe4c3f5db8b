"""Linear algebra of small matrices in kernels, and sums of arrays. The other functions are not there yet."""

from __future__ import annotations

from typing import Any

import warp as wp
from warp._arrays.arrays import check_one_device
from warp._unimplemented import names_of

__all__ = ["array_axpy", "symmetric_eigenvalues_qr"]

_MOST_SWEEPS = wp.constant(40)


@wp.func
def symmetric_eigenvalues_qr(A: Any, tol: Any):
    """The eigenvalues and eigenvectors of a symmetric matrix of any size, by Jacobi's method with cyclic sweeps.

    Golub and Van Loan, Matrix Computations, section 8.5. Its results are as accurate as those of a QR iteration.

    Args:
        A: a square matrix of floats; its upper triangle is read.
        tol: an element off the diagonal counts as zero if it is not larger than this, relative to the sum of the
            diagonal elements of its row and column. With 0 it counts as zero when adding it to the sum changes nothing.
    Returns:
        D, a vector of the eigenvalues in no order, and P, a matrix with an eigenvector in each row: A = P^T D P.
    """
    P = wp.identity(len(A), dtype=A.dtype)
    one = A.dtype(1.0)
    is_diagonal = False
    sweep = 0
    while not is_diagonal and sweep < _MOST_SWEEPS:
        is_diagonal = True
        for i in range(len(A) - 1):
            for j in range(i + 1, len(A)):
                size = wp.abs(A[i, i]) + wp.abs(A[j, j])
                off = wp.abs(A[i, j])
                if off > tol * size and size + off > size:
                    is_diagonal = False
                    # The rotation by the smaller angle that makes A[i, j] zero: its tangent, cosine and sine.
                    ratio = (A[j, j] - A[i, i]) / (A[i, j] + A[i, j])
                    t = wp.where(ratio < A.dtype(0.0), -one, one) / (wp.abs(ratio) + wp.sqrt(one + ratio * ratio))
                    c = one / wp.sqrt(one + t * t)
                    s = t * c
                    A[i, i] = A[i, i] - t * A[i, j]
                    A[j, j] = A[j, j] + t * A[i, j]
                    A[i, j] = A.dtype(0.0)
                    for k in range(len(A)):
                        if k != i and k != j:
                            # Elements of the upper triangle in rows or columns i and j.
                            ki = wp.min(k, i)
                            ik = wp.max(k, i)
                            kj = wp.min(k, j)
                            jk = wp.max(k, j)
                            first = A[ki, ik]
                            second = A[kj, jk]
                            A[ki, ik] = c * first - s * second
                            A[kj, jk] = s * first + c * second
                        p = P[i, k]
                        q = P[j, k]
                        P[i, k] = c * p - s * q
                        P[j, k] = s * p + c * q
        sweep += 1
    D = A[0]
    for i in range(len(A)):
        D[i] = A[i, i]
    return D, P


@wp.kernel
def _axpy(x: wp.array[Any], y: wp.array[Any], alpha: Any, beta: Any):
    i = wp.tid()
    y[i] = alpha * x[i] + beta * y[i]


@wp.kernel
def _scaled(x: wp.array[Any], y: wp.array[Any], alpha: Any):
    i = wp.tid()
    y[i] = alpha * x[i]


def array_axpy(x: wp.array, y: wp.array, alpha: float = 1.0, beta: float = 1.0) -> None:
    """``y = alpha * x + beta * y`` in place, element by element; with ``beta`` 0, ``y`` is not read.

    Args:
        x: array of one dimension.
        y: array like ``x``.
        alpha, beta: factors, of the type of the elements' components.
    Raises:
        UsageError (also a ValueError or TypeError): the arrays differ in type or shape, or have several dimensions.
    """
    api = "fem.linalg.array_axpy()"
    check_one_device(api, {"x": x, "y": y})
    if x.dtype is not y.dtype:
        message = f"{api}: x is an array of {wp.types.type_name(x.dtype)} and y of {wp.types.type_name(y.dtype)}"
        raise wp._weft.usage_error(message, TypeError)
    if x.shape != y.shape or x.ndim != 1:
        message = f"{api}: x has the shape {x.shape} and y {y.shape}, expected the same number of elements on one axis"
        raise wp._weft.usage_error(message, ValueError)
    scalar = wp.types.type_scalar_type(x.dtype)
    if beta == 0.0:
        wp.launch(_scaled, dim=x.shape, inputs=[x, y, scalar(alpha)], device=x.device)
    else:
        wp.launch(_axpy, dim=x.shape, inputs=[x, y, scalar(alpha), scalar(beta)], device=x.device)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'warp.fem.linalg' has no attribute {name!r}")
    value = names_of(__name__, "finite elements", "", name)[name]
    globals()[name] = value
    return value
