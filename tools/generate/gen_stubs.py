"""Writes the type stub of the `warp` module, for editors and type checkers: `__init__.pyi` in the folder given.

    python tools/generate/gen_stubs.py build/py/warp

stub_head.pyi has the part that is written by hand: the classes of values and arrays, and functions whose result
types name their contents. The rest comes from the builtin table and the names of the module. The patterns of the table
become type variables: `(a: Vec[n,S], b: Vec[n,S]) -> S` is `(a: _Vector[_N, _S], b: _Vector[_N, _S]) -> _S`. Python's
numbers stand for those of 32 bits, so parameters of scalars beside vectors take them, too. Runs as part of the build,
on the module just built.
"""

import inspect
import keyword
import re
import sys
from pathlib import Path
from types import ModuleType

HEAD = Path(__file__).with_name("stub_head.pyi")
FLOATS = ["_Results.float32", "float64", "float16", "bfloat16", "builtins.float"]
INTEGERS = ["_Results.int32", "int64", "int16", "int8", "uint32", "_Results.uint64", "uint16", "uint8", "builtins.int"]
# Type variables for the scalars of a signature: any, floats, integers.
SCALARS = {"S": INTEGERS + FLOATS, "F": FLOATS, "F2": FLOATS, "I": INTEGERS}
# Python's numbers stand for these in annotations, as do the numbers of meshes and grids; results have own types.
PYTHON = {"float32": "builtins.float", "int32": "builtins.int", "uint64": "builtins.int", "bool": "builtins.bool"}
RESULTS = {"float32": "_Results.float32", "int32": "_Results.int32", "uint64": "_Results.uint64"}
BESIDE = {"S": "_Float", "F": "_Float", "F2": "_Float", "I": "_Int"}
# Names of sizes in the table, and the type variables that stand for them.
SIZES = {"n": "_N", "r": "_R", "c": "_C"}
# Forms of the language, which no signature says.
LANGUAGE = {"tid", "range", "reversed", "printf", "print", "static", "len", "vector", "matrix", "quaternion"}
LANGUAGE |= {"transformation", "grad", "adjoint", "select", "matrix_from_rows", "matrix_from_cols", "block_dim", "type"}


# ---- text ----


def quoted(text, indent):
    """A docstring in its lines."""
    text = (text or "").strip().replace("\\", "\\\\").replace('"""', "'''")
    lines = text.splitlines() or [""]
    end = '"""' if len(lines) == 1 else "\n" + indent + '"""'
    return indent + '"""' + ("\n" + indent).join(lines).replace("\n" + indent + "\n", "\n\n") + end


def function(name, parameters, doc, result="Any"):
    return f"def {name}({parameters}) -> {result}:\n{quoted(doc, '    ')}\n    ...\n"


# ---- the patterns of the table ----


def split(text):
    """The parts of a list between commas, which may have brackets."""
    depth, part, parts = 0, "", []
    for letter in text:
        depth += (letter in "[(") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return [part for part in [*parts, part.strip()] if part]


