"""Kernels whose text was changed before they are read: ``wp.Kernel(f, code_transformers=[...], source=...)``."""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
import textwrap
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any

from warp._weft import usage_error as _usage_error

__all__ = ["transformed_function"]

_numbers = itertools.count(1)


def transformed_function(
    function: FunctionType, transformers: Sequence[ast.NodeTransformer], source: str | None, api: str
) -> FunctionType:
    """A function with the same names around it, of another text.

    Args:
        function: the original.
        transformers: their ``visit`` is called with the module of the text, one after the other.
        source: the text in place of the original's, which defines a function of the same name.
        api: begins errors.
    Raises:
        UsageError: the text cannot be had or has no such function, or a transformer is none.
    """
    if source is None:
        try:
            source = inspect.getsource(function)
        except OSError as error:
            message = f"{api}: there is no text of {function.__name__!r} to change: {error}"
            raise _usage_error(message, ValueError) from None
    elif not isinstance(source, str):
        raise _usage_error(f"{api}: source is {source!r}, expected the text of a function", TypeError)
    try:
        tree: Any = ast.parse(textwrap.dedent(source))
    except SyntaxError as error:
        raise _usage_error(f"{api}: the source is no Python: {error}", ValueError) from None
    for transformer in transformers:
        visit = getattr(transformer, "visit", None)
        if not callable(visit):
            message = f"{api}: {transformer!r} is no code transformer. help: an instance of ast.NodeTransformer"
            raise _usage_error(message, TypeError)
        tree = visit(tree)
    definition = _definition(tree, function.__name__, api)
    definition.decorator_list = []
    text = ast.unparse(ast.fix_missing_locations(ast.Module([definition], [])))
    file = f"<transformed {function.__name__} {next(_numbers)} of {function.__code__.co_filename}>"
    made = _made(function, text, file)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return made


def _definition(tree: Any, name: str, api: str) -> ast.FunctionDef:
    for node in getattr(tree, "body", ()):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise _usage_error(f"{api}: the text has no function {name!r} left", ValueError)


def _made(function: FunctionType, text: str, file: str) -> FunctionType:
    """The function of this text, which reads the variables that the original reads from the functions around it."""
    free = function.__code__.co_freevars
    around: Any = ast.parse(f"def around({', '.join(free)}): ...")  # its parameters are free names of its body
    around.body[0].body = ast.parse(text).body
    (outer,) = _codes(compile(around, file, "exec", dont_inherit=True))
    (code,) = (each for each in _codes(outer) if each.co_name == function.__name__)
    cells = dict(zip(free, function.__closure__ or (), strict=True))
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__annotations__ = dict(function.__annotations__)
    made.__qualname__ = function.__qualname__
    made.__module__ = function.__module__
    made.__doc__ = function.__doc__
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _codes(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]
