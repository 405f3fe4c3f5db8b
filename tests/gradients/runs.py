"""Runs of the random programs: by Weft, and of their text by Python on numbers that carry derivatives; each gives the
values of all arrays and the gradients of their weighted sum, by the name of the array."""

import random

import duals
import numpy as np
import warp as wp
from differences import weights_of
from generated import COLUMNS, PARAMETERS, THREADS, Program
from sweep import load

# The optimiser, which takes most of the time, has no part in what is tested here.
OPTIONS = [f'{{"optimization_level": 0, "lanes": {lanes}}}' for lanes in (1, 4, 1, 8, 1)] + ["{}"]
# The states that loops may keep: all, or two of them.
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
    weights = {name: weights_of(value.shape, rng) for name, value in made.items() if name != "n"}
    return made, weights


def arrays_of_weft(values, Body, scalar=wp.float64):
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
            dtype = wp.types.vector(3, scalar) if "vec3d" in kind else scalar
            made.append(wp.array(value, dtype=dtype, requires_grad=True))
    return made


def as_numbers(array, name):
    found = array.numpy()
    return np.concatenate([found["m"][:, None], found["p"]], axis=1) if name == "q" else found


def by_array(flat, weights):
    """Numbers of all arrays, one after the other, in the arrays' shapes."""
    ends = np.cumsum([weight.size for weight in weights.values()])[:-1]
    pieces = np.split(np.asarray(flat, dtype=np.float64), ends)
    return {name: piece.reshape(w.shape) for (name, w), piece in zip(weights.items(), pieces)}


def run_weft(program, module, values, weights, threads):
    arrays = arrays_of_weft(values, module.Body)
    tape = wp.Tape()
    with tape:
        for kernel in program.launches:
            wp.launch(getattr(module, kernel), dim=threads, inputs=arrays)
    named = {name: array for (name, _), array in zip(PARAMETERS, arrays)}
    seeds = {}
    for name, weight in weights.items():
        seed = arrays_of_weft({**values, name: weight}, module.Body)[[n for n, _ in PARAMETERS].index(name)]
        seeds[named[name]] = seed
    found = {name: as_numbers(named[name], name).copy() for name in weights}
    tape.backward(grads=seeds)
    return found, {name: as_numbers(named[name].grad, name) for name in weights}


def run_forward(program, module, values, directions, threads):
    """(values, tangents) of all arrays by forward mode, as the numbers of the arrays move in these directions."""
    arrays = arrays_of_weft(values, module.Body)
    tangents = arrays_of_weft({**directions, "n": values["n"]}, module.Body)
    for kernel in program.launches:
        wp.jvp(getattr(module, kernel), dim=threads, inputs=arrays, input_tangents=tangents)
    rows = [(name, array, tangent) for (name, _), array, tangent in zip(PARAMETERS, arrays, tangents) if name != "n"]
    return {name: as_numbers(a, name) for name, a, _ in rows}, {name: as_numbers(t, name) for name, _, t in rows}


def run_python(program, values, inputs, threads):
    """The numbers of all arrays, one after the other, after the text has run on arrays that start with `inputs`."""
    names = duals.load(program.text)
    given = iter(inputs)
    made = {"n": duals.Array([int(k) for k in values["n"]], 1)}
    for name in [name for name, _ in PARAMETERS if name != "n"]:
        rows, width = values[name].shape[0], values[name][0].size
        if name in ("x", "total"):
            made[name] = duals.Array([next(given) for _ in range(rows)], 1)
        elif name == "s":
            made[name] = duals.Array([[next(given) for _ in range(width)] for _ in range(rows)], 2)
        elif name == "q":
            bodies = [names["Body"]() for _ in range(rows)]
            for body in bodies:
                body.m, body.p = next(given), duals.Vector(*(next(given) for _ in range(3)))
            made[name] = duals.Array(bodies, 1)
        else:
            made[name] = duals.Array([duals.Vector(*(next(given) for _ in range(width))) for _ in range(rows)], 1)
    for kernel in program.launches:
        duals.launch(names[kernel], threads, [made[name] for name, _ in PARAMETERS])
    ended = []
    for name in [name for name, _ in PARAMETERS if name != "n"]:
        for row in made[name].values:
            parts = [row.m, *row.p.parts] if name == "q" else row if name == "s" else getattr(row, "parts", [row])
            ended += parts
    return ended


def run_duals(program, values, weights, threads):
    """By dual numbers; None if the program proves nothing."""
    flat = np.concatenate([values[name].ravel() for name in weights])
    inputs = [duals.Dual(x, slope) for x, slope in zip(flat, np.eye(len(flat)))]
    duals.Trace.reset()
    try:
        ended = run_python(program, values, inputs, threads)
    except (OverflowError, ZeroDivisionError):
        return None
    if duals.Trace.size > LARGE or duals.Trace.margin < NARROW:
        return None
    factors = np.concatenate([weight.ravel() for weight in weights.values()])
    gradient = sum((factor * x.slope for x, factor in zip(ended, factors)), np.zeros(len(flat)))
    if not np.abs(gradient).max() < LARGE:
        return None
    return by_array([x.value for x in ended], weights), by_array(gradient, weights)


def run_framework(framework, program, values, weights, threads):
    """By a framework of frameworks.py."""
    inputs = np.concatenate([values[name].ravel() for name in weights])
    factors = np.concatenate([weight.ravel() for weight in weights.values()])
    found, gradient = framework(lambda xs: run_python(program, values, xs, threads), inputs, factors)
    return by_array(found, weights), by_array(gradient, weights)


def compiled(program, folder, name, options):
    return load(program.text.replace("@wp.kernel\n", f"@wp.kernel(module_options={options})\n"), folder, name)


