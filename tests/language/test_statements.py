"""Every form of statement, as vectors, as scalar code and with checks, beside what Python makes of the same text."""

import numpy as np
import pytest
import warp as wp

N = 37  # no multiple of any lane count
WAYS = [{}, {"lanes": 1}, {"lanes": 16}, {"mode": "debug"}]


@wp.struct
class Point:
    x: wp.vec3
    m: wp.mat33
    n: int


@wp.struct
class Body:
    p: Point
    values: wp.array(dtype=float)
    k: float


@wp.func
def plus_one(x: float):
    return x + 1.0


@wp.func
def doubled(x: float):
    return x * 2.0


@wp.func
def weighted(a: float, b: float, c: float):
    return a + 10.0 * b + 100.0 * c


FUNCTIONS = (plus_one, doubled, plus_one)
NUMBERS = [3, 1, 4, 1, 5]


def check(function, expected, *inputs, dtype=float):
    """Runs the kernel with (out, *inputs) in every way; `expected` gives the element of each thread."""
    for way in WAYS:
        kernel = wp.kernel(module_options=way, module="unique")(function)
        out = wp.zeros(N, dtype=dtype)
        wp.launch(kernel, dim=N, inputs=[out, *inputs])
        np.testing.assert_array_equal(out.numpy(), np.array([expected(i) for i in range(N)]), err_msg=str(way))


def test_targets_of_assignments():
    def kernel(out: wp.array[float]):
        i = wp.tid()
        (a, b), c = (float(i), 2.0), 3.0
        a, b = b, a
        x = y = a + c
        first, *rest = (1.0, 2.0, 3.0, 4.0)
        *most, last = wp.vec3(5.0, 6.0, 7.0)
        z: float = 0.5
        t: wp.array(dtype=float) = out
        t[i] = a + 3.0 * b + x * y + first + rest[1] + most[0] + last + z + float(len(rest))

    check(kernel, lambda i: 2.0 + 3.0 * i + 25.0 + 1.0 + 3.0 + 5.0 + 7.0 + 0.5 + 3.0)


def test_stars_unpack_tuples_and_vectors():
    def kernel(out: wp.array[float]):
        i = wp.tid()
        t = (float(i), 2.0, 3.0)
        v = wp.vec3(*t)
        out[i] = weighted(*t) + weighted(*v) * 0.5 + wp.vec3(*v)[2] + (*t, 9.0)[3]

    check(kernel, lambda i: 1.5 * (i + 320.0) + 12.0)


def test_parts_of_locals_and_of_memory_are_assigned():
    def kernel(out: wp.array[float], points: wp.array[Point], bodies: wp.array[Body]):
        i = wp.tid()
        b = Body()
        b.p.m[1, 2] = float(i)
        b.p.m[1][0] += 3.0
        b.p.x.y = 2.0
        b.p.x[2] *= 5.0
        b.k = 1.0
        points[i].x[0] = float(i)
        points[i].m[1, 2] += 3.0
        points[i].n += i
        bodies[i].p.x[1] -= 1.0
        bodies[i].k = float(2 * i)
        bodies[i].values[i] += 4.0
        p = points[i]
        p.n -= 1
        out[i] = b.p.m[1, 2] + b.p.m[1, 0] + b.p.x[1] + b.k + points[i].x.x + p.m[1][2] + float(p.n)
        out[i] += bodies[i].p.x.y

    for way in WAYS:
        bodies, values = [], wp.zeros(N, dtype=float)
        for _ in range(N):
            bodies.append(Body(values=values))
        out, points = wp.zeros(N, dtype=float), wp.zeros(N, dtype=Point)
        k = wp.kernel(module_options=way, module="unique")(kernel)
        array = wp.array(bodies, dtype=Body)
        wp.launch(k, dim=N, inputs=[out, points, array])
        np.testing.assert_array_equal(array.numpy()["k"], np.arange(0, 2 * N, 2))
        expected = [i + 3.0 + 2.0 + 1.0 + i + 3.0 + i - 1.0 - 1.0 for i in range(N)]
        np.testing.assert_array_equal(out.numpy(), expected, err_msg=str(way))
        np.testing.assert_array_equal(values.numpy(), np.full(N, 4.0), err_msg=str(way))
        np.testing.assert_array_equal(points.numpy()["n"], np.arange(N))


