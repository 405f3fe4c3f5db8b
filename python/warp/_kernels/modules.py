"""Modules: the kernels of one Python module, with options that they share; compiling them ahead of their first launch.

Every kernel is compiled by itself, when it is first launched. A module is the unit of options and of
``wp.load_module()``.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import warp._weft as _weft
from warp import config
from warp._kernels.module_hashes import ModuleExec, ModuleHasher, kernel_digest
from warp._support import nvidia_packages
from warp._support.progress import ProgressLine
from warp._weft import Kernel
from warp._weft import usage_error as _usage_error

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "Module",
    "ModuleBuildOptions",
    "clear_lto_cache",
    "compile_aot_module",
    "force_load",
    "get_cpu_kernel_cache_key",
    "get_module",
    "get_module_options",
    "load_module",
    "set_module_options",
]

# Options of a kernel itself that are for CUDA devices, without effect on the CPU.
CUDA_OPTIONS = (
    "launch_bounds",
    "grid_stride",
    "cuda_max_registers",
    "enable_cuda_smem_spilling",
    "cluster_dim",
    "entry_point_abi",
)

# Options that shape the machine code: the name that the C++ side has for it.
_CODE_OPTIONS = {
    "enable_backward": "enable_backward",
    "fast_math": "fast_math",
    "fuse_fp": "fuse_fp",
    "lanes": "lanes",
    "lineinfo": "line_info",
    "max_unroll": "max_unroll",
    "mode": "debug",
    "optimization_level": "optimization_level",
    "programmatic_launch": "programmatic",
}


def _options_now() -> dict[str, Any]:
    """Every option of a module with its default value at present."""
    return {
        "block_dim": 256,
        "compile_time_trace": False,
        "cpu_compiler_flags": None,
        "cuda_output": None,
        "default_grid_stride": None,
        "deterministic": config.deterministic,
        "deterministic_max_records": 0,
        "enable_backward": config.enable_backward,
        "enable_mathdx_fft": None,
        "enable_mathdx_gemm": None,
        "enable_mathdx_solver": None,
        "extra_build_options": None,
        "fast_math": config.fast_math,
        "fuse_fp": True,
        "lineinfo": config.lineinfo,
        "max_unroll": config.max_unroll,
        "mode": None,
        "optimization_level": None,
        "programmatic_launch": False,
        "strip_hash": False,
    }


def check_options(options: Any, api: str, keep_unknown: bool = False) -> dict[str, Any]:
    """The options as a dict of their own; raises UsageError if one is unknown or has an impossible value."""
    if options is None:
        return {}
    if not isinstance(options, dict):
        message = f"the options are {options!r}, expected a dict such as {{'enable_backward': False}}"
        raise _usage_error(f"{api}: {message}", TypeError)
    known = {*_CODE_OPTIONS, *_options_now()}
    for name, value in options.items():
        if name not in known and not keep_unknown:
            message = f"there is no module option {name!r}; expected one of {', '.join(sorted(known))}"
            raise _usage_error(f"{api}: {message}", ValueError)
        if name == "deterministic" and value is not None:
            config._deterministic_mode(value, f"{api}: deterministic")
        if name == "mode" and value not in ("debug", "release", None):
            raise _usage_error(f"{api}: mode is {value!r}, expected 'debug' or 'release'", ValueError)
    _weft.check_kernel_options(code_options(options), api)
    defaults = _options_now()
    for name, value in options.items():
        config._warn_of_no_effect(name, value == defaults.get(name), f"{api}: the option {name!r}", stacklevel=3)
    return dict(options)


def code_options(options: dict[str, Any]) -> dict[str, Any]:
    """The checked options that the C++ side takes."""
    found = {
        _CODE_OPTIONS[name]: value == "debug" if name == "mode" else value
        for name, value in options.items()
        if name in _CODE_OPTIONS and value is not None
    }
    deterministic = options.get("deterministic")
    if deterministic is not None:
        found["deterministic"] = config._is_deterministic(deterministic, "deterministic")
    for name, ours in (("cuda_max_registers", "max_registers"), ("cluster_dim", "cluster")):
        if options.get(name) is not None:
            found[ours] = options[name]
    if options.get("entry_point_abi") == "external_constant_params":
        found["external_parameters"] = True
    bounds = options.get("launch_bounds")
    if bounds is not None:  # the most threads of a block, the least blocks of a multiprocessor
        found["launch_bounds"] = (*bounds, 0)[:2]
    return found


class _Options(dict):
    """All options of a module, as they are now; an assignment chooses one for all of its kernels."""

    def __init__(self, module: Module):
        super().__init__({**_options_now(), **module.chosen})
        self._module = module

    def __setitem__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def update(self, *given: Any, **named: Any) -> None:
        options = dict(*given, **named)
        self._module.choose(options, "Module.options")
        super().update(options)


class ModuleBuildOptions:
    """Further inputs of a module's build for CUDA devices and C++. They are kept; Weft's kernels are built without."""

    def __init__(
        self,
        *,
        extra_cuda_include_dirs: Sequence[str | os.PathLike] | None = None,
        extra_cpu_include_dirs: Sequence[str | os.PathLike] | None = None,
        extra_cuda_preamble: str = "",
        extra_cpu_preamble: str = "",
        extra_build_dependencies: Sequence[str | os.PathLike] | None = None,
    ):
        self.extra_cuda_include_dirs = list(extra_cuda_include_dirs or ())
        self.extra_cpu_include_dirs = list(extra_cpu_include_dirs or ())
        self.extra_cuda_preamble = extra_cuda_preamble
        self.extra_cpu_preamble = extra_cpu_preamble
        self.extra_build_dependencies = list(extra_build_dependencies or ())


class Module:
    """The kernels and functions that one Python module defines, and their common options: see ``wp.get_module()``."""

    __slots__ = {
        "__weakref__": "",
        "_functions": "",
        "_kernels": "",
        "_declared": "",
        "chosen": "The options that were set for the module and differ from ``wp.config``.",
        "name": "Name of the Python module, or the one given in ``@wp.kernel(module=...)``.",
    }

    def __init__(self, name: str, options: dict[str, Any] | None = None, loader: Any = None):
        self.name = name
        self.chosen: dict[str, Any] = check_options(options, "Module()", keep_unknown=True)
        self._declared = b""  # of module="unique": its kernel's content hash, which outlives the kernel
        self._kernels: list[tuple[str, weakref.ref[Kernel]]] = []
        self._functions: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()

    def __repr__(self) -> str:
        return f"<warp.Module {self.name}>"

    @property
    def kernels(self) -> dict[str, Kernel]:
        """The kernels that still exist by their keys, oldest first; of those of one key the newest."""
        found = {}
        for key, reference in self._kernels:
            kernel = reference()
            if kernel is not None:
                found.pop(key, None)
                found[key] = kernel
        return found

    @property
    def functions(self) -> dict[str, Any]:
        """The functions of ``@wp.func`` that still exist, by their keys."""
        return dict(self._functions)

    @property
    def structs(self) -> dict[str, type]:
        """The structs of the Python module of this name, by theirs."""
        members = vars(sys.modules[self.name]) if self.name in sys.modules else {}
        return {name: value for name, value in members.items() if _weft.is_struct(value)}

    @property
    def options(self) -> dict[str, Any]:
        """Every option, with the value that holds for kernels that say nothing else. Assigning to one sets it."""
        return _Options(self)

    def resolve_options(self, settings: Any = None) -> dict[str, Any]:
        """Every option; those that the module leaves open have the value of ``settings``, or of ``wp.config``."""
        found = dict(self.options)
        return {
            name: getattr(settings or config, name, None) if value is None else value for name, value in found.items()
        }

    @property
    def references(self) -> set[Module]:
        """Other modules that it needs: none, since each kernel is compiled with all that it calls."""
        return set()

    @property
    def execs(self) -> dict[tuple[Any, int], ModuleExec]:
        """The compiled code, by (context of the device, threads of a block): ``(None, 1)`` for the CPU.

        It is empty before the first launch or ``load()``, and after ``unload()``.
        """
        devices: dict[Any, None] = {}
        for kernel in self.kernels.values():
            devices.update(dict.fromkeys(kernel.compiled_on()))
        made = (ModuleExec(self, device, 256 if device.is_cuda else 1) for device in devices)
        return {(each.device.context, each.block_dim): each for each in made}

    @property
    def hashers(self) -> dict[int, ModuleHasher]:
        """Hashes of the compiled code, by the threads of a block."""
        return {block_dim: ModuleHasher(self) for _, block_dim in self.execs}

    def choose(self, options: dict[str, Any], api: str) -> None:
        """Sets options for all kernels, those defined before and after."""
        self.chosen.update(check_options(options, api, keep_unknown=True))
        self._forget()

    def load(self, device: Any, block_dim: int | None = None) -> bool:
        """Compiles every kernel of the module that is not compiled yet, over all cores. Returns True."""
        _load([self], device)
        return True

    def unload(self) -> None:
        """Forgets compiled code; the next launch of a kernel compiles it, or takes it from the disk cache."""
        self._forget()

    def mark_modified(self) -> None:
        """Makes kernels look up the names in their source again, at their next launch."""
        self._forget()

    def hash_module(self) -> bytes:
        """32 bytes that identify the code of the module's kernels. They change with the kernels, with functions that
        they call, with constants, structs and options that they use, and with nothing else."""
        parts = sorted(key.encode() + kernel_digest(kernel) for key, kernel in self.kernels.items())
        parts = parts or [self._declared]
        parts.append(repr(sorted(self.chosen.items(), key=str)).encode())
        return hashlib.sha256(b"|".join(parts)).digest()

    def get_module_hash(self, block_dim: int | None = None) -> bytes:
        """The same as ``hash_module``; block sizes do not change code for the CPU."""
        return self.hash_module()

    def get_module_identifier(self, block_dim: int | None = None) -> str:
        """The module's name and the beginning of its hash."""
        return f"wp_{self.name}_{self.hash_module().hex()[:7]}"

    def kernel_of_function(self, function: Callable) -> Kernel | None:
        """The newest kernel that was made of a function of this name, or is called so."""
        for key, kernel in reversed(self.kernels.items()):
            if key == function.__name__ or kernel.__qualname__ == function.__qualname__:
                return kernel
        return None

    def _code_options_of(self, own: dict[str, Any], enable_backward: bool) -> dict[str, Any]:
        """The options for C++: the kernel's own before the module's; ``enable_backward`` is the default of both."""
        merged = {"enable_backward": bool(enable_backward), **self.chosen, **own}
        return code_options(merged)

    def _forget(self) -> None:
        for _, reference in self._kernels:
            kernel = reference()
            if kernel is not None:
                declared = kernel.enable_backward_when_declared
                kernel.set_options(self._code_options_of(kernel.options, declared))

    def _add(self, key: str, kernel: Kernel) -> None:
        kernels = self._kernels
        kernels.append((key, weakref.ref(kernel)))
        # Kernels that are gone leave the list when it has doubled, so that adding one costs the same at any length.
        if len(kernels) & (len(kernels) - 1) == 0 and len(kernels) >= 64:
            self._kernels = [entry for entry in kernels if entry[1]() is not None]

    def _add_function(self, function: Any) -> None:
        self._functions[function.key] = function


