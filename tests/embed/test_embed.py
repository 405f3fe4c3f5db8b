"""Kernels compiled ahead of time, in a C++ program that is built against the installed library."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import warp as wp
from cuda_tools import needs_ptxas

pytestmark = pytest.mark.cpu_only("takes the emulated device by itself, whatever the default device is")

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CMAKE = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
CLANG = os.environ.get("WEFT_CLANG") or shutil.which("clang++-22") or shutil.which("clang++")


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def pythonpath():
    """For programs that run elsewhere: the folder from which this Weft was imported."""
    return str(Path(wp.__file__).parents[1])


@pytest.fixture(scope="module")
def embed(tmp_path_factory):
    """The program of main.cpp, built as a user builds it."""
    build = ROOT / os.environ.get("BUILD", "build")
    folder = tmp_path_factory.mktemp("embed")
    run(CMAKE, "--install", build, "--component", "library", "--prefix", folder / "prefix")
    run(CMAKE, "-S", HERE, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}")
    run(CMAKE, "--build", folder / "build")
    return folder


def compile_kernels(path, module="kernels", gradients=False, arch=None, **environment):
    call = f"wp.compile_aot_module({module}, {str(path)!r}, gradients={gradients}, arch={arch})"
    program = f"import {module}, warp as wp; print({call})"
    return run(sys.executable, "-c", program, cwd=HERE, env={**os.environ, **environment})


def test_a_program_without_python_runs_the_kernels(embed, tmp_path):
    path = tmp_path / "kernels.weft"
    assert compile_kernels(path) == f"{path}\n"
    content = path.read_bytes()
    (tmp_path / "kernels.weft.damaged").write_bytes(content[:-100] + b"!" + content[-99:])
    for threads in ("1", "3"):
        environment = {**os.environ, "WARP_CPU_THREADS": threads}
        assert run(embed / "build/embed", path, env=environment) == f"42\nthreads: {threads}, failures: 0\n"


def test_a_header_has_the_kernels_with_their_types(embed, tmp_path):
    call = f"wp.compile_aot_module(kernels, {str(tmp_path / 'k.weft')!r}, header={str(tmp_path / 'kernels_typed.h')!r})"
    run(sys.executable, "-c", f"import kernels, warp as wp; {call}", cwd=HERE)
    text = (tmp_path / "kernels_typed.h").read_text()
    assert "// step(dt: float32, wind: Wind, x: array[vec3f], v: array[vec3f])" in text
    assert "void talk(weft::Grid dim, std::int32_t n) const" in text
    prefix = f"-DCMAKE_PREFIX_PATH={embed / 'prefix'}"
    run(CMAKE, "-S", HERE, "-B", tmp_path / "build", prefix, f"-DTYPED={tmp_path}", "-DCMAKE_CXX_FLAGS=-Wall -Werror")
    run(CMAKE, "--build", tmp_path / "build", "--target", "typed")
    assert run(tmp_path / "build/typed", tmp_path / "k.weft") == "failures: 0\n"
    # A type that is not the parameter's is an error of the compiler.
    wrong = tmp_path / "wrong.cpp"
    wrong.write_text('#include "kernels_typed.h"\nvoid f(kernels::Kernels& k, kernels::Wind w) { k.talk(1, w); }\n')
    compiler = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", f"-I{embed / 'prefix/include'}"]
    done = subprocess.run([*compiler, wrong], capture_output=True, text=True)
    assert done.returncode != 0 and "Wind" in done.stderr


HEADER_OF_NAMES = """
import warp as wp

@wp.struct
class Inner:
    delete: wp.vec2

@wp.struct
class Body:
    inner: Inner
    flags: wp.array[int]
    m: wp.types.matrix((2, 3), wp.float64)
    on: bool

@wp.kernel
def new(dim: int, b: Body, v: wp.vec3h, m: wp.mat22d, t: wp.transform):
    pass

@wp.kernel
def either(x: wp.array(dtype=wp.Any), s: wp.Any):
    pass

