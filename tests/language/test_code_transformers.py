"""wp.Kernel(f, code_transformers=[...]) and wp.Kernel(f, source=...): kernels whose text is changed before."""

import ast

import numpy as np
import pytest
import warp as wp

OFFSET = 100.0


def fill(out: wp.array[float], factor: float):
    i = wp.tid()
    if factor > 1.0:
        out[i] = 1.0 * factor + OFFSET
    else:
        out[i] = -1.0


class Replaced(ast.NodeTransformer):
    """Another number in the place of one."""

    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit_Constant(self, node):
        return ast.copy_location(ast.Constant(self.new), node) if node.value == self.old else node


def run(kernel, *arguments):
    out = wp.zeros(3, dtype=float)
    wp.launch(kernel, dim=3, inputs=[out, *arguments])
    return out.numpy().tolist()


def test_transformers_change_the_kernel_in_their_order():
    plain = wp.Kernel(fill, key="plain")
    changed = wp.Kernel(fill, key="changed", code_transformers=[Replaced(1.0, 3.0), Replaced(3.0, 4.0)])
    assert run(plain, 2.0) == [102.0] * 3
    assert run(changed, 5.0) == [120.0] * 3
    assert run(changed, 2.0) == [-4.0] * 3, "the condition has changed, too"
    assert (changed.key, changed.func.__name__, changed.func.__module__) == ("changed", "fill", __name__)
    assert changed.hash != plain.hash


def test_names_of_functions_around_it_are_there():
    scale, unused = 7.0, 8.0

    def kernel(out: wp.array[float]):
        out[wp.tid()] = 2.0 * scale

    made = wp.Kernel(kernel, code_transformers=[Replaced(2.0, 3.0)])
    assert run(made) == [21.0] * 3
    assert unused == 8.0


def test_gradients_are_those_of_the_changed_text():
    kernel = wp.Kernel(fill, key="differentiated", code_transformers=[Replaced(1.0, 1.5)])
    out = wp.zeros(3, dtype=float, requires_grad=True)
    factor = wp.array([2.0], dtype=float, requires_grad=True)

    def reads(out: wp.array[float], factor: wp.array[float]):
        out[wp.tid()] = 1.0 * factor[0] * factor[0]

    kernel = wp.Kernel(reads, code_transformers=[Replaced(1.0, 5.0)])
    with wp.Tape() as tape:
        wp.launch(kernel, dim=3, inputs=[out, factor])
    out.grad.fill_(1.0)
    tape.backward()
    np.testing.assert_allclose(factor.grad.numpy(), [3 * 2 * 5.0 * 2.0])


def test_source_takes_the_place_of_the_text():
    text = "    def fill(out: wp.array[float], factor: float):\n        out[wp.tid()] = factor - 1.0\n"
    assert run(wp.Kernel(fill, key="other", source=text), 5.0) == [4.0] * 3
    both = wp.Kernel(fill, key="both", source=text, code_transformers=[Replaced(1.0, 2.0)])
    assert run(both, 5.0) == [3.0] * 3


def test_errors_show_the_changed_text():
    kernel = wp.Kernel(
        fill, key="wrong", source="def fill(out: wp.array[float], factor: float):\n    out[0] = missing\n"
    )
    with pytest.raises(wp.CompileError, match="out\\[0\\] = missing") as caught:
        run(kernel, 1.0)
    assert "<transformed fill " in str(caught.value)


class Gone(ast.NodeTransformer):
    def visit_FunctionDef(self, node):
        return None


@pytest.mark.parametrize(
    "options, kind, message",
    [
        ({"code_transformers": [3]}, TypeError, "3 is no code transformer"),
        ({"code_transformers": [Gone()]}, ValueError, "the text has no function 'fill' left"),
        ({"source": 3}, TypeError, "expected the text of a function"),
        ({"source": "def fill("}, ValueError, "the source is no Python"),
        ({"source": "def other(): ..."}, ValueError, "has no function 'fill' left"),
    ],
)
def test_what_is_no_text_or_transformer_is_refused(options, kind, message):
    with pytest.raises(kind, match=message):
        wp.Kernel(fill, key="refused", **options)


def test_functions_without_a_text_are_refused():
    code = {}
    exec("def nowhere(): ...", code)
    with pytest.raises(ValueError, match="there is no text of 'nowhere' to change"):
        wp.Kernel(code["nowhere"], code_transformers=[Replaced(1.0, 2.0)])