_modules: dict[str, Module] = {}
# Of kernels with module="unique": they live as long as their kernels.
_unique_modules: weakref.WeakSet[Module] = weakref.WeakSet()


def modules_by_name() -> dict[str, Module]:
    """The table of modules itself: a module that is put into it has the new name from then on."""
    return _modules


def module_named(name: str) -> Module:
    module = _modules.get(name)
    if module is None:
        module = _modules[name] = Module(name)
    return module


def unique_module(name: str, options: dict[str, Any]) -> Module:
    """A module for one kernel."""
    module = Module(name)
    module.chosen = dict(options)
    _unique_modules.add(module)
    return module


def get_module(name: str) -> Module:
    """The module of this name: that of a Python module (``__name__``), or one named in ``@wp.kernel(module=...)``.

    One that has no kernels yet is made: it can be given options before its kernels are defined.

    Raises:
        UsageError (a TypeError): ``name`` is no string.
    """
    if not isinstance(name, str):
        raise _usage_error(f"get_module(): the name is {name!r}, expected a string such as __name__", TypeError)
    return module_named(name)


def _module(module: Any, api: str, depth: int) -> Module:
    if module is None:
        return module_named(sys._getframe(depth + 1).f_globals.get("__name__", "__main__"))
    if isinstance(module, Module):
        return module
    if isinstance(module, ModuleType):
        return module_named(module.__name__)
    if isinstance(module, str):
        return module_named(module)
    raise _usage_error(f"{api}: the module is {module!r}, expected its name, a Python module or a wp.Module", TypeError)


