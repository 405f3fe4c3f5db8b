"""A ball of clay becomes a bear: gradients of distances to meshes move ten thousand points.

    python -m warp.examples.sculpt
    python -m warp.examples.sculpt --target bunny.obj      a file that trimesh or meshio reads

The loss is the mean squared distance both ways: from samples of the target to the closest points of the moving mesh,
whose derivatives go to the corners of the faces that they lie on (`wp.mesh_query_point_no_sign`,
`wp.mesh_eval_position`), and from the points of the moving mesh to the target. To that comes how uneven the mesh is.

A gradient of distances pulls at single points, and a mesh that follows it crumples. So the points are the sphere's,
moved by displacements that are smoothed along the edges again and again; the tape goes back through the smoothing, and
Adam changes the displacements before it. Less and less smoothing lets smaller and smaller features through.
"""

from __future__ import annotations

import time

import numpy as np

import warp as wp
import warp.optim
from warp.examples import _cubes, _files, _raster, _show, throw

# stages: steps of smoothing of a mesh of 1000 points, weight of its unevenness beside the distances, rate of Adam
STAGES = [(16, 6.0, 0.012), (6, 1.0, 0.008), (2, 0.03, 0.005)]

# the bear: centre and half axes of ellipsoids; those with x > 0 have a twin at -x
BEAR = [
    ((0.00, -0.22, 0.00), (0.43, 0.48, 0.38)),  # body
    ((0.00, 0.43, 0.05), (0.34, 0.31, 0.30)),  # head
    ((0.27, 0.71, 0.02), (0.13, 0.14, 0.08)),  # ears
    ((0.00, 0.35, 0.33), (0.16, 0.12, 0.13)),  # snout
    ((0.47, -0.08, 0.20), (0.15, 0.17, 0.30)),  # arms
    ((0.31, -0.62, 0.32), (0.18, 0.18, 0.34)),  # legs
    ((0.00, -0.50, -0.40), (0.11, 0.11, 0.11)),  # tail
]


# ---- the target ----


@wp.kernel
def melt(centres: wp.array[wp.vec3], axes: wp.array[wp.vec3], low: wp.vec3, spacing: float, field: wp.array3d[float]):
    """Distance to ellipsoids that melt into each other, positive inside, on a grid."""
    i, j, k = wp.tid()
    p = low + spacing * wp.vec3(float(i), float(j), float(k))
    total = float(0.0)
    for n in range(centres.shape[0]):
        d = p - centres[n]
        a = wp.length(wp.cw_div(d, axes[n]))
        b = wp.length(wp.cw_div(wp.cw_div(d, axes[n]), axes[n]))
        total += wp.exp(-22.0 * a * (a - 1.0) / wp.max(b, 1.0e-6))
    field[i, j, k] = wp.log(total + 1.0e-30) / 22.0


def bear(size: int = 96) -> tuple[np.ndarray, np.ndarray]:
    """Points and triangles of the bear's surface."""
    mirrored = [((-x, y, z), axes) for (x, y, z), axes in BEAR if x > 0.0]
    centres, axes = (wp.array(list(rows), dtype=wp.vec3) for rows in zip(*BEAR, *mirrored))
    field, spacing = wp.empty((size, size, size), dtype=float), 2.2 / (size - 1)
    wp.launch(melt, dim=field.shape, inputs=[centres, axes, wp.vec3(-1.1, -1.1, -1.1), spacing], outputs=[field])
    points, triangles = _cubes.Surface(field.shape, (-1.1, -1.1, -1.1), spacing).extract(field)
    return points.numpy().copy(), triangles.numpy().copy()


