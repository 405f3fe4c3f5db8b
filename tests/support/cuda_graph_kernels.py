"""Kernels of the tests of graphs on CUDA devices."""

import warp as wp

DEVICE = "cuda:0"


# ---- captures ----
@wp.kernel
def add_one(a: wp.array(dtype=float)):
    i = wp.tid()
    a[i] += 1.0


@wp.kernel
def countdown(count: wp.array(dtype=int)):
    count[0] = count[0] - 1


def captured(function, **options):
    with wp.ScopedCapture(device=DEVICE, **options) as capture:
        function()
    return capture.graph
