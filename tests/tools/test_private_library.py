"""tools/release/private_library.py: shared libraries under other names."""

import struct

import pytest


def named(name: str) -> bytes:
    """The least of a library that has a name: two segments, of all of it and of its dynamic section, and strings."""
    strings = b"\0" + name.encode() + b"\0other\0"
    head, segments, dynamic = 64, 2 * 56, 3 * 16
    begin = head + segments
    content = struct.pack("<QQQQQQ", 5, begin + dynamic, 14, 1, 0, 0) + strings
    made = b"\x7fELF\x02\x01".ljust(0x20, b"\0") + struct.pack("<Q", head)
    made = made.ljust(0x36, b"\0") + struct.pack("<HH", 56, 2)
    made = made.ljust(head, b"\0")
    made += struct.pack("<IIQQQQQQ", 1, 0, 0, 0, 0, begin + len(content), 0, 0)
    made += struct.pack("<IIQQQQQQ", 2, 0, begin, begin, begin, dynamic, 0, 0)
    return made + content


def test_the_name_is_all_that_changes(tool):
    renamed = tool("private_library").renamed
    assert renamed(named("libtbb.so.12"), "weft-tbb.so") == named("libtbb.so.12").replace(
        b"libtbb.so.12\0", b"weft-tbb.so\0\0"
    )


def test_what_cannot_be_renamed_is_an_error(tool):
    renamed = tool("private_library").renamed
    with pytest.raises(ValueError, match="'a-longer-name' is longer than 'libtbb.so.12'"):
        renamed(named("libtbb.so.12"), "a-longer-name")
    with pytest.raises(ValueError, match="expected an ELF library of 64 bits"):
        renamed(b"MZ" + bytes(100), "x")
    with pytest.raises(ValueError, match="has no name"):
        renamed(named("libtbb.so.12").replace(struct.pack("<QQ", 14, 1), struct.pack("<QQ", 15, 1)), "x")
