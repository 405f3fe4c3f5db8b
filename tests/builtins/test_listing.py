"""The table against the list of built-in functions that the specification gives: every name, and for
every signature listed an overload that takes it. The list is no part of this repository; `make test-documents` reads
it."""

import itertools
import re

import pytest
import warp as wp
from sweep import read_signature, split
from warp import _weft

pytestmark = pytest.mark.cpu_only("runs no kernel: names, syntax trees, errors of the compiler")

# Groups that come with later work, and what users never call.
LATER = ("Geometry", "Volumes", "Textures", "Tile", "Lowering helpers")
# Part of the language, with rules that no signature says: tested with the language.
LANGUAGE = {"range", "reversed", "printf", "print", "tid", "block_dim", "static", "len", "vector", "matrix"}
# Listed, and not there yet: a view of raw memory, and an array on the stack of a thread.
ABSENT = {"array", "zeros"}


@pytest.fixture
def rows(documents):
    """(name, [signature]) of each row in the groups of today."""
    group, found = "", []
    for line in (documents / "spec/BUILTINS.md").read_text().splitlines():
        if line.startswith("## "):
            group = line[3:]
        row = re.match(r"\| `(\w+)` \| (.*?) \| (?:yes|no|some) \|", line)
        if row and not group.startswith(LATER):
            signatures = [s.strip("`") for s in row[2].replace("\\|", "|").split("<br>")]
            found.append((row[1], signatures))
    assert len(found) > 150
    return found


SCALARS = {"S": "S", "F": "F", "I": "I", "B": "bool", "bool": "bool", "int": "int32", "float": "float32"}
NAMED = {"f": "float32", "d": "float64", "h": "float16"}


def listed_kinds(pattern):
    """The meanings of a pattern of the list: (shape, sizes, scalar) each."""
    pattern = re.sub(r"=[^|]*", "", pattern)
    kinds = []
    for part in pattern.split("|"):
        part = re.sub(r"^any ", "", part.strip())
        named = re.fullmatch(r"(vec|mat)(\d+)([fdh])", part) or re.fullmatch(
            r"(quat|transform|spatial_vector)()([fdh])", part
        )
        generic = re.fullmatch(r"(Vec|Mat|Quat|Xform)(\d*)\[(\w+)\]", part)
        if named:
            shape, sizes = named[1], named[2]
            shape, sizes = ("vec", "6") if shape == "spatial_vector" else (shape, sizes)
            kinds.append((shape, sizes, NAMED[named[3]]))
        elif generic:
            shape = {"Vec": "vec", "Mat": "mat", "Quat": "quat", "Xform": "transform"}[generic[1]]
            kinds.append((shape, generic[2], generic[3]))
        elif part.startswith(("Arr", "IdxArr", "FabArr", "IdxFabArr")):
            kinds.append(("array", "", ""))
        elif part in ("T", "Any"):
            kinds.append(("any", "", ""))
        else:
            kinds.append(("scalar", "", {"scalar": "S", "int": "I"}.get(part, SCALARS.get(part, part))))
    return kinds


def own_kind(pattern):
    shape, _, inside = pattern.partition("[")
    parts = split(inside.rstrip("]"))
    digits = "".join(p for p in parts[:-1] if p.isdigit())
    scalar = SCALARS.get(re.sub(r"\d+$", "", parts[-1]), parts[-1]) if parts else ""
    if shape in ("Vec", "Mat", "Quat", "Transform"):
        return {"Vec": "vec", "Mat": "mat", "Quat": "quat", "Transform": "transform"}[shape], digits, scalar
    if shape == "Array":
        return "array", "", ""
    if re.fullmatch(r"[TU]", pattern):
        return "any", "", ""
    return "scalar", "", SCALARS.get(re.sub(r"^([SFI])\d$", r"\1", pattern), pattern)


def takes(own, listed):
    """Whether our pattern takes all that the listed one stands for."""
    if "any" in (own[0], listed[0]):
        return True
    if own[0] != listed[0] or (own[1] and listed[1] and own[1] != listed[1]):
        return False
    kinds = {"S": ("S", "F", "I"), "F": ("F",), "I": ("I",)}
    a, b = own[2], listed[2]
    if a == b or not b or not a or b in kinds.get(a, ()):
        return True
    return (a in ("S", "F") and b.startswith(("float", "bfloat"))) or (a in ("S", "I") and "int" in b)


def calls_of(signature):
    """Every way to call a listed signature, as lists of kinds; with and without what has defaults."""
    inside, _, _ = signature.partition(" → ")
    inside = re.sub(r"i\[, j\[, k\[, l\]\]\]: I", "i: I", inside.strip("`")[1:-1])
    inside = re.sub(r"(^|, )(\w+), (\w+): T\b", r"\1\2: T, \3: T", inside)
    parameters = [p.partition(": ") for p in split(inside)]
    static = [p for p in parameters if p[0] in ("dtype", "shape", "n", "length")]
    values = [p for p in parameters if p not in static]
    for some in {len(values), sum("=" not in p[2] for p in values)}:
        for kinds in itertools.product(*(listed_kinds(p[2]) for p in values[:some])):
            # A scalar beside a quaternion or transform has its scalar type.
            is_float = any(k[0] in ("quat", "transform") for k in kinds)
            yield [("scalar", "", "F") if is_float and k == ("scalar", "", "S") else k for k in kinds]


def is_taken(name, kinds):
    for signature, *_ in _weft.builtin_overloads(name):
        parameters = [p for p in read_signature(signature)[0] if not p.pattern.startswith("static")]
        if parameters and parameters[-1].is_variadic:
            return True
        required = sum(not p.default for p in parameters)
        if required <= len(kinds) <= len(parameters):
            if all(takes(own_kind(p.pattern), k) for p, k in zip(parameters, kinds)):
                return True
    return False


@pytest.mark.documents
def test_every_listed_name_is_there(rows):
    missing = []
    for name, _ in rows:
        if name in ABSENT:
            continue
        if (
            not _weft.builtin_overloads(name)
            and wp.types.named_type(name) is None
            and name not in ("int", "float", "bool")
        ):
            missing.append(name)
    assert not missing


def test_absent_names_are_absent_from_the_table():
    assert not [name for name in ABSENT if _weft.builtin_overloads(name)]


@pytest.mark.documents
def test_every_listed_signature_has_an_overload(rows):
    missing = []
    for name, signatures in rows:
        if name in LANGUAGE | ABSENT or not _weft.builtin_overloads(name):
            continue
        for signature in signatures:
            if "Tile" in signature or signature.startswith(("…", "(*args")):
                continue
            for kinds in calls_of(signature):
                if not is_taken(name, kinds):
                    missing.append(f"{name}{signature}: {kinds}")
    assert not missing, "\n".join(missing)
