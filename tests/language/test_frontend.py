"""From Python functions to syntax trees and names: the search for the source, places, the meaning of names."""

import enum
import linecache
import math
import subprocess
import sys
import types

import numpy as np
import pytest
import warp as wp
from warp import _weft

pytestmark = pytest.mark.cpu_only("runs no kernel: names, syntax trees, errors of the compiler")

SPEED = 3
DELTA = np.float64(0.25)
ORIGIN = wp.vec3(1.0, 2.0, 3.0)
TABLE = (1, 2.5, (True, None))
TEXT = "text"
HUGE = 2**70
DTYPE = np.dtype("float16")
loop = [1]
loop.append(loop)


class Color(enum.IntEnum):
    RED = 4


class Mode:
    FAST = wp.constant(7)

    class Inner:
        DEEP = 2.5


@wp.func
def helper(x: float):
    return x


def plain(x):
    return x


def lines_of(function):
    return _weft.syntax(function).splitlines()


# ---- finding the source ----


def simple(a: float):
    b = a + 1.0
    return b


def test_a_module_function_is_read():
    assert "simple" in _weft.syntax(simple) and "1" in _weft.syntax(simple)


@pytest.mark.seed("S-KRN-011", "S-KRN-012")
def test_functions_inside_functions_and_classes_with_odd_indentation():
    if True:
           def odd(a: float,  # noqa: E117
               b: float):
            # a comment at its own level
   # and one far to the left

              x = a  # noqa: E117

              text = """
left of everything
"""
              if x > 0.0:
               x = (b +
 1.0)
              return x
    shown = _weft.syntax(odd)
    assert "return" in shown and "left of everything" in shown and "assert" not in shown

    class Holder:
        @staticmethod
        def inside(a):
            return a * 2

    assert "inside" in _weft.syntax(Holder.inside)


def test_the_last_line_of_a_function_is_found():
    def first(a):
        x = """)
        def second(): pass
        """
        y = a[
0
        ]
        z = 'it\'s # no comment' + "(("; return {x: y, z: 1}  # (
    def second(a): return a  # noqa: E301, E704
    third = 1
    assert "UnsupportedStatement" not in _weft.syntax(first)
    shown = _weft.syntax(first)
    assert "dict" in shown and "third" not in shown
    assert "third" not in _weft.syntax(second) and "return" in _weft.syntax(second) and third


def decorate(*_):
    return lambda f: f


@decorate(
    1,
    "def fake(): pass",
)
@decorate()
def decorated(a):
    return a


def test_decorators_over_several_lines():
    assert "decorated" in _weft.syntax(decorated)


def test_docstrings_and_unicode():
    def unicode(a):
        """Ä docstring: 日本語."""
        é = a
        return é + "日" + missing  # noqa: F821

    assert "é" in _weft.syntax(unicode)


def test_a_lambda_is_refused():
    with pytest.raises(wp.UsageError, match="def"):
        _weft.syntax(lambda x: x)


def test_source_that_python_cannot_give():
    space = {}
    exec("def lost(a):\n    return a\n", space)
    with pytest.raises(wp.UsageError, match="linecache") as caught:
        _weft.syntax(space["lost"])
    assert "lost" in str(caught.value) and isinstance(caught.value, RuntimeError)


def test_source_registered_in_linecache_as_notebooks_do():
    text = "if True:\n    def cell(a):\n        return a + 41\n"
    linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(keepends=True), "<cell 1>")
    space = {}
    exec(compile(text, "<cell 1>", "exec"), space)
    assert "41" in _weft.syntax(space["cell"])


@pytest.mark.skipif(sys.version_info < (3, 13), reason="Python keeps the text of -c from 3.13 on")
def test_source_from_the_command_line():
    code = "from warp import _weft\ndef f(a):\n    return a + 43\nprint(_weft.syntax(f))"
    assert "43" in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_a_file_that_changed_after_its_import(tmp_path):
    path = tmp_path / "changing.py"
    path.write_text("x = 1\ndef early(a):\n    return a\n")
    module = types.ModuleType("changing")
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    path.write_text("x = 1\ny = 2\ndef early(a):\n    return a\n")
    with pytest.raises(wp.UsageError, match="changed|no source"):
        _weft.syntax(module.early)


def test_tabs_and_carriage_returns(tmp_path):
    path = tmp_path / "tabs.py"
    path.write_bytes(b"class A:\r\n\tdef f(a):\r\n\t\tif a:\r\n\t\t\treturn a\r\n\t\treturn a + 5\r\n\tz = 9\r\n")
    space = {}
    exec(compile(path.read_bytes(), str(path), "exec"), space)
    assert "5" in _weft.syntax(space["A"].f) and "9" not in _weft.syntax(space["A"].f)


# ---- names ----


def asking():
    return None


def meaning(name, function=asking):
    return _weft.meaning(function, name)


@pytest.mark.seed("S-CON-001")
def test_plain_numbers_are_literals():
    assert meaning("SPEED") == {"kind": "constant", "type": "int32", "value": 3, "literal": True}
    assert meaning("math.pi") == {"kind": "constant", "type": "float32", "value": math.pi, "literal": True}
    assert meaning("__debug__")["type"] == "bool"
    assert meaning("HUGE")["kind"] == "unsupported"


