"""Programs of tiles whose gradients are compared with differences: kernels, the values they are given, the output."""

import numpy as np
import warp as wp

RNG = np.random.default_rng(18)
f64 = wp.float64
D1 = wp.array[f64]
D2 = wp.array2d[f64]
D3 = wp.array3d[f64]
# name: (kernel, arrays of float64 or int32 or vectors, types of them that are not scalars, shape of the output, dim)
PROGRAMS = {}


def normal(*shape):
    return RNG.standard_normal(shape)


def spread(*shape):
    """Numbers that differ by at least 0.1 from each other, for functions with kinks at equal ones."""
    n = int(np.prod(shape))
    return (RNG.permutation(n).reshape(shape) - n / 2 + 0.3) * 0.2


def program(*values, out, dim=1, types=None, name=None):
    def register(kernel):
        PROGRAMS[name or kernel.key.replace("_", " ")] = (kernel, list(values), types, out, dim)
        return kernel

    return register


@program(normal(11), normal(5, 6), out=(3, 40), dim=3)
@wp.kernel
def loads_and_stores_past_the_end(a: D1, b: D2, out: D2):
    i = wp.tid()
    t = wp.tile_load(a, shape=5, offset=4 * i)
    wp.tile_store(out[i], t * f64(2.0))
    u = wp.tile_load(b, shape=(3, 4), offset=(2 * i, i), storage="shared")
    wp.tile_store(out[i], wp.tile_reshape(u, (12,)), offset=6)
    wp.tile_store(out[i], t, offset=37)


@program(normal(11), normal(5, 6), out=(3, 40), dim=3)
@wp.kernel
def loads_and_stores_before_the_start(a: D1, b: D2, out: D2):
    i = wp.tid()
    t = wp.tile_load(a, shape=5, offset=4 * i - 3)
    u = wp.tile_load(b, shape=(3, 4), offset=(2 * i - 1, i - 2))
    wp.tile_store(out[i], wp.tile_reshape(u, (12,)), offset=6)
    wp.tile_store(out[i], t, offset=-2)


@program(normal(30), out=(30,))
@wp.kernel
def a_store_takes_the_place_of_another(a: D1, out: D1):
    t = wp.tile_load(a, shape=10)
    wp.tile_store(out, t)
    wp.tile_store(out, t * t, offset=5)
    u = wp.tile_load(out, shape=8, offset=3)
    wp.tile_store(out, u * f64(3.0), offset=20)


@program(normal(6, 5), np.array([4, 0, -1, 4, 9], np.int32), out=(6, 30))
@wp.kernel
def indexed_loads_and_stores(a: D2, indices: wp.array[int], out: D2):
    ids = wp.tile_load(indices, shape=5)
    t = wp.tile_load_indexed(a, ids, shape=(5, 5))
    wp.tile_store(out, t * t)
    u = wp.tile_load_indexed(a, ids, shape=(4, 5), offset=(1, 0), axis=1)
    wp.tile_store(out, u, offset=(0, 6))
    order = wp.tile_arange(4, -1, -1, dtype=int)
    wp.tile_store_indexed(out, order, t, offset=(0, 12))
    wp.tile_atomic_add_indexed(out, wp.tile_load(indices, shape=5), t * f64(2.0), offset=(0, 20), axis=0)


@program(normal(3, 12), out=(9,), dim=3)
@wp.kernel
def atomic_sums(a: D2, out: D1):
    i = wp.tid()
    t = wp.tile_load(a[i], shape=6)
    wp.tile_atomic_add(out, t * t, offset=2 * i)


@program(normal(8), normal(8) + 3.0, normal(1), out=(12, 8))
@wp.kernel
def operators(a: D1, b: D1, c: D1, out: D2):
    t = wp.tile_load(a, shape=8)
    u = wp.tile_load(b, shape=8, storage="shared")
    x = c[0]
    wp.tile_store(out[0], t + u)
    wp.tile_store(out[1], t - u * u)
    wp.tile_store(out[2], t * u)
    wp.tile_store(out[3], t / u)
    wp.tile_store(out[4], -t)
    wp.tile_store(out[5], t * x)
    wp.tile_store(out[6], x * u)
    wp.tile_store(out[7], u / x)
    wp.tile_store(out[8], x / u)
    v = t * f64(1.0)
    v += u
    v -= t * u
    wp.tile_store(out[9], v)
    v *= u
    v /= t + u * f64(3.0)
    wp.tile_store(out[10], v)
    v *= x
    v /= f64(2.0)
    wp.tile_store(out[11], v)


