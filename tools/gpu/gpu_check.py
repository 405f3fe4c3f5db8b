"""`make gpu-check`: the checks that need a machine with a GPU, in one report file.

    gpu_check.py [--report gpu-report.json] [--driver PATH] [--quick] [--parts NAME ...]
                 [--suites NAME ...] [--no-suites] [--jobs N]

1. **opcodes.** Each opcode of the emulated device (weft-emulated-cuda.so) is executed on the same numbers by it and by
   the driver: exact ones have to agree in every bit, approximations to the error that PTX allows. Opcodes that the
   driver's compiler refuses are listed: the emulated device takes some modifiers that PTX does not have.
2. **suites.** The tests that run on the emulated device in `make test` run on the GPU, a process for each file and
   several of them at a time. A file that takes longer than SECONDS_OF_A_SUITE is stopped, and counts as failed.
3. **examples.** Each program of the gallery, small.
4. **bench.** `bench/run.py --only gpu` beside the peers that are installed.
5. **machine_code.** `compare_machine_code.py`, if the machine has the CUDA toolkit.
6. **sanitizer.** Some tests under compute-sanitizer, memcheck and racecheck, if the machine has it.

Each part has a time limit. One that fails, or takes too long, leaves the others alone, and the report is written after
each of them. `--quick` (`make gpu-check QUICK=1`) is for a GPU that is lent for minutes: in at most five it runs the
opcodes, the suites of QUICK_SUITES and all rows of the benchmarks.

Needs an installed Weft (a wheel will do), pytest and NumPy, and no CUDA toolkit. Suites that need hypothesis or SciPy
are left out if these are missing, and the last lines say so. Without a GPU it says so and fails; `--driver emulated`
compares the emulated device with itself, which tests this script.
"""

import argparse
import ctypes
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tools"), str(ROOT / "tools" / "gpu")]
import gpu_parts  # noqa: E402
import run_tests  # noqa: E402

SAMPLES = 1024  # numbers for each opcode
BATCH = 48  # opcodes of a module
FAILURES_SHOWN = 40
# Other frameworks in one process with Weft, if the machine has builds of them for its GPU.
FRAMEWORKS = ["tests/interop/test_gpu_frameworks.py", "tests/interop/test_numba_cupy.py"]
OUTPUT_KEPT = 100_000  # characters of a suite that failed
NO_TESTS = 5  # pytest's exit code if it has collected none
ENDED_WELL = (0, 1, NO_TESTS)  # 1: with failures
SECONDS_OF_A_SUITE = 300
TIMED_OUT = "timed out"  # in place of pytest's exit code
NOT_BEGUN = "not begun: the time of the suites was over"
MOST_AT_A_TIME = 8  # processes that share the GPU
PARTS = ("opcodes", "suites", "examples", "bench", "machine_code", "sanitizer")
# Seconds that a part has; the suites have theirs for each file.
SECONDS = {"suites": 7200, "examples": 900, "bench": 1800, "machine_code": 900, "sanitizer": 1800}
QUICK_PARTS = ("opcodes", "suites", "bench")
QUICK_SECONDS = {"suites": 100, "bench": 140}
QUICK_SUITES = [
    "tests/cuda/test_primitives.py",
    "tests/geometry/test_mesh.py",
    "tests/geometry/test_hash_grid.py",
    "tests/cuda/test_graphs.py",
    "tests/cuda/test_cuda.py",
    "tests/cuda/test_thread_coarsening.py",
    "tests/builtins/test_atomics.py",
    "tests/gradients/test_kernels.py",
    "tests/launches/test_launch.py",
    "tests/arrays/test_kernel_arrays.py",
]

# The PTX version that a driver of a CUDA version knows.
PTX_OF_CUDA = {
    11080: "7.8",
    12000: "8.0",
    12010: "8.1",
    12020: "8.2",
    12030: "8.3",
    12040: "8.4",
    12050: "8.5",
    12060: "8.5",
    12080: "8.7",
    12090: "8.8",
    13000: "9.0",
}


# ---- the driver ----


class DriverError(Exception):
    pass


