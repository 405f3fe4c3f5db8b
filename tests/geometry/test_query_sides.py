"""Sides of points by rays and by normals, faces within a radius: against brute force in float64."""

import numpy as np
import pytest
import warp as wp
from brute_force import closest_in_triangle, make, ray_hits, soup, sphere, winding_number

TYPES = {"float32": (wp.float32, wp.vec3), "float64": (wp.float64, wp.vec3d)}


def side_kernel(real, vec):
    @wp.kernel(module="unique")
    def sides(
        mesh: wp.uint64, place: wp.array(dtype=vec), samples: int, scale: real, limit: real, out: wp.array2d(dtype=real)
    ):
        i = wp.tid()
        inside = real(0.0)
        u = real(0.0)
        v = real(0.0)
        face = int(0)
        x = place[i]
        out[i, 0] = wp.mesh_query_point(mesh, x, limit).sign
        out[i, 1] = wp.mesh_query_point_sign_normal(mesh, x, limit).sign
        out[i, 2] = wp.mesh_query_point_sign_parity(mesh, x, limit, samples, scale).sign
        if wp.mesh_query_point(mesh, x, limit, inside, face, u, v):
            out[i, 3] = inside
        if wp.mesh_query_point_sign_normal(mesh, x, limit, inside, face, u, v):
            out[i, 4] = inside
        if wp.mesh_query_point_sign_parity(mesh, x, limit, inside, face, u, v, samples, scale):
            out[i, 5] = inside

    return sides


KERNELS = {name: side_kernel(*types) for name, types in TYPES.items()}


def sides_of(name, mesh, place, samples=1, scale=0.1, limit=1e6):
    """By rays along the axes, by normals, by rays around (1, 1, 1); both forms give the same."""
    real, vec = TYPES[name]
    out = wp.zeros((len(place), 6), dtype=real)
    inputs = [mesh.id, wp.array(place, dtype=vec), samples, scale, limit]
    wp.launch(KERNELS[name], dim=len(place), inputs=inputs, outputs=[out])
    out = out.numpy()
    np.testing.assert_array_equal(out[:, :3], out[:, 3:])
    return out[:, :3].T


def crossings(place, direction, corners):
    return np.isfinite(ray_hits(place, np.broadcast_to(direction, place.shape), corners)[0]).sum(axis=1)


def by_axes(place, corners):
    return np.where(sum(crossings(place, axis, corners) % 2 for axis in np.eye(3)) >= 2, -1, 1)


@pytest.mark.parametrize("name", list(TYPES))
@pytest.mark.parametrize("turned", ["none", "all", "some"])
def test_rays_do_not_ask_how_faces_are_turned(name, turned):
    rng = np.random.default_rng(2)
    points, faces = sphere(10, 14)
    place = rng.standard_normal((200, 3)) * 0.7
    inside = winding_number(place, points[faces]) > 0.5
    expected = np.where(inside, -1, 1)
    if turned == "all":
        faces = faces[:, [0, 2, 1]]
    elif turned == "some":
        some = rng.random(len(faces)) < 0.5
        faces = np.where(some[:, None], faces[:, [0, 2, 1]], faces)
    axes, normals, diagonal = sides_of(name, make(points, faces, dtype=TYPES[name][1]), place)
    assert 0.2 < inside.mean() < 0.8
    np.testing.assert_array_equal(axes, expected)
    np.testing.assert_array_equal(diagonal, expected)
    if turned != "some":
        np.testing.assert_array_equal(normals, expected if turned == "none" else -expected)


@pytest.mark.parametrize("name", list(TYPES))
@pytest.mark.parametrize("kind", ["square", "half", "soup"])
def test_the_side_of_an_open_mesh_is_what_two_of_three_axes_say(name, kind):
    rng = np.random.default_rng(4)
    if kind == "square":
        points, faces = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]), np.array([[0, 1, 2], [0, 2, 3]])
        points[:, 2] = -0.9 * points[:, 0] - 0.8 * points[:, 1]  # seen along all axes from below
    elif kind == "half":
        points, faces = sphere(10, 14)
        faces = faces[points[faces].mean(axis=1) @ [1.0, 0.5, 0.2] > -0.3]
    else:
        points, faces = soup(rng, 60)
    points = points.astype(np.float32).astype(np.float64)
    place = (rng.standard_normal((300, 3)) * 0.8).astype(np.float32).astype(np.float64)
    axes, _, diagonal = sides_of(name, make(points, faces, dtype=TYPES[name][1]), place, 1, 0.0)
    corners = points[faces]
    sure = [
        (np.abs(ray_hits(place, np.broadcast_to(way, place.shape), corners)[1]) > 1e-5).all(axis=1)
        for way in (*np.eye(3), np.ones(3))
    ]
    expected = by_axes(place, corners)
    assert (np.all(sure, axis=0)).mean() > 0.9 and 0.02 < (expected < 0).mean() < 0.9
    np.testing.assert_array_equal(axes[np.all(sure[:3], axis=0)], expected[np.all(sure[:3], axis=0)])
    # With no scale every ray of the other form is (1, 1, 1).
    odd = crossings(place, np.ones(3), corners) % 2 == 1
    np.testing.assert_array_equal(diagonal[sure[3]], np.where(odd, -1, 1)[sure[3]])


