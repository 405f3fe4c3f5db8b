"""Random kernels: as text that Weft compiles, and run by Python itself, thread after thread, for comparison.

All arithmetic is exact, so that every way of running must give equal bits: integers wrap to 32 bits; floats are whole
or half numbers that are brought back into [-500, 500] by each assignment, so that no product or sum of them is rounded.
"""

import ast
import math
import textwrap

import numpy as np

THREADS = 37
ELEMENTS = 64  # of the arrays that are read at computed indices


# Generic functions that the programs call with values of every type.
GENERIC = """@wp.func
def keep(u: Any):
    return u


@wp.func
def flip(u):
    return -u


@wp.func
def repeat(f: Callable, u: Any, times: int = 1):
    for _ in range(times):
        u = f(u)
    return u


@wp.func
def either(u: Any, v: Any, first: bool = True):
    if first:
        return u
    return v


"""


# The variables of a program, which its inner functions may all change.
CHANGED = ["a", "b", "f", "g", "v", "w", "t", "src", "late", "far", "few"]


class Program:
    """Writes one random kernel. `choose` is a random.Random."""

    def __init__(self, choose):
        self.choose = choose
        self.loops = 0  # how many loops surround the statement being written
        self.depth = 0
        self.statements = 0
        self.counters = 0

    def source(self):
        c = self.choose
        body = self.block(c.randint(4, 9))
        lines = [
            *GENERIC.split("\n")[:-1],
            "@wp.func",
            "def helper(a: int, f: float):",
            f"    if {self.local(self.condition)}:",
            f"        return {self.local(self.integer)}, {self.local(self.float_)}",
            f"    for k in range({c.choice(['3', 'a & 3'])}):",
            f"        f = {self.local(self.float_)}",
            f"        if {self.local(self.condition)}:",
            f"            {c.choice(['break', 'continue'])}",
            f"        a = a + {c.randint(1, 5)}",
            "    return a, f",
            "",
            "",
            "def program(x: wp.array(dtype=float), n: wp.array(dtype=int), p: wp.array(dtype=wp.vec3),"
            " of: wp.array(dtype=float), on: wp.array(dtype=int), op: wp.array(dtype=wp.vec3),"
            " total: wp.array(dtype=int)):",
            "    i = wp.tid()",
            "    a = n[i]",
            f"    b = {c.randint(-5, 5)}",
            "    f = x[i]",
            f"    g = {c.choice(['0.0', '1.5', '-3.0'])}",
            "    v = p[i] * 1.0",
            "    w = wp.vec3(1.0, -2.0, 3.0)",
            "    t = (a, f)",
            "    src = x",
            "    box = wp.zeros(shape=4, dtype=int)",
            "    few = [a, b, 7]",
            "    if (a & 1) == 0:",
            "        late = a * 3",
            "        far = 1.5",
            *textwrap.indent("\n".join(body), "    ").split("\n"),
            "    on[i] = a ^ (b << 1)",
            "    of[i] = f + g * 1024.0",
            "    op[i] = v - w * 2.0",
        ]
        return "\n".join(lines) + "\n"

    def local(self, make):
        """An expression of the helper function, which has the variables a and f only."""
        self.names = ("a", "f")
        text = make(1)
        self.names = None
        return text

    names = None

    def integer(self, depth=2):
        c = self.choose
        if depth == 0 or c.random() < 0.25:
            return c.choice(
                ["a", str(c.randint(-9, 9))]
                if self.names
                else [
                    "a",
                    "b",
                    "i",
                    str(c.randint(-9, 9)),
                    "n[a & 63]",
                    "n[i]",
                    "box[a & 3]",
                    "box[2]",
                    "t[0]",
                    "late",
                    "few[1]",
                    "few[a % 3]",
                ]
            )
        first = self.integer(depth - 1)
        second = self.integer(depth - 1)
        return c.choice(
            [
                f"({first} {c.choice('+ - * & | ^'.split())} {second})",
                f"({first} {c.choice('+ - *'.split())} {second})",
                f"({first} << ({second} & 7))",
                f"({first} >> ({second} & 7))",
                f"({first} {c.choice(['/', '//', '%'])} {c.choice([2, 3, 7, -4, 16])})",
                f"wp.{c.choice(['min', 'max'])}({first}, {second})",
                f"wp.abs({first})",
                f"(-{first})",
                f"(~{first})",
                f"int({self.float_(depth - 1)})",
                f"({first} if {self.condition(depth - 1)} else {second})",
                f"wp.where({self.condition(depth - 1)}, {first}, {second})",
                f"wp.clamp({first}, -100, 100)",
            ]
        )

    def atom(self):
        c = self.choose
        if self.names:
            return c.choice(["f", "2.0", "-0.5"])
        component = f"wp.clamp({c.choice('vw')}{c.choice(['[0]', '[1]', '.z', '[a & 1]'])}, -500.0, 500.0)"
        return c.choice(
            [
                "f",
                "g",
                f"{c.randint(-9, 9)}.0",
                "0.5",
                component,
                "x[b & 63]",
                "x[i]",
                "float(a & 255)",
                "src[i]",
                "t[1]",
                "far",
            ]
        )

    def float_(self, depth=2):
        """Of at most 500 * 500 in magnitude, a multiple of 1/4."""
        c = self.choose
        first, second = self.atom(), self.atom()
        if depth == 0:
            return f"wp.clamp(wp.floor({first}), -500.0, 500.0)"
        formula = c.choice(
            [
                f"{first} + {second}",
                f"{first} - {second} * {self.atom()}",
                f"{first} * {second}",
                f"{first} * {second} + {self.atom()}",
                f"wp.{c.choice(['min', 'max'])}({first}, {second}) - {self.atom()}",
                f"wp.abs({first})",
                f"-{first}",
                f"{first} if {self.condition(depth - 1)} else {second}",
                f"wp.where({self.condition(depth - 1)}, {first}, {second})",
            ]
        )
        return f"wp.clamp(wp.floor({formula}), -500.0, 500.0)"

    def condition(self, depth=1):
        c = self.choose
        compare = c.choice("< <= > >= == !=".split())
        simple = c.choice(
            [
                f"{self.integer(min(depth, 1))} {compare} {self.integer(0)}",
                f"({self.integer(1 if depth else 0)} & {c.choice([1, 3, 4])}) == 0",
                f"{self.atom()} {compare} {self.atom()}",
            ]
        )
        if depth and c.random() < 0.3:
            return c.choice(
                [
                    f"({simple} {c.choice(['and', 'or'])} {self.condition(0)})",
                    f"(not {simple})",
                    f"({c.randint(-9, 0)} <= {self.integer(0)} < {c.randint(0, 9)})",
                ]
            )
        return f"({simple})"

    def block(self, count):
        lines = []
        for _ in range(count):
            lines += self.statement()
        return lines

    def inner(self, count=None):
        self.depth += 1
        lines = self.block(count or self.choose.randint(1, 3))
        self.depth -= 1
        return ["    " + line for line in lines]

    def loop_body(self):
        c = self.choose
        self.loops += 1
        where = c.choice(["nowhere", "nowhere", "before", "after"])
        lines = self.leave() if where == "before" else []
        lines += self.inner()
        if where == "after":
            lines += self.leave() + self.inner(1)
        self.loops -= 1
        return lines

    def leave(self):
        return ["    " + f"if {self.condition()}:", f"        {self.choose.choice(['break', 'continue', 'break'])}"]

    def statement(self):
        c = self.choose
        self.statements += 1
        kinds = [
            "integer",
            "integer",
            "float",
            "float",
            "vector",
            "component",
            "store",
            "atomic",
            "call",
            "augmented",
            "swap",
            "generic",
            "slice",
            "tuple",
            "choose",
            "box",
            "late",
            "list",
            "lambda",
            "comprehension",
            "walrus",
        ]
        if self.depth < 3 and self.statements < 40:
            kinds += ["if", "if", "if", "return", "match"]
            if self.loops < 2:
                kinds += ["for", "for", "while", "sequence", "array"]
            if self.depth < 2:
                kinds += ["inner"]
        kind = c.choice(kinds)
        if kind == "integer":
            return [f"{c.choice('ab')} = {self.integer()}"]
        if kind == "float":
            return [f"{c.choice('fg')} = {self.float_()}"]
        if kind == "late":
            return [c.choice([f"late = {self.integer()}", f"far = {self.float_()}"])]
        if kind == "vector":
            return [
                c.choice(
                    [
                        f"{c.choice('vw')} = wp.vec3({self.float_()}, {self.float_(0)}, {self.float_(0)})",
                        f"{c.choice('vw')} = p[{c.choice(['i', 'a & 63', 'b & 63'])}] * {c.choice(['1.0', '-2.0'])}",
                        "v = -w",
                        "w = wp.vec3(v[2], v[0], v[1])",
                    ]
                )
            ]
        if kind == "component":
            return [f"{c.choice('vw')}{c.choice(['[0]', '[2]', '.y', '[b & 1]'])} = {self.float_()}"]
        if kind == "store":
            return [
                c.choice(
                    [
                        f"of[i] = {self.float_()}",
                        f"of[i] {c.choice('+-')}= {self.float_()}",
                        f"on[i] = {self.integer()}",
                        f"on[i] {c.choice('+-^|&')}= {self.integer()}",
                        "f = wp.clamp(of[i], -500.0, 500.0)",
                        "a = on[i]",
                        f"op[i] = {c.choice('vw')}",
                        f"op[i] {c.choice('+-')}= {c.choice('vw')}",
                        f"op[i]{c.choice(['.y', '[2]', '[a & 1]'])} {c.choice('+-')}= {self.float_()}",
                    ]
                )
            ]
        if kind == "atomic":
            index = c.choice(["0", "a & 3", "i & 3"])
            if c.random() < 0.5:
                return [f"total[{index}] {c.choice('+-')}= {self.integer(1)}"]
            return [f"wp.atomic_add(total, {index}, {self.integer(1)})"]
        if kind == "call":
            return [f"{c.choice(['a, f', 'b, g', 'a, g'])} = helper({self.integer(1)}, {self.float_(0)})"]
        if kind == "augmented":
            return [
                c.choice(
                    [
                        f"a {c.choice(['+', '-', '*', '^', '|'])}= {self.integer(1)}",
                        f"b += {self.integer(1)}",
                        f"v[{c.choice(['0', '1', 'a & 1'])}] = {self.float_(0)}",
                    ]
                )
            ]
        if kind == "generic":
            times = c.choice(["", ", 2", ", times=3", ", times=1"])
            function = c.choice(["flip", "keep"])
            named = c.choice(["", f", first={self.condition(0)}"])
            first = c.choice([named, f", {self.condition(0)}"])
            return [
                c.choice(
                    [
                        f"{c.choice('ab')} = repeat({function}, {self.integer(1)}{times})",
                        f"{c.choice('fg')} = repeat({function}, {self.float_(0)}{times})",
                        f"{c.choice('vw')} = repeat(flip, {c.choice('vw')}{times})",
                        f"{c.choice('ab')} = either({self.integer(1)}, {self.integer(0)}{first})",
                        f"{c.choice('fg')} = either(v={self.float_(0)}, u={self.atom()}{named})",
                    ]
                )
            ]
        if kind == "swap":
            return [c.choice(["a, b = b, a", "v, w = w, v", "f, g = g, f"])]
        if kind == "slice":
            return [
                c.choice(
                    [
                        "v[0:2] = w[1:3]",
                        "w[1:] = v[:-1]",
                        "v[::2] = w[0:2]",
                        "v[0:] = w[::-1]",
                        f"w[0:2] = ({self.float_(0)}, {self.float_(0)})",
                    ]
                )
            ]
        if kind == "tuple":
            return [
                c.choice(
                    [
                        f"t = ({self.integer(1)}, {self.float_(0)})",
                        "a, f = t",
                        "(b, g), a = t, b",
                        f"t = t if {self.condition()} else (b, g)",
                        "a, f = helper(*t)",
                        "b, *rest = (a, b, i)\na = rest[0] ^ rest[-1]",
                        "a = b = a ^ 3",
                        f"f, g, *_rest = w if {self.condition(0)} else v\nf = wp.clamp(wp.floor(f), -500.0, 500.0)\n"
                        "g = wp.clamp(wp.floor(g), -500.0, 500.0)",
                    ]
                )
            ][0].split("\n")
        if kind == "choose":
            return [
                c.choice(
                    [f"src = x if {self.condition()} else of", f"src = of if {self.condition(0)} else src", "src = x"]
                )
            ]
        if kind == "box":
            return [f"box[{c.choice(['0', 'a & 3', 'b & 3'])}] {c.choice(['', '+', '^', '|'])}= {self.integer(1)}"]
        if kind == "if":
            lines = [f"if {self.condition()}:", *self.inner()]
            if c.random() < 0.3:
                lines += [f"elif {self.condition()}:", *self.inner()]
            if c.random() < 0.5:
                lines += ["else:", *self.inner()]
            return lines
        if kind == "return":
            return [f"if {self.condition()}:", *self.inner(1), "    return"]
        self.counters += 1
        counter = f"k{self.counters}"
        if kind == "list":
            return [
                c.choice(
                    [
                        f"few[{c.choice(['0', '-1', 'a % 3', 'b & 1'])}] {c.choice(['', '+', '^'])}= {self.integer(1)}",
                        f"few = [{self.integer(1)}, few[0], {self.integer(0)}]",
                        "few = few[::-1]",
                        "few[0], few[2] = few[b & 1], few[0]",
                        "few = few[1:] + [a]",
                    ]
                )
            ]
        if kind == "lambda":
            between = self.assignment()
            text = f"lambda u, by={self.integer(0)}: (u {c.choice('+-^')} {self.integer(1)}) & by"
            calls = [f"{counter}({self.integer(0)})", f"{counter}(by={self.integer(0)}, u={self.integer(0)})"]
            return [f"{counter} = {text}", *between, f"{c.choice('ab')} = {calls[0]} ^ {calls[1]}"]
        if kind == "inner":
            loops, self.loops = self.loops, 0
            lines = [f"def {counter}(u, by={self.integer(0)}):", f"    nonlocal {', '.join(CHANGED)}", *self.inner()]
            self.loops = loops
            return [*lines, f"    b = u ^ by ^ {self.integer(0)}", *self.assignment(), f"{counter}({self.integer(0)})"]
        if kind == "comprehension":
            values = ", ".join(self.integer(0) for _ in range(c.randint(1, 4)))
            return [
                c.choice(
                    [
                        f"{c.choice('ab')} = sum(u ^ {self.integer(0)} for u in ({values},))",
                        f"{c.choice('ab')} = max([u & w[0] for u, w in zip(few, ((b, a), t, few))])",
                        f"b = sum([k * u for k, u in enumerate([{values}]) if k != 1])",
                        f"a = few[0] if any(u > {self.integer(0)} for u in few) else few[1]",
                        "few = [u ^ k for k in (a, 3) for u in few][1:4]",
                        f"if all(u != a for u in ({values},)):\n    b = a ^ {self.integer(0)}",
                    ]
                )
            ][0].split("\n")
        if kind == "walrus":
            return [
                c.choice(
                    [
                        f"a = ({counter} := {self.integer(1)}) ^ ({counter} >> 2)",
                        f"if ({counter} := {self.integer(1)}) > 3 and (b := {counter} & 15) > {self.integer(0)}:\n"
                        f"    b = b ^ {counter}",
                    ]
                )
            ][0].split("\n")
        if kind == "match":
            lines = [f"match {self.integer(1)} & 7, {self.integer(0)}:"]
            for pattern in c.sample(["0, _", "1 | 2, {}", "3 as {}, 5 | -1", "{}, 0"], c.randint(1, 3)):
                guard = f" if {self.condition(0)}" if c.random() < 0.4 else ""
                lines += [f"    case {pattern.format('late')}{guard}:", *("    " + line for line in self.inner(1))]
            return [*lines, f"    case {counter}, late:", f"        b = {counter} ^ late ^ b"]
        if kind == "array":
            part = c.choice(["", "a & 7:", ":b & 15", "a & 7:b & 31:2", "::-5", "a & 7::-1"])
            u = f"u{self.counters}"
            array, bound = c.choice(["n", "x"]), f"range({c.choice(['a & 7', '3', '19'])})"
            taken = f"{array}[{part}]" if part else array
            head = c.choice(
                [
                    f"for {u} in reversed({taken}):",
                    f"for {counter}, {u} in enumerate({taken}, {self.integer(0)}):",
                    f"for {counter}, {u} in zip({bound}, {taken}):",
                    f"for {counter}, ({u}, _w) in enumerate(zip({taken}, reversed({bound}))):",
                ]
            )
            first = f"    b = b + {counter}" if counter in head else "    b = b ^ 5"
            used = f"    a = a ^ {u}" if array == "n" else f"    f = wp.clamp(wp.floor({u} + f), -500.0, 500.0)"
            return [head, first, used, "    if b & 3 == 1:", "        break", *self.loop_body(), *self.otherwise()]
        if kind == "for":
            bounds = c.choice(
                ["3", "a & 7", "b & 3, 6", f"{c.randint(0, 3)}, {c.randint(3, 6)}", "5, (a & 3) - 1, -2", "20"]
            )
            return [
                f"for {counter} in range({bounds}):",
                f"    b = b + {counter}",
                *self.loop_body(),
                *self.otherwise(),
            ]
        if kind == "sequence":
            values = ", ".join(self.integer(0) for _ in range(c.randint(1, 4)))
            head = c.choice(
                [
                    f"for {counter} in ({values},):",
                    f"for {counter}, _f in zip(({values}, 3), (0.5, f)):",
                    f"for {counter}, _a in enumerate(({values},)):",
                ]
            )
            return [head, f"    b = b + {counter}", *self.loop_body(), *self.otherwise()]
        return [
            f"{counter} = {c.choice(['0', 'a & 3', 'i & 7'])}",
            f"while {counter} < {c.randint(3, 9)} and {self.condition()}:",
            f"    {counter} += {c.randint(1, 3)}",
            *self.loop_body(),
            *self.otherwise(),
        ]

    def assignment(self):
        return [f"{self.choose.choice('ab')} = {self.integer()}"]

    def otherwise(self):
        return ["else:", *self.inner(1)] if self.choose.random() < 0.3 else []


