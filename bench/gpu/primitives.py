"""Sums, running sums and runs of 64 M elements on a GPU, beside torch's, which are CUB's.

torch adds float32 in float32, Weft in float64. `--small` takes 100,000 elements, to show that the program runs: on the
emulated device, say.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

# variant: work, type
WORK = {
    f"{work} {name}": (work, dtype)
    for work in ("sum", "scan", "runs")
    for name, dtype in (("f32", "float32"), ("f64", "float64"), ("i32", "int32"))
    if (work, name) != ("runs", "f64")
}
# Rows and columns of one shape.
WORK |= {f"sum f32, axis {axis} of {shape}": (axis, shape) for shape in ("long rows", "short rows") for axis in (0, 1)}
N = {"all": 1 << 26}
BATCH = 10


def shape_of(kind):
    return (64, N["all"] // 64) if kind == "long rows" else (N["all"] // 64, 64)


def problem(variant):
    random = np.random.default_rng(3)
    work, kind = WORK[variant]
    if isinstance(work, int):
        return random.standard_normal(shape_of(kind)).astype(np.float32)
    if work == "runs":
        return np.repeat(random.integers(0, 100, N["all"] // 4), 4).astype(kind)
    if kind == "int32":
        return random.integers(-100, 100, N["all"]).astype(kind)
    return random.standard_normal(N["all"]).astype(kind)


def expected(variant, data):
    work, _ = WORK[variant]
    wide = np.int64 if data.dtype == np.int32 else np.float64
    if isinstance(work, int):
        return data.sum(axis=work, dtype=wide)
    if work == "sum":
        return data.sum(dtype=wide)
    if work == "scan":
        return np.cumsum(data, dtype=wide)
    return np.diff(np.append(np.flatnonzero(np.append(True, data[1:] != data[:-1])), len(data)))


def with_weft(wp, variant, data):
    """The work to enqueue, and its result."""
    work, _ = WORK[variant]
    x = wp.array(data, device="cuda:0")
    if isinstance(work, int):
        total = wp.zeros(wp.utils.array_sum(x, axis=work).shape, dtype=x.dtype, device="cuda:0")
        return lambda: wp.utils.array_sum(x, out=total, axis=work), lambda: total.numpy().reshape(-1)
    if work == "sum":
        total = wp.zeros(1, dtype=wp.int64 if data.dtype == np.int32 else wp.float64, device="cuda:0")
        return lambda: wp.utils.array_sum(x, out=total), lambda: total.numpy()[0]
    if work == "scan":
        out = wp.empty_like(x)
        return lambda: wp.utils.array_scan(x, out, True), out.numpy
    values, lengths = wp.empty_like(x), wp.empty(x.size, dtype=int, device="cuda:0")
    runs = []
    return (
        lambda: runs.append(wp.utils.runlength_encode(x, values, lengths)),
        lambda: lengths.numpy()[: runs[-1]],
    )


def with_torch(variant, data):
    import torch

    work, _ = WORK[variant]
    x = torch.from_numpy(data).cuda()
    results = {}
    if isinstance(work, int):
        call = partial(torch.sum, x, dim=work)
    elif work == "sum":
        call = partial(torch.sum, x)
    elif work == "scan":
        call = partial(torch.cumsum, x, 0, dtype=x.dtype)
    else:
        call = partial(torch.unique_consecutive, x, return_counts=True)

    def result():
        last = results["last"]
        return (last[1] if work == "runs" else last).cpu().numpy()

    return lambda: results.update(last=call()), result


def prepare(library, variant, options):
    data = problem(variant)
    if options.implementation == "torch":
        import torch

        enqueue, result = with_torch(variant, data)
        wait = torch.cuda.synchronize
    else:
        enqueue, result = with_weft(library, variant, data)

        def wait():
            library.synchronize_device("cuda:0")

    def check():
        exact = expected(variant, data)
        bound = 0 if exact.dtype.kind == "i" else 2e-3 * np.sqrt(data.size)
        if options.implementation == "weft":
            bound = 1e-6 * max(1.0, np.abs(exact).max()) if bound else 0
        assert np.abs(result().astype(exact.dtype) - exact).max() <= bound, variant

    return measure.Queued(enqueue, wait, check, BATCH)


if __name__ == "__main__":
    parser = measure.arguments(__doc__, tuple(WORK), ("weft", "torch"))
    parser.add_argument("--small", action="store_true", help="100,000 elements")
    options = parser.parse_args()
    if options.small:
        N["all"] = 64 * 1600
    library = None
    if options.implementation == "weft":
        library = measure.import_warp(options.implementation, options.fast, backward=False)
    measure.queued("gpu primitives", options, tuple(WORK), lambda variant: prepare(library, variant, options))
