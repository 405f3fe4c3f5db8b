"""Every builtin of the table at small and large arguments, values and gradients. `--large` takes many more arguments.

* float16 and float32: float64 gives the expected numbers for the same arguments, rounded. In float64 no step on the way
  overflows or vanishes for such arguments. Its own values are compared with formulas in test_table.py, and its
  gradients with differences in test_builtins.py.
* Functions of numbers in float64, also of subnormal ones: closed forms in mpmath (exact.py).
* Gradients at infinities and NaN: limits of the closed forms. Values are compared in test_table.py.
"""

import itertools

import numpy as np
import pytest
import slopes
import warp as wp
from exact import EXACT, exactly, has_limit, limit, mp
from test_builtins import SINGLE, rounded, size, swept, weighting, widened
from warp import _weft

ROWS = 64
LARGE_ROWS = 1024
NEIGHBOURS = 16


def magnitudes(call, dtype):
    """Of functions of one or two numbers those of each order, from the least normal number (a smaller one has no finite
    reciprocal) to the end. Other calls get magnitudes of which products of eight are normal numbers: lengths are square
    roots of sums of squares, determinants, projections and interpolations sums of longer products, as in NumPy and
    CUDA, and overflow or vanish beyond."""
    limits = np.finfo(dtype)
    tiny, most = float(limits.smallest_normal), float(limits.max)
    if any(kind.shape for kind in call.types) or len(call.types) > 2:
        return np.array([tiny**0.125 * 2, tiny**0.0625, 1.0, most**0.0625, most**0.125 / 2])
    return np.array([tiny * 4, tiny**0.5 / 8, tiny**0.5 * 8, 1.0, most**0.5 / 8, most**0.5 * 8, most / 8])


def special(call, rows, seed):
    """Arguments in the type of the call, with zeros of both signs and axes among them. One or two numbers have any
    magnitude; more numbers, vectors and matrices have one in a row, as sums lose what is smaller than a rounding.
    Quaternions are rotations, half a turn in some rows, axes have length 1, and the numbers of axes differ, as their
    functions expect."""
    rng = np.random.default_rng(seed)
    arrays, row_orders, row_numbers = [], rng.integers(0, 5, rows), rng.integers(0, 3, rows)
    are_numbers = len(call.types) > 2 and not any(kind.shape for kind in call.types)
    for parameter, kind in zip(call.parameters, call.types):
        shape = (rows, *kind.shape)
        if not kind.is_float:
            count = 2 if kind.scalar == "bool" else 3
            numbers = (row_numbers + len(arrays)) % count
            arrays.append(np.broadcast_to(numbers.reshape(rows, *[1] * len(kind.shape)), shape).astype(kind.numpy))
            continue
        orders = magnitudes(call, kind.numpy)
        of_rows = orders[row_orders].reshape(rows, *[1] * len(kind.shape))
        values = of_rows if kind.shape or are_numbers else rng.choice(orders, rows)
        values = values * rng.uniform(0.5, 1, shape) * rng.choice([-1, 1], shape)
        values = np.where(rng.random(shape) < 0.15, rng.choice([0.0, -0.0], shape), values)
        if kind.kind in ("quaternion", "transform"):
            q = rng.normal(size=(rows, 4))
            q[::4, 3] = 0.0  # half a turn
            values[..., -4:] = q / np.linalg.norm(q, axis=1, keepdims=True)
        elif parameter.name == "axis":
            axis = rng.normal(size=shape)
            values = axis / np.linalg.norm(axis, axis=1, keepdims=True)
        arrays.append(values.astype(kind.numpy))
    return arrays


def neighbours(arguments, types, narrow):
    """Arguments one rounding of their largest component away, in float64."""
    eps = np.finfo(narrow).eps
    least = float(np.finfo(narrow).smallest_subnormal)
    for seed in range(NEIGHBOURS):
        rng = np.random.default_rng(seed)
        yield [
            v + rng.choice([-1, 1], v.shape) * np.maximum(eps * size(v), least) if slopes.is_smooth(t) else v
            for v, t in zip(arguments, types)
        ]


