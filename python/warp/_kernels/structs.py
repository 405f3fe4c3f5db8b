"""@wp.struct: classes whose instances lie in kernels and arrays as C structs."""

from __future__ import annotations

import copy
import ctypes
import dataclasses
import functools
import hashlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import warp._weft as _weft
from warp._kernels.data_classes import is_no_field, read_dataclass
from warp._weft import UsageError

__all__ = ["struct"]

# Names that Python puts into the body of every class.
_OF_EVERY_CLASS = {
    "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__conditional_annotations__",
    "__classdictcell__", "__dict__", "__firstlineno__", "__module__", "__qualname__", "__static_attributes__",
    "__weakref__",
}  # fmt: skip


# Of each struct its fields with their annotations, and the defaults. Derived structs take both over.
_declared: dict[type, tuple[list, dict]] = {}


def _evaluate(name: str, field: str, text: str, cls: type, frame: Any) -> Any:
    """A string annotation, evaluated in the scope of the class's definition."""
    scope = {**frame.f_globals, **getattr(sys.modules.get(cls.__module__), "__dict__", {}), **frame.f_locals}
    try:
        return eval(text, scope)
    except Exception as error:
        raise UsageError(
            f"struct(): the annotation {text!r} of field '{field}' of {name} cannot be evaluated: "
            f"{type(error).__name__}: {error}"
        ) from error


class Variable(NamedTuple):
    """A field of a struct: its name and type."""

    label: str
    type: Any


def _variables(made: type, fields: list) -> dict[str, Variable]:
    types = _weft.empty(0, dtype=made, device="cpu").vars
    return {name: Variable(name, types[name]) for name, _ in fields}


@classmethod
def _numpy_dtype(cls: type) -> dict[str, list | int]:
    """The argument of ``numpy.dtype`` for an element: names, formats, offsets and itemsize."""
    dtype = _weft.empty(0, dtype=cls, device="cpu").numpy().dtype
    parts = [dtype.fields[name] for name in dtype.names]
    return {
        "names": list(dtype.names),
        "formats": [part[0] for part in parts],
        "offsets": [part[1] for part in parts],
        "itemsize": dtype.itemsize,
    }


def _numpy_value(self: Any) -> tuple:
    """The fields as numbers and lists of them, as an element of a structured NumPy array."""
    row = _weft.array([self], dtype=type(self), device="cpu").numpy()[0]
    return tuple(row[name].tolist() for name in row.dtype.names)


def _assign(self: Any, other: Any) -> None:
    """Takes the fields of another instance."""
    for name in _weft.field_names(self):
        setattr(self, name, getattr(other, name))


def _to(self: Any, device: Any) -> Any:
    """A copy, with its arrays on a device: those that are there already are the same."""
    result = copy.copy(self)
    for name in _weft.field_names(self):
        value = getattr(self, name)
        if isinstance(value, _weft.array) or _weft.field_names(value):
            setattr(result, name, value.to(device))
    return result


class ArrayField(ctypes.Structure):
    """An array in a struct: ``weft::ArrayView`` of ``weft/array_view.h``."""

    _fields_ = [
        ("data", ctypes.c_uint64),
        ("grad", ctypes.c_uint64),
        ("shape", ctypes.c_int64 * 4),
        ("strides", ctypes.c_int64 * 4),  # in bytes
    ]


class _Fact:
    """An attribute of the class alone, worked out when it is first asked for."""

    def __init__(self, make: Callable[[type], Any], doc: str):
        self._make, self._known, self.__doc__ = make, {}, doc

    def __get__(self, instance: Any, owner: type) -> Any:
        if owner not in self._known:
            self._known[owner] = self._make(owner)
        return self._known[owner]


def _digest(cls: type) -> bytes:
    """Equal for structs of one name with the same fields and types, in every process."""
    fields = [(name, repr(part)) for name, part in sorted(_numpy_dtype.__func__(cls).items())]
    types = [(name, getattr(variable.type, "__name__", repr(variable.type))) for name, variable in cls.vars.items()]
    return hashlib.sha256(repr((cls.__module__, cls.__qualname__, fields, types)).encode()).digest()


def _native_name(cls: type) -> str:
    return f"{cls.__qualname__.replace('.', '__').replace('<', '').replace('>', '')}_{_digest(cls).hex()[:8]}"


def _ctype(cls: type) -> type:
    """The fields as C lays them out: nested structures, arrays of ctypes, and addresses with extents for arrays."""
    from warp.types import type_ctype

    def of(type_: Any) -> Any:
        if _weft.is_annotation(type_):
            return ArrayField
        if _weft.is_struct(type_):
            return _ctype(type_)
        info = _weft.type_info(type_)
        one = type_ctype(info["scalar"])
        shape = getattr(type_, "_shape_", ())
        for extent in reversed(shape):
            one = one * extent
        return one

    layout = _numpy_dtype.__func__(cls)
    fields, at, gap = [], 0, 0
    for name, offset in zip(layout["names"], layout["offsets"], strict=True):
        made = of(cls.vars[name].type)
        if offset > at:
            fields.append((f"_gap{gap}", ctypes.c_uint8 * (offset - at)))
            gap += 1
        fields.append((name, made))
        at = offset + ctypes.sizeof(made)
    if layout["itemsize"] > at:
        fields.append((f"_gap{gap}", ctypes.c_uint8 * (layout["itemsize"] - at)))
    return type(cls.__name__, (ctypes.Structure,), {"_pack_": 1, "_layout_": "ms", "_fields_": fields})


