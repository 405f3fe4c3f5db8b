"""Options of Weft. Set them at any time: ``wp.config.mode = "debug"``. Kernels are recompiled if an option changes
their code.

Options that the compiler or the runtime reads are checked at once. Other names can be set too, and are kept: options of
CUDA devices and of other releases, and a program's own.
"""

import enum
import os as _os
import sys
import types as _types

import warp._weft as _weft

version: str = "1.19.0"
"""Release of the API that programs are written for, and compare with the release that they need."""

weft_version: str = _weft.build_info()["version"]
"""Version of Weft itself."""


class DeterministicMode(enum.IntEnum):
    """Whether the results of atomic functions on floats may differ from one run to the next."""

    NOT_GUARANTEED = 0
    RUN_TO_RUN = 1
    GPU_TO_GPU = 2


class LaunchArrayAccessMode(enum.IntEnum):
    """Which arrays of other devices a launch takes. It never takes those that its device cannot reach."""

    RELAXED = 0
    CHECKED = 1
    STRICT = 2


mode: str = "release"
"""``"debug"`` builds kernels with checks of array bounds, division and asserts that raise Python exceptions.
``"check"`` does, and kernels on the CPU also raise for races of threads, and for reads of memory that was never
written."""

fast_math: bool = False
"""Allows the compiler to reorder floating-point operations, and to take functions that are right within 4 units in the
last place, where it is 1 otherwise. NaNs and infinities keep their meaning; the sign of zero may get lost."""

lineinfo: bool = False
"""Machine code carries the lines of the kernels, for debuggers and profilers."""

perf: str | None = _os.environ.get("WEFT_PERF") or None
"""Makes CPU kernels that are loaded afterwards known to Linux' ``perf``. ``"map"`` names them in
``/tmp/perf-<pid>.map``. ``"jitdump"`` writes ``jit-<pid>.dump`` into ``$JITDUMPDIR``, or the current folder: ``perf
record -k 1`` and ``perf inject --jit`` give their instructions, and their lines if ``lineinfo`` is set.
``$WEFT_PERF`` sets it."""

cache_kernels: bool = True
"""Keeps compiled kernels on disk."""

kernel_cache_dir: str | None = _weft.build_info()["cache_folder"]
"""Folder of the disk cache; what is set holds for kernels that are compiled afterwards, which go to a folder of this
version of Weft below it. None is $WARP_CACHE_PATH, else a folder below the user's cache folder."""

optimization_level: int | None = None
"""0 to 3 for LLVM's optimiser; None is 3."""

max_unroll: int = 16
"""Loops with a constant range of at most this many iterations are unrolled."""

gradient_loop_bytes: int = 1 << 24
"""Bytes that the gradient of a loop may keep, for each thread, of what the iterations start with. Where they would be
more, some are kept as checkpoints and what lies between is computed again: the same gradient to the bit, for one to a
few more runs through the loop."""

gradient_log_bytes: int = 1 << 30
"""Bytes that a tape may keep of one launch for the results of atomics in loops, which the backward pass needs. A launch
that needs more raises."""

cpu_threads: int | None = None
"""Threads of CPU launches; None is $WARP_CPU_THREADS, else one per CPU."""

enable_cpu_blocks: bool = False
"""Blocks of CPU launches have as many lanes as ``block_dim`` says, 2 to 1024, if the kernel has tiles or was launched
by ``wp.launch_tiled``. Otherwise each has one. One thread runs the lanes of a block."""

serial: bool = _os.environ.get("WARP_SERIAL", "0") not in ("", "0")
"""Runs the threads of each launch strictly one after the other, in the order of the grid: (0, 0), (0, 1), ...
Kernels are compiled for one lane then. Debug mode does so always. $WARP_SERIAL=1 sets it."""

print_launches: bool = False
"""Prints a line for each launch."""

log_level: int = 20
"""From which level on Weft says something about its own work, to the logger that ``wp.set_logger`` names:
``wp.LOG_DEBUG`` (10) what is compiled, how long it took, and why lanes are slower than they could be; ``wp.LOG_INFO``
(20) nothing of that; ``wp.LOG_WARNING`` (30) what works but is hardly meant; ``wp.LOG_ERROR`` (40) nothing of these.
What a program asks for is said at any level: ``print_launches``, timers. Errors are exceptions."""

