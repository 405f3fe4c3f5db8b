"""The gradient of 50 Jacobi steps of a sparse system of 64 k unknowns, f32, by the matrix and the right-hand side.

Rows have one to nine entries beside the diagonal; a loop over the row in each thread, a launch for each step.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N, STEPS = 65536, 50


def problem(variant):
    random = np.random.default_rng(5)
    counts = random.integers(1, 10, N)
    first = np.concatenate([[0], counts.cumsum()]).astype(np.int32)
    row = np.repeat(np.arange(N), counts).astype(np.int32)
    column = ((row + random.integers(-300, 301, len(row))) % N).astype(np.int32)
    return {
        "first": first,
        "row": row,
        "column": column,
        # rows sum to less than the diagonal, which is 1
        "values": (random.uniform(-0.9, 0.9, len(row)) / counts[row]).astype(np.float32),
        "b": random.uniform(-1.0, 1.0, N).astype(np.float32),
        "seed": random.uniform(-1.0, 1.0, N).astype(np.float32),
    }


def expected(variant, data):
    row, column = data["row"], data["column"]
    values, b = data["values"].astype(np.float64), data["b"].astype(np.float64)
    x, kept = np.zeros(N), []
    for _ in range(STEPS):
        kept.append(x)
        x = b - np.bincount(row, values * x[column], N)
    by_x, by_values, by_b = data["seed"].astype(np.float64), np.zeros(len(row)), np.zeros(N)
    for x in reversed(kept):
        by_b += by_x
        by_values -= by_x[row] * x[column]
        by_x = -np.bincount(column, values * by_x[row], N)
    return [by_values, by_b]


def with_warp(wp, variant, data, options):
    @wp.kernel
    def sweep(
        first: wp.array(dtype=int),
        column: wp.array(dtype=int),
        values: wp.array(dtype=float),
        b: wp.array(dtype=float),
        x: wp.array(dtype=float),
        x_new: wp.array(dtype=float),
    ):
        i = wp.tid()
        total = wp.float32(0.0)
        for k in range(first[i], first[i + 1]):
            total += values[k] * x[column[k]]
        x_new[i] = b[i] - total

    first, column = (wp.array(data[name], dtype=int, device="cpu") for name in ("first", "column"))
    values, b = (wp.array(data[name], dtype=float, device="cpu", requires_grad=True) for name in ("values", "b"))
    seed = wp.array(data["seed"], dtype=float, device="cpu")
    xs = [wp.zeros(N, dtype=float, device="cpu", requires_grad=True) for _ in range(STEPS + 1)]

    def forward():
        for t in range(STEPS):
            wp.launch(sweep, dim=N, inputs=[first, column, values, b, xs[t], xs[t + 1]], device="cpu")

    return measure.taped(wp, forward, lambda: {xs[-1]: seed}, [values, b])


def with_jax(jax, variant, data, options):
    row, column = jax.numpy.asarray(data["row"]), jax.numpy.asarray(data["column"])

    def solve(values, b):
        def sweep(x, _):
            sums = jax.ops.segment_sum(values * x[column], row, N, indices_are_sorted=True)
            return b - sums, None

        return jax.lax.scan(sweep, jax.numpy.zeros(N, dtype=b.dtype), None, length=STEPS)[0]

    return measure.of_jax(solve, [data["values"], data["b"]], data["seed"])


def with_torch(torch, variant, data, options):
    row, column = torch.from_numpy(data["row"]).long(), torch.from_numpy(data["column"]).long()

    def solve(values, b):
        x = torch.zeros(N)
        for _ in range(STEPS):
            x = b - torch.zeros(N).index_add(0, row, values * x[column])
        return x

    return measure.of_torch(solve, [data["values"], data["b"]], data["seed"])


def with_cpp(library, variant, data, options):
    first, column = measure.aligned(data["first"]), measure.aligned(data["column"])
    # the transposed matrix: for each column the places of its entries and their rows
    order = np.argsort(data["column"], kind="stable").astype(np.int32)
    firsts = np.concatenate([[0], np.bincount(data["column"], minlength=N).cumsum()]).astype(np.int32)
    transposed = [measure.aligned(a) for a in (firsts, order, data["row"][order])]
    values, b, seed = (measure.aligned(data[name]) for name in ("values", "b", "seed"))
    xs = measure.aligned(np.zeros((STEPS + 1, N), dtype=np.float32))
    work, by_values, by_b = (measure.aligned(np.zeros(size, dtype=np.float32)) for size in (2 * N, len(values), N))
    system = [N, STEPS, first, column, values, b, xs]
    return measure.Gradient(
        measure.call_cpp(library.forward, *system),
        measure.call_cpp(library.both, *system, *transposed, seed, work, by_values, by_b),
        lambda: [by_values, by_b],
    )


if __name__ == "__main__":
    implementations = {"weft": with_warp, "peer": with_warp, "jax": with_jax, "torch": with_torch, "cpp": with_cpp}
    measure.gradients("jacobi", __doc__, ("csr",), problem, expected, implementations)
