"""Kernels of several tests of graphs, and their capture."""

import warp as wp


@wp.kernel
def add_one(a: wp.array(dtype=float)):
    i = wp.tid()
    a[i] += 1.0


@wp.kernel
def axpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = y[i] + a * x[i]


@wp.kernel
def countdown(count: wp.array(dtype=int), steps: wp.array(dtype=int)):
    count[0] = count[0] - 1
    steps[0] = steps[0] + 1


def captured(function, device=None):
    with wp.ScopedCapture(device=device) as capture:
        function()
    return capture.graph
