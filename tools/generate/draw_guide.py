"""Draws the pictures of the guide: the results of queries, the inside according to each sign, the blocks and views of
tiles, and samples of a texture.

    python tools/generate/draw_guide.py [folder]     writes queries.png, signs.png, tiles.png and textures.png

Kernels computed everything in them. Meshes are cut at z = 0. Without a folder it is docs/guide/pictures.
"""

import sys
from pathlib import Path

import numpy as np
import warp as wp

ROOT = Path(__file__).resolve().parents[2]
INK, INSIDE, FOUND, OTHER = "#2b3440", "#8fb8de", "#d1495b", "#9aa5b1"

# ---- signs ----


@wp.kernel
def find_sides(mesh: wp.uint64, places: wp.array[wp.vec3], sides: wp.array2d[float]):
    """Signs by normals, parity and winding numbers: -1 inside, 1 outside."""
    i = wp.tid()
    sides[0, i] = wp.mesh_query_point_sign_normal(mesh, places[i], 1.0e6).sign
    sides[1, i] = wp.mesh_query_point_sign_parity(mesh, places[i], 1.0e6).sign
    sides[2, i] = wp.mesh_query_point_sign_winding_number(mesh, places[i], 1.0e6).sign


def ball(rows=64, columns=128, lobes=0.0):
    """Points (n, 3) and triangles of a ball with five lobes, counter-clockwise from outside; its axis is y."""
    latitude = np.linspace(-0.5 * np.pi, 0.5 * np.pi, rows)[:, None]
    longitude = np.linspace(0.0, 2.0 * np.pi, columns, endpoint=False)[None]
    x, y = np.cos(latitude) * np.cos(longitude), np.sin(latitude) + 0.0 * longitude
    z = np.cos(latitude) * np.sin(longitude)
    around = np.arctan2(y, x)
    radius = 0.8 * (1.0 + lobes * np.cos(5.0 * around - 0.4) * (x * x + y * y))
    points = (radius[..., None] * np.stack([x, y, z], -1)).reshape(-1, 3)
    at = np.arange(rows * columns).reshape(rows, columns)
    a, b = at[:-1], np.roll(at, -1, axis=1)[:-1]
    c, d = at[1:], np.roll(at, -1, axis=1)[1:]
    return points, np.stack([a, c, b, b, c, d], -1).reshape(-1, 3)


def shapes(rows=64, columns=128):
    """Names, points and triangles: closed, open, and two balls that overlap."""
    points, faces = ball(rows, columns, lobes=0.16)
    yield "closed", points, faces
    middle = points[faces].mean(axis=1)
    yield "with a hole", points, faces[middle[:, 1] < 0.42]
    small, triangles = ball(rows, columns)
    two = np.concatenate([0.75 * small - (0.3, 0.1, 0.0), 0.75 * small + (0.3, 0.1, 0.0)])
    yield "meeting itself", two, np.concatenate([triangles, triangles + len(small)])


def sides_of(points, faces, places):
    """(3, n) signs of places (n, 3): by normals, parity, winding numbers."""
    mesh = wp.Mesh(wp.array(points, dtype=wp.vec3), wp.array(faces.reshape(-1), dtype=int), support_winding_number=True)
    sides = wp.zeros((3, len(places)), dtype=float)
    wp.launch(find_sides, dim=len(places), inputs=[mesh.id, wp.array(places, dtype=wp.vec3)], outputs=[sides])
    return sides.numpy()


def cut(points, faces):
    """Segments (n, 2, 2) in which triangles meet the plane just above z = 0."""
    corners = points[faces] - (0.0, 0.0, 1.0e-4)
    segments = []
    for triangle in corners[(corners[..., 2].min(axis=1) < 0.0) & (corners[..., 2].max(axis=1) > 0.0)]:
        ends = []
        for p, q in zip(triangle, np.roll(triangle, -1, axis=0), strict=True):
            if p[2] * q[2] < 0.0:
                ends.append((p + p[2] / (p[2] - q[2]) * (q - p))[:2])
        segments.append(ends)
    return np.array(segments)


