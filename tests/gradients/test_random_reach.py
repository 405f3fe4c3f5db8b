"""Random programs whose kernels reach arrays in every way: as arguments, in structs, in structs that lie in arrays, two
levels deep, by views that overlap, in lambdas and lists, and in functions with derivatives of their own.
They are recorded on one tape or on several, that are reset and used again. Against central differences."""

import numpy as np
import pytest
import warp as wp
from differences import numeric
from reaching import (
    Box,
    Pair,
    add_in_array,
    cross,
    cross_in_struct,
    from_argument_to_array,
    from_array_to_argument,
    mix,
    mix_by_functions,
    mix_in_array,
    mix_in_box,
    mix_in_boxes,
    mix_in_struct,
    mix_what_matches,
    spread,
    sum_in_array,
    sum_in_struct,
    swap_in_rounds,
    sweep,
)
from tapes import doubles

SIZE = 4


class Program:
    """A sequence of operations on a pool of arrays, the same for each call with the same seed."""

    def __init__(self, seed):
        self.seed = seed

    def run(self, pool, wide, first, last):
        rng = np.random.default_rng(self.seed)
        for step in range(last):
            numbers = [int(k) for k in rng.integers(0, 1000, 6)]
            if step >= first:
                self.operate(numbers, pool, wide)

    def operate(self, numbers, pool, wide):
        kind, a, b, c, d, e = numbers
        x, y = pool[a % len(pool)], pool[(a + 1 + b % (len(pool) - 1)) % len(pool)]
        factor = 0.25 + 0.001 * c
        pair = Pair()
        pair.x, pair.y, pair.factor = x, y, factor
        other = Pair()
        other.x, other.y, other.factor = y, x, 0.5
        pairs = wp.array([pair, other], dtype=Pair)
        alone = Pair()
        alone.x, alone.factor = x, factor
        both = wp.array([pair, pair], dtype=Pair)
        box = Box()
        box.pairs, box.at = pairs, d % 2
        empty = Box()

        def overlapping():
            wp.launch(sweep, dim=1, inputs=[x[: SIZE - 1], x[1:] if c % 2 else x[::-1], 1 + d % 3])

        def cross_wide():
            n = [3, 40, 3000][d % 3]
            wp.launch(cross, dim=n, inputs=[wide, y, n])

        operations = [
            lambda: wp.launch(mix, dim=SIZE, inputs=[x, y, factor]),
            lambda: wp.launch(mix_in_struct, dim=SIZE, inputs=[pair]),
            lambda: wp.launch(mix_in_array, dim=SIZE, inputs=[pairs, d % 2]),
            lambda: wp.launch(mix_in_array, dim=SIZE, inputs=[pairs[::-1], e % 2]),
            lambda: wp.launch(mix_in_box, dim=SIZE, inputs=[box]),
            lambda: wp.launch(mix_in_boxes, dim=SIZE, inputs=[wp.array([[empty, box]], dtype=Box)]),
            lambda: wp.launch(from_array_to_argument, dim=SIZE, inputs=[pairs, y]),
            lambda: wp.launch(from_argument_to_array, dim=SIZE, inputs=[x, pairs]),
            lambda: wp.launch(add_in_array, dim=SIZE, inputs=[x, pairs]),
            lambda: wp.launch(sweep, dim=1, inputs=[x, y, 1 + d % 4]),
            overlapping,
            cross_wide,
            lambda: wp.launch(cross_in_struct, dim=SIZE, inputs=[alone, y]),
            lambda: wp.copy(y, x, dest_offset=c % 2, src_offset=d % 2, count=2),
            lambda: y[1:3].assign(x[::2]),
            lambda: y[:2].fill_(0.25),
            lambda: wp.launch(mix_by_functions, dim=SIZE, inputs=[pair, both, d % 2]),
            lambda: wp.launch(mix_what_matches, dim=SIZE, inputs=[x, alone, y, d % 3]),
            lambda: wp.launch(sum_in_struct, dim=SIZE, inputs=[alone, y, d % 2]),
            lambda: wp.launch(sum_in_array, dim=SIZE, inputs=[wp.array([alone, alone], dtype=Pair), y, d % 2]),
            lambda: wp.launch(spread, dim=1, inputs=[x, both]),
            lambda: wp.launch(swap_in_rounds, dim=SIZE, inputs=[x, y]),
        ]
        operations[kind % len(operations)]()


STEPS = 8


def started(values):
    return [doubles(value, requires_grad=True) for value in values]


def pool_of(arrays):
    """The arrays of the program."""
    wide = wp.clone(arrays[2].reshape((3, 4))[:, :3], requires_grad=True)
    return [wp.clone(array, requires_grad=True) for array in (arrays[0], arrays[1])], wide


def weighted(outputs, weights):
    return sum(float(np.sum(output.numpy() * weight)) for output, weight in zip(outputs, weights))


def gradient(program, values, weights, way):
    arrays = started(values)
    tapes = [wp.Tape(), wp.Tape()]
    if way == "again":  # a recording that was forgotten leaves nothing
        with tapes[0]:
            pool, wide = pool_of(arrays)
            program.run(pool, wide, 0, STEPS)
        tapes[0].backward(grads={pool[0]: doubles(np.ones(SIZE))})
        tapes[0].reset()
    split = STEPS // 2 if way == "two" else STEPS
    with tapes[0]:
        pool, wide = pool_of(arrays)
        program.run(pool, wide, 0, split)
    with tapes[1]:  # on copies, as what the first one needs has to stay
        if way == "two":
            pool, wide = [wp.clone(array, requires_grad=True) for array in pool], wp.clone(wide, requires_grad=True)
        program.run(pool, wide, split, STEPS)
    seeds = {output: doubles(weight) for output, weight in zip([*pool, wide], weights)}
    if way == "two":
        tapes[1].backward(grads=seeds)
        tapes[0].backward()
    else:
        tapes[0].backward(grads=seeds)
    if way == "twice":
        tapes[0].zero()
        tapes[0].backward(grads=seeds)
    return [array.grad.numpy() for array in arrays]


@pytest.mark.parametrize("way", ["one", "twice", "again", "two"])
@pytest.mark.parametrize("seed", range(30))
def test_random_programs_that_reach_arrays_in_all_ways(seed, way):
    program = Program(seed)
    rng = np.random.default_rng(1000 + seed)
    values = [rng.uniform(-1.0, 1.0, n) for n in (SIZE, SIZE, 12)]
    weights = [rng.standard_normal(shape) for shape in (SIZE, SIZE, (3, 3))]

    def loss(moved):
        pool, wide = pool_of(started(moved))
        program.run(pool, wide, 0, STEPS)
        return weighted([*pool, wide], weights)

    found = gradient(program, values, weights, way)
    for mine, theirs in zip(found, numeric(loss, values, 1e-6)):
        scale = max(1.0, float(np.abs(theirs).max()))
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6 * scale)