@program(normal(5), normal(5, 3), normal(5, 3), out=(4, 5), types={1: wp.vec3d, 2: wp.vec3d})
@wp.kernel
def vectors(f: D1, a: wp.array[wp.vec3d], b: wp.array[wp.vec3d], out: D2):
    t = wp.tile_load(f, shape=5)
    x = wp.tile_load(a, shape=5)
    y = wp.tile_load(b, shape=5, storage="shared")
    z = t * x - y * f64(2.0)
    wp.tile_store(out[0], wp.tile_map(wp.dot, z, x))
    wp.tile_store(out[1], wp.tile_map(wp.length, wp.tile_map(wp.cross, x, y)))
    s = wp.tile_sum(x + y)[0]
    wp.tile_store(out[2], wp.tile_map(wp.dot, z, s))
    w = z
    w[1] = y[2] * f64(3.0)
    out_of = w[1]
    wp.tile_store(out[3], wp.tile_ones(shape=1, dtype=f64) * (out_of[0] * out_of[1]))


@wp.func
def activation(x: f64, y: f64, z: f64):
    return wp.tanh(x * y) + wp.exp(-z * z) * x


@wp.func
def clipped(x: f64, limit: f64):
    if x > limit:
        return limit + f64(0.1) * x
    return x * x


@program(normal(2, 7), normal(2, 7), spread(2, 7), normal(1), out=(6, 2, 7))
@wp.kernel
def maps(a: D2, b: D2, c: D2, d: D1, out: D3):
    t = wp.tile_load(a, shape=(2, 7))
    u = wp.tile_load(b, shape=(2, 7))
    v = wp.tile_load(c, shape=(2, 7), storage="shared")
    x = d[0]
    wp.tile_store(out[0], wp.tile_map(wp.sin, t))
    wp.tile_store(out[1], wp.tile_map(activation, t, u, v))
    wp.tile_store(out[2], wp.tile_map(activation, t, x, u))
    wp.tile_store(out[3], wp.tile_map(clipped, v, x))
    wp.tile_store(out[4], wp.tile_map(wp.mul, wp.tile_map(wp.exp, t), u))
    wp.tile_store(out[5], wp.tile_map(wp.mul, t, x))


@program(normal(3, 7), spread(3, 7), out=(2, 3, 7))
@wp.kernel
def maps_of_maxima(a: D2, b: D2, out: D3):
    t = wp.tile_load(a, shape=(3, 7))
    u = wp.tile_load(b, shape=(3, 7))
    wp.tile_store(out[0], wp.tile_map(wp.max, u, f64(0.05)))
    wp.tile_store(out[1], wp.tile_map(wp.min, t * t, u))


@program(normal(4, 9), normal(4, 9), normal(1), out=(6, 9))
@wp.kernel
def sums_and_products(a: D2, b: D2, c: D1, out: D2):
    t = wp.tile_load(a, shape=(4, 9))
    u = wp.tile_load(b, shape=(4, 9), storage="shared")
    s = wp.tile_sum(t * t)[0]
    wp.tile_store(out[0], wp.tile_sum(t * u, axis=0) * s)
    wp.tile_store(out[1], wp.tile_sum(t * u, axis=1))
    wp.tile_store(out[2], wp.tile_dot(t, u))
    v = wp.tile_load(b[1], shape=9)
    wp.tile_axpy(c[0], wp.tile_load(a[0], shape=9), v)
    wp.tile_store(out[3], v * v)
    wp.tile_store(out[4], wp.tile_sum(wp.tile_sum(u, axis=1) * wp.tile_sum(t, axis=1)))


