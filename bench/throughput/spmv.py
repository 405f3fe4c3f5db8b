"""Sparse matrix (CSR, 250 000 rows, 7.75 M non-zeros) times vector: gathers, and rows of 1 to 61 entries."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

ROWS = 250_000
MEAN = 31


def problem(variant):
    dtype = np.float32 if variant == "f32" else np.float64
    random = np.random.default_rng(3)
    # Pairs of rows share 2 · MEAN entries, so that the total is that of the workload.
    lengths = random.integers(1, 2 * MEAN, ROWS // 2)
    lengths = np.stack([lengths, 2 * MEAN - lengths], axis=1).ravel()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    count = int(offsets[-1])
    near = np.repeat(np.arange(ROWS), lengths) + random.integers(-1000, 1001, count)
    return {
        "offsets": offsets,
        "columns": np.clip(near, 0, ROWS - 1).astype(np.int32),
        "values": random.uniform(0.5, 1.5, count).astype(dtype),
        "x": random.uniform(0.5, 1.5, ROWS).astype(dtype),
        "dtype": dtype,
    }


def expected(variant, data):
    products = data["values"].astype(np.float64) * data["x"][data["columns"]]
    return np.add.reduceat(products, data["offsets"][:-1])


def with_warp(wp, variant, data, options):
    real = wp.float32 if variant == "f32" else wp.float64

    @wp.kernel
    def multiply(
        offsets: wp.array(dtype=wp.int32),
        columns: wp.array(dtype=wp.int32),
        values: wp.array(dtype=real),
        x: wp.array(dtype=real),
        y: wp.array(dtype=real),
    ):
        row = wp.tid()
        total = real(0.0)
        for i in range(offsets[row], offsets[row + 1]):
            total += values[i] * x[columns[i]]
        y[row] = total

    offsets = wp.array(data["offsets"], dtype=wp.int32, device="cpu")
    columns = wp.array(data["columns"], dtype=wp.int32, device="cpu")
    values = wp.array(data["values"], dtype=real, device="cpu")
    x = wp.array(data["x"], dtype=real, device="cpu")
    y = wp.zeros(ROWS, dtype=real, device="cpu")
    inputs = [offsets, columns, values, x, y]
    return measure.Job(lambda: wp.launch(multiply, dim=ROWS, inputs=inputs, device="cpu"), y.numpy)


def with_numba(numba, variant, data, options):
    @numba.njit(parallel=True, fastmath=options.fast, cache=True)
    def multiply(offsets, columns, values, x, y):
        for row in numba.prange(y.shape[0]):
            total = y.dtype.type(0)
            for i in range(offsets[row], offsets[row + 1]):
                total += values[i] * x[columns[i]]
            y[row] = total

    y = np.zeros(ROWS, dtype=data["dtype"])
    names = ("offsets", "columns", "values", "x")
    return measure.Job(lambda: multiply(*(data[name] for name in names), y), lambda: y)


def with_cpp(library, variant, data, options):
    arrays = [measure.aligned(data[name]) for name in ("offsets", "columns", "values", "x")]
    y = measure.aligned(np.zeros(ROWS, dtype=data["dtype"]))
    return measure.Job(measure.call_cpp(library[f"multiply_{variant}"], ROWS, *arrays, y), lambda: y)


if __name__ == "__main__":
    measure.throughput(
        "spmv",
        __doc__,
        ("f32", "f64"),
        problem,
        expected,
        {"weft": with_warp, "peer": with_warp, "numba": with_numba, "cpp": with_cpp},
        lambda variant: {"rtol": 1e-4},
    )
