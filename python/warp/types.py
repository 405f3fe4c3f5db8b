"""The types of values: making vector and matrix types, asking types about themselves, NumPy's names for them.

Scalar types and the named vector types (``float64``, ``vec3``, ``mat33d``, ...) are found here as well as in ``warp``.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

import warp._weft as _weft
from warp._kernels.tiles import tile
from warp._weft import array, matrix, named_type, quaternion, transformation, type_name, vector
from warp._weft import named_types as type_names

__all__ = [
    "array",
    "dtype_from_numpy",
    "dtype_to_numpy",
    "is_array",
    "is_composite",
    "is_float",
    "is_int",
    "is_matrix",
    "is_quaternion",
    "is_scalar",
    "is_struct",
    "is_tile",
    "is_transformation",
    "is_value",
    "is_vector",
    "matrix",
    "named_type",
    "quaternion",
    "transformation",
    "type_components",
    "type_ctype",
    "type_is_array",
    "type_is_composite",
    "type_is_float",
    "type_is_int",
    "type_is_matrix",
    "type_is_quaternion",
    "type_is_scalar",
    "type_is_struct",
    "type_is_tile",
    "type_is_transformation",
    "type_is_value",
    "type_is_vector",
    "type_length",
    "type_name",
    "type_names",
    "type_repr",
    "type_scalar_type",
    "type_size",
    "type_size_in_bytes",
    "types_equal",
    "vector",
]


# The meaning of each of these annotations, by _weft.type_info()["scalar_kind"].
_CLASSES = {"Int": ["int"], "Float": ["float"], "Scalar": ["int", "float", "bool"]}


def __getattr__(name: str) -> Any:
    # Int, Float, Scalar: annotations for any type of such numbers.
    if name in _CLASSES:
        kinds = _CLASSES[name]
        choices = [t for kind in kinds for t in _weft.scalar_types() if _info(t)["scalar_kind"] == kind]
        value = TypeVar(name, *choices)
    else:
        value = named_type(name)
    if value is None:
        raise AttributeError(f"module 'warp.types' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_CLASSES, *type_names()})


def _facts(dtype: Any) -> dict[str, Any] | None:
    """Facts about a type of numbers; None if ``dtype`` is none: a value, a struct, anything else."""
    return _weft.type_info(dtype) if isinstance(dtype, type) else None


def _info(dtype: Any) -> dict[str, Any]:
    info = _weft.type_info(dtype)
    if info is None:
        raise _weft.UsageError(f"types: expected a type such as float, wp.float64 or wp.vec3, got {dtype!r}")
    return info


def _is_kind(dtype: Any, kind: str) -> bool:
    info = _facts(dtype)
    return info is not None and info["kind"] == kind


def _is_number(dtype: Any) -> bool:
    """Whether ``dtype`` is one number: a scalar type, or bool."""
    return _is_kind(dtype, "scalar")


def type_is_value(t: Any) -> bool:
    """Whether ``t`` is a type of numbers: scalar, bool, vector, matrix, quaternion or transform."""
    return _facts(t) is not None


def type_is_scalar(t: Any) -> bool:
    """Whether ``t`` is an integer or floating-point type; ``bool`` is none."""
    return type_is_int(t) or type_is_float(t)


def type_is_float(t: Any) -> bool:
    """Whether ``t`` is a floating-point scalar type."""
    return _is_number(t) and _info(t)["scalar_kind"] == "float"


def type_is_int(t: Any) -> bool:
    """Whether ``t`` is an integer scalar type; ``bool`` is none."""
    return _is_number(t) and _info(t)["scalar_kind"] == "int"


def type_is_vector(t: Any) -> bool:
    """Whether ``t`` is a vector type."""
    return _is_kind(t, "vector")


def type_is_matrix(t: Any) -> bool:
    """Whether ``t`` is a matrix type."""
    return _is_kind(t, "matrix")


def type_is_quaternion(t: Any) -> bool:
    """Whether ``t`` is a quaternion type."""
    return _is_kind(t, "quaternion")


def type_is_transformation(t: Any) -> bool:
    """Whether ``t`` is a transform type."""
    return _is_kind(t, "transform")


def type_is_composite(t: Any) -> bool:
    """Whether ``t`` has components: a vector, matrix, quaternion or transform type."""
    return type_is_value(t) and not _is_number(t)


def type_is_struct(t: Any) -> bool:
    """Whether ``t`` is a class made by ``@wp.struct``."""
    return isinstance(t, type) and _weft.is_struct(t) and not _is_indexed(t)


def type_is_array(t: Any) -> bool:
    """Whether ``t`` is a class of arrays: ``wp.array``, ``wp.indexedarray``, ``wp.fixedarray``, or one derived."""
    if getattr(t, "__name__", "") == "fixedarray" and t.__module__ == "warp._arrays.arrays":
        return True
    return isinstance(t, type) and (issubclass(t, array) or _is_indexed(t))


def type_is_tile(t: Any) -> bool:
    """Whether ``t`` is the class of tile types: ``wp.tile``, or one derived."""
    return isinstance(t, type) and issubclass(t, tile)


def _is_indexed(dtype: Any) -> bool:
    return getattr(dtype, "__module__", None) == "warp._arrays.indexed"


def is_array(x: Any) -> bool:
    """Whether ``x`` is an array, an indexed array or the annotation of one."""
    if isinstance(x, type):
        return _is_indexed(x) and hasattr(x, "_over")
    return isinstance(x, array) or _is_indexed(type(x))


def is_struct(x: Any) -> bool:
    """Whether ``x`` is an instance of a struct."""
    return type_is_struct(type(x))


def is_tile(t: Any) -> bool:
    """Whether ``t`` is a tile type: ``wp.tile[float, 4]``."""
    return isinstance(t, tile)


def is_int(x: Any) -> bool:
    """Whether ``x`` is an integer: Python's, NumPy's or a typed scalar such as ``wp.uint8(1)``; a bool is none."""
    return type_is_int(type(x))


def is_float(x: Any) -> bool:
    """Whether ``x`` is a floating-point number: Python's, NumPy's or a typed scalar such as ``wp.float64(1.0)``."""
    return type_is_float(type(x))


def is_scalar(x: Any) -> bool:
    """Whether ``x`` is one number: Python's, NumPy's or a typed scalar such as ``wp.uint8(1)``; a bool is none."""
    return type_is_scalar(type(x))


def is_vector(x: Any) -> bool:
    """Whether ``x`` is a vector."""
    return type_is_vector(type(x))


def is_matrix(x: Any) -> bool:
    """Whether ``x`` is a matrix."""
    return type_is_matrix(type(x))


def is_quaternion(x: Any) -> bool:
    """Whether ``x`` is a quaternion."""
    return type_is_quaternion(type(x))


def is_transformation(x: Any) -> bool:
    """Whether ``x`` is a transform."""
    return type_is_transformation(type(x))


def is_composite(x: Any) -> bool:
    """Whether ``x`` is a vector, matrix, quaternion or transform."""
    return type_is_composite(type(x))


def is_value(x: Any) -> bool:
    """Whether ``x`` is a number, bool, vector, matrix, quaternion or transform, which kernels take as it is."""
    return type_is_value(type(x)) or isinstance(x, int)


def type_repr(t: Any) -> str:
    """A type in words: ``"vec3f"``, ``"array(ndim=1, dtype=float32)"``, ``"vector(length=7, dtype=float32)"``.

    Args:
        t: a type of values, the annotation of an array or of a tile, an array, or any other object.
    """
    if isinstance(t, array):
        extent = f"ndim={t.ndim}" if _weft.is_annotation(t) else f"shape={t.shape}"
        return f"array({extent}, dtype={type_repr(t.dtype)})"
    if isinstance(t, tile):
        return f"tile(shape={t.shape}, dtype={type_repr(t.dtype)})"
    if t in (float, int, bool):
        return t.__name__
    if _facts(t) is not None:
        return type_name(t)
    if t is None or t is Any:
        return "None" if t is None else "Any"
    return f"{t.__module__}.{t.__qualname__}" if isinstance(t, type) else str(t)


def types_equal(a: Any, b: Any) -> bool:
    """Whether two types are one: in other spellings, as ``float`` and ``wp.float32``; arrays and tiles by the type of
    their elements; sequences of types entry by entry."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(types_equal, a, b))
    for annotation in (array, tile):
        if isinstance(a, annotation) and isinstance(b, annotation):
            return types_equal(a.dtype, b.dtype)
    first, second = _facts(a), _facts(b)
    if first is not None and second is not None:
        return type_name(a) == type_name(b)
    return a is b or (not isinstance(a, array) and not isinstance(b, array) and bool(a == b))


