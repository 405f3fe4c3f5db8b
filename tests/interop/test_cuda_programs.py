"""Programs with tensors of PyTorch and arrays of CuPy on a CUDA device.

PyTorch's build for the CPU describes memory of a GPU, too, which is all that conversions and launches look at. A class
with its protocols stands for CuPy (foreign_tensors.py).
"""

import sys

import numpy as np
import pytest
import warp as wp
from emulated_driver import other_library
from foreign_tensors import ArrayLikeCupy, module_like_cupy

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


@pytest.mark.seed("P-16", "P-17", "P-18", "P-19")
@pytest.mark.parametrize("way", ["each time", "once", "structures", "direct"])
def test_saxpy_ten_times(torch, way):
    n = 100
    x, y = tensor(np.arange(n)), tensor(np.ones(n))
    inputs = [wp.from_torch(x), wp.from_torch(y), 1.0]
    for _ in range(10):
        if way == "each time":
            inputs = [wp.from_torch(x), wp.from_torch(y), 1.0]
        elif way == "structures":
            inputs = [wp.from_torch(x, return_ctype=True), wp.from_torch(y, return_ctype=True), 1.0]
        elif way == "direct":
            inputs = [x, y, 1.0]
        wp.launch(saxpy, dim=n, inputs=inputs, device=DEVICE)
    np.testing.assert_array_equal(numbers(y), 10.0 * np.arange(n) + 1.0)


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
