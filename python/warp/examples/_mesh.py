"""Properties of closed surfaces, and better triangles for them: kernels for meshes of points and triangles.

`edge_table` enters all edges into a hash table, by atomics; from it follow whether the surface is closed (`audit`), its
connected parts with their Euler characteristics, areas and volumes (`parts`), and which short edges can be collapsed
without a change of its topology (`collapse`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import warp as wp

FREE = 2**64 - 1  # a slot of the edge table that no edge has
ONCE_EACH_WAY = 1 + 2**16  # uses of an edge between two triangles that face the same way


# ---- edges ----


@wp.struct
class Edges:
    """A hash table with open addressing: an edge has the first free slot from its hash on."""

    keys: wp.array[wp.uint64]  # the lower point in the upper half, the higher point in the lower half
    uses: wp.array[int]  # by triangles: 1 for each that runs up the edge, 2**16 for each that runs down


@wp.func
def end_points(key: wp.uint64) -> wp.vec2i:
    return wp.vec2i(int(key >> wp.uint64(32)), int(key & wp.uint64(0xFFFFFFFF)))


@wp.func
def claim_slot(keys: wp.array[wp.uint64], i: int, j: int) -> int:
    """Slot of the edge between two points; an edge without a slot gets one."""
    key = (wp.uint64(wp.min(i, j)) << wp.uint64(32)) | wp.uint64(wp.max(i, j))
    mask = keys.shape[0] - 1
    slot = int((key * wp.uint64(0x9E3779B97F4A7C15)) >> wp.uint64(33)) & mask
    held = wp.atomic_cas(keys, slot, wp.uint64(FREE), key)
    while held != wp.uint64(FREE) and held != key:
        slot = (slot + 1) & mask
        held = wp.atomic_cas(keys, slot, wp.uint64(FREE), key)
    return slot


@wp.kernel
def enter_edges(triangles: wp.array2d[int], edges: Edges):
    t = wp.tid()
    for corner in range(3):
        i = triangles[t, corner]
        j = triangles[t, (corner + 1) % 3]
        wp.atomic_add(edges.uses, claim_slot(edges.keys, i, j), 1 if i < j else 1 << 16)


@wp.kernel
def count_edges(edges: Edges, counts: wp.array[int]):
    """How many edges there are, and how many of them do not lie between two triangles that face the same way."""
    slot = wp.tid()
    if edges.keys[slot] != wp.uint64(FREE):
        wp.atomic_add(counts, 0, 1)
        if edges.uses[slot] != ONCE_EACH_WAY:
            wp.atomic_add(counts, 1, 1)


def edge_table(triangles: wp.array) -> Edges:
    """The edges of ``triangles`` (n, 3), in a table at most half full."""
    capacity = 1 << max(4, int(3 * len(triangles) - 1).bit_length())
    edges = Edges()
    edges.keys, edges.uses = wp.full(capacity, FREE, dtype=wp.uint64), wp.zeros(capacity, dtype=int)
    wp.launch(enter_edges, dim=len(triangles), inputs=[triangles, edges])
    return edges


def audit(edges: Edges) -> tuple[int, int]:
    """How many edges there are, and at how many of them the surface is open, branches or turns its face."""
    counts = wp.zeros(2, dtype=int)
    wp.launch(count_edges, dim=len(edges.keys), inputs=[edges, counts])
    total, faults = counts.numpy()
    return int(total), int(faults)


# ---- connected parts ----


@wp.func
def root_of(parent: wp.array[int], i: int) -> int:
    above = parent[i]
    while above != i:
        i = above
        above = parent[i]
    return i


@wp.kernel
def stand_alone(parent: wp.array[int]):
    i = wp.tid()
    parent[i] = i


@wp.kernel
def unite(edges: Edges, parent: wp.array[int]):
    """Hangs the higher root of an edge's ends below the lower one: parents only ever get lower, so that all threads may
    do it at once and none waits for another."""
    key = edges.keys[wp.tid()]
    if key != wp.uint64(FREE):
        ends = end_points(key)
        low = root_of(parent, ends[0])
        high = root_of(parent, ends[1])
        while low != high:
            if low > high:
                low, high = high, low
            held = wp.atomic_cas(parent, high, high, low)
            if held == high:
                high = low
            else:
                high = root_of(parent, held)


@wp.kernel
def mark_roots(parent: wp.array[int], is_root: wp.array[int]):
    i = wp.tid()
    is_root[i] = 1 if parent[i] == i else 0


@wp.kernel
def number_parts(parent: wp.array[int], number: wp.array[int], part: wp.array[int], counts: wp.array2d[int]):
    i = wp.tid()
    p = number[root_of(parent, i)]
    part[i] = p
    wp.atomic_add(counts, p, 0, 1)


@wp.kernel
def count_edges_of_parts(edges: Edges, part: wp.array[int], counts: wp.array2d[int]):
    key = edges.keys[wp.tid()]
    if key != wp.uint64(FREE):
        wp.atomic_add(counts, part[end_points(key)[0]], 1, 1)


@wp.kernel
def measure_parts(
    points: wp.array[wp.vec3],
    triangles: wp.array2d[int],
    part: wp.array[int],
    counts: wp.array2d[int],
    sizes: wp.array2d[wp.float64],
):
    """Triangles, area and enclosed volume of each part."""
    t = wp.tid()
    a = points[triangles[t, 0]]
    b = points[triangles[t, 1]]
    c = points[triangles[t, 2]]
    p = part[triangles[t, 0]]
    n = wp.cross(b - a, c - a)
    wp.atomic_add(counts, p, 2, 1)
    wp.atomic_add(sizes, p, 0, wp.float64(0.5 * wp.length(n)))
    wp.atomic_add(sizes, p, 1, wp.float64(wp.dot(a, n) / 6.0))


@dataclass
class Parts:
    """The connected parts of a surface; arrays have an entry for each part."""

    of_point: wp.array
    """the part that a point belongs to"""
    points: np.ndarray
    edges: np.ndarray
    triangles: np.ndarray
    area: np.ndarray
    volume: np.ndarray

    @property
    def euler(self) -> np.ndarray:
        """Points less edges plus triangles: 2 for a sphere, and 2 less for each handle."""
        return self.points - self.edges + self.triangles


def _numbered(flags: wp.array) -> tuple[wp.array, int]:
    """The number of each entry that is 1 among those that are, and how many there are."""
    numbers = wp.empty_like(flags)
    wp.utils.array_scan(flags, numbers, inclusive=False)
    return numbers, int(flags[-1:].numpy()[0] + numbers[-1:].numpy()[0]) if len(flags) else 0


def parts(points: wp.array, triangles: wp.array, edges: Edges) -> Parts:
    count = len(points)
    parent, is_root, part = (wp.empty(count, dtype=int) for _ in range(3))
    wp.launch(stand_alone, dim=count, outputs=[parent])
    wp.launch(unite, dim=len(edges.keys), inputs=[edges, parent])
    wp.launch(mark_roots, dim=count, inputs=[parent], outputs=[is_root])
    number, found = _numbered(is_root)
    counts, sizes = wp.zeros((found, 3), dtype=int), wp.zeros((found, 2), dtype=wp.float64)
    wp.launch(number_parts, dim=count, inputs=[parent, number], outputs=[part, counts])
    wp.launch(count_edges_of_parts, dim=len(edges.keys), inputs=[edges, part, counts])
    wp.launch(measure_parts, dim=len(triangles), inputs=[points, triangles, part, counts, sizes])
    return Parts(part, *counts.numpy().T, *sizes.numpy().T)


# ---- keeping some of the triangles ----


@wp.kernel
def mark_kept(
    triangles: wp.array2d[int], moved: wp.array[int], kept: wp.array[int], is_used: wp.array[int], stays: wp.array[int]
):
    """Triangles that have three corners still, all of which are to be kept."""
    t = wp.tid()
    i = moved[triangles[t, 0]]
    j = moved[triangles[t, 1]]
    k = moved[triangles[t, 2]]
    stays[t] = 0
    if i != j and j != k and k != i and kept[i] != 0 and kept[j] != 0 and kept[k] != 0:
        stays[t] = 1
        is_used[i] = 1
        is_used[j] = 1
        is_used[k] = 1


@wp.kernel
def copy_points(
    points: wp.array[wp.vec3], is_used: wp.array[int], number: wp.array[int], kept_points: wp.array[wp.vec3]
):
    i = wp.tid()
    if is_used[i] != 0:
        kept_points[number[i]] = points[i]


@wp.kernel
def copy_triangles(
    triangles: wp.array2d[int],
    moved: wp.array[int],
    stays: wp.array[int],
    place: wp.array[int],
    number: wp.array[int],
    kept_triangles: wp.array2d[int],
):
    t = wp.tid()
    if stays[t] != 0:
        for corner in range(3):
            kept_triangles[place[t], corner] = number[moved[triangles[t, corner]]]


def _kept(points: wp.array, triangles: wp.array, moved: wp.array, kept: wp.array) -> tuple[wp.array, wp.array]:
    """The mesh with point i at the place of point ``moved[i]``, without points that are not ``kept``."""
    is_used, stays = wp.zeros(len(points), dtype=int), wp.empty(len(triangles), dtype=int)
    wp.launch(mark_kept, dim=len(triangles), inputs=[triangles, moved, kept], outputs=[is_used, stays])
    (number, point_count), (place, triangle_count) = _numbered(is_used), _numbered(stays)
    kept_points, kept_triangles = wp.empty(point_count, dtype=wp.vec3), wp.empty((triangle_count, 3), dtype=int)
    wp.launch(copy_points, dim=len(points), inputs=[points, is_used, number], outputs=[kept_points])
    inputs = [triangles, moved, stays, place, number]
    wp.launch(copy_triangles, dim=len(triangles), inputs=inputs, outputs=[kept_triangles])
    return kept_points, kept_triangles


@wp.kernel
def mark_large(part: wp.array[int], is_large: wp.array[int], kept: wp.array[int]):
    i = wp.tid()
    kept[i] = is_large[part[i]]


def without_dust(points: wp.array, triangles: wp.array, least_volume: float) -> tuple[wp.array, wp.array]:
    """The mesh without the parts that enclose less than ``least_volume``."""
    found = parts(points, triangles, edge_table(triangles))
    is_large = wp.array((np.abs(found.volume) >= least_volume).astype(np.int32))
    moved, kept = wp.empty(len(points), dtype=int), wp.empty(len(points), dtype=int)
    wp.launch(stand_alone, dim=len(points), outputs=[moved])
    wp.launch(mark_large, dim=len(points), inputs=[found.of_point, is_large], outputs=[kept])
    return _kept(points, triangles, moved, kept)


# ---- collapsing short edges ----


@wp.struct
class Fans:
    """The triangles around each point: those of point i are of[start[i]] and the count[i] - 1 that follow."""

    start: wp.array[int]
    count: wp.array[int]
    of: wp.array[int]


@wp.kernel
def count_corners(triangles: wp.array2d[int], count: wp.array[int]):
    t = wp.tid()
    for corner in range(3):
        wp.atomic_add(count, triangles[t, corner], 1)


@wp.kernel
def fill_fans(triangles: wp.array2d[int], filled: wp.array[int], fans: Fans):
    t = wp.tid()
    for corner in range(3):
        i = triangles[t, corner]
        fans.of[fans.start[i] + wp.atomic_add(filled, i, 1)] = t


@wp.func
def following(triangles: wp.array2d[int], t: int, i: int) -> wp.vec2i:
    """The other two corners of a triangle, in its direction from i on."""
    if triangles[t, 0] == i:
        return wp.vec2i(triangles[t, 1], triangles[t, 2])
    if triangles[t, 1] == i:
        return wp.vec2i(triangles[t, 2], triangles[t, 0])
    return wp.vec2i(triangles[t, 0], triangles[t, 1])


@wp.func
def neighbours_in_common(triangles: wp.array2d[int], fans: Fans, i: int, j: int) -> int:
    count = int(0)
    for m in range(fans.count[i]):
        beside_i = following(triangles, fans.of[fans.start[i] + m], i)[0]
        for n in range(fans.count[j]):
            if following(triangles, fans.of[fans.start[j] + n], j)[0] == beside_i:
                count += 1
    return count


@wp.func
def fan_normal(points: wp.array[wp.vec3], triangles: wp.array2d[int], fans: Fans, i: int) -> wp.vec3:
    """Sum of the normals of the triangles around a point, each as long as its area; slivers do not count."""
    total = wp.vec3(0.0, 0.0, 0.0)
    for m in range(fans.count[i]):
        others = following(triangles, fans.of[fans.start[i] + m], i)
        total += 0.5 * wp.cross(points[others[0]] - points[i], points[others[1]] - points[i])
    return total


@wp.func
def turns_over(
    points: wp.array[wp.vec3], triangles: wp.array2d[int], fans: Fans, i: int, j: int, to: wp.vec3, normal: wp.vec3
) -> bool:
    """Whether a triangle at i, unless it vanishes with the edge to j, would be more than 75 degrees off the normal."""
    for m in range(fans.count[i]):
        others = following(triangles, fans.of[fans.start[i] + m], i)
        if others[0] != j and others[1] != j:
            after = wp.cross(points[others[0]] - to, points[others[1]] - to)
            if wp.dot(after, normal) <= 0.26 * wp.length(after):
                return True
    return False


@wp.kernel
def bid(
    points: wp.array[wp.vec3],
    triangles: wp.array2d[int],
    edges: Edges,
    fans: Fans,
    shortest: float,
    bids: wp.array[wp.uint64],
    best: wp.array[wp.uint64],
):
    """An edge that can go bids for the points around it; the shortest edge gets a point, of equals the first."""
    slot = wp.tid()
    bids[slot] = wp.uint64(FREE)
    key = edges.keys[slot]
    if key == wp.uint64(FREE):
        return
    ends = end_points(key)
    i = ends[0]
    j = ends[1]
    length = wp.length(points[i] - points[j])
    if length >= shortest or fans.count[i] + fans.count[j] < 7:
        return
    # The two triangles beside the edge have a corner each that both ends know. With a third neighbour in common, the
    # edges to it would become one: the surface would be pinched there.
    if neighbours_in_common(triangles, fans, i, j) != 2:
        return
    middle = 0.5 * (points[i] + points[j])
    normal = wp.normalize(fan_normal(points, triangles, fans, i) + fan_normal(points, triangles, fans, j))
    if turns_over(points, triangles, fans, i, j, middle, normal):
        return
    if turns_over(points, triangles, fans, j, i, middle, normal):
        return
    mine = (wp.uint64(wp.cast(length, wp.uint32)) << wp.uint64(32)) | wp.uint64(slot)
    bids[slot] = mine
    for end in range(2):
        for m in range(fans.count[ends[end]]):
            t = fans.of[fans.start[ends[end]] + m]
            for corner in range(3):
                wp.atomic_min(best, triangles[t, corner], mine)


@wp.kernel
def collapse_winners(
    triangles: wp.array2d[int],
    edges: Edges,
    fans: Fans,
    bids: wp.array[wp.uint64],
    best: wp.array[wp.uint64],
    points: wp.array[wp.vec3],
    moved: wp.array[int],
    collapsed: wp.array[int],
):
    """An edge that got all points around it has its ends at its middle: no other edge that goes is beside it."""
    slot = wp.tid()
    mine = bids[slot]
    if mine == wp.uint64(FREE):
        return
    ends = end_points(edges.keys[slot])
    for end in range(2):
        for m in range(fans.count[ends[end]]):
            t = fans.of[fans.start[ends[end]] + m]
            for corner in range(3):
                if best[triangles[t, corner]] != mine:
                    return
    points[ends[0]] = 0.5 * (points[ends[0]] + points[ends[1]])
    moved[ends[1]] = ends[0]
    wp.atomic_add(collapsed, 0, 1)


def collapse(points: wp.array, triangles: wp.array, shortest: float) -> tuple[wp.array, wp.array]:
    """The closed mesh with edges below ``shortest`` collapsed, unless that changes its topology or a triangle's side.
    Marching cubes leaves many of them: needles, if the surface passes near a node of the grid."""
    points = wp.clone(points)
    while True:
        edges, fans = edge_table(triangles), Fans()
        fans.count, fans.start = wp.zeros(len(points), dtype=int), wp.empty(len(points), dtype=int)
        wp.launch(count_corners, dim=len(triangles), inputs=[triangles, fans.count])
        wp.utils.array_scan(fans.count, fans.start, inclusive=False)
        filled, fans.of = wp.zeros(len(points), dtype=int), wp.empty(3 * len(triangles), dtype=int)
        wp.launch(fill_fans, dim=len(triangles), inputs=[triangles, filled, fans])
        bids, best = wp.empty(len(edges.keys), dtype=wp.uint64), wp.full(len(points), FREE, dtype=wp.uint64)
        wp.launch(bid, dim=len(bids), inputs=[points, triangles, edges, fans, shortest, bids, best])
        moved, collapsed = wp.empty(len(points), dtype=int), wp.zeros(1, dtype=int)
        wp.launch(stand_alone, dim=len(points), outputs=[moved])
        wp.launch(
            collapse_winners, dim=len(bids), inputs=[triangles, edges, fans, bids, best, points, moved, collapsed]
        )
        if collapsed.numpy()[0] == 0:
            return points, triangles
        points, triangles = _kept(points, triangles, moved, wp.ones(len(points), dtype=int))


# ---- shape ----


@wp.kernel
def gather(
    points: wp.array[wp.vec3],
    triangles: wp.array2d[int],
    sums: wp.array[wp.vec3],
    counts: wp.array[int],
):
    """Each triangle adds its other two corners to every corner: over all, each neighbour twice."""
    t = wp.tid()
    for corner in range(3):
        i = triangles[t, corner]
        a = points[triangles[t, (corner + 1) % 3]]
        b = points[triangles[t, (corner + 2) % 3]]
        wp.atomic_add(sums, i, a + b)
        wp.atomic_add(counts, i, 2)


@wp.kernel
def relax(share: float, sums: wp.array[wp.vec3], counts: wp.array[int], points: wp.array[wp.vec3]):
    """Moves a point by `share` of the way to the mean of its neighbours."""
    i = wp.tid()
    points[i] += share * (sums[i] / float(counts[i]) - points[i])


def smooth(points: wp.array, triangles: wp.array, steps: int) -> None:
    """Taubin: each step goes in, and a little further out, which keeps the volume."""
    sums, counts = wp.empty(len(points), dtype=wp.vec3), wp.empty(len(points), dtype=int)
    for share in (0.5, -0.53) * steps:
        sums.zero_()
        counts.zero_()
        wp.launch(gather, dim=len(triangles), inputs=[points, triangles, sums, counts])
        wp.launch(relax, dim=len(points), inputs=[share, sums, counts], outputs=[points])


@wp.kernel
def add_areas(points: wp.array[wp.vec3], triangles: wp.array2d[int], area: wp.array[float]):
    """A third of each triangle is its corner's."""
    t = wp.tid()
    a = points[triangles[t, 0]]
    share = wp.length(wp.cross(points[triangles[t, 1]] - a, points[triangles[t, 2]] - a)) / 6.0
    for corner in range(3):
        wp.atomic_add(area, triangles[t, corner], share)


def areas(points: wp.array, triangles: wp.array) -> wp.array:
    """The area that each point stands for."""
    area = wp.zeros(len(points), dtype=float)
    wp.launch(add_areas, dim=len(triangles), inputs=[points, triangles, area])
    return area