# ---- Python as the kernel language ----


class Int(int):
    """An int32: wraps, and divides as C does."""

    def __new__(cls, value):
        return super().__new__(cls, (math.trunc(value) + 2**31) % 2**32 - 2**31)


def _operator(name, formula):
    setattr(Int, f"__{name}__", lambda a, b: Int(formula(int(a), int(b))))
    setattr(Int, f"__r{name}__", lambda a, b: Int(formula(int(b), int(a))))


def _quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


for _name, _formula in {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "lshift": lambda a, b: a << b,
    "rshift": lambda a, b: a >> b,
    "truediv": _quotient,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a - _quotient(a, b) * b,
}.items():
    _operator(_name, _formula)
Int.__neg__ = lambda a: Int(-int(a))
Int.__invert__ = lambda a: Int(~int(a))
Int.__abs__ = lambda a: Int(abs(int(a)))


class Vec3:
    def __init__(self, x, y, z):
        self.parts = [x, y, z]

    def __getitem__(self, i):
        return self.parts[i]

    def __setitem__(self, i, value):
        self.parts[i] = value

    def _set(self, i, value):
        self.parts[i] = value

    y = property(lambda self: self.parts[1], lambda self, value: self._set(1, value))
    z = property(lambda self: self.parts[2], lambda self, value: self._set(2, value))

    def __mul__(self, scale):
        return Vec3(*(p * scale for p in self.parts))

    def __add__(self, other):
        return Vec3(*(p + q for p, q in zip(self.parts, other.parts)))

    def __sub__(self, other):
        return Vec3(*(p - q for p, q in zip(self.parts, other.parts)))

    def __neg__(self):
        return Vec3(*(-p for p in self.parts))


