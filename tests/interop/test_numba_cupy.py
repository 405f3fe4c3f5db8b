"""Numba on the CPU in both directions, and what speaks of CUDA memory: its errors here, the real thing on a GPU."""

from __future__ import annotations

import ctypes

import numba
import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")


@pytest.fixture(autouse=True)
def device_of_the_test(request, device_of_the_run):
    """The CPU, for any `--device`, but for tests of GPUs: Numba's functions are for its memory."""
    if request.node.get_closest_marker("gpu"):
        yield
        return
    with wp.ScopedDevice("cpu"):
        yield


@wp.kernel
def saxpy(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


# ---- Numba on the CPU ----


@numba.njit
def running_sum(values, out):
    total = 0.0
    for i in range(len(values)):
        total += values[i]
        out[i] = total


@numba.njit(parallel=True)
def scaled(values, factor):
    for i in numba.prange(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] *= factor


@numba.vectorize(["float32(float32, float32)"])
def larger(x, y):
    return x if x > y else y


@pytest.mark.seed("S-CUP-002", "S-CUP-003", "D-12")
def test_numba_works_on_our_memory():
    x, out = wp.array(np.arange(6), dtype=float), wp.zeros(6)
    for given, written in ((x.numpy(), out.numpy()), (x, out)):  # arrays, and ours themselves, which are buffers
        running_sum(given, written)
        np.testing.assert_array_equal(out.numpy(), np.cumsum(np.arange(6.0)))
        out.zero_()
    grid = wp.ones((3, 4))
    scaled(grid.numpy(), 2.0)
    scaled(grid[1:].numpy(), 3.0)
    np.testing.assert_array_equal(grid.numpy(), np.array([2, 6, 6])[:, None] * np.ones(4))
    every_other = wp.zeros(8)
    running_sum(x[:4], every_other[::2])
    assert every_other.list() == [0, 0, 1, 0, 3, 0, 6, 0]
    np.testing.assert_array_equal(larger(x, wp.full(6, 2.5)), np.maximum(np.arange(6), 2.5))


@pytest.mark.seed("S-CUP-002")
@pytest.mark.parametrize("name", "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split())
def test_numba_knows_our_types(name):
    x, out = wp.array([1, 2, 3], dtype=getattr(wp, name)), wp.zeros(3, dtype=getattr(wp, name))
    running_sum(x, out)
    assert out.list() == [1, 3, 6]


def test_numba_does_not_write_read_only_memory():
    frozen = np.zeros(3, dtype=np.float32)
    frozen.flags.writeable = False
    for given in (wp.from_dlpack(frozen), wp.from_dlpack(frozen).numpy()):
        with pytest.raises(numba.TypingError):
            running_sum(wp.ones(3), given)
    assert frozen.tolist() == [0, 0, 0]


@pytest.mark.seed("S-CUP-002", "S-DIR-001")
def test_kernels_work_on_what_numba_returns():
    @numba.njit
    def counted(n):
        return np.arange(n).astype(np.float32), np.ones(n, dtype=np.float32)

    x, y = counted(1000)
    wp.launch(saxpy, dim=1000, inputs=[x, y, 1.0], device="cpu")
    np.testing.assert_array_equal(y, np.arange(1000) + 1)


# ---- what speaks of CUDA memory, without a device ----


class OnGpu:
    """An object of CuPy or Numba as far as its protocol shows it."""

    def __init__(self, **changes):
        self.interface = {"shape": (3,), "typestr": "<f4", "data": (4096, False), "strides": None, "version": 3}
        self.interface |= changes

    @property
    def __cuda_array_interface__(self):
        return self.interface


class CpuOnly:
    """As torch and CuPy do: the property exists, and its error gives the reason."""

    def __init__(self, values):
        self.values = np.asarray(values, dtype=np.float32)

    @property
    def __cuda_array_interface__(self):
        raise AttributeError("memory of the host")

    @property
    def __array_interface__(self):
        return self.values.__array_interface__


@pytest.mark.seed("S-CUP-001", "S-CUP-002")
def test_cuda_memory_is_an_error_that_names_kernel_argument_and_device():
    if wp.is_cuda_available():
        pytest.skip("there is a CUDA device")
    found, out = OnGpu(), np.zeros(3, np.float32)
    for inputs, argument in (([found, out, 1.0], "argument 1 'x'"), ([out, found, 1.0], "argument 2 'y'")):
        with pytest.raises(RuntimeError, match=rf"{argument} of kernel 'saxpy' is .*OnGpu.* on a CUDA device"):
            wp.launch(saxpy, dim=3, inputs=inputs, device="cpu")
    with pytest.raises(RuntimeError, match="CUDA device"):
        wp.array(found)
    with pytest.raises(ValueError, match="cuda:0"):
        wp.launch(saxpy, dim=3, inputs=[out, out, 1.0], device="cuda:0")
    assert out.tolist() == [0, 0, 0]
    with pytest.raises(AttributeError, match="the array is on 'cpu'"):
        wp.zeros(3).__cuda_array_interface__
    assert not hasattr(wp.zeros(3), "__cuda_array_interface__")


@pytest.mark.seed("S-DIR-001", "S-DIR-006")
def test_an_interface_of_the_host_is_taken_where_that_of_cuda_is_empty():
    x, y = CpuOnly([1, 2, 3]), CpuOnly([1, 1, 1])
    wp.launch(saxpy, dim=3, inputs=[x, y, 2.0])
    assert y.values.tolist() == [3, 5, 7]


@pytest.mark.seed("S-DIR-007")
def test_interfaces_that_are_wrong_are_errors():
    class Wrong:
        def __init__(self, **changes):
            memory = (ctypes.c_float * 3)()
            self.memory = memory
            self.__array_interface__ = {
                "shape": (3,),
                "typestr": "<f4",
                "data": (ctypes.addressof(memory), False),
                "version": 3,
            } | changes

    y = np.zeros(3, np.float32)
    for changes, message in (
        ({"typestr": "<f8", "shape": (1,)}, "its numbers are float64, expected float32"),
        ({"typestr": ">f4"}, "native byte order"),
        ({"typestr": "<c8", "shape": (1,)}, "Weft has no such numbers"),
        ({"shape": (3, 1)}, "it has 2 dimensions, expected 1"),
    ):
        with pytest.raises(RuntimeError, match=rf"argument 1 'x' of kernel 'saxpy' is .*Wrong.*{message}"):
            wp.launch(saxpy, dim=1, inputs=[Wrong(**changes), y, 1.0])
    for changes in ({"shape": "three"}, {"typestr": "nonsense"}):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            wp.launch(saxpy, dim=1, inputs=[Wrong(**changes), y, 1.0])
    wp.launch(saxpy, dim=3, inputs=[Wrong(), y, 1.0])


# ---- on a GPU ----


@pytest.mark.gpu
@pytest.mark.needs("cupy")
@pytest.mark.seed("P-04", "P-05", "S-CUP-002")
def test_saxpy_on_arrays_of_cupy():
    import cupy as cp

    n = 1000
    with cp.cuda.Device(0):
        x = cp.arange(n, dtype=cp.float32)
        y = cp.ones(n, dtype=cp.float32)

    wp.launch(saxpy, dim=n, inputs=[x, y, 1.0], device="cuda:0")

    wp.synchronize()
    np.testing.assert_array_equal(cp.asnumpy(y), np.arange(n) + 1)


@pytest.mark.gpu
@pytest.mark.needs("cupy")
@pytest.mark.seed("P-96", "S-CUP-001", "S-CUP-002")
def test_our_array_in_cupy_and_back():
    import cupy as cp

    a = wp.array(np.arange(6, dtype=np.float32), device="cuda:0")
    theirs = cp.asarray(a)
    assert theirs.data.ptr == a.ptr
    theirs += 1.0
    wp.synchronize()
    assert a.list() == [1, 2, 3, 4, 5, 6]
    back = wp.array(theirs, device="cuda:0", copy=False)
    assert back.ptr == a.ptr and back.list() == a.list()


@pytest.mark.gpu
@pytest.mark.seed("S-CUP-001", "S-CUP-002")
def test_numba_kernels_on_a_gpu():
    from numba import cuda

    if not cuda.is_available():
        pytest.skip("Numba finds no GPU: it uses no emulated one")

    @cuda.jit
    def double(values):
        i = cuda.grid(1)
        if i < values.shape[0]:
            values[i] *= 2.0

    a = wp.array(np.arange(64, dtype=np.float32), device="cuda:0")
    try:
        double[1, 64](cuda.as_cuda_array(a))
    except AttributeError as error:  # numba-cuda asks NumPy for what newer ones have no more
        if "module 'numpy' has no attribute" not in str(error):
            raise
        pytest.skip(f"this numba-cuda is too old for this NumPy: {error}")
    theirs = cuda.to_device(np.ones(64, dtype=np.float32))
    wp.launch(saxpy, dim=64, inputs=[a, theirs, 1.0], device="cuda:0")
    wp.synchronize()
    np.testing.assert_array_equal(theirs.copy_to_host(), 2 * np.arange(64) + 1)
