"""wp.config.verify_fp: the first launch that makes a NaN or an infinity is named, forward and backward."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected


@pytest.fixture(autouse=True)
def verify():
    wp.config.verify_fp = True
    yield
    wp.config.verify_fp = False


@wp.kernel
def reciprocal(x: wp.array2d[float], y: wp.array2d[float]):
    i, j = wp.tid()
    y[i, j] = 1.0 / x[i, j]


def test_the_kernel_the_array_and_the_element_are_named():
    x, y = wp.ones((2, 3)), wp.full((2, 3), 5.0)
    wp.launch(reciprocal, dim=(2, 3), inputs=[x, y])
    x[1, 2] = 0.0
    message = r"launch\(\): .*: error: kernel 'reciprocal' has made 'y'\[1, 2\] inf .*it was 1.0"
    with pytest.raises(RuntimeError, match=message):
        wp.launch(reciprocal, dim=(2, 3), inputs=[x, y])
    x[1, 2] = -0.0
    y.zero_()
    with pytest.raises(wp.UsageError, match="-inf"):
        wp.launch(reciprocal, dim=(2, 3), inputs=[x, y], record_cmd=True).launch()


@wp.func
def inverse(a: float):
    return 1.0 / a


@wp.kernel
def collect(x: wp.array2d[float], limit: float, total: wp.array[float], row: wp.array[wp.vec2]):
    i, j = wp.tid()
    if j == 0:
        row[i] = wp.vec2(limit, 0.0)
    if x[i, j] < limit:
        wp.atomic_add(total, i, inverse(x[i, j]))


def line_of(error):
    return next(line for line in str(error.value).splitlines() if not line.startswith("launch()")).strip()


def test_the_thread_and_its_line_are_shown():
    rng = np.random.default_rng(0)
    values = rng.uniform(1.0, 2.0, (50, 40))
    values[17, 23] = 0.0
    total, row = wp.zeros(50, dtype=float), wp.full(50, wp.vec2(np.inf, 1.0), dtype=wp.vec2)
    with pytest.raises(wp.UsageError, match=r"'total'\[17\] inf.*it was 0.0.*Thread \(17, 23\) was the first") as error:
        wp.launch(collect, (50, 40), inputs=[wp.array(values, dtype=float), np.inf, total, row])
    assert line_of(error) == "wp.atomic_add(total, i, inverse(x[i, j]))"
    with pytest.raises(wp.UsageError, match=r"'row'\[0\]\[0\] inf.*Thread \(\d+, \d+\) was the first") as error:
        wp.launch(collect, (50, 40), inputs=[wp.ones((50, 40)), np.inf, total, wp.zeros(50, dtype=wp.vec2)])
    assert line_of(error) == "row[i] = wp.vec2(limit, 0.0)"


def test_numbers_that_are_finite_again_at_the_end_are_no_mistake():
    @wp.kernel
    def fill(y: wp.array[float]):
        i = wp.tid()
        y[i] = wp.inf
        y[i] = 1.0

    y = wp.zeros(5, dtype=float)
    wp.launch(fill, 5, [y])
    assert y.numpy().tolist() == [1.0] * 5


def test_checks_of_debug_mode_come_first():
    @wp.kernel(module_options={"mode": "debug"}, module="unique")
    def outside(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = 1.0 / x[i]
        if i > 0:
            y[i + x.shape[0] - 1] = 2.0

    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 of 'y'"):
        wp.launch(outside, 4, [wp.zeros(4), wp.zeros(4)])


def test_what_was_there_before_is_not_blamed_on_the_launch():
    x, y = wp.ones((1, 2)), wp.full((1, 2), np.inf)
    wp.launch(reciprocal, dim=(1, 1), inputs=[x, y])
    x[0, 0] = 0.0
    y[0, 0] = np.nan
    wp.launch(reciprocal, dim=(1, 1), inputs=[x, y])
    assert y.numpy().tolist() == [[np.inf, np.inf]]  # it has run; the elements were not finite before either


@wp.struct
class State:
    velocity: wp.vec3
    at: int


@wp.struct
class World:
    states: wp.array[State]
    frames: wp.array[wp.mat22h]


@wp.kernel
def step(world: World, x: float):
    world.states[1].velocity = wp.vec3(0.0, wp.sqrt(x), 0.0)
    world.frames[0] = wp.mat22h(wp.float16(0.0), wp.float16(0.0), wp.float16(x), wp.float16(0.0))


def test_fields_and_components_are_named():
    world = World()
    world.states, world.frames = wp.zeros(2, dtype=State), wp.zeros(1, dtype=wp.mat22h)
    with pytest.raises(RuntimeError, match=r"'world.states'\[1\].velocity\[1\] NaN"):
        wp.launch(step, dim=1, inputs=[world, -1.0])
    world.states.zero_()
    with pytest.raises(RuntimeError, match=r"'world.frames'\[0\]\[1, 0\] inf"):
        wp.launch(step, dim=1, inputs=[world, 1.0e6])


def test_the_adjoint_is_looked_at_too():
    @wp.kernel
    def power(x: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = x[i] ** wp.float64(0.5)

    x, y = (wp.zeros(2, dtype=wp.float64, requires_grad=True) for _ in range(2))
    with wp.Tape() as tape:
        wp.launch(power, dim=2, inputs=[x, y])
    huge = wp.array([1e308, 1.0], dtype=wp.float64)
    x.grad.fill_(1e308)
    x.fill_(1e-200)
    with pytest.raises(RuntimeError, match=r"adjoint of kernel 'power' has made the gradient of 'x'\[0\] inf") as error:
        tape.backward(grads={y: huge})
    assert "Thread (0,) was the first" in str(error.value)
    assert line_of(error) == "y[i] = x[i] ** wp.float64(0.5)"


def doubles(values):
    return wp.array(np.asarray(values, dtype=np.float64), dtype=wp.float64, requires_grad=True)


def test_forward_mode_is_looked_at_too():
    @wp.kernel
    def root(x: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = wp.sqrt(x[i])

    x, y, dx, dy = (doubles(values) for values in ([1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [0.0, 0.0]))
    with pytest.raises(RuntimeError, match=r"jvp\(\): .*: error: kernel 'root' has made 'the tangent of y'\[1\] inf"):
        wp.jvp(root, dim=2, inputs=[x], outputs=[y], input_tangents=[dx], output_tangents=[dy])
    x[1] = -1.0
    with pytest.raises(RuntimeError, match=r"jvp\(\): .*: error: kernel 'root' has made 'y'\[1\] NaN"):
        wp.jvp(root, dim=2, inputs=[x], outputs=[y], input_tangents=[dx])


def test_operations_on_whole_arrays_are_looked_at():
    x, sums = doubles([1e308, 1e308, 1.0]), doubles(np.zeros(3))
    with pytest.raises(RuntimeError, match=r"array_scan\(\): this has made 'out_array'\[1\] inf .*it was 0.0"):
        wp.utils.array_scan(x, sums)
    with wp.Tape() as tape, pytest.raises(RuntimeError, match=r"array_sum\(\): this has made 'out'\[0\] inf"):
        wp.utils.array_sum(x, out=doubles([0.0]))
    assert not tape.launches
    a, d = doubles([[1e200, 0.0], [0.0, 1.0]]), doubles(np.zeros((2, 2)))
    with pytest.raises(RuntimeError, match=r"matmul\(\): this has made 'd'\[0, 0\] inf"):
        wp.matmul(a, a, d, d)


def test_the_way_back_of_operations_and_functions_is_looked_at_too():
    a, b, d = doubles([[1e200]]), doubles([[1.0]]), doubles([[0.0]])
    with wp.Tape() as tape:
        wp.matmul(a, b, d, d)
    message = r"the backward pass of matmul\(\) has made the gradient of 'b'\[0, 0\] inf .*it was 0.0"
    with pytest.raises(RuntimeError, match=message):
        tape.backward(grads={d: doubles([[1e200]])})

    x, total = doubles([1.0, 2.0]), doubles([0.0])

    def by_hand():
        x.grad[1] = np.nan

    with wp.Tape() as tape:
        wp.utils.array_sum(x, out=total)
        tape.record_func(by_hand, [total, x])
    with pytest.raises(RuntimeError, match=r"<function by_hand> has made the gradient of 'arrays\[1\]'\[1\] NaN"):
        tape.backward(total)


def test_integers_and_other_options_pass():
    @wp.kernel
    def count(x: wp.array[int]):
        x[wp.tid()] = 2147483647

    x = wp.zeros(1, dtype=int)
    wp.launch(count, dim=1, inputs=[x])
    assert x.numpy()[0] == 2147483647  # its bits would be a NaN
    wp.config.verify_autograd_array_access = True
    wp.config.verify_autograd_array_access = False
