"""Products by cuBLAS: a library of the test stands in its place. Which calls it gets, its results, and errors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import warp as wp

COMPILER = os.environ.get("CXX", "c++")
EMULATED = Path(wp.__file__).parent / "weft-emulated-cuda.so"
pytestmark = pytest.mark.gpu

PROGRAM = """
import sys
import numpy as np
import warp as wp

random = np.random.default_rng(5)
SHAPE = (1, 160, 130, 120)


def product(name, shape=SHAPE, left=False, right=False, gaps=False, **options):
    dtype, (batch, m, k, n) = getattr(wp, name), shape

    def made(rows, columns, turned):
        values = random.integers(-3, 4, (batch, columns, rows) if turned else (batch, rows, columns))
        array = wp.array(values.astype(np.float32), dtype=dtype, device="cuda:0")
        return (values.transpose(0, 2, 1), array.transpose((0, 2, 1))) if turned else (values, array)

    (a, A), (b, B), (c, C) = made(m, k, left), made(k, n, right), made(m, n, False)
    if gaps:
        A = wp.zeros((batch, m, 2 * k), dtype=dtype, device="cuda:0")[:, :, ::2]
        A.assign(wp.array(a.astype(np.float32), dtype=dtype, device="cuda:0"))
    D = wp.zeros((batch, m, n), dtype=dtype, device="cuda:0")
    wp.batched_matmul(A, B, C, D, **options)
    exact = options.get("alpha", 1.0) * (a @ b) + options.get("beta", 0.0) * c
    rounded = wp.array(exact, dtype=dtype, device="cpu").astype(wp.float64).numpy()
    np.testing.assert_array_equal(D.astype(wp.float64).numpy(), rounded)


wp.config.matmul_precision = "tf32"
"""


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    made = {}

    def make(fails=""):
        if fails not in made:
            made[fails] = tmp_path_factory.mktemp("cublas") / "libcublas.so.12"
            source = Path(__file__).parent / "stand_in_cublas.cpp"
            command = [COMPILER, "-std=c++17", "-O1", "-shared", "-fPIC", f'-DFAILS="{fails}"']
            subprocess.run([*command, str(source), "-o", str(made[fails])], check=True)
        return made[fails]

    return make


def run(tmp_path, body, library=None, **environment):
    """(the calls of the library, standard error)"""
    log = tmp_path / "log"
    log.write_text("")
    environment = {
        **os.environ,
        "WARP_CUDA_DRIVER": str(EMULATED),
        "WEFT_EMULATED_ARCH": "90",  # with tensor cores
        "STAND_IN_DRIVER": str(EMULATED),
        "STAND_IN_LOG": str(log),
        **({"WEFT_CUBLAS": str(library)} if library else {}),
        **environment,
    }
    done = subprocess.run([sys.executable, "-c", PROGRAM + body], capture_output=True, text=True, env=environment)
    return log.read_text().splitlines(), done.stderr


TYPES = {"float16": (2, 68), "bfloat16": (14, 68), "float32": (0, 77), "float64": (1, 70)}


@pytest.mark.parametrize("name", TYPES)
def test_layouts_of_the_factors_become_operations(name, stand_in, tmp_path):
    body = "".join(f"product('{name}', left={x}, right={y})\n" for x in (False, True) for y in (False, True))
    calls, error = run(tmp_path, body, stand_in())
    assert error == ""
    kind, compute = TYPES[name]
    # one handle, whose partial sums are not rounded; a workspace for each call
    assert calls[:2] == ["create", "mode 16"] and calls.count("create") == 1
    assert calls.count(f"workspace {32 << 20} aligned 1") == 4
    found = [call for call in calls if call.startswith("gemm")]
    rest = f"120 160 130 type {kind} batches 1 compute {compute} algorithm -1"
    assert found == [f"gemm {y}{x} {rest}" for x in (0, 1) for y in (0, 1)]


def test_batches_alpha_and_beta(stand_in, tmp_path):
    body = (
        "product('float64', (3, 96, 80, 112), alpha=2.0, beta=-1.0)\nproduct('float16', (3, 96, 80, 112), beta=3.0)\n"
    )
    calls, error = run(tmp_path, body, stand_in())
    assert error == ""
    assert [call.split(" type")[0] for call in calls if call.startswith("gemm")] == ["gemm 00 112 96 80"] * 2


@pytest.mark.parametrize(
    "body",
    [
        "wp.config.matmul_precision = 'exact'\nproduct('float16')",
        "wp.config.matmul_precision = 'fast'\nproduct('float32')",
        "wp.config.use_cublas = False\nproduct('float16')",
        "product('float16', (1, 20, 20, 20))",
        "product('float16', gaps=True)",
        "product('float8_e4m3fn', (1, 160, 2, 120))"
        if hasattr(wp, "float8_e4m3fn")
        else "product('float32', (1, 4, 4, 4))",
    ],
)
def test_other_products_are_ours(body, stand_in, tmp_path):
    calls, error = run(tmp_path, body, stand_in())
    assert calls == [] and error == ""


def test_products_are_timed(stand_in, tmp_path):
    body = """
product('float16')
with wp.ScopedTimer('all', cuda_filter=wp.TIMING_ALL, print=False, report_func=lambda found, _: report.extend(found)):
    product('float16')
wp.timing_begin(wp.TIMING_KERNEL)
product('float16')
report.extend(wp.timing_end())
for each in report:
    if 'cublas' in each.name:
        print(each.name, each.filter == wp.TIMING_KERNEL_BUILTIN, each.elapsed >= 0.0, file=sys.stderr)
"""
    calls, error = run(tmp_path, "report = []\n" + body, stand_in())
    assert len([call for call in calls if call.startswith("gemm")]) == 3
    assert error.splitlines() == ["cublasGemmStridedBatchedEx True True"]


@pytest.mark.parametrize("environment", [{}, {"WEFT_CUBLAS": "0"}])
def test_without_a_library_all_products_are_ours(environment, tmp_path):
    calls, error = run(tmp_path, "product('float16')\nproduct('float64')", **environment)
    assert calls == [] and error == ""


@pytest.mark.parametrize(
    "call",
    [
        "cublasCreate_v2",
        "cublasSetMathMode",
        "cublasSetStream_v2",
        "cublasSetWorkspace_v2",
        "cublasGemmStridedBatchedEx",
    ],
)
def test_each_call_that_fails_is_an_exception_and_the_program_goes_on(call, stand_in, tmp_path):
    body = """
for _ in range(2):
    try:
        product('float16')
    except wp.UsageError as error:
        print(error, file=sys.stderr)
wp.config.use_cublas = False
product('float16')
"""
    library = stand_in(call)
    _, error = run(tmp_path, body, library)
    lines = error.splitlines()
    assert len(lines) == 2 and lines[0] == lines[1]
    assert f"{call}(): the GPU program failed to execute (13), on 'cuda:0', by {library}" in lines[0]
    assert "help: wp.config.use_cublas = False" in lines[0]


def test_a_library_that_is_no_cublas_is_named(tmp_path):
    body = "product('float16')"
    _, error = run(tmp_path, body, "/nowhere/libcublas.so.12")
    assert "$WEFT_CUBLAS is '/nowhere/libcublas.so.12', which is no cuBLAS of CUDA 12 or 13" in error
    _, error = run(tmp_path, body, EMULATED)
    assert "which is no cuBLAS of CUDA 12 or 13" in error
