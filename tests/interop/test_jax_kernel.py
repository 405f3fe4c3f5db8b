"""wp.jax_kernel and the jax_kernel of earlier programs: arguments, outputs, dtypes, errors, life of what was traced."""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import warp as wp
import warp.jax_experimental
from jax_programs import agree, pair, wave
from run_in_threads import run_in_threads

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")


@wp.kernel
def triple_kernel(input: wp.array(dtype=float), output: wp.array(dtype=float)):
    tid = wp.tid()
    output[tid] = 3.0 * input[tid]


def run(program: str, folder) -> str:
    """What a program prints in a process of its own."""
    path = folder / "main.py"
    path.write_text(textwrap.dedent(program))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


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


# ---- what was traced lives on ----


def test_a_new_kernel_of_the_same_name_leaves_what_was_traced():
    def define(factor):
        @wp.kernel
        def apply(x: wp.array[float], y: wp.array[float]):
            y[wp.tid()] = factor * x[wp.tid()]

        return wp.jax_kernel(apply)

    x, double = jnp.arange(3.0), define(2.0)
    jitted, gradient = jax.jit(double), jax.jit(jax.grad(lambda x: jnp.sum(double(x)[0])))
    assert jitted(x)[0].tolist() == [0, 2, 4] and gradient(x).tolist() == [2, 2, 2]
    assert define(7.0)(x)[0].tolist() == [0, 7, 14]
    assert jitted(x)[0].tolist() == [0, 2, 4] and gradient(x).tolist() == [2, 2, 2]


@wp.func
def step(x: float):
    return x * 2.0


@wp.kernel
def apply_step(x: wp.array[float], y: wp.array[float]):
    y[wp.tid()] = step(x[wp.tid()])


def test_a_redefined_function_gives_no_mixture_of_old_values_and_new_gradients():
    global step
    function, x = wp.jax_kernel(apply_step), jnp.arange(3.0)
    jitted, gradient = jax.jit(function), jax.jit(jax.grad(lambda x: jnp.sum(function(x)[0])))
    moved = jax.jit(lambda x: jax.jvp(lambda x: function(x)[0], (x,), (x,))[1])
    assert jitted(x)[0].tolist() == moved(x).tolist() == [0, 2, 4] and gradient(x).tolist() == [2, 2, 2]

    @wp.func
    def step(x: float):
        return x * 7.0

    assert jitted(x)[0].tolist() == [0, 2, 4]
    for derivative in (gradient, moved):
        with pytest.raises(Exception, match="'apply_step'.* has been redefined since JAX traced it"):
            derivative(x).block_until_ready()
    assert function(x)[0].tolist() == [0, 7, 14]
    assert jax.grad(lambda x: jnp.sum(function(x)[0]))(x).tolist() == [7, 7, 7]


def test_a_jitted_kernel_runs_in_many_threads():
    function = jax.jit(wp.jax_kernel(wave))
    gradient = jax.jit(jax.grad(lambda x, y: jnp.sum(wp.jax_kernel(wave)(x, y)[0])))
    moved = jax.jit(lambda x, y: jax.jvp(lambda x: wp.jax_kernel(wave)(x, y)[0], (x,), (jnp.ones_like(x),))[1])
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for size in (3, 1000, 40000):
            x, y = (jnp.asarray(rng.standard_normal(size).astype(np.float32)) for _ in range(2))
            for _ in range(20):
                (z,), g, tangent = function(x, y), gradient(x, y), moved(x, y)
                if not np.allclose(tangent, np.cos(x) * y + 2 * x, atol=1e-5):
                    wrong.append(("tangent", size))
                if not np.allclose(z, np.sin(x) * y + x * x, atol=1e-5):
                    wrong.append(("value", size))
                if not np.allclose(g, np.cos(x) * y + 2 * x, atol=1e-5):
                    wrong.append(("gradient", size))

    run_in_threads(work, range(6))
    assert not wrong


CACHED = """
    import jax, sys
    import jax.numpy as jnp
    jax.config.update("jax_compilation_cache_dir", {folder!r})
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    sys.path.insert(0, {folder!r})
    from program import triple
    f = jax.jit(lambda x: triple(x)[0] + 1)
    print(f(jnp.arange(3.0)).tolist(), jax.jit(jax.grad(lambda x: jnp.sum(triple(x)[0])))(jnp.arange(3.0)).tolist())
    print(jax.jit(lambda x: jax.jvp(lambda x: triple(x)[0], (x,), (x,))[1])(jnp.arange(3.0)).tolist())
    print(jax.jit(jax.hessian(lambda x: jnp.sum(triple(x)[0] ** 2)))(jnp.ones(1)).tolist())
    """


def test_programs_out_of_the_cache_of_jax_find_their_kernel(tmp_path):
    (tmp_path / "program.py").write_text(
        textwrap.dedent("""
        import warp as wp

        @wp.kernel
        def kernel(x: wp.array[float], y: wp.array[float]):
            y[wp.tid()] = 3.0 * x[wp.tid()]

        triple = wp.jax_kernel(kernel)
        """)
    )
    program = CACHED.format(folder=str(tmp_path))
    first = run(program, tmp_path)
    entries = sorted(path.name for path in tmp_path.glob("jit*"))
    assert entries and first == "[1.0, 4.0, 7.0] [3.0, 3.0, 3.0]\n[0.0, 3.0, 6.0]\n[[18.0]]\n"
    assert run(program, tmp_path) == first
    assert [path.name for path in sorted(tmp_path.glob("jit*-cache"))] == [e for e in entries if e.endswith("-cache")]