def type_ctype(dtype: Any) -> Any:
    """The ctypes type of a value in memory: of several numbers an array of them, of floats of 8 and 16 bits the bits.

    Raises:
        UsageError: ``dtype`` is no type of numbers.
    """
    info = _info(dtype)
    scalar = info["scalar"]._type_
    return scalar if info["kind"] == "scalar" else scalar * info["components"]


def type_scalar_type(dtype: Any) -> Any:
    """The type of the components: ``wp.float32`` of ``wp.vec3``; of a scalar type, itself."""
    return _info(dtype)["scalar"]


def _with_scalar(dtype: Any, scalar: Any) -> Any:
    """The type of numbers like ``dtype`` whose components are of the type ``scalar``."""
    info = _info(dtype)
    if info["kind"] == "scalar":
        return scalar
    if info["kind"] == "vector":
        return vector(info["components"], scalar)
    if info["kind"] == "matrix":
        return matrix(dtype._shape_, scalar)
    return quaternion(scalar) if info["kind"] == "quaternion" else transformation(scalar)


def type_components(dtype: Any) -> int:
    """The number of components: 9 of ``wp.mat33``, 1 of a scalar type."""
    return _info(dtype)["components"]


def type_length(dtype: Any) -> int:
    """The same as :func:`type_components`."""
    return _info(dtype)["components"]


