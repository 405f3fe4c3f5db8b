"""The wheel of libweft: a C++ program finds the CMake package by `python -m warp --cmake-dir`."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import warp as wp

pytestmark = pytest.mark.cpu_only("takes the emulated device by itself, whatever the default device is")

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CMAKE = Path(sys.executable).with_name("cmake")


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder into which the wheel was unpacked, as pip does it."""
    folder = tmp_path_factory.mktemp("a folder")
    wheel = Path(run(sys.executable, ROOT / "tools/release/library_wheel.py", folder / "dist"))
    assert wheel.name.startswith("weft_lang_cpp-") and wheel.name.endswith("-py3-none-linux_x86_64.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder / "site")
    return folder / "site"


def environment(*folders):
    path = os.pathsep.join([*map(str, folders), str(Path(wp.__file__).parents[1])])
    return {**os.environ, "PYTHONPATH": path}


def test_a_program_in_cpp_is_built_against_the_wheel(installed, tmp_path):
    folder = run(sys.executable, "-m", "warp", "--cmake-dir", env=environment(installed))
    assert Path(folder) == installed / "weft_cpp/lib/cmake/weft"
    run(CMAKE, "-S", HERE, "-B", tmp_path / "build", f"-Dweft_DIR={folder}")
    run(CMAKE, "--build", tmp_path / "build", "--target", "embed")
    path = tmp_path / "kernels.weft"
    call = f"import kernels, warp as wp; wp.compile_aot_module(kernels, {str(path)!r})"
    run(sys.executable, "-c", call, cwd=HERE)
    content = path.read_bytes()
    (tmp_path / "kernels.weft.damaged").write_bytes(content[:-100] + b"!" + content[-99:])
    settings = {**os.environ, "WARP_CPU_THREADS": "1"}
    assert run(tmp_path / "build/embed", path, env=settings) == "42\nthreads: 1, failures: 0"


def test_the_wheel_has_one_library_and_the_headers(installed):
    names = {path.name for path in (installed / "weft_cpp").rglob("*") if path.is_file()}
    assert {"program.h", "array.h", "tape.h", "native.h", "weft-config.cmake"} <= names
    assert [name for name in names if name.startswith("libweft")] == ["libweft.so.0"]
    carried = {path.stem for path in installed.glob("*.dist-info/licenses/third_party/*.txt")}
    assert carried == {"LLVM", "oneTBB", "SLEEF", "BLIS", "zstd", "libdevice"}


def test_without_the_wheel_the_command_says_what_installs_it(tmp_path):
    command = [sys.executable, "-m", "warp"]
    done = subprocess.run([*command, "--cmake-dir"], capture_output=True, text=True, env=environment())
    assert done.returncode == 1 and done.stdout == "" and "pip install 'weft-lang[cpp]'" in done.stderr
    done = subprocess.run([*command, "--cmake"], capture_output=True, text=True, env=environment())
    assert done.returncode == 1 and "takes no arguments or --cmake-dir; found --cmake" in done.stderr