def wrong_rows(found, expected, moved, scale=0):
    """Rows that are further from the expected numbers than a rounding of the arguments, of a few steps and of a number
    of this scale explains. A rounding of an exponent, of at most 88, or 745 in float64, is as many of the result of
    exp."""
    limits = np.finfo(found.dtype)
    roundings = 1024 if found.dtype == np.float64 else 128
    with np.errstate(all="ignore"):
        spread = np.max([np.abs(m - expected) for m in moved], axis=0)
        whole = size(np.where(np.isfinite(expected), expected, 0))
        whole = np.maximum(whole, scale)
        allowed = roundings * limits.eps * np.maximum(whole, np.abs(expected)) + 32 * spread + 64 * float(limits.tiny)
        told = np.isfinite(expected) & np.isfinite(spread) & (np.abs(expected) < float(limits.max) / 8)
        # If rounding of the arguments decides, as at a kink, neither number is the right one.
        told &= spread < 0.1 * np.abs(expected) + 1e-30
        wrong = told & ~(np.abs(found.astype(np.float64) - expected) <= allowed)
    return np.flatnonzero(wrong.reshape(len(wrong), -1).any(axis=1))


def told_apart(calls, wide, arguments, weights, folder, name, scalar):
    """(row lists, shown numbers) for each call and each of its values and gradients."""
    narrow_kernels = slopes.build(calls, folder, f"{name}_{scalar}")
    wide_kernels = slopes.build(wide, folder, f"{name}_wide_{scalar}")
    exact = [widened(v, c.types) for v, c in zip(arguments, calls)]
    moved = list(zip(*[list(neighbours(v, c.types, scalar)) for v, c in zip(exact, calls)]))
    wide_weights = [widened(w, c.outputs) for w, c in zip(weights, calls)]
    for what, narrow, of_wide in (
        ("values", slopes.values(calls, narrow_kernels, arguments), lambda at: slopes.values(wide, wide_kernels, at)),
        (
            "gradients",
            slopes.gradients(calls, narrow_kernels, arguments, weights),
            lambda at: slopes.gradients(wide, wide_kernels, at, wide_weights),
        ),
    ):
        expected, around = of_wide(exact), [of_wide(list(at)) for at in moved]
        for c, call in enumerate(calls):
            for i, found in enumerate(narrow[c]):
                if found is None or found.dtype.kind != "f":
                    continue
                rows = wrong_rows(found, expected[c][i], [m[c][i] for m in around])
                if len(rows):
                    row = rows[0]
                    yield (
                        f"{call}, {what} {i}: {len(rows)} of {len(found)} rows; at "
                        f"{[v[row].tolist() for v in arguments[c]]}: {found[row].tolist()}, "
                        f"in float64 {expected[c][i][row].tolist()}"
                    )


def compare(name, scalar, rows, folder, seed=0):
    calls = [c for c in swept(name) if c.scalar == scalar]
    # The same overload in float64.
    others = {(c.signature, c.without_defaults): c for c in swept(name) if c.scalar == "float64"}
    calls = [c for c in calls if (c.signature, c.without_defaults) in others]
    wide = [others[c.signature, c.without_defaults] for c in calls]
    arguments = [special(c, rows, seed) for c in calls]
    weights = [rounded(w, c.outputs) for w, c in zip((weighting(c, rows) for c in calls), calls)]
    return list(told_apart(calls, wide, arguments, weights, folder, name, scalar)) if calls else []


NAMES = [n for n in _weft.builtin_names() if swept(n) and n not in SINGLE]


