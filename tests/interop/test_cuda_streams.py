"""Streams that Weft and other libraries share. The libraries here are built for the CPU: objects with the attributes of
their streams stand for them."""

import inspect
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from emulated_driver import other_library

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]
DEVICE, OTHER = "cuda:0", "cuda:1"


@wp.kernel
def add_one(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[i] + 1.0


def works_in(stream, device):
    """The work of a stream is done when the stream that lent its handle has been waited for."""
    x = wp.zeros(4, dtype=float, device=device)
    wp.synchronize()
    wp.launch(add_one, 4, inputs=[x], stream=stream)
    wp.synchronize_stream(stream)
    return x.numpy().tolist() == [1.0] * 4


@pytest.mark.seed("S-STM-001", "P-98")
@pytest.mark.parametrize("number", [0, 1])
def test_a_stream_of_torch(number, request):
    torch = pytest.importorskip("torch")
    device = DEVICE if number == 0 else request.getfixturevalue("second")
    owner = wp.Stream(device)
    theirs = SimpleNamespace(cuda_stream=owner.cuda_stream, device=torch.device(device))
    ours = wp.stream_from_torch(theirs)
    assert ours.device == device and ours.cuda_stream == owner.cuda_stream != 0 and works_in(ours, device)


@pytest.mark.seed("S-STM-001", "P-98")
def test_the_current_stream_of_torch(monkeypatch):
    torch = pytest.importorskip("torch")
    owner = wp.Stream(DEVICE)
    asked = []

    def current_stream(device):
        asked.append(device)
        return SimpleNamespace(cuda_stream=owner.cuda_stream, device=torch.device(device))

    monkeypatch.setattr(torch.cuda, "current_stream", current_stream)
    for device in (None, DEVICE, torch.device(DEVICE), wp.get_device(DEVICE).alias):
        assert wp.stream_from_torch(device).cuda_stream == owner.cuda_stream
    assert asked == [DEVICE] * 4


@pytest.mark.seed("S-STM-001", "P-98")
def test_torch_gets_a_stream(monkeypatch, second):
    torch = pytest.importorskip("torch")

    class ExternalStream:
        def __init__(self, stream_ptr, device):
            self.cuda_stream, self.device = stream_ptr, device

    monkeypatch.setattr(torch.cuda, "ExternalStream", ExternalStream)
    stream = wp.Stream(OTHER)
    theirs = wp.stream_to_torch(stream)
    assert theirs.cuda_stream == stream.cuda_stream and theirs.device == torch.device(OTHER)
    current = wp.stream_to_torch(DEVICE)
    assert current.cuda_stream == wp.get_stream(DEVICE).cuda_stream and current.device == torch.device(DEVICE)
    with wp.ScopedStream(stream):
        assert wp.stream_to_torch(OTHER).cuda_stream == stream.cuda_stream
    handle = stream.cuda_stream
    del stream  # theirs has it
    again = wp.stream_from_torch(theirs)
    assert again.cuda_stream == handle and works_in(again, OTHER)
    with pytest.raises(RuntimeError, match="device 'cpu' has no streams"):
        wp.stream_to_torch("cpu")


@pytest.mark.seed("S-STM-002", "S-PAD-003")
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_stream_of_paddle(wrapped, second):
    """Its handle is that of the stream of its core, which is in `stream_base`."""
    pytest.importorskip("paddle")
    owner = wp.Stream(OTHER)
    core = SimpleNamespace(cuda_stream=owner.cuda_stream, place="gpu:1")
    ours = wp.stream_from_paddle(SimpleNamespace(stream_base=core, device="gpu:1") if wrapped else core)
    assert ours.device == OTHER and ours.cuda_stream == owner.cuda_stream and works_in(ours, OTHER)


@pytest.mark.seed("S-STM-002", "S-PAD-003")
def test_the_current_stream_of_paddle(monkeypatch):
    paddle = pytest.importorskip("paddle")
    owner = wp.Stream(DEVICE)
    core = SimpleNamespace(cuda_stream=owner.cuda_stream, place="gpu:0")
    monkeypatch.setattr(paddle.device, "current_stream", lambda place: SimpleNamespace(stream_base=core))
    for device in (None, "gpu:0"):
        assert wp.stream_from_paddle(device).cuda_stream == owner.cuda_stream
    with pytest.raises(RuntimeError, match="device 'cpu' has no streams"):
        wp.stream_from_paddle("cpu")


@pytest.mark.seed("S-STM-005", "S-PAD-003")
def test_paddle_gets_a_stream(monkeypatch, second):
    """By its own function for streams of others, with the arguments that this takes."""
    paddle = pytest.importorskip("paddle")

    def get_stream_from_external(data_ptr, device):
        return SimpleNamespace(stream_base=SimpleNamespace(cuda_stream=data_ptr, place=device), device=device)

    assert set(inspect.signature(get_stream_from_external).parameters) == set(
        inspect.signature(paddle.device.get_stream_from_external).parameters
    )
    monkeypatch.setattr(paddle.device, "get_stream_from_external", get_stream_from_external)
    monkeypatch.setattr(paddle.device, "is_compiled_with_cuda", lambda: True)
    stream = wp.Stream(OTHER)
    theirs = wp.stream_to_paddle(stream)
    assert theirs.stream_base.cuda_stream == stream.cuda_stream and theirs.device == "gpu:1"
    current = wp.stream_to_paddle(DEVICE)
    assert current.stream_base.cuda_stream == wp.get_stream(DEVICE).cuda_stream and current.device == "gpu:0"
    handle = stream.cuda_stream
    del stream  # theirs has it
    again = wp.stream_from_paddle(theirs)
    assert again.cuda_stream == handle and works_in(again, OTHER)
    with pytest.raises(RuntimeError, match="device 'cpu' has no streams"):
        wp.stream_to_paddle("cpu")


def test_a_paddle_that_cannot_take_a_stream_is_named(monkeypatch):
    paddle = pytest.importorskip("paddle")
    monkeypatch.setattr(paddle.device, "is_compiled_with_cuda", lambda: False)
    with pytest.raises(RuntimeError, match="this Paddle was built for the CPU, and has no 'gpu:0'"):
        wp.stream_to_paddle(wp.Stream(DEVICE))
    monkeypatch.delattr(paddle.device, "get_stream_from_external")
    with pytest.raises(RuntimeError, match=r"takes no stream of another library.*help: .*stream_from_paddle"):
        wp.stream_to_paddle(wp.Stream(DEVICE))


def test_a_stream_of_ours_that_comes_back_stays_alive():
    owner = wp.Stream(DEVICE)
    lent = wp.Stream(DEVICE, cuda_stream=owner.cuda_stream)
    x = wp.zeros(4, dtype=float, device=DEVICE)
    wp.synchronize()
    del owner
    with wp.ScopedStream(lent):
        x.fill_(1.0)
    wp.synchronize_stream(lent)
    assert x.numpy().tolist() == [1.0] * 4


def test_a_stream_of_another_library_that_is_gone_is_an_error_and_no_crash():
    """Its release makes no call with the handle, at which drivers of GPUs may crash."""
    driver = other_library()
    handle = driver.made("cuStreamCreate", 0)
    lent = wp.Stream(DEVICE, cuda_stream=handle.value)
    x = wp.zeros(4, dtype=float, device=DEVICE)
    wp.synchronize()
    driver.call("cuStreamDestroy_v2", handle)
    with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_HANDLE"), wp.ScopedStream(lent):
        x.fill_(1.0)
    calls = driver.driver.weftEmulatedCalls(b"cuStreamGetCaptureInfo_v3")
    del lent
    assert driver.driver.weftEmulatedCalls(b"cuStreamGetCaptureInfo_v3") == calls
    x.fill_(2.0)
    assert x.numpy().tolist() == [2.0] * 4


def test_work_of_both_is_in_one_order():
    torch = pytest.importorskip("torch")
    owner = wp.Stream(DEVICE)
    theirs = wp.stream_from_torch(SimpleNamespace(cuda_stream=owner.cuda_stream, device=torch.device(DEVICE)))
    x = wp.zeros(1000, dtype=float, device=DEVICE)
    wp.synchronize()
    for stream in (owner, theirs, owner, theirs):
        wp.launch(add_one, 1000, inputs=[x], stream=stream)
    wp.synchronize_stream(owner)
    np.testing.assert_array_equal(x.numpy(), 4.0)
