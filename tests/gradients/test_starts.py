"""Where a tape starts from in its backward pass: losses, given gradients, gradients that are there already, or none."""

import numpy as np
import pytest
import warp as wp
from kept_warnings import Warnings
from tapes import doubles, multiply, square

pytestmark = pytest.mark.protected


@wp.kernel
def total(x: wp.array[wp.float64], loss: wp.array[wp.float64]):
    wp.atomic_add(loss, 0, x[wp.tid()])


@wp.kernel
def first(x: wp.array[wp.float64], loss: wp.array[wp.float64]):
    loss[0] = x[0] * x[0]


def recorded(**options):
    """(tape, a, b, c, loss) of loss = sum(a * b)."""
    a, b = doubles([1.0, 2.0], requires_grad=True), doubles([3.0, 5.0], requires_grad=True)
    c, loss = doubles([0.0, 0.0], **options), doubles([0.0], **options)
    with wp.Tape() as tape:
        wp.launch(multiply, dim=2, inputs=[a, b], outputs=[c])
        wp.launch(total, dim=2, inputs=[c], outputs=[loss])
    return tape, a, b, c, loss


@pytest.mark.seed("S-DIF-002")
def test_without_loss_and_gradients_the_number_that_the_last_launch_wrote_is_the_loss():
    tape, a, *_ = recorded(requires_grad=True)
    tape.backward()
    np.testing.assert_array_equal(a.grad.numpy(), [3.0, 5.0])


@pytest.mark.seed("S-DIF-002")
def test_gradients_that_the_program_has_set_are_the_seeds():
    tape, a, _, c, loss = recorded(requires_grad=True)
    c.grad.assign([10.0, 0.0])
    tape.backward()
    np.testing.assert_array_equal(a.grad.numpy(), [30.0, 0.0])
    tape.zero()
    loss.grad.fill_(2.0)
    tape.backward()
    np.testing.assert_array_equal(a.grad.numpy(), [6.0, 10.0])


