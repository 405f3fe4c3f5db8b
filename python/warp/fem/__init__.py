"""Finite elements. They are not there yet: every name but `linalg` can be imported, and says so when it is used."""

from typing import Any

from warp._unimplemented import names_of


def __getattr__(name: str) -> Any:
    if name == "linalg":
        import importlib

        return importlib.import_module("warp.fem.linalg")
    if name.startswith("_"):
        raise AttributeError(f"module 'warp.fem' has no attribute {name!r}")
    classes, functions = (name, "") if name[0].isupper() else ("", name)
    value = names_of(__name__, "finite elements", classes, functions)[name]
    globals()[name] = value
    return value
