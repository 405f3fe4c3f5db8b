"""Random sequences of whole-array operations, many of them in place, against central differences."""

import numpy as np
import pytest
import warp as wp
import warp.utils
from differences import check_program

SIZE = 4


@wp.kernel
def stir(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * y[i] + x[(i + 1) % x.shape[0]]


def launch(rng, a, b):
    if a is not b:
        wp.launch(stir, dim=SIZE, inputs=[a, b])


def launch_on_parts(rng, a, b):
    wp.launch(stir, dim=2, inputs=[a[:2], b[2:]])


def copy_part(rng, a, b):
    wp.copy(b, a, dest_offset=int(rng.integers(0, 2)), src_offset=int(rng.integers(0, 2)), count=2)


def assign_slice(rng, a, b):
    b[::2] = a[1::2]


def fill(rng, a, b):
    b[int(rng.integers(0, SIZE))] = 0.5


def operate(rng, a, b):
    b *= a
    b += wp.map(wp.cos, a)


def broadcast(rng, a, b):
    b -= a.reshape((SIZE, 1))[1] * 0.5


def scan(rng, a, b):
    wp.utils.array_scan(a, b, inclusive=bool(rng.integers(0, 2)))
    b *= 0.5


def sort(rng, a, b):
    keys = wp.array(rng.permutation(SIZE).astype(np.int32))
    wp.utils.radix_sort_pairs(keys, b, int(rng.integers(2, SIZE + 1)))


def multiply(rng, a, b):
    square = b.reshape((2, 2))
    wp.matmul(a.reshape((2, 2)), square.T, square, square, alpha=0.5, beta=0.25)


def gather(rng, a, b):
    b[rng.integers(0, SIZE, 3)] = a[rng.integers(0, SIZE, 3)]


def total(rng, a, b):
    wp.utils.array_sum(a, out=b[1:2])


def inner(rng, a, b):
    wp.utils.array_inner(a, b, out=b[:1])
    b *= 0.25


def narrow(rng, a, b):
    wp.copy(b, a.astype(wp.float64) * b)


OPERATIONS = [
    launch, launch_on_parts, copy_part, assign_slice, fill, operate, broadcast, scan, sort, multiply, gather, total,
    inner, narrow,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_random_operations_on_a_tape(seed):
    def program(*arrays):
        rng = np.random.default_rng(seed)
        pool = [wp.clone(array) for array in arrays]
        for _ in range(9):
            a, b = (pool[int(i)] for i in rng.integers(0, len(pool), 2))
            OPERATIONS[int(rng.integers(0, len(OPERATIONS)))](rng, a, b)
        return pool[0] + pool[1] * pool[2]

    values = list(np.random.default_rng(1000 + seed).uniform(-1.0, 1.0, (3, SIZE)))
    check_program(program, values, rtol=1e-5, atol=1e-6, unused=None)
