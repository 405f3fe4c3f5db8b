"""Gradients of single kernels: control flow, locals, memory."""

import numpy as np
import pytest
import warp as wp
from differences import check_program
from native_functions import needs_clang
from tapes import gradients

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(7)


def launched(kernel, *arguments, dim, out=None):
    y = wp.zeros(out or dim, dtype=wp.float64, requires_grad=True)
    wp.launch(kernel, dim=dim, inputs=[*arguments, y])
    return y


@wp.kernel
def power_with_break(x: wp.array[wp.float64], n: int, y: wp.array[wp.float64]):
    i = wp.tid()
    s = wp.float64(1.0)
    for _k in range(n):
        if s > wp.float64(100.0):
            break
        s *= x[i]
    y[i] = s


@pytest.mark.seed("S-DIF-016")
def test_a_loop_that_changes_a_local_and_breaks():
    check_program(lambda x: launched(power_with_break, x, 9, dim=23), [RNG.uniform(1.1, 3.0, 23)])


def test_the_product_in_a_dynamic_loop_has_the_derivative_twelve():
    @wp.kernel
    def cube(x: wp.array[float], n: int, y: wp.array[float]):
        s = float(1.0)
        for _k in range(n):
            s = s * x[0]
        y[0] = s

    x, y = wp.array([2.0], dtype=float, requires_grad=True), wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(cube, dim=1, inputs=[x, 3, y])
    tape.backward(y)
    assert x.grad.numpy()[0] == 12.0


@wp.kernel
def squares_until(x: wp.array[wp.float64], limits: wp.array[int], y: wp.array[wp.float64]):
    i = wp.tid()
    s = x[i]
    k = int(0)
    while s < wp.float64(100.0) and k < limits[i]:
        t = wp.float64(0.0)
        for _j in range(k):
            t = t * wp.sin(s) + s * x[(i + 1) % 19]
        s = s * s + t * wp.float64(0.01)
        k += 1
    y[i] = s


def test_while_with_a_nested_loop_of_changing_length():
    limits = (np.arange(19) % 5).astype(np.int32)
    check_program(lambda x, n: launched(squares_until, x, n, dim=19), [RNG.uniform(1.1, 3.0, 19), limits])


@wp.kernel
def components(x: wp.array[wp.vec3d], y: wp.array[wp.float64]):
    i = wp.tid()
    v = x[i]
    v[0] = v[1] * v[2]
    v[0] = v[0] * v[0]
    w = wp.outer(v, x[i]) @ v
    w[i % 3] += v[1]
    y[i] = wp.length(w) + wp.dot(v, w) + wp.normalize(v)[0]


def test_component_assignment_static_and_dynamic():
    check_program(lambda x: launched(components, x, dim=20), [RNG.uniform(0.5, 1.5, (20, 3))], dtypes={0: wp.vec3d})


