"""Meshes and hash grids on a GPU, the work of `geometry/queries.py` and `geometry/neighbours.py`: a mesh of 1 M
triangles, 1 M queries, a grid of 1 M points.

`--small` takes a few thousand of each, to show that the program runs: on the emulated device, say.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "geometry"))
import measure
import neighbours
import queries

# variant: program of geometry/, its variant, runs between two waits
WORK = {
    "build": (queries, "build", 1),
    "refit": (queries, "refit", 10),
    "rays, coherent": (queries, "coherent", 5),
    "rays, any direction": (queries, "incoherent", 5),
    "closest points": (queries, "closest", 5),
    "closest points, adjoint": (queries, "closest_adjoint", 5),
    "grid build": (neighbours, "build", 5),
    "grid loop": (neighbours, "loop", 5),
    "grid adjoint": (neighbours, "adjoint", 5),
}


def resize(is_small):
    queries.QUADS, queries.RAYS = (24, 32**2) if is_small else (708, 1000**2)
    if is_small:
        neighbours.POINTS, neighbours.RADIUS = 2000, 0.1


def prepare(wp, variant, options):
    program, of_program, batch = WORK[variant]
    data = program.problem(of_program)
    job = program.with_warp(wp, of_program, data, options)

    def check():
        found, expected = job.result(), program.expected(of_program, data)
        np.testing.assert_allclose(found, expected, **program.tolerance(of_program))

    return measure.Queued(job.run, lambda: wp.synchronize_device("cuda:0"), check, batch)


if __name__ == "__main__":
    parser = measure.arguments(__doc__, tuple(WORK), ("weft", "peer"))
    parser.add_argument("--small", action="store_true", help="a few thousand elements")
    options = parser.parse_args()
    resize(options.small)
    library = measure.import_warp(options.implementation, options.fast, backward=True)
    library.set_device("cuda:0")
    measure.queued("gpu geometry", options, tuple(WORK), lambda variant: prepare(library, variant, options))
