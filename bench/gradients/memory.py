"""The memory of a tape for 1000 launches that change one array of 10 k numbers in place, in MiB (`ms` in the JSON
lines).

Variants: `sin`, each launch reads the result of the one before, so that its adjoint needs the numbers before it: at
least 1000 copies; `scale`, the adjoint needs none of them; `two buffers`, a rollout that goes from one of two arrays to
the other, which overwrites the inputs of all launches but the last: 999 copies.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N, LAUNCHES = 10_000, 1000
VARIANTS = ("sin", "scale", "two buffers")


def main():
    options = measure.arguments(__doc__, VARIANTS, ("weft",)).parse_args()
    wp = measure.import_warp("weft", options.fast, backward=True)

    @wp.kernel
    def wave(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] + 0.01 * wp.sin(x[i])

    @wp.kernel
    def scale(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = 0.999 * x[i]

    @wp.kernel
    def move(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i] + 0.01 * wp.sin(x[i])

    start = np.linspace(-1.0, 1.0, N).astype(np.float32)
    for variant in options.variant or VARIANTS:
        x, y = (wp.array(start, dtype=float, device="cpu", requires_grad=True) for _ in range(2))
        now, then = x, y
        tape = wp.Tape()
        with tape:
            for _ in range(LAUNCHES):
                if variant == "two buffers":
                    wp.launch(move, dim=N, inputs=[now, then], device="cpu")
                    now, then = then, now
                else:
                    wp.launch(wave if variant == "sin" else scale, dim=N, inputs=[x], device="cpu")
        tape.backward(grads={now: wp.full(N, 1.0, dtype=float, device="cpu")})
        value, slope = start.astype(np.float64), np.ones(N)
        for _ in range(LAUNCHES):
            slope *= 0.999 if variant == "scale" else 1.0 + 0.01 * np.cos(value)
            value = 0.999 * value if variant == "scale" else value + 0.01 * np.sin(value)
        np.testing.assert_allclose(x.grad.numpy(), slope, rtol=2e-3)
        measure.report("tape", variant, options, [tape.memory.peak_bytes / 2**20])


if __name__ == "__main__":
    main()
