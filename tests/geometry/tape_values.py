"""Arrays and comparisons of the tests of tapes with meshes, grids and volumes."""

import numpy as np
import warp as wp

f64 = wp.float64


def vectors(values, requires_grad=True):
    return wp.array(values, dtype=wp.vec3d, requires_grad=requires_grad)


def gradients(start):
    return {name: array.grad.numpy().copy() for name, array in start.items()}


def check_against_differences(value_of, given_values, gradient, count=10, seed=3, at_least=5):
    """`value_of(values)` along directions in which nothing but smooth things happen."""
    rng, checked = np.random.default_rng(seed), 0
    for _ in range(count):
        along = {name: rng.standard_normal(value.shape) for name, value in given_values.items()}
        h = 1e-6
        values = [
            value_of({name: value + k * h * along[name] for name, value in given_values.items()})
            for k in (-2, -1, 1, 2)
        ]
        near, far = (values[2] - values[1]) / (2 * h), (values[3] - values[0]) / (4 * h)
        if abs(near - far) > 1e-5 * max(1.0, abs(near)):
            continue  # another face was found
        checked += 1
        expected = sum((gradient[name] * along[name]).sum() for name in given_values)
        assert abs(expected - near) < 2e-5 * max(1.0, abs(near))
    assert checked >= at_least
