"""Arrays that a branch chooses: the backward pass needs the earlier elements of the chosen one."""

import numpy as np
import pytest
import warp as wp
from differences import numeric
from tapes import doubles


@wp.struct
class Pair:
    x: wp.array[wp.float64]
    n: wp.array[int]


@wp.kernel
def between_arguments(x: wp.array[wp.float64], n: wp.array[int], p: Pair, y: wp.array[wp.float64], flag: int):
    i = wp.tid()
    source = x
    if i % 2 == flag:
        source = x[::-1]
    y[i] = wp.sin(source[i]) * y[i]


@wp.kernel
def between_argument_and_struct(x: wp.array[wp.float64], n: wp.array[int], p: Pair, y: wp.array[wp.float64], flag: int):
    i = wp.tid()
    source = x if i % 2 == flag else p.x
    y[i] = source[i] * source[(i + 1) % 4]


@wp.kernel
def of_indices(x: wp.array[wp.float64], n: wp.array[int], p: Pair, y: wp.array[wp.float64], flag: int):
    i = wp.tid()
    at = n if flag > 0 else p.n
    y[i] = x[at[i]] * x[at[i]]


@wp.kernel
def of_conditions(x: wp.array[wp.float64], n: wp.array[int], p: Pair, y: wp.array[wp.float64], flag: int):
    i = wp.tid()
    match i % 3:
        case 0:
            at = n
        case 1:
            at = p.n
        case _:
            at = n[::-1]
    if at[i] > 1:
        y[i] = 2.0 * x[i] * y[i]


@wp.kernel
def change(x: wp.array[wp.float64]):
    i = wp.tid()
    x[i] = wp.sin(x[i]) + 1.0


@wp.kernel
def turn(n: wp.array[int]):
    i = wp.tid()
    n[i] = (n[i] + 1) % 4


@pytest.mark.parametrize("flag", [0, 1])
@pytest.mark.parametrize(
    "kernel", [between_arguments, between_argument_and_struct, of_indices, of_conditions], ids=lambda k: k.key
)
def test_what_a_chosen_array_held_is_kept(kernel, flag):
    values, weights = [np.array([0.3, -0.7, 0.9, 0.4]), np.array([0.5, 0.6, 0.7, 0.8])], np.array([1.0, 2.0, -3.0, 4.0])

    def run(x, y):
        p, n = Pair(), wp.array([0, 1, 2, 3], dtype=int)
        x, y = wp.clone(x), wp.clone(y)
        p.x, p.n = x, wp.array([3, 2, 0, 1], dtype=int)
        wp.launch(kernel, dim=4, inputs=[x, n, p, y, flag])
        for array in (n, p.n):
            wp.launch(turn, dim=4, inputs=[array])
        for array in (x, y):
            wp.launch(change, dim=4, inputs=[array])
        return x, y

    def loss(moved):
        return sum(float(np.sum(output.numpy() * weights)) for output in run(*map(doubles, moved)))

    arrays = [doubles(value, requires_grad=True) for value in values]
    with wp.Tape() as tape:
        outputs = run(*arrays)
    tape.backward(grads={output: doubles(weights) for output in outputs})
    expected = numeric(loss, values, 1e-6)
    assert np.abs(expected[0]).min() > 0.1
    for array, expected in zip(arrays, expected):
        np.testing.assert_allclose(array.grad.numpy(), expected, rtol=1e-6, atol=1e-8)


def test_a_choice_of_an_array_made_in_the_kernel_that_it_wrote_is_refused():
    @wp.kernel
    def either(x: wp.array[wp.float64], y: wp.array[wp.float64], flag: int):
        i = wp.tid()
        own = wp.zeros(shape=2, dtype=wp.float64)
        source = own if flag > 0 else x
        own[0] = x[i] * x[i]
        y[i] = source[0] * source[0]

    x, y = doubles([0.5, 2.0], requires_grad=True), doubles([0.0, 0.0], requires_grad=True)
    wp.launch(either, dim=2, inputs=[x, y, 1])
    np.testing.assert_array_equal(y.numpy(), [0.5**4, 2.0**4])
    with pytest.raises(wp.CompileError, match="reads elements that it may have written itself"), wp.Tape():
        wp.launch(either, dim=2, inputs=[x, y, 1])
