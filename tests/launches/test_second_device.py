"""A second device whose memory the host cannot touch: ``cpu:protected``, for tests (support/protected_device.py)."""

import ctypes
import threading

import numpy as np
import protected_device
import pytest
import warp as wp

pytestmark = pytest.mark.protected

PROTECTED = protected_device.NAME


@pytest.fixture(autouse=True)
def added():
    protected_device.add()


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.struct
class Cells:
    values: wp.array(dtype=float)
    scale: float


@wp.kernel
def scale(cells: wp.array(dtype=Cells)):
    i = wp.tid()
    for j in range(cells[i].values.shape[0]):
        cells[i].values[j] = cells[i].scale * cells[i].values[j]


def test_the_default_device_is_that_of_all_threads():
    """Release 1.19 has one default for the program: a thread that is started later has it."""
    seen = []

    def ask():
        seen.append((str(wp.get_device()), str(wp.zeros(1).device)))

    def use(target):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()

    before = wp.get_device()
    try:
        wp.set_device(PROTECTED)
        use(ask)
        with wp.ScopedDevice("cpu"):
            use(ask)
        use(lambda: wp.set_device("cpu"))
        ask()
    finally:
        wp.set_device(before)
    assert seen == [(PROTECTED, PROTECTED), ("cpu", "cpu"), ("cpu", "cpu")]


def test_touching_its_memory_in_place_is_noticed():
    x = wp.zeros(10, dtype=float, device=PROTECTED)
    ctypes.string_at(x.ptr, 4)
    with pytest.raises(pytest.fail.Exception, match="touched from outside of its device 1 times"):
        protected_device.check()
    x.list()  # opens it for the device, and closes it again
    ctypes.memset(x.ptr, 1, 4)
    with pytest.raises(pytest.fail.Exception, match="touched from outside"):
        protected_device.check()
    protected_device.check()


def test_it_is_a_device_by_name():
    device = wp.get_device(PROTECTED)
    assert str(device) == PROTECTED and device.is_cpu and device != wp.get_device("cpu")
    assert device in wp.get_devices()
    with wp.ScopedDevice("cpu"):
        with wp.ScopedDevice(PROTECTED):
            assert wp.zeros(3).device == device
        assert wp.zeros(3).device == "cpu"


def test_a_device_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="there is no device 'cpu:other'"):
        wp.zeros(3, device="cpu:other")


def test_arrays_go_there_and_back():
    data = np.arange(24, dtype=np.float32).reshape(4, 6)
    there = wp.array(data, device=PROTECTED)
    assert there.device == PROTECTED
    np.testing.assert_array_equal(there.numpy(), data)
    np.testing.assert_array_equal(there.T.numpy(), data.T)
    here = there[1:3, ::2].to("cpu")
    assert here.device == "cpu"
    np.testing.assert_array_equal(here.numpy(), data[1:3, ::2])
    assert there.to(PROTECTED) is there
    again = wp.clone(here.T, device=PROTECTED)
    np.testing.assert_array_equal(again.numpy(), data[1:3, ::2].T)
    wp.copy(there, wp.array(data + 1.0, device="cpu"))
    np.testing.assert_array_equal(there.numpy(), data + 1.0)


def test_an_array_moved_to_a_device_takes_its_gradient_along():
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True, device="cpu")
    x.grad.fill_(3.0)
    there = x.to(PROTECTED)
    assert there.requires_grad and there.grad.device == PROTECTED
    np.testing.assert_array_equal(there.grad.numpy(), [3.0, 3.0])
    assert not x.to(PROTECTED, requires_grad=False).requires_grad


def test_copies_between_two_devices_overlap_nowhere():
    other = wp.zeros(5, dtype=int, device=PROTECTED)
    wp.copy(other[1:], wp.array([1, 2, 3, 4], dtype=int, device=PROTECTED))
    wp.copy(other[1:], other[:4])
    assert other.list() == [0, 0, 1, 2, 3]


