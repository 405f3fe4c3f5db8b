"""API-1.19, section 3: arrays."""

from typing import Literal

import numpy as np
import warp as wp
from probing import differs, floats


def floats_without_dtype():
    return wp.array([1.0, 2.0])


def ints_without_dtype():
    return wp.array([1, 2])


def bools_without_dtype():
    return wp.array([True])


def vectors_without_dtype():
    return wp.array([wp.vec3(1.0, 2.0, 3.0)])


def nothing_without_dtype():
    return wp.array([])


def rows_of_numpy_are_vectors():
    a = wp.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
    return a.shape, a.dtype


def view_of_vectors_as_floats():
    return wp.zeros(2, dtype=wp.vec4).view(float).shape


def view_of_rows_as_vectors():
    return wp.zeros((2, 4), dtype=float).view(wp.vec4).shape


def view_of_another_size():
    return wp.zeros(2, dtype=float).view(wp.float64)


def equality_is_identity():
    a, b = floats(1.0), floats(1.0)
    return a == b, a == a, a != b, a in [b, a], [b, a].index(a), len({a: 1, b: 2})


def full_wraps_ints():
    return wp.full(2, -1, dtype=wp.uint8)


def full_of_bool():
    return wp.full(2, 42, dtype=wp.bool)


def full_infers_its_type():
    return [wp.full(1, value).dtype for value in (1, 1.5, True, wp.float64(2.0), (1.0, 2.0))]


def ones_of_quaternions():
    return wp.ones(1, dtype=wp.quat).numpy().tolist()


def lone_number_as_data():
    return wp.array(3.0, dtype=float)


def listed_values():
    return wp.array([(1.0, 2.0, 3.0)], dtype=wp.vec3).list()


def array_of_memory_kind():
    return floats(1.0).memory_kind.name


def annotation_has_members():
    kind = wp.array(dtype=float)
    return kind.shape, kind.ndim, kind.dtype


def annotations_in_brackets():
    return wp.array[float, Literal[2]] == wp.array2d[float], wp.array[float] == wp.array[wp.float32]


def text_of_an_annotation():
    return repr(wp.array[float])


def strides_of_zeros():
    return wp.zeros((2, 3), dtype=float, strides=(16, 4)).strides


def truth_of_one_element():
    return bool(floats(0.0)), bool(floats(2.0))


@differs("tuple(0, 0)")
def empty_data_of_two_dimensions():
    return wp.array([], dtype=float, ndim=2).shape


def indexed_array():
    a = wp.indexedarray1d(floats(1.0, 2.0, 3.0), [wp.array([2, 0], dtype=int)])
    return a.shape, a.numpy(), a.is_contiguous


def negative_size():
    return wp.zeros(-1)


def five_dimensions():
    return wp.zeros((1, 1, 1, 1, 1))
