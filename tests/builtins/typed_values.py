"""The types and places of the programs of typed.py: how the kernel calls them, and what NumPy keeps there."""

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
            value = value[key_of(key, env)]
        return copy.deepcopy(value)

    def set(self, env, value):
        def replaced(whole, keys):
            if not keys:
                return copy.deepcopy(value)
            key = key_of(keys[0], env)
            whole[key] = replaced(whole[key], keys[1:])  # a part may be a copy
            return whole

        env[self.root] = replaced(env.get(self.root), self.keys)

    def part(self, text, part_type, key):
        return Place(self.text + text, part_type, self.root, [*self.keys, key])


DYNAMIC = object()  # the index of `[i & 1]`
OTHER = object()  # and of `[1 - (i & 1)]`
OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}


def key_of(key, env):
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


def is_many(key):
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
