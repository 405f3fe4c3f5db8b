"""References in NumPy: integers as C has them, vectors, matrices."""

import numpy as np


def by_integers(formula):
    """A formula on Python's integers, wrapped to the type of the arguments."""

    def reference(*arguments):
        dtype = arguments[0].dtype
        span = 1 << 8 * dtype.itemsize
        least = np.iinfo(dtype).min

        def wrapped(*numbers):
            return (formula(*map(int, numbers)) - least) % span + least

        flat = [a.ravel() for a in arguments]
        return np.array([wrapped(*row) for row in zip(*flat)], dtype=dtype).reshape(arguments[0].shape)

    return reference


def by_kind(integers, floats):
    def reference(*arguments):
        return (floats if arguments[0].dtype.kind == "f" else integers)(*arguments)

    return reference


def quotient(dtype):
    least = np.iinfo(dtype).min

    def divide(a, b):
        if b == 0 or (a == least and b == -1 and least < 0):
            return 0
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    return divide


def integer_div(a, b):
    a, b = np.broadcast_arrays(a, b)
    return by_integers(quotient(a.dtype))(a, b)


def integer_mod(a, b):
    divide = quotient(a.dtype)
    least = np.iinfo(a.dtype).min
    return by_integers(lambda x, y: 0 if y == 0 or (x == least < 0 and y == -1) else x - divide(x, y) * y)(a, b)


def integer_floordiv(a, b):
    least = np.iinfo(a.dtype).min
    return by_integers(lambda x, y: 0 if y == 0 or (x == least < 0 and y == -1) else x // y)(a, b)


def float_floordiv(a, b):
    below = (a != 0) & ~np.isnan(b) & (np.signbit(a) != np.signbit(b)) & (np.abs(a) < np.abs(b))
    return np.where(below, -1, np.floor(a / b))  # of a quotient that vanishes, too


def shift(left):
    def reference(a, b):
        bits = 8 * a.dtype.itemsize
        return by_integers(lambda x, y: x << y % bits if left else x >> y % bits)(a, b)

    return reference


def over(a, b):
    """Quotient of a and b, one of them a scalar for each row of the other."""
    a, b = spread(a, b)
    return by_kind(integer_div, np.divide)(a, b)


def spread(a, b):
    ndim = max(a.ndim, b.ndim)
    return tuple(x.reshape(x.shape + (1,) * (ndim - x.ndim)) for x in (a, b))


# ---- algebra ----
def each(formula):
    """A reference in which arguments with fewer dimensions are spread over the others."""

    def reference(*arguments):
        ndim = max(a.ndim for a in arguments)
        return formula(*(a.reshape(a.shape + (1,) * (ndim - a.ndim)) for a in arguments))

    return reference


def sum_of(a):
    """Left to right, in the type of the argument."""
    flat = a.reshape(len(a), -1)
    total = flat[:, 0]
    for i in range(1, flat.shape[1]):
        total = total + flat[:, i]
    return total


def dot(a, b):
    return sum_of(a * b)


def length(a):
    return np.sqrt(dot(a, a))


def normalized(a):
    size = length(a)[:, None]
    return np.where(size > 0, a / np.where(size > 0, size, 1), 0)


def product(a, b):
    """Matrix products, of vectors as columns on the right and rows on the left."""
    if b.ndim == 2:
        return np.stack([sum_of(a[:, i] * b) for i in range(a.shape[1])], axis=-1)
    if a.ndim == 2:
        return np.stack([sum_of(a * b[:, :, j]) for j in range(b.shape[2])], axis=-1)
    return np.stack([product(a, b[:, :, j]) for j in range(b.shape[2])], axis=-1)


def magnitudes(formula):
    """The scale of a sum of products: the same formula of absolute values."""
    return lambda *arguments: formula(*(np.abs(a) for a in arguments))


def cross(a, b):
    return np.stack([a[:, i - 2] * b[:, i - 1] - a[:, i - 1] * b[:, i - 2] for i in range(3)], axis=-1)


def size_product(*arguments):
    """Product of the Euclidean sizes of all arguments, shaped as the expected value by broadcasting."""
    result = 1
    for a in arguments:
        result = result * np.maximum(np.sqrt(np.sum(a.reshape(len(a), -1) ** 2, axis=1)), 1)
    return result


def skew(v):
    zero = np.zeros_like(v[:, 0])
    x, y, z = v.T
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(-1, 3, 3)


def diagonal_matrix(v):
    return (
        v[:, :, None] * np.eye(v.shape[1], dtype=v.dtype)
        if v.dtype.kind != "f"
        else np.where(np.eye(v.shape[1], dtype=bool), v[:, :, None], 0)
    )


def best_index(better):
    def reference(a):
        index = np.zeros(len(a), dtype=np.uint32)
        for row, values in enumerate(a):
            for i in range(1, len(values)):
                if better(values[i], values[index[row]]):
                    index[row] = i
        return index

    return reference


def inverse(m):
    m = m.astype(np.float64)
    with np.errstate(all="ignore"):
        regular = np.abs(np.linalg.det(m)) > 1e-9
    result = np.zeros_like(m)
    result[regular] = np.linalg.inv(m[regular])
    return result


def inverse_scale(m):
    m = m.astype(np.float64)
    size = np.linalg.norm(m, axis=(1, 2))
    found = np.linalg.norm(inverse(m), axis=(1, 2))
    return found * np.maximum(size * found, 1)


def hadamard_bound(m):
    return np.prod(np.sqrt(np.sum(m * m, axis=2)), axis=1)
