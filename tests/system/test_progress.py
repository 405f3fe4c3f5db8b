"""The line about long work: the time and place at which it is shown, and its end."""

import io
import os
import pty
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
import warp as wp
from warp._support import progress

pytestmark = pytest.mark.cpu_only("is about a process without a GPU: its default device, what it logs and answers")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def show_on(file, monkeypatch):
    """pytest puts a file of its own in the place of standard error before each test."""
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=file, modules=sys.modules))


@pytest.fixture
def terminal(monkeypatch):
    """A terminal that keeps its text, without tqdm, on which lines are shown at once."""
    screen = Terminal()
    show_on(screen, monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    return screen


def seen(screen):
    """The text of the last line of the terminal."""
    return screen.getvalue().split("\r")[-1].rstrip()


def test_a_line_is_rewritten_in_place_and_goes(terminal):
    with progress.ProgressLine(time.monotonic() - 7.0) as line:
        line.show("compiling 12 of 60 kernels")
        assert seen(terminal) == "compiling 12 of 60 kernels: 7 s"
        line.show("too soon")
        assert seen(terminal) == "compiling 12 of 60 kernels: 7 s"
        time.sleep(0.21)
        line.show("short")
        assert seen(terminal) == "short: 7 s"
        assert len(terminal.getvalue().split("\r")[-1]) == len("compiling 12 of 60 kernels: 7 s"), "the rest is erased"
    assert seen(terminal) == "" and "\n" not in terminal.getvalue()


def test_short_work_shows_nothing(terminal):
    with progress.ProgressLine() as line:
        line.show("compiling")
    assert terminal.getvalue() == ""


def test_nothing_is_shown_in_a_file_or_when_quiet_is_asked_for(terminal, monkeypatch):
    before = wp.config.log_level
    wp.config.quiet = True
    try:
        with progress.ProgressLine(time.monotonic() - 7.0) as line:
            line.show("compiling")
    finally:
        wp.config.log_level = before
    assert terminal.getvalue() == ""
    file = io.StringIO()
    show_on(file, monkeypatch)
    with progress.ProgressLine(time.monotonic() - 7.0) as line:
        line.show("compiling")
    assert file.getvalue() == ""


def test_loading_many_kernels_tells_how_many_are_done(terminal, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)

    def make(factor):
        @wp.kernel(module="unique")
        def scale(x: wp.array[float]):
            i = wp.tid()
            for _ in range(8):
                x[i] = wp.sin(x[i]) * wp.static(factor)

        return scale

    kernels = [make(0.5 + step) for step in range(5)]
    wp.force_load(modules=[kernel.module for kernel in kernels], device="cpu")
    assert "of 5 kernels" in terminal.getvalue() and seen(terminal) == ""


PROGRAM = """
import warp as wp

lines = [f"    a{i + 1} = wp.sin(a{i}) * a{i // 2} + wp.exp(a{i // 3})" for i in range(LINES)]
text = "import warp as wp\\n@wp.kernel\\ndef large(x: wp.array[float]):\\n    a0 = x[0]\\n" + "\\n".join(lines)
open("large.py", "w").write(text + f"\\n    x[0] = a{LINES}\\n")
import large

wp.launch(large.large, 1, [wp.zeros(1, device="cpu")], device="cpu")
print("done")
"""


def test_a_launch_that_waits_for_its_compiler_says_so(tmp_path):
    """In a terminal of its own, with a kernel that takes some seconds."""
    main, child = pty.openpty()
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("LINES", "6000"))
    environment = {**os.environ, "WARP_CACHE_PATH": str(tmp_path / "cache")}
    process = subprocess.Popen(
        [sys.executable, program], cwd=tmp_path, env=environment, stderr=child, stdout=subprocess.PIPE
    )
    assert process.communicate()[0].strip() == b"done"
    os.close(child)
    text = os.read(main, 1 << 16).decode()
    os.close(main)
    assert "compiling kernel large: 2 s" in text
