"""Brute force in double precision (spatial_oracle.cpp), on all cores."""

import ctypes
import functools
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]


@functools.cache
def library(name):
    """A library that is built with the C++ tests."""
    return ctypes.CDLL(str(ROOT / os.environ.get("BUILD", "build") / f"lib{name}.so"))


def _as_argument(value):
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        return ctypes.c_void_p(value.ctypes.data)
    return ctypes.c_double(value) if isinstance(value, float) else value


def in_blocks(count, call, block=256):
    """call(begin, end) for blocks of 0..count, on all cores: ctypes lets other threads run meanwhile."""
    blocks = [(begin, min(begin + block, count)) for begin in range(0, count, block)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda ends: call(*ends), blocks))


def _call(name, *arguments):
    getattr(library("spatial_oracle"), name)(*[None if a is None else _as_argument(a) for a in arguments])


def _double(values):
    return np.ascontiguousarray(values, dtype=np.float64)


def distances(place, corners, answer):
    """Of places (n, 3) from triangles (m, 3, 3): the least, the largest from a corner, and that from the face answer[i]
    (-1 if that is negative), each (n,)."""
    place, corners, answer = _double(place), _double(corners), np.ascontiguousarray(answer, dtype=np.int32)
    n = len(place)
    least, largest, answered = np.zeros(n), np.zeros(n), np.zeros(n)

    def block(a, b):
        _call("oracle_distances", ctypes.c_int64(b - a), place[a:b], ctypes.c_int64(len(corners)), corners,
              answer[a:b], least[a:b], largest[a:b], answered[a:b])  # fmt: skip

    in_blocks(n, block)
    return least, largest, answered


def winding(place, corners):
    """The winding numbers of triangles (m, 3, 3) around places (n, 3)."""
    place, corners = _double(place), _double(corners)
    number = np.zeros(len(place))
    in_blocks(
        len(place),
        lambda a, b: _call(
            "oracle_winding", ctypes.c_int64(b - a), place[a:b], ctypes.c_int64(len(corners)), corners, number[a:b]
        ),
    )
    return number


class Rays:
    """The first triangles of rays; spatial_oracle.cpp describes the fields."""

    def __init__(self, count):
        self.sure, self.maybe, self.rivals, self.is_met = (np.zeros(count, np.int32) for _ in range(4))
        self.met_by, self.low, self.plane, self.slack = (np.zeros(count) for _ in range(4))


def rays(start, direction, band, limit, corners, answer):
    """Of rays (n, 3) and triangles (m, 3, 3); `band` (n,) and the limit in units of the coordinates."""
    start, direction, band, corners = map(_double, (start, direction, band, corners))
    answer = np.ascontiguousarray(answer, dtype=np.int32)
    r = Rays(len(start))

    def block(a, b):
        _call("oracle_rays", ctypes.c_int64(b - a), start[a:b], direction[a:b], band[a:b], float(limit),
              ctypes.c_int64(len(corners)), corners, answer[a:b], r.sure[a:b], r.maybe[a:b], r.met_by[a:b],
              r.rivals[a:b], r.is_met[a:b], r.low[a:b], r.plane[a:b], r.slack[a:b])  # fmt: skip

    in_blocks(len(start), block)
    return r


def neighbours(place, point, radius, first, given, place_group=None, group=None):
    """Looks at the numbers given[first[i]:first[i + 1]] that a query gave for each place: the errors (bits: 1 one
    is missing, 2 one came twice, 4 one is no point or of another group), and how many are within the radius."""
    place, point = _double(place), _double(point)
    first, given = np.ascontiguousarray(first, np.int64), np.ascontiguousarray(given, np.int32)
    wrong, inside = np.zeros(len(place), np.int32), np.zeros(len(place), np.int32)
    if group is not None:
        place_group, group = (np.ascontiguousarray(x, np.int32) for x in (place_group, group))

    def block(a, b):
        groups = (None, None) if group is None else (place_group[a:b], group)
        _call("oracle_neighbours", ctypes.c_int64(b - a), place[a:b], groups[0], ctypes.c_int64(len(point)), point,
              groups[1], float(radius), first[a : b + 1], given, wrong[a:b], inside[a:b])  # fmt: skip

    in_blocks(len(place), block)
    return wrong, inside
