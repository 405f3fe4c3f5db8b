"""Random programs: values and gradients of all arrays against the same text run by Python on dual numbers, and some
against central differences."""

import copy
import random

import duals
import numpy as np
import pytest
import warp as wp
from generated import COLUMNS, PARAMETERS, THREADS, Program
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sweep import load

# The optimiser, which takes most of the time, has no part in what is tested here.
OPTIONS = [f'{{"optimization_level": 0, "lanes": {lanes}}}' for lanes in (1, 4, 1, 8, 1)] + ["{}"]
# What loops may keep: all states, or two of them.
ROOMS = (1 << 24, 1)
# Programs whose numbers grow beyond this, or that decide by less than this, prove nothing.
LARGE, NARROW = 1e7, 1e-7


def numbers(seed):
    """The contents of all arrays before the first launch; of bodies (m, p), their k is 0."""
    rng = np.random.default_rng(seed)
    made = {
        "x": rng.uniform(-1.5, 1.5, THREADS),
        "v": rng.uniform(-1, 1, (THREADS, 3)),
        "n": rng.integers(0, 5, THREADS).astype(np.int32),
        "s": rng.uniform(-1, 1, (THREADS, COLUMNS)),
        "w": rng.uniform(-1, 1, (THREADS, 3)),
        "q": rng.uniform(-1, 1, (THREADS, 4)),
        "total": rng.uniform(-1, 1, 3),
    }
    weights = {name: rng.standard_normal(value.shape) for name, value in made.items() if name != "n"}
    return made, weights


def arrays_of_weft(values, Body):
    made = []
    for name, kind in PARAMETERS:
        value = values[name]
        if name == "n":
            made.append(wp.array(value, dtype=int))
        elif name == "q":
            bodies = np.zeros(THREADS, dtype=wp.zeros(1, dtype=Body).numpy().dtype)
            bodies["m"], bodies["p"] = value[:, 0], value[:, 1:]
            made.append(wp.array(bodies, dtype=Body, requires_grad=True))
        else:
            dtype = wp.vec3d if "vec3d" in kind else wp.float64
            made.append(wp.array(value, dtype=dtype, requires_grad=True))
    return made


def as_numbers(array, name):
    found = array.numpy()
    return np.concatenate([found["m"][:, None], found["p"]], axis=1) if name == "q" else found


def run_weft(program, module, values, weights):
    """(values, gradients) by array."""
    arrays = arrays_of_weft(values, module.Body)
    tape = wp.Tape()
    with tape:
        for kernel in program.launches:
            wp.launch(getattr(module, kernel), dim=THREADS, inputs=arrays)
    named = {name: array for (name, _), array in zip(PARAMETERS, arrays)}
    seeds = {}
    for name, weight in weights.items():
        seed = arrays_of_weft({**values, name: weight}, module.Body)[[n for n, _ in PARAMETERS].index(name)]
        seeds[named[name]] = seed
    found = {name: as_numbers(named[name], name).copy() for name in weights}
    tape.backward(grads=seeds)
    return found, {name: as_numbers(named[name].grad, name) for name in weights}


def run_duals(program, values, weights, n):
    """The same by dual numbers; None where the program proves nothing."""
    names = duals.load(program.text)
    count = sum(value.size for value in weights.values())
    place = iter(np.eye(count))

    def dual(x):
        return duals.Dual(x, next(place))

    made = {"n": duals.Array([int(k) for k in n], 1)}
    for name in weights:
        value = values[name]
        if name in ("x", "total"):
            made[name] = duals.Array([dual(x) for x in value], 1)
        elif name == "s":
            made[name] = duals.Array([[dual(x) for x in row] for row in value], 2)
        elif name == "q":
            bodies = []
            for row in value:
                body = names["Body"]()
                body.m, body.p = dual(row[0]), duals.Vector(*(dual(x) for x in row[1:]))
                bodies.append(body)
            made[name] = duals.Array(bodies, 1)
        else:
            made[name] = duals.Array([duals.Vector(*(dual(x) for x in row)) for row in value], 1)
    duals.Trace.reset()
    try:
        for kernel in program.launches:
            duals.launch(names[kernel], THREADS, [made[name] for name, _ in PARAMETERS])
    except (OverflowError, ZeroDivisionError):
        return None
    if duals.Trace.size > LARGE or duals.Trace.margin < NARROW:
        return None
    found, gradient = {}, np.zeros(count)
    for name, weight in weights.items():
        rows = made[name].values
        if name == "q":
            flat = [x for body in rows for x in (body.m, *body.p.parts)]
        elif name == "s":
            flat = [x for row in rows for x in row]
        else:
            flat = [x for row in rows for x in (row.parts if isinstance(row, duals.Vector) else [row])]
        found[name] = np.array([x.value for x in flat]).reshape(weight.shape)
        for x, factor in zip(flat, weight.ravel()):
            gradient = gradient + factor * x.slope
    if not np.abs(gradient).max() < LARGE:
        return None
    ends = np.cumsum([weight.size for weight in weights.values()])[:-1]
    pieces = np.split(gradient, ends)
    return found, {name: piece.reshape(w.shape) for (name, w), piece in zip(weights.items(), pieces)}


@pytest.fixture(autouse=True)
def _room_for_loops():
    before = wp.config.gradient_loop_bytes
    yield
    wp.config.gradient_loop_bytes = before


def compiled(program, folder, name, options):
    return load(program.text.replace("@wp.kernel\n", f"@wp.kernel(module_options={options})\n"), folder, name)


def check(seed, folder):
    """Whether the program with this number could be compared."""
    program = Program(random.Random(seed), rereads=seed % 2 == 0)
    values, weights = numbers(seed)
    expected = run_duals(program, values, weights, values["n"])
    if expected is None:
        return False
    module = compiled(program, folder, f"generated_{seed}", OPTIONS[seed % len(OPTIONS)])
    wp.config.gradient_loop_bytes = ROOMS[seed // 2 % 2]
    found = run_weft(program, module, values, weights)
    for kind, got, want in zip(("value", "gradient"), found, expected):
        scale = max(1.0, *(float(np.abs(a).max()) for a in want.values()))
        for name in weights:
            error = np.abs(got[name] - want[name])
            if not (error <= 1e-9 * scale).all():
                at = tuple(
                    int(k)
                    for k in np.unravel_index(np.nanargmax(np.where(np.isnan(error), np.inf, error)), error.shape)
                )
                pytest.fail(
                    f"seed {seed}, {OPTIONS[seed % len(OPTIONS)]}: {kind} of {name}{list(at)} is {got[name][at]!r}, "
                    f"expected {want[name][at]!r}\n{program.text}\nlaunches: {program.launches}"
                )
    return True


SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck))


@settings(SETTINGS, max_examples=100)
@given(st.integers(0, 10**6))
def test_programs_have_the_gradient_of_dual_numbers(tmp_path_factory, seed):
    check(seed, tmp_path_factory.mktemp("generated"))


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_most_programs_can_be_compared(tmp_path, first):
    assert sum(check(seed, tmp_path) for seed in range(first, first + 10)) >= 7


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
    """Of twelve numbers of each program; where two step sizes disagree a decision is near, and nothing is proved."""
    program = Program(random.Random(seed), rereads=seed % 2 == 0)
    values, weights = numbers(seed)
    if run_duals(program, values, weights, values["n"]) is None:
        return
    module = compiled(program, tmp_path, f"differences_{seed}", OPTIONS[seed % len(OPTIONS)])
    _, gradients = run_weft(program, module, values, weights)
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
