"""The expressions of the programs of typed.py: pairs of the text and of the function that computes it with NumPy."""

import collections

import numpy as np
from typed_values import BOOL, DYNAMIC, LIMIT, NUMPY, Place, T, hamilton, is_many, scalar, vector


class Expressions:
    """Of a program, which has `choose`, `roots`, `types` and `declared`."""

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
            steps += [("[::2]", vector((n + 1) // 2, t.scalar), slice(None, None, 2))]
            steps += [("[-2::-1]", vector(n - 1, t.scalar), slice(n - 2, None, -1))]
            steps += [("[::-1]", t, slice(None, None, -1)), (".yx", vector(2, t.scalar), [1, 0])]
            steps += [(".x", one, 0), ("[i & 1]", one, None)]
        elif t.kind == "matrix":
            r, c = t.shape
            steps = [(f"[{k}]", vector(c, t.scalar), k) for k in range(r)]
            steps += [(f"[{k}, {m}]", one, (k, m)) for k in range(r) for m in range(c)]
            steps += [("[:, 1]", vector(r, t.scalar), (slice(None), 1))]
            steps += [("[::-1, 0]", vector(r, t.scalar), (slice(None, None, -1), 0))]
            steps += [("[0:2, ::-1]", T("matrix", t.scalar, (2, c)), (slice(0, 2), slice(None, None, -1)))]
            steps += [("[0:2, 0:2]", T("matrix", t.scalar, (2, 2)), (slice(0, 2), slice(0, 2)))]
        elif t.kind == "quaternion":
            steps = [(f"[{k}]", one, k) for k in range(4)] + [(".w", one, 3)]
        else:
            steps = [(f"[{k}]", one, k) for k in range(7)]
            steps += [(".p", vector(3, t.scalar), slice(0, 3)), (".q", T("quaternion", t.scalar), slice(3, 7))]
        for text, part, key in steps:
            if part.shape == (1,) or (key is None and any(is_many(k) for k in place.keys)):
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
        if depth > 0 and c.random() < 0.3:
            return self.chosen(t, depth) if c.random() < 0.6 else self.form(t, depth)
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
