"""The cost of one call: `wp.launch` of a kernel that does nothing, dim 1, with 0 to 30 arguments; recorded launches; a
graph of 100 launches.

`8` mixes arrays, scalars and a vector; `30` is thirty arrays. Numba is a serial compiled function:
the least that a call from Python into compiled code costs there.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

VARIANTS = ("0", "1", "3", "8", "30", "recorded 0", "recorded 1", "recorded 8", "graph of 100")


def statements_warp(wp, device="cpu"):
    @wp.kernel
    def none():
        wp.tid()

    @wp.kernel
    def one(a: wp.array(dtype=float)):
        wp.tid()

    @wp.kernel
    def three(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
        wp.tid()

    @wp.kernel
    def eight(
        a: wp.array(dtype=float),
        b: wp.array(dtype=wp.vec3),
        c: wp.array(dtype=int, ndim=2),
        d: float,
        e: int,
        f: wp.vec3,
        g: wp.array(dtype=float),
        h: bool,
    ):
        wp.tid()

    text = "\n".join(
        ["def thirty("] + [f"    a{i}: wp.array(dtype=float)," for i in range(30)] + ["):", "    wp.tid()"]
    )
    thirty = _kernel_from_text(wp, text, "thirty")
    a = wp.zeros(8, dtype=float, device=device)
    names = {
        "wp": wp,
        "none": none,
        "one": one,
        "three": three,
        "eight": eight,
        "thirty": thirty,
        "a": a,
        "b": wp.zeros(8, dtype=wp.vec3, device=device),
        "c": wp.zeros((4, 4), dtype=int, device=device),
        "v": wp.vec3(1.0, 2.0, 3.0),
    }
    arrays = ", ".join(["a"] * 30)
    mixed = "[a, b, c, 1.0, 2, v, a, True]"
    statements = {
        "0": "wp.launch(none, dim=1)",
        "1": "wp.launch(one, dim=1, inputs=[a])",
        "3": "wp.launch(three, dim=1, inputs=[a, a, a])",
        "8": f"wp.launch(eight, dim=1, inputs={mixed})",
        "30": f"wp.launch(thirty, dim=1, inputs=[{arrays}])",
    }
    for count, kernel, inputs in (("0", "none", "[]"), ("1", "one", "[a]"), ("8", "eight", mixed)):
        command = eval(f"wp.launch({kernel}, dim=1, inputs={inputs}, record_cmd=True)", names)
        names[f"command_{count}"] = command
        statements[f"recorded {count}"] = f"command_{count}.launch()"
    return names, statements


def _kernel_from_text(wp, text, name):
    """A kernel from a text: both implementations read sources through `linecache`, which a file satisfies."""
    import importlib.util
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write("import warp as wp\n\n@wp.kernel\n" + text + "\n")
    specification = importlib.util.spec_from_file_location(f"bench_{name}", file.name)
    module = importlib.util.module_from_spec(specification)
    sys.modules[module.__name__] = module
    specification.loader.exec_module(module)
    return getattr(module, name)


def statements_numba(numba):
    @numba.njit
    def none():
        pass

    @numba.njit
    def one(a):
        pass

    @numba.njit
    def three(a, b, c):
        pass

    @numba.njit
    def eight(a, b, c, d, e, f, g, h):
        pass

    a, b, c = np.zeros(8, np.float32), np.zeros((8, 3), np.float32), np.zeros((4, 4), np.int32)
    names = {"none": none, "one": one, "three": three, "eight": eight, "a": a, "b": b, "c": c, "v": (1.0, 2.0, 3.0)}
    return names, {
        "0": "none()",
        "1": "one(a)",
        "3": "three(a, a, a)",
        "8": "eight(a, b, c, 1.0, 2, v, a, True)",
    }


if __name__ == "__main__":
    options = measure.arguments(__doc__, VARIANTS, ("weft", "peer", "numba")).parse_args()
    if options.implementation == "numba":
        names, statements = statements_numba(measure.import_numba(options.fast))
    else:
        wp = measure.import_warp(options.implementation, options.fast)
        names, statements = statements_warp(wp)
        with wp.ScopedCapture(device="cpu") as capture:
            for _ in range(100):
                wp.launch(names["one"], dim=1, inputs=[names["a"]])
        names["graph"] = capture.graph
        statements["graph of 100"] = "wp.capture_launch(graph)"
    failed = False
    for variant in options.variant or VARIANTS:
        if variant not in statements:
            continue
        try:
            measure.report(
                "launch", variant, options, measure.time_statement(statements[variant], names, options.seconds)
            )
        except Exception as error:
            failed = True
            measure.report_failure("launch", variant, options, error)
    sys.exit(1 if failed else 0)
