"""A name or result that only some paths give is zero on the others."""

import numpy as np
import pytest
import warp as wp

N = 37  # no multiple of any lane count


def run(kernel, *inputs, dtype=float, count=N):
    out = wp.zeros(count, dtype=dtype)
    wp.launch(kernel, dim=count, inputs=[*inputs, out])
    return out.numpy()


@wp.struct
class Hit:
    t: float
    normal: wp.vec3
    k: int


@wp.func
def positive(x: float):
    if x > 0.0:
        return 2.0 * x


@wp.func
def first_above(values: wp.array[float], n: int, limit: float) -> tuple[int, float]:
    for k in range(n):
        if values[k] > limit:
            return k, values[k]


@wp.func
def hit(x: float):
    if x > 10.0:
        made = Hit(t=x, normal=wp.vec3(1.0, 2.0, x), k=3)
        return made


def test_a_function_gives_zero_where_no_return_is_reached():
    @wp.kernel
    def k(values: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        at, value = first_above(values, i, 20.0)
        h = hit(float(i))
        out[i] = positive(float(i) - 5.0) + 1000.0 * float(at) + value + h.t + h.normal[2] + float(h.k)

    values = (np.arange(N) * 3 % 23).astype(np.float32)

    def expected(i):
        above = [j for j in range(i) if values[j] > 20]
        found = 1000 * above[0] + values[above[0]] if above else 0
        return max(0, 2 * (i - 5)) + found + (2 * i + 3 if i > 10 else 0)

    assert run(k, wp.array(values)).tolist() == [expected(i) for i in range(N)]


def test_a_local_is_zero_where_no_assignment_was_reached():
    @wp.kernel
    def k(out: wp.array[float]):
        i = wp.tid()
        if i % 3 == 0:
            x = 5.0
            v = wp.vec3(1.0, float(i), 2.0)
            h = Hit(t=4.0)
            t = (7, 0.5)
        for j in range(i % 4):
            last = j + 1
        steps = int(0)
        while steps < i % 5:
            square = steps * steps
            steps += 1
        out[i] = x + v[1] + h.t + float(t[0]) + t[1] + 100.0 * float(last) + 1000.0 * float(square)

    def expected(i):
        found = 5 + i + 4 + 7.5 if i % 3 == 0 else 0
        return found + 100 * (i % 4) + 1000 * max(i % 5 - 1, 0) ** 2

    assert run(k).tolist() == [expected(i) for i in range(N)]


def test_iterations_read_what_earlier_ones_have_assigned():
    @wp.kernel
    def k(out: wp.array[float]):
        i = wp.tid()
        s = float(0.0)
        for j in range(i):
            if j % 5 == 3:
                seen = float(j)
            if j % 7 == 6:
                continue
            s += seen
            for m in range(j % 3):
                if m == 1:
                    inner = float(m + j)
                s += inner
            if j == 30:
                break
            late = s
        out[i] = s + seen * 1000.0 + late * 0.5

    def expected(i):
        s = seen = inner = late = np.float32(0.0)
        for j in range(i):
            if j % 5 == 3:
                seen = float(j)
            if j % 7 == 6:
                continue
            s += seen
            for m in range(j % 3):
                if m == 1:
                    inner = float(m + j)
                s += inner
            if j == 30:
                break
            late = s
        return s + seen * 1000 + late * 0.5

    assert run(k).tolist() == [expected(i) for i in range(N)]


def test_a_break_of_an_unrolled_loop_keeps_earlier_values():
    @wp.kernel
    def k(out: wp.array[float]):
        i = wp.tid()
        for a in (1.0, 2.0, 3.0):
            if float(i % 5) < a:
                break
            y = a
        out[i] = y

    assert run(k).tolist() == [float(min(i % 5, 3)) for i in range(N)]


def test_a_temporary_may_have_another_type_in_every_branch_and_loop():
    @wp.kernel
    def k(out: wp.array[float]):
        i = wp.tid()
        if i > 3:
            t = float(i) * 2.0
            out[i] += t
        if i > 5:
            t = i * 2
            out[i] += float(t)
        for j in range(i % 3):
            t = wp.vec3(float(j))
            out[i] += t[0]
        for j in range(i % 3):
            t = j
            out[i] += float(t)

    def expected(i):
        return (2 * i if i > 3 else 0) + (2 * i if i > 5 else 0) + 2 * sum(range(i % 3))

    assert run(k).tolist() == [expected(i) for i in range(N)]


def test_zeros_of_other_paths_have_no_gradient():
    @wp.func
    def bent(x: wp.float64):
        if x > wp.float64(0.0):
            return x * x

    @wp.kernel
    def k(x: wp.array[wp.float64], n: int, y: wp.array[wp.float64]):
        i = wp.tid()
        for j in range(n):
            if j == i:
                seen = x[j] * x[j]
            if j >= i:
                y[i] += seen * wp.float64(j)
        if x[i] > wp.float64(1.0):
            z = wp.sin(x[i])
        y[i] += z + bent(x[i])

    values = np.array([-1.5, -0.5, 0.5, 1.5, 2.5])
    x = wp.array(values, requires_grad=True)
    y = wp.zeros(5, dtype=wp.float64, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(k, dim=5, inputs=[x, 5, y])
    tape.backward(grads={y: wp.ones(5, dtype=wp.float64)})
    factors = np.array([sum(range(i, 5)) for i in range(5)])
    expected = 2 * values * factors + np.where(values > 1, np.cos(values), 0) + np.where(values > 0, 2 * values, 0)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("mode", ["release", "debug"])
def test_another_type_matters_only_where_it_is_read(mode):
    @wp.kernel(module_options={"mode": mode}, module="unique")
    def k(out: wp.array[float]):
        i = wp.tid()
        if i > 3:
            t = float(i)
        else:
            t = i
        t = 1.0
        out[i] = t

    assert run(k).tolist() == [1.0] * N


# ---- debug mode ----


def line_of(error):
    """The line that a fault shows, without its indentation."""
    return str(error.value).splitlines()[1].strip()


def test_debug_mode_raises_where_no_assignment_was_reached(device):
    @wp.kernel(module_options={"mode": "debug"}, module="unique")
    def k(n: int, x: wp.array[float]):
        i = wp.tid()
        if i < n:
            a = 1.0
        x[i] = a + 3.0

    x = wp.zeros(5, device=device)
    wp.launch(k, 5, inputs=[5, x], device=device)
    assert x.numpy().tolist() == [4.0] * 5
    with pytest.raises(NameError, match="NameError: 'a' is read before it is assigned.*thread .3,.") as error:
        wp.launch(k, 5, inputs=[3, x], device=device)
    assert isinstance(error.value, wp.UsageError)
    assert line_of(error) == "x[i] = a + 3.0"


@wp.func
def last_above(values: wp.array[float], limit: float):
    for k in range(values.shape[0]):
        if values[k] > limit:
            last = k
    return last


def test_debug_mode_knows_what_loops_have_assigned():
    @wp.kernel(module_options={"mode": "debug"}, module="unique")
    def k(steps: int, values: wp.array[float], x: wp.array[float]):
        for j in range(steps):
            if j == 2:
                seen = float(j)
            if j > 3:
                break
            late = wp.vec2(float(j), 1.0)
        n = int(0)
        while n < steps:
            n += 1
            if n % 2 == 0:
                continue
            odd = n
        if steps < 3:
            seen = 7.0
        x[0] = seen
        if steps > 0:
            x[1] = late[0] + float(odd)
        x[2] = float(last_above(values, 2.5))

    def run(steps, values):
        x = wp.zeros(3)
        wp.launch(k, 1, inputs=[steps, wp.array(values, dtype=float), x])
        return x.numpy().tolist()

    assert run(9, [1, 3, 2]) == [2.0, 12.0, 1.0]
    assert run(1, [3]) == [7.0, 1.0, 0.0]
    assert run(0, [4]) == [7.0, 0.0, 0.0]
    with pytest.raises(NameError, match="'last' is read before it is assigned.*in 'last_above'") as error:
        run(1, [1, 2])
    assert line_of(error) == "return last"
    with pytest.raises(NameError, match="'last'"):
        run(1, [])


def test_debug_mode_takes_what_is_assigned_on_every_path():
    @wp.struct
    class Pair:
        a: float
        b: float

    @wp.kernel(module_options={"mode": "debug"}, module="unique")
    def k(x: wp.array[float]):
        i = wp.tid()
        if i == 0:
            p = Pair(a=1.0)
            t = (1.0, 2)
        elif i == 1:
            p = Pair(b=2.0)
            t = (3.0, 4)
        else:
            p = Pair()
            t = (5.0, 6)
            if i == 3:
                return
        for j in range(4):
            if j == i:
                found = float(j)
                break
        else:
            found = -1.0
        while True:
            inner = found + t[0]
            if inner > 0.0:
                break
            found += 1.0
        x[i] = inner + p.a + p.b + float(t[1])

    x = wp.zeros(5)
    wp.launch(k, 5, inputs=[x])
    assert x.numpy().tolist() == [1 + 1 + 2, 1 + 3 + 2 + 4, 2 + 5 + 6, 0, -1 + 5 + 6]


def test_debug_mode_has_the_same_gradients():
    def body(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        for j in range(i + 1):
            if j == i:
                seen = x[j] * x[j]
            if j >= i:
                y[i] += seen

    gradients = []
    for mode in ("release", "debug"):
        k = wp.kernel(body, module_options={"mode": mode}, module="unique")
        x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
        y = wp.zeros(3, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(k, 3, inputs=[x, y])
        tape.backward(grads={y: wp.ones(3)})
        gradients.append(x.grad.numpy().tolist())
    assert gradients == [[2.0, 4.0, 6.0]] * 2