def draw_signs(path, pixels=200):
    plt, lines = pyplot()
    figure, axes = plt.subplots(3, 3, figsize=(6.2, 6.4))
    line = (np.arange(pixels) + 0.5) / pixels * 2.4 - 1.2
    x, y = np.meshgrid(line, line)
    places = np.stack([x, y, 0.0 * x + 1.0e-4], -1).reshape(-1, 3)
    for row, (name, points, faces) in enumerate(shapes()):
        sides = sides_of(points, faces, places).reshape(3, pixels, pixels)
        for axis, side in zip(axes[row], sides, strict=True):
            axis.imshow(
                side < 0.0, extent=(-1.2, 1.2, -1.2, 1.2), origin="lower", cmap=two_colours(plt), vmin=0, vmax=1
            )
            axis.add_collection(lines(cut(points, faces), colors=INK, linewidths=1.3))
            clear(axis)
        axes[row][0].set_ylabel(name, fontsize=11)
    for axis, title in zip(axes[0], ("by normals", "by parity", "by winding numbers"), strict=True):
        axis.set_title(title, fontsize=11)
    save(figure, path)


# ---- queries ----


def outline(count=72):
    """A closed curve (n, 2), counter-clockwise."""
    t = np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
    r = 0.72 + 0.16 * np.cos(3.0 * t + 0.5) + 0.05 * np.sin(5.0 * t)
    return np.stack([r * np.cos(t), r * np.sin(t)], -1)


def wall(curve):
    """The curve pulled up along z: two triangles for each of its edges, 2 k and 2 k + 1."""
    n = len(curve)
    points = np.concatenate([np.c_[curve, np.full(n, -9.0)], np.c_[curve, np.full(n, 9.0)]])
    k = np.arange(n)
    right = (k + 1) % n
    return points, np.stack([k, right, k + n, right, right + n, k + n], -1).reshape(-1, 3)


@wp.kernel
def shoot(mesh: wp.uint64, starts: wp.array[wp.vec3], towards: wp.array[wp.vec3], ends: wp.array[wp.vec3]):
    i = wp.tid()
    hit = wp.mesh_query_ray(mesh, starts[i], towards[i], 4.0)
    ends[i] = starts[i] + wp.where(hit.result, hit.t, 4.0) * towards[i]


@wp.kernel
def closest(mesh: wp.uint64, places: wp.array[wp.vec3], ends: wp.array[wp.vec3]):
    i = wp.tid()
    q = wp.mesh_query_point_no_sign(mesh, places[i], 4.0)
    ends[i] = wp.mesh_eval_position(mesh, q.face, q.u, q.v)


@wp.kernel
def in_box(mesh: wp.uint64, low: wp.vec3, high: wp.vec3, found: wp.array[int]):
    for face in wp.mesh_query_aabb(mesh, low, high):
        found[face] = 1


@wp.kernel
def near(grid: wp.uint64, points: wp.array[wp.vec3], place: wp.vec3, radius: float, found: wp.array[int]):
    for j in wp.hash_grid_query(grid, place, radius):
        found[j] = wp.where(wp.length(points[j] - place) < radius, 2, 1)


def vectors(rows):
    rows = np.asarray(rows, dtype=np.float64)
    return wp.array(np.c_[rows, np.zeros(len(rows))], dtype=wp.vec3)


def rays_from(mesh, start, towards):
    ends = wp.empty(len(towards), dtype=wp.vec3)
    starts = vectors(np.broadcast_to(start, np.shape(towards)))
    wp.launch(shoot, dim=len(towards), inputs=[mesh.id, starts, vectors(towards)], outputs=[ends])
    return ends.numpy()[:, :2]


def closest_to(mesh, places):
    ends = wp.empty(len(places), dtype=wp.vec3)
    wp.launch(closest, dim=len(places), inputs=[mesh.id, vectors(places)], outputs=[ends])
    return ends.numpy()[:, :2]


