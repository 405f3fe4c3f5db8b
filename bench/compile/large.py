"""Compile and run time of large values: `W[1] * tanh(W[0] * x)` with square matrices, and a local vector that a loop
writes, forward and with the adjoint.

Prints a table by sizes: ms until the first result (an empty cache; the kernels of a small size have been compiled
before), and us for one thread of a launch with 64. Run it by hand: `python bench/compile/large.py [--sizes 4 16 64]
[--lengths 100 10000]`. Each number is taken in a process of its own; a size that takes longer than a minute says so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure
import numpy as np
import scenario

THREADS = 64
MOST_SECONDS = 60

LAYER = """
import warp as wp

N = {size}
matrix = wp.types.matrix(shape=(N, N), dtype=float)
vector = wp.types.vector(length=N, dtype=float)


@wp.kernel
def layer(W: wp.array(dtype=matrix), x: wp.array(dtype=vector), y: wp.array(dtype=vector)):
    i = wp.tid()
    h = W[0] * x[i]
    for k in range(N):
        h[k] = wp.tanh(h[k])
    y[i] = W[1] * h
"""

VECTOR = """
import warp as wp

N = {size}
vector = wp.types.vector(length=N, dtype=float)


@wp.kernel
def sums(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = vector()
    for k in range(N):
        v[k] = x[(k + i) % 16] * 2.0
    s = float(0.0)
    for k in range(N):
        s += v[N - 1 - k] * float(k % 3)
    y[i] = s
"""


def arrays_of(wp, workload, module, adjoint):
    rng = np.random.default_rng(1)

    def array(shape, dtype):
        values = (rng.standard_normal(shape) / np.sqrt(module.N)).astype(np.float32)
        return wp.array(values, dtype=dtype, requires_grad=adjoint)

    if workload == "vector":
        return [array(16, float), wp.zeros(THREADS, dtype=float, requires_grad=adjoint)]
    weights = array((2, module.N, module.N), module.matrix)
    x = array((THREADS, module.N), module.vector)
    return [weights, x, wp.zeros(THREADS, dtype=module.vector, requires_grad=adjoint)]


def prepare(wp, workload, size, adjoint, folder):
    """A function that launches, and one that checks the result."""
    path = Path(folder) / f"{workload}_{size}.py"
    path.write_text((LAYER if workload == "layer" else VECTOR).format(size=size))
    module = scenario._load(path)
    kernel = module.layer if workload == "layer" else module.sums
    arrays = arrays_of(wp, workload, module, adjoint)
    ones = wp.array(np.ones(arrays[-1].numpy().shape, dtype=np.float32), dtype=arrays[-1].dtype)

    def run():
        if not adjoint:
            wp.launch(kernel, dim=THREADS, inputs=arrays)
        else:
            tape = wp.Tape()
            with tape:
                wp.launch(kernel, dim=THREADS, inputs=arrays)
            tape.backward(grads={arrays[-1]: ones})
        wp.synchronize()

    def check():
        if workload == "layer":
            weights, x, y = (a.numpy().astype(float) for a in arrays)
            np.testing.assert_allclose(y, np.tanh(x @ weights[0].T) @ weights[1].T, atol=1e-4)

    return run, check


def child(options):
    wp = measure.import_warp("weft", False, options.adjoint)
    wp.set_device("cpu")
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        prepare(wp, options.child, 3, options.adjoint, folder)[0]()
        run, check = prepare(wp, options.child, options.size, options.adjoint, folder)
        clock = time.process_time if options.cpu else time.perf_counter
        start = clock()
        run()
        first = clock() - start
        check()
        times = []
        while len(times) < 5 or sum(times) < 0.3:
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
    print(json.dumps([1e3 * (first - min(times)), 1e6 * min(times) / THREADS]))


def measured(workload, size, adjoint, cpu):
    command = [sys.executable, __file__, "--child", workload, "--size", str(size)]
    command += [*(["--adjoint"] if adjoint else []), *(["--cpu"] if cpu else [])]
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as cache:
        environment = dict(os.environ, WARP_CACHE_PATH=cache, PYTHONDONTWRITEBYTECODE="1")
        try:
            done = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, text=True, timeout=MOST_SECONDS, check=True
            )
        except subprocess.TimeoutExpired:
            return f"more than {MOST_SECONDS} s"
    compile_ms, run_us = json.loads(done.stdout.splitlines()[-1])
    return f"{compile_ms:.0f} ms, {run_us:.2f} us"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[4, 8, 16, 32, 64, 128], help="of the matrices")
    parser.add_argument("--lengths", type=int, nargs="*", default=[100, 1000, 10000], help="of the vectors")
    parser.add_argument("--cpu", action="store_true", help="CPU time of the process in place of ms: for busy machines")
    parser.add_argument("--child", choices=("layer", "vector"), help="(used by the program itself)")
    parser.add_argument("--size", type=int, help="(used by the program itself)")
    parser.add_argument("--adjoint", action="store_true", help="(used by the program itself)")
    options = parser.parse_args()
    if options.child:
        return child(options)
    print("| what | forward | with its adjoint |\n|---|---|---|")
    for workload, sizes in (("layer", options.sizes), ("vector", options.lengths)):
        for size in sizes:
            name = f"{size} x {size}" if workload == "layer" else f"vector of {size}"
            forward, both = (measured(workload, size, adjoint, options.cpu) for adjoint in (False, True))
            print(f"| {name} | {forward} | {both} |", flush=True)
    return None


if __name__ == "__main__":
    main()
