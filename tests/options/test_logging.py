"""Messages about Weft's own work: wp.config.log_level and its older names verbose and quiet."""

import logging
import os
import re
import subprocess
import sys
import warnings

import pytest
import warp as wp

pytestmark = pytest.mark.cpu_only("is about a process without a GPU: its default device, what it logs and answers")

LEVELS = [wp.LOG_DEBUG, wp.LOG_INFO, wp.LOG_WARNING, wp.LOG_ERROR]


@pytest.fixture(autouse=True)
def default_level():
    yield
    wp.config.log_level = wp.LOG_INFO
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
        assert captured.err == ""
        said[level] = captured.out.splitlines()
    found = r"kernel 'noisy' (compiled|loaded from the cache) in \d+\.\d ms, \d+ lanes?"
    assert re.fullmatch(found, said[wp.LOG_DEBUG][0])
    # Why lanes are slower than they could be, with the line.
    assert any(re.fullmatch(r"kernel 'noisy': .*test_logging.py:\d+:\d+: .*", s) for s in said[wp.LOG_DEBUG][1:])
    assert said[wp.LOG_INFO] == said[wp.LOG_WARNING] == said[wp.LOG_ERROR] == []


def compilations(capfd):
    return len(re.findall(r"kernel '\w+' (?:compiled|loaded)", capfd.readouterr().out))