def edges_in_box(mesh, low, high, count):
    found = wp.zeros(2 * count, dtype=int)
    wp.launch(in_box, dim=1, inputs=[mesh.id, wp.vec3(*low, -0.1), wp.vec3(*high, 0.1)], outputs=[found])
    return found.numpy().reshape(count, 2).max(axis=1) == 1


def points_near(points, place, radius):
    """For each point 0: not given, 1: given and too far, 2: near."""
    points = vectors(points)
    grid, found = wp.HashGrid(32, 32, 4), wp.zeros(len(points), dtype=int)
    grid.build(points, radius)
    wp.launch(near, dim=1, inputs=[grid.id, points, wp.vec3(*place, 0.0), radius], outputs=[found])
    return found.numpy()


def draw_queries(path):
    plt, lines = pyplot()
    figure, axes = plt.subplots(1, 4, figsize=(10.4, 2.95))
    titles = ("mesh_query_ray", "mesh_query_point", "mesh_query_aabb", "hash_grid_query")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, fontsize=11, family="monospace")
        axis.set_xlim(-1.2, 1.2)
        axis.set_ylim(-1.2, 1.2)
        clear(axis)
    curve = outline()
    points, faces = wall(curve)
    mesh = wp.Mesh(wp.array(points, dtype=wp.vec3), wp.array(faces.ravel(), dtype=int))
    for axis in axes[:3]:
        axis.fill(*curve.T, facecolor="#eef3f8", edgecolor=INK, linewidth=1.3)

    start, angles = np.array((-1.1, -0.95)), np.radians((2.0, 17.0, 32.0, 47.0, 62.0, 82.0))
    towards = np.stack([np.cos(angles), np.sin(angles)], -1)
    for end in rays_from(mesh, start, towards):
        missed = np.linalg.norm(end - start) > 3.9
        axes[0].plot(*zip(start, end, strict=True), color=OTHER if missed else FOUND, linewidth=1.2)
        if not missed:
            axes[0].plot(*end, "o", color=FOUND, markersize=5)
    axes[0].plot(*start, "o", color=INK, markersize=5)

    places = np.array([(-0.9, 0.9), (0.1, 1.05), (1.0, 0.75), (0.25, 0.2), (-0.3, -0.15), (0.9, -0.8), (-0.55, -1.05)])
    for place, end in zip(places, closest_to(mesh, places), strict=True):
        axes[1].plot(*zip(place, end, strict=True), color=FOUND, linewidth=1.2)
        axes[1].plot(*place, "o", color=INK, markersize=5)
        axes[1].plot(*end, "o", color=FOUND, markersize=5)

    low, high = np.array((0.25, -0.55)), np.array((1.0, 0.35))
    inside = edges_in_box(mesh, low, high, len(curve))
    axes[2].add_patch(plt.Rectangle(low, *(high - low), fill=False, edgecolor=INK, linestyle="--"))
    edges = np.stack([curve, np.roll(curve, -1, axis=0)], 1)
    axes[2].add_collection(lines(edges[inside], colors=FOUND, linewidths=3.0))

    points, place, radius = np.random.default_rng(3).uniform(-1.2, 1.2, (170, 2)), np.array((0.15, 0.1)), 0.4
    found = points_near(points, place, radius)
    for n in np.arange(-3, 4) * radius:
        axes[3].axhline(n, color="#e3e8ee", linewidth=0.8, zorder=0)
        axes[3].axvline(n, color="#e3e8ee", linewidth=0.8, zorder=0)
    for kind, colour in ((0, "#c9d1da"), (1, INK), (2, FOUND)):
        axes[3].plot(*points[found == kind].T, "o", color=colour, markersize=3.5)
    axes[3].add_patch(plt.Circle(place, radius, fill=False, edgecolor=FOUND))
    axes[3].plot(*place, "x", color=FOUND, markersize=6)
    save(figure, path)


