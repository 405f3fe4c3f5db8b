"""wp.jax_kernel and the jax_kernel of earlier programs: arguments, outputs, dtypes, errors, life of what was traced."""

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import warp as wp
import warp.jax_experimental
from jax_kernels import triple_kernel
from jax_programs import agree, pair, wave

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")


# ---- arguments and outputs ----
@pytest.mark.seed("S-JAX-005", "S-JAX-007", "S-JAX-011", "P-22", "D-08")
def test_the_experimental_module_as_its_page_has_it(capsys):
    import warp.jax_experimental.custom_call
    from warp.jax_experimental import jax_kernel

    assert warp.jax_experimental.custom_call.jax_kernel is jax_kernel
    jax_triple = jax_kernel(triple_kernel)

    @jax.jit
    def f():
        x = jnp.arange(0, 64, dtype=jnp.float32)
        return jax_triple(x)

    (result,) = f()
    np.testing.assert_array_equal(result, 3 * np.arange(64, dtype=np.float32))
    assert isinstance(jax_triple(jnp.ones(3)), list)


@pytest.mark.seed("S-JAX-006", "P-23")
def test_outputs_are_what_is_not_passed():
    from warp.jax_experimental import jax_kernel

    @wp.kernel
    def multiarg_kernel(
        # inputs
        a: wp.array(dtype=float),
        b: wp.array(dtype=float),
        c: wp.array(dtype=float),
        # outputs
        ab: wp.array(dtype=float),
        bc: wp.array(dtype=float),
    ):
        tid = wp.tid()
        ab[tid] = a[tid] + b[tid]
        bc[tid] = b[tid] + c[tid]

    jax_multiarg = jax_kernel(multiarg_kernel)

    @jax.jit
    def f():
        a = jnp.full(64, 1, dtype=jnp.float32)
        b = jnp.full(64, 2, dtype=jnp.float32)
        c = jnp.full(64, 3, dtype=jnp.float32)
        return jax_multiarg(a, b, c)

    x, y = f()
    assert np.all(x == 3.0) and np.all(y == 5.0) and x.shape == y.shape == (64,)
    (only,) = wp.jax_kernel(multiarg_kernel, num_outputs=2)(*[jnp.ones(4)] * 3)[1:]
    assert np.all(only == 2.0)


@pytest.mark.seed("S-JAX-012")
def test_leading_dimensions_become_the_first():
    from warp.jax_experimental import jax_kernel

    x = jnp.arange(24, dtype=jnp.float32).reshape(2, 3, 4)
    (y,) = jax_kernel(triple_kernel)(x)
    np.testing.assert_array_equal(y, 3 * x)
    with pytest.raises(TypeError, match=r"argument 1 'input' has the shape \(2, 3, 4\).*1 dimensions"):
        wp.jax_kernel(triple_kernel)(x)


@wp.kernel
def products(a: wp.array2d[float], b: wp.array2d[float], c: wp.array2d[float]):
    i, j = wp.tid()
    s = float(0.0)
    for k in range(a.shape[1]):
        s += a[i, k] * b[k, j]
    c[i, j] = s


@pytest.mark.seed("S-JAX-008", "S-JAX-014")
def test_functions_of_one_kernel_with_different_grids():
    from warp.jax_experimental import jax_kernel

    a, b = jnp.arange(32.0).reshape(8, 4), jnp.arange(24.0).reshape(4, 6)
    whole, part = jax_kernel(products, launch_dims=(8, 6)), jax_kernel(products, launch_dims=(3, 2))

    @jax.jit
    def both(a, b):
        return whole(a, b)[0], part(a, b)[0]

    for _ in range(2):
        first, second = both(a, b)
        np.testing.assert_allclose(first, a @ b)
        np.testing.assert_allclose(second, (a @ b)[:3, :2])
    found = jax.grad(lambda a, b: jnp.sum(jnp.sin(part(a, b)[0])), (0, 1))(a, b)
    agree(found, jax.grad(lambda a, b: jnp.sum(jnp.sin((a @ b)[:3, :2])), (0, 1))(a, b))


