"""API-1.19, section 2: tapes and gradients."""

import warp as wp
from probing import floats


@wp.kernel
def _square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel(enable_backward=False, module="unique")
def _opaque(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 3.0 * x[i]


def _pair(n=1):
    return wp.full(n, 3.0, dtype=float, requires_grad=True), wp.zeros(n, dtype=float, requires_grad=True)


def loss_of_one_element():
    x, y = _pair()
    with wp.Tape() as tape:
        wp.launch(_square, dim=1, inputs=[x], outputs=[y])
    tape.backward(y)
    return x.grad


def reset_zeroes_the_gradients():
    x, y = _pair()
    tape = wp.Tape()
    for _ in range(3):
        tape.reset()
        with tape:
            wp.launch(_square, dim=1, inputs=[x], outputs=[y])
        tape.backward(y)
    return x.grad


def launch_without_backward_is_left_out():
    x, y = _pair()
    with wp.Tape() as tape:
        wp.launch(_opaque, dim=1, inputs=[x], outputs=[y])
    tape.backward(y)
    return x.grad


def gradients_given_for_an_array_without():
    x = wp.full(2, 3.0, dtype=float, requires_grad=True)
    y = wp.zeros(2, dtype=float)
    with wp.Tape() as tape:
        wp.launch(_square, dim=2, inputs=[x], outputs=[y])
    tape.backward(grads={y: floats(1.0, 2.0)})
    return x.grad


def empty_tape():
    return wp.Tape().backward()


def loss_of_two_elements():
    x, y = _pair(2)
    with wp.Tape() as tape:
        wp.launch(_square, dim=2, inputs=[x], outputs=[y])
    tape.backward(y)


def loss_without_gradient():
    x = wp.full(1, 3.0, dtype=float, requires_grad=True)
    y = wp.zeros(1, dtype=float)
    with wp.Tape() as tape:
        wp.launch(_square, dim=1, inputs=[x], outputs=[y])
    tape.backward(y)


def zero_after_backward():
    x, y = _pair()
    with wp.Tape() as tape:
        wp.launch(_square, dim=1, inputs=[x], outputs=[y])
    tape.backward(y)
    tape.zero()
    return x.grad


def gradients_of_a_tape():
    x, y = _pair()
    with wp.Tape() as tape:
        wp.launch(_square, dim=1, inputs=[x], outputs=[y])
    tape.backward(y)
    return tape.gradients[x]


def retained_gradients_need_gradients():
    return wp.zeros(2, dtype=float, retain_grad=True)


def groups_of_launches():
    tape = wp.Tape()
    x, y = _pair()
    with tape:
        tape.record_scope_begin("step")
        wp.launch(_square, dim=1, inputs=[x], outputs=[y])
        tape.record_scope_end()
    tape.backward(y)
    return x.grad


def drawing_of_a_tape():
    x, y = _pair()
    with wp.Tape() as tape:
        wp.launch(_square, dim=1, inputs=[x], outputs=[y])
    return tape.visualize().startswith("digraph")