@pytest.mark.seed("S-DIF-002")
def test_gradients_of_inputs_from_an_earlier_pass_are_no_seeds():
    a, loss = doubles([3.0], requires_grad=True), doubles([0.0], requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(first, dim=1, inputs=[a, loss])
    for passes in (1, 2, 3):
        tape.backward()
        assert a.grad.numpy()[0] == 6.0 * passes


@pytest.mark.seed("S-DIF-002")
def test_a_retained_gradient_of_an_earlier_pass_is_no_seed():
    a, y, loss = (doubles([3.0], requires_grad=True) for _ in range(3))
    y.retain_grad = True
    with wp.Tape() as tape:
        wp.launch(first, dim=1, inputs=[a, y])
        wp.launch(first, dim=1, inputs=[y, loss])
    for passes in (1, 2, 3):
        tape.backward()
        assert y.grad.numpy()[0] == 18.0 and a.grad.numpy()[0] == 108.0 * passes


@pytest.mark.seed("S-DIF-002")
def test_where_nothing_says_where_to_start_it_is_an_error():
    a, b, c = (doubles([1.0, 2.0], requires_grad=True) for _ in range(3))
    with wp.Tape() as tape:
        wp.launch(multiply, dim=2, inputs=[a, b, c])
    with pytest.raises(RuntimeError, match=r"found no array of one floating-point number. help: backward\(loss=array"):
        tape.backward()

    @wp.kernel
    def two(x: wp.array[wp.float64], y: wp.array[wp.float64], z: wp.array[wp.float64]):
        y[0] = x[0]
        z[0] = x[1]

    with wp.Tape() as tape:
        wp.launch(two, dim=1, inputs=[a, doubles([0.0]), doubles([0.0])])
    with pytest.raises(RuntimeError, match="found 2 of them"):
        tape.backward()


@pytest.mark.seed("S-DIF-002")
def test_the_last_number_gets_a_gradient_where_it_has_none():
    a, b, c = (doubles([2.0, 3.0], requires_grad=True) for _ in range(3))
    loss = doubles([0.0])
    with wp.Tape() as tape:
        wp.launch(multiply, dim=2, inputs=[a, b, c])
        wp.launch(total, dim=2, inputs=[c, loss])
    tape.backward()
    np.testing.assert_array_equal(a.grad.numpy(), [2.0, 3.0])


def test_an_empty_tape_goes_back_through_nothing():
    tape = wp.Tape()
    tape.backward()
    loss, x = doubles([3.0], requires_grad=True), doubles([1.0, 2.0], requires_grad=True)
    tape.backward(loss)
    assert loss.grad.numpy()[0] == 1.0
    tape.backward(grads={x: doubles([5.0, 6.0])})
    np.testing.assert_array_equal(x.grad.numpy(), [5.0, 6.0])


def test_a_loss_that_no_launch_wrote_gets_its_seed():
    tape, a, *_ = recorded(requires_grad=True)
    other = doubles([0.0], requires_grad=True)
    tape.backward(other)
    assert other.grad.numpy()[0] == 1.0 and not a.grad.numpy().any()


@pytest.mark.seed("S-DIF-005")
def test_an_output_without_a_gradient_gets_one():
    a, b = doubles([1.0, 2.0], requires_grad=True), doubles([3.0, 5.0], requires_grad=True)
    c = doubles([0.0, 0.0])
    with wp.Tape() as tape:
        wp.launch(multiply, dim=2, inputs=[a, b], outputs=[c])
    seed = doubles([1.0, 10.0])
    for _ in range(2):
        tape.zero()
        tape.backward(grads={c: seed})
        np.testing.assert_array_equal(a.grad.numpy(), [3.0, 50.0])
        np.testing.assert_array_equal(seed.numpy(), [1.0, 10.0])
    assert c.requires_grad and c.grad is not seed


@pytest.mark.seed("S-DIF-005")
def test_what_the_way_back_of_such_an_output_reads_is_kept():
    a, b = doubles([1.0, 2.0], requires_grad=True), doubles([3.0, 5.0], requires_grad=True)
    c = doubles([0.0, 0.0])
    with wp.Tape() as tape:
        wp.launch(multiply, dim=2, inputs=[a, b], outputs=[c])
        b.fill_(100.0)
    tape.backward(grads={c: doubles([1.0, 1.0])})
    np.testing.assert_array_equal(a.grad.numpy(), [3.0, 5.0])


@pytest.mark.seed("S-DIF-005")
def test_a_state_without_a_gradient_that_steps_in_place():
    @wp.kernel
    def step(x: wp.array[wp.float64], p: wp.array[wp.float64]):
        i = wp.tid()
        x[i] = x[i] * x[i] + p[i]

    x, p = doubles([0.5, 0.25]), doubles([1.0, 2.0], requires_grad=True)
    with wp.Tape() as tape:
        for _ in range(2):
            wp.launch(step, dim=2, inputs=[x, p])
    tape.backward(grads={x: doubles([1.0, 1.0])})
    between = np.array([0.5, 0.25]) ** 2 + np.array([1.0, 2.0])
    np.testing.assert_allclose(p.grad.numpy(), 1.0 + 2.0 * between)
    np.testing.assert_allclose(x.grad.numpy(), 4.0 * between * np.array([0.5, 0.25]))


def test_gradients_given_to_arrays_after_the_recording_count():
    a, b, c = doubles([1.0, 2.0]), doubles([3.0, 5.0]), doubles([0.0, 0.0])
    with wp.Tape() as tape:
        wp.launch(multiply, dim=2, inputs=[a, b], outputs=[c])
    a.requires_grad = c.requires_grad = True
    c.grad.fill_(2.0)
    tape.backward()
    np.testing.assert_array_equal(a.grad.numpy(), [6.0, 10.0])


def test_a_gradient_that_comes_too_late_is_an_error_and_not_zero():
    x, y = doubles([1.0, 2.0]), doubles([0.0, 0.0])
    with wp.Tape() as tape:
        wp.launch(multiply, dim=2, inputs=[x, x], outputs=[y])
        x.fill_(5.0)
    x.requires_grad = True
    with pytest.raises(RuntimeError, match=r"got its gradient after it was recorded.*overwritten since"):
        tape.backward(grads={y: doubles([1.0, 1.0])})


def test_a_part_of_an_output_without_a_gradient_cannot_be_given_one():
    a, b, c = doubles([1.0, 2.0], requires_grad=True), doubles([3.0, 5.0]), doubles([0.0, 0.0])
    with wp.Tape() as tape:
        wp.launch(multiply, dim=2, inputs=[a, b], outputs=[c])
    with pytest.raises(ValueError, match="got its gradient only now"):
        tape.backward(grads={c[:1]: doubles([1.0])})
    with pytest.raises(TypeError, match="array of int32, which has no derivative"):
        counts = wp.zeros(2, dtype=int)
        tape.backward(grads={counts: counts})


def test_retained_gradients_are_those_of_the_last_contents_and_leak_nothing():
    """y is written twice: its first contents have a gradient of their own."""
    x, y, z = (doubles([2.0], requires_grad=True) for _ in range(3))
    y.retain_grad = True
    with wp.Tape() as tape:
        wp.launch(multiply, dim=1, inputs=[x, x, y])  # y = 4
        wp.launch(square, dim=1, inputs=[y])  # y = 16
        wp.launch(multiply, dim=1, inputs=[y, y, z])
    for passes in (1, 2):
        tape.backward(grads={z: doubles([1.0])})
        assert y.grad.numpy()[0] == 32.0
        assert x.grad.numpy()[0] == passes * 8.0 * 2.0**7


def test_retained_gradients_of_arrays_in_structs():
    @wp.struct
    class State:
        y: wp.array[wp.float64]

    @wp.kernel
    def write(x: wp.array[wp.float64], s: State):
        i = wp.tid()
        s.y[i] = x[i] * x[i]

    x, s = doubles([3.0], requires_grad=True), State()
    s.y, loss = doubles([0.0], requires_grad=True), doubles([0.0], requires_grad=True)
    s.y.retain_grad = True
    with wp.Tape() as tape:
        wp.launch(write, dim=1, inputs=[x, s])
        wp.launch(first, dim=1, inputs=[s.y, loss])
    tape.backward(loss)
    assert s.y.grad.numpy()[0] == 18.0 and x.grad.numpy()[0] == 108.0


@wp.kernel(enable_backward=False)
def one_way(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = x[i] * x[i]


def test_a_launch_without_backward_is_left_out_with_a_warning():
    x, y, z = (doubles([2.0, 3.0], requires_grad=True) for _ in range(3))
    with wp.Tape() as tape:
        wp.launch(multiply, dim=2, inputs=[x, x, z])
        wp.launch(one_way, dim=2, inputs=[x, y])
        wp.launch(one_way, dim=2, inputs=[x, y])
    with Warnings() as found:
        tape.backward(grads={y: doubles([1.0, 1.0]), z: doubles([1.0, 1.0])})
    assert len(found) == 1 and "kernel 'one_way' is left out" in found[0]
    np.testing.assert_array_equal(x.grad.numpy(), [4.0, 6.0])


def test_what_such_a_launch_overwrites_has_no_part_in_what_followed():
    x, y, loss = doubles([2.0, 3.0], requires_grad=True), doubles([0.0, 0.0], requires_grad=True), doubles([0.0])
    loss.requires_grad = True
    with wp.Tape() as tape:
        wp.launch(multiply, dim=2, inputs=[x, x, y])
        wp.launch(one_way, dim=2, inputs=[x, y])
        wp.launch(total, dim=2, inputs=[y, loss])
    with Warnings() as found:
        tape.backward(loss)
    assert len(found) == 1
    assert not x.grad.numpy().any()


def test_gradients_of_a_tape_can_be_assigned():
    tape, a, _, c, _ = recorded(requires_grad=True)
    tape.gradients = {c: a}
    assert tape.gradients[c] is c.grad and tape.gradients[a] is a.grad
    other = doubles([1.0])
    tape.gradients[other] = a
    assert tape.gradients[other] is a
    tape.reset()
    assert not tape.gradients


def test_entries_of_adjoint_launches_for_what_is_no_array_are_ignored():
    @wp.kernel
    def scale(s: wp.float64, x: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = s * x[i]

    x, y, adj_x = doubles([1.0, 2.0]), doubles([0.0, 0.0]), doubles([0.0, 0.0])
    for anything in (None, 0.0, 7, "text", adj_x):
        adj_x.zero_()
        wp.launch(
            scale, dim=2, inputs=[3.0, x], outputs=[y], adj_inputs=[anything, adj_x], adj_outputs=[doubles([1.0, 1.0])],
            adjoint=True,
        )  # fmt: skip
        np.testing.assert_array_equal(adj_x.numpy(), [3.0, 3.0])


def test_a_function_of_the_user_may_bring_the_first_gradients():
    tape, a, _, c, _ = recorded(requires_grad=True)
    with tape:
        tape.record_func(lambda: c.grad.fill_(2.0), [c])
    tape.backward()
    np.testing.assert_array_equal(a.grad.numpy(), [6.0, 10.0])


@pytest.mark.host_memory("writes through NumPy")
def test_structs_may_get_their_gradient_when_it_is_given():
    @wp.struct
    class Pair:
        x: wp.float64
        n: int

    @wp.kernel
    def make(a: wp.array[wp.float64], pairs: wp.array[Pair]):
        i = wp.tid()
        pairs[i].x = a[i] * a[i]

    a, pairs, seed = doubles([2.0, 3.0], requires_grad=True), wp.zeros(2, dtype=Pair), wp.zeros(2, dtype=Pair)
    seed.numpy()["x"][:] = [1.0, 10.0]
    with wp.Tape() as tape:
        wp.launch(make, dim=2, inputs=[a, pairs])
    tape.backward(grads={pairs: seed})
    np.testing.assert_array_equal(a.grad.numpy(), [4.0, 60.0])
