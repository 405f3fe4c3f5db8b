"""Mistakes in gradients and replays of functions, and when a gradient counts."""

import pytest
import warp as wp
from custom_functions import slope
from tapes import doubles

pytestmark = pytest.mark.protected


# ---- mistakes ----
@wp.kernel
def slope_of_a_loop(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = slope(x[i], 3, wp.vec3d())


@pytest.mark.host_memory("loops keep their states in arrays, which have derivatives", on="cuda")
def test_the_derivative_of_the_gradient_of_a_loop_is_an_error():
    x, y = doubles([1.0], requires_grad=True), doubles([0.0], requires_grad=True)
    with wp.Tape(), pytest.raises(wp.CompileError, match="takes the gradient of a function with a loop"):
        wp.launch(slope_of_a_loop, 1, [x], [y])


def test_mistakes_in_a_gradient_are_shown_at_its_lines():
    @wp.func
    def f(x: float, n: int):
        return x

    def expect(message, make):
        @wp.kernel(module="unique")
        def run(x: wp.array[float], y: wp.array[float]):
            y[wp.tid()] = f(x[0], 1)

        make()
        with pytest.raises(wp.CompileError, match=message):
            wp.launch(run, 1, [wp.ones(1, dtype=float)], [wp.zeros(1, dtype=float)])

    def returns():
        @wp.func_grad(f)
        def gradient(x: float, n: int, adj: float):
            return 2.0 * adj

    def integer():
        @wp.func_grad(f)
        def gradient(x: float, n: int, adj: float):
            wp.adjoint[n] += 1

    def adjoint_of_adjoint():
        @wp.func_grad(f)
        def gradient(x: float, n: int, adj: float):
            wp.adjoint[adj] += 1.0

    def other_type():
        @wp.func_grad(f)
        def gradient(x: float, n: int, adj: wp.vec3):
            wp.adjoint[x] += adj[0]

    def too_many():
        @wp.func_grad(f)
        def gradient(x: float, n: int, adj: float, more: float):
            wp.adjoint[x] += adj

    def not_a_name():
        @wp.func_grad(f)
        def gradient(x: float, n: int, adj: float):
            wp.adjoint[0] += adj

    def overwrites():
        @wp.func_grad(f)
        def gradient(x: float, n: int, adj: float):
            return

        @wp.func
        def g(values: wp.array[float]):
            return values[0]

        @wp.func_grad(g)
        def g_gradient(values: wp.array[float], adj: float):
            wp.adjoint[values][0] = adj

        @wp.kernel(module="unique")
        def run(x: wp.array[float], y: wp.array[float]):
            y[0] = g(x)

        wp.launch(run, 1, [wp.ones(1, dtype=float)], [wp.zeros(1, dtype=float)])

    def type_mistake():
        @wp.func_grad(f)
        def gradient(x: float, n: int, adj: float):
            wp.adjoint[x] += wp.vec3(adj)

    expect("is a gradient, which returns nothing", returns)
    expect("'n' has no adjoint", integer)
    expect("'adj' has no adjoint", adjoint_of_adjoint)
    expect("the adjoint 'adj', which has the type of what 'f' returns, is float32, expected vec3f", other_type)
    expect("has 4 parameters, expected 3", too_many)
    expect(r"wp.adjoint\[...\] stands for a parameter's adjoint", not_a_name)
    expect("float32", type_mistake)
    with pytest.raises(wp.CompileError, match="the gradient of an array collects what all threads add to it"):
        overwrites()

    def replay_of_another_type():
        @wp.func_grad(f)
        def gradient(x: float, n: int, adj: float):
            wp.adjoint[x] += adj

        @wp.func_replay(f)
        def replay(x: float, n: int):
            return n

    expect("the replay 'replay' returns int32, expected float32", replay_of_another_type)


def test_adjoint_and_grad_outside_of_their_places():
    @wp.kernel(module="unique")
    def uses_adjoint(x: wp.array[float]):
        i = wp.tid()
        wp.adjoint[x] = 1.0

    with pytest.raises(wp.CompileError, match="stands for a parameter's adjoint"):
        wp.launch(uses_adjoint, 1, [wp.ones(1, dtype=float)])

    def refused(expression, message):
        @wp.kernel(module="unique")
        def run(y: wp.array[float]):
            y[0] = expression(1.0)

        with pytest.raises(wp.CompileError, match=message):
            wp.launch(run, 1, [wp.ones(1, dtype=float)])

    @wp.func
    def of_builtin(x: float):
        return wp.grad(wp.grad(doubled))(x)

    @wp.func
    def of_vector(x: float):
        return wp.grad(doubled)(x)[0]

    @wp.func
    def of_integer(x: float):
        return wp.grad(counted)(3)

    refused(of_builtin, "wp.grad\\(\\) cannot take")
    refused(of_vector, "takes functions that return one floating-point number, and 'doubled' returns vec2f")
    refused(of_integer, "no parameter of 'counted' has a derivative")


@wp.func
def doubled(x: float):
    return wp.vec2(x, x)


@wp.func
def counted(n: int):
    return float(n)


@wp.func
def total(values: wp.array[float], x: float):
    return values[0] * x


@wp.func_grad(total)
def total_gradient(values: wp.array[float], x: float, adj: float):
    wp.adjoint[x] += values[0] * adj


@wp.kernel
def writes_first(values: wp.array[float], y: wp.array[float]):
    values[0] = 3.0
    y[0] = total(values, 2.0)


def test_a_function_that_reads_what_the_kernel_wrote_needs_a_replay():
    values, y = wp.ones(1, dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape(), pytest.raises(wp.CompileError, match="reads elements that the kernel may have written itself"):
        wp.launch(writes_first, 1, [values], [y])


def test_a_gradient_declared_later_is_used_from_then_on():
    @wp.func
    def f(x: float):
        return 2.0 * x

    @wp.kernel(module="unique")
    def run(x: wp.array[float], y: wp.array[float]):
        y[wp.tid()] = f(x[0])

    def slope():
        x, y = wp.ones(1, dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(run, 1, [x], [y])
        tape.backward(y)
        return x.grad.numpy()[0]

    assert slope() == 2.0

    @wp.func_grad(f)
    def first(x: float, adj: float):
        wp.adjoint[x] += 5.0 * adj

    assert slope() == 5.0
    assert f.custom_grad_func is first
