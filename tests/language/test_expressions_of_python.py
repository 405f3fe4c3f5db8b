"""Lambdas, functions within functions, comprehensions, match and := in kernels: the results of Python itself.

Each program is a plain Python function of a number of the thread and a float64. It is run by Python and, as a @wp.func,
by a kernel; its gradient is compared with differences of what Python computes. `type(x)(k)` makes a float of an integer
in both.
"""

import enum
import math

import numpy as np
import pytest
import warp as wp

N = 37  # no multiple of any lane count
VALUES = np.linspace(-4, 14, N) + 0.0123


class Shape(enum.IntEnum):
    BALL = 0
    BOX = 1
    PLANE = 2


class Names:
    FOUR = 4


LIMIT = wp.constant(5)


def lambdas(i: int, x: wp.float64):
    scale = x * 2.0
    twice = lambda v: v * scale  # noqa: E731
    total = twice(1.0)
    scale = scale + 1.0  # a lambda sees the variable, not its value
    total += twice(x)
    for k in range(i % 5):
        scale = scale * 0.5 + type(x)(k)
        total += twice(x)
    for f in (lambda v: v + 1.0, lambda v, by=total: v * 0.01 * by):
        total += f(x)
    by_index = [lambda v, k=k: v * type(x)(k) for k in range(3)]
    scale = 100.0 * x
    return total + by_index[0](x) + by_index[2](x) + (lambda: scale)()


def inner_functions(i: int, x: wp.float64):
    def clipped(v, low: wp.float64, high: wp.float64):
        if v < low:
            return low
        for k in range(3):
            if v > high + type(x)(k):
                return high + type(x)(k) * x
        return v

    def nearest(n):
        best = x * 0.0
        for k in range(n):
            if best > 4.0:
                break
            best += clipped(x, type(x)(k), 2.0)
        return best

    total = x
    for k in range(i % 5):
        total += clipped(total, -1.0, high=3.0 * x)
        if k == 3:
            total += nearest(k)
    return total + nearest(i % 4)


def scopes(i: int, x: wp.float64):
    s = x

    def outer(s: wp.float64, f):
        k = 3.0 * s
        inner = lambda x: x * s + k + f()  # noqa: E731
        k = k + 1.0
        return inner(x / x) + apply(lambda s: s * k, s)

    def apply(f, x):
        s = 7.0 * x
        return f(x) * s

    get = lambda: s * 3.0  # noqa: E731
    s = s + 1.0
    total = outer(5.0, get)
    k = 0.5
    for n in range(i % 3 + 1):
        total += type(x)(n) * k
    return total + get() if i % 2 else total - k * x


def counters(i: int, x: wp.float64):
    total = x * 0.0
    count = 0

    def add(v):
        nonlocal total, count
        total += v * v
        count += 1
        if count > 4:
            return False
        return True

    for k in range(i % 9):
        if not add(x + type(x)(k)):
            break

    def each(f):
        for k in range(i % 3):
            f(x * type(x)(k))

    each(add)
    k = 0
    while add(x) and k < 3:
        k += 1
        total *= 0.5
    return total + type(x)(count)


def annotated(i: int, x: wp.float64):
    def scaled(v: wp.float64, by: wp.float64 = 2.0) -> wp.float64:
        if v > 5.0:
            return 1
        return v * by

    return scaled(3) + scaled(x) + scaled(by=x, v=1.0)


def comprehensions(i: int, x: wp.float64):
    k = 7.0
    v = [x * type(x)(k) for k in range(4) if k != 2]
    squares = [a * b for a in v for b in (1.0, x)]
    pairs = [(n, w) for n, w in enumerate(v)]
    table = [[a * b for a in (x, 2.0)] for b in v]
    total = sum(w * w for w in v) + type(x)(len(squares)) + squares[-1] + table[1][0]
    for n, w in pairs:
        total += w * type(x)(n)
    if any(w > 20.0 for w in v):
        total += 1000.0
    flags = [w > 3.0 for w in v]
    if all(flags):
        total += 500.0
    x = max(w - 1.0 for w in v)
    return total + k + x + min([w for w in reversed(v)]) + sum([k for k in (x, x)])


def matching(i: int, x: wp.float64):
    total = x
    for k in range(i % 7 + 1):
        match k:
            case 0:
                total += 1.0
            case 1 | 2:
                total += 10.0 * x
            case n if n > LIMIT and x > 10.0:
                total += 100.0 * type(x)(n)
                if n == 6:
                    break
            case Names.FOUR:
                total += x * x
                continue
            case (3 | 5) as odd:
                total -= type(x)(odd)
            case -1:
                total = 0.0
            case other:
                total += type(x)(other) * 0.5
        match k % 3:
            case Shape.BALL:
                total += 0.125
            case Shape.BOX | Shape.PLANE if k > 1:
                total -= 0.25 * x
    return total


def matching_of_sequences(i: int, x: wp.float64):
    total = x
    for k in range(i % 7):
        match (k % 2, k % 3):
            case (0, 0):
                total += 3.0
            case (1, y) if y > 1:
                total += type(x)(y)
            case (_, 1) | (_, 2):
                total -= 5.0 * x
        match (x, type(x)(k), 3.0):
            case (_, _):
                total = 0.0
            case (first, 2.0, _):
                total += first
            case (first, *rest) if first > 1.0:
                total += rest[0] * rest[1] + type(x)(len(rest))
            case (*before, last):
                total += before[0] * last
    match i % 2 == 0, i:
        case True, n:
            total += type(x)(n)
        case False, 3 | 5:
            total *= 2.0
    return total


