"""Code without a gradient is an error at its line, in the words of that line.

A comment `# error: <text>` stands on the guilty line of each kernel or of a function that it calls. Where the text ends
in `...`, the message goes on.
"""

import re

import numpy as np
import pytest
import warp as wp

MARK = re.compile(r"# error: (.*)")


@wp.struct
class Holder:
    values: wp.array[wp.float64]


@wp.struct
class Pair:
    a: wp.float64
    b: wp.float64


def argument(annotation):
    if annotation is int:
        return 1
    if isinstance(annotation, wp.array):
        if annotation.dtype is Holder:
            return wp.array([argument(Holder)], dtype=Holder)
        if annotation.dtype is Pair:
            return wp.zeros(8, dtype=Pair, requires_grad=True)
        return wp.array(np.arange(1.0, 9.0), dtype=annotation.dtype, requires_grad=True)
    holder = annotation()
    holder.values = argument(wp.array(dtype=wp.float64))
    return holder


def launch(kernel, forward=False):
    arguments = [argument(annotation) for annotation in kernel.func.__annotations__.values()]
    if forward:
        tangents = [a if isinstance(a, wp.array) else None for a in arguments]
        return wp.jvp(kernel, dim=2, inputs=arguments, input_tangents=tangents)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=2, inputs=arguments)
    y = arguments[-1]
    return tape.backward(grads={y: wp.ones_like(y)})


def check(kernel, *functions, forward=False):
    with pytest.raises(wp.CompileError) as caught:
        launch(kernel, forward)
    places = []
    for function in (kernel, *functions):
        code = function.func.__code__
        with open(code.co_filename) as file:
            lines = file.read().split("\n")
        for line in range(code.co_firstlineno, max(number for *_, number in code.co_lines() if number) + 1):
            places += [(line, mark) for mark in MARK.findall(lines[line - 1])]
    ((guilty, text),) = places
    message = str(caught.value).split("\n")[0]
    assert caught.value.line == guilty, message
    kind = "tangent" if forward else "gradient"
    expected = f" has no {kind}: {text}"
    assert message.endswith(expected) or (text.endswith("...") and expected[:-3] in message), message


# ---- a function with a derivative of its own, or an atomic that makes an extreme ----


@wp.func
def product(v: wp.array[wp.float64], i: int):
    return v[i] * v[i + 1]


@wp.func_replay(product)
def product_again(v: wp.array[wp.float64], i: int):
    return wp.float64(0.0)


@wp.func_grad(product)
def product_gradient(v: wp.array[wp.float64], i: int, adj: wp.float64):
    wp.adjoint[v][i] += adj * v[i + 1]
    wp.adjoint[v][i + 1] += adj * v[i]


def test_an_array_made_in_the_kernel_is_not_there_after_the_launch():
    @wp.kernel
    def local(x: wp.array[wp.float64], y: wp.array[wp.float64]):
        v = wp.zeros(shape=(3,), dtype=wp.float64)
        v[0] = x[0]
        v[1] = x[1]
        y[0] = product(v, 0)  # error: a function with a derivative of its own is given an array made in the kernel

    check(local)


def test_an_array_chosen_at_run_time_is_not_followed_to_the_end_of_the_launch():
    @wp.kernel
    def chosen(x: wp.array[wp.float64], z: wp.array[wp.float64], c: int, y: wp.array[wp.float64]):
        i = wp.tid()
        v = x
        if c + i > 1:
            v = z
        y[i] = product(v, i)  # error: a function with a derivative of its own needs an array as it is after ...
        v[i] = wp.float64(3.0)

    check(chosen)


def test_an_array_in_memory_is_not_followed_to_the_end_of_the_launch():
    @wp.kernel
    def in_memory(holders: wp.array[Holder], y: wp.array[wp.float64]):
        i = wp.tid()
        v = holders[0].values
        y[i] = product(v, i)  # error: a function with a derivative of its own needs an array as it is after ...
        v[i] = wp.float64(2.0)

    check(in_memory)


@pytest.mark.parametrize("name", ["atomic_min", "atomic_max"])
def test_an_extreme_in_an_array_of_a_struct_is_not_followed_to_the_end_of_the_launch(name):
    extreme = getattr(wp, name)

    @wp.kernel
    def of_a_struct(x: wp.array[wp.float64], holder: Holder, y: wp.array[wp.float64]):
        i = wp.tid()
        extreme(holder.values, 0, x[i])  # error: this atomic needs an array as it is after the launch, and ...
        y[i] = x[i]

    check(of_a_struct)


# ---- values that the backward pass cannot have again ----


