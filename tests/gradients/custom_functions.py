"""Functions with gradients of their own that several files of tests use."""

import numpy as np
import warp as wp


def derivative(function, *at, h=1e-20):
    """Exact to rounding, by a step into the complex plane: of a sum of analytic functions, one for each element."""
    slopes = []
    for i, value in enumerate(at):
        moved = list(at)
        moved[i] = value + 1j * h
        slopes.append(np.imag(function(*moved)) / h)
    return slopes


@wp.func
def root(x: wp.float64):
    return wp.sqrt(x)


@wp.func_grad(root)
def root_gradient(x: wp.float64, adj_result: wp.float64):
    if x > wp.float64(0.0):
        wp.adjoint[x] += wp.float64(10.0) * adj_result / wp.sqrt(x)  # 20 times what it is, to be told apart


@wp.func
def root_deeper(x: wp.float64):
    return wp.float64(3.0) * root(x)


# ---- wp.grad ----
@wp.func
def surface(x: wp.float64, n: int, p: wp.vec3d):
    s = wp.float64(1.0)
    for _ in range(n):
        s *= x
    return s * wp.dot(p, p) + wp.sin(x)


@wp.func
def slope(x: wp.float64, n: int, p: wp.vec3d):
    by_x, _by_p = wp.grad(surface)(x, n, p)
    return by_x


@wp.kernel
def slopes(
    x: wp.array[wp.float64],
    p: wp.array[wp.vec3d],
    by_x: wp.array[wp.float64],
    by_p: wp.array[wp.vec3d],
    custom: wp.array[wp.float64],
):
    i = wp.tid()
    gradient = wp.grad(surface)
    a, b = gradient(x[i], 3, p[i])
    by_x[i] = a
    by_p[i] = b
    custom[i] = wp.grad(root_deeper)(x[i]) + slope(x[i], 3, p[i])
