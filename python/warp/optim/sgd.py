"""Gradient descent, with momentum on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp
from warp.optim.optimizer import Optimizer


@wp.struct
class _Rates:
    step: wp.float32
    momentum: wp.float32
    dampening: wp.float32
    weight_decay: wp.float32
    nesterov: wp.bool
    is_first: wp.bool


@wp.struct
class _WideRates:
    step: wp.float64
    momentum: wp.float64
    dampening: wp.float64
    weight_decay: wp.float64
    nesterov: wp.bool
    is_first: wp.bool


@wp.func
def _move(i: int, p: wp.array(dtype=Any), g: wp.array(dtype=Any), b: wp.array(dtype=Any), r: Any):
    if i < p.shape[0]:
        before = b.dtype(p[i])
        slope = b.dtype(g[i]) + r.weight_decay * before
        if r.momentum != b.dtype(0.0):
            kept = slope
            if not r.is_first:
                kept = r.momentum * b[i] + (b.dtype(1.0) - r.dampening) * slope
            b[i] = kept
            if r.nesterov:
                slope = slope + r.momentum * kept
            else:
                slope = kept
        p[i] = p.dtype(before - r.step * slope)


@wp.kernel(enable_backward=False)
def _sgd(
    p0: wp.array(dtype=Any),
    g0: wp.array(dtype=Any),
    b0: wp.array(dtype=Any),
    p1: wp.array(dtype=Any),
    g1: wp.array(dtype=Any),
    b1: wp.array(dtype=Any),
    p2: wp.array(dtype=Any),
    g2: wp.array(dtype=Any),
    b2: wp.array(dtype=Any),
    p3: wp.array(dtype=Any),
    g3: wp.array(dtype=Any),
    b3: wp.array(dtype=Any),
    rates: Any,
):
    i = wp.tid()
    for p, g, b in ((p0, g0, b0), (p1, g1, b1), (p2, g2, b2), (p3, g3, b3)):
        _move(i, p, g, b, rates)


class SGD(Optimizer):
    """Gradient descent.

        g = g + weight_decay * p
        b = g at the first step, momentum * b + (1 - dampening) * g afterwards
        p = p - lr * b, with nesterov p - lr * (g + momentum * b), without momentum p - lr * g

    Args:
        params: the arrays to change, of floats, or of vectors, matrices, quaternions or transforms of them; or
            :meth:`set_params` later.
        lr: the size of a step.
        momentum, dampening, weight_decay, nesterov: as above.

    ``b`` is like the parameters, of float64 for float64 and of float32 for all narrower floats; ``t`` counts the steps.
    Each component is a number by itself: quaternions do not stay normalized.
    """

    kept = ("b",)

    def __init__(
        self,
        params: Sequence[wp.array] | None = None,
        lr: float = 0.001,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ):
        self.lr, self.momentum, self.dampening = lr, momentum, dampening
        self.weight_decay, self.nesterov = weight_decay, nesterov
        super().__init__(params)

    def _launch(self, size: int, arguments: list[Any], is_wide: bool, device: Any) -> None:
        rates = _WideRates() if is_wide else _Rates()
        rates.step, rates.momentum, rates.dampening = self.lr, self.momentum, self.dampening
        rates.weight_decay, rates.nesterov, rates.is_first = self.weight_decay, self.nesterov, self.t == 0
        wp.launch(_sgd, dim=size, inputs=[*arguments, rates], device=device)
