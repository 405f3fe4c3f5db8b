"""Heat spreads in a plate that is cut into bands of rows, one for each process of MPI.

    mpirun -np 2 python -m warp.examples.distributed.halo

A process owns the rows of its band and has one row more at each end, its halo: a copy of the neighbour's edge. A step
starts the exchange of edges, computes the rows that need no halo while the messages are under way, waits, and computes
the two rows at the ends. MPI reads and writes the arrays in place: a row of an array is a buffer. As the arrays never
move, the messages are described once (persistent requests) and only started in each step.
"""

from __future__ import annotations

import argparse

import numpy as np
from mpi4py import MPI

import warp as wp


@wp.kernel
def diffuse(rate: float, first: int, u: wp.array2d[float], u_new: wp.array2d[float]):
    """A row of `u` from number `first` on; the first and the last column stay as they are."""
    row, column = wp.tid()
    i, j = row + first, column + 1
    around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
    u_new[i, j] = u[i, j] + rate * (around - 4.0 * u[i, j])


class Band:
    """The rows of one process, twice: a step reads one copy and writes the other."""

    def __init__(self, communicator: MPI.Comm, plate: np.ndarray):
        self.rank, processes = communicator.Get_rank(), communicator.Get_size()
        inner = len(plate) - 2  # the plate's first and last row stay as they are
        if inner < 2 * processes:
            raise ValueError(f"a plate of {len(plate)} rows is too small for {processes} processes")
        begin, end = inner * self.rank // processes, inner * (self.rank + 1) // processes
        self.rows, self.columns = end - begin, plate.shape[1]
        self.copies = [wp.array(plate[begin : end + 2], dtype=float) for _ in range(2)]
        above = self.rank - 1 if self.rank > 0 else MPI.PROC_NULL
        below = self.rank + 1 if self.rank + 1 < processes else MPI.PROC_NULL
        self.messages = [self.messages_of(communicator, u, above, below) for u in self.copies]
        self.steps = 0

    def messages_of(self, communicator: MPI.Comm, u: wp.array, above: int, below: int) -> list[MPI.Prequest]:
        """The messages before a step that reads `u`: its outer rows go out, its halo comes in."""
        return [
            communicator.Recv_init(u[0], source=above, tag=0),
            communicator.Recv_init(u[self.rows + 1], source=below, tag=1),
            communicator.Send_init(u[1], dest=above, tag=1),
            communicator.Send_init(u[self.rows], dest=below, tag=0),
        ]

    def step(self, rate: float) -> None:
        now, messages = self.steps % 2, self.messages[self.steps % 2]
        u, u_new = self.copies[now], self.copies[1 - now]
        MPI.Prequest.Startall(messages)
        wp.launch(diffuse, dim=(self.rows - 2, self.columns - 2), inputs=[rate, 2, u], outputs=[u_new])
        MPI.Prequest.Waitall(messages)
        for edge in (1, self.rows):
            wp.launch(diffuse, dim=(1, self.columns - 2), inputs=[rate, edge, u], outputs=[u_new])
        self.steps += 1

    def own_rows(self) -> np.ndarray:
        """The rows of this process, without its halo; a view."""
        return self.copies[self.steps % 2].numpy()[1:-1]


def start(rows: int, columns: int) -> np.ndarray:
    """A cold plate with a hot upper edge, and a warm spot that lies across the cut."""
    plate = np.zeros((rows, columns), dtype=np.float32)
    plate[0] = 1.0
    plate[rows // 3 : 2 * rows // 3, columns // 3 : columns // 2] = 0.5
    return plate


def run(communicator: MPI.Comm, rows: int, columns: int, steps: int, rate: float = 0.2) -> np.ndarray | None:
    """The inner rows of the plate after so many steps; on process 0, None on the others."""
    band = Band(communicator, start(rows, columns))
    for _ in range(steps):
        band.step(rate)
    bands = communicator.gather(band.own_rows(), root=0)
    return None if bands is None else np.concatenate(bands)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=514)
    parser.add_argument("--columns", type=int, default=512)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    sizes = (options.rows, options.columns, options.steps)
    together = run(MPI.COMM_WORLD, *sizes)
    if together is not None:
        alone = run(MPI.COMM_SELF, *sizes)
        print(f"{MPI.COMM_WORLD.Get_size()} processes, {options.steps} steps, heat {together.sum(dtype=float):.3f}")
        print(f"largest difference from one process: {np.abs(together - alone).max()}")


if __name__ == "__main__":
    main()
