"""wp.launch: arguments, dimensions, errors, recorded launches (S-LCH)."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected


@wp.kernel
def saxpy(a: float, x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def grid(x: wp.array3d[int]):
    i, j, k = wp.tid()
    x[i, j, k] += 1


@pytest.mark.seed("S-LCH-001")
def test_positional_and_keyword_forms():
    x, y = wp.ones(4), wp.zeros(4)
    wp.launch(saxpy, 4, [2.0, x, y])
    wp.launch(kernel=saxpy, dim=4, inputs=[2.0, x], outputs=[y], device=x.device.alias)
    wp.launch(saxpy, dim=4, inputs=(2.0, x), outputs=(y,), device=None, stream=None, block_dim=128, max_blocks=0)
    assert y.numpy().tolist() == [6.0] * 4


@pytest.mark.seed("S-LCH-002")
@pytest.mark.parametrize("dim", [(2, 3, 4), [2, 3, 4], (np.int64(2), 3, 4)])
def test_dim_as_tuple_or_list(dim):
    a = wp.zeros((2, 3, 4), dtype=int)
    wp.launch(grid, dim=dim, inputs=[a])
    wp.launch(grid, dim=a.shape, inputs=[a])
    assert (a.numpy() == 2).all()


@pytest.mark.seed("S-LCH-002")
def test_dim_as_length_and_numpy_integer():
    x, y = wp.ones(5), wp.zeros(5)
    wp.launch(saxpy, dim=len(x), inputs=[1.0, x, y])
    wp.launch(saxpy, dim=np.int32(5), inputs=[1.0, x, y])
    assert y.numpy().tolist() == [2.0] * 5


@pytest.mark.seed("S-LCH-003")
@pytest.mark.seed("D-20")
def test_missing_dim_is_inferred_from_the_first_array():
    x, y = wp.ones(6), wp.zeros(6)
    wp.launch(kernel=saxpy, inputs=[3.0, x, y], device=x.device.alias)
    assert y.numpy().tolist() == [3.0] * 6
    a = wp.zeros((2, 3, 4), dtype=int)
    wp.launch(grid, inputs=[a])
    assert (a.numpy() == 1).all()


@pytest.mark.seed("S-LCH-003")
def test_missing_dim_that_does_not_fit_is_an_error():
    @wp.kernel
    def flat(a: wp.array2d[float], b: wp.array[float]):
        b[wp.tid()] = 1.0

    @wp.kernel
    def scalars(n: int):
        i = wp.tid()

    with pytest.raises(wp.UsageError, match="dim is missing.*'a' has 2 dimensions"):
        wp.launch(flat, inputs=[wp.zeros((2, 2)), wp.zeros(2)])
    with pytest.raises(wp.UsageError, match="dim is missing.*no array parameter"):
        wp.launch(scalars, inputs=[1])

    @wp.kernel
    def pairs(a: wp.array[float]):
        i, j = wp.tid()
        a[i] = float(j)

    a = wp.zeros(4)
    with pytest.raises(wp.UsageError, match="dim is missing.*'a' has 1 dimension"):
        wp.launch(pairs, inputs=[a])
    assert not a.numpy().any()


@pytest.mark.seed("S-LCH-004")
def test_outputs_continue_the_inputs():
    x, y = wp.ones(3), wp.zeros(3)
    wp.launch(saxpy, dim=3, inputs=[2.0], outputs=[x, y])
    assert y.numpy().tolist() == [2.0] * 3


@pytest.mark.seed("S-LCH-006", "S-LCH-007")
@pytest.mark.skipif(wp.is_cuda_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:1"])
def test_a_launch_on_a_device_that_is_not_there_names_it_and_runs_nothing(name):
    x, y = wp.ones(1), wp.zeros(1)
    memory = np.zeros(1, np.float32)
    with pytest.raises(RuntimeError, match=f"'{name}'"):
        wp.launch(saxpy, dim=1, inputs=[1.0, x, y], device=name)
    with pytest.raises(RuntimeError, match=f"'{name}'"):
        wp.launch(saxpy, dim=1, inputs=[1.0, x, memory], device=name)
    with pytest.raises(RuntimeError, match=f"'{name}'"):
        wp.launch(saxpy, dim=1, inputs=[1.0, x, y], device=name, record_cmd=True)
    with pytest.raises(RuntimeError, match=f"'{name}'"):
        wp.launch(saxpy, dim=1, inputs=[1.0, x, y], adj_inputs=[None, wp.zeros(1), None], device=name, adjoint=True)
    assert y.numpy()[0] == memory[0] == 0.0


@pytest.mark.seed("S-LCH-008")
def test_printed_lines_stay_whole(capsys):
    @wp.kernel
    def tell(x: wp.array[wp.vec3]):
        i = wp.tid()
        print("thread")
        print(x[i])
        print(i)

    n = 5000
    values = np.arange(3 * n).reshape(n, 3)
    wp.launch(tell, dim=n, inputs=[wp.array(values, dtype=wp.vec3)])
    wp.synchronize()
    lines = capsys.readouterr().out.splitlines()
    expected = ["thread"] * n + [" ".join(map(str, row)) for row in values] + [str(i) for i in range(n)]
    assert sorted(lines) == sorted(expected)


@pytest.mark.seed("S-LCH-008")
def test_many_threads_give_the_same_result_as_one():
    n = 1_000_003
    x, y = wp.array(np.arange(n), dtype=float), wp.ones(n)
    wp.launch(saxpy, dim=n, inputs=[2.0, x, y])
    np.testing.assert_array_equal(y.numpy(), np.float32(2.0) * np.arange(n, dtype=np.float32) + np.float32(1.0))


@pytest.mark.seed("S-LCH-009")
def test_synchronize_after_launch():
    x, y = wp.ones(3), wp.zeros(3)
    wp.launch(saxpy, dim=3, inputs=[1.0, x, y])
    wp.synchronize()
    wp.synchronize_device()
    wp.synchronize_device("cpu")
    assert y.numpy().tolist() == [1.0] * 3


@pytest.mark.seed("S-LCH-010")
def test_recorded_launch():
    x, y = wp.ones(4), wp.zeros(4)
    command = wp.launch(saxpy, dim=4, inputs=[2.0, x, y], record_cmd=True)
    assert y.numpy().tolist() == [0.0] * 4
    command.launch()
    command.launch()
    assert y.numpy().tolist() == [4.0] * 4
    command.set_param_at_index(0, 10.0)
    command.set_dim(2)
    command.launch()
    assert y.numpy().tolist() == [14.0, 14.0, 4.0, 4.0]
    z = wp.zeros(4)
    command.set_param_by_name("y", z)
    command.launch()
    assert z.numpy().tolist() == [10.0, 10.0, 0.0, 0.0]
    command.set_params([1.0, x, z])
    command.set_dim((4,))
    command.launch()
    assert z.numpy().tolist() == [11.0, 11.0, 1.0, 1.0]
    with pytest.raises(wp.UsageError, match="no parameter 'q'"):
        command.set_param_by_name("q", 1.0)
    with pytest.raises(wp.UsageError, match="argument 1 'a'.*float32"):
        command.set_param_at_index(0, "text")


@pytest.mark.seed("S-LCH-010")
def test_a_launch_that_is_not_to_be_recorded():
    x, y = wp.ones(4, requires_grad=True), wp.zeros(4, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(saxpy, dim=4, inputs=[2.0, x, y], record_tape=False)
        assert tape.launches == [] and y.numpy().tolist() == [2.0] * 4
        wp.launch(saxpy, dim=4, inputs=[2.0, x, y], stream=None, max_blocks=3, block_dim=64)
    assert len(tape.launches) == 1


@pytest.mark.seed("S-LCH-016")
@pytest.mark.seed("D-32")
def test_a_bool_as_eighth_argument_is_adjoint():
    device = wp.get_device().alias
    x, y, adj_x, adj_y = wp.ones(4), wp.zeros(4), wp.zeros(4), wp.full(4, 3.0)
    wp.launch(saxpy, 4, [2.0, x], [y], [None, adj_x], [adj_y], device, False)
    assert y.numpy().tolist() == [2.0] * 4 and not adj_x.numpy().any()
    wp.launch(saxpy, 4, [2.0, x], [y], [None, adj_x], [adj_y], device, True)
    assert y.numpy().tolist() == [2.0] * 4 and adj_x.numpy().tolist() == [6.0] * 4
    # The place belongs to `stream` otherwise, and `adjoint` comes after it.
    wp.launch(saxpy, 4, [2.0, x], [y], [None, adj_x], [adj_y], device, None, True)
    assert y.numpy().tolist() == [2.0] * 4 and adj_x.numpy().tolist() == [12.0] * 4
    with pytest.raises(wp.UsageError, match="'adjoint' is given twice"):
        wp.launch(saxpy, 4, [2.0, x], [y], [], [], device, False, True)
    with pytest.raises(wp.UsageError, match="'adjoint' is given twice"):
        wp.launch(saxpy, 4, [2.0, x], [y], [], [], device, True, adjoint=False)
    with pytest.raises(wp.UsageError, match="stream is bool True"):
        wp.launch(saxpy, 4, [2.0, x], [y], stream=True)


@pytest.mark.seed("S-LCH-011")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([1.0], r"got 1 argument .*saxpy\(a: float32, x: array\[float32\], y: array\[float32\]\) takes 3"),
        ([1.0, "X", "Y", "Y"], r"got 4 arguments.*takes 3"),
        (["a", "X", "Y"], r"argument 1 'a' of kernel 'saxpy' is .*, expected float32"),
        ([1.0, 2.0, "Y"], r"argument 2 'x' of kernel 'saxpy' is .*, expected array\[float32\]"),
        ([1.0, "I", "Y"], r"argument 2 'x' of kernel 'saxpy' is array\[int32\], expected array\[float32\]"),
        ([1.0, "X2", "Y"], r"argument 2 'x' of kernel 'saxpy' is array2d\[float32\].*2 dimensions, expected 1"),
    ],
)
def test_wrong_arguments_name_kernel_parameter_expected_and_found(arguments, message):
    named = {
        "X": wp.zeros(2),
        "Y": wp.zeros(2),
        "I": wp.zeros(2, dtype=int),
        "X2": wp.zeros((2, 2)),
    }
    values = [named.get(a, a) if isinstance(a, str) else a for a in arguments]
    with pytest.raises(RuntimeError, match=message):
        wp.launch(saxpy, dim=2, inputs=values)


@pytest.mark.seed("S-LCH-011")
def test_a_function_that_is_no_kernel():
    with pytest.raises(wp.UsageError, match=r"@wp\.kernel"):
        wp.launch(lambda x: x, dim=1, inputs=[1.0])
    with pytest.raises(wp.UsageError, match="launched"):
        saxpy(1.0, wp.zeros(1), wp.zeros(1))


@pytest.mark.seed("S-LCH-012")
def test_conversion_of_arguments():
    @wp.kernel
    def read(f: float, i: int, v: wp.vec3, m: wp.mat22, out: wp.array[float]):
        out[0] = f
        out[1] = float(i)
        out[2] = v[0] + v[1] + v[2]
        out[3] = m[0, 1]

    def run(*values):
        out = wp.zeros(4)
        wp.launch(read, dim=1, inputs=[*values, out])
        return out.numpy().tolist()

    m = wp.mat22(1.0, 2.0, 3.0, 4.0)
    assert run(1.5, 2, wp.vec3(1.0, 2.0, 3.0), m) == [1.5, 2.0, 6.0, 2.0]
    assert run(1, 2, (1.0, 2.0, 3.0), ((1, 2), (3, 4))) == [1.0, 2.0, 6.0, 2.0]
    assert run(np.float32(1.5), np.int64(2), [1, 2, 3], np.eye(2) + 1.0) == [1.5, 2.0, 6.0, 1.0]
    assert run(np.float64(1.5), True, np.arange(3.0), m) == [1.5, 1.0, 3.0, 2.0]
    for bad in ((1.0, 2.5, (1, 2, 3), m), (1.0, 2, (1, 2), m), (1.0, 2, (1, 2, 3), (1, 2))):
        with pytest.raises(wp.UsageError, match="expected"):
            run(*bad)


@pytest.mark.seed("S-LCH-013")
def test_none_is_an_empty_array():
    @wp.kernel
    def size_of(x: wp.array[float], n: wp.array[int]):
        n[0] = x.shape[0]

    n = wp.full(1, 7, dtype=int)
    wp.launch(size_of, dim=1, inputs=[None, n])
    assert n.numpy()[0] == 0


@pytest.mark.seed("S-LCH-014")
@pytest.mark.host_memory('names the device "cpu"')
def test_a_kernel_launched_by_device_object_and_name():
    x, y = wp.ones(2), wp.zeros(2)
    wp.launch(saxpy, dim=2, inputs=[1.0, x, y], device=wp.get_device("cpu"))
    wp.launch(saxpy, dim=2, inputs=[1.0, x, y], device="cpu")
    assert y.numpy().tolist() == [2.0, 2.0]


@pytest.mark.seed("S-LCH-015")
def test_a_thousand_launches_in_a_loop():
    x, y = wp.ones(1), wp.zeros(1)
    for _ in range(1000):
        wp.launch(saxpy, dim=1, inputs=[1.0, x, y])
    assert y.numpy()[0] == 1000.0


# ---- awkward dimensions ----


@pytest.mark.parametrize("dim", [0, (0, 3, 4), (2, 0, 4)])
def test_an_empty_grid_runs_nothing(dim):
    a = wp.zeros((2, 3, 4), dtype=int)
    wp.launch(grid, dim=dim, inputs=[a])
    assert (a.numpy() == 0).all()


@pytest.mark.parametrize("dim", [-1, (2, -3, 4)])
def test_negative_dimensions_are_an_error(dim):
    with pytest.raises(wp.UsageError, match="negative"):
        wp.launch(grid, dim=dim, inputs=[wp.zeros((2, 3, 4), dtype=int)])


@pytest.mark.parametrize("dim", [(1, 1, 1, 1, 1), (), "ten", 1.5, 2**70])
def test_dimensions_that_are_none_are_an_error(dim):
    with pytest.raises(wp.UsageError, match="dim"):
        wp.launch(saxpy, dim=dim, inputs=[1.0, wp.zeros(1), wp.zeros(1)])


@pytest.mark.seed("S-KRN-004")
def test_more_threads_than_an_index_can_count_are_an_error():
    with pytest.raises(wp.UsageError, match="int32"):
        wp.launch(saxpy, dim=2**31 + 1, inputs=[1.0, wp.zeros(1), wp.zeros(1)])


@pytest.mark.seed("S-KRN-004")
@pytest.mark.large
def test_more_than_two_to_the_31_threads_on_two_axes():
    @wp.kernel
    def last(x: wp.array[wp.int64]):
        i, j = wp.tid()
        if i == 65536 and j == 32768:
            x[0] = wp.int64(i) * wp.int64(32769) + wp.int64(j)

    x = wp.zeros(1, dtype=wp.int64)
    wp.launch(last, dim=(65537, 32769), inputs=[x])
    assert x.numpy()[0] == 65537 * 32769 - 1


# ---- foreign and awkward arrays ----


@pytest.mark.seed("S-DIR-006")
def test_numpy_arrays_go_in_directly_and_are_written():
    x, y = np.arange(5, dtype=np.float32), np.ones(5, dtype=np.float32)
    wp.launch(saxpy, dim=5, inputs=[1.0, x, y], device="cpu")
    assert y.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.seed("S-DIR-001", "S-DIR-006")
@pytest.mark.host_memory("passes arrays of NumPy")
def test_objects_with_an_array_interface_go_in_and_are_written():
    class Shown:
        def __init__(self, values):
            self.values = values
            self.__array_interface__ = values.__array_interface__

    x, y = Shown(np.arange(5, dtype=np.float32)), Shown(np.ones(5, dtype=np.float32))
    wp.launch(saxpy, dim=5, inputs=[2.0, x], outputs=[y])
    assert y.values.tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]


@pytest.mark.seed("S-DIR-007")
@pytest.mark.host_memory("passes arrays of NumPy")
def test_trailing_dimensions_of_numpy_arrays_are_vectors_and_matrices():
    @wp.kernel
    def mix(v: wp.array[wp.vec3], m: wp.array[wp.mat22], out: wp.array[float]):
        i = wp.tid()
        out[i] = v[i][0] + 10.0 * v[i][1] + 100.0 * v[i][2] + 1000.0 * (m[i][0, 1] - m[i][1, 0])
        v[i] = 2.0 * v[i]

    numbers = np.arange(20, dtype=np.float32).reshape(4, 5)
    rows, planes = numbers[:, 1:4], np.arange(16, dtype=np.float32).reshape(4, 2, 2)[::-1]  # with gaps, and reversed
    before, out = numbers.copy(), np.zeros(4, np.float32)
    wp.launch(mix, dim=4, inputs=[rows, planes, out])
    np.testing.assert_array_equal(out, before[:, 1:4] @ [1.0, 10.0, 100.0] - 1000.0)
    before[:, 1:4] *= 2.0
    np.testing.assert_array_equal(numbers, before)
    for wrong, message in (
        (numbers[:, :4], r"its inner dimensions must be \(3,\)"),
        (numbers[:, ::2], "the components of its elements do not lie side by side"),
        (rows.astype(np.float64), "its numbers are float64, expected float32"),
        (numbers[0], "expected array"),
    ):
        with pytest.raises(RuntimeError, match=f"argument 1 'v' of kernel 'mix'.*{message}"):
            wp.launch(mix, dim=4, inputs=[wrong, planes, out])
    np.testing.assert_array_equal(numbers, before)


@pytest.mark.host_memory("passes arrays of NumPy")
def test_numpy_arrays_with_gaps_and_reversed():
    x, y = np.arange(10, dtype=np.float32), np.zeros(10, dtype=np.float32)
    wp.launch(saxpy, dim=5, inputs=[1.0, x[::2], y[::-2]])
    expected = np.zeros(10, dtype=np.float32)
    expected[::-2] = np.arange(0, 10, 2)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.host_memory("passes arrays of NumPy")
def test_numpy_array_of_another_dtype_is_an_error():
    with pytest.raises(wp.UsageError, match="'x'.*float64"):
        wp.launch(saxpy, dim=2, inputs=[1.0, np.zeros(2), np.zeros(2, dtype=np.float32)])


def test_overlapping_slices_of_one_array():
    @wp.kernel
    def shift(src: wp.array[float], dst: wp.array[float]):
        i = wp.tid()
        first = src[i]
        dst[i] = first + 1.0
        dst[i] = src[i] * 10.0  # sees its own store if src and dst are one element

    a = wp.array([1.0, 2.0, 3.0], dtype=float)
    wp.launch(shift, dim=3, inputs=[a, a])
    assert a.numpy().tolist() == [20.0, 30.0, 40.0]
    b = wp.array([1.0, 2.0, 3.0, 4.0], dtype=float)
    wp.launch(shift, dim=2, inputs=[b[:2], b[2:]])  # neighbours, no overlap
    assert b.numpy().tolist() == [1.0, 2.0, 10.0, 20.0]


def test_empty_arrays_as_arguments():
    wp.launch(saxpy, dim=0, inputs=[1.0, wp.zeros(0), wp.zeros(0)])


# ---- threads, signals, fork ----


def test_launches_from_eight_python_threads_at_once():
    n = 20_000
    results = [wp.zeros(n) for _ in range(8)]
    ones = wp.ones(n)

    def work(y):
        for _ in range(50):
            wp.launch(saxpy, dim=n, inputs=[1.0, ones, y])

    threads = [threading.Thread(target=work, args=(y,)) for y in results]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for y in results:
        np.testing.assert_array_equal(y.numpy(), np.full(n, 50.0, dtype=np.float32))


def test_first_launches_of_one_kernel_from_eight_threads():
    @wp.kernel
    def fresh(x: wp.array[float]):
        x[wp.tid()] += 1.0

    arrays = [wp.zeros(100) for _ in range(8)]
    threads = [threading.Thread(target=lambda a=a: wp.launch(fresh, dim=100, inputs=[a])) for a in arrays]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all((a.numpy() == 1.0).all() for a in arrays)


@pytest.fixture
def control_c():
    """Ctrl-C as Python has it if it was started in the foreground."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.host_memory('a launch ends before the call returns on "cpu" only')
