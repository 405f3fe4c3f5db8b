"""Fifty meshes that are easy to get wrong: every kind at every size and place."""

import math
from dataclasses import dataclass

import numpy as np


@dataclass
class Shape:
    """Points (n, 3) float64 and faces (m, 3) int32."""

    name: str
    points: np.ndarray
    faces: np.ndarray
    is_closed: bool = False  # every edge is shared by faces that go along it in both directions
    is_simple: bool = False  # and no two faces meet but at their edges

    @property
    def corners(self):
        return self.points[self.faces].astype(np.float64)


def rings(name, rows, columns, place, **kinds):
    """A surface with two poles; place(theta, phi), arrays, gives (..., 3)."""
    theta = np.linspace(0, math.pi, rows + 1)[1:-1, None]
    phi = (np.arange(columns) * (2 * math.pi / columns))[None]
    middle = place(*np.broadcast_arrays(theta, phi)).reshape(-1, 3)
    pole = [place(np.array(angle), np.array(0.0)).reshape(1, 3) for angle in (0.0, math.pi)]
    i, j = np.meshgrid(np.arange(rows - 2), np.arange(columns), indexing="ij")
    a, b = 1 + i * columns + j, 1 + i * columns + (j + 1) % columns
    c, d = a + columns, b + columns
    j = np.arange(columns)
    last = len(middle) + 1
    top = np.stack([0 * j, 1 + j, 1 + (j + 1) % columns], axis=-1)
    base = 1 + (rows - 2) * columns
    bottom = np.stack([0 * j + last, base + (j + 1) % columns, base + j], axis=-1)
    faces = [top, bottom, *(np.stack(f, axis=-1).reshape(-1, 3) for f in ((a, c, b), (b, c, d)))]
    return Shape(name, np.concatenate([pole[0], middle, pole[1]]), np.concatenate(faces), **kinds)


def star(name, rows, columns, radius, **kinds):
    """Around the origin, at the distance radius(theta, phi): no faces meet but at their edges."""

    def place(t, p):
        way = np.stack([np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)], axis=-1)
        return np.broadcast_to(radius(t, p), t.shape)[..., None] * way

    return rings(name, rows, columns, place, is_closed=True, is_simple=True, **kinds)


def tube(name, along, around, middle, width, **kinds):
    """A closed tube around the curve middle(s), 0 <= s < 2 pi."""
    s = np.arange(along) * (2 * math.pi / along)
    at, ahead = middle(s), middle(s + 1e-4)
    tangent = ahead - at
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    side = np.cross(tangent, [0.0, 0.1, 1.0])
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    up = np.cross(side, tangent)
    angle = np.arange(around) * (2 * math.pi / around)
    ring = width * (np.cos(angle)[None, :, None] * side[:, None] + np.sin(angle)[None, :, None] * up[:, None])
    i, j = np.meshgrid(np.arange(along), np.arange(around), indexing="ij")
    a, b = i * around + j, i * around + (j + 1) % around
    c, d = (i + 1) % along * around + j, (i + 1) % along * around + (j + 1) % around
    faces = np.concatenate([np.stack(f, axis=-1).reshape(-1, 3) for f in ((a, c, b), (b, c, d))])
    return Shape(name, (at[:, None] + ring).reshape(-1, 3), faces, is_closed=True, **kinds)


def soup(name, rng, count, extent, stretch=(1, 1, 1)):
    middle = rng.uniform(-1, 1, (count, 1, 3))
    points = middle + extent * np.array(stretch) * rng.uniform(-1, 1, (count, 3, 3))
    return Shape(name, points.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3))


def joined(name, parts, **kinds):
    starts = np.cumsum([0] + [len(part.points) for part in parts])
    faces = [part.faces + start for part, start in zip(parts, starts, strict=False)]
    return Shape(name, np.concatenate([part.points for part in parts]), np.concatenate(faces), **kinds)


def sheet(name, n, height):
    x, y = np.meshgrid(np.linspace(-1, 1, n + 1), np.linspace(-1, 1, n + 1), indexing="ij")
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    a, c = i * (n + 1) + j, i * (n + 1) + j + 1
    b, d = a + n + 1, c + n + 1
    faces = np.concatenate([np.stack(f, axis=-1).reshape(-1, 3) for f in ((a, b, c), (c, b, d))])
    return Shape(name, np.stack([x, y, height(x, y)], axis=-1).reshape(-1, 3), faces)


