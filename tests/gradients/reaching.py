"""Kernels that reach arrays in every way: the operations of test_random_reach.py."""

import warp as wp


@wp.struct
class Pair:
    x: wp.array[wp.float64]
    y: wp.array[wp.float64]
    factor: wp.float64


@wp.struct
class Box:
    pairs: wp.array[Pair]
    at: int


@wp.func
def mixed(x: wp.float64, y: wp.float64, factor: wp.float64):
    return wp.sin(x) * y + factor * x * x


@wp.kernel
def mix(x: wp.array[wp.float64], y: wp.array[wp.float64], factor: wp.float64):
    i = wp.tid()
    y[i] = mixed(x[i], y[i], factor)


@wp.kernel
def mix_in_struct(p: Pair):
    i = wp.tid()
    p.y[i] = mixed(p.x[i], p.y[i], p.factor)


@wp.kernel
def mix_in_array(pairs: wp.array[Pair], at: int):
    i = wp.tid()
    p = pairs[at]
    p.y[i] = mixed(p.x[i], p.y[i], p.factor)


@wp.kernel
def mix_in_box(box: Box):
    i = wp.tid()
    box.pairs[box.at].y[i] = mixed(box.pairs[box.at].x[i], box.pairs[box.at].y[i], box.pairs[box.at].factor)


@wp.kernel
def mix_in_boxes(boxes: wp.array2d[Box]):
    i = wp.tid()
    b = boxes[0, 1]
    b.pairs[b.at].y[i] = mixed(b.pairs[b.at].x[i], b.pairs[b.at].y[i], b.pairs[b.at].factor)


@wp.kernel
def from_array_to_argument(pairs: wp.array[Pair], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = mixed(pairs[0].x[i], y[i], pairs[0].factor)


@wp.kernel
def from_argument_to_array(x: wp.array[wp.float64], pairs: wp.array[Pair]):
    i = wp.tid()
    pairs[0].y[i] = mixed(x[i], pairs[0].y[i], pairs[0].factor)


@wp.kernel
def add_in_array(x: wp.array[wp.float64], pairs: wp.array[Pair]):
    i = wp.tid()
    wp.atomic_add(pairs[0].y, (i + 1) % 4, wp.cos(x[i]) * pairs[0].factor)


@wp.kernel
def sweep(x: wp.array[wp.float64], y: wp.array[wp.float64], rounds: int):
    """One thread; if the two overlap, it reads its own writes."""
    s = wp.float64(0.0)
    for r in range(rounds):
        for i in range(x.shape[0]):
            s = wp.float64(0.5) * x[i] + wp.float64(0.25) * s
            y[(i + r) % y.shape[0]] = wp.sin(s) + wp.float64(0.1) * y[i % y.shape[0]]


@wp.func
def crossed(v: wp.array2d[wp.float64], r: int):
    return wp.sin(v[r, 0]) * v[r, 1]


@wp.func_grad(crossed)
def crossed_gradient(v: wp.array2d[wp.float64], r: int, adj: wp.float64):
    wp.adjoint[v][r, 0] += wp.cos(v[r, 0]) * v[r, 1] * adj
    wp.adjoint[v][r, 1] += wp.sin(v[r, 0]) * adj


@wp.func
def crossed_in(box: Pair, i: int):
    return box.factor * box.x[i] * box.x[i]


@wp.func_grad(crossed_in)
def crossed_in_gradient(box: Pair, i: int, adj: wp.float64):
    wp.adjoint[box].x[i] += wp.float64(2.0) * box.factor * box.x[i] * adj


@wp.kernel
def cross(v: wp.array2d[wp.float64], y: wp.array[wp.float64], n: int):
    """The function's derivative sees the array after the launch, which writes another column of it."""
    i = wp.tid()
    c = crossed(v, i % v.shape[0])
    if i < v.shape[0]:
        v[i, 2] = wp.float64(0.5) * c
    wp.atomic_add(y, i % y.shape[0], c / wp.float64(n))


@wp.kernel
def cross_in_struct(p: Pair, y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = crossed_in(p, i) - wp.float64(0.5) * y[i]


# The same by the forms of Python that have no loop, branch or call of their own.


@wp.kernel
def mix_by_functions(p: Pair, pairs: wp.array[Pair], at: int):
    i = wp.tid()
    scale = wp.float64(0.5)

    def read(k, by=pairs[at].factor):
        return mixed(pairs[at].x[k], scale, by)

    def changed(apply, v: wp.float64):
        nonlocal scale
        if v > wp.float64(0.3):
            return scale * v
        scale = v
        return v - apply(i, p.factor)

    s = changed(read, read(i) + wp.float64(0.1) * p.y[i])
    if i % 2 == at:
        s = changed(lambda k, by: by * read((k + 1) % 4), s * scale)
    p.y[i] = wp.sin(s)


@wp.kernel
def mix_what_matches(x: wp.array[wp.float64], p: Pair, y: wp.array[wp.float64], at: int):
    i = wp.tid()
    match at, i % 2:
        case 0, _:
            source = x
        case 1, odd if odd > 0:
            source = p.x
        case _:
            source = x[::-1]
    total = wp.float64(0.0)
    for k, (a, by) in enumerate([(source, p.factor), (p.x[::-1], wp.float64(0.3))], start=1):
        total += wp.float64(k) * by * wp.sin(a[i])
    y[i] = wp.sin(total + [source, p.x][0][(i + at) % 4] * y[i])


@wp.kernel
def sum_in_struct(p: Pair, y: wp.array[wp.float64], at: int):
    i = wp.tid()
    s = sum(wp.sin(v) * w for v, w in zip(p.x, reversed(p.x[at:])) if v > wp.float64(-0.5))
    s += sum([p.x[k] * p.factor for k in range(3) if k != 1])
    if any(v * v > wp.float64(0.4) for v in p.x) and not all(v > wp.float64(0.2) for v in p.x[::2]):
        s *= wp.float64(0.5)
    y[i] = wp.sin(s) - max(v for v in (p.x[i], p.x[0], y[i]))


@wp.kernel
def sum_in_array(pairs: wp.array[Pair], y: wp.array[wp.float64], at: int):
    i = wp.tid()
    y[i] = wp.cos(y[i] * sum(sum(v * p.factor for v in p.x[: i + 1]) for p in pairs[at:]))


@wp.kernel
def spread(x: wp.array[wp.float64], pairs: wp.array[Pair]):
    """One thread; each element goes to several."""
    values, reached = [wp.sin(x[k]) for k in range(4)], [pairs[0], pairs[1]]
    for k, v in enumerate(reversed(values), start=1):
        for m, p in zip(range(k), reversed(reached)):
            if (w := v * p.factor) > wp.float64(0.0):
                p.y[m::2][0] += w
            else:
                p.y[-1 - m] -= (n := w * v) * n


@wp.kernel
def swap_in_rounds(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    a, b = x, y

    def swap():
        nonlocal a, b
        a, b = b, a

    for _ in range(3):
        b[i] = mixed(a[i], b[i], wp.float64(0.2))
        swap()