def assert_same(found, expected, title, text, tolerance=1e-9):
    """Fails if values or gradients are wrong."""
    for kind, got, want in zip(("value", "gradient"), found, expected):
        scale = max(1.0, *(float(np.abs(a).max()) for a in want.values()))
        for name in want:
            error = np.abs(got[name] - want[name])
            if not (error <= tolerance * scale).all():
                worst = np.nanargmax(np.where(np.isnan(error), np.inf, error))
                at = tuple(int(k) for k in np.unravel_index(worst, error.shape))
                raise AssertionError(
                    f"{title}: {kind} of {name}{list(at)} is {got[name][at]!r}, expected {want[name][at]!r}\n{text}"
                )


def check(seed, folder, framework=None, threads=THREADS, longest=None, tickets=False):
    """Whether the program with this number could be compared: with dual numbers, and a framework if one is given."""
    program = Program(random.Random(seed), rereads=tickets or seed % 2 == 0, tickets=tickets)
    values, weights = numbers(seed)
    expected = run_duals(program, values, weights, threads)
    if expected is None or (longest and duals.Trace.count > longest):
        return False
    options = OPTIONS[seed % len(OPTIONS)]
    module = compiled(program, folder, f"generated_{seed}", options)
    wp.config.gradient_loop_bytes = ROOMS[seed // 2 % 2]
    found = run_weft(program, module, values, weights, threads)
    text = f"{program.text}\nlaunches: {program.launches}"
    assert_same(found, expected, f"seed {seed}, {options}", text)
    if framework:
        expected = run_framework(framework, program, values, weights, threads)
        assert_same(found, expected, f"seed {seed}, {framework.__name__}", text)
    return True


def check_forward(seed, folder):
    """Whether tangents could be compared: of the weighted sum, against the gradient of dual numbers."""
    program = Program(random.Random(seed), rereads=seed % 2 == 0)
    values, weights = numbers(seed)
    expected = run_duals(program, values, weights, THREADS)
    if expected is None:
        return False
    rng = np.random.default_rng(seed)
    directions = {name: rng.standard_normal(weight.shape) for name, weight in weights.items()}
    options = OPTIONS[seed % len(OPTIONS)]
    module = compiled(program, folder, f"forward_{seed}", options)
    found, tangents = run_forward(program, module, values, directions, THREADS)

    def along(slopes, moved):
        terms = [slopes[name] * moved[name] for name in weights]
        return {"all": np.array(sum(float(term.sum()) for term in terms))}, sum(np.abs(t).sum() for t in terms)

    (got, size), (want, _) = along(weights, tangents), along(expected[1], directions)
    title, text = f"seed {seed}, {options}, forward mode", f"{program.text}\nlaunches: {program.launches}"
    assert_same((found,), expected[:1], title, text)
    assert_same((got,), (want,), f"{title}, tangents", text, 1e-9 * max(1.0, size))
    return True


def check_hessian(seed, folder):
    """Whether the Hessian could be compared along a direction of arrays: with differences of gradients, of which two
    step sizes must agree. The gradients are compared with those of dual numbers in any case. Of even programs it is
    that of the first kernel by x and v, of odd ones that of all launches by all arrays."""
    program = Program(random.Random(seed), rereads=seed % 3 != 0)
    is_kernel = seed % 2 == 0
    if is_kernel:
        program.launches = program.launches[:1]
    values, weights = numbers(seed)
    known = run_duals(program, values, weights, THREADS)
    if known is None:
        return False
    options = OPTIONS[seed % len(OPTIONS)]
    module = compiled(program, folder, f"hessian_{seed}", options)
    wp.config.gradient_loop_bytes = ROOMS[seed // 2 % 2]
    title, text = f"seed {seed}, {options}", f"{program.text}\nlaunches: {program.launches}"
    assert_same(run_weft(program, module, values, weights, THREADS), known, title, text)
    rng = np.random.default_rng(seed)
    directions = {name: rng.standard_normal(values[name].shape) for name in (("x", "v") if is_kernel else weights)}

    def quotients(step):
        ends = []
        for side in (step, -step):
            moved = {**values, **{name: values[name] + side * d for name, d in directions.items()}}
            ends.append(run_weft(program, module, moved, weights, THREADS)[1])
        return {name: (ends[0][name] - ends[1][name]) / (2.0 * step) for name in directions}

    def arrays(changed):
        return arrays_of_weft({**values, **changed}, module.Body)

    def run(*arguments):
        for kernel in program.launches:
            wp.launch(getattr(module, kernel), dim=THREADS, inputs=arguments)
        return [argument for (name, _), argument in zip(PARAMETERS, arguments) if name != "n"]

    given, vectors, seeds = arrays({}), arrays(directions), arrays(weights)
    vectors[2] = None
    if is_kernel:
        kernel = getattr(module, program.launches[0])
        products = wp.autograd.hvp(kernel, THREADS, given[:3], given[3:], vectors[:3], seeds[3:])
    else:
        products = wp.autograd.hvp(run, inputs=given, vectors=vectors, weights=[*seeds[:2], *seeds[3:]])
    named = {name: product for (name, _), product in zip(PARAMETERS, products)}
    found = {name: as_numbers(named[name], name) for name in directions}
    coarse, fine = quotients(1e-4), quotients(5e-5)
    scale = max(1.0, *(float(np.abs(fine[name]).max()) for name in directions))
    if max(np.abs(coarse[name] - fine[name]).max() for name in directions) > 1e-5 * scale:
        return False
    expected = {name: fine[name] + (fine[name] - coarse[name]) / 3.0 for name in directions}
    assert_same((found,), (expected,), f"{title}, Hessian", text, 1e-6)
    return True
