"""wp.Texture2D and its relatives as objects: arguments and errors, structs and arrays of textures, copies, tapes."""

import copy
import gc
import itertools
import pickle

import numpy as np
import pytest
import texture_values as expected
import warp as wp
from numpy.testing import assert_allclose, assert_array_equal

pytestmark = pytest.mark.own_launches("a launch with other numbers has no texture")

CLOSEST, LINEAR = wp.TextureFilterMode.CLOSEST, wp.TextureFilterMode.LINEAR
WRAP, CLAMP, MIRROR, BORDER = wp.TextureAddressMode


@wp.struct
class Material:
    color: wp.Texture2D
    scale: float
    shape: wp.Texture3D


@wp.func
def value_at(t: wp.Texture2D, uv: wp.vec2):
    return wp.texture_sample(t, uv, dtype=float) + float(t.width)


@wp.kernel
def sample_one(t: wp.Texture2D, out: wp.array[float]):
    i = wp.tid()
    out[i] = wp.texture_sample(t, float(i) / 7.0, 0.4, dtype=float)


@wp.kernel
def sample_array(ts: wp.array[wp.Texture2D], out: wp.array2d[float]):
    i, j = wp.tid()
    t = ts[i]
    out[i, j] = value_at(t, wp.vec2(float(j) / 7.0, 0.4))


@wp.kernel
def sample_materials(ms: wp.array[Material], out: wp.array2d[float]):
    i, j = wp.tid()
    m = ms[i]
    out[i, j] = m.scale * value_at(m.color, wp.vec2(float(j) / 7.0, 0.4)) + float(m.shape.depth)


@wp.kernel
def sample_material(m: Material, out: wp.array[float]):
    i = wp.tid()
    out[i] = m.scale * wp.texture_sample(m.color, float(i) / 7.0, 0.4, dtype=float) + float(m.shape.depth)


@wp.kernel
def extents(a: wp.Texture1D, b: wp.Texture2D, c: wp.Texture3D, out: wp.array[int]):
    out[0] = a.width
    out[1] = b.width
    out[2] = b.height
    out[3] = c.width
    out[4] = c.height
    out[5] = c.depth


