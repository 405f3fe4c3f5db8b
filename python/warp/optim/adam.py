"""Adam (Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp
from warp.optim.optimizer import Optimizer


@wp.struct
class _Rates:
    step: wp.float32
    beta1: wp.float32
    beta2: wp.float32
    rest1: wp.float32  # 1 - beta1, which float32 would not give exactly
    rest2: wp.float32
    eps: wp.float32
    unbias1: wp.float32  # 1 / (1 - beta1^t)
    unbias2: wp.float32


@wp.struct
class _WideRates:
    step: wp.float64
    beta1: wp.float64
    beta2: wp.float64
    rest1: wp.float64
    rest2: wp.float64
    eps: wp.float64
    unbias1: wp.float64
    unbias2: wp.float64


@wp.func
def _move(
    i: int, p: wp.array(dtype=Any), g: wp.array(dtype=Any), m: wp.array(dtype=Any), v: wp.array(dtype=Any), r: Any
):
    if i < p.shape[0]:
        slope = m.dtype(g[i])
        m[i] = r.beta1 * m[i] + r.rest1 * slope
        v[i] = r.beta2 * v[i] + r.rest2 * slope * slope
        change = r.step * (m[i] * r.unbias1) / (wp.sqrt(v[i] * r.unbias2) + r.eps)
        p[i] = p.dtype(m.dtype(p[i]) - change)


@wp.kernel(enable_backward=False)
def _adam(
    p0: wp.array(dtype=Any),
    g0: wp.array(dtype=Any),
    m0: wp.array(dtype=Any),
    v0: wp.array(dtype=Any),
    p1: wp.array(dtype=Any),
    g1: wp.array(dtype=Any),
    m1: wp.array(dtype=Any),
    v1: wp.array(dtype=Any),
    p2: wp.array(dtype=Any),
    g2: wp.array(dtype=Any),
    m2: wp.array(dtype=Any),
    v2: wp.array(dtype=Any),
    p3: wp.array(dtype=Any),
    g3: wp.array(dtype=Any),
    m3: wp.array(dtype=Any),
    v3: wp.array(dtype=Any),
    rates: Any,
):
    i = wp.tid()
    for p, g, m, v in ((p0, g0, m0, v0), (p1, g1, m1, v1), (p2, g2, m2, v2), (p3, g3, m3, v3)):
        _move(i, p, g, m, v, rates)


class Adam(Optimizer):
    """Adam: a step against the mean of the gradients so far, in units of their root mean square.

        m = beta1 * m + (1 - beta1) * g          v = beta2 * v + (1 - beta2) * g * g
        p = p - lr * (m / (1 - beta1 ** t)) / (sqrt(v / (1 - beta2 ** t)) + eps)

    Args:
        params: the arrays to change, of floats, or of vectors, matrices, quaternions or transforms of them; or
            :meth:`set_params` later.
        lr: the size of a step.
        betas: how much of the means stays from step to step.
        eps: keeps the quotient finite if gradients vanish.

    ``m`` and ``v`` are like the parameters, of float64 for float64 and of float32 for all narrower floats; ``t`` counts
    the steps. Each component is a number by itself: quaternions do not stay normalized.
    """

    kept = ("m", "v")

    def __init__(
        self,
        params: Sequence[wp.array] | None = None,
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ):
        self.lr = lr
        self.beta1, self.beta2 = betas
        self.eps = eps
        super().__init__(params)

    def _launch(self, size: int, arguments: list[Any], is_wide: bool, device: Any) -> None:
        rates = _WideRates() if is_wide else _Rates()
        rates.step, rates.beta1, rates.beta2, rates.eps = self.lr, self.beta1, self.beta2, self.eps
        rates.rest1, rates.rest2 = 1.0 - self.beta1, 1.0 - self.beta2
        rates.unbias1 = 1.0 / (1.0 - self.beta1 ** (self.t + 1))
        rates.unbias2 = 1.0 / (1.0 - self.beta2 ** (self.t + 1))
        wp.launch(_adam, dim=size, inputs=[*arguments, rates], device=device)
