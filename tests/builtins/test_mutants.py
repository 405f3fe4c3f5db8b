"""Wrong kernels: each compiles or is a Weft exception at a line of it; never a crash, an internal error or a hang."""

import random
import warnings

import pytest
import warp as wp
from mutants import mutant
from programs import Program
from sweep import load

pytestmark = pytest.mark.cpu_only("runs no kernel: names, syntax trees, errors of the compiler")

DECORATOR = "@wp.func\n"
# Errors of Python and wp.array[...] for a module that cannot be read: of names, calls and numbers in annotations and
# defaults, of files. Anything else is a fault of ours.
UNREADABLE = (NameError, AttributeError, TypeError, ValueError, ArithmeticError, OSError, wp.UsageError)


def refused(source, path, name, listing):
    """Whether the kernel of this text is a mistake; fails if that gives anything but a Weft exception."""
    # The functions are declared here, not by the text: an earlier failure is Python's own, as an annotation
    # that makes no sense.
    text = "from typing import Any, Callable\n\nimport warp as wp\n\n\n" + source.replace(DECORATOR, "")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            module = load(text, path, name)
    except UNREADABLE as error:
        assert not isinstance(error, wp.InternalError), f"{error}\n{text}"
        return True
    try:
        for function in [v for v in vars(module).values() if getattr(v, "__module__", None) == name]:
            if function.__name__ != "program":
                setattr(module, function.__name__, wp.func(function))
        wp.kernel(module.program).listing(listing)
    except wp.CompileError as error:
        lines = text.splitlines()
        assert error.path == module.__file__ and 0 < error.line <= len(lines), f"{error.path}:{error.line}\n{text}"
        assert lines[error.line - 1].strip() in str(error), f"{error}\n{text}"
        return True
    except wp.UsageError as error:
        assert str(error), text
        return True
    except Exception as error:
        pytest.fail(f"{type(error).__name__}: {error}\n{text}")
    return False


def check(first, count, folder):
    """How many of the kernels were refused."""
    found = 0
    for seed in range(first, first + count):
        choose = random.Random(seed)
        # Down to machine code for some: later stages must take every program that sema accepts.
        listing = "assembly" if seed % 20 == 0 else "ir"
        found += refused(mutant(Program(choose).source(), choose), folder, f"mutant_{seed}", listing)
    return found


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_wrong_kernels_are_weft_exceptions(tmp_path):
    assert check(0, 200, tmp_path) > 60


@pytest.mark.large
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("first", range(0, 10_000, 1000))
def test_ten_thousand_wrong_kernels(tmp_path, first):
    assert check(10**6 + first, 1000, tmp_path) > 300
