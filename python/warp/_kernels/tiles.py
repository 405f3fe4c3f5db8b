"""The types of tiles and of their stacks: annotations of functions' parameters and results.

In kernels ``wp.tile(x)`` and ``wp.tile_stack(...)`` are builtins: the attribute ``_weft_builtin_`` of the classes is
their name. The compiler reads ``_weft_tile_`` of instances. Queries by a block are made in
kernels only; their classes are names for them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin

from warp._weft import UsageError, array
from warp._weft import usage_error as _usage_error

__all__ = ["BvhQueryTiled", "MeshQueryAABBTiled", "tile", "tile_stack"]


def _element_type(api: str, dtype: Any) -> Any:
    """One object for all spellings of a type; open types, such as ``typing.Any`` and ``wp.Float``, stay as they are."""
    try:
        return array(dtype=dtype).dtype
    except UsageError as error:
        message = str(error).partition("dtype ")[2] or f"has no elements of {dtype!r}"
        raise _usage_error(f"{api}: dtype {message}", TypeError) from None


def _type_text(dtype: Any) -> str:
    """A type as in the annotation of an array of it."""
    return repr(array(dtype=dtype)).partition("[")[2].removesuffix("]")


def _count(api: str, what: str, value: Any) -> int:
    """A positive int."""
    if get_origin(value) is Literal:
        (value,) = get_args(value) if len(get_args(value)) == 1 else (value,)
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise _usage_error(f"{api}: {what} is {value!r}, expected an int from 1 on", TypeError)
    if number < 1:
        raise _usage_error(f"{api}: {what} is {number}, expected an int from 1 on", ValueError)
    return number


def _extents(api: str, shape: Any) -> tuple[int, ...]:
    items = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if not items:
        raise _usage_error(f"{api}: shape has no extents, expected at least one", ValueError)
    return tuple(_count(api, f"extent {axis} of shape", item) for axis, item in enumerate(items))


class tile:
    """A tile type: the annotation of a parameter or result of a ``@wp.func``. In kernels ``wp.tile(x)`` makes a tile.

    ``wp.tile[float, 4]``, ``wp.tile[float, 4, 8]``, ``wp.tile[float, (4, 8)]`` and
    ``wp.tile(dtype=float, shape=(4, 8))`` have a shape; ``wp.tile[float]`` fits tiles of any shape. Types of one
    element type and one shape are equal: their storage is not compared.

    Args:
        dtype: type of the elements; ``typing.Any`` for any.
        shape: an int, or a tuple of ints; ``typing.Any`` for any shape.
        storage: ``"register"`` or ``"shared"``.
        layout: ``"rowmajor"`` or ``"colmajor"``.
        strides: distances of elements along each axis; by default those of the layout.
        owner: whether the tile has memory of its own.
    Raises:
        UsageError (also a TypeError or ValueError): ``dtype`` is no type, an extent is no positive int, or another
            argument is none of the above.
    """

    __module__ = "warp"
    _weft_builtin_ = "tile"

    def __init__(
        self,
        dtype: Any,
        shape: Any,
        storage: str = "register",
        layout: str = "rowmajor",
        strides: Sequence[int] | None = None,
        owner: bool = True,
    ):
        self.dtype = _element_type("tile()", dtype)
        self.shape = Any if shape is Any else _extents("tile()", shape)
        for name, value, known in (
            ("storage", storage, ("register", "shared")),
            ("layout", layout, ("rowmajor", "colmajor")),
        ):
            if value not in known:
                message = f"tile(): {name} is {value!r}, expected {known[0]!r} or {known[1]!r}"
                raise _usage_error(message, ValueError)
        self.storage, self.layout, self.owner = storage, layout, owner
        self.strides = self._default_strides() if strides is None else strides

    def __class_getitem__(cls, parameters: Any) -> tile:
        dtype, *extents = parameters if isinstance(parameters, tuple) else (parameters,)
        if len(extents) == 1 and isinstance(extents[0], (tuple, list)):
            extents = list(extents[0])
        return cls(dtype, tuple(extents) if extents else Any)

    def _default_strides(self) -> list[int] | None:
        if self.shape is Any:
            return None
        order = self.shape if self.layout == "rowmajor" else self.shape[::-1]
        strides = [math.prod(order[axis + 1 :]) for axis in range(len(order))]
        return strides if self.layout == "rowmajor" else strides[::-1]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._known_shape("ndim"))

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._known_shape("size"))

    def _known_shape(self, asked: str) -> tuple[int, ...]:
        if self.shape is Any:
            raise _usage_error(f"{self!r}.{asked}: the type fits tiles of any shape", AttributeError)
        return self.shape

    @property
    def _weft_tile_(self) -> tuple[Any, tuple[int, ...] | None]:
        """The element type, and the shape or None."""
        return self.dtype, None if self.shape is Any else self.shape

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, tile) and self._weft_tile_ == other._weft_tile_

    def __hash__(self) -> int:
        return hash((tile, self._weft_tile_))

    def __repr__(self) -> str:
        extents = () if self.shape is Any else self.shape
        return f"wp.tile[{', '.join([_type_text(self.dtype), *map(str, extents)])}]"


class tile_stack:
    """The type of a stack that the lanes of a block share. In kernels ``wp.tile_stack(...)`` makes such a stack.

    Args:
        dtype: type of the elements.
        capacity: the most elements at a time.
    Raises:
        UsageError (also a TypeError or ValueError): ``dtype`` is no type, or ``capacity`` no positive int.
    """

    __module__ = "warp"
    _weft_builtin_ = "tile_stack"

    def __init__(self, dtype: Any, capacity: int):
        self.dtype = _element_type("tile_stack()", dtype)
        self.capacity = _count("tile_stack()", "capacity", capacity)

    @property
    def _weft_tile_stack_(self) -> tuple[Any, int]:
        """The element type and the capacity."""
        return self.dtype, self.capacity

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, tile_stack) and self._weft_tile_stack_ == other._weft_tile_stack_

    def __hash__(self) -> int:
        return hash((tile_stack, self._weft_tile_stack_))

    def __repr__(self) -> str:
        return f"wp.tile_stack(dtype={_type_text(self.dtype)}, capacity={self.capacity})"


class BvhQueryTiled:
    """The query of a BVH by a block: the result of ``wp.tile_bvh_query_aabb()`` and ``wp.tile_bvh_query_ray()``."""

    __module__ = "warp"


class MeshQueryAABBTiled:
    """The query of a mesh by a block: the result of ``wp.tile_mesh_query_aabb()``."""

    __module__ = "warp"