@pytest.mark.own_launches("all threads store the same number")
def test_augmented_assignments_on_every_place():
    def kernel(out: wp.array[int], matrices: wp.array[wp.mat22]):
        i = wp.tid()
        a = i + 7
        a |= 8
        a &= 61
        a ^= 5
        a <<= 3
        a >>= 1
        a //= 3
        a %= 7
        out[i] = a
        out[i] |= 16
        out[i] ^= i
        out[i] <<= 2
        out[i] >>= 1
        out[i] //= 3
        out[i] %= 11
        out[i] *= 3
        out[i] -= 1
        f = 2.0
        f **= 3.0
        f /= 4.0
        matrices[0] @= matrices[0]
        m = wp.mat22(1.0, 2.0, 3.0, 4.0)
        m @= m
        m[0, 1] /= 2.0
        m[1][1] -= 1.0
        out[i] += int(f) + int(m[0, 1] + m[1, 1])

    def expected(i):
        a = ((((((i + 7) | 8) & 61) ^ 5) << 3) >> 1) // 3 % 7
        o = ((((a | 16) ^ i) << 2) >> 1) // 3 % 11 * 3 - 1
        return o + 2 + 5 + 21

    check(kernel, expected, wp.array([np.eye(2)], dtype=wp.mat22), dtype=int)


@wp.func
def one_of(a: wp.array[float], b: wp.array[float], first: bool):
    if first:
        return a
    return b


def test_elements_of_arrays_in_tuples_and_of_computed_arrays_are_assigned():
    def kernel(out: wp.array[float], other: wp.array[float], rows: wp.array2d[float]):
        i = wp.tid()
        both = (out, other)
        both[0][i] = 1.0
        both[1][i] += 2.0
        for a in both:
            a[i] *= 3.0
        one_of(out, other, i % 2 == 0)[i] += 10.0
        (out if i < 5 else other)[i] -= 20.0
        pair = (rows, 1)
        pair[0][i][1:][0] = 7.0
        out[i] += 100.0 * other[i]

    def expected(i):
        values = [3.0, 6.0]
        values[i % 2] += 10.0
        values[0 if i < 5 else 1] -= 20.0
        return values[0] + 100.0 * values[1]

    for way in WAYS:
        out, other, rows = wp.zeros(N, dtype=float), wp.zeros(N, dtype=float), wp.zeros((N, 3), dtype=float)
        wp.launch(wp.kernel(module_options=way, module="unique")(kernel), dim=N, inputs=[out, other, rows])
        np.testing.assert_array_equal(out.numpy(), [expected(i) for i in range(N)], err_msg=str(way))
        np.testing.assert_array_equal(rows.numpy(), np.tile([0.0, 7.0, 0.0], (N, 1)))


@wp.func
def raised(a: wp.array[float], i: int):
    a[i] = a[i] + 10.0
    return 1.0


def test_an_element_is_added_to_after_the_operand_is_known():
    def kernel(out: wp.array[float]):
        i = wp.tid()
        ...
        out[i] += raised(out, i)
        out[i] *= raised(out, i) + 1.0

    check(kernel, lambda i: 22.0)


def test_assertions_show_their_message_in_debug_mode_only():
    def kernel(out: wp.array[int]):
        i = wp.tid()
        assert i >= 0, f"{i} is never negative"
        assert i < 3, f"thread {i} of {out.shape[0] - 1}"
        out[i] = 1

    out = wp.zeros(5, dtype=int)
    wp.launch(wp.kernel(module_options={"mode": "debug"}, module="unique")(kernel), dim=3, inputs=[out])
    wp.synchronize()
    with pytest.raises(RuntimeError) as caught:
        wp.launch(wp.kernel(module_options={"mode": "debug"}, module="unique")(kernel), dim=5, inputs=[out])
        wp.synchronize()
    assert not isinstance(caught.value, wp.CompileError)
    assert "thread 3 of 4" in str(caught.value)
    wp.launch(wp.kernel(module="unique")(kernel), dim=5, inputs=[out])
    assert out.numpy().sum() == 5