def test_numpy_gives_a_copy():
    there = wp.zeros(3, dtype=float, device=PROTECTED)
    seen = there.numpy()
    seen[:] = 1.0
    assert there.list() == [0.0, 0.0, 0.0]
    here = wp.zeros(3, dtype=float, device="cpu")
    here.numpy()[:] = 1.0
    assert here.list() == [1.0, 1.0, 1.0]


def test_memory_is_not_shared_with_others():
    there = wp.zeros(3, dtype=float, device=PROTECTED)
    with pytest.raises(BufferError, match=PROTECTED):
        memoryview(there)
    assert not hasattr(there, "__array_interface__")
    data = np.zeros(3, dtype=np.float32)
    assert wp.array(data, copy=False, device=PROTECTED).ptr != data.ctypes.data


@pytest.mark.seed("S-LCH-006")
def test_an_array_on_another_device_raises_before_the_launch():
    here, there = wp.ones(4, device="cpu"), wp.zeros(4, device=PROTECTED)
    with pytest.raises(RuntimeError, match=r"'x' of kernel 'double' is .* on 'cpu', the launch is on 'cpu:protected'"):
        wp.launch(double, dim=4, inputs=[here, there], device=PROTECTED)
    with pytest.raises(RuntimeError, match="'y' of kernel 'double' is .* on 'cpu:protected', the launch is on 'cpu'"):
        wp.launch(double, dim=4, inputs=[here, there], device="cpu")
    assert there.list() == [0.0] * 4


@wp.struct
class Holder:
    cells: Cells


