"""What Weft says about its own work: wp.config.log_level and its older names verbose and quiet."""

import logging
import os
import re
import subprocess
import sys

import pytest
import warp as wp

LEVELS = [wp.LOG_DEBUG, wp.LOG_INFO, wp.LOG_WARNING, wp.LOG_ERROR]


@pytest.fixture(autouse=True)
def default_level():
    yield
    wp.config.log_level = wp.LOG_WARNING
    wp.config.print_launches = False


def test_the_levels_are_those_of_pythons_logging():
    assert LEVELS == [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR]


def compile_one(number):
    """A kernel that no other call compiles."""

    @wp.kernel
    def noisy(x: wp.array[float], i: wp.array[int]):
        k = wp.tid()
        x[i[k]] = x[k] + float(number)

    noisy.compile()


def test_what_is_logged_from_which_level_on(capfd):
    said = {}
    for level in LEVELS:
        wp.config.log_level = level
        compile_one(level)
        captured = capfd.readouterr()
        assert captured.out == ""
        said[level] = captured.err.splitlines()
    found = r"warp: kernel 'noisy' (compiled|loaded from the cache) in \d+\.\d ms, \d+ lanes?"
    assert re.fullmatch(found, said[wp.LOG_INFO][0]) and len(said[wp.LOG_INFO]) == 1
    assert re.fullmatch(found, said[wp.LOG_DEBUG][0])
    # Why lanes are slower than they could be, with the line.
    assert any(re.fullmatch(r"warp: kernel 'noisy': .*test_logging.py:\d+:\d+: .*", s) for s in said[wp.LOG_DEBUG][1:])
    assert said[wp.LOG_WARNING] == said[wp.LOG_ERROR] == []


def test_nothing_is_logged_by_default():
    code = "import warp as wp\nwp.init()\nprint(wp.config.log_level == wp.LOG_WARNING, wp.zeros(1).list())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("True [0.0]\n", "")


def test_launches_are_printed_to_the_standard_output(capfd):
    @wp.kernel
    def one(x: wp.array[float]):
        x[0] = 1.0

    wp.config.print_launches = True
    wp.launch(one, dim=1, inputs=[wp.zeros(1)])
    assert tuple(capfd.readouterr()) == ("kernel: one, dim (1,), on cpu\n", "")


def test_quiet_and_verbose_are_names_for_log_levels():
    config = wp.config
    assert (config.log_level, config.quiet, config.verbose) == (wp.LOG_WARNING, True, False)
    config.quiet = False
    assert (config.log_level, config.quiet, config.verbose) == (wp.LOG_INFO, False, False)
    config.verbose = True
    assert (config.log_level, config.quiet, config.verbose) == (wp.LOG_DEBUG, False, True)
    config.quiet = False  # says no more than is so
    assert config.log_level == wp.LOG_DEBUG
    config.quiet = True
    assert (config.log_level, config.quiet, config.verbose) == (wp.LOG_WARNING, True, False)
    config.log_level = wp.LOG_ERROR
    config.quiet = True
    config.verbose = False
    assert (config.log_level, config.quiet, config.verbose) == (wp.LOG_ERROR, True, False)
    config.verbose = True
    config.verbose = False
    assert config.log_level == wp.LOG_WARNING


@pytest.mark.parametrize("wrong", [5, "debug", None, True, 20.0])
def test_other_levels_are_errors(wrong):
    with pytest.raises(ValueError, match="config.log_level: is .*, expected wp.LOG_DEBUG, wp.LOG_INFO, wp.LOG_WARNING"):
        wp.config.log_level = wrong
    assert wp.config.log_level == wp.LOG_WARNING


def test_a_cache_that_cannot_be_written_is_a_warning_once(tmp_path):
    file = tmp_path / "no_folder"
    file.write_text("")
    program = tmp_path / "program.py"
    program.write_text(
        "import warp as wp\n"
        "@wp.kernel\n"
        "def one(x: wp.array[float]):\n"
        "    x[0] = 1.0\n"
        "@wp.kernel\n"
        "def two(x: wp.array[float]):\n"
        "    x[0] = 2.0\n"
        "for k in (one, two):\n"
        "    x = wp.zeros(1)\n"
        "    wp.launch(k, 1, [x])\n"
        "    print(x.list())\n"
    )
    environment = {**os.environ, "WARP_CACHE_PATH": str(file / "below")}
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "[1.0]\n[2.0]\n"
    (line,) = done.stderr.splitlines()
    assert line.startswith("warp: warning: the folder of the kernel cache, " + str(file))
    assert "cannot be written" in line and "wp.config.kernel_cache_dir" in line
