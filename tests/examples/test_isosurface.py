"""The labyrinth: marching cubes, measures of its surface, and the separation of the fluids."""

import numpy as np
import pytest
import warp as wp
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from warp.examples import _cubes, _mesh, _raster, isosurface

pytestmark = pytest.mark.own_launches("its numbers keep threads apart")

SIZE = 40
GRID = np.mgrid[0:SIZE, 0:SIZE, 0:SIZE] - 19.3


def surface_of(field, origin=(0.0, 0.0, 0.0)):
    return _cubes.Surface(field.shape, origin).extract(wp.array(field.astype(np.float32), dtype=float))


def ball(radius, x=0.0):
    return radius - np.sqrt((GRID[0] - x) ** 2 + GRID[1] ** 2 + GRID[2] ** 2)


def ring(large, small):
    return small - np.sqrt((np.hypot(GRID[0], GRID[1]) - large) ** 2 + GRID[2] ** 2)


def noise(seed):
    """A field with every case of the table and parts of all sizes."""
    field = np.full((14, 15, 16), -1.0, dtype=np.float32)
    field[1:-1, 1:-1, 1:-1] = np.random.default_rng(seed).standard_normal((12, 13, 14))
    return field


def assert_closed(triangles):
    """Every edge borders two triangles, which run along it in opposite directions."""
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    _, uses = np.unique(edges, axis=0, return_counts=True)
    assert (uses == 1).all()
    assert {tuple(edge) for edge in edges} == {tuple(edge) for edge in edges[:, ::-1]}
    return len(edges) // 2


@pytest.mark.parametrize("seed", range(3))
def test_surfaces_of_noise_are_closed(seed):
    points, triangles = surface_of(noise(seed))
    assert_closed(triangles.numpy())
    assert set(np.unique(triangles.numpy())) == set(range(len(points)))


def test_spheres_and_tori_have_their_area_volume_and_genus():
    shapes = [
        (ball(13.0), 4 * np.pi * 13.0**2, 4 / 3 * np.pi * 13.0**3, 2),
        (ring(11.0, 6.0), 4 * np.pi**2 * 11.0 * 6.0, 2 * np.pi**2 * 11.0 * 36.0, 0),
    ]
    for field, area, volume, euler in shapes:
        points, triangles = surface_of(field)
        found = _cubes.area_and_volume(points, triangles)
        np.testing.assert_allclose(found, (area, volume), rtol=8e-3)
        assert len(points) - assert_closed(triangles.numpy()) + len(triangles) == euler


# ---- what is measured of a surface ----


def test_faults_of_a_surface_are_counted():
    points, triangles = surface_of(ball(8.0))
    faces = triangles.numpy().copy()

    def faults(rows):
        return _mesh.audit(_mesh.edge_table(wp.array(np.ascontiguousarray(rows), dtype=int)))

    edges = len(faces) * 3 // 2
    assert faults(faces) == (edges, 0)
    assert faults(faces[1:]) == (edges, 3)  # a hole
    turned = faces.copy()
    turned[5] = turned[5, ::-1]
    assert faults(turned) == (edges, 3)
    assert faults(np.concatenate([faces, faces[:1]])) == (edges, 3)  # three triangles at an edge
    assert faults(faces[:0]) == (0, 0)


@pytest.mark.parametrize("seed", range(2))
def test_parts_are_those_of_scipy(seed):
    points, triangles = surface_of(noise(seed))
    found = _mesh.parts(points, triangles, _mesh.edge_table(triangles))
    p, t = points.numpy().astype(np.float64), triangles.numpy()
    edges = np.unique(np.sort(np.concatenate([t[:, [0, 1]], t[:, [1, 2]], t[:, [2, 0]]]), axis=1), axis=0)
    graph = coo_matrix((np.ones(len(edges)), edges.T), shape=(len(p), len(p)))
    count, label = connected_components(graph, directed=False)
    assert len(found.points) == count > 5
    # one name for each part, and one part for each name
    names = np.unique(np.stack([label, found.of_point.numpy()]), axis=1)
    assert names.shape == (2, count)
    of = names[1]
    np.testing.assert_array_equal(found.points[of], np.bincount(label))
    np.testing.assert_array_equal(found.edges[of], np.bincount(label[edges[:, 0]]))
    np.testing.assert_array_equal(found.triangles[of], np.bincount(label[t[:, 0]]))
    a, b, c = p[t[:, 0]], p[t[:, 1]], p[t[:, 2]]
    n = np.cross(b - a, c - a)
    area = np.bincount(label[t[:, 0]], 0.5 * np.linalg.norm(n, axis=1))
    volume = np.bincount(label[t[:, 0]], (a * n).sum(axis=1) / 6)
    np.testing.assert_allclose(found.area[of], area, rtol=1e-5)
    np.testing.assert_allclose(found.volume[of], volume, rtol=1e-4, atol=1e-3)


