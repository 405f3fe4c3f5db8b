"""Gradients of functions in C++: adj_snippet and replay_snippet of @wp.func_native."""

import numpy as np
import pytest
import warp as wp
from native_functions import needs_clang

pytestmark = [needs_clang, pytest.mark.own_launches("adjoints add to gradients of threads that have none to share")]


def backward(kernel, dim, inputs, outputs, seeds, **options):
    """Launches on a tape, and carries the seeds of the outputs back."""
    tape = wp.Tape()
    with tape:
        wp.launch(kernel, dim=dim, inputs=inputs, outputs=outputs, **options)
    tape.backward(grads={out: wp.array(seed, dtype=out.dtype) for out, seed in zip(outputs, seeds)})
    return tape


@wp.func_native("return x * x * y;", adj_snippet="adj_x += 2 * x * y * adj_ret; adj_y += x * x * adj_ret;")
def product(x: wp.float64, y: wp.float64) -> wp.float64: ...


@wp.kernel
def products(x: wp.array[wp.float64], y: wp.array[wp.float64], out: wp.array[wp.float64]):
    i = wp.tid()
    total = product(x[i], y[i])
    for k in range(i % 3):
        total += wp.sin(product(total, y[i]) * wp.float64(0.1)) + wp.float64(k)
    if i % 4 != 1:
        out[i] = total


@wp.func
def product_in_python(x: wp.float64, y: wp.float64):
    return x * x * y


@wp.kernel
def products_in_python(x: wp.array[wp.float64], y: wp.array[wp.float64], out: wp.array[wp.float64]):
    i = wp.tid()
    total = product_in_python(x[i], y[i])
    for k in range(i % 3):
        total += wp.sin(product_in_python(total, y[i]) * wp.float64(0.1)) + wp.float64(k)
    if i % 4 != 1:
        out[i] = total


def test_values_in_loops_and_branches():
    """The same as the gradient that Weft derives, and as differences."""
    rng = np.random.default_rng(1)
    n = 37
    numbers = rng.uniform(-1, 1, (2, n))
    seed = rng.uniform(-1, 1, n)
    found = []
    for kernel in (products, products_in_python):
        x, y = (wp.array(row, dtype=wp.float64, requires_grad=True) for row in numbers)
        out = wp.zeros(n, dtype=wp.float64, requires_grad=True)
        backward(kernel, n, [x, y], [out], [seed])
        found.append((out.numpy(), x.grad.numpy(), y.grad.numpy()))
    for ours, expected in zip(*found):
        np.testing.assert_allclose(ours, expected, rtol=1e-13)

    def loss(x, y):
        out = wp.zeros(n, dtype=wp.float64)
        wp.launch(products, dim=n, inputs=[wp.array(x), wp.array(y), out])
        return out.numpy() * seed

    h = 1e-6
    x, y = numbers
    np.testing.assert_allclose(found[0][1], (loss(x + h, y) - loss(x - h, y)) / (2 * h), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found[0][2], (loss(x, y + h) - loss(x, y - h)) / (2 * h), rtol=1e-6, atol=1e-8)


@wp.func_native(
    "out[tid] = a * x[tid] + y[tid];",
    adj_snippet="""
    adj_a += x[tid] * adj_out[tid];
    adj_x[tid] += a * adj_out[tid];
    adj_y[tid] += adj_out[tid];
    """,
)
def saxpy(a: float, x: wp.array[float], y: wp.array[float], out: wp.array[float], tid: int): ...


