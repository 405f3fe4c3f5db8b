from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("file", "include", "complaint"),
    [
        ("src/sema/infer.cpp", '"ir/ir.h"', None),
        ("src/sema/infer.cpp", '"support/error.h"', None),
        ("src/sema/infer.cpp", '"sema/sema.h"', None),
        ("src/jit/disk_cache.cpp", "<llvm/IR/Module.h>", None),
        ("src/runtime/cpu/loader.cpp", "<llvm/ExecutionEngine/Orc/LLJIT.h>", None),
        ("src/bindings/array.cpp", "<nanobind/nanobind.h>", None),
        ("src/ir/ir.h", '"codegen/codegen.h"', "ir includes codegen/codegen.h, and may include only: support, types"),
        ("src/sema/infer.cpp", "<llvm/IR/Module.h>", "llvm/IR/Module.h may be included only from"),
        ("src/runtime/cpu/thread_pool.cpp", "<llvm/Support/Error.h>", "may be included only from"),
        ("src/program/launch/launch.cpp", "<Python.h>", "Python.h may be included only from"),
        ("src/ir/ir.cpp", '"ir.h"', 'write "ir/ir.h"'),
        (
            "src/program/launch/launch.cpp",
            '"runtime/cpu/thread_pool.h"',
            "runtime/cpu/thread_pool.h may be included only from",
        ),
        ("src/bindings/kernels/settings.cpp", '"runtime/cpu/thread_pool.h"', None),
        (
            "src/runtime/cuda/driver.cpp",
            '"emulator/src/driver/driver.def"',
            "runtime includes emulator/src/driver/driver.def, and the emulator is a library of its own",
        ),
        ("src/kitchen/sink.cpp", "<vector>", "the room 'kitchen' is not in the table"),
    ],
)
def test_an_include_is_judged_by_the_table(tool, file, include, complaint):
    found = list(tool("check_layers").complaints(Path(file), f"#pragma once\n#include {include}\n"))
    if complaint is None:
        assert found == []
    else:
        assert len(found) == 1
        assert complaint in found[0]


@pytest.mark.parametrize(
    ("file", "include", "complaint"),
    [
        ("src/program/tape/tape.h", '"program/host/host.h"', None),
        ("src/program/tape/tape.h", '"program/tape/tape_entry.h"', None),
        ("src/program/kernel/code.h", '"ir/ir.h"', None),
        (
            "src/program/kernel/code.h",
            '"program/launch/run.h"',
            "program/kernel includes program/launch/run.h, and may include only: host, kernel",
        ),
        ("src/bindings/arrays/writes.h", '"bindings/values/types.h"', None),
        (
            "src/bindings/arrays/writes.h",
            '"bindings/gradients/tape.h"',
            "bindings/arrays includes bindings/gradients/tape.h",
        ),
        ("src/bindings/module.cpp", '"bindings/interop/tensors.h"', None),
        ("src/program/code.h", "<vector>", "is in none of the folders of program"),
        ("src/program/attic/code.h", "<vector>", "is in none of the folders of program"),
    ],
)
def test_an_include_of_a_higher_folder_is_an_error(tool, file, include, complaint):
    found = list(tool("check_layers").folder_complaints(Path(file), f"#pragma once\n#include {include}\n"))
    assert [complaint in line for line in found] == ([] if complaint is None else [True])


def test_the_emulator_includes_its_own_files_only_and_has_no_circles(tool):
    check = tool("check_layers").emulator_complaints
    texts = {Path("engine/block.h"): '#include "engine/warp.h"\n', Path("engine/warp.h"): "#include <vector>\n"}
    assert list(check(texts)) == []
    texts[Path("engine/warp.cpp")] = '\n#include "support/error.h"\n'
    assert list(check(texts)) == ["emulator/src/engine/warp.cpp:2: support/error.h is no file of the emulator"]
    texts[Path("engine/warp.cpp")] = '#include "engine/block.h"\n'
    assert list(check(texts)) == ["emulator/src/: modules stand in a circle: engine/block engine/warp"]
    texts = {Path("a/one.h"): '#include "b/two.h"\n', Path("b/two.h"): "", Path("b/one.h"): '#include "a/two.h"\n'}
    assert list(check(texts | {Path("a/two.h"): ""})) == [
        "emulator/src/a/ and emulator/src/b/ include each other: a/one includes b/two; b/one includes a/two"
    ]


