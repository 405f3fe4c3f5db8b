"""Whether two triangles meet, against exact arithmetic."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import warp as wp


def sub(a, b):
    return tuple(x - y for x, y in zip(a, b, strict=True))


def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def holds(triangle, p):
    """Whether a point is in a triangle, a segment or a point; exactly."""
    a, b, c = triangle
    n = cross(sub(b, a), sub(c, a))
    if n != (0, 0, 0):
        if dot(n, sub(p, a)) != 0:
            return False
        return all(dot(n, cross(sub(y, x), sub(p, x))) >= 0 for x, y in ((a, b), (b, c), (c, a)))
    return any(on_segment(x, y, p) for x, y in combinations(triangle, 2))


def on_segment(x, y, p):
    along, to = sub(y, x), sub(p, x)
    if x == y:
        return p == x
    return cross(along, to) == (0, 0, 0) and 0 <= dot(along, to) <= dot(along, along)


def crosses(x, y, triangle):
    """Whether a segment has a point in common with a triangle."""
    if holds(triangle, x) or holds(triangle, y):
        return True
    a, b, c = triangle
    n = cross(sub(b, a), sub(c, a))
    from_x, from_y = dot(n, sub(x, a)), dot(n, sub(y, a))
    if n != (0, 0, 0) and from_x != from_y:
        if from_x * from_y > 0:
            return False
        t = Fraction(from_x, from_x - from_y)
        return holds(triangle, tuple(u + t * (v - u) for u, v in zip(x, y, strict=True)))
    return any(segments_meet(x, y, *edge) for edge in combinations(triangle, 2))


def segments_meet(a, b, c, d):
    if any(on_segment(*pair) for pair in ((a, b, c), (a, b, d), (c, d, a), (c, d, b))):
        return True
    u, v, w = sub(b, a), sub(d, c), sub(c, a)
    n = cross(u, v)
    if n == (0, 0, 0) or dot(n, w) != 0:
        return False
    s, t = Fraction(dot(cross(w, v), n), dot(n, n)), Fraction(dot(cross(w, u), n), dot(n, n))
    return 0 <= s <= 1 and 0 <= t <= 1


def meet(first, second):
    return any(crosses(*edge, second) for edge in combinations(first, 2)) or any(
        crosses(*edge, first) for edge in combinations(second, 2)
    )


def ask(corners, dtype, vec):
    @wp.kernel(module="unique")
    def kernel(v: wp.array2d(dtype=vec), out: wp.array(dtype=int)):
        i = wp.tid()
        out[i] = wp.intersect_tri_tri(v[i, 0], v[i, 1], v[i, 2], v[i, 3], v[i, 4], v[i, 5])

    out = wp.zeros(len(corners), dtype=int)
    wp.launch(kernel, dim=len(corners), inputs=[wp.array(corners.astype(dtype), dtype=vec), out])
    return out.numpy()


@pytest.mark.parametrize("dtype, vec", [(np.float32, wp.vec3), (np.float64, wp.vec3d), (np.float16, wp.vec3h)])
@pytest.mark.parametrize("edge", [1, 2, 5, 40])
def test_triangles_on_a_lattice_meet_as_exact_arithmetic_says(edge, dtype, vec):
    """On a coarse lattice they touch, lie in one plane or have no area as often as not."""
    corners = np.random.default_rng(edge).integers(-edge, edge + 1, (400, 6, 3))
    corners[::5, :, 2] = 0
    expected = [meet(*(tuple(map(tuple, half.tolist())) for half in (six[:3], six[3:]))) for six in corners]
    found = ask(corners, dtype, vec)
    np.testing.assert_array_equal(found, expected)
    assert 0.05 < np.mean(expected) < 0.99
    # Which is first, and the order of the corners, does not matter; nor do their places.
    np.testing.assert_array_equal(ask(corners[:, [5, 3, 4, 1, 0, 2]], dtype, vec), expected)
    np.testing.assert_array_equal(ask(corners + 512, dtype, vec), expected)


def touching(rng, count):
    """A corner of the second is on an edge, in the face or at a corner of the first, as far as rounding lets it."""
    corners = rng.uniform(-1, 1, (count, 6, 3)) * 10.0 ** rng.integers(-3, 4, (count, 1, 1))
    corners[::7] = np.round(corners[::7], 1)
    corners[1::7] = np.round(corners[1::7] * 64) / 64
    weights = rng.dirichlet([1, 1, 1], count)
    weights[::2, 2] = 0.0
    weights[::6] = [0.5, 0.5, 0]
    weights[1::6] = [0.25, 0.5, 0.25]
    weights[2::6] = [1, 0, 0]
    corners[:, 3] = (weights[:, :, None] / weights.sum(axis=1)[:, None, None] * corners[:, :3]).sum(axis=1)
    corners[3::5, 4] = corners[3::5, 0] * 0.25 + corners[3::5, 1] * 0.75  # an edge along another one
    corners[4::15, 3:] += (corners[4::15, :1] - corners[4::15, 3:4]) * 3.0  # beyond the edge
    return corners


@pytest.mark.parametrize("dtype, vec", [(np.float32, wp.vec3), (np.float64, wp.vec3d)])
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_corners_on_edges_meet_as_exact_arithmetic_says(dtype, vec, scale):
    if dtype is np.float64:
        scale = scale**10
    corners = (touching(np.random.default_rng(3), 300) * scale).astype(dtype)
    exact = [[tuple(map(Fraction, corner)) for corner in six] for six in corners.astype(np.float64).tolist()]
    expected = [meet(six[:3], six[3:]) for six in exact]
    np.testing.assert_array_equal(ask(corners, dtype, vec), expected)
    np.testing.assert_array_equal(ask(corners[:, [4, 3, 5, 2, 0, 1]], dtype, vec), expected)
    assert 0.1 < np.mean(expected) < 0.9


def test_what_is_not_finite_meets_nothing():
    corners = np.zeros((2, 6, 3))
    corners[0, 1], corners[1, 4] = np.nan, np.inf
    assert ask(corners, np.float32, wp.vec3).tolist() == [0, 0]
