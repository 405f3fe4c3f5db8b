"""The kernels of gradients.cpp."""

import warp as wp


@wp.struct
class Load:
    strength: wp.float64
    where: wp.array(dtype=wp.float64)


@wp.kernel
def weighted(a: wp.array(dtype=wp.float64), x: wp.array(dtype=wp.float64), loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(loss, 0, a[i] * x[i] * x[i])


@wp.kernel
def weighted_by_the_last(a: wp.array(dtype=wp.uint8), x: wp.array(dtype=wp.float64), loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    share = wp.float64(wp.int64(a.shape[0]) - wp.int64(2147483648))
    wp.atomic_add(loss, 0, wp.float64(a[-1]) * share * x[i] * x[i])


@wp.kernel
def advance(dt: wp.float64, v: wp.array(dtype=wp.float64), x: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x[i] = x[i] + wp.cos(x[i]) * v[i] * dt


@wp.kernel
def push(dt: wp.float64, x: wp.array(dtype=wp.float64), v: wp.array(dtype=wp.float64)):
    i = wp.tid()
    v[i] = v[i] - wp.sin(x[i]) * (wp.float64(1.0) + x[(i + 1) % x.shape[0]]) * dt


@wp.kernel
def energy(x: wp.array(dtype=wp.float64), v: wp.array(dtype=wp.float64), loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.float64(0.5) * v[i] * v[i] - wp.cos(x[i]))


@wp.kernel
def scaled(x: wp.array(dtype=float), factor: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = factor * x[i]


@wp.kernel
def loaded(load: Load, x: wp.array(dtype=wp.float64), out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    out[i] = load.strength * load.where[i] * x[i]


@wp.kernel(enable_backward=False)
def silent(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel
def drawn(counter: wp.array(dtype=int), x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * float(wp.atomic_add(counter, 0, 1))


@wp.kernel
def collected(counter: wp.array(dtype=int), x: wp.array(dtype=wp.float64), out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    for k in range(i % 3):
        out[wp.atomic_add(counter, 0, 1)] = x[i] * x[i] * wp.float64(k + 1)


@wp.struct
class State:
    x: wp.array(dtype=wp.float64)
    v: wp.array(dtype=wp.float64)


@wp.kernel
def move(dt: wp.float64, state: State):
    i = wp.tid()
    state.v[i] = state.v[i] - wp.sin(state.x[i]) * state.x[i] * dt
    state.x[i] = state.x[i] + wp.cos(state.x[i]) * state.v[i] * dt


@wp.kernel
def all_loads(loads: wp.array(dtype=Load), x: wp.array(dtype=wp.float64), out: wp.array(dtype=float)):
    i = wp.tid()
    total = wp.float64(0.0)
    for k in range(loads.shape[0]):
        total += loads[k].strength * loads[k].where[i] * x[i]
    out[i] = float(total)


@wp.kernel
def soften(loads: wp.array(dtype=Load)):
    i = wp.tid()
    loads[0].where[i] = wp.float64(0.5) * loads[0].where[i]