def with_degenerate_faces(shape, rng):
    """Between its faces such without area: a corner twice, or three times."""
    twice = shape.faces[rng.integers(len(shape.faces), size=len(shape.faces) // 8)].copy()
    twice[:, 2] = twice[:, rng.integers(2)]
    thrice = np.repeat(rng.integers(len(shape.points), size=(len(shape.faces) // 8, 1)), 3, axis=1)
    faces = np.concatenate([shape.faces, twice, thrice])
    return Shape("degenerate", shape.points, faces[rng.permutation(len(faces))], is_closed=True, is_simple=True)


def kinds(faces, seed):
    """One mesh of each kind, of about so many faces."""
    rng = np.random.default_rng(seed)
    rows = max(4, round(math.sqrt(faces) / 2))
    columns = 2 * rows
    noise = rng.uniform(0.3, 1.0, 64)

    def rough(t, p):
        return noise[(t * 997.0 + p * 577.0).astype(np.int64) % 64]

    def turned(points):
        q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
        return points @ (q * np.sign(np.linalg.det(q)))

    def ball():
        return star("", rows, columns, lambda t, p: 1.0)

    def small_ball():  # one of two
        r = max(4, round(math.sqrt(faces / 2) / 2))
        return star("", r, 2 * r, lambda t, p: 1.0)

    flat = star("thin", rows, columns, lambda t, p: 1.0)
    flat.points = turned(flat.points * [1.0, 1.0, 1e-3])
    needle = star("needle", rows, columns, lambda t, p: 1.0)
    needle.points = turned(needle.points * [1.0, 2e-3, 2e-3])
    shells = [small_ball() for _ in range(2)]
    shells[1].points = shells[1].points * 0.8 + [0.6, 0.1, 0.2]
    inner = small_ball()
    inner.points, inner.faces = inner.points * 0.5, inner.faces[:, ::-1]
    half = ball()
    crumpled = star("crumpled", rows, columns, lambda t, p: 1.0)
    crumpled.points = crumpled.points + 0.35 * rng.standard_normal(crumpled.points.shape)
    crumpled.is_simple = False
    circle = lambda s: np.stack([np.cos(s), np.sin(s), 0 * s], axis=-1)  # noqa: E731
    knot = lambda s: np.stack(  # noqa: E731
        [(2 + np.cos(3 * s)) * np.cos(2 * s), (2 + np.cos(3 * s)) * np.sin(2 * s), np.sin(3 * s)], axis=-1
    )
    along = max(8, round(math.sqrt(faces * 2)))
    return [
        star("sphere", rows, columns, lambda t, p: 1.0),
        star("bumpy", rows, columns, lambda t, p: 1 + 0.3 * np.sin(5 * t) * np.sin(t) * np.cos(4 * p)),
        star("random radii", rows, columns, rough),
        tube("torus", along, max(5, faces // (2 * along)), circle, 0.35, is_simple=True),
        flat,
        needle,
        with_degenerate_faces(star("", rows, columns, lambda t, p: 1 + 0.2 * np.cos(3 * t)), rng),
        joined("nested", [small_ball(), inner], is_closed=True, is_simple=True),
        joined("overlapping", shells, is_closed=True),
        tube("knot", along, max(5, faces // (2 * along)), knot, 1.2),
        crumpled,
        soup("random", rng, faces, 0.15),
        soup("splinters", rng, faces, 0.5, (1, 1e-4, 1e-4)),
        sheet("open", max(2, round(math.sqrt(faces / 2))), lambda x, y: 0.3 * np.sin(4 * x) * np.cos(5 * y)),
        Shape("holes", half.points, half.faces[rng.random(len(half.faces)) < 0.7]),
        joined("duplicates", [soup("", rng, faces // 3, 0.3)] * 3),
    ]


# Scale, and offset in the mesh's own units.
PLACEMENTS = {
    "": (1.0, (0, 0, 0)),
    "tiny": (1e-6, (0, 0, 0)),
    "huge": (1e6, (0, 0, 0)),
    "far": (1.0, (300, -700, 500)),
}


def placed(shape, placement):
    scale, offset = PLACEMENTS[placement]
    name = f"{shape.name} {placement}".strip().replace(" ", "_")
    points = scale * (shape.points + np.array(offset))
    return Shape(name, points, shape.faces.astype(np.int32), shape.is_closed, shape.is_simple)


def fifty(faces):
    """Fifty meshes of some so many faces: 16 kinds, each as it is and at two other places, and the two smallest."""
    made = []
    for n, placement in enumerate(PLACEMENTS):
        left_out = n - 1 if n > 0 else None
        made += [placed(shape, placement) for k, shape in enumerate(kinds(faces, 100 + n)) if k % 3 != left_out]
    corner = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    tetrahedron = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    smallest = [
        Shape("tetrahedron", corner, tetrahedron.astype(np.int32), True, True),
        Shape("one_face", corner[1:], np.array([[0, 1, 2]], np.int32)),
    ]
    return made + smallest
