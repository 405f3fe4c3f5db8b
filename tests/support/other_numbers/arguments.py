"""The arguments of a launch: the arrays in them, the numbers in those, and copies of the memory that they share."""

import functools

import numpy as np
import warp as wp


class NotComparable(Exception):
    """The numbers mean nothing to the kernel, or its arguments are none that are copied here."""


def fields_of(struct):
    return [(name, getattr(struct, name)) for name in wp._weft.field_names(struct)]


def is_struct(value):
    return isinstance(value, wp._weft.StructValue)


def arrays_in(value):
    """All arrays of an argument, in order."""
    if isinstance(value, (list, tuple)):
        return [array for one in value for array in arrays_in(one)]
    if isinstance(value, wp.array):
        return [value]
    return [array for _, field in fields_of(value) for array in arrays_in(field)] if is_struct(value) else []


def has_integers(value):
    """Whether an argument is an integer, or has one, outside of arrays."""
    if isinstance(value, (list, tuple)):
        return any(map(has_integers, value))
    return any(has_integers(field) for _, field in fields_of(value)) if is_struct(value) else type(value) is int


def rebuilt(value, array_of, number_of):
    """The argument with other arrays and numbers in place of its own."""
    if isinstance(value, (list, tuple)):
        return type(value)(rebuilt(one, array_of, number_of) for one in value)
    if isinstance(value, wp.array):
        return array_of(value)
    if is_struct(value):
        made = type(value)()
        for name, field in fields_of(value):
            setattr(made, name, rebuilt(field, array_of, number_of))
        return made
    return number_of(value)


def extent(array):
    """The first address, and the one behind the last."""
    first = last = array.ptr or 0
    if array.size == 0:
        return first, first
    for n, stride in zip(array.shape, array.strides, strict=True):
        first, last = (first + (n - 1) * stride, last) if stride < 0 else (first, last + (n - 1) * stride)
    return first, last + wp.types.type_size_in_bytes(array.dtype)


def has_arrays(dtype):
    """Whether elements contain arrays."""
    if not isinstance(dtype, type) or not issubclass(dtype, wp._weft.StructValue):
        return False
    return any(
        field is None or isinstance(field, wp.array) or has_arrays(type(field)) for _, field in fields_of(dtype())
    )


@functools.cache
def layout(dtype):
    """[(byte, NumPy's type, shape)] of the numbers in one element."""
    if has_arrays(dtype):
        raise NotComparable
    try:
        probe = wp.zeros(1, dtype=dtype, device="cpu")
        if dtype in (wp.bfloat16, wp.float8_e4m3fn, wp.float8_e5m2):
            raise NotComparable
        found = probe.numpy()
    except (RuntimeError, TypeError, AttributeError) as problem:
        raise NotComparable from problem
    return tuple(numbers_of(found.dtype, found.shape[1:], 0))


def numbers_of(dtype, shape, byte):
    if dtype.subdtype:
        yield from numbers_of(dtype.subdtype[0], (*shape, *dtype.subdtype[1]), byte)
    elif dtype.fields:
        for kind, offset in ((field[0], field[1]) for field in dtype.fields.values()):
            if shape:
                raise NotComparable
            yield from numbers_of(kind, (), byte + offset)
    elif dtype.kind in "fiub":
        yield byte, dtype, shape
    else:
        raise NotComparable


def places(array):
    """Where its elements lie: arrays with the same places are one array."""
    return array.ptr or id(array), array.shape, array.strides, array.dtype


def is_in_rows(array):
    """Whether its elements lie one after the other; the stride of a single row counts too."""
    row = wp.types.type_size_in_bytes(array.dtype) * int(np.prod(array.shape[1:]))
    return array.is_contiguous and array.strides[0] == row


def inner_steps(dtype, shape):
    """The bytes from one number of an element to the next, in each dimension."""
    return [dtype.itemsize * int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]


class Region:
    """Memory that arguments share."""

    def __init__(self, keys, first, last):
        self.keys, self.first, self.last = keys, first, last

    @property
    def size(self):
        return self.last - self.first

    def contents(self, device):
        if not self.size or not self.first:
            return np.zeros(self.size, np.uint8)
        return wp.array(ptr=self.first, shape=self.size, dtype=wp.uint8, device=device).numpy().copy()


class Memory:
    """A copy of a region on a device, as far behind a multiple of 256 as the region is, between edges of a pattern."""

    EDGE = 0xA5

    def __init__(self, contents, device, start):
        whole = np.full(contents.size + 512, self.EDGE, np.uint8)
        self.bytes = wp.zeros(whole.size, dtype=wp.uint8, device=device)
        first = (start - self.bytes.ptr) % 256
        self.inside = slice(first, first + contents.size)
        whole[self.inside] = contents
        self.bytes.assign(whole)
        self.ptr = self.bytes.ptr + first

    def read(self):
        """(the copy, whether its edges are as they were)"""
        whole = self.bytes.numpy()
        return whole[self.inside].copy(), bool((np.delete(whole, self.inside) == self.EDGE).all())
