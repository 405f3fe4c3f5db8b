"""How far the mathematical functions of a GPU's library are from the true values: one line of JSON.

Run as a program of its own, because a process has one library: WARP_LIBDEVICE chooses it. `errors` has the greatest
error of each function in units in the last place, `wrong` what is no rounding: an infinity, a NaN or a signed zero that
should be something else.
"""

import json
import math

import mpmath
import numpy as np
import warp as wp

DEVICE = "cuda:0"
COUNT = 1500
mpmath.mp.prec = 400

# The range that is drawn from; the true value; a function that gives the results of special values.
FUNCTIONS = {
    "cbrt": ((1e-30, 1e30), lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), np.cbrt),
    "sin": ((1e-6, 1e6), mpmath.sin, np.sin),
    "cos": ((1e-6, 1e6), mpmath.cos, np.cos),
    "tan": ((1e-6, 1e6), mpmath.tan, np.tan),
    "asin": ((1e-6, 1.0), mpmath.asin, lambda x: np.arcsin(np.clip(x, -1, 1))),
    "acos": ((1e-6, 1.0), mpmath.acos, lambda x: np.arccos(np.clip(x, -1, 1))),
    "atan": ((1e-6, 1e6), mpmath.atan, np.arctan),
    "sinh": ((1e-6, 80.0), mpmath.sinh, np.sinh),
    "cosh": ((1e-6, 80.0), mpmath.cosh, np.cosh),
    "tanh": ((1e-6, 20.0), mpmath.tanh, np.tanh),
    "exp": ((1e-6, 80.0), mpmath.exp, np.exp),
    "log": ((1e-30, 1e30), mpmath.log, np.log),
    "log2": ((1e-30, 1e30), lambda x: mpmath.log(x, 2), np.log2),
    "log10": ((1e-30, 1e30), mpmath.log10, np.log10),
    "erf": ((1e-6, 4.0), mpmath.erf, np.vectorize(math.erf)),
    "erfc": ((1e-6, 9.0), mpmath.erfc, np.vectorize(math.erfc)),
    "pow": ((1e-3, 1e3), mpmath.power, np.power),
    "atan2": ((1e-6, 1e6), mpmath.atan2, np.arctan2),
    "mod": ((1e-3, 1e3), lambda x, y: mpmath.mpf(math.fmod(float(x), float(y))), np.fmod),
}
POSITIVE = {"log", "log2", "log10", "pow"}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-30, 1e30, -1e30, 3e38, -3e38, math.inf, -math.inf, math.nan]


def kernel_of(name, dtype, operands):
    function = getattr(wp, name)
    if operands == 1:

        @wp.kernel(module="unique")
        def unary(x: wp.array[dtype], out: wp.array[dtype]):
            i = wp.tid()
            out[i] = function(x[i])

        return unary

    @wp.kernel(module="unique")
    def binary(x: wp.array[dtype], y: wp.array[dtype], out: wp.array[dtype]):
        i = wp.tid()
        out[i] = function(x[i], y[i])

    return binary


def computed(name, dtype, operands):
    arrays = [wp.array(operand, dtype=dtype, device=DEVICE) for operand in operands]
    out = wp.zeros(len(operands[0]), dtype=dtype, device=DEVICE)
    kernel = kernel_of(name, dtype, len(operands))
    wp.launch(kernel, len(operands[0]), inputs=[*arrays, out], device=DEVICE)
    return out.numpy()


def drawn(name, low, high, scalar, rng):
    x = np.exp(rng.uniform(math.log(low), math.log(high), COUNT))
    if name not in POSITIVE:
        x *= rng.choice([-1.0, 1.0], COUNT)
    return x.astype(scalar)


def error_in_ulps(found, true, scalar):
    unit = float(np.spacing(scalar(abs(float(true))) or np.finfo(scalar).tiny))
    return float(abs(mpmath.mpf(float(found)) - true) / unit)


def greatest_error(name, dtype, scalar):
    (low, high), true, _ = FUNCTIONS[name]
    rng = np.random.default_rng(3)
    operands = [drawn(name, low, high, scalar, rng)]
    if name in ("pow", "atan2", "mod"):
        operands.append(drawn("", 1e-2 if name == "pow" else low, 10.0 if name == "pow" else high, scalar, rng))
    found = computed(name, dtype, operands)
    largest = float(np.finfo(scalar).max)
    worst = 0.0
    for i in range(COUNT):
        exact = true(*(mpmath.mpf(float(operand[i])) for operand in operands))
        if not float(np.finfo(scalar).tiny) < abs(exact) < largest:
            continue
        worst = max(worst, error_in_ulps(found[i], exact, scalar))
    return round(worst, 2)


def wrong_specials(name, dtype, scalar):
    """(arguments, found, expected)"""
    reference = FUNCTIONS[name][2]
    if name in ("pow", "atan2", "mod"):
        pairs = np.array([(a, b) for a in SPECIAL for b in SPECIAL], dtype=scalar)
        operands = [pairs[:, 0].copy(), pairs[:, 1].copy()]
    else:
        operands = [np.array(SPECIAL, dtype=scalar)]
    found = computed(name, dtype, operands)
    with np.errstate(all="ignore"):
        expected = np.asarray(reference(*operands), dtype=scalar)
    wrong = []
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        is_special = not np.isfinite(b) or b == 0
        if is_special and (str(a) != str(b)) and not (np.isnan(a) and np.isnan(b)):
            wrong.append([[float(operand[i]) for operand in operands], float(a), float(b)])
    return wrong


def main():
    errors, wrong = {}, {}
    for name in FUNCTIONS:
        for dtype, scalar in ((wp.float32, np.float32), (wp.float64, np.float64)):
            key = f"{name} {scalar.__name__}"
            errors[key] = greatest_error(name, dtype, scalar)
            if specials := wrong_specials(name, dtype, scalar):
                wrong[key] = specials
    print(json.dumps({"errors": errors, "wrong": wrong}))


if __name__ == "__main__":
    main()
