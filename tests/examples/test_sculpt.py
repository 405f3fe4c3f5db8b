"""Fitting a mesh by gradients: its slope, the fit, and meshes of other libraries' objects."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial import cKDTree
from warp.examples import _files, sculpt, throw


def ellipsoid(subdivisions=3):
    points, faces = throw.sphere(subdivisions)
    return points * (0.9, 0.7, 0.6), faces


def test_the_slope_of_the_loss_is_that_of_central_differences():
    clay = sculpt.Clay(ellipsoid(), subdivisions=2, samples=400)
    rng = np.random.default_rng(1)
    at = 0.05 * rng.standard_normal((clay.count, 3))
    clay.layers[0].assign(at)
    clay.gradient()
    gradient = clay.layers[0].grad.numpy().astype(np.float64)

    def loss(places):
        clay.layers[0].assign(places)
        clay.forward()
        return float(clay.loss.numpy()[0])

    for _ in range(3):
        direction = rng.standard_normal(at.shape)
        step = 2e-3
        slope = (loss(at + step * direction) - loss(at - step * direction)) / (2.0 * step)
        np.testing.assert_allclose((gradient * direction).sum(), slope, rtol=0.02, atol=1e-4)


def volume_of(points, faces):
    a, b, c = (points[faces[:, n]].astype(np.float64) for n in range(3))
    return np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0


@pytest.mark.minutes_on_cuda
def test_clay_takes_the_shape_of_an_ellipsoid():
    target = ellipsoid()
    clay = sculpt.Clay(target, subdivisions=3, samples=2000)
    losses = sculpt.fit(clay, 60)
    assert losses[-1] < 2e-3 * losses[0]
    there, back = clay.distances()
    assert there.max() < 0.03 and back.max() < 0.03
    # samples of both surfaces are near each other, and the mesh has not turned over
    points = clay.points.numpy()
    on_clay = sculpt.samples_of(points, clay.faces, 20_000)
    on_target = sculpt.samples_of(clay.target_points.numpy(), target[1], 20_000)
    assert cKDTree(on_target).query(on_clay)[0].max() < 0.06 and cKDTree(on_clay).query(on_target)[0].max() < 0.06
    expected = volume_of(clay.target_points.numpy(), target[1])
    np.testing.assert_allclose(volume_of(points, clay.faces), expected, rtol=0.02)


def test_the_bear_is_closed_and_alike_on_both_sides():
    points, faces = sculpt.bear(48)
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    assert {tuple(e) for e in edges} == {tuple(e) for e in edges[:, ::-1]}
    assert len(points) - len(edges) // 2 + len(faces) == 2
    assert cKDTree(points).query(points * (-1.0, 1.0, 1.0))[0].max() < 1e-3
    assert volume_of(points, faces) > 0.5


def test_samples_are_even_on_triangles():
    points = np.array([(0.0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)])
    samples = sculpt.samples_of(points, np.array([(0, 1, 2), (1, 3, 2)]), 20_000)
    counts, _, _ = np.histogram2d(samples[:, 0], samples[:, 1], bins=5, range=[(0, 1), (0, 1)])
    np.testing.assert_allclose(counts, 800, rtol=0.2)


# ---- objects of other libraries ----


def test_meshes_of_trimesh_and_meshio_objects():
    points, faces = throw.sphere(1)
    for shape in (
        SimpleNamespace(vertices=points, faces=faces),  # as trimesh.Trimesh has them: float64 and int64
        SimpleNamespace(points=points, cells_dict={"triangle": faces, "line": faces[:, :2]}),  # as meshio.Mesh
    ):
        mesh = _files.mesh_of(shape, support_winding_number=True)
        np.testing.assert_allclose(mesh.points.numpy(), points, atol=1e-7)
        np.testing.assert_array_equal(mesh.indices.numpy(), faces.ravel())
        assert mesh.support_winding_number


def test_objects_without_triangles_are_refused():
    points, faces = throw.sphere(1)
    for shape in (SimpleNamespace(points=points, cells_dict={"tetra": faces}), points):
        with pytest.raises(TypeError, match=r"expected a trimesh.Trimesh .* or a meshio.Mesh"):
            _files.mesh_of(shape)
