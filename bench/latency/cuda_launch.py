"""Host time of a launch on a CUDA device: `wp.launch` on a driver that does nothing, with 0 to 30 arguments; recorded
launches.

A machine with a GPU adds the driver's own time: `--driver real` takes the one that is there.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import idle_cuda
import launch
import measure

VARIANTS = tuple(variant for variant in launch.VARIANTS if not variant.startswith("graph"))

if __name__ == "__main__":
    parser = measure.arguments(__doc__, VARIANTS, ("weft",))
    parser.add_argument("--driver", choices=("idle", "real"), default="idle")
    options = parser.parse_args()
    if options.driver == "idle":
        idle_cuda.choose()
    else:
        os.environ.pop("WARP_CUDA_DRIVER", None)
    wp = measure.import_warp(options.implementation, options.fast)
    wp.set_device("cuda:0")
    names, statements = launch.statements_warp(wp, "cuda:0")
    for variant in options.variant or VARIANTS:
        times = measure.time_statement(statements[variant], names, options.seconds)
        wp.synchronize()
        measure.report("cuda launch", variant, options, times)