class Driver:
    """The functions of a CUDA driver that are needed here, on its first device."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, device)
        self.name = name.value.decode()
        self.arch = 10 * self.attribute(75, device) + self.attribute(76, device)
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.version = version.value
        known = [cuda for cuda in PTX_OF_CUDA if cuda <= self.version]
        if not known:
            raise DriverError(f"the driver is for CUDA {self.version}, expected at least {min(PTX_OF_CUDA)}")
        self.ptx = PTX_OF_CUDA[max(known)]

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result:
            raise DriverError(f"{name}() gave {result}")

    def attribute(self, number, device):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    def load(self, text):
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), text.encode() + b"\0")
        return module

    def run(self, module, kernel, inputs, words):
        """The results of a kernel, `words` 64-bit words for each row of the inputs."""
        function, source, target = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64()
        count = len(inputs)
        results = np.zeros((count, words), dtype=np.uint64)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        self.call("cuMemAlloc_v2", ctypes.byref(source), ctypes.c_size_t(inputs.nbytes))
        self.call("cuMemAlloc_v2", ctypes.byref(target), ctypes.c_size_t(results.nbytes))
        try:
            self.call("cuMemcpyHtoD_v2", source, ctypes.c_void_p(inputs.ctypes.data), ctypes.c_size_t(inputs.nbytes))
            parameters = (ctypes.c_void_p * 2)(
                ctypes.cast(ctypes.byref(source), ctypes.c_void_p), ctypes.cast(ctypes.byref(target), ctypes.c_void_p)
            )
            self.call("cuLaunchKernel", function, count // 128, 1, 1, 128, 1, 1, 0, None, parameters, None)
            self.call("cuCtxSynchronize")
            self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(results.ctypes.data), target, ctypes.c_size_t(results.nbytes))
        finally:
            self.call("cuMemFree_v2", source)
            self.call("cuMemFree_v2", target)
        return results


# ---- a kernel for an opcode ----


def opcodes_of(emulated):
    """{opcode: (kind and bits of its result, of each source)} that the emulated device knows."""
    emulated.library.weftEmulatedOpcodes.restype = ctypes.c_char_p
    rows = (line.split() for line in emulated.library.weftEmulatedOpcodes().decode().splitlines())
    found = {}
    for opcode, *slots in rows:
        found.setdefault(opcode, [(slot[0], int(slot[1:])) for slot in slots])
    return found


def kernel_text(name, opcode, slots):
    """PTX that applies an opcode to four words of a row, and writes the result and the carry."""
    result, *sources = slots
    lines = []
    for i, (_, bits) in enumerate(sources):
        if bits == 1:
            lines.append(f"and.b64 %rd9, %rd{i}, 1; setp.ne.u64 %p{i}, %rd9, 0;")
        elif bits < 64:
            lines.append(f"cvt.u{bits}.u64 %{'h' if bits == 16 else 'r'}{i}, %rd{i};")
    registers = {1: "%p", 16: "%h", 32: "%r", 64: "%rd"}
    operands = [registers[bits] + str(i) for i, (_, bits) in enumerate(sources)]
    if opcode.startswith("lop3"):
        operands[-1] = "0xE8"  # has to be in the code: the majority of three
    target = registers[result[1]] + "7"
    family = "sub" if opcode.startswith("sub") else "add"
    has_carry = re.match(r"(add|sub|mad)c\b|.*\.cc\.", opcode)
    if has_carry:
        other = "0, %r9" if family == "sub" else "%r9, 0xffffffff"
        lines.append(f"cvt.u32.u64 %r9, %rd3; and.b32 %r9, %r9, 1; {family}.cc.u32 %r8, {other};")
    lines.append(f"{opcode} {target}, {', '.join(operands)};")
    if has_carry:
        lines.append(f"{family}c.u32 %r8, 0, 0; cvt.u64.u32 %rd8, %r8;")
    else:
        lines.append("mov.b64 %rd8, 0;")
    if result[1] == 1:
        lines.append("selp.u64 %rd7, 1, 0, %p7;")
    elif result[1] < 64:
        lines.append(f"cvt.u64.u{result[1]} %rd7, {target};")
    body = "\n  ".join(lines)
    return f""".visible .entry {name}(.param .u64 source, .param .u64 target) {{
  .reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<20>; .reg .b64 %rd<20>;
  ld.param.u64 %rd10, [source]; ld.param.u64 %rd11, [target];
  mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ntid.x; mov.u32 %r12, %tid.x;
  mad.lo.u32 %r10, %r10, %r11, %r12;
  mul.wide.u32 %rd12, %r10, 32; add.u64 %rd10, %rd10, %rd12;
  mul.wide.u32 %rd12, %r10, 16; add.u64 %rd11, %rd11, %rd12;
  ld.global.u64 %rd0, [%rd10]; ld.global.u64 %rd1, [%rd10+8];
  ld.global.u64 %rd2, [%rd10+16]; ld.global.u64 %rd3, [%rd10+24];
  {body}
  st.global.u64 [%rd11], %rd7; st.global.u64 [%rd11+8], %rd8;
  ret;
}}
"""


def module_text(driver, arch, names, opcodes):
    header = f".version {driver.ptx}\n.target sm_{arch}\n.address_size 64\n"
    return header + "".join(kernel_text(name, opcode, opcodes[opcode]) for name, opcode in names.items())


# ---- numbers ----

SPECIAL = {
    16: "0 8000 1 8001 3ff 400 3c00 bc00 7bff 7c00 fc00 7e00 3f80 7f80 ff80 7fff",
    32: "0 1 7fffffff 80000000 ffffffff 3f800000 bf800000 7f800000 ff800000 7fc00000 800000 7fffff 80000001 7f7fffff"
    " 3f000000 4f000000 cf000000 4f800000 477ff000 33000001",
    64: "0 1 7fffffffffffffff 8000000000000000 ffffffffffffffff 3ff0000000000000 bff0000000000000 7ff0000000000000"
    " fff0000000000000 7ff8000000000000 10000000000000 fffffffffffff 43e0000000000000 c3e0000000000000 43f0000000000000"
    " 47effffff0000000 36a0000000000000",
}


def numbers(random, kind, bits, count):
    """64-bit words for a source: special numbers, any bits, small integers, floats of moderate size."""
    if bits == 1:
        return random.integers(0, 2, count, dtype=np.uint64)
    ones = (1 << bits) - 1
    any_bits = random.integers(0, 2**64, count, dtype=np.uint64)
    small = (random.integers(-70, 70, count).astype(np.int64)).view(np.uint64)
    special = random.choice(np.array([int(word, 16) for word in SPECIAL[bits].split()], dtype=np.uint64), count)
    value = np.ldexp(random.uniform(-1, 1, count), random.integers(-8, 16, count))
    value = np.where(random.random(count) < 0.5, np.round(value, 2), value)
    single, half = value.astype(np.float32).view(np.uint32).astype(np.uint64), value.astype(np.float16).view(np.uint16)
    half = single >> np.uint64(16) if kind == "b" and bits == 16 else half.astype(np.uint64)
    floats = {16: half, 32: single, 64: value.view(np.uint64)}[bits]
    if kind == "x":  # two of half the size
        part = half if bits == 32 else single
        floats = part | np.roll(part, 1) << np.uint64(bits // 2)
    chosen = np.choose(random.integers(0, 8, count), [special, any_bits, small, small, floats, floats, floats, floats])
    return chosen & np.uint64(ones)


# ---- comparing ----

# The greatest relative error of approximations that PTX allows, and an absolute one for sines; of others none.
APPROXIMATE = [
    (r"(sin|cos)\.approx", 0.0, 2.0**-20),
    (r"(ex2|lg2|tanh)\.approx(\.ftz)?\.(f16|bf16)", 2.0**-7, 2.0**-10),
    (r"lg2\.approx", 2.0**-20, 2.0**-22),
    (r"tanh\.approx", 2.0**-10, 0.0),
    (r"(rcp|rsqrt)\.approx(\.ftz)?\.f64", 2.0**-18, 0.0),
    (r"(rcp|sqrt|rsqrt|ex2|div)\.(approx|full)", 2.0**-20, 0.0),
]


def result_type(opcode):
    words = opcode.split(".")
    if words[0] in ("setp", "testp"):
        return "pred"
    return words[-2] if words[0] == "cvt" else words[-1]


def as_numbers(words, kind):
    """The floats in words, as float64 of one or two columns; None if the result is no float."""
    if kind in ("f16x2", "bf16x2", "f32x2"):
        size = np.uint64(32 if kind == "f32x2" else 16)
        parts = [words & ((np.uint64(1) << size) - np.uint64(1)), words >> size]
        return np.stack([as_numbers(part, kind[:-2])[:, 0] for part in parts], axis=1)
    with np.errstate(all="ignore"):
        if kind == "f64":
            return words.view(np.float64)[:, None]
        if kind == "f32":
            return words.astype(np.uint32).view(np.float32).astype(np.float64)[:, None]
        if kind == "f16":
            return words.astype(np.uint16).view(np.float16).astype(np.float64)[:, None]
        if kind == "bf16":
            return (words.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)[:, None]
    return None


def undefined(opcode, inputs):
    """The inputs whose result PTX leaves undefined: integer divisions by zero and of the least number by -1, bit fields
    with positions or lengths above 255, approximate sines and cosines of large angles."""
    if re.match(r"(div|rem)\.[us]\d", opcode):
        bits = np.uint64(int(opcode[-2:]))
        ones = (np.uint64(1) << bits) - np.uint64(1) if bits < 64 else np.uint64(2**64 - 1)
        a, b = inputs[:, 0] & ones, inputs[:, 1] & ones
        return (b == 0) | ((b == ones) & (a == (ones >> np.uint64(1)) + np.uint64(1)))
    if re.match(r"bf[ei]\.", opcode):
        first = 1 if opcode.startswith("bfe") else 2
        return ((inputs[:, first : first + 2] & np.uint64(0xFFFFFFFF)) > 255).any(axis=1)
    if re.match(r"(sin|cos)\.approx", opcode):
        with np.errstate(all="ignore"):
            return ~(np.abs(inputs[:, 0].astype(np.uint32).view(np.float32)) <= 2 * np.pi)
    return np.zeros(len(inputs), dtype=bool)


def differing(opcode, inputs, expected, found):
    """The rows in which two results differ by more than PTX allows."""
    differs = (expected != found).any(axis=1) & ~undefined(opcode, inputs)
    one, two = (as_numbers(np.ascontiguousarray(words[:, 0]), result_type(opcode)) for words in (expected, found))
    if one is None:
        return np.flatnonzero(differs)
    relative, absolute = next((bound[1:] for bound in APPROXIMATE if re.match(bound[0], opcode)), (0.0, 0.0))
    with np.errstate(all="ignore"):
        close = np.abs(one - two) <= relative * np.abs(one) + absolute
    # Signs of zeros count if the result is exact.
    same = (np.isnan(one) & np.isnan(two)) | ((relative + absolute > 0) & (close | (one == two)))
    same |= (one == two) & (np.signbit(one) == np.signbit(two))
    return np.flatnonzero(differs & ~(same.all(axis=1) & (expected[:, 1] == found[:, 1])))


# ---- opcodes on both ----


def run_opcodes(driver, arch, opcodes, inputs):
    """{opcode: its results, or why the driver does not take it}"""
    results = {}

    def run(chosen):
        names = {f"op_{i}": opcode for i, opcode in enumerate(chosen)}
        try:
            module = driver.load(module_text(driver, arch, names, opcodes))
        except DriverError as error:
            if len(chosen) == 1:
                results[chosen[0]] = str(error)
                return
            run(chosen[: len(chosen) // 2])
            run(chosen[len(chosen) // 2 :])
            return
        for name, opcode in names.items():
            results[opcode] = driver.run(module, name, inputs[opcode], 2)
        driver.call("cuModuleUnload", module)

    every = list(opcodes)
    for first in range(0, len(every), BATCH):
        run(every[first : first + BATCH])
    return results


def inputs_for(opcodes):
    random = np.random.default_rng(2026)
    made = {}
    for opcode, (_, *sources) in opcodes.items():
        rows = random.integers(0, 2**64, (SAMPLES, 4), dtype=np.uint64)
        for i, (kind, bits) in enumerate(sources):
            rows[:, i] = numbers(random, kind, bits, SAMPLES)
        made[opcode] = rows
    return made


def compare_opcodes(emulated, driver):
    """How many opcodes agree, which differ (with one example), and which the driver's compiler refuses."""
    opcodes = opcodes_of(emulated)
    inputs = inputs_for(opcodes)
    arch = min(emulated.arch, driver.arch)
    expected = run_opcodes(emulated, arch, opcodes, inputs)
    found = run_opcodes(driver, arch, opcodes, inputs)
    report = {"agree": 0, "differ": {}, "refused": [], "refused_by_the_emulated_device": []}
    for opcode in opcodes:
        if isinstance(expected[opcode], str):
            report["refused_by_the_emulated_device"].append(opcode)
        elif isinstance(found[opcode], str):
            report["refused"].append(opcode)
        elif len(rows := differing(opcode, inputs[opcode], expected[opcode], found[opcode])):
            row = rows[0]
            report["differ"][opcode] = {
                "rows": len(rows),
                "of": [hex(word) for word in inputs[opcode][row]],
                "emulated": [hex(word) for word in expected[opcode][row]],
                "found": [hex(word) for word in found[opcode][row]],
            }
        else:
            report["agree"] += 1
    return report


