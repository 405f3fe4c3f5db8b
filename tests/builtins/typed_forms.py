"""The forms of Python in the programs of typed.py: functions within functions, lambdas, lists, comprehensions, sums of
generators, `match`, `:=`, and loops over `enumerate`, `zip` and `reversed`."""

import contextlib
import copy

import numpy as np
from typed_values import BOOL, DYNAMIC, INT32, NUMPY, Place, scalar


class Returned(Exception):
    """The value that a function within the function returns before its end."""

    def __init__(self, value):
        self.value = value


class Forms:
    """Of a program, which has `choose`, `roots`, `types`, `value`, `block` and the other members of typed.Typed."""

    in_iterable = 0  # of a comprehension: `:=` is not allowed there

    @contextlib.contextmanager
    def visible(self, *places):
        """Names that what is made meanwhile may use."""
        before, self.roots = self.roots, [*self.roots, *places]
        yield
        self.roots = before

    # ---- expressions: (text, function of the environment) ----

    def form(self, t, depth):
        options = [self.applied, self.applied_twice, self.named, self.element, self.from_comprehension]
        if t == BOOL:
            options += [self.any_or_all] * 3
        elif t.kind == "scalar":
            options += [self.sum_of_generator, self.sum_of_generator, self.extreme]
        return self.choose.choice(options)(t, depth)

    def applied(self, t, depth):
        """A lambda that is called in place, with a default value that may be left out."""
        c = self.choose
        x, y = self.new_name(c.choice(self.types)), self.new_name(c.choice(self.types))
        (a_text, a), (b_text, b) = self.value(x.type, depth - 1), self.value(y.type, depth - 1)
        (other_text, other), given = self.value(y.type, depth - 1), c.random() < 0.5
        with self.visible(x, y):
            text, get = self.value(t, depth - 1)

        def run(env):
            first, second = a(env), (other if given else b)(env)
            x.set(env, first)
            y.set(env, second)
            return get(env)

        arguments = f"{a_text}, {y.text}={other_text}" if given else a_text
        return f"(lambda {x.text}, {y.text}={b_text}: {text})({arguments})", run

    def applied_twice(self, t, depth):
        """A lambda that is the argument of another one."""
        x, f = self.new_name(t), self.new_name(t)
        a_text, a = self.value(t, depth - 1)
        with self.visible(x):
            text, get = self.value(t, depth - 1)

        def run(env):
            x.set(env, a(env))
            x.set(env, get(env))
            return get(env)

        return f"(lambda {f.text}: {f.text}({f.text}({a_text})))(lambda {x.text}: {text})", run

    def named(self, t, depth):
        """`:=`, and the name beside it."""
        if self.in_iterable:
            return self.element(t, depth)
        x = self.new_name(t)
        a_text, a = self.value(t, depth - 1)
        with self.visible(x):
            text, get = self.value(t, depth - 1)

        def run(env):
            x.set(env, a(env))
            return get(env)

        return f"(({x.text} := {a_text}), {text})[1]", run

    def index_of(self, t, count):
        """An index of a list of `count` elements, and what it is in a thread."""
        c = self.choose
        if count > 1 and t.kind in ("scalar", "vector") and c.random() < 0.4:
            return c.choice(
                [("i & 1", lambda env: int(env["i"]) & 1), ("-1 - (i & 1)", lambda env: ~(int(env["i"]) & 1))]
            )
        k = c.randrange(-count, count)
        return str(k), lambda env: k

    def element(self, t, depth):
        """Of a list that is written out."""
        values = [self.value(t, depth - 1) for _ in range(self.choose.randint(1, 3))]
        index, at = self.index_of(t, len(values))
        return f"[{', '.join(text for text, _ in values)}][{index}]", lambda env: values[at(env)][1](env)

    def iterable(self, depth, static):
        """The sequence of a comprehension: the name, the text, its length if that is known, and the values."""
        c = self.choose
        kind = c.choice(["vector", "range", "values"] + ["any_range", "array"] * (not static))
        self.in_iterable += 1
        if kind == "vector":
            v = c.choice([t for t in self.types if t.kind == "vector"])
            text, get = self.value(v, depth - 1)
            found = self.new_name(scalar(v.scalar)), text, v.shape[0], get
        elif kind == "values":
            t = c.choice(self.types)
            values = [self.value(t, depth - 1) for _ in range(2)]
            text = f"({values[0][0]}, {values[1][0]})"
            found = self.new_name(t), text, 2, lambda env: [get(env) for _, get in values]
        elif kind == "array" and self.arrays:
            k = c.randrange(len(self.arrays))
            text, step = c.choice([(f"b{k}[i]", 1), (f"b{k}[i, ::-1]", -1)])
            found = self.new_name(self.arrays[k]), text, None, lambda env: env[f"b{k}"][::step]
        elif kind == "any_range":
            found = self.new_name(INT32), "range(i & 3)", None, lambda env: np.arange(int(env["i"]) & 3, dtype=np.int32)
        else:
            text, values = c.choice([("range(3)", range(3)), ("range(4, 0, -2)", range(4, 0, -2))])
            found = self.new_name(INT32), text, len(values), lambda env: [np.int32(k) for k in values]
        self.in_iterable -= 1
        return found

    def generated(self, t, depth, static):
        """The text between the brackets of a comprehension, the number of values if known, and the values."""
        x, over, count, get_all = self.iterable(depth, static)
        with self.visible(x):
            text, get = self.value(t, depth - 1)
            condition, test = self.value(BOOL, depth - 1)
        filtered = not static and self.choose.random() < 0.4
        end = f" if {condition}" if filtered else ""

        def run(env):
            found = []
            for element in get_all(env):
                x.set(env, element)
                if not filtered or test(env):
                    found.append(get(env))
            return found

        return f"{text} for {x.text} in {over}{end}", count, run

    def from_comprehension(self, t, depth):
        text, count, run = self.generated(t, depth, True)
        index, at = self.index_of(t, count)
        return f"[{text}][{index}]", lambda env: run(env)[at(env)]

    def sum_of_generator(self, t, depth):
        text, _, run = self.generated(t, depth, False)
        make = NUMPY[t.scalar]
        return self.bounded(t, f"sum({text})", lambda env: sum(run(env), make(0)))

    def extreme(self, t, depth):
        text, _, run = self.generated(t, depth, False)
        other_text, other = self.value(t, depth - 1)
        kind = self.choose.choice(["min", "max"])
        extreme = min if kind == "min" else max
        return f"{kind}(({text}), default={other_text})", lambda env: extreme(run(env), default=other(env))

    def any_or_all(self, t, depth):
        text, _, run = self.generated(t, depth, False)
        kind = self.choose.choice(["any", "all"])
        return f"{kind}({text})", lambda env: np.bool_((any if kind == "any" else all)(run(env)))

    # ---- statements: (lines, function of the environment) ----

    def s_list(self):
        """A list that keeps its elements, which are places like others."""
        c = self.choose
        t = c.choice(self.types)
        values = [self.value(t) for _ in range(c.randint(2, 3))]
        name = self.new_name(t).text
        lines = [f"{name} = [{', '.join(text for text, _ in values[:-1])}]", f"{name}.append({values[-1][0]})"]
        self.roots += [Place(f"{name}[{k}]", t, name, [k]) for k in range(-1, len(values) - 1)]
        if t.kind in ("scalar", "vector"):
            self.roots.append(Place(f"{name}[i & 1]", t, name, [DYNAMIC]))

        def run(env):
            env[name] = [get(env) for _, get in values]

        return lines, run

    def s_functions(self):
        """Each lambda of a list is applied."""
        place = self.some_place()
        if place is None:
            return self.s_declare()
        x, f = self.new_name(place.type), self.new_name(place.type)
        with self.visible(x):
            values = [self.value(place.type) for _ in range(2)]

        def run(env):
            for _, get in values:
                x.set(env, place.get(env))
                place.set(env, get(env))

        lambdas = ", ".join(f"lambda {x.text}: {text}" for text, _ in values)
        return [f"for {f.text} in [{lambdas}]:", f"    {place.text} = {f.text}({place.text})"], run

    def s_define(self):
        """A function that may change what it captures."""
        c = self.choose
        x, y, result = (self.new_name(c.choice(self.types)) for _ in range(3))
        default_text, default = self.value(y.type)
        captured = sorted({root.root for root in self.roots if root.root.startswith("x")})
        outside = len(self.roots)
        self.roots += [x, y]
        self.results_of.append(result.type)
        functions = len(self.functions)
        self.depth += 1
        body = self.block(c.randint(1, 2))
        body += [self.s_leave(), *self.block(1)] if c.random() < 0.6 else []
        self.depth -= 1
        text, get = self.value(result.type)
        self.results_of.pop()
        del self.functions[functions:]
        del self.roots[outside:]

        def call(env, first, second):
            x.set(env, first)
            y.set(env, env[result.root] if second is None else second)
            try:
                for _, statement in body:
                    statement(env)
                return get(env)
            except Returned as early:
                return early.value

        def define(env):
            env[result.root] = default(env)

        self.functions.append((result, x, y, call))
        lines = [f"    nonlocal {', '.join(captured)}"] if captured else []
        lines += [f"    {line}" for block, _ in body for line in block]
        annotation = f": {x.type.text}" if c.random() < 0.5 else ""
        head = f"def {result.text}({x.text}{annotation}, {y.text}={default_text}):"
        called, run_call = self.s_call_inner()

        def run(env):
            define(env)
            run_call(env)

        return [head, *lines, f"    return {text}", *called], run

    def s_call_inner(self):
        function, x, y, call = self.choose.choice(self.functions)
        (a_text, a), (b_text, b) = self.value(x.type), self.value(y.type)
        given = self.choose.random() < 0.5
        place = self.new_name(function.type)
        self.roots.append(place)

        def run(env):
            first = a(env)
            place.set(env, call(env, first, b(env) if given else None))

        return [f"{place.text} = {function.text}({a_text}{f', {y.text}={b_text}' if given else ''})"], run

    def s_leave(self):
        condition, test = self.value(BOOL)
        text, get = self.value(self.results_of[-1])

        def run(env):
            if test(env):
                raise Returned(get(env))

        return [f"if {condition}:", f"    return {text}"], run

    def s_if_named(self):
        t = self.choose.choice([t for t in self.types if t.kind == "scalar" and t != BOOL])
        x = self.new_name(t)
        (a_text, a), (b_text, b) = self.value(t), self.value(t)
        self.roots.append(x)
        (lines, then), (others, otherwise) = self.inner(), self.inner()

        def run(env):
            x.set(env, a(env))
            (then if x.get(env) > b(env) else otherwise)(env)

        return [f"if ({x.text} := {a_text}) > {b_text}:", *lines, "else:", *others], run

    def s_match(self):
        """Of two values: the first one chooses, the second one gets a name."""
        c = self.choose
        t = c.choice(self.types)
        (a_text, a), (b_text, b) = self.value(INT32), self.value(t)
        lines, cases = [f"match ({a_text} & 3), {b_text}:"], []
        for pattern, numbers in c.sample([("0", [0]), ("1 | 2", [1, 2]), ("3", [3]), ("_", [0, 1, 2, 3])], 3):
            x = self.new_name(t)
            with self.visible(x):
                condition, test = self.value(BOOL)
                body, then = self.inner()
            guarded = pattern == "_" or c.random() < 0.3
            lines += [f"    case {pattern}, {x.text}{f' if {condition}' if guarded else ''}:"]
            lines += [f"    {line}" for line in body]
            cases.append((numbers, x, guarded, test, then))

        def run(env):
            first, second = int(a(env)) & 3, b(env)
            for numbers, x, guarded, test, then in cases:
                if first in numbers:
                    x.set(env, second)
                    if not guarded or test(env):
                        then(env)
                        return

        return lines, run

    def s_pairs(self):
        """Loops over two at once, and backward."""
        c = self.choose
        v = c.choice([t for t in self.types if t.kind == "vector"])
        w = c.choice([t for t in self.types if t.kind == "vector"])
        kinds = ["enumerate", "start", "zip", "reversed", "ranges"] + ["array", "array_backward"] * bool(self.arrays)
        kind = c.choice(kinds)
        (v_text, v_get), (w_text, w_get) = self.value(v), self.value(w)
        counter = self.new_name(INT32)
        number, other = self.new_name(scalar(v.scalar)), self.new_name(scalar(w.scalar))
        names = (counter, number)
        if kind == "enumerate":
            over, pairs = f"enumerate({v_text})", lambda env: enumerate(v_get(env))
        elif kind == "start":
            over, pairs = f"enumerate({v_text}, start=2)", lambda env: enumerate(v_get(env), start=2)
        elif kind == "reversed":
            over, pairs = f"enumerate(reversed({v_text}))", lambda env: enumerate(v_get(env)[::-1])
        elif kind == "zip":
            names, over, pairs = (number, other), f"zip({v_text}, {w_text})", lambda env: zip(v_get(env), w_get(env))
        elif kind == "ranges":
            names, over = (counter, self.new_name(INT32)), "zip(reversed(range(i & 3)), range(1, 6, 2))"

            def pairs(env):
                return zip(reversed(range(int(env["i"]) & 3)), range(1, 6, 2))

        else:
            k = c.randrange(len(self.arrays))
            names, backward = (counter, self.new_name(self.arrays[k])), kind == "array_backward"
            over = f"enumerate(reversed(b{k}[i]))" if backward else f"enumerate(b{k}[i])"

            def pairs(env):
                for m in range(2):  # each is read when its turn comes
                    yield m, copy.deepcopy(env[f"b{k}"][1 - m if backward else m])

        outside = len(self.roots)
        self.roots += names
        lines, body = self.inner()
        del self.roots[outside:]

        def run(env):
            for values in pairs(env):
                for name, value in zip(names, values):
                    name.set(env, np.int32(value) if isinstance(value, int) else value)
                body(env)

        return [f"for {names[0].text}, {names[1].text} in {over}:", *lines], run
