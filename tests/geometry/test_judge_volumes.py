"""Samples of volumes beside NanoVDB's own (Debian's headers), of grids that NanoVDB made and of grids that Weft made:
the same bits for the nearest voxel and between voxels, if products are fused with sums in both.

`make test` takes few samples, `make test-long` a million of each type.
"""

import ctypes
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp

sys.path.insert(0, str(Path(__file__).resolve().parent / "judge"))
import spatial_oracle as oracle

pytestmark = pytest.mark.own_launches("a launch with other numbers has no volume, or stores into it again")

COUNTS = [pytest.param(20_000, id="few"), pytest.param(1_000_000, id="million", marks=pytest.mark.large)]
# name in spatial_volumes.cpp: values as kernels read them, background
TYPES = {
    "float": (wp.float32, (0.25,)),
    "double": (wp.float64, (0.25,)),
    "vec3f": (wp.vec3f, (1, 2, 3)),
    "vec3d": (wp.vec3d, (1, 2, 3)),
    "fp8": (wp.float32, (0.25,)),
    "fpn": (wp.float32, (0.25,)),
}
PLACES = {np.float32: wp.vec3, np.float64: wp.vec3d}


def pointer(values):
    assert values.flags.c_contiguous
    return ctypes.c_void_p(values.ctypes.data)


def aligned(count, dtype=np.uint8):
    """NanoVDB reads grids at multiples of 32 bytes."""
    memory = np.zeros(count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + count].view(dtype)


def voxels(rng):
    """Most of a block around the origin, a thin shell, and a few far away; each once."""
    block = np.stack(np.meshgrid(*[np.arange(-9, 22)] * 3, indexing="ij"), -1).reshape(-1, 3)
    block = block[rng.random(len(block)) < 0.8]
    way = rng.standard_normal((30_000, 3))
    shell = np.rint(60 * way / np.linalg.norm(way, axis=1, keepdims=True))
    far = np.array([[5000, -3, 7], [-4096, 4095, -4097], [131, 7, 8], [-70_000, 3, 9]])
    return np.unique(np.concatenate([block, shell, far]).astype(np.int32), axis=0)


def grid_of_nanovdb(name, at, values, background):
    make = getattr(oracle.library("spatial_volumes"), f"make_{name}")
    make.restype = ctypes.c_int64
    values = np.ascontiguousarray(values, dtype=np.float64)
    background = np.array(background, dtype=np.float64)
    room = 0
    for _ in range(2):
        data = aligned(max(room, 1))
        n = ctypes.c_int64(len(at))
        room = make(n, pointer(at), pointer(values), pointer(background), pointer(data), ctypes.c_int64(room))
    return data[:room]


def samples_of_nanovdb(name, data, places, value):
    """(nearest, linear, cubic or None)"""
    sample = getattr(oracle.library("spatial_volumes"), f"sample_{name}")
    is_double = int(places.dtype == np.float64)
    one = np.zeros(len(places), value)
    out = [one, one.copy(), one.copy()]
    aligned_data = aligned(len(data))
    aligned_data[:] = data

    def block(a, b):
        at = (pointer(x[a:b]) for x in (places, *out))
        sample(ctypes.c_int64(b - a), pointer(aligned_data), is_double, *at)

    oracle.in_blocks(len(places), block, block=16_384)
    return out


def samples_of_weft(volume, dtype, places, modes):
    vec = PLACES[places.dtype.type]

    @wp.kernel(module="unique")
    def sample(id: wp.uint64, at: wp.array(dtype=vec), mode: int, out: wp.array(dtype=dtype)):
        i = wp.tid()
        out[i] = wp.volume_sample(id, at[i], mode, dtype=dtype)

    at, results = wp.array(places, dtype=vec), []
    for mode in modes:
        out = wp.zeros(len(places), dtype=dtype)
        wp.launch(sample, dim=len(places), inputs=[volume.id, at, mode, out])
        results.append(out.numpy())
    return results


def places_around(rng, at, count, dtype):
    middle = at[rng.integers(len(at), size=count)]
    places = (middle + rng.uniform(-1.5, 1.5, (count, 3))).astype(dtype)
    places[::7] = rng.uniform(-80, 80, places[::7].shape)
    # Halves are rounded otherwise by the two: up there, away from zero here.
    places[np.abs(places - np.floor(places) - 0.5) < 1e-3] += dtype(0.01)
    return places


def compare(name, volume, data, places, dtype, value):
    nearest, linear, cubic = samples_of_nanovdb(name, data, places, value)
    modes = [wp.Volume.CLOSEST, wp.Volume.LINEAR, wp.Volume.CUBIC]
    ours = samples_of_weft(volume, dtype, places, modes)
    # A value stored in 8 bits is a product and a sum, which are fused there and not here.
    slack = 1e-6 if name in ("fp8", "fpn") else 0.0
    np.testing.assert_allclose(ours[0], nearest, rtol=0, atol=slack)
    np.testing.assert_allclose(ours[1], linear, rtol=0, atol=slack)
    # Cubics are computed in another way there, by the derivatives at eight corners; in float32 with few digits left.
    if cubic.ndim == 1:
        np.testing.assert_allclose(ours[2], cubic, rtol=0, atol=1e-12 if value == np.float64 else 2e-4)
    assert len(np.unique(linear)) > len(places) / 3


def value_type(dtype):
    """As NumPy has it."""
    of = wp.zeros(1, dtype=dtype).numpy()
    return np.dtype((of.dtype, of.shape[1:]))


@pytest.mark.seed("S-VOL-008")
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("real", PLACES)
@pytest.mark.parametrize("name", TYPES)
def test_grids_of_nanovdb_are_sampled_as_nanovdb_samples_them(name, real, count):
    dtype, background = TYPES[name]
    rng = np.random.default_rng(len(name))
    at = voxels(rng)
    data = grid_of_nanovdb(name, at, rng.uniform(-2, 2, (len(at), len(background))), background)
    volume = wp.Volume(wp.array(data, dtype=wp.uint8))
    assert volume.dtype is dtype
    compare(name, volume, data, places_around(rng, at, count, real), dtype, value_type(dtype))


@pytest.mark.seed("S-VOL-008")
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", ["float", "double", "vec3f", "vec3d"])
def test_nanovdb_samples_grids_of_weft(name, count):
    dtype, background = TYPES[name]
    rng = np.random.default_rng(7)
    shape = (23, 40, 17) + ((len(background),) if len(background) > 1 else ())
    volume = wp.Volume.load_from_numpy(rng.uniform(-2, 2, shape), bg_value=dtype(*background))
    at = np.stack(np.meshgrid(*map(np.arange, shape[:3]), indexing="ij"), -1).reshape(-1, 3).astype(np.int32)
    places = places_around(rng, at, count, np.float32)
    compare(name, volume, volume.array().numpy(), places, dtype, value_type(dtype))