@program(normal(6, 8), out=(8, 6, 8))
@wp.kernel
def views(a: D2, out: D3):
    t = wp.tile_load(a, shape=(6, 8), storage="shared")
    wp.tile_store(out[0, 0], t[2] * t[-1])
    wp.tile_store(out[1], t[1:5:2, ::-1] * f64(2.0))
    wp.tile_store(out[2], wp.tile_view(t, offset=(1, 2), shape=(3, 4)) * wp.tile_view(t, offset=(2, 3), shape=(3, 4)))
    wp.tile_store(out[3], wp.tile_transpose(t)[:6, :])
    wp.tile_store(out[4], wp.tile_reshape(t, (4, 12))[:, :8])
    wp.tile_store(out[5], wp.tile_broadcast(t[3], shape=(6, 8)) * t)
    wp.tile_store(out[6], wp.tile_squeeze(wp.tile_reshape(t, (1, 6, 8))))
    wp.tile_store(out[7], t[wp.tile_arange(5, -1, -2, dtype=int)] * f64(3.0))


@program(normal(6, 8), normal(8), out=(4, 6, 8))
@wp.kernel
def writes_through_views(a: D2, b: D1, out: D3):
    row = wp.tile_load(b, shape=8)
    t = wp.tile_load(a, shape=(6, 8), storage="shared")
    t[1] = row
    t[2:4, :] = t[:2, :]
    t[:, 3] = t[:, 4]
    wp.tile_store(out[0], t * t)
    v = t[5]
    v += row
    wp.tile_store(out[1], t)
    wp.tile_assign(t, wp.tile_reshape(row, (2, 4)), offset=(3, 1))
    wp.tile_store(out[2], t * t)
    u = wp.tile_load(a, shape=(6, 8), storage="shared")
    u[1:] = u[:-1]
    wp.tile_store(out[3], u)


@program(normal(9), np.array([2, 5], np.int32), out=(3, 9))
@wp.kernel
def elements(a: D1, at: wp.array[int], out: D2):
    t = wp.tile_load(a, shape=9)
    j, k = at[0], at[1]
    x = t[j] * t[k]
    t[1] = x
    t[k] = t[0] * x
    t[j] = f64(3.0)
    wp.tile_store(out[0], t)
    u = wp.tile_zeros(shape=9, dtype=f64)
    for i in range(9):
        u[i] = t[8 - i] * x
    wp.tile_store(out[1], u)
    wp.tile_store(out[2], wp.tile_astype(wp.tile_astype(t, f64), f64) * wp.tile_extract(u, 4))


@program(normal(2, 64), out=(2, 64), dim=2)
@wp.kernel
def values_of_lanes(a: D2, out: D2):
    i, lane = wp.tid()
    for first in range(0, wp.static(64), wp.block_dim()):
        x = a[i, first + lane]
        t = wp.tile(x * x)
        y = wp.untile(t * f64(0.5))
        out[i, first + lane] = y * x


@program(normal(2, 64), out=(2, 8), dim=2)
@wp.kernel
def scattered_values(a: D2, out: D2):
    i, lane = wp.tid()
    t = wp.tile_zeros(shape=8, dtype=f64)
    for first in range(0, wp.static(64), wp.block_dim()):
        j = first + lane
        wp.tile_scatter_add(t, j % 4, a[i, j] * a[i, j], j % 3 != 0)
        wp.tile_scatter_masked(t, 4 + j % 4, a[i, j] * f64(3.0), j < 4)
    wp.tile_store(out[i], t)


@program(normal(5, 7), normal(7, 4), normal(5, 4), out=(5, 6, 6))
@wp.kernel
def products_of_matrices(a: D2, b: D2, c: D2, out: D3):
    t = wp.tile_load(a, shape=(5, 7), storage="shared")
    u = wp.tile_load(b, shape=(7, 4))
    v = wp.tile_load(c, shape=(5, 4))
    wp.tile_store(out[0], wp.tile_matmul(t, u))
    wp.tile_matmul(t, u, v, alpha=2.0, beta=-0.5)
    wp.tile_store(out[1], v * v)
    wp.tile_store(out[2], wp.tile_matmul(wp.tile_transpose(v), wp.tile_matmul(t, u)))
    w = wp.tile_load(c, shape=(5, 4), storage="shared")
    wp.tile_matmul(
        wp.tile_view(t, offset=(1, 2), shape=(2, 5)), wp.tile_view(u, offset=(2, 0), shape=(5, 4)), w[2:4, :]
    )
    wp.tile_store(out[3], w)
    wp.tile_matmul(t, u, w, beta=0.0)
    w += wp.tile_matmul(t, u, alpha=0.5)
    wp.tile_store(out[4], w * v)


def positive(n):
    a = normal(n, n)
    return a @ a.T + n * np.eye(n)


