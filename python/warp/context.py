"""The module's name of earlier releases: ``wp.context.init()``, ``wp.context.Device``, ``wp.context.Kernel``."""

from warp import init
from warp._weft import Device, Function, Kernel, Launch
from warp.types import type_name as type_str

__all__ = ["Device", "Function", "Kernel", "Launch", "init", "type_str"]
