"""Kernels of the CPU in profilers and debuggers: perf's files, GDB's list, times of single pieces of work."""

import ctypes
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.cpu_only("is about a process without a GPU: its default device, what it logs and answers")

PROGRAM = """
import sys, warp as wp
wp.config.lineinfo = True
if len(sys.argv) > 1:
    wp.config.perf = sys.argv[1]

@wp.func
def half(v: float):
    return 0.5 * v

@wp.kernel
def halve(x: wp.array[float]):
    i = wp.tid()
    if x[i] > 0.0:
        x[i] = half(x[i])

x = wp.ones(1000, device="cpu", requires_grad=True)
wp.launch(halve, 1000, [x], device="cpu")
import os
print(os.getpid())
"""
HALF, HALVE = 9, 12  # the lines of the two functions


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def run(program, *arguments, **environment):
    command = [sys.executable, program, *arguments]
    done = subprocess.run(
        command, cwd=program.parent, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_perf_finds_the_names_of_kernels_in_its_map(program):
    file = Path(f"/tmp/perf-{run(program, WEFT_PERF='map')}.map")
    lines = file.read_text().splitlines()
    file.unlink()
    assert len(lines) == 1
    address, size, name = lines[0].split(maxsplit=2)
    assert int(address, 16) > 1 << 20 and 16 < int(size, 16) < 1 << 16 and name == "halve"


def records_of(dump):
    """(kind, body) of each record, by perf's specification of the format."""
    data = dump.read_bytes()
    magic, version, size, machine = struct.unpack_from("<4I", data)
    assert (magic, version, size) == (0x4A695444, 1, 40) and machine in (62, 183)
    at, times = size, []
    while at < len(data):
        kind, length, time = struct.unpack_from("<IIQ", data, at)
        yield kind, data[at + 16 : at + length]
        times.append(time)
        at += length
    assert at == len(data) and times == sorted(times)


def test_a_jitdump_has_instructions_and_lines(program, tmp_path):
    pid = run(program, "jitdump", JITDUMPDIR=str(tmp_path))
    (kind, lines), (loaded, code) = records_of(tmp_path / f"jit-{pid}.dump")
    assert (kind, loaded) == (2, 0), "lines come before the code that they belong to"
    of, _, where, address, size, number = struct.unpack_from("<IIQQQQ", code)
    name, instructions = code[40:].split(b"\0", 1)
    assert (of, where, number, name, len(instructions)) == (pid, address, 0, b"halve", size)
    start, count = struct.unpack_from("<QQ", lines)
    at, found = 16, []
    for _ in range(count):
        place, line, _ = struct.unpack_from("<QII", lines, at)
        end = lines.index(b"\0", at + 16)
        found.append((place, line, lines[at + 16 : end].decode()))
        at = end + 1
    assert start == address and at == len(lines)
    assert all(address <= place < address + size for place, _, _ in found)
    assert {file for _, _, file in found} == {str(program)}
    assert {line for _, line, _ in found} >= {HALF, HALVE + 2}


class CodeEntry(ctypes.Structure):
    pass


CodeEntry._fields_ = [
    ("next", ctypes.POINTER(CodeEntry)),
    ("previous", ctypes.POINTER(CodeEntry)),
    ("object", ctypes.c_void_p),
    ("size", ctypes.c_uint64),
]


class Descriptor(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32),
        ("action", ctypes.c_uint32),
        ("relevant", ctypes.POINTER(CodeEntry)),
        ("first", ctypes.POINTER(CodeEntry)),
    ]


def objects_for_gdb():
    """The object files that a debugger of this process would find."""
    library = ctypes.CDLL(wp._weft.__file__)
    descriptor = Descriptor.in_dll(library, "__jit_debug_descriptor")
    assert descriptor.version == 1
    found, entry, before = [], descriptor.first, 0
    while entry:
        assert ctypes.cast(entry.contents.previous, ctypes.c_void_p).value in (before, None)
        found.append(ctypes.string_at(entry.contents.object, entry.contents.size))
        before = ctypes.cast(entry, ctypes.c_void_p).value
        entry = entry.contents.next
    return found