def set_module_options(options: dict[str, Any], module: Any = None) -> None:
    """Sets options for all kernels of a module, those defined before and after.

    Args:
        options: ``fast_math``, ``fuse_fp``, ``enable_backward``, ``lineinfo`` (bools), ``mode`` ("debug" or "release"),
            ``optimization_level`` (0 to 3), ``max_unroll``, ``lanes``, ``deterministic``, in place of ``wp.config``'s;
            ``programmatic_launch`` (a bool): on GPUs of architecture 90 and later a launch may begin while the one in
            front of it in the stream ends. It waits for that before it touches memory, so that results are the same.
            Others are for CUDA devices, or a program's own, and are kept. Options of ``@wp.kernel`` itself go before
            these.
        module: a name, a Python module or a ``wp.Module``; the calling module if None.
    Raises:
        UsageError: an option has an impossible value.
    """
    api = "set_module_options()"
    if not isinstance(options, dict):
        check_options(options or [], api)
    _module(module, api, 1).choose(options, api)


def get_module_options(module: Any = None) -> dict[str, Any]:
    """The options of a module as a dict: the values that were set for it, and the defaults of the others."""
    return dict(_module(module, "get_module_options()", 1).options)


def _load(modules: list[Module], devices: Any, max_workers: int | None = None) -> None:
    chosen = [_weft.get_device(device) for device in (devices if isinstance(devices, (list, tuple)) else [devices])]
    kernels = [kernel for module in modules for kernel in module.kernels.values()]
    kernels = [one for kernel in kernels for one in (kernel.instances if kernel.is_generic else [kernel])]
    if not kernels or not chosen:
        return
    from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait  # a tenth of the cost of importing warp

    workers = max_workers or config.load_module_max_workers or os.cpu_count() or 1
    pool = ThreadPoolExecutor(max_workers=min(len(kernels) * len(chosen), max(workers, 1)))
    finished = False
    try:
        jobs = [pool.submit(kernel.compile, device) for device in chosen for kernel in kernels]
        waiting, began = set(jobs), time.monotonic()
        with ProgressLine(began) as line:
            while waiting:
                waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED).not_done
                line.show(f"compiling {len(jobs) - len(waiting)} of {len(jobs)} kernels")
        finished = True
    finally:  # Ctrl-C leaves those that have begun, and drops the others
        pool.shutdown(wait=finished, cancel_futures=not finished)
    for job in jobs:
        job.result()


