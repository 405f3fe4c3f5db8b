"""Marching cubes: the level set of a field on a grid, as a closed mesh with shared points.

The table of triangles is worked out here from the geometry of the cube. On a face whose corners alternate, the corners
inside are kept apart; both cells beside the face decide by the same four corners, so that the surface has no holes, and
no triangle has an edge across such a face, so that no edge is used twice.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

import warp as wp

# corner c of a cell lies at (c & 1, c >> 1 & 1, c >> 2 & 1); edge 4 a + n runs along axis a
CORNERS = np.array([[c & 1, c >> 1 & 1, c >> 2 & 1] for c in range(8)])
EDGES = [(c, c | 1 << axis) for axis in range(3) for c in range(8) if not c >> axis & 1]
EDGE_OF = {frozenset(edge): e for e, edge in enumerate(EDGES)}
FACES = []  # corners of each face, anticlockwise as seen from outside
for _axis in range(3):
    _u, _v = 1 << (_axis + 1) % 3, 1 << (_axis + 2) % 3
    FACES.append([0, _v, _u | _v, _u])
    FACES.append([corner | 1 << _axis for corner in (0, _u, _u | _v, _v)])


def _loops(inside: list[bool]) -> list[list[int]]:
    """Closed polygons of crossed edges, anticlockwise as seen from outside the surface."""
    following = {}
    for face in FACES:
        begin = [i for i in range(4) if not inside[face[i - 1]] and inside[face[i]]]
        for i in begin:  # a run of corners inside: cut it off from the others
            last = i
            while inside[face[(last + 1) % 4]]:
                last += 1
            entry = EDGE_OF[frozenset((face[i - 1], face[i]))]
            leave = EDGE_OF[frozenset((face[last % 4], face[(last + 1) % 4]))]
            following[entry] = leave
    loops = []
    while following:
        start, loop = next(iter(following)), []
        edge = start
        while edge in following:
            loop.append(edge)
            edge = following.pop(edge)
        loops.append(loop)
    return loops


def _share_a_face(a: int, b: int) -> bool:
    corners = {*EDGES[a], *EDGES[b]}
    return any(corners <= set(face) for face in FACES)


def _triangulations(polygon: list[int]):
    if len(polygon) < 3:
        yield []
        return
    first, last = polygon[0], polygon[-1]
    for m in range(1, len(polygon) - 1):
        for left in _triangulations(polygon[: m + 1]):
            for right in _triangulations(polygon[m:]):
                yield [*left, (first, polygon[m], last), *right]


def _triangulate(loop: list[int]) -> list[tuple[int, int, int]]:
    """Triangles of a polygon, none with an inner edge in a face of the cube."""
    sides = {frozenset((loop[i - 1], loop[i])) for i in range(len(loop))}
    for triangles in _triangulations(loop):
        inner = {frozenset(pair) for a, b, c in triangles for pair in ((a, b), (b, c), (c, a))} - sides
        if not any(_share_a_face(*pair) for pair in inner):
            return triangles
    raise AssertionError(f"no triangulation of {loop} keeps clear of the faces")


@lru_cache
def table() -> tuple[np.ndarray, np.ndarray]:
    """For each of the 256 cases (bit c: corner c is inside), how many triangles, and their edges in rows of three."""
    cases = []
    for case in range(256):
        inside = [bool(case >> c & 1) for c in range(8)]
        cases.append([edge for loop in _loops(inside) for t in _triangulate(loop) for edge in t])
    edges = np.zeros((256, max(map(len, cases))), dtype=np.int32)
    for case, row in enumerate(cases):
        edges[case, : len(row)] = row
    return np.array([len(row) // 3 for row in cases], dtype=np.int32), edges


@wp.kernel
def place_points(
    field: wp.array3d[float],
    level: float,
    origin: wp.vec3,
    spacing: float,
    counters: wp.array[int],
    point_on: wp.array4d[int],
    points: wp.array[wp.vec3],
):
    """A point on each edge of the grid that the surface crosses; a thread has the three edges that leave a node."""
    i, j, k = wp.tid()
    here = field[i, j, k]
    node = wp.vec3(float(i), float(j), float(k))
    inside = here > level
    ahead = wp.vec3(
        field[wp.min(i + 1, field.shape[0] - 1), j, k],
        field[i, wp.min(j + 1, field.shape[1] - 1), k],
        field[i, j, wp.min(k + 1, field.shape[2] - 1)],
    )
    crossed = int(0)
    for axis in range(3):
        if (ahead[axis] > level) != inside:
            crossed += 1
    if crossed > 0:
        p = wp.atomic_add(counters, 0, crossed)
        for axis in range(3):
            if (ahead[axis] > level) != inside:
                if p < points.shape[0]:
                    at = node
                    at[axis] += (level - here) / (ahead[axis] - here)
                    points[p] = origin + spacing * at
                point_on[i, j, k, axis] = p  # set also without room for the point: triangles are counted by it
                p += 1


@wp.kernel
def place_triangles(
    field: wp.array3d[float],
    level: float,
    counts: wp.array[int],
    edges: wp.array2d[int],
    edge_start: wp.array[wp.vec3i],
    counters: wp.array[int],
    point_on: wp.array4d[int],
    triangles: wp.array2d[int],
):
    """The triangles of a cell, as the table has them for its case."""
    i, j, k = wp.tid()
    case = int(0)
    for c in range(8):
        if field[i + (c & 1), j + ((c >> 1) & 1), k + ((c >> 2) & 1)] > level:
            case |= 1 << c
    count = counts[case]
    if count > 0:
        first = wp.atomic_add(counters, 1, count)
        for t in range(count):
            if first + t < triangles.shape[0]:
                for corner in range(3):
                    edge = edges[case, 3 * t + corner]
                    start = edge_start[edge]
                    triangles[first + t, corner] = point_on[i + start[0], j + start[1], k + start[2], edge // 4]


@wp.kernel
def measure(points: wp.array[wp.vec3], triangles: wp.array2d[int], sums: wp.array[wp.float64]):
    """Area and enclosed volume of a closed surface."""
    t = wp.tid()
    a = points[triangles[t, 0]]
    b = points[triangles[t, 1]]
    c = points[triangles[t, 2]]
    n = wp.cross(b - a, c - a)
    wp.atomic_add(sums, 0, wp.float64(0.5 * wp.length(n)))
    wp.atomic_add(sums, 1, wp.float64(wp.dot(a, n) / 6.0))


class Surface:
    """Extracts surfaces of one field after another into buffers that it keeps; they grow if a surface needs more."""

    def __init__(self, shape: tuple[int, int, int], origin=(0.0, 0.0, 0.0), spacing: float = 1.0):
        counts, edges = table()
        self.counts, self.edges = wp.array(counts, dtype=int), wp.array(edges, dtype=int)
        self.edge_start = wp.array(np.array([CORNERS[a] for a, _ in EDGES]), dtype=wp.vec3i)
        self.shape, self.origin, self.spacing = shape, wp.vec3(*origin), spacing
        self.point_on = wp.empty((*shape, 3), dtype=int)
        self.room_for(1024, 2048)

    def room_for(self, points: int, triangles: int) -> None:
        self.all_points = wp.empty(points, dtype=wp.vec3)
        self.all_triangles = wp.empty((triangles, 3), dtype=int)

    def extract(self, field: wp.array, level: float = 0.0) -> tuple[wp.array, wp.array]:
        """Points (n, vec3) and triangles (m, 3) of the level set of ``field`` at ``level``; their front faces lower
        values. The order of points and triangles varies from run to run. Valid until the next call."""
        cells = tuple(n - 1 for n in self.shape)
        while True:
            counters = wp.zeros(2, dtype=int)
            inputs = [field, level, self.origin, self.spacing, counters]
            wp.launch(place_points, dim=self.shape, inputs=inputs, outputs=[self.point_on, self.all_points])
            inputs = [field, level, self.counts, self.edges, self.edge_start, counters, self.point_on]
            wp.launch(place_triangles, dim=cells, inputs=inputs, outputs=[self.all_triangles])
            points, triangles = (int(n) for n in counters.numpy())
            if points <= len(self.all_points) and triangles <= len(self.all_triangles):
                return self.all_points[:points], self.all_triangles[:triangles]
            self.room_for(points + points // 4, triangles + triangles // 4)


def area_and_volume(points: wp.array, triangles: wp.array) -> tuple[float, float]:
    sums = wp.zeros(2, dtype=wp.float64)
    wp.launch(measure, dim=len(triangles), inputs=[points, triangles, sums])
    area, volume = sums.numpy()
    return float(area), float(volume)
