"""API-1.19, section 2: tapes and gradients."""

import warp as wp
from probing import differs, floats


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


@differs("array float32 (1,) ndarray float32 (1,) [0.0]")
def what_a_launch_without_backward_overwrites():
    x, y = _pair()
    z = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(_square, dim=1, inputs=[x], outputs=[y])
        wp.launch(_opaque, dim=1, inputs=[x], outputs=[y])
        wp.launch(_square, dim=1, inputs=[y], outputs=[z])
    tape.backward(z)
    return x.grad


def retained_gradient():
    x, y = _pair()
    z = wp.zeros(1, dtype=float, requires_grad=True)
    y.retain_grad = True
    with wp.Tape() as tape:
        wp.launch(_square, dim=1, inputs=[x], outputs=[y])
        wp.launch(_square, dim=1, inputs=[y], outputs=[z])
    tape.backward(z)
    return y.grad, x.grad


def retain_grad_goes_with_the_gradient():
    x = wp.zeros(1, dtype=float, requires_grad=True, retain_grad=True)
    was = x.retain_grad
    x.requires_grad = False
    return was, x.retain_grad, x.grad


def array_made_while_recording():
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        x = wp.full(2, 3.0, dtype=float, requires_grad=True)
        wp.launch(_square, dim=2, inputs=[x], outputs=[y])
    tape.backward(grads={y: floats(1.0, 2.0)})
    return x.grad


def loss_that_nothing_wrote():
    x, y = _pair()
    tape = wp.Tape()
    tape.backward(y)
    return y.grad


def end_of_a_group_that_was_not_begun():
    wp.Tape().record_scope_end()


def entries_for_what_is_no_array():
    @wp.kernel(module="unique")
    def scale(s: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = s * x[i]

    x, y, adj = floats(1.0, 2.0), floats(0.0, 0.0), floats(0.0, 0.0)
    wp.launch(
        scale, dim=2, inputs=[3.0, x], outputs=[y], adj_inputs=[0.0, adj], adj_outputs=[floats(1.0, 1.0)], adjoint=True
    )
    return adj


def jacobian_of_a_kernel_without_backward():
    import warp.autograd

    x, y = _pair()
    warp.autograd.jacobian(_opaque, dim=1, inputs=[x], outputs=[y])


def steps_of_adam():
    import warp.optim

    p = floats(1.0, -2.0)
    optimizer = warp.optim.Adam([p], lr=0.1)
    for _ in range(3):
        optimizer.step([floats(0.5, -1.0)])
    return p


def steps_of_gradient_descent():
    import warp.optim

    p = floats(1.0, -2.0)
    optimizer = warp.optim.SGD([p], lr=0.1, momentum=0.5, nesterov=True)
    for _ in range(3):
        optimizer.step([floats(0.5, -1.0)])
    return p, optimizer.b[0]
