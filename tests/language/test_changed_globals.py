"""Values that kernels take from names outside of them: one that changes is told. Defaults of parameters."""

import math
import re
import types

import pytest
import warp as wp
from kept_warnings import Warnings

COUNT = 3
SCALE = wp.constant(2.0)
AXES = (1, 2)
settings = types.ModuleType("settings")
settings.limit = 10


@wp.func
def scaled(x: float):
    return x * SCALE


@wp.kernel
def counts(x: wp.array[float]):
    x[0] = float(COUNT)


@wp.kernel
def through_a_function(x: wp.array[float]):
    x[0] = scaled(1.0)


@wp.kernel
def of_a_module(x: wp.array[float]):
    x[0] = float(settings.limit) + math.pi


@wp.kernel
def of_a_tuple(x: wp.array[float]):
    x[0] = float(AXES[0])


@pytest.fixture
def warnings_of_weft():
    with Warnings() as found:
        yield found


def run(kernel, device):
    x = wp.zeros(1, device=device)
    wp.launch(kernel, 1, inputs=[x], device=device)
    return x.numpy()[0]


CASES = [
    (counts, "COUNT", "3", 4, 3.0, 4.0),
    (through_a_function, "SCALE", "2.0", 5.0, 2.0, 5.0),
    (of_a_tuple, "AXES", r"\(1, 2\)", (7, 8), 1.0, 7.0),
]


@pytest.mark.parametrize(("kernel", "name", "shown", "value", "before", "after"), CASES, ids=lambda v: str(v))
def test_a_global_that_has_changed_is_told_once(
    kernel, name, shown, value, before, after, device, monkeypatch, warnings_of_weft
):
    kernel.module.mark_modified()
    assert run(kernel, device) == before
    monkeypatch.setitem(globals(), "another", 1)
    monkeypatch.setitem(globals(), name, type(value)(globals()[name]))
    assert run(kernel, device) == before and warnings_of_weft == []
    monkeypatch.setitem(globals(), name, value)
    assert run(kernel, device) == run(kernel, device) == before
    assert len(warnings_of_weft) == 1
    text = f"'{name}' was {shown} and is {re.escape(str(value))} now, and kernel '{kernel.key}' goes on with the value"
    assert re.match(text, warnings_of_weft[0])
    kernel.module.mark_modified()
    assert run(kernel, device) == after and len(warnings_of_weft) == 1
    monkeypatch.undo()
    assert run(kernel, device) == after and len(warnings_of_weft) == 2


def test_an_attribute_of_a_module_and_a_variable_of_a_closure(monkeypatch, warnings_of_weft):
    of_a_module.module.mark_modified()
    run(of_a_module, "cpu")
    monkeypatch.setattr(settings, "limit", 11)
    run(of_a_module, "cpu")
    assert len(warnings_of_weft) == 1 and warnings_of_weft[0].startswith("'limit' was 10 and is 11 now")

    def make():
        size = 5

        @wp.kernel
        def closes(x: wp.array[float]):
            x[0] = float(size)

        def change(value):
            nonlocal size
            size = value

        return closes, change

    (first, change), (second, _) = make(), make()
    assert run(first, "cpu") == run(second, "cpu") == 5.0
    change(6)
    assert run(second, "cpu") == 5.0 and len(warnings_of_weft) == 1
    assert run(first, "cpu") == 5.0 and warnings_of_weft[1].startswith("'size' was 5 and is 6 now")


def test_names_that_no_kernel_took_a_value_from_are_told_nothing(monkeypatch, warnings_of_weft):
    run(counts, "cpu")
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    monkeypatch.delitem(globals(), "AXES")
    run(counts, "cpu")
    assert warnings_of_weft == []


# ---- defaults of parameters ----


def test_defaults_of_parameters_stand_for_arguments_that_are_missing(device):
    @wp.kernel
    def k(x: wp.array[float], a: float = 2.0, v: wp.vec2 = wp.vec2(3.0, 4.0), y: wp.array[float] = None):
        i = wp.tid()
        x[i] = a + v[1]
        if y:
            x[i] += y[i]

    x, y = wp.zeros(3, device=device), wp.ones(3, device=device)
    for given, expected in (([], 6.0), ([10.0], 14.0), ([10.0, (0.0, 1.0)], 11.0), ([10.0, (0.0, 1.0), y], 12.0)):
        wp.launch(k, 3, inputs=[x, *given], device=device)
        assert x.numpy().tolist() == [expected] * 3
    wp.launch(k, 3, inputs=[], outputs=[x], device=device)
    command = wp.launch(k, 3, inputs=[x], device=device, record_cmd=True)
    command.set_param_by_name("a", 1.0)
    command.launch()
    assert x.numpy().tolist() == [5.0] * 3
    with pytest.raises(TypeError, match=r"got 0 arguments .*takes 4"):
        wp.launch(k, 3, inputs=[], device=device)
    with pytest.raises(TypeError, match=r"got 5 arguments .*takes 4"):
        wp.launch(k, 3, inputs=[x, 1.0, (1.0, 2.0), y, y], device=device)


def test_defaults_of_generic_kernels_and_in_gradients(device):
    from typing import Any

    @wp.kernel
    def k(x: wp.array(dtype=Any), y: wp.array(dtype=Any), a: float = 3.0):
        i = wp.tid()
        y[i] = x[i] * x.dtype(a)

    for dtype in (wp.float32, wp.float64):
        x, y = (wp.ones(3, dtype=dtype, requires_grad=True, device=device) for _ in range(2))
        with wp.Tape() as tape:
            wp.launch(k, 3, inputs=[x], outputs=[y], device=device)
        tape.backward(grads={y: wp.ones(3, dtype=dtype, device=device)})
        assert y.numpy().tolist() == x.grad.numpy().tolist() == [3.0] * 3
    x.grad.zero_()
    seeds = wp.ones(3, dtype=wp.float64, device=device)
    wp.launch(k, 3, inputs=[x], outputs=[y], adj_inputs=[x.grad], adj_outputs=[seeds], adjoint=True, device=device)
    assert x.grad.numpy().tolist() == [3.0] * 3


def test_a_default_of_the_wrong_type_is_refused_by_its_name():
    @wp.kernel
    def k(x: wp.array[float], a: float = "two"):
        x[0] = a

    with pytest.raises(TypeError, match=r"argument 2 'a' of kernel 'k'"):
        wp.launch(k, 1, inputs=[wp.zeros(1)])
