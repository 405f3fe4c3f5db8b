"""The sweep of the builtin table: kernels made from signatures, run on many inputs, compared with oracle.py.

One generated kernel calls many overloads, each with its own input and output arrays:

    @wp.kernel
    def k0(c0_a: wp.array(dtype=V0), c0_b: wp.array(dtype=V0), c0_out: wp.array(dtype=wp.float32), ...):
        i = wp.tid()
        c0_out[i] = wp.dot(c0_a[i], c0_b[i])

Signatures are read here with a small reader of their own, so that a mistake in the table's reader shows.
"""

import importlib.util
import re
from dataclasses import dataclass

import numpy as np
import warp as wp
from warp import _weft

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
CLASSES = {"S": INTEGERS + FLOATS, "F": FLOATS, "I": INTEGERS}
# The values of the sizes in signatures; a matrix is not square unless its pattern says so.
SIZES = {"n": 3, "r": 2, "c": 3}
VARIADIC_COUNT = 2
LANES_ROWS = 37  # no multiple of any lane count: the last vector is masked


@dataclass(frozen=True)
class Type:
    kind: str  # scalar, vector, matrix, quaternion, transform
    scalar: str
    shape: tuple = ()

    @property
    def numpy(self):
        return np.dtype("?" if self.scalar == "bool" else self.scalar)

    @property
    def is_float(self):
        return self.scalar.startswith("float")

    @property
    def source(self):
        scalar = f"wp.{self.scalar}"
        return {
            "scalar": scalar,
            "vector": f"wp.types.vector({self.shape[0] if self.shape else 0}, {scalar})",
            "matrix": f"wp.types.matrix({self.shape}, {scalar})",
            "quaternion": f"wp.types.quaternion({scalar})",
            "transform": f"wp.types.transformation({scalar})",
        }[self.kind]

    @property
    def dtype(self):
        return eval(self.source, {"wp": wp})


@dataclass(frozen=True)
class Parameter:
    name: str
    pattern: str
    default: str = ""
    is_inout: bool = False
    is_variadic: bool = False


