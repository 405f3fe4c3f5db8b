"""The module's name of earlier releases: ``wp.context.init()``, ``wp.context.Device``, ``wp.context.Kernel``."""

from warp import Module, init
from warp._weft import Device, Function, Kernel, Launch
from warp.types import type_name as type_str

__all__ = ["Device", "Function", "Kernel", "Launch", "Module", "init", "type_str"]


def __getattr__(name: str):
    if name == "Graph":
        from warp._devices.graphs import Graph

        return Graph
    raise AttributeError(f"module 'warp.context' has no attribute {name!r}")
