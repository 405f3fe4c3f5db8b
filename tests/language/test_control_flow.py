"""if, for, while, break, continue, return in every combination, with lanes that take different ways (S-CFL)."""

import numpy as np
import pytest
import warp as wp

N = 37  # no multiple of any lane count


def run(kernel, *inputs, dtype=int, count=N):
    out = wp.zeros(count, dtype=dtype)
    wp.launch(kernel, dim=count, inputs=[*inputs, out])
    return out.numpy().tolist()


@pytest.mark.seed("S-CFL-001")
@pytest.mark.seed("S-CFL-006")
def test_if_elif_else_keeps_values_set_before():
    @wp.func
    def is_even(i: int):
        return i % 2 == 0

    @wp.kernel
    def k(out: wp.array[int]):
        i = wp.tid()
        color = 5
        other = 1
        if i < 10 and i > 3:
            color = 1
        elif is_even(i):
            color = 2
            other = i
        elif i == 11:
            other = 7
        else:
            color = color + i
        out[i] = 1000 * other + color

    def expected(i):
        color, other = 5, 1
        if 3 < i < 10:
            color = 1
        elif i % 2 == 0:
            color, other = 2, i
        elif i == 11:
            other = 7
        else:
            color = color + i
        return 1000 * other + color

    assert run(k) == [expected(i) for i in range(N)]


@pytest.mark.seed("S-CFL-002")
@pytest.mark.seed("S-CFL-003")
def test_matrix_product_with_run_time_bounds():
    @wp.kernel
    def product(a: wp.array2d[float], b: wp.array2d[float], c: wp.array2d[float]):
        i, j = wp.tid()
        s = float(0.0)
        for k in range(a.shape[1]):
            s += a[i, k] * b[k, j]
        c[i, j] = s

    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((13, 17)).astype(np.float32), rng.standard_normal((17, 19)).astype(np.float32)
    c = wp.zeros((13, 19))
    wp.launch(product, dim=(13, 19), inputs=[a, b, c])
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bounds", [(5,), (2, 9), (0, 10, 3), (10, 0, -3), (3, 3), (5, 2), (0, 40, 7)])
@pytest.mark.seed("S-CFL-005")
def test_static_and_dynamic_ranges_agree_with_python(bounds):
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]

    @wp.kernel
    def static(out: wp.array[int]):
        i = wp.tid()
        s = 0
        for n in range(start, stop, step):
            s = s * 3 + n + i
        out[i] = s

    @wp.kernel
    def dynamic(start: int, stop: int, out: wp.array[int]):
        i = wp.tid()
        s = 0
        for n in range(start, stop, step):
            s = s * 3 + n + i
        out[i] = s

    def expected(i):
        s = 0
        for n in range(start, stop, step):
            s = s * 3 + n + i
        return (s + 2**31) % 2**32 - 2**31

    assert run(static) == [expected(i) for i in range(N)]
    assert run(dynamic, start, stop) == [expected(i) for i in range(N)]


def test_trip_count_that_differs_between_lanes():
    @wp.kernel
    def k(out: wp.array[int]):
        i = wp.tid()
        s = 0
        for n in range(i % 7):
            for m in range(n, i):
                s += m
        out[i] = s

    assert run(k) == [sum(m for n in range(i % 7) for m in range(n, i)) for i in range(N)]


# fmt: off
def test_while_with_a_call_as_its_condition():
    @wp.func
    def go_on(x: int, limit: int):
        return x * x < limit

    @wp.kernel
    def k(out: wp.array[int]):
        i = wp.tid()
        x = 0
        while(go_on(x, i)):
            x += 1
        out[i] = x

    def expected(i):
        x = 0
        while x * x < i:
            x += 1
        return x

    assert run(k) == [expected(i) for i in range(N)]


@pytest.mark.seed("S-CFL-004")
def test_while_with_a_call_that_changes_a_local():
    @wp.func
    def next_square(x: wp.ref[int], limit: int):
        x += 1
        return x * x < limit

    @wp.kernel
    def k(out: wp.array[int]):
        i = wp.tid()
        x = 0
        total = 0
        while(next_square(x, i)):
            total += x
        out[i] = 1000 * total + x

    def expected(i):
        x, total = 1, 0
        while x * x < i:
            total += x
            x += 1
        return 1000 * total + x

    assert run(k) == [expected(i) for i in range(N)]
