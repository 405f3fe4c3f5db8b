"""Our three kinds of error are also the builtin that a caller would catch."""

import builtins
import pickle
import traceback

import pytest
import warp as wp


def raised(make):
    with pytest.raises(wp.UsageError) as caught:
        make()
    return caught.value


@pytest.mark.parametrize(
    ("make", "builtin"),
    [
        (lambda: wp.vec3("x"), TypeError),
        (lambda: wp.types.vector(0, float), ValueError),
        (lambda: wp.vec3()[3], IndexError),
        (lambda: wp.vec2().z, AttributeError),
    ],
)
def test_a_usage_error_is_also_its_builtin_and_always_a_runtime_error(make, builtin):
    error = raised(make)
    assert isinstance(error, builtin) and isinstance(error, RuntimeError)
    assert type(error).__name__ == "UsageError" and type(error).__module__ == "warp"


def test_errors_survive_pickling():
    error = raised(lambda: wp.vec3()[3])
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)
    assert isinstance(pickle.loads(pickle.dumps(wp.UsageError("text"))), wp.UsageError)


def test_a_compile_error_knows_its_place():
    def wrong(a: str):
        pass

    with pytest.raises(wp.CompileError) as caught:
        wp._weft.parameters(wrong)
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.path == __file__ and error.line == wrong.__code__.co_firstlineno and error.column == 15
    assert f"{__file__}:{error.line}:15: error:" in str(error) and "def wrong(a: str):" in str(error)


def test_the_kinds_are_classes_of_their_own():
    assert not issubclass(wp.UsageError, wp.CompileError) and issubclass(wp.InternalError, RuntimeError)


@wp.kernel
def with_syntax_that_kernels_have_not(x: wp.array[float]):
    with x:
        pass


@wp.kernel
def with_an_unknown_name(x: wp.array[float]):
    x[0] = not_there  # noqa: F821


def compile_error(kernel):
    with pytest.raises(wp.CompileError) as caught:
        wp.launch(kernel, dim=1, inputs=[wp.zeros(1)])
    return caught.value


def test_a_traceback_shows_the_text_of_every_error():
    error = compile_error(with_syntax_that_kernels_have_not)
    assert isinstance(error, SyntaxError) and error.msg == str(error)
    for shown in (error, pickle.loads(pickle.dumps(error))):
        text = "".join(traceback.format_exception_only(shown))
        assert text == f"warp.CompileError: {error}\n"
    for builtin in (KeyError, AttributeError, IndexError, NameError, OverflowError, MemoryError, AssertionError):
        shown = wp._weft.usage_error("text\nof two lines", builtin)
        assert "".join(traceback.format_exception_only(shown)) == "warp.UsageError: text\nof two lines\n"


def test_an_unknown_name_is_a_key_error_and_a_name_error():
    error = compile_error(with_an_unknown_name)
    assert isinstance(error, KeyError) and isinstance(error, NameError) and isinstance(error, wp.WarpCodegenKeyError)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)


def test_a_mistake_in_a_kernel_names_the_kernel():
    for kernel in (with_syntax_that_kernels_have_not, with_an_unknown_name):
        assert f"note: in kernel '{kernel.key}'" in str(compile_error(kernel)).splitlines()


def test_the_names_of_1_19_for_mistakes_in_kernels():
    assert wp.WarpCodegenError is wp.CompileError
    for name in ("Attribute", "Index", "Key", "Type", "Value"):
        kind = getattr(wp, f"WarpCodegen{name}Error")
        assert issubclass(kind, wp.CompileError) and issubclass(kind, getattr(builtins, f"{name}Error"))
