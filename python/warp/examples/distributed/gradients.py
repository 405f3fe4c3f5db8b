"""A line is fitted to points that are spread over several processes, with gradients that torch.distributed sums.

    torchrun --standalone --nproc-per-node 2 -m warp.examples.distributed.gradients

Each process has a part of the points. The kernel's backward pass writes the gradient of its part into an array, whose
memory `wp.to_torch` gives to the all-reduce: the sum arrives in the array, and Weft's optimizer takes its step. All
processes so take the same step, which is the one that a single process with all points takes.
"""

from __future__ import annotations

import argparse
import os

import numpy as np
import torch.distributed

import warp as wp
import warp.optim


@wp.kernel
def squares(weight: float, x: wp.array[float], y: wp.array[float], line: wp.array[float], loss: wp.array[float]):
    """Adds the squared distances of the points from the line, times a weight."""
    i = wp.tid()
    off = line[0] * x[i] + line[1] - y[i]
    wp.atomic_add(loss, 0, weight * off * off)


class Fit:
    """The line, and the points of one process."""

    def __init__(self, x: np.ndarray, y: np.ndarray, points: int):
        self.x, self.y = wp.array(x, dtype=float), wp.array(y, dtype=float)
        self.line = wp.zeros(2, dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.optimizer = warp.optim.SGD([self.line], lr=0.5)
        with wp.Tape() as self.tape:
            inputs = [1.0 / points, self.x, self.y, self.line, self.loss]
            wp.launch(squares, dim=len(x), inputs=inputs)
        # Shared memory: torch's writes to it change the gradient of the array.
        self.gradient = wp.to_torch(self.line.grad)

    def step(self, is_shared: bool) -> None:
        self.tape.zero()
        self.tape.backward(self.loss)
        if is_shared:
            torch.distributed.all_reduce(self.gradient)
        self.optimizer.step([self.line.grad])


def points(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points about the line y = 3 x - 1."""
    random = np.random.default_rng(7)
    x = random.uniform(-1.0, 1.0, count).astype(np.float32)
    return x, (3.0 * x - 1.0 + 0.1 * random.normal(size=count)).astype(np.float32)


def fit(count: int, steps: int, rank: int, processes: int) -> np.ndarray:
    """Slope and height of the line after so many steps."""
    x, y = points(count)
    own = Fit(x[rank::processes], y[rank::processes], count)
    for _ in range(steps):
        own.step(is_shared=processes > 1)
    return own.line.numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=10000)
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    rank, processes = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if processes > 1:
        torch.distributed.init_process_group("gloo")
    together = fit(options.points, options.steps, rank, processes)
    if rank == 0:
        alone = fit(options.points, options.steps, 0, 1)
        exact = np.polyfit(*points(options.points), 1)
        print(f"{processes} processes: y = {together[0]:.4f} x + {together[1]:.4f}")
        print(f"largest difference from one process: {np.abs(together - alone).max()}")
        print(f"largest difference from the exact line: {np.abs(together - exact).max()}")
    if processes > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
