"""The common part of all measurements: the command line, the clock, and one JSON line per figure.

A program of `bench/throughput` describes one workload: its input, its result according to NumPy, and one function per
implementation that returns a `Job`. `throughput` does the rest. Everything here runs under the Python of
Weft, of the peer and of Numba alike, and imports nothing but NumPy until an implementation is chosen.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import sys
import time
import timeit
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
BUILT = Path(os.environ.get("WEFT_BENCH_BUILD", ROOT / "build" / "bench"))
"""Folder of the C++ programs and of the caches of the peers."""

GRADIENTS = ("weft", "peer", "jax", "torch", "cpp")
IMPLEMENTATIONS = ("weft", "peer", "numba", "cpp")


@dataclass
class Job:
    """One implementation of a workload, ready to run."""

    run: Callable[[], Any]
    """Does the work once and returns when it is done."""
    result: Callable[[], np.ndarray]
    """What the runs so far have computed."""


def arguments(description: str, variants: Sequence[str], implementations: Sequence[str] = IMPLEMENTATIONS):
    """Parses the command line that every program has; each may add its own options before parsing."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--with", dest="implementation", choices=implementations, default="weft")
    parser.add_argument("--variant", choices=variants, action="append", help="default: all of them")
    parser.add_argument("--fast", action="store_true", help="fast math: reordering allowed")
    parser.add_argument("--seconds", type=float, default=0.4, help="time to spend on each figure")
    return parser


def report(workload: str, variant: str, options: argparse.Namespace, times_ms: Sequence[float]) -> None:
    """Prints a figure as a JSON line."""
    line = {
        "workload": workload,
        "variant": variant,
        "with": options.implementation,
        "fast": bool(options.fast),
        "ms": statistics.median(times_ms),
        "ms_min": min(times_ms),
        "repeats": len(times_ms),
    }
    print(json.dumps(line), flush=True)


def report_failure(workload: str, variant: str, options: argparse.Namespace, error: BaseException) -> None:
    """Prints why there is no figure, in the same form."""
    text = f"{type(error).__name__}: {error}".strip()
    line = {
        "workload": workload,
        "variant": variant,
        "with": options.implementation,
        "fast": bool(options.fast),
        "error": text if len(text) < 2000 else text[:2000] + " …",
    }
    print(json.dumps(line), flush=True)


def import_warp(implementation: str, fast: bool = False, backward: bool = False) -> ModuleType:
    """Imports `warp`, of Weft or of the peer, set for the CPU; for forward code only, unless `backward`."""
    import warp as wp

    is_weft = hasattr(wp, "_weft")
    if is_weft != (implementation == "weft"):
        found = "Weft" if is_weft else "the peer"
        raise SystemExit(
            f"--with {implementation}: `import warp` found {found} in {wp.__file__}. "
            "Run Weft with .venv/bin/python and the peer with .venv-peer/bin/python."
        )
    wp.config.quiet = True
    wp.config.enable_backward = backward
    wp.config.fast_math = fast
    if implementation == "peer":
        wp.config.kernel_cache_dir = os.environ.get("WEFT_BENCH_PEER_CACHE", str(BUILT / "cache" / "peer"))
    wp.init()
    wp.set_device("cpu")
    return wp


