"""The cost of a framework's tensors in launches: five of ten elements, given to a kernel that does nothing."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import warp as wp


@wp.kernel
def of_scalars(a: wp.array[float], b: wp.array[float], c: wp.array[float], d: wp.array[float], e: wp.array[float]):
    pass


@wp.kernel
def of_vectors(
    a: wp.array[wp.vec3f], b: wp.array[wp.vec3f], c: wp.array[wp.vec3f], d: wp.array[wp.vec3f], e: wp.array[wp.vec3f]
):
    pass


@wp.kernel
def of_matrices(
    a: wp.array[wp.mat22f],
    b: wp.array[wp.mat22f],
    c: wp.array[wp.mat22f],
    d: wp.array[wp.mat22f],
    e: wp.array[wp.mat22f],
):
    pass


KINDS = (
    (None, (), of_scalars),
    (wp.float32, (), of_scalars),
    (wp.vec3f, (3,), of_vectors),
    (wp.mat22f, (2, 2), of_matrices),
)


def _milliseconds(run: Callable[[], None], rounds: int, device: Any) -> int:
    run()
    wp.synchronize_device(device)
    start = time.perf_counter()
    for _ in range(rounds):
        run()
    wp.synchronize_device(device)
    return round(1000 * (time.perf_counter() - start))


def main(framework: str, make: Callable[[tuple, Any], Any], convert: Callable) -> None:
    """Prints how many milliseconds each way takes: conversions, conversions for launches only, none.

    Args:
        framework: its name.
        make: a tensor of zeros, from its shape and a device.
        convert: wp.from_torch or the like.
    """
    parser = argparse.ArgumentParser(description=f"What tensors of {framework} cost in launches.")
    parser.add_argument("--rounds", type=int, default=100_000, help="of five tensors and one launch (100000)")
    parser.add_argument("--device", default=None, help="where tensors and launches are; the default device")
    options = parser.parse_args()
    device = wp.get_device(options.device)
    for dtype, inner, kernel in KINDS:
        print(f"dtype={'default' if dtype is None else wp.types.type_repr(dtype)}")
        tensors = [make((10, *inner), device) for _ in range(5)]

        def launch(inputs: list, kernel: Any = kernel) -> None:
            wp.launch(kernel, dim=10, inputs=inputs, device=device)

        def converted(dtype: Any = dtype, tensors: list = tensors, launch: Any = launch) -> None:
            launch([convert(tensor, dtype=dtype) for tensor in tensors])

        def structures(dtype: Any = dtype, tensors: list = tensors, launch: Any = launch) -> None:
            launch([convert(tensor, dtype=dtype, return_ctype=True) for tensor in tensors])

        def direct(tensors: list = tensors, launch: Any = launch) -> None:
            launch(tensors)

        ways = (
            (f"{convert.__name__}(...)", converted),
            (f"{convert.__name__}(..., return_ctype=True)", structures),
            (f"direct from {framework}", direct),
        )
        for label, run in ways:
            print(f"{_milliseconds(run, options.rounds, device):5d} ms  {label}")
