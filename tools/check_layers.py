"""Checks the dependencies of rooms: reads the #includes of src/ and fails on an arrow that the table does not have.

The table is the architecture: it stands here, docs/architecture.md explains it, and CMakeLists.txt repeats it only as
the libraries that each room links.

The script also checks accesses to the memory of arrays: outside of runtime/ an address of an array's data is a number.
It is compared, stored, and handed to functions that access the bytes (runtime/bytes.h). Casts, memcpy and the like are
mistakes, because a device may have memory that the host cannot read.

Usage: python tools/check_layers.py
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Room: the rooms that it may include, besides itself and support.
TABLE = {
    "support": "",
    "types": "",
    "syntax": "",
    "ir": "types",
    "builtins": "types ir",
    "sema": "syntax types builtins ir",
    "transform": "types ir",
    "codegen": "types ir transform binary",
    "binary": "types",
    "jit": "types ir transform codegen binary",
    "devlib": "types",  # its tables only: device code has no standard library
    "runtime": "types binary devlib",
    "embed": "types binary runtime program",
    "program": "syntax types ir builtins sema transform codegen binary jit runtime",
    "frontend": "syntax types sema",
    "emulator": "",
    "bindings": "syntax types ir builtins sema transform codegen binary jit runtime program frontend",
}
# Rooms that include nothing of the others, not even support: libraries of their own.
ALONE = {"emulator"}
# From outside the rooms: which files may include it.
GUARDED = {
    r"llvm(-c)?/": r"src/(codegen|jit)/|src/runtime/cpu/(code_listeners|loader|processor)\.cpp$",
    r"(Python\.h|nanobind/)": r"src/(frontend|bindings)/",
    r"cuda\.h|cuda_runtime": r"src/runtime/cuda/",
    r"sleef\.h": r"src/runtime/cpu/",
    # A device is used through runtime/device.h and runtime/executable.h; these set the threads of the CPU, ask for its
    # features, and make a second one for tests.
    r"runtime/cpu/": r"src/runtime/|src/bindings/python/(settings|device)\.cpp$|src/embed/program\.cpp$",
    r"runtime/cuda(/|_kernels)": r"src/runtime/",
    r"tbb/|oneapi/": r"src/runtime/",
}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)

# The address of an array's first element or gradient, and that of a buffer.
ADDRESS = re.compile(r"\bview(?:\.|->)(?:data|grad)\b|\bbuffer->data\b")
# Functions and conversions that may take an address: those that access bytes, or move addresses, on any device.
TAKES_ADDRESSES = {"read_bytes", "write_bytes", "copy_bytes", "moved", "find", "array_at", "if", "WEFT_CHECK", ""}
TAKES_ADDRESSES |= {f"reinterpret_cast<std::{number}>" for number in ("intptr_t", "uintptr_t")}
CALLED = re.compile(r"((?:\b(?:static|reinterpret|const)_cast<[^()]*>)|\w*)\s*$")


def memory_complaints(file, text):
    """The accesses of one file outside of runtime/ to the memory of an array by its address, as lines to print."""
    if file.parts[1] == "runtime":
        return
    text = re.sub(r"//[^\n]*", "", text)
    for match in ADDRESS.finditer(text):
        begin = max(text.rfind(end, 0, match.start()) for end in ";{}") + 1
        depth, at = 0, match.start() - 1
        while at >= begin and depth <= 0:
            depth += (text[at] == "(") - (text[at] == ")")
            at -= 1
        called = CALLED.search(text, begin, at + 1)[1] if depth > 0 else ""
        if called in TAKES_ADDRESSES and not text[match.end() :].lstrip().startswith("["):
            continue
        line = text.count("\n", 0, match.start()) + 1
        how = f"given to {called}" if called not in TAKES_ADDRESSES else "indexed"
        yield (
            f"{file.as_posix()}:{line}: {match[0]} is {how}: the host may not be able to read there. "
            "help: runtime/bytes.h"
        )


def complaints(file, text):
    """The errors in the includes of one file, as lines to print."""
    path = file.as_posix()
    room = file.parts[1]
    if room not in TABLE:
        yield f"{path}: the room '{room}' is not in the table of tools/check_layers.py"
        return
    allowed = {room} if room in ALONE else {room, "support", *TABLE[room].split()}
    for match in INCLUDE.finditer(text):
        target = match[2]
        line = text.count("\n", 0, match.start()) + 1
        other = target.split("/")[0]
        if match[1] == '"' and "/" not in target:
            yield f'{path}:{line}: "{target}" is named without its room; write "{room}/{target}"'
        elif match[1] == '"' and other in TABLE and other not in allowed:
            may = ", ".join(sorted(allowed - {room})) or "nothing"
            yield f"{path}:{line}: {room} includes {target}, and may include only: {may}"
        for pattern, where in GUARDED.items():
            if re.match(pattern, target) and not re.match(where, path):
                yield f"{path}:{line}: {target} may be included only from {where.replace(chr(92), '')}"


def missing_rooms(source):
    """Rows of the table for which there is no folder, as lines to print."""
    rooms = {folder.name for folder in source.iterdir() if folder.is_dir()}
    for room in sorted({*TABLE, *" ".join(TABLE.values()).split()} - rooms):
        yield f"tools/check_layers.py: the table has the room '{room}', and there is no src/{room}/"


def main():
    files = [file for pattern in ("*.h", "*.cpp", "*.def") for file in (ROOT / "src").rglob(pattern)]
    found = list(missing_rooms(ROOT / "src"))
    for file in sorted(files):
        text = file.read_text()
        found += complaints(file.relative_to(ROOT), text)
        found += memory_complaints(file.relative_to(ROOT), text)
    print(*found, sep="\n", end="\n" if found else "")
    if not files or found:
        print(f"layers: {len(found)} places in {len(files)} files break the rules", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
