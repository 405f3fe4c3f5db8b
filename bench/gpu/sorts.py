"""Stable sorts of pairs on a GPU, 32 M of them, beside CUB's, which `torch.sort` calls with int64 positions for values.

Weft sorts in place, so that each run begins with copies of keys and values; torch makes the positions and new arrays.

`--small` takes a few thousand pairs, to show that the program runs: on the emulated device, say.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

# variant: type of the keys, of the values, pairs of a segment or 0
WORK = {
    "sort i32, i32": ("int32", "int32", 0),
    "sort i32, i64": ("int32", "int64", 0),
    "sort f32, i64": ("float32", "int64", 0),
    "sort i64, i64": ("int64", "int64", 0),
    "segments of 100": ("float32", "int64", 100),
    "segments of 1000": ("float32", "int64", 1000),
    "segments of 1 M": ("float32", "int64", 1_000_000),
}
BATCH = 5  # runs between two waits


def problem(variant, is_small):
    """Keys, and the ends of segments."""
    kind, _, segment = WORK[variant]
    n = 10_000 if is_small else 32_000_000
    rng = np.random.default_rng(7)
    if kind == "float32":
        keys = rng.standard_normal(n, dtype=np.float32)
    else:
        limits = np.iinfo(kind)
        keys = rng.integers(limits.min, limits.max, n, dtype=kind)
    return keys, np.minimum(np.arange(0, n + segment, segment), n) if segment else np.array([0, n])


def check_order(keys, bounds, sorted_keys, order):
    np.testing.assert_array_equal(sorted_keys, keys[order])
    owners = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    np.testing.assert_array_equal(owners[order], owners)
    ends = np.diff(owners) == 0
    assert np.all(
        (sorted_keys[:-1] < sorted_keys[1:])[ends]
        | ((sorted_keys[:-1] == sorted_keys[1:]) & (order[:-1] < order[1:]))[ends]
    )


def with_weft(wp, variant, is_small):
    keys, bounds = problem(variant, is_small)
    n = len(keys)
    source, work = wp.array(keys, device="cuda:0"), wp.array(keys, device="cuda:0")
    positions = wp.array(np.arange(n), dtype=getattr(wp, WORK[variant][1]), device="cuda:0")
    order = wp.empty_like(positions)
    segments = wp.array(bounds, dtype=wp.int32, device="cuda:0")

    def run():
        wp.copy(work, source)
        wp.copy(order, positions)
        if len(bounds) > 2:
            wp.utils.segmented_sort_pairs(work, order, n, segments)
        else:
            wp.utils.radix_sort_pairs(work, order, n)

    return measure.Queued(
        run,
        lambda: wp.synchronize_device("cuda:0"),
        lambda: check_order(keys, bounds, work.numpy(), order.numpy()),
        BATCH,
    )


def with_torch(torch, variant, is_small):
    keys, bounds = problem(variant, is_small)
    kind, values, segment = WORK[variant]
    if values != "int64" or (segment and len(keys) % segment):
        raise ValueError(f"torch.sort has int64 positions and rows of one length; {variant!r} has not")
    source = torch.from_numpy(keys).cuda()
    rows = source.view(-1, segment) if segment else source.view(1, -1)
    result = []

    def run():
        result[:] = torch.sort(rows, dim=1, stable=True)

    def check():
        found, places = (each.cpu().numpy() for each in result)
        order = (places + bounds[:-1, None]).reshape(-1)
        check_order(keys, bounds, found.reshape(-1), order)

    return measure.Queued(run, torch.cuda.synchronize, check, BATCH)


if __name__ == "__main__":
    parser = measure.arguments(__doc__, tuple(WORK), ("weft", "torch"))
    parser.add_argument("--small", action="store_true", help="a few thousand pairs")
    options = parser.parse_args()
    if options.implementation == "torch":
        import torch

        measure.queued("gpu sorts", options, tuple(WORK), lambda variant: with_torch(torch, variant, options.small))
    else:
        library = measure.import_warp(options.implementation, options.fast)
        library.set_device("cuda:0")
        measure.queued("gpu sorts", options, tuple(WORK), lambda variant: with_weft(library, variant, options.small))