verbose: bool = False
"""Another name for ``log_level <= wp.LOG_DEBUG``; False is the default level where True was set."""

quiet: bool = False
"""Another name for ``log_level >= wp.LOG_WARNING``; False is ``wp.LOG_INFO``, or ``wp.LOG_DEBUG`` if it was set."""

enable_backward: bool = True
"""False means that no gradient will be asked for of kernels that are declared afterwards, unless they, or their module,
say otherwise. Backward code is compiled when a gradient is first asked for, so True costs nothing."""

matmul_precision: str = "exact"
"""How ``wp.matmul``, ``wp.batched_matmul`` and ``a @ b`` of arrays compute on a GPU. ``"exact"``: float32 and float64
by one fused multiply-add for each element of the summed axis, in order; smaller floats in float32, rounded once.
``"fast"``: float16 and bfloat16 by tensor cores, with sums in float32; float32 as three products of numbers of TF32,
whose error is near that of float32. ``"tf32"``: as ``"fast"``, and float32 is rounded to TF32, of 11 significant bits.
GPUs before sm_80 are always exact. CPUs multiply 16-bit floats in float32, and choose the order of sums."""

use_cublas: bool = True
"""Products that ``matmul_precision`` does not ask to be exact are left to cuBLAS if it is found: float16, bfloat16,
float64, and float32 under ``"tf32"``. It is the library that the process has already, that of the system, or that of
the package ``nvidia-cublas``; $WEFT_CUBLAS names another, or is 0 for none."""

verify_cuda: bool = False
"""Waits for each launch, copy and fill on a CUDA device, so that an error of the device comes from the call that caused
it, and names the kernel and its line. For finding mistakes: nothing is done at the same time any more. A graph cannot
be captured meanwhile."""

verify_fp: bool = False
"""Looks after each launch, and after each adjoint, for elements that have become NaN or infinite, and raises a
UsageError that names the kernel, the array, the element and the value, and shows who wrote it: the thread and the line.
For finding mistakes: it copies what is written, and kernels run on one lane."""

verify_autograd_array_access: bool = False
"""Makes an error of the warning that a gradient stops, in ``Tape.backward()``, at an array that has none although it
was written from arrays that have one. Gradients are right where arrays are overwritten, without this option too."""

enable_mempools_at_init: bool = True
"""Whether CUDA devices that have a memory pool take memory from it when they are first used; ``wp.set_mempool_enabled``
changes it afterwards."""

launch_array_access_mode: LaunchArrayAccessMode = LaunchArrayAccessMode.RELAXED
"""Which arrays of other devices a launch takes. ``RELAXED`` and ``CHECKED``: those that its device can reach, because
the program has opened them (``wp.set_mempool_access_enabled``, ``wp.set_peer_access_enabled``). ``STRICT``: none. All
others are errors before anything runs."""

host_compiler: str | None = None
"""Name or path of the clang that compiles the C++ of ``@wp.func_native``; None is $WEFT_CLANG, else one from PATH.
Nothing else needs a compiler."""

deterministic: DeterministicMode = DeterministicMode.NOT_GUARANTEED
"""``wp.DeterministicMode.RUN_TO_RUN`` and ``GPU_TO_GPU``: results of float atomics do not change from run to run. A
member, its name in any case, or a bool, True for ``RUN_TO_RUN``. Modules, kernels and launches may say otherwise.
Launches whose results depend on the order of threads run on one CPU thread then: those that add floats to elements
which threads share, use what an atomic gave, change an array by atomics of two kinds, or read or store what they change
by atomics. The others use all threads."""

track_memory: bool = False
"""Keeps track of the memory of arrays, for ``wp.print_memory_report()``. Each later
allocation takes some microseconds more."""