# ---- suites ----


def run_suite(name, driver, deadline):
    """Runs one file, and says how it went: counts of outcomes, the tests that failed, and their output."""
    start = time.monotonic()
    limit = min(SECONDS_OF_A_SUITE, deadline - start)
    if limit <= 0:
        return {"returned": NOT_BEGUN, "seconds": 0.0, "failures": [], "skips": Counter(), "output": ""}
    with tempfile.TemporaryDirectory() as folder:
        report, output = Path(folder, "report.json"), Path(folder, "output")
        # A test that hangs shows where, before the file is stopped.
        hangs = f"faulthandler_timeout={SECONDS_OF_A_SUITE // 2}"
        command = [sys.executable, "-m", "pytest", "-q", "-o", hangs, "--device", "cuda:0", "--report", report, name]
        environment = {**os.environ, **({"WARP_CUDA_DRIVER": driver} if driver else {})}
        with output.open("w") as file:
            try:
                returned = subprocess.run(
                    command,
                    cwd=ROOT,
                    env=environment,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    timeout=limit,
                ).returncode
            except subprocess.TimeoutExpired:
                returned = TIMED_OUT
        if not report.exists() and returned in ENDED_WELL:
            returned = f"{returned} without a report"
        tests = json.loads(report.read_text()) if report.exists() else {}
        text = output.read_text(errors="replace")
    outcomes = [test["outcome"] for test in tests.values()]
    failed = [test for test, shown in tests.items() if shown["outcome"] in ("failed", "not run")]
    counts = {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}
    seconds = round(time.monotonic() - start, 1)
    print(f"{name}: {counts}, {seconds} s", flush=True)
    skipped = Counter(test["reason"] for test in tests.values() if test["outcome"] == "skipped")
    return {
        "returned": returned,
        "seconds": seconds,
        **counts,
        "failures": failed,
        "skips": skipped,
        "output": text[-OUTPUT_KEPT:] if failed or crashed(returned) else "",
    }


