"""Rays and closest points on fifty meshes against brute force in float64: `judge/` has the meshes and the oracle.

These rules define a right result. u is the unit in the last place of the largest coordinate that takes part:

* A ray must meet the first face that it passes further than 16 u inside of, or one before it that it passes at most
  16 u outside of. If there is no face of the second kind it must meet nothing. Its distance is where it meets the
  plane of the face.
* A ray that starts inside a closed mesh meets it in any direction: through corners and edges too.
* A distance is right to 1e-5 of itself and 4 u.
* A sign is that of the exact winding number if the surface is further away than 1e-5 of the mesh's size and 4 u.

`make test` asks few questions of small meshes, `make test-long` half a million of each kind and type.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp

sys.path.insert(0, str(Path(__file__).resolve().parent / "judge"))
import spatial_oracle as oracle
import spatial_shapes

RAY_BAND, ULPS = 16.0, 4.0
SIZES = [
    pytest.param((300, 200), id="few"),
    pytest.param((4800, 10_000), id="million", marks=pytest.mark.large),
]


def make_kernels(vec, real):
    @wp.kernel(module="unique")
    def cast(
        mesh: wp.uint64,
        start: wp.array(dtype=vec),
        direction: wp.array(dtype=vec),
        limit: wp.array(dtype=real),
        face: wp.array2d(dtype=int),
        distance: wp.array(dtype=real),
    ):
        i = wp.tid()
        q = wp.mesh_query_ray(mesh, start[i], direction[i], limit[i])
        face[i, 0] = wp.where(q.result, q.face, -1)
        distance[i] = q.t
        if wp.mesh_query_ray_anyhit(mesh, start[i], direction[i], limit[i]):
            face[i, 1] = 1
        face[i, 2] = wp.mesh_query_ray_count_intersections(mesh, start[i], direction[i])

    @wp.kernel(module="unique")
    def nearest(
        mesh: wp.uint64,
        place: wp.array(dtype=vec),
        face: wp.array(dtype=int),
        sign: wp.array2d(dtype=real),
        distance: wp.array2d(dtype=real),
    ):
        i = wp.tid()
        x = place[i]
        far = real(1e30)
        q = wp.mesh_query_point_no_sign(mesh, x, far)
        face[i] = wp.where(q.result, q.face, -1)
        distance[i, 0] = wp.length(wp.mesh_eval_position(mesh, q.face, q.u, q.v) - x)
        n = wp.mesh_query_point_sign_normal(mesh, x, far)
        distance[i, 1] = wp.length(wp.mesh_eval_position(mesh, n.face, n.u, n.v) - x)
        f = wp.mesh_query_furthest_point_no_sign(mesh, x, real(0.0))
        distance[i, 2] = wp.length(wp.mesh_eval_position(mesh, f.face, f.u, f.v) - x)
        sign[i, 0] = n.sign
        sign[i, 1] = wp.mesh_query_point_sign_winding_number(mesh, x, far).sign
        sign[i, 2] = wp.mesh_query_point_sign_parity(mesh, x, far).sign
        sign[i, 3] = wp.mesh_query_point(mesh, x, far).sign

    return cast, nearest


TYPES = {
    np.float32: (wp.vec3, *make_kernels(wp.vec3, wp.float32)),
    np.float64: (wp.vec3d, *make_kernels(wp.vec3d, wp.float64)),
}


class Case:
    """One of the fifty, as it is with numbers of a type."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype
        self.points = shape.points.astype(dtype)
        self.corners = self.points[shape.faces].astype(np.float64)
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        self.middle, self.size = (low + high) / 2.0, float(np.linalg.norm(high - low) / 2)
        self.largest = np.abs(self.points).max()
        self.mesh = wp.Mesh(
            wp.array(self.points, dtype=TYPES[dtype][0]),
            wp.array(shape.faces.ravel(), dtype=int),
            support_winding_number=True,
        )
        # Thin meshes are flattened by rounding if coordinates are large.
        flattened = dtype == np.float32 and shape.name in ("thin_far", "needle_far")
        self.is_simple = shape.is_simple and not flattened

    def ulp(self, places):
        """Of the largest coordinate of each place and of the mesh."""
        return np.spacing(np.maximum(np.abs(places).max(axis=1), self.largest).astype(self.dtype)).astype(np.float64)

    def on_surface(self, rng, count):
        """Places in random faces."""
        weights = rng.dirichlet([1, 1, 1], count)
        return (weights[:, :, None] * self.corners[rng.integers(len(self.corners), size=count)]).sum(axis=1)

    def on_edges(self, rng, count):
        """On edges, each third one at a corner."""
        corners = self.corners[rng.integers(len(self.corners), size=count)]
        t = np.where(np.arange(count) % 3 == 0, 0.0, rng.random(count))[:, None]
        return corners[:, 0] * (1 - t) + corners[:, 1] * t

    def places(self, rng, count):
        """A third around the mesh, a third near the surface, a third within an edge of it."""
        third = count // 3
        around = self.middle + rng.uniform(-1.2, 1.2, (third, 3)) * self.size
        way = rng.standard_normal((third, 3)) * (10.0 ** rng.uniform(-4, -1, (third, 1)))
        near = self.on_surface(rng, third) + way * self.size
        rest = count - 2 * third
        way = rng.standard_normal((rest, 3)) * (10.0 ** rng.uniform(-7, -2, (rest, 1)))
        return np.concatenate([around, near, self.on_edges(rng, rest) + way * self.size]).astype(self.dtype)


