"""Functions in C++ on CUDA devices without a clang: NVRTC compiles them. A library of the test's own stands in its
place (stand_in_nvrtc.cpp); with the real one, kernels compute what they do with clang."""

import glob
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("other processes")]
EMULATED = Path(wp._weft.__file__).with_name("weft-emulated-cuda.so")
COMPILER = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)


def real_library():
    """NVRTC of one of NVIDIA's packages, or of a toolkit; None if there is none."""
    found = [name for folder in sys.path for name in glob.glob(f"{folder}/nvidia/*/lib/libnvrtc.so.1[23]")]
    found += glob.glob("/usr/local/cuda*/lib64/libnvrtc.so.1[23]")
    return os.environ.get("WEFT_NVRTC") or next(iter(found), None)


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("there is no C++ compiler on this machine")
    library = tmp_path_factory.mktemp("nvrtc") / "libnvrtc.so.13"
    source = Path(__file__).with_name("stand_in_nvrtc.cpp")
    subprocess.run([COMPILER, "-std=c++17", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return library


def run(tmp_path, body, nvrtc, has_clang=False, **environment):
    """(standard output, standard error) of a program on the emulated device, with an empty cache of kernels."""
    program = tmp_path / "program.py"
    program.write_text("import numpy as np\nimport sys\nimport warp as wp\n" + textwrap.dedent(body))
    environment = {
        **os.environ,
        "WARP_CUDA_DRIVER": str(EMULATED),
        "WARP_CACHE_PATH": str(tmp_path / "cache"),
        **environment,
    }
    environment.pop("WEFT_CLANG", None)
    environment.pop("WEFT_NVRTC", None)
    if nvrtc is not None:
        environment["WEFT_NVRTC"] = str(nvrtc)
    if not has_clang:
        environment["PATH"] = str(tmp_path)
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, env=environment)
    return done.stdout, done.stderr


TWICE = '''
    @wp.func_native("""
        return 2.0f * x;
    """)
    def twice(x: float) -> float: ...

    @wp.kernel
    def k(x: wp.array[float]):
        x[wp.tid()] = twice(x[wp.tid()]) + 1.0

    x = wp.array([1.0, 2.0, 3.0], dtype=float, device="cuda:0")
    wp.launch(k, 3, inputs=[x], device="cuda:0")
    print(x.list())
'''


def test_its_ptx_becomes_a_part_of_the_kernels(stand_in, tmp_path):
    log = tmp_path / "log"
    out, error = run(tmp_path, TWICE, stand_in, STAND_IN_LOG=str(log))
    assert (out, error) == ("[3.0, 5.0, 7.0]\n", "")
    said = log.read_text().splitlines()
    assert f"--gpu-architecture=compute_{wp.get_device('cuda:0').arch}" in said and "--std=c++17" in said
    assert said[-1] == "destroyed"
    assert "header cmath" in said


def test_two_functions_do_not_share_names(stand_in, tmp_path):
    body = TWICE.replace(
        "    @wp.kernel",
        '    @wp.func_native("return x + x;")\n    def other(x: float) -> float: ...\n\n    @wp.kernel',
    ).replace("twice(x[wp.tid()]) + 1.0", "twice(x[wp.tid()]) + other(x[wp.tid()])")
    out, error = run(tmp_path, body, stand_in)
    assert (out, error) == ("[4.0, 8.0, 12.0]\n", "")


def test_a_mistake_is_an_error_at_its_line(stand_in, tmp_path):
    body = TWICE.replace("return 2.0f * x;", "const float y = x;\n        mistake = x;")
    out, error = run(tmp_path, body, stand_in)
    assert out == "" and 'identifier "mistake" is undefined' in error and "mistake = x;" in error
    assert f"the compiler is {stand_in} 13.5" in error


def test_a_clang_is_taken_first_if_no_nvrtc_is_named(stand_in, tmp_path):
    """The stand-in always doubles."""
    body = TWICE.replace("return 2.0f * x;", "return 5.0f * x;")
    if not any(shutil.which(name) for name in ("clang++-22", "clang++")):
        pytest.skip("there is no clang on this machine")
    assert run(tmp_path, body, "0", has_clang=True) == ("[6.0, 11.0, 16.0]\n", "")
    cache = str(tmp_path / "another cache")
    assert run(tmp_path, body, stand_in, has_clang=True, WARP_CACHE_PATH=cache) == ("[3.0, 5.0, 7.0]\n", "")


def test_without_either_the_error_names_both(tmp_path):
    out, error = run(tmp_path, TWICE, "0")
    assert out == "" and "'twice' is written in C++, which needs a clang on this machine" in error
    assert "and no NVRTC either" in error and "pip install nvidia-cuda-nvrtc" in error


def test_another_library_is_named(tmp_path):
    out, error = run(tmp_path, TWICE, "/nowhere/libnvrtc.so.13")
    assert out == "" and "WEFT_NVRTC is '/nowhere/libnvrtc.so.13', which is no NVRTC of CUDA 12 or later" in error


def test_the_cpu_needs_a_clang_all_the_same(stand_in, tmp_path):
    body = TWICE.replace("cuda:0", "cpu")
    out, error = run(tmp_path, body, stand_in)
    assert out == "" and "needs a clang on this machine" in error


# ---- the real library ----

REAL = '''
    import ctypes

    @wp.struct
    class Body:
        mass: float
        at: wp.vec3

    @wp.func_native("""
        #include <cmath>
        __shared__ int sum[64];
        sum[threadIdx.x] = values[tid];
        __syncthreads();
        for (int step = 32; step > 0; step /= 2) {
            if (threadIdx.x < step) sum[threadIdx.x] += sum[threadIdx.x + step];
            __syncthreads();
        }
        vec3 moved = body.at * 2.0f;
        float16 half = 1.5f;
        int64 large = int64(1) << 40;
        atomicAdd(&totals[0], values[tid]);
        atomic_max(&extremes[0], float(values[tid]));
        atomic_add(&small[tid % 3], uint8(1));
        const int above = __shfl_down_sync(~0u, values[tid], 1);
        return std::sqrt(body.mass) + sin(0.5f) + moved[1] + float(half) + float(large >> 38) + float(sum[0])
            + (threadIdx.x % 32 < 31 ? float(above) : 0.0f) + float(__popc(tid)) + pow(2.0f, 3.0f) + max(1.0f, 2.0f);
    """)
    def all_of_it(body: Body, values: wp.array[int], totals: wp.array[int], extremes: wp.array[float],
                  small: wp.array[wp.uint8], tid: int) -> float: ...

    @wp.kernel
    def k(body: Body, values: wp.array[int], totals: wp.array[int], extremes: wp.array[float],
          small: wp.array[wp.uint8], out: wp.array[float]):
        i = wp.tid()
        out[i] = all_of_it(body, values, totals, extremes, small, i)

    n = 128
    body = Body()
    body.mass, body.at = 4.0, wp.vec3(1.0, 2.0, 3.0)
    with wp.ScopedDevice("cuda:0"):
        numbers = np.arange(n, dtype=np.int32) * 7 % 31
        values, totals = wp.array(numbers), wp.zeros(1, dtype=int)
        extremes, small = wp.array([-5.0], dtype=float), wp.zeros(3, dtype=wp.uint8)
        out = wp.zeros(n)
        wp.launch(k, n, inputs=[body, values, totals, extremes, small, out], block_dim=64)
        i = np.arange(n)
        above = np.where(i % 32 < 31, np.append(numbers[1:], 0), 0)
        expected = (2.0 + np.sin(0.5) + 4.0 + 1.5 + 4.0 + numbers.reshape(2, 64).sum(1).repeat(64) + above
                    + [bin(one).count("1") for one in i] + 8.0 + 2.0)
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)
        assert totals.list() == [numbers.sum()] and extremes.list() == [30.0]
        assert small.numpy().tolist() == [43, 43, 42]
    print("right")
'''
ADJOINT = """
    @wp.func_native("return x * x * x;", "adj_x += 3.0f * x * x * adj_ret;")
    def cube(x: float) -> float: ...

    @wp.kernel
    def k(x: wp.array[float], y: wp.array[float]):
        y[wp.tid()] = cube(x[wp.tid()])

    with wp.ScopedDevice("cuda:0"):
        x = wp.array([1.0, 2.0, -3.0], dtype=float, requires_grad=True)
        y = wp.zeros(3, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(k, 3, inputs=[x, y])
        tape.backward(grads={y: wp.ones(3)})
        print(y.list(), x.grad.list())
"""
needs_nvrtc = pytest.mark.skipif(
    real_library() is None,
    reason="needs NVRTC, of the CUDA toolkit or the Python package nvidia-cuda-nvrtc",
)


@needs_nvrtc
def test_the_real_one_compiles_what_clang_compiles(tmp_path):
    assert run(tmp_path, REAL, real_library()) == ("right\n", "")


@needs_nvrtc
def test_gradients_with_the_real_one(tmp_path):
    out, error = run(tmp_path, ADJOINT, real_library())
    assert (out, error) == ("[1.0, 8.0, -27.0] [3.0, 12.0, 27.0]\n", "")


@needs_nvrtc
def test_mistakes_with_the_real_one(tmp_path):
    body = TWICE.replace("return 2.0f * x;", "const float y = x;\n        mistake = x;")
    out, error = run(tmp_path, body, real_library())
    assert out == "" and 'identifier "mistake" is undefined' in error and "mistake = x;" in error
