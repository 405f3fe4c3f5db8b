"""``cpu:protected``: a second CPU device, in tests only, whose memory the host cannot touch (protected_memory.cpp).

Code that reads or writes it in place, as only the host's memory may be, fails its test.
"""

import ctypes
import functools
import os
import subprocess
from pathlib import Path

import pytest

NAME = "cpu:protected"
LIBRARY = Path(__file__).resolve().parents[2] / os.environ.get("BUILD", "build") / "libprotected_memory.so"
_MOST_FRAMES = 24


@functools.cache
def _library():
    library = ctypes.CDLL(str(LIBRARY))
    library.protected_memory.restype = ctypes.c_void_p
    return library


@functools.cache
def add():
    """Makes the device known to Weft, once."""
    from warp import _weft

    if not LIBRARY.exists():
        pytest.skip(f"needs {LIBRARY.name}, which is built with the tests")
    memory = _library().protected_memory()
    assert memory, "there are no addresses left for the memory of the protected device"
    _weft.add_cpu_device(NAME, memory)


def _text_of(address):
    """The function of an address, or the file and the offset in it if the function is unknown."""

    class Place(ctypes.Structure):
        _fields_ = [
            ("file", ctypes.c_char_p),
            ("base", ctypes.c_void_p),
            ("name", ctypes.c_char_p),
            ("start", ctypes.c_void_p),
        ]

    place = Place()
    if not ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(place)) or not place.file:
        return hex(address)
    offset = address - place.base
    try:
        command = ["addr2line", "-Cfe", place.file, hex(offset - 1)]
        found = subprocess.run(command, capture_output=True, text=True).stdout.split("\n")[0]
    except OSError:
        found = "??"
    if found in ("", "??"):
        return f"{os.path.basename(place.file.decode())}+{offset:#x}"
    return found


def check():
    """Fails the running test if the device's memory was touched from outside since the last call."""
    if add.cache_info().currsize == 0:
        return
    count = _library().take_faults()
    if count == 0:
        return
    frames = (ctypes.c_void_p * _MOST_FRAMES)()
    known = _library().fault_frames(0, frames, _MOST_FRAMES)
    calls = [_text_of(address) for address in frames[:known]][2:12]
    pytest.fail(
        f"the memory of {NAME} was touched from outside of its device {count} times, first by:\n  "
        + "\n  ".join(calls),
        pytrace=False,
    )