def test_dims_of_one_call_and_by_name():
    x = jnp.arange(4.0)
    triple = wp.jax_kernel(triple_kernel)
    assert triple(x, launch_dims=2)[0].tolist() == [0, 3]
    assert triple(x, launch_dims=(2,), output_dims=3)[0].tolist() == [0, 3, 0]
    assert triple(x, output_dims={"output": 6})[0].tolist() == [0, 3, 6, 9, 0, 0]
    assert wp.jax_kernel(triple_kernel, launch_dims=3, output_dims=5)(x)[0].tolist() == [0, 3, 6, 0, 0]
    mapped = jax.vmap(lambda x: triple(x, vmap_method="sequential"))(jnp.stack([x, x + 1]))
    np.testing.assert_array_equal(mapped[0], 3 * jnp.stack([x, x + 1]))


@wp.kernel
def scaled(x: wp.array[float], factor: float, shift: wp.vec2, y: wp.array[float]):
    i = wp.tid()
    y[i] = factor * x[i] + shift[0] - shift[1]


def test_numbers_are_part_of_the_program():
    x = jnp.arange(4.0)
    function = wp.jax_kernel(scaled)
    for factor in (2.0, np.float32(2.0), jnp.float32(2.0), 2):
        assert function(x, factor, wp.vec2(3.0, 1.0))[0].tolist() == [2, 4, 6, 8]
    two = jax.jit(lambda x: [function(x, 2.0, wp.vec2())[0], function(x, 5.0, wp.vec2())[0]])(x)
    assert two[0].tolist() == [0, 2, 4, 6] and two[1].tolist() == [0, 5, 10, 15]
    agree(jax.grad(lambda x: jnp.sum(function(x, 3.0, wp.vec2())[0] ** 2))(x), 18 * x)
    with pytest.raises(TypeError, match="argument 2 'factor' is float32.*traced.*static_argnums"):
        jax.jit(lambda x, f: function(x, f, wp.vec2()))(x, 2.0)