def test_a_room_of_the_table_that_is_not_there_is_named(tool, tmp_path):
    check_layers = tool("check_layers")
    for room in check_layers.TABLE:
        (tmp_path / room).mkdir()
    for room, folders in check_layers.FOLDERS.items():
        for folder in folders.split():
            (tmp_path / room / folder).mkdir()
    assert list(check_layers.missing_rooms(tmp_path)) == []
    (tmp_path / "jit").rmdir()
    (tmp_path / "program" / "tape").rmdir()
    found = list(check_layers.missing_rooms(tmp_path))
    assert ["'jit'" in found[0], "'program/tape'" in found[1]] == [True, True]


def test_a_complaint_names_file_and_line(tool):
    found = list(tool("check_layers").complaints(Path("src/ir/ir.h"), '\n\n#include "jit/jit.h"\n'))
    assert found[0].startswith("src/ir/ir.h:3: ")


@pytest.mark.parametrize(
    ("line", "how"),
    [
        ("std::memcpy(to, array.view.data, 4);", "given to memcpy"),
        ("std::memcpy(to, find(array.view.data, (1)), view->data);", "given to memcpy"),
        ("auto* at = static_cast<const float*>(array.view.data);", "given to static_cast<const float*>"),
        ("float x = reinterpret_cast<float*>(view.grad)[3];", "given to reinterpret_cast<float*>"),
        ("return value_to_python(array.dtype,\n    array.view.data);", "given to value_to_python"),
        ("x = buffer->data[0];", "indexed"),
        ("runtime::read_bytes(device, to, log.view.data, sizeof to);", None),
        ("view.data = runtime::moved(array.view.data, low, buffer->data);", None),
        ("if (!view.data || !references.find(view.data)) return;", None),
        ("if (a.view.data != b.view.data) to.view.grad = b.view.grad;", None),
        ("auto low = reinterpret_cast<std::intptr_t>(view.data);", None),
        ("// std::memcpy(to, array.view.data, 4);", None),
    ],
)
def test_memory_of_arrays_is_reached_in_one_way(tool, line, how):
    check = tool("check_layers").memory_complaints
    found = list(check(Path("src/bindings/array.cpp"), f"void f() {{\n    {line}\n}}\n"))
    if how is None:
        assert found == []
    else:
        assert len(found) == 1 and f" is {how}: " in found[0] and found[0].startswith("src/bindings/array.cpp:")
    assert list(check(Path("src/runtime/cpu/copy.cpp"), f"void f() {{\n    {line}\n}}\n")) == []


@pytest.fixture
def texts():
    """Files of src/ by path: a circle of two modules in one room, and two folders that include each other."""
    return {
        Path("ir/a.h"): '#include "ir/b.h"\n',
        Path("ir/a.cpp"): '#include "ir/a.h"\n#include "support/x.h"\n',
        Path("ir/b.h"): "",
        Path("ir/b.cpp"): '#include "ir/b.h"\n#include "ir/a.h"\n',
        Path("jit/top.cpp"): '#include "jit/low/one.h"\n',
        Path("jit/low/one.h"): "",
        Path("jit/low/two.cpp"): '#include "jit/base.h"\n',
        Path("jit/base.h"): "",
    }


def test_a_circle_of_modules_and_a_two_way_pair_of_folders_are_named(tool, texts):
    check_layers = tool("check_layers")
    circle, pair = check_layers.circle_complaints("src", check_layers.module_includes(texts))
    assert circle == "src/: modules stand in a circle: ir/a ir/b"
    assert pair == (
        "src/jit/ and src/jit/low/ include each other: jit/low/two includes jit/base; jit/top includes jit/low/one"
    )
    del texts[Path("ir/b.cpp")], texts[Path("jit/top.cpp")]
    assert list(check_layers.circle_complaints("src", check_layers.module_includes(texts))) == []


def test_all_circles_of_a_chain_with_chords_are_found(tool):
    includes = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"f"}, "f": {"d"}, "g": {"a", "d"}}
    assert tool("check_layers").circles_of(includes) == [["a", "b", "c"], ["d", "e", "f"]]


def test_files_of_more_than_650_lines_are_named(tool):
    check = tool("check_layers").size_complaints
    assert list(check(Path("src/ir/ir.h"), "\n" * 650)) == []
    assert list(check(Path("src/ir/ir.h"), "\n" * 651)) == [
        "src/ir/ir.h: has 651 lines, expected at most 650: cut it by subject"
    ]
