"""@wp.func_native: mistakes in snippets, and machines without a clang."""

import os
import shutil
import subprocess
import sys
from typing import Any

import pytest
import warp as wp
from native_functions import NAMES, needs_clang, run, square


def test_snippets_that_are_none():
    with pytest.raises(TypeError, match=r"func_native\(\): the snippet is 3 of type int, expected a string of C\+\+"):
        wp.func_native(3)
    with pytest.raises(TypeError, match=r"write @wp.func_native\(snippet\) above the `def`"):

        @wp.func_native
        def f(x: int): ...

    with pytest.raises(TypeError, match="adj_snippet is 1"):
        wp.func_native("", adj_snippet=1)
    with pytest.raises(TypeError, match="replay_snippet is b''"):
        wp.func_native("", replay_snippet=b"")
    with pytest.raises(ValueError, match="no valid Unicode"):
        wp.func_native("return '\ud800';")
    with pytest.raises(ValueError, match="null character"):
        wp.func_native("\0")
    with pytest.raises(TypeError, match=r"func_native\(\): expected a Python function, found 3"):
        wp.func_native("return 1;")(3)


def kernel_of(function, expression="x[i]", result=True):
    """A kernel that calls the function with the expression."""
    scope = {"wp": wp, "function": function}
    target = "y[i] = " if result else ""
    source = f"def run(x: wp.array[float], y: wp.array[float]):\n    i = wp.tid()\n    {target}function({expression})\n"
    import linecache

    path = f"<kernel {len(linecache.cache)}>"
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    exec(compile(source, path, "exec"), scope)
    return wp.kernel(scope["run"])


@needs_clang
@pytest.mark.parametrize(
    "snippet, line, column, message",
    [
        ("return x + yy;", 1, 12, "use of undeclared identifier 'yy'"),
        ("\n\n  float z = x;\n  return z +;", 4, 13, "expected expression"),
        ("return vec3(1, 2, x);", 1, 8, "no viable conversion"),
        ("return length(vec3(x, x));", 1, 15, "a vector is made of all its components"),
        ("throw x;", 1, 1, "exceptions disabled|cannot use 'throw'"),
        ("#include <nothing_of_this_name.h>\nreturn x;", 1, 10, "file not found"),
    ],
)
def test_mistakes_of_the_snippet_are_shown_at_its_line(snippet, line, column, message):
    @wp.func_native(snippet)
    def wrong(x: float) -> float: ...

    with pytest.raises(wp.CompileError, match=message) as caught:
        run(kernel_of(wrong))
    error = caught.value
    assert (error.path, error.line, error.column) == ("<C++ of 'wrong'>", line, column)
    text = str(error)
    assert snippet.splitlines()[line - 1].strip() in text
    assert "note: 'wrong' is called here" in text and "function(x[i])" in text and "the compiler is " in text


@needs_clang
@pytest.mark.parametrize(
    "snippet, result, message",
    [
        ("x = 2;", float, "not every path of it returns a value"),
        ("if (x > 0) { return x;", float, "'wrong' does not compile.*braces"),
        ("return x; } int other() {", float, "'wrong' does not compile"),
        ("return x;", None, "void function 'wrong' should not return a value.*annotate the Python function"),
        ("return std::sqrt(x);", float, "'std'.*include its header: a line such as #include <cmath>"),
    ],
)
def test_mistakes_say_what_would_work(snippet, result, message):
    def wrong(x: float): ...

    wrong.__annotations__["return"] = result
    if result is not None:

        def wrong(x: float) -> float: ...

    with pytest.raises(wp.CompileError, match=f"(?s){message}"):
        run(kernel_of(wp.func_native(snippet)(wrong), result=result is not None))


