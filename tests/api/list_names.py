"""The public names of the package ``warp`` that this interpreter imports, with the parameters of what can be called.

    python tests/api/list_names.py

prints JSON: for each module and class its names, and for each name the names of its parameters, or null if it takes
none or Python cannot tell. Nothing but ``dir()`` and ``inspect.signature`` is looked at.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from types import ModuleType

MODULES = ("warp", "warp.autograd", "warp.config", "warp.optim", "warp.types", "warp.utils")
CLASSES = (
    *("Bvh", "Device", "Function", "HashGrid", "Kernel", "Launch", "MarchingCubes", "Mesh", "Module", "ScopedTimer"),
    *("Tape", "Volume", "array", "indexedarray"),
)


def parameters_of(value):
    if not callable(value) or isinstance(value, type):
        return None
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
        return None
    return [p.name for p in found if p.name != "self"]


def names_of(owner):
    names = {}
    for name in dir(owner):
        if name.startswith("_"):
            continue
        try:
            value = getattr(owner, name)
        except Exception:
            value = None  # a property of instances
        if not isinstance(value, ModuleType):
            names[name] = parameters_of(value)
    return names


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warp = importlib.import_module("warp")
    warp.init()
    found = {}
    for module in MODULES:
        try:
            found[module] = names_of(importlib.import_module(module))
        except ImportError:
            found[module] = {}
    for name in CLASSES:
        found[f"warp.{name}"] = names_of(getattr(warp, name))
    json.dump(found, out, indent=1)
    out.write("\n")


if __name__ == "__main__":
    sys.exit(main())