def test_rays_along_edges_and_through_corners_of_a_box():
    """Rays from lattice places go along edges, through corners and in the planes of faces."""
    points = np.array([[x, y, z] for x in (0.0, 2) for y in (0.0, 2) for z in (0.0, 2)])
    faces = [
        [0, 1, 3],
        [0, 3, 2],
        [4, 6, 7],
        [4, 7, 5],
        [0, 4, 5],
        [0, 5, 1],
        [2, 3, 7],
        [2, 7, 6],
        [0, 2, 6],
        [0, 6, 4],
    ]
    faces = np.array([*faces, [1, 5, 7], [1, 7, 3]])
    axis = np.array([-1.0, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3])
    place = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    on_surface = ((place >= 0) & (place <= 2)).all(axis=1) & ((place == 0) | (place == 2)).any(axis=1)
    place = place[~on_surface]
    inside = ((place > 0) & (place < 2)).all(axis=1)
    for name in TYPES:
        for found in sides_of(name, make(points, faces, dtype=TYPES[name][1]), place, 5, 0.0):
            np.testing.assert_array_equal(found, np.where(inside, -1, 1))


@pytest.mark.parametrize("name", list(TYPES))
def test_half_of_the_samples_are_enough(name):
    points, faces = soup(np.random.default_rng(6), 40)
    mesh = make(points, faces, dtype=TYPES[name][1])
    place = np.random.default_rng(7).standard_normal((200, 3))
    for samples in (0, -3):
        assert (sides_of(name, mesh, place, samples)[2] == -1).all()
    one, two = (sides_of(name, mesh, place, samples, 0.7)[2] for samples in (1, 2))
    assert (two <= one).all() and (two < one).any()  # the second sample adds places that are inside
    # What is too far away has no side.
    assert (np.abs(sides_of(name, mesh, place + 50, 0, 0.1, 1.0)) == 0).all()


def within_kernel(real, vec):
    @wp.kernel(module="unique")
    def within(
        mesh: wp.uint64, centre: wp.array(dtype=vec), radius: wp.array(dtype=real), found: wp.array3d(dtype=int)
    ):
        i = wp.tid()
        for face in wp.mesh_query_sphere(mesh, centre[i], radius[i]):
            found[0, i, face] += 1
        query = wp.mesh_query_sphere(mesh, centre[i], radius[i])
        face = int(0)
        while wp.mesh_query_next(query, face):
            found[1, i, face] += 1
        for item in wp.bvh_query_sphere(wp.mesh_get_bvh(mesh), centre[i], radius[i]):
            found[2, i, item] += 1

    return within


WITHIN = {name: within_kernel(*types) for name, types in TYPES.items()}


def ask_within(name, points, faces, centre, radius):
    """Which faces, and which of their boxes."""
    real, vec = TYPES[name]
    mesh = make(points, faces, dtype=vec)
    found = wp.zeros((3, len(centre), len(faces)), dtype=int)
    inputs = [mesh.id, wp.array(centre, dtype=vec), wp.array(radius, dtype=real)]
    wp.launch(WITHIN[name], dim=len(centre), inputs=inputs, outputs=[found])
    found = found.numpy()
    np.testing.assert_array_equal(found[0], found[1])
    return found[0], found[2]


@pytest.mark.parametrize("name", list(TYPES))
@pytest.mark.parametrize("kind", ["sphere", "soup", "thin", "far", "points"])
def test_a_sphere_finds_the_faces_within_its_radius_and_no_others(kind, name):
    real = np.float32 if name == "float32" else np.float64
    rng = np.random.default_rng(8)
    points, faces = sphere(16, 20) if kind == "sphere" else soup(rng, 200)
    if kind == "thin":
        points = points * [1.0, 1e-3, 1.0]
    elif kind == "far":
        points = points + 300.0
    elif kind == "points":
        points[faces[:, 1]] = points[faces[:, 2]] = points[faces[:, 0]]
    points = points.astype(real)
    n = 100
    corners = points[faces].astype(np.float64)
    centre = (corners[rng.integers(len(faces), size=n)].mean(axis=1) + rng.standard_normal((n, 3)) * 0.4).astype(real)
    to = np.sqrt(closest_in_triangle(centre[:, None].astype(np.float64), *(corners[None, :, k] for k in range(3))))
    radius = rng.uniform(0.05, 1.0, n).astype(real)
    near = rng.integers(len(faces), size=n // 2)
    radius[: n // 2] = to[np.arange(n // 2), near]  # at the rim, as far as float32 can tell
    found, by_boxes = ask_within(name, points, faces, centre, radius)
    sure = np.abs(to - radius[:, None]) > 1e-12 * np.abs(points).max()
    np.testing.assert_array_equal(found[sure], (to <= radius[:, None])[sure])
    assert (by_boxes >= found).all() and sure.mean() > 0.99
    if kind in ("sphere", "soup"):
        assert by_boxes.sum() > 1.05 * found.sum()  # boxes find more


@pytest.mark.parametrize("name", list(TYPES))
def test_a_radius_of_zero_and_below(name):
    points, faces = np.array([[0.0, 0, 0], [4, 0, 0], [0, 4, 0]]), np.array([[0, 1, 2]])
    centre = np.array([[1.0, 1, 0], [3, 3, 0], [1, 1, 0.5], [5, 1, 0]])
    for radius in (0.0, -1.0, -1e30):
        found, boxes = ask_within(name, points, faces, centre, [radius] * 4)
        assert found[:, 0].tolist() == [1, 0, 0, 0]
        assert boxes[:, 0].tolist() == [1, 1, 0, 0]
    found, _ = ask_within(name, points, faces, centre, [0.5, np.sqrt(2.0) + 1e-6, 0.5, np.inf])
    assert found[:, 0].tolist() == [1, 1, 1, 1]
    found, _ = ask_within(name, points, faces, centre, [np.nan, 1.41, 0.4999, 1.0])
    assert found[:, 0].tolist() == [0, 0, 0, 0]
