"""wp.autograd.hvp: products with Hessians against differences of gradients, closed forms, and by their symmetry."""

import numpy as np
import pytest
import warp as wp
from runs import check_hessian
from tapes import doubles, gradients
from test_tangents import KERNELS, arguments, difference, one_of_two

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(17)


@pytest.fixture(autouse=True)
def _room_for_loops():
    before = wp.config.gradient_loop_bytes
    yield
    wp.config.gradient_loop_bytes = before


@wp.kernel
def energy(x: wp.array[wp.vec3d], k: wp.float64, loss: wp.array[wp.float64]):
    i = wp.tid()
    j = (i + 1) % x.shape[0]
    stretch = wp.length(x[i] - x[j]) - wp.float64(1.0)
    s = wp.float64(0.0)
    for n in range(i % 3):
        s = s * stretch + wp.sin(x[i][n])
    wp.atomic_add(loss, 0, k * stretch * stretch + s * s)


def test_the_hessian_times_a_vector():
    x, v = RNG.standard_normal((6, 3)), RNG.standard_normal((6, 3))

    def gradient(moved):
        array = wp.array(moved[0], dtype=wp.vec3d, requires_grad=True)
        loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
        return gradients(energy, 6, [array, 2.0], [loss], [np.ones(1)])[0]

    given = wp.array(x, dtype=wp.vec3d)
    loss = wp.zeros(1, dtype=wp.float64)
    found = wp.autograd.hvp(energy, 6, [given, 2.0], [loss], vectors=[wp.array(v, dtype=wp.vec3d)])
    np.testing.assert_allclose(found[0].numpy(), difference(gradient, [x], [v]), rtol=1e-6, atol=1e-7)
    assert found[1] is None and loss.numpy()[0] == 0.0 and given.grad is None


@pytest.mark.parametrize("name", KERNELS)
def test_hessians_of_loops_branches_and_memory(name):
    kernel, values, others, dtype, dim = KERNELS[name]
    size = max(dim, 12)
    weights = RNG.standard_normal(size)

    def gradient(moved):
        given = arguments(moved, others, dtype)
        given[0].requires_grad = True
        return gradients(kernel, dim, given, [doubles(np.zeros(size), requires_grad=True)], [weights])[0]

    v = RNG.standard_normal(values[0].shape)
    given, y = arguments(values, others, dtype), doubles(np.zeros(size))
    vectors = [wp.array(v, dtype=dtype)]
    found = wp.autograd.hvp(kernel, dim, given, [y], vectors=vectors, weights=[doubles(weights)])
    expected = difference(gradient, values, [v])
    np.testing.assert_allclose(found[0].numpy(), expected, rtol=2e-6, atol=1e-6 * max(1.0, np.abs(expected).max()))
    np.testing.assert_array_equal(y.numpy(), 0.0)


def hessian(kernel, dim, inputs, outputs):
    """By the first input, column by column."""
    size = inputs[0].size
    columns = [wp.autograd.hvp(kernel, dim, inputs, outputs, vectors=[doubles(unit)])[0] for unit in np.eye(size)]
    return np.stack([column.numpy() for column in columns], axis=1)


