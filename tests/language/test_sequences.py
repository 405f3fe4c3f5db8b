"""Loops over arrays, ranges and what zip(), enumerate() and reversed() make of them; lists; slices with a step.

Each program is a plain Python function of NumPy arrays, run by Python and by a kernel, with its gradient compared with
differences. Integers that become floats do so through `type(x)(k)`, which both understand.
"""

import numpy as np
import pytest
import warp as wp

N = 23
LENGTHS = (0, 1, 2, 5, 8)


def over_arrays(n: int, a: wp.array[wp.float64], x: wp.float64):
    total = x
    for v in a:
        total += v * x
    for k, v in enumerate(a):
        if k == 3:
            continue
        total += type(x)(k) * v * v
        if total > 50.0:
            break
    for v in reversed(a):
        total = total * 0.5 + v
    for k, (v, w) in enumerate(zip(a, reversed(a)), 2):
        total += type(x)(k) * v * w
    return total


def over_ranges(n: int, a: wp.array[wp.float64], x: wp.float64):
    total = x
    for k, j in enumerate(range(n)):
        total += type(x)(k * j) * x
    for k, j in zip(range(n, -2, -3), reversed(range(2, n + 9, 2))):
        total = total * 0.5 + type(x)(k - 2 * j)
    for (k, v), j in zip(enumerate(a, start=n), range(100)):
        if j > 4:
            break
        total += type(x)(k + j) * v
    for k, j in enumerate(reversed(range(40)), -7):
        total += type(x)(k - j) * x * 0.01
    for j in reversed(range(1, 100, n + 1)):
        total -= type(x)(j) * 0.001
    return total


def over_tuples_and_lists(n: int, a: wp.array[wp.float64], x: wp.float64):
    total = x
    for f, by in zip((lambda v: v + 1.0, lambda v: v * v), [x, 2.0]):
        total += f(x) * by
    for k, v in enumerate(reversed([x, 3.0, x * x]), start=n):
        total += type(x)(k) * v
    for k, (v, w) in enumerate(zip([x, 1.0], reversed((x * x, 7.0)))):
        total += v * w + type(x)(k)
    return total


def lists(n: int, a: wp.array[wp.float64], x: wp.float64):
    zero = x * 0.0
    values = [zero] * 4
    values[1] = x
    values[-1] += 2.0 * x
    for k in range(n + 3):
        values[k % 4] += x * type(x)(k)
        if k % 3 == 1:
            values[n % 4 - 4] *= 0.5
    table = [[x, zero], [zero, x * x], [x, x]]
    table[1][0] = 3.0 * x
    table[2][n % 2] -= 1.0
    grown = []
    for k in range(3):
        grown.append(x + type(x)(k))
    grown += [x * 0.5]
    pairs = values[1:] + grown
    pairs[0], pairs[1] = pairs[1], pairs[0]
    copied = [v * 2.0 for v in pairs]
    copied[0] = zero
    total = pairs[0] + 2.0 * pairs[1] + values[n % 4] + (x, x * x, zero)[(n + 1) % 3]
    for row in table:
        total += row[0] * 0.5 - row[1]
    return total + sum(copied) + pairs[0] + type(x)(len(pairs)) + max(table[0])


def steps(n: int, a: wp.array[wp.float64], x: wp.float64):
    total = x
    m = len(a)
    for k, part in enumerate((a[::2], a[::-1], a[1:6:2], a[-2::-3], a[n::2], a[:n:-1], a[m:0:-2], a[::100], a[5:2:2])):
        total += type(x)(len(part) * (k + 1))
        for j, v in enumerate(part):
            total += v * x * type(x)(k + j + 1)
    back = a[::-1][::2]
    for v in back[::-1]:
        total = total * 0.75 + v
    return total


def folds(n: int, a: wp.array[wp.float64], x: wp.float64):
    total = sum(v * x for v in a) + x * 0.5
    total += sum(type(x)(k) * v * v for k, v in enumerate(a) if k % 2 == n % 2 if v > 0.0)
    total += sum(type(x)(k) * x for k in range(n)) + sum(type(x)(k) for k in reversed(range(40)))
    if any(v > 1.5 for v in a):
        total *= 2.0
    if all(v > -0.9 for v in reversed(a)) and any(v < w for v, w in zip(a, reversed(a)) if w > 0.0):
        total -= x * x
    v = 3.0
    return total + v


PROGRAMS = [folds, over_arrays, over_ranges, over_tuples_and_lists, lists, steps]


def kernel_of(function, **options):
    in_kernel = wp.func(function)

    @wp.kernel(module="unique", module_options=options)
    def kernel(a: wp.array2d[wp.float64], x: wp.array[wp.float64], length: int, out: wp.array[wp.float64]):
        i = wp.tid()
        out[i] = in_kernel(i, a[i][:length], x[i])

    return kernel


