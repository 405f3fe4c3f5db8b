"""Every entry of the builtin table that expands to IR against its line in oracle.py, with every scalar type: values,
and equal bits whether threads run in vectors, in the masked tail of one, or as scalar code."""

from pathlib import Path

import numpy as np
import pytest
import warp as wp
from oracle import ELSEWHERE, ORACLE, find
from oracle_inputs import mixed
from sweep import invocations, run, same_bits, ulps
from warp import _weft

ROWS = 480


def entries():
    for name in _weft.builtin_names():
        for signature, _, has_expansion, _ in _weft.builtin_overloads(name):
            if has_expansion:
                yield name, signature


def swept(name):
    """The calls of a name that the sweep makes: all that it can, but for those with tests of their own."""
    return [call for call in invocations(name) if find(ELSEWHERE, name, call.signature) is None]


def test_every_entry_has_an_oracle():
    missing = []
    for name, signature in entries():
        is_swept = any(call.signature == signature for call in swept(name))
        if (find(ORACLE if is_swept else ELSEWHERE, name, signature)) is None:
            missing.append(name + signature)
    assert not missing


def test_tests_of_their_own_name_what_they_test():
    for key, file in ELSEWHERE.items():
        text = (Path(__file__).parent / file).read_text()
        assert key.partition("(")[0] in text or "{name}" in text, f"{file} does not mention {key}"


def test_no_oracle_is_left_over():
    names = {name for name, _ in entries()}
    assert {key.partition("(")[0] for key in (*ORACLE, *ELSEWHERE)} <= names


def widened(values):
    """In a type with more digits than the one under test."""
    if values.dtype.kind != "f":
        return values
    return values.astype(np.longdouble if values.dtype == np.float64 else np.float64)


def is_comparable(values):
    """Which rows have only zeros and numbers whose products neither overflow nor underflow. Scalars: all rows."""
    if values.ndim == 1 or values.dtype.kind != "f":
        return np.ones(len(values), dtype=bool)
    size = np.abs(values.reshape(len(values), -1).astype(np.float64))
    limit = 64.0 if values.dtype == np.float16 else 1e6
    return ((size == 0) | ((size > 1 / limit) & (size < limit))).all(axis=1)


def compare(call, line, arguments, outputs):
    """Messages about the rows that differ from the reference by more than the line allows."""
    exact = (
        line.ulp is None
        or call.outputs[0].scalar not in ("float16", "float32", "float64")
        or arguments[0].dtype.kind in "iu"
        and not call.outputs[0].is_float
    )
    taken = arguments if exact else [widened(a) for a in arguments]
    with np.errstate(all="ignore"):
        expected = line.reference(*taken)
        scale = None if exact or line.scale is None else line.scale(*taken)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(expected) == len(outputs), "the reference gives another number of results"
    rows = (
        np.logical_and.reduce([is_comparable(a) for a in arguments])
        if not exact
        else np.ones(len(outputs[0]), dtype=bool)
    )
    if line.unit:
        for values, kind in zip(arguments, call.types):
            if kind.kind in ("quaternion", "transform"):
                with np.errstate(all="ignore"):
                    size = np.linalg.norm(values[:, -4:].astype(np.float64), axis=1)
                rows &= np.abs(size - 1) < 4 * np.finfo(values.dtype).eps
    messages = []
    for got, want, kind in zip(outputs, expected, call.outputs):
        want = np.asarray(want)
        assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
        if exact or not kind.is_float:
            assert want.dtype == got.dtype, f"the reference gives {want.dtype}, the table {got.dtype}"
            wrong = ~((got == want) | ((got != got) & (want != want)))
            distance = np.where(wrong, np.inf, 0)
        else:
            magnitude = np.abs(want) if scale is None else np.asarray(scale)
            magnitude = magnitude.reshape(magnitude.shape + (1,) * (got.ndim - magnitude.ndim))
            distance = ulps(got, want, np.broadcast_to(magnitude, got.shape))
            wrong = ~(distance <= line.ulp)
        if line.signed_zero and kind.is_float:
            wrong |= (got == 0) & (want == 0) & (np.signbit(got) != np.signbit(want))
        wrong &= rows.reshape(rows.shape + (1,) * (got.ndim - 1))
        bad = np.flatnonzero(wrong.reshape(len(got), -1).any(axis=1))
        if len(bad):
            shown = "\n".join(
                f"    {[a[row].tolist() for a in arguments]} gives {got[row].tolist()}, expected {want[row].tolist()}"
                for row in bad[:4]
            )
            messages.append(f"{call}: {len(bad)} of {len(got)} rows, by up to {np.max(distance[bad]):.3g} ulp\n{shown}")
    return messages


