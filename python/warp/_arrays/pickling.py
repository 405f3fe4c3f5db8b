"""Copies of arrays and of objects made of arrays, for ``copy``, ``pickle`` and programs of several processes.

A pickled array, a view too, holds its elements without gaps and the numbers of its gradient. It comes back on the
device that it was on.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import warp._weft as _weft
from warp._weft import array, usage_error

__all__ = [
    "deep_copy",
    "from_ipc_handle",
    "ipc_handle",
    "reduce",
    "reduce_bvh",
    "reduce_hash_grid",
    "reduce_mesh",
    "reduce_volume",
    "restore_annotation",
    "restore_array",
    "restore_hash_grid",
    "restore_indexed",
    "restore_mesh",
    "restore_volume",
]


# ---- elements ----


def _holds_arrays(dtype: Any) -> bool:
    """Whether elements are structs that point to other arrays."""
    fields = _weft.empty(0, dtype=dtype, device="cpu").vars.values()
    return any(isinstance(field, array) or _holds_arrays(field) for field in fields)


def _bits(one: array) -> array:
    """The array, as integers if NumPy has no numbers of its type."""
    info = _weft.type_info(one.dtype)
    return one if info is None or info["bits"] is None else one.view(info["bits"])


def _bytes(one: array) -> np.ndarray:
    """The bytes of the elements in C order, in memory of their own."""
    numbers = np.ascontiguousarray(_bits(one.contiguous()).numpy())
    return np.array(numbers.reshape(-1)).view(np.uint8)


def _write(one: array, data: np.ndarray) -> None:
    """The inverse of ``_bytes``."""
    if not one.size:
        return
    target = _weft.empty(one.shape, one.dtype, device="cpu")
    numbers = _bits(target).numpy()
    numbers[...] = np.asarray(data).view(numbers.dtype).reshape(numbers.shape)
    _weft.copy(one, target)


def _structs(one: array) -> list:
    """The elements as instances. Arrays that several of them show in the same way are one object."""
    known: dict[tuple, array] = {}

    def share(value: Any) -> None:
        for name in _weft.field_names(value):
            field = getattr(value, name)
            if isinstance(field, array):
                place = (field.ptr, field.shape, field.strides, field.dtype)
                setattr(value, name, known.setdefault(place, field))
            elif field is not None:
                share(field)

    elements = one.list()
    for element in elements:
        share(element)
    return elements


# ---- arrays ----


def _options(one: array) -> dict[str, Any]:
    return {"pinned": one.pinned, "requires_grad": one.requires_grad, "retain_grad": one.retain_grad}


def _empty(shape: tuple, dtype: Any, device: Any, pinned: bool, requires_grad: bool, retain_grad: bool) -> array:
    made = _weft.empty(shape, dtype, device=device, pinned=pinned, requires_grad=requires_grad)
    made.retain_grad = retain_grad
    return made


def deep_copy(one: array, memo: dict) -> array:
    """``copy.deepcopy``: a packed array on the same device, with a gradient of the same numbers."""
    made = _empty(one.shape, one.dtype, one.device, **_options(one))
    memo[id(one)] = made
    if one.vars and _holds_arrays(one.dtype):
        elements = array(copy.deepcopy(_structs(one), memo), dtype=one.dtype, device=one.device)
        _weft.copy(made, elements.reshape(made.shape))
    else:
        _weft.copy(made, one)
    if one.requires_grad:
        _weft.copy(made.grad, one.grad)
    made.__dict__.update(copy.deepcopy(one.__dict__, memo))
    return made


def reduce(one: array) -> tuple:
    """``pickle``: a function and its arguments, and the attributes that the program has set on the array."""
    if _weft.is_annotation(one):
        return restore_annotation, (one.dtype, one.ndim), one.__dict__ or None
    dtype: Any = one.dtype
    if one.vars:
        data: Any = _structs(one) if _holds_arrays(dtype) else _bytes(one)
    else:
        data, dtype = _bytes(one), _weft.ir_name(dtype)
    gradient = _bytes(one.grad) if one.requires_grad else None
    if gradient is not None and not gradient.any():
        gradient = None
    arguments = (type(one), dtype, one.shape, data, gradient, str(one.device), _options(one))
    return restore_array, arguments, one.__dict__ or None


def restore_annotation(dtype: Any, ndim: int) -> array:
    return array[dtype, Any if ndim == 0 else ndim]


def _device(name: str) -> Any:
    try:
        return _weft.get_device(name)
    except Exception as error:
        raise usage_error(
            f"unpickling: the array was on {name!r}, which is not here. help: pickle array.to('cpu')", RuntimeError
        ) from error


def restore_array(kind: type, dtype: Any, shape: tuple, data: Any, gradient: Any, device: str, options: dict) -> array:
    if isinstance(dtype, str):
        dtype = _weft.type_of_ir_name(dtype)
    made = _empty(shape, dtype, _device(device), **options)
    if isinstance(data, list):
        if data:
            _weft.copy(made, array(data, dtype=dtype, device=made.device).reshape(shape))
    else:
        _write(made, data)
    if gradient is not None:
        _write(made.grad, gradient)
    return made if kind is array else kind(made, dtype=dtype, device=made.device, copy=False)


# ---- memory that processes share ----


def ipc_handle(one: array) -> bytes:
    """``array.ipc_handle()``."""
    _require_ipc("array.ipc_handle()", one.device)
    return _weft.ipc_handle_of(one)


def from_ipc_handle(
    handle: bytes, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...] | None = None, device: Any = None
) -> array:
    """An array in memory of a CUDA device that another process has made, by its ``array.ipc_handle()``.

    Both processes see the same memory. The program orders their work: ``wp.synchronize()``, then a message. The memory
    is the other process's, which must keep its array as long as this one is used.

    Args:
        handle: the result of ``ipc_handle()``, 64 bytes.
        dtype: of the elements.
        shape: of the array, which begins with the memory.
        strides: in bytes; without gaps if None.
        device: where the memory lies; the default device if None.
    Raises:
        UsageError: the device is the CPU, or its driver shares no memory (a RuntimeError); the handle is none of 64
            bytes, or of memory of this process, or of no memory (a ValueError or RuntimeError); the array would be
            larger than the memory (a ValueError).
    """
    api = "from_ipc_handle()"
    where = _weft.get_device(device)
    _require_ipc(api, where)
    if not isinstance(handle, (bytes, bytearray, memoryview)) or len(handle) != 64:
        found = f"{len(handle)} bytes" if isinstance(handle, (bytes, bytearray, memoryview)) else repr(handle)
        raise usage_error(f"{api}: handle is {found}, expected the 64 bytes that array.ipc_handle() gave", ValueError)
    address, size = _weft.open_ipc_handle(bytes(handle), where)
    try:
        made = array(
            ptr=address,
            dtype=dtype,
            shape=shape,
            strides=strides,
            device=where,
            capacity=size,
            deleter=lambda address, size: _weft.close_ipc_handle(address, where),
        )
    except Exception:
        _weft.close_ipc_handle(address, where)
        raise
    return made


def _require_ipc(api: str, device: Any) -> None:
    if device.is_cpu:
        raise usage_error(
            f"{api}: handles are for memory of CUDA devices, and this is {str(device)!r}. help: pickle the array, as"
            " multiprocessing does, or show one piece of memory in both processes:"
            " wp.array(np.frombuffer(multiprocessing.shared_memory.SharedMemory(...).buf, ...), copy=False)",
            RuntimeError,
        )
    if not device.is_ipc_supported:
        raise usage_error(
            f"{api}: the driver of {str(device)!r} does not share memory between processes (device.is_ipc_supported is"
            " False). help: pickle the array, which copies it",
            RuntimeError,
        )


# ---- objects made of arrays ----


def restore_indexed(data: array, indices: list) -> Any:
    from warp._arrays.indexed import _class

    return _class(data.dtype, data.ndim)._over(data, indices)


def _reduce_indexed(self: Any) -> tuple:
    return restore_indexed, (self.data, self.indices)


def _copy_indexed(self: Any) -> Any:
    return restore_indexed(self.data, self.indices)


def _deep_copy_indexed(self: Any, memo: dict) -> Any:
    return restore_indexed(copy.deepcopy(self.data, memo), [copy.deepcopy(part, memo) for part in self.indices])


OF_INDEXED = {"__reduce__": _reduce_indexed, "__copy__": _copy_indexed, "__deepcopy__": _deep_copy_indexed}


def restore_mesh(kind: type, arguments: dict) -> Any:
    return kind(**arguments)


def reduce_mesh(self: Any) -> tuple:
    arguments = {name: getattr(self, name) for name in ("points", "indices", "velocities", "groups")}
    arguments["support_winding_number"] = self.support_winding_number
    return restore_mesh, (type(self), arguments), self.__dict__ or None


def reduce_bvh(self: Any) -> tuple:
    return restore_mesh, (type(self), {name: getattr(self, name) for name in ("lowers", "uppers", "groups")})


def reduce_volume(self: Any) -> tuple:
    return restore_volume, (type(self), self.array())


def restore_volume(kind: type, data: array) -> Any:
    return kind(data)


def reduce_hash_grid(self: Any) -> tuple:
    """The cell of each point, which is all that queries read of a grid."""
    dims = (self.dim_x, self.dim_y, self.dim_z)
    return restore_hash_grid, (dims, self.dtype, str(self.device), self._cells())


def restore_hash_grid(dims: tuple, dtype: Any, device: str, cells: tuple | None) -> Any:
    grid = _weft.HashGrid(*dims, device=_device(device), dtype=dtype)
    if cells is None:
        return grid
    inverse_width, of_points, groups = cells
    # Points in the middle of these cells, which are the same modulo the extents of the grid.
    places = np.stack([of_points % dims[0], of_points // dims[0] % dims[1], of_points // (dims[0] * dims[1])], axis=-1)
    places = np.where(places * 2 > dims, places - np.array(dims), places) + 0.5
    width = next(w for w in _near(1.0 / inverse_width) if 1.0 / w == inverse_width)
    points = array(places * width, dtype=_weft.vector(3, dtype), device=grid.device)
    grid.build(points, width, None if groups is None else array(groups, dtype=_weft.named_type("int32"), device=device))
    if not np.array_equal(grid._cells()[1], of_points):
        raise usage_error("unpickling: the cells of the hash grid are too small for numbers of its type", RuntimeError)
    return grid


def _near(number: float) -> Any:
    """The number, and those beside it: 1 / (1 / x) may be off by one place."""
    yield number
    yield np.nextafter(number, 0.0)
    yield np.nextafter(number, np.inf)
    yield number  # as near as it gets