@program(positive(5), normal(5, 3), out=(2, 5, 5))
@wp.kernel
def factors_and_lower_solves(a: D2, b: D2, out: D3):
    l = wp.tile_cholesky(wp.tile_load(a, shape=(5, 5)))
    wp.tile_store(out[0], l)
    y = wp.tile_lower_solve(l, wp.tile_load(b, shape=(5, 3)))
    wp.tile_store(out[1], y * y)


@wp.func
def inertia(j: wp.tile[f64, 3, 4], m: wp.tile[f64, 3, 3]):
    return wp.tile_matmul(wp.tile_transpose(j), wp.tile_matmul(m, j))


@wp.func
def shift(t: wp.tile[f64, 4, 4], x: f64):
    t += wp.tile_ones(shape=(4, 4), dtype=f64) * x
    t[1, 2] = x * x


@program(normal(3, 3, 4), normal(3, 3, 3), normal(1), out=(4, 4))
@wp.kernel
def functions_with_tiles(a: D3, b: D3, c: D1, out: D2):
    h = wp.tile_zeros(shape=(4, 4), dtype=f64)
    for k in range(3):
        h += inertia(wp.tile_load(a[k], shape=(3, 4)), wp.tile_load(b[k], shape=(3, 3)))
    shift(h, c[0])
    wp.tile_store(out, h * h)


@program(normal(2, 6), np.array([1, 0], np.int32), out=(2, 6), dim=2)
@wp.kernel
def branches(a: D2, flags: wp.array[int], out: D2):
    i = wp.tid()
    t = wp.tile_load(a[i], shape=6)
    if flags[i] == 1:
        t = t * t
        t[2] = t[1] * t[0]
    else:
        t = wp.tile_map(wp.sin, t) + t
    u = t if flags[i] == 0 else t * f64(2.0)
    wp.tile_store(out[i], u * t)


@program(normal(2, 8, 2), out=(3, 2, 8), types={0: wp.vec2d})
@wp.kernel
def fourier_transforms(a: wp.array2d[wp.vec2d], out: D3):
    s = wp.tile_load(a, shape=(2, 8))
    t = wp.tile_load(a, shape=(2, 8))
    wp.tile_fft(t)
    u = wp.tile_load(a, shape=(2, 8))
    wp.tile_ifft(u)
    wp.tile_store(out[0], wp.tile_map(wp.dot, t, t))
    wp.tile_store(out[1], wp.tile_map(wp.dot, s, u))
    wp.tile_store(out[2], wp.tile_map(wp.dot, t, s))


# Further derivatives that programs ask for. 1.19 gives zero or another number for these.


@program(normal(5, 6) + 2.0, np.array([5], np.int32), out=(2, 6))
@wp.kernel
def products_over_a_loop(a: D2, n: wp.array[int], out: D2):
    s = wp.tile_ones(shape=6, dtype=f64)
    for k in range(n[0]):
        s = s * wp.tile_load(a[k], shape=6)
    wp.tile_store(out[0], s)
    k = int(0)
    t = wp.tile_load(a[0], shape=6)
    while k < n[0] - 1:
        k += 1
        t = wp.tile_map(wp.sin, t * wp.tile_load(a[k], shape=6))
        if k == 3:
            break
    wp.tile_store(out[1], t)


@program(normal(5, 6), np.array([5], np.int32), out=(6,))
@wp.kernel
def sums_over_a_loop_used_in_a_function(a: D2, n: wp.array[int], out: D1):
    s = wp.tile_zeros(shape=6, dtype=f64)
    for k in range(n[0]):
        s += wp.tile_load(a[k], shape=6)
        s[0] = s[1] * s[2]
    wp.tile_store(out, wp.tile_map(wp.sin, s * s))


@wp.func
def norm_of_two(a: f64, b: f64):
    return wp.sqrt(a * a + b * b)


