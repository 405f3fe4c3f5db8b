"""The types of values: making vector and matrix types, asking types about themselves, NumPy's names for them.

Scalar types and the named vector types (``float64``, ``vec3``, ``mat33d``, ...) are found here as well as in ``warp``.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from warp import _weft
from warp._weft import array, matrix, named_type, quaternion, transformation, type_name, vector
from warp._weft import named_types as type_names

__all__ = [
    "array",
    "dtype_from_numpy",
    "dtype_to_numpy",
    "is_scalar",
    "is_value",
    "matrix",
    "named_type",
    "quaternion",
    "transformation",
    "type_components",
    "type_is_composite",
    "type_is_float",
    "type_is_int",
    "type_is_matrix",
    "type_is_quaternion",
    "type_is_scalar",
    "type_is_struct",
    "type_is_transformation",
    "type_is_value",
    "type_is_vector",
    "type_length",
    "type_name",
    "type_names",
    "type_scalar_type",
    "type_size",
    "type_size_in_bytes",
    "vector",
]


_CLASSES = {
    "Int": ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"],
    "Float": ["float16", "bfloat16", "float32", "float64"],
}
_CLASSES["Scalar"] = [*_CLASSES["Int"], *_CLASSES["Float"], "bool"]


def __getattr__(name: str) -> Any:
    # Int, Float, Scalar: annotations for any type of such numbers.
    if name in _CLASSES:
        value = TypeVar(name, *map(named_type, _CLASSES[name]))
    else:
        value = named_type(name)
    if value is None:
        raise AttributeError(f"module 'warp.types' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_CLASSES, *type_names()})


def type_is_value(dtype: Any) -> bool:
    """Whether ``dtype`` is a type that a kernel's values can have: scalar, vector, matrix ... in any spelling."""
    return _weft.type_info(dtype) is not None


def _info(dtype: Any) -> dict[str, Any]:
    info = _weft.type_info(dtype)
    if info is None:
        raise _weft.UsageError(f"types: expected a type such as float, wp.float64 or wp.vec3, got {dtype!r}")
    return info


def _is_kind(dtype: Any, kind: str) -> bool:
    info = _weft.type_info(dtype)
    return info is not None and info["kind"] == kind


def type_is_scalar(dtype: Any) -> bool:
    """Whether ``dtype`` is a scalar type, ``bool`` included."""
    return _is_kind(dtype, "scalar")


def type_is_float(dtype: Any) -> bool:
    """Whether ``dtype`` is a floating-point scalar type."""
    return type_is_scalar(dtype) and _info(dtype)["scalar_kind"] == "float"


def type_is_int(dtype: Any) -> bool:
    """Whether ``dtype`` is an integer scalar type; ``bool`` is none."""
    return type_is_scalar(dtype) and _info(dtype)["scalar_kind"] == "int"


def type_is_vector(dtype: Any) -> bool:
    """Whether ``dtype`` is a vector type."""
    return _is_kind(dtype, "vector")


def type_is_matrix(dtype: Any) -> bool:
    """Whether ``dtype`` is a matrix type."""
    return _is_kind(dtype, "matrix")


def type_is_quaternion(dtype: Any) -> bool:
    """Whether ``dtype`` is a quaternion type."""
    return _is_kind(dtype, "quaternion")


def type_is_transformation(dtype: Any) -> bool:
    """Whether ``dtype`` is a transform type."""
    return _is_kind(dtype, "transform")


def type_is_composite(dtype: Any) -> bool:
    """Whether ``dtype`` has components: a vector, matrix, quaternion or transform type."""
    info = _weft.type_info(dtype)
    return info is not None and info["kind"] != "scalar"


def type_is_struct(dtype: Any) -> bool:
    """Whether ``dtype`` is a class made by ``@wp.struct``."""
    return _weft.is_struct(dtype)


def is_scalar(value: Any) -> bool:
    """Whether ``value`` is one number: Python's, NumPy's or a typed scalar such as ``wp.float64(1.0)``."""
    return type_is_scalar(type(value))


def is_value(value: Any) -> bool:
    """Whether ``value`` is a number, vector, matrix, quaternion or transform, which kernels take as it is."""
    return type_is_value(type(value))


def type_scalar_type(dtype: Any) -> Any:
    """The type of the components: ``wp.float32`` of ``wp.vec3``; of a scalar type, itself."""
    return _info(dtype)["scalar"]


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


def dtype_to_numpy(dtype: Any) -> np.dtype:
    """NumPy's dtype of a scalar type, or of the components of a vector or matrix type.

    Raises:
        UsageError: NumPy has no such type (bfloat16).
    """
    info = _info(dtype)
    if info["numpy"] is None:
        raise _weft.UsageError(f"dtype_to_numpy(): NumPy has no type for {type_name(dtype)}")
    return np.dtype(info["numpy"])


def dtype_from_numpy(dtype: Any) -> Any:
    """Weft's scalar type for a NumPy dtype or scalar class.

    Raises:
        UsageError: Weft has no such type (complex128, object ...).
    """
    info = _weft.type_info(np.dtype(dtype))
    if info is None:
        raise _weft.UsageError(f"dtype_from_numpy(): there is no Weft type for NumPy's {np.dtype(dtype)}")
    return info["scalar"]
