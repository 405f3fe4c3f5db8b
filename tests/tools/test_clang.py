"""A build without a clang that can compile src/devlib ends when CMake configures, and says what would work."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "cmake/clang.cmake"
CMAKE = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
HELP = ("apt-get install clang-22", "-DWEFT_CLANG=", "--config-settings=cmake.define.WEFT_CLANG=")


def configured(definition, script=SCRIPT, path=os.environ["PATH"]):
    """(whether the build goes on, the message in one line)"""
    done = subprocess.run(
        [CMAKE, definition, "-P", str(script)], capture_output=True, text=True, env={**os.environ, "PATH": str(path)}
    )
    return done.returncode == 0, " ".join(done.stderr.split())


def clang(folder, version="Debian clang version 22.1.8", targets="nvptx64 - NVIDIA PTX 64-bit", result=0):
    """A program that answers as clang does."""
    path = folder / "clang++"
    path.write_text(
        f'#!/bin/sh\ncase "$1" in\n--version) printf "{version}\\nTarget: x86_64\\n";;\n'
        f'--print-targets) echo "{targets}";;\nesac\nexit {result}\n'
    )
    path.chmod(0o755)
    return path


def test_a_clang_of_the_right_version_will_do(tmp_path):
    assert configured(f"-DWEFT_CLANG={clang(tmp_path)}") == (True, "")


@pytest.mark.parametrize(
    ("answers", "complaint"),
    [
        ({"version": "clang version 21.1.0"}, "is 'clang version 21.1.0'"),
        ({"version": "Apple clang version 17.0.0"}, "is 'Apple clang version 17.0.0'"),
        ({"targets": "x86-64 - 64-bit X86: EM64T and AMD64"}, "has no target nvptx64"),
        ({"result": 3}, "--version fails: 3"),
    ],
)
def test_another_clang_is_refused_with_what_it_is(tmp_path, answers, complaint):
    path = clang(tmp_path, **answers)
    goes_on, text = configured(f"-DWEFT_CLANG={path}")
    assert not goes_on
    # CMake breaks long lines, also within paths.
    assert str(path).replace(" ", "") in text.replace(" ", "") and complaint in text
    for words in HELP:
        assert words in text


def test_no_clang_at_all_is_said(tmp_path):
    script = tmp_path / "clang.cmake"
    text = SCRIPT.read_text().replace("/usr/lib/llvm-22/bin", str(tmp_path))
    script.write_text("set(CMAKE_FIND_USE_CMAKE_SYSTEM_PATH OFF)\n" + text)
    goes_on, text = configured("-DCMAKE_FIND_USE_INSTALL_PREFIX=OFF", script, path=tmp_path)
    assert not goes_on
    assert "there is no clang++-22" in text
    for words in HELP:
        assert words in text
