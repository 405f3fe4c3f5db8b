"""Kernels and meshes that several files of tests use."""

import warp as wp


@wp.kernel
def nearest(
    mesh: wp.uint64,
    place: wp.array(dtype=wp.vec3),
    limit: float,
    face: wp.array(dtype=int),
    out: wp.array2d(dtype=float),
):
    i = wp.tid()
    q = wp.mesh_query_point(mesh, place[i], limit)
    face[i] = wp.where(q.result, q.face, -1)
    if q.result:
        out[i, 0] = wp.length(wp.mesh_eval_position(mesh, q.face, q.u, q.v) - place[i])
        out[i, 1] = q.sign
        out[i, 2] = wp.mesh_query_point_sign_winding_number(mesh, place[i], limit).sign
        out[i, 3] = wp.mesh_query_point_sign_parity(mesh, place[i], limit, 3).sign
        r = wp.mesh_query_point_no_sign(mesh, place[i], limit)
        out[i, 4] = wp.length(wp.mesh_eval_position(mesh, r.face, r.u, r.v) - place[i])
        f = wp.mesh_query_furthest_point_no_sign(mesh, place[i], 0.0)
        out[i, 5] = wp.length(wp.mesh_eval_position(mesh, f.face, f.u, f.v) - place[i])
