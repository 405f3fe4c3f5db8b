"""The cost of typed values in Python: making, components, operators, builtins."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

STATEMENTS = {
    "vec3(1, 2, 3)": "vec3(1.0, 2.0, 3.0)",
    "v.x": "v.x",
    "v[0]": "v[0]",
    "v + w": "v + w",
    "q * q": "q * q",
    "dot(v, w)": "wp.dot(v, w)",
    "quat_rotate(q, v)": "wp.quat_rotate(q, v)",
}


if __name__ == "__main__":
    options = measure.arguments(__doc__, tuple(STATEMENTS), ("weft", "peer")).parse_args()
    wp = measure.import_warp(options.implementation)
    v, w, q = wp.vec3(1.0, 2.0, 3.0), wp.vec3(4.0, 5.0, 6.0), wp.quat(0.0, 0.0, 0.0, 1.0)
    names = {"wp": wp, "vec3": wp.vec3, "v": v, "w": w, "q": q}
    failed = False
    for variant in options.variant or STATEMENTS:
        try:
            measure.report(
                "values", variant, options, measure.time_statement(STATEMENTS[variant], names, options.seconds)
            )
        except Exception as error:
            failed = True
            measure.report_failure("values", variant, options, error)
    sys.exit(1 if failed else 0)
