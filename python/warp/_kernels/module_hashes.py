"""Hashes of modules and kernels, and the devices for which they are compiled."""

from __future__ import annotations

import hashlib
import inspect
import textwrap
from typing import TYPE_CHECKING, Any

import warp._weft as _weft
from warp._weft import Kernel

if TYPE_CHECKING:
    from warp._kernels.modules import Module

__all__ = ["ModuleExec", "ModuleHasher", "kernel_digest"]


class ModuleExec:
    """The code of a module's kernels on a device."""

    def __init__(self, module: Module, device: Any, block_dim: int):
        self.device = device
        """The device."""
        self.block_dim = block_dim
        """Threads of a block: of the code of a CUDA device any number is possible, 256 is the one without a choice."""
        self.module_hash = module.hash_module()
        """As ``Module.hash_module()`` gives it."""
        self.kernel_names = sorted(key for key, one in module.kernels.items() if device in one.compiled_on())
        """The keys of the kernels that have been compiled for the device."""


class ModuleHasher:
    """Hashes of a module and its kernels: equal for code that does the same."""

    def __init__(self, module: Module):
        self._module = module
        self.kernel_hashes = {kernel: kernel_digest(kernel) for kernel in module.kernels.values()}
        """Of each kernel."""

    def hash_kernel(self, kernel: Kernel) -> bytes:
        """A hash of the kernel's code, 32 bytes."""
        return kernel_digest(kernel)

    def get_module_hash(self) -> bytes:
        """As ``Module.hash_module()`` gives it."""
        return self._module.hash_module()


def kernel_digest(kernel: Kernel) -> bytes:
    """A hash of a kernel's code; of its text and its instances if it is generic or has a mistake."""
    if not kernel.is_generic:
        try:
            return kernel._content_hash()
        except (_weft.CompileError, _weft.UsageError):
            pass  # the launch raises; here the text tells it from others
    try:
        text = textwrap.dedent(inspect.getsource(kernel.func))
    except OSError:
        text = kernel.func.__code__.co_code.hex()
    parts = [text.encode(), *(kernel_digest(instance) for instance in kernel.instances)]
    return hashlib.sha256(b"|".join(parts)).digest()
