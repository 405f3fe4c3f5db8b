"""Random differentiable programs: kernels as text, and the launches that make a program of them.

Kernels use everything that a gradient must go through: nested loops whose bounds are data, while, break, continue,
early returns, conditions of every form, parts of vectors and matrices assigned in place under computed indices,
structs, tuples, calls, reads of what the same kernel wrote, and arrays that later launches overwrite. Numbers stay
small: everything that is assigned goes through a function with a bounded result more often than not.
"""

from dataclasses import dataclass, field

THREADS = 5
COLUMNS = 3

# (parameter, element type, whether threads have a row of their own that they may write)
PARAMETERS = [
    ("x", "wp.array[wp.float64]"),
    ("v", "wp.array[wp.vec3d]"),
    ("n", "wp.array[int]"),
    ("s", "wp.array2d[wp.float64]"),
    ("w", "wp.array[wp.vec3d]"),
    ("q", "wp.array[Body]"),
    ("total", "wp.array[wp.float64]"),
]

HEADER = """import warp as wp


@wp.struct
class Body:
    m: wp.float64
    p: wp.vec3d
    k: int


@wp.func
def squash(a: wp.float64):
    return a / (wp.float64(1.0) + a * a)


@wp.func
def shrink(a: wp.vec3d):
    return a / (wp.float64(1.0) + wp.dot(a, a))

"""


@dataclass
class Scope:
    """The names in scope: variables by type, and the statements that the surroundings allow."""

    floats: list = field(default_factory=list)
    vectors: list = field(default_factory=list)
    matrices: list = field(default_factory=list)
    ints: list = field(default_factory=list)
    bodies: list = field(default_factory=list)
    locals: list = field(default_factory=list)
    functions: list = field(default_factory=list)
    arrays: bool = False  # in the kernel itself
    loops: int = 0
    result: str = ""  # of an early return; "" if there is none