_FACTS = {
    "hash": _Fact(_digest, "Tells structs apart by name, fields and types, as bytes."),
    "native_name": _Fact(_native_name, "A name that no other struct has, an identifier of C."),
    "ctype": _Fact(_ctype, "A ctypes.Structure of the same layout."),
}

# Members of every struct that has no field or method of that name.
_COMMON = {"numpy_dtype": _numpy_dtype, "numpy_value": _numpy_value, "assign": _assign, "to": _to}


@functools.cache
def _place_of(waiting: type) -> type:
    """The field type for a kind of object that is not implemented yet: a struct with its id."""
    name = waiting.__name__
    return _weft.make_struct(name, "warp", name, [("id", _weft.named_type("uint64"))], {}, {})


def _is_plain(base: type) -> bool:
    return bool(_declared[base][0]) and not dataclasses.is_dataclass(base)


def _check_derived(c: type, bases: tuple[type, ...]) -> None:
    """The fields of a class that is no dataclass are no arguments of the __init__ that it has from one."""
    of_dataclass = [base for base in bases if dataclasses.is_dataclass(base)]
    own = [field for field in getattr(c, "__annotations__", {})]
    if of_dataclass and own:
        base = of_dataclass[0].__name__
        raise UsageError(
            f"struct(): {c.__name__} is derived from the dataclass {base} and is none itself, so that {c.__name__}() "
            f"would not set the field '{own[0]}'. help: write @dataclass above {c.__name__}, too"
        )


def struct(c: type | None = None, *, module: Any = None) -> Any:
    """Makes a struct of a class with annotated attributes; used as ``@wp.struct``.

    Instances start as zeros, or with the defaults of the class (``x: float = 1.0``): ``S()``, ``S(x=2.0)``. They are
    passed to kernels by value and are elements of arrays (``wp.zeros(10, dtype=S)``, all zeros). Kernels read and write
    fields as ``s.x``, and make structs with ``S()``.

    Kernels call methods, static methods and properties too; ``self`` is passed by reference. A struct may be derived
    from other structs, whose fields come first and whose methods it has. A class may be a dataclass.

    Args:
        c: the class. Fields are scalars, vectors, matrices, quaternions, transforms, arrays and other structs.
        module: accepted; a struct belongs to no module.
    Returns:
        The class of the struct, which takes the place of ``c``.
    Raises:
        UsageError: a field has no type, or one that kernels do not have, or a default of another type; the class has
            bases that are no structs, ``__init__`` or ``__slots__``.
    """
    if c is None:
        return struct
    if not isinstance(c, type):
        raise _weft.usage_error(f"struct(): expected a class, found {c!r}", TypeError)
    name = c.__name__
    bases = tuple(base for base in c.__bases__ if base is not object)
    frame = sys._getframe(1)
    fields, members, defaults, kept, annotations = [], {}, {}, set(), {}
    for base in bases:
        if base not in _declared:
            message = f"struct(): {name} is derived from {base.__name__}, which is no struct"
            raise UsageError(message + ". help: write @wp.struct above it, or make it a field")
        of_base, defaults_of_base = _declared[base]
        for field, annotation in of_base:
            if field in dict(fields):
                raise UsageError(f"struct(): {name} has the field '{field}' from two of its bases")
            fields.append((field, annotation))
        defaults |= defaults_of_base
    for field, annotation in getattr(c, "__annotations__", {}).items():
        if isinstance(annotation, str):
            annotation = _evaluate(name, field, annotation, c, frame)
        if is_no_field(annotation):
            kept.add(field)
            continue
        if field in dict(fields):
            raise UsageError(f"struct(): field '{field}' of {name} is one of its base already")
        annotations[field] = annotation
        fields.append((field, _place_of(annotation) if hasattr(annotation, "_not_there") else annotation))
    declared = {field for field, _ in fields}
    of_dataclass = read_dataclass(c, dict(fields), [base for base in bases if _is_plain(base)])
    if of_dataclass is None:
        _check_derived(c, bases)
        dropped = _OF_EVERY_CLASS
    else:
        members |= {**of_dataclass.members, "_construction": of_dataclass.construction}
        defaults |= of_dataclass.defaults
        dropped = _OF_EVERY_CLASS | of_dataclass.dropped
    for member, value in vars(c).items():
        if member in dropped:
            continue
        if member in declared:
            defaults[member] = value
            continue
        if member in ("__init__", "__new__", "__slots__", "__setattr__", "__getattribute__"):
            raise UsageError(f"struct(): {name} defines {member}, which a struct has already")
        is_method = callable(value) or isinstance(value, (property, staticmethod, classmethod))
        if not is_method and not member.startswith("__") and member not in kept:
            raise UsageError(
                f"struct(): field '{member}' of {name} has no type. help: annotate it: {member}: {type(value).__name__}"
            )
        members[member] = value
    members["__annotations__"] = {**dict(fields), **annotations}
    for member, value in {**_COMMON, **_FACTS}.items() if not bases else ():
        if member not in declared:
            members.setdefault(member, value)
    rules = (
        ""
        if of_dataclass is None
        else repr((of_dataclass.construction, any(hasattr(owner, "__post_init__") for owner in (c, *bases))))
    )
    made = _weft.make_struct(name, c.__module__, c.__qualname__, fields, members, defaults, bases, rules)
    for member, value in (("key", name), ("cls", made), ("vars", _variables(made, fields))):
        if member not in declared and member not in members:
            setattr(made, member, value)
    _declared[made] = (fields, defaults)
    return made