def load_module(
    module: Any = None,
    device: Any = None,
    recursive: bool = False,
    block_dim: int | None = None,
    max_workers: int | None = None,
) -> None:
    """Compiles the kernels of a module now, over all cores, instead of at their first launches.

    Args:
        module: a name, a Python module or a ``wp.Module``; the calling module if None.
        device: a device, or a list of them, for which they are compiled and on which they are loaded; the default
            device if None.
        recursive: also the modules below it: ``a.b`` with ``a``.
        block_dim: for CUDA devices.
        max_workers: the most kernels that are compiled at a time. None: ``wp.config.load_module_max_workers``, or the
            number of CPUs.
    Raises:
        CompileError: a kernel has a mistake; the others are compiled nevertheless.
        UsageError: there is no such module.
    """
    target = _module(module, "load_module()", 1)
    modules = [target]
    if recursive:
        modules += [other for name, other in _modules.items() if name.startswith(target.name + ".")]
    if isinstance(module, str) and not any(m.kernels or m.functions for m in modules) and module not in sys.modules:
        raise _usage_error(f"load_module(): there is no module {module!r} with kernels", ValueError)
    _load(modules, device, max_workers)


def force_load(
    device: Any = None, modules: Any = None, block_dim: int | None = None, max_workers: int | None = None
) -> None:
    """Compiles the kernels of all modules, or of those given, over all cores.

    Args:
        device: a device, or a list of them, for which they are compiled and on which they are loaded; the default
            device if None.
        modules: a list of names, Python modules or ``wp.Module`` objects.
        block_dim: for CUDA devices.
        max_workers: the most kernels that are compiled at a time.
    """
    if modules is None:
        chosen = [*_modules.values(), *_unique_modules]
    else:
        chosen = [_module(m, "force_load()", 1) for m in modules]
    _load(chosen, device, max_workers)


def clear_lto_cache() -> None:
    """Empties the cache of link-time code for CUDA devices: this build has none."""


def get_cpu_kernel_cache_key(*, cpu_compiler_flags: str | None = None) -> str:
    """Tells folders of compiled kernels of different builds and machines apart: version, system and processor.

    Args:
        cpu_compiler_flags: also of different flags; they shape no code here.
    """
    info = _weft.build_info()
    what = repr((info["version"], info["llvm"], info["cpu"], info["features"], cpu_compiler_flags or ""))
    digest = hashlib.sha256(what.encode()).hexdigest()[:8]
    return f"{info['version']}-{platform.system()}-{platform.machine()}-{digest}"