class Vectors(list):
    """An array of vectors: a stored value is a copy."""

    def __setitem__(self, i, value):
        super().__setitem__(i, Vec3(*value.parts))


class Wp:
    """The part of `wp` that the programs use."""

    vec3 = Vec3
    min, max, abs, floor = min, max, abs, staticmethod(lambda x: float(math.floor(x)))
    clamp = staticmethod(lambda x, low, high: min(max(low, x), high))
    where = staticmethod(lambda condition, a, b: a if condition else b)
    array = staticmethod(lambda **options: None)
    func = staticmethod(lambda function: function)
    zeros = staticmethod(lambda shape, dtype: [dtype(0)] * int(shape))

    @staticmethod
    def atomic_add(array, index, value):
        array[index] = array[index] + value

    def tid(self):
        return Int(self.thread)


def _range(*bounds):
    return map(Int, range(*(int(b) for b in bounds)))


class _TypedLiterals(ast.NodeTransformer):
    """3 -> int(3); `int` will be Int."""

    def visit_Constant(self, node):
        if type(node.value) is not int:
            return node
        return ast.Call(ast.Name("int", ast.Load()), [node], [])

    def visit_MatchValue(self, node):  # compares equal as it is
        return node


def by_python(source, x, n, p):
    """(of, on, op, total) as Python finds them."""
    wp = Wp()
    names = {
        "wp": wp,
        "range": _range,
        "int": Int,
        "Any": None,
        "Callable": None,
        "enumerate": lambda values, start=0: ((start + Int(k), value) for k, value in enumerate(values)),
        "sum": lambda values: sum(values, Int(0)),
        "reversed": lambda values: list(values)[::-1],
    }
    # A name that is assigned on some paths only is zero on the others.
    source = source.replace("    i = wp.tid()\n", "    i = wp.tid()\n    late, far = 0, 0.0\n")
    tree = ast.fix_missing_locations(_TypedLiterals().visit(ast.parse(source)))
    exec(compile(tree, "program", "exec"), names)
    of = [0.0] * THREADS
    on = [Int(0)] * THREADS
    op = Vectors(Vec3(0.0, 0.0, 0.0) for _ in range(THREADS))
    total = [Int(0)] * 4
    for thread in range(THREADS):
        wp.thread = thread
        vectors = Vectors(Vec3(*(float(c) for c in row)) for row in p)
        names["program"]([float(v) for v in x], [Int(int(v)) for v in n], vectors, of, on, op, total)
    return (
        np.array(of, np.float32),
        np.array(on, np.int64).astype(np.int32),
        np.array([v.parts for v in op], np.float32),
        np.array(total, np.int64).astype(np.int32),
    )


def inputs(seed=0):
    rng = np.random.default_rng(seed)
    x = (rng.integers(-40, 40, ELEMENTS) / 2).astype(np.float32)
    n = np.where(
        rng.random(ELEMENTS) < 0.2, rng.integers(-(2**31), 2**31, ELEMENTS), rng.integers(-20, 20, ELEMENTS)
    ).astype(np.int32)
    p = rng.integers(-20, 20, (ELEMENTS, 3)).astype(np.float32)
    return x, n, p
