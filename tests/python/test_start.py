"""Importing, initialising and configuring (S-INI)."""

import os
import subprocess
import sys

import pytest
import warp
import warp as wp


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


@pytest.mark.seed("S-INI-002")
@pytest.mark.seed("S-INI-003")
def test_init_is_optional_and_may_be_repeated():
    wp.init()
    wp.init()
    assert run("import warp as wp; print(wp.zeros(3).numpy())") == "[0. 0. 0.]\n"


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
    with pytest.raises(AttributeError, match="fast_math"):
        wp.config.fastmath = True
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
    for word in (wp.__version__, "cpu", "lanes", "threads", "cache", "CUDA"):
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
