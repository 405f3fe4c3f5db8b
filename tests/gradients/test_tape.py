"""wp.Tape: its records, the memory that it keeps, and refused uses."""

import numpy as np
import pytest
import warp as wp
from differences import check_program
from tapes import doubles, multiply, square

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(3)


@wp.kernel
def total(x: wp.array[wp.float64], loss: wp.array[wp.float64]):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i])


def zeros(shape, **options):
    return wp.zeros(shape, dtype=wp.float64, **options)


@wp.struct
class Held:
    values: wp.array[wp.float64]


@wp.kernel
def square_of_held(h: Held, y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = h.values[i] * h.values[i]


@pytest.mark.seed("S-DIF-018")
def test_squaring_in_place_keeps_just_what_is_overwritten():
    x = doubles([2.0, 3.0], requires_grad=True)
    loss = doubles([0.0], requires_grad=True)
    with wp.Tape() as tape:
        for _ in range(3):
            wp.launch(square, dim=2, inputs=[x])
        wp.launch(total, dim=2, inputs=[x, loss])
    tape.backward(loss)
    np.testing.assert_allclose(x.grad.numpy(), 8.0 * np.array([2.0, 3.0]) ** 7)
    assert tape.memory.copies == 3 and tape.memory.bytes == 3 * 16


def test_what_is_not_overwritten_is_not_copied():
    a, b, c = (doubles(RNG.standard_normal(5), requires_grad=True) for _ in range(3))
    loss = doubles([0.0], requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(multiply, dim=5, inputs=[a, b, c])
        wp.launch(total, dim=5, inputs=[c, loss])
    tape.backward(loss)
    np.testing.assert_array_equal(a.grad.numpy(), b.numpy())
    assert tape.memory.copies == 0


@pytest.mark.seed("S-DIF-011")
def test_a_tape_recorded_once_uses_the_present_contents():
    a, b, c = (doubles(RNG.standard_normal(5), requires_grad=True) for _ in range(3))
    with wp.Tape() as tape:
        wp.launch(multiply, dim=5, inputs=[a, b, c])
    for step in range(3):
        b.assign(np.full(5, float(step)))
        tape.backward(grads={c: doubles(np.ones(5))})
        np.testing.assert_array_equal(a.grad.numpy(), np.full(5, float(step)))
        tape.zero()


@pytest.mark.seed("S-DIF-010")
@pytest.mark.seed("D-04")
@pytest.mark.seed("P-89")
def test_gradients_add_up_until_they_are_zeroed():
    a, b, c = (doubles([1.0, 2.0], requires_grad=True) for _ in range(3))
    held, y = Held(), doubles([0.0, 0.0], requires_grad=True)
    held.values = c
    with wp.Tape() as tape:
        wp.launch(multiply, dim=2, inputs=[a, b, c])
        wp.launch(square_of_held, dim=2, inputs=[held, y])
    seed = doubles([1.0, 1.0])
    tape.backward(grads={y: seed})
    tape.backward(grads={y: seed})
    np.testing.assert_array_equal(tape.gradients[a].numpy(), [4.0, 32.0])
    assert tape.adjoints[a] is a.grad and tape.get_adjoint(a) is a.grad
    for one in (c, y):  # those that the backward pass has used up
        one.grad.fill_(7.0)
    assert all(one.grad.numpy().all() for one in (a, b, c, y))
    tape.zero()
    for one in (a, b, c, y):
        np.testing.assert_array_equal(one.grad.numpy(), [0.0, 0.0])
    np.testing.assert_array_equal(seed.numpy(), [1.0, 1.0])


@pytest.mark.seed("S-DIF-014")
def test_reset_zeroes_gradients_so_that_a_training_loop_does_not_pile_them_up():
    a, b, c, loss = (doubles([1.0, 2.0][:n], requires_grad=True) for n in (2, 2, 2, 1))
    tape = wp.Tape()
    for _ in range(3):
        tape.reset()
        with tape:
            c.zero_()
            wp.launch(multiply, dim=2, inputs=[a, b, c])
            loss.zero_()
            wp.launch(total, dim=2, inputs=[c, loss])
        tape.backward(loss)
        np.testing.assert_array_equal(a.grad.numpy(), [1.0, 2.0])
        np.testing.assert_array_equal(tape.gradients[b].numpy(), [1.0, 2.0])
    tape.reset()
    assert not any(one.grad.numpy().any() for one in (a, b, c, loss))
    assert not tape.launches and not tape.gradients


def test_reset_zeroes_gradients_of_arrays_in_structs():
    h = Held()
    h.values, y = doubles([1.0, 2.0], requires_grad=True), doubles([0.0, 0.0], requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square_of_held, dim=2, inputs=[h, y])
    tape.backward(grads={y: doubles([1.0, 1.0])})
    np.testing.assert_array_equal(h.values.grad.numpy(), [2.0, 4.0])
    tape.reset()
    np.testing.assert_array_equal(h.values.grad.numpy(), [0.0, 0.0])


@pytest.mark.seed("S-DIF-012")
@pytest.mark.host_memory("shares the memory of NumPy arrays")
def test_the_gradient_in_memory_that_the_caller_brought():
    memory = np.zeros(2)
    a, b, c = (doubles([1.0, 2.0], requires_grad=True) for _ in range(3))
    a.grad = wp.array(memory, dtype=wp.float64, copy=False)
    with wp.Tape() as tape:
        wp.launch(multiply, dim=2, inputs=[a, b, c])
    tape.backward(grads={c: doubles([1.0, 1.0])})
    np.testing.assert_array_equal(memory, [1.0, 2.0])
    tape.zero()
    np.testing.assert_array_equal(memory, [0.0, 0.0])


def test_copies_clones_fills_slices_and_operators_are_recorded():
    def program(x):
        z = wp.clone(x, requires_grad=True)
        z.fill_(1.0)
        wp.copy(z, x)
        wp.launch(square, dim=6, inputs=[z])
        wp.copy(z, x, dest_offset=2, src_offset=1, count=3)
        z[0:2] = x[4:6]
        z[5] = 7.0
        wp.launch(square, dim=3, inputs=[z[1:4]])
        return z * 3.0 + x * z

    check_program(program, [RNG.standard_normal(6)])


@pytest.mark.seed("S-DIF-001")
def test_launches_copies_and_products_are_recorded():
    x, y, z, w, loss = (zeros(shape, requires_grad=True) for shape in [(2, 2)] * 3 + [(2,), (1,)])
    values, factor = np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[2.0, -1.0], [4.0, 0.5]])
    x.assign(values)
    with wp.Tape() as tape:
        wp.copy(y, x)
        wp.matmul(y, wp.array(factor), z, z)
        wp.launch(multiply, dim=2, inputs=[x[1], z[0], w])
        wp.launch(total, dim=2, inputs=[w, loss])
    assert len(tape.launches) == 4
    tape.backward(loss)
    z0 = values[0] @ factor  # the loss is the sum of x[1] z0
    np.testing.assert_array_equal(loss.numpy(), [z0 @ values[1]])
    np.testing.assert_array_equal(x.grad.numpy(), [factor @ values[1], z0])