# ---- tiles ----

ROWS, COLUMNS, SIDE, LANES = 7, 10, 4, 4  # of the array, of a tile, of a block


@wp.kernel
def mark_tile(blocks: wp.array2d[int], columns: int):
    """Numbers the elements of each block's tile; elements beyond the array are left out."""
    i, j, lane = wp.tid()
    for element in range(lane, SIDE * SIDE, wp.block_dim()):
        row = i * SIDE + element // SIDE
        column = j * SIDE + element % SIDE
        if row < blocks.shape[0] and column < blocks.shape[1]:
            blocks[row, column] = i * columns + j


@wp.kernel
def mark_lanes(owners: wp.array[int], lanes: int):
    lane = wp.tid()
    for j in range(lane, owners.shape[0], lanes):
        owners[j] = lane


def blocks_of_elements():
    """The number of the block whose tile has the element, for each of the array."""
    blocks = wp.full((ROWS, COLUMNS), -1, dtype=int)
    dim = (-(-ROWS // SIDE), -(-COLUMNS // SIDE))
    wp.launch_tiled(mark_tile, dim=dim, inputs=[blocks, dim[1]], block_dim=LANES)
    return blocks.numpy()


def lanes_of_elements(count):
    """The lane that takes each element of a row."""
    owners = wp.full(count, -1, dtype=int)
    wp.launch(mark_lanes, dim=LANES, inputs=[owners, LANES])
    return owners.numpy()


def draw_cells(axis, plt, colours, texts, at=(0.0, 0.0)):
    """Cells with a colour and a text each, from the top left corner; (rows, columns)."""
    for row, column in np.ndindex(np.shape(colours)):
        place = (at[0] + column, at[1] - row - 1)
        axis.add_patch(plt.Rectangle(place, 1, 1, facecolor=colours[row][column], edgecolor="white", linewidth=1.0))
        text = texts[row][column]
        axis.text(place[0] + 0.5, place[1] + 0.47, text, ha="center", va="center", fontsize=7.5, color=INK)


def draw_tiles(path):
    plt, _ = pyplot()
    figure, axes = plt.subplots(1, 4, figsize=(10.4, 2.95))
    titles = ("blocks of a launch", "tile_load of block (1, 2)", "lanes of a block", "views of a tile")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, fontsize=11)
        axis.set_xlim(-0.5, 10.5)
        axis.set_ylim(-9.0, 2.0)
        clear(axis)
    shades = ("#cfe0f0", INSIDE, "#e9eef4", "#f3d3d6", "#b9c4d0", "#e3c7a8")
    blocks = blocks_of_elements()
    across = blocks[0].max() + 1
    colours = [[shades[block] for block in row] for row in blocks]
    draw_cells(axes[0], plt, colours, [["" for _ in row] for row in blocks])
    for block in np.unique(blocks):
        rows, columns = np.nonzero(blocks == block)
        name = f"({block // across}, {block % across})"
        axes[0].text(columns.mean() + 0.5, -rows.mean() - 0.5, name, ha="center", va="center", fontsize=9, color=INK)
    axes[0].text(5.0, -8.3, f"an array ({ROWS}, {COLUMNS}), tiles ({SIDE}, {SIDE})", ha="center", fontsize=8.5)

    last = blocks.max()
    values = np.pad(np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS), ((0, SIDE), (0, SIDE)))
    inside = np.pad(blocks == last, ((0, SIDE), (0, SIDE)))
    row, column = np.argwhere(inside)[0]
    values, inside = (x[row : row + SIDE, column : column + SIDE] for x in (values, inside))
    colours = np.where(inside, shades[last], "#f4f6f8")
    draw_cells(axes[1], plt, colours, np.where(inside, values, 0).astype(str), at=(3.0, -1.0))
    axes[1].text(5.0, -8.3, "zero beyond the array", ha="center", fontsize=8.5)

    owners = lanes_of_elements(10)
    ours = ("#cfe0f0", INSIDE, "#e9eef4", "#f3d3d6")
    draw_cells(axes[2], plt, [[ours[lane] for lane in owners]], [[str(lane) for lane in owners]], at=(0.0, -1.0))
    axes[2].text(5.0, -0.5, f"range(lane, 10, {LANES})", ha="center", fontsize=8.5, family="monospace")
    for lane in range(LANES):
        place = (3.0 + lane, -6.0)
        for j in np.flatnonzero(owners == lane):
            axes[2].plot((j + 0.5, place[0] + 0.5), (-2.0, -5.0), color=OTHER, linewidth=0.6)
        draw_cells(axes[2], plt, [[ours[lane]]], [["Σ"]], at=(place[0], -5.0))
    axes[2].text(5.0, -8.3, "wp.tile(part): one value a lane", ha="center", fontsize=8.5)

    parts = np.full((5, 6), "#e9eef4", dtype=object)
    parts[1], parts[:, 4], parts[3:5, 0:3] = shades[1], shades[3], shades[5]
    parts[1, 4] = "#c2a4b4"
    draw_cells(axes[3], plt, parts, np.full(parts.shape, ""), at=(2.0, 0.0))
    for text, place in (("t[1]", (1.7, -1.5)), ("t[:, 4]", (6.5, 0.6)), ("t[3:5, :3]", (3.5, -5.7))):
        side = "right" if text == "t[1]" else "center"
        axes[3].text(*place, text, ha=side, va="center", fontsize=8.5, family="monospace")
    axes[3].text(5.0, -8.3, "a write goes through to the tile", ha="center", fontsize=8.5)
    save(figure, path)