class Program:
    """`choose` is a random.Random; `rereads` says whether kernels may read what they wrote themselves, `tickets`
    whether they use what atomics give: each thread those of an element of its own, so that their order is known."""

    def __init__(self, choose, rereads=True, tickets=False):
        self.c = choose
        self.rereads = rereads
        self.tickets = tickets
        self.names = 0
        self.stored = []  # array parameters that the kernel at hand writes with plain stores
        functions = [self.function(k) for k in range(choose.choice([0, 1, 1, 2]))]
        kernels = [self.kernel(k, functions) for k in range(choose.choice([1, 1, 1, 2, 2, 3]))]
        self.text = HEADER + "".join(text for _, text in functions) + "".join(kernels)
        order = list(range(len(kernels)))
        if choose.random() < 0.5:
            order += choose.choices(order, k=choose.randint(1, 3))
        self.launches = [f"kernel{k}" for k in order]

    # ---- expressions ----

    def index(self, scope, limit, depth=1):
        c = self.c
        if scope.ints and c.random() < 0.6:
            from_end = f" - {limit}" if c.random() < 0.3 else ""  # negative: counted from the end
            return f"({self.int_expression(scope, depth)}) % {limit}{from_end}"
        return str(c.randrange(limit))

    def int_expression(self, scope, depth=1):
        c = self.c
        choices = [str(c.randint(0, 4)), *scope.ints, *scope.ints]
        choices += [f"{b}.k" for b in scope.bodies]
        if scope.arrays:
            choices += ["n[i]", "i"]
        if depth > 0 and c.random() < 0.5:
            a, b = self.int_expression(scope, 0), self.int_expression(scope, 0)
            forms = [f"{a} + {b}", f"({a} * {b}) % 5"]
            forms += [f"int(wp.abs({c.choice(scope.floats)}) * {F(3.0)}) % 4"] if scope.floats else []
            return c.choice(forms)
        return c.choice(choices)

    def may_draw(self, scope):
        return self.tickets and scope.arrays

    def ticket(self, scope):
        # Few enough that no product of their sums is beyond 32 bits; Python's integers have no limit.
        return f"wp.atomic_add(n, i, ({self.int_expression(scope, 0)}) % 5)"

    def leaf(self, scope):
        c = self.c
        choices = [*scope.floats, *scope.floats, F(round(c.uniform(-1.5, 1.5), 2))]
        choices += [f"{v}[{self.index(scope, 3, 0)}]" for v in scope.vectors]
        choices += [f"{m}[{self.index(scope, 2, 0)}, {self.index(scope, 2, 0)}]" for m in scope.matrices]
        choices += [f"{b}.m" for b in scope.bodies] + [f"{b}.p[{c.randrange(3)}]" for b in scope.bodies]
        choices += [f"{a}[{self.index(scope, 3, 0)}]" for a in scope.locals if self.rereads]
        if scope.ints:
            choices.append(f"wp.float64({c.choice(scope.ints)})")
        if scope.arrays:
            choices += [f"x[{self.thread(scope, 0)}]", f"v[{self.thread(scope, 0)}][{self.index(scope, 3, 0)}]"]
            if self.may_read("s"):
                choices += [f"s[i, {self.index(scope, COLUMNS, 0)}]"] * 2
            if self.may_read("q"):
                choices += ["q[i].m", f"q[i].p[{c.randrange(3)}]"]
            if self.may_read("w"):
                choices += [f"w[i][{self.index(scope, 3, 0)}]"]
        return c.choice(choices)

    def may_read(self, array):
        return self.rereads or array not in self.stored

    def thread(self, scope, depth=1):
        c = self.c
        if c.random() < 0.5:
            return "i"
        from_end = f" - {THREADS}" if c.random() < 0.3 else ""
        return f"({self.int_expression(scope, depth)}) % {THREADS}{from_end}"

    def number(self, scope, depth=2):
        c = self.c
        if depth == 0 or c.random() < 0.15:
            return self.leaf(scope)
        a = self.number(scope, depth - 1)
        b = self.number(scope, depth - 1)

        def vector():
            return self.vector(scope, depth - 1)

        forms = [lambda op=op: f"({a} {op} {b})" for op in "+-*+-*"]
        forms += [
            lambda: f"{a} / ({F(1.5)} + {b} * {b})" if "(" not in b else f"squash({a}) * {b}",
            lambda: f"wp.{c.choice(['sin', 'cos', 'tanh', 'atan'])}({a})",
            lambda: f"wp.{c.choice(['min', 'max'])}({a}, {b})",
            lambda: f"wp.sqrt(wp.abs({a}) + {F(0.3)})",
            lambda: f"({a} if {self.condition(scope)} else {b})",
            lambda: f"wp.dot({vector()}, {vector()})",
            lambda: f"wp.length({vector()} + wp.vec3d({F(3.0)}, {F(0.0)}, {F(0.1)}))",
            lambda: f"{self.call(scope, lambda: a)}[0]" if scope.functions else f"squash({a})",
            lambda: f"wp.where({self.condition(scope)}, {a}, {b})",
            lambda: f"squash({a})",
            lambda: f"(lambda y, by={b}: squash(y * {self.leaf(scope)} - by))({a})",
            lambda: f"sum([squash(y * {self.leaf(scope)}) for y in ({a}, {b})])",
            lambda: f"sum(squash(y) for y in {vector()})",
        ]
        return c.choice(forms)()

    def vector(self, scope, depth=2):
        c = self.c
        choices = [*scope.vectors, *scope.vectors, *(f"{b}.p" for b in scope.bodies)]
        if scope.arrays:
            choices.append(f"v[{self.thread(scope)}]")
            choices += ["w[i]"] if self.may_read("w") else []
        if depth == 0 or c.random() < 0.15:
            return c.choice(choices)

        def vector():
            return self.vector(scope, depth - 1)

        def number():
            return self.number(scope, 0)

        forms = [
            lambda: f"wp.vec3d({number()}, {number()}, {number()})",
            lambda: f"({vector()} {c.choice('+-')} {vector()})",
            lambda: f"wp.cross({vector()}, {vector()})",
            lambda: f"{vector()} * {number()}",
            lambda: f"shrink({vector()})",
            lambda: f"{self.call(scope, number)}[1]" if scope.functions else c.choice(choices),
            lambda: c.choice(choices),
        ]
        return c.choice(forms)()

    def call(self, scope, number):
        """A call of one of the functions, which gives a number and a vector; `number` makes its first argument."""
        name, _ = self.c.choice(scope.functions)
        return f"{name}({number()}, {self.vector(scope, 0)}, {self.int_expression(scope)})"

    def matrix(self, scope):
        c = self.c
        if not scope.matrices or c.random() < 0.4:
            return "wp.mat22d(" + ", ".join(self.number(scope, 0) for _ in range(4)) + ")"
        m = c.choice(scope.matrices)
        other = f"wp.mat22d({', '.join(self.number(scope, 0) for _ in range(4))})"
        return c.choice(
            [f"{m} @ {other}", f"{m} + wp.transpose({m})", f"{other} - {m}", m, f"{m} * {self.leaf(scope)}"]
        )

    def condition(self, scope, depth=1):
        """Not deeper than a leaf on either side: conditions stand in expressions, too."""
        c = self.c
        if depth > 0 and c.random() < 0.25:
            joined = c.choice(["and", "or"])
            return f"({self.condition(scope, 0)} {joined} {self.condition(scope, 0)})"
        if depth > 0 and c.random() < 0.1:
            return f"(not {self.condition(scope, 0)})"
        if self.may_draw(scope) and c.random() < 0.2:
            return f"{self.ticket(scope)} % 3 == {c.randint(0, 2)}"
        if c.random() < 0.5:
            return f"{self.leaf(scope)} {c.choice('<>')} {self.leaf(scope)} * {F(0.7)}"
        return f"({self.int_expression(scope)}) % 3 {c.choice(['==', '!=', '<', '>'])} {c.randint(0, 2)}"

    # ---- statements: lists of lines ----

    def bounded(self, scope):
        text = self.number(scope)
        return text if self.c.random() < 0.25 and scope.loops == 0 else f"{self.c.choice(['squash', 'wp.sin'])}({text})"

    def assignment(self, scope):
        c = self.c
        forms = ["number"] * 4 + ["vector"] * 3 + ["component"] * 3 + ["int"]
        forms += ["matrix", "entry", "row"] if scope.matrices else []
        forms += ["member"] * 2 if scope.bodies else []
        forms += ["swap"] if len(scope.floats) > 1 else []
        forms += ["call"] * 2 if scope.functions else []
        forms += ["local"] * 2 if scope.locals else []
        forms += ["store"] * 3 + ["atomic"] if scope.arrays else []
        forms += ["ticket"] * 3 if self.may_draw(scope) else []
        form = c.choice(forms)
        if form == "number":
            target = c.choice(scope.floats)
            op = c.choice(["=", "=", "+=", "*=", "-="])
            return [f"{target} {op} {self.bounded(scope)}"]
        if form == "vector":
            target = c.choice(scope.vectors)
            if c.random() < 0.2:
                return [f"{target} {c.choice(['+=', '-='])} shrink({self.vector(scope)})"]
            return [f"{target} = shrink({self.vector(scope)})"]
        if form == "component":
            target = f"{c.choice(scope.vectors)}[{self.index(scope, 3)}]"
            return [f"{target} {c.choice(['=', '=', '+=', '*='])} {self.bounded(scope)}"]
        if form == "int":
            settable = [k for k in scope.ints if k == "k0"]
            return [f"{c.choice(settable)} = ({self.int_expression(scope)}) % 6"] if settable else []
        if form == "matrix":
            return [f"{c.choice(scope.matrices)} = {self.matrix(scope)} * {F(0.4)}"]
        if form == "entry":
            target = f"{c.choice(scope.matrices)}[{self.index(scope, 2)}, {self.index(scope, 2)}]"
            return [f"{target} {c.choice(['=', '+='])} {self.bounded(scope)}"]
        if form == "row":
            m = c.choice(scope.matrices)
            return [f"{m}[{c.randrange(2)}] = {m}[{self.index(scope, 2)}] * {F(0.9)}"]
        if form == "member":
            b = c.choice(scope.bodies)
            return [
                c.choice(
                    [
                        f"{b}.m {c.choice(['=', '*='])} {self.bounded(scope)}",
                        f"{b}.p = shrink({self.vector(scope)})",
                        f"{b}.p[{c.randrange(3)}] = {self.bounded(scope)}",
                        f"{b}.k = ({self.int_expression(scope)}) % 5",
                    ]
                )
            ]
        if form == "swap":
            a, b = c.sample(scope.floats, 2)
            return [f"{a}, {b} = {b}, {a}" if c.random() < 0.5 else f"{a}, {b} = {b} * {a}, squash({a})"]
        if form == "call":
            name, _ = c.choice(scope.functions)
            call = f"{name}({self.bounded(scope)}, {self.vector(scope, 1)}, {self.int_expression(scope)})"
            return [f"{c.choice(scope.floats)}, {c.choice(scope.vectors)} = {call}"]
        if form == "local":
            target = f"{c.choice(scope.locals)}[{self.index(scope, 3)}]"
            return [f"{target} {c.choice(['=', '+=', '-='])} {self.bounded(scope)}"]
        if form == "ticket":
            return [f"k0 = {self.ticket(scope)} % 6"] if "k0" in scope.ints else []
        if form == "atomic":
            index = self.index(scope, 3)
            if c.random() < 0.5:
                return [f"total[{index}] {c.choice('+-')}= {self.bounded(scope)}"]
            return [f"wp.atomic_{c.choice(['add', 'sub'])}(total, {index}, {self.bounded(scope)})"]
        return self.store(scope)

    def store(self, scope):
        c = self.c
        kind = c.choice(self.stored)
        if kind == "s":
            op = c.choice(["=", "=", "+=", "-="] + ["*="] * self.rereads)
            return [f"s[i, {self.index(scope, COLUMNS)}] {op} {self.bounded(scope)}"]
        if kind == "w":
            op = c.choice(["=", "=", "+=", "-="])
            if c.random() < 0.4:
                return [f"w[i][{self.index(scope, 3)}] {op} {self.bounded(scope)}"]
            return [f"w[i] {op} shrink({self.vector(scope)})"]
        if scope.bodies and c.random() < 0.6:
            return [f"q[i] = {c.choice(scope.bodies)}"]
        op = c.choice(["=", "+=", "-="])
        part = c.choice(["m", "p", f"p[{c.randrange(3)}]"])
        return [f"q[i].{part} {op} " + (f"shrink({self.vector(scope)})" if part == "p" else self.bounded(scope))]

    def statement(self, scope, depth):
        c = self.c
        form = c.random()
        if depth == 0 or form < 0.5:
            return self.assignment(scope)
        if form < 0.7:
            lines = [f"if {self.condition(scope)}:", *self.block(scope, depth - 1)]
            if c.random() < 0.3:
                lines += [f"elif {self.condition(scope)}:", *self.block(scope, depth - 1)]
            if c.random() < 0.5:
                lines += ["else:", *self.block(scope, depth - 1)]
            return lines
        if form < 0.75:
            return self.inner_function(scope, depth) if c.random() < 0.5 else self.match(scope, depth)
        if form < 0.78:
            name = self.fresh("q")
            return [f"if ({name} := {self.number(scope, 1)}) > {self.leaf(scope)}:", f"    a = squash({name} * {name})"]
        if form < 0.88 and scope.loops < 2:
            return self.counted(scope, depth)
        if form < 0.95 and scope.loops < 2:
            return self.conditional(scope, depth)
        return self.leave(scope)

    def leave(self, scope):
        """break, continue, return."""
        c = self.c
        ways = (["break", "break", "continue"] if scope.loops else []) + ["return"] * bool(scope.result)
        if not ways:
            return self.assignment(scope)
        way = c.choice(ways)
        if way == "return" and scope.result != "none":
            way = f"return {self.bounded(scope)}, shrink({self.vector(scope, 1)})"
        return [f"if {self.condition(scope)}:", f"    {way}"]

    def inner_function(self, scope, depth):
        """A function that changes what it captures, called in two places."""
        c = self.c
        name, by = self.fresh("g"), self.fresh("h")
        changed = [*scope.floats, *scope.vectors, *scope.matrices, *(k for k in scope.ints if k == "k0")]
        result, loops = scope.result, scope.loops
        scope.result, scope.loops = "none", 0
        scope.floats.append(by)
        body = [f"    nonlocal {', '.join(changed)}", *self.block(scope, depth - 1)]
        scope.floats.remove(by)
        scope.result, scope.loops = result, loops
        lines = [f"def {name}({by}):", *body]
        if c.random() < 0.5:
            lines += [f"if {self.condition(scope)}:", f"    {name}({self.bounded(scope)})"]
        return [*lines, *self.assignment(scope), f"{name}({self.bounded(scope)})"]

    def match(self, scope, depth):
        c = self.c
        lines = [f"match ({self.int_expression(scope)}) % 4:"]
        for pattern in c.sample(["0", "1 | 2", "3", "_"][: c.randint(2, 4)], 2):
            guard = f" if {self.condition(scope)}" if pattern == "_" or c.random() < 0.4 else ""
            block = self.block(scope, depth - 1)
            lines += [f"    case {pattern}{guard}:", *(f"    {line}" for line in block)]
        return lines

    def elements(self, scope, depth):
        """A loop over a vector, or an array of the launch."""
        name, number = self.fresh("j"), self.fresh("q")
        over = "x" if scope.arrays and self.c.random() < 0.5 else f"shrink({self.vector(scope, 1)})"
        body = self.inside_loop(scope, depth, name)
        return [f"for {name}, {number} in enumerate({over}):", f"    b = squash({number} * a)", *body]

    def counted(self, scope, depth):
        c = self.c
        if c.random() < 0.2:
            return self.elements(scope, depth)
        name = self.fresh("j")
        end = c.choice([str(c.randint(1, 4)), f"({self.int_expression(scope)}) % 5"])
        bounds = c.choice([end, end, f"{c.randint(0, 2)}, {end}", f"0, {end}, 2", f"{end}, -1, -1"])
        return [f"for {name} in range({bounds}):", *self.inside_loop(scope, depth, name)]

    def conditional(self, scope, depth):
        c = self.c
        name = self.fresh("k")
        limit = c.randint(1, 4)
        lines = [f"{name} = int(0)", f"while {name} < {limit} and {self.condition(scope)}:", f"    {name} += 1"]
        return lines + self.inside_loop(scope, depth, name)

    def inside_loop(self, scope, depth, counter):
        scope.ints.append(counter)
        scope.loops += 1
        body = self.block(scope, depth - 1)
        scope.loops -= 1
        scope.ints.remove(counter)
        return body

    def block(self, scope, depth):
        lines = []
        for _ in range(self.c.choice([1, 1, 2, 3])):
            lines += self.statement(scope, depth)
        if scope.loops and self.c.random() < 0.3:
            lines += self.leave(scope)
        return [f"    {line}" for line in lines] or ["    pass"]

    def fresh(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    # ---- functions and kernels ----

    def function(self, k):
        c = self.c
        scope = Scope(floats=["a", "b"], vectors=["u"], ints=["h"], result="values")
        lines = [f"b = a * {F(round(c.uniform(-1, 1), 2))}"]
        for _ in range(c.randint(1, 3)):
            lines += self.statement(scope, 2)
        lines.append(f"return {self.bounded(scope)}, {self.vector(scope, 1)}")
        text = f"\n@wp.func\ndef f{k}(a: wp.float64, u: wp.vec3d, h: int):\n" + indented(lines) + "\n"
        return f"f{k}", text

    def kernel(self, k, functions):
        c = self.c
        self.stored = ["s", "w", "q"] if self.rereads else c.choice([["s"], ["s"], ["w", "q"], ["s", "q"], ["s", "w"]])
        scope = Scope(functions=functions, arrays=True, result="none")
        lines = ["i = wp.tid()"]
        for name in ("a", "b", "c"):
            lines.append(f"{name} = {'x[i]' if name == 'a' else self.number(scope, 1)}")
            scope.floats.append(name)
        lines += ["u = v[i]", f"t = {self.vector(scope, 1)}", "k0 = n[i]"]
        scope.vectors += ["u", "t"]
        scope.ints.append("k0")
        if c.random() < 0.5:
            lines.append(f"m = wp.mat22d({', '.join(self.number(scope, 0) for _ in range(4))})")
            scope.matrices.append("m")
        if c.random() < 0.5:
            lines += ["p = Body()", f"p.m = {self.number(scope, 1)}", "p.p = u", "p.k = k0"]
            scope.bodies.append("p")
        if self.rereads and c.random() < 0.3:
            lines.append("z = wp.zeros(shape=3, dtype=wp.float64)")
            scope.locals.append("z")
        for _ in range(c.randint(2, 4)):
            lines += self.statement(scope, c.choice([2, 2, 3]))
        if "s" in self.stored:
            lines += [f"s[i, {k}] = {self.bounded(scope)}" for k in (0, 1)]
        if "w" in self.stored:
            lines.append(f"w[i] = shrink({self.vector(scope, 1)})")
        if "q" in self.stored and scope.bodies:
            lines.append("q[i] = p")
        if self.rereads and self.c.random() < 0.5:
            lines.append(f"wp.atomic_add(total, 0, s[i, {c.randrange(COLUMNS)}] * {F(0.5)})")
        parameters = ", ".join(f"{name}: {kind}" for name, kind in PARAMETERS)
        return f"\n@wp.kernel\ndef kernel{k}({parameters}):\n" + indented(lines) + "\n"


def F(number):
    """A literal of float64."""
    return f"wp.float64({number})"


def indented(lines):
    return "".join(f"    {line}\n" for line in lines)
