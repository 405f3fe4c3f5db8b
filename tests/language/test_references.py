"""wp.ref[T]: an assignment to such a parameter changes the caller's variable, as in release 1.19."""

from typing import Any

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected

N = 37  # no multiple of any lane count


@wp.struct
class State:
    a: wp.float64
    v: wp.vec3d


@wp.func
def grow(x: wp.ref[wp.float64], by: wp.float64):
    x += by
    x = x * wp.float64(2.0)


@wp.func
def grow_twice(x: wp.ref[wp.float64]):
    grow(x, wp.float64(1.0))
    grow(x, wp.float64(2.0))


@wp.func
def bend(v: wp.ref[wp.vec3d]):
    v[1] = wp.float64(5.0)
    v.z = v.x + wp.float64(7.0)


@wp.func
def reset(s: wp.ref[State], limit: wp.float64) -> bool:
    if s.a > limit:
        s.a = limit
        return True
    for k in range(3):
        s.v[k] = wp.float64(k)
        if s.a < wp.float64(0.0):
            return False
    s.a += wp.float64(1.0)
    return False


@wp.func
def swap(x: wp.ref[Any], y: wp.ref[Any]):
    x, y = y, x


@wp.func
def untouched(x: wp.ref[wp.float64], y: wp.ref[wp.float64]):
    y = x + wp.float64(1.0)
    return wp.float64(10.0)


def run(kernel, *inputs):
    wp.launch(kernel, dim=1, inputs=list(inputs))


def test_locals_elements_fields_components_and_rows():
    @wp.kernel
    def k(
        out: wp.array[wp.float64], v: wp.array[wp.vec3d], s: wp.array[State], m: wp.array[wp.mat33d], p: wp.array2d[int]
    ):
        x = wp.float64(1.0)
        grow(x, 2.0)
        grow_twice(x)
        out[0] = x
        grow(out[1], wp.float64(5.0))
        bend(v[0])
        w = wp.vec3d(1.0, 2.0, 3.0)
        bend(w)
        grow(w[0], 1.0)
        grow(w.y, by=1.0)
        out[2] = w[0] + w[1] * wp.float64(100.0) + w[2] * wp.float64(10000.0)
        t = State()
        grow(t.a, 1.0)
        bend(t.v)
        out[3] = t.a + t.v[1] + t.v[2]
        bend(s[0].v)
        grow(s[0].a, 1.0)
        grow(s[0].v[0], 1.0)
        bend(m[0][1])
        y = wp.float64(3.0)
        out[4] = untouched(x, y)
        out[5] = y
        swap(p[0, 1], p[1, 0])

    out, v, s = wp.zeros(6, dtype=wp.float64), wp.zeros(1, dtype=wp.vec3d), wp.zeros(1, dtype=State)
    m, p = wp.zeros(1, dtype=wp.mat33d), wp.array([[1, 2], [3, 4]], dtype=int)
    run(k, out, v, s, m, p)
    assert out.numpy().tolist() == [32, 10, 4 + 1200 + 80000, 2 + 5 + 7, 10, 33]
    assert v.numpy().tolist() == [[0, 5, 7]]
    assert s.numpy()["a"][0] == 2 and s.numpy()["v"][0].tolist() == [2, 5, 7]
    assert m.numpy()[0].tolist() == [[0, 0, 0], [0, 5, 7], [0, 0, 0]]
    assert p.numpy().tolist() == [[1, 3], [2, 4]]


def test_returns_on_some_paths_and_calls_in_loops():
    @wp.kernel
    def k(start: wp.array[wp.float64], out: wp.array2d[wp.float64]):
        i = wp.tid()
        s = State(a=start[i])
        n = int(0)
        for j in range(i % 7):
            if reset(s, 3.0):
                n += 1
            if j == 5:
                break
        while s.a < wp.float64(2.0) and n < 5:
            grow(s.a, 0.5)
            n += 1
        out[i, 0] = s.a
        out[i, 1] = s.v[2]
        out[i, 2] = wp.float64(n)

    start = np.linspace(-3, 5, N)
    out = wp.zeros((N, 3), dtype=wp.float64)
    wp.launch(k, dim=N, inputs=[wp.array(start), out])
    for i in range(N):
        a, v, n = start[i], [0.0, 0.0, 0.0], 0
        for j in range(i % 7):
            if a > 3:
                a, n = 3.0, n + 1
            else:
                for c in range(3):
                    v[c] = c
                    if a < 0:
                        break
                else:
                    a += 1
            if j == 5:
                break
        while a < 2 and n < 5:
            a, n = (a + 0.5) * 2, n + 1
        np.testing.assert_allclose(out.numpy()[i], [a, v[2], n], err_msg=str(i))


def test_gradients_pass_through_references():
    @wp.kernel
    def k(x: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        s = State(a=x[i] * x[i])
        for _j in range(i):
            reset(s, 6.0)
            grow(s.a, x[i])
        grow(y[i], s.a)
        y[i] += s.v[2] * x[i]

    values = np.array([0.3, 0.7, -0.4, 0.2])
    x = wp.array(values, requires_grad=True)
    y = wp.zeros(4, dtype=wp.float64, requires_grad=True)

    def by_python(x, i):
        a, v = x * x, 0.0
        for _ in range(i):
            if a > 6:
                a = 6.0
            else:
                v = 2.0 if a >= 0 else v
                a = a + 1 if a >= 0 else a
            a = (a + x) * 2
        return a * 2 + v * x

    with wp.Tape() as tape:
        wp.launch(k, dim=4, inputs=[x, y])
    tape.backward(grads={y: wp.ones(4, dtype=wp.float64)})
    for i in range(4):
        slope = (by_python(values[i] + 1e-6, i) - by_python(values[i] - 1e-6, i)) / 2e-6
        np.testing.assert_allclose(y.numpy()[i], by_python(values[i], i))
        np.testing.assert_allclose(x.grad.numpy()[i], slope, rtol=1e-6, err_msg=str(i))


def test_ref_annotations_compare_by_dtype():
    assert wp.ref[wp.int32].dtype is wp.int32
    assert wp.ref[float] == wp.ref[float] != wp.ref[int]
    assert len({wp.ref[wp.int32], wp.ref[wp.int32]}) == 1
    assert repr(wp.ref[wp.int32]) == "wp.ref[int32]"
