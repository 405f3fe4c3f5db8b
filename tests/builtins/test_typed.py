"""Random kernels over the whole type system: the results of NumPy, or a Weft exception at the line with the mistake."""

import random

import numpy as np
import pytest
import warp as wp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mistakes import Wrong
from sweep import load
from typed import THREADS, Typed, leaves
from warp import _weft

HEADER = "from typing import Any\n\nimport warp as wp\n\n\n"
BUILTINS = sorted(_weft.builtin_names())
WAYS = [{}, {"lanes": 1}, {"mode": "debug"}, {"lanes": 16}]


def compiled(program, folder, name):
    """The module and its text, with the functions declared and the kernel not."""
    text = HEADER + program.source()
    return load(text, folder, name), text


def check_values(seed, folder):
    program = Typed(random.Random(seed))
    module, text = compiled(program, folder, f"typed_{seed}")
    expected, sums = program.by_numpy()
    for way in (WAYS[0], WAYS[1 + seed % 3]):
        kernel = wp.kernel(module_options=way, module="unique")(module.program)
        arrays = []
        for t in program.arrays:
            dtype = getattr(wp, t.scalar) if t.kind == "scalar" else getattr(module, t.text)
            arrays += [wp.zeros(THREADS, dtype=dtype), wp.zeros((THREADS, 2), dtype=dtype), wp.zeros(2, dtype=dtype)]
        out = wp.zeros(expected.shape, dtype=wp.int64)
        wp.launch(kernel, dim=THREADS, inputs=[*arrays, out])
        assert [leaves(shared.numpy()) for shared in arrays[2::3]] == sums, f"seed {seed}, {way}\n{text}"
        found = out.numpy()
        if not np.array_equal(found, expected):
            row, column = np.argwhere(found != expected)[0]
            place, got, want = program.columns[column].text, found[row, column], expected[row, column]
            pytest.fail(f"seed {seed}, {way}, thread {row}: {place} is {got}, NumPy has {want}\n{text}")


def check_mistake(seed, folder):
    program = Wrong(random.Random(seed))
    module, text = compiled(program, folder, f"mistake_{seed}")
    lines = text.splitlines()
    try:
        wp.kernel(module.program).listing("ir")
    except wp.CompileError as error:
        assert error.path == module.__file__ and lines[error.line - 1].endswith("# wrong"), f"{error}\n{text}"
        assert lines[error.line - 1].strip() in str(error)
    else:
        pytest.fail(f"seed {seed} compiles\n{text}")


def check_call(seed, folder):
    """A call of any function with anything is right or refused; a right one can be compiled."""
    program = Wrong(random.Random(seed), BUILTINS)
    module, text = compiled(program, folder, f"call_{seed}")
    try:
        wp.kernel(module.program).listing("assembly" if seed % 25 == 0 else "ir")
    except wp.CompileError as error:
        assert text.splitlines()[error.line - 1].endswith("# wrong"), f"{error}\n{text}"


SETTINGS = settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))


@SETTINGS
@given(st.integers(0, 10**6))
def test_values_of_every_type_are_those_of_numpy(tmp_path_factory, seed):
    check_values(seed, tmp_path_factory.mktemp("typed"))


@settings(SETTINGS, max_examples=150)
@given(st.integers(0, 10**6))
def test_mistakes_in_types_are_refused_at_their_line(tmp_path_factory, seed):
    check_mistake(seed, tmp_path_factory.mktemp("mistakes"))


@settings(SETTINGS, max_examples=150)
@given(st.integers(0, 10**6))
def test_functions_called_with_anything_compile_or_refuse(tmp_path_factory, seed):
    check_call(seed, tmp_path_factory.mktemp("calls"))


@pytest.mark.large
@pytest.mark.parametrize("first", range(0, 10_000, 1000))
def test_ten_thousand_mistakes_and_calls(tmp_path, first):
    for seed in range(10**7 + first, 10**7 + first + 1000):
        check_mistake(seed, tmp_path)
        check_call(seed, tmp_path)


@pytest.mark.large
@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_a_thousand_typed_programs(tmp_path, first):
    for seed in range(10**7 + first, 10**7 + first + 100):
        check_values(seed, tmp_path)
