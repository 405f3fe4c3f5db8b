"""Compile time of a kernel with its gradient: three loops in each other, with sixteen breaks each."""

import math

import numpy as np
import scenario

DEPTH, BREAKS = 3, 8  # so many before the loop within, and as many after it
THREADS = 4
TURNS = 3

HEAD = """import warp as wp


@wp.kernel
def leave(turns: int, x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    s = x[i]
    t = x[i] * 0.{number}5
"""


def source(number):
    lines, indent = [], "    "
    for depth in range(DEPTH):
        lines += [f"{indent}c{depth} = int(0)", f"{indent}while c{depth} < turns:"]
        indent += "    "
        lines.append(f"{indent}c{depth} += 1")
        for k in range(BREAKS):
            lines.append(f"{indent}s = s * x[(i + {k}) % {THREADS}] + wp.sin(t)")
            lines += [f"{indent}if s > 1.{k} + 0.1 * float(c{depth}):", f"{indent}    break"]
            lines.append(f"{indent}t = 0.2 * t * s + 0.{k + 1}")
    for depth in reversed(range(DEPTH)):
        for k in range(BREAKS):
            lines.append(f"{indent}s = s * 0.9 + t * x[c{depth} % {THREADS}]")
            lines += [f"{indent}if s < 0.0{k}:", f"{indent}    break"]
        indent = indent[4:]
    return HEAD.replace("{number}", str(number)) + "\n".join(lines) + "\n    out[i] = s + t\n"


def by_python(number, x, thread):
    """The result of one thread, in double precision."""

    def loop(depth, s, t):
        for c in range(1, TURNS + 1):
            for k in range(BREAKS):
                s = s * x[(thread + k) % THREADS] + math.sin(t)
                if s > 1 + (k + c) / 10:
                    return s, t
                t = 0.2 * t * s + (k + 1) / 10
            if depth + 1 < DEPTH:
                s, t = loop(depth + 1, s, t)
            for k in range(BREAKS):
                s = s * 0.9 + t * x[c % THREADS]
                if s < k / 100:
                    return s, t
        return s, t

    return sum(loop(0, x[thread], x[thread] * float(f"0.{number}5")))


def gradient_by_python(number, x):
    """Of the sum over the threads, by central differences."""

    def total(k, step):
        moved = x + step * np.eye(THREADS)[k]
        return sum(by_python(number, moved, thread) for thread in range(THREADS))

    return [(total(k, 1e-6) - total(k, -1e-6)) / 2e-6 for k in range(THREADS)]


def launch(wp, loaded, exact):
    numbers = np.array([-0.3, 0.25, -0.4, 0.2])
    x = wp.array(numbers.astype(np.float32), device="cpu", requires_grad=True)
    out = wp.zeros(THREADS, dtype=float, device="cpu", requires_grad=True)
    ones = wp.array(np.ones(THREADS, dtype=np.float32), device="cpu")
    tape = wp.Tape()
    with tape:
        wp.launch(loaded.leave, dim=THREADS, inputs=[TURNS, x, out], device="cpu")
    tape.backward(grads={out: ones})
    number = int(loaded.__name__[-1])

    def check():
        expected = [by_python(number, numbers, thread) for thread in range(THREADS)]
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)
        if exact:
            np.testing.assert_allclose(x.grad.numpy(), gradient_by_python(number, numbers), rtol=1e-3, atol=1e-4)

    return check


def launch_weft(wp, loaded):
    return launch(wp, loaded, exact=True)


def launch_peer(wp, loaded):
    """Gradients of values that a loop changes are no promise of the peer's."""
    return launch(wp, loaded, exact=False)


if __name__ == "__main__":
    scenario.measure_compile(
        "compile breaks",
        __doc__,
        {"weft": source, "peer": source},
        {"weft": launch_weft, "peer": launch_peer},
        backward=True,
    )