OUTCOMES = ("passed", "failed", "skipped", "xfailed", "not run")


def crashed(returned):
    return returned not in ENDED_WELL


def left_out(suites):
    """A line for each package that suites need and the machine lacks."""
    prefix = "needs the Python package "
    skips = sum((suite["skips"] for suite in suites.values()), Counter())
    for reason, count in sorted(skips.items()):
        if reason.startswith(prefix):
            package = reason.removeprefix(prefix)
            yield f"left out: {count} files or tests need {package}. help: pip install {package}"


def find_driver(name):
    import warp as wp

    folder = Path(wp.__file__).parent
    emulated = folder / "weft-emulated-cuda.so"
    return emulated, emulated if name == "emulated" else name or "libcuda.so.1"


def run_suites(options):
    seconds = (QUICK_SECONDS if options.quick else SECONDS)["suites"]
    suites = options.suites or (QUICK_SUITES if options.quick else [*run_tests.files_on_cuda(), *FRAMEWORKS])
    jobs = options.jobs or min(MOST_AT_A_TIME, len(os.sched_getaffinity(0)))
    deadline = time.monotonic() + seconds
    with ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda name: run_suite(name, options.driver, deadline), suites)
        return dict(zip(suites, results, strict=True))


def run_part(name, options, driver, emulated):
    """The part's place in the report. A failure of the part itself is an outcome, too."""
    is_emulated = options.driver == "emulated"
    limits = QUICK_SECONDS if options.quick else SECONDS
    try:
        if name == "opcodes":
            return compare_opcodes(emulated, driver)
        if name == "suites":
            return run_suites(options)
        if name == "bench":
            return gpu_parts.bench(options.driver, limits[name], options.quick, small=is_emulated)
        return getattr(gpu_parts, name)(options.driver, limits[name])
    except Exception as error:
        return {"outcome": "failed", "seconds": 0.0, "why": f"{type(error).__name__}: {error}"}


