"""wp.indexedarray: some elements of an array, chosen by lists of indices along its axes, without copying them.

For kernels it is a struct of the array and of one array of indices for each axis (src/sema/infer/indexed.cpp):
``x[i, j]`` is ``data[indices0[i], indices1[j]]``.
"""

from __future__ import annotations

import operator
from typing import Any, Literal, TypeVar, get_args, get_origin

import numpy as np
import warp._weft as _weft
from warp._arrays.arrays import indexed_view_of
from warp._arrays.pickling import OF_INDEXED
from warp._weft import array, primitives, type_name, usage_error

__all__ = ["from_key", "indexedarray", "indexedarray1d", "indexedarray2d", "indexedarray3d", "indexedarray4d"]

_API = "indexedarray()"
_MOST_DIMS = 4


# ---- indices ----


def _indices(given: Any, size: int, axis: int, device: Any) -> array:
    """An int32 array of indices in [0, size), on a device; the given one if it is such an array already."""
    if given is None:
        return array(np.arange(size, dtype=np.int32), device=device)
    if isinstance(given, array) and given.device.is_capturing:
        return _indices_of_graph(given, size, axis, device)
    numbers = given.numpy() if isinstance(given, array) else np.asarray(given)
    if numbers.ndim != 1:
        raise usage_error(
            f"{_API}: the indices of axis {axis} must have one dimension, got the shape {numbers.shape}", IndexError
        )
    if numbers.dtype == bool:
        if len(numbers) != size:
            raise usage_error(
                f"{_API}: the mask of axis {axis} has {len(numbers)} elements, and the axis {size}", IndexError
            )
        return array(np.flatnonzero(numbers).astype(np.int32), device=device)
    if len(numbers) == 0:
        numbers = numbers.astype(np.int32)
    if numbers.dtype.kind not in "iu":
        raise usage_error(
            f"{_API}: the indices of axis {axis} must be integers or bools, got {numbers.dtype}", TypeError
        )
    wrong = (numbers < -size) | (numbers >= size)
    if wrong.any():
        raise usage_error(
            f"{_API}: index {numbers[wrong][0]} is out of range: axis {axis} has {size} elements", IndexError
        )
    is_negative = numbers.dtype.kind == "i" and bool((numbers < 0).any())
    is_int32 = isinstance(given, array) and given.dtype is _weft.named_type("int32")
    if is_int32 and not is_negative and given.device == device:
        return given
    return array(np.where(numbers < 0, numbers + size, numbers).astype(np.int32), device=device)


def _indices_of_graph(given: array, size: int, axis: int, device: Any) -> array:
    """Indices that are there when the graph runs that is being captured: it checks them then."""
    from warp._arrays.copy_kernels import check_indices
    from warp._gradients.jacobians import Unrecorded

    if given.ndim != 1:
        raise usage_error(
            f"{_API}: the indices of axis {axis} must have one dimension, got the shape {given.shape}", IndexError
        )
    info = _weft.type_info(given.dtype)
    if info is None or info["kind"] != "scalar" or info["scalar_kind"] != "int":
        raise usage_error(
            f"{_API}: a graph is being captured, and the indices of axis {axis} are an array of "
            f"{type_name(given.dtype)}; expected integers. help: of a mask make the indexedarray before the capture",
            TypeError,
        )
    with Unrecorded():
        found = _weft.empty(given.size, _weft.named_type("int32"), device=given.device)
        _weft.launch(check_indices, given.size, [given, size], [found], device=given.device)
        return found.to(device)


# ---- arithmetic ----

_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul")
_OTHERS = ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "invert", "float", "int")


def _of_elements(name: str) -> Any:
    """The operator of that name, as the array of the chosen elements has it."""

    def method(self: Any, *others: Any) -> Any:
        operands = [other.contiguous() if isinstance(other, indexedarray) else other for other in others]
        return getattr(self.contiguous(), name)(*operands)

    method.__name__ = name
    return method


