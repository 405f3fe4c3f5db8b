"""Programs whose gradients other systems have got wrong, as users wrote them: five that were measured, and the patterns
of reports."""

import frameworks
import numpy as np
import pytest
import warp as wp
from differences import check_program
from sweep import load
from tapes import doubles, gradients, square

RNG = np.random.default_rng(23)


def output(n, dtype=wp.float64):
    return wp.zeros(n, dtype=dtype, requires_grad=True)


# ---- what was measured ----


@wp.kernel
def power(x: wp.array[wp.float64], n: int, y: wp.array[wp.float64]):
    s = wp.float64(1.0)
    for _k in range(n):
        s = s * x[0]
    y[0] = s


@wp.kernel
def over_norm(x: wp.array[wp.float64], n: int, y: wp.array[wp.float64]):
    s = wp.float64(0.0)
    for k in range(n):
        s += x[k] * x[k]
    y[0] = x[0] / wp.sqrt(s)


@wp.kernel
def squares(x: wp.array[wp.float64], n: int, y: wp.array[wp.float64]):
    s = x[0]
    while s < wp.float64(100.0):
        s = s * s
    y[0] = s


@wp.kernel
def components(x: wp.array[wp.float64], n: int, y: wp.array[wp.float64]):
    v = wp.vec3d()
    v[n - 3] = x[0]
    v[0] = v[0] * x[0]
    v[0] = v[0] * x[0]
    y[0] = v[0]


@pytest.mark.parametrize(
    "kernel, x, n, expected",
    [
        (power, [2.0], 3, [12.0]),
        (over_norm, [3.0, 4.0, 0.0], 3, [16.0 / 125.0, -12.0 / 125.0, 0.0]),
        (squares, [2.0], 0, [1024.0]),
        (components, [2.0], 3, [12.0]),
    ],
    ids=["product in a loop", "over a norm", "while", "components"],
)
def test_four_measured_kernels(kernel, x, n, expected):
    (found,) = gradients(kernel, 1, [doubles(x, requires_grad=True), n], [output(1)], [[1.0]])
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-16)


def test_squaring_an_array_in_place_twice():
    x = doubles([2.0], requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=1, inputs=[x])
        wp.launch(square, dim=1, inputs=[x])
    tape.backward(grads={x: doubles([1.0])})
    assert x.grad.numpy()[0] == 32.0


# ---- loops ----


@wp.kernel
def around_a_loop(x: wp.array[wp.float64], count: int, y: wp.array[wp.float64]):
    i = wp.tid()
    before = wp.sin(x[i]) * x[i]
    kept = before
    s = wp.float64(0.0)
    for k in range(count):
        s += before * wp.float64(k)
        before = before * x[i]
    y[i] = kept * before + wp.sqrt(s + wp.float64(1.0)) * wp.exp(-s) / (s + wp.float64(2.0))


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_value_from_before_a_loop_and_what_is_done_with_the_sum_after_it(count):
    def program(x):
        y = output(13)
        wp.launch(around_a_loop, dim=13, inputs=[x, count, y])
        return y

    check_program(program, [RNG.uniform(0.2, 1.2, 13)])


