"""Random programs on a CUDA device and on the CPU at one lane, in float64 and float32.

With only + - * / and square roots, fused or not, values and gradients have the same bits, except sums of several
threads in one number: their order is not fixed, and they agree to a few units in the last place of their
terms' absolute sum. With other functions results agree as far as the functions do (test_libraries_of_gpus.py): as far
as the CPU's results move if each call of a function moves by that.
"""

import random

import numpy as np
import pytest
import warp as wp
from generated import PARAMETERS, THREADS, Program
from rewritten import absolute, exact, moved, single
from runs import ROOMS, arrays_of_weft, as_numbers, compiled, numbers

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("compares both devices by itself")]

DEVICES = ("cpu", "cuda:0")
LEVELS = ('{"lanes": 1}', '{"lanes": 1, "optimization_level": 0}')
QUICK = LEVELS[1]  # of what is compiled to judge by
EPSILON = {wp.float64: 2.0**-52, wp.float32: 2.0**-23}
BITS = {wp.float64: np.uint64, wp.float32: np.uint32}
# Several threads add to these, in any order: to the values of `total`, and to the gradients of what they all read.
SUMS = {"value": {"total"}, "gradient": {"x", "v"}}
# Units in the last place of the sum of absolute terms: twice of what was found in hundreds of programs.
SUM_UNITS = 4.0
# A function is within two units in the last place of its value on either device.
FUNCTION_UNITS = 4.0


@pytest.fixture(autouse=True)
def _room_for_loops():
    before = wp.config.gradient_loop_bytes
    yield
    wp.config.gradient_loop_bytes = before


@pytest.fixture(params=[wp.float64, wp.float32], ids=lambda dtype: dtype.__name__)
def dtype(request):
    return request.param


