"""fast_math: how far its functions are from the true values, and what it must not change."""

import numpy as np
import pytest
import scipy.special
import warp as wp
from sweep import load, ulps

# The bound that docs/semantics.md states. NumPy's long double, with 64 bits of significand, stands for the true value.
ULP = 4.0
ROWS = 20_011

FUNCTIONS = {
    "sin": (-50, 50, np.sin),
    "cos": (-50, 50, np.cos),
    "tan": (-50, 50, np.tan),
    "asin": (-1, 1, np.arcsin),
    "acos": (-1, 1, np.arccos),
    "atan": (-20, 20, np.arctan),
    "sinh": (-20, 20, np.sinh),
    "cosh": (-20, 20, np.cosh),
    "tanh": (-20, 20, np.tanh),
    "exp": (-80, 80, np.exp),
    "log": (1e-6, 1e6, np.log),
    "log2": (1e-6, 1e6, np.log2),
    "log10": (1e-6, 1e6, np.log10),
    "cbrt": (-1e6, 1e6, np.cbrt),
    "erf": (-4, 4, scipy.special.erf),
}

# On a GPU float32 goes through its approximate instructions, as docs/semantics.md says.
INSTRUCTIONS = {
    "sin": ((-np.pi, np.pi), lambda x, ulp: 2.0**-20 / ulp),
    "cos": ((-np.pi, np.pi), lambda x, ulp: 2.0**-20 / ulp),
    "tan": ((-1.0, 1.0), lambda x, ulp: 2.0**-18 / ulp),
    "exp": ((-80, 80), lambda x, ulp: 2.0 + 1.173 * np.abs(x)),
    "log": ((1e-6, 1e6), lambda x, ulp: np.maximum(4.0, 2.0**-20 / ulp)),
    "log2": ((1e-6, 1e6), lambda x, ulp: np.maximum(4.0, 2.0**-20 / ulp)),
    "log10": ((1e-6, 1e6), lambda x, ulp: np.maximum(4.0, 2.0**-20 / ulp)),
}


def range_and_bound(name, scalar):
    """The range in which the function is tried, and its allowed error by x and the unit in the last place."""
    low, high, _ = FUNCTIONS[name]
    if name in INSTRUCTIONS and scalar == "float32" and wp.get_device().is_cuda:
        return INSTRUCTIONS[name]
    return (low, high), lambda x, ulp: ULP


KERNEL = """import warp as wp

D = wp.{scalar}


@wp.kernel(module_options={{"fast_math": True, "lanes": {lanes}}})
def k(x: wp.array(dtype=D), y: wp.array(dtype=D)):
    i = wp.tid()
    y[i] = wp.{name}(x[i])
"""


@pytest.mark.parametrize("scalar", ["float32", "float64"])
def test_functions_are_within_the_stated_error(scalar, tmp_path):
    rng = np.random.default_rng(2)
    numpy = np.dtype(scalar).type
    for name, (_, _, reference) in FUNCTIONS.items():
        (low, high), bound = range_and_bound(name, scalar)
        if low > 0:
            x = np.exp(rng.uniform(np.log(low), np.log(high), ROWS)).astype(numpy)
        else:
            x = rng.uniform(low, high, ROWS).astype(numpy)
            x[::7] *= numpy(1e-3)
        results = []
        for lanes in (1, 8, 16):
            module = load(KERNEL.format(scalar=scalar, name=name, lanes=lanes), tmp_path, f"{name}_{scalar}_{lanes}")
            y = wp.zeros(ROWS, dtype=module.D)
            wp.launch(module.k, dim=ROWS, inputs=[x, y])
            results.append(y.numpy().copy())
        with np.errstate(all="ignore"):
            wide = np.float64 if name == "erf" else np.longdouble  # SciPy's error function has no long double
            if name == "erf" and scalar == "float64":
                continue
            expected = reference(x.astype(wide))
            distance = ulps(results[0], expected, expected)
        allowed = bound(x, np.spacing(np.abs(expected).astype(numpy)))
        worst = np.argmax(distance / allowed)
        assert (distance <= allowed).all(), f"{name}({x[worst]!r}) is {distance[worst]:.2f} ulp away"
        assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2]), name
