"""Compile time of one kernel with 200 small loops, each of one or two lines: of four kinds, with a count that all
threads share, with a count of each thread's own, `while`, and `break`."""

import numpy as np
import scenario

LOOPS = 200
THREADS = 16

HEAD = """import warp as wp


@wp.kernel
def loops(n: int, h: float, x: wp.array(dtype=float), y: wp.array(dtype=int), out: wp.array(dtype=float)):
    i = wp.tid()
    total = float({number}.0)
"""

KINDS = (
    """
    for k{index} in range(n):
        total += x[k{index}] * h
""",
    """
    for k{index} in range(y[i]):
        total += x[(i + k{index}) % n] * {index}.5
""",
    """
    left{index} = y[i] + {index}
    while left{index} > 0:
        total = total * 0.5 + float(left{index} & 1)
        left{index} = left{index} >> 1
""",
    """
    for k{index} in range(n):
        if x[k{index}] * {index}.0 > total:
            break
        total += h
""",
)


def source(number):
    texts = (KINDS[index % len(KINDS)].replace("{index}", str(index)) for index in range(LOOPS))
    return HEAD.replace("{number}", str(number)) + "".join(texts) + "    out[i] = total\n"


def launch_warp(wp, loaded):
    numbers = np.random.default_rng(4)
    x = numbers.uniform(0.0, 1.0, THREADS).astype(np.float32)
    y = numbers.integers(0, 5, THREADS, dtype=np.int32)
    out = wp.zeros(THREADS, dtype=float, device="cpu")
    inputs = [THREADS, 0.125, wp.array(x, device="cpu"), wp.array(y, device="cpu"), out]
    wp.launch(loaded.loops, dim=THREADS, inputs=inputs, device="cpu")
    found, number = out.numpy(), int(loaded.__name__[-1])

    def check():
        expected = [by_python(number, x.tolist(), y.tolist(), thread) for thread in range(THREADS)]
        np.testing.assert_allclose(found, expected, rtol=1e-4)

    return check


def by_python(number, x, y, thread):
    """The result of one thread."""
    total = float(number)
    for index in range(LOOPS):
        kind = index % len(KINDS)
        if kind == 0:
            total += 0.125 * sum(x)
        elif kind == 1:
            total += sum(x[(thread + k) % THREADS] for k in range(y[thread])) * (index + 0.5)
        elif kind == 2:
            left = y[thread] + index
            while left > 0:
                total = total * 0.5 + (left & 1)
                left >>= 1
        else:
            for k in range(THREADS):
                if x[k] * index > total:
                    break
                total += 0.125
    return total


if __name__ == "__main__":
    scenario.LATER = 2
    scenario.measure_compile(
        "compile loops", __doc__, {"weft": source, "peer": source}, {"weft": launch_warp, "peer": launch_warp}
    )
