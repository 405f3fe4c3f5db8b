"""Random kernels over the whole type system: as text, and as what NumPy makes of them.

A program keeps variables, elements of arrays and parts of them, of every type. Each expression is made for a type, as a
pair of its text and of the function that computes it with NumPy. All arithmetic is exact: integers wrap to their width,
floats are whole numbers that every operation brings back into [-4, 4].
"""

import collections
import copy
from dataclasses import dataclass, field

import numpy as np

THREADS = 5
LIMIT = 4
FLOATS = {"float16": np.float16, "bfloat16": np.float32, "float32": np.float32, "float64": np.float64}
INTS = {name: getattr(np, name) for name in "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()}
NUMPY = {**INTS, **FLOATS, "bool": np.bool_}


@dataclass(frozen=True)
class T:
    """A type of values. `shape` is of vectors (n,) and matrices (r, c), `fields` of structs."""

    kind: str
    scalar: str = ""
    shape: tuple = ()
    fields: tuple = ()
    name: str = ""

    @property
    def text(self):
        """How the kernel calls it."""
        if self.kind == "scalar":
            return f"wp.{self.scalar}"
        return self.name or "_".join([self.kind, *map(str, self.shape), self.scalar])

    @property
    def declaration(self):
        """The line that makes it, before the kernel."""
        if self.kind == "struct":
            rows = "".join(f"    {name}: {t.text}\n" for name, t in self.fields)
            return f"@wp.struct\nclass {self.name}:\n{rows}\n"
        made = {
            "vector": f"wp.types.vector(length={sum(self.shape[:1])}, dtype=wp.{self.scalar})",
            "matrix": f"wp.types.matrix(shape={self.shape}, dtype=wp.{self.scalar})",
            "quaternion": f"wp.types.quaternion(dtype=wp.{self.scalar})",
            "transform": f"wp.types.transformation(dtype=wp.{self.scalar})",
        }
        return f"{self.text} = {made[self.kind]}\n"

    @property
    def is_float(self):
        return self.scalar in FLOATS

    def zero(self):
        if self.kind == "struct":
            return {name: t.zero() for name, t in self.fields}
        length = {"scalar": (), "quaternion": (4,), "transform": (7,)}.get(self.kind, self.shape)
        return NUMPY[self.scalar](0) if length == () else np.zeros(length, NUMPY[self.scalar])


def scalar(name):
    return T("scalar", name)


def vector(n, name):
    return T("vector", name, (n,))


INT32, BOOL = scalar("int32"), scalar("bool")


@dataclass
class Place:
    """A variable or an element, `root`, and a part of it. Where `keys` leads in NumPy, `text` leads in the kernel."""

    text: str
    type: T
    root: str
    keys: list = field(default_factory=list)

    def get(self, env):
        value = env[self.root]
        for key in self.keys:
            value = value[_key(key, env)]
        return copy.deepcopy(value)

    def set(self, env, value):
        def replaced(whole, keys):
            if not keys:
                return copy.deepcopy(value)
            key = _key(keys[0], env)
            whole[key] = replaced(whole[key], keys[1:])  # a part may be a copy
            return whole

        env[self.root] = replaced(env.get(self.root), self.keys)

    def part(self, text, part_type, key):
        return Place(self.text + text, part_type, self.root, [*self.keys, key])


class Typed:
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
        self.shared = []  # elements that all threads add to, and none reads
        for k, t in enumerate(self.arrays):
            self.shared += [Place(f"c{k}[0]", t, f"c{k}", [0]), Place(f"c{k}[1 - (i & 1)]", t, f"c{k}", [OTHER])]
            self.roots += [Place(f"a{k}[i]", t, f"a{k}"), Place(f"b{k}[i, 1]", t, f"b{k}", [1])]
            self.roots += [Place(f"b{k}[i][0]", t, f"b{k}", [0])]
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
            found += [p for p in scalars if not any(_many(key) for key in p.keys)]
        return found

    def by_numpy(self):
        """What the threads write to `out`, and the contents of each shared array."""
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

    # ---- places ----

    def parts_of(self, root):
        """The variable or element and all its parts, by type."""
        if root.text not in self.known_parts:
            by_type = self.known_parts[root.text] = collections.defaultdict(list)
            for part in self.parts(root):
                by_type[part.type].append(part)
        return self.known_parts[root.text]

    def parts(self, place, depth=1):
        t = place.type
        self.declared.setdefault(t.text, t) if t.kind != "scalar" else None
        found = [place]
        if t.kind == "scalar" or depth < 0:
            return found
        one = scalar(t.scalar)
        if t.kind == "struct":
            steps = [(f".{name}", part, name) for name, part in t.fields]
            depth += 1
        elif t.kind == "vector":
            n = t.shape[0]
            steps = [(f"[{k}]", one, k) for k in range(n)] + [(f"[-{n}]", one, -n)]
            steps += [("[0:2]", vector(2, t.scalar), slice(0, 2)), ("[:-1]", vector(n - 1, t.scalar), slice(0, n - 1))]
            steps += [("[::-1]", t, slice(None, None, -1)), (".yx", vector(2, t.scalar), [1, 0])]
            steps += [(".x", one, 0), ("[i & 1]", one, None)]
        elif t.kind == "matrix":
            r, c = t.shape
            steps = [(f"[{k}]", vector(c, t.scalar), k) for k in range(r)]
            steps += [(f"[{k}, {m}]", one, (k, m)) for k in range(r) for m in range(c)]
            steps += [("[:, 1]", vector(r, t.scalar), (slice(None), 1))]
            steps += [("[0:2, 0:2]", T("matrix", t.scalar, (2, 2)), (slice(0, 2), slice(0, 2)))]
        elif t.kind == "quaternion":
            steps = [(f"[{k}]", one, k) for k in range(4)] + [(".w", one, 3)]
        else:
            steps = [(f"[{k}]", one, k) for k in range(7)]
            steps += [(".p", vector(3, t.scalar), slice(0, 3)), (".q", T("quaternion", t.scalar), slice(3, 7))]
        for text, part, key in steps:
            if part.shape == (1,) or (key is None and any(_many(k) for k in place.keys)):
                continue
            found += self.parts(place.part(text, part, DYNAMIC if key is None else key), depth - 1)
        return found

    def places(self, t):
        return [p for root in self.roots for p in self.parts_of(root).get(t, ())]

    def new_name(self, t):
        self.names += 1
        return Place(f"x{self.names}", t, f"x{self.names}")

    # ---- expressions: (text, function of the environment) ----

    def value(self, t, depth=2):
        c = self.choose
        if t.kind == "struct":
            options = [self.from_place, self.from_fields]
        elif t == BOOL:
            options = [self.from_place, self.boolean, self.boolean]
        elif t.kind == "scalar":
            options = [self.from_place, self.literal, self.cast, self.arithmetic, self.arithmetic, self.from_vector]
        else:
            options = [self.from_place, self.constructed, self.constructed, self.arithmetic, self.arithmetic]
            if t.kind == "vector" and t.is_float:
                options.append(self.algebra)
        if depth <= 0:
            options = [self.from_place, self.literal if t.kind == "scalar" else self.zero]
        if depth > 0 and c.random() < 0.2:
            return self.chosen(t, depth)
        return c.choice(options)(t, depth) or self.zero(t, depth)

    def zero(self, t, depth):
        return f"{t.text}()", lambda env: t.zero()

    def from_place(self, t, depth):
        found = self.places(t)
        if not found:
            return None
        place = self.choose.choice(found)
        return place.text, place.get

    def literal(self, t, depth):
        if t == BOOL:
            value = self.choose.choice([True, False])
            return str(value), lambda env: np.bool_(value)
        k = self.choose.randint(0 if t.scalar.startswith("u") else -LIMIT, LIMIT)
        if self.choose.random() < 0.4:
            return f"{t.text}(i)", lambda env: NUMPY[t.scalar](env["i"])
        return f"{t.text}({k})", lambda env: NUMPY[t.scalar](k)

    def cast(self, t, depth):
        source = self.choose.choice(self.scalars)
        text, get = self.value(source, depth - 1)
        make = NUMPY[t.scalar]
        if source.is_float and t.scalar.startswith("u"):
            return f"{t.text}({text})", lambda env: make(max(0, int(get(env))))
        if t.is_float and not source.is_float and source != BOOL:
            return f"{t.text}({text} & {source.text}(3))", lambda env: make(get(env) & NUMPY[source.scalar](3))
        return f"{t.text}({text})", lambda env: np.asarray(get(env)).astype(make)[()]

    def arithmetic(self, t, depth):
        c = self.choose
        kinds = ["+", "-", "negate", "where"]
        if t.kind in ("scalar", "vector"):
            kinds += ["min", "max"]
        if t.kind in ("scalar", "quaternion"):
            kinds += ["*"]
        if t.kind in ("vector", "matrix", "quaternion"):
            kinds += ["scale", "scaled"]
        if t.kind == "vector":
            kinds += ["cw_mul"]
        if t.kind == "matrix" and t.shape[0] == t.shape[1]:
            kinds += ["@"]
        if t.kind == "transform":
            kinds = ["+", "-", "where"]
        if t.kind == "scalar" and not t.is_float:
            kinds += ["&", "|", "^", "~", "<<", ">>"]
        kind = c.choice(kinds)
        a_text, a = self.value(t, depth - 1)
        b_text, b = self.value(t, depth - 1)
        make = NUMPY[t.scalar]
        if kind == "negate":
            return self.bounded(t, f"-{a_text}", lambda env: -a(env))
        if kind == "~":
            return f"(~{a_text})", lambda env: ~a(env)
        if kind in ("<<", ">>"):
            k = c.randint(0, 7)
            shift = np.left_shift if kind == "<<" else np.right_shift
            return f"({a_text} {kind} {t.text}({k}))", lambda env: shift(a(env), make(k))
        if kind == "where":
            condition, test = self.value(BOOL, depth - 1)
            return f"wp.where({condition}, {a_text}, {b_text})", lambda env: a(env) if test(env) else b(env)
        if kind in ("scale", "scaled"):
            k_text, k = self.value(scalar(t.scalar), depth - 1)
            text = f"{k_text} * {a_text}" if kind == "scale" else f"{a_text} * {k_text}"
            return self.bounded(t, text, lambda env: a(env) * k(env))
        if kind in ("min", "max"):
            call = np.minimum if kind == "min" else np.maximum
            return f"wp.{kind}({a_text}, {b_text})", lambda env: call(a(env), b(env))
        if kind == "cw_mul":
            return self.bounded(t, f"wp.cw_mul({a_text}, {b_text})", lambda env: a(env) * b(env))
        if kind == "*" and t.kind == "quaternion":
            return self.bounded(t, f"{a_text} * {b_text}", lambda env: hamilton(a(env), b(env)))
        compute = {
            "+": lambda env: a(env) + b(env),
            "-": lambda env: a(env) - b(env),
            "*": lambda env: a(env) * b(env),
            "@": lambda env: a(env) @ b(env),
            "&": lambda env: a(env) & b(env),
            "|": lambda env: a(env) | b(env),
            "^": lambda env: a(env) ^ b(env),
        }[kind]
        return self.bounded(t, f"{a_text} {kind} {b_text}", compute)

    def bounded(self, t, text, compute):
        if not t.is_float:
            return f"({text})", lambda env: np.asarray(compute(env)).astype(NUMPY[t.scalar])[()]
        function = {"scalar": "small_scalar", "matrix": "small_rows"}.get(t.kind, "small")
        make = NUMPY[t.scalar]
        return f"{function}({text})", lambda env: np.clip(compute(env), -LIMIT, LIMIT).astype(make)[()]

    def algebra(self, t, depth):
        """Of vectors of floats: products with matrices, cross products."""
        a_text, a = self.value(t, depth - 1)
        n = t.shape[0]
        if n == 3 and self.choose.random() < 0.4:
            b_text, b = self.value(t, depth - 1)
            return self.bounded(t, f"wp.cross({a_text}, {b_text})", lambda env: np.cross(a(env), b(env)))
        m = T("matrix", t.scalar, (n, n))
        self.declared.setdefault(m.text, m)
        m_text, get = self.value(m, depth - 1)
        if self.choose.random() < 0.5:
            return self.bounded(t, f"{m_text} @ {a_text}", lambda env: get(env) @ a(env))
        return self.bounded(t, f"{a_text} @ {m_text}", lambda env: a(env) @ get(env))

    def from_vector(self, t, depth):
        """A number from a vector of its type."""
        v = vector(self.choose.choice([2, 3, 4]), t.scalar)
        self.declared.setdefault(v.text, v)
        text, get = self.value(v, depth - 1)
        kind = self.choose.choice(["sum", "max", "dot", "loop"])
        if kind == "dot":
            other, b = self.value(v, depth - 1)
            return self.bounded(t, f"wp.dot({text}, {other})", lambda env: np.dot(get(env), b(env)))
        if kind == "max":
            return f"wp.max({text})", lambda env: np.max(get(env))
        if kind == "loop":
            return self.bounded(t, f"added({text})", lambda env: np.sum(get(env), dtype=NUMPY[t.scalar]))
        return self.bounded(t, f"sum({text})", lambda env: np.sum(get(env), dtype=NUMPY[t.scalar]))

    def constructed(self, t, depth):
        c = self.choose
        if t.kind == "transform":
            p_text, p = self.value(self.known(vector(3, t.scalar)), depth - 1)
            q_text, q = self.value(self.known(T("quaternion", t.scalar)), depth - 1)
            return f"{t.text}({p_text}, {q_text})", lambda env: np.concatenate([p(env), q(env)])
        count = 4 if t.kind == "quaternion" else int(np.prod(t.shape))
        make = NUMPY[t.scalar]
        if t.kind == "vector" and c.random() < 0.3:
            text, get = self.value(scalar(t.scalar), depth - 1)
            return f"{t.text}({text})", lambda env: np.full(t.shape, get(env), make)
        if t.kind == "vector" and t.shape[0] > 2 and c.random() < 0.3:
            text, get = self.value(self.known(vector(t.shape[0] - 1, t.scalar)), depth - 1)
            return f"{t.text}(*{text}, wp.{t.scalar}(1))", lambda env: np.append(get(env), make(1)).astype(make)
        parts = [self.value(scalar(t.scalar), depth - 1) for _ in range(count)]
        text = ", ".join(text for text, _ in parts)
        shape = t.shape or (4,)
        return f"{t.text}({text})", lambda env: np.array([get(env) for _, get in parts], make).reshape(shape)

    def known(self, t):
        return self.declared.setdefault(t.text, t)

    def from_fields(self, t, depth):
        given = [(name, self.value(part, depth - 1)) for name, part in t.fields if self.choose.random() < 0.6]
        text = ", ".join(f"{name}={value[0]}" for name, value in given)
        return f"{t.text}({text})", lambda env: {**t.zero(), **{name: value[1](env) for name, value in given}}

    def chosen(self, t, depth):
        condition, test = self.value(BOOL, depth - 1)
        (a_text, a), (b_text, b) = self.value(t, depth - 1), self.value(t, depth - 1)
        if self.choose.random() < 0.3:
            return f"keep({a_text})", a
        return f"({a_text} if {condition} else {b_text})", lambda env: a(env) if test(env) else b(env)

    def boolean(self, t, depth):
        c = self.choose
        kind = c.choice(["order", "order", "equal", "and", "not", "in"])
        if kind == "and":
            word = c.choice(["and", "or"])
            (a_text, a), (b_text, b) = self.value(BOOL, depth - 1), self.value(BOOL, depth - 1)
            if word == "and":
                return f"({a_text} and {b_text})", lambda env: a(env) and b(env)
            return f"({a_text} or {b_text})", lambda env: a(env) or b(env)
        if kind == "not":
            text, get = self.value(BOOL, depth - 1)
            return f"(not {text})", lambda env: not get(env)
        numbers = [s for s in self.types if s.kind == "scalar" and s != BOOL]
        vectors = [s for s in self.types if s.kind in ("vector", "matrix", "quaternion")]
        s = c.choice(vectors if kind == "equal" else numbers)
        (a_text, a), (b_text, b) = self.value(s, depth - 1), self.value(s, depth - 1)
        if kind == "equal":
            return f"({a_text} == {b_text})", lambda env: bool(np.array_equal(a(env), b(env)))
        if kind == "in":
            return f"({a_text} in ({b_text}, {s.text}(1)))", lambda env: a(env) in (b(env), NUMPY[s.scalar](1))
        compare = c.choice(["<", "<=", ">", ">=", "==", "!="])
        test = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
        test = {**test, "==": np.equal, "!=": np.not_equal}[compare]
        return f"({a_text} {compare} {b_text})", lambda env: bool(test(a(env), b(env)))

    # ---- statements: (lines, function of the environment) ----

    def block(self, count):
        return [self.statement() for _ in range(count)]

    def statement(self):
        kinds = ["declare", "assign", "assign", "assign", "augmented", "shared", "tuple", "call"]
        if self.depth < 2:
            kinds += ["if", "for", "each"]
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
        """A block of its own: what it declares is gone behind it."""
        outside = len(self.roots)
        self.depth += 1
        body = self.block(self.choose.randint(1, 3))
        self.depth -= 1
        del self.roots[outside:]

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


DYNAMIC = object()  # the index of `[i & 1]`
OTHER = object()  # and of `[1 - (i & 1)]`
OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}


