"""The emulated driver as another library of the process uses it: beside Weft, in the same context."""

import ctypes
from pathlib import Path

import pytest
import warp as wp


class OtherLibrary:
    """A library that uses the driver by itself, as PyTorch does: of the emulated device, which Weft has loaded."""

    def __init__(self):
        file = Path(wp._weft.__file__).with_name("weft-emulated-cuda.so")
        self.driver = ctypes.CDLL(str(file))
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        result = getattr(self.driver, name)(*arguments)
        assert result == 0, f"{name}() gave {result}"

    def made(self, name, *arguments):
        handle = ctypes.c_void_p()
        self.call(name, ctypes.byref(handle), *arguments)
        return handle

    def begin(self, stream):
        self.call("cuStreamBeginCapture_v2", stream, 1)

    def end(self, stream):
        """The graph, ready to be launched."""
        graph = ctypes.c_void_p()
        self.call("cuStreamEndCapture", stream, ctypes.byref(graph))
        ready = self.made("cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(0))
        self.call("cuGraphDestroy", graph)
        return ready

    def launch(self, graph, stream):
        self.call("cuGraphLaunch", graph, stream)
        self.call("cuStreamSynchronize", stream)


def other_library(device="cuda:0"):
    """One, where the device is emulated; what is pending there has been done."""
    if not wp.get_device(device).is_emulated:
        pytest.skip("uses the emulated driver by itself")
    wp.synchronize_device(device)
    library = OtherLibrary()
    library.driver.weftEmulatedCalls.argtypes = library.driver.weftEmulatedAlive.argtypes = [ctypes.c_char_p]
    library.driver.weftEmulatedCalls.restype = library.driver.weftEmulatedAlive.restype = ctypes.c_uint64
    return library