wp.overload(either, [wp.array(dtype=float), float])
wp.overload(either, [wp.array(dtype=int), int])
"""


def test_the_header_takes_any_names_and_types(embed, tmp_path):
    (tmp_path / "odd.py").write_text(HEADER_OF_NAMES)
    program = "import odd, warp as wp; wp.compile_aot_module(odd, 'odd.weft', header='odd.h')"
    run(sys.executable, "-c", program, cwd=tmp_path, env={**os.environ, "PYTHONPATH": pythonpath()})
    text = (tmp_path / "odd.h").read_text()
    assert "void new_(weft::Grid dim, std::int32_t dim_, const Body& b, const std::array<std::uint16_t, 3>& v" in text
    assert "const std::array<std::array<double, 2>, 2>& m, const std::array<float, 7>& t" in text
    assert "std::array<std::array<double, 3>, 2> m{};" in text and "std::array<float, 2> delete_{};" in text
    assert "void either(weft::Grid dim, const weft::Array& x, float s)" in text
    assert "void either_2(weft::Grid dim, const weft::Array& x, std::int32_t s)" in text
    (tmp_path / "odd.cpp").write_text('#include "odd.h"\n')
    compiler = [os.environ.get("CXX", "c++"), "-std=c++20", "-Wall", "-Werror", "-fsyntax-only"]
    run(*compiler, f"-I{embed / 'prefix/include'}", tmp_path / "odd.cpp")


THREE_VERSIONS = """
import warp as wp

@wp.kernel
def without_arrays(n: int):
    print(n)

@wp.kernel
def with_array(a: wp.array(dtype=wp.uint8)):
    a[-1] = wp.uint8(1)
