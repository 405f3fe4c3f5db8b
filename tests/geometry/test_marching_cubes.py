"""Surfaces of fields: closed, turned the right way, at the places with the value; and their gradients."""

from collections import Counter

import numpy as np
import pytest
import warp as wp


def edges_of(faces):
    return Counter((a, b) for face in faces.tolist() for a, b in zip(face, face[1:] + face[:1], strict=True))


def is_closed(faces):
    edges = edges_of(faces)
    return all(edges[a, b] == edges[b, a] == 1 for a, b in edges)


def volume_of(points, faces):
    c = points[faces].astype(np.float64)
    return (np.cross(c[:, 0], c[:, 1]) * c[:, 2]).sum() / 6


def distance_to_ball(shape, middle, radius):
    at = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1)
    return (np.linalg.norm(at - middle, axis=-1) - radius).astype(np.float32)


def test_a_ball_is_enclosed():
    middle, radius = np.array([9.1, 8.2, 10.3]), 6.7
    field = wp.array(distance_to_ball((19, 18, 21), middle, radius))
    verts, indices = wp.MarchingCubes.extract(field)
    points, faces = verts.numpy(), indices.numpy().reshape(-1, 3)
    assert verts.dtype is wp.vec3 and indices.dtype is wp.int32
    assert is_closed(faces) and len(np.unique(faces)) == len(points)
    assert len(points) - 3 * len(faces) // 2 + len(faces) == 2  # as every sphere
    assert np.abs(np.linalg.norm(points - middle, axis=1) - radius).max() < 0.05
    assert abs(volume_of(points, faces) / (4 / 3 * np.pi * radius**3) - 1) < 0.03


@pytest.mark.parametrize("seed", range(6))
def test_every_surface_is_closed_and_separates_the_values(seed):
    """Random values have all 256 cubes: lower values lie inside, as the winding number shows."""
    rng = np.random.default_rng(seed)
    values = np.ones((9, 8, 10), np.float32)
    values[1:-1, 1:-1, 1:-1] = rng.uniform(-1, 1, (7, 6, 8))
    verts, indices = wp.MarchingCubes.extract(wp.array(values), 0.25)
    points, faces = verts.numpy().astype(np.float64), indices.numpy().reshape(-1, 3)
    edges = edges_of(faces)
    assert all(edges[a, b] == edges[b, a] for a, b in edges)
    # On each vertex' edge the values are interpolated to the threshold.
    low, high = np.floor(points).astype(int), np.ceil(points).astype(int)
    t = np.abs(points - low).sum(axis=1)
    between = values[tuple(low.T)] * (1 - t) + values[tuple(high.T)] * t
    np.testing.assert_allclose(between, 0.25, atol=1e-5)
    corners = points[faces]
    at = np.stack(np.meshgrid(*map(np.arange, values.shape), indexing="ij"), -1).reshape(-1, 3)
    a, b, c = (corners[None, :, n] - at[:, None] for n in range(3))
    la, lb, lc = (np.linalg.norm(x, axis=-1) for x in (a, b, c))
    below = la * lb * lc + (a * b).sum(-1) * lc + (b * c).sum(-1) * la + (c * a).sum(-1) * lb
    number = np.arctan2((a * np.cross(b, c)).sum(-1), below).sum(axis=1) / (2 * np.pi)
    np.testing.assert_allclose(number, (values < 0.25).reshape(-1), atol=1e-6)


def test_the_surface_lies_within_the_given_corners():
    field = wp.array(distance_to_ball((16, 17, 18), 8, 5))
    cubes = wp.MarchingCubes(16, 17, 18, (-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))
    assert cubes.verts is None and cubes.indices is None
    cubes.surface(field, 0.0)
    low, high = cubes.verts.numpy().min(axis=0), cubes.verts.numpy().max(axis=0)
    np.testing.assert_allclose(low, [3 / 15 * 2 - 1, 3 / 16 * 2 - 1, 3 / 17 * 2 - 1], rtol=1e-5)
    np.testing.assert_allclose(high, [13 / 15 * 2 - 1, 13 / 16 * 2 - 1, 13 / 17 * 2 - 1], rtol=1e-5)
    old = wp.MarchingCubes(16, 17, 18, domain_bounds_lower_corner=(-1, -1, -1), domain_bounds_upper_corner=(1, 1, 1))
    old.surface(field, 0.0)
    np.testing.assert_array_equal(old.verts.numpy(), cubes.verts.numpy())
    verts, indices = wp.MarchingCubes.extract_surface_marching_cubes(field, 0.0, (-1, -1, -1), (1, 1, 1))
    np.testing.assert_array_equal(indices.numpy(), cubes.indices.numpy())
    with pytest.raises(ValueError, match=r"shape \(16, 17, 18\), expected \(4, 5, 6\)"):
        cubes.resize(4, 5, 6)
        cubes.surface(field, 0.0)
    cubes.surface(wp.ones((4, 5, 6)), 0.0)
    assert cubes.verts.shape == (0,) and cubes.indices.shape == (0,)
    for shape in ((1, 4, 4), (0, 2, 2)):
        assert wp.MarchingCubes.extract(wp.zeros(shape), 0.5)[1].size == 0
    for wrong in (wp.zeros((3, 3)), wp.zeros((3, 3, 3), dtype=wp.float64), np.zeros((3, 3, 3))):
        with pytest.raises(TypeError, match="expected a three-dimensional array of float32"):
            wp.MarchingCubes.extract(wrong)


def test_the_gradient_by_the_values():
    rng = np.random.default_rng(3)
    values = (distance_to_ball((10, 9, 11), 4.3, 3) + rng.uniform(-0.2, 0.2, (10, 9, 11))).astype(np.float32)
    weights = rng.standard_normal(3).astype(np.float32)

    @wp.kernel(module="unique")
    def total(verts: wp.array(dtype=wp.vec3), w: wp.vec3, out: wp.array(dtype=float)):
        i = wp.tid()
        wp.atomic_add(out, 0, wp.dot(verts[i], w) * wp.length(verts[i]))

    def loss(values, tape=None):
        field = wp.array(values, requires_grad=True)
        out = wp.zeros(1, requires_grad=True)
        with tape or wp.Tape():
            verts, _ = wp.MarchingCubes.extract(field)
            wp.launch(total, dim=verts.size, inputs=[verts, wp.vec3(*weights), out])
        at = verts.numpy().astype(np.float64)
        return field, out, (at @ weights.astype(np.float64) * np.linalg.norm(at, axis=1)).sum()

    tape = wp.Tape()
    field, out, _ = loss(values, tape)
    tape.backward(out)
    gradient = field.grad.numpy()
    for _ in range(5):
        way = np.where(np.abs(values) > 0.05, rng.standard_normal(values.shape), 0).astype(np.float32)
        h = np.float32(2e-3)
        difference = (loss(values + h * way)[2] - loss(values - h * way)[2]) / (2 * h)
        assert abs((gradient * way).sum() - difference) < 2e-2 * max(1.0, abs(difference))