def complaint(case, what, wrong):
    if not wrong.any():
        return []
    return [f"{case.shape.name}: {what}: {wrong.sum()} of {len(wrong)}, first {np.flatnonzero(wrong)[0]}"]


def inside_of(case, rng, count):
    """Places inside a closed mesh, not near its surface; maybe fewer."""
    places = (case.middle + rng.uniform(-0.8, 0.8, (4 * count, 3)) * case.size).astype(case.dtype)
    places = places[np.abs(oracle.winding(places, case.corners)) > 0.5]
    least, _, _ = oracle.distances(places, case.corners, np.full(len(places), -1))
    return places[least > 1e-4 * case.size + 100 * case.ulp(places)][:count]


def rays_of(case, rng, count):
    """Starts and directions; from the number `inside` on they start inside."""
    third = count // 3
    starts = [
        case.middle + rng.uniform(-1.2, 1.2, (third, 3)) * case.size,
        case.middle + rng.standard_normal((count - third, 3)) * 3 * case.size,
    ]
    if case.shape.is_closed:
        found = inside_of(case, rng, min(third, 1000))
        starts[1] = starts[1][: len(starts[1]) - third]
        starts.append(np.resize(found, (third, 3)) if len(found) else np.zeros((0, 3)))
    inside = len(starts[0]) + len(starts[1])
    start = np.concatenate(starts).astype(case.dtype)
    n = len(start)
    target = np.where(rng.random((n, 1)) < 0.5, case.on_surface(rng, n), case.on_edges(rng, n))
    direction = (target - start) * rng.uniform(0.1, 10, (n, 1))
    direction[n // 2 :: 7] = rng.standard_normal((len(direction[n // 2 :: 7]), 3)) * case.size
    direction[5::11] = np.eye(3)[rng.integers(3, size=len(direction[5::11]))] * case.size  # along an axis
    return start, direction.astype(case.dtype), inside


def wrong_rays(case, rng, count):
    """(complaints, the number of rays for which there was one answer only)"""
    vec, cast, _ = TYPES[case.dtype]
    start, direction, inside = rays_of(case, rng, count)
    n = len(start)
    length = np.linalg.norm(direction.astype(np.float64), axis=1)
    reach = 1e9 if case.shape.is_closed else 2.0 * case.size
    face, t = wp.zeros((n, 3), dtype=int), wp.zeros(n, dtype=case.dtype)
    limit = (reach / length).astype(case.dtype)
    inputs = [case.mesh.id, wp.array(start, dtype=vec), wp.array(direction, dtype=vec), wp.array(limit)]
    wp.launch(cast, dim=n, inputs=inputs, outputs=[face, t])
    face, any_hit, crossings = face.numpy().T
    s = t.numpy().astype(np.float64) * length
    band = RAY_BAND * case.ulp(start)
    r = oracle.rays(start, direction, band, reach, case.corners, face)
    everywhere = oracle.rays(start, direction, band, 1e30, case.corners, face) if reach < 1e9 else r
    is_hit = face >= 0
    slack = 1e-5 * np.abs(s) + band + r.slack
    return [
        *complaint(case, "rays that miss what they meet", ~is_hit & (r.sure > 0)),
        *complaint(case, "rays that meet a face which is not there", is_hit & (r.is_met == 0)),
        *complaint(case, "rays that meet a face behind the first", is_hit & (r.is_met == 1) & (r.low > r.met_by)),
        *complaint(case, "distances", is_hit & (r.is_met == 1) & (np.abs(s - r.plane) > slack)),
        *complaint(case, "rays from inside that leave", (np.arange(n) >= inside) & ~is_hit),
        *complaint(case, "any hit", ((r.sure > 0) & (any_hit == 0)) | ((r.maybe == 0) & (any_hit == 1))),
        *complaint(case, "crossings", (crossings < everywhere.sure) | (crossings > everywhere.maybe)),
    ], int((np.where(is_hit, r.rivals == 1, r.maybe == 0) & True).sum())


def wrong_points(case, rng, count):
    """(complaints, the number of signs that were looked at)"""
    vec, _, nearest = TYPES[case.dtype]
    place = case.places(rng, count)
    n = len(place)
    face = wp.zeros(n, dtype=int)
    sign, distance = wp.zeros((n, 4), dtype=case.dtype), wp.zeros((n, 3), dtype=case.dtype)
    wp.launch(nearest, dim=n, inputs=[case.mesh.id, wp.array(place, dtype=vec)], outputs=[face, sign, distance])
    face, sign, distance = face.numpy(), sign.numpy(), distance.numpy().astype(np.float64)
    least, largest, answered = oracle.distances(place, case.corners, face)
    ulps = ULPS * case.ulp(place)
    slack = 1e-5 * least + ulps
    wrong = [
        *complaint(case, "faces that are not the closest", (face < 0) | (answered > least + slack)),
        *complaint(case, "distances", np.abs(distance[:, 0] - least) > slack),
        *complaint(case, "distances beside a sign", np.abs(distance[:, 1] - least) > slack),
        *complaint(case, "furthest distances", np.abs(distance[:, 2] - largest) > 1e-5 * largest + ulps),
    ]
    if not case.shape.is_closed:
        return wrong, 0
    clear = least > 1e-5 * case.size + ulps
    side = np.where(oracle.winding(place, case.corners) > 0.5, -1, 1)
    wrong += complaint(case, "signs by winding numbers", clear & (sign[:, 1] != side))
    if case.is_simple:
        wrong += complaint(case, "signs by normals", clear & ((sign[:, 0] != side) | (sign[:, 3] != side)))
        wrong += complaint(case, "signs by parity", clear & (sign[:, 2] != side))
    return wrong, int(clear.sum())


def judge(ask, dtype, size):
    """Over all meshes: the number of answers that ask(case, rng, count) looked at."""
    faces, count = size
    wrong, looked_at = [], 0
    for number, shape in enumerate(spatial_shapes.fifty(faces)):
        case = Case(shape, dtype)
        more, n = ask(case, np.random.default_rng(number), count)
        wrong += more
        looked_at += n
    assert not wrong, "\n" + "\n".join(wrong)
    return looked_at / (50 * count)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", TYPES)
def test_rays_meet_what_brute_force_meets(dtype, size):
    assert judge(wrong_rays, dtype, size) > 0.6


@pytest.mark.seed("S-MSH-007")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", TYPES)
def test_points_are_as_near_and_on_the_side_that_brute_force_says(dtype, size):
    assert judge(wrong_points, dtype, size) > 0.4
