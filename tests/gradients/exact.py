"""Values and derivatives of builtins of numbers, as closed forms in mpmath.

EXACT maps a name to the formula of the value and those of its derivatives by each argument. The formulas take and give
numbers of `mp`. A NaN argument gives NaN in all formulas that depend on it.
"""

import mpmath

mp = mpmath.mp.clone()
mp.prec = 1200  # powers of subnormal numbers

ZERO, ONE = mp.mpf(0), mp.mpf(1)


def sign(x):
    return x if mp.isnan(x) else mp.sign(x)


def flat(_):
    return ZERO


def inside(formula):
    """The derivative of a function that is constant outside of ]-1, 1[."""
    return lambda x: formula(x) if mp.isnan(x) or abs(x) < 1 else ZERO


def clamped(x):
    return x if mp.isnan(x) else min(max(x, -ONE), ONE)


def truncated(x):
    return mp.sign(x) * mp.floor(abs(x))


def times(a, b):
    """How many times b fits into a: up to the quotient of the greatest by the least float64."""
    with mp.workprec(2400):
        return truncated(a / b)


def remainder(a, b):
    with mp.workprec(2400):
        return a - b * times(a, b)


# mpmath takes long for the greatest numbers, or gives none. Beyond 1e6 any number outside of the range of float64 will
# do, which grows or vanishes with the argument.


def exp(x):
    if mp.isnan(x) or abs(x) < 1e6:
        return mp.exp(x)
    return mp.ldexp(abs(x), 10**6) if x > 0 else 1 / mp.ldexp(abs(x), 10**6)


def sinh(x):
    return (exp(x) - exp(-x)) / 2 if abs(x) > 1e6 else mp.sinh(x)


def cosh(x):
    return (exp(x) + exp(-x)) / 2 if abs(x) > 1e6 else mp.cosh(x)


def tanh(x):
    return mp.sign(x) if abs(x) > 1e6 else mp.tanh(x)


def erf(x):
    return mp.sign(x) if abs(x) > 1e6 else mp.erf(x)


def erfc(x):
    return 1 - mp.sign(x) if abs(x) > 1e6 else mp.erfc(x)


def power(x, y):
    if y == 0:
        return ONE  # of a NaN, too
    return exp(y * mp.log(x)) if x > 0 and abs(y) > 1e6 else x**y


def rounded_away(x):
    return mp.sign(x) * mp.floor(abs(x) + mp.mpf(0.5))


def erfinv(x):
    """Newton steps from a start in float64; infinite at the ends, NaN beyond."""
    if mp.isnan(x) or abs(x) > 1:
        return mp.nan
    if abs(x) == 1:
        return x * mp.inf
    return mp.erfinv(x)


def erfcinv(x):
    """Newton steps on log(erfc), of which those from an asymptotic start converge for the least numbers, too."""
    if mp.isnan(x) or not 0 <= x <= 2:
        return mp.nan
    if x in (0, 2):
        return (1 - x) * mp.inf
    if x > 0.5:
        return erfinv(1 - x)
    found = mp.sqrt(-mp.log(x))
    for _ in range(16):
        value = mp.erfc(found)
        found += (mp.log(value) - mp.log(x)) * value * mp.sqrt(mp.pi) / 2 * mp.exp(found * found)
    return found


def slope_of_inverse(inverse):
    return lambda x: mp.sqrt(mp.pi) / 2 * exp(inverse(x) ** 2)


def chosen(first):
    """Value and derivatives of min or max: ties belong to the first argument, and a number is chosen over a NaN."""

    def is_first(a, b):
        return mp.isnan(b) or first(a, b)

    return (
        lambda a, b: a if is_first(a, b) else b,
        lambda a, b: ONE if is_first(a, b) else ZERO,
        lambda a, b: ZERO if is_first(a, b) else ONE,
    )


MAX, MIN = chosen(lambda a, b: a >= b), chosen(lambda a, b: a <= b)


def clamp_slopes():
    limited, lower, upper = MAX[0], MIN[1], MIN[2]
    return (
        lambda x, low, high: lower(limited(x, low), high) * MAX[1](x, low),
        lambda x, low, high: lower(limited(x, low), high) * MAX[2](x, low),
        lambda x, low, high: upper(limited(x, low), high),
    )


def copysign_slope(x, y):
    """None for zeros and NaN, whose signs mpmath does not have."""
    return mp.sign(x) * mp.sign(y) if x * y < 0 or x * y > 0 else None


def atan2_slope(of_y):
    def slope(y, x):
        if mp.isnan(x) or mp.isnan(y):
            return mp.nan
        if x == 0 and y == 0:
            return ZERO
        return (x if of_y else -y) / (x * x + y * y)

    return slope


def power_by_exponent(x, y):
    """Zero at the base 0, as the limit is for positive exponents."""
    return ZERO if x == 0 else power(x, y) * mp.log(x)


def smoothstep(a, b, x):
    t = min(max((x - a) / (b - a), ZERO), ONE)
    return t * t * (3 - 2 * t)


def smoothstep_slope(of_argument):
    def slope(a, b, x):
        t = (x - a) / (b - a)
        return 6 * t * (1 - t) * of_argument(a, b, x) / (b - a) ** 2 if 0 < t < 1 else ZERO

    return slope