def test_a_launch_compiles_the_code_that_it_needs_and_no_other(capfd):
    @wp.kernel
    def shift(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = x[i] + 41.5

    wp.config.log_level = wp.LOG_DEBUG
    a = wp.zeros(64, requires_grad=True)
    even, odd = a[::2], a[1::2]
    wp.launch(shift, dim=32, inputs=[even], outputs=[odd])  # strided, and in one memory
    assert compilations(capfd) == 1
    wp.launch(shift, dim=64, inputs=[a], outputs=[a])
    assert compilations(capfd) == 1
    tape = wp.Tape()
    out = wp.zeros(64, requires_grad=True)
    with tape:
        wp.launch(shift, dim=64, inputs=[a], outputs=[out])
    assert compilations(capfd) == 1
    tape.backward(grads={out: wp.ones(64)})
    assert compilations(capfd) == 1
    tape.backward(grads={out: wp.ones(64)})
    wp.launch(shift, dim=64, inputs=[a], outputs=[out])
    assert compilations(capfd) == 0


def test_why_a_kernel_has_one_lane_is_logged(capfd):
    @wp.kernel
    def rows(first: wp.array[int], at: wp.array[int], a: wp.array[float], x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        total = float(0.0)
        for k in range(first[i], first[i + 1]):
            total += a[k] * x[at[k]]
        y[i] = total

    wp.config.log_level = wp.LOG_DEBUG
    rows.compile()
    said = capfd.readouterr().out.splitlines()
    assert said[0].endswith(" ms, 1 lane")
    assert re.fullmatch(
        r"kernel 'rows': .*test_logging.py:\d+:\d+: runs one thread at a time: lanes would gather.*", said[1]
    )


def test_nothing_is_logged_by_default():
    code = "import warp as wp\nwp.init()\nprint(wp.config.log_level == wp.LOG_INFO, wp.zeros(1).list())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("True [0.0]\n", "")


def test_launches_are_printed_at_any_level(capfd):
    @wp.kernel
    def one(x: wp.array[float]):
        x[0] = 1.0

    wp.config.log_level = wp.LOG_ERROR
    command = wp.launch(one, dim=1, inputs=[wp.zeros(1)], record_cmd=True)
    wp.config.print_launches = True
    wp.launch(one, dim=1, inputs=[wp.zeros(1)])
    command.launch()
    assert tuple(capfd.readouterr()) == ("kernel: one, dim (1,), on cpu\n" * 2, "")


def test_quiet_and_verbose_are_names_for_log_levels():
    config = wp.config
    assert (config.log_level, config.quiet, config.verbose) == (wp.LOG_INFO, False, False)
    config.quiet = True
    assert (config.log_level, config.quiet, config.verbose) == (wp.LOG_WARNING, True, False)
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
    assert config.log_level == wp.LOG_INFO


@pytest.mark.parametrize("wrong", ["debug", None, True, 20.0])
def test_what_is_no_level_is_an_error(wrong):
    with pytest.raises(ValueError, match="config.log_level: is .*, expected an int: wp.LOG_DEBUG, wp.LOG_INFO"):
        wp.config.log_level = wrong
    assert wp.config.log_level == wp.LOG_INFO


class Kept:
    """A logger that keeps what it is given."""

    def __init__(self):
        self.lines = []

    def debug(self, message):
        self.lines.append(("debug", message))

    def info(self, message):
        self.lines.append(("info", message))

    def warning(self, message, category=None, stacklevel=1):
        self.lines.append(("warning", message, category))

    def error(self, message):
        self.lines.append(("error", message))


def test_all_that_is_said_goes_to_the_logger(capfd):
    kept = Kept()
    with wp.ScopedLogger(kept) as scope:
        assert scope.logger is kept and wp.get_logger() is kept
        with wp.ScopedLogLevel(wp.LOG_DEBUG):
            compile_one(0.5)
        assert kept.lines[0][0] == "debug" and kept.lines[0][1].startswith("kernel 'noisy' ")
        kept.lines.clear()
        with wp.ScopedTimer("work"):
            pass
        (line,) = kept.lines
        assert line[0] == "info" and re.fullmatch(r"work took \d+\.\d\d ms", line[1])
    assert wp.get_logger() is not kept and tuple(capfd.readouterr()) == ("", "")


def test_a_logger_is_set_until_it_is_taken_back():
    kept = Kept()
    default = wp.get_logger()
    wp.set_logger(kept)
    try:
        assert wp.get_logger() is kept and isinstance(kept, wp.Logger)
    finally:
        wp.set_logger(None)
    assert wp.get_logger() is default
    with pytest.raises(TypeError, match=r"set_logger\(\): .* no method debug and no info and no warning and no error"):
        wp.set_logger(object())
    with pytest.raises(TypeError, match=r"ScopedLogger\(\): "):
        wp.ScopedLogger(object())
    assert wp.get_logger() is default
    with pytest.raises(TypeError):
        wp.Logger()


def test_the_default_logger(capfd):
    logger = wp.get_logger()
    logger.debug("one")
    logger.info("two")
    logger.warning("three")
    logger.warning("four", category=RuntimeWarning)
    logger.error("five")
    shown = "Warp UserWarning: three\nWarp RuntimeWarning: four\nWarp Error: five\n"
    assert tuple(capfd.readouterr()) == ("one\ntwo\n", shown)


def test_warnings_pass_pythons_filters(capfd):
    logger = wp.get_logger()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("error", DeprecationWarning)
        logger.warning("dropped", category=RuntimeWarning)
        with pytest.raises(DeprecationWarning, match="raised"):
            logger.warning("raised", category=DeprecationWarning)
        logger.warning("shown")
        logger.warning("shown")
    assert capfd.readouterr().err == "Warp UserWarning: shown\n" * 2


def test_a_level_inside_a_block():
    with wp.ScopedLogLevel(wp.LOG_ERROR) as scope:
        assert wp.config.log_level == wp.LOG_ERROR and isinstance(scope, wp.ScopedLogLevel)
        with wp.ScopedLogLevel(wp.LOG_DEBUG):
            assert wp.config.verbose
        assert wp.config.log_level == wp.LOG_ERROR
    assert wp.config.log_level == wp.LOG_INFO


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

    def line_for(folder):
        environment = {**os.environ, "WARP_CACHE_PATH": str(folder)}
        done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, env=environment)
        assert done.stdout == "[1.0]\n[2.0]\n"
        return done.stderr

    (line,) = line_for(file / "below").splitlines()
    assert line.startswith("Warp UserWarning: the folder of the kernel cache, " + str(file))
    assert "cannot be written" in line and "wp.config.kernel_cache_dir" in line

    # Its files are executed: a folder that others can write to is not used.
    assert line_for(tmp_path / "shared") == ""
    (folder,) = (tmp_path / "shared").iterdir()
    names = sorted(one.name for one in folder.iterdir())
    assert len(names) == 2 and folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    (line,) = line_for(tmp_path / "shared").splitlines()
    assert f"{folder}, can be written by others" in line and "chmod go-w" in line
    assert sorted(one.name for one in folder.iterdir()) == names