def test_slices_of_vectors_and_matrices_are_read_and_written():
    V = np.arange(1.0, 7.0, dtype=np.float32)
    M = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    vec6, mat34 = wp.types.vector(6, float), wp.types.matrix((3, 4), float)

    def kernel(out: wp.array2d[float], v: vec6, m: mat34, vs: wp.array[vec6], ms: wp.array[mat34]):
        i = wp.tid()
        r = i % 3
        w = v[1:4]
        e = v[::-2]
        a = m[1:3, 0:2]
        c = m[:, -1]
        d = m[r, 1:3]
        v[0:2] = wp.vec2(-1.0, -2.0)
        v[4:] += wp.vec2(10.0, 20.0)
        v[2:4] = 0.0
        m[0:2, 1:3] = wp.mat22(7.0, 8.0, 9.0, 10.0)
        m[2] = wp.vec4(1.0, 2.0, 3.0, 4.0)
        m[:, 0] *= 2.0
        m[r, 2:4] = (50.0, 60.0)
        m[0:2][1, 3] = 5.0
        vs[i] = v
        vs[i][1:3] = wp.vec2(40.0, 41.0)
        ms[i] = m
        ms[i][1:3, 2:4] = wp.mat22(1.0, 2.0, 3.0, 4.0)
        ms[i][r, 0:2] -= wp.vec2(1.0, 1.0)
        for k in range(3):
            out[i, k] = w[k] + 10.0 * e[k] + 100.0 * c[k]
        out[i, 3] = a[0, 1] + 10.0 * a[1, 0] + 100.0 * d[1]

    for way in WAYS:
        out, vs, ms = wp.zeros((N, 4), dtype=float), wp.zeros(N, dtype=vec6), wp.zeros(N, dtype=mat34)
        k = wp.kernel(module_options=way, module="unique")(kernel)
        wp.launch(k, dim=N, inputs=[out, vec6(*V.tolist()), mat34(*M.ravel().tolist()), vs, ms])
        for i in range(N):
            v, m, r = V.copy(), M.copy(), i % 3
            first = v[1:4] + 10.0 * v[::-2] + 100.0 * m[:, -1]
            last = m[1, 1] + 10.0 * m[2, 0] + 100.0 * m[r, 2]
            np.testing.assert_array_equal(out.numpy()[i], [*first, last])
            v[0:2], v[2:4] = (-1, -2), 0
            v[4:] += (10, 20)
            m[0:2, 1:3] = [[7, 8], [9, 10]]
            m[2] = 1, 2, 3, 4
            m[:, 0] *= 2
            m[r, 2:4] = 50, 60
            m[0:2][1, 3] = 5
            v[1:3] = 40, 41
            m[1:3, 2:4] = [[1, 2], [3, 4]]
            m[r, 0:2] -= 1
            np.testing.assert_array_equal(vs.numpy()[i], v)
            np.testing.assert_array_equal(ms.numpy()[i], m, err_msg=f"{way} {i}")


@pytest.mark.seed("S-IDX-003")
def test_slices_of_arrays_are_views_cut_as_in_python():
    A = np.arange(60.0, dtype=np.float32).reshape(10, 6)
    bounds = [(0, 3), (2, 8), (-3, 10), (4, 100), (-100, 2), (7, 3), (-4, -1)]

    @wp.func
    def total(a: wp.array[float]):
        s = float(0.0)
        for k in range(len(a)):
            s += a[k]
        return s

    def kernel(out: wp.array2d[float], a: wp.array2d[float], lo: wp.array[int], hi: wp.array[int]):
        i = wp.tid()
        rows = a[lo[i] : hi[i]]
        out[i, 0] = float(len(rows))
        column = a[lo[i] : hi[i], 2]
        out[i, 1] = total(column)
        out[i, 2] = total(a[i, 1:-1])
        out[i, 3] = total(a[i][lo[i] : hi[i]])
        out[i, 4] = float(a[:, 1:3].shape[0] * 10 + a[:, 1:3].shape[1])
        out[5:, 5][i] = 1.0

    for way in WAYS:
        out = wp.zeros((12, 6), dtype=float)
        lo, hi = (wp.array([b[k] for b in bounds], dtype=int) for k in (0, 1))
        wp.launch(wp.kernel(module_options=way, module="unique")(kernel), dim=len(bounds), inputs=[out, A, lo, hi])
        for i, (low, high) in enumerate(bounds):
            want = [len(A[low:high]), A[low:high, 2].sum(), A[i, 1:-1].sum(), A[i][low:high].sum(), 102.0]
            np.testing.assert_array_equal(out.numpy()[i, :5], want, err_msg=f"{way} {low}:{high}")
        assert out.numpy()[:, 5].tolist() == [0.0] * 5 + [1.0] * 7


