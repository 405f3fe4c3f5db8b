"""A graph of 100 small launches on a GPU, beside the same graph of the bare driver: 1024 numbers, y = a x + y.

`launch` is one launch of it, many of which are put into the stream before anybody waits; the bare driver's is called
through ctypes, whose own time is part of it.
"""

import ctypes
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure
from bare_driver import Driver

N, A, COUNT = 1024, 0.25, 100
BATCH = {"graph of 100": 10, "launch": 500}

PTX = """.version 7.0
.target sm_75
.address_size 64
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a)
{
    .reg .b32 %r<5>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.f32 %f1, [a];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.s32 %rd3, %r4, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    ld.global.f32 %f3, [%rd5];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%rd5], %f4;
    ret;
}
"""


def with_weft(options):
    """(functions to time, by variant; the wait; the numbers; their reset to zero)"""
    wp = measure.import_warp("weft", options.fast)
    wp.set_device("cuda:0")

    @wp.kernel
    def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = a * x[i] + y[i]

    x, y = wp.array(np.arange(N), dtype=float), wp.zeros(N, dtype=float)
    wp.load_module(device="cuda:0")

    def launch():
        wp.launch(saxpy, dim=N, inputs=[A, x, y])

    with wp.ScopedCapture() as capture:
        for _ in range(COUNT):
            launch()
    runs = {"graph of 100": lambda: wp.capture_launch(capture.graph), "launch": launch}
    return runs, lambda: wp.synchronize_device("cuda:0"), y.numpy, y.zero_


def with_driver(options):
    driver = Driver()
    zeros = np.zeros(N, np.float32)
    x, y = driver.copied(np.arange(N, dtype=np.float32)), driver.copied(zeros)
    kernel, a = driver.kernel(PTX, "saxpy"), ctypes.c_float(A)

    def launch():
        driver.launch(kernel, N // 256, 256, x, y, a)

    def launches():
        for _ in range(COUNT):
            launch()

    graph = driver.captured(launches)
    runs = {"graph of 100": lambda: driver.launch_graph(graph), "launch": launch}
    return runs, driver.synchronize, lambda: driver.read(y, zeros), lambda: driver.write(y, zeros)


if __name__ == "__main__":
    options = measure.arguments(__doc__, tuple(BATCH), ("weft", "driver")).parse_args()
    runs, wait, result, clear = (with_weft if options.implementation == "weft" else with_driver)(options)

    def prepare(variant):
        times = COUNT if variant.startswith("graph") else 1
        clear()  # the sums of many runs would round these away

        def check():
            np.testing.assert_allclose(result(), A * times * np.arange(N), rtol=1e-4)

        return measure.Queued(runs[variant], wait, check, BATCH[variant])

    measure.queued("gpu graph", options, tuple(BATCH), prepare)
