"""Queries of a mesh of 184 k triangles: 1 M rays and closest points.

* `build`, `refit`: the tree of the mesh
* `coherent`: a camera of 1000 x 1000 rays; `incoherent`: rays between random places on a sphere around the mesh
* `closest`: random places in the box of the mesh; `closest_adjoint`: the adjoint, towards the places
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

RAYS = 1_000_000  # a square
QUADS = 304  # of the surface, on each side
VARIANTS = ("build", "refit", "coherent", "incoherent", "closest", "closest_adjoint")


def surface():
    """A sphere with bumps."""
    n = QUADS
    theta, phi = np.linspace(0.02, np.pi - 0.02, n), np.arange(n) * (2 * np.pi / n)
    t, p = np.meshgrid(theta, phi, indexing="ij")
    r = 1 + 0.05 * np.sin(9 * t) * np.cos(11 * p) + 0.02 * np.sin(31 * t + 17 * p)
    points = np.stack([r * np.sin(t) * np.cos(p), r * np.sin(t) * np.sin(p), r * np.cos(t)], axis=-1).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(n - 1), np.arange(n), indexing="ij")
    a, b, c, d = i * n + j, (i + 1) * n + j, i * n + (j + 1) % n, (i + 1) * n + (j + 1) % n
    faces = np.concatenate([np.stack([a, b, c], -1).reshape(-1, 3), np.stack([c, b, d], -1).reshape(-1, 3)])
    return points.astype(np.float32), faces.astype(np.int32).ravel()


def problem(variant):
    random = np.random.default_rng(3)
    points, faces = surface()
    data = {"points": points, "faces": faces}
    if variant == "coherent":
        side = np.linspace(-1.1, 1.1, round(RAYS**0.5))
        x, y = np.meshgrid(side, side)
        data["start"] = np.broadcast_to(np.float32([0, -4, 0]), (RAYS, 3)).copy()
        to = np.stack([x, np.zeros_like(x), y], -1).reshape(-1, 3) - data["start"]
        data["direction"] = (to / np.linalg.norm(to, axis=1, keepdims=True)).astype(np.float32)
    elif variant in ("incoherent", "build", "refit"):
        ends = random.standard_normal((2, RAYS, 3))
        ends *= 1.5 / np.linalg.norm(ends, axis=2, keepdims=True)
        to = ends[1] - ends[0]
        data["start"] = ends[0].astype(np.float32)
        data["direction"] = (to / np.linalg.norm(to, axis=1, keepdims=True)).astype(np.float32)
    elif variant.startswith("closest"):
        data["start"] = (random.random((RAYS, 3)) * 2.4 - 1.2).astype(np.float32)
    return data


SAMPLE = 100  # queries that are checked


def nearest_hits(data):
    """By brute force in float64: distances to the first faces of the sample's rays, 0 for a ray without one."""
    corners = data["points"][data["faces"].reshape(-1, 3)].astype(np.float64)
    a, e1, e2 = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    hits = []
    for start, direction in zip(
        data["start"][:SAMPLE].astype(np.float64), data["direction"][:SAMPLE].astype(np.float64)
    ):
        h = np.cross(direction, e2)
        determinant = (e1 * h).sum(1)
        determinant[determinant == 0] = np.inf
        s = start - a
        u = (s * h).sum(1) / determinant
        q = np.cross(s, e1)
        v, t = (q @ direction) / determinant, (e2 * q).sum(1) / determinant
        inside = (u >= -1e-6) & (v >= -1e-6) & (u + v <= 1 + 1e-6) & (t > 0)
        hits.append(t[inside].min() if inside.any() else 0.0)
    return np.array(hits)


def expected(variant, data):
    if variant == "closest_adjoint":
        return np.ones(SAMPLE)  # a distance grows as fast as the place moves away
    if variant == "closest":
        # To the corners: the faces are small.
        return np.array([np.linalg.norm(data["points"] - x, axis=1).min() for x in data["start"][:SAMPLE]])
    return nearest_hits(data)


def tolerance(variant):
    if variant == "closest":
        return {"atol": 3.04 / QUADS}
    if variant == "closest_adjoint":
        return {"rtol": 1e-3}
    return {"rtol": 1e-3, "atol": 1e-5}


def with_warp(wp, variant, data, options):
    @wp.kernel
    def cast(
        mesh: wp.uint64, start: wp.array(dtype=wp.vec3), direction: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)
    ):
        i = wp.tid()
        q = wp.mesh_query_ray(mesh, start[i], direction[i], 1.0e6)
        out[i] = q.t

    @wp.kernel(enable_backward=variant == "closest_adjoint")
    def nearest(mesh: wp.uint64, start: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
        i = wp.tid()
        q = wp.mesh_query_point_no_sign(mesh, start[i], 1.0e6)
        out[i] = wp.length(wp.mesh_eval_position(mesh, q.face, q.u, q.v) - start[i])

    points = wp.array(data["points"], dtype=wp.vec3)
    faces = wp.array(data["faces"], dtype=int)
    meshes = [wp.Mesh(points, faces)]
    start = wp.array(data["start"], dtype=wp.vec3)
    out = wp.zeros(RAYS, dtype=float)
    if variant == "closest":

        def ask():
            wp.launch(nearest, dim=RAYS, inputs=[meshes[0].id, start, out])

    elif variant == "closest_adjoint":
        by_out = wp.zeros(RAYS, dtype=float)
        by_start = wp.zeros(RAYS, dtype=wp.vec3)

        def ask():
            by_out.fill_(1.0)
            by_start.zero_()
            gradients = {"adj_inputs": [None, by_start, by_out], "adjoint": True}
            wp.launch(nearest, dim=RAYS, inputs=[meshes[0].id, start, out], **gradients)

    else:
        direction = wp.array(data["direction"], dtype=wp.vec3)

        def ask():
            wp.launch(cast, dim=RAYS, inputs=[meshes[0].id, start, direction, out])

    def found():
        ask()
        if variant == "closest_adjoint":
            return np.linalg.norm(by_start.numpy()[:SAMPLE], axis=1)
        return out.numpy()[:SAMPLE]

    def build():
        meshes[0] = wp.Mesh(points, faces)

    run = {"build": build, "refit": lambda: meshes[0].refit()}.get(variant, ask)
    return measure.Job(run, found)


if __name__ == "__main__":
    measure.throughput(
        "geometry/queries", __doc__.splitlines()[0], VARIANTS, problem, expected,
        {"weft": with_warp, "peer": with_warp}, tolerance,
    )  # fmt: skip