def samples_of(points: np.ndarray, faces: np.ndarray, count: int) -> np.ndarray:
    """Random points (count, 3) on triangles, evenly by area."""
    rng = np.random.default_rng(8)
    a, b, c = (points[faces[:, n]].astype(np.float64) for n in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    chosen = rng.choice(len(faces), count, p=area / area.sum())
    u, v = rng.random((2, count, 1))
    u, v = np.where(u + v > 1.0, 1.0 - u, u), np.where(u + v > 1.0, 1.0 - v, v)
    return a[chosen] + u * (b - a)[chosen] + v * (c - a)[chosen]


# ---- the loss ----


@wp.kernel
def smooth(first: wp.array[int], neighbour: wp.array[int], d: wp.array[wp.vec3], smoother: wp.array[wp.vec3]):
    """Halfway from each displacement to the mean of its neighbours'."""
    i = wp.tid()
    total = wp.vec3(0.0, 0.0, 0.0)
    for n in range(first[i], first[i + 1]):
        total += d[neighbour[n]]
    smoother[i] = 0.5 * d[i] + 0.5 / float(first[i + 1] - first[i]) * total


@wp.kernel
def displace(base: wp.array[wp.vec3], d: wp.array[wp.vec3], points: wp.array[wp.vec3]):
    i = wp.tid()
    points[i] = base[i] + d[i]


@wp.kernel
def add_distances(mesh: wp.uint64, places: wp.array[wp.vec3], loss: wp.array[float]):
    """Mean squared distance of places to a mesh."""
    i = wp.tid()
    q = wp.mesh_query_point_no_sign(mesh, places[i], 1.0e6)
    if q.result:
        away = places[i] - wp.mesh_eval_position(mesh, q.face, q.u, q.v)
        wp.atomic_add(loss, 0, wp.length_sq(away) / float(places.shape[0]))


@wp.kernel
def add_unevenness(
    first: wp.array[int], neighbour: wp.array[int], points: wp.array[wp.vec3], weight: float, loss: wp.array[float]
):
    """Mean squared distance of the points to the means of their neighbours."""
    i = wp.tid()
    total = wp.vec3(0.0, 0.0, 0.0)
    for n in range(first[i], first[i + 1]):
        total += points[neighbour[n]]
    away = points[i] - total / float(first[i + 1] - first[i])
    wp.atomic_add(loss, 0, weight * wp.length_sq(away) / float(points.shape[0]))


@wp.kernel
def find_distances(mesh: wp.uint64, places: wp.array[wp.vec3], distances: wp.array[float]):
    i = wp.tid()
    q = wp.mesh_query_point_no_sign(mesh, places[i], 1.0e6)
    distances[i] = wp.length(places[i] - wp.mesh_eval_position(mesh, q.face, q.u, q.v))


def rows_of_neighbours(count: int, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points beside point i: `neighbour[first[i]:first[i + 1]]`. Every edge must have a face on either side."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    return np.searchsorted(edges[:, 0], np.arange(count + 1)).astype(np.int32), edges[:, 1].astype(np.int32)


class Clay:
    """A ball inside of a target, and the displacements of its points."""

    def __init__(self, target: tuple[np.ndarray, np.ndarray], subdivisions: int = 5, samples: int = 20_000):
        points, faces = target
        middle, reach = 0.5 * (points.max(axis=0) + points.min(axis=0)), np.ptp(points, axis=0).max()
        self.target_points = wp.array((points - middle) * (1.8 / reach), dtype=wp.vec3)
        self.target_faces = wp.array(faces, dtype=int)
        self.target = wp.Mesh(self.target_points, self.target_faces.flatten())
        self.samples = wp.array(samples_of(self.target_points.numpy(), faces, samples), dtype=wp.vec3)

        self.shell, self.faces = throw.sphere(subdivisions)
        self.count = len(self.shell)
        self.rows = [wp.array(row, dtype=int) for row in rows_of_neighbours(self.count, self.faces)]
        self.base = wp.array(0.45 * self.shell, dtype=wp.vec3)
        self.points = wp.clone(self.base, requires_grad=True)
        self.mesh = wp.Mesh(self.points, wp.array(self.faces.reshape(-1), dtype=int))
        self.start_again(*STAGES[0][:2])

    def start_again(self, smoothing: int, even: float) -> None:
        """Further displacements are from where the points are now, and smoothed so many times."""
        self.base = wp.clone(self.points, requires_grad=False)
        # smoothing reaches as far as the root of its steps; unevenness goes with the square of the edges
        steps = max(1, round(smoothing * self.count / 1000))
        self.even = even * (self.count / 1000) ** 2
        self.layers = [wp.zeros(self.count, dtype=wp.vec3, requires_grad=True) for _ in range(steps + 1)]
        self.loss = wp.zeros(1, requires_grad=True)

    def forward(self) -> None:
        """Places the points and finds the loss."""
        for rough, smoother in zip(self.layers, self.layers[1:]):
            wp.launch(smooth, dim=self.count, inputs=[*self.rows, rough], outputs=[smoother])
        wp.launch(displace, dim=self.count, inputs=[self.base, self.layers[-1]], outputs=[self.points])
        self.mesh.refit()
        self.loss.zero_()
        wp.launch(add_distances, dim=len(self.samples), inputs=[self.mesh.id, self.samples], outputs=[self.loss])
        wp.launch(add_distances, dim=self.count, inputs=[self.target.id, self.points], outputs=[self.loss])
        inputs = [*self.rows, self.points, self.even]
        wp.launch(add_unevenness, dim=self.count, inputs=inputs, outputs=[self.loss])

    def gradient(self) -> float:
        """The loss; its gradient towards the displacements is in `layers[0].grad`."""
        tape = wp.Tape()
        with tape:
            self.forward()
        tape.zero()
        tape.backward(self.loss)
        return float(self.loss.numpy()[0])

    def distances(self) -> tuple[np.ndarray, np.ndarray]:
        """From the target's samples to the mesh, and from the mesh's points to the target."""
        there, back = wp.empty(len(self.samples), dtype=float), wp.empty(self.count, dtype=float)
        wp.launch(find_distances, dim=len(there), inputs=[self.mesh.id, self.samples], outputs=[there])
        wp.launch(find_distances, dim=len(back), inputs=[self.target.id, self.points], outputs=[back])
        return there.numpy(), back.numpy()

    def colours(self) -> np.ndarray:
        """Squares of longitude and latitude, as they are on the sphere."""
        x, y, z = self.shell.T
        squares = (np.floor(np.arctan2(x, z) * 9 / np.pi) + np.floor(np.arcsin(y) * 9 / np.pi)) % 2
        return np.where(squares[:, None] == 0, (0.72, 0.30, 0.14), (0.86, 0.74, 0.56))


def drawn(bodies: list[tuple[np.ndarray, np.ndarray, np.ndarray]], pixels: int, gap: float = 2.3) -> np.ndarray:
    """Meshes (points, faces, colours) side by side on a floor: a picture (pixels, n pixels, 3) in linear light."""
    points, faces, colours, count = [], [], [], 0
    for n, (p, f, c) in enumerate(bodies):
        points.append(p + (gap * (n - 0.5 * (len(bodies) - 1)), 0.0, 0.0))
        faces.append(f + count)
        colours.append(np.broadcast_to(c, p.shape))
        count += len(p)
    arrays = [np.concatenate(rows) for rows in (points, faces, colours)]
    wide = len(bodies) * pixels
    view = _raster.camera((0.0, 1.3, 9.0), (0.0, -0.02, 0.0), wide, pixels, field_of_view=14.6)
    look = _raster.daylight(sun=(-0.5, 0.9, 0.75), ground_level=-0.92, gloss=0.15)
    return _raster.draw(
        view, look, wp.array(arrays[0], dtype=wp.vec3), wp.array(arrays[1], dtype=int),
        wp.array(arrays[2], dtype=wp.vec3), reach=1.3 * len(bodies),
    )  # fmt: skip


def turned(points: np.ndarray, angle: float) -> np.ndarray:
    """Points about the upward axis."""
    s, c = np.sin(angle), np.cos(angle)
    return points @ np.array([[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]])


def fit(clay: Clay, iterations: int, watch=lambda iteration: None) -> list[float]:
    """Three stages with less and less smoothing. The loss of each iteration."""
    losses = []
    for stage, (smoothing, even, rate) in enumerate(STAGES):
        clay.start_again(smoothing, even)
        optimizer = wp.optim.Adam([clay.layers[0]])
        for step in range(iterations):
            watch(stage * iterations + step)
            losses.append(clay.gradient())
            optimizer.lr = rate * (1.0 - 0.9 * step / iterations)
            optimizer.step([clay.layers[0].grad])
    clay.forward()
    return [*losses, float(clay.loss.numpy()[0])]


def main() -> None:
    wp.set_device("cpu")  # meshes are for the CPU, so far
    options = _show.arguments(__doc__, subdivisions=5, iterations=60, samples=20_000, pixels=320, target="")
    clay = Clay(_files.read(options.target) if options.target else bear(), options.subdivisions, options.samples)
    colours, stages, frames = clay.colours(), [], []
    bar = iter(_show.progress(len(STAGES) * options.iterations, "sculpt"))

    def watch(iteration: int) -> None:
        next(bar)
        if iteration in (0, options.iterations // 4, options.iterations):
            stages.append((clay.points.numpy().copy(), clay.faces, colours))
        if iteration % 3 == 0:
            angle = 0.25 + 2.0 * np.pi * iteration / (len(STAGES) * options.iterations)
            frames.append(
                _show.to_bytes(drawn([(turned(clay.points.numpy(), angle), clay.faces, colours)], options.pixels))
            )

    start = time.perf_counter()
    losses = fit(clay, options.iterations, watch)
    seconds = time.perf_counter() - start
    there, back = clay.distances()
    print(f"{clay.count} points, {len(losses) - 1} gradients, {len(losses) / seconds:.1f} in a second")
    print(f"loss {losses[0]:.2e} -> {losses[-1]:.2e}; of a size of 1.8 the target is {there.mean():.4f} away in the "
          f"mean and {there.max():.4f} at most, the other way {back.mean():.4f} and {back.max():.4f}")  # fmt: skip
    stages.append((clay.points.numpy(), clay.faces, colours))
    stages.append((clay.target_points.numpy(), clay.target_faces.numpy(), np.array((0.45, 0.47, 0.50))))
    _show.save_png(options.out / "sculpt.png", drawn([(turned(p, 0.35), f, c) for p, f, c in stages], options.pixels))
    _show.save_gif(options.out / "sculpt.gif", frames, frame_ms=60)


if __name__ == "__main__":
    main()