@pytest.mark.parametrize("name", [name for name in _weft.builtin_names() if swept(name)])
def test_each_builtin_equals_its_oracle_in_lanes_and_alone(name, tmp_path):
    calls = swept(name)
    lines = [find(ORACLE, name, call.signature) for call in calls]
    rng = np.random.default_rng(len(name))
    inputs = []
    for call, line in zip(calls, lines):
        values = (line.inputs or mixed)(rng, call.types, ROWS)
        inputs.append(values[: len(call.types)])
    messages = []
    for call, line, arguments, (outputs, ways) in zip(calls, lines, inputs, run(calls, inputs, tmp_path, name)):
        messages += compare(call, line, arguments, outputs)
        for way, first_rows in ways.items():
            for got, want in zip(first_rows, outputs):
                bad = np.flatnonzero(~same_bits(got, want[: len(got)]))
                if len(bad):
                    row = bad[0]
                    messages.append(
                        f"{call}: {len(bad)} rows have other bits as {way}; "
                        f"{[a[row].tolist() for a in arguments]} gives {got[row].tolist()}, else {want[row].tolist()}"
                    )
    assert not messages, "\n".join(messages)


@pytest.mark.parametrize("number", [np.float32, np.float64])
def test_sinh_and_cosh_up_to_the_largest_numbers(number):
    """SLEEF's are infinite a little before the results are."""
    scalar = wp.dtype_from_numpy(number)

    @wp.kernel(module="unique")
    def both(x: wp.array[scalar], sines: wp.array[scalar], cosines: wp.array[scalar]):
        i = wp.tid()
        sines[i] = wp.sinh(x[i])
        cosines[i] = wp.cosh(x[i])

    largest = np.finfo(number).max
    ends = np.log(np.longdouble(largest)) + np.log(np.longdouble(2))
    x = np.concatenate([np.linspace(0.85 * float(ends), float(ends), 1001), [float(ends) + 0.01, np.inf]]).astype(
        number
    )
    x = np.concatenate([x, -x, [np.nan]]).astype(number)
    arrays = [wp.array(x, dtype=scalar), wp.zeros(len(x), dtype=scalar), wp.zeros(len(x), dtype=scalar)]
    wp.launch(both, len(x), inputs=arrays)
    for function, found in ((np.sinh, arrays[1].numpy()), (np.cosh, arrays[2].numpy())):
        exact = function(x.astype(np.longdouble))
        is_finite = np.abs(exact) <= largest
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(found[is_finite] / exact[is_finite], 1.0, rtol=2 * np.finfo(number).eps)
            np.testing.assert_array_equal(found[~is_finite], exact[~is_finite].astype(number))


def test_exp_and_pow_of_float64_up_to_the_largest_number():
    """SLEEF's are infinite for results within 2e-9 of it."""

    @wp.kernel(module="unique")
    def both(
        x: wp.array[wp.float64], y: wp.array[wp.float64], powers: wp.array[wp.float64], exps: wp.array[wp.float64]
    ):
        i = wp.tid()
        powers[i] = wp.pow(x[i], y[i])
        exps[i] = wp.exp(x[i])

    most = np.finfo(np.float64).max
    last = 709.782712893384  # the last whose exponential is a number
    exponents = np.array([1.0, 0.5, 2.0, 3.0, 300.0, 511.0, 513.0, 1000.0, 1e5, -1.0, -2.0, -700.0])
    # Powers between 1 - 1e-9 and 1 - 1e-12 of the largest number, as far as a base of float64 can say it.
    bases = np.exp((np.log(np.longdouble(most)) - [[1e-9], [1e-10], [1e-12]]) / exponents).astype(np.float64)
    x = np.concatenate([bases.ravel(), [most, -most, most, -2.0, 2.0], np.linspace(709.7827, last, 99), [709.7829]])
    y = np.concatenate([np.tile(exponents, 3), [1.0, 1.0, 1.0000001, 1023.0, 1024.0], np.ones(100)])
    powers, exps = wp.zeros(len(x), dtype=wp.float64), wp.zeros(len(x), dtype=wp.float64)
    wp.launch(both, len(x), inputs=[wp.array(x), wp.array(y), powers, exps])
    with np.errstate(all="ignore"):
        for found, exact in (
            (powers.numpy(), np.power(x.astype(np.longdouble), y.astype(np.longdouble))),
            (exps.numpy(), np.exp(x.astype(np.longdouble))),
        ):
            is_finite = (np.abs(exact) <= most) & (exact != 0)
            np.testing.assert_allclose((found[is_finite] / exact[is_finite]).astype(float), 1.0, rtol=6e-16)
            np.testing.assert_array_equal(found[~is_finite], exact[~is_finite].astype(np.float64))
    assert powers.numpy()[len(bases.ravel())] == most, "pow(x, 1) is x"

    @wp.kernel(module="unique")
    def uniform(a: wp.float64, out: wp.array2d[wp.float64]):
        out[0, wp.tid()], out[1, wp.tid()] = wp.pow(a, a / a), wp.exp(a / a)  # the same for all lanes

    out = wp.zeros((2, 37), dtype=wp.float64)
    wp.launch(uniform, 37, inputs=[most, out])
    np.testing.assert_allclose(out.numpy(), np.broadcast_to([[most], [np.e]], (2, 37)), rtol=3e-16)
