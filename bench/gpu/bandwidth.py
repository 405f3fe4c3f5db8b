"""Kernels that memory bounds, on a GPU, beside a copy of the bare driver that moves as many bytes, and beside CUDA C++
(`reference.cu`): saxpy, stencils and particles of `throughput/`.

`--small` takes a few thousand elements, to show that the program runs: on the emulated device, say.
"""

import ctypes
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "throughput"))
import laplacian
import measure
import particles
import saxpy
from bare_driver import Driver, compiled

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
    """Sizes for GPUs: the kernels have to move many times the capacity of the caches."""
    saxpy.N = 1 << (12 if is_small else 26)
    laplacian.N2, laplacian.N3 = (64, 16) if is_small else (8192, 512)
    particles.N = 1 << (10 if is_small else 24)


def elements(data):
    """How many there are: of vectors, not of their components."""
    return len(data["x"]) if "x" in data else data["u"].size


def with_weft(wp, variant):
    program, of_program, _ = WORK[variant]
    data = program.problem(of_program)
    job = program.with_warp(wp, of_program, data, None)

    def check():
        np.testing.assert_allclose(job.result(), program.expected(of_program, data), rtol=1e-5, atol=4e-6)

    return measure.Queued(job.run, lambda: wp.synchronize_device("cuda:0"), check, BATCH)


def with_driver(driver, variant):
    """A copy reads and writes each byte."""
    program, of_program, bytes_of_element = WORK[variant]
    size = elements(program.problem(of_program)) * bytes_of_element // 2
    source = np.arange(size, dtype=np.uint32).astype(np.uint8)
    one, other = driver.copied(source), driver.copied(np.zeros_like(source))

    def check():
        np.testing.assert_array_equal(driver.read(other, source), source)

    return measure.Queued(lambda: driver.copy(other, one, size), driver.synchronize, check, BATCH)


def with_cpp(driver, variant):
    program, of_program, _ = WORK[variant]
    data = program.problem(of_program)
    threads = 256

    def blocks(count):
        return (count + threads - 1) // threads

    if program is saxpy:
        n, y = len(data["x"]), driver.copied(data["y"])
        real = ctypes.c_float if of_program == "f32" else ctypes.c_double
        name, grid = f"saxpy_{of_program}", blocks(n)
        values = (ctypes.c_int(n), real(saxpy.A), driver.copied(data["x"]), y)
        results = [(y, data["y"])]
    elif program is laplacian:
        n, result = len(data["u"]), driver.copied(np.zeros_like(data["u"]))
        is_flat = data["u"].ndim == 2
        name = "stencil_2d" if is_flat else "stencil_3d"
        grid = (blocks(n - 2), n - 2, 1) if is_flat else (blocks(n), n, n)
        values = (ctypes.c_int(n), driver.copied(data["u"]), result)
        results = [(result, data["u"])]
    else:
        n, x, v = len(data["x"]), driver.copied(data["x"]), driver.copied(data["v"])
        name, grid = "particles", blocks(n)
        values = (ctypes.c_int(n), ctypes.c_float(particles.DT), ctypes.c_float(particles.GRAVITY), x, v)
        results = [(x, data["x"]), (v, data["v"])]
    kernel = driver.kernel(compiled(Path(__file__).with_name("reference.cu")), name)

    def check():
        found = [driver.read(memory, like) for memory, like in results]
        found = found[0] if len(found) == 1 else np.stack(found)
        np.testing.assert_allclose(found, program.expected(of_program, data), rtol=1e-5, atol=4e-6)

    return measure.Queued(lambda: driver.launch(kernel, grid, threads, *values), driver.synchronize, check, BATCH)


if __name__ == "__main__":
    parser = measure.arguments(__doc__, tuple(WORK), ("weft", "driver", "cpp"))
    parser.add_argument("--small", action="store_true", help="a few thousand elements")
    options = parser.parse_args()
    resize(options.small)
    if options.implementation == "weft":
        library, prepare = measure.import_warp("weft", options.fast), with_weft
        library.set_device("cuda:0")
    else:
        library, prepare = Driver(), with_cpp if options.implementation == "cpp" else with_driver
    measure.queued("gpu bandwidth", options, tuple(WORK), lambda variant: prepare(library, variant))
