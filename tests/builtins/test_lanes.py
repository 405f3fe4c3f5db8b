"""Random programs: the same bits in vectors, as scalar code, and from Python itself."""

import random

import numpy as np
import pytest
import warp as wp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import THREADS, Program, by_python, inputs
from sweep import load

pytestmark = pytest.mark.cpu_only("is about the CPU's lanes")

HEADER = "from typing import Any, Callable\n\nimport warp as wp\n\n\n"
WAYS = ["", '(module_options={"lanes": 1})', '(module_options={"lanes": 16})']


def check(source, folder, name):
    function, _, program = source.partition("def program")
    text = HEADER + function
    for way, options in enumerate(WAYS):
        text += f"@wp.kernel{options}\ndef program{way}{program}\n\n"
    module = load(text, folder, name)
    x, n, p = inputs()
    expected = by_python(source, x, n, p)
    for way, options in enumerate(WAYS):
        out = [wp.zeros(THREADS, dtype=t) for t in (float, int, wp.vec3)] + [wp.zeros(4, dtype=int)]
        wp.launch(getattr(module, f"program{way}"), dim=THREADS, inputs=[x, n, wp.array(p, dtype=wp.vec3), *out])
        for array, want, what in zip(out, expected, ("of", "on", "op", "total")):
            got = array.numpy()
            if not np.array_equal(got, want):
                rows = np.flatnonzero((got != want).reshape(len(got), -1).any(axis=1))
                found = f"{what}[{rows[0]}] is {got[rows[0]]}, expected {want[rows[0]]} ({len(rows)} rows differ)"
                pytest.fail(f"{source}\n{options or 'native lanes'}: {found}")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**6))
def test_random_programs(tmp_path_factory, seed):
    check(Program(random.Random(seed)).source(), tmp_path_factory.mktemp("programs"), f"program_{seed}")


@pytest.mark.large
@pytest.mark.parametrize("first", range(0, 1000, 50))
def test_a_thousand_random_programs(tmp_path, first):
    for seed in range(first, first + 50):
        check(Program(random.Random(seed)).source(), tmp_path, f"program_{seed}")
