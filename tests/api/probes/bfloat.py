"""API-1.19, section 4.3: bfloat16 and NumPy, without the package ml_dtypes."""

import sys

import numpy as np
import warp as wp
from probing import differs

sys.modules["ml_dtypes"] = None  # as if it were not there


def _bits(array):
    return array.numpy()


def numbers_as_bits():
    return _bits(wp.array([1.0, 2.5, -3.0], dtype=wp.bfloat16))


def vectors_as_bits():
    return _bits(wp.full(2, 1.5, dtype=wp.types.vector(3, wp.bfloat16)))


def data_of_uint16_are_bits():
    return _bits(wp.array(np.array([0x3F80, 0x4000], dtype=np.uint16), dtype=wp.bfloat16))


def data_of_other_types_are_numbers():
    return [_bits(wp.array(np.array([1, 2], dtype=kind), dtype=wp.bfloat16)) for kind in (np.float32, np.int32, "f8")]


def from_numpy_of_bits():
    return _bits(wp.from_numpy(np.array([0x3F80, 0x4000], dtype=np.uint16), dtype=wp.bfloat16))


def filled():
    a = wp.zeros(2, dtype=wp.bfloat16)
    a.fill_(2.0)
    return _bits(a)


def assigned_numbers():
    a = wp.zeros(3, dtype=wp.bfloat16)
    a.assign([1.0, 2.0, 3.0])
    b = wp.zeros(3, dtype=wp.bfloat16)
    b.assign(np.array([1.0, 2.0, 3.0], dtype=np.float32))
    return _bits(a), _bits(b)


def assigned_bits():
    a = wp.zeros(3, dtype=wp.bfloat16)
    a.assign(np.array([0x3F80] * 3, dtype=np.uint16))
    return _bits(a)


@differs("raises AttributeError")
def interface():
    return wp.zeros(2, dtype=wp.bfloat16).__array_interface__["typestr"]


def shared_memory():
    a = wp.zeros(2, dtype=wp.bfloat16)
    a.numpy()[1] = 0x3F80
    return [float(x) for x in a.list()]


def fields_of_structs():
    @wp.struct
    class S:
        x: wp.bfloat16
        v: wp.types.vector(2, wp.bfloat16)

    s = S()
    s.x, s.v = 1.5, (2.0, 3.0)
    return _bits(wp.array([s], dtype=S))


def class_in_numpy():
    return wp.dtype_to_numpy(wp.bfloat16).__name__
