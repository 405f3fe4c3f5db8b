"""The clang of this machine, and functions in C++ that several files of tests use."""

import os
import shutil

import pytest
import warp as wp

NAMES = ["clang++-22", "clang++", *(f"clang++-{n}" for n in range(21, 13, -1)), "clang"]


needs_clang = pytest.mark.skipif(
    not os.environ.get("WEFT_CLANG") and not any(map(shutil.which, NAMES)), reason="there is no clang on this machine"
)


@wp.func_native("""
    if (x > 1e30f) return y;
    return x * x + y;
""")
def square(x: float, y: float) -> float: ...


def run(kernel):
    x, y = wp.array([1.0, 2.0, 3.0], dtype=float), wp.zeros(3)
    wp.launch(kernel, dim=3, inputs=[x, y])
    return y.numpy().tolist()