def _key(key, env):
    if key is OTHER:
        return 1 - (int(env["i"]) & 1)
    return int(env["i"]) & 1 if key is DYNAMIC else key


def leaves(value):
    """All numbers in what an array holds: of lists and dicts, and of NumPy's arrays with fields."""
    if isinstance(value, np.ndarray) and value.dtype.names:
        return [n for element in value for name in value.dtype.names for n in leaves(np.asarray(element[name])[None])]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [n for part in value for n in leaves(part)]
    return np.asarray(value).ravel().astype(np.int64).tolist()


def _many(key):
    """Whether the key chooses several components."""
    return isinstance(key, (slice, list)) or (isinstance(key, tuple) and any(isinstance(k, slice) for k in key))


def hamilton(a, b):
    """The product of two quaternions x, y, z, w."""
    v = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.append(v, a[3] * b[3] - np.dot(a[:3], b[:3])).astype(a.dtype)


HELPERS = f"""

@wp.func
def small_scalar(u: Any):
    return wp.clamp(u, type(u)(-{LIMIT}), type(u)({LIMIT}))


@wp.func
def small(u: Any):
    for k in range(len(u)):
        u[k] = small_scalar(u[k])
    return u


@wp.func
def small_rows(u: Any):
    for k in range(len(u)):
        u[k] = small(u[k])
    return u


@wp.func
def added(u: Any):
    total = u.dtype(0)
    for x in u:
        total += x
    return total


@wp.func
def keep(u: Any):
    return u


"""
