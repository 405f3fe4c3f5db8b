"""Runs the text of a kernel as plain Python, on numbers that carry their derivatives: forward mode without a compiler.

The text sees a `wp` of this file. Floats are Dual: a value and its derivative by each of the inputs; or, in
frameworks.py, numbers of JAX or PyTorch. Python compares the same numbers as the kernel, so the derivative is that of
the program that ran. A decision that rounding could turn over (a comparison of nearly equal numbers) is remembered in
`Trace.margin`: such a run proves nothing.
"""

import ast
import copy
import functools
import math
import operator

import numpy as np


class Trace:
    """Of the run in progress: the narrowest decision, the greatest number, how many numbers it made; the thread."""

    margin = math.inf
    size = 0.0
    count = 0
    tid = 0

    @classmethod
    def reset(cls):
        cls.margin, cls.size, cls.count = math.inf, 0.0, 0

    @classmethod
    def decide(cls, a, b):
        if a is not b and isinstance(a, Number) | isinstance(b, Number):
            a, b = value(a), value(b)
            # Two zeros tie as well: one that came out of cancellation is 1e-17 if products and sums are contracted.
            cls.margin = min(cls.margin, abs(a - b) / max(1e-3, abs(a) + abs(b)))


def value(x):
    return x.value if isinstance(x, Number) else float(x)


class Number:
    """A float of the program: it has a `value`, which decides comparisons."""

    __slots__ = ()

    def __deepcopy__(self, _):
        return self

    def __lt__(self, other):
        Trace.decide(self, other)
        return self.value < value(other)

    def __gt__(self, other):
        Trace.decide(self, other)
        return self.value > value(other)

    __le__, __ge__ = __lt__, __gt__


class Dual(Number):
    __slots__ = ("slope", "value")

    def __init__(self, number, slope=0.0):
        self.value = float(number)
        self.slope = slope
        Trace.count += 1
        if abs(self.value) > Trace.size:
            Trace.size = abs(self.value)

    def __add__(self, other):
        if not isinstance(other, (Dual, float)):
            return NotImplemented
        return Dual(self.value + value(other), self.slope + slope(other))

    def __sub__(self, other):
        if not isinstance(other, (Dual, float)):
            return NotImplemented
        return Dual(self.value - value(other), self.slope - slope(other))

    def __mul__(self, other):
        if not isinstance(other, (Dual, float)):
            return NotImplemented
        b = value(other)
        return Dual(self.value * b, self.slope * b + self.value * slope(other))

    def __truediv__(self, other):
        if not isinstance(other, (Dual, float)):
            return NotImplemented
        b = value(other)
        return Dual(self.value / b, self.slope / b - self.value / (b * b) * slope(other))

    def __neg__(self):
        return Dual(-self.value, -self.slope)

    def through(self, name, function, derivative):
        """The function of this number; `derivative` takes the number and the result."""
        result = function(self.value)
        return Dual(result, derivative(self.value, result) * self.slope)


def slope(x):
    return x.slope if isinstance(x, Dual) else 0.0


class Vector:
    """Of any length; also what a row of a matrix is."""

    def __init__(self, *parts):
        self.parts = list(parts)

    def __getitem__(self, i):
        return self.parts[i]

    def __setitem__(self, i, part):
        self.parts[i] = part

    def __add__(self, other):
        return Vector(*(a + b for a, b in zip(self.parts, other.parts)))

    def __sub__(self, other):
        return Vector(*(a - b for a, b in zip(self.parts, other.parts)))

    def __mul__(self, scalar):
        return Vector(*(a * scalar for a in self.parts))

    def __truediv__(self, scalar):
        return Vector(*(a / scalar for a in self.parts))

    def __neg__(self):
        return Vector(*(-a for a in self.parts))


class Matrix:
    def __init__(self, *entries):
        n = math.isqrt(len(entries))
        self.rows = [Vector(*entries[i * n : i * n + n]) for i in range(n)]

    def __getitem__(self, at):
        return self.rows[at[0]][at[1]] if isinstance(at, tuple) else self.rows[at]

    def __setitem__(self, at, part):
        if isinstance(at, tuple):
            self.rows[at[0]][at[1]] = part
        else:
            self.rows[at] = copy.deepcopy(part)

    def _made(self, formula):
        n = len(self.rows)
        return Matrix(*(formula(i, j) for i in range(n) for j in range(n)))

    def __add__(self, other):
        return self._made(lambda i, j: self[i, j] + other[i, j])

    def __sub__(self, other):
        return self._made(lambda i, j: self[i, j] - other[i, j])

    def __mul__(self, scalar):
        return self._made(lambda i, j: self[i, j] * scalar)

    def __matmul__(self, other):
        if isinstance(other, Vector):
            return Vector(*(dot(row, other) for row in self.rows))
        columns = transpose(other).rows
        return self._made(lambda i, j: dot(self.rows[i], columns[j]))