class Case:
    """A program with its numbers."""

    def __init__(self, seed, folder, dtype, change=lambda text: text):
        self.seed, self.folder, self.dtype = seed, folder, dtype
        self.program = Program(random.Random(seed), rereads=seed % 2 == 0)
        self.text = change(self.program.text)
        self.values, self.weights = numbers(seed)
        self.module = self.compiled(self.text, LEVELS[seed % 2])

    def compiled(self, text, options, name=""):
        self.program.text = single(text) if self.dtype is wp.float32 else text
        return compiled(self.program, self.folder, f"agree_{self.seed}_{self.dtype.__name__}{name}", options)

    def run(self, device, threads, module=None, values=None, weights=None):
        """{"value": the arrays by name, "gradient": those of their weighted sum}"""
        module = module or self.module
        wp.config.gradient_loop_bytes = ROOMS[self.seed // 2 % 2]
        with wp.ScopedDevice(device):
            arrays = arrays_of_weft(values or self.values, module.Body, self.dtype)
            with wp.Tape() as tape:
                for kernel in self.program.launches:
                    wp.launch(getattr(module, kernel), dim=threads, inputs=arrays)
            named = {name: array for (name, _), array in zip(PARAMETERS, arrays, strict=True) if name != "n"}
            seeds = arrays_of_weft({**self.values, **(weights or self.weights)}, module.Body, self.dtype)
            found = {name: as_numbers(array, name).copy() for name, array in named.items()}
            seeds = {name: seed for (name, _), seed in zip(PARAMETERS, seeds, strict=True) if name != "n"}
            tape.backward(grads={array: seeds[name] for name, array in named.items()})
            return {"value": found, "gradient": {name: as_numbers(a.grad, name) for name, a in named.items()}}

    def sizes_of_sums(self, threads):
        """The absolute sums of the terms, in the place of the sums."""

        def positive(arrays, names):
            return {name: np.abs(array) if name in names else array for name, array in arrays.items()}

        module = self.compiled(absolute(self.text), QUICK, "_absolute")
        values, weights = positive(self.values, SUMS["value"]), positive(self.weights, SUMS["gradient"])
        return self.run("cpu", threads, module, values, weights)

    def assert_all(self, fits, kind, name, here, there):
        assert fits.all(), (
            f"seed {self.seed}, {self.dtype.__name__}: {kind} of {name}\n{here}\n{there}\n{self.text}\n"
            f"launches: {self.program.launches}"
        )


def same_bits(a, b, dtype):
    return a.astype(a.dtype).view(BITS[dtype]) == b.view(BITS[dtype])


@pytest.mark.parametrize("first", [0, 20])
def test_arithmetic_has_the_same_bits(tmp_path, dtype, first):
    """Of one thread and of several. The CPU may fuse an addition of one thread alone to the gradient of `x` or `v` with
    the product before it, and atomics of GPUs do not: these are sums in either case."""
    equal, rounded = 0, 0
    for seed in range(6 * 10**7 + first, 6 * 10**7 + first + 20):
        case, sizes = Case(seed, tmp_path, dtype, exact), None
        for threads in (1, THREADS):
            cpu, gpu = (case.run(device, threads) for device in DEVICES)
            for kind, sums in SUMS.items():
                for name, here in cpu[kind].items():
                    there = gpu[kind][name]
                    same = same_bits(here, there, dtype)
                    equal, rounded = equal + same.sum(), rounded + (~same).sum()
                    if name not in sums:
                        case.assert_all(same, kind, name, here, there)
                    elif not same.all():
                        sizes = sizes if sizes and sizes[0] == threads else (threads, case.sizes_of_sums(threads))
                        size = np.abs(sizes[1][kind][name])
                        # Rounded themselves, sums are not larger than that of their absolute terms.
                        case.assert_all(np.abs(here) <= size * 1.001, f"absolute {kind}", name, here, size)
                        bound = SUM_UNITS * EPSILON[dtype] * size
                        case.assert_all(np.abs(here - there) <= bound, kind, name, here, there)
    assert rounded < 0.02 * equal and equal > 5000


@pytest.mark.parametrize("first", [0, 8])
def test_functions_agree_to_their_units_in_the_last_place(tmp_path, dtype, first):
    epsilon, tight, compared = EPSILON[dtype], 0, 0
    for seed in range(8 * 10**7 + first, 8 * 10**7 + first + 8):
        case = Case(seed, tmp_path, dtype)
        cpu, gpu = (case.run(device, THREADS) for device in DEVICES)
        others = []
        for draw in range(3):
            text = moved(case.text, random.Random(draw), FUNCTION_UNITS * epsilon)
            others.append(case.run("cpu", THREADS, case.compiled(text, QUICK, f"_{draw}")))
        for kind in SUMS:
            for name, here in cpu[kind].items():
                way = sum(np.abs(other[kind][name] - here) for other in others)
                bound = way + 2.0 * epsilon * (1.0 + np.abs(here))
                case.assert_all(np.abs(here - gpu[kind][name]) <= bound, kind, name, here, gpu[kind][name])
                compared += here.size
                tight += (bound <= 1000.0 * epsilon * (1.0 + np.abs(here))).sum()
    assert tight > 0.95 * compared > 1000, "the bounds say something"


def test_the_bits_are_those_of_the_arrays(tmp_path):
    """The comparison is not empty: every array of a program exists on both devices, and has gone through it."""
    case = Case(6 * 10**7, tmp_path, wp.float64, exact)
    cpu, gpu = (case.run(device, 1) for device in DEVICES)
    assert set(cpu["value"]) == set(gpu["value"]) == set(case.weights)
    assert any(not np.array_equal(cpu["value"][name], case.values[name]) for name in case.weights)
    assert any(np.abs(cpu["gradient"][name]).max() > 0.0 for name in case.weights)


def test_a_result_that_is_off_is_noticed(tmp_path, dtype):
    """By one unit in the last place of one number, or of a function's."""
    case = Case(6 * 10**7, tmp_path, dtype, exact)
    here = case.run("cpu", 1)["value"]["s"]
    assert not same_bits(here, np.nextafter(here, np.inf, dtype=here.dtype), dtype).any()
    case = Case(8 * 10**7, tmp_path, dtype)
    off = case.compiled(moved(case.text, random.Random(0), 1000.0 * EPSILON[dtype]), QUICK, "_off")
    plain, wrong = case.run("cpu", THREADS), case.run("cpu", THREADS, off)
    assert any(
        (np.abs(plain["value"][name] - wrong["value"][name]) > 50.0 * EPSILON[dtype]).any() for name in case.weights
    )