def test_gdb_is_told_of_kernels_with_lines(monkeypatch):
    def launch_one(value):
        @wp.kernel
        def kernel_for_gdb(x: wp.array[float]):
            x[wp.tid()] = wp.static(value)

        x = wp.zeros(4, device="cpu")
        wp.launch(kernel_for_gdb, 4, [x], device="cpu")

    before = len(objects_for_gdb())
    launch_one(3.0)
    assert len(objects_for_gdb()) == before
    monkeypatch.setattr(wp.config, "lineinfo", True)
    launch_one(4.0)
    found = objects_for_gdb()
    assert len(found) == before + 1
    assert found[0][:4] == b"\x7fELF" and b"kernel_for_gdb" in found[0] and b".debug_line" in found[0]


@pytest.mark.skipif(shutil.which("gdb") is None, reason="needs gdb")
def test_gdb_stops_in_a_kernel_and_shows_its_line(program):
    commands = [
        "set breakpoint pending on",
        "set debuginfod enabled off",
        "break halve",
        "run program.py",
        "bt 1",
        "step",
    ]
    arguments = [argument for command in commands for argument in ("-ex", command)]
    gdb = ["gdb", "-q", "-batch", "-nx", *arguments, sys.executable]
    said = subprocess.run(gdb, cwd=program.parent, capture_output=True, text=True).stdout
    assert re.search(rf"#0 +halve \(\) at .*program\.py:{HALVE}\n", said), said


def test_a_wrong_format_is_an_error():
    with pytest.raises(ValueError, match=r'config.perf: is .svg., expected "map", "jitdump" or None'):
        wp.config.perf = "svg"
    assert wp.config.perf is None


def test_a_folder_that_cannot_be_written_is_an_error(program):
    command = [sys.executable, program, "jitdump"]
    environment = {**os.environ, "JITDUMPDIR": str(program.parent / "missing")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(r"config\.perf: cannot write '.*missing/jit-\d+\.dump': No such file", done.stderr)


@wp.kernel
def slow(x: wp.array[float]):
    i = wp.tid()
    for _ in range(200):
        x[i] = wp.sin(x[i])


@wp.kernel
def quick(x: wp.array[float]):
    x[wp.tid()] = 1.0


def test_pieces_of_work_of_the_cpu_are_timed():
    x, y = wp.zeros(10_000, device="cpu"), wp.zeros(10_000, device="cpu")
    for kernel in (slow, quick):
        wp.launch(kernel, 10_000, [x], device="cpu")
    wp.timing_begin()
    wp.launch(slow, 10_000, [x], device="cpu")
    wp.launch(quick, 10_000, [x], device="cpu")
    y.zero_()
    wp.copy(y, x)
    results = wp.timing_end()
    assert [(result.name, result.filter) for result in results] == [
        ("kernel slow", wp.TIMING_KERNEL),
        ("kernel quick", wp.TIMING_KERNEL),
        ("memset", wp.TIMING_MEMSET),
        ("memcpy", wp.TIMING_MEMCPY),
    ]
    assert all(result.elapsed > 0.0 and str(result.device) == "cpu" for result in results)
    assert results[0].elapsed > results[1].elapsed
    wp.launch(quick, 10_000, [x], device="cpu")  # not timed
    wp.timing_begin(wp.TIMING_MEMSET)
    wp.launch(quick, 10_000, [x], device="cpu")
    y.zero_()
    assert [result.name for result in wp.timing_end()] == ["memset"]


def test_graphs_of_the_cpu_are_timed_with_their_nodes():
    x = wp.zeros(1000, device="cpu")
    wp.launch(quick, 1000, [x], device="cpu")
    with wp.ScopedCapture(device="cpu") as capture:
        wp.launch(slow, 1000, [x], device="cpu")
        wp.launch(quick, 1000, [x], device="cpu")
    with wp.ScopedTimer("graph", cuda_filter=wp.TIMING_ALL, print=False, report_func=lambda *_: None) as timer:
        wp.capture_launch(capture.graph)
    names = [result.name for result in timer.timing_results]
    assert names[0] == "graph" and " ".join(names[1:]).replace("kernels ", "kernel ").startswith("kernel slow")
    total, *nodes = [result.elapsed for result in timer.timing_results]
    assert total >= sum(nodes) > 0.0 and timer.elapsed >= total
    np.testing.assert_array_equal(x.numpy(), np.ones(1000, np.float32))