@wp.kernel
def mixed(x: wp.array[wp.float64], work: wp.array[wp.float64], y: wp.array[wp.float64]):
    n = x.shape[0]
    local = wp.zeros(shape=3, dtype=wp.float64)
    for i in range(n):
        work[i] = x[i] * x[(i + 1) % n]
        local[i % 3] = local[(i + 1) % 3] * x[i] + work[i // 2]
        work[i] *= work[i] + local[i % 3]
    for i in range(n):
        if work[i] > wp.float64(0.0):
            y[0] += wp.sin(work[i]) * local[i % 3]
        else:
            y[0] -= work[i] * work[n - 1 - i]


def test_hessians_through_memory_are_symmetric():
    x, work, y = doubles(RNG.standard_normal(7)), doubles(np.zeros(7)), doubles(np.zeros(1))
    found = hessian(mixed, 1, [x, work], [y])
    assert np.abs(found).max() > 1.0
    np.testing.assert_allclose(found, found.T, atol=1e-12 * np.abs(found).max())


@wp.kernel
def fourth_power(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = x[i] * x[i]
    y[i] = y[i] * y[i]


def test_the_hessian_of_a_square_squared_in_place_has_the_closed_form():
    x = RNG.standard_normal(9)
    found = hessian(fourth_power, 9, [doubles(x)], [doubles(np.zeros(9))])
    np.testing.assert_allclose(found, np.diag(12.0 * x**2), rtol=1e-13)


def test_hessians_of_arrays_that_are_chosen_at_run_time():
    x, z, v, w = (RNG.standard_normal(4) for _ in range(4))
    inputs, vectors = [doubles(x), doubles(z)], [doubles(v), doubles(w)]
    found = wp.autograd.hvp(one_of_two, 4, inputs, [doubles(np.zeros(4))], vectors=vectors)
    odd = np.arange(4) % 2 == 1  # 2 x² or z² besides: x² + x z, and z² + x² for odd i
    np.testing.assert_allclose(found[0].numpy(), np.where(odd, 2 * v, 2 * v + w))
    np.testing.assert_allclose(found[1].numpy(), np.where(odd, 2 * w, v))


@wp.kernel
def long_loop(x: wp.array[wp.float64], n: int, y: wp.array[wp.float64]):
    i = wp.tid()
    s = x[i]
    t = wp.float64(1.0)
    for k in range(n + i):
        s = s + wp.float64(0.01) * wp.sin(s * t) * x[(i + k) % x.shape[0]]
        t = t * wp.cos(wp.float64(0.01) * s)
    y[i] = s * t


@pytest.mark.parametrize("count", [3, 100, 3000])
def test_checkpoints_give_the_bits_of_complete_stacks(count):
    x, v = RNG.standard_normal((2, 5))

    def product(room):
        wp.config.gradient_loop_bytes = room
        inputs = [doubles(x), count]
        return wp.autograd.hvp(long_loop, 5, inputs, [doubles(np.zeros(5))], vectors=[doubles(v)])[0].numpy()

    expected = product(1 << 26)
    assert np.isfinite(expected).all() and np.abs(expected).max() > 1e-3
    for room in (1, 300, 3000):
        np.testing.assert_array_equal(product(room), expected)


@wp.kernel
def of_matrices(m: wp.array[wp.mat33d], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = wp.determinant(m[i]) * wp.trace(wp.inverse(m[i]) @ m[(i + 1) % 2])


def test_hessians_of_determinants_and_inverses():
    m, v = np.eye(3) + 0.3 * RNG.standard_normal((2, 3, 3)), RNG.standard_normal((2, 3, 3))

    def gradient(moved):
        y = doubles(np.zeros(2), requires_grad=True)
        given = wp.array(moved[0], dtype=wp.mat33d, requires_grad=True)
        return gradients(of_matrices, 2, [given], [y], [np.ones(2)])[0]

    given, vector = wp.array(m, dtype=wp.mat33d), wp.array(v, dtype=wp.mat33d)
    found = wp.autograd.hvp(of_matrices, 2, [given], [doubles(np.zeros(2))], vectors=[vector])
    np.testing.assert_allclose(found[0].numpy(), difference(gradient, [m], [v]), rtol=1e-6, atol=1e-7)


# ---- several launches ----


@wp.struct
class State:
    p: wp.array[wp.float64]
    stiffness: wp.float64
    q: wp.array[wp.float64]


@wp.kernel
def move(state: State):
    i = wp.tid()
    state.p[i] = state.p[i] * state.p[i] * state.stiffness + state.q[i]
    state.q[i] = wp.sin(state.p[i])


@wp.kernel
def mix(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    n = x.shape[0]
    y[i] = x[i] * x[(i + 1) % n] + wp.cos(x[(i + n - 1) % n])


@wp.kernel
def cubes(x: wp.array[wp.float64], loss: wp.array[wp.float64]):
    wp.atomic_add(loss, 0, x[wp.tid()] * x[wp.tid()] * x[wp.tid()])


def rollout(x):
    """Structs, slices, copies, operators, and arrays that are overwritten."""
    state = State()
    state.p, state.q, state.stiffness = wp.clone(x), wp.clone(x), 0.5
    y = wp.zeros(x.size, dtype=wp.float64, requires_grad=True)
    for step in range(3):
        wp.launch(move, x.size, [state])
        wp.launch(mix, x.size, [state.p, y])
        wp.copy(state.p, y)
        if step == 1:
            y.zero_()
            wp.launch(mix, x.size - 2, [state.q[1:-1], y[:-2]])
            state.q += x * y
    loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    state.stiffness = 7.0
    wp.launch(cubes, x.size - 1, [state.p[1:], loss])
    wp.launch(cubes, 2, [state.q[:2], loss])
    return loss


def test_hessians_of_functions_that_launch_kernels():
    x, v = RNG.uniform(-0.7, 0.7, (2, 6))

    def gradient(moved):
        array = doubles(moved[0], requires_grad=True)
        with wp.Tape() as tape:
            loss = rollout(array)
        tape.backward(loss)
        return array.grad.numpy()

    given = doubles(x)
    products = [wp.autograd.hvp(rollout, inputs=[given], vectors=[doubles(d)])[0].numpy() for d in (v, *np.eye(6))]
    scale = np.abs(products[0]).max()
    np.testing.assert_allclose(products[0], difference(gradient, [x], [v]), rtol=1e-6, atol=1e-7 * max(1.0, scale))
    np.testing.assert_allclose(products[1:], np.transpose(products[1:]), atol=1e-12 * np.abs(products[1:]).max())
    np.testing.assert_allclose(products[0], v @ products[1:], rtol=1e-9)
    assert given.grad is None and (given.numpy() == x).all()


def test_arrays_without_gradients_are_constants():
    def product(x, other):
        result = wp.zeros(x.size, dtype=wp.float64, requires_grad=True)
        constant = wp.clone(x, requires_grad=False)
        wp.launch(product_of, x.size, [x, constant, result])
        return result

    x, v = RNG.standard_normal((2, 4))
    found = wp.autograd.hvp(product, inputs=[doubles(x), 3], vectors=[doubles(v)])
    np.testing.assert_array_equal(found[0].numpy(), 0.0)
    assert found[1] is None


@wp.kernel
def product_of(a: wp.array[wp.float64], b: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = a[i] * b[i]


# ---- arrays that share memory ----


def test_an_array_that_is_input_and_output():
    x, v = RNG.standard_normal((2, 5))
    given = doubles(x)
    found = wp.autograd.hvp(fourth_power, 5, [given], [given], vectors=[doubles(v)])
    np.testing.assert_allclose(found[0].numpy(), 12.0 * x**2 * v, rtol=1e-13)
    np.testing.assert_array_equal(given.numpy(), x)


def test_inputs_that_share_memory_move_together():
    x = RNG.standard_normal(6)
    whole = doubles(x)
    v = RNG.standard_normal(6)
    inputs, outputs = [whole[:-1], whole[1:]], [doubles(np.zeros(5))]
    vectors = [doubles(v[:-1]), doubles(v[1:])]
    found = wp.autograd.hvp(product_of, 5, inputs, outputs, vectors=vectors)  # of sum x[i] x[i + 1]
    expected = np.append(v[1:], 0.0) + np.append(0.0, v[:-1])
    np.testing.assert_allclose(found[0].numpy(), expected[:-1])
    np.testing.assert_allclose(found[1].numpy(), expected[1:])
    with pytest.raises(ValueError, match="entry 0 of vectors is not that of another input with which its input shares"):
        wp.autograd.hvp(product_of, 5, inputs, outputs, vectors=[vectors[0], vectors[0]])
    with pytest.raises(ValueError, match="output 1 shares memory with another output"):
        wp.autograd.hvp(product_of, 5, [whole[1:]], [whole[:-1], whole[1:]])


# ---- atomics, and derivatives of one's own ----


@wp.kernel
def greatest(x: wp.array[wp.float64], y: wp.array[wp.vec2d]):
    i = wp.tid()
    wp.atomic_max(y, i % 2, wp.vec2d(x[i] * x[i] * x[(i + 1) % 8], wp.sin(x[i])))


@wp.kernel
def compact(x: wp.array[wp.float64], count: wp.array[int], y: wp.array[wp.float64]):
    i = wp.tid()
    if x[i] > wp.float64(0.8):
        slot = wp.atomic_add(count, 0, 1)
        y[slot] = x[i] * x[i] * x[i]


def test_hessians_through_what_atomics_give():
    x, v = RNG.uniform(0.3, 1.7, 8), RNG.standard_normal(8)

    def gradient(moved):
        y = wp.full(2, wp.vec2d(-9.0, -9.0), dtype=wp.vec2d, requires_grad=True)
        return gradients(greatest, 8, [doubles(moved[0], requires_grad=True)], [y], [np.ones((2, 2))])[0]

    y = wp.full(2, wp.vec2d(-9.0, -9.0), dtype=wp.vec2d)
    found = wp.autograd.hvp(greatest, 8, [doubles(x)], [y], vectors=[doubles(v)])
    np.testing.assert_allclose(found[0].numpy(), difference(gradient, [x], [v]), rtol=1e-6, atol=1e-7)
    inputs, outputs = [doubles(x), wp.zeros(1, dtype=int)], [doubles(np.zeros(8))]
    found = wp.autograd.hvp(compact, 8, inputs, outputs, vectors=[doubles(v)])
    np.testing.assert_allclose(found[0].numpy(), np.where(x > 0.8, 6.0 * x * v, 0.0))
    assert inputs[1].numpy()[0] == 0


@wp.func
def exponential(a: wp.float64, store: wp.array[wp.float64], i: int):
    result = wp.exp(a)
    store[i] = result
    return result


@wp.func_replay(exponential)
def exponential_again(a: wp.float64, store: wp.array[wp.float64], i: int):
    return store[i]


@wp.func_grad(exponential)
def exponential_gradient(a: wp.float64, store: wp.array[wp.float64], i: int, adj_result: wp.float64):
    wp.adjoint[a] += adj_result * store[i]


@wp.kernel
def stored(x: wp.array[wp.float64], store: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = exponential(x[i] * x[i], store, i)


def test_what_has_no_second_derivative_is_refused():
    x, y, z = doubles(np.ones(4)), doubles(np.zeros(4)), doubles(np.zeros(4))
    with pytest.raises(
        wp.UsageError, match="kernel 'stored' has no second derivative here: .*looks at 'store' as it is"
    ):
        wp.autograd.hvp(stored, 4, [x, y], [z], vectors=[x])

    def own(a):
        wp.Tape.record_func(wp._weft.active_tape(), lambda: None, [])
        return a

    with pytest.raises(RuntimeError, match=r"records <function .* by Tape.record_func\(\), and Weft knows"):
        wp.autograd.hvp(own, inputs=[x], vectors=[x])
    with pytest.raises(ValueError, match="output 0 has no gradient. help: make it with requires_grad=True"):
        wp.autograd.hvp(lambda a: wp.zeros(1), inputs=[x], vectors=[x])
    with pytest.raises(TypeError, match="returned 3, expected a wp.array"):
        wp.autograd.hvp(lambda a: 3, inputs=[x], vectors=[x])
    with pytest.raises(TypeError, match="entry 1 of vectors is 1.0 for an input that is no array"):
        wp.autograd.hvp(lambda a, k: a, inputs=[x, 2.0], vectors=[x, 1.0])
    with pytest.raises(TypeError, match="expected a kernel or a function, got 3"):
        wp.autograd.hvp(3, inputs=[x])


# ---- random programs ----


@pytest.mark.parametrize("first", range(0, 16, 8))
def test_random_programs_have_the_hessian_of_differences(tmp_path, first):
    assert sum(check_hessian(seed, tmp_path) for seed in range(first, first + 8)) >= 5


@pytest.mark.large
@pytest.mark.parametrize("first", range(0, 2_000, 250))
def test_two_thousand_random_programs(tmp_path, first):
    assert sum(check_hessian(seed, tmp_path) for seed in range(5 * 10**7 + first, 5 * 10**7 + first + 250)) >= 125