def test_local_arrays_belong_to_one_thread_and_start_as_zeros():
    def kernel(out: wp.array[float]):
        i = wp.tid()
        s = float(0.0)
        for k in range(i % 5 + 1):
            a = wp.zeros(shape=(4, 3), dtype=float)
            v = wp.zeros(2, dtype=wp.vec3)
            a[k % 4, i % 3] += float(i)
            a[i % 4, 2] += 1.0
            v[k % 2][1] = float(k)
            b = a[1:3]
            for r in range(4):
                for c in range(3):
                    s += a[r, c] * float(r + 1)
            s += float(b.shape[0]) + v[1].y + v[0][1]
        out[i] = s

    def expected(i):
        s = 0.0
        for k in range(i % 5 + 1):
            a = np.zeros((4, 3))
            a[k % 4, i % 3] += i
            a[i % 4, 2] += 1.0
            s += float((a * np.arange(1, 5)[:, None]).sum()) + 2.0 + k
        return s

    check(kernel, expected)


@pytest.mark.host_memory("passes an address of NumPy")
def test_memory_behind_an_address():
    def kernel(out: wp.array[float], address: wp.uint64, n: int):
        i = wp.tid()
        a = wp.array(ptr=address, shape=(n, 2), dtype=wp.vec2)
        out[i] = a[i % n, 1].y + float(a.shape[0])

    data = np.arange(40.0, dtype=np.float32).reshape(10, 2, 2)
    check(kernel, lambda i: data[i % 10, 1, 1] + 10.0, wp.uint64(data.ctypes.data), 10)


def test_loops_over_sequences_with_break_continue_and_return():
    @wp.func
    def found(x: float):
        for k, limit in enumerate((1.0, 3.0, 9.0)):
            if x < limit:
                return k
        return -1

    def kernel(out: wp.array[float], x: wp.array[float]):
        i = wp.tid()
        s = x[i]
        last = 0
        for f in FUNCTIONS:
            if s > 12.0:
                break
            s = f(s)
        for j in NUMBERS:
            if j == 4 and x[i] < 10.0:
                continue
            last = j
            if float(j) > x[i]:
                break
            for k in range(i):
                if k > j:
                    break
                s += 0.25
        for j in wp.static(range(3)):
            s += float(j)
        for a, b in zip((1.0, 2.0), wp.vec2(3.0, 4.0)):
            s += a * b
        for c in reversed(wp.vec3(1.0, 2.0, 3.0)):
            s = s * 0.5 + c
        out[i] = s + 1000.0 * float(last) + 10000.0 * float(found(x[i]))

    X = (np.arange(N) % 16).astype(np.float32)

    def expected(i):
        x = s = float(X[i])
        last = 0
        for f in (lambda v: v + 1.0, lambda v: v * 2.0, lambda v: v + 1.0):
            if s > 12.0:
                break
            s = f(s)
        for j in NUMBERS:
            if j == 4 and x < 10.0:
                continue
            last = j
            if j > x:
                break
            for k in range(i):
                if k > j:
                    break
                s += 0.25
        s += 3.0 + 11.0
        for c in (3.0, 2.0, 1.0):
            s = s * 0.5 + c
        where = 0 if x < 1.0 else 1 if x < 3.0 else 2 if x < 9.0 else -1
        return np.float32(s + 1000.0 * last + 10000.0 * where)

    check(kernel, expected, wp.array(X))