def test_types_that_cpp_does_not_have():
    @wp.func_native("return x;")
    def f(x) -> float: ...

    with pytest.raises(wp.CompileError, match=r"argument 'x' of the C\+\+ function 'f' is the built-in function 'sin'"):
        run(kernel_of(f, "wp.sin"))
    with pytest.raises(wp.CompileError, match=r"argument 'x' of the C\+\+ function 'f' is a tuple"):
        run(kernel_of(f, "(1.0, 2.0)"))

    @wp.func_native("return x;")
    def g(x: float) -> tuple[float, float]: ...

    with pytest.raises(wp.CompileError, match=r"cannot return tuple\[float32, float32\]\n(.*\n)*help: return a struct"):
        run(kernel_of(g))

    @wp.func_native("return x;")
    def h(x: float) -> wp.array[float]: ...

    with pytest.raises(wp.CompileError, match=r"cannot return array\[float32\]"):
        run(kernel_of(h))

    @wp.func_native("return x;")
    def k(x: float) -> Any: ...

    with pytest.raises(wp.CompileError, match="has no single type"):
        run(kernel_of(k))

    @wp.func_native("return new_;")
    def m(new: float) -> float: ...

    with pytest.raises(wp.CompileError, match=r"parameter 'new' of the C\+\+ function 'm' is a word of C\+\+"):
        run(kernel_of(m))

    with pytest.raises(wp.CompileError, match="argument 'x' of 'square' is int32, expected float32"):
        run(kernel_of(square, "i, 1.0"))


@pytest.fixture
def no_cache(monkeypatch):
    monkeypatch.setattr(wp.config, "cache_kernels", False)


def test_without_a_clang_the_kernel_is_refused(monkeypatch, tmp_path, no_cache):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("WEFT_CLANG", raising=False)
    message = r"'square' is written in C\+\+, which needs a clang on this machine: there is none in the folders of PATH"
    with pytest.raises(wp.CompileError, match=message) as caught:
        run(kernel_of(square, "x[i], 1.0"))
    text = str(caught.value)
    assert all(name in text for name in NAMES)
    assert "wp.config.host_compiler" in text and "WEFT_CLANG" in text
    assert caught.value.line == 3 and "function(x[i], 1.0)" in text
    # Everything else needs none.
    assert "native" in kernel_of(square, "x[i], 1.0").listing("ir")


def test_the_clang_can_be_named(monkeypatch, tmp_path, no_cache):
    monkeypatch.setenv("WEFT_CLANG", "/nowhere/clang++")
    with pytest.raises(wp.CompileError, match="variable WEFT_CLANG is '/nowhere/clang.*', which is no program"):
        run(kernel_of(square, "x[i], 1.0"))
    monkeypatch.setattr(wp.config, "host_compiler", "no-such-clang")
    with pytest.raises(wp.CompileError, match="wp.config.host_compiler is 'no-such-clang', which is no program"):
        run(kernel_of(square, "x[i], 1.0"))
    script = tmp_path / "clang"
    script.write_text("#!/bin/sh\necho something is broken >&2\nexit 3\n")
    script.chmod(0o755)
    monkeypatch.setattr(wp.config, "host_compiler", script)
    with pytest.raises(wp.CompileError, match="(?s)it ended with status 3.*it says: something is broken"):
        run(kernel_of(square, "x[i], 1.0"))


@needs_clang
def test_a_named_clang_is_used(monkeypatch, tmp_path, no_cache):
    real = next(filter(None, [os.environ.get("WEFT_CLANG"), *map(shutil.which, NAMES)]))
    script = tmp_path / "my-clang"
    script.write_text(f'#!/bin/sh\ntouch "{tmp_path}/used"\nexec "{real}" "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("WEFT_CLANG", str(script))
    assert run(kernel_of(square, "x[i], 1.0")) == [2.0, 5.0, 10.0]
    assert (tmp_path / "used").exists()


PROGRAM = """
import warp as wp


@wp.func_native("return x * 3;")
def triple(x: int) -> int: ...


@wp.kernel
def run(out: wp.array[int]):
    out[0] = triple(7)


out = wp.zeros(1, dtype=int)
wp.launch(run, dim=1, inputs=[out])
print(out.numpy()[0])
"""


@needs_clang
def test_compiled_kernels_need_no_clang_any_more(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    environment = {**os.environ, "WARP_CACHE_PATH": str(tmp_path / "cache")}
    for paths in (environment["PATH"], str(tmp_path)):
        result = subprocess.run(
            [sys.executable, path], env={**environment, "PATH": paths}, capture_output=True, text=True
        )
        assert result.stdout == "21\n", result.stderr


@needs_clang
def test_symbols_that_nobody_has(no_cache):
    @wp.func_native("struct Q { static int f(); }; return float(Q::f());")
    def lost(x: float) -> float: ...

    error, message = wp.UsageError, r"the C\+\+ of kernel 'run' uses .*, which this process does not have"
    if wp.get_device().is_cuda:
        error, message = wp.CompileError, r"the C\+\+ of 'lost' uses .*Q::f\(\)', which CUDA devices do not have"
    with pytest.raises(error, match=message):
        run(kernel_of(lost))
