"""Kernels with plain loops in the place of those of mujoco-warp that use tiles, as far as a humanoid's step needs them.

Each function makes a kernel as its counterpart in mujoco-warp does: with the same arguments, and the same results but
for rounding. By default a block has one thread, as on every CPU. `install()` puts them in place;
launching any other kernel in tiles stays an error.
"""

import inspect
import linecache
import re

import warp as wp


def contact_jacobian(tile_size, cone_type, njmax, deterministic=False):
    """The rows of the contacts in the Jacobian, pyramidal or elliptic, and their products with the velocity.

    A thread for each column of a tile.
    """
    from mujoco_warp._src import support, types

    ELLIPTIC = cone_type == types.ConeType.ELLIPTIC
    TILE_SIZE = tile_size

    @wp.kernel(module="unique", enable_backward=False)
    def contact_jacobian(
        body_rootid: wp.array[int],
        geom_bodyid: wp.array[int],
        body_isdofancestor: wp.array2d[int],
        ne_in: wp.array[int],
        nf_in: wp.array[int],
        nl_in: wp.array[int],
        nefc_in: wp.array[int],
        qvel_in: wp.array2d[float],
        subtree_com_in: wp.array2d[wp.vec3],
        cdof_in: wp.array2d[wp.spatial_vector],
        contact_efc_address_in: wp.array2d[int],
        efc_id_in: wp.array2d[int],
        njmax_in: int,
        nv_padded: int,
        condim_in: wp.array[int],
        geom_in: wp.array[wp.vec2i],
        pos_in: wp.array[wp.vec3],
        frame_in: wp.array2d[wp.vec3],
        friction_in: wp.array2d[float],
        efc_J_out: wp.array3d[float],
        efc_Jqvel_out: wp.array2d[float],
    ):
        worldid, block, place = wp.tid()
        dof = block * TILE_SIZE + place
        if dof >= nv_padded:
            return
        cdof = wp.spatial_vector()
        qvel = wp.float32(0.0)
        if dof < qvel_in.shape[1]:
            cdof = cdof_in[worldid, dof]
            qvel = qvel_in[worldid, dof]
        begin = ne_in[worldid] + nf_in[worldid] + nl_in[worldid]
        for efcid in range(begin, wp.min(nefc_in[worldid], njmax_in)):
            conid = efc_id_in[worldid, efcid]
            condim = condim_in[conid]
            geom = geom_in[conid]
            body1 = geom_bodyid[geom[0]]
            body2 = geom_bodyid[geom[1]]
            offset1 = pos_in[conid] - subtree_com_in[worldid, body_rootid[body1]]
            offset2 = pos_in[conid] - subtree_com_in[worldid, body_rootid[body2]]
            # A row is the product of two directions with the relative velocity: one of points, one of rotation.
            row = efcid - contact_efc_address_in[conid, 0]
            along = wp.vec3(0.0)
            around = wp.vec3(0.0)
            if wp.static(ELLIPTIC):
                if row < 3:
                    along = frame_in[conid, row]
                else:
                    around = frame_in[conid, row - 3]
            else:
                along = frame_in[conid, 0]
                if condim > 1:
                    side = row / 2 + 1
                    scale = friction_in[conid, side - 1] * (1.0 - 2.0 * float(row & 1))
                    if side < 3:
                        along += scale * frame_in[conid, side]
                    else:
                        around = scale * frame_in[conid, side - 3]
            affects1 = body_isdofancestor[body1, dof]
            affects2 = body_isdofancestor[body2, dof]
            jacp = support._compute_jacp(cdof, offset2, affects2) - support._compute_jacp(cdof, offset1, affects1)
            jacr = support._compute_jacr(cdof, affects2) - support._compute_jacr(cdof, affects1)
            J = wp.dot(jacp, along) + wp.dot(jacr, around)
            efc_J_out[worldid, efcid, dof] = J
            wp.atomic_add(efc_Jqvel_out, worldid, efcid, J * qvel)

    return contact_jacobian