def failures_of(report):
    """A line for everything that went wrong."""
    found = []
    opcodes = report.get("opcodes", {})
    found += opcodes.get("differ", {})
    suites = report.get("suites", {})
    if "outcome" in suites:  # the part itself failed
        suites = {}
    found += [
        f"{name}: pytest gave {suite['returned']}, see 'output' in the report"
        for name, suite in suites.items()
        if crashed(suite["returned"])
    ]
    found += [test for suite in suites.values() for test in suite["failures"]]
    for name in PARTS:
        if report.get(name, {}).get("outcome") == "failed":
            found.append(f"{name}: {report[name]['why']}")
    return found


def summary(report):
    """A line for each part."""
    for name in report["parts"]:
        part = report[name]
        if "outcome" in part:
            text = part["outcome"] + (f": {part['why']}" if "why" in part else "")
        elif name == "opcodes":
            text = f"{part['agree']} agree, {len(part['differ'])} differ, {len(part['refused'])} are refused"
        else:
            counts = sum((Counter({k: v for k, v in s.items() if k in OUTCOMES}) for s in part.values()), Counter())
            text = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())) or "no test"
            text += f" in {len(part)} files"
        yield f"{name}: {text}, {report['seconds'][name]} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", type=Path, default=Path("gpu-report.json"), help="the file that is written")
    parser.add_argument("--driver", help="a driver's library, or 'emulated'; else that of the machine")
    parser.add_argument("--quick", action="store_true", help="five minutes: the essentials, and all benchmarks")
    parser.add_argument("--parts", nargs="*", choices=PARTS, help="only these parts; opcodes and suites with --suites")
    parser.add_argument("--suites", nargs="*", help="only these files or folders of tests")
    parser.add_argument("--no-suites", action="store_true", help="the opcodes only")
    parser.add_argument("--jobs", type=int, help=f"files at a time; else a file for each CPU, {MOST_AT_A_TIME} at most")
    options = parser.parse_args()
    import warp as wp

    emulated_path, path = find_driver(options.driver)
    try:
        driver = Driver(path)
    except (OSError, DriverError) as error:
        print(f"there is no GPU to check: {error}", file=sys.stderr)
        return 2
    print(f"{driver.name}, sm_{driver.arch}, CUDA {driver.version}", flush=True)
    parts = options.parts or (QUICK_PARTS if options.quick else PARTS)
    if not options.parts and options.suites:
        parts = ("opcodes", "suites")
    if options.no_suites:
        parts = ("opcodes",)
    report = {
        "weft": wp.__weft_version__,
        "machine": platform.platform(),
        "device": driver.name,
        "arch": driver.arch,
        "cuda": driver.version,
        "parts": list(parts),
        "seconds": {},
    }
    for number, name in enumerate(parts, 1):
        print(f"-- {number} of {len(parts)}: {name}", flush=True)
        start = time.monotonic()
        report[name] = run_part(name, options, driver, Driver(emulated_path))
        report["seconds"][name] = round(time.monotonic() - start, 1)
        report["failures"] = failures_of(report)
        options.report.write_text(json.dumps(report, indent=1))  # also if a later part ends everything
    print("-- summary")
    for line in summary(report):
        print(line)
    for text in report["failures"][:FAILURES_SHOWN]:
        print("  " + text)
    suites = report.get("suites", {})
    for line in left_out({} if "outcome" in suites else suites):
        print(line)
    print(f"wrote {options.report}")
    return 1 if report["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
