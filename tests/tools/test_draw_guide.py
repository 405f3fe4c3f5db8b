"""The pictures of the guides show the results of a search through everything, samples by hand, and the blocks and lanes
of each element."""

from pathlib import Path

import numpy as np
import pytest
import warp as wp

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def draw(tool):
    return tool("draw_guide")


def winding_numbers(p, corners):
    """Of places (n, 3), by the solid angles of all triangles (Van Oosterom and Strackee, 1983)."""
    a, b, c = (corners[None, :, k] - p[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(x, axis=-1) for x in (a, b, c))
    below = la * lb * lc + (a * b).sum(-1) * lc + (b * c).sum(-1) * la + (c * a).sum(-1) * lb
    return (2 * np.arctan2((a * np.cross(b, c)).sum(-1), below)).sum(1) / (4 * np.pi)


def test_signs_in_the_picture(draw):
    line = np.linspace(-1.15, 1.15, 17)
    x, y = np.meshgrid(line, line)
    places = np.stack([x, y, 0.0 * x + 1.0e-4], -1).reshape(-1, 3)
    differ = {}
    for name, points, faces in draw.shapes(24, 48):
        winding = winding_numbers(places, points[faces])
        inside = draw.sides_of(points, faces, places) < 0.0
        clear = abs(winding - 0.5) > 0.05
        assert (inside[2] == (winding > 0.5))[clear].all()
        differ[name] = (inside[:2] != inside[2]).mean(axis=1)
        if name == "meeting itself":  # a ray meets both balls at places with the winding number 2
            np.testing.assert_array_equal(inside[1], np.round(winding) % 2 == 1)
    assert (differ["closed"] == 0.0).all()
    assert (differ["with a hole"] > 0.01).all() and (differ["meeting itself"] > 0.02).all()


def test_queries_in_the_picture(draw):
    curve = draw.outline()
    points, faces = draw.wall(curve)
    mesh = wp.Mesh(wp.array(points, dtype=wp.vec3), wp.array(faces.ravel(), dtype=int))
    rng = np.random.default_rng(5)
    places = rng.uniform(-1.2, 1.2, (40, 2))
    start, along = curve, np.roll(curve, -1, axis=0) - curve
    t = ((places[:, None] - start) * along).sum(-1) / (along**2).sum(-1)
    nearest = start + np.clip(t, 0.0, 1.0)[..., None] * along
    distance = np.linalg.norm(places[:, None] - nearest, axis=-1).min(axis=1)
    found = np.linalg.norm(draw.closest_to(mesh, places) - places, axis=1)
    np.testing.assert_allclose(found, distance, atol=1e-5)

    angles = rng.uniform(0.0, 2.0 * np.pi, 40)
    towards = np.stack([np.cos(angles), np.sin(angles)], -1)
    origin = np.array((-1.1, -0.95))
    cross = towards[:, None, 0] * along[None, :, 1] - towards[:, None, 1] * along[None, :, 0]
    to = start - origin
    s = (to[None, :, 0] * along[None, :, 1] - to[None, :, 1] * along[None, :, 0]) / cross
    u = (to[None, :, 0] * towards[:, None, 1] - to[None, :, 1] * towards[:, None, 0]) / cross
    first = np.where((s > 0.0) & (u >= 0.0) & (u <= 1.0), s, 4.0).min(axis=1)
    np.testing.assert_allclose(np.linalg.norm(draw.rays_from(mesh, origin, towards) - origin, axis=1), first, atol=1e-5)
    assert 3 < (first < 4.0).sum() < 40

    low, high = np.array((0.25, -0.55)), np.array((1.0, 0.35))
    ends = np.stack([curve, np.roll(curve, -1, axis=0)], 1)
    meets = ((ends.min(axis=1) <= high) & (ends.max(axis=1) >= low)).all(axis=1)
    np.testing.assert_array_equal(draw.edges_in_box(mesh, low, high, len(curve)), meets)

    many, place = rng.uniform(-1.2, 1.2, (200, 2)), np.array((0.15, 0.1))
    is_near = np.linalg.norm(many - place, axis=1) < 0.4
    np.testing.assert_array_equal(draw.points_near(many, place, 0.4) == 2, is_near)


def test_blocks_and_lanes_in_the_picture(draw):
    rows, columns = np.indices((draw.ROWS, draw.COLUMNS)) // draw.SIDE
    np.testing.assert_array_equal(draw.blocks_of_elements(), rows * (columns.max() + 1) + columns)
    np.testing.assert_array_equal(draw.lanes_of_elements(10), np.arange(10) % draw.LANES)


def test_samples_in_the_picture(draw):
    texels = np.array([1, 2, 4, 8], np.float32)
    places = np.float32([-0.2, 0.0, 0.25, 1.2])
    for mode, wanted in zip(
        wp.TextureAddressMode, ([6.8, 4.5, 1.5, 1.3], [1, 1, 1.5, 8], [1.3, 1, 1.5, 6.8], [0, 0.5, 1.5, 0]), strict=True
    ):
        np.testing.assert_allclose(draw.samples_of(texels, places, address_mode=mode), wanted, atol=1e-5)


def test_pictures_are_written_and_small(draw, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="the pictures are drawn with matplotlib and Pillow")
    draw.draw_queries(tmp_path / "queries.png")
    draw.draw_signs(tmp_path / "signs.png", pixels=40)
    draw.draw_tiles(tmp_path / "tiles.png")
    draw.draw_textures(tmp_path / "textures.png")
    for name in ("queries.png", "signs.png", "tiles.png", "textures.png"):
        for file in (tmp_path / name, ROOT / "docs" / "guide" / "pictures" / name):
            assert 4_000 < file.stat().st_size < 100_000
            with image.open(file) as picture:
                assert np.asarray(picture.convert("RGB")).std() > 10.0