@pytest.mark.seed("S-DIF-013")
def test_what_is_outside_the_tape_is_not_recorded():
    a, b, c, d = (doubles([1.0, 2.0], requires_grad=True) for _ in range(4))
    with wp.Tape() as tape:
        wp.launch(multiply, dim=2, inputs=[a, b, c], record_tape=False)
        wp.launch(multiply, dim=2, inputs=[a, b, c])
    wp.launch(multiply, dim=2, inputs=[a, c, d])
    wp.copy(c, d)
    assert len(tape.launches) == 1
    tape.backward(grads={c: doubles([1.0, 10.0])})
    np.testing.assert_array_equal(a.grad.numpy(), [1.0, 20.0])  # b, once
    assert not d.grad.numpy().any()


@pytest.mark.seed("S-DIF-014")
def test_a_second_tape_cannot_be_entered():
    with wp.Tape():
        with pytest.raises(RuntimeError, match="another tape is recording"):
            with wp.Tape():
                pass
    with wp.Tape():
        pass


def test_record_func_runs_in_its_place():
    a, b, c = (doubles([3.0], requires_grad=True) for _ in range(3))

    def by_hand():
        a.grad.assign(a.grad.numpy() + 5.0 * b.grad.numpy())

    with wp.Tape() as tape:
        b.assign(a.numpy() * 5.0)
        tape.record_func(by_hand, [a, b])
        wp.launch(multiply, dim=1, inputs=[b, b, c])
    tape.backward(grads={c: doubles([1.0])})
    assert a.grad.numpy()[0] == 5.0 * 2.0 * 15.0
    with pytest.raises(TypeError, match="expected a function"):
        tape.record_func(None, [a])
    with pytest.raises(TypeError, match="'arrays' has 3, expected arrays"):
        tape.record_func(by_hand, [a, 3])


