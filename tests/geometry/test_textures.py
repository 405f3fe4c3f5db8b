"""Textures in kernels: values against NumPy, levels, derivatives against differences."""

import itertools

import numpy as np
import pytest
import texture_values as expected
import warp as wp
from numpy.testing import assert_allclose, assert_array_equal

pytestmark = pytest.mark.own_launches("a launch with other numbers has no texture")

CLOSEST, LINEAR = wp.TextureFilterMode.CLOSEST, wp.TextureFilterMode.LINEAR
WRAP, CLAMP, MIRROR, BORDER = wp.TextureAddressMode
MODES = list(wp.TextureAddressMode)
CLASSES = {1: wp.Texture1D, 2: wp.Texture2D, 3: wp.Texture3D}
FORMATS = ["uint8", "uint16", "uint32", "int8", "int16", "int32", "float16", "float32"]
RESULTS = {float: 1, wp.vec2: 2, wp.vec4: 4}
SHAPES = {1: (7,), 2: (5, 6), 3: (4, 5, 3)}


def texels(dims, channels=1, dtype="float32", seed=0):
    """Random texels, (height, width, channels) and the like; the least integer is among them."""
    rng = np.random.default_rng(seed)
    shape = (*SHAPES[dims], channels)
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    data = rng.integers(info.min, info.max, shape, dtype=np.int64, endpoint=True).astype(dtype)
    data.reshape(-1)[0] = info.min
    return data


def places(dims, count=200, seed=1, normalized=True, reach=2.5):
    """Random places, many outside, and none so near a texel's edge that rounding decides."""
    rng = np.random.default_rng(seed)
    extents = np.array(SHAPES[dims][::-1])
    cells = rng.integers(-np.ceil(extents * reach), np.ceil(extents * (reach + 1)), (count, dims))
    unscaled = cells + rng.uniform(0.05, 0.95, (count, dims))
    return (unscaled / extents if normalized else unscaled).astype(np.float32)


def make_sampler(dims, result):
    """A kernel that samples at rows of `at`."""
    kind = CLASSES[dims]
    if dims == 1:

        @wp.kernel(module="unique")
        def sampler(t: kind, at: wp.array2d[float], out: wp.array[result]):
            i = wp.tid()
            out[i] = wp.texture_sample(t, at[i, 0], dtype=result)

    elif dims == 2:

        @wp.kernel(module="unique")
        def sampler(t: kind, at: wp.array2d[float], out: wp.array[result]):
            i = wp.tid()
            out[i] = wp.texture_sample(t, wp.vec2(at[i, 0], at[i, 1]), dtype=result)

    else:

        @wp.kernel(module="unique")
        def sampler(t: kind, at: wp.array2d[float], out: wp.array[result]):
            i = wp.tid()
            out[i] = wp.texture_sample(t, wp.vec3(at[i, 0], at[i, 1], at[i, 2]), dtype=result)

    return sampler


SAMPLERS = {}


def samples(texture, at, result=float):
    key = texture.ndim, result
    if key not in SAMPLERS:
        SAMPLERS[key] = make_sampler(*key)
    out = wp.zeros(len(at), dtype=result, device=texture.device)
    given = wp.array(np.asarray(at, np.float32), dtype=float, device=texture.device)
    wp.launch(SAMPLERS[key], dim=len(at), inputs=[texture, given, out], device=texture.device)
    return out.numpy().reshape(len(at), -1)


def tolerance(data):
    """Relative to the largest value."""
    return 4e-6 * max(np.abs(expected.as_floats(data)).max(), 1.0)


# ---- values ----

SEEN_AT = [-0.2, -0.125, -0.05, 0, 0.125, 0.25, 0.5, 0.875, 0.95, 1.0, 1.125, 1.2]
SEEN = {
    WRAP: [6.8, 8, 5.9, 4.5, 1, 1.5, 3, 8, 5.9, 4.5, 1, 1.3],
    CLAMP: [1, 1, 1, 1, 1, 1.5, 3, 8, 8, 8, 8, 8],
    MIRROR: [1.3, 1, 1, 1, 1, 1.5, 3, 8, 8, 8, 8, 6.8],
    BORDER: [0, 0, 0.3, 0.5, 1, 1.5, 3, 8, 5.6, 4, 0, 0],
}


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("normalized", [True, False])
def test_linear_samples_have_the_values_of_the_contract(mode, normalized):
    data = np.array([1, 2, 4, 8], np.float32)
    texture = wp.Texture1D(data, address_mode=mode, normalized_coords=normalized)
    at = np.array(SEEN_AT, np.float32)[:, None] * (1 if normalized else 4)
    assert_allclose(samples(texture, at)[:, 0], SEEN[mode], atol=4e-6)