# Operators make arrays of the chosen elements; `a[[0, 2]] += 1` then assigns them to a[[0, 2]].
_OPERATORS = {
    name: _of_elements(name) for name in [f"__{n}__" for n in (*_BINARY, *_OTHERS)] + [f"__r{n}__" for n in _BINARY]
}


# ---- the class of each dtype and number of dimensions ----


class _Members:
    """The members of all these classes, beside the fields ``data`` and ``indices0``, ``indices1`` ..."""

    @property
    def indices(self) -> list[array]:
        """The indices along each axis, int32."""
        return [getattr(self, f"indices{axis}") for axis in range(self.ndim)]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of indices along each axis."""
        return tuple(part.size for part in self.indices)

    @property
    def ndim(self) -> int:
        """Number of dimensions, without those of an element."""
        return self.data.ndim

    @property
    def is_contiguous(self) -> bool:
        """False: the indices scatter the elements."""
        return False

    def to(self, device: Any) -> Any:
        """Itself if it is on that device, else the chosen elements as an array there."""
        wanted = _weft.get_device(device)
        return self if wanted == self.device else self.contiguous().to(wanted)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))

    @property
    def dtype(self) -> Any:
        """Type of an element."""
        return self.data.dtype

    @property
    def device(self) -> Any:
        """The Device of the array."""
        return self.data.device

    @property
    def vars(self) -> dict[str, Any]:
        """Types of the fields by name if the elements are structs; else empty."""
        return self.data.vars

    def __ctype__(self) -> Any:
        """The arrays as a ctypes structure: ``data`` (as ``array.__ctype__()``), ``indices`` (addresses), ``shape``."""
        return indexed_view_of(self)

    def _raw(self) -> tuple[np.ndarray, tuple]:
        """The array for NumPy and the index that chooses the elements. Types that NumPy lacks are bit patterns."""
        data = self.data
        info = _weft.type_info(data.dtype)
        if info is not None and info["bits"] is not None:
            data = data.view(info["bits"])
        return data.numpy(), np.ix_(*[part.numpy() for part in self.indices])

    def _by_kernels(self) -> bool:
        """Whether kernels move the elements: if a tape records, a graph is captured, or NumPy sees no memory."""
        device = self.device
        return _weft.active_tape() is not None or not _weft.is_host_memory(device) or device.is_capturing

    def contiguous(self) -> array:
        """The chosen elements as an array of their own."""
        result = _weft.empty(self.shape, self.dtype, device=self.device, requires_grad=self.data.requires_grad)
        if result.size and self._by_kernels():
            from warp._arrays.copy_kernels import gathers

            _weft.launch(gathers[self.ndim - 1], self.shape, [self], [result], device=self.device)
        elif result.size:
            values, chosen = self._raw()
            raw = result
            if values.dtype != object and _weft.type_info(self.dtype) is not None:
                info = _weft.type_info(self.dtype)
                raw = result if info["bits"] is None else result.view(info["bits"])
            raw.numpy()[...] = values[chosen]
        return result

    def numpy(self) -> np.ndarray:
        """The chosen elements as a NumPy array: a copy."""
        return self.contiguous().numpy()

    def list(self) -> list:
        """The chosen elements in C order."""
        return self.contiguous().list()

    def assign(self, src: Any) -> Any:
        """Writes an array of this shape (or one that broadcasts to it), of any device, or one element everywhere.
        Returns itself."""
        value = src
        if type(self).is_same(value):
            value = value.contiguous()
        if not isinstance(value, (array, np.ndarray, list)):
            value = _weft.full(1, value, self.dtype, device=self.device)
        elif isinstance(value, array) and value.requires_grad and value.dtype is not self.dtype:
            value = value.astype(self.dtype)
        elif not isinstance(value, array) or value.dtype is not self.dtype:
            value = array(value, dtype=self.dtype, device=self.device)
        if value.device != self.device:
            value = value.to(self.device)
        if self.size == 0:
            return self
        if self._by_kernels():
            _scatter(self, value)
            return self
        values, chosen = self._raw()
        info = _weft.type_info(self.dtype)
        if info is not None and info["bits"] is not None:
            value = value.view(info["bits"])
        try:
            # A copy first: the value may lie in the array that is written.
            values[chosen] = np.array(value.numpy())
        except ValueError as error:
            raise usage_error(
                f"array[]: cannot store an array of shape {value.shape} in elements of shape {self.shape}", ValueError
            ) from error
        _weft.count_write(self.data)
        return self

    def fill_(self, value: Any) -> Any:
        """Sets every chosen element to a value. Returns itself."""
        return self.assign(_weft.full(1, value, self.dtype, device=self.device))

    def zero_(self) -> Any:
        """Sets every chosen element to zero. Returns itself."""
        return self.assign(_weft.zeros(1, self.dtype, device=self.device))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        key = key if isinstance(key, tuple) else (key,)
        if len(key) == self.ndim and all(hasattr(item, "__index__") and not isinstance(item, array) for item in key):
            if self.device.is_capturing:
                raise usage_error(
                    "array[]: a graph is being captured, and its launches have not run. help: look at arrays "
                    "after wp.capture_launch()",
                    RuntimeError,
                )
            at = []
            for item, part in zip(key, self.indices, strict=True):
                at.append(int(part.numpy()[operator.index(item)]))
            return self.data[tuple(at)]
        return _narrowed(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        key = key if isinstance(key, tuple) else (key,)
        if len(key) == self.ndim and all(hasattr(item, "__index__") and not isinstance(item, array) for item in key):
            if self.device.is_capturing:
                _narrowed(self, tuple([operator.index(item)] for item in key)).fill_(value)
                return
            at = tuple(int(part.numpy()[operator.index(item)]) for item, part in zip(key, self.indices, strict=True))
            self.data[at] = value
        else:
            _narrowed(self, key).assign(value)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        values = self.numpy()
        return values if dtype is None else values.astype(dtype)

    def __repr__(self) -> str:
        return repr(self.contiguous()).replace("warp.array(", "warp.indexedarray(", 1)

    def __str__(self) -> str:
        return str(self.contiguous())


def _scatter(to: Any, value: array) -> None:
    """``to.assign(value)`` by kernels, which a tape records and a graph captures."""
    from warp._arrays.copy_kernels import find_last, scatters
    from warp._gradients.jacobians import Unrecorded

    if any(extent not in (1, wanted) for extent, wanted in zip(value.shape[::-1], to.shape[::-1], strict=False)) or (
        value.ndim > to.ndim
    ):
        raise usage_error(
            f"array[]: cannot store an array of shape {value.shape} in elements of shape {to.shape}", ValueError
        )
    if primitives.overlap(value, to.data):
        value = _weft.clone(value)
    value = primitives.broadcast(value, to.shape)
    chosen = []
    with Unrecorded():
        for part, extent in zip(to.indices, to.data.shape, strict=True):
            last = _weft.zeros(extent, _weft.named_type("int32"), device=to.device)
            _weft.launch(find_last, part.size, [part], [last], device=to.device)
            chosen += [part, last]
    _weft.launch(scatters[to.ndim - 1], to.shape, [value, *chosen], [to], device=to.device)


def _narrowed(source: Any, key: tuple) -> Any:
    """Slices and lists of an indexedarray's own positions: another one, over the same array."""
    from warp._gradients.jacobians import Unrecorded

    if len(key) > source.ndim:
        raise usage_error(f"array[]: {len(key)} indices for an indexedarray of {source.ndim} dimensions", IndexError)
    indices = list(source.indices)
    for axis, item in enumerate(key):
        if isinstance(item, slice):
            indices[axis] = indices[axis][item].contiguous()
        elif isinstance(item, (array, np.ndarray, list)):
            chosen = _indices(item, indices[axis].size, axis, source.device)
            with Unrecorded():
                indices[axis] = _class(chosen.dtype, 1)._over(indices[axis], [chosen]).contiguous()
        else:
            raise usage_error(
                f"array[]: an index of an indexedarray is {item!r}; expected an integer for each dimension, or slices "
                "and arrays of integers",
                TypeError,
            )
    return _class(source.dtype, source.ndim)._over(source.data, indices)