def _replace_file(path: Path, content: bytes) -> None:
    """Writes a file that others see as it was before or whole."""
    import tempfile  # takes longer to import than warp does

    descriptor, temporary = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def compile_aot_module(
    module: Any = None,
    path: str | os.PathLike | None = None,
    device: Any = None,
    gradients: bool = False,
    arch: int | None = None,
    use_ptx: bool | None = None,
    header: str | os.PathLike | None = None,
) -> Path:
    """Compiles the kernels of a module into a file for C++ programs without Python: see ``include/weft/program.h``.

    The code is for this machine's processor, or for the one that the environment variable ``WEFT_CPU`` named when
    Python started ("x86-64-v3" runs on most machines of the last ten years). With ``arch``, or if ``device`` is a GPU,
    it is PTX for GPUs of that architecture and later ones; the machine that writes the file needs neither a GPU nor a
    CUDA toolkit. With ``use_ptx=False`` it has machine code for that architecture as well, which GPUs load without
    compiling anything; all others compile the PTX. It is built without the checks of debug mode. Of a generic kernel,
    the instances that exist are taken (``wp.overload`` makes them): a single one under the kernel's name, several as
    ``name(a: float32, x: array[vec3f])``.

    Args:
        module: a name, a Python module or a ``wp.Module``; the calling module if None.
        path: the file; ``<last part of the module's name>.weft`` in the current folder if None. An existing file is
            replaced at once, never half written.
        device: the CPU if None; a CUDA device stands for its architecture.
        gradients: puts the adjoints of the kernels in the file too, for ``weft::Tape``. Compiling takes some three
            times as long then. A kernel without a derivative is there without one; the tape says why.
        arch: the architecture of the oldest GPU that is to run the file: 75 for Turing, 90 for 9.0.
        use_ptx: of code for GPUs; with False, machine code is made beside the PTX, by ``ptxas`` or nvJitLink, one of
            which has to be on this machine: on ``PATH``, in a CUDA toolkit, in one of NVIDIA's Python packages, or at
            the path in the environment variable ``WARP_PTX_COMPILER``. With True, or None, there is PTX alone.
        header: a C++ header to write, with a class that has a typed function for each kernel, and the structs.
    Returns:
        The path.
    Raises:
        CompileError: a kernel has a mistake.
        UsageError: the module has no kernels, a generic kernel has no instances, two kernels have one name, or ``arch``
            is none that there is code for; ``use_ptx`` is False and no compiler makes machine code of the PTX.
    """
    from pathlib import Path  # takes longer to import than warp does

    api = "compile_aot_module()"
    target = _module(module, api, 1)
    chosen = _weft.get_device("cpu" if device is None else device)
    if arch is None:
        arch = chosen.arch if chosen.is_cuda else 0
    elif not isinstance(arch, int) or isinstance(arch, bool) or arch < 75:
        raise _usage_error(f"{api}: arch is {arch!r}, expected an int from 75 (Turing) on, as 90 for 9.0", ValueError)
    elif device is not None and not chosen.is_cuda:
        raise _usage_error(f"{api}: arch is {arch}, a GPU's, and device is {chosen.alias!r}", ValueError)
    if use_ptx not in (True, False, None):
        raise _usage_error(f"{api}: use_ptx is {use_ptx!r}, expected True, False or None", TypeError)
    if use_ptx is not None and not arch:
        raise _usage_error(
            f"{api}: use_ptx is {use_ptx}, which is about code for GPUs, and this is for the CPU. help: arch=90",
            ValueError,
        )
    kernels = []
    for kernel in target.kernels.values():
        instances = kernel.instances if kernel.is_generic else [kernel]
        if not instances:
            raise _usage_error(
                f"{api}: the generic kernel {kernel.__name__!r} has no instances. help: "
                f"wp.overload({kernel.__name__}, [types])",
                ValueError,
            )
        for instance in instances:
            kernels.append((kernel.__name__ if len(instances) == 1 else instance.signature, instance))
    if not kernels:
        raise _usage_error(f"{api}: module {target.name!r} has no kernels. help: import it first", ValueError)
    compilers = nvidia_packages.folders("cu13", "cu12", "cuda_nvcc", "nvjitlink") if use_ptx is False else None
    content = _weft.bundle(target.name, kernels, bool(gradients), arch, compilers)
    path = Path(f"{target.name.rpartition('.')[2]}.weft" if path is None else path)
    written = {path: content}
    if header is not None:
        from warp._kernels.typed_header import typed_header

        written[Path(header)] = typed_header(target.name, path.name, kernels).encode()
    for file, text in written.items():
        _replace_file(file, text)
    return path
