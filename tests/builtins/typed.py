"""Random kernels over the whole type system: as text, and as what NumPy makes of them.

A program keeps variables, elements of arrays and parts of them, of every type. Each expression is made for a type, as a
pair of its text and of the function that computes it with NumPy. All arithmetic is exact: integers wrap to their width,
floats are whole numbers that every operation brings back into [-4, 4].
"""

import numpy as np
from typed_expressions import Expressions
from typed_forms import Forms
from typed_values import (
    BOOL,
    FLOATS,
    HELPERS,
    INT32,
    NUMPY,
    OPERATORS,
    OTHER,
    THREADS,
    Place,
    T,
    is_many,
    leaves,
    scalar,
    vector,
)


class Typed(Expressions, Forms):
    """Writes one random kernel. `choose` is a random.Random."""

    def __init__(self, choose):
        self.choose = choose
        self.names = 0
        self.depth = 0
        c = choose
        self.scalars = [scalar(name) for name in c.sample(sorted(NUMPY), 3)] + [INT32]
        numbers = [t.scalar for t in self.scalars if t != BOOL]
        floats = [c.choice(sorted(FLOATS)), c.choice(sorted(FLOATS))]
        types = [vector(c.choice([2, 3, 4, 5]), c.choice(numbers)), vector(3, c.choice(numbers))]
        types += [T("matrix", floats[0], c.choice([(2, 2), (3, 3), (2, 3), (4, 4)])), vector(3, floats[0])]
        types += [T("quaternion", floats[1]), T("transform", floats[1]), scalar(floats[0])]
        inner = T("struct", fields=tuple(zip("ab", c.sample(types, 2))), name="Inner")
        outer = T("struct", fields=(("p", inner), ("v", c.choice(types)), ("n", c.choice(self.scalars))), name="Outer")
        self.types = [*dict.fromkeys([*self.scalars, *types, inner, outer])]
        # Types of vectors and scalars that parts of these have come up later.
        self.declared = {t.text: t for t in self.types if t.kind != "scalar"}
        self.arrays = [t for t in c.sample(self.types, 4) if t.scalar not in ("bfloat16", "bool")]
        self.arrays = [t for t in self.arrays if "bfloat16" not in str(t)]
        self.roots, self.known_parts = [], {}
        self.functions, self.results_of = [], []  # defined so far; result types of the functions around
        self.shared = []  # elements that all threads add to and none reads
        for k, t in enumerate(self.arrays):
            self.shared += [Place(f"c{k}[0]", t, f"c{k}", [0]), Place(f"c{k}[1 - (i & 1)]", t, f"c{k}", [OTHER])]
            self.roots += [Place(f"a{k}[i]", t, f"a{k}"), Place(f"b{k}[i, 1]", t, f"b{k}", [1])]
            self.roots += [Place(f"b{k}[i][0]", t, f"b{k}", [0]), Place(f"b{k}[i, ::-1][0]", t, f"b{k}", [1])]
            self.roots += [Place(f"a{k}[i::2][0]", t, f"a{k}"), Place(f"a{k}[::-1][-1 - i]", t, f"a{k}")]
            self.roots += [Place(f"b{k}[i, :: 1 - 2 * (i & 1)][-(i & 1)]", t, f"b{k}", [0])]
        self.function = (c.choice(self.types), c.choice(self.types))
        self.body = self.block(c.randint(6, 10))

    # ---- the program as text, and run by NumPy ----

    def source(self):
        a, b = self.function
        parameters = [
            f"a{k}: wp.array[{t.text}], b{k}: wp.array2d[{t.text}], c{k}: wp.array[{t.text}]"
            for k, t in enumerate(self.arrays)
        ]
        lines = ["i = wp.tid()", *(line for text, _ in self.body for line in text)]
        found = self.results()
        self.columns = self.choose.sample(found, min(len(found), 40))
        for column, place in enumerate(self.columns):
            lines.append(f"out[i, {column}] = wp.int64({place.text})")
        return (
            "".join(t.declaration for t in self.declared.values())
            + HELPERS
            + f"@wp.func\ndef second(x: {a.text}, y: {b.text}):\n    return y, x\n\n\n"
            + f"def program({', '.join([*parameters, 'out: wp.array2d[wp.int64]'])}):\n"
            + "".join(f"    {line}\n" for line in lines)
        )

    def results(self):
        """All scalars in all variables and elements."""
        found = []
        for root in self.roots:
            scalars = [p for t, parts in self.parts_of(root).items() if t.kind == "scalar" for p in parts]
            found += [p for p in scalars if not any(is_many(key) for key in p.keys)]
        return found

    def by_numpy(self):
        """The values that the threads write to `out`, and the contents of each shared array."""
        rows = []
        shared = {f"c{k}": [t.zero(), t.zero()] for k, t in enumerate(self.arrays)}
        with np.errstate(all="ignore"):
            for i in range(THREADS):
                env = {"i": np.int32(i), **shared}
                for k, t in enumerate(self.arrays):
                    env[f"a{k}"], env[f"b{k}"] = t.zero(), [t.zero(), t.zero()]
                for _, run in self.body:
                    run(env)
                rows.append([np.asarray(p.get(env)).astype(np.int64) for p in self.columns])
        return np.array(rows), [leaves(shared[f"c{k}"]) for k in range(len(self.arrays))]

    # ---- statements: (lines, function of the environment) ----

    def block(self, count):
        return [self.statement() for _ in range(count)]

    def statement(self):
        kinds = ["declare", "assign", "assign", "assign", "augmented", "shared", "tuple", "call"]
        kinds += ["list", "functions"] + ["leave"] * bool(self.results_of) + ["call_inner"] * 2 * bool(self.functions)
        if self.depth < 2:
            kinds += ["if", "if_named", "for", "each", "pairs", "match", "define", "define"]
        return getattr(self, "s_" + self.choose.choice(kinds))()

    def s_declare(self):
        t = self.choose.choice(self.types)
        text, get = self.value(t)
        place = self.new_name(t)
        annotation = f": {t.text}" if self.choose.random() < 0.2 else ""
        self.roots.append(place)
        return [f"{place.text}{annotation} = {text}"], lambda env: place.set(env, get(env))

    def some_place(self):
        if not self.roots:
            return None
        by_type = self.parts_of(self.choose.choice(self.roots))
        return self.choose.choice(by_type[self.choose.choice(list(by_type))])

    def s_assign(self):
        place = self.some_place()
        if place is None:
            return self.s_declare()
        text, get = self.value(place.type)
        return [f"{place.text} = {text}"], lambda env: place.set(env, get(env))

    def s_augmented(self):
        place = self.some_place()
        if place is None or place.type.kind not in ("scalar", "vector", "matrix") or place.type == BOOL:
            return self.s_assign()
        t = place.type
        kind = self.choose.choice(["+", "-"] if t.is_float else list("+-&|^"))
        text, get = self.value(t)
        compute = OPERATORS[kind]
        lines = [f"{place.text} {kind}= {text}"]
        _, after = self.bounded(t, "", lambda env: compute(place.get(env), get(env)))
        if t.is_float:
            function = {"scalar": "small_scalar", "matrix": "small_rows"}.get(t.kind, "small")
            lines.append(f"{place.text} = {function}({place.text})")
        return lines, lambda env: place.set(env, after(env))

    def s_shared(self):
        """Sums, which are the same in any order."""
        if not self.shared:
            return self.s_assign()
        by_type = self.parts_of(self.choose.choice(self.shared))
        types = [t for t in by_type if t.kind not in ("struct", "transform") and t.scalar not in ("bool", "float16")]
        if not types:
            return self.s_assign()
        place = self.choose.choice(by_type[self.choose.choice(types)])
        kind = self.choose.choice("+-")
        text, get = self.value(place.type)
        return [f"{place.text} {kind}= {text}"], lambda env: place.set(env, OPERATORS[kind](place.get(env), get(env)))

    def s_tuple(self):
        a, b = self.choose.choice(self.types), self.choose.choice(self.types)
        (a_text, a_get), (b_text, b_get) = self.value(a), self.value(b)
        x, y, t = self.new_name(a), self.new_name(b), self.new_name(a)
        self.roots += [x, y]
        lines = self.choose.choice(
            [
                [f"{t.text} = ({a_text}, {b_text})", f"{x.text}, {y.text} = {t.text}"],
                [f"{t.text} = [{a_text}, {b_text}]", f"{y.text} = {t.text}[-1]", f"{x.text} = {t.text}[0]"],
                [f"{x.text}, {y.text} = {a_text}, {b_text}"],
                [f"{x.text}, *{t.text} = ({a_text}, {b_text})", f"({y.text},) = {t.text}"],
            ]
        )

        def run(env):
            first, second = a_get(env), b_get(env)
            x.set(env, first)
            y.set(env, second)

        return lines, run

    def s_call(self):
        a, b = self.function
        (a_text, a_get), (b_text, b_get) = self.value(a), self.value(b)
        y, x = self.new_name(b), self.new_name(a)
        self.roots += [x, y]

        def run(env):
            first, second = a_get(env), b_get(env)
            x.set(env, first)
            y.set(env, second)

        arguments = self.choose.choice([f"{a_text}, {b_text}", f"y={b_text}, x={a_text}"])
        return [f"{y.text}, {x.text} = second({arguments})"], run

    def inner(self):
        """A block of its own: its declarations end with it."""
        outside, functions = len(self.roots), len(self.functions)
        self.depth += 1
        body = self.block(self.choose.randint(1, 3))
        self.depth -= 1
        del self.roots[outside:]
        del self.functions[functions:]

        def run(env):
            for _, statement in body:
                statement(env)

        return [f"    {line}" for lines, _ in body for line in lines], run

    def s_if(self):
        condition, test = self.value(BOOL)
        (lines, then), (others, otherwise) = self.inner(), self.inner()

        def run(env):
            (then if test(env) else otherwise)(env)

        return [f"if {condition}:", *lines, "else:", *others], run

    def s_for(self):
        name = self.new_name(INT32)
        times = self.choose.choice(["3", "(i & 3)", "wp.tid()"])
        outside = len(self.roots)
        self.roots.append(name)
        lines, body = self.inner()
        del self.roots[outside:]

        def run(env):
            for k in range(3 if times == "3" else int(env["i"]) & (3 if times == "(i & 3)" else 7)):
                env[name.root] = np.int32(k)
                body(env)

        return [f"for {name.text} in range({times}):", *lines], run

    def s_each(self):
        t = self.choose.choice([t for t in self.types if t.kind == "vector"])
        text, get = self.value(t)
        name = self.new_name(scalar(t.scalar))
        outside = len(self.roots)
        self.roots.append(name)
        lines, body = self.inner()
        del self.roots[outside:]

        def run(env):
            for x in get(env):
                env[name.root] = x
                body(env)

        return [f"for {name.text} in {text}:", *lines], run
