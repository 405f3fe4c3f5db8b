"""Products of whole arrays: wp.matmul, wp.batched_matmul, their adjoints, and a @ b."""

from __future__ import annotations

import functools
import numbers
from typing import Any

import numpy as np
import warp
import warp._weft as _weft
from warp._arrays.arrays import check_one_device
from warp._gradients.recording import Part, recorded
from warp._support import nvidia_packages
from warp._weft import array, primitives, type_name, usage_error

__all__ = ["adj_batched_matmul", "adj_matmul", "batched_matmul", "matmul"]


def _check(api: str, arrays: dict[str, Any], ndim: int, shapes: dict[str, str], device: Any) -> None:
    """All are arrays of `ndim` dimensions on one device, of one float type, and of shapes that fit; `shapes` says with
    letters how, "mk" for m rows and k columns."""
    for name, value in arrays.items():
        if not isinstance(value, array):
            raise usage_error(f"{api}: {name!r} must be a warp.array, got {type(value).__name__}", TypeError)
        if value.ndim != ndim:
            raise usage_error(f"{api}: {name!r} must have {ndim} dimensions, got the shape {value.shape}", ValueError)
    check_one_device(api, arrays, device)
    first_name, first = next(iter(arrays.items()))
    for name, value in arrays.items():
        if value.dtype is not first.dtype:
            raise usage_error(
                f"{api}: all arrays must have the same dtype, got {type_name(first.dtype)} for {first_name!r} and "
                f"{type_name(value.dtype)} for {name!r}. help: astype()",
                TypeError,
            )
    floats = [t for t in _weft.scalar_types() if _weft.type_info(t)["scalar_kind"] == "float"]
    if first.dtype not in floats:
        names = ", ".join(map(type_name, floats))
        raise usage_error(
            f"{api}: arrays of {type_name(first.dtype)} cannot be multiplied; expected one of {names}", TypeError
        )
    sizes: dict[str, tuple[int, str]] = {}
    for name, letters in shapes.items():
        for axis, letter in enumerate(letters):
            size, owner = sizes.setdefault(letter, (arrays[name].shape[axis], name))
            if arrays[name].shape[axis] != size:
                expected = tuple(sizes[other][0] if other in sizes else other for other in letters)
                raise usage_error(
                    f"{api}: {name!r} has the shape {arrays[name].shape}, expected {_text(expected)} to fit {owner!r} "
                    f"of shape {arrays[owner].shape}",
                    ValueError,
                )


def _text(shape: tuple) -> str:
    return "(" + ", ".join(map(str, shape)) + ")"


