"""Conversions keep nothing: memory and objects after many of them."""

from __future__ import annotations

import gc
import resource
from collections import Counter
from pathlib import Path

import paddle
import pytest
import torch
import warp as wp

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")


@wp.kernel
def square(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[i] * x[i]


square_op = wp.torch_op(square)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def objects() -> Counter:
    gc.collect()
    return Counter(type(one).__name__ for one in gc.get_objects() if issubclass(type(one), KINDS))


KINDS = (torch.Tensor, paddle.Tensor, wp.array, wp._weft.array_t, wp._weft.TapeRecorder)


def paddle_leaf():
    tensor = paddle.zeros([256])
    tensor.stop_gradient = False
    return tensor


def taped():
    x = torch.zeros(256, requires_grad=True)
    loss = wp.zeros(256, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=256, inputs=[wp.from_torch(x)], outputs=[loss])
    tape.backward(grads={loss: wp.ones(256)})


def differentiated():
    x = torch.zeros(256, requires_grad=True)
    square_op(x).sum().backward()


def differentiated_twice():
    x = torch.zeros(256, requires_grad=True)
    (slope,) = torch.autograd.grad(square_op(x).sum(), x, create_graph=True)
    slope.sum().backward()


def direct():
    wp.launch(square, dim=256, inputs=[torch.zeros(256)], outputs=[torch.zeros(256)])


# Calls that are repeated, and the factor by which slower ones are repeated less.
ACTIONS = {
    "from torch": (lambda: wp.from_torch(torch.zeros(256)), 1),
    "from torch, with a gradient": (lambda: wp.from_torch(torch.zeros(256, requires_grad=True)), 1),
    "from torch, a structure": (lambda: wp.from_torch(torch.zeros(256, requires_grad=True), return_ctype=True), 1),
    "to torch": (lambda: wp.to_torch(wp.zeros(256)), 1),
    "to torch, with a gradient": (lambda: wp.to_torch(wp.zeros(256, requires_grad=True)), 1),
    "there and back": (lambda: wp.to_torch(wp.from_torch(torch.zeros(256, requires_grad=True))), 1),
    "from Paddle": (lambda: wp.from_paddle(paddle.zeros([256])), 1),
    "from Paddle, with a gradient": (lambda: wp.from_paddle(paddle_leaf()), 1),
    "to Paddle": (lambda: wp.to_paddle(wp.zeros(256)), 1),
    "to Paddle, with a gradient": (lambda: wp.to_paddle(wp.zeros(256, requires_grad=True)), 1),
    "direct": (direct, 1),
    "on a tape": (taped, 4),
    "an operator, and back": (differentiated, 4),
    "an operator, and back twice": (differentiated_twice, 40),
}


@pytest.mark.parametrize("times", [10_000, pytest.param(100_000, marks=pytest.mark.large)])
@pytest.mark.parametrize("name", ACTIONS)
def test_memory_stays_as_it_is(name, times):
    act, less = ACTIONS[name]
    for _ in range(200):
        act()

    def growth() -> int:
        before = resident_bytes()
        for _ in range(times // less):
            act()
        return resident_bytes() - before

    counted = objects()
    # A tensor that was kept would be at least 1 KiB each time; other threads of the process take memory once.
    assert any(growth() < max(4 << 20, 256 * (times // less)) for _ in range(3))
    assert not objects() - counted
