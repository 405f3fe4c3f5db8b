"""wp.MarchingCubes: level sets of a field as triangles.

An edge of a cube between eight values is cut if its ends lie on both sides of the threshold. The faces of the cube join
the cuts. On each face, seen from outside, a line leads from the begin to the end of a row of corners below the
threshold. The lines of six faces close to loops, which are filled with triangles. Two cubes that share a face find the
same lines on it, in opposite directions, so that surfaces have no holes. If two opposite corners of a face are below,
they are kept apart. The tables follow from this rule (W. E. Lorensen, H. E. Cline, Marching Cubes, 1987, have others).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import warp as wp
from warp._weft import usage_error

__all__ = ["MarchingCubes"]

# Positions of the corners of a cube; the two corners of each edge, the lower one first; the corners of each face,
# counter-clockwise from outside.
_CORNERS = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))
_EDGES = ((0, 1), (1, 2), (3, 2), (0, 3), (4, 5), (5, 6), (7, 6), (4, 7), (0, 4), (1, 5), (2, 6), (3, 7))
_FACES = ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (3, 7, 6, 2), (0, 4, 7, 3), (1, 2, 6, 5))


def _triangles(below: int) -> list[int]:
    """The cut edges of a cube, three for each triangle; `below` has a bit for each corner below the threshold."""
    edge_of = {frozenset(corners): edge for edge, corners in enumerate(_EDGES)}
    following = {}
    for face in _FACES:
        inside = [bool(below >> corner & 1) for corner in face]
        for n in range(4):
            if inside[n] or not inside[(n + 1) % 4]:
                continue
            last = n + 1  # of the row of corners that begins behind n
            while inside[(last + 1) % 4]:
                last += 1
            begin = edge_of[frozenset((face[n], face[(n + 1) % 4]))]
            following[begin] = edge_of[frozenset((face[last % 4], face[(last + 1) % 4]))]
    triangles = []
    while following:
        loop = [min(following)]
        while (edge := following.pop(loop[-1])) != loop[0]:
            loop.append(edge)
        for n in range(1, len(loop) - 1):
            triangles += [loop[0], loop[n], loop[n + 1]]
    return triangles


_CASES = [_triangles(below) for below in range(256)]
_STARTS = (0, *(int(n) for n in np.cumsum([len(case) for case in _CASES])))
_CUTS = tuple(edge for case in _CASES for edge in case)
# Of each edge the position of its lower corner, and its axis.
_PLACES = tuple((*_CORNERS[a], int(np.argmax(np.subtract(_CORNERS[b], _CORNERS[a])))) for a, b in _EDGES)


@wp.func
def _neighbour(i: int, j: int, k: int, axis: int):
    return wp.vec3i(i + wp.where(axis == 0, 1, 0), j + wp.where(axis == 1, 1, 0), k + wp.where(axis == 2, 1, 0))


@wp.kernel
def _cut_edges(field: wp.array3d(dtype=float), threshold: float, is_cut: wp.array(dtype=int)):
    """Of each value the three edges that begin there."""
    i, j, k = wp.tid()
    number = (i * field.shape[1] + j) * field.shape[2] + k
    for axis in range(3):
        to = _neighbour(i, j, k, axis)
        if to[0] >= field.shape[0] or to[1] >= field.shape[1] or to[2] >= field.shape[2]:
            continue
        if (field[i, j, k] < threshold) != (field[to[0], to[1], to[2]] < threshold):
            is_cut[3 * number + axis] = 1


@wp.kernel
def _place_vertices(
    field: wp.array3d(dtype=float),
    threshold: float,
    is_cut: wp.array(dtype=int),
    vertex: wp.array(dtype=int),
    start: wp.vec3,
    spacing: wp.vec3,
    verts: wp.array(dtype=wp.vec3),
):
    i, j, k, axis = wp.tid()
    edge = 3 * ((i * field.shape[1] + j) * field.shape[2] + k) + axis
    if is_cut[edge] != 0:
        to = _neighbour(i, j, k, axis)
        here = field[i, j, k]
        t = (threshold - here) / (field[to[0], to[1], to[2]] - here)
        at = wp.vec3(float(i), float(j), float(k))
        at[axis] = at[axis] + t
        verts[vertex[edge]] = start + wp.cw_mul(spacing, at)


@wp.func
def _corners_below(
    field: wp.array3d(dtype=float), threshold: float, corners: wp.array2d(dtype=int), i: int, j: int, k: int
):
    below = wp.int32(0)
    for c in range(8):
        if field[i + corners[c, 0], j + corners[c, 1], k + corners[c, 2]] < threshold:
            below = below | (1 << c)
    return below


@wp.kernel
def _count_indices(
    field: wp.array3d(dtype=float),
    threshold: float,
    corners: wp.array2d(dtype=int),
    starts: wp.array(dtype=int),
    count: wp.array(dtype=int),
):
    i, j, k = wp.tid()
    below = _corners_below(field, threshold, corners, i, j, k)
    count[(i * (field.shape[1] - 1) + j) * (field.shape[2] - 1) + k] = starts[below + 1] - starts[below]


@wp.kernel
def _write_indices(
    field: wp.array3d(dtype=float),
    threshold: float,
    corners: wp.array2d(dtype=int),
    starts: wp.array(dtype=int),
    cuts: wp.array(dtype=int),
    places: wp.array2d(dtype=int),
    vertex: wp.array(dtype=int),
    first: wp.array(dtype=int),
    indices: wp.array(dtype=int),
):
    i, j, k = wp.tid()
    below = _corners_below(field, threshold, corners, i, j, k)
    at = first[(i * (field.shape[1] - 1) + j) * (field.shape[2] - 1) + k]
    for n in range(starts[below], starts[below + 1]):
        edge = cuts[n]
        x = i + places[edge, 0]
        y = j + places[edge, 1]
        z = k + places[edge, 2]
        number = (x * field.shape[1] + y) * field.shape[2] + z
        indices[at + n - starts[below]] = vertex[3 * number + places[edge, 3]]


def _before(counts: wp.array) -> tuple[wp.array, int]:
    """The sum of those before each count, and of all."""
    from warp.utils import array_scan

    if counts.size == 0:
        return counts, 0
    sums = wp.empty_like(counts)
    array_scan(counts, sums, inclusive=False)
    return sums, int(sums[-1:].numpy()[0]) + int(counts[-1:].numpy()[0])


def _extract(api: str, field: Any, threshold: float, lower: Any, upper: Any) -> tuple[wp.array, wp.array]:
    if not isinstance(field, wp.array) or field.ndim != 3 or field.dtype is not wp.float32:
        found = (
            repr(field) if not isinstance(field, wp.array) else f"{field.ndim}-dimensional of {field.dtype.__name__}"
        )
        raise usage_error(f"{api}: field is {found}, expected a three-dimensional array of float32", TypeError)
    if field.size > 2**31 // 4:
        raise usage_error(f"{api}: the field has {field.size} values, at most {2**31 // 4} are possible", ValueError)
    device, shape = field.device, field.shape
    low = wp.vec3(*(lower if lower is not None else (0.0, 0.0, 0.0)))
    high = wp.vec3(*(upper if upper is not None else [n - 1.0 for n in shape]))
    spacing = wp.vec3(*((high[axis] - low[axis]) / max(shape[axis] - 1, 1) for axis in range(3)))
    is_cut = wp.zeros(3 * field.size, dtype=int, device=device)
    wp.launch(_cut_edges, dim=shape, inputs=[field, threshold, is_cut], device=device, record_tape=False)
    vertex, count = _before(is_cut)
    verts = wp.empty(count, dtype=wp.vec3, device=device, requires_grad=field.requires_grad)
    inputs = [field, threshold, is_cut, vertex, low, spacing]
    wp.launch(_place_vertices, dim=(*shape, 3), inputs=inputs, outputs=[verts], device=device)

    cells = [max(n - 1, 0) for n in shape]
    corners, places = (wp.array(np.array(table, np.int32), device=device) for table in (_CORNERS, _PLACES))
    starts, cuts = (wp.array(np.array(table, np.int32), device=device) for table in (_STARTS, _CUTS))
    counts = wp.zeros(int(np.prod(cells)), dtype=int, device=device)
    inputs = [field, threshold, corners, starts]
    wp.launch(_count_indices, dim=cells, inputs=inputs, outputs=[counts], device=device, record_tape=False)
    first, count = _before(counts)
    indices = wp.empty(count, dtype=int, device=device)
    inputs += [cuts, places, vertex, first]
    wp.launch(_write_indices, dim=cells, inputs=inputs, outputs=[indices], device=device, record_tape=False)
    return verts, indices


class MarchingCubes:
    """A level set of a field, as triangles that enclose the smaller values.

        verts, indices = wp.MarchingCubes.extract(field, threshold=0.0)
        mesh = wp.Mesh(verts, indices)

    Args:
        nx, ny, nz: how many values the fields have along each axis.
        lower, upper: positions of the first and the last value; None: (0, 0, 0) and (nx - 1, ny - 1, nz - 1).
        domain_bounds_lower_corner, domain_bounds_upper_corner: earlier names of these.

    After surface(), ``verts`` are the points (n,) vec3 and ``indices`` three of them for each triangle, (3 m,) int32,
    counter-clockwise as seen from the larger values. Both are None before. A vertex that several triangles share is
    there once; a surface that does not leave the field is closed.

    **Gradient**: of vertices with respect to the values; which edges are cut counts as constant.
    """

    CUBE_CORNER_OFFSETS = _CORNERS
    EDGE_TO_CORNERS = _EDGES
    CASE_TO_TRI_RANGE = _STARTS
    TRI_LOCAL_INDICES = _CUTS

    def __init__(
        self,
        nx: int,
        ny: int,
        nz: int,
        lower: Any = None,
        upper: Any = None,
        *,
        domain_bounds_lower_corner: Any = None,
        domain_bounds_upper_corner: Any = None,
    ):
        self.resize(nx, ny, nz)
        self.lower = lower if lower is not None else domain_bounds_lower_corner
        self.upper = upper if upper is not None else domain_bounds_upper_corner
        self.verts: wp.array | None = None
        self.indices: wp.array | None = None

    def resize(self, nx: int, ny: int, nz: int) -> None:
        """Other numbers of values, for the next surface()."""
        self.nx, self.ny, self.nz = int(nx), int(ny), int(nz)

    def surface(self, field: wp.array, threshold: float) -> None:
        """Finds the surface of a field, (nx, ny, nz) float32; it is in ``verts`` and ``indices`` then.

        Args:
            field: the values.
            threshold: the value on the surface; values that are not below it, also NaN, are outside.
        Raises:
            UsageError (a ValueError): the field has another shape than (nx, ny, nz), or more than 2**29 values; (a
                TypeError): it is no three-dimensional array of float32.
        """
        shape = (self.nx, self.ny, self.nz)
        if isinstance(field, wp.array) and field.shape != shape:
            raise usage_error(
                f"MarchingCubes.surface(): the field has the shape {field.shape}, expected {shape}. help: resize()",
                ValueError,
            )
        self.verts, self.indices = _extract("MarchingCubes.surface()", field, threshold, self.lower, self.upper)

    @staticmethod
    def extract(
        field: wp.array, threshold: float = 0.0, *, lower: Any = None, upper: Any = None
    ) -> tuple[wp.array, wp.array]:
        """(verts, indices) of a field's surface, as surface() finds them; on the field's device.

        Args:
            field: the values, (nx, ny, nz) float32.
            threshold: the value on the surface.
            lower, upper: positions of the first and the last value; None: (0, 0, 0) and (nx - 1, ny - 1, nz - 1).
        Raises:
            UsageError (a TypeError): the field is no three-dimensional array of float32; (a ValueError): it has more
                than 2**29 values.
        """
        return _extract("MarchingCubes.extract()", field, threshold, lower, upper)

    @staticmethod
    def extract_surface_marching_cubes(
        field: wp.array,
        threshold: float = 0.0,
        domain_bounds_lower_corner: Any = None,
        domain_bounds_upper_corner: Any = None,
    ) -> tuple[wp.array, wp.array]:
        """An earlier name of extract()."""
        api = "MarchingCubes.extract_surface_marching_cubes()"
        return _extract(api, field, threshold, domain_bounds_lower_corner, domain_bounds_upper_corner)

    @property
    def domain_bounds_lower_corner(self) -> Any:
        """An earlier name of lower."""
        return self.lower

    @domain_bounds_lower_corner.setter
    def domain_bounds_lower_corner(self, value: Any) -> None:
        self.lower = value

    @property
    def domain_bounds_upper_corner(self) -> Any:
        """An earlier name of upper."""
        return self.upper

    @domain_bounds_upper_corner.setter
    def domain_bounds_upper_corner(self, value: Any) -> None:
        self.upper = value
