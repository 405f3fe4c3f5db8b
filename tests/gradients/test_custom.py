"""Derivatives that users write: @wp.func_grad, @wp.func_replay; and wp.grad in kernels."""

from typing import Any

import numpy as np
import pytest
import warp as wp
from custom_functions import derivative, root_deeper, slopes
from tapes import doubles, gradients

pytestmark = pytest.mark.protected


@wp.kernel
def roots(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = root_deeper(x[i]) + x[i]


def test_a_gradient_takes_the_place_of_the_derivative_at_any_depth():
    x = doubles([0.0, 1.0, 4.0], requires_grad=True)
    y = doubles(np.zeros(3), requires_grad=True)
    (found,) = gradients(roots, 3, [x], [y], [np.array([1.0, 1.0, 2.0])])
    np.testing.assert_allclose(y.numpy(), [0.0, 4.0, 10.0])
    np.testing.assert_allclose(found, [1.0, 31.0, 2 * 16.0])


@wp.func
def polar(x: wp.float64, y: wp.float64):
    return wp.sqrt(x * x + y * y), wp.atan2(y, x)


@wp.func_grad(polar)
def polar_gradient(x: wp.float64, y: wp.float64, adj_r: wp.float64, adj_angle: wp.float64):
    square = x * x + y * y
    if square == wp.float64(0.0):
        return
    r = wp.sqrt(square)
    wp.adjoint[x] += x / r * adj_r
    wp.adjoint[x] -= y / square * adj_angle
    wp.adjoint[y] += y / r * adj_r + x / square * adj_angle


@wp.kernel
def to_polar(x: wp.array[wp.float64], y: wp.array[wp.float64], out: wp.array2d[wp.float64]):
    i = wp.tid()
    for _ in range(2):
        r, angle = polar(x[i], y[i])
        out[i, 0] += r
        out[i, 1] += angle


def test_several_returned_values_an_early_return_and_a_loop_around():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 50))
    x[7] = y[7] = 0.0
    seed = rng.normal(size=(50, 2))
    found = gradients(
        to_polar,
        50,
        [doubles(x, requires_grad=True), doubles(y, requires_grad=True)],
        [doubles(np.zeros((50, 2)), requires_grad=True)],
        [seed],
    )

    def same(x, y):
        angle = -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))
        return 2 * (np.sqrt(x * x + y * y) * seed[:, 0] + angle * seed[:, 1])

    h = 1e-6
    with np.errstate(invalid="ignore", divide="ignore"):
        by_x = np.real(same(x + h, y) - same(x - h, y)) / (2 * h)
        by_y = np.real(same(x, y + h) - same(x, y - h)) / (2 * h)
    by_x[7] = by_y[7] = 0.0  # as the gradient has it
    for mine, theirs in zip(found, (by_x, by_y), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-7)


@wp.struct
class Spring:
    rest: wp.float64
    anchor: wp.vec3d


@wp.func
def pull(spring: Spring, at: wp.vec3d, weights: wp.array[wp.float64], n: int):
    s = wp.float64(0.0)
    for k in range(n):
        s += weights[k]
    return s * (at - spring.anchor) * spring.rest


@wp.func_grad(pull)
def pull_gradient(spring: Spring, at: wp.vec3d, weights: wp.array[wp.float64], n: int, adj_force: wp.vec3d):
    s = wp.float64(0.0)
    for k in range(n):
        s += weights[k]
        wp.adjoint[weights][k] += wp.dot(adj_force, at - spring.anchor) * spring.rest
    wp.adjoint[at] += s * spring.rest * adj_force
    wp.adjoint[spring].anchor -= s * spring.rest * adj_force
    wp.adjoint[spring].rest += s * wp.dot(adj_force, at - spring.anchor)


@wp.func
def pull_plain(spring: Spring, at: wp.vec3d, weights: wp.array[wp.float64], n: int):
    s = wp.float64(0.0)
    for k in range(n):
        s += weights[k]
    return s * (at - spring.anchor) * spring.rest


def pulls(function, module):
    @wp.kernel(module=module)
    def run(
        rest: wp.array[wp.float64],
        anchor: wp.array[wp.vec3d],
        at: wp.array[wp.vec3d],
        weights: wp.array[wp.float64],
        force: wp.array[wp.vec3d],
    ):
        i = wp.tid()
        spring = Spring()
        spring.rest = rest[i]
        spring.anchor = anchor[i]
        force[i] = function(spring, at[i], weights, weights.shape[0])

    return run


