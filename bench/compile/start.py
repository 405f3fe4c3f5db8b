"""The cost of `import warp` and `wp.init()` beyond NumPy, in a process of its own.

`import` is the time in milliseconds, `memory` the growth of the process in MiB (printed as `ms`, as all figures are).
"""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

CHILD = """
import os, sys, time
import numpy

def resident_mib():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

before = resident_mib()
start = time.perf_counter_ns()
if sys.argv[1] == "numba":
    import numba
else:
    import warp
    warp.config.quiet = True
    warp.init()
took = (time.perf_counter_ns() - start) / 1e6
print("figures", took, resident_mib() - before, resident_mib())
"""

if __name__ == "__main__":
    variants = ("import", "memory", "memory in all")
    parser = measure.arguments(__doc__, variants, ("weft", "peer", "numba"))
    options = parser.parse_args()
    figures = []
    for _ in range(5):
        command = [sys.executable, "-c", CHILD, options.implementation]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            measure.report_failure("start", "all", options, RuntimeError(done.stderr.strip()[-1500:]))
            sys.exit(1)
        line = next(line for line in done.stdout.splitlines() if line.startswith("figures "))
        figures.append([float(word) for word in line.split()[1:]])
    for variant, values in zip(variants, zip(*figures)):
        if variant in (options.variant or variants):
            measure.report("start", variant, options, values)
