"""A copy of a shared library under a name of its own: `python tools/release/private_library.py SOURCE COPY`.

A process has one library of each name (DT_SONAME): the first one that is loaded. The copy answers to the name of its
own file, so that programs linked against it get no other. That name may not be longer than the old one, which it
overwrites in the file.
"""

import struct
import sys
from pathlib import Path

LOAD, DYNAMIC = 1, 2  # kinds of segments
END, STRINGS, NAME = 0, 5, 14  # tags of the dynamic section


def renamed(library: bytes, name: str) -> bytes:
    """The library with another DT_SONAME. Raises ValueError if it is no library of 64 bits, or the name too long."""
    if library[:6] != b"\x7fELF\x02\x01":
        raise ValueError("expected an ELF library of 64 bits, little-endian")
    (at,) = struct.unpack_from("<Q", library, 0x20)
    size, count = struct.unpack_from("<HH", library, 0x36)
    segments = [struct.unpack_from("<IIQQQQ", library, at + i * size) for i in range(count)]
    tags: dict[int, int] = {}
    for kind, _, offset, _, _, length in segments:
        if kind != DYNAMIC:
            continue
        for tag, value in struct.iter_unpack("<QQ", library[offset : offset + length]):
            if tag == END:
                break
            tags.setdefault(tag, value)
    if NAME not in tags or STRINGS not in tags:
        raise ValueError("the library has no name")
    for kind, _, offset, address, _, length in segments:
        if kind == LOAD and address <= tags[STRINGS] < address + length:
            begin = offset + tags[STRINGS] - address + tags[NAME]
            break
    else:
        raise ValueError("the strings of the library are in no segment")
    old = library[begin : library.index(b"\0", begin)]
    new = name.encode()
    if len(new) > len(old):
        raise ValueError(f"the name {name!r} is longer than {old.decode()!r}")
    return library[:begin] + new.ljust(len(old), b"\0") + library[begin + len(old) :]


if __name__ == "__main__":
    source, copy = map(Path, sys.argv[1:])
    try:
        made = renamed(source.read_bytes(), copy.name)
    except ValueError as error:
        sys.exit(f"private_library.py: {source}: {error}")
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(made)
