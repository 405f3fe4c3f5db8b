"""The module option programmatic_launch: launches that may begin while the one in front ends, and wait for it."""

import re

import numpy as np
import pytest
import warp as wp
from emulated_driver import driver_library

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]

DEVICE = "cuda:0"
N = 300
EARLY = {"programmatic_launch": True}


@wp.kernel(module="programmatic", module_options=EARLY)
def shift(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[(i + 1) % x.shape[0]] * 0.5 + 1.0


@wp.kernel
def shift_in_order(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[(i + 1) % x.shape[0]] * 0.5 + 1.0


def chain(kernel, x, y, steps=6):
    for _ in range(steps // 2):
        wp.launch(kernel, N, inputs=[x, y], device=DEVICE)
        wp.launch(kernel, N, inputs=[y, x], device=DEVICE)


def expected(x, steps=6):
    for _ in range(steps):
        x = np.roll(x, -1) * np.float32(0.5) + np.float32(1)
    return x


def numbers():
    return np.random.default_rng(5).random(N, dtype=np.float32)


def arrays():
    return wp.array(numbers(), dtype=float, device=DEVICE), wp.zeros(N, dtype=float, device=DEVICE)


def has_programmatic_launches():
    return wp.get_device(DEVICE).arch >= 90


def test_a_chain_has_the_same_results():
    x, y = arrays()
    chain(shift, x, y)
    np.testing.assert_array_equal(x.numpy(), expected(numbers()))


def test_a_graph_of_a_chain_has_the_same_results():
    x, y = arrays()
    wp.launch(shift, N, inputs=[x, y], device=DEVICE)  # compiled
    with wp.ScopedCapture(device=DEVICE) as capture:
        chain(shift, x, y)
    for _ in range(3):
        wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(x.numpy(), expected(numbers(), 18))


def test_gradients_are_the_same():
    found = []
    for kernel in (shift, shift_in_order):
        x, y = arrays()
        x.requires_grad = y.requires_grad = True
        with wp.Tape() as tape:
            wp.launch(kernel, N, inputs=[x, y], device=DEVICE)
        y.grad.fill_(1.0)
        tape.backward()
        found.append(x.grad.numpy())
    np.testing.assert_array_equal(*found)
    assert found[0].tolist() == [0.5] * N


def test_the_code_waits_before_its_first_access():
    wp.load_module("programmatic", device=DEVICE)
    text = shift.listing("assembly", device=DEVICE)
    if not has_programmatic_launches():
        assert "griddepcontrol" not in text
        return
    wait, allow = text.index("griddepcontrol.wait"), text.index("griddepcontrol.launch_dependents")
    first = re.search(r"\b(ld|st|atom|red)\.global", text).start()
    assert wait < allow < first
    assert ".nc." not in text  # the launch in front may still write while this one begins
    in_order = shift_in_order.listing("assembly", device=DEVICE)
    assert "griddepcontrol" not in in_order and "ld.global.nc" in in_order


@pytest.fixture
def driver():
    if not wp.get_device(DEVICE).is_emulated:
        pytest.skip("only the emulated driver counts its calls")
    library = driver_library()
    library.weftEmulatedCalls(None)
    return library


def test_it_is_one_call_with_the_attribute(driver):
    calls = {}
    for kernel in (shift, shift_in_order):
        x, y = arrays()
        chain(kernel, x, y, 2)
        wp.synchronize()
        names = ("cuLaunchKernel", "cuLaunchKernelEx")
        before = [driver.weftEmulatedCalls(name.encode()) for name in names]
        chain(kernel, x, y, 4)
        calls[kernel.key] = [driver.weftEmulatedCalls(name.encode()) - old for name, old in zip(names, before)]
    early = [0, 4] if has_programmatic_launches() else [4, 0]
    assert calls == {"shift": early, "shift_in_order": [4, 0]}


def test_a_value_that_is_no_bool_is_an_error():
    with pytest.raises(wp.UsageError, match="programmatic_launch|programmatic"):
        wp.set_module_options({"programmatic_launch": 3}, module="programmatic_mistake")
