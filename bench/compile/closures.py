"""The cost of kernels made by a factory: 1000 closures with 10 different captured values, declared and launched.

    python bench/compile/closures.py

CPU time. Prints compiles (target 10), microseconds per declaration (target 20), and microseconds per first launch of a
closure whose code another one already has.
"""

import os
import tempfile
import time

os.environ.setdefault("WARP_CACHE_PATH", tempfile.mkdtemp(prefix="weft-bench-"))

import warp as wp

CLOSURES, VALUES = 1000, 10


def make(n, shift):
    @wp.kernel(module="unique")
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        s = 0.0
        for j in range(n):
            s += x[i] * wp.static(1.0 + shift)
        y[i] = s + shift

    return k


def spent(work):
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def main():
    x, y = wp.ones(16), wp.zeros(16)
    wp.launch(make(1, -1.0), dim=16, inputs=[x, y])  # starts everything that starts once a process
    kernels, declaring = spent(lambda: [make(3 + i % VALUES, float(i % VALUES)) for i in range(CLOSURES)])
    reports = []

    def compile_all(some):
        for kernel in some:
            reports.append(kernel.compile())

    _, first = spent(lambda: compile_all(kernels[:VALUES]))
    _, rest = spent(lambda: compile_all(kernels[VALUES:]))
    _, launching = spent(lambda: [wp.launch(kernel, dim=16, inputs=[x, y]) for kernel in kernels])
    print(f"compiles                       {sum(not report['shared'] for report in reports)}")
    print(f"declaration                    {declaring / CLOSURES * 1e6:.1f} us")
    print(f"compile of a new one           {first / VALUES * 1e3:.1f} ms")
    print(f"finding the code of another    {rest / (CLOSURES - VALUES) * 1e6:.1f} us")
    print(f"launch                         {launching / CLOSURES * 1e6:.1f} us")


if __name__ == "__main__":
    main()