@wp.kernel
def accumulate(x: wp.array[float], state: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    state[i] = state[i] * 2.0 + x[i]
    y[i] = state[i] * x[i]


def accumulated(x, state):
    new = state * 2.0 + x
    return [new, new * x]


def test_arguments_that_are_inputs_and_outputs():
    function = wp.jax_kernel(accumulate, num_outputs=2, in_out_argnames=["state"])
    x, state = jnp.arange(1.0, 5.0), jnp.arange(4.0) - 0.5
    kept = np.array(state)
    agree(function(x, state), accumulated(x, state))
    np.testing.assert_array_equal(state, kept)
    given = state + 0
    memory = given.unsafe_buffer_pointer()
    found = jax.jit(function, donate_argnums=1)(x, given)
    assert found[0].unsafe_buffer_pointer() == memory  # in place
    agree(found, accumulated(x, state))
    xs = jnp.stack([x, x + 1, x * 2])
    agree(jax.vmap(function, (0, None))(xs, state), jax.vmap(accumulated, (0, None))(xs, state))
    agree(jax.vmap(function, (None, 0))(x, xs), jax.vmap(accumulated, (None, 0))(x, xs))

    def loss(function):
        return lambda *args: sum(jnp.sum(jnp.sin(o) * (i + 1)) for i, o in enumerate(function(*args)))

    agree(jax.grad(loss(function), (0, 1))(x, state), jax.grad(loss(accumulated), (0, 1))(x, state))
    found = jax.vmap(jax.grad(loss(function), (0, 1)), (0, None))(xs, state)
    agree(found, jax.vmap(jax.grad(loss(accumulated), (0, 1)), (0, None))(xs, state))
    with pytest.raises(ValueError, match="in_out_argnames has 'q'; the parameters are 'x', 'state', 'y'"):
        wp.jax_kernel(accumulate, num_outputs=2, in_out_argnames=["q"])
    with pytest.raises(ValueError, match="'y' of in_out_argnames is not among the inputs"):
        wp.jax_kernel(accumulate, num_outputs=2, in_out_argnames=["y"])


def derivatives(function, arguments, tangents):
    """Forward mode, reverse mode, and both in both orders."""

    def total(*args):
        return sum(jnp.sum(jnp.sin(o) * (i + 1)) for i, o in enumerate(function(*args)))

    slopes = jax.grad(total, (0, 1))
    return [
        jax.jvp(lambda *args: function(*args), arguments, tangents)[1],
        slopes(*arguments),
        jax.jit(jax.hessian(total, (0, 1)))(*arguments),
        jax.grad(lambda *args: jax.jvp(total, args, tangents)[1] ** 2, (0, 1))(*arguments),
        jax.jacrev(slopes, (0, 1))(*arguments),
    ]


def test_derivatives_of_arguments_that_are_inputs_and_outputs():
    function = wp.jax_kernel(curved, num_outputs=2, in_out_argnames=["state"])
    arguments, tangents = (jnp.arange(1.0, 5.0), jnp.arange(4.0) - 0.5), (jnp.ones(4), jnp.linspace(0.0, 1.0, 4))
    agree(derivatives(function, arguments, tangents), derivatives(curved_by_hand, arguments, tangents), 1e-4)
    shared = jax.vmap(lambda x, state: jnp.sum(jax.hessian(lambda x: jnp.sum(function(x, state)[1]))(x)), (0, None))
    by_hand = jax.vmap(
        lambda x, state: jnp.sum(jax.hessian(lambda x: jnp.sum(curved_by_hand(x, state)[1]))(x)), (0, None)
    )
    xs = jnp.stack([arguments[0], -arguments[0]])
    agree(shared(xs, arguments[1]), by_hand(xs, arguments[1]), 1e-4)


@wp.kernel
def curved(x: wp.array[float], state: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    state[i] = state[i] * x[i] + x[i]
    y[i] = state[i] * state[i]


def curved_by_hand(x, state):
    new = state * x + x
    return [new, new * new]


@wp.kernel
def mixed(x: wp.array[float], index: wp.array[int], factor: float, y: wp.array[float], count: wp.array[int]):
    i = wp.tid()
    y[i] = factor * x[index[i]] * x[i] * x[i]
    wp.atomic_add(count, 0, 1)


def test_derivatives_beside_integers_and_numbers():
    kernel = wp.jax_kernel(mixed, num_outputs=2, output_dims={"count": 1})
    x, index = jnp.linspace(1.0, 2.0, 5), jnp.array([4, 3, 2, 0, 1])

    def total(x):
        return jnp.sum(jnp.cos(kernel(x, index, 3.0)[0]))

    def formula(x):
        return jnp.sum(jnp.cos(3.0 * x[index] * x * x))

    agree(jax.jvp(total, (x,), (x * x,)), jax.jvp(formula, (x,), (x * x,)), 1e-4)
    agree(jax.hessian(total)(x), jax.hessian(formula)(x), 1e-3)
    values, tangents = jax.jvp(lambda x: kernel(x, index, 3.0), (x,), (x,))
    assert values[1].tolist() == [5] and tangents[1].dtype == jax.dtypes.float0


@wp.func
def bent(x: float, y: float):
    return x * y


@wp.func_grad(bent)
def adj_bent(x: float, y: float, adj: float):  # its derivative is not symmetric
    wp.adjoint[x] += y * y * adj
    wp.adjoint[y] += x * adj


@wp.kernel
def bending(x: wp.array[float], y: wp.array[float], z: wp.array[float]):
    z[wp.tid()] = bent(x[wp.tid()], y[wp.tid()])


def test_gradients_of_a_users_own():
    def total(*args):
        return jnp.sum(wp.jax_kernel(bending)(*args)[0])

    x, y = jnp.arange(1.0, 4.0), jnp.arange(2.0, 5.0)
    agree(jax.jit(jax.grad(total, (0, 1)))(x, y), [y * y, x])
    agree(jax.jvp(total, (x, y), (x, x))[1], jnp.sum(y * y * x + x * x))
    moved = jax.jvp(jax.grad(total, (0, 1)), (x, y), (x, x + 1))[1]
    agree(moved, [2 * y * (x + 1), x])
    for transposes in (
        lambda *args: sum(map(jnp.sum, jax.grad(total, (0, 1))(*args))),
        lambda *args: jax.jvp(total, args, (x, x))[1],
    ):
        with pytest.raises(NotImplementedError, match="'bending': it calls a function whose gradient is a user's own"):
            jax.grad(transposes)(x, y)


@wp.kernel
def least(x: wp.array[float], y: wp.array[float]):
    wp.atomic_max(y, 0, x[wp.tid()])


def test_what_forward_mode_cannot_do_is_an_error_when_it_is_traced():
    function, x = wp.jax_kernel(least, output_dims=1), jnp.arange(1.0, 4.0)
    assert jax.grad(lambda x: function(x)[0][0])(x).tolist() == [0, 0, 1]
    moved = jax.jit(lambda x: jax.jvp(lambda x: function(x)[0], (x,), (x,)))
    with pytest.raises(wp.CompileError, match="kernel 'least' has no tangent: it depends on which"):
        moved.lower(x)


# ---- kernels ----
@wp.kernel
def chosen(values: wp.array[float], index: wp.array[int], result: wp.array[float]):
    i = wp.tid()
    if index[i] >= 0:
        result[i] = values[index[i]] * values[i]


def test_integers_and_what_is_not_written():
    values, index = jnp.arange(1.0, 6.0), jnp.array([3, -1, 0, -1, 4])
    function = wp.jax_kernel(chosen)

    def formula(values, index):
        return jnp.where(index >= 0, values[index] * values, 0)

    for _ in range(3):  # also in memory that was used before
        agree(function(values, index)[0], formula(values, index))
    agree(
        jax.grad(lambda v: jnp.sum(function(v, index)[0] ** 2))(values),
        jax.grad(lambda v: jnp.sum(formula(v, index) ** 2))(values),
    )
    _, pullback = jax.vjp(lambda *args: function(*args)[0], values, index)
    assert pullback(jnp.ones(5))[1].dtype == jax.dtypes.float0


@wp.kernel
def of_integers(a: wp.array[int], b: wp.array[int]):
    b[wp.tid()] = a[wp.tid()] * 2


@wp.kernel
def of_zeros(x: wp.array[float], read: wp.array[float], some: wp.array[float]):
    i = wp.tid()
    read[i] = (read[i] + 1.0) * x[i] + read[i] * read[i]
    if x[i] > 0.0:
        some[i] = x[i] * x[i]


def test_gradients_of_outputs_that_start_as_zeros():
    function, x = wp.jax_kernel(of_zeros, num_outputs=2), jnp.linspace(-1.0, 1.0, 40)
    for _ in range(3):
        for _ in range(4):
            wp.full(40, np.nan)  # freed at once, and given out again
        (read, some), pullback = jax.vjp(function, x)
        np.testing.assert_array_equal(read, x)
        np.testing.assert_array_equal(some, jnp.where(x > 0, x * x, 0.0))
        seeds = [x, jnp.ones(40)]
        np.testing.assert_allclose(pullback(seeds)[0], jnp.where(x > 0, 3 * x, x), rtol=1e-6)
        np.testing.assert_array_equal(seeds[0], jnp.linspace(-1.0, 1.0, 40))


def test_a_kernel_of_integers_has_no_gradient_and_is_no_error():
    function = wp.jax_kernel(of_integers)
    assert function(jnp.arange(3))[0].tolist() == [0, 2, 4]
    _, pullback = jax.vjp(lambda a: function(a)[0], jnp.arange(3))
    (gradient,) = pullback(np.zeros(3, jax.dtypes.float0))
    assert gradient.dtype == jax.dtypes.float0


@wp.kernel
def tickets(weight: wp.array[float], counter: wp.array[int], slots: wp.array[float]):
    i = wp.tid()
    place = wp.atomic_add(counter, 0, 1)
    slots[place] = weight[i] * weight[i]


def test_an_adjoint_that_needs_what_atomics_returned():
    function = wp.jax_kernel(tickets, num_outputs=2, output_dims={"counter": 1, "slots": 100})
    weight = jnp.asarray(np.random.default_rng(3).uniform(1, 2, 100).astype(np.float32))
    counter, slots = jax.jit(function)(weight)
    assert counter.tolist() == [100]
    np.testing.assert_allclose(np.sort(slots), np.sort(weight * weight), rtol=1e-6)
    gradient = jax.grad(lambda w: jnp.sum(jnp.sin(function(w)[1])))(weight)
    agree(gradient, 2 * weight * jnp.cos(weight * weight))
    weights = jnp.stack([weight, weight * 0.5])
    gradients = jax.vmap(jax.grad(lambda w: jnp.sum(jnp.sin(function(w)[1]))))(weights)
    agree(gradients, 2 * weights * jnp.cos(weights * weights))


@wp.kernel
def running(x: wp.array[float], total: wp.array[float], y: wp.array[float]):
    y[wp.tid()] = wp.atomic_add(total, 0, x[wp.tid()]) * x[wp.tid()]


def test_a_kernel_without_a_derivative_is_an_error():
    function = wp.jax_kernel(running, num_outputs=2, output_dims={"total": 1, "y": 3})
    assert function(jnp.ones(3))[0].tolist() == [3.0]
    slope = jax.jit(jax.grad(lambda x: jnp.sum(function(x)[1])))
    with pytest.raises(wp.CompileError, match="kernel 'running' has no gradient: it uses the result of this atomic"):
        slope.lower(jnp.ones(3))  # when it is traced


def test_empty_arrays():
    function = wp.jax_kernel(triple_kernel)
    empty = jnp.zeros(0)
    assert jax.jit(function)(empty)[0].shape == (0,)
    assert jax.grad(lambda x: jnp.sum(function(x)[0]))(empty).shape == (0,)
    assert jax.vmap(function)(jnp.zeros((0, 3)))[0].shape == (0, 3)
    assert jax.vmap(function)(jnp.zeros((3, 0)))[0].shape == (3, 0)
    sums = wp.jax_kernel(pair, num_outputs=2, output_dims={"total": 1, "product": (2, 2)})
    total, product = sums(empty, empty)
    assert total.tolist() == [0.0] and not np.any(product)


def doubling(dtype):
    @wp.kernel
    def double(x: wp.array(dtype=dtype), y: wp.array(dtype=dtype)):
        y[wp.tid()] = x[wp.tid()] + x[wp.tid()]

    return double


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_floats_of_every_width(name):
    with jax.enable_x64(True):
        function = wp.jax_kernel(doubling(getattr(wp, name)))
        x = jnp.arange(5).astype(name)
        (y,) = jax.jit(function)(x)
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(y, x + x)
        gradient = jax.grad(lambda x: jnp.sum(function(x)[0]))(x)
        assert gradient.dtype == x.dtype and np.all(gradient == 2)
        _, tangent = jax.jvp(lambda x: function(x)[0], (x,), (x + 1,))
        assert tangent.dtype == x.dtype and np.array_equal(tangent, 2 * (x + 1))
        bent = jax.hessian(lambda x: jnp.sum(function(x)[0] ** 2))(x)
        assert bent.dtype == x.dtype and np.array_equal(bent, 8 * np.eye(5))


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_of_every_width(name):
    with jax.enable_x64(True):
        x = jnp.arange(5).astype(name)
        np.testing.assert_array_equal(wp.jax_kernel(doubling(getattr(wp, name)))(x)[0], x + x)


def test_arrays_of_bool_are_taken_and_given():
    @wp.kernel
    def invert(x: wp.array[wp.bool], y: wp.array[wp.bool]):
        y[wp.tid()] = not x[wp.tid()]

    assert jax.jit(wp.jax_kernel(invert))(jnp.array([True, False]))[0].tolist() == [False, True]


def test_arrays_of_matrices_are_taken_and_given():
    @wp.kernel
    def squares(m: wp.array[wp.mat22], out: wp.array[wp.mat22]):
        out[wp.tid()] = m[wp.tid()] * m[wp.tid()]

    function = wp.jax_kernel(squares)
    m = jnp.asarray(np.random.default_rng(0).standard_normal((3, 2, 2)).astype(np.float32))
    agree(function(m)[0], m @ m)
    agree(jax.grad(lambda m: jnp.sum(function(m)[0] ** 2))(m), jax.grad(lambda m: jnp.sum((m @ m) ** 2))(m))


T = TypeVar("T")


@wp.kernel
def doubled(x: wp.array(dtype=T), factor: T, y: wp.array(dtype=T)):
    y[wp.tid()] = x[wp.tid()] * factor


@wp.kernel
def unclear(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    y[wp.tid()] = x[wp.tid()]


@wp.kernel
def rounded(x: wp.array(dtype=Any), y: wp.array(dtype=int)):
    y[wp.tid()] = int(x[wp.tid()])


@pytest.mark.parametrize("make", [wp.jax_kernel, warp.jax_experimental.jax_kernel])
def test_generic_kernels_take_the_types_of_their_arrays(make):
    function = make(doubled)
    with jax.enable_x64(True):
        for name, factor in (("float32", 2.0), ("int32", 2), ("float64", wp.float64(2.0)), ("float32", 2)):
            x = jnp.arange(3).astype(name)
            if name == "float64":
                assert function(x, factor)[0].dtype == name
                agree(jax.grad(lambda x: jnp.sum(function(x, factor)[0] ** 2))(x + 1), 8 * (x + 1))
            else:
                (y,) = jax.jit(lambda x: function(x, factor))(x)
                assert y.dtype == name and y.tolist() == [0, 2, 4]
        assert make(rounded)(jnp.array([1.5, 2.5], "float64"))[0].tolist() == [1, 2]
    with pytest.raises(TypeError, match="argument 'factor' is of float64, and ~T was float32"):
        function(jnp.ones(3), wp.float64(2.0))
    with pytest.raises(TypeError, match="do not say what its output 'y' is.*wp.overload"):
        make(unclear)(jnp.ones(3))
    assert make(wp.overload(unclear, [wp.array[float], wp.array[float]]))(jnp.ones(1))[0].tolist() == [1]


# ---- errors ----
@pytest.mark.seed("S-JAX-009")
def test_what_does_not_fit_is_an_error_when_it_is_traced():
    from warp.jax_experimental import jax_kernel

    x, m = jnp.ones(4), jnp.ones((4, 4))
    old, new = jax.jit(jax_kernel(triple_kernel)), jax.jit(wp.jax_kernel(triple_kernel))
    for call, kind, text in [
        (lambda: old(x, x), TypeError, "2 of its 2 arguments are given"),
        (lambda: old(), TypeError, "0 of its 2 arguments are given"),
        (lambda: new(x, x), TypeError, "got 2 arguments, expected its first 1: 'input'"),
        (lambda: new(x.astype(int)), TypeError, "argument 1 'input' has numbers of int32, expected array.float32."),
        (lambda: new(m), TypeError, r"argument 1 'input' has the shape \(4, 4\)"),
        (lambda: new(x[0]), TypeError, r"argument 1 'input' has the shape \(\)"),
        (lambda: wp.jax_kernel(wave)(x, x[:, None]), TypeError, "argument 2 'y' has the shape"),
        (lambda: wp.jax_kernel(products)(m, m, launch_dims=4), ValueError, "output 'c'.* 2 dimensions"),
        (lambda: wp.jax_kernel(triple_kernel, num_outputs=0), ValueError, "num_outputs is 0"),
        (lambda: wp.jax_kernel(triple_kernel, num_outputs=2), TypeError, "at least one input"),
        (lambda: wp.jax_kernel(scaled, num_outputs=2)(x), TypeError, "output 'shift' is vec2f, expected an array"),
        (lambda: wp.jax_kernel(triple_kernel, launch_dims=2.5)(x), ValueError, "launch_dims is 2.5"),
        (lambda: wp.jax_kernel(triple_kernel)(x, launch_dims=(-1,)), ValueError, "launch_dims"),
        (lambda: wp.jax_kernel(triple_kernel)(x, output_dims={"q": 1}), ValueError, "output_dims has 'q'.*'output'"),
        (lambda: wp.jax_kernel(triple_kernel, vmap_method="all"), ValueError, "vmap_method is 'all'"),
        (lambda: wp.jax_kernel(triple_kernel, module_preload_mode=7), ValueError, "7 is not a valid"),
        (lambda: wp.jax_kernel(lambda x: x), TypeError, "expected a function decorated with @wp.kernel"),
    ]:
        with pytest.raises(kind, match=text):
            call()
    with pytest.raises(NotImplementedError, match="vmap_method=None"):
        jax.vmap(wp.jax_kernel(triple_kernel, vmap_method=None))(m)


def test_a_kernel_that_writes_to_an_input_is_an_error():
    with pytest.raises(ValueError, match="kernel 'accumulate' writes to its argument 'state'.*in_out_argnames"):
        wp.jax_kernel(accumulate)(jnp.ones(3), jnp.ones(3))


def test_gradients_that_are_not_there_are_errors():
    function = wp.jax_kernel(triple_kernel, enable_backward=False)
    assert function(jnp.ones(2))[0].tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="kernel 'triple_kernel' has no gradient.*enable_backward=False"):
        jax.grad(lambda x: jnp.sum(function(x)[0]))(jnp.ones(2))
    assert jax.jvp(function, (jnp.ones(2),), (jnp.arange(2.0),))[1][0].tolist() == [0, 3]

    @wp.kernel(enable_backward=False)
    def without(x: wp.array[float], y: wp.array[float]):
        y[wp.tid()] = x[wp.tid()]

    slope = jax.jit(jax.grad(lambda x: jnp.sum(wp.jax_kernel(without)(x)[0])))
    with pytest.raises(wp.UsageError, match="kernel 'without' has no gradient.*enable_backward=False"):
        slope.lower(jnp.ones(2))


def test_what_a_kernel_raises_is_an_error_of_jax():
    @wp.kernel(module_options={"mode": "debug"})
    def outside(x: wp.array[float], y: wp.array[float]):
        y[wp.tid()] = x[wp.tid() + 1]

    with pytest.raises(Exception, match="index 3 is out of bounds.*kernel 'outside'"):
        jax.jit(wp.jax_kernel(outside))(jnp.ones(3))[0].block_until_ready()
    assert wp.jax_kernel(triple_kernel)(jnp.ones(2))[0].tolist() == [3, 3]
