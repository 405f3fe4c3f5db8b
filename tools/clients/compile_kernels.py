"""compile_kernels.py PACKAGE [SKIPPED...]: compiles every kernel of an installed package; a line of JSON for each.

Kernels are those that the modules define when they are imported, and those of functions that make kernels, if the
annotations of their parameters name the arguments: of more than four combinations of values the first and the last.
Generic kernels are compiled for their overloads, or for the first type that they take. The time is CPU time of the
process.
"""

import enum
import inspect
import itertools
import json
import sys
import time
from typing import Any, TypeVar

import common
import warp as wp

MOST_COMBINATIONS = 4
DTYPES = (wp.float32, wp.int32, wp.vec3, wp.transform, wp.bool)  # tried in generic kernels


def collect(into: list) -> None:
    """Makes `wp.kernel` note each kernel that it makes."""
    make = wp.kernel

    def noting(function=None, **options):
        if function is None:
            return lambda given: noting(given, **options)
        kernel = make(function, **options)
        name = function.__qualname__.replace(".<locals>", "")
        into.append((f"{function.__module__.rpartition('.')[2]}:{name}", kernel))
        return kernel

    wp.kernel = noting


def choices(parameter: inspect.Parameter):
    """The values to try for a parameter of a function that makes kernels; None without a default or a known type."""
    kind = {"int": int, "bool": bool, "float": float}.get(parameter.annotation, parameter.annotation)
    if parameter.default is not parameter.empty:
        return [parameter.default]
    if kind is bool:
        return [True, False]
    if kind in (int, float):
        return [kind(2)]
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return list(kind)
    return None


def call_makers(module, problems: dict) -> None:
    for name, function in sorted(vars(module).items()):
        if not inspect.isfunction(function) or function.__module__ != module.__name__:
            continue
        inner = inspect.unwrap(function)
        try:
            source = inspect.getsource(inner)
        except OSError:
            continue
        if "  @wp.kernel" not in source:
            continue
        values = [choices(parameter) for parameter in inspect.signature(inner).parameters.values()]
        title = f"{module.__name__.rpartition('.')[2]}:{name}"
        if any(choice is None for choice in values):
            problems[title] = "unknown arguments"
            continue
        combinations = list(itertools.islice(itertools.product(*values), 64))
        if len(combinations) > MOST_COMBINATIONS:
            combinations = [combinations[0], combinations[-1]]
        for arguments in combinations:
            try:
                function(*arguments)
            except Exception as error:
                problems[title] = f"{type(error).__name__}: {error}".splitlines()[0]


def is_open(kind) -> bool:
    """Whether an annotation leaves the type to the launch."""
    return kind is Any or isinstance(kind, TypeVar)


def instances(kernel) -> list:
    """The kernels to compile: of a generic one its overloads, else one for the first types that it takes.

    Parameters of any type are numbers of a type of DTYPES, or arrays of it; elements of any type are such numbers.
    """
    if not kernel.is_generic:
        return [kernel]
    if kernel.overloads:
        return list(kernel.overloads.values())
    first_error = None
    for dtype, ndim in itertools.product(DTYPES, range(5)):
        chosen = {}
        for argument in kernel.adj.args:
            if is_open(argument.type):
                chosen[argument.label] = wp.array(dtype=dtype, ndim=ndim) if ndim else dtype
            elif wp.types.is_array(argument.type) and is_open(argument.type.dtype):
                chosen[argument.label] = wp.array(dtype=dtype, ndim=argument.type.ndim)
        try:
            made = wp.overload(kernel, chosen)
            made.compile()
            return [made]
        except Exception as error:
            first_error = first_error or error
    raise first_error


def main() -> None:
    package, *skipped = sys.argv[1:]
    wp.config.cache_kernels = False
    kernels, missing, not_imported, not_made = [], set(), {}, {}
    collect(kernels)
    with common.stand_ins(missing):
        modules = common.import_all(package, not_imported)
    for module in modules:
        call_makers(module, not_made)
    print(json.dumps({"missing": sorted(missing), "not_imported": not_imported, "not_made": not_made}), flush=True)
    seen = {}
    for name, kernel in kernels:
        seen[name] = number = seen.get(name, 0) + 1
        title = name if number == 1 else f"{name} ({number})"
        if title in skipped:
            continue
        print(json.dumps({"begins": title}), flush=True)
        reason = None
        start = time.process_time()
        try:
            for instance in instances(kernel):
                instance.compile()
        except Exception as error:
            reason = str(error).strip().splitlines()[0]
        print(json.dumps({"kernel": title, "seconds": time.process_time() - start, "reason": reason}), flush=True)


main()
