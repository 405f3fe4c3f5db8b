"""Structs of dataclasses: ``@dataclass`` below ``@wp.struct``.

Python keeps the methods that ``@dataclass`` has made (``__init__``, ``__eq__``, ``__repr__``, ...), so that instances
are made, compared and shown as it says. Kernels read a ``Construction``, which says the same to them.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from typing import Any, NamedTuple

import warp._weft as _weft
from warp._weft import UsageError

__all__ = ["is_no_field", "read_dataclass"]


class Parameter(NamedTuple):
    """A parameter of ``__init__``. Kernels see it through ``weft::sema::Construction``."""

    name: str
    keyword_only: bool
    required: bool  # in kernels: there is no default, or one that only Python can make
    has_factory: bool  # required for the latter reason
    is_init_only: bool


class Construction(NamedTuple):
    """How kernels make and compare instances."""

    parameters: list[Parameter]
    compared: list[str]
    has_equality: bool
    is_frozen: bool


class DataClass(NamedTuple):
    """The additions of ``@dataclass`` to a class: members to keep, members to leave out, defaults of fields."""

    members: dict[str, Any]
    dropped: set[str]
    defaults: dict[str, Any]
    construction: Construction


# Members of a class with slots=True that a struct has in its own form.
_OF_SLOTS = {"__slots__", "__getstate__", "__setstate__"}


def _is_struct_class(annotation: Any) -> bool:
    return isinstance(annotation, type) and _weft.is_struct(annotation)


def _default(field: dataclasses.Field, annotation: Any) -> tuple[Any, bool]:
    """The default that kernels have for a field, and whether Python has another one. MISSING is zero, or the struct's
    own defaults."""
    missing = dataclasses.MISSING
    if field.default is not missing:
        if field.default is None and _weft.is_annotation(annotation):
            return None, False
        value = field.default
    elif field.default_factory is missing:
        return missing, False
    elif _weft.is_annotation(annotation):
        return missing, True  # an array of each instance's own
    else:
        value = field.default_factory()
    if _is_struct_class(annotation) and isinstance(value, annotation):
        # Kernels start a struct with the defaults of its own fields.
        plain = _weft._new_struct(annotation)
        return missing, repr(value) != repr(plain)
    return value, False


def _parameter(field: dataclasses.Field, annotations: dict[str, Any], defaults: dict[str, Any]) -> Parameter | None:
    is_init_only = field.name not in annotations
    has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    if is_init_only:
        return Parameter(field.name, field.kw_only, True, has_default, True)
    default, is_of_python = _default(field, annotations[field.name])
    if default is not dataclasses.MISSING:
        defaults[field.name] = default
    if not field.init:
        return None
    return Parameter(field.name, field.kw_only, is_of_python or not has_default, is_of_python, False)


def is_no_field(annotation: Any) -> bool:
    """Whether an annotation of a class does not declare a field of its instances."""
    if annotation is dataclasses.KW_ONLY or annotation is dataclasses.InitVar or annotation is typing.ClassVar:
        return True
    return isinstance(annotation, dataclasses.InitVar) or typing.get_origin(annotation) is typing.ClassVar


def read_dataclass(c: type, annotations: dict[str, Any], plain_bases: list[type]) -> DataClass | None:
    """The facts about a class that is a dataclass itself; None for any other class.

    Args:
        c: the class.
        annotations: of all fields of the struct, those of its bases too.
        plain_bases: the structs with fields, and no dataclasses, from which it is derived.
    Raises:
        UsageError: a part of the class cannot be honoured.
    """
    own = vars(c)
    if "__dataclass_fields__" not in own:
        return None
    if plain_bases:
        raise UsageError(
            f"struct(): {c.__name__} is a dataclass, and its base {plain_bases[0].__name__} is none, so that no "
            f"argument of {c.__name__}() would set the fields of {plain_bases[0].__name__}. help: write @dataclass "
            f"above {plain_bases[0].__name__}, too"
        )
    params = c.__dataclass_params__
    fields = list(c.__dataclass_fields__.values())
    if not params.init:
        raise UsageError(
            f"struct(): {c.__name__} is a dataclass with init=False, which would have no __init__. help: leave out "
            "init=False; field(init=False) keeps a single field out of it"
        )
    defaults: dict[str, Any] = {}
    parameters = []
    for field in fields:
        if _is_class_variable(field):
            continue
        parameter = _parameter(field, annotations, defaults)
        if parameter is not None:
            parameters.append(parameter)
    compared = [field.name for field in dataclasses.fields(c) if field.compare]
    members = {name: value for name, value in own.items() if name in _KEPT}
    members["__init__"] = _init(own["__init__"])
    is_with_slots = "__slots__" in own
    dropped = {field.name for field in fields if not _is_class_variable(field)}
    dropped |= {"__init__", *(_OF_SLOTS if is_with_slots else ())}
    if params.frozen:
        members |= {"__setattr__": _refuse_set, "__delattr__": _refuse_delete}
    construction = Construction(parameters, compared, bool(params.eq), bool(params.frozen))
    return DataClass(members, dropped | set(members), defaults, construction)


def _is_class_variable(field: dataclasses.Field) -> bool:
    return field._field_type is dataclasses._FIELD_CLASSVAR


# Members that @dataclass makes, and that the struct keeps if they are the class's own.
_KEPT = {
    "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__repr__", "__eq__", "__hash__", "__lt__",
    "__le__", "__gt__", "__ge__", "__replace__", "__post_init__",
}  # fmt: skip


def _refuse_set(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _init(of_dataclass: Any) -> Any:
    """The ``__init__`` of the struct: memory with the defaults, then the ``__init__`` of @dataclass."""
    start = _weft.StructValue.__init__

    @functools.wraps(of_dataclass)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        start(self)
        of_dataclass(self, *arguments, **options)

    return __init__
