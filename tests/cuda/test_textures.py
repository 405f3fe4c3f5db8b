"""Textures on CUDA devices: the CPU's values bit for bit, gradients, tapes, graphs, copies between devices, errors."""

import gc
import itertools

import numpy as np
import pytest
import warp as wp
from numpy.testing import assert_array_equal

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("compares devices by itself")]

DEVICE = "cuda:0"
CLOSEST, LINEAR = wp.TextureFilterMode.CLOSEST, wp.TextureFilterMode.LINEAR
CLASSES = {1: wp.Texture1D, 2: wp.Texture2D, 3: wp.Texture3D}
SHAPES = {1: (7,), 2: (5, 6), 3: (4, 5, 3)}


@wp.kernel
def sample_1(ts: wp.array[wp.Texture1D], at: wp.array2d[float], lod: wp.array[float], out: wp.array2d[wp.vec4]):
    i, j = wp.tid()
    out[i, j] = wp.texture_sample(ts[i], at[j, 0], wp.vec4, lod[j])


@wp.kernel
def sample_2(ts: wp.array[wp.Texture2D], at: wp.array2d[float], lod: wp.array[float], out: wp.array2d[wp.vec4]):
    i, j = wp.tid()
    out[i, j] = wp.texture_sample(ts[i], at[j, 0], at[j, 1], wp.vec4, lod[j])


@wp.kernel
def sample_3(ts: wp.array[wp.Texture3D], at: wp.array2d[float], lod: wp.array[float], out: wp.array2d[wp.vec4]):
    i, j = wp.tid()
    out[i, j] = wp.texture_sample(ts[i], at[j, 0], at[j, 1], at[j, 2], wp.vec4, lod[j])


@wp.kernel
def sample_one(t: wp.Texture1D, at: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = wp.texture_sample(t, at[i], dtype=float)


KERNELS = {1: sample_1, 2: sample_2, 3: sample_3}


def texels(dims, channels, dtype, seed):
    rng = np.random.default_rng(seed)
    shape = (*SHAPES[dims], channels)
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=np.int64, endpoint=True).astype(dtype)


def all_kinds(dims, device):
    """Textures of all formats, filters, modes of addresses, and with levels."""
    made = []
    for n, (dtype, filter_mode) in enumerate(
        itertools.product(("float32", "uint8", "int8", "uint16", "int16", "float16", "uint32", "int32"), (0, 1))
    ):
        is_word = dtype.endswith("32") and not dtype.startswith("float")
        options = {"filter_mode": 0 if is_word else filter_mode, "num_mip_levels": n % 3}
        data = texels(dims, (1, 2, 4)[n % 3], dtype, n)
        modes = [(n + axis) % 4 for axis in range(dims)]
        made.append(CLASSES[dims](data, address_mode=modes, device=device, **options))
    return made


