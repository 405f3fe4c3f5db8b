"""A tape as a graph in the DOT language: boxes for entries, ellipses for arrays, clusters for groups."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import warp._weft as _weft
from warp._weft import RecordedLaunch, TapeEntry, array, usage_error

__all__ = ["Drawing"]

_MARKS = {"input": "lightblue", "output": "palegreen"}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _parameters(entry: TapeEntry) -> Iterator[tuple[str, array]]:
    """The arrays of a launch with the names that the kernel has for them."""
    if not isinstance(entry, RecordedLaunch):
        return
    for name, value in zip(inspect.signature(entry.kernel.func).parameters, entry.values, strict=False):
        yield from _fields(name, value)


def _fields(name: str, value: Any) -> Iterator[tuple[str, array]]:
    if isinstance(value, array):
        yield name, value
        return
    for field in _weft.field_names(value):
        yield from _fields(f"{name}.{field}", getattr(value, field))


class Drawing:
    """The entries of a tape and its groups, ``(entries before it, name, metadata)`` with the name None at an end."""

    def __init__(
        self,
        entries: Sequence[Any],
        scopes: Sequence[tuple[int, str | None, Any]],
        simplify: bool,
        hide_readonly: bool,
        longest_name: bool,
    ):
        self._entries, self._scopes, self._simplify = entries, scopes, simplify
        self._arrays: dict[tuple, array] = {}  # one for all objects that show the same elements
        self._names: dict[tuple, str] = {}
        self._colors: dict[tuple, str] = {}
        written = {self._node(one) for entry in entries for one, is_written in entry.uses() if is_written}
        every = {self._node(one): one for entry in entries for one in entry.arrays()}
        self._arrays = {node: one for node, one in every.items() if node in written or not hide_readonly}
        for entry in entries:
            for name, one in _parameters(entry):
                known = self._names.get(self._node(one))
                if known is None or (longest_name and len(name) > len(known)):
                    self._names[self._node(one)] = name

    @staticmethod
    def _node(one: array) -> tuple:
        _, begin, end, _ = _weft.memory_of(one)
        return begin, end, one.shape, one.strides, one.dtype

    def name(self, labels: Mapping[array, str]) -> None:
        self._names.update({self._node(one): label for one, label in labels.items()})

    def mark(self, arrays: Sequence[array] | None, names: Sequence[str] | None, role: str) -> None:
        arrays, names = list(arrays or ()), list(names or ())
        if names and len(names) != len(arrays):
            raise usage_error(
                f"Tape.visualize(): track_{role}_names has {len(names)} names for {len(arrays)} arrays", ValueError
            )
        for i, one in enumerate(arrays):
            self._colors[self._node(one)] = _MARKS[role]
            self._arrays.setdefault(self._node(one), one)
            if names:
                self._names[self._node(one)] = names[i]

    def text(self, direction: str) -> str:
        lines = ["digraph tape {", f"    rankdir={direction};", "    node [fontname=Helvetica];"]
        numbers = {node: f"a{i}" for i, node in enumerate(self._arrays)}
        for node, one in self._arrays.items():
            kind = f"{_weft.type_name(one.dtype)} {one.shape}"
            label = f"{self._names[node]}\\n{kind}" if node in self._names else kind
            style = f"filled, fillcolor={self._colors[node]}" if node in self._colors else "solid"
            if one.requires_grad:
                style += ", penwidth=2"
            lines.append(f"    {numbers[node]} [label={_quoted(label)}, style={style}];".replace("\\\\n", "\\n"))
        lines += self._boxes(numbers)
        return "\n".join([*lines, "}"]) + "\n"

    def _boxes(self, numbers: dict[tuple, str]) -> Iterator[str]:
        """The recorded entries, in their groups, and then the edges."""
        edges: list[str] = []
        depth, scopes, box = 1, list(self._scopes), 0
        for at, entry in enumerate([*self._entries, None]):
            begins_or_ends = False
            while scopes and scopes[0][0] <= at:
                _, name, _ = scopes.pop(0)
                begins_or_ends = True
                if name is None:
                    depth -= 1
                    yield "    " * depth + "}"
                else:
                    yield "    " * depth + f"subgraph cluster{len(self._scopes) - len(scopes)} {{"
                    depth += 1
                    yield "    " * depth + f"label={_quoted(name)};"
            if entry is None:
                break
            if self._simplify and at > 0 and not begins_or_ends and self._is_again(self._entries[at - 1], entry):
                continue
            yield "    " * depth + f"e{box} [label={_quoted(f'{at}: {entry!r}')}, shape=box];"
            for one, is_written in entry.uses():
                node = numbers.get(self._node(one))
                if node is not None:
                    edges.append(f"    e{box} -> {node};" if is_written else f"    {node} -> e{box};")
            box += 1
        while depth > 1:  # groups that are still open
            depth -= 1
            yield "    " * depth + "}"
        yield from dict.fromkeys(edges)

    def _is_again(self, before: TapeEntry, entry: TapeEntry) -> bool:
        """Whether it is the launch before once more."""
        if not all(isinstance(one, RecordedLaunch) for one in (before, entry)) or before.kernel is not entry.kernel:
            return False
        return [self._node(one) for one in before.arrays()] == [self._node(one) for one in entry.arrays()]