def type_size(dtype: Any) -> int:
    """The same as :func:`type_components`; in bytes it is :func:`type_size_in_bytes`."""
    return _info(dtype)["components"]


def type_size_in_bytes(dtype: Any) -> int:
    """Bytes of one value in an array, a struct's too."""
    return _weft.type_size_bytes(dtype)


def dtype_to_numpy(warp_dtype: Any) -> Any:
    """NumPy's scalar class of a scalar type, or of the components of a vector or matrix type; of a float that NumPy has
    not, that of its bits: ``numpy.uint16`` for bfloat16, ``numpy.uint8`` for the floats of 8 bits.

    Raises:
        UsageError: ``warp_dtype`` is no type of numbers.
    """
    info = _weft.type_info(warp_dtype)
    if info is None:
        raise _weft.usage_error(f"dtype_to_numpy(): NumPy has no type for {warp_dtype!r}", TypeError)
    return np.dtype(info["numpy"] or type_name(info["bits"])).type


def dtype_from_numpy(numpy_dtype: Any) -> Any:
    """Weft's scalar type for a NumPy dtype or scalar class.

    Raises:
        UsageError: it is no dtype, or Weft has no such type (complex128, object, foreign byte order ...).
    """
    is_numpy = isinstance(numpy_dtype, np.dtype) or (
        isinstance(numpy_dtype, type) and issubclass(numpy_dtype, np.generic)
    )
    found = np.dtype(numpy_dtype) if is_numpy or getattr(numpy_dtype, "__module__", None) == "ml_dtypes" else None
    info = _weft.type_info(found) if found is not None and found.isnative else None
    if info is None:
        raise _weft.usage_error(f"dtype_from_numpy(): there is no Weft type for {numpy_dtype!r}", TypeError)
    return info["scalar"]