@pytest.mark.parametrize(("mode", "at_one"), [(WRAP, 1), (CLAMP, 8), (MIRROR, 8), (BORDER, 0)])
def test_closest_samples_have_the_values_of_the_contract(mode, at_one):
    data = np.array([1, 2, 4, 8], np.float32)
    texture = wp.Texture1D(data, filter_mode=CLOSEST, address_mode=int(mode))
    at = np.array([0, 0.2, 0.25, 0.5, 0.95, 1.0])[:, None]
    assert_array_equal(samples(texture, at)[:, 0], [1, 1, 2, 4, 8, at_one])


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("filter_mode", [CLOSEST, LINEAR], ids=lambda mode: mode.name)
@pytest.mark.parametrize("normalized", [True, False])
def test_samples_in_all_modes_are_those_of_numpy(dims, filter_mode, normalized):
    at = places(dims, normalized=normalized)
    data = texels(dims)
    for modes in itertools.product(MODES, repeat=dims):
        texture = CLASSES[dims](data, filter_mode=filter_mode, address_mode=modes, normalized_coords=normalized)
        found = samples(texture, at)
        wanted = expected.sample(data, at, filter_mode == LINEAR, modes, normalized)
        assert_allclose(found, wanted, atol=2e-5, err_msg=str(modes))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("channels", [1, 2, 4])
def test_samples_of_all_formats_are_those_of_numpy(dims, dtype, channels):
    at = places(dims)
    data = texels(dims, channels, dtype)
    modes = (WRAP, BORDER, MIRROR)[:dims]
    for filter_mode in (CLOSEST, LINEAR):
        if filter_mode == LINEAR and dtype in ("int32", "uint32"):
            continue
        texture = CLASSES[dims](data, filter_mode=filter_mode, address_mode=modes)
        for result, count in RESULTS.items():
            wanted = expected.with_channels_of(expected.sample(data, at, filter_mode == LINEAR, modes), count)
            found = samples(texture, at, result)
            if filter_mode == CLOSEST:
                assert_array_equal(found, wanted.astype(np.float32))
            else:
                assert_allclose(found, wanted, atol=4 * tolerance(data))


def test_places_far_outside_have_the_values_of_the_mode():
    data = np.array([1, 2, 4, 8], np.float32)
    at = np.array([[-3e38], [-1e12], [1e12], [3e38]])
    for filter_mode in (CLOSEST, LINEAR):
        options = {"filter_mode": filter_mode, "normalized_coords": False}
        clamped = wp.Texture1D(data, address_mode=CLAMP, **options)
        assert_array_equal(samples(clamped, at)[:, 0], [1, 1, 8, 8])
        assert_array_equal(samples(wp.Texture1D(data, address_mode=BORDER, **options), at)[:, 0], [0, 0, 0, 0])
        for mode in (WRAP, MIRROR):
            assert np.isin(samples(wp.Texture1D(data, address_mode=mode, **options), at), data).all()
    far = np.array([[1e6 + 0.5], [-1e6 + 0.5], [4e6 + 1.5]])
    wrapped = wp.Texture1D(data, address_mode=WRAP, filter_mode=CLOSEST, normalized_coords=False)
    assert_array_equal(samples(wrapped, far)[:, 0], [1, 1, 2])


def test_places_that_are_no_numbers_do_not_crash():
    data = np.array([1, 2, 4, 8], np.float32)
    at = np.array([[np.nan], [np.inf], [-np.inf], [0.125]])
    for filter_mode, mode in itertools.product((CLOSEST, LINEAR), MODES):
        found = samples(wp.Texture1D(data, filter_mode=filter_mode, address_mode=mode), at)
        assert found[3, 0] == 1.0


def test_forms_of_the_call_agree():
    @wp.kernel
    def forms(t: wp.Texture2D, u: wp.Texture3D, at: wp.array[wp.vec3], out: wp.array2d[wp.vec2]):
        i = wp.tid()
        p = at[i]
        out[i, 0] = wp.texture_sample(t, wp.vec2(p[0], p[1]), dtype=wp.vec2)
        out[i, 1] = wp.texture_sample(t, p[0], p[1], wp.vec2)
        out[i, 2] = wp.texture_sample(t, p[0], p[1], dtype=wp.vec2, lod=-1.0)
        out[i, 3] = wp.texture_sample(u, p, wp.vec2)
        out[i, 4] = wp.texture_sample(u, p[0], p[1], p[2], dtype=wp.vec2)

    data = [texels(dims, 2) for dims in (2, 3)]
    at = places(3)
    out = wp.zeros((len(at), 5), dtype=wp.vec2)
    textures = [wp.Texture(2, data[0]), wp.Texture(ndim=3, data=data[1])]
    assert [type(t) for t in textures] == [wp.Texture2D, wp.Texture3D]
    wp.launch(forms, dim=len(at), inputs=[*textures, wp.array(at, dtype=wp.vec3), out])
    found = out.numpy()
    assert_array_equal(found[:, 0], found[:, 1])
    assert_array_equal(found[:, 0], found[:, 2])
    assert_array_equal(found[:, 3], found[:, 4])
    assert_allclose(found[:, 3], expected.sample(data[1], at), atol=2e-5)