_classes: dict[tuple[Any, int], Any] = {}


def _class(dtype: Any, ndim: int) -> Any:
    """The struct that kernels see: made once for each type of elements and number of dimensions."""
    dtype = array(dtype=dtype).dtype  # one class for all spellings: float, wp.float32
    made = _classes.get((dtype, ndim))
    if made is None:
        members = {name: value for name, value in vars(_Members).items() if name not in ("__dict__", "__weakref__")}
        members.pop("__module__", None)
        members.update(_OPERATORS, **OF_INDEXED, __hash__=object.__hash__)

        def over(cls, data, indices):
            return cls(data=data, **{f"indices{axis}": part for axis, part in enumerate(indices)})

        members["_over"] = classmethod(over)
        members["is_same"] = staticmethod(lambda value: isinstance(value, indexedarray))
        name = f"indexedarray{'' if ndim == 1 else f'{ndim}d'}_{type_name(dtype)}"
        name = "".join(letter if letter.isalnum() else "_" for letter in name)
        index = array(dtype=int)
        fields = [("data", array(dtype=dtype, ndim=ndim)), *[(f"indices{axis}", index) for axis in range(ndim)]]
        made = _weft.make_struct(name, "warp._arrays.indexed", name, fields, members, {})
        _classes[dtype, ndim] = made
    return made


