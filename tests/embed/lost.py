"""A kernel whose C++ calls a function that Python's process has and the program of main.cpp has not."""

import warp as wp


@wp.func_native("""
    int is_initialized() __asm__("Py_IsInitialized");
    return is_initialized();
""")
def lost() -> int: ...


@wp.kernel
def find(out: wp.array(dtype=int)):
    out[0] = lost()