class Overload:
    """A signature of the table as a stub writes it. `static` are the types that parameters of it name."""

    def __init__(self, signature):
        end = signature.rindex(") -> ")
        self.parameters = []
        for text in split(signature[1:end]):
            name, _, pattern = text.partition(": ")
            pattern, _, default = pattern.partition(" = ")
            self.parameters.append((name, pattern.removeprefix("inout "), default))
        self.result = signature[end + 5 :]
        self.types = {name: default for name, pattern, default in self.parameters if pattern == "static type"}
        patterns = " ".join(pattern for _, pattern, _ in self.parameters)
        # Scalars of vectors, arrays and parameters before, beside which a Python number may stand.
        self.inside = set(re.findall(r"\b(S|F2?|I|T|U)\b(?=[,\]])", patterns))
        self.seen = set()

    def scalar(self, pattern):
        if pattern in SCALARS:
            return f"_{pattern}"
        if pattern in self.types:
            return "_D"
        return {"T": "_T", "U": "_U", **RESULTS}.get(pattern, pattern)

    def size(self, pattern):
        return f"Literal[{pattern}]" if pattern.isdigit() else SIZES.get(pattern, "Any")

    def aggregate(self, pattern):
        """The type of a vector, matrix, quaternion, transform or array, or None."""
        match = re.fullmatch(r"(Vec|Mat|Quat|Transform|Array)\[(.*)\]", pattern)
        if match is None:
            return None
        parts = split(match[2])
        if match[1] == "Array":
            return f"_Array[{self.aggregate(parts[0]) or PYTHON.get(parts[0]) or self.scalar(parts[0])}]"
        kind = {"Vec": "_Vector", "Mat": "_Matrix", "Quat": "_Quaternion", "Transform": "_Transformation"}[match[1]]
        return f"{kind}[{', '.join([*map(self.size, parts[:-1]), self.scalar(parts[-1])])}]"

    def parameter(self, pattern):
        """The type of a parameter's arguments."""
        if found := self.aggregate(pattern):
            return found
        if pattern == "static type":
            return "builtins.type[_D]"
        if pattern == "static int" or re.fullmatch(r"I\d", pattern):
            return "_Int"
        if pattern in SCALARS:
            is_beside = pattern in self.inside or pattern in self.seen
            self.seen.add(pattern)
            return f"_{pattern} | {BESIDE[pattern]}" if is_beside else f"_{pattern}"
        if pattern in ("T", "U"):
            return f"_{pattern} | _Float" if pattern in self.inside else f"_{pattern}"
        if re.fullmatch(r"u?int\d+", pattern):
            return "_Int"
        if re.fullmatch(r"b?float\d+", pattern):
            return "_Float"
        return {"B": "builtins.bool", "string": "str"}.get(pattern, pattern)

    def returned(self, pattern=None):
        pattern = pattern or self.result
        if pattern.startswith("("):
            return f"tuple[{', '.join(self.returned(part) for part in split(pattern[1:-1]))}]"
        found = self.aggregate(pattern) or self.scalar(pattern)
        return {"none": "None", "B": "builtins.bool", "string": "str"}.get(found, found)

    def forms(self):
        """(parameters, result): twice if a type may be left out."""
        optional = [name for name, default in self.types.items() if default]
        if not optional:
            yield self.text({}), self.returned()
            return
        yield self.text({name: None for name in optional}), re.sub(r"\b_D\b", RESULTS["float32"], self.returned())
        yield self.text({name: "" for name in optional}), self.returned()

    def text(self, types):
        """The parameters; `types`: how those with a type are written: left out, or without a default."""
        made, is_named = [], False
        self.seen.clear()
        for name, pattern, default in self.parameters:
            kind = self.parameter(pattern)
            if name in types:
                if types[name] is None:
                    continue
                if any(" = " in text for text in made) and not is_named:
                    made.append("*")
                    is_named = True
                default = ""
            written = name + ("_" if keyword.iskeyword(name) else "")
            made.append(f"{written}: {kind}" + (" = ..." if default else ""))
        return ", ".join(made)


def builtin(name, overloads, doc):
    """One function; several overloads as typing.overload has them."""
    if name in LANGUAGE:
        return function(name, "*args: Any, **kwargs: Any", doc)
    forms = list(dict.fromkeys(form for signature, *_ in overloads for form in Overload(signature).forms()))
    # Of two that take the same, checkers want the one with fewer type variables first.
    forms.sort(key=lambda form: ("_T" in form[0].split(" | ")[0], form[0].count("_S")))
    if len(forms) == 1:
        return function(name, forms[0][0], doc, forms[0][1])
    return "".join("@typing.overload\n" + function(name, *form[:1], doc, form[1]) for form in forms)


# ---- classes ----


def named_type(name, info, own):
    """A named type of the table: a scalar is a class; the others are aliases, as results of functions have no names."""
    if info["kind"] == "scalar":
        if name in PYTHON:
            return f"{name} = {PYTHON[name]}\n"
        return f"class {name}({'_Floating' if info['scalar_kind'] == 'float' else '_Integer'}): ...\n"
    sizes = [f"Literal[{size}]" for size in own.shape] if info["kind"] in ("vector", "matrix") else []
    scalar = info["scalar"].__name__
    base = {"vector": "_Vector", "matrix": "_Matrix", "quaternion": "_Quaternion", "transform": "_Transformation"}
    return f"{name} = {base[info['kind']]}[{', '.join([*sizes, RESULTS.get(scalar, scalar)])}]\n"