@wp.kernel
def read_nested(holder: Holder, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = holder.cells.values[i]


@pytest.mark.seed("S-LCH-006")
def test_an_array_in_a_struct_on_another_device_raises_before_the_launch():
    holder, y = Holder(), wp.zeros(2, device=PROTECTED)
    holder.cells.values = wp.ones(2, device="cpu")
    with pytest.raises(RuntimeError, match="'holder' of kernel 'read_nested' holds an array on 'cpu'.*'cpu:protected'"):
        wp.launch(read_nested, dim=2, inputs=[holder, y], device=PROTECTED)
    assert y.list() == [0.0, 0.0]
    holder.cells.values = wp.ones(2, device=PROTECTED)
    wp.launch(read_nested, dim=2, inputs=[holder, y], device=PROTECTED)
    assert y.list() == [1.0, 1.0]


@pytest.mark.seed("S-LCH-006")
def test_a_gradient_on_another_device_raises():
    x = wp.ones(2, requires_grad=True, device=PROTECTED)
    y = wp.ones(2, requires_grad=True, device=PROTECTED)
    with pytest.raises(RuntimeError, match="the gradient is on 'cpu', the array on 'cpu:protected'"):
        x.grad = wp.zeros(2, device="cpu")
    gradients = [wp.ones(2, device="cpu"), wp.ones(2, device="cpu")]
    with pytest.raises(RuntimeError, match="kernel 'double' is on 'cpu', the launch is on 'cpu:protected'"):
        wp.launch(double, dim=2, inputs=[x, y], adj_inputs=gradients, device=PROTECTED, adjoint=True)
    assert x.grad.list() == [0.0, 0.0]


@pytest.mark.seed("P-50")
@pytest.mark.parametrize("source", ["cpu", PROTECTED])
@pytest.mark.parametrize("to", ["cpu", PROTECTED])
def test_copies_between_all_pairs_of_devices(source, to):
    given = wp.array([1.0, 2.0, 3.0], dtype=float, device=source)
    found = wp.empty_like(given, device=to)
    wp.copy(found, given)
    given.zero_()
    assert found.device == to and found.list() == [1.0, 2.0, 3.0]
    rows = wp.zeros((3, 2), dtype=float, device=to)
    wp.copy(rows[:, 1], found.to(source))
    assert rows.numpy()[:, 1].tolist() == [1.0, 2.0, 3.0] and not rows.numpy()[:, 0].any()


@pytest.mark.seed("S-LCH-007")
def test_memory_of_numpy_on_another_device_raises_before_the_launch():
    there = wp.zeros(4, device=PROTECTED)
    with pytest.raises(
        RuntimeError, match="'x' of kernel 'double' is .* in memory of 'cpu', the launch is on 'cpu:protected'"
    ):
        wp.launch(double, dim=4, inputs=[np.ones(4, dtype=np.float32), there], device=PROTECTED)
    assert there.list() == [0.0] * 4


def test_operators_and_maps_run_where_their_arrays_are():
    a = wp.array([1.0, 2.0, 3.0], dtype=float, device=PROTECTED)
    total = a + 2.0 * a
    assert total.device == PROTECTED and total.list() == [3.0, 6.0, 9.0]
    a += a
    assert a.list() == [2.0, 4.0, 6.0]
    roots = wp.map(wp.sqrt, a)
    assert roots.device == PROTECTED
    np.testing.assert_allclose(roots.numpy(), np.sqrt([2.0, 4.0, 6.0]), rtol=1e-6)
    table = wp.array(np.arange(6, dtype=np.float32).reshape(2, 3), device=PROTECTED)
    np.testing.assert_array_equal((table + a).numpy(), [[2, 5, 8], [5, 8, 11]])
    assert (-a[::2]).list() == [-2.0, -6.0]


def test_arrays_of_structs_lead_to_arrays_on_the_device():
    cells = []
    for n in (2, 3):
        one = Cells()
        one.values, one.scale = wp.array(np.ones(n, dtype=np.float32), device=PROTECTED), float(n)
        cells.append(one)
    array = wp.array(cells, dtype=Cells, device=PROTECTED)
    del one
    cells.clear()
    wp.launch(scale, dim=2, inputs=[array], device=PROTECTED)
    assert [one.values.list() for one in array.list()] == [[2.0, 2.0], [3.0, 3.0, 3.0]]
    assert array[1].scale == 3.0
    changed = array[0]
    changed.values = wp.array([5.0], dtype=float, device=PROTECTED)
    array[0] = changed
    wp.launch(scale, dim=2, inputs=[array], device=PROTECTED)
    assert array[0].values.list() == [10.0]


def test_a_struct_goes_to_a_device_with_its_arrays():
    one = Cells()
    one.values, one.scale = wp.array([1.0, 2.0], dtype=float, device="cpu"), 3.0
    there = one.to(PROTECTED)
    assert there.values.device == PROTECTED and there.values.list() == [1.0, 2.0] and there.scale == 3.0
    assert one.values.device == "cpu"


def test_whole_array_operations_run_there():
    keys = wp.array([3, 1, 2, 0], dtype=int, device=PROTECTED)
    values = wp.array([30, 10, 20, 0], dtype=int, device=PROTECTED)
    wp.utils.radix_sort_pairs(keys, values, 4)
    assert keys.list() == [0, 1, 2, 3] and values.list() == [0, 10, 20, 30]
    sums = wp.zeros(4, dtype=int, device=PROTECTED)
    wp.utils.array_scan(keys, sums, inclusive=True)
    assert sums.list() == [0, 1, 3, 6]
    assert wp.utils.array_sum(keys) == 6
    a = wp.array(np.arange(6, dtype=np.float32).reshape(2, 3), device=PROTECTED)
    np.testing.assert_array_equal((a @ a.T).numpy(), a.numpy() @ a.numpy().T)


def test_a_gradient_there_is_the_gradient_here():
    found = {}
    for device in ("cpu", PROTECTED):
        x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True, device=device)
        y = wp.zeros(3, dtype=float, requires_grad=True, device=device)
        with wp.Tape() as tape:
            wp.launch(double, dim=3, inputs=[x, y], device=device)
        tape.backward(grads={y: wp.array([1.0, 10.0, 100.0], dtype=float, device=device)})
        found[device] = x.grad.list()
    assert found["cpu"] == found[PROTECTED] == [2.0, 20.0, 200.0]


def test_recorded_launches_run_there():
    x = wp.ones(4, device=PROTECTED)
    y = wp.zeros(4, device=PROTECTED)
    command = wp.launch(double, dim=4, inputs=[x, y], device=PROTECTED, record_cmd=True)
    command.launch()
    assert y.list() == [2.0] * 4 and command.device == PROTECTED
