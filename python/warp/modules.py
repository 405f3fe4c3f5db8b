"""Modules: the kernels of one Python module, with options that they share; compiling them ahead of their first launch.

Every kernel is compiled by itself, when it is first launched. A module is what options are set for and what
``wp.load_module()`` compiles as a whole.
"""

from __future__ import annotations

import os
import sys
import weakref
from types import ModuleType
from typing import TYPE_CHECKING, Any

from warp import _weft
from warp._weft import Kernel, usage_error

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "Module",
    "compile_aot_module",
    "force_load",
    "get_module",
    "get_module_options",
    "load_module",
    "set_module_options",
]

# Options that shape the machine code: the name that the C++ side has for it.
_CODE_OPTIONS = {
    "enable_backward": "enable_backward",
    "fast_math": "fast_math",
    "lanes": "lanes",
    "lineinfo": "line_info",
    "max_unroll": "max_unroll",
    "mode": "debug",
    "optimization_level": "optimization_level",
}
# Kept and given back: they shape code for CUDA devices.
_CUDA_OPTIONS = (
    "block_dim",
    "cuda_output",
    "default_grid_stride",
    "enable_mathdx_fft",
    "enable_mathdx_gemm",
    "enable_mathdx_solver",
    "strip_hash",
)


def check_options(options: Any, api: str) -> dict[str, Any]:
    """The options as a dict of their own; raises UsageError where one is unknown or has an impossible value."""
    if options is None:
        return {}
    if not isinstance(options, dict):
        message = f"the options are {options!r}, expected a dict such as {{'enable_backward': False}}"
        raise usage_error(f"{api}: {message}", TypeError)
    for name, value in options.items():
        if name not in _CODE_OPTIONS and name not in _CUDA_OPTIONS:
            known = ", ".join(sorted({*_CODE_OPTIONS, *_CUDA_OPTIONS}))
            raise usage_error(f"{api}: there is no module option {name!r}; expected one of {known}", ValueError)
        if name == "mode" and value not in ("debug", "release", None):
            raise usage_error(f"{api}: mode is {value!r}, expected 'debug' or 'release'", ValueError)
    _weft.check_kernel_options(code_options(options), api)
    return dict(options)


def code_options(options: dict[str, Any]) -> dict[str, Any]:
    """What the C++ side takes of checked options."""
    return {
        _CODE_OPTIONS[name]: value == "debug" if name == "mode" else value
        for name, value in options.items()
        if name in _CODE_OPTIONS and value is not None
    }