def test_control_c_stops_a_long_launch(control_c):
    @wp.kernel
    def slow(n: int, x: wp.array[float]):
        i = wp.tid()
        s = float(i)
        for _ in range(n):
            s = s * 0.999 + 1.0
        x[i] = s

    x = wp.zeros(1 << 16)
    wp.launch(slow, dim=1, inputs=[1, x])
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        wp.launch(slow, dim=1 << 16, inputs=[5_000_000, x])
    timer.cancel()
    assert time.monotonic() - begin < 60.0
    wp.launch(slow, dim=4, inputs=[1, x])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")
@pytest.mark.host_memory("CUDA is for one of two processes", on="cuda")
def test_launch_in_a_forked_child():
    n = 1_000_000
    x, y = wp.ones(n), wp.zeros(n)
    wp.launch(saxpy, dim=n, inputs=[1.0, x, y])
    child = os.fork()
    if child == 0:
        try:
            wp.launch(saxpy, dim=n, inputs=[1.0, x, y])
            os._exit(0 if (y.numpy() == 2.0).all() else 1)
        finally:
            os._exit(2)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.02)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0
    assert (y.numpy() == 1.0).all()


# ---- debug mode ----


@pytest.fixture
def debug_mode():
    wp.config.mode = "debug"
    yield
    wp.config.mode = "release"


def test_out_of_bounds_in_debug_mode_is_an_exception(debug_mode):
    @wp.kernel
    def past(x: wp.array2d[float]):
        i, j = wp.tid()
        x[i, j + 3] = 1.0

    with pytest.raises(IndexError) as error:
        wp.launch(past, dim=(2, 2), inputs=[wp.zeros((2, 4))])
    text = str(error.value)
    for part in ("test_launch.py:", "'past'", "thread (", ", 1)", "index 4", "axis 1", "size 4", "'x'"):
        assert part in text, f"{part!r} is not in {text!r}"


def test_integer_division_by_zero_in_debug_mode_is_an_exception(debug_mode):
    @wp.kernel
    def divide(a: int, x: wp.array[int]):
        x[0] = 1 / a

    with pytest.raises(ZeroDivisionError, match="division by zero.*'divide'"):
        wp.launch(divide, dim=1, inputs=[0, wp.zeros(1, dtype=int)])


def test_a_correct_kernel_gives_the_same_in_debug_mode(debug_mode):
    x, y = wp.ones(100), wp.zeros(100)
    wp.launch(saxpy, dim=100, inputs=[2.0, x, y])
    assert (y.numpy() == 2.0).all()
