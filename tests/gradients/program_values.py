"""Arguments and outputs of the tests that differentiate whole programs."""

import numpy as np
import warp as wp
import warp.utils

RNG = np.random.default_rng(77)


Real = wp.float64


def output(shape, dtype=Real):
    return wp.zeros(shape, dtype=dtype, requires_grad=True)


def uniform(*shape, low=-1.0, high=1.0):
    return RNG.uniform(low, high, shape)