def test_balls_and_rings_are_told_apart():
    thin = np.maximum(ring(11.0, 3.0), ball(5.0))
    points, triangles = surface_of(np.maximum(thin, ball(2.0, x=17.5)))
    found = _mesh.parts(points, triangles, _mesh.edge_table(triangles))
    order = np.argsort(found.volume)
    assert found.euler[order].tolist() == [2, 2, 0]
    expected = [4 / 3 * np.pi * 2.0**3, 4 / 3 * np.pi * 5.0**3, 2 * np.pi**2 * 11.0 * 9.0]
    np.testing.assert_allclose(found.volume[order], expected, rtol=0.15)
    kept = _mesh.without_dust(points, triangles, 100.0)
    assert_closed(kept[1].numpy())
    found = _mesh.parts(*kept, _mesh.edge_table(kept[1]))
    assert sorted(found.euler.tolist()) == [0, 2] and len(kept[0]) == found.points.sum()


def shapes_of(points, triangles):
    """Shortest edge, and how near each triangle is to an equilateral one, for which it is 1."""
    corners = points.numpy()[triangles.numpy()]
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    return sides.min(), 4 * np.sqrt(3) * area / (sides**2).sum(axis=1)


def test_collapsed_edges_leave_the_surface_and_better_triangles():
    for field, euler in ((ball(13.0), 2), (ring(11.0, 6.0), 0)):
        points, triangles = surface_of(field)
        before = _cubes.area_and_volume(points, triangles)
        untouched = points.numpy().copy()
        fewer, faces = _mesh.collapse(points, triangles, 0.5)
        np.testing.assert_array_equal(points.numpy(), untouched)
        assert len(fewer) - assert_closed(faces.numpy()) + len(faces) == euler
        assert set(np.unique(faces.numpy())) == set(range(len(fewer)))
        np.testing.assert_allclose(_cubes.area_and_volume(fewer, faces), before, rtol=2e-3)
        (short, poor), (shorter, poorer) = shapes_of(fewer, faces), shapes_of(points, triangles)
        assert short > shorter and len(faces) < 0.75 * len(triangles)
        assert np.quantile(poor, 0.01) > 0.3 > 0.03 > np.quantile(poorer, 0.01)


@pytest.mark.parametrize("shortest", [0.4, pytest.param(100.0, marks=pytest.mark.minutes_on_cuda)])
def test_no_collapse_changes_the_topology(shortest):
    points, triangles = surface_of(noise(5))
    before = _mesh.parts(points, triangles, _mesh.edge_table(triangles))
    points, triangles = _mesh.collapse(points, triangles, shortest)
    assert_closed(triangles.numpy())
    after = _mesh.parts(points, triangles, _mesh.edge_table(triangles))
    assert sorted(after.euler) == sorted(before.euler)
    assert after.points.sum() < before.points.sum() and after.triangles.min() >= 4


def test_a_tetrahedron_cannot_lose_an_edge():
    points = wp.array(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32), dtype=wp.vec3)
    triangles = wp.array(np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]], dtype=np.int32))
    fewer, faces = _mesh.collapse(points, triangles, 10.0)
    np.testing.assert_array_equal(faces.numpy(), triangles.numpy())
    np.testing.assert_array_equal(fewer.numpy(), points.numpy())


def test_smoothing_flattens_noise_and_keeps_the_volume():
    points, triangles = surface_of(ball(13.0) + 0.2 * np.random.default_rng(3).standard_normal(GRID[0].shape))
    radii = np.linalg.norm(points.numpy() - 19.3, axis=1)
    _mesh.smooth(points, triangles, 10)
    smoother = np.linalg.norm(points.numpy() - 19.3, axis=1)
    assert smoother.std() < 0.7 * radii.std()
    np.testing.assert_allclose(_cubes.area_and_volume(points, triangles)[1], 4 / 3 * np.pi * 13.0**3, rtol=0.01)


def test_normals_and_areas_of_points_on_a_ball():
    points, triangles = surface_of(ball(13.0))
    outward = points.numpy() - 19.3
    outward /= np.linalg.norm(outward, axis=1)[:, None]
    found = _raster.vertex_normals(points, triangles).numpy()
    assert (found * outward).sum(axis=1).min() > np.cos(np.radians(4.0))
    np.testing.assert_allclose(_mesh.areas(points, triangles).numpy().sum(), 4 * np.pi * 13.0**2, rtol=5e-3)


def bends(field, points):
    mixture = isosurface.Mixture(SIZE)
    mixture.radius, mixture.middle = 1.0, wp.vec3(0.0, 0.0, 0.0)  # lengths in cells from the first node on
    mixture.field = wp.array(field.astype(np.float32), dtype=float)
    return [a.numpy() for a in mixture.curvatures(points)]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_curvatures_are_those_of_the_closed_forms(sign):
    points, _ = surface_of(sign * ball(13.0))
    mean, gauss = bends(sign * ball(13.0), points)
    np.testing.assert_allclose(mean, sign / 13.0, rtol=0.02)  # a bubble is hollow on its outside
    np.testing.assert_allclose(gauss, 1.0 / 169.0, rtol=0.04)
    points, _ = surface_of(sign * ring(11.0, 6.0))
    mean, gauss = bends(sign * ring(11.0, 6.0), points)
    x, y, _ = (points.numpy() - 19.3).T
    out = np.hypot(x, y) - 11.0  # 6 cos(angle around the tube)
    np.testing.assert_allclose(mean, sign * (11.0 + 2.0 * out) / (12.0 * (11.0 + out)), atol=4e-3)
    np.testing.assert_allclose(gauss, out / 36.0 / (11.0 + out), atol=3e-3)


