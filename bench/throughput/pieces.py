"""Six elementwise launches over 16 M numbers, one by one and as a graph, which runs them piece by piece."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N = 1 << 24


def problem(variant):
    rng = np.random.default_rng(0)
    return {name: measure.aligned(rng.standard_normal(N, dtype=np.float32)) for name in "xyz"}


def expected(variant, data):
    x, y, z = (data[name].astype(np.float32) for name in "xyz")
    for _ in range(2):
        y = np.float32(0.5) * x + y
        z = y * y - z
        x = x - np.float32(0.25) * z
    return x


def weft(wp, variant, data, options):
    @wp.kernel
    def push(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = 0.5 * x[i] + y[i]

    @wp.kernel
    def square(y: wp.array(dtype=float), z: wp.array(dtype=float)):
        i = wp.tid()
        z[i] = y[i] * y[i] - z[i]

    @wp.kernel
    def pull(z: wp.array(dtype=float), x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] - 0.25 * z[i]

    starts = {name: wp.array(data[name], dtype=float, device="cpu") for name in "xyz"}
    x, y, z = (wp.clone(starts[name]) for name in "xyz")

    def launches():
        for _ in range(2):
            wp.launch(push, N, inputs=[x, y], device="cpu")
            wp.launch(square, N, inputs=[y, z], device="cpu")
            wp.launch(pull, N, inputs=[z, x], device="cpu")

    with wp.ScopedCapture(device="cpu") as capture:
        launches()
    run = launches if variant == "one by one" else lambda: wp.capture_launch(capture.graph)
    return measure.Job(run, x.numpy)


if __name__ == "__main__":
    measure.throughput(
        "pieces",
        __doc__,
        ("one by one", "graph"),
        problem,
        expected,
        {"weft": weft},
        tolerance=lambda variant: {"rtol": 1e-4, "atol": 1e-4},
    )
