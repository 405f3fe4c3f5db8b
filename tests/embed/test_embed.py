"""Kernels compiled ahead of time, in a C++ program that is built against the installed library."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import warp as wp

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CMAKE = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def embed(tmp_path_factory):
    """The program of main.cpp, built as a user builds it."""
    build = ROOT / os.environ.get("BUILD", "build")
    folder = tmp_path_factory.mktemp("embed")
    run(CMAKE, "--install", build, "--component", "library", "--prefix", folder / "prefix")
    run(CMAKE, "-S", HERE, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}")
    run(CMAKE, "--build", folder / "build")
    return folder


def compile_kernels(path, **environment):
    program = f"import kernels, warp as wp; print(wp.compile_aot_module(kernels, {str(path)!r}))"
    return run(sys.executable, "-c", program, cwd=HERE, env={**os.environ, **environment})


def test_a_program_without_python_runs_the_kernels(embed, tmp_path):
    path = tmp_path / "kernels.weft"
    assert compile_kernels(path) == f"{path}\n"
    content = path.read_bytes()
    (tmp_path / "kernels.weft.damaged").write_bytes(content[:-100] + b"!" + content[-99:])
    for threads in ("1", "3"):
        environment = {**os.environ, "WARP_CPU_THREADS": threads}
        assert run(embed / "build/embed", path, env=environment) == f"42\nthreads: {threads}, failures: 0\n"


def test_files_for_older_processors_run_here(embed, tmp_path):
    path = tmp_path / "kernels.weft"
    compile_kernels(path, WEFT_CPU="x86-64")
    (tmp_path / "kernels.weft.damaged").write_bytes(b"")
    assert run(embed / "build/embed", path).endswith("failures: 0\n")


def test_files_for_newer_processors_say_what_is_missing(embed, tmp_path):
    if "avx512_fp16" in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has all that Sapphire Rapids has")
    path = tmp_path / "kernels.weft"
    compile_kernels(path, WEFT_CPU="sapphirerapids")
    result = subprocess.run([embed / "build/embed", path], capture_output=True, text=True)
    assert result.returncode != 0
    assert "compiled for the processor sapphirerapids" in result.stderr and "WEFT_CPU" in result.stderr


def test_the_library_shows_its_own_classes_only(embed):
    library = next((embed / "prefix").rglob("libweft.so"))
    symbols = run("nm", "-DC", "--defined-only", library).splitlines()
    names = [line.split(maxsplit=2)[2] for line in symbols]
    ours = ("weft::", "typeinfo", "vtable", "std::", "void std::", "_init", "_fini")
    assert any("weft::Kernel::launch" in name for name in names)
    assert [name for name in names if "llvm" in name or not name.startswith(ours)] == []


def test_mistakes_are_named(tmp_path):
    with pytest.raises(wp.UsageError, match="module 'nothing_here' has no kernels"):
        wp.compile_aot_module(wp.Module("nothing_here"), tmp_path / "x.weft")

    @wp.kernel(module="aot_generic")
    def generic(x: wp.array(dtype=float)):
        x[wp.tid()] = 1.0

    path = wp.compile_aot_module("aot_generic", tmp_path / "x.weft")
    assert path.stat().st_size > 1000

    def twin():
        @wp.kernel(module="aot_generic")
        def generic(x: wp.array(dtype=int)):
            x[wp.tid()] = 1

        return generic

    kept = twin()
    with pytest.raises(wp.UsageError, match="two kernels called 'generic'"):
        wp.compile_aot_module("aot_generic", path)
    assert kept.key == "generic" and path.stat().st_size > 1000
    assert [file.name for file in tmp_path.iterdir()] == ["x.weft"]
