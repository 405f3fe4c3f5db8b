"""Importing, initialising and configuring (S-INI)."""

import os
import subprocess
import sys

import pytest
import warp
import warp as wp

pytestmark = pytest.mark.cpu_only("is about a process without a GPU: its default device, what it logs and answers")


def run(code, **environment):
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.seed("S-INI-001")
def test_import_by_both_names():
    assert warp is wp
    assert run("import warp; import warp as wp; print(warp is wp)") == "True\n"


@pytest.mark.seed("S-INI-002", "D-06")
def test_init_is_optional_and_may_be_repeated():
    wp.init()
    wp.init()
    assert run("import warp as wp; wp.init(); wp.context.init(); wp.init()") == ""
    with pytest.raises(TypeError):
        wp.init("cpu")


@pytest.mark.seed("S-INI-003", "D-06")
@pytest.mark.parametrize(
    "use, expected",
    [
        ("wp.zeros(3)", "[0. 0. 0.]"),
        ("wp.array([1, 2])", "[1 2]"),
        ("wp.from_numpy(np.ones(2))", "[1. 1.]"),
        ("wp.get_device()", "cpu"),
        ("wp.get_devices()[0]", "cpu"),
        ("wp.vec3(1.0, 2.0, 3.0) * 2.0", "[2.0, 4.0, 6.0]"),
        ("wp.sin(0.0)", "0.0"),
        ("wp.synchronize()", "None"),
        ("wp.Tape().launches", "[]"),
        ("wp.get_module('m').name", "m"),
    ],
)
def test_the_first_use_of_anything_starts_the_runtime(use, expected):
    assert run(f"import numpy as np, warp as wp\nprint({use})") == expected + "\n"


@pytest.mark.seed("S-INI-003")
def test_the_first_use_may_be_a_launch(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np, warp as wp\n"
        "@wp.kernel\ndef k(x: wp.array[float]):\n    x[wp.tid()] = 2.0\n"
        "x = np.zeros(2, np.float32)\nwp.launch(k, dim=2, inputs=[x])\nprint(x)\n"
    )
    out = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=True).stdout
    assert out == "[2. 2.]\n"


@pytest.fixture
def configured():
    """Sets options of wp.config, and resets them afterwards."""
    before = {}

    def configure(**options):
        for name, value in options.items():
            before.setdefault(name, getattr(wp.config, name))
            setattr(wp.config, name, value)

    yield configure
    for name, value in before.items():
        setattr(wp.config, name, value)


def instructions(kernel, stage):
    """The part of an LLVM listing for the kernel itself, without declarations and metadata."""
    return [line for line in kernel.listing(stage).splitlines() if line.startswith("  ")]


@pytest.mark.seed("S-INI-006")
def test_debug_mode_checks_bounds_and_takes_no_release_binaries(configured):
    @wp.kernel
    def beyond(values: wp.array[float], n: int):
        i = wp.tid()
        values[i + n] = values[i + n] * 2.0 + 1.0

    assert wp.config.mode == "release"
    x = wp.zeros(4)
    wp.launch(beyond, dim=4, inputs=[x, 0])  # makes the binary of release mode
    assert x.numpy().tolist() == [1.0] * 4
    assert "DISubprogram" not in beyond.listing("llvm")
    assert instructions(beyond, "optimized_llvm") != instructions(beyond, "llvm")
    configured(mode="debug")
    with pytest.raises(IndexError, match=r"index 4.*'values'.*kernel 'beyond'.*thread \(1,\)"):
        wp.launch(beyond, dim=2, inputs=[x, 3])
    wp.launch(beyond, dim=4, inputs=[x, 0])
    assert x.numpy()[:3].tolist() == [3.0] * 3
    assert instructions(beyond, "optimized_llvm") == instructions(beyond, "llvm")
    assert "DISubprogram" in beyond.listing("llvm") and os.path.basename(__file__) in beyond.listing("llvm")
    configured(mode="release")
    wp.launch(beyond, dim=4, inputs=[x, 0])
    assert x.numpy()[:3].tolist() == [7.0] * 3
    with pytest.raises(ValueError, match="release"):
        wp.config.mode = "fast"


@pytest.mark.seed("S-INI-007")
def test_checks_of_cuda_have_no_effect_without_cuda(configured):
    assert wp.config.verify_cuda is False
    configured(verify_cuda=True)
    x = wp.zeros(4)
    y = wp.clone(x)
    x.fill_(2.0)
    wp.copy(y, x)
    wp.synchronize()
    assert y.to("cpu").numpy().tolist() == [2.0] * 4


@pytest.mark.seed("S-INI-004")
def test_context_module():
    code = """
import warp as wp
wp.context.init()
import warp.context
assert wp.context.Device is wp.Device and wp.context.Kernel is wp.Kernel
assert isinstance(wp.get_device(), wp.context.Device)
print(wp.context.type_str(wp.vec3))
"""
    assert run(code) == "vec3f\n"


@pytest.mark.seed("S-INI-008")
def test_options_of_earlier_releases_can_be_set():
    code = """
import warp as wp
for name, value in dict(verify_fp=False, print_launches=False, verbose=False, enable_backward=True, quiet=True,
                        cuda_path=None, host_path=None, host_compiler=None, verify_cuda=False, mode="release").items():
    setattr(wp.config, name, value)
    assert getattr(wp.config, name) == value
print(wp.config.version == wp.__version__)
"""
    assert run(code) == "True\n"


def test_a_wrong_option_or_value_is_an_error():
    with pytest.raises(wp.UsageError, match="debug"):
        wp.config.mode = "dbg"
    assert wp.config.mode == "release"


def test_an_unknown_name_suggests_known_ones():
    with pytest.raises(AttributeError, match="normalize"):
        wp.normalise


def test_import_stays_small():
    code = """
import sys, numpy
before = set(sys.modules)
import warp
print(sorted(m.split(".")[0] for m in set(sys.modules) - before if not m.startswith(("warp", "_weft"))))
"""
    loaded = run(code)
    for heavy in ("torch", "jax", "paddle", "PIL", "matplotlib", "scipy"):
        assert heavy not in loaded


def test_report_of_the_command_line():
    out = subprocess.run([sys.executable, "-m", "warp"], capture_output=True, text=True, timeout=60, check=True).stdout
    for word in (wp.__weft_version__, wp.__version__, "cpu", "lanes", "threads", "cache", "CUDA"):
        assert word.lower() in out.lower(), out


def test_scoped_timer_measures(capsys):
    times = {}
    with (
        wp.ScopedTimer("outer", dict=times) as timer,
        wp.ScopedTimer("quiet", print=False),
        wp.ScopedTimer("off", active=False),
    ):
        sum(range(1000))
    assert timer.elapsed > 0 and times["outer"] == [timer.elapsed]
    out = capsys.readouterr().out
    assert "outer took" in out and "quiet" not in out and "off" not in out