def walrus(i: int, x: wp.float64):
    n = i % 7
    total = x * 0.0
    while (n := n - 1) > 0:
        total += type(x)(n) * x
    if (y := x * 2.0) > 10.0 and (z := y + 1.0) > 15.0:
        total += z * z
    last = x * 0.0
    for k in range(i % 4):
        if (last := type(x)(k) * x) > 5.0:
            break
    inside = [(hidden := w * 2.0) + x for w in (x, x + 3.0)]
    return total + y + type(x)(n) + (w := inside[1]) * w + hidden + last


PROGRAMS = [
    lambdas,
    inner_functions,
    scopes,
    counters,
    annotated,
    comprehensions,
    matching,
    matching_of_sequences,
    walrus,
]


def by_python(function, values):
    return np.array([function(i, float(x)) for i, x in enumerate(values)], dtype=float)


def kernel_of(function, **options):
    in_kernel = wp.func(function)

    @wp.kernel(module="unique", module_options=options)
    def kernel(x: wp.array[wp.float64], out: wp.array[wp.float64]):
        i = wp.tid()
        out[i] = in_kernel(i, x[i])

    return kernel


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_kernels_give_what_python_gives(function, lanes):
    out = wp.zeros(N, dtype=wp.float64)
    wp.launch(kernel_of(function, lanes=lanes), dim=N, inputs=[wp.array(VALUES, dtype=wp.float64), out])
    expected = by_python(function, VALUES)
    assert len(set(expected)) > N / 2
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_their_gradients_are_those_of_differences(function):
    x = wp.array(VALUES, dtype=wp.float64, requires_grad=True)
    out = wp.zeros(N, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel_of(function), dim=N, inputs=[x, out])
    tape.backward(grads={out: wp.ones(N, dtype=wp.float64)})
    step = 1e-6
    slopes = (by_python(function, VALUES + step) - by_python(function, VALUES - step)) / (2 * step)
    assert np.abs(slopes).max() > 0.5
    np.testing.assert_allclose(x.grad.numpy(), slopes, rtol=1e-6, atol=1e-6)


def test_lambdas_of_a_kernel_use_its_arrays_and_what_the_factory_captured():
    def make(by):
        @wp.kernel
        def k(x: wp.array[float], y: wp.array[float]):
            i = wp.tid()
            at = lambda j: x[(i + j) % x.shape[0]] * by  # noqa: E731

            def put(j, value):
                y[j] = value

            put(i, at(0) + at(1))

        return k

    x = np.arange(9, dtype=np.float32)
    for by in (2.0, 3.0, 2.0):  # compiled for each value that it captures
        y = wp.zeros(9, dtype=float)
        wp.launch(make(by), dim=9, inputs=[wp.array(x), y])
        np.testing.assert_array_equal(y.numpy(), (x + np.roll(x, -1)) * by)


def test_inner_functions_change_structs_that_they_capture():
    @wp.struct
    class Body:
        position: wp.vec3
        hits: int

    @wp.kernel
    def k(n: int, out: wp.array[Body]):
        body = Body()

        def move(by: float):
            body.position[1] += by
            body.hits += 1

        for j in range(n):
            if j % 2 == 0:
                move(float(j))
        out[0] = body

    out = wp.zeros(1, dtype=Body)
    wp.launch(k, dim=1, inputs=[7, out])
    ((position, hits),) = out.numpy()
    np.testing.assert_array_equal(position, [0.0, 12.0, 0.0])
    assert hits == 4


def test_static_expressions_see_the_variables_of_lambdas_and_comprehensions():
    table = (3.0, 5.0, 7.0)

    @wp.kernel
    def k(out: wp.array[float]):
        j = 1
        pick = lambda j: wp.static(table[j] * 2.0)  # noqa: E731
        for n in range(3):
            out[n] = pick(n) + wp.static(table[j]) + sum(wp.static(table[j]) for j in range(n + 1))

    out = wp.zeros(3, dtype=float)
    wp.launch(k, dim=1, inputs=[out])
    np.testing.assert_array_equal(out.numpy(), [6 + 5 + 3, 10 + 5 + 8, 14 + 5 + 15])


def test_patterns_of_strings_types_of_constants_and_none():
    def make(mode, extra):
        @wp.kernel(module="unique")
        def k(x: wp.array[float]):
            match mode:
                case "add" | "plus":
                    x[0] += 2.0
                case "scale":
                    x[0] *= 3.0
                case _:
                    x[0] = math.nan
            match extra:
                case None:
                    x[0] += 0.5
                case True:
                    x[0] += 0.25
                case (a, b):
                    x[0] += a * b

        x = wp.full(1, 4.0, dtype=float)
        wp.launch(k, dim=1, inputs=[x])
        return x.numpy()[0]

    assert make("plus", None) == 6.5
    assert make("scale", True) == 12.25
    assert make("scale", (2.0, 8.0)) == 28.0
    assert np.isnan(make("other", None))


def test_strings_decide_and_are_printed(capfd):
    for mode, expected in (("add", 3.0), ("scale", 2.0)):

        @wp.kernel(module="unique")
        def k(x: wp.array[float]):
            if mode == "add":
                x[0] = x[0] + 2.0
            elif mode != "add" and mode in ("scale", "other"):
                x[0] = x[0] * 2.0
            else:
                x[0] = "neither"
            label = mode if mode == "add" else "other"
            print("mode", label, f"{x[0]:.1f} {label}")

        x = wp.ones(1, dtype=float)
        wp.launch(k, dim=1, inputs=[x])
        wp.synchronize()
        assert x.numpy()[0] == expected
        label = mode if mode == "add" else "other"
        assert f"mode {label} {expected:.1f} {label}\n" in capfd.readouterr().out
