"""The installation and the machine, as a text for reports of problems."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from typing import Any

import numpy as np
import warp._weft as _weft
from warp._devices.cuda import get_cuda_driver_version, get_cuda_toolkit_version

__all__ = ["print_diagnostics"]

_FRAMEWORKS = ("torch", "jax", "cupy", "paddlepaddle", "ml_dtypes", "scipy")


def _installed() -> dict[str, str | None]:
    versions: dict[str, str | None] = {}
    for name in _FRAMEWORKS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def print_diagnostics() -> dict[str, Any]:
    """Prints versions, the processor, devices and installed frameworks.

    Returns:
        The same as a dict. ``cuda_enabled`` says whether there is a CUDA device, and ``cuda_driver`` is the result of
        :func:`get_cuda_driver_version`.
    """
    info = _weft.build_info()
    devices = _weft.get_devices()
    facts: dict[str, Any] = {
        "warp_python": info["version"],
        "warp_native": info["version"],
        "llvm": info["llvm"],
        "numpy": np.__version__,
        "python": sys.version.replace("\n", " "),
        "platform": platform.platform(),
        "cuda_enabled": any(device.is_cuda for device in devices),
        "cuda_toolkit": get_cuda_toolkit_version(),
        "cuda_driver": get_cuda_driver_version(),
        "cpu_name": info["cpu"],
        "cpu_features": [feature.lstrip("+") for feature in info["features"].split(",") if not feature.startswith("-")],
        "vector_bits": info["vector_bits"],
        "threads": info["threads"],
        "kernel_cache": info["cache_folder"],
        "frameworks": _installed(),
        "devices": [{"alias": device.alias, "name": device.name} for device in devices],
    }
    for name, value in facts.items():
        if name == "cpu_features":
            print(f"{name}: {len(value)}")
        elif name == "frameworks":
            print(f"{name}: {', '.join(f'{n} {v}' for n, v in value.items() if v) or 'none'}")
        elif name == "devices":
            print(f"{name}: " + ", ".join(f"{device['alias']} ({device['name']})" for device in value))
        else:
            print(f"{name}: {value}")
    return facts
