"""Volumes in kernels: values against NumPy, derivatives against differences, index grids, maps, ids."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.own_launches("a launch with other numbers has no volume, or stores into it again")

LINEAR, CLOSEST = wp.Volume.LINEAR, wp.Volume.CLOSEST


def lattice(values, background, at):
    """Values of a dense array at integer coordinates, the background outside."""
    at = np.asarray(at)
    inside = np.all((at >= 0) & (at < values.shape[:3]), axis=-1)
    clipped = np.clip(at, 0, np.array(values.shape[:3]) - 1)
    found = values[clipped[..., 0], clipped[..., 1], clipped[..., 2]]
    return np.where(inside.reshape(inside.shape + (1,) * (found.ndim - inside.ndim)), found, background)


def trilinear(values, background, places):
    """The interpolation as it is defined, in float64, with its derivatives by i, j, k."""
    low = np.floor(places).astype(np.int64)
    t = places - low
    value, slopes = 0.0, [0.0, 0.0, 0.0]
    for corner in np.ndindex(2, 2, 2):
        c = np.array(corner)
        v = lattice(values, background, low + c).astype(np.float64)
        factors = np.where(c, t, 1 - t)
        shape = (-1,) + (1,) * (v.ndim - 1)
        value = value + v * factors.prod(axis=1).reshape(shape)
        for axis in range(3):
            others = np.delete(factors, axis, axis=1).prod(axis=1)
            slopes[axis] = slopes[axis] + v * (others * (1 if c[axis] else -1)).reshape(shape)
    return value, np.stack(slopes, axis=-1)


def places(count, reach=24, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-4, reach, (count, 3))


def dense(shape=(20, 11, 17), seed=1, **kinds):
    return np.random.default_rng(seed).standard_normal(shape).astype(**kinds or {"dtype": np.float32})


@wp.kernel
def sample_f(volume: wp.uint64, at: wp.array(dtype=wp.vec3), mode: int, out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = wp.volume_sample_f(volume, at[i], mode)


def run_sample_f(volume, at, mode):
    out = wp.zeros(len(at), dtype=float)
    wp.launch(sample_f, dim=len(at), inputs=[volume.id, wp.array(at, dtype=wp.vec3), mode], outputs=[out])
    return out.numpy()


@pytest.mark.seed("S-VOL-006", "S-VOL-008", "P-84")
def test_linear_samples_are_the_trilinear_interpolation():
    values = dense()
    volume = wp.Volume.load_from_numpy(values, bg_value=-1.0)
    at = places(5000).astype(np.float32)
    expected, _ = trilinear(values, -1.0, at.astype(np.float64))
    np.testing.assert_allclose(run_sample_f(volume, at, LINEAR), expected, rtol=1e-5, atol=2e-6)


@pytest.mark.seed("S-VOL-008")
def test_closest_samples_are_those_of_the_nearest_voxel():
    values = dense()
    volume = wp.Volume.load_from_numpy(values, bg_value=-1.0)
    ties = np.float32([[0.5, 1.5, 2.5], [-0.5, 0, 0], [0.49999997, 0, 0]])
    at = np.concatenate([places(2000).astype(np.float32), ties])
    nearest = np.where(at < 0, np.ceil(at - 0.5), np.floor(at + 0.5)).astype(np.int64)
    nearest[-1] = 0  # adding a half would round up here
    np.testing.assert_array_equal(run_sample_f(volume, at, CLOSEST), lattice(values, np.float32(-1), nearest))


def test_another_mode_gives_zero_and_places_far_away_the_background():
    volume = wp.Volume.load_from_numpy(dense(), bg_value=-1.0)
    at = np.float32([[1, 2, 3], [1e20, 0, 0], [2.0**31, -1e30, 3], [-(2.0**31), 0, 0]])
    assert np.all(run_sample_f(volume, at, 7) == 0)
    assert list(run_sample_f(volume, at, LINEAR)[1:]) == [-1, -1, -1]
    assert list(run_sample_f(volume, at, CLOSEST)[1:]) == [-1, -1, -1]
    assert np.isnan(run_sample_f(volume, np.float32([[np.nan, 1, 1]]), LINEAR)[0])


TYPES = {
    "float32": (wp.float32, wp.vec3, 0.25),
    "float64": (wp.float64, wp.vec3d, 0.25),
    "vec3f": (wp.vec3f, wp.mat33, (1, 2, 3)),
    "vec3d": (wp.vec3d, wp.mat33d, (1, 2, 3)),
    "vec4f": (wp.vec4f, wp.types.matrix((4, 3), wp.float32), (1, 2, 3, 4)),
    "vec4d": (wp.vec4d, wp.types.matrix((4, 3), wp.float64), (1, 2, 3, 4)),
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.seed("S-VOL-012")
def test_values_of_each_smooth_type_and_their_gradients(name):
    dtype, slope_type, background = TYPES[name]
    number = np.float64 if "64" in name or name.endswith("d") else np.float32
    components = np.size(background) if np.ndim(background) else None
    values = dense((12, 11, 10) if components is None else (12, 11, 10, components), dtype=number)
    volume = wp.Volume.load_from_numpy(values, bg_value=dtype(background) if components is None else dtype(*background))
    assert volume.dtype is dtype

    @wp.kernel
    def sample(
        id: wp.uint64,
        at: wp.array(dtype=wp.vec3d),
        value: wp.array(dtype=dtype),
        slope: wp.array(dtype=slope_type),
        alone: wp.array(dtype=dtype),
        voxel: wp.array(dtype=dtype),
    ):
        i = wp.tid()
        g = slope_type()
        value[i] = wp.volume_sample_grad(id, at[i], wp.Volume.LINEAR, g, dtype=dtype)
        slope[i] = g
        alone[i] = wp.volume_sample(id, at[i], wp.Volume.LINEAR, dtype=dtype)
        voxel[i] = wp.volume_lookup(id, i % 14 - 1, 3, 4, dtype=dtype)

    at = places(1000, 14)
    n = len(at)
    out = [wp.zeros(n, dtype=dtype), wp.zeros(n, dtype=slope_type), wp.zeros(n, dtype=dtype), wp.zeros(n, dtype=dtype)]
    wp.launch(sample, dim=n, inputs=[volume.id, wp.array(at, dtype=wp.vec3d)], outputs=out)
    expected, slopes = trilinear(values, np.array(background, dtype=number), at)
    tolerance = {"rtol": 1e-12, "atol": 1e-12} if number == np.float64 else {"rtol": 1e-5, "atol": 5e-6}
    np.testing.assert_allclose(out[0].numpy(), expected, **tolerance)
    np.testing.assert_allclose(out[1].numpy(), slopes, **tolerance)
    np.testing.assert_array_equal(out[0].numpy(), out[2].numpy())
    i = np.arange(n) % 14 - 1
    voxels = np.stack([i, np.full(n, 3), np.full(n, 4)], axis=-1)
    np.testing.assert_array_equal(out[3].numpy(), lattice(values, np.array(background, dtype=number), voxels))


@pytest.mark.seed("S-VOL-012")
def test_the_functions_for_one_type():
    scalars, vectors = dense((9, 9, 9)), dense((9, 9, 9, 3))
    whole = np.arange(9**3, dtype=np.int32).reshape(9, 9, 9)
    f = wp.Volume.load_from_numpy(scalars, bg_value=-1.0)
    v = wp.Volume.load_from_numpy(vectors, bg_value=(0, 0, 1))
    i = wp.Volume.load_from_numpy(whole, bg_value=-5)
    assert (f.dtype, v.dtype, i.dtype) == (wp.float32, wp.vec3f, wp.int32)

    @wp.kernel
    def read(
        f: wp.uint64,
        v: wp.uint64,
        i: wp.uint64,
        floats: wp.array(dtype=float),
        vecs: wp.array(dtype=wp.vec3),
        ints: wp.array(dtype=int),
    ):
        at = wp.vec3(1.25, 2.5, 3.75)
        g = wp.vec3()
        floats[0] = wp.volume_lookup_f(f, 1, 2, 3)
        floats[1] = wp.volume_lookup_f(f, -1, 2, 3)
        floats[2] = wp.volume_sample_grad_f(f, at, wp.Volume.LINEAR, g)
        vecs[0] = wp.volume_lookup_v(v, 1, 2, 3)
        vecs[1] = wp.volume_lookup_v(v, 1, 2, 300)
        vecs[2] = wp.volume_sample_v(v, at, wp.Volume.LINEAR)
        vecs[3] = g
        ints[0] = wp.volume_lookup_i(i, 1, 2, 3)
        ints[1] = wp.volume_lookup_i(i, 1, 2, -3)
        ints[2] = wp.volume_sample_i(i, at)
        ints[3] = wp.volume_sample(i, at, wp.Volume.LINEAR, dtype=int)
        # Of another type there is nothing.
        floats[3] = wp.volume_sample_f(i, at, wp.Volume.LINEAR)

    out = wp.zeros(4, dtype=float), wp.zeros(4, dtype=wp.vec3), wp.zeros(4, dtype=int)
    wp.launch(read, dim=1, inputs=[f.id, v.id, i.id], outputs=list(out))
    at = np.array([[1.25, 2.5, 3.75]])
    value, slope = trilinear(scalars, -1.0, at)
    np.testing.assert_allclose(out[0].numpy(), [scalars[1, 2, 3], -1, value[0], 0], rtol=1e-5)
    vector, _ = trilinear(vectors, np.array([0, 0, 1.0]), at)
    np.testing.assert_allclose(out[1].numpy(), [vectors[1, 2, 3], [0, 0, 1], vector[0], slope[0]], rtol=1e-5, atol=1e-6)
    assert list(out[2].numpy()) == [whole[1, 2, 3], -5, whole[1, 3, 4], whole[1, 3, 4]]


@pytest.mark.seed("S-VOL-009", "S-VOL-010", "S-VOL-012")
def test_stores_change_voxels_of_tiles_and_no_others():
    @wp.kernel
    def fill(f: wp.uint64, v: wp.uint64, n: wp.uint64, d: wp.uint64):
        i, j, k = wp.tid()
        wp.volume_store_f(f, i - 4, j - 4, k - 4, float(i * 100 + j * 10 + k))
        wp.volume_store_v(v, i - 4, j - 4, k - 4, wp.vec3(float(i), float(j), float(k)))
        wp.volume_store_i(n, i - 4, j - 4, k - 4, i * 100 + j * 10 + k)
        wp.volume_store(d, i - 4, j - 4, k - 4, wp.float64(i * 100 + j * 10 + k))

    @wp.kernel
    def read(
        f: wp.uint64,
        v: wp.uint64,
        n: wp.uint64,
        d: wp.uint64,
        fs: wp.array3d(dtype=float),
        vs: wp.array3d(dtype=wp.vec3),
        ns: wp.array3d(dtype=int),
        ds: wp.array3d(dtype=wp.float64),
    ):
        i, j, k = wp.tid()
        fs[i, j, k] = wp.volume_lookup_f(f, i - 4, j - 4, k - 4)
        vs[i, j, k] = wp.volume_lookup_v(v, i - 4, j - 4, k - 4)
        ns[i, j, k] = wp.volume_lookup_i(n, i - 4, j - 4, k - 4)
        ds[i, j, k] = wp.volume_lookup(d, i - 4, j - 4, k - 4, dtype=wp.float64)

    tiles = wp.array([[0, 0, 0]], dtype=wp.int32)
    backgrounds = (-1.0, wp.vec3(-1.0, -1.0, -1.0), -1, wp.float64(-1.0))
    ids = [wp.Volume.allocate_by_tiles(tiles, 1.0, bg_value=b) for b in backgrounds]
    handles = [v.id for v in ids]
    wp.launch(fill, dim=(20, 20, 20), inputs=handles)
    shape = (20, 20, 20)
    out = [wp.zeros(shape, dtype=t) for t in (float, wp.vec3, int, wp.float64)]
    wp.launch(read, dim=shape, inputs=handles, outputs=out)
    i, j, k = np.meshgrid(*[np.arange(20)] * 3, indexing="ij")
    inside = (i >= 4) & (i < 12) & (j >= 4) & (j < 12) & (k >= 4) & (k < 12)
    number = np.where(inside, i * 100 + j * 10 + k, -1)
    for n in (0, 2, 3):
        np.testing.assert_array_equal(out[n].numpy(), number)
    np.testing.assert_array_equal(out[1].numpy(), np.where(inside[..., None], np.stack([i, j, k], -1), -1))


def test_a_kernel_sees_what_it_has_stored_itself():
    @wp.kernel
    def add(volume: wp.uint64, out: wp.array(dtype=float)):
        i = wp.tid()
        for step in range(3):
            wp.volume_store_f(volume, i, 0, 0, wp.volume_lookup_f(volume, i, 0, 0) + float(step + 1))
        out[i] = wp.volume_lookup_f(volume, i, 0, 0)

    volume = wp.Volume.allocate([0, 0, 0], [63, 0, 0], 1.0, bg_value=0.5)
    out = wp.zeros(64, dtype=float)
    wp.launch(add, dim=64, inputs=[volume.id], outputs=[out])
    assert np.all(out.numpy() == 6.5)


# ---- derivatives ----


@wp.kernel
def sample_d(volume: wp.uint64, at: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    out[i] = wp.volume_sample(volume, at[i], wp.Volume.LINEAR, dtype=wp.float64)


@pytest.mark.seed("S-VOL-008")
def test_gradients_by_the_place_are_those_of_differences():
    values = dense((12, 11, 10), dtype=np.float64)
    volume = wp.Volume.load_from_numpy(values, bg_value=wp.float64(-1.0))
    at = places(300, 14)
    at = at[np.all(np.abs(at - np.round(at)) > 1e-3, axis=1)]  # kinks lie at the voxels
    p = wp.array(at, dtype=wp.vec3d, requires_grad=True)
    out = wp.zeros(len(at), dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(sample_d, dim=len(at), inputs=[volume.id, p], outputs=[out])
    tape.backward(grads={out: wp.ones(len(at), dtype=wp.float64)})

    def run(x):
        y = wp.zeros(len(x), dtype=wp.float64)
        wp.launch(sample_d, dim=len(x), inputs=[volume.id, wp.array(x, dtype=wp.vec3d)], outputs=[y])
        return y.numpy()

    h = 1e-6
    differences = [(run(at + h * step) - run(at - h * step)) / (2 * h) for step in np.eye(3)]
    assert np.abs(p.grad.numpy()).max() > 0.5
    np.testing.assert_allclose(p.grad.numpy(), np.stack(differences, -1), atol=1e-7)


def test_second_derivatives_of_a_gradient():
    """The gradient of a sample is differentiated again: by the place it is linear in each of the other axes."""

    @wp.kernel
    def slope(volume: wp.uint64, at: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)):
        i = wp.tid()
        g = wp.vec3d()
        value = wp.volume_sample_grad(volume, at[i], wp.Volume.LINEAR, g, dtype=wp.float64)
        out[i] = g[0] + wp.float64(2.0) * value

    values = dense((8, 8, 8), dtype=np.float64)
    volume = wp.Volume.load_from_numpy(values, bg_value=wp.float64(0.0))
    at = np.array([[1.3, 2.6, 3.2], [6.9, 6.8, 0.1]])
    p = wp.array(at, dtype=wp.vec3d, requires_grad=True)
    out = wp.zeros(2, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(slope, dim=2, inputs=[volume.id, p], outputs=[out])
    tape.backward(grads={out: wp.ones(2, dtype=wp.float64)})
    h = 1e-6
    for axis in range(3):
        both = [trilinear(values, 0.0, at + sign * h * np.eye(3)[axis]) for sign in (1, -1)]
        expected = [g[:, 0] + 2 * v for v, g in both]
        np.testing.assert_allclose(p.grad.numpy()[:, axis], (expected[0] - expected[1]) / (2 * h), atol=1e-7)


# ---- cubic ----


def catmull_rom(t):
    """The weights of the neighbours at -1, 0, 1, 2, and their derivatives, by the matrix of the textbook."""
    matrix = np.array([[0, -1, 2, -1], [2, 0, -5, 3], [0, 1, 4, -3], [0, 0, -1, 1]]) / 2.0
    powers = np.stack([np.ones_like(t), t, t**2, t**3])
    slopes = np.stack([np.zeros_like(t), np.ones_like(t), 2 * t, 3 * t**2])
    return matrix @ powers, matrix @ slopes


def tricubic(values, background, places):
    """As trilinear()."""
    low = np.floor(places).astype(np.int64)
    weights, slopes = zip(*(catmull_rom(places[:, axis] - low[:, axis]) for axis in range(3)), strict=True)
    value, gradient = 0.0, [0.0, 0.0, 0.0]
    for corner in np.ndindex(4, 4, 4):
        v = lattice(values, background, low + np.array(corner) - 1).astype(np.float64)
        shape = (-1,) + (1,) * (v.ndim - 1)
        factors = [weights[axis][corner[axis]] for axis in range(3)]
        value = value + v * np.prod(factors, axis=0).reshape(shape)
        for axis in range(3):
            turned = [slopes[axis][corner[axis]] if n == axis else factors[n] for n in range(3)]
            gradient[axis] = gradient[axis] + v * np.prod(turned, axis=0).reshape(shape)
    return value, np.stack(gradient, axis=-1)


@pytest.mark.parametrize("name", TYPES)
def test_cubic_samples_of_each_smooth_type_and_their_gradients(name):
    dtype, slope_type, background = TYPES[name]
    number = np.float64 if "64" in name or name.endswith("d") else np.float32
    components = np.size(background) if np.ndim(background) else None
    values = dense((12, 11, 10) if components is None else (12, 11, 10, components), dtype=number)
    volume = wp.Volume.load_from_numpy(values, bg_value=dtype(background) if components is None else dtype(*background))

    @wp.kernel(module="unique")
    def sample(
        id: wp.uint64, at: wp.array(dtype=wp.vec3d), value: wp.array(dtype=dtype), slope: wp.array(dtype=slope_type)
    ):
        i = wp.tid()
        g = slope_type()
        value[i] = wp.volume_sample_grad(id, at[i], wp.Volume.CUBIC, g, dtype=dtype)
        slope[i] = g

    at = places(600, 14)
    at[:50] = np.round(at[:50])  # at the voxels it has their values
    value, slope = wp.zeros(600, dtype=dtype), wp.zeros(600, dtype=slope_type)
    wp.launch(sample, dim=600, inputs=[volume.id, wp.array(at, dtype=wp.vec3d)], outputs=[value, slope])
    outside = np.array(background, dtype=number)
    expected, slopes = tricubic(values, outside, at)
    tolerance = {"rtol": 1e-11, "atol": 1e-11} if number == np.float64 else {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(value.numpy(), expected, **tolerance)
    np.testing.assert_allclose(slope.numpy(), slopes, **tolerance)
    np.testing.assert_allclose(value.numpy()[:50], lattice(values, outside, at[:50].astype(int)), **tolerance)


def gradients_of_samples(kind):
    """Samples of an index grid, weighted and summed: the values beside the grid and the places, the weights, the
    gradients by both, and the samples as a function of both."""
    volume, data, _, at = index_case(wp.float64)
    p = wp.array(at, dtype=wp.vec3d, requires_grad=True)
    d = wp.array(data, dtype=wp.float64, requires_grad=True)
    out = wp.zeros(len(at), dtype=wp.float64, requires_grad=True)
    weights = np.random.default_rng(5).standard_normal(len(at))
    with wp.Tape() as tape:
        wp.launch(sample_index, dim=len(at), inputs=[volume.id, p, d, kind], outputs=[out])
    tape.backward(grads={out: wp.array(weights, dtype=wp.float64)})

    def samples(x, values):
        y = wp.zeros(len(at), dtype=wp.float64)
        inputs = [volume.id, wp.array(x, dtype=wp.vec3d), wp.array(values, dtype=wp.float64), kind]
        wp.launch(sample_index, dim=len(at), inputs=inputs, outputs=[y])
        return y.numpy()

    return data, at, weights, p.grad.numpy(), d.grad.numpy(), samples


def test_gradients_of_cubic_samples_by_the_place_and_by_values_beside_the_grid():
    data, at, weights, by_place, by_value, samples = gradients_of_samples(wp.Volume.CUBIC)
    h = 1e-5  # the derivative is continuous: no place is left out
    differences = [(samples(at + h * step, data) - samples(at - h * step, data)) / (2 * h) for step in np.eye(3)]
    np.testing.assert_allclose(by_place, weights[:, None] * np.stack(differences, -1), atol=2e-4)
    zero = samples(at, np.zeros_like(data))
    for voxel in range(0, len(data), 41):
        unit = np.zeros_like(data)
        unit[voxel] = 1.0
        np.testing.assert_allclose(by_value[voxel], weights @ (samples(at, unit) - zero), atol=1e-10)


# ---- index grids ----


@pytest.mark.seed("S-VOL-011")
def test_index_grids_number_their_voxels():
    @wp.kernel
    def look(volume: wp.uint64, at: wp.array(dtype=wp.vec3i), out: wp.array(dtype=int), count: wp.array(dtype=int)):
        i = wp.tid()
        p = at[i]
        out[i] = wp.volume_lookup_index(volume, p[0], p[1], p[2])
        if i == 0:
            count[0] = wp.volume_voxel_count(volume)

    def numbers(volume, at):
        out, count = wp.zeros(len(at), dtype=int), wp.zeros(1, dtype=int)
        wp.launch(look, dim=len(at), inputs=[volume.id, wp.array(at, dtype=wp.vec3i)], outputs=[out, count])
        assert count.numpy()[0] == volume.get_voxel_count()
        return out.numpy()

    rng = np.random.default_rng(3)
    points = rng.integers(-40, 40, (3000, 3)).astype(np.int32)
    at = rng.integers(-50, 50, (3000, 3)).astype(np.int32)
    made = (
        wp.Volume.allocate_by_voxels(wp.array(points, dtype=wp.int32), 0.5),
        wp.Volume.allocate_by_tiles(wp.array(points, dtype=wp.int32), 0.5, bg_value=None),
        wp.Volume.allocate_by_tiles(wp.array(points, dtype=wp.int32), 0.5, bg_value=1.0),
    )
    for volume in made:
        voxels = volume.get_voxels().numpy()
        np.testing.assert_array_equal(numbers(volume, voxels), np.arange(len(voxels)))
        known = {tuple(v): n for n, v in enumerate(voxels)}
        np.testing.assert_array_equal(numbers(volume, at), [known.get(tuple(v), -1) for v in at])
    assert {tuple(v) for v in made[0].get_voxels().numpy()} == {tuple(v) for v in points}
    assert made[1].get_voxel_count() == 512 * made[1].get_tile_count()


def index_case(dtype, count=400):
    rng = np.random.default_rng(4)
    points = np.unique(rng.integers(0, 10, (count, 3)), axis=0).astype(np.int32)
    volume = wp.Volume.allocate_by_voxels(wp.array(points, dtype=wp.int32), 1.0)
    voxels = volume.get_voxels().numpy()
    data = rng.standard_normal(len(voxels) if dtype is wp.float64 else (len(voxels), 3))
    values = np.full((10, 10, 10) + data.shape[1:], -2.0)
    values[tuple(voxels.T)] = data
    return volume, data, values, rng.uniform(-1, 10, (500, 3))


@wp.kernel
def sample_index(
    volume: wp.uint64,
    at: wp.array(dtype=wp.vec3d),
    data: wp.array(dtype=wp.float64),
    mode: int,
    out: wp.array(dtype=wp.float64),
):
    i = wp.tid()
    out[i] = wp.volume_sample_index(volume, at[i], mode, data, wp.float64(-2.0))


def test_values_beside_an_index_grid():
    volume, data, values, at = index_case(wp.float64)
    n = len(at)
    out = wp.zeros(n, dtype=wp.float64)
    inputs = [volume.id, wp.array(at, dtype=wp.vec3d), wp.array(data, dtype=wp.float64)]
    wp.launch(sample_index, dim=n, inputs=[*inputs, LINEAR], outputs=[out])
    np.testing.assert_allclose(out.numpy(), trilinear(values, -2.0, at)[0], rtol=1e-12, atol=1e-12)
    wp.launch(sample_index, dim=n, inputs=[*inputs, CLOSEST], outputs=[out])
    np.testing.assert_array_equal(out.numpy(), lattice(values, -2.0, np.round(at).astype(int)))
    # An array that is too short has no values for the last voxels.
    wp.launch(sample_index, dim=n, inputs=[*inputs[:2], wp.zeros(0, dtype=wp.float64), LINEAR], outputs=[out])
    np.testing.assert_allclose(out.numpy(), -2.0, rtol=1e-12)


def test_vectors_beside_an_index_grid_and_their_gradient():
    volume, data, values, at = index_case(wp.vec3d)

    @wp.kernel
    def sample(
        id: wp.uint64,
        at: wp.array(dtype=wp.vec3d),
        data: wp.array(dtype=wp.vec3d),
        out: wp.array(dtype=wp.vec3d),
        slope: wp.array(dtype=wp.mat33d),
    ):
        i = wp.tid()
        g = wp.mat33d()
        b = wp.vec3d(wp.float64(-2.0), wp.float64(-2.0), wp.float64(-2.0))
        out[i] = wp.volume_sample_grad_index(id, at[i], wp.Volume.LINEAR, data, b, g)
        slope[i] = g

    n = len(at)
    out, slope = wp.zeros(n, dtype=wp.vec3d), wp.zeros(n, dtype=wp.mat33d)
    inputs = [volume.id, wp.array(at, dtype=wp.vec3d), wp.array(data, dtype=wp.vec3d)]
    wp.launch(sample, dim=n, inputs=inputs, outputs=[out, slope])
    expected, slopes = trilinear(values, np.full(3, -2.0), at)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(slope.numpy(), slopes, rtol=1e-11, atol=1e-11)


def test_gradients_by_the_values_beside_an_index_grid():
    data, at, weights, _, by_value, samples = gradients_of_samples(LINEAR)
    # It is linear in the values: one difference for each is exact.
    zero = samples(at, np.zeros_like(data))
    for voxel in range(0, len(data), 17):
        unit = np.zeros_like(data)
        unit[voxel] = 1.0
        np.testing.assert_allclose(by_value[voxel], weights @ (samples(at, unit) - zero), rtol=1e-9, atol=1e-12)
    assert np.count_nonzero(by_value) > 100


# ---- maps ----


@pytest.mark.seed("S-VOL-007", "S-VOL-009", "S-VOL-012")
@pytest.mark.parametrize("vec", [wp.vec3, wp.vec3d])
def test_maps_between_index_space_and_the_world(vec):
    @wp.kernel
    def convert(id: wp.uint64, x: wp.array(dtype=vec), out: wp.array2d(dtype=vec)):
        i = wp.tid()
        out[i, 0] = wp.volume_index_to_world(id, x[i])
        out[i, 1] = wp.volume_world_to_index(id, x[i])
        out[i, 2] = wp.volume_index_to_world_dir(id, x[i])
        out[i, 3] = wp.volume_world_to_index_dir(id, x[i])

    matrix = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 10.0]])
    move = np.array([1, 2, 3.0])
    tiles = wp.array([[0, 0, 0]], dtype=wp.int32)
    volume = wp.Volume.allocate_by_tiles(tiles, transform=matrix, translation=move)
    x = np.random.default_rng(6).uniform(-3, 3, (20, 3))
    out = wp.zeros((20, 4), dtype=vec)
    wp.launch(convert, dim=20, inputs=[volume.id, wp.array(x, dtype=vec)], outputs=[out])
    expected = [
        x @ matrix.T + move,
        np.linalg.solve(matrix, (x - move).T).T,
        x @ matrix.T,
        np.linalg.solve(matrix, x.T).T,
    ]
    tolerance = 1e-11 if vec is wp.vec3d else 3e-4
    np.testing.assert_allclose(out.numpy(), np.stack(expected, axis=1), rtol=tolerance, atol=tolerance)


def test_the_gradient_of_a_sample_at_a_place_in_the_world():
    @wp.kernel
    def distance(id: wp.uint64, x: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)):
        i = wp.tid()
        out[i] = wp.volume_sample(id, wp.volume_world_to_index(id, x[i]), wp.Volume.LINEAR, dtype=wp.float64)

    # A linear function of the world is reproduced, and so is its gradient.
    i, j, k = np.meshgrid(*[np.arange(16)] * 3, indexing="ij")
    values = 2.0 * (0.5 * i + 1) - 3.0 * (0.5 * j + 2) + 0.5 * (0.5 * k + 3)
    volume = wp.Volume.load_from_numpy(values, min_world=(1, 2, 3), voxel_size=0.5, bg_value=wp.float64(0.0))
    x = wp.array([[4.3, 5.2, 7.7], [3.0, 4.0, 5.0]], dtype=wp.vec3d, requires_grad=True)
    out = wp.zeros(2, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(distance, dim=2, inputs=[volume.id, x], outputs=[out])
    np.testing.assert_allclose(out.numpy(), x.numpy() @ [2.0, -3.0, 0.5], rtol=1e-12)
    tape.backward(grads={out: wp.ones(2, dtype=wp.float64)})
    np.testing.assert_allclose(x.grad.numpy(), [[2.0, -3.0, 0.5]] * 2, rtol=1e-10)


# ---- ids ----


@pytest.mark.seed("S-VOL-006")
def test_the_id_of_a_volume_that_is_gone_finds_nothing():
    volume = wp.Volume.load_from_numpy(np.ones((8, 8, 8), np.float32), bg_value=-1.0)
    at = np.float32([[1, 2, 3]])
    gone = volume.id
    assert run_sample_f(volume, at, LINEAR)[0] == 1
    del volume
    another = wp.Volume.load_from_numpy(np.full((8, 8, 8), 2, np.float32))
    out = wp.zeros(1, dtype=float)
    for id in (gone, 0, 12345, another.id ^ (1 << 40)):
        wp.launch(sample_f, dim=1, inputs=[wp.uint64(id), wp.array(at, dtype=wp.vec3), LINEAR], outputs=[out])
        assert out.numpy()[0] == 0
    assert run_sample_f(another, at, LINEAR)[0] == 2


def test_lanes_may_have_different_volumes():
    @wp.kernel
    def sample(ids: wp.array(dtype=wp.uint64), out: wp.array(dtype=float)):
        i = wp.tid()
        out[i] = wp.volume_sample_f(ids[i], wp.vec3(1.5, 1.5, 1.5), wp.Volume.LINEAR)

    volumes = [wp.Volume.load_from_numpy(np.full((8, 8, 8), n, np.float32)) for n in range(5)]
    ids = wp.array([volumes[n % 5].id for n in range(100)], dtype=wp.uint64)
    out = wp.zeros(100, dtype=float)
    wp.launch(sample, dim=100, inputs=[ids], outputs=[out])
    np.testing.assert_array_equal(out.numpy(), np.arange(100) % 5)


def test_types_that_volumes_do_not_have_are_refused():
    @wp.kernel
    def wrong(id: wp.uint64, out: wp.array(dtype=wp.vec2)):
        out[0] = wp.volume_lookup(id, 0, 0, 0, dtype=wp.vec2)

    with pytest.raises(wp.CompileError, match="volumes have no values of type vec2f"):
        wp.launch(wrong, dim=1, inputs=[wp.uint64(0), wp.zeros(1, dtype=wp.vec2)])

    @wp.kernel
    def wrong_slope(id: wp.uint64, out: wp.array(dtype=float)):
        g = wp.vec3d()
        out[0] = wp.volume_sample_grad(id, wp.vec3(), wp.Volume.LINEAR, g, dtype=float)

    with pytest.raises(wp.CompileError, match="argument 'grad' is vec3d, expected vec3f"):
        wp.launch(wrong_slope, dim=1, inputs=[wp.uint64(0), wp.zeros(1, dtype=float)])