class _Maker(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return type(value) in _classes.values()

    def __getitem__(cls, item: Any) -> Any:
        dtype, ndim = item if isinstance(item, tuple) else (item, 1)
        if get_origin(ndim) is Literal:
            (ndim,) = get_args(ndim)
        return cls(dtype=dtype, ndim=0 if ndim is Any else ndim)


class indexedarray(_Members, metaclass=_Maker):
    """Some elements of an array, chosen by indices along its axes, without copying them.

    Kernels take it as a parameter annotated with ``wp.indexedarray[float]`` (or ``wp.indexedarray(dtype=float,
    ndim=2)``). They read and write ``x[i, j]``, with an index for each dimension, and read ``x.shape``. The same
    element may be chosen several times.

    Args:
        data: the array.
        indices: for each axis a one-dimensional array of integers (negative ones count from the end), a mask of bools,
            or None for all of the axis; axes that are not mentioned are taken whole. The result has as many elements
            along an axis as there are indices: they are not paired between axes. An int32 array is kept and not copied.
        dtype, ndim: without data, those of the annotation of a kernel's parameter: ``typing.Any`` is any dtype, 0 any
            number of dimensions. With data, its dtype and number of dimensions must be these.
    Raises:
        UsageError: an index is out of range, or an argument has the wrong type.
    """

    def __new__(cls, data: Any = None, indices: Any = None, dtype: Any = None, ndim: int | None = None) -> Any:
        if data is None:
            if dtype is None:
                raise usage_error(f"{_API}: expected data and indices, or dtype for an annotation", TypeError)
            ndim = 1 if ndim is None else operator.index(ndim)
            if not 0 <= ndim <= _MOST_DIMS:
                raise usage_error(f"{_API}: arrays have 1 to 4 dimensions, got ndim={ndim}", ValueError)
            if ndim == 0 or dtype is Any or isinstance(dtype, (TypeVar, _weft.ValuePattern)):
                return _weft.indexed_pattern(dtype, ndim)
            return _class(dtype, ndim)
        if not isinstance(data, array):
            raise usage_error(f"{_API}: 'data' must be a warp.array, got {type(data).__name__}", TypeError)
        if dtype is not None and array(dtype=dtype).dtype is not data.dtype:
            raise usage_error(f"{_API}: 'data' is an array of {type_name(data.dtype)}, and dtype={dtype!r}", TypeError)
        if ndim is not None and ndim != data.ndim:
            raise usage_error(f"{_API}: 'data' has {data.ndim} dimensions, and ndim={ndim}", ValueError)
        if isinstance(indices, (array, np.ndarray)) or (
            isinstance(indices, list) and indices and all(isinstance(item, int) for item in indices)
        ):
            indices = [indices]
        if not isinstance(indices, (list, tuple)):
            raise usage_error(
                f"{_API}: 'indices' must be a list with an array or None for each axis, got {indices!r}", TypeError
            )
        if len(indices) > data.ndim:
            raise usage_error(
                f"{_API}: there are indices for {len(indices)} axes, and the shape {data.shape} has {data.ndim}",
                IndexError,
            )
        indices = [*indices, *[None] * (data.ndim - len(indices))]
        parts = [_indices(part, data.shape[axis], axis, data.device) for axis, part in enumerate(indices)]
        return _class(data.dtype, data.ndim)._over(data, parts)


def indexedarray1d(data: Any = None, indices: Any = None, dtype: Any = None) -> Any:
    """:class:`indexedarray` of one dimension, or its annotation."""
    return indexedarray(data, indices, dtype, 1)


def indexedarray2d(data: Any = None, indices: Any = None, dtype: Any = None) -> Any:
    """:class:`indexedarray` of two dimensions, or its annotation."""
    return indexedarray(data, indices, dtype, 2)


def indexedarray3d(data: Any = None, indices: Any = None, dtype: Any = None) -> Any:
    """:class:`indexedarray` of three dimensions, or its annotation."""
    return indexedarray(data, indices, dtype, 3)


def indexedarray4d(data: Any = None, indices: Any = None, dtype: Any = None) -> Any:
    """:class:`indexedarray` of four dimensions, or its annotation."""
    return indexedarray(data, indices, dtype, 4)


def copy_into(dest: Any, src: array, dest_offset: int, src_offset: int, count: int) -> None:
    """``wp.copy()`` to an indexedarray: all of it, or a part if both have one dimension."""
    if dest_offset == src_offset == count == 0 and dest.shape == src.shape:
        dest.assign(src)
        return
    if dest.ndim != 1 or src.ndim != 1:
        raise usage_error(
            f"copy(): a part of an indexedarray of shape {dest.shape} cannot be copied, or an array of another shape, "
            f"{src.shape}",
            ValueError,
        )
    count = count or src.size - src_offset
    for name, size, offset in (("destination", dest.size, dest_offset), ("source", src.size, src_offset)):
        if offset < 0 or count < 0 or offset + count > size:
            raise usage_error(
                f"copy(): the {name} has {size} elements, of which {count} from {offset} on are asked for", ValueError
            )
    dest[dest_offset : dest_offset + count].assign(src[src_offset : src_offset + count])


def from_key(source: array, key: Any) -> Any:
    """``a[key]`` for a key with arrays of integers: the view that the rest of the key gives, then the indices."""
    key = key if isinstance(key, tuple) else (key,)
    is_indices = [isinstance(item, (array, np.ndarray, list)) for item in key]
    plain = tuple(slice(None) if chosen else item for item, chosen in zip(key, is_indices, strict=True))
    view = source[plain]
    axes = [item for item in plain if item is Ellipsis or item is None or isinstance(item, slice)]
    if Ellipsis in axes:
        at = axes.index(Ellipsis)
        axes[at : at + 1] = [Ellipsis] * (view.ndim - len(axes) + 1)
    lists = iter([item for item, chosen in zip(key, is_indices, strict=True) if chosen])
    positions = []
    axis = 0
    for item, chosen in zip(key, is_indices, strict=True):
        if chosen:
            positions.append(axis)
        if item is Ellipsis:
            axis += axes.count(Ellipsis)
        elif chosen or item is None or isinstance(item, slice):
            axis += 1
    indices: list[Any] = [None] * view.ndim
    for position in positions:
        indices[position] = next(lists)
    return indexedarray(view, indices)
