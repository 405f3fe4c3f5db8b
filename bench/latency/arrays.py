"""The cost of small arrays: making, slicing, filling, and going to and from NumPy."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

STATEMENTS = {
    "empty(1)": "wp.empty(1, dtype=float)",
    "zeros(1000)": "wp.zeros(1000, dtype=float)",
    "array(numpy 1000)": "wp.array(n, dtype=float)",
    "from numpy, no copy": "wp.array(n, dtype=float, copy=False)",
    "slice": "a[10:20]",
    "numpy()": "a.numpy()",
    "zero_()": "a.zero_()",
}


if __name__ == "__main__":
    options = measure.arguments(__doc__, tuple(STATEMENTS), ("weft", "peer")).parse_args()
    wp = measure.import_warp(options.implementation)
    names = {"wp": wp, "n": np.zeros(1000, dtype=np.float32), "a": wp.zeros(1000, dtype=float)}
    failed = False
    for variant in options.variant or STATEMENTS:
        try:
            measure.report(
                "arrays", variant, options, measure.time_statement(STATEMENTS[variant], names, options.seconds)
            )
        except Exception as error:
            failed = True
            measure.report_failure("arrays", variant, options, error)
    sys.exit(1 if failed else 0)