@wp.kernel
def both_arms(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    n = x.shape[0]
    a = x[i] if x[i] > x[(i + 1) % n] else x[(i + 1) % n] * x[i]
    y[i] = a * (x[i] if a < wp.float64(0.5) else -x[i])


def test_a_choice_that_reads_one_array_in_both_arms():
    def program(x):
        y = output(16)
        wp.launch(both_arms, dim=16, inputs=[x, y])
        return y

    check_program(program, [RNG.uniform(0.2, 1.2, 16)])


# ---- structs and components ----


@wp.struct
class Particle:
    x: wp.vec3d
    m: wp.float64


@wp.func
def pushed(p: Particle, f: wp.vec3d):
    q = Particle()
    q.x = p.x + f / p.m
    q.m = p.m * wp.length(q.x)
    return q


@wp.kernel
def push(p: wp.array[Particle], f: wp.array[wp.vec3d], q: wp.array[Particle], v: wp.array[wp.vec3d]):
    i = wp.tid()
    q[i] = pushed(p[i], f[i])
    q[i].x = q[i].x * q[i].m  # reads what was stored
    q[i].m = p[i].x[1]
    v[i].x = f[i].y * f[i].z
    v[i].y += v[i].x * p[i].m
    v[i][2] = p[i].x[0]


def test_structs_from_functions_and_members_of_elements_assigned():
    def program(x, m, f):
        p, q, v = output(6, Particle), output(6, Particle), output(6, wp.vec3d)
        wp.launch(pack, dim=6, inputs=[x, m, p])
        wp.launch(push, dim=6, inputs=[p, f, q, v])
        y = output((6, 7))
        wp.launch(unpack, dim=6, inputs=[q, v, y])
        return y

    inputs = [RNG.standard_normal((6, 3)), RNG.uniform(1, 2, 6), RNG.standard_normal((6, 3))]
    check_program(program, inputs, dtypes={0: wp.vec3d, 2: wp.vec3d})


@wp.kernel
def pack(x: wp.array[wp.vec3d], m: wp.array[wp.float64], p: wp.array[Particle]):
    i = wp.tid()
    p[i].x = x[i]
    p[i].m = m[i]


@wp.kernel
def unpack(q: wp.array[Particle], v: wp.array[wp.vec3d], y: wp.array2d[wp.float64]):
    i = wp.tid()
    for k in range(3):
        y[i, k] = q[i].x[k]
        y[i, k + 3] = v[i][k]
    y[i, 6] = q[i].m


@pytest.mark.parametrize("sign", ["+=", "-=", "*=", "/=", "%=", "**=", "//="])
def test_in_place_operators_on_every_kind_of_target(sign, tmp_path):
    """On a local, a component, an entry, a member, an element, a member of an element."""
    source = f"""import warp as wp

@wp.struct
class Box:
    a: wp.float64

@wp.kernel
def k(x: wp.array[wp.float64], z: wp.array[wp.float64], y: wp.array2d[wp.float64], boxes: wp.array[Box]):
    i = wp.tid()
    s = x[i]
    v = wp.vec3d(x[i], x[i], x[i])
    m = wp.mat22d(x[i], x[i], x[i], x[i])
    b = Box()
    b.a = x[i]
    for j in range(2):
        s {sign} z[i]
        v[(i + j) % 3] {sign} z[i]
        m[j, (i + j) % 2] {sign} z[i]
        b.a {sign} z[i]
        y[i, j] {sign} z[i]
        boxes[i].a {sign} z[i]
    y[i, 2] = s * v[0] + v[1] * m[0, 0] + v[2] * m[1, 1] + m[0, 1] * b.a + m[1, 0] * boxes[i].a
"""
    module = load(source, tmp_path, "in_place")

    def program(x, z, y):
        y = wp.clone(y)
        boxes = output(8, module.Box)
        filled = boxes.numpy()
        filled["a"] = 1.75
        boxes.assign(filled)
        wp.launch(module.k, dim=8, inputs=[x, z, y, boxes])
        return y

    values = [RNG.uniform(1.1, 2.0, 8), RNG.uniform(0.55, 0.9, 8), RNG.uniform(1.1, 2.0, (8, 3))]
    if sign in ("%=", "//="):  # away from their steps
        values = [np.full(8, 1.75), np.full(8, 0.625), np.full((8, 3), 1.375)]
    check_program(program, values, unused=(1, 2) if sign == "//=" else ())


def test_a_matrix_product_in_place():
    @wp.kernel
    def turn(x: wp.array[wp.mat22d], z: wp.array[wp.mat22d]):
        i = wp.tid()
        m = x[i]
        m @= z[i]
        m @= m
        x[i] = m

    def program(x, z):
        y = wp.clone(x)
        wp.launch(turn, dim=4, inputs=[y, z])
        return y

    values = [RNG.standard_normal((4, 2, 2)), RNG.standard_normal((4, 2, 2))]
    check_program(program, values, dtypes={0: wp.mat22d, 1: wp.mat22d})


@pytest.mark.parametrize("dtype", [wp.spatial_vectord, wp.spatial_matrixd, wp.transformd, wp.quatd])
def test_arrays_of_spatial_types(dtype):
    @wp.kernel
    def doubled(a: wp.array[dtype], b: wp.array[dtype]):
        i = wp.tid()
        b[i] = a[i] * wp.float64(2.0)
        a[i] = b[i] + a[i]

    shape = wp.zeros(3, dtype=dtype).numpy().shape

    def program(x):
        a, b = wp.clone(x), output(3, dtype)
        wp.launch(doubled, dim=3, inputs=[a, b])
        wp.launch(doubled, dim=3, inputs=[b, a])
        return a

    check_program(program, [RNG.standard_normal(shape)], dtypes={0: dtype})


# ---- tapes ----


def test_an_array_counted_up_over_several_launches():
    @wp.kernel
    def count(a: wp.array[wp.float64], b: wp.array[wp.float64]):
        i = wp.tid()
        a[i] = a[i] + wp.float64(1.0)
        b[i] = b[i] + a[i] * a[i]

    a, b = doubles([1.0, 2.0], requires_grad=True), output(2)
    start = a.numpy().copy()
    with wp.Tape() as tape:
        for _ in range(4):
            wp.launch(count, dim=2, inputs=[a, b])
    tape.backward(grads={b: doubles([1.0, 1.0]), a: doubles([0.5, 0.25])})
    np.testing.assert_allclose(a.grad.numpy(), sum(2.0 * (start + k) for k in range(1, 5)) + [0.5, 0.25])


@pytest.mark.parametrize("how", ["clone", "copy", "assign"])
def test_a_copy_whose_source_is_read_and_written_later(how):
    def program(x):
        x = wp.clone(x)
        y = wp.clone(x) if how == "clone" else output(5)
        if how == "copy":
            wp.copy(y, x)
        elif how == "assign":
            y.assign(x)
        z = x * y
        wp.launch(square, dim=5, inputs=[x])
        wp.launch(square, dim=5, inputs=[y])
        return z * x + y

    check_program(program, [RNG.uniform(0.5, 1.5, 5)])


def test_arrays_without_a_gradient_cost_nothing():
    x, y = doubles([2.0, 3.0]), output(2)
    with wp.Tape() as tape:
        for _ in range(5):
            wp.launch(square, dim=2, inputs=[x])
        wp.copy(x, doubles([5.0, 6.0]))
    assert tape.memory.copies == 0 and tape.memory.bytes == 0
    assert x.grad is None


def test_the_peak_of_what_a_tape_keeps_is_reported():
    x = doubles(np.ones(100), requires_grad=True)
    with wp.Tape() as tape:
        for _ in range(5):
            wp.launch(square, dim=100, inputs=[x])
    assert (tape.memory.copies, tape.memory.bytes, tape.memory.peak_bytes) == (5, 4000, 4000)
    tape.reset()
    assert tape.memory.bytes == 0


def test_gradients_go_through_a_framework_and_back(jax_process):
    found, expected = jax_process(frameworks.around_a_program, np.array([0.3, 0.7, 1.1]))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
