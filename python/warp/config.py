"""Options of Weft. Set them at any time: ``wp.config.mode = "debug"``; kernels are recompiled where an option
changes their code.

An assignment is checked at once, and a name that is no option is an error.
"""

import sys
import types as _types

from warp import _weft

version: str = _weft.build_info()["version"]
"""Version of Weft."""

mode: str = "release"
"""``"debug"`` builds kernels with checks of array bounds, division and asserts that raise Python exceptions."""

fast_math: bool = False
"""Allows the compiler to reorder floating-point operations and to assume that there are no NaNs and infinities."""

lineinfo: bool = False
"""Machine code carries the lines of the kernels, for debuggers and profilers."""

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
"""Bytes that a tape may keep of one launch for the results of atomics in loops, which the way back needs. A launch that
needs more raises."""

cpu_threads: int | None = None
"""Threads of CPU launches; None is $WARP_CPU_THREADS, else one per CPU. 1 runs threads in order."""

print_launches: bool = False
"""Prints a line for each launch."""

log_level: int = 30
"""From which level on Weft says something about its own work, on ``sys.stderr``: ``wp.LOG_DEBUG`` (10) why lanes are
slower than they could be, ``wp.LOG_INFO`` (20) what is compiled and how long it took, ``wp.LOG_WARNING`` (30) what
works but is hardly meant, ``wp.LOG_ERROR`` (40) nothing of these. Errors are exceptions at any level."""

verbose: bool = False
"""Another name for ``log_level == wp.LOG_DEBUG``; False is the default level where True was set."""

quiet: bool = True
"""Another name for ``log_level >= wp.LOG_WARNING``; False is ``wp.LOG_INFO``, or ``wp.LOG_DEBUG`` where it was set."""

enable_backward: bool = True
"""False means that no gradient will be asked for of kernels that are declared afterwards, unless they, or their module,
say otherwise. Backward code is compiled when a gradient is first asked for, so True costs nothing."""

verify_cuda: bool = False
"""Checks the CUDA context after each launch on a CUDA device."""

verify_fp: bool = False
"""Looks after each launch, and after each adjoint, for elements that have become NaN or infinite, and raises a
UsageError that names the kernel, the array, the element and the value, and shows who wrote it: the thread and the line.
For finding mistakes: it copies what is written, and kernels run on one lane."""

verify_autograd_array_access: bool = False
"""Accepted for programs of earlier releases: gradients are right where arrays are overwritten, nothing is to be looked
for."""

host_compiler: str | None = None
"""Name or path of the clang that compiles the C++ of ``@wp.func_native``; None is $WEFT_CLANG, else one from PATH.
Nothing else needs a compiler."""

cuda_path: str | None = None
host_path: str | None = None
"""Accepted for programs of earlier releases: Weft needs no compiler on the machine."""


_OPTIONS = tuple(name for name in __annotations__ if name != "version")


def _why_not(name: str) -> str:
    if name == "version":
        return "is the version of Weft, which cannot be set"
    import difflib  # only mistakes need it

    near = difflib.get_close_matches(name, _OPTIONS, n=2)
    return "there is no such option" + (f"; did you mean {' or '.join(near)}?" if near else "")


class _Config(_types.ModuleType):
    """The module itself, with assignments checked and handed to the runtime."""

    def __setattr__(self, name: str, value) -> None:
        if name not in _OPTIONS and not name.startswith("__"):
            raise _weft.usage_error(f"config.{name}: {_why_not(name)}", AttributeError)
        if name in _OPTIONS:
            _weft.set_option(name, value)
        super().__setattr__(name, value)
        if name in ("log_level", "verbose", "quiet"):  # one scale with three names
            level = _weft.log_level()
            for other, now in (("log_level", level), ("verbose", level <= 10), ("quiet", level >= 30)):
                super().__setattr__(other, now)

    def __delattr__(self, name: str) -> None:
        raise _weft.usage_error(f"config.{name}: options can be set, not deleted", AttributeError)


sys.modules[__name__].__class__ = _Config