def parameters_of(value):
    """The parameters of a callable as a stub writes them; their types are Any."""
    made, is_named = [], False
    for parameter in inspect.signature(value).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            made.append(f"*{parameter.name}: Any")
            is_named = True
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            made.append(f"**{parameter.name}: Any")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not is_named:
            made.append("*")
            is_named = True
        name = f"__{parameter.name}" if parameter.kind is parameter.POSITIONAL_ONLY else parameter.name
        made.append(f"{name}: Any" + (" = ..." if parameter.default is not parameter.empty else ""))
    return ", ".join(made)


def open_class(name, value):
    """A class of the module whose members are not listed."""
    base = "(Exception)" if issubclass(value, BaseException) else ""
    text = f"\nclass {name}{base}:\n{quoted(inspect.getdoc(value), '    ')}\n"
    parameters = parameters_of(value)
    text += f"    def __init__(self{', ' if parameters else ''}{parameters}) -> None: ...\n"
    if hasattr(value, "__next__") or "Query" in name:  # kernels loop over a query's results
        text += "    def __iter__(self) -> Iterator[Any]: ...\n    def __next__(self) -> Any: ...\n"
    return text + ("" if base else "    def __getattr__(self, name: str) -> Any: ...\n")


def head(warp):
    """The part that is written by hand, with the docstrings of the module, and the names that it defines."""
    text = HEAD.read_text()

    def documented(match):
        value = getattr(warp, match["name"])
        return (
            match["start"] + ":\n" + quoted(inspect.getdoc(value), "    ") + "\n" + ("    ..." if match["dots"] else "")
        )

    functions = r"^(?P<start>def (?P<name>\w+)\((?:(?!\ndef ).)*?\) -> [^\n]*?):(?P<dots> \.\.\.)$"
    text = re.sub(functions, documented, text, flags=re.M | re.S)
    text = re.sub(r"^(?P<start>class (?P<name>[a-z]\w*)\(.*\)):(?P<dots> \.\.\.)?$", documented, text, flags=re.M)
    return text, set(re.findall(r"^(?:def|class) (\w+)|^(\w+) = ", text, flags=re.M))


def stub():
    import warp
    from warp import _weft

    text, found = head(warp)
    known = {name for pair in found for name in pair if name and not name.startswith("_")}
    for name, kinds in SCALARS.items():
        text += f'\n_{name} = TypeVar("_{name}", {", ".join(kinds)})\n'
    builtins = set(_weft.builtin_names())
    types = {name: warp.types.named_type(name) for name in warp.types.type_names()}
    text += "\n"
    # The name of another type comes after that.
    for name, kind in sorted(types.items(), key=lambda item: item[0] == "handle"):
        own = getattr(kind, "__name__", name)
        info = _weft.type_info(kind)
        text += f"{name} = {own}\n" if info["kind"] == "scalar" and own != name else named_type(name, info, kind)
    for name in sorted(n for n in dir(warp) if not n.startswith("_") and n not in ("Any", "annotations")):
        value = getattr(warp, name)
        if name in known or name in types:
            continue
        if name in builtins and not isinstance(value, type):
            text += "\n" + builtin(name, _weft.builtin_overloads(name), value.__doc__)
        elif isinstance(value, ModuleType):
            text += f"\nfrom warp import {name} as {name}\n" if value.__name__ == f"warp.{name}" else ""
        elif value in (int, float):
            text += f"\n{name} = builtins.{name}\n"
        elif getattr(value, "__module__", "").startswith("warp.") and value.__module__ != "warp._weft":
            text += f"\nfrom {value.__module__} import {value.__name__} as {name}\n"
        elif isinstance(value, type):
            text += open_class(name, value)
        elif callable(value):
            text += "\n" + function(name, parameters_of(value), inspect.getdoc(value))
        elif isinstance(value, float | int):
            text += f"\n{name}: {type(value).__name__ if type(value) in (float, int) else 'Any'}\n"
        else:
            text += f"\n{name}: Any\n"
    return text + "\nfrom warp import context as context\n\n__version__: str\n__weft_version__: str\n"


def main():
    folder = Path(sys.argv[1])
    (folder / "__init__.pyi").write_text(stub())
    (folder / "py.typed").write_text("")


if __name__ == "__main__":
    main()