@pytest.mark.parametrize("has_weights", [True, False])
def test_structs_vectors_and_arrays_have_adjoints(has_weights):
    rng = np.random.default_rng(2)
    found = []
    values = [rng.normal(size=shape) for shape in ((20,), (20, 3), (20, 3), (4,))]
    seed = rng.normal(size=(20, 3))
    for function in (pull, pull_plain):
        kinds = [wp.float64, wp.vec3d, wp.vec3d, wp.float64]
        inputs = [wp.array(v, dtype=k, requires_grad=True) for v, k in zip(values, kinds, strict=True)]
        inputs[3].requires_grad = has_weights
        force = wp.zeros(20, dtype=wp.vec3d, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(pulls(function, "unique"), 20, inputs, [force])
        tape.backward(grads={force: wp.array(seed, dtype=wp.vec3d)})
        found.append([value.grad.numpy() for value in inputs if value.requires_grad])
    assert len(found[0]) == (4 if has_weights else 3)
    for mine, plain in zip(*found, strict=True):
        np.testing.assert_allclose(mine, plain, rtol=1e-12)


@wp.func
def scaled(x: Any, by: Any):
    return x * by


@wp.func_grad(scaled)
def scaled_gradient(x: Any, by: Any, adj: Any):
    wp.adjoint[x] += by * adj * type(x)(7.0)


@wp.func
def shifted(x: float):
    return x + 1.0


@wp.func
def shifted(x: wp.vec2):  # noqa: F811
    return x + wp.vec2(1.0, 1.0)


@wp.func_grad(shifted)
def shifted_gradient(x: float, adj: float):
    wp.adjoint[x] += 5.0 * adj


@wp.kernel
def use_both(x: wp.array[float], h: wp.array[wp.float16], v: wp.array[wp.vec2], y: wp.array[float]):
    i = wp.tid()
    y[i] = scaled(x[i], 2.0) + float(scaled(h[i], wp.float16(2.0))) + shifted(x[i]) + shifted(v[i])[0]


def test_generic_functions_and_overloads_have_gradients_of_their_own():
    x = wp.ones(1, dtype=float, requires_grad=True)
    h = wp.ones(1, dtype=wp.float16, requires_grad=True)
    v = wp.ones(1, dtype=wp.vec2, requires_grad=True)
    y = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(use_both, 1, [x, h, v], [y])
    tape.backward(y)
    assert x.grad.numpy()[0] == 14.0 + 5.0
    assert h.grad.numpy()[0] == 14.0
    assert v.grad.numpy().tolist() == [[1.0, 0.0]]


# ---- replays ----
@wp.func
def take_ticket(counter: wp.array[int], tickets: wp.array[int], i: int):
    ticket = wp.atomic_add(counter, 0, 1)
    tickets[i] = ticket
    return ticket


@wp.func_replay(take_ticket)
def ticket_again(counter: wp.array[int], tickets: wp.array[int], i: int):
    return tickets[i]


@wp.kernel
def in_order_of_arrival(
    counter: wp.array[int], tickets: wp.array[int], x: wp.array[wp.float64], y: wp.array[wp.float64]
):
    i = wp.tid()
    ticket = take_ticket(counter, tickets, i)
    y[ticket] = x[i] * x[i] * wp.float64(ticket + 1)


@pytest.mark.parametrize("is_overwritten", [False, True])
def test_a_replay_gives_what_an_atomic_gave(is_overwritten):
    n = 5000
    rng = np.random.default_rng(3)
    x = doubles(rng.uniform(1.0, 2.0, n), requires_grad=True)
    y = doubles(np.zeros(n), requires_grad=True)
    counter, tickets = wp.zeros(1, dtype=int), wp.zeros(n, dtype=int)
    tape = wp.Tape()
    with tape:
        wp.launch(in_order_of_arrival, n, [counter, tickets, x], [y])
        order = tickets.numpy().copy()
        if is_overwritten:
            tickets.zero_()
    assert tape.memory.copies == int(is_overwritten)
    seed = rng.normal(size=n)
    tape.backward(grads={y: doubles(seed)})
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy() * (order + 1) * seed[order])


@wp.func
def remember(x: wp.float64, seen: wp.array[wp.float64], i: int):
    seen[i] = x
    return x * x