def grid(seed=0, shape=(4, 6), dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def row(data, count=8, **settings):
    at = np.stack([np.arange(count, dtype=np.float32) / np.float32(7), np.full(count, 0.4, np.float32)], axis=1)
    return expected.sample(data, at, **settings)[:, 0]


def run(kernel, first, shape=8):
    out = wp.zeros(shape, dtype=float)
    wp.launch(kernel, dim=shape, inputs=[first, out])
    return out.numpy()


# ---- in kernels ----


def test_extents_are_ints_in_kernels():
    textures = [wp.Texture1D(grid(shape=(7,))), wp.Texture2D(grid()), wp.Texture3D(grid(shape=(2, 3, 4)))]
    out = wp.zeros(6, dtype=int)
    wp.launch(extents, dim=1, inputs=[*textures, out])
    assert_array_equal(out.numpy(), [7, 6, 4, 4, 3, 2])
    wp.launch(extents, dim=1, inputs=[None, None, None, out])
    assert_array_equal(out.numpy(), [0] * 6)


@pytest.mark.parametrize("mode", ["release", "debug"])
def test_none_has_the_width_zero_and_samples_of_zero(mode, monkeypatch):
    monkeypatch.setattr(wp.config, "mode", mode)
    assert_array_equal(run(sample_one, None), np.zeros(8))
    material = Material()
    material.scale = 2.0
    assert_array_equal(run(sample_material, material), np.zeros(8))
    assert_array_equal(run(sample_array, wp.zeros(3, dtype=wp.Texture2D), (3, 8)), np.zeros((3, 8)))
    texture = wp.Texture2D(grid())
    assert_array_equal(run(sample_array, wp.array([texture, None], dtype=wp.Texture2D), (2, 8))[1], np.zeros(8))


@pytest.mark.parametrize("mode", ["release", "debug"])
def test_arrays_of_textures(mode, monkeypatch):
    """Each of another format, filter and mode: lanes of one group take different ways."""
    monkeypatch.setattr(wp.config, "mode", mode)
    data, textures, settings = [], [], []
    for n, (filter_mode, address) in enumerate(itertools.product((CLOSEST, LINEAR), (WRAP, CLAMP, MIRROR, BORDER))):
        texels = grid(n, (3 + n, 9 - n, (1, 2, 4)[n % 3]))
        if n % 2:
            texels = (texels * 50).astype(np.int8)
        data.append(texels)
        textures.append(wp.Texture2D(texels, filter_mode=filter_mode, address_mode=address))
        settings.append({"linear": filter_mode == LINEAR, "modes": (address,) * 2})
    ts = wp.array(textures, dtype=wp.Texture2D)
    assert ts.dtype is wp.Texture2D and ts.shape == (8,)
    wanted = np.stack([row(d, **s) + d.shape[1] for d, s in zip(data, settings, strict=True)])
    assert_allclose(run(sample_array, ts, (8, 8)), wanted, atol=1e-5)

    @wp.kernel
    def transposed(ts: wp.array[wp.Texture2D], out: wp.array2d[float]):
        j, i = wp.tid()
        out[i, j] = value_at(ts[i], wp.vec2(float(j) / 7.0, 0.4))

    out = wp.zeros((8, 8))
    wp.launch(transposed, dim=(8, 8), inputs=[ts, out])
    assert_allclose(out.numpy(), wanted, atol=1e-5)


def test_structs_and_arrays_of_structs():
    data = [grid(n) for n in range(3)]
    shape = wp.Texture3D(grid(shape=(5, 2, 2)))
    materials = []
    for n, texels in enumerate(data):
        material = Material()
        material.color = wp.Texture2D(texels)
        material.scale = 1.0 + n
        material.shape = shape if n else None
        materials.append(material)
    gc.collect()  # a struct keeps its textures
    for n, material in enumerate(materials):
        assert_allclose(run(sample_material, material), row(data[n]) * (1 + n) + (5 if n else 0), atol=1e-5)
    wanted = np.stack([(row(d) + 6) * (1 + n) + (5 if n else 0) for n, d in enumerate(data)])
    assert_allclose(run(sample_materials, wp.array(materials, dtype=Material), (3, 8)), wanted, atol=1e-5)
    assert materials[1].shape is shape and materials[0].shape.width == 0
    again = copy.deepcopy(materials[1])
    assert again.shape is shape and again.color is materials[1].color
    other = Material(color=materials[2].color, scale=3.0)
    assert other.color is materials[2].color


def test_a_texture_from_an_array_is_the_same_one():
    texture = wp.Texture2D(grid(), address_mode=MIRROR)
    ts = wp.array([texture], dtype=wp.Texture2D)
    found = ts.list()[0] if hasattr(ts, "list") else ts.numpy()
    assert found.id == texture.id and found.address_mode_u == MIRROR and found.width == 6


# ---- the object ----


def test_members():
    texture = wp.Texture3D(grid(shape=(2, 3, 4, 2)).astype(np.float16), address_mode=(WRAP, 3, CLAMP), address_mode_w=2)
    assert (texture.width, texture.height, texture.depth, texture.ndim, texture.num_channels) == (4, 3, 2, 3, 2)
    assert texture.dtype is wp.float16 and texture.filter_mode == LINEAR and texture.normalized_coords is True
    modes = (texture.address_mode_u, texture.address_mode_v, texture.address_mode_w)
    assert modes == (WRAP, BORDER, MIRROR)
    assert (texture.num_mip_levels, texture.is_mipmapped) == (1, False)
    assert isinstance(texture.id, int) and texture.id != 0 and texture.device == wp.get_device()
    assert repr(texture) == f"<Texture3D 4 x 3 x 2, 2 channels of float16 on '{texture.device.alias}'>"
    assert wp.Texture1D(np.zeros(3, np.int32)).filter_mode == CLOSEST
    if texture.device.is_cpu:
        for member in ("cuda_texture", "cuda_surface"):
            with pytest.raises(RuntimeError, match=f"Texture3D.{member}: the texture is on 'cpu'"):
                getattr(texture, member)


def test_data_is_copied():
    data = wp.array(grid(), dtype=float)
    texture = wp.Texture2D(data)
    before = run(sample_one, texture)
    data.zero_()
    assert_array_equal(run(sample_one, texture), before)
    assert before.any()


@pytest.mark.parametrize("make", [np.asarray, wp.array], ids=["numpy", "weft"])
def test_data_of_any_layout(make):
    data = grid(shape=(6, 4))
    transposed = make(data).T if make is np.asarray else wp.array(data).transpose()
    assert_allclose(run(sample_one, wp.Texture2D(transposed)), row(data.T), atol=1e-5)
    swapped = wp.Texture2D(data.astype(">f4"))
    assert_allclose(run(sample_one, swapped), row(data), atol=1e-5)


def test_data_with_other_names_of_its_type():
    """Clients give dtype and num_channels beside data."""
    texture = wp.Texture2D(grid(shape=(4, 6, 4)), width=6, height=4, num_channels=4, dtype=wp.float32)
    assert texture.num_channels == 4


def test_copies():
    data = grid(shape=(4, 6, 2))
    texture = wp.Texture2D(width=6, height=4, num_channels=2, dtype=wp.float32)
    assert texture.width == 6
    for source in (data, wp.array(data), wp.Texture2D(data)):
        texture.copy_from(np.zeros_like(data))
        texture.copy_from(source)
        assert_allclose(run(sample_one, texture), row(data), atol=1e-5)
    to_array, to_numpy = wp.zeros(data.shape), np.zeros_like(data)
    to_texture = wp.Texture2D(np.zeros_like(data))
    for target in (to_array, to_numpy, to_texture):
        texture.copy_to(target)
    assert_array_equal(to_array.numpy(), data)
    assert_array_equal(to_numpy, data)
    assert_allclose(run(sample_one, to_texture), row(data), atol=1e-5)
    one = wp.Texture1D(np.arange(5, dtype=np.uint8))
    for shape in ((5,), (5, 1)):
        target = np.zeros(shape, np.uint8)
        one.copy_to(target)
        assert_array_equal(target.reshape(-1), np.arange(5))


def test_pickled_textures():
    data = grid()
    texture = wp.Texture2D(data, address_mode=(WRAP, MIRROR), filter_mode=CLOSEST)
    again = pickle.loads(pickle.dumps(texture))
    assert again.id != texture.id and again.address_mode_v == MIRROR and again.filter_mode == CLOSEST
    assert_array_equal(run(sample_one, again), run(sample_one, texture))
    assert pickle.loads(pickle.dumps(Material(scale=2.0))).color.width == 0


MISTAKES = {
    "three channels": (lambda: wp.Texture2D(grid(shape=(4, 6, 3))), ValueError, "1, 2 or 4 channels, not 3"),
    "float64": (lambda: wp.Texture2D(grid(dtype=np.float64)), ValueError, "texels are float64, expected uint8"),
    "a list": (lambda: wp.Texture2D([[1.0]]), TypeError, "data is list, expected an array"),
    "vectors": (lambda: wp.Texture2D(wp.zeros((2, 2), dtype=wp.vec4)), TypeError, "data is an array of vec4f"),
    "dimensions": (lambda: wp.Texture2D(grid(shape=(4,))), ValueError, r"the shape \(4,\), expected \(height, width\)"),
    "nothing": (lambda: wp.Texture2D(grid(shape=(0, 4))), ValueError, "expected no extent of 0"),
    "no sizes": (lambda: wp.Texture2D(width=4, num_channels=1, dtype=wp.uint8), ValueError, "height is 0"),
    "no type": (lambda: wp.Texture1D(width=4, num_channels=1), ValueError, "dtype is missing"),
    "no channels": (lambda: wp.Texture1D(width=4, dtype=float), ValueError, "not 0"),
    "other size": (lambda: wp.Texture1D(grid(shape=(4,)), width=5), ValueError, "width is 5, and that of data 4"),
    "linear integers": (
        lambda: wp.Texture1D(np.zeros(3, np.int32), filter_mode=LINEAR),
        ValueError,
        "texels of int32 are not interpolated",
    ),
    "mode": (lambda: wp.Texture1D(grid(shape=(4,)), address_mode=4), ValueError, "address_mode is 4, expected one of"),
    "modes": (lambda: wp.Texture2D(grid(), address_mode=(0, 1, 2)), ValueError, "has 3 modes"),
    "filter": (lambda: wp.Texture2D(grid(), filter_mode="linear"), ValueError, "filter_mode is 'linear'"),
    "levels": (lambda: wp.Texture2D(grid(), num_mip_levels=4), ValueError, r"expected 0 \(all\) to 3"),
    "levels of nothing": (
        lambda: wp.Texture1D(width=4, num_channels=1, dtype=float, num_mip_levels=2),
        ValueError,
        "levels are made from data",
    ),
    "dims": (lambda: wp.Texture(4, grid()), ValueError, "ndim is 4"),
    "shape of a copy": (
        lambda: wp.Texture2D(grid()).copy_from(grid(shape=(6, 4))),
        ValueError,
        r"src has the shape \(6, 4\) of float32, expected \(4, 6\) of float32",
    ),
    "type of a copy": (
        lambda: wp.Texture2D(grid()).copy_to(np.zeros((4, 6), np.float64)),
        ValueError,
        r"dst has the shape \(4, 6\) of float64",
    ),
    "copy of levels": (
        lambda: wp.Texture2D(grid(), num_mip_levels=0).copy_from(grid()),
        RuntimeError,
        "the texture has 3 levels",
    ),
    "copy of a list": (lambda: wp.Texture2D(grid()).copy_from([1.0]), TypeError, "src is list"),
    "another class": (
        lambda: run(sample_one, wp.Texture1D(grid(shape=(4,)))),
        RuntimeError,
        "argument 1 't' of kernel 'sample_one' is .*expected Texture2D",
    ),
    "a number": (lambda: run(sample_one, 5), RuntimeError, "expected Texture2D"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake):
    act, error, text = MISTAKES[mistake]
    with pytest.raises(error, match=text):
        act()


@pytest.mark.parametrize("dtype", [wp.vec3, wp.float64, int, wp.vec2d])
def test_samples_of_other_types_are_errors(dtype):
    @wp.kernel(module="unique")
    def sampler(t: wp.Texture2D, out: wp.array[float]):
        value = wp.texture_sample(t, wp.vec2(0.5, 0.5), dtype=dtype)
        out[0] = float(value[0])

    with pytest.raises(RuntimeError, match="samples of textures are float32, vec2f or vec4f, and not"):
        wp.launch(sampler, dim=1, inputs=[wp.Texture2D(grid()), wp.zeros(1)])


def test_samples_need_a_type():
    @wp.kernel
    def sampler(t: wp.Texture2D, out: wp.array[float]):
        out[0] = wp.texture_sample(t, wp.vec2(0.5, 0.5))

    with pytest.raises(RuntimeError, match="dtype"):
        wp.launch(sampler, dim=1, inputs=[wp.Texture2D(grid()), wp.zeros(1)])


def test_a_texture_that_is_gone(monkeypatch):
    """In debug mode it is an error; otherwise its samples are zeros."""
    ts = wp.zeros(1, dtype=wp.Texture2D)
    texture = wp.Texture2D(grid())
    ts.fill_(texture)
    assert run(sample_array, ts, (1, 8)).any()
    del texture
    gc.collect()
    assert_array_equal(run(sample_array, ts, (1, 8)), np.full((1, 8), 6.0))
    monkeypatch.setattr(wp.config, "mode", "debug")
    with pytest.raises(ValueError, match="names no texture"):
        run(sample_array, ts, (1, 8))
        wp.synchronize()


def test_textures_of_opengl():
    with pytest.raises(RuntimeError, match="OpenGL"):
        wp.GLTextureResource(1, 2)


# ---- tapes ----


@wp.kernel
def sample_places(t: wp.Texture1D, at: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = wp.texture_sample(t, at[i], dtype=float)


@pytest.mark.parametrize("held", ["parameter", "array"])
def test_a_tape_goes_back_through_the_texels_that_a_launch_has_seen(held):
    @wp.kernel
    def from_array(ts: wp.array[wp.Texture1D], at: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        out[i] = wp.texture_sample(ts[0], at[i], dtype=float)

    texture = wp.Texture1D(np.array([1, 2, 4, 8], np.float32), normalized_coords=False)
    kernel, given = (
        (sample_places, texture) if held == "parameter" else (from_array, wp.array([texture], dtype=wp.Texture1D))
    )
    at = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    out = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=3, inputs=[given, at, out])
        texture.copy_from(np.array([0, 10, 0, 10], np.float32))
        wp.launch(kernel, dim=3, inputs=[given, at, out])
    tape.backward(grads={out: wp.full(3, 1.0, dtype=float)})
    # The second launch overwrites what the first has written.
    assert_array_equal(at.grad.numpy(), [10, -10, 10])
    at.grad.zero_()
    out = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=3, inputs=[given, at, out])
    texture.copy_from(np.array([1, 2, 4, 8], np.float32))
    tape.backward(grads={out: wp.full(3, 1.0, dtype=float)})
    assert_array_equal(at.grad.numpy(), [10, -10, 10])


def test_a_graph_samples_the_texels_of_each_launch():
    texture = wp.Texture1D(np.array([1, 2, 4, 8], np.float32), normalized_coords=False)
    at = wp.array([1.0, 2.0, 3.0], dtype=float)
    out = wp.zeros(3, dtype=float)
    wp.launch(sample_places, dim=3, inputs=[texture, at, out])
    with wp.ScopedCapture() as capture:
        wp.launch(sample_places, dim=3, inputs=[texture, at, out])
    texture.copy_from(np.array([0, 10, 20, 30], np.float32))
    wp.capture_launch(capture.graph)
    assert_array_equal(out.numpy(), [5, 15, 25])
