"""Faults of launches without a wait: the next wait raises them, and launches return at once."""

import ctypes
import gc
import threading
from pathlib import Path

import numpy as np
import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("launches that fail")]
DEVICE, OTHER = "cuda:0", "cuda:1"
N = 20
emulated_only = pytest.mark.skipif(
    "not __import__('warp').is_cuda_available() or not __import__('warp').get_device('cuda:0').is_emulated",
    reason="only the emulated driver counts its calls",
)


@wp.kernel
def root(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    if x[i] < 0.0:
        raise ValueError(f"{x[i]:.1f} has no root")
    y[i] = wp.sqrt(x[i])


@wp.kernel(module_options={"mode": "debug"}, module="late_faults_debug")
def checked_root(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    if x[i] < 0.0:
        raise ValueError(f"{x[i]:.1f} has no root")
    y[i] = wp.sqrt(x[i])


@wp.kernel
def second(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    if x[i] < 0.0:
        raise KeyError("second")
    y[i] = x[i] + 1.0


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    wp.synchronize()


def values(of, device=DEVICE):
    return wp.full(N, of, dtype=float, device=device)


def fails(of=-2.0, kernel=root, device=DEVICE, stream=None):
    """A launch that will raise."""
    x, y = values(of, device), values(0.0, device)
    if stream is not None:
        wp.synchronize_device(device)
    wp.launch(kernel, N, inputs=[x, y], device=device, stream=stream)
    return y, x


def works():
    """Launches after the fault are as good as before."""
    x, y = values(9.0), values(0.0)
    wp.launch(root, N, inputs=[x, y], device=DEVICE)
    assert y.list() == [3.0] * N


WAITS = {
    "synchronize": wp.synchronize,
    "synchronize_device": lambda: wp.synchronize_device(DEVICE),
    "synchronize_stream": lambda: wp.synchronize_stream(wp.get_stream(DEVICE)),
}


@pytest.mark.parametrize("wait", WAITS)
def test_the_next_wait_raises_once_and_names_the_launch(wait):
    fails()
    with pytest.raises(ValueError, match=r"-2\.0 has no root, in kernel 'root', thread \(\d+,\)") as caught:
        WAITS[wait]()
    assert isinstance(caught.value, wp.UsageError) and caught.value.path == __file__
    WAITS[wait]()
    works()


@pytest.mark.parametrize("read", [lambda y: y.numpy(), lambda y: y.list(), lambda y: y.to("cpu"), lambda y: y[3]])
def test_a_copy_to_the_host_raises(read):
    y, _ = fails()
    with pytest.raises(ValueError, match="has no root"):
        read(y)
    read(y)
    works()


def test_of_several_faults_the_first_is_raised():
    fails(-3.0)
    fails(-1.0, kernel=second)
    fails(-4.0)
    with pytest.raises(ValueError, match=r"-3\.0 has no root"):
        wp.synchronize()
    wp.synchronize()
    works()


def test_a_fault_keeps_no_other_stream_from_being_waited_for():
    stream = wp.Stream(DEVICE)
    fails()
    y = values(0.0)
    x = values(4.0)
    stream.wait_stream(wp.get_stream(DEVICE))
    wp.launch(root, N, inputs=[x, y], device=DEVICE, stream=stream)
    with pytest.raises(ValueError, match="has no root"):
        wp.synchronize_device(DEVICE)
    assert stream.is_complete
    assert y.list() == [2.0] * N


def test_each_stream_has_its_own():
    stream = wp.Stream(DEVICE)
    _kept = fails(stream=stream)
    wp.synchronize_stream(wp.get_stream(DEVICE))
    works()
    with pytest.raises(ValueError, match="has no root"):
        wp.synchronize_stream(stream)


def test_a_thread_that_waits_gets_the_fault_of_another():
    thread = threading.Thread(target=fails)
    thread.start()
    thread.join()
    with pytest.raises(ValueError, match="has no root"):
        wp.synchronize_device(DEVICE)


@pytest.mark.parametrize("how", ["debug", "verify_cuda"])
def test_checked_launches_are_waited_for(how):
    wp.config.verify_cuda = how == "verify_cuda"
    try:
        with pytest.raises(ValueError, match="has no root"):
            fails(kernel=checked_root if how == "debug" else root)
    finally:
        wp.config.verify_cuda = False
    wp.synchronize()
    works()


def test_a_launch_with_an_array_that_is_none_is_waited_for():
    with pytest.raises(ValueError, match="the array 'x' is None: it was not passed to the launch"):
        wp.launch(root, N, inputs=[None, values(0.0)], device=DEVICE)
    wp.synchronize()
    works()


def test_adjoints_raise_late_too():
    x, y = values(1.0), values(0.0)
    x.requires_grad = y.requires_grad = True
    with wp.Tape() as tape:
        wp.launch(root, N, inputs=[x, y], device=DEVICE)
    x.fill_(-1.0)  # an adjoint runs the kernel again
    tape.backward(grads={y: values(1.0)})
    wp.synchronize()
    works()


# ---- graphs ----


def captured(kernel=root, of=-2.0):
    x, y = values(of), values(0.0)
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.launch(kernel, N, inputs=[x, y], device=DEVICE)
    return capture.graph, x, y


def test_launches_of_a_graph_return_and_the_next_wait_raises():
    graph, x, y = captured()
    for _ in range(3):
        wp.capture_launch(graph)
    with pytest.raises(ValueError, match=r"-2\.0 has no root, in kernel 'root'"):
        wp.synchronize()
    x.fill_(16.0)
    wp.capture_launch(graph)
    assert y.list() == [4.0] * N
    x.fill_(-5.0)
    wp.capture_launch(graph)
    with pytest.raises(ValueError, match=r"-5\.0 has no root"):
        y.numpy()


def test_a_graph_that_is_gone_has_raised():
    graph, x, y = captured()
    wp.capture_launch(graph)
    del graph, x, y
    gc.collect()
    with pytest.raises(ValueError, match="has no root"):
        wp.synchronize()


def test_graphs_in_graphs_and_conditions_raise():
    inner, x, _ = captured(of=1.0)
    condition = wp.array([1], dtype=int, device=DEVICE)
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.capture_if(condition, on_true=lambda: wp.launch(root, N, inputs=[x, values(0.0)], device=DEVICE))
        wp.capture_launch(inner)
    wp.capture_launch(capture.graph)
    wp.synchronize()
    x.fill_(-7.0)
    wp.capture_launch(capture.graph)
    with pytest.raises(ValueError, match=r"-7\.0 has no root"):
        wp.synchronize()
    condition.zero_()
    x.fill_(1.0)
    wp.capture_launch(capture.graph)
    wp.synchronize()


def test_graphs_of_checked_kernels_are_waited_for():
    graph, _, _ = captured(checked_root)
    with pytest.raises(ValueError, match="has no root"):
        wp.capture_launch(graph)
    wp.synchronize()


# ---- calls of the driver ----


@pytest.fixture
def calls():
    driver = ctypes.CDLL(str(Path(wp._weft.__file__).with_name("weft-emulated-cuda.so")))
    return lambda name: driver.weftEmulatedCalls(name.encode())


@emulated_only
def test_launches_and_graphs_do_not_wait(calls):
    x, y = values(4.0), values(0.0)
    graph, _, _ = captured(of=1.0)
    for _ in range(2):
        wp.launch(root, N, inputs=[x, y], device=DEVICE)
        wp.capture_launch(graph)
        wp.synchronize()
    waits = ("cuStreamSynchronize", "cuStreamQuery", "cuEventSynchronize", "cuMemcpyDtoHAsync_v2")
    before = [calls(name) for name in waits]
    for _ in range(10):
        wp.launch(root, N, inputs=[x, y], device=DEVICE)
        wp.capture_launch(graph)
    assert [calls(name) for name in waits] == before
    wp.synchronize()
    assert np.all(y.numpy() == 2.0)


@emulated_only
def test_launches_are_waited_for_if_a_thousand_are_open(calls):
    """The memory of their reports stays bounded."""
    x, y = values(4.0), values(0.0)
    wp.synchronize()
    before = calls("cuStreamSynchronize")
    for _ in range(1000):
        wp.launch(root, N, inputs=[x, y], device=DEVICE)
    assert calls("cuStreamSynchronize") == before
    x.fill_(-6.0)
    with pytest.raises(ValueError, match=r"-6\.0 has no root"):
        for _ in range(2000):
            wp.launch(root, N, inputs=[x, y], device=DEVICE)
    wp.synchronize()
    works()