def test_typed_values_keep_their_type():
    assert meaning("DELTA") == {"kind": "constant", "type": "float64", "value": 0.25, "literal": False}
    assert meaning("ORIGIN") == {"kind": "constant", "type": "vec3f", "value": ORIGIN, "literal": False}


@pytest.mark.seed("S-CON-002")
def test_constants_in_classes_enums_and_modules():
    assert meaning("Mode.FAST")["value"] == 7 and meaning("Mode.Inner.DEEP")["value"] == 2.5
    assert meaning("Color.RED")["value"] == 4
    assert meaning("wp.pi")["value"] == math.pi
    assert meaning("Mode.SLOW") == {"kind": "unknown"} and meaning("SPEED.real") == {"kind": "unknown"}


def test_types_functions_and_builtins():
    assert meaning("wp.vec3") == {"kind": "type", "type": "vec3f"}
    for name, type_name in {"float": "float32", "int": "int32", "bool": "bool", "np.int8": "int8", "DTYPE": "float16"}.items():
        assert meaning(name) == {"kind": "type", "type": type_name}
    assert meaning("helper")["kind"] == "function" and helper.key in meaning("helper")["text"]
    for name in ("min", "max", "abs", "len", "print", "pow", "round", "range", "reversed"):
        assert meaning(name) == {"kind": "builtin", "text": name}


def test_text_none_and_tuples():
    assert meaning("TEXT") == {"kind": "string", "text": "text"}
    kinds = [element["kind"] for element in meaning("TABLE")["elements"]]
    assert kinds == ["constant", "constant", "tuple"]
    assert meaning("loop")["kind"] == "tuple"


def test_what_kernels_cannot_use_is_named():
    assert meaning("math.sin") == {"kind": "builtin", "text": "sin"}  # the kernel's own
    assert "@wp.func" in meaning("plain")["text"] and "sorted" in meaning("sorted")["text"]
    for name in ("plain", "sorted", "np.sin"):
        assert meaning(name)["kind"] == "unsupported"
    assert meaning("math") == {"kind": "object", "text": "the module 'math'"}
    assert meaning("nowhere") == {"kind": "unknown"}


def test_closures_are_read_when_asked():
    def inner():
        return value + late  # noqa: F821

    assert meaning("late", inner) == {"kind": "unknown"}
    value, late = 1, 2
    assert meaning("value", inner)["value"] == 1 and meaning("late", inner)["value"] == 2
    value = 5
    assert meaning("value", inner)["value"] == 5


def test_closures_hide_globals_which_hide_builtins():
    def inner():
        return SPEED, abs

    SPEED = 10  # noqa: N806
    assert meaning("SPEED", inner)["value"] == 10
    space = {"abs": 3}
    text = "def f():\n    return abs\n"
    linecache.cache["<abs>"] = (len(text), None, text.splitlines(keepends=True), "<abs>")
    exec(compile(text, "<abs>", "exec"), space)
    assert meaning("abs", space["f"])["value"] == 3


# ---- parameters ----


def test_annotations_in_every_spelling():
    def annotated(a: float, b: wp.vec3, c: "wp.float64", d, e: np.int16, g: "Local", h: bool = True, i: int = 4):  # noqa: F821
        Local  # noqa: B018, F821

    Local = wp.mat22d  # noqa: N806
    names = [(name, type_name) for name, type_name, _ in _weft.parameters(annotated)]
    assert names == [
        ("a", "float32"),
        ("b", "vec3f"),
        ("c", "float64"),
        ("d", ""),
        ("e", "int16"),
        ("g", "mat22d"),
        ("h", "bool"),
        ("i", "int32"),
    ]
    defaults = [default["kind"] for _, _, default in _weft.parameters(annotated)]
    assert defaults == ["unknown"] * 6 + ["constant"] * 2


def test_an_annotation_that_is_no_type():
    def wrong(a: float, b: str):
        pass

    with pytest.raises(wp.CompileError, match="parameter 'b' is the class str") as caught:
        _weft.parameters(wrong)
    assert isinstance(caught.value, TypeError) and caught.value.path == __file__
    assert caught.value.line == wrong.__code__.co_firstlineno and caught.value.column == 25


def test_an_annotation_that_cannot_be_evaluated():
    def wrong(a: "no_such_type"):  # noqa: F821
        pass

    with pytest.raises(wp.CompileError, match="NameError: name 'no_such_type' is not defined"):
        _weft.parameters(wrong)


# ---- wp.static ----


def values_of(function, constants=None):
    """Every expression of the function that Python can evaluate."""
    values = {}
    for number in range(200):
        try:
            values[number] = _weft.value_of_expression(function, number, constants or {}).get("value")
        except wp.UsageError:
            values[number] = None
        except wp.InternalError:
            break
    return [value for value in values.values() if value is not None]


def test_expressions_are_evaluated_with_globals_closure_and_constants():
    factor = 6

    def kernel():
        a = sum(i * factor for i in range(SPEED))  # noqa: F841
        b = (factor +  # a comment
             SPEED * k)  # noqa: F821, F841

    values = values_of(kernel, {"k": 100})
    assert 18 in values and 306 in values


def test_a_failing_static_expression_reports_pythons_message():
    def kernel():
        return 1 / 0

    with pytest.raises(wp.UsageError, match="ZeroDivisionError: division by zero"):
        for number in range(3):
            _weft.value_of_expression(kernel, number)