# ---- drawing ----


# ---- textures ----


@wp.kernel
def sample_row(t: wp.Texture1D, places: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = wp.texture_sample(t, places[i], dtype=float)


def samples_of(texels, places, **options):
    out = wp.zeros(len(places))
    wp.launch(sample_row, dim=len(places), inputs=[wp.Texture1D(texels, **options), wp.array(places, dtype=float), out])
    return out.numpy()


def draw_textures(path):
    plt, _ = pyplot()
    texels = np.array([1, 2, 4, 8], np.float32)
    places = np.linspace(-0.75, 1.75, 2001).astype(np.float32)
    figure, axes = plt.subplots(1, 4, figsize=(9.6, 2.3), sharey=True)
    for axis, mode in zip(axes, wp.TextureAddressMode, strict=True):
        axis.axvspan(0, 1, color="#eef2f7")
        closest = samples_of(texels, places, address_mode=mode, filter_mode=wp.TextureFilterMode.CLOSEST)
        axis.plot(places, closest, color=INSIDE, linewidth=1.2)
        axis.plot(places, samples_of(texels, places, address_mode=mode), color=FOUND, linewidth=1.6)
        axis.plot((np.arange(4) + 0.5) / 4, texels, "o", color=INK, markersize=4)
        axis.set_title(mode.name, color=INK, fontsize=10)
        axis.set_xticks([0, 1])
        axis.set_yticks([0, 8])
        for side in axis.spines.values():
            side.set_color("#d5dbe2")
    save(figure, path)
    plt.close(figure)


# ---- files ----


def pyplot():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.collections import LineCollection

    return plt, LineCollection


def two_colours(plt):
    return plt.matplotlib.colors.ListedColormap(["#ffffff", INSIDE])


def clear(axis):
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_aspect("equal")
    for side in axis.spines.values():
        side.set_color("#d5dbe2")


def save(figure, path):
    """As a picture of few colours: small files."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(64)
    small.save(path, optimize=True)
    print(f"wrote {path}, {path.stat().st_size / 1e3:.0f} KB")


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "guide" / "pictures"
    draw_queries(folder / "queries.png")
    draw_signs(folder / "signs.png")
    draw_tiles(folder / "tiles.png")
    draw_textures(folder / "textures.png")


if __name__ == "__main__":
    main()