def limit(formula, arguments):
    """The value for infinite arguments: that to which the formula tends, however fast each of them grows. None if it
    depends on the order, if there is no real value, or if a NaN decides."""
    tends = set()
    for powers in ((1, 1, 1), (1, 2, 3), (3, 2, 1)):
        ends = []
        for size in (mp.mpf(2) ** 1100, mp.mpf(2) ** 2200):
            at = [mp.sign(v) * size**power if mp.isinf(v) else v for v, power in zip(arguments, powers)]
            ends.append(exactly(formula, at))
        near, far = ends
        if near is None or far is None:
            return None
        if mp.isnan(far):
            return mp.nan
        if abs(far - near) <= abs(near) * mp.mpf(2) ** -1000:
            tends.add(float(far))
        else:
            tends.add(mp.sign(far) * mp.inf if abs(far) > abs(near) else ZERO)
    return tends.pop() if len(tends) == 1 else None


def exactly(formula, arguments):
    """None if the formula has no real value there."""
    try:
        value = formula(*arguments)
    except ZeroDivisionError:
        return None
    return value if isinstance(value, mp.mpf) else None


TWO_OVER_SQRT_PI = 2 / mp.sqrt(mp.pi)

EXACT = {
    "abs": (abs, sign),
    "acos": (lambda x: mp.acos(clamped(x)), inside(lambda x: -1 / mp.sqrt(1 - x * x))),
    "add": (lambda a, b: a + b, lambda a, b: ONE, lambda a, b: ONE),
    "asin": (lambda x: mp.asin(clamped(x)), inside(lambda x: 1 / mp.sqrt(1 - x * x))),
    "atan": (mp.atan, lambda x: 1 / (1 + x * x)),
    "atan2": (mp.atan2, atan2_slope(True), atan2_slope(False)),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), lambda x: 1 / (3 * mp.cbrt(abs(x)) ** 2)),
    "ceil": (mp.ceil, flat),
    "copysign": (lambda x, y: abs(x) * mp.sign(y), copysign_slope, lambda x, y: ZERO),
    "cos": (mp.cos, lambda x: -mp.sin(x)),
    "cosh": (cosh, sinh),
    "degrees": (lambda x: x * 180 / mp.pi, lambda x: 180 / mp.pi),
    "div": (lambda a, b: a / b, lambda a, b: 1 / b, lambda a, b: -a / (b * b)),
    "erf": (erf, lambda x: TWO_OVER_SQRT_PI * exp(-x * x)),
    "erfc": (erfc, lambda x: -TWO_OVER_SQRT_PI * exp(-x * x)),
    "erfcinv": (erfcinv, lambda x: -slope_of_inverse(erfcinv)(x)),
    "erfinv": (erfinv, slope_of_inverse(erfinv)),
    "exp": (exp, exp),
    "floor": (mp.floor, flat),
    "floordiv": (lambda a, b: mp.floor(a / b), lambda a, b: ZERO, lambda a, b: ZERO),
    "frac": (lambda x: x - truncated(x), lambda x: ONE),
    "log": (mp.log, lambda x: 1 / x),
    "log10": (mp.log10, lambda x: 1 / (x * mp.log(10))),
    "log2": (lambda x: mp.log(x) / mp.log(2), lambda x: 1 / (x * mp.log(2))),
    "max": MAX,
    "min": MIN,
    "mod": (remainder, lambda a, b: ONE, lambda a, b: -times(a, b)),
    "mul": (lambda a, b: a * b, lambda a, b: b, lambda a, b: a),
    "neg": (lambda x: -x, lambda x: -ONE),
    "nonzero": (lambda x: mp.mpf(x != 0), flat),
    "pos": (lambda x: x, lambda x: ONE),
    "pow": (power, lambda x, y: y * power(x, y - 1) if y != 0 else ZERO, power_by_exponent),
    "radians": (lambda x: x * mp.pi / 180, lambda x: mp.pi / 180),
    "rint": (mp.nint, flat),
    "round": (rounded_away, flat),
    "sign": (lambda x: -ONE if x < 0 else ONE, flat),
    "sin": (mp.sin, mp.cos),
    "sinh": (sinh, cosh),
    "smoothstep": (
        smoothstep,
        smoothstep_slope(lambda a, b, x: x - b),
        smoothstep_slope(lambda a, b, x: a - x),
        smoothstep_slope(lambda a, b, x: b - a),
    ),
    "sqrt": (mp.sqrt, lambda x: 1 / (2 * mp.sqrt(x))),
    "step": (lambda x: ONE if x < 0 else ZERO, flat),
    "sub": (lambda a, b: a - b, lambda a, b: ONE, lambda a, b: -ONE),
    "tan": (mp.tan, lambda x: mp.sec(x) ** 2),
    "tanh": (tanh, lambda x: 1 / cosh(x) ** 2),
    "trunc": (truncated, flat),
    "clamp": (lambda x, low, high: MIN[0](MAX[0](x, low), high), *clamp_slopes()),
    "lerp": (
        lambda a, b, t: a * (1 - t) + b * t,
        lambda a, b, t: 1 - t,
        lambda a, b, t: t,
        lambda a, b, t: b - a,
    ),
}
EXACT["div_approx"] = EXACT["div"]

PERIODIC = {"sin", "cos", "tan", "mod", "frac"}


def has_limit(name, arguments):
    """Whether limit() tells the derivatives there. A power with an infinite exponent has none for a negative base, as
    such an exponent is neither even nor odd, and one with an exponent near zero reaches its own too late."""
    if name in PERIODIC:
        return not any(map(mp.isinf, arguments))
    if name == "pow":
        x, y = arguments
        return not (mp.isinf(y) and x < 0 or 0 < abs(y) < 0.01)
    return True
