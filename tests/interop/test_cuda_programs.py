"""Programs with tensors of PyTorch and Paddle and arrays of CuPy on a CUDA device.

The builds of PyTorch and Paddle for the CPU describe memory of a GPU, too, which is all that conversions and launches
look at. Paddle's refuses to show such tensors by DLPack, which functions of the test do in its place. A class with its
protocols stands for CuPy (foreign_tensors.py).
"""

import ctypes
import re
import runpy
import sys

import numpy as np
import pytest
import warp as wp
from emulated_driver import other_library
from foreign_tensors import STREAM, VIEW, ArrayLikeCupy, DataType, Device, Tensor, exchange_api, module_like_cupy

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("tensors of PyTorch have no numbers of their own here")]
DEVICE = "cuda:0"


@wp.kernel
def saxpy(x: wp.array[float], y: wp.array[float], a: float):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@pytest.fixture
def torch(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    return torch


def tensor(values, device=DEVICE):
    return wp.to_torch(wp.array(np.asarray(values, dtype=np.float32), device=device))


def numbers(tensor):
    return wp.from_torch(tensor).numpy()


@pytest.fixture
def paddle(monkeypatch):
    """Paddle, whose tensors on a GPU are in memory of the emulated device."""
    paddle = pytest.importorskip("paddle")
    if paddle.device.is_compiled_with_cuda():
        pytest.skip("this Paddle has a GPU")
    shapes = {}

    @VIEW
    def view(tensor, out):
        shape = (ctypes.c_int64 * tensor.ndim)(*tensor.shape)
        strides = (ctypes.c_int64 * tensor.ndim)(*tensor.strides)
        shapes[id(tensor)] = shape, strides  # out points to them
        device = Device(2, tensor.place.gpu_device_id()) if tensor.place.is_gpu_place() else Device(1, 0)
        out[0] = Tensor(tensor.data_ptr(), device, tensor.ndim, DataType(2, 32, 1), shape, strides, 0)
        return 0

    @STREAM
    def current_stream(kind, ordinal, out):
        out[0] = 0
        return 0

    def to(tensor, device):
        return wp.to_paddle(wp.array(tensor.numpy(), device=wp.device_from_paddle(device)))

    monkeypatch.setattr(paddle.device, "is_compiled_with_cuda", lambda: True)
    monkeypatch.setattr(paddle.Tensor, "to", to)
    api = exchange_api(paddle.Tensor)
    before = api.view_of_object, api.current_stream
    api.view_of_object, api.current_stream = view, current_stream
    yield paddle
    api.view_of_object, api.current_stream = before


def saxpy_ten_times(convert, x, y, way):
    inputs = [convert(x), convert(y), 1.0]
    for _ in range(10):
        if way == "each time":
            inputs = [convert(x), convert(y), 1.0]
        elif way == "structures":
            inputs = [convert(x, return_ctype=True), convert(y, return_ctype=True), 1.0]
        elif way == "direct":
            inputs = [x, y, 1.0]
        wp.launch(saxpy, dim=100, inputs=inputs, device=DEVICE)
    np.testing.assert_array_equal(convert(y).numpy(), 10.0 * np.arange(100) + 1.0)


WAYS = pytest.mark.parametrize("way", ["each time", "once", "structures", "direct"])


@pytest.mark.seed("P-16", "P-17", "P-18", "P-19")
@WAYS
def test_saxpy_ten_times(torch, way):
    saxpy_ten_times(wp.from_torch, tensor(np.arange(100)), tensor(np.ones(100)), way)


@pytest.mark.seed("P-39", "P-40", "P-41", "P-42", "S-PAD-007")
@WAYS
def test_saxpy_ten_times_with_tensors_of_paddle(paddle, way):
    x, y = (paddle.to_tensor(values, dtype="float32").to("gpu:0") for values in (np.arange(100), np.ones(100)))
    assert x.place.is_gpu_place() and y.place.gpu_device_id() == 0
    saxpy_ten_times(wp.from_paddle, x, y, way)


@pytest.mark.seed("P-43", "S-BEN-002", "S-BEN-003")
def test_the_benchmark_of_paddle_runs_on_the_device(paddle, monkeypatch, capsys):
    module = "warp.examples.benchmarks.benchmark_interop_paddle"
    monkeypatch.setattr(sys, "argv", [module, "--rounds", "3", "--device", DEVICE])
    runpy.run_module(module, run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    kinds = ["default", "float32", "vec3f", "mat22f"]
    labels = ["from_paddle(...)", "from_paddle(..., return_ctype=True)"]
    assert [re.sub(r"^ *\d+ ms", "ms", line) for line in lines] == [
        line
        for kind in kinds
        for line in [f"dtype={kind}", *(f"ms  {label}" for label in [*labels, "direct from paddle"])]
    ]


@pytest.mark.seed("P-06", "S-DIR-003")
@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_tensors_of_either_device(torch, device):
    x, y = tensor(np.arange(64), device), tensor(np.ones(64), device)
    assert str(x.device) == device
    wp.launch(saxpy, dim=64, inputs=[x, y, 1.0], device=device)
    np.testing.assert_array_equal(numbers(y), np.arange(64) + 1.0)


@pytest.mark.seed("S-TOR-008")
def test_devices_by_their_names_in_torch(torch, second):
    assert wp.device_from_torch("cuda") == wp.get_device(DEVICE) == wp.device_from_torch(torch.device(DEVICE))
    assert wp.device_from_torch("cuda:1") == second and wp.device_to_torch(second) == "cuda:1"
    assert torch.device(wp.device_to_torch(DEVICE)) == torch.device("cuda", 0)
    with pytest.raises(RuntimeError, match="cuda:9"):
        wp.device_from_torch("cuda:9")


@pytest.mark.seed("S-PAD-002", "S-PAD-006")
def test_devices_by_their_names_in_paddle(second):
    pytest.importorskip("paddle")
    assert wp.device_from_paddle("gpu") == wp.get_device(DEVICE) == wp.device_from_paddle("gpu:0")
    assert wp.device_from_paddle("gpu:1") == second
    assert wp.device_to_paddle(second) == "gpu:1" and wp.device_to_paddle(DEVICE) == "gpu:0"
    with pytest.raises(RuntimeError, match="cuda:9"):
        wp.device_from_paddle("gpu:9")


@pytest.mark.seed("S-CUP-001", "S-CUP-002", "S-CUP-004", "P-04", "P-05", "P-96")
def test_arrays_of_cupy_go_both_ways(monkeypatch):
    other = other_library()
    monkeypatch.setitem(sys.modules, "cupy", module_like_cupy(wp.get_stream(DEVICE)))
    ours = wp.array(np.arange(10), dtype=float, device=DEVICE)
    shown = ours.__cuda_array_interface__  # cupy.asarray() reads this
    assert shown["data"] == (ours.ptr, False) and shown["shape"] == (10,) and shown["typestr"] == "<f4"
    theirs = ArrayLikeCupy(wp.ones(10, device=DEVICE), other)
    wp.launch(saxpy, dim=10, inputs=[ArrayLikeCupy(ours, other), theirs, 2.0], device=DEVICE)
    assert theirs.array.list() == [2.0 * k + 1.0 for k in range(10)]
    taken = wp.array(theirs, copy=False, device=DEVICE)
    address = taken.ptr
    assert address == theirs.array.ptr and not taken.requires_grad
    del theirs  # the array keeps it
    litter = wp.zeros(10, device=DEVICE)
    assert litter.ptr != address and taken.list() == [2.0 * k + 1.0 for k in range(10)]