def import_numba(fast: bool = False) -> ModuleType:
    """Imports Numba with a disk cache of its own: Numba's key leaves out `fastmath`, so each setting has its folder."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(BUILT / "cache" / ("numba-fast" if fast else "numba")))
    import numba

    return numba


def load_cpp(workload: str, fast: bool) -> ctypes.CDLL:
    """Loads the hand-written loops of a workload; `bench/run.py --build` makes the libraries."""
    path = BUILT / f"{workload}{'-fast' if fast else ''}.so"
    if not path.exists():
        raise FileNotFoundError(f"{path} is not built; run bench/run.py --build")
    return ctypes.CDLL(str(path))


def call_cpp(function: Any, *values: Any) -> Callable[[], None]:
    """Binds arguments to a C function once, so that a call costs a microsecond and no conversions.

    Arrays go as pointers, Python integers as int64_t, floats as double; a NumPy scalar keeps its type.
    """
    keep, converted = [], []
    for value in values:
        if isinstance(value, np.ndarray):
            assert value.flags.c_contiguous
            keep.append(value)
            converted.append(ctypes.c_void_p(value.ctypes.data))
        elif isinstance(value, np.generic):
            converted.append(np.ctypeslib.as_ctypes_type(value.dtype)(value.item()))
        else:
            converted.append(ctypes.c_int64(value) if isinstance(value, int) else ctypes.c_double(value))
    function.restype = None

    def call(_keep=keep):
        function(*converted)

    return call


def aligned(array: np.ndarray, alignment: int = 64) -> np.ndarray:
    """A copy of an array that starts on a cache line."""
    memory = np.empty(array.nbytes + alignment, dtype=np.uint8)
    start = -memory.ctypes.data % alignment
    result = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def time_repeats(run: Callable[[], Any], seconds: float, least: int = 5, most: int = 400) -> list[float]:
    """Times single runs for about the given time; milliseconds of each."""
    clock = time.perf_counter_ns
    start = clock()
    run()
    first = max(clock() - start, 1)
    count = int(min(max(seconds * 1e9 / first, least), most))
    times = []
    for _ in range(count):
        start = clock()
        run()
        times.append((clock() - start) / 1e6)
    return times


def time_statement(statement: str, names: dict[str, Any], seconds: float) -> list[float]:
    """Times a statement of a microsecond or so in batches; milliseconds per execution, one figure per batch."""
    timer = timeit.Timer(statement, globals=names)
    timer.timeit(10)
    once = max(timer.timeit(200) / 200, 1e-9)
    batch = int(min(max(0.01 / once, 10), 200_000))
    batches = int(min(max(seconds / (once * batch), 5), 100))
    return [timer.timeit(batch) / batch * 1e3 for _ in range(batches)]


def throughput(
    workload: str,
    description: str,
    variants: Sequence[str],
    problem: Callable[[str], dict[str, Any]],
    expected: Callable[[str, dict[str, Any]], np.ndarray],
    implementations: dict[str, Callable[..., Job]],
    tolerance: Callable[[str], dict[str, float]] = lambda variant: {"rtol": 1e-5},
) -> None:
    """Runs the command line of a throughput program: for each variant, checks the result of one run, then times it.

    Args:
        problem: makes the input of a variant.
        expected: the result of one run by NumPy.
        implementations: by name; called with the module (`wp`, `numba`, or the C++ library), the variant, the input and
            the options, they return a `Job`.
        tolerance: of the check, as `numpy.testing.assert_allclose` takes it.
    """

    def time_job(options, variant, data, job) -> None:
        job.run()
        np.testing.assert_allclose(job.result(), expected(variant, data), **tolerance(variant))
        report(workload, variant, options, time_repeats(job.run, options.seconds))

    _run_variants(workload, description, variants, problem, implementations, time_job)


def _run_variants(workload, description, variants, problem, implementations, time_job, backward=False) -> NoReturn:
    """Runs the command line: ``time_job(options, variant, data, job)`` checks and reports on the job of a variant."""
    options = arguments(description, variants, tuple(implementations)).parse_args()
    name = options.implementation
    failed = False
    for variant in options.variant or variants:
        try:
            if name == "cpp":
                module = load_cpp(workload, options.fast)
            elif name == "numba":
                module = import_numba(options.fast)
            elif name == "numpy":
                module = np
            elif name in ("jax", "torch"):
                module = __import__(name)
            else:
                module = import_warp(name, options.fast, backward)
            data = problem(variant)
            time_job(options, variant, data, implementations[name](module, variant, data, options))
        except Exception as error:  # a row that says why, and on with the next variant
            failed = True
            report_failure(workload, variant, options, error)
    sys.exit(1 if failed else 0)


@dataclass
class Queued:
    """One variant of a program of `gpu/`, ready to run."""

    run: Callable[[], Any]
    """Puts the work into the stream once."""
    wait: Callable[[], Any]
    """Returns when all of it is done."""
    check: Callable[[], Any]
    """Raises where one run, which is done, has computed something else than it should."""
    batch: int
    """How many runs stand between two waits."""


def queued(
    workload: str, options: argparse.Namespace, variants: Sequence[str], prepare: Callable[[str], Queued]
) -> NoReturn:
    """For each variant, checks one run, then times batches of them and reports the time of one."""
    failed = False
    for variant in options.variant or variants:
        try:
            work = prepare(variant)
            work.run()
            work.wait()
            work.check()

            def batch(work=work) -> None:
                for _ in range(work.batch):
                    work.run()
                work.wait()

            report(workload, variant, options, [time / work.batch for time in time_repeats(batch, options.seconds)])
        except Exception as error:  # a row that says why, and on with the next variant
            failed = True
            report_failure(workload, variant, options, error)
    sys.exit(1 if failed else 0)


@dataclass
class Gradient:
    """One implementation of a workload of `gradients/`, ready to run."""

    forward: Callable[[], Any]
    """Computes the values once."""
    both: Callable[[], Any]
    """Computes the values and the gradient."""
    result: Callable[[], Sequence[np.ndarray]]
    """The gradients that the last run of `both` gave."""


def taped(wp: ModuleType, forward: Callable[[], Any], seeds: Callable[[], dict], of: Sequence[Any]) -> Gradient:
    """A `Gradient` of launches under Weft or the peer: they are recorded anew each time, and every gradient is cleared.

    Args:
        forward: launches the kernels.
        seeds: the gradients of the results, as `Tape.backward` takes them.
        of: the arrays whose gradients are wanted.
    """
    last = [wp.Tape()]

    def both() -> None:
        last[0].zero()
        last[0] = wp.Tape()
        with last[0]:
            forward()
        last[0].backward(grads=seeds())

    return Gradient(forward, both, lambda: [array.grad.numpy().copy() for array in of])


def of_jax(function: Callable[..., Any], arguments: Sequence[np.ndarray], seed: np.ndarray) -> Gradient:
    """A `Gradient` of a jitted function of JAX by all of its arguments."""
    import jax
    import jax.numpy as jnp

    def both(seed, *values):
        result, pull = jax.vjp(function, *values)
        return result, pull(seed)

    forward, gradient = jax.jit(function), jax.jit(both)
    values, seed = [jnp.asarray(a) for a in arguments], jnp.asarray(seed)
    kept = []

    def run() -> None:
        kept[:] = jax.block_until_ready(gradient(seed, *values))[1]

    return Gradient(
        lambda: jax.block_until_ready(forward(*values)), run, lambda: [np.asarray(gradient) for gradient in kept]
    )


def of_torch(function: Callable[..., Any], arguments: Sequence[np.ndarray], seed: np.ndarray) -> Gradient:
    """A `Gradient` of a function of PyTorch by all of its arguments, run eagerly."""
    import torch

    values = [torch.from_numpy(a).requires_grad_() for a in arguments]
    seed = torch.from_numpy(seed)

    def forward() -> None:
        with torch.no_grad():
            function(*values)

    def both() -> None:
        for value in values:
            value.grad = None
        function(*values).backward(seed)

    return Gradient(forward, both, lambda: [value.grad.numpy() for value in values])


def gradients(
    workload: str,
    description: str,
    variants: Sequence[str],
    problem: Callable[[str], dict[str, Any]],
    expected: Callable[[str, dict[str, Any]], Sequence[np.ndarray]],
    implementations: dict[str, Callable[..., Gradient]],
    tolerance: float = 1e-4,
) -> None:
    """Runs the command line of a program of `gradients/`: checks one gradient, then times the forward run and both.

    Args:
        problem: makes the input of a variant.
        expected: the gradients, by NumPy in double precision.
        implementations: by name; called with the module (`wp`, `jax`, `torch`, or the C++ library), the variant, the
            input and the options, they return a `Gradient`.
        tolerance: greatest difference from the expected gradients, relative to the largest of each.
    """

    def time_job(options, variant, data, job) -> None:
        job.both()
        job.both()  # a second time: leftovers of the first must not matter
        for found, right in zip(job.result(), expected(variant, data), strict=True):
            scale = np.abs(right).max()
            wrong = np.abs(found.reshape(right.shape) - right).max() / scale
            if not wrong <= tolerance:
                raise AssertionError(f"the gradient is wrong by {wrong:.2g} of its largest entry, {scale:.4g}")
        report(workload, f"{variant} forward", options, time_repeats(job.forward, options.seconds))
        report(workload, f"{variant} both", options, time_repeats(job.both, options.seconds))

    _run_variants(workload, description, variants, problem, implementations, time_job, backward=True)
