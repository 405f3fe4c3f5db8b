"""The kernels of main.cpp."""

from typing import Any

import warp as wp


@wp.struct
class Wind:
    direction: wp.vec3
    strength: float
    gusts: wp.array(dtype=float)


@wp.func
def drag(v: wp.vec3, wind: Wind, i: int):
    return (wind.direction * wind.strength - v) * wind.gusts[i % wind.gusts.shape[0]]


@wp.kernel
def step(dt: float, wind: Wind, x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    v[i] += drag(v[i], wind, i) * dt
    x[i] += v[i] * dt


@wp.kernel
def roots(x: wp.array(dtype=float)):
    i = wp.tid()
    if x[i] < 0.0:
        raise ValueError(f"{x[i]} has no root")
    x[i] = wp.sqrt(x[i])


@wp.kernel
def shifted(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float), missing: wp.array(dtype=int)):
    i, j = wp.tid()
    y[i, j] = x[i, j] + float(10 * i + j)
    if missing:
        y[i, j] = -1.0


@wp.kernel
def scalars(
    a: wp.int8, b: wp.uint64, c: bool, d: wp.float64, e: wp.float16, q: wp.quat, out: wp.array(dtype=wp.float64)
):
    out[0] = wp.float64(a)
    out[1] = wp.float64(b)
    out[2] = wp.float64(1.0) if c else wp.float64(0.0)
    out[3] = d
    out[4] = wp.float64(e)
    out[5] = wp.float64(q[3])


@wp.kernel
def total(x: wp.array(dtype=Any), out: wp.array(dtype=Any)):
    wp.atomic_add(out, 0, x[wp.tid()])


wp.overload(total, [wp.array(dtype=wp.int64), wp.array(dtype=wp.int64)])


@wp.kernel
def ends(a: wp.array(dtype=wp.uint8), out: wp.array(dtype=wp.int64)):
    part = a[10:]
    out[0] = wp.int64(a.shape[0])
    out[1] = wp.int64(part.shape[0])
    out[2] = wp.int64(a[-1])
    out[3] = wp.int64(part[-2])
    out[4] = wp.int64(a[::-1].shape[0])
    n = len(a)
    for i in range(n - 2, n):
        out[5] += wp.int64(a[i])


@wp.kernel
def short_extent(out: wp.array(dtype=int), a: wp.array(dtype=wp.uint8)):
    out[0] = a.shape[0]


@wp.kernel
def talk(n: int):
    print(n + 1)
