"""The emulated driver as another library of the process uses it: beside Weft, in the same context."""

import ctypes
from pathlib import Path

import pytest
import warp as wp


def driver_library():
    """The emulated driver, which Weft has loaded too, with the functions that no other driver has."""
    library = ctypes.CDLL(str(Path(wp._weft.__file__).with_name("weft-emulated-cuda.so")))
    library.weftEmulatedCalls.argtypes = library.weftEmulatedAlive.argtypes = [ctypes.c_char_p]
    library.weftEmulatedFail.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_int]
    library.weftEmulatedLimit.argtypes = [ctypes.c_uint64]
    for function in (library.weftEmulatedCalls, library.weftEmulatedAlive, library.weftEmulatedLimit):
        function.restype = ctypes.c_uint64
    library.weftEmulatedRecover.restype = ctypes.c_bool
    return library


class OtherLibrary:
    """A library that uses the driver by itself, as PyTorch does: of the emulated device, which Weft has loaded."""

    def __init__(self):
        self.driver = driver_library()
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        self.driver.weftEmulatedCalls(None)  # calls are counted from now on

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
    """An OtherLibrary on an emulated device, whose pending work is done. Skips the test on any other device."""
    if not wp.get_device(device).is_emulated:
        pytest.skip("uses the emulated driver by itself")
    wp.synchronize_device(device)
    return OtherLibrary()
