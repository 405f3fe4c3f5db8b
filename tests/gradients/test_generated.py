"""Random programs: values and gradients of all arrays against the same text run by Python on dual numbers, on numbers
of JAX and PyTorch, and some against central differences."""

import copy
import random

import frameworks
import numpy as np
import pytest
import warp as wp
from generated import PARAMETERS, THREADS, Program
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs import OPTIONS, arrays_of_weft, as_numbers, check, check_forward, compiled, numbers, run_duals, run_weft


@pytest.fixture(autouse=True)
def _room_for_loops():
    before = wp.config.gradient_loop_bytes
    yield
    wp.config.gradient_loop_bytes = before


SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck))


@settings(SETTINGS, max_examples=100)
@given(st.integers(0, 10**6))
def test_programs_have_the_gradient_of_dual_numbers(tmp_path_factory, seed):
    check(seed, tmp_path_factory.mktemp("generated"))


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_most_programs_can_be_compared(tmp_path, first):
    assert sum(check(seed, tmp_path) for seed in range(first, first + 10)) >= 7


@pytest.mark.own_launches("large numbers cancel in its sums")
@pytest.mark.parametrize("first", range(0, 40, 20))
def test_programs_that_use_what_atomics_give(tmp_path, first):
    seeds = range(7 * 10**7 + first, 7 * 10**7 + first + 20)
    assert sum(check(seed, tmp_path, tickets=True) for seed in seeds) >= 10


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_programs_have_the_tangents_of_dual_numbers(tmp_path, first):
    seeds = range(4 * 10**7 + first, 4 * 10**7 + first + 20)
    assert sum(check_forward(seed, tmp_path) for seed in seeds) >= 12


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_programs_have_the_gradient_of_jax(tmp_path, first, jax_process):
    """Of one thread, in programs that are short enough: each operation takes JAX a millisecond."""
    seeds = range(2 * 10**7 + first, 2 * 10**7 + first + 20)
    assert sum(jax_process(check, seed, tmp_path, frameworks.of_jax, 1, 300) for seed in seeds) >= 8


@pytest.mark.large
@pytest.mark.parametrize("first", range(0, 10_000, 500))
def test_ten_thousand_programs_have_the_gradient_of_torch(tmp_path, first):
    seeds = range(3 * 10**7 + first, 3 * 10**7 + first + 500)
    assert sum(check(seed, tmp_path, frameworks.of_torch) for seed in seeds) >= 300


@pytest.mark.large
@pytest.mark.parametrize("first", range(0, 10_000, 500))
def test_ten_thousand_programs(tmp_path, first):
    assert sum(check(seed, tmp_path) for seed in range(10**7 + first, 10**7 + first + 500)) >= 300


def weighted(program, module, values, weights):
    """The sum that the gradients are of, without a tape."""
    arrays = arrays_of_weft(values, module.Body)
    for kernel in program.launches:
        wp.launch(getattr(module, kernel), dim=THREADS, inputs=arrays)
    named = {name: array for (name, _), array in zip(PARAMETERS, arrays)}
    return sum(float(np.sum(as_numbers(named[name], name) * weight)) for name, weight in weights.items())


@pytest.mark.parametrize("seed", range(1, 60, 12))
def test_programs_have_the_gradient_of_differences(tmp_path, seed):
    """Of twelve numbers of each program; if two step sizes disagree a decision is near, and nothing is proved."""
    program = Program(random.Random(seed), rereads=seed % 2 == 0)
    values, weights = numbers(seed)
    if run_duals(program, values, weights, THREADS) is None:
        return
    module = compiled(program, tmp_path, f"differences_{seed}", OPTIONS[seed % len(OPTIONS)])
    _, gradients = run_weft(program, module, values, weights, THREADS)
    rng = np.random.default_rng(seed)
    for _ in range(12):
        name = rng.choice(list(weights))
        at = tuple(rng.integers(0, values[name].shape))
        quotients = []
        for step in (1e-5, 4e-6):
            ends = []
            for side in (step, -step):
                moved = copy.deepcopy(values)
                moved[name][at] += side
                ends.append(weighted(program, module, moved, weights))
            quotients.append((ends[0] - ends[1]) / (2 * step))
        scale = max(1.0, float(np.abs(gradients[name]).max()))
        if abs(quotients[0] - quotients[1]) < 1e-7 * scale:
            assert abs(gradients[name][at] - quotients[1]) < 1e-6 * scale, (name, at, program.text)
