"""Random programs on a CUDA device and on the CPU at one lane: the same bits where only + - * / and square roots occur,
fused or not; else to the rounding of the functions."""

import random
import re

import numpy as np
import pytest
import warp as wp
from generated import THREADS, Program
from runs import ROOMS, compiled, numbers, run_weft

pytestmark = pytest.mark.gpu

DEVICES = ("cpu", "cuda:0")
LEVELS = ('{"lanes": 1}', '{"lanes": 1, "optimization_level": 0}')


@pytest.fixture(autouse=True)
def _room_for_loops():
    before = wp.config.gradient_loop_bytes
    yield
    wp.config.gradient_loop_bytes = before


def on_both(seed, folder, threads, change=lambda text: text):
    """((values, gradients) on the CPU, the same on the GPU, the text) of a random program."""
    program = Program(random.Random(seed), rereads=seed % 2 == 0)
    program.text = change(program.text)
    module = compiled(program, folder, f"agree_{seed}_{threads}", LEVELS[seed % 2])
    wp.config.gradient_loop_bytes = ROOMS[seed // 2 % 2]
    values, weights = numbers(seed)
    found = []
    for device in DEVICES:
        with wp.ScopedDevice(device):
            found.append(run_weft(program, module, values, weights, threads))
    return *found, program.text


def exact(text):
    """The program without functions that are rounded differently: `squash` is a quotient."""
    return re.sub(r"\bwp\.(sin|cos|tan|sinh|cosh|tanh|asin|acos|atan|exp|log)\(", "squash(", text)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_one_thread_has_the_same_bits(tmp_path, first):
    """Of one thread, since threads add up in any order. Gradients differ by a rounding now and then: where no other
    thread is about, the CPU fuses a product with the sum that it is added to, and atomics of GPUs do not."""
    same = 0
    for seed in range(6 * 10**7 + first, 6 * 10**7 + first + 20):
        (values, gradients), (values_there, gradients_there), text = on_both(seed, tmp_path, 1, exact)
        for name in values:
            assert np.array_equal(values[name].view(np.uint64), values_there[name].view(np.uint64)), (
                f"seed {seed}: {name}\n{values[name]}\n{values_there[name]}\n{text}"
            )
            scale = 1.0 + max(np.abs(gradient).max() for gradient in gradients.values())
            assert np.all(np.abs(gradients[name] - gradients_there[name]) <= 4e-16 * scale), (
                f"seed {seed}: gradient of {name}\n{gradients[name]}\n{gradients_there[name]}\n{text}"
            )
            same += np.array_equal(gradients[name].view(np.uint64), gradients_there[name].view(np.uint64))
    assert same >= 0.95 * 20 * len(values)


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_threads_agree_but_for_the_order_of_sums(tmp_path, first):
    compared = 0
    for seed in range(8 * 10**7 + first, 8 * 10**7 + first + 10):
        cpu, gpu, text = on_both(seed, tmp_path, THREADS)
        again = run_again(seed, tmp_path)
        for kind, here, there, moved in zip(("value", "gradient"), cpu, gpu, again, strict=True):
            for name in here:
                # Where inputs that differ by their last bits give something else, a decision or a growth is near.
                scale = 1.0 + np.abs(here[name])
                if not np.all(np.abs(moved[name] - here[name]) <= 1e-9 * scale):
                    continue
                compared += 1
                assert np.all(np.abs(here[name] - there[name]) <= 1e-8 * scale), (
                    f"seed {seed}: {kind} of {name}\n{here[name]}\n{there[name]}\n{text}"
                )
    assert compared > 60


def run_again(seed, folder):
    """On the CPU, from numbers that differ by 1e-14 of themselves."""
    program = Program(random.Random(seed), rereads=seed % 2 == 0)
    module = compiled(program, folder, f"moved_{seed}", LEVELS[seed % 2])
    values, weights = numbers(seed)
    values = {name: value if name == "n" else value * (1.0 + 1e-14) for name, value in values.items()}
    with wp.ScopedDevice("cpu"):
        return run_weft(program, module, values, weights, THREADS)


def test_the_bits_are_those_of_the_arrays(tmp_path):
    """What is compared is not empty: every array of a program is there on both devices, and has gone through it."""
    cpu, gpu, _ = on_both(6 * 10**7, tmp_path, 1, exact)
    values, weights = numbers(6 * 10**7)
    assert set(cpu[0]) == set(gpu[0]) == set(weights)
    assert any(not np.array_equal(cpu[0][name], values[name]) for name in weights)
    assert any(np.abs(cpu[1][name]).max() > 0.0 for name in weights)