def inputs():
    rng = np.random.default_rng(3)
    return rng.uniform(-1.0, 2.0, (N, max(LENGTHS))), np.linspace(-1.5, 2.5, N)


def by_python(function, a, x, length):
    return np.array([function(i, a[i][:length], float(x[i])) for i in range(N)])


@pytest.mark.parametrize("options", [{"lanes": 1}, {"lanes": 8}, {"mode": "debug"}], ids=str)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_kernels_give_what_python_gives(function, options):
    a, x = inputs()
    kernel = kernel_of(function, **options)
    for length in LENGTHS:
        out = wp.zeros(N, dtype=wp.float64)
        arguments = [wp.array(a, dtype=wp.float64), wp.array(x, dtype=wp.float64), length, out]
        wp.launch(kernel, dim=N, inputs=arguments)
        expected = by_python(function, a, x, length)
        assert len(set(expected)) > N / 2
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_their_gradients_are_those_of_differences(function):
    a, x = inputs()
    length = max(LENGTHS)
    arrays = [wp.array(data, dtype=wp.float64, requires_grad=True) for data in (a, x)]
    out = wp.zeros(N, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel_of(function), dim=N, inputs=[*arrays, length, out])
    tape.backward(grads={out: wp.ones(N, dtype=wp.float64)})
    step = 1e-6
    slopes = (by_python(function, a, x + step, length) - by_python(function, a, x - step, length)) / (2 * step)
    np.testing.assert_allclose(arrays[1].grad.numpy(), slopes, rtol=1e-6, atol=1e-6)
    for column in range(length):
        change = np.zeros_like(a)
        change[:, column] = step
        slopes = (by_python(function, a + change, x, length) - by_python(function, a - change, x, length)) / (2 * step)
        np.testing.assert_allclose(arrays[0].grad.numpy()[:, column], slopes, rtol=1e-6, atol=1e-6)


def test_functions_and_values_of_different_types_go_side_by_side():
    @wp.kernel
    def k(x: float, out: wp.array[float]):
        square = lambda v: v * v  # noqa: E731
        for n, (f, v) in enumerate(zip((square, wp.length_sq, lambda v: v.values[1]), (x, wp.vec2(x, 1.0), Pair()))):
            out[n] = f(v)

    @wp.struct
    class Pair:
        values: wp.vec2 = wp.vec2(3.0, 4.0)

    out = wp.zeros(3, dtype=float)
    wp.launch(k, dim=1, inputs=[2.0, out])
    np.testing.assert_array_equal(out.numpy(), [4.0, 5.0, 4.0])


def test_rows_of_an_array_are_written_in_a_loop():
    @wp.kernel
    def k(a: wp.array2d[float]):
        for i, row in enumerate(a):
            for j, v in enumerate(row[::-1]):
                row[j] += 10.0 * v + float(i)

    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = a.copy()
    for i, row in enumerate(expected):
        for j, v in enumerate(row[::-1]):
            row[j] += 10.0 * v + float(i)
    given = wp.array(a)
    wp.launch(k, dim=1, inputs=[given])
    np.testing.assert_array_equal(given.numpy(), expected)


@pytest.mark.parametrize("lanes", [1, 8])
def test_views_with_steps_of_shared_arrays(lanes):
    """Each thread has its own neighbours, in a view that goes backwards, and of two axes."""

    @wp.kernel(module="unique", module_options={"lanes": lanes})
    def k(a: wp.array2d[float], out: wp.array2d[float]):
        i, j = wp.tid()
        out[::-1, ::2][i, j] = a[1::3, ::-2][i, j] + 100.0 * a[::-1][i][j]
        wp.atomic_add(out[:, 1::2], i, j, 5.0 * a[i, j])

    a = np.arange(7 * 40, dtype=np.float32).reshape(7, 40)
    out = wp.zeros((2, 40), dtype=float)
    wp.launch(k, dim=(2, 20), inputs=[wp.array(a), out])
    expected = np.zeros((2, 40), dtype=np.float32)
    expected[::-1, ::2] = a[1::3, ::-2] + 100.0 * a[::-1][:2, :20]
    expected[:, 1::2] += 5.0 * a[:2, :20]
    np.testing.assert_array_equal(out.numpy(), expected)


def test_an_index_outside_of_a_view_with_a_step_is_found_in_debug_mode():
    @wp.kernel(module_options={"mode": "debug"})
    def k(a: wp.array[float], n: int):
        a[1::2][n] = 1.0

    a = wp.zeros(7, dtype=float)
    for n in (2, -3):
        wp.launch(k, dim=1, inputs=[a, n])
    np.testing.assert_array_equal(a.numpy(), [0, 1, 0, 0, 0, 1, 0])
    for n in (3, -4):
        with pytest.raises(IndexError, match="axis 0 of 'a\\[...\\]', which has size 3"):
            wp.launch(k, dim=1, inputs=[a, n])