def test_a_loop_that_changes_which_array_it_reads():
    @wp.kernel
    def swaps(x: wp.array[wp.float64], z: wp.array[wp.float64], n: int, y: wp.array[wp.float64]):
        i = wp.tid()
        a = x
        b = z
        t = wp.float64(1.0)
        for _ in range(n):  # error: the loop changes which array 'a' is
            t = t * a[i]
            c = a
            a = b
            b = c
        y[i] = t

    check(swaps)


@wp.func
def ticket(c: wp.array[wp.float64], x: wp.float64):
    k = wp.atomic_add(c, 0, wp.float64(1.0))  # error: it uses the result of this atomic, which depends ...
    return x * k


@wp.func_grad(ticket)
def ticket_gradient(c: wp.array[wp.float64], x: wp.float64, adj: wp.float64):
    wp.adjoint[x] += adj


def test_a_function_whose_values_depend_on_the_order_of_the_threads_is_not_computed_again():
    @wp.kernel
    def takes_a_ticket(c: wp.array[wp.float64], x: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = ticket(c, x[i]) * x[i]

    check(takes_a_ticket, ticket)


@wp.func
def bump(v: wp.array[wp.float64], i: int):
    v[i] = v[i] + wp.float64(1.0)
    return v[i + 1] * v[i]  # error: it reads elements that it may have written itself


@wp.func_grad(bump)
def bump_gradient(v: wp.array[wp.float64], i: int, adj: wp.float64):
    wp.adjoint[v][i] += adj


@wp.func
def bump_with_a_replay(v: wp.array[wp.float64], i: int):
    v[i] = v[i] + wp.float64(1.0)
    return v[i + 1] * v[i]  # error: it reads elements that it may have written itself


@wp.func_replay(bump_with_a_replay)
def bump_again(v: wp.array[wp.float64], i: int):
    return v[i]


@pytest.mark.parametrize("function", [bump, bump_with_a_replay], ids=["gradient", "replay"])
def test_a_function_that_reads_what_it_wrote_is_neither_computed_again_nor_derived_by_itself(function):
    @wp.kernel
    def bumps(v: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = function(v, 2 * i)

    check(bumps, function)


def test_a_sweep_that_would_pass_an_array_to_a_function_with_a_derivative_of_its_own():
    @wp.kernel
    def passes(x: wp.array[wp.float64], v: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        v[i] = x[i] * x[i]
        w = v[i + 1] * v[i + 1]
        y[i] = w * product(x, i)  # error: it reads elements that it may have written itself, and passes an array to ...

    check(passes)


def test_a_loop_in_a_condition_that_reads_what_the_kernel_wrote():
    @wp.func
    def sum_of(v: wp.array[wp.float64], n: int):
        s = wp.float64(0.0)
        for k in range(n):
            s += v[k] * v[k]
        return s

    @wp.kernel
    def counts(n: int, v: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        t = wp.float64(1.0)
        while sum_of(v, n + 1) * t < wp.float64(50.0):  # error: the condition of this loop has a loop inside ...
            t = t * wp.float64(2.0)
            v[i] = v[i] + t
        y[i] = t * v[i]

    check(counts)


# ---- forward mode ----


def test_forward_mode_gives_no_array_with_tangents_to_a_function_with_a_derivative_of_its_own():
    @wp.kernel
    def gives(x: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = product(x, i)  # error: it passes an array with tangents to a function with a derivative of its own

    check(gives, forward=True)


@wp.func
def pair_of(x: wp.float64):
    p = Pair()
    p.a = x * x
    p.b = x
    return p


@wp.func_grad(pair_of)
def pair_of_gradient(x: wp.float64, adj: Pair):
    wp.adjoint[x] += adj.a + adj.b


def test_forward_mode_takes_no_struct_of_a_function_with_a_derivative_of_its_own():
    @wp.kernel
    def takes(x: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        p = pair_of(x[i])  # error: it calls a function with a derivative of its own that returns a struct
        y[i] = p.a

    check(takes, forward=True)


@wp.func
def sum_of_pair(p: Pair):
    return p.a + p.b


@wp.func_grad(sum_of_pair)
def sum_of_pair_gradient(p: Pair, adj: wp.float64):
    wp.adjoint[p].a += adj
    wp.adjoint[p].b += adj


def test_forward_mode_gives_no_struct_to_a_function_with_a_derivative_of_its_own():
    @wp.kernel
    def gives(x: wp.array[Pair], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = sum_of_pair(x[i])  # error: it passes a struct with tangents to such a function

    check(gives, forward=True)