@wp.kernel
def run_saxpy(a: wp.array[float], x: wp.array[float], y: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    saxpy(a[0], x, y, out, i)


@pytest.mark.parametrize("with_gradients", ["a x y", "x", "a", "x y"])
def test_arrays_and_those_without_a_gradient(with_gradients):
    n = 50
    x, y, seed = np.random.default_rng(2).normal(size=(3, n)).astype(np.float32)
    has = with_gradients.split()
    arrays = {
        name: wp.array(numbers, dtype=float, requires_grad=name in has)
        for name, numbers in (("a", [3.0]), ("x", x), ("y", y))
    }
    out = wp.zeros(n, dtype=float, requires_grad=True)
    backward(run_saxpy, n, list(arrays.values()), [out], [seed])
    np.testing.assert_allclose(out.numpy(), np.float32(3) * x + y, rtol=1e-6)
    expected = {"a": [np.sum(x * seed)], "x": 3 * seed, "y": seed}
    for name, array in arrays.items():
        if name in has:
            np.testing.assert_allclose(array.grad.numpy(), expected[name], rtol=1e-4)
        else:
            assert array.grad is None


@wp.struct
class Body:
    mass: float
    velocity: wp.vec3
    kind: int


@wp.func_native(
    "return b.mass * m[0][1] * dot(b.velocity, v) + q.w + float(b.kind);",
    adj_snippet="""
    const float by = b.mass * m[0][1] * adj_ret;
    adj_b.mass += m[0][1] * dot(b.velocity, v) * adj_ret;
    adj_b.velocity += by * v;
    adj_v += by * b.velocity;
    adj_m[0][1] += b.mass * dot(b.velocity, v) * adj_ret;
    adj_q.w += adj_ret;
    """,
)
def energy(b: Body, v: wp.vec3, m: wp.mat22, q: wp.quat) -> float: ...


def test_structs_vectors_and_matrices():
    @wp.kernel
    def run(
        x: wp.array[float], v: wp.array[wp.vec3], m: wp.array[wp.mat22], q: wp.array[wp.quat], out: wp.array[float]
    ):
        i = wp.tid()
        body = Body(mass=x[i], velocity=wp.vec3(x[i], 2.0, 3.0), kind=i)
        out[i] = energy(body, v[i], m[i], q[i])

    n = 9
    rng = np.random.default_rng(3)
    x, v, m, q = (rng.normal(size=(n, *shape)).astype(np.float32) for shape in ((), (3,), (2, 2), (4,)))
    seed = rng.normal(size=n).astype(np.float32)
    arrays = [
        wp.array(numbers, dtype=dtype, requires_grad=True)
        for numbers, dtype in ((x, float), (v, wp.vec3), (m, wp.mat22), (q, wp.quat))
    ]
    out = wp.zeros(n, dtype=float, requires_grad=True)
    backward(run, n, arrays, [out], [seed])
    velocity = np.stack([x, np.full(n, 2.0), np.full(n, 3.0)], axis=1)
    dots = (velocity * v).sum(axis=1)
    np.testing.assert_allclose(out.numpy(), x * m[:, 0, 1] * dots + q[:, 3] + np.arange(n), rtol=1e-5)
    by = x * m[:, 0, 1] * seed
    expected_m = np.zeros((n, 2, 2))
    expected_m[:, 0, 1] = x * dots * seed
    np.testing.assert_allclose(arrays[0].grad.numpy(), m[:, 0, 1] * dots * seed + by * v[:, 0], rtol=1e-4)
    np.testing.assert_allclose(arrays[1].grad.numpy(), by[:, None] * velocity, rtol=1e-4)
    np.testing.assert_allclose(arrays[2].grad.numpy(), expected_m, rtol=1e-4)
    np.testing.assert_allclose(arrays[3].grad.numpy()[:, 3], seed, rtol=1e-6)


@wp.func_native(
    "return atomicAdd(counter, 1);",
    adj_snippet="",
    replay_snippet="return rank[tid];",
)
def rank_again(counter: wp.array[int], rank: wp.array[int], tid: int) -> int: ...


@wp.kernel
def squares_by_replay(x: wp.array[float], counter: wp.array[int], rank: wp.array[int], out: wp.array[float]):
    i = wp.tid()
    k = rank_again(counter, rank, i)
    rank[i] = k
    out[k] = x[i] * x[i]


def test_a_replay_takes_the_place_of_the_snippet():
    """The backward pass does not count again."""
    n = 64
    x, seed = np.random.default_rng(4).normal(size=(2, n)).astype(np.float32)
    array = wp.array(x, dtype=float, requires_grad=True)
    counter, rank = wp.zeros(1, dtype=int), wp.zeros(n, dtype=int)
    out = wp.zeros(n, dtype=float, requires_grad=True)
    backward(squares_by_replay, n, [array, counter, rank], [out], [seed])
    ranks = rank.numpy()
    assert sorted(ranks) == list(range(n)) and counter.numpy()[0] == n
    np.testing.assert_allclose(out.numpy()[ranks], x * x, rtol=1e-6)
    np.testing.assert_allclose(array.grad.numpy(), 2 * x * seed[ranks], rtol=1e-6)


def test_without_a_replay_the_snippet_gives_its_result_again():
    @wp.func_native("return x[tid] + 1.0f;", adj_snippet="adj_x[tid] += adj_ret;")
    def next_of(x: wp.array[float], tid: int) -> float: ...

    @wp.kernel
    def run(x: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        value = next_of(x, i)
        out[i] = value * value

    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    out = wp.zeros(3, dtype=float, requires_grad=True)
    backward(run, 3, [x], [out], [np.ones(3, np.float32)])
    np.testing.assert_array_equal(x.grad.numpy(), [4, 6, 8])


def test_atomics_on_gradients():
    """Also on a gradient that is not there, beside one that is."""

    @wp.func_native(
        "atomicAdd(&out[tid % 2], x[tid % 4] * y[0]);",
        adj_snippet="""
        atomicAdd(&adj_x[tid % 4], y[0] * adj_out[tid % 2]);
        atomic_add(&adj_y[0], x[tid % 4] * adj_out[tid % 2]);
        """,
    )
    def gather(x: wp.array[float], y: wp.array[float], out: wp.array[float], tid: int): ...

    @wp.kernel
    def run(x: wp.array[float], y: wp.array[float], out: wp.array[float]):
        gather(x, y, out, wp.tid())

    n = 40
    for has_y in (True, False):
        x = wp.array([1.0, 2.0, 3.0, 4.0], dtype=float, requires_grad=True)
        y = wp.array([3.0], dtype=float, requires_grad=has_y)
        out = wp.zeros(2, dtype=float, requires_grad=True)
        backward(run, n, [x, y], [out], [np.array([1, 10], np.float32)])
        np.testing.assert_allclose(out.numpy(), [3 * (1 + 3) * n / 4, 3 * (2 + 4) * n / 4])
        np.testing.assert_allclose(x.grad.numpy(), np.array([3, 30, 3, 30]) * n / 4)
        if has_y:
            np.testing.assert_allclose(y.grad.numpy(), [(1 + 3 + 20 + 40) * n / 4])


def test_forward_mode_and_second_calls():
    @wp.func_native("return x * x * x;", adj_snippet="adj_x += 3 * x * x * adj_ret;")
    def cube(x: float) -> float: ...

    @wp.kernel
    def run(x: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        out[i] = cube(cube(x[i]))

    x = wp.array([1.0, -1.5], dtype=float, requires_grad=True)
    out = wp.zeros(2, dtype=float, requires_grad=True)
    backward(run, 2, [x], [out], [np.ones(2, np.float32)])
    np.testing.assert_allclose(x.grad.numpy(), 9 * x.numpy() ** 8, rtol=1e-6)
    found = wp.autograd.jacobian(run, dim=2, inputs=[x], outputs=[out])
    np.testing.assert_allclose(found[(0, 0)].numpy(), np.diag(9 * x.numpy() ** 8), rtol=1e-6)


def test_mistakes():
    @wp.func_native("return x;", adj_snippet="\n  adj_x += adj_y;")
    def wrong(x: float) -> float: ...

    @wp.func_native("x += 1.0f;", adj_snippet="adj_x += 0;")
    def by_reference(x: wp.ref[float]): ...

    @wp.func_native("return x;", replay_snippet="return x;")
    def no_adjoint(x: float) -> float: ...

    @wp.kernel
    def calls_wrong(x: wp.array[float], y: wp.array[float]):
        y[0] = wrong(x[0])

    @wp.kernel
    def calls_by_reference(x: wp.array[float], y: wp.array[float]):
        by_reference(y[0])

    @wp.kernel
    def calls_no_adjoint(x: wp.array[float], y: wp.array[float]):
        y[0] = no_adjoint(x[0])

    x, y = (wp.zeros(1, dtype=float, requires_grad=True) for _ in range(2))
    with pytest.raises(wp.CompileError, match="use of undeclared identifier 'adj_y'") as caught:
        backward(calls_wrong, 1, [x], [y], [np.ones(1, np.float32)])
    assert (caught.value.path, caught.value.line) == ("<C++ of 'adj_wrong'>", 2)
    with pytest.raises(wp.CompileError, match="passed by reference, and a derivative of its own"):
        wp.launch(calls_by_reference, dim=1, inputs=[x, y])
    with pytest.raises(wp.CompileError, match=r"(?s)a function written in C\+\+.*help: give it one: .*adj_snippet"):
        backward(calls_no_adjoint, 1, [x], [y], [np.ones(1, np.float32)])
