"""Structs that several files of tests use."""

import numpy as np
import warp as wp


@wp.struct
class Inner:
    weight: wp.float64
    axis: wp.vec3


@wp.struct
class Body:
    flag: bool
    count: int
    mass: float
    velocity: wp.vec3
    frame: wp.mat22d
    inner: Inner
    small: wp.int8


@wp.struct
class Arguments:
    param1: int
    param2: float
    param3: wp.array(dtype=wp.vec3)


@wp.struct
class Spellings:
    a: wp.array[float]
    b: wp.array(dtype=wp.vec3, ndim=2)
    c: wp.array2d[int]
    d: "wp.array3d(dtype=wp.float64)"
    e: np.float16
    f: "Inner"
    g: wp.array(dtype=Inner)


@wp.struct
class Nothing:
    pass


@wp.func
def through(nothing: Nothing, x: float) -> Nothing:
    if x > 1.0:
        return Nothing()
    return nothing
