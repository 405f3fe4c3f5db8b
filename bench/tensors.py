"""The common part of the programs of bench/interop: launches with tensors of a framework."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

VARIANTS = ("loop converted", "loop direct", "loop structures", "launch 3 tensors", "launch 3 arrays", "from", "to")


def statements(wp: ModuleType, make: Callable[[], Any], convert: Callable, back: Callable) -> tuple[dict, dict]:
    """Names and statements: one for each variant."""

    @wp.kernel
    def five(
        a: wp.array(dtype=float),
        b: wp.array(dtype=float),
        c: wp.array(dtype=float),
        d: wp.array(dtype=float),
        e: wp.array(dtype=float),
    ):
        pass

    @wp.kernel
    def three(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
        pass

    tensors = [make() for _ in range(5)]
    names = {"wp": wp, "five": five, "three": three, "convert": convert, "back": back, "tensors": tensors}
    names |= {"tensor": tensors[0], "array": wp.zeros(10), "arrays": [wp.zeros(10) for _ in range(3)]}
    names["few"] = tensors[:3]
    launch = "wp.launch(five, dim=10, inputs={})"
    return names, {
        "loop converted": launch.format("[convert(t) for t in tensors]"),
        "loop direct": launch.format("tensors"),
        "loop structures": launch.format("[convert(t, return_ctype=True) for t in tensors]"),
        "launch 3 tensors": "wp.launch(three, dim=1, inputs=few)",
        "launch 3 arrays": "wp.launch(three, dim=1, inputs=arrays)",
        "from": "convert(tensor)",
        "to": "back(array)",
    }


def main(workload: str, description: str, variants: tuple, make: Callable, measure: ModuleType) -> int:
    """Measures the variants that the command line asks for; the exit code."""
    options = measure.arguments(description, variants, ("weft",)).parse_args()
    names, found = make(measure.import_warp(options.implementation))
    failed = False
    for variant in options.variant or variants:
        try:
            measure.report(workload, variant, options, measure.time_statement(found[variant], names, options.seconds))
        except Exception as error:
            failed = True
            measure.report_failure(workload, variant, options, error)
    return 1 if failed else 0
