"""Every entry of the builtin table for any float type, in bfloat16: as its line in oracle.py says, to the digits that
the type has, in vectors and (one overload of each) as scalar code."""

import re
from dataclasses import replace

import numpy as np
import pytest
import warp as wp
from oracle import ELSEWHERE, ORACLE, find
from oracle_inputs import mixed
from sweep import Invocation, invocations, load
from warp import _weft

ROWS = 96
DIGITS = 8


def rounded(values):
    """To the digits of bfloat16, ties to even, as float32: they have the same exponents."""
    with np.errstate(over="ignore"):
        bits = np.asarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
    up = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    return np.where(np.isnan(values), np.float32(np.nan), up.astype(np.uint32).view(np.float32))


def swept(name):
    """(call in bfloat16, the same one in float32), for each overload."""
    for call in invocations(name):
        takes_floats = call.scalar == "float32" and re.search(r"\b[FS]\b", call.signature)
        if takes_floats and find(ELSEWHERE, name, call.signature) is None:
            yield Invocation(name, call.signature, "bfloat16", call.without_defaults), call


def in_float32(kind):
    return replace(kind, scalar="float32") if kind.scalar == "bfloat16" else kind


def values_of(array, kind):
    return (array.astype(in_float32(kind).dtype) if kind.scalar == "bfloat16" else array).numpy()


def distance(got, expected, scale):
    """In units in the last place of `scale`."""
    smallest, largest = float(np.finfo(np.float32).smallest_normal), float(rounded(3.38e38))
    magnitude = np.clip(np.where(np.isfinite(scale), np.abs(scale), largest), smallest, largest)
    unit = np.ldexp(1.0, np.frexp(magnitude)[1] - DIGITS)
    with np.errstate(invalid="ignore"):
        apart = np.abs(got - expected) / unit
    overflows = np.isinf(got) & (np.sign(got) == np.sign(expected)) & (np.abs(expected) >= largest)
    equal = (got == expected) | (np.isnan(got) & np.isnan(expected)) | overflows
    return np.where(equal, 0.0, np.where(np.isnan(apart), np.inf, apart))


def comparable(values):
    """Which rows have only zeros and numbers whose products neither overflow nor underflow. Scalars: all rows."""
    size = np.abs(values.reshape(len(values), -1).astype(np.float64))
    return ((size == 0) | ((size > 1 / 64) & (size < 64)) | (values.ndim == 1)).all(axis=1)


def differences(call, line, arguments, outputs):
    wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arguments]
    with np.errstate(all="ignore"):
        expected = line.reference(*wide)
        scale = line.scale(*wide) if line.ulp is not None and line.scale is not None else None
    expected = expected if isinstance(expected, tuple) else (expected,)
    rows = np.logical_and.reduce([comparable(a) for a in arguments])
    if line.unit:
        for values, kind in zip(arguments, call.types):
            if kind.kind in ("quaternion", "transform"):
                rows &= np.abs(np.linalg.norm(values[:, -4:].astype(np.float64), axis=1) - 1) < 4 * 2.0**-DIGITS
    for got, want, kind in zip(outputs, expected, call.outputs):
        want = np.asarray(want)
        if kind.scalar != "bfloat16":
            wrong = got != want
        elif call.name == "trace":  # its line adds up in the type at hand
            size = np.abs(np.einsum("...ii->...i", wide[0])).sum(axis=-1)
            wrong = ~(distance(got.astype(np.float64), want, size) <= 2)
        elif line.ulp is None:
            want = rounded(want)
            wrong = ~((got == want) | (np.isnan(got) & np.isnan(want)))
        else:
            size = np.abs(want) if scale is None else np.asarray(scale)
            size = np.broadcast_to(size.reshape(size.shape + (1,) * (got.ndim - size.ndim)), got.shape)
            wrong = ~(distance(got.astype(np.float64), want, size) <= max(line.ulp, 1.0))
        wrong &= rows.reshape(rows.shape + (1,) * (got.ndim - 1))
        bad = np.flatnonzero(wrong.reshape(len(rows), -1).any(axis=1))
        for row in bad[:3]:
            given = [a[row].tolist() for a in arguments]
            yield f"{call}: {len(bad)} rows; {given} gives {got[row].tolist()}, expected {want[row].tolist()}"


@pytest.mark.parametrize("name", [name for name in _weft.builtin_names() if any(swept(name))])
def test_values_in_bfloat16(name, tmp_path):
    rng = np.random.default_rng(len(name))
    messages = []
    for number, (call, same) in enumerate(swept(name)):
        line = find(ORACLE, name, call.signature)
        arguments = (line.inputs or mixed)(rng, same.types, ROWS)[: len(call.types)]
        arguments = [rounded(a) if k.scalar == "bfloat16" else a for a, k in zip(arguments, call.types)]
        header, body = call.source("c")
        function = f"def k({', '.join(header)}):\n    i = wp.tid()\n    " + "\n    ".join(body) + "\n\n\n"
        text = 'import warp as wp\n\n\n@wp.kernel(module_options={"lanes": 1})\n' + function
        text += f"scalar = k\n\n\n@wp.kernel\n{function}"
        module = load(text, tmp_path, f"{name}_{number}")
        kernels = (module.k, module.scalar) if number == 0 else (module.k,)
        given = [wp.array(a, dtype=kind.dtype) for a, kind in zip(arguments, call.types)]
        rows = len(arguments[0])
        ways = []
        for kernel in kernels:
            outputs = [wp.zeros(rows, dtype=kind.dtype) for kind in call.outputs]
            wp.launch(kernel, dim=rows, inputs=[*given, *outputs])
            ways.append([values_of(out, kind) for out, kind in zip(outputs, call.outputs)])
        messages += differences(call, line, arguments, ways[0])
        for vectors, scalars in zip(ways[0], ways[-1]):
            if not np.array_equal(vectors, scalars, equal_nan=vectors.dtype.kind == "f"):
                messages.append(f"{call}: other values in vectors than as scalar code")
    assert not messages, "\n".join(messages)
