"""Kernels that memory bounds, on a GPU, beside a copy of the bare driver that moves as many bytes: saxpy, stencils and
particles of `throughput/`.

`--small` takes a few thousand elements, to show that the program runs: on the emulated device, say.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "throughput"))
import laplacian
import measure
import particles
import saxpy

# variant: program of throughput/, its variant, bytes that each element of its first array takes to read and write
WORK = {
    "saxpy f32": (saxpy, "f32", 3 * 4),
    "saxpy f64": (saxpy, "f64", 3 * 8),
    "stencil 2d": (laplacian, "2d_inner", 2 * 4),
    "stencil 3d": (laplacian, "3d", 2 * 4),
    "particles": (particles, "vec3", 4 * 12),
}
BATCH = 20  # runs between two waits


def resize(is_small):
    """Sizes for GPUs: what the kernels move has to be many times their caches."""
    saxpy.N = 1 << (12 if is_small else 26)
    laplacian.N2, laplacian.N3 = (64, 16) if is_small else (8192, 512)
    particles.N = 1 << (10 if is_small else 24)


def elements(data):
    """How many there are: of vectors, not of their components."""
    return len(data["x"]) if "x" in data else data["u"].size


def with_weft(wp, variant, data):
    program, of_program, _ = WORK[variant]
    wp.set_device("cuda:0")
    job = program.with_warp(wp, of_program, data, None)
    return job, lambda: wp.synchronize_device("cuda:0")


def with_driver(driver, variant, data):
    """A copy reads and writes each byte."""
    source = np.arange(elements(data) * WORK[variant][2] // 2, dtype=np.uint32).astype(np.uint8)
    one, other = driver.copied(source), driver.copied(np.zeros_like(source))
    job = measure.Job(lambda: driver.copy(other, one, source.nbytes), lambda: driver.read(other, source))
    return job, driver.synchronize


if __name__ == "__main__":
    parser = measure.arguments(__doc__, tuple(WORK), ("weft", "driver"))
    parser.add_argument("--small", action="store_true", help="a few thousand elements")
    options = parser.parse_args()
    resize(options.small)
    is_weft = options.implementation == "weft"
    if is_weft:
        library = measure.import_warp("weft", options.fast)
    else:
        from bare_driver import Driver

        library = Driver()
    for variant in options.variant or WORK:
        program, of_program, _ = WORK[variant]
        data = program.problem(of_program)
        job, wait = (with_weft if is_weft else with_driver)(library, variant, data)
        job.run()
        wait()
        found = job.result()
        if is_weft:
            np.testing.assert_allclose(found, program.expected(of_program, data), rtol=1e-5, atol=4e-6)
        else:
            np.testing.assert_array_equal(found, np.arange(len(found), dtype=np.uint32).astype(np.uint8))

        def batch(job=job, wait=wait):
            for _ in range(BATCH):
                job.run()
            wait()

        times = measure.time_repeats(batch, options.seconds)
        measure.report("gpu bandwidth", variant, options, [time / BATCH for time in times])
