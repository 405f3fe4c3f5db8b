"""Meshes for tests, and what their queries should find: every face is looked at, in float64."""

import math

import numpy as np
import warp as wp


def sphere(rows=12, columns=16):
    """Closed, counter-clockwise from outside."""
    latitude = np.linspace(0, math.pi, rows + 1)[1:-1]
    longitude = np.arange(columns) * (2 * math.pi / columns)
    ring = np.stack([np.cos(longitude), np.sin(longitude)], axis=1)
    points = [[0.0, 0.0, 1.0]]
    for angle in latitude:
        points += [[math.sin(angle) * x, math.sin(angle) * y, math.cos(angle)] for x, y in ring]
    points.append([0.0, 0.0, -1.0])
    faces = []
    last = len(points) - 1
    for k in range(columns):
        right = (k + 1) % columns
        faces.append([0, 1 + k, 1 + right])
        for row in range(rows - 2):
            a, b = 1 + row * columns + k, 1 + row * columns + right
            faces += [[a, a + columns, b], [b, a + columns, b + columns]]
        base = 1 + (rows - 2) * columns
        faces.append([last, base + right, base + k])
    return np.array(points), np.array(faces)


def tetrahedron():
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    return points, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def soup(rng, count):
    points = rng.standard_normal((3 * count, 3))
    return points, np.arange(3 * count).reshape(-1, 3)


def make(points, faces, dtype=wp.vec3, **options):
    return wp.Mesh(wp.array(points, dtype=dtype), wp.array(faces.reshape(-1), dtype=int), **options)


def closest_in_triangle(p, a, b, c):
    """Squared distances in float64 by minimising over the interior, the edges and the corners. Shapes (..., 3)."""

    def to_segment(q, r):
        d = r - q
        length = (d * d).sum(-1)
        t = np.clip(((p - q) * d).sum(-1) / np.where(length > 0, length, 1), 0, 1)
        x = q + t[..., None] * d
        return ((p - x) ** 2).sum(-1)

    best = np.minimum(np.minimum(to_segment(a, b), to_segment(b, c)), to_segment(c, a))
    n = np.cross(b - a, c - a)
    area = (n * n).sum(-1)
    safe = np.where(area > 0, area, 1)
    height = ((p - a) * n).sum(-1)
    foot = p - (height / safe)[..., None] * n
    inside = area > 0
    for q, r in ((a, b), (b, c), (c, a)):
        inside = inside & ((np.cross(r - q, foot - q) * n).sum(-1) >= 0)
    return np.where(inside, np.minimum(best, height * height / safe), best)


def winding_number(p, corners):
    """Of places (n, 3), exactly: the solid angles of all faces."""
    a, b, c = (corners[None, :, k] - p[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(x, axis=-1) for x in (a, b, c))
    numerator = (a * np.cross(b, c)).sum(-1)
    denominator = la * lb * lc + (a * b).sum(-1) * lc + (b * c).sum(-1) * la + (c * a).sum(-1) * lb
    return (2 * np.arctan2(numerator, denominator)).sum(1) / (4 * math.pi)


def ray_hits(start, direction, corners):
    """t of each face (rays, faces), inf if the ray misses it, in float64; and how far the hit is from an edge."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    e1, e2 = b - a, c - a
    h = np.cross(direction[:, None], e2[None])
    det = (e1[None] * h).sum(-1)
    safe = np.where(det != 0, det, 1)
    s = start[:, None] - a[None]
    u = (s * h).sum(-1) / safe
    q = np.cross(s, e1[None])
    v = (direction[:, None] * q).sum(-1) / safe
    t = (e2[None] * q).sum(-1) / safe
    rim = np.minimum(np.minimum(u, v), 1 - u - v)
    return np.where((det != 0) & (rim >= 0) & (t >= 0), t, np.inf), np.where(det != 0, rim, np.inf)