# fmt: on


@wp.func
def asked(counts: wp.array[int], at: int, answer: bool):
    wp.atomic_add(counts, at, 1)
    return answer


@pytest.mark.parametrize("lanes", [1, 0])
def test_what_a_condition_does_is_done_where_its_truth_is_known_when_the_kernel_is_built(lanes):
    @wp.kernel(module="unique", module_options={"lanes": lanes} if lanes else None)
    def k(counts: wp.array[int], out: wp.array2d[int]):
        i = wp.tid()
        a = int(0)
        while asked(counts, 0, a < 3) and 2 > 3:  # never, but it asks once
            a += 1
        b = int(0)
        while asked(counts, 1, b < 3) or 2 < 3:  # for ever
            b += 1
            if b > i:
                break
        c = int(0)
        while asked(counts, 2, c < i) and 2 < 3:
            c += 1
        d = int(0)
        if i % 2 == 0:
            while asked(counts, 3, d < i) and not (2 < 3 or d == 0):
                d += 1
        out[i, 0] = a
        out[i, 1] = b
        out[i, 2] = c
        out[i, 3] = d

    counts, out = wp.zeros(4, dtype=int), wp.full((N, 4), -1, dtype=int)
    wp.launch(k, dim=N, inputs=[counts, out])
    i = np.arange(N)
    np.testing.assert_array_equal(out.numpy(), np.stack([0 * i, i + 1, i, 0 * i], axis=1))
    assert counts.numpy().tolist() == [N, (i + 1).sum(), (i + 1).sum(), (N + 1) // 2]


def test_a_condition_that_is_known_to_be_false_changes_a_local_once():
    @wp.kernel
    def k(out: wp.array2d[float]):
        i = wp.tid()
        asked_once = wp.rand_init(7, i)
        while wp.randf(asked_once) < 2.0 and 2 > 3:
            asked_once = wp.uint32(0)
        drawn = wp.rand_init(7, i)
        wp.randf(drawn)
        out[i, 0] = wp.randf(asked_once)
        out[i, 1] = wp.randf(drawn)

    out = wp.zeros((N, 2))
    wp.launch(k, dim=N, inputs=[out])
    found = out.numpy()
    np.testing.assert_array_equal(found[:, 0], found[:, 1])
    expected = []
    for i in range(N):
        state = wp.uint32(wp.rand_init(7, i))
        wp.randf(state)
        expected.append(wp.randf(state))
    np.testing.assert_array_equal(found[:, 1], np.array(expected, dtype=np.float32))
    assert len(np.unique(found[:, 1])) == N


def test_break_and_continue_in_nested_loops():
    @wp.kernel
    def k(out: wp.array[int]):
        i = wp.tid()
        s = 0
        for n in range(20):
            if n == i:
                break
            if n % 3 == 1:
                continue
            m = n
            while True:
                m += 2
                if m > i:
                    break
                if m % 5 == 0:
                    continue
                s += m
            s += 1
        out[i] = s

    def expected(i):
        s = 0
        for n in range(20):
            if n == i:
                break
            if n % 3 == 1:
                continue
            m = n
            while True:
                m += 2
                if m > i:
                    break
                if m % 5 == 0:
                    continue
                s += m
            s += 1
        return s

    assert run(k) == [expected(i) for i in range(N)]


def test_early_return_from_kernel_inside_loops():
    @wp.kernel
    def k(out: wp.array[int]):
        i = wp.tid()
        if i % 5 == 0:
            return
        out[i] = 1
        for n in range(10):
            if n == i:
                out[i] = 100 + n
                return
            out[i] += n
        out[i] = -out[i]

    def expected(i):
        if i % 5 == 0:
            return 0
        value = 1
        for n in range(10):
            if n == i:
                return 100 + n
            value += n
        return -value

    assert run(k) == [expected(i) for i in range(N)]


def test_stores_under_a_condition_touch_only_their_lanes():
    @wp.kernel
    def k(x: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        if x[i] > 0.0:
            out[i] = wp.sqrt(x[i])
            if x[i] > 0.5:
                out[i] += 1.0

    x = np.linspace(-1, 1, N).astype(np.float32)
    out = wp.full(N, -7.0, dtype=float)
    wp.launch(k, dim=N, inputs=[x, out])
    expected = np.where(x > 0, np.sqrt(np.maximum(x, 0)) + (x > 0.5), -7.0)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


def test_ternary_evaluates_only_the_chosen_arm():
    @wp.kernel
    def k(n: wp.array[int], x: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        out[i] = x[n[i]] if n[i] < x.shape[0] else -1.0

    n = np.array([0, 2**30, 1, 2**30, 2, 2, 0, 1, 2**30], dtype=np.int32)
    x = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    out = wp.zeros(len(n))
    wp.launch(k, dim=len(n), inputs=[n, x, out])
    assert out.numpy().tolist() == [x[v] if v < 3 else -1.0 for v in n]


def test_loop_over_dynamic_range_changes_vectors():
    @wp.kernel
    def k(out: wp.array[wp.vec3]):
        i = wp.tid()
        v = wp.vec3(0.0, 0.0, 0.0)
        for n in range(i):
            v[n % 3] += float(n)
            v.z = v.z * 0.5
        out[i] = v

    out = wp.zeros(N, dtype=wp.vec3)
    wp.launch(k, dim=N, inputs=[out])
    expected = np.zeros((N, 3), dtype=np.float32)
    for i in range(N):
        for n in range(i):
            expected[i, n % 3] += np.float32(n)
            expected[i, 2] *= np.float32(0.5)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


def test_collatz_lengths():
    @wp.kernel
    def k(out: wp.array[int]):
        i = wp.tid()
        n = wp.int64(i + 1)
        steps = 0
        while n != wp.int64(1):
            if n % wp.int64(2) == wp.int64(0):
                n = n // wp.int64(2)
            else:
                n = wp.int64(3) * n + wp.int64(1)
            steps += 1
        out[i] = steps

    def expected(n):
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    assert run(k, count=1000) == [expected(i + 1) for i in range(1000)]


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("dtype", [wp.int8, wp.uint16, wp.int32, wp.int64, wp.float16, wp.float32, wp.float64])
def test_an_element_is_read_before_the_loop_overwrites_it(dtype, lanes):
    """LLVM merged the read with the choice of active lanes, past the store that follows the read."""

    @wp.kernel(module_options={"lanes": lanes})
    def last_but_one(counts: wp.array(dtype=int), forward: wp.array(dtype=dtype), backward: wp.array(dtype=dtype)):
        i = wp.tid()
        j = forward.shape[0] - 1 - i
        a = dtype(9)
        b = dtype(9)
        for k in range(counts[i]):
            a = forward[i]
            forward[i] = dtype(k)
            b = backward[j]
            backward[j] = dtype(k)
        forward[i] = a
        backward[j] = b

    counts = np.random.default_rng(5).integers(0, 20, 101).astype(np.int32)  # more than are unrolled
    forward, backward = wp.full(101, 7, dtype=dtype), wp.full(101, 7, dtype=dtype)
    wp.launch(last_but_one, dim=101, inputs=[wp.array(counts), forward, backward])
    expected = [9 if n == 0 else 7 if n == 1 else n - 2 for n in counts]
    assert forward.list() == expected
    assert backward.list() == expected[::-1]


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2, -3])
def test_loops_that_begin_here_and_there_and_step_to_one_end(step):
    """Lanes that count by one may count together; those that count by two can be at odd and even numbers."""
    last = 20 if step > 0 else 0

    @wp.kernel
    def k(start: wp.array[int], last: int, total: wp.array[int], alternating: wp.array[float]):
        i = wp.tid()
        t, s = int(0), float(1.0)
        for n in range(start[i], last, step):
            t = t * 3 + n
            s = 0.5 * s + float(n)
        total[i] = t
        alternating[i] = s

    begin = np.random.default_rng(3).integers(0, 20, 200).astype(np.int32)
    total, alternating = wp.zeros(200, dtype=int), wp.zeros(200)
    wp.launch(k, dim=200, inputs=[wp.array(begin, dtype=int), last, total, alternating])
    for i, b in enumerate(begin):
        t, s = np.int32(0), np.float32(1.0)
        with np.errstate(over="ignore"):
            for n in range(int(b), last, step):
                t = np.int32(t * np.int32(3) + np.int32(n))
                s = np.float32(0.5) * s + np.float32(n)
        assert total.numpy()[i] == t
        assert alternating.numpy()[i] == s
