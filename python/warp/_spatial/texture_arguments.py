"""Arguments of textures, and the texels of their levels."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

import warp._weft as _weft
from warp._devices.enums import TextureAddressMode
from warp._weft import array, named_type, usage_error

__all__ = [
    "AXES",
    "address_modes",
    "channel_count",
    "checked_data",
    "integer",
    "level_count",
    "no_texels",
    "texel_format",
    "texels_of",
]

_FORMATS = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "float16", "float32")
AXES = ("width", "height", "depth")  # the last axis of data first


# ---- arguments ----


def enum_value(kind: type, given: Any, api: str, name: str) -> int:
    try:
        return int(kind(operator.index(given)))
    except (TypeError, ValueError):
        values = ", ".join(f"{value.name} ({int(value)})" for value in kind)
        raise usage_error(
            f"{api}: {name} is {given!r}, expected one of wp.{kind.__name__}: {values}", ValueError
        ) from None


def address_modes(dims: int, given: Any, own: list[Any], api: str) -> list[int]:
    """The mode of each axis, of `address_mode` and the arguments of single axes."""
    if isinstance(given, (tuple, list)):
        if len(given) != dims:
            raise usage_error(
                f"{api}: address_mode has {len(given)} modes, expected one, or {dims}: for u, v, w in this order",
                ValueError,
            )
        modes = list(given)
    else:
        modes = [given] * dims
    for axis, mode in enumerate(own):
        if mode is not None:
            modes[axis] = mode
    names = [f"address_mode_{'uvw'[axis]}" if own[axis] is not None else "address_mode" for axis in range(dims)]
    return [enum_value(TextureAddressMode, mode, api, name) for mode, name in zip(modes, names, strict=True)]


def texel_format(dtype: Any, api: str) -> Any:
    """The class of a texel's numbers; the error says which there are."""
    try:
        name = _weft.type_name(dtype)
    except Exception:
        name = repr(dtype)
    if name not in _FORMATS:
        raise usage_error(
            f"{api}: texels are {name}, expected {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}", ValueError
        )
    return named_type(name)


def channel_count(count: int, api: str) -> int:
    if count not in (1, 2, 4):
        help_ = ". help: add a fourth channel" if count == 3 else ""
        raise usage_error(f"{api}: a texture has 1, 2 or 4 channels, not {count}{help_}", ValueError)
    return count


def integer(given: Any, api: str, name: str) -> int:
    try:
        return operator.index(given)
    except TypeError:
        raise usage_error(f"{api}: {name} is {given!r}, expected an int", TypeError) from None


def checked_data(data: Any, dims: int, api: str) -> tuple[Any, Any, tuple[int, ...], int]:
    """Data as an array of NumPy or Weft, with its format, extents (width first) and number of channels."""
    expected = "(" + ", ".join(AXES[:dims][::-1]) + ("," if dims == 1 else "") + ")"
    if not isinstance(data, (np.ndarray, array)):
        raise usage_error(
            f"{api}: data is {type(data).__name__}, expected an array of NumPy or Weft of shape {expected}, and a last "
            "axis of 1, 2 or 4 channels if there are several",
            TypeError,
        )
    if isinstance(data, array) and (info := _weft.type_info(data.dtype)) is not None and info["kind"] != "scalar":
        raise usage_error(
            f"{api}: data is an array of {_weft.type_name(data.dtype)}, expected an array of numbers with a last axis "
            "of channels",
            TypeError,
        )
    dtype = texel_format(data.dtype, api)
    if data.ndim not in (dims, dims + 1):
        raise usage_error(
            f"{api}: data has the shape {tuple(data.shape)}, expected {expected} or one axis more, of channels",
            ValueError,
        )
    channels = channel_count(data.shape[dims], api) if data.ndim > dims else 1
    extents = tuple(int(extent) for extent in data.shape[:dims][::-1])
    if 0 in extents:
        raise usage_error(f"{api}: data has the shape {tuple(data.shape)}, expected no extent of 0", ValueError)
    return data, dtype, extents, channels


# ---- levels ----


def _next_level(level: np.ndarray, dims: int) -> np.ndarray:
    """Means of two texels along each axis; an odd last one is dropped, and an axis of one stays."""
    total = level.astype(np.float64)
    count = 1
    for axis in range(dims):
        if level.shape[axis] == 1:
            continue
        half = level.shape[axis] // 2
        pairs = [slice(None)] * total.ndim
        pairs[axis] = slice(0, 2 * half, 2)
        odd = list(pairs)
        odd[axis] = slice(1, 2 * half, 2)
        total = total[tuple(pairs)] + total[tuple(odd)]
        count *= 2
    mean = total / count
    return (np.floor(mean + 0.5) if level.dtype.kind in "iu" else mean).astype(level.dtype)


def _most_levels(extents: tuple[int, ...]) -> int:
    return max(extents).bit_length()


def level_count(given: Any, extents: tuple[int, ...], has_data: bool, api: str) -> int:
    count, most = integer(given, api, "num_mip_levels"), _most_levels(extents)
    if count < 0 or count > most:
        raise usage_error(
            f"{api}: num_mip_levels is {count}, expected 0 (all) to {most} for a largest extent of {max(extents)}",
            ValueError,
        )
    if count != 1 and not has_data:
        raise usage_error(f"{api}: levels are made from data, and there is none. help: num_mip_levels=1", ValueError)
    return count or most


def _padded(count: int, itemsize: int) -> int:
    """As many numbers as whole words of 4 bytes hold, which kernels read."""
    return -(-count * itemsize // 4) * 4 // itemsize


def no_texels(count: int, dtype: Any, device: Any) -> array:
    """Room for so many numbers."""
    return _weft.zeros(_padded(count, _weft.type_size_bytes(dtype)), dtype=dtype, device=device)


def texels_of(data: Any, dtype: Any, extents: tuple[int, ...], channels: int, levels: int, device: Any) -> array:
    """The texels of all levels, one after the other, in memory of their own."""
    shape = (*extents[::-1], channels)
    if levels == 1 and isinstance(data, array):
        texels = no_texels(math.prod(shape), dtype, device)
        _weft.copy(texels[: math.prod(shape)].reshape(data.shape), data)
        return texels
    level = np.asarray(data.numpy() if isinstance(data, array) else data)
    level = np.ascontiguousarray(level, dtype=level.dtype.newbyteorder("=")).reshape(shape)
    parts = [level.reshape(-1)]
    for _ in range(levels - 1):
        level = _next_level(level, len(extents))
        parts.append(level.reshape(-1))
    count = sum(part.size for part in parts)
    parts.append(np.zeros(_padded(count, level.itemsize) - count, level.dtype))
    return array(np.concatenate(parts), dtype=dtype, device=device)
