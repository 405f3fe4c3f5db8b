"""NVIDIA's machine code of kernels: for every architecture that both know, and the lines that debuggers show."""

import re
import subprocess
import sys

import pytest
import warp as wp
from cuda_tools import PTXAS, needs_ptxas, of_a_toolkit

COMPILERS = sorted({PTXAS, of_a_toolkit("ptxas")} - {None})
pytestmark = [pytest.mark.gpu, needs_ptxas, pytest.mark.own_launches("counts launches, orders them or makes them fail")]


@wp.struct
class Ball:
    place: wp.vec3
    weight: float


@wp.func
def bounce(ball: Ball, n: int):
    result = ball
    for k in range(n):
        result.place[k % 3] = wp.sin(result.place[k % 3]) + result.weight
    return result


@wp.kernel(module="machine_code")
def many_things(
    balls: wp.array[Ball], total: wp.array[float], counts: wp.array[wp.int64], halves: wp.array[wp.float16], n: int
):
    i = wp.tid()
    ball = bounce(balls[i], n)
    if ball.weight < 0.0:
        raise ValueError(f"ball {i} weighs {ball.weight}")
    wp.atomic_add(total, 0, wp.length(ball.place))
    wp.atomic_max(counts, i % 4, wp.int64(n))
    wp.atomic_add(halves, i % 2, wp.float16(ball.weight))
    if i == 0:
        print(ball.place)
    balls[i] = ball


@wp.kernel(module="machine_code", launch_bounds=(128, 2))
def smooth(x: wp.array2d[wp.float64], y: wp.array2d[wp.float64]):
    i, j = wp.tid()
    if i > 0 and j > 0:
        y[i, j] = wp.pow(x[i - 1, j], x[i, j - 1]) / wp.float64(3.0) + wp.sqrt(x[i, j])


def architectures(compiler):
    """Those that the compiler makes machine code for, as far as LLVM knows them."""
    text = subprocess.run([compiler, "--help"], capture_output=True, text=True, check=True).stdout
    known = {int(number) for number in re.findall(r"'sm_(\d+)'", text)}
    return [arch for arch in wp.get_cuda_supported_archs() if arch in known]


def architecture_of(image):
    """That the header of a cubin names."""
    flags = int.from_bytes(image[48:52], "little")
    return flags >> 8 & 0xFF if image[8] >= 8 else flags & 0xFF


def images_of(content):
    at = [match.start() for match in re.finditer(rb"\x7fELF\x02\x01", content)]
    return [content[i : i + 64] for i in at]


@pytest.mark.parametrize("compiler", COMPILERS or ["none"])
def test_kernels_are_compiled_for_every_architecture(compiler, tmp_path, monkeypatch):
    known = architectures(compiler)
    assert {75, 80, 86, 89, 90, 100, 120} <= set(known)
    monkeypatch.setenv("WARP_PTX_COMPILER", compiler)
    for arch in known:  # two kernels: with arrays as they are mostly, in general, and of more than 2^31 elements
        path = wp.compile_aot_module("machine_code", tmp_path / "x.weft", arch=arch, use_ptx=False)
        content = path.read_bytes()
        images = images_of(content)
        assert len(images) == content.count(f".target sm_{arch}\n".encode()) == 6, arch
        assert {architecture_of(image) for image in images} == {arch}


@pytest.mark.large
@pytest.mark.parametrize("compiler", COMPILERS or ["none"])
def test_adjoints_are_compiled_for_every_architecture(compiler, tmp_path, monkeypatch):
    monkeypatch.setenv("WARP_PTX_COMPILER", compiler)
    for arch in architectures(compiler):
        path = wp.compile_aot_module("machine_code", tmp_path / "x.weft", arch=arch, use_ptx=False, gradients=True)
        assert len(images_of(path.read_bytes())) >= 8, arch


LINES = """import warp as wp


@wp.func
def wave(a: float):
    return wp.sin(a) * 2.0


@wp.kernel(module_options={"lineinfo": True})
def lines(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    s = float(0.0)
    for j in range(3):
        s += wave(x[i + j])
    y[i] = s
"""


@pytest.mark.parametrize("compiler", COMPILERS or ["none"])
@pytest.mark.parametrize("option", ["--generate-line-info", "--device-debug"])
def test_line_tables_name_the_lines_of_the_python_source(tmp_path, monkeypatch, compiler, option):
    (tmp_path / "with_lines.py").write_text(LINES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "with_lines", raising=False)
    import with_lines

    text = with_lines.lines.listing("assembly", device="cuda:0")
    number = re.search(rf'\.file\s+(\d+) "{re.escape(str(tmp_path / "with_lines.py"))}"', text)[1]
    found = {int(line) for line in re.findall(rf"\n\t\.loc\t{number} (\d+) ", text)} - {0}
    assert {6, 14, 15} <= found <= set(range(10, 16)) | {6}

    (tmp_path / "lines.ptx").write_text(text)
    target = re.search(r"\.target (sm_\d+)", text)[1]
    cubin = tmp_path / "lines.cubin"
    command = [compiler, f"--gpu-name={target}", option, "-o", cubin, tmp_path / "lines.ptx"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    image = cubin.read_bytes()
    assert b".debug_line" in image and b"with_lines.py" in image
    path = wp.compile_aot_module(with_lines, tmp_path / "x.weft", arch=int(target[3:]), use_ptx=False)
    assert path.read_bytes().count(b"with_lines.py\0") >= 2, "a table of lines in each image"
