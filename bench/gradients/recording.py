"""The cost of tapes: nanoseconds of a launch of one thread, outside of a tape and on one, and of going back through it.

    python bench/gradients/recording.py [BUILD/py ...]

compares builds, in turn, the best of three processes each. A tape has 2,000 launches, of the same arrays or of others
each time; the kernel is compiled by then. Going back, and tape.zero(), are measured on a tape of 1,000 launches, of
which each reads the result of the one before.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

LAUNCHES, OTHERS, CHAIN, REPEATS, PROCESSES = 2000, 300, 1000, 7, 3


def kernels(wp):
    @wp.kernel
    def none():
        wp.tid()

    @wp.kernel
    def three(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
        i = wp.tid()
        c[i] = a[i] * b[i]

    @wp.kernel
    def eight(
        a: wp.array(dtype=float),
        b: wp.array(dtype=float),
        c: wp.array(dtype=float),
        d: wp.array(dtype=float),
        e: wp.array(dtype=float),
        f: wp.array(dtype=float),
        g: wp.array(dtype=float),
        h: wp.array(dtype=float),
    ):
        i = wp.tid()
        h[i] = a[i] * b[i] + c[i] * d[i] + e[i] * f[i] * g[i]

    return {0: none, 3: three, 8: eight}


def launches(wp, kernel, lists):
    start = time.perf_counter_ns()
    for arrays in lists:
        wp.launch(kernel, dim=1, inputs=arrays)
    return (time.perf_counter_ns() - start) / len(lists)


def taped(wp, kernel, lists):
    with wp.Tape():
        return launches(wp, kernel, lists)


def others(wp):
    """The other recorded operations: host writes, a copy, an operator, which is a kernel, and a sum, which is none."""
    x, y, total = (wp.zeros(count, dtype=float, requires_grad=True) for count in (8, 8, 1))
    return {
        "y.fill_(1.0)": lambda: y.fill_(1.0),
        "y[0] = 1.0": lambda: y.__setitem__(0, 1.0),
        "wp.copy(y, x)": lambda: wp.copy(y, x),
        "x + y": lambda: x + y,
        "array_sum(x)": lambda: wp.utils.array_sum(x, out=total),
    }


def calls(function):
    start = time.perf_counter_ns()
    for _ in range(OTHERS):
        function()
    return (time.perf_counter_ns() - start) / OTHERS


def taped_calls(wp, function):
    with wp.Tape():
        return calls(function)


def going_back(wp, kernel):
    """(backward, zero) for each launch."""
    arrays = [wp.zeros(1, dtype=float, requires_grad=True) for _ in range(CHAIN + 1)]
    with wp.Tape() as tape:
        for last, following in zip(arrays, arrays[1:], strict=False):
            wp.launch(kernel, dim=1, inputs=[last, arrays[0], following])
    seed, best = wp.ones(1, dtype=float), []
    for _ in range(REPEATS):
        times = [time.perf_counter_ns()]
        tape.backward(grads={arrays[-1]: seed})
        times.append(time.perf_counter_ns())
        tape.zero()
        times.append(time.perf_counter_ns())
        best.append([(after - before) / CHAIN for before, after in zip(times, times[1:], strict=False)])
    return [min(column) for column in zip(*best, strict=True)]


def measure():
    import warp as wp

    def arrays(count, smooth):
        return [wp.zeros(1, dtype=float, requires_grad=smooth) for _ in range(count)]

    found = {}
    for count, kernel in kernels(wp).items():
        for smooth in (False, True) if count else (False,):
            same = [arrays(count, smooth)] * LAUNCHES
            launches(wp, kernel, same)
            taped(wp, kernel, same)
            found[f"{count} arrays{', with gradients' if smooth else ''}"] = (
                min(launches(wp, kernel, same) for _ in range(REPEATS)),
                min(taped(wp, kernel, same) for _ in range(REPEATS)),
                min(taped(wp, kernel, [arrays(count, smooth) for _ in range(OTHERS)]) for _ in range(REPEATS)),
            )
    for name, function in others(wp).items():
        calls(function)
        alone, on_tape = (
            min(run() for _ in range(REPEATS)) for run in (lambda: calls(function), lambda: taped_calls(wp, function))
        )
        found[name] = alone, on_tape
    found["backward, zero"] = going_back(wp, kernels(wp)[3])
    return found


def main():
    if sys.argv[1:2] == ["--child"]:
        sys.path.insert(0, sys.argv[2])
        print(json.dumps(measure()))
        return
    builds = sys.argv[1:] or [str(Path(__file__).resolve().parents[2] / "build" / "py")]
    best = {build: {} for build in builds}
    for _ in range(PROCESSES):
        for build in builds:
            command = [sys.executable, __file__, "--child", build]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            for row, times in json.loads(output.splitlines()[-1]).items():
                best[build][row] = [min(pair) for pair in zip(times, best[build].get(row, times), strict=True)]
    for build, rows in best.items():
        print(f"{build}\n{'':26}{'launch':>10}{'on a tape':>12}{'other arrays each time':>25}")
        for row, times in rows.items():
            print(f"{row:26}" + "".join(f"{one:{width}.0f}" for one, width in zip(times, (10, 12, 25), strict=False)))


if __name__ == "__main__":
    main()