def test_else_of_loops_runs_where_no_break_did():
    def body(i, x, n):
        s = 0
        for k in range(n):
            if x[(i + k) % 7] == 3:
                s += 100
                break
        else:
            s += 1
        k = 0
        while k < i % 4:
            k += 1
            if k == 2:
                break
            for j in (5, 6):
                if j == i % 8:
                    break
            else:
                s += 10
        else:
            s += 1000
        for _ in range(2):
            s += 3
        else:
            s += 5
        return s

    by_kernel = wp.func(body)

    def kernel(out: wp.array[int], x: wp.array[int], n: int):
        i = wp.tid()
        out[i] = by_kernel(i, x, n)

    X = [1, 2, 3, 4, 5, 6, 7]
    check(kernel, lambda i: body(i, X, 4), wp.array(X, dtype=int), 4, dtype=int)


def test_arrays_and_structs_with_arrays_are_chosen_and_carried():
    def kernel(out: wp.array[float], a: wp.array[float], b: wp.array[float], missing: wp.array[float]):
        i = wp.tid()
        src = a if i % 2 == 0 else b
        if i % 3 == 0:
            dst = a
        elif i % 3 == 1:
            dst = b
        else:
            dst = missing
        s = src[i]
        if dst is not None:
            s += 100.0 * dst[i]
        for _ in range(i % 4):
            src, dst = dst, src
            if src is None:
                break
        if src is not None:
            s += 10000.0 * src[0]
        body = Body(values=a)
        for k in range(i % 5):
            if k == 2:
                body.values = b
            body.k += 1.0
            body.p.n += k
        if body.k > 1.0:
            body.p.x[0] = 5.0
        out[i] = s + body.values[i] + body.k + body.p.x[0] + float(body.p.n)

    A, B = np.arange(N, dtype=np.float32), np.arange(N, dtype=np.float32) + 64

    def expected(i):
        src = A if i % 2 == 0 else B
        dst = (A, B, None)[i % 3]
        s = src[i] + (100.0 * dst[i] if dst is not None else 0.0)
        for _ in range(i % 4):
            src, dst = dst, src
            if src is None:
                break
        if src is not None:
            s += 10000.0 * src[0]
        n = i % 5
        return s + (B if n > 2 else A)[i] + n + (5.0 if n > 1 else 0.0) + sum(range(n))

    check(kernel, expected, wp.array(A), wp.array(B), None)


def test_writes_through_a_chosen_array_are_seen_by_the_launch():
    @wp.kernel
    def kernel(a: wp.array[float], b: wp.array[float]):
        i = wp.tid()
        dst = a if i % 2 == 0 else b
        dst[i] += 1.0
        a[i] += 10.0
        dst[i] *= 2.0

    a, b = wp.zeros(N, dtype=float), wp.zeros(N, dtype=float)
    wp.launch(kernel, dim=N, inputs=[a, b])
    assert a.numpy().tolist() == [22.0 if i % 2 == 0 else 10.0 for i in range(N)]
    assert b.numpy().tolist() == [0.0 if i % 2 == 0 else 2.0 for i in range(N)]


def test_functions_return_and_take_tuples_structs_and_arrays():
    @wp.func
    def larger(a: wp.array[float], b: wp.array[float]):
        if len(a) > len(b):
            return a
        return b

    @wp.func
    def split(t: Body, i: int):
        t.k = float(i)
        if i > 3:
            return t, (i, float(i))
        t.p.x = wp.vec3(1.0)
        return t, (0, 1.0)

    def kernel(out: wp.array[float], a: wp.array[float], b: wp.array[float]):
        i = wp.tid()
        body, (n, f) = split(Body(values=a), i)
        t = (n, f) if i % 2 == 0 else (7, 8.0)
        for _ in range(i % 3):
            t = (t[0] + 1, t[1] * 2.0)
        out[i] = larger(a, b)[1] + body.k + body.p.x[2] + body.values[0] + float(t[0]) + t[1]

    def expected(i):
        n, f = (i, float(i)) if i > 3 else (0, 1.0)
        t = (n, f) if i % 2 == 0 else (7, 8.0)
        for _ in range(i % 3):
            t = (t[0] + 1, t[1] * 2.0)
        return 6.0 + i + (0.0 if i > 3 else 1.0) + 2.0 + t[0] + t[1]

    check(kernel, expected, wp.array([2.0], dtype=float), wp.array([5.0, 6.0], dtype=float))


