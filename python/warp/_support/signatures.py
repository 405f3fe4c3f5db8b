"""Signatures of the extension's classes and builtins for inspect.signature. Nothing is read before it asks."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from typing import Any

from warp import _weft

_ANYTHING = inspect.Signature(
    [
        inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
        inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
    ]
)
_COMPONENTS = inspect.Signature([inspect.Parameter("components", inspect.Parameter.VAR_POSITIONAL)])
_NUMBER = inspect.Signature([inspect.Parameter("value", inspect.Parameter.POSITIONAL_ONLY, default=0)])


def _split(text: str) -> list[str]:
    """The parts of a list between commas, which may have brackets."""
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter in "[(") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return float(text) if text in ("inf", "nan") else text  # the name of a type


def _parameters(signature: str) -> list[inspect.Parameter]:
    """Those of a signature of the builtin table: '(a: Vec[n,S], *args: T, b: F = 1.0) -> S'."""
    made = []
    for text in _split(signature[1 : signature.rindex(") -> ")]):
        name, _, pattern = text.partition(": ")
        pattern, _, default = pattern.partition(" = ")
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if name.startswith("*"):
            name, kind = name[1:], inspect.Parameter.VAR_POSITIONAL
        elif made and made[-1].kind == inspect.Parameter.VAR_POSITIONAL:
            kind = inspect.Parameter.KEYWORD_ONLY
        value = _literal(default) if default else inspect.Parameter.empty
        made.append(inspect.Parameter(name, kind, default=value, annotation=pattern))
    return made


def of_builtin(name: str) -> inspect.Signature:
    """The signature of a builtin. Of several overloads: the one with most parameters, in which `...` stands for those
    that shorter ones lack, and the types of which are not told."""
    overloads = [signature for signature, *_ in _weft.builtin_overloads(name)]
    if not overloads:
        return _ANYTHING
    if len(overloads) == 1:
        result = overloads[0][overloads[0].rindex(") -> ") + 5 :]
        return inspect.Signature(_parameters(overloads[0]), return_annotation=result)
    forms = [_parameters(signature) for signature in overloads]
    longest = max(forms, key=len)
    least = min(len(form) for form in forms)
    variadic = any(p.kind == inspect.Parameter.VAR_POSITIONAL for form in forms for p in form)
    if variadic:
        return _ANYTHING
    made = []
    for index, parameter in enumerate(longest):
        default = parameter.default
        if index >= least and default is inspect.Parameter.empty:
            default = ...
        made.append(parameter.replace(annotation=inspect.Parameter.empty, default=default))
    return inspect.Signature(made)


def _of_nanobind(initializer: Any) -> inspect.Signature:
    """The signature of a class whose __init__ nanobind has made."""
    overloads = getattr(initializer, "__nb_signature__", ())
    if len(overloads) != 1:
        return _ANYTHING
    text, _, defaults = overloads[0]
    tree = ast.parse(re.sub(r"\\(\d+)", r"_default_\1", text.partition("\n")[0]) + ": ...").body[0]
    assert isinstance(tree, ast.FunctionDef)
    arguments = tree.args.args[1:]
    values = [None] * (len(arguments) - len(tree.args.defaults)) + list(tree.args.defaults)
    if tree.args.vararg or tree.args.kwarg:
        return _ANYTHING
    made = []
    for argument, value in zip(arguments, values, strict=True):
        default: Any = inspect.Parameter.empty
        if isinstance(value, ast.Name):
            default = defaults[1 + int(value.id.rpartition("_")[2]) - 1]
        note = ast.unparse(argument.annotation) if argument.annotation else inspect.Parameter.empty
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        made.append(inspect.Parameter(argument.arg, kind, default=default, annotation=note))
    return inspect.Signature(made)


class Described:
    """`__signature__` of a class and of its subclasses that have no `__init__` or `__new__` of their own."""

    def __init__(self, home: type, make: Callable[[type], inspect.Signature]):
        self.home, self.make = home, make

    def __get__(self, instance: Any, owner: type) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        for base in owner.__mro__[: owner.__mro__.index(self.home)]:
            if "__init__" in vars(base) or isinstance(vars(base).get("__new__"), staticmethod):
                raise AttributeError("__signature__")
        return self.make(owner)


def install() -> None:
    """Gives the classes of the extension their signatures."""

    def describe(home: type, make: Callable[[type], inspect.Signature]) -> None:
        home.__signature__ = Described(home, make)  # type: ignore[attr-defined]

    describe(_weft.ScalarValue, lambda owner: _NUMBER)
    describe(_weft.AggregateValue, lambda owner: _COMPONENTS)
    describe(_weft.CompileError, lambda owner: _ANYTHING)
    describe(_weft.UsageError, lambda owner: _ANYTHING)
    describe(_weft.InternalError, lambda owner: _ANYTHING)
    _weft.Builtin.__signature__ = property(lambda self: of_builtin(self.name))
    _weft.ArrayMaker.__signature__ = property(lambda self: inspect.signature(_weft.array))
    for value in vars(_weft).values():
        if type(value).__name__ == "nb_type" and "__signature__" not in vars(value):
            describe(value, lambda owner: _of_nanobind(owner.__init__))