def test_an_array_that_was_kept_must_not_be_written_outside_the_tape():
    x, y = doubles([2.0], requires_grad=True), doubles([0.0], requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=1, inputs=[x])
        wp.launch(multiply, dim=1, inputs=[x, x, y])
    tape.backward(grads={y: doubles([1.0])})
    assert x.grad.numpy()[0] == 32.0
    x.fill_(1.0)
    with pytest.raises(RuntimeError, match="written outside of the tape"):
        tape.backward(grads={y: doubles([1.0])})


def test_a_marked_write_is_one_outside_the_tape():
    x, y = doubles([2.0], requires_grad=True), doubles([0.0], requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=1, inputs=[x])
        wp.launch(multiply, dim=1, inputs=[x, x, y])
    assert x.mark_read() is None and x.mark_init() is None
    tape.backward(grads={y: doubles([1.0])})
    x.mark_write()
    with pytest.raises(RuntimeError, match="written outside of the tape"):
        tape.backward(grads={y: doubles([1.0])})
    x.mark_write(arg_name="x", kernel_name="square", filename="program.py", lineno=3)
    x.mark_write(operation="fill")
    with pytest.raises(TypeError, match="mark_write"):
        x.mark_write(line=3)


def test_it_may_be_where_all_that_is_needed_was_kept():
    x = doubles([2.0], requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=1, inputs=[x])
    x.fill_(1.0)
    tape.backward(grads={x: doubles([1.0])})
    assert x.grad.numpy()[0] == 4.0


def test_forward_mode_writes_arrays_outside_of_the_tape():
    x, moving = doubles([2.0], requires_grad=True), doubles([1.0], requires_grad=True)
    y = doubles([0.0], requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=1, inputs=[x])
        wp.launch(multiply, dim=1, inputs=[x, x, y])
    wp.jvp(square, dim=1, inputs=[x], input_tangents=[moving])
    assert (x.numpy()[0], moving.numpy()[0]) == (16.0, 8.0)
    with pytest.raises(RuntimeError, match="written outside of the tape"):
        tape.backward(grads={y: doubles([1.0])})
    with wp.Tape() as tape:
        wp.launch(square, dim=1, inputs=[moving])
        wp.launch(multiply, dim=1, inputs=[moving, moving, y])
    wp.jvp(square, dim=1, inputs=[x], input_tangents=[moving])
    with pytest.raises(RuntimeError, match="written outside of the tape"):
        tape.backward(grads={y: doubles([1.0])})


def test_recorded_launches_are_on_the_tape():
    x = doubles([2.0], requires_grad=True)
    command = wp.launch(square, dim=1, inputs=[x], record_cmd=True)
    with wp.Tape() as tape:
        command.launch()
        command.launch()
    tape.backward(grads={x: doubles([1.0])})
    assert x.grad.numpy()[0] == 32.0


@pytest.mark.seed("D-28")
@pytest.mark.parametrize("retained", [True, False])
def test_gradients_of_what_was_overwritten_are_used_up_unless_retained(retained):
    x, y, z = (doubles([2.0], requires_grad=True) for _ in range(3))
    y.retain_grad = retained
    with wp.Tape() as tape:
        wp.launch(multiply, dim=1, inputs=[x, x, y])
        wp.launch(multiply, dim=1, inputs=[y, y, z])
    tape.backward(grads={z: doubles([1.0])})
    assert x.grad.numpy()[0] == 2 * 4 * 2 * 2 and y.grad.numpy()[0] == (8.0 if retained else 0.0)
    tape.backward(grads={z: doubles([1.0])})
    assert x.grad.numpy()[0] == 2 * 2 * 4 * 2 * 2  # added up once each, not twice what was left
    # A launch of the adjoint alone leaves the gradients of its outputs as they are.
    adj_y, adj_x = doubles([3.0]), doubles([0.0])
    wp.launch(multiply, dim=1, inputs=[x, y], outputs=[z], adj_inputs=[adj_x], adj_outputs=[adj_y], adjoint=True)
    assert adj_y.numpy()[0] == 3.0 and adj_x.numpy()[0] == 3.0 * y.numpy()[0]


