"""Compile time of a kernel of one line."""

import numpy as np
import scenario

WARP = """
import warp as wp

@wp.kernel
def add(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + {number}.0
"""

NUMBA = """
import numba

@numba.njit(parallel=True, cache=True)
def add(x):
    for i in numba.prange(x.shape[0]):
        x[i] = x[i] + {number}.0
"""


def check(loaded, x):
    assert (x == float(loaded.__name__[-1]) + 1.0).all()


def launch_warp(wp, loaded):
    x = wp.zeros(8, dtype=float, device=scenario.device)
    wp.launch(loaded.add, dim=8, inputs=[x], device=scenario.device)
    return lambda: check(loaded, x.numpy())


def launch_numba(numba, loaded):
    x = np.zeros(8, dtype=np.float32)
    loaded.add(x)
    return lambda: check(loaded, x)


def source(text):
    return lambda number: text.format(number=number + 1)


if __name__ == "__main__":
    scenario.measure_compile(
        "compile trivial",
        __doc__,
        {"weft": source(WARP), "peer": source(WARP), "numba": source(NUMBA)},
        {"weft": launch_warp, "peer": launch_warp, "numba": launch_numba},
    )
