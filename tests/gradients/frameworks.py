"""Runs the text of a kernel as plain Python on numbers of JAX or PyTorch, which then differentiate it in reverse.

Both run one operation after the other and let Python decide by the numbers at hand, so loops, branches and breaks are
Python's own, and arrays are lists of numbers that are replaced (duals.py).
"""

from typing import Any, NamedTuple

import numpy as np
import warp as wp
from duals import Number
from tapes import doubles, square


class Framework(NamedTuple):
    functions: Any  # a module with sin, cos, ...
    value: Any  # of a number of the framework, as a float


class Traced(Number):
    """A number of a framework."""

    __slots__ = ("number", "of")

    def __init__(self, number, of):
        self.number, self.of = number, of

    @property
    def value(self):
        return self.of.value(self.number)

    def __add__(self, other):
        return Traced(self.number + plain(other), self.of)

    def __sub__(self, other):
        return Traced(self.number - plain(other), self.of)

    def __rsub__(self, other):
        return Traced(plain(other) - self.number, self.of)

    def __mul__(self, other):
        return Traced(self.number * plain(other), self.of)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other):
        return Traced(self.number / plain(other), self.of)

    def __rtruediv__(self, other):
        return Traced(plain(other) / self.number, self.of)

    def __neg__(self):
        return Traced(-self.number, self.of)

    def through(self, name, function, derivative):
        return Traced(getattr(self.of.functions, name)(self.number), self.of)


def plain(x):
    """The numbers of a framework: its own, or a float for a literal of the text."""
    return x.number if isinstance(x, Traced) else x.value


def jax_in_doubles():
    """The module; imported only in the process that uses it."""
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


def of_jax(function, inputs, weights):
    """(outputs, gradients): `function` takes a list of numbers and gives one; of sum(weights * outputs)."""
    jax = jax_in_doubles()
    of = Framework(jax.lax, lambda x: float(jax.lax.stop_gradient(x)))
    numbers = [jax.numpy.float64(x) for x in inputs]
    outputs, pull = jax.vjp(
        lambda *xs: [jax.numpy.float64(plain(y)) for y in function([Traced(x, of) for x in xs])], *numbers
    )
    gradients = pull([jax.numpy.float64(w) for w in weights])
    return [float(y) for y in outputs], [float(g) for g in gradients]


def of_torch(function, inputs, weights):
    """As of_jax()."""
    import torch

    of = Framework(torch, lambda x: x.detach().item())
    numbers = [torch.tensor(float(x), dtype=torch.float64, requires_grad=True) for x in inputs]
    outputs = [torch.as_tensor(plain(y), dtype=torch.float64) for y in function([Traced(x, of) for x in numbers])]
    moving = [(y, torch.tensor(float(w), dtype=torch.float64)) for y, w in zip(outputs, weights) if y.requires_grad]
    gradients = torch.autograd.grad([y for y, _ in moving], numbers, [w for _, w in moving], allow_unused=True)
    return [float(y) for y in outputs], [0.0 if g is None else float(g) for g in gradients]


def around_a_program(x):
    """(found, expected) of a gradient by JAX with a program of Weft in the middle, which is given the gradient of its
    result and gives that of its argument."""
    jax = jax_in_doubles()
    recorded = []

    @jax.custom_vjp
    def middle(x):
        return forward(x)[0]

    def forward(x):
        a = doubles(np.asarray(x), requires_grad=True)
        with wp.Tape() as tape:
            b = a * a
            wp.launch(square, dim=len(x), inputs=[b])
        recorded.append((a, b, tape))
        return jax.numpy.asarray(b.numpy()), None

    def backward(_, gradient):
        a, b, tape = recorded.pop()
        seed = doubles(np.asarray(gradient))
        tape.backward(grads={b: seed})
        assert (seed.numpy() == np.asarray(gradient)).all()  # the caller's gradient is never written
        return (jax.numpy.asarray(a.grad.numpy()),)

    middle.defvjp(forward, backward)
    found = jax.grad(lambda x: (jax.numpy.sin(middle(2.0 * x)) ** 2).sum())(x)
    expected = jax.grad(lambda x: (jax.numpy.sin((2.0 * x) ** 4) ** 2).sum())(x)
    return np.asarray(found), np.asarray(expected)