@pytest.mark.seed("S-DIF-006")
def test_wrong_starts_are_refused():
    x, y = doubles([2.0, 1.0], requires_grad=True), doubles([0.0])
    tape = wp.Tape()
    with tape:
        wp.launch(square, dim=2, inputs=[x])
        wp.launch(total, dim=2, inputs=[x, y])
    with pytest.raises(RuntimeError, match=r"shape \(2,\), expected one element"):
        tape.backward(x)
    with pytest.raises(RuntimeError, match="requires_grad=True"):
        tape.backward(y)
    with pytest.raises(TypeError, match="expected an array of one element"):
        tape.backward(3.0)
    with pytest.raises(TypeError, match="float32"):
        tape.backward(grads={x: wp.zeros(2)})
    with pytest.raises(TypeError, match="grads is list, expected a dict"):
        tape.backward(grads=[x])
    with pytest.raises(TypeError, match="grads is array, expected a dict"):
        tape.backward(grads=x)
    with pytest.raises(ValueError, match=r"\(3,\)"):
        tape.backward(grads={x: doubles([1.0, 2.0, 3.0])})


@pytest.mark.own_launches("counts what is compiled")
def test_an_adjoint_is_compiled_when_a_gradient_is_asked_for_and_once(capfd, monkeypatch):
    @wp.kernel
    def only_here(x: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = x[i] * x[i] * x[i] + wp.float64(0.625)

    def compiled():
        streams = capfd.readouterr()
        return (streams.out + streams.err).count("kernel 'only_here' ")

    monkeypatch.setattr(wp.config, "log_level", wp.LOG_DEBUG)
    x, y = doubles([2.0], requires_grad=True), doubles([0.0], requires_grad=True)
    wp.launch(only_here, dim=1, inputs=[x, y])
    assert compiled() == 1
    with wp.Tape() as tape:
        wp.launch(only_here, dim=1, inputs=[x, y])
    assert compiled() == 0
    tape.backward(y)
    assert compiled() == 1
    tape.zero()
    tape.backward(y)
    assert compiled() == 0 and x.grad.numpy()[0] == 12.0


@wp.kernel
def everything(
    a: wp.array[wp.float64],
    b: wp.array[wp.float64],
    h: Held,
    slots: wp.array[int],
    loss: wp.array[wp.float64],
):
    i = wp.tid()
    slot = wp.atomic_add(slots, 0, 1)  # an old value that is used
    old = b[i]
    b[i] = a[i] * old  # read, then overwritten
    h.values[i] = h.values[i] * b[i] + wp.float64(slot - slot)
    wp.atomic_add(loss, 0, h.values[i] * h.values[i])


@pytest.mark.seed("S-LCH-005")
@pytest.mark.seed("S-LCH-017")
def test_an_adjoint_launch_writes_gradients_of_the_inputs_and_nothing_else():
    n = 5

    def arguments():
        h = Held()
        h.values = doubles(np.linspace(1.0, 2.0, n))
        return [doubles(np.linspace(0.5, 1.0, n)), doubles(np.linspace(2.0, 1.0, n)), h,
                wp.zeros(1, dtype=int), doubles([7.0])]  # fmt: skip

    def contents(values):
        return [(v.values if isinstance(v, Held) else v).numpy().tobytes() for v in values if v is not None]

    def loss(a):
        b = a * np.linspace(2.0, 1.0, n)
        return ((np.linspace(1.0, 2.0, n) * b) ** 2).sum()

    given = arguments()
    adj_a, adj_loss = doubles(np.full(n, 10.0)), doubles([1.0])
    before = contents(given)
    for times in (1, 2):  # it adds, each time
        adjoints = [adj_a, None, None, None, adj_loss]
        wp.launch(everything, dim=n, inputs=given, adj_inputs=adjoints, adjoint=True)
        assert contents(given) == before and adj_loss.numpy()[0] == 1.0
        a, slope = np.linspace(0.5, 1.0, n), np.zeros(n)
        for i in range(n):
            step = np.zeros(n)
            step[i] = 1e-6
            slope[i] = (loss(a + step) - loss(a - step)) / 2e-6
        np.testing.assert_allclose(adj_a.numpy(), 10.0 + times * slope, rtol=1e-7)


@pytest.mark.seed("S-LCH-017")
def test_gradients_of_outputs_that_an_adjoint_launch_overwrites_stay():
    x, y = doubles([2.0, 3.0]), doubles([0.0, 0.5])
    adj_x, adj_y, adj_z = doubles([0.0, 0.0]), doubles([5.0, 7.0]), doubles([1.0, 2.0])
    wp.launch(multiply, dim=2, inputs=[x, x], outputs=[y], adj_inputs=[adj_x], adj_outputs=[adj_y], adjoint=True)
    np.testing.assert_array_equal(adj_y.numpy(), [5.0, 7.0])
    np.testing.assert_array_equal(adj_x.numpy(), [10.0, 21.0])  # of the first argument alone
    np.testing.assert_array_equal(x.numpy(), [2.0, 3.0])
    np.testing.assert_array_equal(y.numpy(), [0.0, 0.5])
    wp.launch(square, dim=2, inputs=[x], adj_inputs=[adj_z], adjoint=True)  # in place: one array is both
    np.testing.assert_array_equal(x.numpy(), [2.0, 3.0])
    np.testing.assert_array_equal(adj_z.numpy(), [4.0, 12.0])


@pytest.mark.seed("S-LCH-005")
@pytest.mark.seed("S-DIF-019")
def test_the_adjoint_of_one_launch_without_a_tape():
    a, b, c = doubles([1.0, 2.0]), doubles([3.0, 4.0]), doubles([0.0, 0.0])
    adj_a, adj_c = doubles([0.5, 0.5]), doubles([1.0, 10.0])
    wp.launch(multiply, dim=2, inputs=[a, b], outputs=[c])
    wp.launch(multiply, dim=2, inputs=[a, b], outputs=[c], adj_inputs=[adj_a, None], adj_outputs=[adj_c], adjoint=True)
    np.testing.assert_array_equal(adj_a.numpy(), [3.5, 40.5])
    np.testing.assert_array_equal(adj_c.numpy(), [1.0, 10.0])
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        wp.launch(multiply, dim=2, inputs=[a, b, c], adj_inputs=[doubles([1, 2, 3])], adjoint=True)


def test_a_long_rollout_that_reuses_two_buffers():
    @wp.kernel
    def step(a: wp.array[wp.float64], b: wp.array[wp.float64]):
        i = wp.tid()
        b[i] = a[i] + wp.float64(0.001) * wp.sin(a[i])

    x = doubles(RNG.uniform(0, 3, 4), requires_grad=True)
    y = wp.zeros_like(x)
    start = x.numpy().copy()
    with wp.Tape() as tape:
        for _ in range(500):
            wp.launch(step, dim=4, inputs=[x, y])
            wp.launch(step, dim=4, inputs=[y, x])
    tape.backward(grads={x: doubles(np.ones(4))})
    value, slope = start, np.ones(4)
    for _ in range(1000):
        slope = slope * (1 + 0.001 * np.cos(value))
        value = value + 0.001 * np.sin(value)
    np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-12)
    assert tape.memory.copies == 999  # each but the last state of y, which nothing overwrites


def test_a_thousand_launches_with_copies_between_them():
    """The tape goes back through many launches at a time, and stops at what is none."""
    factors = RNG.uniform(0.99, 1.01, (1000, 2))
    x = doubles([2.0, 3.0], requires_grad=True)
    steps = [doubles(row, requires_grad=True) for row in factors]
    with wp.Tape() as tape:
        y = x
        for i, step in enumerate(steps):
            last, y = y, zeros(2, requires_grad=True)
            wp.launch(multiply, dim=2, inputs=[last, step, y])
            if i % 300 == 100:
                between, y = y, zeros(2, requires_grad=True)
                wp.copy(y, between)
    tape.backward(grads={y: doubles([1.0, 1.0])})
    product = np.prod(factors, axis=0)
    np.testing.assert_allclose(x.grad.numpy(), product, rtol=1e-12)
    for i in (0, 99, 100, 101, 500, 999):
        np.testing.assert_allclose(steps[i].grad.numpy(), [2.0, 3.0] * product / factors[i], rtol=1e-12)
    tape.zero()
    assert not any(one.grad.numpy().any() for one in (x, y, *steps))