@wp.kernel
def maximum_with_continue(x: wp.array2d[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    best = x[i, 0]
    at = int(0)
    for j in range(x.shape[1]):
        if x[i, j] <= best:
            continue
        best = x[i, j]
        at = j
    y[i] = best * wp.float64(at + 1)


def test_continue_with_the_place_of_a_maximum():
    check_program(lambda x: launched(maximum_with_continue, x, dim=9), [RNG.standard_normal((9, 8))])


@wp.func
def early(x: wp.float64, limit: wp.float64):
    if x > limit:
        return x * x
    for k in range(4):
        if x * wp.float64(k) > limit:
            return x * wp.float64(k)
    return wp.sin(x)


@wp.kernel
def early_returns(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    if i % 5 == 4:
        return
    y[i] = early(x[i], wp.float64(1.0)) + (x[i] if x[i] < wp.float64(0.2) else wp.exp(x[i]))


@pytest.mark.seed("S-FUN-002")
def test_early_returns_of_kernel_and_function():
    check_program(lambda x: launched(early_returns, x, dim=31), [RNG.uniform(0.0, 1.5, 31)])


@wp.kernel
def neighbours(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    n = x.shape[0]
    y[i] = x[(i + 1) % n] * x[wp.max(i - 1, 0)] - x[i] * x[i]


def test_neighbours_share_gradients():
    check_program(lambda x: launched(neighbours, x, dim=40), [RNG.standard_normal(40)])


@wp.kernel
def indexed_sum(x: wp.array[wp.float64], at: wp.array[int], y: wp.array[wp.float64]):
    i = wp.tid()
    wp.atomic_add(y, at[i], x[i] * x[i])
    wp.atomic_sub(y, 0, wp.sin(x[i]))


def test_atomic_sums():
    at = RNG.integers(0, 4, 50).astype(np.int32)
    check_program(lambda x, at: launched(indexed_sum, x, at, dim=50, out=4), [RNG.standard_normal(50), at])


@wp.struct
class Body:
    position: wp.vec3d
    mass: wp.float64
    kind: int


@wp.func
def moved(b: Body, by: wp.float64):
    result = Body()
    result.position = b.position * by
    result.mass = b.mass + wp.dot(b.position, b.position)
    result.kind = b.kind + 1
    return result


@wp.kernel
def bodies(x: wp.array[wp.vec3d], m: wp.array[wp.float64], kept: wp.array[Body], y: wp.array[wp.float64]):
    i = wp.tid()
    b = Body()
    b.position = x[i]
    b.mass = m[i]
    b.position[1] = b.mass * b.position[0]
    b = moved(b, m[i])
    kept[i] = b


@wp.kernel
def weigh(kept: wp.array[Body], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = kept[i].mass * kept[i].position[2] + kept[i].position[1]


@pytest.mark.seed("S-STR-007")
def test_arrays_of_structs_between_two_kernels():
    def program(x, m):
        kept = wp.zeros(11, dtype=Body, requires_grad=True)
        y = wp.zeros(11, dtype=wp.float64, requires_grad=True)
        wp.launch(bodies, dim=11, inputs=[x, m, kept, y])
        wp.launch(weigh, dim=11, inputs=[kept, y])
        return y

    check_program(program, [RNG.standard_normal((11, 3)), RNG.uniform(1, 2, 11)], dtypes={0: wp.vec3d})


def test_integers_pass_no_gradient():
    @wp.kernel
    def rounded(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = float(int(x[i])) * 2.0 + wp.floor(x[i]) + 0.5 * x[i]

    x, y = wp.array([2.5, -1.25], dtype=float, requires_grad=True), wp.zeros(2, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(rounded, dim=2, inputs=[x, y])
    x.grad.fill_(10.0)
    tape.backward(grads={y: wp.array([3.0, -2.0], dtype=float)})
    np.testing.assert_array_equal(y.numpy(), [4.0 + 2.0 + 1.25, -2.0 - 2.0 - 0.625])
    np.testing.assert_array_equal(x.grad.numpy(), [11.5, 9.0])  # of the last term alone, added to what was there


@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_every_number_of_lanes_gives_the_gradient(lanes):
    @wp.kernel(module_options={"lanes": lanes})
    def kernel(x: wp.array[wp.float64], n: wp.array[int], y: wp.array[wp.float64]):
        i = wp.tid()
        s = x[i]
        for k in range(n[i]):
            if k % 3 == 2:
                s = wp.sin(s) * x[i]
            else:
                s += s * s * wp.float64(0.1)
        y[i] = s

    n = RNG.integers(0, 9, 45).astype(np.int32)
    check_program(lambda x, n: launched(kernel, x, n, dim=45), [RNG.uniform(0.1, 1.0, 45), n])


# ---- what a kernel reads after it has written it ----


@wp.kernel
def prefix_products(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] * x[i] + wp.sin(y[i - 1])


def test_a_recurrence_through_an_array():
    def program(x):
        y = wp.zeros(12, dtype=wp.float64, requires_grad=True)
        wp.launch(prefix_products, dim=1, inputs=[x, y])
        return y

    check_program(program, [RNG.uniform(0.5, 1.5, 12)])


@wp.kernel
def rows_in_place(x: wp.array2d[wp.float64], n: wp.array[int]):
    i = wp.tid()
    for k in range(n[i]):
        x[i, k % 3] = x[i, (k + 1) % 3] * x[i, k % 3]
        if x[i, 0] > wp.float64(0.3):
            x[i, 2] = x[i, 2] + x[i, 0] * wp.float64(0.5)
            for j in range(k):
                x[i, j % 3] += x[i, 1] * wp.float64(0.1)


def test_rows_changed_in_place_in_nested_loops():
    def program(x, n):
        y = wp.clone(x)
        wp.launch(rows_in_place, dim=9, inputs=[y, n])
        return y

    check_program(program, [RNG.uniform(0.2, 1.0, (9, 3)), (np.arange(9) % 5).astype(np.int32)])


@wp.kernel
def halving(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = x[i]
    while y[i] * y[i] > wp.float64(1.0) and y[i] > wp.float64(0.5):
        y[i] = y[i] * y[i] * wp.float64(0.3)


def test_a_while_whose_condition_reads_what_the_body_writes():
    check_program(lambda x: launched(halving, x, dim=17), [RNG.uniform(0.1, 2.9, 17)])


@wp.kernel
def triangular(matrix: wp.array2d[wp.float64], b: wp.array[wp.float64], x: wp.array[wp.float64]):
    for i in range(b.shape[0]):
        s = b[i]
        for j in range(i):
            s -= matrix[i, j] * x[j]
        x[i] = s / matrix[i, i]


def test_a_triangular_solve_in_one_thread():
    def program(matrix, b):
        x = wp.zeros(6, dtype=wp.float64, requires_grad=True)
        wp.launch(triangular, dim=1, inputs=[matrix, b, x])
        return x

    check_program(program, [RNG.uniform(1.0, 2.0, (6, 6)), RNG.standard_normal(6)])


@wp.kernel
def local_array(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    kept = wp.zeros(shape=(4,), dtype=wp.float64)
    kept[0] = x[i]
    for k in range(1, 9):
        kept[k % 4] += kept[(k + 3) % 4] * x[i] + wp.float64(k)
    y[i] = kept[0] * kept[1] + kept[3]


def test_an_array_made_in_the_kernel():
    check_program(lambda x: launched(local_array, x, dim=21), [RNG.uniform(0.5, 1.0, 21)])


@wp.kernel
def two_of_them(a: wp.array[wp.float64], b: wp.array[wp.float64]):
    i = wp.tid()
    a[i] = a[i] * a[i]
    b[i] = b[i] * wp.float64(3.0) + a[i]


def test_one_array_passed_twice():
    def program(x):
        y = wp.clone(x)
        wp.launch(two_of_them, dim=5, inputs=[y, y])
        return y

    check_program(program, [RNG.uniform(0.5, 1.0, 5)])


@wp.struct
class Pair:
    a: wp.array[wp.float64]
    b: wp.array[wp.float64]


@wp.kernel
def struct_of_arrays(pair: Pair, y: wp.array[wp.float64]):
    i = wp.tid()
    for k in range(3):
        pair.b[i] = pair.b[i] * pair.a[i] + wp.float64(k)
    y[i] = pair.b[i]


def test_arrays_inside_a_struct():
    def program(a, b):
        pair = Pair()
        pair.a, pair.b = a, wp.clone(b)
        return launched(struct_of_arrays, pair, dim=7) + pair.b

    check_program(program, [RNG.uniform(0.5, 1.0, 7), RNG.uniform(0.5, 1.0, 7)])


# ---- what is refused ----


def test_a_kernel_that_uses_a_gradient_itself_is_refused_on_a_tape_only():
    @wp.kernel
    def step(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = x[i] - 0.5 * x.grad[i]

    x, y = wp.array([1.0, 2.0, 4.0, 8.0], dtype=float, requires_grad=True), wp.zeros(4, requires_grad=True)
    x.grad.assign([3.0, 5.0, -7.0, 0.0])
    with wp.Tape(), pytest.raises(wp.CompileError, match="uses the gradient of an array") as error:
        wp.launch(step, dim=4, inputs=[x, y])
    assert "x.grad[i]" in str(error.value)
    with wp.Tape():
        wp.launch(step, dim=4, inputs=[x, y], record_tape=False)
    assert y.numpy().tolist() == [-0.5, -0.5, 7.5, 8.0]


def test_loops_of_ten_to_a_million_iterations():
    @wp.kernel
    def rotate(x: wp.array[wp.float64], n: int, y: wp.array[wp.float64]):
        s = x[0]
        for _k in range(n):
            s = wp.sin(s)
        y[0] = s

    x = wp.array([1.0], dtype=wp.float64, requires_grad=True)
    y = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    for n in (10, 1000, 1_000_000):
        with wp.Tape() as tape:
            wp.launch(rotate, dim=1, inputs=[x, n, y])
        tape.backward(y)
        s, slope = 1.0, 1.0
        for _ in range(n):
            slope *= np.cos(s)
            s = np.sin(s)
        np.testing.assert_allclose(x.grad.numpy()[0], slope, rtol=1e-9)
        tape.zero()


@needs_clang
def test_a_function_in_cpp_without_an_adj_snippet_has_no_gradient():
    @wp.func_native("return x * x;")
    def square_in_cpp(x: float) -> float: ...

    @wp.kernel
    def squares(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = square_in_cpp(x[i])

    x, y = wp.zeros(4, requires_grad=True), wp.zeros(4, requires_grad=True)
    wp.launch(squares, dim=4, inputs=[x, y])
    with wp.Tape(), pytest.raises(wp.CompileError, match="a function written in C\\+\\+"):
        wp.launch(squares, dim=4, inputs=[x, y])


@pytest.mark.parametrize("lanes", [1, 4, 16, None])
def test_sines_and_cosines_of_one_angle(lanes):
    """They come from one call of the math library, for whole groups of lanes, parts of them and single numbers."""

    def products(scalar):
        @wp.kernel(module_options={"lanes": lanes} if lanes else None)
        def product(x: wp.array[scalar], y: wp.array[scalar]):
            i = wp.tid()
            angle = x[i]
            y[i] = wp.sin(angle)
            if angle > scalar(0.0):
                y[i] = wp.sin(angle) * wp.cos(angle)

        return product

    rng = np.random.default_rng(3)
    for scalar, dtype in ((wp.float32, np.float32), (wp.float64, np.float64)):
        for count in (1, 13, 2000):
            x = (rng.uniform(-1, 1, count) * 10.0 ** rng.uniform(-5, 6, count)).astype(dtype)
            inputs = [wp.array(x, dtype=scalar, requires_grad=True)]
            outputs = [wp.zeros(count, dtype=scalar, requires_grad=True)]
            found = gradients(products(scalar), count, inputs, outputs, [np.ones(count, dtype)])[0]
            wide = x.astype(np.longdouble)
            expected = np.where(x > 0, np.cos(wide) ** 2 - np.sin(wide) ** 2, np.cos(wide))
            np.testing.assert_allclose(found, expected, rtol=0, atol=4 * np.finfo(dtype).eps)
            expected = np.sin(wide) * np.where(x > 0, np.cos(wide), 1.0)
            np.testing.assert_allclose(outputs[0].numpy(), expected, rtol=0, atol=4 * np.finfo(dtype).eps)


@wp.kernel
def powers_of_ranges(
    x: wp.array[wp.float64], first: wp.array[int], last: wp.array[int], step: wp.array[int], y: wp.array[wp.float64]
):
    i = wp.tid()
    s = wp.float64(1.0)
    for k in range(first[i], last[i], step[i]):
        s = s * x[i] + wp.float64(k)
    y[i] = s


def test_loops_of_any_step_count_as_python_does():
    """Up and down, with and without a rest, empty ones too: a trip too many or too few changes the product."""
    ranges = [(a, b, s) for a in range(-4, 5, 2) for b in range(-4, 5) for s in (-4, -3, -2, -1, 1, 2, 3, 4)]
    columns = [np.array(column, dtype=np.int32) for column in zip(*ranges, strict=True)]
    x = RNG.uniform(0.5, 1.5, len(ranges))
    check_program(lambda *given: launched(powers_of_ranges, *given, dim=len(ranges)), [x, *columns])
    slopes = []
    for at, (first, last, step) in zip(x, ranges, strict=True):
        value, slope = 1.0, 0.0
        for k in range(first, last, step):
            value, slope = value * at + k, slope * at + value
        slopes.append(slope)
    given = wp.array(x, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        y = launched(powers_of_ranges, given, *(wp.array(column) for column in columns), dim=len(ranges))
    weights = np.linspace(-1.0, 2.0, len(ranges))
    tape.backward(grads={y: wp.array(weights)})
    np.testing.assert_allclose(given.grad.numpy(), weights * slopes, rtol=1e-12)


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2, -3])
def test_loops_that_begin_here_and_there_and_step_to_one_end(step):
    last = 12 if step > 0 else 0

    @wp.kernel
    def product(x: wp.array[wp.float64], first: wp.array[int], last: int, y: wp.array[wp.float64]):
        i = wp.tid()
        s = wp.float64(1.0)
        for k in range(first[i], last, step):
            s = s * x[i] + wp.float64(k)
        y[i] = s

    first = RNG.integers(0, 12, 67).astype(np.int32)
    check_program(lambda x, first: launched(product, x, first, last, dim=67), [RNG.uniform(0.5, 1.5, 67), first])


WEIGHTS = np.linspace(-1.0, 2.0, 37)


@wp.struct
class Memories:
    a: wp.array[wp.float64]
    b: wp.array[wp.float64]


@wp.kernel
def through_a_field(s: Memories, x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    s.a[i] = x[i] * x[i]
    s.b[i] = s.a[i] * x[i]
    y[i] = s.a[i] * s.b[i]  # x^3 * x^3, if both fields are one array


@wp.kernel
def two_parameters(a: wp.array[wp.float64], x: wp.array[wp.float64], y: wp.array[wp.float64], shift: int):
    i = wp.tid()
    first = a[i + shift] * x[i]  # x^2: both parameters show the element
    x[i] = first
    y[i] = a[i + shift] * first


@wp.kernel
def through_a_view(memory: wp.array2d[wp.float64], x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    row, same = memory[i], memory[i]
    row[0] = x[i] * x[i]
    first = same[0]
    row[0] = first * x[i]
    y[i] = first * same[0]  # x^2 * x^3


@wp.kernel
def field_and_parameter(s: Memories, x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    first = s.a[i] * x[i]  # x^2: the field shows the memory of the parameter
    x[i] = first
    y[i] = s.a[i] * first


@pytest.mark.parametrize("same", [True, False])
def test_fields_of_a_struct_may_be_one_array(same):
    values = RNG.uniform(0.5, 1.5, 37)

    def program(x):
        s = Memories()
        s.a = wp.zeros(37, dtype=wp.float64, requires_grad=True)
        s.b = s.a if same else wp.zeros(37, dtype=wp.float64, requires_grad=True)
        y = wp.zeros(37, dtype=wp.float64, requires_grad=True)
        wp.launch(through_a_field, dim=37, inputs=[s, x, y])
        return y

    check_program(program, [values])
    x = wp.array(values, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        y = program(x)
    tape.backward(grads={y: wp.array(WEIGHTS)})
    power = 6 if same else 5
    np.testing.assert_allclose(y.numpy(), values**power, rtol=1e-12)
    np.testing.assert_allclose(x.grad.numpy(), WEIGHTS * power * values ** (power - 1), rtol=1e-12)


def test_two_views_of_one_row():
    values = RNG.uniform(0.5, 1.5, 37)
    x = wp.array(values, dtype=wp.float64, requires_grad=True)
    memory = wp.zeros((37, 2), dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        y = launched(through_a_view, memory, x, dim=37)
    tape.backward(grads={y: wp.array(WEIGHTS)})
    np.testing.assert_allclose(x.grad.numpy(), WEIGHTS * 5.0 * values**4, rtol=1e-12)


def test_a_field_that_shows_the_memory_of_a_parameter():
    values = RNG.uniform(0.5, 1.5, 37)

    def program(x):
        moved = wp.clone(x)
        s = Memories()
        s.a = moved
        y = wp.zeros(37, dtype=wp.float64, requires_grad=True)
        wp.launch(field_and_parameter, dim=37, inputs=[s, moved, y])
        return y

    check_program(program, [values])
    x = wp.array(values, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        y = program(x)
    tape.backward(grads={y: wp.array(WEIGHTS)})
    np.testing.assert_allclose(y.numpy(), values**4, rtol=1e-12)
    np.testing.assert_allclose(x.grad.numpy(), WEIGHTS * 4.0 * values**3, rtol=1e-12)


@pytest.mark.parametrize("shift", [0, 3])
@pytest.mark.parametrize("later", [False, True])  # whether the tape has to keep what the launch read
def test_parameters_that_show_each_others_memory(shift, later):
    values = RNG.uniform(0.5, 1.5, 37)
    x = wp.array(values, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        moved = wp.zeros(37 + shift, dtype=wp.float64, requires_grad=True)
        wp.copy(moved[shift:], x)
        y = wp.zeros(37, dtype=wp.float64, requires_grad=True)
        wp.launch(two_parameters, dim=37, inputs=[moved, moved[shift:], y, shift])
        if later:
            moved.fill_(0.5)
    tape.backward(grads={y: wp.array(WEIGHTS)})
    np.testing.assert_allclose(y.numpy(), values**4, rtol=1e-12)
    np.testing.assert_allclose(x.grad.numpy(), WEIGHTS * 4.0 * values**3, rtol=1e-12)


@wp.kernel
def write_deep_and_read(stored: wp.array[Memories], x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    stored[0].a[i] = x[i] * x[i]
    y[i] = x[i] * x[i]  # another value, if the array in memory is x


def test_an_array_in_memory_may_be_any_other():
    s = Memories()
    s.a = wp.zeros(7, dtype=wp.float64, requires_grad=True)
    stored = wp.array([s], dtype=Memories)
    x = wp.ones(7, dtype=wp.float64, requires_grad=True)
    y = wp.zeros(7, dtype=wp.float64, requires_grad=True)
    with wp.Tape(), pytest.raises(wp.CompileError, match="may have written itself, through an array that lies in mem"):
        wp.launch(write_deep_and_read, dim=7, inputs=[stored, x, y])
