"""The builtin table for readers: ``wp.print_builtins()``, and the page of the reference that `make docs` writes."""

from __future__ import annotations

import sys
from typing import TextIO

import warp._weft as _weft

__all__ = ["print_builtins", "reference_page"]

NOTATION = [
    ("`S` `F` `I` `B`", "any scalar but `bool`; any float; any integer; `bool`. A letter repeated is the same type"),
    ("`Vec[n,S]`, `Vec[3,F]`", "vector of any length; of length 3"),
    ("`Mat[r,c,S]`, `Mat[n,n,F]`", "matrix of any shape; square"),
    ("`Quat[F]`, `Transform[F]`", "quaternion (x, y, z, w); transform (p, q)"),
    ("`Array[T,d]`", "array of elements T with d dimensions"),
    ("`T`, `U`", "any value; the same type where repeated"),
    ("`inout X`", "a local variable of the caller, which the call assigns"),
    ("`static int`, `static type`", "an integer or a type that is known when the kernel is compiled"),
    ("`= value`", "may be left out"),
    ("`-> (X, Y)`, `-> none`", "gives several values; gives nothing"),
]


def _groups():
    """(group, [(name, [(signature, sentence, differentiable)])]): a name stands in the group that has it first."""
    seen = set()
    for group, names in _weft.builtin_groups():
        fresh = [name for name in dict.fromkeys(names) if name not in seen]
        seen.update(fresh)
        entries = []
        for name in fresh:
            overloads = _weft.builtin_overloads(name)
            entries.append((name, [(signature, doc, smooth) for signature, doc, _, smooth in overloads]))
        if entries:
            yield group, entries


def print_builtins(file: TextIO | None = None) -> None:
    """Prints every function that kernels can call as ``wp.<name>``: its overloads, each with a sentence, by groups.

    Args:
        file: a text file to print to; ``sys.stdout`` if None.
    """
    file = sys.stdout if file is None else file
    for group, entries in _groups():
        print(f"\n{group}\n{'-' * len(group)}", file=file)
        for name, overloads in entries:
            for signature, doc, _ in overloads:
                print(f"{name}{signature}\n    {doc}", file=file)


def reference_page() -> str:
    """The functions reference as Markdown; each function and each group has an anchor of its name."""
    lines = [
        "# Functions",
        "",
        "Every function that kernels can call as `wp.<name>`, made from the table in `src/builtins` by `make docs`.",
        "The same list in a terminal: `wp.print_builtins()`. See also [kernels](../guide/kernels.md),",
        "[devices](../guide/devices.md) and [profiling](../guide/profiling.md).",
        "",
        "| in signatures | means |",
        "|---|---|",
        *(f"| {mark} | {meaning} |" for mark, meaning in NOTATION),
        "",
        "An integer or float written as a plain number takes the type that its partners have; other values never",
        "convert by themselves. Functions marked *no gradient* are constant for differentiation, or give integers.",
        "",
    ]
    groups = list(_groups())
    lines += [f"* [{group}](#{group.lower().replace(' ', '-')})" for group, _ in groups]
    for group, entries in groups:
        lines += ["", f"## {group}"]
        for name, overloads in entries:
            smooth = any(differentiable for *_, differentiable in overloads)
            lines += ["", f"### {name}", "" if smooth else "\n*No gradient.*\n"]
            for signature, doc, _ in overloads:
                lines += [f"`{name}{signature}`  ", doc, ""]
            lines.pop()
    return "\n".join(lines) + "\n"