def run(dims, device):
    """Samples of all kinds, and the gradients of their sum towards places and levels."""
    rng = np.random.default_rng(9)
    textures = all_kinds(dims, device)
    ts = wp.array(textures, dtype=CLASSES[dims], device=device)
    at = rng.uniform(-1.5, 2.5, (40, dims)).astype(np.float32)
    at = wp.array(at, dtype=float, device=device, requires_grad=True)
    lod = wp.array(rng.uniform(-1.0, 3.0, 40).astype(np.float32), device=device, requires_grad=True)
    out = wp.zeros((len(textures), 40), dtype=wp.vec4, device=device, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(KERNELS[dims], dim=out.shape, inputs=[ts, at, lod, out], device=device)
    values = out.numpy()
    tape.backward(grads={out: wp.full(out.shape, wp.vec4(1.0, 2.0, 3.0, 4.0), dtype=wp.vec4, device=device)})
    return values, at.grad.numpy(), lod.grad.numpy()


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_samples_have_the_bits_of_the_cpu_and_gradients_its_values(dims):
    on_gpu, on_cpu = run(dims, DEVICE), run(dims, "cpu")
    assert_array_equal(on_gpu[0], on_cpu[0])
    for gpu, cpu in zip(on_gpu[1:], on_cpu[1:], strict=True):
        np.testing.assert_allclose(gpu, cpu, rtol=1e-4, atol=1e-3 * np.abs(cpu).max())
        assert cpu.any()


def row(texture, count=4):
    at = wp.array(np.arange(count) + 0.5, dtype=float, device=texture.device)
    out = wp.zeros(count, dtype=float, device=texture.device)
    wp.launch(sample_one, dim=count, inputs=[texture, at, out], device=texture.device)
    return out.numpy()


def test_texels_of_any_device():
    data = np.array([1, 2, 4, 8], np.float32)
    options = {"normalized_coords": False}
    for source in (data, wp.array(data, device="cpu"), wp.array(data, device=DEVICE)):
        assert_array_equal(row(wp.Texture1D(source, device=DEVICE, **options)), data)
        assert_array_equal(row(wp.Texture1D(source, device="cpu", **options)), data)
    assert wp.Texture1D(wp.array(data, device=DEVICE)).device == wp.get_device(DEVICE)
    texture = wp.Texture1D(width=4, num_channels=1, dtype=float, device=DEVICE, **options)
    for source in (data, wp.array(data, device="cpu"), wp.array(data, device=DEVICE), wp.Texture1D(data, device="cpu")):
        texture.copy_from(np.zeros_like(data))
        texture.copy_from(source)
        assert_array_equal(row(texture), data)
    targets = [np.zeros(4, np.float32), wp.zeros(4, device="cpu"), wp.zeros(4, device=DEVICE)]
    for target in targets:
        texture.copy_to(target)
        assert_array_equal(target if isinstance(target, np.ndarray) else target.numpy(), data)


def test_a_texture_of_another_device_is_an_error():
    data = np.array([1, 2, 4, 8], np.float32)
    at, out = wp.zeros(4, device=DEVICE), wp.zeros(4, device=DEVICE)
    with pytest.raises(
        RuntimeError, match=r"argument 1 't' of kernel 'sample_one' is a texture on the CPU, the launch is"
    ):
        wp.launch(sample_one, dim=4, inputs=[wp.Texture1D(data, device="cpu"), at, out], device=DEVICE)
    at, out = wp.zeros(4, device="cpu"), wp.zeros(4, device="cpu")
    with pytest.raises(RuntimeError, match="is a texture on 'cuda:0', the launch is on 'cpu'"):
        wp.launch(sample_one, dim=4, inputs=[wp.Texture1D(data, device=DEVICE), at, out], device="cpu")


@pytest.mark.parametrize("mode", ["release", "debug"])
def test_a_texture_that_is_none_or_gone(mode, monkeypatch):
    monkeypatch.setattr(wp.config, "mode", mode)
    at, out = wp.full(4, 0.5, dtype=float, device=DEVICE), wp.full(4, 7.0, dtype=float, device=DEVICE)
    wp.launch(sample_one, dim=4, inputs=[None, at, out], device=DEVICE)
    assert_array_equal(out.numpy(), np.zeros(4))
    ts = wp.zeros(1, dtype=wp.Texture1D, device=DEVICE)
    texture = wp.Texture1D(np.ones(3, np.float32), device=DEVICE)
    ts.fill_(texture)
    places, lod = wp.zeros((4, 1), device=DEVICE), wp.zeros(4, device=DEVICE)
    values = wp.zeros((1, 4), dtype=wp.vec4, device=DEVICE)
    wp.launch(sample_1, dim=(1, 4), inputs=[ts, places, lod, values], device=DEVICE)
    assert_array_equal(values.numpy()[0, :, 0], np.ones(4))
    del texture
    gc.collect()
    wp.synchronize()
    if mode == "debug":
        with pytest.raises(ValueError, match="names no texture"):
            wp.launch(sample_1, dim=(1, 4), inputs=[ts, places, lod, values], device=DEVICE)
            wp.synchronize()
    else:
        wp.launch(sample_1, dim=(1, 4), inputs=[ts, places, lod, values], device=DEVICE)
        assert_array_equal(values.numpy(), np.zeros((1, 4, 4)))


def test_tapes_keep_texels_and_graphs_do_not():
    texture = wp.Texture1D(np.array([1, 2, 4, 8], np.float32), normalized_coords=False, device=DEVICE)
    at = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True, device=DEVICE)
    out = wp.zeros(3, dtype=float, requires_grad=True, device=DEVICE)
    with wp.Tape() as tape:
        wp.launch(sample_one, dim=3, inputs=[texture, at, out], device=DEVICE)
    texture.copy_from(np.array([0, 10, 20, 30], np.float32))
    tape.backward(grads={out: wp.full(3, 1.0, dtype=float, device=DEVICE)})
    assert_array_equal(at.grad.numpy(), [1, 2, 4])
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.launch(sample_one, dim=3, inputs=[texture, at, out], device=DEVICE)
    texture.copy_from(np.array([0, 1, 2, 3], np.float32))
    wp.capture_launch(capture.graph)
    assert_array_equal(out.numpy(), [0.5, 1.5, 2.5])


def test_members_that_are_missing_say_so():
    texture = wp.Texture1D(np.ones(3, np.float32), device=DEVICE)
    with pytest.raises(NotImplementedError, match="texture objects are not there yet"):
        _ = texture.cuda_texture
    with pytest.raises(NotImplementedError, match="OpenGL"):
        wp.GLTextureResource(1, 2, device=DEVICE)
