"""Our three kinds of error are also the builtin that a caller would catch."""

import pickle

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
