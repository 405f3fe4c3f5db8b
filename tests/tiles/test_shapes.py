"""The fifteen shapes that programs of today write with tiles, each against NumPy."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(20)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def positive(*shape):
    a = normal(*shape, shape[-1])
    return a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1], dtype=np.float32)


def close(found, expected, tolerance=2e-5):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1.0, float(np.abs(expected).max())))


# 1. Strided lanes, then one sum.


@wp.kernel
def strided(a: wp.array2d[float], b: wp.array2d[float], n: int, out: wp.array[float], pairs: wp.array[wp.vec2]):
    i, lane = wp.tid()
    p = float(0.0)
    v = wp.vec2()
    for j in range(lane, n, wp.block_dim()):
        p += a[i, j] * b[i, j]
        v += wp.vec2(a[i, j], b[i, j])
    s = wp.tile_reduce(wp.add, wp.tile(p, preserve_type=True))[0]
    w = wp.tile_sum(wp.tile(v), axis=1)
    x = wp.tile_reduce(wp.add, wp.tile(v, preserve_type=True))[0]
    if lane == 0:
        out[i] = s
        pairs[i] = wp.vec2(w[0], x[1])


def test_strided_lanes_then_one_sum(lanes):
    a, b = normal(5, 150), normal(5, 150)
    out, pairs = wp.zeros(5), wp.zeros(5, dtype=wp.vec2)
    wp.launch_tiled(strided, dim=[5], inputs=[wp.array(a), wp.array(b), 150, out, pairs], block_dim=lanes)
    close(out.numpy(), (a * b).sum(1))
    close(pairs.numpy(), np.stack([a.sum(1), b.sum(1)], axis=1))


# 2. Row products.

DOF = 29


@wp.kernel
def row_products(g: wp.array2d[float], p: wp.array2d[float], out: wp.array[float]):
    row, lane = wp.tid()
    s = wp.tile_sum(wp.tile_map(wp.mul, wp.tile_load(g[row], shape=(DOF,)), wp.tile_load(p[row], shape=(DOF,))))[0]
    if lane == 0:
        out[row] = s


@pytest.mark.parametrize("width", [29, 21])
def test_row_products_with_a_tail_of_zeros(width, lanes):
    g, p = normal(4, width), normal(4, width)
    out = wp.zeros(4)
    wp.launch_tiled(row_products, dim=[4], inputs=[wp.array(g), wp.array(p), out], block_dim=lanes)
    close(out.numpy(), (g * p).sum(1))


# 3. Masked tail.

T = 32


@wp.func
def less_than(i: int, limit: int) -> int:
    return wp.where(i < limit, 1, 0)


@wp.func
def mul_mask(mask: int, x: float) -> float:
    return float(mask) * x


@wp.kernel
def masked_tail(a: wp.array2d[float], counts: wp.array[int], out: wp.array[float]):
    i, lane = wp.tid()
    n = counts[i]
    total = float(0.0)
    off = int(0)
    while off < n:
        mask = wp.tile_map(less_than, wp.tile_arange(T, dtype=int), n - off)
        p = wp.tile_load(a[i], shape=T, offset=off)
        p = wp.tile_map(mul_mask, mask, p)
        total += wp.tile_sum(p)[0]
        off += T
    if lane == 0:
        out[i] = total


def test_the_tail_of_a_row_by_a_mask(lanes):
    a, counts = normal(6, 100), np.array([0, 1, 31, 32, 33, 100], np.int32)
    out = wp.zeros(6)
    wp.launch_tiled(masked_tail, dim=[6], inputs=[wp.array(a), wp.array(counts), out], block_dim=lanes)
    close(out.numpy(), np.array([row[:n].sum() for row, n in zip(a, counts)]))


# 4. J^T D J.

NV = 6
K = 8


@wp.func
def active(d: float, flag: int) -> float:
    if flag > 0:
        return d
    return 0.0


@wp.kernel
def weighted_products(
    M: wp.array3d[float], J: wp.array3d[float], D: wp.array2d[float], counts: wp.array[int], out: wp.array3d[float]
):
    w = wp.tid()
    nefc = counts[w]
    s = wp.tile_load(M[w], shape=(NV, NV), bounds_check=False)
    for k in range(0, nefc, K):
        rest = wp.tile_ones(shape=K, dtype=int) * (nefc - k)
        inside = wp.tile_map(less_than_all, wp.tile_arange(K, dtype=int), rest)
        j = wp.tile_load(J[w], shape=(K, NV), offset=(k, 0))
        d = wp.tile_map(active, wp.tile_load(D[w], shape=K, offset=k), inside)
        scaled = wp.tile_map(wp.mul, wp.tile_transpose(j), wp.tile_broadcast(d, shape=(NV, K)))
        s += wp.tile_matmul(scaled, j)
    wp.tile_store(out[w], s)


@wp.func
def less_than_all(i: int, limit: int) -> int:
    return wp.where(i < limit, 1, 0)


def test_products_weighted_by_a_diagonal(lanes):
    M, J, D = normal(4, NV, NV), normal(4, 20, NV), normal(4, 20)
    counts = np.array([0, 5, 16, 20], np.int32)
    out = wp.zeros((4, NV, NV))
    inputs = [wp.array(M), wp.array(J), wp.array(D), wp.array(counts), out]
    wp.launch_tiled(weighted_products, dim=[4], inputs=inputs, block_dim=lanes)
    close(out.numpy(), np.stack([m + j[:n].T @ (j[:n] * d[:n, None]) for m, j, d, n in zip(M, J, D, counts)]))


# 5. Factor and solve.

N = 12


@wp.kernel
def newton_step(H: wp.array3d[float], g: wp.array2d[float], out: wp.array2d[float]):
    w = wp.tid()
    h = wp.tile_load(H[w], shape=(N, N), storage="shared")
    wp.tile_cholesky_inplace(h, fill_mode="upper")
    x = wp.tile_cholesky_solve(h, wp.tile_load(g[w], shape=N), fill_mode="upper")
    wp.tile_store(out[w], wp.tile_map(wp.mul, x, -1.0))


def test_factor_and_solve(lanes):
    H, g = positive(3, N), normal(3, N)
    out = wp.zeros((3, N))
    wp.launch_tiled(newton_step, dim=[3], inputs=[wp.array(H), wp.array(g), out], block_dim=lanes)
    close(out.numpy(), -np.linalg.solve(H, g[..., None])[..., 0])


# 6. Blocked Cholesky.

SIZE = 32
B = 8


@wp.kernel
def blocked_solve(S: wp.array3d[float], b: wp.array2d[float], L: wp.array3d[float], out: wp.array3d[float]):
    w = wp.tid()
    for k in range(0, wp.static(SIZE), B):
        akk = wp.tile_load(S[w], shape=(B, B), offset=(k, k), storage="shared")
        for j in range(0, k, B):
            ljk = wp.tile_load(L[w], shape=(B, B), offset=(k, j), storage="shared")
            wp.tile_matmul(ljk, wp.tile_transpose(ljk), akk, alpha=-1.0)
        wp.tile_cholesky_inplace(akk)
        wp.tile_store(L[w], akk, offset=(k, k))
        for i in range(k + B, wp.static(SIZE), B):
            aik = wp.tile_load(S[w], shape=(B, B), offset=(i, k), storage="shared")
            for j in range(0, k, B):
                lij = wp.tile_load(L[w], shape=(B, B), offset=(i, j), storage="shared")
                lkj = wp.tile_load(L[w], shape=(B, B), offset=(k, j), storage="shared")
                wp.tile_matmul(lij, wp.tile_transpose(lkj), aik, alpha=-1.0)
            wp.tile_lower_solve_inplace(akk, wp.tile_transpose(aik))
            wp.tile_store(L[w], aik, offset=(i, k))
    rhs = wp.tile_reshape(wp.tile_load(b[w], shape=SIZE, storage="shared"), (SIZE, 1))
    for k in range(0, wp.static(SIZE), B):
        view = wp.tile_view(rhs, offset=(k, 0), shape=(B, 1))
        for j in range(0, k, B):
            lkj = wp.tile_load(L[w], shape=(B, B), offset=(k, j), storage="shared")
            wp.tile_matmul(lkj, wp.tile_view(rhs, shape=(B, 1), offset=(j, 0)), view, alpha=-1.0)
        lkk = wp.tile_load(L[w], shape=(B, B), offset=(k, k), storage="shared")
        wp.tile_lower_solve_inplace(lkk, view)
    for n in range(0, wp.static(SIZE), B):
        k = SIZE - B - n
        view = wp.tile_view(rhs, offset=(k, 0), shape=(B, 1))
        for j in range(k + B, wp.static(SIZE), B):
            ljk = wp.tile_load(L[w], shape=(B, B), offset=(j, k), storage="shared")
            part = wp.tile_view(rhs, shape=(B, 1), offset=(j, 0))
            wp.tile_matmul(wp.tile_transpose(ljk), part, view, alpha=-1.0)
        lkk = wp.tile_load(L[w], shape=(B, B), offset=(k, k), storage="shared")
        wp.tile_upper_solve_inplace(wp.tile_transpose(lkk), view)
    wp.tile_store(out[w], rhs)


def test_a_blocked_factorization_and_its_solves(lanes):
    S, b = positive(2, SIZE), normal(2, SIZE)
    L, out = wp.zeros((2, SIZE, SIZE)), wp.zeros((2, SIZE, 1))
    wp.launch_tiled(blocked_solve, dim=[2], inputs=[wp.array(S), wp.array(b), L, out], block_dim=lanes)
    close(L.numpy(), np.linalg.cholesky(S.astype(np.float64)), 1e-4)
    close(out.numpy()[..., 0], np.linalg.solve(S, b[..., None])[..., 0], 1e-4)


# 7. Packed blocks.

P = 5


PP = 25


@wp.kernel
def packed_factors(M: wp.array2d[float], places: wp.array2d[int], L: wp.array2d[float]):
    w, block = wp.tid()
    ids = wp.tile_load(places[block], shape=(PP,))
    m = wp.tile_load_indexed(M[w], ids, shape=(PP,))
    u = wp.tile_cholesky(wp.tile_reshape(m, (P, P)))
    wp.tile_store(L[w], wp.tile_reshape(u, (PP,)), offset=(block * PP,))


def test_packed_blocks_are_gathered_and_factored(lanes):
    matrices = positive(2, 3, P)
    order = RNG.permutation(3 * PP).astype(np.int32)
    scattered = np.zeros((2, 3 * PP), np.float32)
    scattered[:, order] = matrices.reshape(2, -1)
    L = wp.zeros((2, 3 * PP))
    inputs = [wp.array(scattered), wp.array(order.reshape(3, PP)), L]
    wp.launch_tiled(packed_factors, dim=(2, 3), inputs=inputs, block_dim=lanes)
    close(L.numpy().reshape(2, 3, P, P), np.linalg.cholesky(matrices.astype(np.float64)))


# 8. Damped least squares.

ROWS = 7
COLS = 4


@wp.kernel
def damped_step(J: wp.array3d[float], r: wp.array3d[float], damping: wp.array[float], out: wp.array2d[float]):
    w = wp.tid()
    j = wp.tile_load(J[w], shape=(ROWS, COLS), storage="shared")
    jt = wp.tile_transpose(j)
    h = wp.tile_zeros(shape=(COLS, COLS), dtype=float)
    wp.tile_matmul(jt, j, h)
    diag = wp.tile_zeros(shape=(COLS,), dtype=float)
    lam = damping[w]
    for i in range(COLS):
        diag[i] = lam
    L = wp.tile_cholesky(wp.tile_diag_add(h, diag))
    t = wp.tile_zeros(shape=(COLS, 1), dtype=float)
    wp.tile_matmul(jt, wp.tile_load(r[w], shape=(ROWS, 1)), t)
    g = wp.tile_zeros(shape=(COLS,), dtype=float)
    for i in range(COLS):
        g[i] = t[i, 0]
    d = wp.tile_cholesky_solve(L, wp.tile_map(wp.neg, g))
    wp.tile_store(out[w], d)


def test_a_damped_step_of_least_squares(lanes):
    J, r, lam = normal(3, ROWS, COLS), normal(3, ROWS, 1), np.array([0.1, 1.0, 10.0], np.float32)
    out = wp.zeros((3, COLS))
    wp.launch_tiled(damped_step, dim=[3], inputs=[wp.array(J), wp.array(r), wp.array(lam), out], block_dim=lanes)
    jt = np.swapaxes(J, 1, 2)
    expected = -np.linalg.solve(jt @ J + lam[:, None, None] * np.eye(COLS), jt @ r)
    close(out.numpy(), expected[..., 0], 1e-4)


# 9. Contact rows.


@wp.func
def jacobian_of(dof: wp.spatial_vector, point: wp.vec3, affects: int) -> wp.vec3:
    if affects == 0:
        return wp.vec3()
    return wp.spatial_bottom(dof) + wp.cross(wp.spatial_top(dof), point)


CHUNK = 8


@wp.kernel
def contact_rows(
    cdof: wp.array2d[wp.spatial_vector], affects: wp.array2d[int], points: wp.array[wp.vec3], frame: wp.array[wp.vec3],
    q: wp.array2d[float], nv: int, rows: wp.array2d[float], Jq: wp.array2d[float],
):  # fmt: skip
    w, e = wp.tid()
    point, normal_of = points[e], frame[e]
    for o in range(0, nv, CHUNK):
        dofs = wp.tile_load(cdof[w], shape=CHUNK, offset=o)
        mask = wp.tile_load(affects[e], shape=CHUNK, offset=o)
        jac = wp.tile_map(jacobian_of, dofs, point, mask)
        row = wp.tile_map(wp.dot, jac, normal_of)
        wp.tile_store(rows[w * 3 + e], row, offset=o)
        part = wp.tile_reduce(wp.add, wp.tile_map(wp.mul, row, wp.tile_load(q[w], shape=CHUNK, offset=o)))
        wp.tile_atomic_add(Jq[w], part, offset=e)


def test_rows_of_contacts(lanes):
    nv = 21
    cdof, points, frame, q = normal(2, nv, 6), normal(3, 3), normal(3, 3), normal(2, nv)
    affects = RNG.integers(0, 2, (3, nv)).astype(np.int32)
    rows, Jq = wp.zeros((6, nv)), wp.zeros((2, 3))
    arrays = [wp.array(cdof, dtype=wp.spatial_vector), wp.array(affects), wp.array(points, dtype=wp.vec3)]
    inputs = [*arrays, wp.array(frame, dtype=wp.vec3), wp.array(q), nv, rows, Jq]
    wp.launch_tiled(contact_rows, dim=(2, 3), inputs=inputs, block_dim=lanes)
    turning, moving = cdof[:, None, :, :3], cdof[:, None, :, 3:]
    jac = (moving + np.cross(turning, points[None, :, None])) * affects[None, :, :, None]
    expected = (jac * frame[None, :, None]).sum(axis=3)
    close(rows.numpy().reshape(2, 3, nv), expected)
    close(Jq.numpy(), (expected * q[:, None]).sum(axis=2))


# 10. Nearest hit.


@wp.kernel
def nearest(a: wp.array2d[float], n: int, out: wp.array[float], ids: wp.array[int], normals: wp.array[wp.vec3]):
    i, lane = wp.tid()
    d = float(1.0e10)
    best = int(-1)
    normal_of = wp.vec3()
    for j in range(lane, n, wp.block_dim()):
        if a[i, j] < d:
            d = a[i, j]
            best = j
            normal_of = wp.vec3(float(j), d, 1.0)
    t = wp.tile(d)
    k = wp.tile_argmin(t)
    distance = t[k[0]]
    index = wp.tile(best)[k[0]]
    direction = wp.tile(normal_of, preserve_type=True)[k[0]]
    if lane == 0:
        out[i] = distance
        ids[i] = index
        normals[i] = direction


def test_the_nearest_hit_of_a_block(lanes):
    a = RNG.permutation(3 * 200).reshape(3, 200).astype(np.float32)
    out, ids, normals = wp.zeros(3), wp.zeros(3, dtype=int), wp.zeros(3, dtype=wp.vec3)
    wp.launch_tiled(nearest, dim=[3], inputs=[wp.array(a), 200, out, ids, normals], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), a.min(1))
    np.testing.assert_array_equal(ids.numpy(), a.argmin(1))
    np.testing.assert_array_equal(normals.numpy(), np.stack([a.argmin(1), a.min(1), np.ones(3)], axis=1))


# 11. Segment sort.

SEGMENT = 64


@wp.kernel
def sort_segments(keys: wp.array[int], values: wp.array[float]):
    i = wp.tid()
    k = wp.tile_load(keys, shape=SEGMENT, offset=i * SEGMENT, storage="shared")
    v = wp.tile_load(values, shape=SEGMENT, offset=i * SEGMENT, storage="shared")
    wp.tile_sort(k, v)
    wp.tile_store(keys, k, offset=i * SEGMENT)
    wp.tile_store(values, v, offset=i * SEGMENT)


def test_segments_are_sorted(lanes):
    keys, values = RNG.permutation(3 * SEGMENT).astype(np.int32), normal(3 * SEGMENT)
    k, v = wp.array(keys), wp.array(values)
    wp.launch_tiled(sort_segments, dim=[3], inputs=[k, v], block_dim=lanes)
    order = np.argsort(keys.reshape(3, -1), axis=1)
    np.testing.assert_array_equal(k.numpy().reshape(3, -1), np.sort(keys.reshape(3, -1), axis=1))
    np.testing.assert_array_equal(v.numpy().reshape(3, -1), np.take_along_axis(values.reshape(3, -1), order, axis=1))


# 12. 3-D batches.

C = 3
V = 6


@wp.func
def shifted(x: float, by: float) -> float:
    return x + by


@wp.kernel
def batches(A: wp.array3d[float], D: wp.array3d[float], out: wp.array3d[float]):
    i = wp.tid()
    a = wp.tile_reshape(wp.tile_load(A, shape=(1, C, V), offset=(i, 0, 0)), (C, V))
    b = wp.tile_reshape(wp.tile_load(D, shape=(1, C, V), offset=(i, 0, 0)), (C, V))
    s = wp.tile_zeros(shape=(V, V), dtype=float)
    wp.tile_matmul(wp.tile_transpose(a), b, s)
    wp.tile_store(out, wp.tile_map(shifted, wp.tile_reshape(s, (1, V, V)), float(i)), offset=(i, 0, 0))


def test_batches_of_three_dimensions(lanes):
    A, D = normal(4, C, V), normal(4, C, V)
    out = wp.zeros((4, V, V))
    wp.launch_tiled(batches, dim=[4], inputs=[wp.array(A), wp.array(D), out], block_dim=lanes)
    close(out.numpy(), np.swapaxes(A, 1, 2) @ D + np.arange(4)[:, None, None])


# 13. Work list.

CAP = 48


@wp.struct
class Span:
    first: int
    last: int


@wp.kernel
def halve(n: int, out: wp.array[int], turns: wp.array[int]):
    """Spans are cut in halves until they are single numbers; a cursor of one lane feeds the stack."""
    block, lane = wp.tid()
    s = wp.tile_stack(capacity=CAP, dtype=Span)
    cur = wp.tile_zeros(shape=1, dtype=int, storage="shared")
    done = int(0)
    while done == 0:
        start = wp.tile_extract(cur, 0)
        span = Span()
        span.first = start
        span.last = wp.min(start + 5, n)
        wp.tile_stack_push(s, span, lane == 0 and start < n)
        while wp.tile_stack_count(s) > 0:
            item, slot = wp.tile_stack_pop(s)
            whole = slot >= 0 and item.last - item.first > 1
            if slot >= 0 and not whole:
                wp.atomic_add(out, item.first, item.first + 1)
            middle = (item.first + item.last) / 2
            left = Span()
            left.first = item.first
            left.last = middle
            right = Span()
            right.first = middle
            right.last = item.last
            wp.tile_stack_push(s, left, whole)
            wp.tile_stack_push(s, right, whole)
        wp.tile_scatter_masked(cur, 0, start + 5, lane == 0)
        if wp.tile_extract(cur, 0) >= n:
            done = 1
        if lane == 0:
            wp.atomic_add(turns, block, 1)


def test_a_work_list_with_a_cursor(lanes):
    out, turns = wp.zeros(23, dtype=int), wp.zeros(2, dtype=int)
    wp.launch_tiled(halve, dim=[2], inputs=[23, out, turns], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), 2 * (np.arange(23) + 1))
    assert turns.numpy().tolist() == [5, 5]


# 14. Scatter, then reduce or reshape.

Q = 6
QQ = 36


@wp.kernel
def scatter_then_reduce(
    a: wp.array2d[float], place: wp.array[int], n: int, tops: wp.array[float], L: wp.array3d[float]
):
    i, lane = wp.tid()
    m = wp.tile_zeros(shape=QQ, dtype=float)
    step = wp.block_dim()
    padded = (n + step - 1) / step * step
    for j in range(lane, padded, step):
        k = wp.min(j, n - 1)
        wp.tile_scatter_masked(m, place[k], a[i, k], j < n)
    top = wp.tile_max(m)[0]
    if lane == 0:
        tops[i] = top
    wp.tile_store(L[i], wp.tile_cholesky(wp.tile_reshape(m, (Q, Q))))


def test_scattered_values_are_reduced_and_reshaped(lanes):
    matrices = positive(3, Q)
    rows, columns = np.tril_indices(Q)
    place = (rows * Q + columns).astype(np.int32)
    order = RNG.permutation(len(place))
    a, place = matrices[:, rows, columns][:, order], place[order]
    tops, L = wp.zeros(3), wp.zeros((3, Q, Q))
    inputs = [wp.array(np.ascontiguousarray(a)), wp.array(place), len(place), tops, L]
    wp.launch_tiled(scatter_then_reduce, dim=[3], inputs=inputs, block_dim=lanes)
    np.testing.assert_array_equal(tops.numpy(), a.max(axis=1))
    close(L.numpy(), np.linalg.cholesky(matrices.astype(np.float64)))


# 15. Differentiable.


@wp.func
def inertia(J: wp.array3d[float], M: wp.array3d[float], block: int):
    H = wp.tile_zeros(shape=(4, 4), dtype=float)
    for k in range(3):
        j = wp.tile_load(J[block], shape=(6, 4), offset=(6 * k, 0))
        m = wp.tile_load(M[block], shape=(6, 6), offset=(6 * k, 0))
        H += wp.tile_matmul(wp.tile_transpose(j), wp.tile_matmul(m, j))
    return H


@wp.kernel
def inertias(J: wp.array3d[float], M: wp.array3d[float], H: wp.array3d[float]):
    i = wp.tid()
    wp.tile_store(H[i], inertia(J, M, i))


def test_inertias_and_their_gradient(lanes):
    J, M, seed = normal(2, 18, 4), normal(2, 18, 6), normal(2, 4, 4)
    given = [wp.array(J, requires_grad=True), wp.array(M, requires_grad=True), wp.zeros((2, 4, 4), requires_grad=True)]
    with wp.Tape() as tape:
        wp.launch_tiled(inertias, dim=[2], inputs=given, block_dim=lanes)
    tape.backward(grads={given[2]: wp.array(seed)})
    j, m = J.reshape(2, 3, 6, 4), M.reshape(2, 3, 6, 6)
    close(given[2].numpy(), np.einsum("bkia,bkij,bkjc->bac", j, m, j))
    by_m = np.einsum("bkia,bac,bkjc->bkij", j, seed, j)
    by_j = np.einsum("bac,bkij,bkjc->bkia", seed, m, j) + np.einsum("bac,bkij,bkia->bkjc", seed, m, j)
    close(given[1].grad.numpy(), by_m.reshape(2, 18, 6))
    close(given[0].grad.numpy(), by_j.reshape(2, 18, 4))