def split(text):
    """The parts between the commas that stand in no brackets."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(text):
        depth += (letter in "[(") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def read_signature(text):
    """(parameters, results) of "(a: X, b: inout Y = 1.0) -> Z"."""
    inside, _, result = text.rpartition(" -> ")
    parameters = []
    for part in split(inside[1:-1]):
        name, _, pattern = part.partition(": ")
        pattern, _, default = pattern.partition(" = ")
        is_inout = pattern.startswith("inout ")
        parameters.append(
            Parameter(name.lstrip("*"), pattern.removeprefix("inout "), default, is_inout, name.startswith("*"))
        )
    results = [] if result == "none" else split(result[1:-1]) if result.startswith("(") else [result]
    return parameters, results


def concrete(pattern, scalar):
    """The type that a pattern stands for when its class letter stands for a scalar type."""
    sizes = dict(SIZES, args=VARIADIC_COUNT)
    shape, _, parts = pattern.partition("[")
    parts = split(parts.rstrip("]"))

    def scalar_of(part):
        return "bool" if part == "B" else scalar if part in CLASSES else part

    def size_of(part):
        return int(part) if part.isdigit() else sizes[part]

    if shape == "Vec":
        return Type("vector", scalar_of(parts[1]), (size_of(parts[0]),))
    if shape == "Mat":
        return Type("matrix", scalar_of(parts[2]), (size_of(parts[0]), size_of(parts[1])))
    if shape == "Quat":
        return Type("quaternion", scalar_of(parts[0]), (4,))
    if shape == "Transform":
        return Type("transform", scalar_of(parts[0]), (7,))
    return Type("scalar", scalar_of(pattern))


def scalars_of(signature):
    """The scalar types that an overload is run with."""
    for letter, scalars in CLASSES.items():
        if re.search(rf"\b{letter}\b", signature):
            return scalars
    return [None]


@dataclass
class Invocation:
    """One overload with one scalar type."""

    name: str
    signature: str
    scalar: str
    without_defaults: bool = False

    def __post_init__(self):
        self.parameters, results = read_signature(self.signature)
        if self.without_defaults:
            self.parameters = [p for p in self.parameters if not p.default]
        if self.parameters and self.parameters[-1].is_variadic:
            last = self.parameters.pop()
            self.parameters += [Parameter(f"{last.name}{i}", last.pattern) for i in range(VARIADIC_COUNT)]
        self.types = [concrete(p.pattern, self.scalar) for p in self.parameters]
        self.results = [concrete(r, self.scalar) for r in results]
        self.assigned = [i for i, p in enumerate(self.parameters) if p.is_inout]

    @property
    def outputs(self):
        """Types of what a call gives: its results, then what it assigns."""
        return self.results + [self.types[i] for i in self.assigned]

    def __str__(self):
        return f"{self.name}{self.signature} with {self.scalar}{' and defaults' if self.without_defaults else ''}"

    def source(self, prefix):
        """(parameters of the kernel, lines of its body)."""
        header = [f"{prefix}_in{i}: wp.array(dtype={t.source})" for i, t in enumerate(self.types)]
        header += [f"{prefix}_out{i}: wp.array(dtype={t.source})" for i, t in enumerate(self.outputs)]
        lines, arguments = [], []
        for i, parameter in enumerate(self.parameters):
            argument = f"{prefix}_in{i}[i]"
            if parameter.is_inout:
                lines.append(f"{prefix}_v{i} = {argument}")
                argument = f"{prefix}_v{i}"
            arguments.append(argument)
        call = f"wp.{self.name}({', '.join(arguments)})"
        results = [f"{prefix}_r{i}" for i in range(len(self.results))]
        lines.append(f"{', '.join(results)} = {call}" if results else call)
        for i, value in enumerate(results + [f"{prefix}_v{i}" for i in self.assigned]):
            lines.append(f"{prefix}_out{i}[i] = {value}")
        return header, lines


def invocations(name):
    """All overloads of a name that expand to IR, with every scalar type, and with their defaults left out."""
    made = []
    for signature, _, has_expansion, _ in _weft.builtin_overloads(name):
        if (
            has_expansion
            and "Array[" not in signature
            and "static" not in signature
            and not re.search(r": T\b", signature)
            and not re.search(r"\bid: uint64|Query", signature)  # objects are made by tests of their own
        ):
            for scalar in scalars_of(signature):
                made.append(Invocation(name, signature, scalar))
                if " = " in signature:
                    made.append(Invocation(name, signature, scalar, without_defaults=True))
    return [call for call in made if call.outputs]


def load(source, folder, name):
    """The generated module, from a file, as kernels are read from files."""
    path = folder / f"{name}.py"
    path.write_text(source)
    specification = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def groups(count, size):
    """The numbers below `count` in lists of `size`."""
    return [list(range(start, min(start + size, count))) for start in range(0, count, size)]


def function_of(calls, group):
    """The text of a function that makes the calls of a group, to be decorated."""
    header, body = [], []
    for c in group:
        parameters, lines = calls[c].source(f"c{c}")
        header += parameters
        body += lines
    lines = ["def k(" + ", ".join(header) + "):", "    i = wp.tid()", *(f"    {line}" for line in body)]
    return "\n".join(lines) + "\n"


def run(calls, inputs, folder, name):
    """Runs the calls, many in one kernel. For each: (outputs of all rows, {way of running: outputs of the first rows}).

    The ways: in vectors with a masked tail, one thread at a time, and as scalar code.
    """
    finished = []
    for group in groups(len(calls), 12):
        function = function_of(calls, group)
        source = "import warp as wp\n\n\n@wp.kernel\n" + function
        source += '\n\nvectors = k\n\n\n@wp.kernel(module_options={"lanes": 1})\n' + function
        module = load(source, folder, f"sweep_{name}_{group[0]}")
        arguments, outputs = [], []
        for c in group:
            for values, kind in zip(inputs[c], calls[c].types):
                arguments.append(wp.array(values, dtype=kind.dtype))
            for kind in calls[c].outputs:
                outputs.append(wp.zeros(len(inputs[c][0]), dtype=kind.dtype))
                arguments.append(outputs[-1])
        rows = len(inputs[group[0]][0])

        def launch(kernel, first, end):
            wp.launch(kernel, dim=end - first, inputs=[a[first:end] for a in arguments])
            taken = [out.numpy()[first:end].copy() for out in outputs]
            for out in outputs:
                out.zero_()
            return taken

        def one_by_one(kernel):
            for i in range(LANES_ROWS):
                wp.launch(kernel, dim=1, inputs=[a[i : i + 1] for a in arguments])
            return [out.numpy()[:LANES_ROWS].copy() for out in outputs]

        ways = {
            "vectors": launch(module.vectors, 0, LANES_ROWS),
            "scalar code": launch(module.k, 0, LANES_ROWS),
        }
        everything = launch(module.vectors, 0, rows)
        ways["one thread at a time"] = one_by_one(module.vectors)
        position = 0
        for c in group:
            count = len(calls[c].outputs)
            piece = slice(position, position + count)
            finished.append((everything[piece], {way: taken[piece] for way, taken in ways.items()}))
            position += count
    return finished


def same_bits(a, b):
    """Row by row; NaNs are equal, as IEEE 754 gives their bits no meaning."""
    if a.dtype.kind == "f":
        bits = f"u{a.itemsize}"
        same = (a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))
    else:
        same = a == b
    return same.reshape(len(a), -1).all(axis=1)


def ulps(got, expected, scale):
    """How far a result is from the expected one, in units in the last place of `scale`, a magnitude of its type."""
    limits = np.finfo(got.dtype)
    wide = expected.dtype
    with np.errstate(over="ignore"):
        magnitude = np.abs(scale.astype(wide))
    magnitude = np.where(np.isfinite(magnitude), magnitude, wide.type(limits.max))
    magnitude = np.clip(magnitude, wide.type(limits.smallest_normal), wide.type(limits.max))
    _, exponent = np.frexp(magnitude)
    unit = np.ldexp(wide.type(1), exponent - 1 - limits.nmant)
    # A result that rounds to infinity may be infinite, or as far from the greatest number as the tolerance says.
    overflows = np.isinf(got) & (np.sign(got) == np.sign(expected)) & (np.abs(expected) >= wide.type(limits.max))
    both_nan = np.isnan(got) & np.isnan(expected)
    equal = got.astype(wide) == expected
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(got.astype(wide) - expected) / unit
    distance = np.where(equal | both_nan | overflows, 0, distance)
    return np.where(np.isnan(distance), np.inf, distance)