def _number(api: str, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise usage_error(f"{api}: {name!r} must be a number, got {value!r}", TypeError)
    return float(value)


_PRECISIONS = ("exact", "fast", "tf32")  # as MatmulPrecision of the runtime


def _precision(dtype: Any, allow_tf32x3_arith: Any) -> int:
    """The number of wp.config.matmul_precision; of "fast" at least for float32 if the call allows it."""
    precision = _PRECISIONS.index(warp.config.matmul_precision)
    if precision:
        _name_cublas_folders()
    return max(precision, 1) if allow_tf32x3_arith and dtype is warp.float32 else precision


@functools.cache
def _name_cublas_folders() -> None:
    """Packages of NVIDIA: nvidia/cublas/lib has CUDA 12, nvidia/cu13/lib CUDA 13."""
    primitives.set_cublas_folders(nvidia_packages.folders("cu13/lib", "cublas/lib"))


def _multiply(
    api: str, a: Any, b: Any, c: Any, d: Any, alpha: Any, beta: Any, allow_tf32x3_arith: Any, device: Any, batch: str
) -> None:
    alpha, beta = _number(api, "alpha", alpha), _number(api, "beta", beta)
    shapes = {"a": batch + "mk", "b": batch + "kn", "c": batch + "mn", "d": batch + "mn"}
    _check(api, {"a": a, "b": b, "c": c, "d": d}, 2 + len(batch), shapes, device)
    _run(api, a, b, c if beta != 0.0 else None, d, alpha, beta, allow_tf32x3_arith)


def _run(
    api: str,
    a: array,
    b: array,
    c: array | None,
    d: array,
    alpha: float,
    beta: float,
    allow_tf32x3_arith: Any = False,
) -> None:
    """The product itself, and its entry on a tape."""

    turned = (0, 2, 1) if a.ndim == 3 else (1, 0)
    precision = _precision(a.dtype, allow_tf32x3_arith)

    def add(left: array, right: array, into: array) -> None:
        primitives.matmul(left, right, into, into, alpha, 1.0, precision)

    def add_part_of_c(value: array, into: array) -> None:
        into += beta * value

    parts = [
        Part(
            "a",
            d,
            lambda tangent, into, b: add(tangent, b, into),
            lambda gradient, into, b: add(gradient, b.transpose(turned), into),
            ("b",),
        ),
        Part(
            "b",
            d,
            lambda tangent, into, a: add(a, tangent, into),
            lambda gradient, into, a: add(a.transpose(turned), gradient, into),
            ("a",),
        ),
    ]
    if c is not None:
        parts.append(Part("c", d, add_part_of_c, add_part_of_c))
    needs = {}
    if d.grad is not None:
        if b.grad is not None:
            needs["a"] = a
        if a.grad is not None:
            needs["b"] = b
    reads = {"a": a, "b": b} if c is None else {"a": a, "b": b, "c": c}
    recorded(
        api,
        lambda: primitives.matmul(a, b, c, d, alpha, beta, precision),
        reads=reads,
        writes={"d": d},
        needs=needs,
        parts=lambda _: parts,
    )


def _matmul(
    a: array,
    b: array,
    c: array,
    d: array,
    alpha: float = 1.0,
    beta: float = 0.0,
    allow_tf32x3_arith: bool = False,
    device: Any = None,
) -> None:
    """Computes ``d = alpha * (a @ b) + beta * c``.

    Args:
        a: shape (m, k), of float16, bfloat16, float32 or float64; 16-bit floats are multiplied in float32.
        b: shape (k, n), of the same dtype, as are c and d.
        c: shape (m, n); not read if beta is 0. May be ``d``.
        d: shape (m, n), the result. May overlap the others. All may have any strides: transposed arrays are multiplied
            without a copy.
        alpha, beta: numbers.
        allow_tf32x3_arith: allows float32 on a GPU what ``wp.config.matmul_precision = "fast"`` allows, also for the
            gradients of this product.
        device: the device that all four arrays must be on; that of ``a`` if left out.
    Raises:
        UsageError: an argument is no array of two dimensions, or devices, dtypes or shapes do not fit.
    """
    _multiply("matmul()", a, b, c, d, alpha, beta, allow_tf32x3_arith, device, "")


_matmul.__name__ = _matmul.__qualname__ = "matmul"


class _Matmul(type(_weft.builtin("matmul"))):
    """wp.matmul: of arrays the function above; of matrices, in kernels and in Python, the builtin of that name."""

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        given = [*args, *keywords.values()]
        if any(_weft.is_value(value) for value in given) and not any(isinstance(value, array) for value in given):
            return super().__call__(*args, **keywords)
        return _matmul(*args, **keywords)


matmul = _Matmul("matmul", f"{_matmul.__doc__}\n\n{_weft.builtin('matmul').__doc__}")


def batched_matmul(
    a: array,
    b: array,
    c: array,
    d: array,
    alpha: float = 1.0,
    beta: float = 0.0,
    allow_tf32x3_arith: bool = False,
    device: Any = None,
) -> None:
    """``wp.matmul`` for each of a batch: ``d[i] = alpha * (a[i] @ b[i]) + beta * c[i]``.

    Args:
        a: shape (batch, m, k).
        b: shape (batch, k, n).
        c, d: shape (batch, m, n).
        alpha, beta, allow_tf32x3_arith, device: as for matmul, and so are dtypes, strides and overlaps.
    Raises:
        UsageError: as for matmul, of arrays of three dimensions.

    A tape carries gradients to a, b and c.
    """
    _multiply("batched_matmul()", a, b, c, d, alpha, beta, allow_tf32x3_arith, device, "*")


def _adjoint(
    api: str, arrays: dict[str, Any], alpha: Any, beta: Any, allow_tf32x3_arith: Any, device: Any, batch: str
) -> None:
    alpha, beta = _number(api, "alpha", alpha), _number(api, "beta", beta)
    shapes = {"a": "mk", "b": "kn", "c": "mn", "adj_a": "mk", "adj_b": "kn", "adj_c": "mn", "adj_d": "mn"}
    _check(api, arrays, 2 + len(batch), {name: batch + letters for name, letters in shapes.items()}, device)
    a, b, adj_a, adj_b, adj_c, adj_d = (arrays[name] for name in ("a", "b", "adj_a", "adj_b", "adj_c", "adj_d"))
    turned = (0, 2, 1) if batch else (1, 0)
    _run(api, adj_d, b.transpose(turned), adj_a, adj_a, alpha, 1.0, allow_tf32x3_arith)
    _run(api, a.transpose(turned), adj_d, adj_b, adj_b, alpha, 1.0, allow_tf32x3_arith)
    adj_c += beta * adj_d


def adj_matmul(
    a: array,
    b: array,
    c: array,
    adj_a: array,
    adj_b: array,
    adj_c: array,
    adj_d: array,
    alpha: float = 1.0,
    beta: float = 0.0,
    allow_tf32x3_arith: bool = False,
    device: Any = None,
) -> None:
    """The adjoint of ``wp.matmul``: adds to each gradient the contribution of ``adj_d``, the gradient of the result.

    ``adj_a += alpha * adj_d @ b.T``, ``adj_b += alpha * a.T @ adj_d``, ``adj_c += beta * adj_d``.

    Args:
        a, b, c: as for matmul.
        adj_a, adj_b, adj_c: of the shapes of a, b and c; added to.
        adj_d: of the shape of the result.
    Raises:
        UsageError: as for matmul.
    """
    arrays = {"a": a, "b": b, "c": c, "adj_a": adj_a, "adj_b": adj_b, "adj_c": adj_c, "adj_d": adj_d}
    _adjoint("adj_matmul()", arrays, alpha, beta, allow_tf32x3_arith, device, "")


def adj_batched_matmul(
    a: array,
    b: array,
    c: array,
    adj_a: array,
    adj_b: array,
    adj_c: array,
    adj_d: array,
    alpha: float = 1.0,
    beta: float = 0.0,
    allow_tf32x3_arith: bool = False,
    device: Any = None,
) -> None:
    """The adjoint of :func:`batched_matmul`: :func:`adj_matmul` for each of a batch.

    Args:
        a, b, c: as for batched_matmul.
        adj_a, adj_b, adj_c: of the shapes of a, b and c; added to.
        adj_d: shape (batch, m, n).
        alpha, beta, allow_tf32x3_arith, device: as for batched_matmul.
    Raises:
        UsageError: as for batched_matmul.
    """
    arrays = {"a": a, "b": b, "c": c, "adj_a": adj_a, "adj_b": adj_b, "adj_c": adj_c, "adj_d": adj_d}
    _adjoint("adj_batched_matmul()", arrays, alpha, beta, allow_tf32x3_arith, device, "*")


def product(a: Any, b: Any) -> Any:
    """``a @ b`` of two arrays: a new array, which requires a gradient. With a NumPy array the result is one."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.asarray(a) @ np.asarray(b)
    if not isinstance(a, array) or not isinstance(b, array):
        return NotImplemented
    _check("a @ b", {"a": a, "b": b}, 2, {"a": "mk", "b": "kn"}, None)
    result = _weft.empty((a.shape[0], b.shape[1]), a.dtype, device=a.device, requires_grad=True)
    _run("a @ b", a, b, None, result, 1.0, 0.0)
    return result