"""


def test_code_for_huge_arrays_is_left_out_where_it_is_the_same(tmp_path):
    (tmp_path / "versions.py").write_text(THREE_VERSIONS)
    program = "import versions, warp as wp; wp.compile_aot_module(versions, 'k.weft')"
    run(sys.executable, "-c", program, cwd=tmp_path, env={**os.environ, "PYTHONPATH": pythonpath()})
    assert (tmp_path / "k.weft").read_bytes().count(b"\x7fELF") == 2 + 3


@pytest.mark.parametrize("threads", ["1", "3"])
def test_a_program_without_python_computes_gradients(embed, tmp_path, threads):
    path, without = tmp_path / "slopes.weft", tmp_path / "without.weft"
    compile_kernels(path, "slopes", gradients=True)
    compile_kernels(without, "slopes")
    assert path.stat().st_size > without.stat().st_size
    environment = {**os.environ, "WARP_CPU_THREADS": threads}
    assert run(embed / "build/gradients", path, without, env=environment) == "failures: 0\n"


# y = 3 x, with x = (1, 2, 3) and the seed (1, 10, 100) of y: the gradients of x, y and z, and the seed afterwards.
PASSES_FROM_SEEDS = """\
whole: 3 30 300; 0 0 0; 0 0 0; 1 10 100;
again: 6 60 600; 0 0 0; 0 0 0; 1 10 100;
a part: 3 30 0; 0 0 100; 0 0 0; 1 10 100;
again: 6 60 0; 0 0 100; 0 0 0; 1 10 100;
its own gradient: 3 30 300; 1 10 100; 0 0 0; 1 10 100;
its own gradient, reversed: 300 30 3; 1 10 100; 0 0 0; 100 10 1;
another gradient: 3 30 300; 0 0 0; 1 10 100; 1 10 100;
read later: -9 6 252; 0 0 0; 0 0 0; 1 10 100;
overwritten later: 0 0 0; 0 0 0; 0 0 0; 1 10 100;
copied over later: 0 0 0; 0 0 0; 1 10 100; 1 10 100;
a late gradient: none; 0 0 0; none; 1 10 100;
late gradients: 3 30 300; 0 0 0; none; 1 10 100;
"""


def test_seeds_mean_the_same_in_cpp_and_python(embed, tmp_path):
    path = tmp_path / "slopes.weft"
    compile_kernels(path, "slopes", gradients=True)
    assert run(embed / "build/seeds", path) == PASSES_FROM_SEEDS
    assert run(sys.executable, "seeds.py", cwd=HERE) == PASSES_FROM_SEEDS


@pytest.mark.skipif(not CLANG, reason="there is no clang on this machine")
@pytest.mark.parametrize("processor, level", [("x86-64", 1), ("x86-64-v2", 2), ("", None)])
def test_functions_in_cpp_are_in_the_file(embed, tmp_path, processor, level):
    path = tmp_path / "kernels.weft"
    compile_kernels(path)
    (tmp_path / "kernels.weft.damaged").write_bytes(b"")
    compile_kernels(tmp_path / "native.weft", "native", WEFT_CPU=processor)
    # No compiler is there when the program runs.
    output = run(embed / "build/embed", path, tmp_path / "native.weft", env={"PATH": str(tmp_path)})
    assert output.endswith("failures: 0\n") and "level: " in output
    if platform.machine() == "x86_64" and level:
        assert f"level: {level}\n" in output


def test_a_file_with_cpp_needs_a_clang_when_it_is_written(tmp_path):
    with pytest.raises(wp.CompileError, match="needs a clang on this machine: there is none in the folders of PATH"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", str(tmp_path))
            patch.delenv("WEFT_CLANG", raising=False)
            patch.setattr(wp.config, "cache_kernels", False)
            patch.syspath_prepend(HERE)
            import native

            wp.compile_aot_module(native, tmp_path / "native.weft")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not CLANG, reason="there is no clang on this machine")
def test_functions_that_the_program_lacks_are_named(embed, tmp_path):
    path = tmp_path / "lost.weft"
    compile_kernels(path, "lost")
    result = subprocess.run([embed / "build/embed", path], capture_output=True, text=True)
    assert result.returncode != 0
    assert "the C++ of kernel 'find' uses Py_IsInitialized, which this process does not have" in result.stderr
    assert "in a C++ program by linking with it" in result.stderr


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


# ---- GPUs ----

EMULATED = Path(wp.__file__).parent / "weft-emulated-cuda.so"


@pytest.fixture(scope="module")
def files_for_gpus(tmp_path_factory):
    """(kernels, slopes, kernels for the CPU), written without a driver."""
    folder = tmp_path_factory.mktemp("gpus")
    files = [folder / name for name in ("kernels.weft", "slopes.weft", "cpu.weft")]
    compile_kernels(files[0], arch=75, WARP_CUDA_DRIVER="none")
    compile_kernels(files[1], "slopes", gradients=True, arch=75, WARP_CUDA_DRIVER="none")
    compile_kernels(files[2])
    return files


def run_on_gpus(embed, files, **environment):
    environment = {**os.environ, "WARP_CUDA_DRIVER": str(EMULATED), **environment}
    return subprocess.run([embed / "build/gpus", *files], capture_output=True, text=True, env=environment)


def test_code_for_gpus_in_a_program_without_python(embed, files_for_gpus):
    assert b".target sm_75" in files_for_gpus[0].read_bytes()
    for arch in ("75", "90"):
        result = run_on_gpus(embed, files_for_gpus, WEFT_EMULATED_ARCH=arch)
        assert (result.stdout, result.stderr, result.returncode) == ("42\nfailures: 0\n", "", 0)


def test_files_for_gpus_say_what_is_missing(embed, files_for_gpus, tmp_path):
    result = run_on_gpus(embed, files_for_gpus, WARP_CUDA_DRIVER="none")
    assert result.returncode != 0
    assert "compiled for GPUs, and there is none: WARP_CUDA_DRIVER is 'none'" in result.stderr
    newer = tmp_path / "newer.weft"
    compile_kernels(newer, arch=90)
    result = run_on_gpus(embed, [newer], WEFT_EMULATED_ARCH="80")
    assert "compiled for GPUs from sm_90 on; the newest here is sm_80" in result.stderr and "arch=80" in result.stderr


def test_the_architecture_is_that_of_the_device_that_is_named(tmp_path):
    """With a driver: the file is for its GPU."""
    program = f"import kernels, warp as wp; wp.compile_aot_module(kernels, {str(tmp_path / 'x')!r}, device='cuda')"
    environment = {**os.environ, "WARP_CUDA_DRIVER": str(EMULATED), "WEFT_EMULATED_ARCH": "86"}
    run(sys.executable, "-c", program, cwd=HERE, env=environment)
    assert b".target sm_86" in (tmp_path / "x").read_bytes()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"arch": 70}, "arch is 70, expected an int from 75"),
        ({"arch": "sm_90"}, "arch is 'sm_90', expected an int from 75"),
        ({"arch": 90, "device": "cpu"}, "arch is 90, a GPU's, and device is 'cpu'"),
        ({"arch": 997}, "there is no code for GPUs of architecture 'sm_997'"),
    ],
)
def test_architectures_that_cannot_be_are_named(tmp_path, options, message):
    @wp.kernel(module="aot_arch")
    def one(x: wp.array(dtype=float)):
        x[wp.tid()] = 1.0

    with pytest.raises(ValueError, match=message):
        wp.compile_aot_module("aot_arch", tmp_path / "x.weft", **options)
    assert list(tmp_path.iterdir()) == []


# ---- machine code for GPUs ----


def compile_machine_code(path, arch, **environment):
    """The file of kernels.py with machine code beside the PTX."""
    call = f"wp.compile_aot_module(kernels, {str(path)!r}, arch={arch}, use_ptx=False)"
    command = [sys.executable, "-c", f"import kernels, warp as wp; {call}"]
    return subprocess.run(command, cwd=HERE, env={**os.environ, **environment}, capture_output=True, text=True)


def run_loaded(embed, path, device="cuda:0", **environment):
    """(the source of the code, its results, standard error)"""
    environment = {**os.environ, "WARP_CUDA_DRIVER": str(EMULATED), **environment}
    result = subprocess.run([embed / "build/loaded", path, device], capture_output=True, text=True, env=environment)
    return (*[*result.stdout.splitlines(), "", ""][:2], result.stderr)


@pytest.fixture(scope="module")
def emulated_compiler(tmp_path_factory):
    """A program that makes images of the emulated driver's own of PTX, as ptxas makes machine code."""
    program = tmp_path_factory.mktemp("compiler") / "ptxas"
    command = shlex.join([sys.executable, str(HERE / "emulated_ptxas.py"), str(EMULATED)])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o755)
    return program