class Array:
    """Nested lists under an index of any number of dimensions."""

    def __init__(self, values, ndim):
        self.values, self.ndim = values, ndim

    @property
    def shape(self):
        sizes, here = [], self.values
        for _ in range(self.ndim):
            sizes.append(len(here))
            here = here[0]
        return tuple(sizes)

    def _holder(self, at):
        at = at if isinstance(at, tuple) else (at,)
        here = self.values
        for i in at[:-1]:
            here = here[i]
        return here, at[-1]

    def __getitem__(self, at):
        here, last = self._holder(at)
        return here[last]

    def __setitem__(self, at, element):
        here, last = self._holder(at)
        assert isinstance(last, int) and -len(here) <= last < len(here)
        here[last] = copy.deepcopy(element)


# ---- functions ----


def elementary(name, function, derivative):
    return lambda x: x.through(name, function, derivative)


def dot(a, b):
    total = a.parts[0] * b.parts[0]
    for x, y in zip(a.parts[1:], b.parts[1:]):
        total = total + x * y
    return total


def transpose(m):
    return m._made(lambda i, j: m[j, i])


def cross(a, b):
    return Vector(*(a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)))


def minimum(a, b):
    Trace.decide(a, b)
    return a if value(a) <= value(b) else b


def maximum(a, b):
    Trace.decide(a, b)
    return a if value(a) >= value(b) else b


def absolute(a):
    Trace.decide(a, Dual(0.0))
    return a.through("abs", abs, lambda x, _: np.sign(x))


def whole(x):
    if isinstance(x, Number):
        if x.value:
            Trace.margin = min(Trace.margin, abs(x.value - round(x.value)))
        return int(x.value)
    return int(x)


class _Annotation:
    def __getitem__(self, _):
        return self


def _struct(cls):
    def init(self):
        for name, kind in cls.__annotations__.items():
            setattr(self, name, DEFAULTS[kind]())

    cls.__init__ = init
    return cls


def _float64(x=0.0):
    return x if isinstance(x, Number) else Dual(x)


def _vec3d(*parts):
    return Vector(*(parts or [Dual(0.0)] * 3))


def _mat22d(*entries):
    return Matrix(*(entries or [Dual(0.0)] * 4))


DEFAULTS = {_float64: _float64, _vec3d: _vec3d, _mat22d: _mat22d, whole: int}


def _zeros(shape, dtype):
    return Array([dtype() for _ in range(shape)], 1)


def _atomic_add(array, i, x):
    old = array[i]
    array[i] = old + x
    return old


def _atomic_sub(array, i, x):
    return _atomic_add(array, i, -x)


class Module:
    """The `wp` of the kernel's text."""

    array = array2d = _Annotation()
    float64, vec3d, mat22d = staticmethod(_float64), staticmethod(_vec3d), staticmethod(_mat22d)
    kernel = staticmethod(lambda f: f)
    struct = staticmethod(_struct)
    sin = staticmethod(elementary("sin", math.sin, lambda x, r: math.cos(x)))
    cos = staticmethod(elementary("cos", math.cos, lambda x, r: -math.sin(x)))
    tanh = staticmethod(elementary("tanh", math.tanh, lambda x, r: 1 - r * r))
    exp = staticmethod(elementary("exp", math.exp, lambda x, r: r))
    atan = staticmethod(elementary("atan", math.atan, lambda x, r: 1 / (1 + x * x)))
    sqrt = staticmethod(elementary("sqrt", math.sqrt, lambda x, r: 0.5 / r))
    log = staticmethod(elementary("log", math.log, lambda x, r: 1 / x))
    dot, cross, transpose = staticmethod(dot), staticmethod(cross), staticmethod(transpose)
    length = staticmethod(lambda v: Module.sqrt(dot(v, v)))
    min, max, abs = staticmethod(minimum), staticmethod(maximum), staticmethod(absolute)
    where = staticmethod(lambda c, a, b: a if c else b)
    tid = staticmethod(lambda: Trace.tid)
    zeros = staticmethod(_zeros)
    atomic_add, atomic_sub = staticmethod(_atomic_add), staticmethod(_atomic_sub)

    @staticmethod
    def func(f):
        """Arguments are passed by value, but for arrays."""
        return lambda *arguments: f(*(a if isinstance(a, Array) else copy.deepcopy(a) for a in arguments))


class _Copies(ast.NodeTransformer):
    """Assignments copy, as in kernels."""

    def visit_Assign(self, node):
        self.generic_visit(node)
        node.value = ast.Call(ast.Name("_copied", ast.Load()), [node.value], [])
        return node


def _copied(x):
    return x if isinstance(x, Array) else copy.deepcopy(x)


def load(text):
    """The names that the text defines, to be called with Arrays and numbers."""
    tree = ast.fix_missing_locations(_Copies().visit(ast.parse(text.replace("import warp as wp", ""))))
    names = {
        "wp": Module,
        "_copied": _copied,
        "int": whole,
        "sum": lambda values: functools.reduce(operator.add, values),
    }
    exec(compile(tree, "<kernel>", "exec"), names)
    return names


def launch(kernel, dim, arguments):
    for Trace.tid in range(dim):
        kernel(*arguments)
