"""PyTorch's build for the CPU with tensors in memory of emulated CUDA devices.

Autograd and the dispatcher are PyTorch's own; a few operators are kernels of Weft. To be imported before PyTorch.

``begin(library)`` loads the library of torch_on_emulated_device.cpp and returns the module ``torch``.
"""

import contextlib
import ctypes
from types import SimpleNamespace
from typing import Any

import warp as wp
from emulated_driver import other_library
from foreign_tensors import STREAM, exchange_api

DEVICES = 2
calls: list[str] = []
"""The operators that allocated memory, in order."""


@wp.kernel
def _add(a: wp.array[Any], b: wp.array[Any], factor: Any, out: wp.array[Any]):
    i = wp.tid()
    out[i] = a[i] + factor * b[i]


@wp.kernel
def _multiply(a: wp.array[Any], b: wp.array[Any], out: wp.array[Any]):
    i = wp.tid()
    out[i] = a[i] * b[i]


class _Emulated:
    def __init__(self, library, torch):
        self.library, self.torch = library, torch
        self.driver = other_library()
        self.contexts = [self.driver.made("cuDevicePrimaryCtxRetain", ordinal) for ordinal in range(DEVICES)]
        with self.context(0):
            self.of_graphs = self.driver.made("cuStreamCreate", 1)  # their memory is taken beside them
        self.implementations = torch.library.Library("aten", "IMPL")
        for name in ("empty.memory_format", "empty_strided", "copy_", "zero_", "fill_.Scalar", "add.Tensor"):
            self.implementations.impl(name, getattr(self, name.partition(".")[0].strip("_")), "CUDA")
        self.implementations.impl("mul.Tensor", self.mul, "CUDA")
        self.implementations.impl("add_.Tensor", self.add_in_place, "CUDA")
        self.implementations.impl("as_strided", self.as_strided, "CUDA")
        self.implementations.impl("view", self.view, "CUDA")
        # PyTorch's C functions know no streams in this build.
        self.callback = STREAM(self.current_stream)
        exchange_api(torch.Tensor).current_stream = self.callback

    def current_stream(self, kind, ordinal, out):
        out[0] = self.library.current_stream(ordinal)
        return 0

    def stream(self, ordinal):
        handle = self.library.current_stream(ordinal)
        return wp.ScopedStream(wp.Stream(f"cuda:{ordinal}", cuda_stream=handle), sync_enter=False)

    @contextlib.contextmanager
    def context(self, ordinal):
        self.driver.call("cuCtxPushCurrent_v2", self.contexts[ordinal])
        yield
        self.driver.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    # ---- memory ----

    def made(self, size, dtype, device):
        """As PyTorch's allocator: freed in the order of its stream, and not while that is captured."""
        torch = self.torch
        ordinal = torch.device(device).index or 0
        calls.append(f"cuda:{ordinal}")
        handle = ctypes.c_void_p(self.library.current_stream(ordinal) or 1)
        shape, scalar = tuple(size) or (1,), wp.dtype_from_torch(dtype)
        count = max(torch.Size(shape).numel() * dtype.itemsize, 4)
        with self.context(ordinal):
            captured = ctypes.c_int()
            if handle.value != 1:
                self.driver.call("cuStreamIsCapturing", handle, ctypes.byref(captured))
            stream = self.of_graphs if captured.value else handle
            pointer = self.driver.made("cuMemAllocAsync", ctypes.c_size_t(count), stream).value

        def free(address, size):
            if not captured.value:
                with self.context(ordinal):
                    self.driver.call("cuMemFreeAsync", ctypes.c_void_p(address), handle)

        array = wp.array(ptr=pointer, shape=shape, dtype=scalar, device=f"cuda:{ordinal}", deleter=free)
        return wp.to_torch(array, requires_grad=False)

    def empty(self, size, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
        return self.made(size, dtype or self.torch.float32, device)

    def empty_strided(self, size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
        return self.made(size, dtype or self.torch.float32, device)

    # ---- views, through DLPack ----

    def as_strided(self, tensor, size, stride, storage_offset=None):
        assert not storage_offset
        step = tensor.element_size()
        array = wp.from_torch(tensor, requires_grad=False)
        shown = wp.array(
            ptr=array.ptr,
            dtype=array.dtype,
            shape=tuple(size),
            strides=tuple(step * n for n in stride),
            device=array.device,
        )
        shown.owner_of_test = tensor
        return wp.to_torch(shown, requires_grad=False)

    def view(self, tensor, size):
        sizes = list(size)
        if -1 in sizes:
            known = 1
            for n in sizes:
                known *= 1 if n == -1 else n
            sizes[sizes.index(-1)] = tensor.numel() // known
        steps, step = [], 1
        for n in reversed(sizes):
            steps.append(step)
            step *= n
        return self.as_strided(tensor, sizes, steps[::-1])

    # ---- numbers, in PyTorch's current stream ----

    def copy(self, to, source, non_blocking=False):
        ordinal = (to if to.is_cuda else source).device.index
        array = wp.from_torch(source.detach().resolve_neg(), requires_grad=False)
        with self.stream(ordinal):
            wp.copy(wp.from_torch(to.detach(), requires_grad=False), array)
        return to

    def zero(self, to):
        with self.stream(to.device.index):
            wp.from_torch(to.detach(), requires_grad=False).zero_()
        return to

    def fill(self, to, value):
        with self.stream(to.device.index):
            wp.from_torch(to.detach(), requires_grad=False).fill_(value)
        return to

    def elementwise(self, kernel, a, b, *numbers, out=None):
        assert a.shape == b.shape and a.dtype == b.dtype
        out = self.made(a.shape, a.dtype, a.device) if out is None else out
        with self.stream(a.device.index):
            arrays = [wp.from_torch(t.detach(), requires_grad=False).flatten() for t in (a, b, out)]
            values = [arrays[0].dtype(number) for number in numbers]
            wp.launch(kernel, a.numel(), inputs=[*arrays[:2], *values, arrays[2]], device=arrays[0].device)
        return out

    def add(self, a, b, *, alpha=1):
        return self.elementwise(_add, a, b, alpha)

    def add_in_place(self, a, b, *, alpha=1):
        return self.elementwise(_add, a, b, alpha, out=a)

    def mul(self, a, b):
        return self.elementwise(_multiply, a, b)


_emulated = None


def begin(library):
    """PyTorch, with tensors on the emulated devices."""
    global _emulated
    made = ctypes.CDLL(library)
    made.current_stream.restype, made.set_current_stream.argtypes = ctypes.c_int64, [ctypes.c_int, ctypes.c_int64]
    import torch

    torch.cuda.is_available = lambda: True
    torch.cuda._lazy_init = lambda: None
    torch.cuda.get_rng_state = lambda *device: torch.zeros(16, dtype=torch.uint8)
    torch.cuda.set_rng_state = lambda *state: None
    _emulated = _Emulated(made, torch)
    torch.cuda.current_stream = lambda device=None: SimpleNamespace(
        cuda_stream=made.current_stream(torch.device(device or "cuda:0").index or 0),
        device=torch.device(device or "cuda:0"),
    )
    return torch


@contextlib.contextmanager
def stream(handle, ordinal=0):
    """``torch.cuda.stream``."""
    before = _emulated.library.current_stream(ordinal)
    _emulated.library.set_current_stream(ordinal, handle)
    try:
        yield
    finally:
        _emulated.library.set_current_stream(ordinal, before)
