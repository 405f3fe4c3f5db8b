"""Arrays that lie in structs that lie in arrays, at any depth, and kernels that use them through that memory."""

import numpy as np
import pytest
import warp as wp
import warp.autograd
from tapes import doubles

pytestmark = pytest.mark.protected


@wp.struct
class Holder:
    values: wp.array[wp.float64]
    gain: wp.float64


@wp.struct
class Group:
    count: int
    holders: wp.array[Holder]


@wp.struct
class World:
    groups: wp.array2d[Group]
    rest: wp.float64


@wp.kernel
def put(holders: wp.array[Holder], source: wp.array[wp.float64]):
    i = wp.tid()
    holders[0].values[i] = wp.float64(2.0) * source[i] * source[i]


@wp.kernel
def take(holders: wp.array[Holder], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = holders[0].values[i] * holders[0].values[i]


@wp.kernel
def take_from_group(g: Group, y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = g.holders[0].values[i] * g.holders[0].values[i]


@wp.kernel
def take_from_groups(groups: wp.array[Group], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = groups[0].holders[0].values[i] * groups[0].holders[0].values[i]


@wp.kernel
def take_from_world(w: World, y: wp.array[wp.float64]):
    i = wp.tid()
    g = w.groups[0, 1]
    y[i] = g.holders[0].values[i] * g.holders[0].values[i]


@wp.kernel
def square_inside(groups: wp.array[Group]):
    i = wp.tid()
    groups[0].holders[0].values[i] = groups[0].holders[0].values[i] * groups[0].holders[0].values[i]


@wp.kernel
def square_of(v: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = v[i] * v[i]


@wp.kernel
def overwrite(v: wp.array[wp.float64], source: wp.array[wp.float64]):
    i = wp.tid()
    v[i] = wp.float64(3.0) * source[i]


class Nest:
    """The same values reached by four ways."""

    def __init__(self):
        self.values = doubles([1.5, 0.5], requires_grad=True)
        holder = Holder()
        holder.values, holder.gain = self.values, 2.0
        self.holders = wp.array([holder], dtype=Holder)
        self.group = Group()
        self.group.holders, self.group.count = self.holders, 1
        self.groups = wp.array([self.group], dtype=Group)
        self.world = World()
        self.world.groups = wp.array([[Group(), self.group]], dtype=Group)
        self.y = doubles([0.0, 0.0], requires_grad=True)
        self.source = doubles([3.0, 4.0], requires_grad=True)

    def way(self, kernel):
        ways = {take: self.holders, take_from_group: self.group, take_from_groups: self.groups}
        return ways.get(kernel, self.world)


ONES = [1.0, 1.0]
WAYS = [take, take_from_group, take_from_groups, take_from_world]


def test_what_is_stored_through_memory_passes_its_gradient_on():
    nest = Nest()
    with wp.Tape() as tape:
        wp.launch(put, dim=2, inputs=[nest.holders, nest.source])
    tape.backward(grads={nest.values: doubles(ONES)})
    np.testing.assert_array_equal(nest.source.grad.numpy(), [12.0, 16.0])
    np.testing.assert_array_equal(nest.values.grad.numpy(), [0.0, 0.0])


@pytest.mark.parametrize("kernel", WAYS)
@pytest.mark.parametrize("way", ["array", "fill", "memory"])
def test_what_is_read_through_memory_and_overwritten_later_is_kept(kernel, way):
    nest = Nest()
    with wp.Tape() as tape:
        wp.launch(kernel, dim=2, inputs=[nest.way(kernel)], outputs=[nest.y])
        assert tape.memory.copies == 0
        if way == "array":
            wp.launch(overwrite, dim=2, inputs=[nest.values, nest.source])
        elif way == "fill":
            nest.values.fill_(0.25)
        else:
            wp.launch(put, dim=2, inputs=[nest.holders, nest.source])
        assert tape.memory.copies == 1
    tape.backward(grads={nest.y: doubles(ONES)})
    np.testing.assert_array_equal(nest.values.grad.numpy(), [3.0, 1.0])


def test_what_is_read_as_an_argument_and_overwritten_through_memory_is_kept():
    nest = Nest()
    with wp.Tape() as tape:
        wp.launch(square_of, dim=2, inputs=[nest.values, nest.y])
        wp.launch(put, dim=2, inputs=[nest.holders, nest.source])
    tape.backward(grads={nest.y: doubles(ONES)})
    np.testing.assert_array_equal(nest.values.grad.numpy(), [3.0, 1.0])


def test_a_rollout_in_place_two_levels_down():
    nest = Nest()
    with wp.Tape() as tape:
        for _ in range(3):
            wp.launch(square_inside, dim=2, inputs=[nest.groups])
    tape.backward(grads={nest.values: doubles(ONES)})
    np.testing.assert_allclose(nest.values.grad.numpy(), 8.0 * np.array([1.5, 0.5]) ** 7, rtol=1e-14)


def test_the_way_to_the_values_may_be_changed_by_a_launch():
    """The memory of the structs is overwritten; the adjoint goes the way that was there."""

    @wp.kernel
    def turn(holders: wp.array[Holder], other: Holder):
        holders[0] = other

    nest, other = Nest(), Holder()
    other.values = doubles([7.0, 9.0], requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(take, dim=2, inputs=[nest.holders], outputs=[nest.y])
        wp.launch(turn, dim=1, inputs=[nest.holders, other])
        wp.launch(put, dim=2, inputs=[nest.holders, nest.source])
    np.testing.assert_array_equal(other.values.numpy(), [18.0, 32.0])
    tape.backward(grads={nest.y: doubles(ONES), other.values: doubles([1.0, 2.0])})
    np.testing.assert_array_equal(nest.values.grad.numpy(), [3.0, 1.0])
    np.testing.assert_array_equal(nest.source.grad.numpy(), [12.0, 32.0])


def test_gradients_deep_in_memory_are_zeroed():
    nest = Nest()
    tape = wp.Tape()
    for clear in (tape.zero, tape.reset):
        with tape:
            wp.launch(take_from_world, dim=2, inputs=[nest.world], outputs=[nest.y])
        tape.backward(grads={nest.y: doubles(ONES)})
        np.testing.assert_array_equal(nest.values.grad.numpy(), [3.0, 1.0])
        clear()
        np.testing.assert_array_equal(nest.values.grad.numpy(), [0.0, 0.0])
        tape.reset()


def test_writes_through_memory_outside_of_the_tape_are_noticed():
    nest = Nest()
    with wp.Tape() as tape:
        for _ in range(2):
            wp.launch(square_inside, dim=2, inputs=[nest.groups])
        wp.launch(take, dim=2, inputs=[nest.holders], outputs=[nest.y])
    tape.backward(grads={nest.y: doubles(ONES)})
    command = wp.launch(square_inside, dim=2, inputs=[nest.groups], record_cmd=True)
    command.launch()
    with pytest.raises(RuntimeError, match="written outside of the tape"):
        tape.backward(grads={nest.y: doubles(ONES)})


def test_fields_of_the_structs_in_memory_have_their_own_gradient():
    @wp.kernel
    def scaled(holders: wp.array[Holder], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = holders[0].gain * holders[0].values[i]

    nest = Nest()
    holders = wp.array(nest.holders, dtype=Holder, requires_grad=True, copy=False)
    with wp.Tape() as tape:
        wp.launch(scaled, dim=2, inputs=[holders], outputs=[nest.y])
    tape.backward(grads={nest.y: doubles(ONES)})
    assert holders.grad.numpy()["gain"][0] == 2.0
    np.testing.assert_array_equal(nest.values.grad.numpy(), [2.0, 2.0])


def test_writing_numbers_of_structs_keeps_no_copies_of_their_arrays():
    @wp.kernel
    def change_gain(holders: wp.array[Holder]):
        holders[0].gain = wp.float64(3.0)

    nest = Nest()
    with wp.Tape() as tape:
        wp.launch(take, dim=2, inputs=[nest.holders], outputs=[nest.y])
        wp.launch(change_gain, dim=1, inputs=[nest.holders])
        assert tape.memory.copies == 1  # the structs, not the array
    tape.backward(grads={nest.y: doubles(ONES)})
    np.testing.assert_array_equal(nest.values.grad.numpy(), [3.0, 1.0])


def test_reading_what_the_same_kernel_wrote_through_memory_is_an_error():
    @wp.kernel
    def twice(holders: wp.array[Holder], n: int):
        i = wp.tid()
        for _ in range(n):
            holders[0].values[i] = holders[0].values[i] * holders[0].values[i]

    with wp.Tape(), pytest.raises(wp.CompileError, match="an array that lies in memory"):
        wp.launch(twice, dim=2, inputs=[Nest().holders, 2])


def test_tangents_of_arrays_in_memory_are_an_error_where_they_may_move():
    nest = Nest()

    def program(x):
        y = wp.zeros_like(x)
        wp.launch(put, dim=2, inputs=[nest.holders, x])
        wp.launch(take, dim=2, inputs=[nest.holders], outputs=[y])
        return y

    vector = doubles(ONES)
    with pytest.raises(TypeError, match="holds arrays in its elements"):
        wp.autograd.hvp(program, inputs=[nest.source], vectors=[vector])
    with pytest.raises(TypeError, match="holds arrays in its elements"):
        wp.jvp(program, inputs=[nest.source], input_tangents=[vector])


def test_memory_that_was_never_written_is_not_looked_at():
    holders = wp.empty(1000, dtype=Holder)
    holders.fill_(Holder())
    y = doubles([0.0], requires_grad=True)

    @wp.kernel
    def gains(holders: wp.array[Holder], y: wp.array[wp.float64]):
        wp.atomic_add(y, 0, holders[wp.tid()].gain)

    with wp.Tape() as tape:
        wp.launch(gains, dim=1000, inputs=[holders, y])
    tape.backward(y)
    assert y.numpy()[0] == 0.0


def test_jacobians_of_functions_leave_arrays_in_memory_as_they_are():
    nest = Nest()

    def program(x, holders, values):
        wp.launch(put, dim=2, inputs=[holders, x])
        y = wp.zeros_like(values)
        wp.launch(square_of, dim=2, inputs=[values, y])
        return y

    inputs = [nest.source, nest.holders, nest.values]
    found = wp.autograd.jacobian(program, inputs=inputs)[0, 0].numpy()
    np.testing.assert_allclose(found, np.diag(2.0 * (2.0 * np.array([3.0, 4.0]) ** 2) * 4.0 * np.array([3.0, 4.0])))
    assert wp.autograd.gradcheck(program, inputs=inputs, eps=1e-6, show_summary=False)
    np.testing.assert_array_equal(nest.values.numpy(), [1.5, 0.5])
    assert not nest.values.grad.numpy().any() and not nest.source.grad.numpy().any()


@pytest.mark.parametrize("assigned", [False, True])
def test_a_gradient_that_comes_after_the_struct_was_stored(assigned):
    values = wp.array([2.0, 3.0], dtype=wp.float64)
    holders = wp.array([Holder(values, 1.0)], dtype=Holder)
    y = wp.zeros(2, dtype=wp.float64, requires_grad=True)
    if assigned:
        values.grad = wp.zeros(2, dtype=wp.float64)
    else:
        values.requires_grad = True
    wp.launch(take, dim=2, inputs=[holders, y])  # without a tape it does not matter
    with pytest.raises(ValueError, match="got its gradient after it was stored there"), wp.Tape():
        wp.launch(take, dim=2, inputs=[holders, y])
    holders[0] = Holder(values, 1.0)
    with wp.Tape() as tape:
        wp.launch(take, dim=2, inputs=[holders, y])
    tape.backward(grads={y: wp.ones(2, dtype=wp.float64)})
    assert values.grad.list() == [4.0, 6.0]


def test_an_array_stored_without_its_gradient_on_purpose():
    values = wp.array([2.0, 3.0], dtype=wp.float64, requires_grad=True)
    holders = wp.array([Holder(wp.array(values, copy=False), 1.0)], dtype=Holder)
    y = wp.zeros(2, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(take, dim=2, inputs=[holders, y])
    tape.backward(grads={y: wp.ones(2, dtype=wp.float64)})
    assert values.grad.list() == [0.0, 0.0]