@wp.func
def factorize(U: wp.array2d[float], n: int):
    """The upper triangle of a symmetric matrix becomes U, so that U^T U is the matrix."""
    for i in range(n):
        for k in range(i):
            factor = U[k, i]
            for j in range(i, n):
                U[i, j] -= factor * U[k, j]
        inverse = 1.0 / wp.sqrt(U[i, i])
        for j in range(i, n):
            U[i, j] *= inverse


@wp.func
def solve(U: wp.array2d[float], x: wp.array[float], n: int):
    """The solution of U^T U x = b in the place of b."""
    for i in range(n):
        x[i] /= U[i, i]
        for j in range(i + 1, n):
            x[j] -= U[i, j] * x[i]
    for reverse in range(n):
        i = n - 1 - reverse
        value = x[i]
        for j in range(i + 1, n):
            value -= U[i, j] * x[j]
        x[i] = value / U[i, i]


def factorize_and_solve(tile):
    """U of the inertia of one block of degrees of freedom, and the solution for one right side."""
    n = tile.size

    @wp.kernel(module="unique", enable_backward=False)
    def factorize_and_solve(
        qLD_block_adr: wp.array[int],
        M_in: wp.array2d[float],
        block_elemid: wp.array[int],
        block_dof: wp.array[int],
        y: wp.array2d[float],
        x: wp.array2d[float],
        L_out: wp.array2d[float],
    ):
        worldid, block = wp.tid()
        start = block_dof[block]
        U = wp.zeros(shape=(n, n), dtype=float)
        b = wp.zeros(shape=(n,), dtype=float)
        for i in range(n):
            b[i] = y[worldid, start + i]
            for j in range(i, n):
                element = block_elemid[(block * n + i) * n + j]
                if element < M_in.shape[1]:
                    U[i, j] = M_in[worldid, element]
        factorize(U, n)
        solve(U, b, n)
        for i in range(n):
            x[worldid, start + i] = b[i]
            for j in range(i, n):
                L_out[worldid, qLD_block_adr[start] + i * n + j] = U[i, j]

    return factorize_and_solve


def hessian(nv_pad, tile_size, njmax, nC):
    """The upper triangle of M + J^T D J, over the constraints that are quadratic now; zeros below it."""
    from mujoco_warp._src import types

    QUADRATIC = types.ConstraintState.QUADRATIC.value

    @wp.kernel(module="unique", enable_backward=False)
    def hessian(
        M_colind: wp.array[int],
        M_hinit_i: wp.array[int],
        nefc_in: wp.array[int],
        M_in: wp.array2d[float],
        efc_J_in: wp.array3d[float],
        efc_D_in: wp.array2d[float],
        efc_state_in: wp.array2d[int],
        ctx_done_in: wp.array[bool],
        ctx_h_out: wp.array3d[float],
    ):
        worldid = wp.tid()
        if ctx_done_in[worldid]:
            return
        for i in range(nv_pad):
            for j in range(nv_pad):
                ctx_h_out[worldid, i, j] = 0.0
        for element in range(nC):
            ctx_h_out[worldid, M_colind[element], M_hinit_i[element]] = M_in[worldid, element]
        for k in range(wp.min(nefc_in[worldid], njmax)):
            if efc_state_in[worldid, k] == QUADRATIC:
                for i in range(nv_pad):
                    scaled = efc_J_in[worldid, k, i] * efc_D_in[worldid, k]
                    if scaled != 0.0:
                        for j in range(i, nv_pad):
                            ctx_h_out[worldid, i, j] += scaled * efc_J_in[worldid, k, j]

    return hessian