def test_the_gaussian_curvature_of_a_labyrinth_adds_up_to_its_topology():
    x, y, z = 2 * np.pi * (GRID + 0.2) / 20.0
    gyroid = np.sin(x) * np.cos(y) + np.sin(y) * np.cos(z) + np.sin(z) * np.cos(x)
    field = np.minimum(gyroid, 0.45 * ball(16.0))
    points, triangles = surface_of(field)
    edges = _mesh.edge_table(triangles)
    found = _mesh.parts(points, triangles, edges)
    assert _mesh.audit(edges)[1] == 0 and found.euler.min() < -6
    # angles that are missing around the points of a closed mesh: 2π times its Euler characteristic for any shape
    corners = points.numpy().astype(np.float64)[triangles.numpy()]
    sides = np.roll(corners, -1, axis=1) - corners
    sides /= np.linalg.norm(sides, axis=2)[:, :, None]
    angles = np.pi - np.arccos(np.clip((sides * np.roll(sides, -1, axis=1)).sum(axis=2), -1, 1))
    np.testing.assert_allclose(2 * np.pi * len(points) - angles.sum(), 2 * np.pi * found.euler.sum(), atol=0.02)
    # far from the cut a gyroid bends to both sides alike
    inner = np.linalg.norm(points.numpy() - 19.3, axis=1) < 12.0
    mean, gauss = bends(field, points)
    assert abs(mean[inner]).max() < 0.02 and gauss[inner].max() < 1e-3 and gauss[inner].mean() < -0.02


# ---- the fluids and their picture ----


def test_parting_keeps_the_amount_and_lowers_the_energy():
    mixture = isosurface.Mixture(24)
    amount, energy = mixture.amount_and_energy()
    for _ in range(5):
        mixture.step(40)
        kept, lower = mixture.amount_and_energy()
        assert abs(kept - amount) < 1e-6 * 24**3
        assert lower < energy
        energy = lower


def test_a_step_of_parting_agrees_with_numpy():
    mixture = isosurface.Mixture(20, share=0.4)
    c = mixture.c.numpy().astype(np.float64)

    def laplacian(f):
        return sum(np.roll(f, s, axis) for s in (-1, 1) for axis in range(3)) - 6.0 * f

    for _ in range(3):
        c = c + isosurface.STEP * laplacian(c**3 - c - isosurface.WIDTH**2 * laplacian(c))
    mixture.step(3)
    np.testing.assert_allclose(mixture.c.numpy(), c, atol=1e-6)


@pytest.mark.minutes_on_cuda
def test_the_report_names_what_the_mesh_has():
    mixture = isosurface.Mixture(32)
    mixture.step(400)
    points, triangles = mixture.mesh(refined=True)
    parts = _mesh.parts(points, triangles, _mesh.edge_table(triangles))
    assert_closed(triangles.numpy())
    assert parts.volume.min() >= 0.9 * isosurface.DUST * mixture.spacing**3
    report = mixture.report()
    assert "closed" in report and f"the Euler characteristic is {parts.euler.sum()}" in report
    assert f"{len(parts.euler)} parts with {int((1 - parts.euler // 2).sum())} handles" in report


def test_a_drawn_sphere_has_its_outline_and_its_light_side():
    field = 9.0 - np.sqrt(((np.mgrid[0:24, 0:24, 0:24] - 11.5) ** 2).sum(axis=0))
    surface = _cubes.Surface(field.shape, (-11.5, -11.5, -11.5))
    points, triangles = surface.extract(wp.array(field.astype(np.float32), dtype=float))
    white = wp.full(len(points), wp.vec3(1.0, 1.0, 1.0), dtype=wp.vec3)
    look = _raster.daylight(sun=(1.0, 0.2, 0.3), gloss=0.0)
    view = _raster.camera((0.0, 0.0, 60.0), (0.0, 0.0, 0.0), 100, 100, field_of_view=40.0)
    picture = _raster.draw(view, look, points, triangles, white, reach=12.0)
    bare = _raster.draw(view, look, points, triangles[:1], white, reach=12.0)
    covered = np.abs(picture - bare).max(axis=2) > 0.02
    # the outline of a sphere at distance d: sin(angle) = r / d
    radius = 50.0 * np.tan(np.arcsin(9.0 / 60.0)) / np.tan(np.radians(20.0))
    assert abs(np.sqrt(covered.sum() / np.pi) - radius) < 0.5
    light = picture.sum(axis=2)
    assert light[40:60, 60:66].mean() > 1.5 * light[40:60, 34:40].mean()
