"""Probes of the public API: short functions that run under Weft and under release 1.19, in this process.

    python tests/api/probing.py tests/api/probes/launching.py [name ...]

runs the probes of a file, all or those named, with the ``warp`` that this interpreter imports, and prints two lines of
JSON for each: its name, then its answer. Every function of a probe file is a probe, but those whose names begin with an
underscore, those decorated by anything but the marks below and those that it imports. The result of a probe becomes
text that is the same for equal behaviour under any names of classes: numbers to six digits, arrays with dtype and
shape, exceptions as the classes of Python that they derive from.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from types import FunctionType, ModuleType

__all__ = ["differs", "floats", "ints", "launched", "output", "still_open"]


def still_open(reason):
    """Marks a probe that Weft does not answer as 1.19 does yet. The test fails when it does: then the mark goes."""

    def mark(probe):
        probe.open = reason
        return probe

    return mark


def differs(answer):
    """Marks a probe that Weft answers otherwise on purpose: with ``answer``. The reason is a row of the table
    "Differences from 1.19" in docs/semantics.md, which names the probe."""

    def mark(probe):
        probe.differs = answer
        return probe

    return mark


def launched(function, dim, *arguments):
    """Launches ``function`` as a kernel in a module of its own; returns the last argument."""
    import warp as wp

    wp.launch(wp.kernel(function, module="unique"), dim=dim, inputs=list(arguments))
    return arguments[-1]


def floats(*numbers):
    """An array of float32."""
    import warp as wp

    return wp.array(numbers, dtype=wp.float32)


def ints(*numbers):
    """An array of int32."""
    import warp as wp

    return wp.array(numbers, dtype=wp.int32)


@contextlib.contextmanager
def output(log_level=40):
    """Gives a list that afterwards has the lines that were printed, by Python and by machine code."""
    import warp as wp

    lines = []
    wp.config.log_level = log_level
    with tempfile.TemporaryFile("w+") as file:
        kept = {number: os.dup(number) for number in (1, 2)}
        streams = sys.stdout, sys.stderr
        for stream in streams:
            stream.flush()
        for number in kept:
            os.dup2(file.fileno(), number)
        try:
            sys.stdout = sys.stderr = os.fdopen(os.dup(1), "w", buffering=1)
            yield lines
        finally:
            sys.stdout.close()
            sys.stdout, sys.stderr = streams
            for number, copy in kept.items():
                os.dup2(copy, number)
                os.close(copy)
            file.seek(0)
            lines += file.read().splitlines()


def text_of(value):
    """The answer as text."""
    import numpy as np
    import warp as wp

    if value is None or isinstance(value, (bool, int, str, bytes)):
        kind = "" if type(value).__module__ == "builtins" else f"{type(value).__name__} "
        return kind + repr(value)
    if isinstance(value, np.ndarray):
        items = value.tolist() if value.dtype.names else _rounded(value)
        return f"ndarray {value.dtype} {value.shape} {items}"
    if isinstance(value, np.generic):
        return f"{value.dtype} {_rounded(np.asarray(value))}"
    if isinstance(value, float):
        return repr(float(f"{value:.6g}"))
    if isinstance(value, BaseException):
        return f"exception {', '.join(python_classes(type(value)))}"
    if isinstance(value, type):
        return f"type {_type_name(value)}"
    if isinstance(value, wp.array):
        return f"array {_type_name(value.dtype)} {tuple(value.shape)} {text_of(value.numpy())}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text_of(key)}: {text_of(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(map(text_of, value)) if isinstance(value, (set, frozenset)) else map(text_of, value)
        kind = type(value).__name__
        return f"{kind}({', '.join(items)})"
    scalar = getattr(type(value), "_wp_scalar_type_", None)
    if scalar is not None and getattr(type(value), "_shape_", None):
        numbers = _rounded(np.array([float(number) for number in np.asarray(value).ravel()]))
        return f"{_type_name(type(value))} {numbers}"
    if hasattr(type(value), "value") and type(value).__name__ in ("bool", *map(str, _SCALARS)):
        return f"{type(value).__name__} {text_of(value.value)}"
    return f"a {type(value).__name__}"


_SCALARS = tuple(f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64))


def _rounded(array):
    import numpy as np

    if array.dtype.kind != "f":
        return array.tolist()
    flat = [float(f"{number:.6g}") for number in array.astype("f8").ravel()]
    return np.array(flat).reshape(array.shape).tolist()


def _type_name(kind):
    """``vec3f``, ``float32``, ``vector(length=7, dtype=float32)``; Python's own by their names."""
    import warp as wp

    if isinstance(kind, type) and getattr(kind, "_wp_scalar_type_", None) is not None and hasattr(kind, "_shape_"):
        return (
            wp.types.type_repr(kind) if kind.__name__ in ("vec_t", "mat_t", "quat_t", "transform_t") else kind.__name__
        )
    return getattr(kind, "__name__", str(kind))


def python_classes(kind):
    """The names of the classes of Python that an exception's class is or derives from, nearest first."""
    found = [base for base in kind.__mro__ if base.__module__ == "builtins"]
    general = (Exception, BaseException, Warning, object, LookupError, ArithmeticError)
    return [base.__name__ for base in found if base not in general] or [found[0].__name__]


def run(probe):
    """The probe's answer: ``{"value": text}``, or ``{"raises": [classes], "message": text}``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"value": text_of(probe())}
    except Exception as error:
        return {"raises": python_classes(type(error)), "message": str(error)}


def probes_in(path):
    """The probes of a file by name, in its order."""
    spec = importlib.util.spec_from_file_location(f"probes_{Path(path).stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == spec.name and not name.startswith("_")
    }


@contextlib.contextmanager
def settings_kept():
    """Puts back what a probe may change for the whole process."""
    import warp as wp

    def options():
        return {
            name: value
            for name, value in vars(wp.config).items()
            if not name.startswith("_") and not isinstance(value, (ModuleType, FunctionType, type))
        }

    before = options()
    try:
        yield
    finally:
        for name in options().keys() - before.keys():
            delattr(wp.config, name)
        for name, value in before.items():
            if getattr(wp.config, name) is not value:
                setattr(wp.config, name, value)


def main(path, *names):
    sys.modules["probing"] = sys.modules["__main__"]  # the probe file imports this module, not a copy
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of a probe must not be taken for an answer

    import warp as wp

    wp.init()
    for name, probe in probes_in(path).items():
        if names and name not in names:
            continue
        print(json.dumps({"begin": name}), file=out)
        with settings_kept():
            answer = run(probe)
        for mark in ("open", "differs"):
            if hasattr(probe, mark):
                answer[mark] = getattr(probe, mark)
        print(json.dumps({"probe": name, **answer}), file=out)


if __name__ == "__main__":
    main(*sys.argv[1:])
