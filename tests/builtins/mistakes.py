"""The programs of typed.py with one more statement: a mistake in the types, or a call of a function with anything."""

from typed import Typed, scalar, vector


class Wrong(Typed):
    """Ends with a statement that is wrong; `builtins`, names of functions, one of them called with anything instead.

    The lines where the mistake may be shown end with "# wrong".
    """

    def __init__(self, choose, builtins=()):
        super().__init__(choose)
        self.body.append(([self.any_call(builtins)] if builtins else self.wrong(), None))

    def two_types(self):
        return self.choose.sample(self.types, 2)

    def wrong(self):
        kinds = [name for name in dir(self) if name.startswith("w_")]
        while True:
            lines = getattr(self, self.choose.choice(kinds))()
            if lines:
                return lines if any("# wrong" in line for line in lines) else [*lines[:-1], lines[-1] + "  # wrong"]

    def any_call(self, builtins):
        """A call that may be right: with values, arrays and things that are no values."""
        c = self.choose
        others = [f"a{k}" for k in range(len(self.arrays))] + [
            "None",
            "i",
            "1",
            "2.5",
            "'text'",
            "second",
            "wp.vec3",
            "(1, i)",
        ]
        arguments = [
            c.choice(others) if c.random() < 0.3 else self.value(c.choice(self.types), 1)[0]
            for _ in range(c.randint(0, 4))
        ]
        if arguments and c.random() < 0.5:  # of one type, as most functions take them
            same = c.choice(self.types)
            arguments = [self.value(same, 1)[0] for _ in arguments]
        return f"{c.choice(['z = ', ''])}wp.{c.choice(builtins)}({', '.join(arguments)})  # wrong"

    def w_store(self):
        place = self.some_place()
        if place is None or (place.text in {root.text for root in self.roots} and place.root.startswith("x")):
            return None  # a local may change its type, and so may an element of a list
        others = [t for t in self.types if t not in (place.type, scalar(place.type.scalar))]
        return [f"{place.text} = {self.value(self.choose.choice(others))[0]}"]

    def w_operator(self):
        a, b = self.two_types()
        signs = ["+", "-", "&", "//"]
        if not a.kind == b.kind == "scalar":  # numbers of different types compare by value
            signs += ["<", "==", "!="]
        sign = self.choose.choice(signs)
        return [f"z = {self.value(a)[0]} {sign} {self.value(b)[0]}"]

    def w_argument(self):
        (a, b), other = self.function, self.choose.choice(self.types)
        if other == a:
            return [f"z = second({self.value(a)[0]})"]
        extra = self.choose.choice(["", ", 1"])
        return [f"z = second({self.value(other)[0]}, {self.value(b)[0]}{extra})"]

    def w_annotation(self):
        a, b = self.two_types()
        return [f"z: {a.text} = {self.value(b)[0]}"]

    def w_attribute(self):
        t = self.choose.choice(self.types)
        return [f"z = {t.text}()", self.choose.choice(["z.nothing = 1", "z = z.nothing", "z.x.y.z.w = z"])]

    def w_index(self):
        t = self.choose.choice([t for t in self.types if t.kind in ("vector", "matrix")])
        index = self.choose.choice([t.shape[0], -t.shape[0] - 1, "1.0", "None", "'a'", f"{t.text}()", "0, 0, 0", "2:2"])
        return [f"z = {t.text}()", self.choose.choice([f"y = z[{index}]  # wrong", f"z[{index}] = 1  # wrong"])]

    def w_array_index(self):
        if not self.arrays:
            return None
        index = self.choose.choice(["1.0", "i, i", "wp.float64(i)", "i > 0", "wp.vec3()", "None", "i, 1:2"])
        return [self.choose.choice([f"z = a0[{index}]", f"a0[{index}] = a0[i]"])]

    def w_components(self):
        t = self.choose.choice([t for t in self.types if t.kind in ("vector", "quaternion")])
        count = (t.shape or (4,))[0] + self.choose.choice([1, -1])
        parts = [self.value(scalar(t.scalar))[0] for _ in range(count)]
        return [f"z = {t.text}({', '.join(parts)})"] if count > 1 else None

    def w_condition(self):
        t = self.choose.choice([t for t in self.types if t.kind != "scalar"])
        form = self.choose.choice(
            ["if {}:", "while {}:", "z = 1 if {} else 2", "assert {}", "z = not {}", "z = {} and i"]
        )
        line = form.format(self.value(t)[0]) + "  # wrong"
        return [line, "    pass"] if form[-1] == ":" else [line]

    def w_order(self):
        t = self.choose.choice([t for t in self.types if t.kind != "scalar"])
        return [f"z = {self.value(t)[0]} {self.choose.choice(['<', '<=', '>'])} {self.value(t)[0]}"]

    def w_paths(self):
        a, b = self.two_types()
        lines = ["if i > 2:", f"    z = {self.value(a)[0]}  # wrong", "else:", f"    z = {self.value(b)[0]}  # wrong"]
        return [*lines, "y = z  # wrong"]

    def w_choice(self):
        a, b = self.two_types()
        if self.choose.random() < 0.5:
            return [f"z = wp.where(i > 2, {self.value(a)[0]}, {self.value(b)[0]})"]
        return [f"z = {self.value(a)[0]} if i > 2 else {self.value(b)[0]}"]

    def w_loop(self):
        a, b = self.two_types()
        head = ["for k in range(i):", "while i < 3:"]
        lines = [f"z = {self.value(a)[0]}  # wrong", self.choose.choice(head), f"    z = {self.value(b)[0]}  # wrong"]
        return [*lines, "    i += 1", "y = z  # wrong"]

    def w_iterable(self):
        t = self.choose.choice([t for t in self.types if t.kind in ("scalar", "struct")])
        text = self.value(t)[0]
        loops = [f"for k in {text}:  # wrong", f"for k in enumerate({text}):  # wrong"]
        if t.is_float or t.kind == "struct":
            loops += [f"for k in range({text}):  # wrong", f"for k in range(0, {text}, 2):  # wrong"]
        return [self.choose.choice(loops), "    pass"]

    def w_unpack(self):
        t = self.choose.choice([t for t in self.types if t.kind in ("vector", "matrix", "struct", "scalar")])
        count = t.shape[0] if t.shape else 1
        return [", ".join(f"z{k}" for k in range(count + 1)) + f" = {self.value(t)[0]}"]

    def w_field(self):
        t = self.choose.choice([t for t in self.types if t.kind == "struct"])
        name, part = self.choose.choice(t.fields)
        other = self.choose.choice([o for o in self.types if o != part])
        return [f"z = {t.text}({self.choose.choice([f'{name}={self.value(other)[0]}', 'nothing=1', '1, 2, 3, 4, 5'])})"]

    def w_slice(self):
        t = self.choose.choice([t for t in self.types if t.kind == "vector"])
        n = t.shape[0]
        other = self.known(vector(n + 1, t.scalar))
        return [f"z = {t.text}()", f"z[0:{n}] = {self.value(other)[0]}  # wrong"]
