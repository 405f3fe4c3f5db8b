"""Writes the type stub of the `warp` module, for editors and type checkers: `__init__.pyi` in the folder given.

    python tools/gen_stubs.py build/py/warp

What kernels compute with has no type that Python's checkers could follow (a vector of any length and scalar type), so
values are `Any` beyond their names; what a stub can give is that every name is known, that annotations are types, and
the sentences of the builtin table where the cursor stands. Runs as part of the build, on the module just built.
"""

import inspect
import keyword
import sys
from pathlib import Path
from types import ModuleType

HEADER = '''# Made by tools/gen_stubs.py from the builtin table and the names of the module.
import builtins
import typing
from typing import Any, Generic, TypeVar

_Element = TypeVar("_Element")

class _Value:
    """A value of a kernel: scalar, vector, matrix, quaternion or transform."""

    def __index__(self) -> Any: ...
'''
METHODS = """\
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...
    def __getitem__(self, index: Any) -> Any: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def __len__(self) -> Any: ...
    def __iter__(self) -> Any: ...
    def __bool__(self) -> Any: ...
    def __int__(self) -> Any: ...
    def __float__(self) -> Any: ...
    def __neg__(self) -> Any: ...
    def __pos__(self) -> Any: ...
    def __invert__(self) -> Any: ...
"""
OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift", "and", "or", "xor"]
COMPARISONS = ["lt", "le", "gt", "ge"]
ARRAYS = {"array", "array1d", "array2d", "array3d", "array4d", "indexedarray"}


def quoted(text, indent):
    """A docstring in its lines."""
    text = (text or "").strip().replace("\\", "\\\\").replace('"""', "'''")
    lines = text.splitlines() or [""]
    end = '"""' if len(lines) == 1 else "\n" + indent + '"""'
    return indent + '"""' + ("\n" + indent).join(lines).replace("\n" + indent + "\n", "\n\n") + end


def function(name, parameters, doc):
    return f"def {name}({parameters}) -> Any:\n{quoted(doc, '    ')}\n    ...\n"


def parameters_of(signature):
    """'(a: Vec[n,S], *args: T, b: F = 1.0) -> S' as a stub writes it; values are Any."""
    depth, part, parts = 0, "", []
    for letter in signature[1 : signature.rindex(") -> ")]:
        depth += (letter in "[(") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    made = []
    for text in [*parts, part]:
        if not text.strip():
            continue
        name, _, pattern = text.strip().partition(": ")
        made.append(f"{name}{'_' if keyword.iskeyword(name) else ''}: Any" + (" = ..." if " = " in pattern else ""))
    return ", ".join(made)


def builtin(name, overloads, doc):
    """One function; overloads of different parameters, for the editor, as typing.overload has them."""
    forms = list(dict.fromkeys(parameters_of(signature) for signature, *_ in overloads))
    by_count = {}
    for form in forms:
        by_count.setdefault(form.count(": Any"), form)
    forms = list(by_count.values())
    if len(forms) == 1:
        return function(name, forms[0], doc)
    return "".join("@typing.overload\n" + function(name, form, doc) for form in forms)


def methods():
    """What values and arrays have: a[i], len(a), a + b, 2.0 * a, a < b."""
    text = METHODS
    for operator in OPERATORS:
        text += f"    def __{operator}__(self, other: Any) -> Any: ...\n"
        text += f"    def __r{operator}__(self, other: Any) -> Any: ...\n"
    return text + "".join(f"    def __{operator}__(self, other: Any) -> Any: ...\n" for operator in COMPARISONS)


def array_class(name, doc):
    return f"class {name}(Generic[_Element]):\n{quoted(doc, '    ')}\n{methods()}"


def stub():
    import warp
    from warp import _weft

    text = HEADER + methods()

    builtins = set(_weft.builtin_names())
    types = {name: warp.types.named_type(name) for name in warp.types.type_names()}
    for name in sorted(n for n in dir(warp) if not n.startswith("_") and n not in ("Any", "annotations")):
        value = getattr(warp, name)
        if name in ARRAYS:
            text += "\n" + array_class(name, inspect.getdoc(value))
        elif name in types:
            own = getattr(types[name], "__name__", name)
            if own != name and own in types:
                continue  # an alias, below
            text += f"\nclass {name}(_Value): ...\n"
        elif name in builtins and not isinstance(value, type):
            text += "\n" + builtin(name, _weft.builtin_overloads(name), value.__doc__)
        elif isinstance(value, ModuleType):
            text += f"\nfrom warp import {name} as {name}\n" if value.__name__ == f"warp.{name}" else ""
        elif value in (int, float):
            text += f"\n{name} = builtins.{name}\n"
        elif getattr(value, "__module__", "").startswith("warp.") and value.__module__ != "warp._weft":
            text += f"\nfrom {value.__module__} import {value.__name__} as {name}\n"
        elif isinstance(value, type):
            base = "(Exception)" if issubclass(value, BaseException) else ""
            text += f"\nclass {name}{base}:\n{quoted(inspect.getdoc(value), '    ')}\n"
            text += "    def __init__(self, *args: Any, **kwargs: Any) -> None: ...\n"
            text += "    def __getattr__(self, name: str) -> Any: ...\n"
        elif callable(value):
            text += "\n" + function(name, "*args: Any, **kwargs: Any", inspect.getdoc(value))
        else:
            text += f"\n{name}: Any\n"
    for name, kind in sorted(types.items()):
        own = getattr(kind, "__name__", name)
        if own != name and own in types:
            text += f"\n{name} = {own}\n"
    return text + "\nfrom warp import context as context\n\n__version__: str\n__weft_version__: str\n"


def main():
    folder = Path(sys.argv[1])
    (folder / "__init__.pyi").write_text(stub())
    (folder / "py.typed").write_text("")


if __name__ == "__main__":
    main()