def search_direction(n, skip_unchanged=False):
    """-h^-1 grad, its square, and the decrement of Newton's method; h stays as it is."""

    @wp.kernel(module="unique", enable_backward=False)
    def search_direction(
        ctx_grad_in: wp.array2d[float],
        h_in: wp.array3d[float],
        state_changed_count_in: wp.array[int],
        ctx_done_in: wp.array[bool],
        ctx_search_out: wp.array2d[float],
        ctx_search_dot_out: wp.array[float],
        ctx_newton_decrement_out: wp.array[float],
    ):
        worldid = wp.tid()
        if ctx_done_in[worldid]:
            return
        if skip_unchanged and state_changed_count_in[worldid] == 0:
            return
        U = wp.zeros(shape=(n, n), dtype=float)
        x = wp.zeros(shape=(n,), dtype=float)
        for i in range(n):
            x[i] = ctx_grad_in[worldid, i]
            for j in range(i, n):
                U[i, j] = h_in[worldid, i, j]
        factorize(U, n)
        solve(U, x, n)
        square = wp.float32(0.0)
        decrement = wp.float32(0.0)
        for i in range(n):
            square += x[i] * x[i]
            decrement += ctx_grad_in[worldid, i] * x[i]
            ctx_search_out[worldid, i] = -x[i]
        ctx_search_dot_out[worldid] = square
        ctx_newton_decrement_out[worldid] = decrement

    return search_direction


def without_sums_of_blocks(make):
    """A function that makes a kernel for blocks of one thread, which sum nothing: each tile is its one number.

    `wp.tile(x, preserve_type=True)` becomes x, a sum of it itself, the first element of the sum as well; barriers go.
    """
    source = inspect.getsource(inspect.unwrap(make))
    source = source[source.index("def ") :]
    tiles = re.findall(r"(\w+) = wp\.tile\((\w+), preserve_type=True\)", source)
    if not tiles:
        raise RuntimeError(f"{make.__name__}: expected tiles of one number each thread, found none")
    for tile, number in tiles:
        summed = re.search(rf"(\w+) = wp\.tile_reduce\(wp\.add, {tile}\)", source)[1]
        source = re.sub(rf".*\b({tile}|{summed}) = .*\n", "", source)
        source = re.sub(rf"\b{summed}\[0\]", number, source)
    source = re.sub(r"(?m)^( *)_syncthreads\(\).*$", r"\1pass", source)
    if "wp.tile" in source:
        raise RuntimeError(f"{make.__name__}: {re.search('wp.tile.*', source)[0]} has no stand-in")
    name = f"<{make.__name__} for blocks of one thread>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    made = {}
    exec(compile(source, name, "exec"), inspect.unwrap(make).__globals__, made)
    return made[make.__name__]


def install() -> None:
    """Puts the stand-ins in the place of mujoco-warp's functions that make kernels."""
    from mujoco_warp._src import constraint, smooth, solver, warp_util

    line_search = "_linesearch_iterative_kernel"
    places = (
        (constraint, "_efc_contact_jac_dense", contact_jacobian),
        (smooth, "_tile_cholesky_factorize_solve_block", factorize_and_solve),
        (solver, "_update_gradient_JTDAJ_dense_tiled", hessian),
        (solver, "_update_gradient_cholesky", search_direction),
        (solver, line_search, without_sums_of_blocks(getattr(solver, line_search))),
    )
    threads = {}  # of a block, for each stand-in
    launch = wp.launch
    for module, name, make in places:
        getattr(module, name)  # a name that is gone is an error

        @warp_util.cache_kernel
        def noting(*arguments, make=make):
            kernel = make(*arguments)
            threads[kernel] = arguments[0] if make is contact_jacobian else 1
            return kernel

        setattr(module, name, noting)

    def launch_tiled(kernel, dim, inputs=(), outputs=(), block_dim=0):
        if kernel not in threads:
            raise NotImplementedError(f"{kernel.key} uses tiles and has no stand-in")
        dims = (dim,) if isinstance(dim, int) else tuple(dim)
        launch(kernel, dim=(*dims, threads[kernel]), inputs=inputs, outputs=outputs)

    wp.launch_tiled = launch_tiled
