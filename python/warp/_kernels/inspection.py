"""wp.inspect: a kernel after a stage of the compiler, with the user's lines beside it."""

from __future__ import annotations

import linecache
import os
import re
from typing import Any

from warp._weft import Kernel, usage_error

__all__ = ["inspect"]

_STAGES = ("sema", "ir", "llvm", "optimized_llvm", "assembly")


class _Lines:
    """The text with a line of the user's source before the code made of it, each time the place changes."""

    def __init__(self, comment: str):
        self.comment = comment
        self.shown: tuple[str, int] | None = None
        self.text: list[str] = []

    def place(self, path: str, line: int, indent: str) -> None:
        if (path, line) == self.shown or line == 0:
            return
        if self.shown is None or self.shown[0] != path:
            self.text.append(f"{indent}{self.comment} {path}")
        self.shown = (path, line)
        self.text.append(f"{indent}{self.comment} {line:4}| {linecache.getline(path, line).rstrip()}")

    def add(self, line: str) -> None:
        self.text.append(line)


def _of_ir(listing: str) -> str:
    """Operations that begin another source line end in `// path:line`."""
    lines = _Lines("//")
    for line in listing.splitlines():
        code, found, place = line.rpartition("  // ")
        path, _, number = place.rpartition(":")
        if found and number.isdigit():
            lines.place(path, int(number), re.match(" *", line)[0])
            lines.add(code)
        else:
            lines.add(line)
    return "\n".join(lines.text)


def _of_llvm(listing: str) -> str:
    """Instructions end in `!dbg !7`, which metadata below leads to a line."""
    metadata = dict(re.findall(r"^(!\d+) = (.*)$", listing, re.MULTILINE))

    def part(node: str, name: str) -> str:
        found = re.search(rf'\b{name}: ("[^"]*"|[^,)]+)', metadata.get(node, ""))
        return found[1].strip('"') if found else ""

    def path_of(node: str) -> str:
        scope = part(node, "scope")
        file = part(scope, "file") if scope else ""
        return os.path.join(part(file, "directory"), part(file, "filename"))

    lines = _Lines(";")
    for line in listing.splitlines():
        if re.match(r"!\S+ = ", line):
            continue
        found = re.search(r",? !dbg (!\d+)", line)
        if found and metadata.get(found[1], "").startswith("!DILocation"):
            lines.place(path_of(found[1]), int(part(found[1], "line") or 0), re.match(" *", line)[0])
        lines.add(line.replace(found[0], "") if found else line)
    return "\n".join(lines.text)


def _of_assembly(listing: str) -> str:
    """`.loc` goes before the instructions of a line; `.file` names the numbers of its files."""
    files = {}
    for number, folder, name in re.findall(r'^\s*\.file\s+(\d+) (?:"([^"]*)" )?"([^"]*)"', listing, re.MULTILINE):
        files[number] = os.path.join(folder, name)
    lines = _Lines("#")
    for line in listing.splitlines():
        words = line.split()
        if words[:1] == [".loc"]:
            lines.place(files.get(words[1], ""), int(words[2]), "\t")
        elif words[:2] and words[0] == ".section" and words[1].startswith(".debug"):
            break  # the tables of lines themselves
        elif not re.match(r"\s*\.(file|cfi_)|\.L(tmp|func_)\w+:", line):
            lines.add(line)
    return "\n".join(lines.text)


def inspect(
    kernel: Kernel, stage: str = "ir", device: Any = None, *, adjoint: bool = False, tangents: bool = False
) -> str:
    """A kernel after a stage of the compiler, as text with each line of its Python source above the resulting code.

    Args:
        kernel: a kernel that is not generic, or an instance of one (``wp.overload``).
        stage: ``"sema"``, the IR with all types; ``"ir"``, after Weft's own passes; ``"llvm"``, LLVM IR for all lanes;
            ``"optimized_llvm"``; ``"assembly"``. The code is the one a launch would run, and carries lines as under
            ``wp.config.lineinfo``.
        device: the CPU.
        adjoint: the kernel that carries gradients back, for gradients of all arrays of floats.
        tangents: forward mode, of the kernel or of that adjoint.
    Returns:
        The text, for ``print``.
    Raises:
        UsageError: there is no such stage, or it is that of a CUDA device; ``kernel`` is no kernel.
        CompileError: the kernel has a mistake, or lacks the derivative that is asked for.
    """
    import warp._weft as _weft

    api = "inspect()"
    if not isinstance(kernel, Kernel):
        raise usage_error(f"{api}: expected a kernel made by @wp.kernel, got {type(kernel).__name__}", TypeError)
    if stage in ("ptx", "cubin"):
        raise usage_error(
            f"{api}: {stage!r} is code for CUDA devices, which this version does not compile for", ValueError
        )
    if stage not in _STAGES:
        raise usage_error(f"{api}: there is no stage {stage!r}; expected one of {', '.join(_STAGES)}", ValueError)
    _weft.get_device(device)
    if kernel.is_generic:
        raise usage_error(
            f"{api}: kernel {kernel.__name__!r} is generic; expected one of its instances. help: "
            f"wp.inspect(wp.overload({kernel.__name__}, [types]))",
            TypeError,
        )
    listing = kernel.listing(stage, True, adjoint, tangents)
    if stage in ("sema", "ir"):
        return _of_ir(listing)
    return _of_assembly(listing) if stage == "assembly" else _of_llvm(listing)