# ---- levels ----


@wp.kernel
def sample_lod(t: wp.Texture2D, at: wp.array[wp.vec2], lod: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = wp.texture_sample(t, at[i], dtype=float, lod=lod[i])


@wp.kernel
def sample_lod_3d(t: wp.Texture3D, at: wp.array[wp.vec3], lod: wp.array[float], out: wp.array[wp.vec2]):
    i = wp.tid()
    out[i] = wp.texture_sample(t, at[i], wp.vec2, lod[i])


def lods(count, seed=3):
    return np.random.default_rng(seed).uniform(-1.0, 4.0, count).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16", "float16"])
@pytest.mark.parametrize("levels", [0, 1, 2])
@pytest.mark.parametrize("mip_filter", [CLOSEST, LINEAR], ids=lambda mode: mode.name)
def test_levels_are_means_of_those_before(dtype, levels, mip_filter):
    data = texels(2, 1, dtype)
    at, lod = places(2), lods(200)
    texture = wp.Texture2D(data, num_mip_levels=levels, mip_filter_mode=mip_filter, address_mode=MIRROR)
    assert texture.num_mip_levels == (levels or 3) and texture.is_mipmapped == (levels != 1)
    out = wp.zeros(len(at), dtype=float)
    wp.launch(sample_lod, dim=len(at), inputs=[texture, wp.array(at, dtype=wp.vec2), wp.array(lod), out])
    wanted = expected.sample(data, at, True, (MIRROR,) * 2, lod=lod, mips=levels, mip_linear=mip_filter == LINEAR)
    assert_allclose(out.numpy(), wanted[:, 0], atol=4 * tolerance(data))


def test_levels_of_integers_are_exact():
    data = np.array([[0, 1, 7], [0, 2, 9]], np.uint32)
    texture = wp.Texture2D(data, num_mip_levels=0)
    assert texture.filter_mode == texture.mip_filter_mode == CLOSEST and texture.num_mip_levels == 2
    out = wp.zeros(1)
    wp.launch(
        sample_lod, dim=1, inputs=[texture, wp.array([[0.4, 0.4]], dtype=wp.vec2), wp.array([9.0], dtype=float), out]
    )
    assert out.numpy()[0] == 1.0  # 3 / 4


def test_levels_in_three_dimensions():
    data = texels(3, 2)
    at, lod = places(3), lods(200)
    texture = wp.Texture3D(data, num_mip_levels=0, filter_mode=CLOSEST, mip_filter_mode=LINEAR)
    out = wp.zeros(len(at), dtype=wp.vec2)
    wp.launch(sample_lod_3d, dim=len(at), inputs=[texture, wp.array(at, dtype=wp.vec3), wp.array(lod), out])
    assert_allclose(out.numpy(), expected.sample(data, at, False, lod=lod, mips=0), atol=2e-5)


# ---- derivatives ----


def gradient_by_tape(texture, at, result=float):
    samples(texture, at[:1], result)  # makes the kernel
    given = wp.array(np.asarray(at, np.float32), dtype=float, requires_grad=True, device=texture.device)
    out = wp.zeros(len(at), dtype=result, requires_grad=True, device=texture.device)
    with wp.Tape() as tape:
        wp.launch(SAMPLERS[texture.ndim, result], dim=len(at), inputs=[texture, given, out], device=texture.device)
    seed = np.random.default_rng(5).standard_normal((len(at), RESULTS[result])).astype(np.float32)
    tape.backward(grads={out: wp.array(seed.reshape(out.numpy().shape), dtype=result, device=texture.device)})
    return given.grad.numpy(), seed


def differences(data, at, seed, *settings):
    """In float64: samples are linear between two texels, so that a difference within a cell is exact."""
    step = 2.0**-12
    slopes = []
    for axis in range(at.shape[1]):
        moved = [at.astype(np.float64) + sign * step * np.eye(at.shape[1])[axis] for sign in (1, -1)]
        values = [expected.with_channels_of(expected.sample(data, m, *settings), seed.shape[1]) for m in moved]
        slopes.append(((values[0] - values[1]) / (2 * step) * seed).sum(axis=1))
    return np.stack(slopes, axis=1)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.__name__)