@program(spread(3, 11) + 5.0, out=(9, 11))
@wp.kernel
def reductions(a: D2, out: D2):
    t = wp.tile_load(a, shape=(3, 11))
    wp.tile_store(out[0], wp.tile_reduce(wp.add, t))
    wp.tile_store(out[1], wp.tile_reduce(wp.mul, t[0]))
    wp.tile_store(out[2], wp.tile_reduce(norm_of_two, t))
    wp.tile_store(out[3], wp.tile_min(t) * wp.tile_max(t))
    wp.tile_store(out[4], wp.tile_reduce(wp.max, t))
    wp.tile_store(out[5], wp.tile_reduce(wp.add, t, axis=0))
    wp.tile_store(out[6], wp.tile_reduce(norm_of_two, t, axis=1))
    wp.tile_store(out[7], wp.tile_full(shape=2, value=t[0][wp.tile_argmax(t[0])[0]]))
    wp.tile_store(out[8], wp.tile_reduce(wp.min, t, axis=0))


@program(normal(3), out=(2, 4))
@wp.kernel
def values_spread_over_tiles(a: D1, out: D2):
    x = a[0] * a[1]
    wp.tile_store(out[0], wp.tile_full(shape=4, value=x) * wp.tile_full(shape=4, value=a[2]))
    wp.tile_store(out[1], wp.tile_from_thread(shape=4, value=x * a[2], thread_idx=0))


@program(positive(4), normal(4), normal(4, 2), out=(6, 4, 4))
@wp.kernel
def solves(a: D2, b: D1, c: D2, out: D3):
    t = wp.tile_diag_add(wp.tile_load(a, shape=(4, 4)), wp.tile_load(b, shape=4) * wp.tile_load(b, shape=4))
    l = wp.tile_cholesky(t)
    u = wp.tile_cholesky(t, fill_mode="upper")
    y = wp.tile_load(b, shape=4)
    z = wp.tile_load(c, shape=(4, 2))
    wp.tile_store(out[0, 0], wp.tile_cholesky_solve(l, y))
    wp.tile_store(out[1], wp.tile_cholesky_solve(u, z, fill_mode="upper"))
    wp.tile_store(out[2, 0], wp.tile_upper_solve(u, y))
    wp.tile_store(out[3], wp.tile_upper_solve(wp.tile_transpose(l), wp.tile_lower_solve(l, z)))
    wp.tile_store(out[4], t)
    wp.tile_store(out[5], u)


@program(positive(4), normal(4), normal(4, 2), out=(4, 4, 4))
@wp.kernel
def solves_in_place(a: D2, b: D1, c: D2, out: D3):
    t = wp.tile_load(a, shape=(4, 4), storage="shared")
    wp.tile_cholesky_inplace(t)
    wp.tile_store(out[0], t)
    y = wp.tile_load(b, shape=4, storage="shared")
    wp.tile_lower_solve_inplace(t, y)
    wp.tile_store(out[1, 0], y)
    wp.tile_upper_solve_inplace(wp.tile_transpose(t), y)
    wp.tile_store(out[1, 1], y)
    z = wp.tile_load(c, shape=(4, 2), storage="shared")
    wp.tile_cholesky_solve_inplace(t, z)
    wp.tile_store(out[2], z)
    u = wp.tile_load(a, shape=(4, 4), storage="shared")
    wp.tile_cholesky_inplace(u, fill_mode="upper")
    v = wp.tile_load(c, shape=(2, 4), storage="shared")
    wp.tile_cholesky_solve_inplace(u, wp.tile_transpose(v), "upper")
    wp.tile_store(out[3], v)


@program(normal(5, 6), normal(6, 4), normal(5, 4), normal(2), out=(5, 4))
@wp.kernel
def factors_of_products(a: D2, b: D2, c: D2, factors: D1, out: D2):
    v = wp.tile_load(c, shape=(5, 4))
    alpha, beta = factors[0], factors[1]
    wp.tile_matmul(wp.tile_load(a, shape=(5, 6)), wp.tile_load(b, shape=(6, 4)), v, alpha=alpha, beta=beta)
    wp.tile_store(out, v)


@program(normal(3, 4, 6), normal(8), np.array([3], np.int32), out=(8, 8))
@wp.kernel
def a_tile_that_is_loaded_stored_and_loaded_again(a: D3, b: D1, n: wp.array[int], out: D2):
    t = wp.tile_load(b, shape=8)
    for k in range(n[0]):
        wp.tile_store(out[k], t)
        u = wp.tile_load(out[k], shape=8)
        v = wp.tile_sum(wp.tile_load(a[k], shape=(4, 6)), axis=1)
        t = u * u
        t[k] = t[k] * v[k]
    wp.tile_store(out[n[0]], t)