class Module:
    """The kernels that one Python module defines, and their common options. ``wp.get_module()`` gives it."""

    __slots__ = {
        "__weakref__": "",
        "_kernels": "",
        "name": "Name of the Python module, or the one given in ``@wp.kernel(module=...)``.",
        "options": "Options of its kernels where they differ from ``wp.config``: see ``wp.set_module_options``.",
    }

    def __init__(self, name: str, options: dict[str, Any] | None = None):
        self.name = name
        self.options = check_options(options, "Module()")
        self._kernels: list[weakref.ref[Kernel]] = []

    def __repr__(self) -> str:
        return f"<warp.Module {self.name}>"

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels that still exist, oldest first; of those of one name the newest only."""
        by_name = {}
        for reference in self._kernels:
            kernel = reference()
            if kernel is not None:
                by_name.pop(kernel.__qualname__, None)
                by_name[kernel.__qualname__] = kernel
        return list(by_name.values())

    def load(self, device: Any = None) -> None:
        """Compiles every kernel of the module that is not compiled yet, over all cores."""
        _load([self], device)

    def _add(self, kernel: Kernel) -> None:
        kernels = self._kernels
        kernels.append(weakref.ref(kernel))
        # Kernels that are gone leave the list when it has doubled, so that adding one costs the same at any length.
        if len(kernels) & (len(kernels) - 1) == 0 and len(kernels) >= 64:
            self._kernels = [reference for reference in kernels if reference() is not None]


_modules: dict[str, Module] = {}


def module_named(name: str) -> Module:
    module = _modules.get(name)
    if module is None:
        module = _modules[name] = Module(name)
    return module


def get_module(name: str) -> Module:
    """The module of this name: that of a Python module (``__name__``), or one named in ``@wp.kernel(module=...)``.

    One that has no kernels yet is made: it can be given options before its kernels are defined.
    """
    if not isinstance(name, str):
        raise usage_error(f"get_module(): the name is {name!r}, expected a string such as __name__", TypeError)
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
    raise usage_error(f"{api}: the module is {module!r}, expected its name, a Python module or a wp.Module", TypeError)


def set_module_options(options: dict[str, Any], module: Any = None) -> None:
    """Sets options for all kernels of a module, those defined before and after.

    Args:
        options: ``fast_math``, ``enable_backward``, ``lineinfo`` (bools), ``mode`` ("debug" or "release"),
            ``optimization_level`` (0 to 3), ``max_unroll``, ``lanes``: where they differ from ``wp.config``;
            ``block_dim``, ``cuda_output``, ``strip_hash`` shape code for CUDA devices. Options of ``@wp.kernel`` itself
            go before these.
        module: a name, a Python module or a ``wp.Module``; the calling module where it is None.
    Raises:
        UsageError: an option is unknown.
    """
    options = check_options(options, "set_module_options()")
    target = _module(module, "set_module_options()", 1)
    target.options.update(options)
    for kernel in target.kernels:
        kernel.set_options(code_options({**target.options, **kernel.own_options}))


def get_module_options(module: Any = None) -> dict[str, Any]:
    """The options of a module as a dict: what was set for it, and for the rest what ``wp.config`` says."""
    from warp import config

    options = {
        "enable_backward": config.enable_backward,
        "fast_math": config.fast_math,
        "lineinfo": config.lineinfo,
        "max_unroll": config.max_unroll,
        "mode": config.mode,
        "optimization_level": config.optimization_level,
    }
    return {**options, **_module(module, "get_module_options()", 1).options}


def _load(modules: list[Module], device: Any) -> None:
    _weft.get_device(device)
    kernels = [kernel for module in modules for kernel in module.kernels]
    kernels = [one for kernel in kernels for one in (kernel.overloads if kernel.is_generic else [kernel])]
    if not kernels:
        return
    from concurrent.futures import ThreadPoolExecutor  # a tenth of what importing warp costs

    with ThreadPoolExecutor(max_workers=min(len(kernels), os.cpu_count() or 1)) as pool:
        jobs = [pool.submit(kernel.compile) for kernel in kernels]
    for job in jobs:
        job.result()


def load_module(module: Any = None, device: Any = None, recursive: bool = False) -> None:
    """Compiles the kernels of a module now, over all cores, where their first launches would.

    Args:
        module: a name, a Python module or a ``wp.Module``; the calling module where it is None.
        device: accepted; the code serves every CPU device.
        recursive: also the modules below it: ``a.b`` with ``a``.
    Raises:
        CompileError: a kernel has a mistake; the others are compiled nevertheless.
        UsageError: there is no such module.
    """
    target = _module(module, "load_module()", 1)
    modules = [target]
    if recursive:
        modules += [other for name, other in _modules.items() if name.startswith(target.name + ".")]
    if isinstance(module, str) and not any(m.kernels for m in modules) and module not in sys.modules:
        raise usage_error(f"load_module(): there is no module {module!r} with kernels", ValueError)
    _load(modules, device)


def force_load(device: Any = None, modules: Any = None) -> None:
    """Compiles the kernels of all modules, or of those given, over all cores.

    Args:
        device: accepted; the code serves every CPU device.
        modules: a list of names, Python modules or ``wp.Module`` objects.
    """
    chosen = list(_modules.values()) if modules is None else [_module(m, "force_load()", 1) for m in modules]
    _load(chosen, device)


def compile_aot_module(module: Any = None, path: str | os.PathLike | None = None, device: Any = None) -> Path:
    """Compiles the kernels of a module into a file for C++ programs without Python: see ``include/weft/program.h``.

    The code is for this machine's processor, or for the one that the environment variable ``WEFT_CPU`` named when
    Python started ("x86-64-v3" runs on most machines of the last ten years). It is built without the checks of debug
    mode. Of a generic kernel, the instances that exist are taken (``wp.overload`` makes them): a single one under the
    kernel's name, several as ``name(a: float32, x: array[vec3f])``.

    Args:
        module: a name, a Python module or a ``wp.Module``; the calling module where it is None.
        path: the file; ``<last part of the module's name>.weft`` in the current folder where it is None. A file that
            is there is replaced at once, never half written.
        device: the CPU; files for CUDA devices come with their support.
    Returns:
        The path.
    Raises:
        CompileError: a kernel has a mistake.
        UsageError: the module has no kernels, a generic kernel has no instances, or two kernels have one name.
    """
    import tempfile  # these take longer to import than warp does
    from pathlib import Path

    api = "compile_aot_module()"
    target = _module(module, api, 1)
    _weft.get_device(device)
    kernels = []
    for kernel in target.kernels:
        instances = kernel.overloads if kernel.is_generic else [kernel]
        if not instances:
            raise usage_error(
                f"{api}: the generic kernel {kernel.key!r} has no instances. help: wp.overload({kernel.key}, [types])",
                ValueError,
            )
        for instance in instances:
            kernels.append((kernel.key if len(instances) == 1 else instance.signature, instance))
    if not kernels:
        raise usage_error(f"{api}: module {target.name!r} has no kernels. help: import it first", ValueError)
    content = _weft.bundle(target.name, kernels)
    path = Path(f"{target.name.rpartition('.')[2]}.weft" if path is None else path)
    descriptor, temporary = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path