def test_a_compiled_program_without_its_kernel_is_an_error(tmp_path):
    program = """
        import pickle, jax, jax.numpy as jnp
        from jax.experimental.serialize_executable import deserialize_and_load, serialize
        import warp as wp
        x = jnp.arange(3.0)
        path = {path!r}
        from pathlib import Path
        if not Path(path).exists():
            @wp.kernel
            def kernel(x: wp.array[float], y: wp.array[float]):
                y[wp.tid()] = 3.0 * x[wp.tid()]
            compiled = jax.jit(wp.jax_kernel(kernel)).lower(x).compile()
            Path(path).write_bytes(pickle.dumps(serialize(compiled)))
        else:
            from warp._interop.jax_kernels import ensure_handlers
            ensure_handlers()
            compiled = deserialize_and_load(*pickle.loads(Path(path).read_bytes()))
            try:
                compiled(x)[0].block_until_ready()
            except jax.errors.JaxRuntimeError as error:
                print(error)
        """.format(path=str(tmp_path / "compiled"))
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    for expected in ("", "kernel is not known in this process"):
        done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True)
        assert done.returncode == 0 and expected in done.stdout, done.stdout + done.stderr


@pytest.mark.seed("S-DST-002", "P-24")
def test_nothing_of_ours_starts_a_backend(tmp_path):
    program = """
        import warp as wp
        import warp.jax, warp.jax_experimental, warp.jax_experimental.custom_call, warp.jax_experimental.ffi
        import sys
        assert "jax" not in sys.modules and "jaxlib" not in sys.modules
        from warp.jax_experimental import jax_kernel

        @wp.kernel
        def kernel(x: wp.array[float], y: wp.array[float]):
            y[wp.tid()] = x[wp.tid()]

        jax_kernel(kernel, launch_dims=3), wp.jax_kernel(kernel, num_outputs=1, launch_dims=3)
        import jax
        from jax._src import xla_bridge
        assert not xla_bridge.backends_are_initialized()
        jax.distributed.initialize("localhost:12399", num_processes=1, process_id=0)
        import jax.numpy as jnp
        assert jax.jit(jax_kernel(kernel))(jnp.ones(2))[0].tolist() == [1, 1]
    """
    run(program, tmp_path)


def flags_of_memory(address: int) -> list[str]:
    """What the kernel of Linux says of the pages at an address."""
    is_there = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, _, rest = line.partition(" ")
        if not name.endswith(":"):
            begin, _, end = name.partition("-")
            is_there = int(begin, 16) <= address < int(end, 16)
        elif is_there and name == "VmFlags:":
            return rest.split()
    raise ValueError(f"no memory at {address:#x}")


def copied(x: wp.array[float], y: wp.array[float]):
    wp.copy(y, x)


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="Linux without huge pages")
@pytest.mark.parametrize("kind", ["kernel", "gradient", "function"])
def test_large_results_are_written_to_huge_pages(kind):
    function = wp.jax_callable(copied) if kind == "function" else wp.jax_kernel(triple_kernel)
    run = jax.jit(jax.grad(lambda x: function(x)[0].sum()) if kind == "gradient" else lambda x: function(x)[0])
    x = jnp.ones(12 << 20)
    y = run(x)
    assert float(y[-1]) == (1.0 if kind == "function" else 3.0)
    middle = y.unsafe_buffer_pointer() + y.nbytes // 2
    assert "hg" in flags_of_memory(middle)
    assert "hg" not in flags_of_memory(x.unsafe_buffer_pointer() + x.nbytes // 2)  # of JAX's own making


def test_calls_leave_no_memory_behind():
    function = jax.jit(wp.jax_kernel(wave))
    gradient = jax.jit(jax.grad(lambda x, y: jnp.sum(wp.jax_kernel(wave)(x, y)[0])))
    x = jnp.ones(1000)

    def calls():
        for _ in range(2000):
            function(x, x), gradient(x, x)
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4

    calls()
    before = min(calls() for _ in range(2))
    assert calls() - before < 4096  # KiB; 2000 arrays of 4 KiB would be 8000


def test_a_kernel_that_does_not_compile_is_an_error_of_its_calls():
    @wp.kernel
    def broken(x: wp.array[float], y: wp.array[float]):
        y[wp.tid()] = x[wp.tid()] * not_defined  # noqa: F821

    made = wp.jax_kernel(broken)  # other kernels of a module stay usable
    with pytest.raises(wp.CompileError, match="name 'not_defined' is not defined"):
        made(jnp.ones(3))
    with pytest.raises(ValueError, match="in_out_argnames has 'z'"):
        wp.jax_kernel(broken, in_out_argnames=["z"])
    with pytest.raises(ValueError, match="num_outputs is 3"):
        wp.jax_kernel(broken, num_outputs=3)
