"""The CUDA driver as a program in C++ uses it: device 0, its primary context, one stream, and no library in between.

The driver is libcuda.so.1, or the one that WARP_CUDA_DRIVER names: a path, or "emulated" for Weft's emulated device, on
which figures mean nothing, and programs show that they run.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np


def library_name() -> str:
    named = os.environ.get("WARP_CUDA_DRIVER", "libcuda.so.1")
    if named != "emulated":
        return named
    package = importlib.util.find_spec("warp")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("WARP_CUDA_DRIVER=emulated: there is no package warp here, which has the emulated device")
    return str(Path(package.submodule_search_locations[0]) / "weft-emulated-cuda.so")


@functools.cache
def compiled(source: Path) -> str:
    """The PTX that nvcc makes of a file in CUDA C++, once in a process."""
    compiler = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not Path(compiler).exists():
        raise SystemExit("--with cpp needs nvcc, of NVIDIA's toolkit: in $PATH, or in /usr/local/cuda/bin")
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "kernels.ptx"
        subprocess.run([compiler, "-O3", "-ptx", "-o", text, source], check=True)
        return text.read_text()


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL(library_name())
        self.call("cuInit", 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        self.stream = self.made("cuStreamCreate", 1)  # not ordered with the default stream

    def call(self, name, *arguments) -> None:
        result = getattr(self.library, name)(*arguments)
        if result:
            raise RuntimeError(f"{name}() gave {result}")

    def made(self, name, *arguments) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self.call(name, ctypes.byref(handle), *arguments)
        return handle

    def synchronize(self) -> None:
        self.call("cuStreamSynchronize", self.stream)

    # ---- memory ----

    def copied(self, array: np.ndarray) -> ctypes.c_void_p:
        """Memory of the device with these bytes."""
        memory = self.made("cuMemAlloc_v2", ctypes.c_size_t(array.nbytes))
        self.write(memory, array)
        return memory

    def write(self, memory: ctypes.c_void_p, array: np.ndarray) -> None:
        self.call("cuMemcpyHtoDAsync_v2", memory, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes),
                  self.stream)  # fmt: skip
        self.synchronize()

    def read(self, memory: ctypes.c_void_p, like: np.ndarray) -> np.ndarray:
        result = np.empty_like(like)
        self.call("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(result.ctypes.data), memory, ctypes.c_size_t(result.nbytes),
                  self.stream)  # fmt: skip
        self.synchronize()
        return result

    def copy(self, to: ctypes.c_void_p, source: ctypes.c_void_p, size: int) -> None:
        self.call("cuMemcpyDtoDAsync_v2", to, source, ctypes.c_size_t(size), self.stream)

    # ---- kernels ----

    def kernel(self, ptx: str, name: str) -> ctypes.c_void_p:
        module = self.made("cuModuleLoadDataEx", ptx.encode() + b"\0", 0, None, None)
        return self.made("cuModuleGetFunction", module, name.encode())

    def launch(self, kernel: ctypes.c_void_p, blocks: int | tuple[int, int, int], threads: int, *values) -> None:
        grid = blocks if isinstance(blocks, tuple) else (blocks, 1, 1)
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        self.call("cuLaunchKernel", kernel, *grid, threads, 1, 1, 0, self.stream, pointers, None)

    def captured(self, work) -> ctypes.c_void_p:
        """A graph of the work that the function puts into the stream, ready to be launched."""
        self.call("cuStreamBeginCapture_v2", self.stream, 1)
        work()
        graph = ctypes.c_void_p()
        self.call("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        return self.made("cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(0))

    def launch_graph(self, graph: ctypes.c_void_p) -> None:
        self.call("cuGraphLaunch", graph, self.stream)