@pytest.mark.parametrize("normalized", [True, False])
def test_gradients_towards_places_are_differences(dims, result, normalized):
    data = texels(dims, RESULTS[result])
    at = places(dims, normalized=normalized)
    extents = np.array(SHAPES[dims][::-1])
    scaled = at * extents if normalized else at
    away = (np.abs((scaled - 0.5) % 1.0 - 0.5) < 0.45).all(axis=1)  # from the centres: slopes change there
    at = at[away]
    for mode in MODES:
        modes = (mode,) * dims
        texture = CLASSES[dims](data, address_mode=mode, normalized_coords=normalized)
        found, seed = gradient_by_tape(texture, at, result)
        wanted = differences(data, at, seed, True, modes, normalized)
        assert_allclose(found, wanted, atol=3e-2 if normalized else 6e-3, rtol=2e-3, err_msg=mode.name)


def test_gradients_at_centres_are_those_of_the_cell_to_the_right():
    data = np.array([1, 2, 4, 8], np.float32)
    at = np.array([[0.125], [0.375], [0.625], [0.875]], np.float32)
    found, seed = gradient_by_tape(wp.Texture1D(data), at)
    assert_array_equal(found[:, 0] / seed[:, 0], np.float32([4, 8, 16, 0]))
    found, seed = gradient_by_tape(wp.Texture1D(data, normalized_coords=False), at * 4)
    assert_array_equal(found[:, 0] / seed[:, 0], np.float32([1, 2, 4, 0]))


def test_gradients_of_closest_samples_and_of_clamped_ones_are_zero():
    data = np.array([1, 2, 4, 8], np.float32)
    at = places(1)
    assert not gradient_by_tape(wp.Texture1D(data, filter_mode=CLOSEST, address_mode=WRAP), at)[0].any()
    outside = np.array([[-0.5], [-0.01], [0.05], [0.9], [1.3]])
    assert not gradient_by_tape(wp.Texture1D(data), outside)[0].any()


def lod_slopes(texture, at, lod):
    given = wp.array(at, dtype=wp.vec2, requires_grad=True, device=texture.device)
    level = wp.array(lod, dtype=float, requires_grad=True, device=texture.device)
    out = wp.zeros(len(at), dtype=float, requires_grad=True, device=texture.device)
    with wp.Tape() as tape:
        wp.launch(sample_lod, dim=len(at), inputs=[texture, given, level, out], device=texture.device)
    tape.backward(grads={out: wp.full(len(at), 1.0, dtype=float, device=texture.device)})
    return given.grad.numpy(), level.grad.numpy()


def test_gradients_towards_levels_are_the_next_level_minus_this_one():
    data = texels(2)
    at, lod = places(2), lods(200)
    lod[:5] = [0.0, 1.0, 2.0, 2.5, -0.5]
    places_slope, found = lod_slopes(wp.Texture2D(data, num_mip_levels=0, address_mode=WRAP), at, lod)
    levels = expected.levels_of(data, 2)
    values = [expected.sample(level, at, True, (WRAP,) * 2)[:, 0] for level in levels]
    first = np.clip(np.floor(lod), 0, 2).astype(int)
    row = np.arange(len(at))
    values = np.stack(values)
    wanted = np.where((lod < 0) | (lod >= 2), 0.0, values[np.minimum(first + 1, 2), row] - values[first, row])
    assert_allclose(found, wanted, atol=2e-5)
    assert places_slope.any()
    for texture in (wp.Texture2D(data), wp.Texture2D(data, num_mip_levels=0, mip_filter_mode=CLOSEST)):
        assert not lod_slopes(texture, at, lod)[1].any()


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_forward_mode_agrees_with_differences(dims):
    data = texels(dims, 2)
    at = places(dims, 60)
    extents = np.array(SHAPES[dims][::-1])
    at = at[(np.abs((at * extents - 0.5) % 1.0 - 0.5) < 0.45).all(axis=1)]
    texture = CLASSES[dims](data, address_mode=MIRROR)
    samples(texture, at, wp.vec2)
    kernel = SAMPLERS[dims, wp.vec2]
    along = np.random.default_rng(8).standard_normal(at.shape).astype(np.float32)
    out = wp.zeros(len(at), dtype=wp.vec2)
    tangent = wp.zeros(len(at), dtype=wp.vec2)
    wp.jvp(
        kernel,
        inputs=[texture, wp.array(at, dtype=float)],
        input_tangents=[None, wp.array(along, dtype=float)],
        dim=len(at),
        outputs=[out],
        output_tangents=[tangent],
    )
    step = 2.0**-12
    pair = [expected.sample(data, at + sign * step * along, True, (MIRROR,) * 3) for sign in (1.0, -1.0)]
    assert_allclose(tangent.numpy(), (pair[0] - pair[1]) / (2 * step), atol=5e-2, rtol=5e-3)