# Accepted for programs of this and of earlier releases, and kept. They have no effect (but load_module_max_workers),
# and say so once when they are set: _WITHOUT_EFFECT below.
cpu_compiler_flags: str = ""
cuda_arch_suffix: str | None = None
cuda_output: str | None = None
cuda_path: str | None = None
compile_time_trace: bool = False
default_grid_stride: bool = True
deterministic_debug: bool = False
deterministic_max_records: int = 0
enable_graph_capture_module_load_by_default: bool = True
enable_mathdx_fft: bool = True
enable_mathdx_gemm: bool = True
enable_mathdx_solver: bool = True
enable_tiles_in_stack_memory: bool = True
enable_vector_component_overwrites: bool = False
host_path: str | None = None
legacy_cpu_linker: bool = False
legacy_scalar_return_types: bool = False
line_directives: bool = True
llvm_cuda: bool = False
load_module_max_workers: int = 0
ptx_target_arch: int | None = None
use_precompiled_headers: bool = True
verbose_warnings: bool = False


_VERSIONS = ("version", "weft_version")
_OPTIONS = tuple(name for name in __annotations__ if name not in _VERSIONS)
# Those that C++ reads: it checks their values.
_RUNTIME = [
    "cache_kernels",
    "cpu_threads",
    "enable_cpu_blocks",
    "enable_mempools_at_init",
    "fast_math",
    "gradient_log_bytes",
    "gradient_loop_bytes",
    "host_compiler",
    "kernel_cache_dir",
    "legacy_scalar_return_types",
    "lineinfo",
    "log_level",
    "max_unroll",
    "mode",
    "optimization_level",
    "perf",
    "print_launches",
    "quiet",
    "serial",
    "use_cublas",
    "verbose",
    "verify_cuda",
    "verify_fp",
]


_DEFAULTS = {name: globals()[name] for name in _OPTIONS}
_DEFAULT_THREADS = _weft.build_info()["threads"]


def _deterministic_mode(value, what: str) -> DeterministicMode:
    """The mode of a member, its name or a bool. `what` begins the error."""
    if isinstance(value, DeterministicMode):
        return value
    if isinstance(value, bool):
        return DeterministicMode.RUN_TO_RUN if value else DeterministicMode.NOT_GUARANTEED
    if isinstance(value, str) and value.upper() in DeterministicMode.__members__:
        return DeterministicMode[value.upper()]
    message = f"{what} is {value!r}, expected a member of wp.DeterministicMode, its name, or a bool"
    raise _weft.usage_error(message, ValueError)


def _is_deterministic(value, what: str) -> bool:
    return _deterministic_mode(value, what) != DeterministicMode.NOT_GUARANTEED


_MATHDX = "Weft has code of its own for products, decompositions and Fourier transforms"
# Options of wp.config, of modules and of kernels that are kept and do nothing: the reason, and the alternative.
_WITHOUT_EFFECT = {
    "block_dim": "wp.launch(..., block_dim=...) chooses the size of blocks",
    "compile_time_trace": "no trace is written. help: wp.config.log_level = wp.LOG_DEBUG tells how long kernels take",
    "cpu_compiler_flags": "Weft compiles kernels itself and takes no flags. help: optimization_level, fast_math",
    "cuda_arch_suffix": "kernels are compiled for the architecture of their device",
    "cuda_output": "the driver gets PTX. help: wp.compile_aot_module(use_ptx=False) makes machine code",
    "cuda_path": "no CUDA toolkit is needed. help: the environment variable WARP_PTX_COMPILER names a compiler of PTX",
    "default_grid_stride": "the threads of a CUDA launch always go through a grid that is larger than they are",
    "deterministic_debug": "nothing is told about how results are kept the same",
    "deterministic_max_records": "no records are kept: launches whose results depend on it keep their order",
    "enable_cuda_smem_spilling": "kernels use no shared memory of blocks",
    "enable_graph_capture_module_load_by_default": "a capture compiles the kernels that it needs",
    "enable_mathdx_fft": _MATHDX,
    "enable_mathdx_gemm": _MATHDX,
    "enable_mathdx_solver": _MATHDX,
    "enable_tiles_in_stack_memory": "the compiler chooses the memory of tiles",
    "enable_vector_component_overwrites": "components can always be overwritten, with exact gradients",
    "grid_stride": "the threads of a CUDA launch always go through a grid that is larger than they are",
    "extra_build_options": "kernels are built without other sources",
    "host_path": "no toolchain of the machine is needed. help: host_compiler, for functions in C++",
    "legacy_cpu_linker": "Weft has one linker",
    "line_directives": "there is no C++ between a kernel and its machine code. help: lineinfo",
    "llvm_cuda": "kernels for CUDA devices are always compiled by LLVM",
    "ptx_target_arch": "PTX is for the architecture of the device. help: wp.compile_aot_module(arch=...)",
    "strip_hash": "files in the kernel cache are named by their content",
    "use_precompiled_headers": "kernels have no headers",
    "verbose_warnings": "warnings are whole already",
}
_has_warned: set[str] = set()