def test_what_a_sum_runs_over_is_evaluated_once():
    @wp.kernel
    def k(count: wp.array[int], out: wp.array[int]):
        out[0] = sum(3 * v for v in (wp.atomic_add(count, 0, 1), 5))
        out[1] = sum(v for v in [wp.atomic_add(count, 0, 1)] if wp.static(True))
        out[2] = max(v + wp.atomic_add(count, 0, 1) for v in (1, 2))

    count, out = wp.zeros(1, dtype=int), wp.zeros(3, dtype=int)
    wp.launch(k, dim=1, inputs=[count, out])
    assert count.numpy()[0] == 4
    np.testing.assert_array_equal(out.numpy(), [15, 1, 5])


def test_parts_of_elements_of_lists_are_assigned():
    @wp.struct
    class Body:
        mass: float
        position: wp.vec3

    @wp.kernel
    def k(out: wp.array2d[float]):
        i = wp.tid()
        bodies = [Body(mass=1.0), Body(mass=2.0)]
        bodies[1].mass = 5.0
        bodies[1].position[2] += 3.0
        bodies[0], bodies[1] = bodies[1], bodies[0]
        vectors = [wp.vec3(1.0), wp.vec3(2.0), wp.vec3(3.0)]
        vectors[i % 3][1] = 7.0
        for j in range(i):
            vectors[-1 - j % 3].x += 1.0
            vectors[j % 2][i % 3] *= 2.0
        table = [[0.0, 0.0], [0.0, 0.0]]
        table[1][i % 2] = 4.0
        out[i, 0] = bodies[0].mass + 10.0 * bodies[0].position[2] + 100.0 * bodies[1].mass
        out[i, 1] = table[1][0] - table[1][1]
        for j, v in enumerate(vectors):
            for n in range(3):
                out[i, 2 + 3 * j + n] = v[n]

    count = 6
    out = wp.zeros((count, 11), dtype=float)
    wp.launch(k, dim=count, inputs=[out])
    expected = np.zeros((count, 11))
    for i in range(count):
        vectors = np.repeat([[1.0], [2.0], [3.0]], 3, axis=1)
        vectors[i % 3, 1] = 7.0
        for j in range(i):
            vectors[-1 - j % 3, 0] += 1.0
            vectors[j % 2, i % 3] *= 2.0
        expected[i] = [135.0, 4.0 if i % 2 == 0 else -4.0, *vectors.ravel()]
    np.testing.assert_array_equal(out.numpy(), expected)


def test_elements_of_lists_and_tuples_are_passed_by_reference():
    @wp.func
    def grow(x: wp.ref[float], by: float):
        x += by

    @wp.struct
    class Ball:
        height: float

        def step(self, by: float):
            self.height += by

    @wp.kernel
    def k(out: wp.array2d[float]):
        i = wp.tid()
        values = [1.0, 2.0, 3.0]
        grow(values[1], 10.0)
        grow(values[-1], 20.0)
        grow(values[i % 3], 100.0)
        balls = [Ball(height=0.5), Ball(height=1.5)]
        pair = (Ball(height=2.5), values)
        for j in range(i):
            balls[0].step(float(j))
            pair[0].step(1.0)
        for n in range(2):
            balls[n].step(4.0)
        pair[0].height *= 2.0
        for n, v in enumerate(values):
            out[i, n] = v
        out[i, 3] = balls[0].height
        out[i, 4] = balls[1].height
        out[i, 5] = pair[0].height

    count = 5
    out = wp.zeros((count, 6), dtype=float)
    wp.launch(k, dim=count, inputs=[out])
    for i, row in enumerate(out.numpy()):
        values = [1.0, 12.0, 23.0]
        values[i % 3] += 100.0
        np.testing.assert_array_equal(row, [*values, 4.5 + sum(range(i)), 5.5, 2 * (2.5 + i)])


def test_random_numbers_drawn_by_a_lambda_in_a_sum():
    @wp.kernel
    def k(out: wp.array[float]):
        i = wp.tid()
        state = wp.rand_init(3, i)
        draw = lambda: wp.randf(state)  # noqa: E731
        out[i] = draw() + 2.0 * sum(draw() for _ in range(30)) + 4.0 * draw()

    @wp.kernel
    def plain(out: wp.array[float]):
        i = wp.tid()
        state = wp.rand_init(3, i)
        out[i] = wp.randf(state)
        total = float(0.0)
        for _ in range(30):
            total += wp.randf(state)
        out[i] = out[i] + 2.0 * total + 4.0 * wp.randf(state)

    drawn, expected = wp.zeros(9, dtype=float), wp.zeros(9, dtype=float)
    wp.launch(k, dim=9, inputs=[drawn])
    wp.launch(plain, dim=9, inputs=[expected])
    np.testing.assert_allclose(drawn.numpy(), expected.numpy(), rtol=1e-6)
    assert len(set(drawn.numpy())) == 9