def test_python_functions_of_sequences():
    def kernel(out: wp.array[float], x: wp.array[float]):
        i = wp.tid()
        v = wp.vec3(x[i], 2.0, 3.0)
        s = min(x[i], 4.0, 2.5) + max((1.0, x[i], 3.0)) + sum(v) + sum((1.0, x[i])) + abs(x[i])
        if any((x[i] > 5.0, False)) and all((x[i] < 30.0, True)) and x[i] in (6.0, 7.0) and 2.0 in v:
            s += 1000.0
        if x[i] not in v:
            s += 5000.0
        if 1.0 < x[i] < 4.0 and x[i] is not None:
            s += 2000.0
        out[i] = s

    def expected(i):
        x = float(i)
        s = min(x, 4.0, 2.5) + max(1.0, x, 3.0) + x + 5.0 + 1.0 + x + x
        return s + (1000.0 if i in (6, 7) else 0.0) + (2000.0 if 1 < i < 4 else 0.0)

    check(kernel, expected, wp.array(np.arange(N, dtype=np.float32)))


def test_pythons_names_convert_and_tell_types():
    def kernel(out: wp.array[float], x: wp.array[float]):
        i = wp.tid()
        y = x[i]
        s = float(int(y)) + 100.0 * float(len(wp.vec3(y)) + len((y, i)))
        if bool(y) and not bool(0) and bool(i + 1):
            s += 1000.0
        s += type(y)(2) * type(s)(i) + float(type(i)(7.9))
        out[i] = s

    X = np.linspace(-3.0, 6.0, N).astype(np.float32)
    X[5] = 0.0
    check(kernel, lambda i: int(X[i]) + 500.0 + (1000.0 if X[i] else 0.0) + 2.0 * i + 7.0, wp.array(X))


def test_prints_text_numbers_and_formats(capfd):
    @wp.kernel
    def kernel(x: wp.array[float], n: int):
        """A docstring says nothing."""
        pass
        v = wp.vec2(1.0, 2.5)
        print("x", x[0], n, sep=", ", end="!\n")
        print(f"{x[0]:.3f}|{n:5d}|{n:<5}|{n:05}|{x[0]:+8.2e}|{v:.1f}|{wp.uint32(n):#x} 100%")
        print(*v, (n, 2), True, None, "%d")
        print()

    wp.launch(kernel, dim=1, inputs=[wp.array([0.5], dtype=float), 42])
    wp.synchronize()
    assert capfd.readouterr().out.splitlines() == [
        "x, 0.5, 42!",
        f"{0.5:.3f}|{42:5d}|{42:<5}|{42:05}|{0.5:+8.2e}|1.0 2.5|{42:#x} 100%",
        "1 2.5 42 2 True None %d",
        "",
    ]


def test_an_index_outside_a_local_array_or_slice_is_found_in_debug_mode():
    @wp.kernel(module_options={"mode": "debug"})
    def kernel(a: wp.array2d[float], n: int):
        local = wp.zeros(4, dtype=float)
        if n > 0:
            local[n] = 1.0
        else:
            a[:, 1][-n] = 1.0

    a = wp.zeros((3, 2), dtype=float)
    wp.launch(kernel, dim=1, inputs=[a, 3])
    for n in (4, -3):
        with pytest.raises(IndexError, match="local" if n > 0 else "a"):
            wp.launch(kernel, dim=1, inputs=[a, n])
            wp.synchronize()


def test_the_target_of_an_annotated_assignment_is_read_like_any_other():
    @wp.kernel
    def k(out: wp.array2d[float], n: int):
        for i in range(n):
            last = i + 1
        out[0, last]: float = 1.0
        for i in range(n):
            out[1, (at := i + 1)]: float = 2.0
        out[1, 0] = float(at)
        for i in range(3):
            out[2, wp.static(i + 1)]: float = 3.0
        v = wp.vec2()
        for i in range(n):
            v[i]: float = float(i) + 4.0
        out[3, 0] = v[0]
        out[3, 1] = v[1]

    out = wp.zeros((4, 4))
    wp.launch(k, dim=1, inputs=[out, 2])
    assert out.numpy().tolist() == [[0, 0, 1, 0], [2, 2, 2, 0], [0, 3, 3, 3], [4, 5, 0, 0]]