def _warn_of_no_effect(name: str, is_default: bool, what: str, stacklevel: int) -> None:
    """Once for each option."""
    if is_default or name not in _WITHOUT_EFFECT or name in _has_warned:
        return
    _has_warned.add(name)
    from warp import _logger as logger

    message = f"{what} is kept, and has no effect: {_WITHOUT_EFFECT[name]}"
    logger.log_warning(message, stacklevel=stacklevel + 1)


def _warn_of_misspelling(name: str) -> None:
    import difflib  # only mistakes need it

    near = difflib.get_close_matches(name, _OPTIONS, n=2, cutoff=0.8)
    if near:
        from warp import _logger as logger

        message = f"wp.config.{name} is no option of Weft; did you mean {' or '.join(near)}? It is kept as it is."
        logger.log_warning(message, stacklevel=3)


class _Config(_types.ModuleType):
    """The module itself, with assignments handed to the runtime."""

    def __setattr__(self, name: str, value) -> None:
        if name in _VERSIONS:
            raise _weft.usage_error(f"config.{name}: a version cannot be set", AttributeError)
        if name == "cpu_threads":
            _weft.set_option(name, _DEFAULT_THREADS if value is None else value)
        elif name in _RUNTIME:
            _weft.set_option(name, value)
        elif name == "deterministic":
            value = _deterministic_mode(value, "config.deterministic:")
            _weft.set_option(name, value != DeterministicMode.NOT_GUARANTEED)
        elif name == "matmul_precision":
            if value not in ("exact", "fast", "tf32"):
                message = f"config.{name}: is {value!r}, expected 'exact', 'fast' or 'tf32'"
                raise _weft.usage_error(message, ValueError)
        elif name == "track_memory":
            if not isinstance(value, bool):
                raise _weft.usage_error(f"config.track_memory: is {value!r}, expected True or False", TypeError)
            if value != self.track_memory:
                from warp._support import memory_tracker

                memory_tracker.track_program(value)
        elif name == "launch_array_access_mode":
            if not isinstance(value, LaunchArrayAccessMode):
                message = f"config.{name}: is {value!r}, expected a member of wp.config.LaunchArrayAccessMode"
                raise _weft.usage_error(message, ValueError)
            _weft.set_option(name, value == LaunchArrayAccessMode.STRICT)
        elif name not in _OPTIONS and not name.startswith("_") and name not in vars(self):
            _warn_of_misspelling(name)
        elif name in _DEFAULTS:
            _warn_of_no_effect(name, value == _DEFAULTS[name], f"wp.config.{name}", stacklevel=2)
        super().__setattr__(name, value)
        if name in ("log_level", "verbose", "quiet"):  # one scale with three names
            level = _weft.log_level()
            for other, now in (("log_level", level), ("verbose", level <= 10), ("quiet", level >= 30)):
                super().__setattr__(other, now)

    def __delattr__(self, name: str) -> None:
        if name in __annotations__:
            raise _weft.usage_error(f"config.{name}: options can be set, not deleted", AttributeError)
        super().__delattr__(name)


if perf is not None:
    _weft.set_option("perf", perf)
sys.modules[__name__].__class__ = _Config
