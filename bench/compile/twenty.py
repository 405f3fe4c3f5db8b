"""Compile time of a module of twenty small kernels, each different; the time is that of the whole module."""

import numpy as np
import scenario

KERNELS = 20

# A loop, a branch and some vector math each; constants make the kernels of all modules differ.
WARP = """
@wp.kernel
def kernel_{index}(n: int, x: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
    i = wp.tid()
    p = x[i]
    total = float(0.0)
    for k in range(n):
        d = p - wp.vec3({index}.0, float(k), {number}.0)
        r = wp.length(d)
        if r > {index}.5:
            total += wp.sin(r) * wp.dot(d, p)
        else:
            total += wp.exp(-r) + {number}.25
    y[i] = total
"""


def check(y, number, index, n):
    d = np.stack([np.full(n, -index, dtype=float), -np.arange(n, dtype=float), np.full(n, -number, dtype=float)], 1)
    r = np.linalg.norm(d, axis=1)
    terms = np.where(r > index + 0.5, 0.0, np.exp(-r) + number + 0.25)
    np.testing.assert_allclose(y, terms.sum(), rtol=1e-4, atol=1e-5)


def launch_warp(wp, loaded):
    x = wp.zeros(4, dtype=wp.vec3, device="cpu")
    results = []
    for index in range(KERNELS):
        y = wp.zeros(4, dtype=float, device="cpu")
        wp.launch(getattr(loaded, f"kernel_{index}"), dim=4, inputs=[3, x, y], device="cpu")
        results.append(y)

    def check_all():
        for index, y in enumerate(results):
            check(y.numpy(), int(loaded.__name__[-1]), index, 3)

    return check_all


def source(head, text):
    return lambda number: head + "".join(text.format(index=index, number=number) for index in range(KERNELS))


if __name__ == "__main__":
    warp = source("import warp as wp\n", WARP)
    scenario.LATER = 2
    scenario.measure_compile(
        "compile twenty",
        __doc__,
        {"weft": warp, "peer": warp},
        {"weft": launch_warp, "peer": launch_warp},
    )
