"""Checks the dependencies of rooms: reads the #includes of src/ and emulator/src/, and fails on an arrow that the
table does not have.

The table is the architecture: it stands here, docs/architecture.md explains it, and CMakeLists.txt repeats it only as
the libraries that each room links.

The script also checks accesses to the memory of arrays: outside of runtime/ an address of an array's data is a number.
It is compared, stored, and handed to functions that access the bytes (runtime/bytes.h). Casts, memcpy and the like are
mistakes, because a device may have memory that the host cannot read.

It also fails on circles: modules (a header and its .cpp) that include each other in a ring, and pairs of folders that
include each other; and on files of more than MOST_LINES lines.

Usage: python tools/checks/check_layers.py
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 650

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
    "bindings": "syntax types ir builtins sema transform codegen binary jit runtime program frontend",
}
# Folders of a room, from the lowest: a folder includes itself and those before it.
FOLDERS = {
    "bindings": "python values devices foreign structs arrays spatial kernels gradients interop",
    "program": "host kernel launch tape",
}
# Files of these rooms that lie above all folders.
ABOVE = {"src/bindings/module.cpp"}
# The emulated device, a library of its own: it includes its own files only, and no room includes them.
EMULATOR = "emulator"
# From outside the rooms: which files may include it.
GUARDED = {
    r"llvm(-c)?/": r"src/(codegen|jit)/|src/runtime/cpu/(code_listeners|loader|processor)\.cpp$",
    r"(Python\.h|nanobind/)": r"src/(frontend|bindings)/",
    r"cuda\.h|cuda_runtime": r"src/runtime/cuda/",
    r"sleef\.h": r"src/runtime/cpu/",
    # A device is used through runtime/device.h and runtime/executable.h; these set the threads of the CPU, ask for its
    # features, and make a second one for tests.
    r"runtime/cpu/": r"src/runtime/|src/bindings/(kernels/settings|devices/device_class)\.cpp$|src/embed/program\.cpp$",
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
        yield f"{path}: the room '{room}' is not in the table of tools/checks/check_layers.py"
        return
    allowed = {room, "support", *TABLE[room].split()}
    for match in INCLUDE.finditer(text):
        target = match[2]
        line = text.count("\n", 0, match.start()) + 1
        other = target.split("/")[0]
        if match[1] == '"' and "/" not in target:
            yield f'{path}:{line}: "{target}" is named without its room; write "{room}/{target}"'
        elif match[1] == '"' and other in TABLE and other not in allowed:
            may = ", ".join(sorted(allowed - {room})) or "nothing"
            yield f"{path}:{line}: {room} includes {target}, and may include only: {may}"
        elif match[1] == '"' and other == EMULATOR:
            yield f"{path}:{line}: {room} includes {target}, and the emulator is a library of its own"
        for pattern, where in GUARDED.items():
            if re.match(pattern, target) and not re.match(where, path):
                yield f"{path}:{line}: {target} may be included only from {where.replace(chr(92), '')}"


def module_includes(texts):
    """For each module, the modules that its files include. A module is a path in src/ without its extension."""
    includes = {path.with_suffix("").as_posix(): set() for path in texts}
    for path, text in texts.items():
        module = path.with_suffix("").as_posix()
        for match in INCLUDE.finditer(text):
            target = Path(match[2]).with_suffix("").as_posix()
            if match[1] == '"' and target in includes and target != module:
                includes[module].add(target)
    return includes


def circles_of(includes):
    """The strongly connected components of more than one module, each as a sorted list (Tarjan, without recursion)."""
    number, low, stack, on_stack, found = {}, {}, [], set(), []
    for start in includes:
        todo = [] if start in number else [(start, None)]
        while todo:
            module, rest = todo.pop()
            if rest is None:
                number[module] = low[module] = len(number)
                stack.append(module)
                on_stack.add(module)
                rest = iter(sorted(includes[module]))
            for other in rest:
                if other not in number:
                    todo += [(module, rest), (other, None)]
                    break
                if other in on_stack:
                    low[module] = min(low[module], low[other])
            else:
                if low[module] == number[module]:
                    at = stack.index(module)
                    component, stack[at:] = stack[at:], []
                    on_stack.difference_update(component)
                    if len(component) > 1:
                        found.append(sorted(component))
                if todo:
                    low[todo[-1][0]] = min(low[todo[-1][0]], low[module])
    return sorted(found)


def two_way_pairs(includes):
    """The pairs of folders that include each other."""
    arrows = {
        (module.rpartition("/")[0], other.rpartition("/")[0]) for module in includes for other in includes[module]
    }
    return {(one, other) for one, other in arrows if one < other and (other, one) in arrows}


def circle_complaints(root, includes):
    """The circles of modules and the pairs of folders that include each other, as lines to print."""
    for circle in circles_of(includes):
        yield f"{root}/: modules stand in a circle: " + " ".join(circle)
    for one, other in sorted(two_way_pairs(includes)):
        both = sorted(
            f"{module} includes {target}"
            for module in includes
            for target in includes[module]
            if {module.rpartition("/")[0], target.rpartition("/")[0]} == {one, other}
        )
        yield f"{root}/{one}/ and {root}/{other}/ include each other: " + "; ".join(both)


def folder_complaints(file, text):
    """The includes of one file of a higher folder of its own room, as lines to print."""
    room = file.parts[1]
    order = FOLDERS.get(room, "").split()
    path = file.as_posix()
    if not order or path in ABOVE:
        return
    folder = file.parts[2] if len(file.parts) > 3 else ""
    if folder not in order:
        yield f"{path}: is in none of the folders of {room}: {', '.join(order)}"
        return
    below = order[: order.index(folder) + 1]
    for match in INCLUDE.finditer(text):
        parts = match[2].split("/")
        if match[1] == '"' and parts[0] == room and parts[1] not in below:
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: {room}/{folder} includes {match[2]}, and may include only: {', '.join(below)}"


def emulator_complaints(texts):
    """The includes that are neither the emulator's own nor a system's, and its circles, as lines to print. The paths
    are those in emulator/src."""
    own = {path.as_posix() for path in texts}
    for path, text in texts.items():
        for match in INCLUDE.finditer(text):
            if match[1] == '"' and match[2] not in own:
                line = text.count("\n", 0, match.start()) + 1
                yield f"emulator/src/{path.as_posix()}:{line}: {match[2]} is no file of the emulator"
    yield from circle_complaints("emulator/src", module_includes(texts))


def missing_rooms(source):
    """Rows of the tables for which there is no folder, as lines to print."""
    rooms = {folder.name for folder in source.iterdir() if folder.is_dir()}
    for room in sorted({*TABLE, *" ".join(TABLE.values()).split()} - rooms):
        yield f"check_layers.py: the table has the room '{room}', and there is no src/{room}/"
    for room, folders in FOLDERS.items():
        for folder in folders.split():
            if room in rooms and not (source / room / folder).is_dir():
                yield f"check_layers.py: the table has '{room}/{folder}', and there is no src/{room}/{folder}/"


def size_complaints(file, text):
    """Whether one file is too long, as lines to print."""
    lines = text.count("\n")
    if lines > MOST_LINES:
        yield f"{file.as_posix()}: has {lines} lines, expected at most {MOST_LINES}: cut it by subject"


def read_sources(folder):
    """The texts of the C++ files in a folder by their paths there, in order."""
    files = sorted(file for pattern in ("*.h", "*.cpp", "*.def") for file in folder.rglob(pattern))
    return {file.relative_to(folder): file.read_text() for file in files}


def main():
    texts, emulator = read_sources(ROOT / "src"), read_sources(ROOT / EMULATOR / "src")
    found = [
        *missing_rooms(ROOT / "src"),
        *circle_complaints("src", module_includes(texts)),
        *emulator_complaints(emulator),
    ]
    for path, text in texts.items():
        found += complaints("src" / path, text)
        found += folder_complaints("src" / path, text)
        found += memory_complaints("src" / path, text)
        found += size_complaints("src" / path, text)
    for path, text in emulator.items():
        found += size_complaints(Path(EMULATOR, "src") / path, text)
    print(*found, sep="\n", end="\n" if found else "")
    if not texts or not emulator or found:
        print(f"layers: {len(found)} places in {len(texts) + len(emulator)} files break the rules", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
