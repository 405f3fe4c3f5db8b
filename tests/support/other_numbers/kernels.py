"""Properties of a kernel according to its text, and the kernel for the CPU in debug mode."""

import functools
import inspect
import re

import warp as wp

from other_numbers.arguments import NotComparable


@functools.cache
def debugged(kernel):
    """The kernel, compiled for one thread at a time and with its indices checked."""
    options = {**kernel.options, "mode": "debug", "enable_backward": kernel.enable_backward}
    return wp.kernel(kernel.func, module="unique", module_options=options)


@functools.cache
def source(kernel):
    """The text of a kernel and of the functions that it names."""
    variables = inspect.getclosurevars(kernel.func)
    named = [*variables.nonlocals.values(), *variables.globals.values()]
    functions = [kernel.func, *(one.func for one in named if isinstance(one, wp.Function))]
    try:
        return "\n".join(inspect.getsource(one) for one in functions if inspect.isfunction(one))
    except OSError as problem:
        raise NotComparable from problem


def says_more(kernel):
    """Whether it prints, or asks for the size of a block, which is 1 on the CPU."""
    return any(word in source(kernel) for word in ("print", "expect_", "block_dim"))


def uses_addresses(kernel):
    """Whether it may make arrays of addresses, whose ends are unknown."""
    return "ptr" in source(kernel)


@functools.cache
def floats_in(kernel):
    """The numbers with a point that stand in its text, with either sign."""
    found = sorted(map(float, set(re.findall(r"(?<![\w.])\d+\.\d*(?:e[-+]?\d+)?", source(kernel)))))
    return [sign * number for number in found for sign in (1.0, -1.0)]


def has_loops(kernel):
    return re.search(r"\b(for|while)\b", source(kernel)) is not None


def uses_of_tickets(kernel):
    """How many lines use the result of an atomic, which depends on the order of threads."""
    lines = [line.strip() for line in source(kernel).splitlines()]
    return sum("atomic_" in line and not line.startswith("wp.atomic_") for line in lines)