@wp.kernel
def remembers(x: wp.array[wp.float64], seen: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = remember(x[i], seen, i)


@wp.func_replay(remember)
def remember_again(x: wp.float64, seen: wp.array[wp.float64], i: int):
    return seen[i] * seen[i]


def test_a_function_with_a_replay_only_is_derived_from_its_body():
    rng = np.random.default_rng(4)
    values, seeds = rng.normal(size=10), rng.normal(size=(2, 10))
    x = doubles(values, requires_grad=True)
    seen, y = doubles(np.zeros(10), requires_grad=True), doubles(np.zeros(10), requires_grad=True)
    (found, _) = gradients(remembers, 10, [x, seen], [y], seeds[:1])
    np.testing.assert_allclose(found, 2 * values * seeds[0])
    x.grad.zero_()
    tape = wp.Tape()
    with tape:
        wp.launch(remembers, 10, [x, seen], [y])
    tape.backward(grads={y: doubles(seeds[0]), seen: doubles(seeds[1])})
    np.testing.assert_allclose(x.grad.numpy(), 2 * values * seeds[0] + seeds[1])


# ---- forward mode and second derivatives ----
def test_forward_mode_and_second_derivatives_go_through_the_gradient():
    x = doubles([1.0, 4.0], requires_grad=True)
    y = doubles(np.zeros(2), requires_grad=True)
    tangent = doubles(np.zeros(2))
    wp.jvp(roots, 2, [x], [y], input_tangents=[doubles([1.0, 2.0])], output_tangents=[tangent])
    np.testing.assert_allclose(tangent.numpy(), [31.0, 32.0])
    product = wp.autograd.hvp(roots, 2, [x], [y], vectors=[doubles([1.0, 1.0])])
    np.testing.assert_allclose(product[0].numpy(), [-15.0, -15.0 / 8.0])


def test_the_gradient_of_a_function_in_a_kernel():
    rng = np.random.default_rng(5)
    x, p = rng.uniform(0.5, 2.0, 30), rng.normal(size=(30, 3))
    outputs = [doubles(np.zeros(30)), wp.zeros(30, dtype=wp.vec3d), doubles(np.zeros(30))]
    wp.launch(slopes, 30, [doubles(x), wp.array(p, dtype=wp.vec3d)], outputs)

    (by_x,) = derivative(lambda x: x**3 * (p * p).sum(1) + np.sin(x), x)
    by_p = 2 * x[:, None] ** 3 * p
    np.testing.assert_allclose(outputs[0].numpy(), by_x, rtol=1e-12)
    np.testing.assert_allclose(outputs[1].numpy(), by_p, rtol=1e-12)
    np.testing.assert_allclose(outputs[2].numpy(), 30.0 / np.sqrt(x) + by_x, rtol=1e-12)


@wp.func
def well(x: wp.float64, y: wp.float64):
    return x * x * x * y + wp.exp(x * y)


@wp.kernel
def force(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    a, b = wp.grad(well)(x[i], wp.float64(0.5))
    y[i] = a * b


def test_the_derivative_of_a_gradient():
    x = np.linspace(-1.0, 1.0, 9)

    def same(x):
        e = np.exp(0.5 * x)
        return (1.5 * x * x + 0.5 * e) * (x**3 + x * e)

    (found,) = gradients(
        force, 9, [doubles(x, requires_grad=True)], [doubles(np.zeros(9), requires_grad=True)], [np.ones(9)]
    )
    np.testing.assert_allclose(found, derivative(same, x)[0], rtol=1e-12)


# ---- arrays that the kernel writes, and arrays in structs ----
@wp.func
def area(v: wp.array2d[wp.float64], r: int):
    return v[r, 0] * v[r, 1]


@wp.func_grad(area)
def area_gradient(v: wp.array2d[wp.float64], r: int, adj: wp.float64):
    wp.adjoint[v][r, 0] += adj * v[r, 1]
    wp.adjoint[v][r, 1] += adj * v[r, 0]


@pytest.mark.parametrize(("threads", "rows"), [(8, 8), (100_000, 3), (100_000, 1000)])
def test_a_gradient_adds_to_that_of_an_array_that_the_kernel_writes(threads, rows):
    """It sees the array as it is after the launch; its additions must arrive all the same."""

    @wp.kernel
    def areas(v: wp.array2d[wp.float64], y: wp.array[wp.float64], rows: int):
        i = wp.tid()
        y[i] = area(v, i % rows)
        if i < rows:
            v[i, 2] = wp.float64(3.0) * y[i]

    values = np.random.default_rng(5).uniform(0.5, 1.5, (rows, 3))
    v, y = doubles(values, requires_grad=True), doubles(np.zeros(threads), requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(areas, dim=threads, inputs=[v, y, rows])
    tape.backward(grads={y: doubles(np.ones(threads)), v: doubles(np.ones((rows, 3)))})
    count = np.bincount(np.arange(threads) % rows, minlength=rows) + 3.0  # and by what is stored
    np.testing.assert_allclose(v.grad.numpy()[:, :2], 1.0 + values[:, 1::-1] * count[:, None], rtol=1e-12)
    assert not v.grad.numpy()[:, 2].any()


def test_a_gradient_reads_that_of_an_array_which_its_function_writes():
    @wp.func
    def move(v: wp.array2d[wp.float64], w: wp.array2d[wp.float64], r: int):
        w[r, 1] = v[r, 1] * v[r, 1]

    @wp.func_grad(move)
    def move_gradient(v: wp.array2d[wp.float64], w: wp.array2d[wp.float64], r: int):
        wp.adjoint[v][r, 1] += wp.float64(2.0) * v[r, 1] * wp.adjoint[w][r, 1]

    @wp.kernel
    def moves(v: wp.array2d[wp.float64], w: wp.array2d[wp.float64]):
        move(v, w, wp.tid())

    v, w = doubles([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), doubles(np.zeros((2, 2)), requires_grad=True)
    (found,) = gradients(moves, 2, [v], [w], [[[5.0, 6.0], [7.0, 8.0]]])
    np.testing.assert_array_equal(found, [[0.0, 24.0], [0.0, 64.0]])


@wp.struct
class Grid:
    scale: wp.float64
    values: wp.array2d[wp.float64]


@wp.struct
class Grids:
    first: Grid
    second: Grid
    offsets: wp.array[wp.float64]


@wp.func
def sample(g: Grids, r: int):
    return g.first.scale * g.first.values[r, 1] + g.second.values[r, 0] * g.offsets[r]


@wp.func_grad(sample)
def sample_gradient(g: Grids, r: int, adj: wp.float64):
    for _ in range(2):  # in a loop, where locals are carried
        half = wp.float64(0.5) * adj
        wp.adjoint[g].first.values[r, 1] += half * g.first.scale
        wp.adjoint[g].first.scale += half * g.first.values[r, 1]
        wp.adjoint[g].second.values[r, 0] += half * g.offsets[r]
    row = wp.adjoint[g].offsets
    row[r] += g.second.values[r, 0] * adj


@wp.kernel
def samples(g: Grids, y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = sample(g, i)


@pytest.mark.parametrize("without", [None, "first", "second"])
def test_the_adjoint_of_a_struct_has_the_gradients_of_its_arrays(without):
    g = Grids()
    g.first.scale = 3.0
    g.first.values = doubles([[1.0, 2.0], [3.0, 4.0]], requires_grad=without != "first")
    g.second.values = doubles([[5.0, 6.0], [7.0, 8.0]], requires_grad=without != "second")
    g.offsets = doubles([10.0, 20.0], requires_grad=True)
    y = doubles([0.0, 0.0], requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(samples, dim=2, inputs=[g, y])
    tape.backward(grads={y: doubles([1.0, 2.0])})
    if without != "first":
        np.testing.assert_array_equal(g.first.values.grad.numpy(), [[0.0, 3.0], [0.0, 6.0]])
    if without != "second":
        np.testing.assert_array_equal(g.second.values.grad.numpy(), [[10.0, 0.0], [40.0, 0.0]])
    np.testing.assert_array_equal(g.offsets.grad.numpy(), [5.0, 14.0])


def test_the_adjoint_of_a_struct_of_arrays_alone():
    @wp.struct
    class Pair:
        a: wp.array2d[wp.float64]
        b: wp.array2d[wp.float64]

    @wp.func
    def product(p: Pair, r: int):
        return p.a[r, 0] * p.b[r, 1]

    @wp.func_grad(product)
    def product_gradient(p: Pair, r: int, adj: wp.float64):
        wp.adjoint[p].a[r, 0] += adj * p.b[r, 1]
        wp.adjoint[p].b[r, 1] += adj * p.a[r, 0]

    @wp.kernel
    def products(p: Pair, y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = product(p, i)

    p, y = Pair(), doubles([0.0, 0.0], requires_grad=True)
    p.a = doubles([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    p.b = doubles([[5.0, 6.0], [7.0, 8.0]], requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(products, dim=2, inputs=[p, y])
    tape.backward(grads={y: doubles([1.0, 1.0])})
    np.testing.assert_array_equal(p.a.grad.numpy(), [[6.0, 0.0], [8.0, 0.0]])
    np.testing.assert_array_equal(p.b.grad.numpy(), [[0.0, 1.0], [0.0, 3.0]])