@pytest.mark.parametrize("scalar", ["float16", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_small_and_large_arguments(name, scalar, tmp_path):
    messages = compare(name, scalar, ROWS, tmp_path)
    assert not messages, "\n".join(messages)


@pytest.mark.large
@pytest.mark.parametrize("scalar", ["float16", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_many_small_and_large_arguments(name, scalar, tmp_path):
    messages = compare(name, scalar, LARGE_ROWS, tmp_path, seed=1)
    assert not messages, "\n".join(messages)


def are_numbers(call):
    return not any(kind.shape for kind in [*call.types, *call.outputs])


OF_NUMBERS = [n for n in NAMES if any(are_numbers(c) and c.scalar == "float64" for c in swept(n))]


def call_of_numbers(name, scalar):
    (call,) = [c for c in swept(name) if are_numbers(c) and c.scalar == scalar]
    return call


def found_by(call, columns, folder):
    """The values and the gradients of a function of numbers, for the seed 1."""
    kernels = slopes.build([call], folder, f"numbers_{call.name}_{call.scalar}")
    ones = [np.ones(len(columns[0]), call.outputs[0].numpy)]
    (values,), (gradients,) = (
        slopes.values([call], kernels, [columns]),
        slopes.gradients([call], kernels, [columns], [ones]),
    )
    return [*values, *gradients]


def in_float64(formula, columns):
    rows = [exactly(formula, [mp.mpf(float(v)) for v in row]) for row in zip(*columns, strict=True)]
    return np.array([np.nan if value is None else float(value) for value in rows])


def of_every_order(call):
    """Arguments of each order, and subnormal ones: all pairs of them for two numbers, more numbers at random."""
    if len(call.types) > 2:
        return special(call, ROWS, seed=2)
    limits = np.finfo(np.float64)
    sizes = [
        *magnitudes(call, np.float64),
        float(limits.smallest_subnormal),
        float(limits.tiny) / 4,
        0.3,
        0.9,
        1.9,
        30.0,
    ]
    ends = np.array([0.0, *sizes, *(-v for v in sizes)])
    return list(np.array(list(itertools.product(ends, repeat=len(call.types)))).T)


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_float64_beside_closed_forms(name, tmp_path):
    call = call_of_numbers(name, "float64")
    columns = of_every_order(call)
    moved = list(itertools.islice(neighbours(columns, call.types, np.float64), 3))
    for number, (found, formula) in enumerate(zip(found_by(call, columns, tmp_path), EXACT[name], strict=True)):
        expected = in_float64(formula, columns)
        # The derivative of tanh is a difference of numbers near 1.
        rows = wrong_rows(found, expected, [in_float64(formula, at) for at in moved], scale=name == "tanh")
        told = [([c[row] for c in columns], found[row], expected[row]) for row in rows]
        assert not told, f"{call}, {number}: {told}"


def with_infinity(call):
    """Arguments of which at least one is infinite or NaN."""
    limits = np.finfo(call.types[0].numpy)
    others = [0.0, 0.3, 1.0, 2.5, 16.0, float(limits.tiny), float(limits.max)] if len(call.types) < 3 else [0.3, 2.5]
    ends = [np.inf, -np.inf, np.nan, *others, *(-v for v in others)]
    rows = [row for row in itertools.product(ends, repeat=len(call.types)) if not np.isfinite(row).all()]
    return list(np.array(rows, call.types[0].numpy).T)


@pytest.mark.parametrize("scalar", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_gradients_at_infinities_and_nan(name, scalar, tmp_path):
    call = call_of_numbers(name, scalar)
    columns = with_infinity(call)
    count, wrong = len(call.outputs), []
    for found, derivative in zip(found_by(call, columns, tmp_path)[count:], EXACT[name][count:], strict=True):
        for row, value in zip(zip(*columns, strict=True), found, strict=True):
            at = [mp.mpf(float(v)) for v in row]
            true = limit(derivative, at) if has_limit(name, at) else None
            if true is None:
                continue
            with np.errstate(over="ignore"):
                expected = found.dtype.type(float(true))
            good = np.isclose(value, expected, rtol=16 * np.finfo(found.dtype).eps, atol=0, equal_nan=True)
            # A function that chooses among its arguments has the gradient 0 by the others, and by NaN.
            good |= np.isnan(expected) and value == 0
            # Several infinities, and infinite exponents, make the value itself NaN, or constant.
            good |= np.isnan(value) and (np.isinf(row).sum() > 1 or name == "pow" and np.isinf(row[1]))
            if not good:
                wrong.append(([float(v) for v in row], float(value), float(expected)))
    assert not wrong, f"{call}: {len(wrong)}: {wrong}"


@pytest.mark.parametrize("kind", [wp.float16, wp.float32, wp.float64], ids=lambda kind: kind.__name__)
def test_powers_of_negative_numbers_with_great_even_exponents_fall(kind, tmp_path):
    call = call_of_numbers("pow", kind.__name__)
    even = 2.0 ** (np.finfo(call.types[0].numpy).nmant + 2)
    columns = [np.array([-1.0, -1.0], call.types[0].numpy), np.array([even, -even], call.types[0].numpy)]
    _, by_base, _ = found_by(call, columns, tmp_path)
    np.testing.assert_array_equal(by_base, [-even, even])


def test_a_quotient_that_vanishes_rounds_down():
    @wp.kernel
    def divide(a: wp.array[wp.float32], b: wp.array[wp.float32], out: wp.array[wp.float32]):
        out[wp.tid()] = a[wp.tid()] // b[wp.tid()]

    a = np.float32([1.2e-20, -1.2e-20, 1.0, 1.2e-20, 0.0, -0.0])
    b = np.float32([-3.6e37, 3.6e37, -np.inf, 3.6e37, -2.0, 2.0])
    out = wp.zeros(6)
    wp.launch(divide, 6, [wp.array(a), wp.array(b), out])
    np.testing.assert_array_equal(out.numpy(), np.floor_divide(a, b))
