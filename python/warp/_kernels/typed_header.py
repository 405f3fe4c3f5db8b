"""The C++ header of compile_aot_module(..., header=): a class with a function for each kernel, and the structs."""

from __future__ import annotations

import json
import re
import typing
from typing import Any

import numpy as np
from warp import _weft

_SCALARS = {"float32": "float", "float64": "double", "float16": "float", "bfloat16": "float", "bool": "bool"}
_SCALARS |= {f"{sign}int{bits}": f"std::{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_OF_NUMPY = {"f4": "float", "f8": "double", "b1": "bool", "f2": "std::uint16_t"}
_OF_NUMPY |= {f"{kind[0]}{bits // 8}": f"std::{kind}{bits}_t" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
# Of C++, and names that the class uses.
_KEYWORDS = """
    alignas alignof and asm auto bool break case catch char class concept const constexpr continue co_await
    co_return co_yield decltype default delete do double else enum explicit export extern false float for friend
    goto if inline int long mutable namespace new noexcept not nullptr operator or private protected public
    register requires return short signed sizeof static struct switch template this throw true try typedef typeid
    typename union unsigned using virtual void volatile wchar_t while xor dim program arguments
"""


def _identifier(name: str) -> str:
    """The name in C++: other letters become '_', and a name that C++ or the class uses gets one more."""
    text = re.sub(r"\W", "_", name, flags=re.ASCII)
    return text + "_" if text in _KEYWORDS.split() else text


def _nested(scalar: str, extents: tuple[int, ...]) -> str:
    for extent in reversed(extents):
        scalar = f"std::array<{scalar}, {extent}>"
    return scalar


class _Structs:
    """The structs that the kernels take by value, in the order in which C++ has to have them."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.made: list[tuple[str, np.dtype]] = []

    def name_of(self, name: str, dtype: np.dtype) -> str:
        """The name of a struct with this layout; another layout of the same name gets a number."""
        wanted, count = _identifier(name), 1
        while any(made == wanted and layout != dtype for made, layout in self.made):
            count += 1
            wanted = f"{_identifier(name)}_{count}"
        if (wanted, dtype) not in self.made:
            self._add(wanted, dtype)
        return wanted

    def _field(self, owner: str, name: str, dtype: np.dtype) -> str:
        base, extents = (dtype.subdtype[0], dtype.subdtype[1]) if dtype.subdtype else (dtype, ())
        if base.names is None:
            return _nested(_OF_NUMPY[base.str[1:]], extents)
        if base.names == ("data", "grad", "shape", "strides"):
            return "weft::ArrayView"
        return self.name_of(f"{owner}_{name}", base)

    def _add(self, name: str, dtype: np.dtype) -> None:
        lines, checks = [], []
        for field in dtype.names or ():
            kind, offset = dtype.fields[field][:2]  # type: ignore[index]
            lines.append(f"    {self._field(name, field, kind)} {_identifier(field)}{{}};")
            checks.append(f"offsetof({name}, {_identifier(field)}) == {offset}")
        checks.append(f"sizeof({name}) == {dtype.itemsize}")
        text = "\n".join([f"struct {name} {{", *lines, "};", f"static_assert({' && '.join(checks)});"])
        self.made.append((name, dtype))
        self.texts[name] = text


def _struct_of(kernel: Any, parameter: str) -> Any:
    """The struct class of a parameter, or None if its annotation names none."""
    function = kernel.func
    kind = function.__annotations__.get(parameter)
    if isinstance(kind, str):
        try:
            kind = typing.get_type_hints(function)[parameter]
        except (NameError, TypeError, AttributeError):
            return None  # a name of a function's own scope
    return kind if hasattr(kind, "numpy_dtype") else None


def _parameter_type(kernel: Any, name: str, kind: str, ndim: int | None, dtype: Any, structs: _Structs) -> str:
    if ndim is not None:
        return "const weft::Array&"
    if kind in _SCALARS:
        return _SCALARS[kind]
    if dtype is not None:
        info = _weft.type_info(dtype)
        scalar = info["scalar"].__name__
        components = {"float16": "std::uint16_t", "bfloat16": "std::uint16_t"}.get(scalar, _SCALARS.get(scalar, ""))
        extents = tuple(dtype.shape) if info["kind"] in ("vector", "matrix") else (info["components"],)
        return f"const {_nested(components, extents)}&" if components else "const weft::Argument&"
    struct = _struct_of(kernel, name)
    if struct is None:
        return "const weft::Argument&"
    from warp import zeros

    layout = zeros(1, dtype=struct, device="cpu").numpy().dtype
    return f"const {structs.name_of(struct.__name__, layout)}&"


def typed_header(module: str, file: str, kernels: list[tuple[str, Any]]) -> str:
    """The text of the header.

    Args:
        module: the module's name, the last part of which becomes the class.
        file: the name of the file of kernels, for the comment.
        kernels: (name in the file, kernel) pairs, as they are in the file.
    """
    structs, functions, members, starts = _Structs(), [], [], []
    taken: set[str] = set()
    for name, kernel in kernels:
        own = _identifier(name.partition("(")[0])
        unique, count = own, 1
        while unique in taken:
            count += 1
            unique = f"{own}_{count}"
        taken.add(unique)
        parameters, arguments = ["weft::Grid dim"], []
        for parameter, kind, ndim, _, _, _, dtype in _weft.kernel_parameters(kernel, "compile_aot_module()", "C++"):
            text = _parameter_type(kernel, parameter, kind, ndim, dtype, structs)
            parameters.append(f"{text} {_identifier(parameter)}")
            arguments.append(_identifier(parameter))
        members.append(f"    weft::Kernel {unique}_kernel_;")
        starts.append(f"{unique}_kernel_(program.kernel({json.dumps(name)}))")
        functions.append(
            f"    // {kernel.signature}\n"
            f"    void {unique}({', '.join(parameters)}) const {{\n"
            f"        const std::initializer_list<weft::Argument> arguments = {{{', '.join(arguments)}}};\n"
            f"        {unique}_kernel_.launch(dim.extents(), std::span(arguments.begin(), arguments.size()));\n"
            "    }\n"
        )
    title = _identifier(module.rpartition(".")[2])
    class_name = "".join(part.capitalize() for part in title.split("_") if part) or "Kernels"
    definitions = "\n\n".join(structs.texts.values())
    return (
        f"// The kernels of {file}, with their types. Written by wp.compile_aot_module() beside it.\n"
        "#pragma once\n\n"
        "#include <array>\n#include <cstddef>\n#include <cstdint>\n#include <filesystem>\n\n"
        '#include "weft/array_view.h"\n#include "weft/program.h"\n\n'
        f"namespace {title} {{\n\n"
        + (definitions + "\n\n" if definitions else "")
        + "// dim: the points of the grid, an int or up to four of them in braces. weft::Array() stands for no array.\n"
        f"class {class_name} {{\npublic:\n"
        f"    explicit {class_name}(const weft::Program& program)\n        : " + ",\n          ".join(starts) + " {}\n"
        f"    explicit {class_name}(const std::filesystem::path& path)\n"
        f"        : {class_name}(weft::Program::load(path)) {{}}\n\n"
        + "\n".join(functions)
        + "\nprivate:\n"
        + "\n".join(members)
        + f"\n}};\n\n}}  // namespace {title}\n"
    )