def test_machine_code_of_a_file_is_launched(embed, emulated_compiler, tmp_path):
    path = tmp_path / "kernels.weft"
    done = compile_machine_code(path, 80, WARP_PTX_COMPILER=str(emulated_compiler))
    assert done.returncode == 0, done.stderr
    assert run_loaded(embed, path, WEFT_EMULATED_ARCH="80") == ("machine code for sm_80", "3000", "")
    # Newer GPUs of the same kind would take it; the emulated one is strict, and has the PTX then.
    made_of, result, _ = run_loaded(embed, path, WEFT_EMULATED_ARCH="86")
    assert made_of.startswith(
        "PTX for sm_80, compiled by the driver for sm_86, as the driver does not take the machine"
    )
    assert "CUDA_ERROR_NO_BINARY_FOR_GPU (209)" in made_of and result == "3000"
    assert run_loaded(embed, path, WEFT_EMULATED_ARCH="90")[:2] == (
        "PTX for sm_80, compiled by the driver for sm_90, as the machine code is for sm_80",
        "3000",
    )
    made_of, result, _ = run_loaded(embed, path, WEFT_EMULATED_ARCH="80", WEFT_EMULATED_FAIL="cuModuleLoadDataEx:1:200")
    assert "CUDA_ERROR_INVALID_IMAGE (200)" in made_of and result == "3000"
    assert "compiled for GPUs from sm_80" in run_loaded(embed, path, WEFT_EMULATED_ARCH="75")[2]


@needs_ptxas
def test_machine_code_of_nvidia_is_in_the_file_and_the_text_beside_it(embed, tmp_path):
    path = tmp_path / "kernels.weft"
    done = compile_machine_code(path, 90, WARP_CUDA_DRIVER="none")
    assert done.returncode == 0, done.stderr
    content = path.read_bytes()
    assert content.count(b"\x7fELF\x02\x01") == content.count(b".target sm_90") >= 2 * 5
    made_of, result, _ = run_loaded(embed, path)
    assert made_of.endswith("it says: machine code for sm_90, and the emulated device executes PTX only")
    assert result == "3000"


