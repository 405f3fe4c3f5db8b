"""How compile times are taken: kernels written into files, one process with an empty cache, one more with a full one.

A program of this folder makes source texts and launches the kernels that they define. `measure_compile` starts the
program again as a child, twice, on a fresh cache folder; the children time, from the decorator to the result:

* `first`: the first kernel of the process, nothing in the cache;
* `later`: further modules with kernels of their own, nothing in the cache;
* `first cached`, `later cached`: the same sources in the second process, from the disk cache.

Imports and `wp.init()` are over by then; `start.py` times those. The peer compiles only forward code unless a gradient
is asked for. `--cpu` takes the process's CPU time in place of wall-clock time, for busy machines. `--cuda` compiles for
a CUDA device of a driver that does nothing: the time to PTX, and no result to check.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import idle_cuda
import measure

VARIANTS = ("first", "later", "first cached", "later cached")
LATER = 5
"""How many further modules there are."""
device = "cpu"
"""Where the kernels run."""


def _load(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    return module


def _time_module(path: Path, launch: Callable[[ModuleType], Callable[[], None]], clock: Callable[[], int]) -> float:
    start = clock()
    check = launch(_load(path))
    took = clock() - start
    if device == "cpu":
        check()
    return took / 1e6


def measure_compile(
    workload: str,
    description: str,
    sources: dict[str, Callable[[int], str]],
    launches: dict[str, Callable[..., Callable[[], None]]],
    backward: bool = False,
) -> None:
    """Runs the command line of a compile program.

    Args:
        sources: by implementation, the text of module number i; no two numbers may give the same kernels.
        launches: by implementation, called with the implementation's module and with the loaded source: launches every
            kernel once and returns a function that checks the results, which is not timed.
        backward: the kernels are compiled with gradients.
    """
    parser = measure.arguments(description, VARIANTS, tuple(sources))
    parser.add_argument("--child", type=Path, help="(used by the program itself) folder of sources and cache")
    parser.add_argument("--state", choices=("cold", "cached"), help="(used by the program itself)")
    parser.add_argument("--cpu", action="store_true", help="CPU time of the process, not wall-clock time")
    parser.add_argument("--cuda", action="store_true", help="for a CUDA device that does nothing; Weft only")
    options = parser.parse_args()
    try:
        if options.child is None:
            _parent(options, sources[options.implementation])
        else:
            _child(workload, options, launches[options.implementation], backward)
    except Exception as error:
        measure.report_failure(workload, "all", options, error)
        sys.exit(1)


def _parent(options, source: Callable[[int], str]) -> None:
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        for number in range(1 + LATER):
            (Path(folder) / f"bench_module_{number}.py").write_text(source(number))
        cache = Path(folder) / "cache"
        cache.mkdir()
        environment = dict(
            os.environ,
            WARP_CACHE_PATH=str(cache),
            WEFT_BENCH_PEER_CACHE=str(cache),
            NUMBA_CACHE_DIR=str(cache),
            PYTHONDONTWRITEBYTECODE="1",
        )
        for state in ("cold", "cached"):
            command = [sys.executable, sys.argv[0], "--with", options.implementation]
            command += ["--child", folder, "--state", state] + (["--fast"] if options.fast else [])
            command += (["--cpu"] if options.cpu else []) + (["--cuda"] if options.cuda else [])
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
            lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
            wanted = options.variant or VARIANTS
            for line in lines:
                if any(f'"variant": "{variant}"' in line for variant in wanted) or '"error"' in line:
                    print(line, flush=True)
            if done.returncode:
                sys.exit(done.returncode)


def _child(workload: str, options, launch: Callable[..., Callable[[], None]], backward: bool) -> None:
    global device
    if options.cuda:
        idle_cuda.choose()
        device, workload = "cuda:0", workload + " to PTX"
    if options.implementation == "numba":
        module = measure.import_numba(options.fast)
    else:
        module = measure.import_warp(options.implementation, options.fast, backward)
        module.set_device(device)
    clock = time.process_time_ns if options.cpu else time.perf_counter_ns
    times = []
    for number in range(1 + LATER):
        path = options.child / f"bench_module_{number}.py"
        times.append(_time_module(path, lambda loaded: launch(module, loaded), clock))
    suffix = " cached" if options.state == "cached" else ""
    measure.report(workload, "first" + suffix, options, times[:1])
    measure.report(workload, "later" + suffix, options, times[1:])