def test_a_file_of_texts_says_so(embed, files_for_gpus):
    assert run_loaded(embed, files_for_gpus[0])[:2] == ("PTX for sm_75, compiled by the driver for sm_90", "3000")
    assert run_loaded(embed, files_for_gpus[2], "cpu")[1] == "3000"
    assert "'total' is code for CPUs, and 'cuda:0' is none" in run_loaded(embed, files_for_gpus[2])[2]
    assert "'total' is code for GPUs, and 'cpu' is none" in run_loaded(embed, files_for_gpus[0], "cpu")[2]


def test_what_compiles_machine_code_is_named_where_it_fails(tmp_path):
    path = tmp_path / "kernels.weft"
    done = compile_machine_code(path, 90, WARP_PTX_COMPILER="/nowhere/ptxas")
    assert "WARP_PTX_COMPILER is '/nowhere/ptxas', which is no program" in done.stderr
    done = compile_machine_code(path, 90, WARP_PTX_COMPILER="/nowhere/libnvJitLink.so.12")
    assert "'/nowhere/libnvJitLink.so.12', which is no nvJitLink of CUDA 12 or 13" in done.stderr
    program = tmp_path / "ptxas"
    program.write_text("#!/bin/sh\necho this GPU is too new for me; exit 1\n")
    program.chmod(0o755)
    done = compile_machine_code(path, 90, WARP_PTX_COMPILER=str(program))
    assert "does not take the code for sm_90" in done.stderr
    assert f"{program} says: this GPU is too new for me" in done.stderr and "use_ptx=True" in done.stderr
    program.write_text("#!/bin/sh\nexit 0\n")
    done = compile_machine_code(path, 90, WARP_PTX_COMPILER=str(program))
    assert f"{program} says: it wrote nothing" in done.stderr
    assert sorted(tmp_path.iterdir()) == [program]


@pytest.mark.skipif(not CLANG, reason="there is no clang on this machine")
@pytest.mark.parametrize("fails", ["", "Create", "AddData", "Complete", "GetLinkedCubinSize", "GetLinkedCubin"])
def test_the_library_is_called_as_it_wants_it(embed, tmp_path, fails):
    """One of our own in nvJitLink's place: its inputs and their order; each of its functions fails once."""
    library, path = tmp_path / "libnvJitLink.so.12", tmp_path / "kernels.weft"
    define = [f"-DFAILS={fails}"] if fails else []
    run(CLANG, "-std=c++17", "-shared", "-fPIC", *define, HERE / "fake_nvjitlink.cpp", "-o", library)
    done = compile_machine_code(path, 90, WARP_PTX_COMPILER=str(library))
    if fails:
        log = "" if fails == "Create" else ": the log of nvJitLink"
        assert f"{library} says: nvJitLink{fails} gives 6{log}" in done.stderr
        assert not path.exists()
    else:
        assert done.returncode == 0, done.stderr
        assert path.read_bytes().count(b"machine code by nvJitLink for -arch=sm_90") >= 2 * 5


@pytest.mark.parametrize(
    "options, message",
    [
        ({"use_ptx": False}, "use_ptx is False, which is about code for GPUs, and this is for the CPU"),
        ({"use_ptx": True}, "use_ptx is True, which is about code for GPUs"),
        ({"use_ptx": "yes", "arch": 90}, "use_ptx is 'yes', expected True, False or None"),
    ],
)
def test_what_use_ptx_cannot_be_is_named(tmp_path, options, message):
    @wp.kernel(module="aot_use_ptx")
    def one(x: wp.array(dtype=float)):
        x[wp.tid()] = 1.0

    with pytest.raises((ValueError, TypeError), match=message):
        wp.compile_aot_module("aot_use_ptx", tmp_path / "x.weft", **options)
    assert list(tmp_path.iterdir()) == []


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
    assert kept.key.endswith("__generic") and path.stat().st_size > 1000
    assert [file.name for file in tmp_path.iterdir()] == ["x.weft"]
