"""Volumes of points in the memory of a CUDA device, which finds their tiles and voxels: the bytes are those that the
host builds."""

import numpy as np
import pytest
import warp as wp

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.own_launches("launches nothing: the runtime's own kernels find the voxels"),
]

DEVICE = "cuda:0"
TYPES = {np.int32: wp.vec3i, np.float32: wp.vec3f, np.float64: wp.vec3d}


def build(points, device, by_voxels, mask=None, **options):
    array = wp.array(points, dtype=TYPES[points.dtype.type], device=device)
    if mask is not None:
        options["point_mask"] = wp.array(mask, dtype=int, device=device)
    make = wp.Volume.allocate_by_voxels if by_voxels else wp.Volume.allocate_by_tiles
    return make(array, 0.25, device=device, **options)


def check(points, by_voxels, **options):
    expected, found = (build(points, device, by_voxels, **options) for device in ("cpu", DEVICE))
    np.testing.assert_array_equal(found.array().numpy(), expected.array().numpy())
    if by_voxels:
        voxels = np.unique(found.get_voxels().numpy(), axis=0)
        assert len(voxels) == found.get_voxel_count()
    return found


def clouds():
    rng = np.random.default_rng(12)
    some = rng.random((3000, 3)) * 60.0 - 30.0
    yield "random", some
    yield "clustered", np.concatenate([rng.normal(c, 0.3, (500, 3)) for c in rng.random((6, 3)) * 900.0 - 450.0])
    yield "duplicates", np.repeat(some[:200], 9, axis=0)
    yield "one", some[:1]
    yield "equal", np.tile(some[:1], (777, 1))
    yield "a few tiles of the root", np.concatenate([some[:50] + at for at in rng.random((5, 3)) * 2e4 - 1e4])
    # More bits than a key has for the tiles of a box around all points.
    yield "far apart", np.concatenate([some[:50] + at for at in rng.random((4, 3)) * 6e7 - 3e7])


@pytest.mark.parametrize("by_voxels", [False, True], ids=["tiles", "voxels"])
@pytest.mark.parametrize("dtype", list(TYPES), ids=["int", "float", "double"])
@pytest.mark.parametrize("name", [name for name, _ in clouds()])
def test_the_bytes_are_those_of_the_host(name, dtype, by_voxels):
    points = dict(clouds())[name]
    check((np.round(points) if dtype is np.int32 else points).astype(dtype), by_voxels)


def test_voxels_at_the_ends_of_the_range():
    ends = [-(2**31), -(2**31) + 1, -4097, -4096, -1, 0, 1, 4095, 4096, 2**31 - 1]
    points = np.array([[i, j, k] for i in ends for j in ends[::3] for k in ends[::4]], np.int32)
    for by_voxels in (False, True):
        check(points, by_voxels)
    found = check(points, True)
    np.testing.assert_array_equal(np.unique(found.get_voxels().numpy(), axis=0), np.unique(points, axis=0))


def test_masked_points_do_not_count():
    rng = np.random.default_rng(13)
    points = (rng.random((900, 3)) * 40.0).astype(np.float32)
    mask = rng.integers(0, 2, 900).astype(np.int32)
    points[mask == 0] = np.nan
    for by_voxels in (False, True):
        check(points, by_voxels, mask=mask)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e12])
def test_the_first_point_without_a_voxel_is_named(bad):
    points = np.zeros((5000, 3), np.float32)
    points[[1234, 4321], [2, 0]] = bad
    for by_voxels in (False, True):
        with pytest.raises(ValueError, match=r"point 1234 is no voxel: it is not finite"):
            build(points, DEVICE, by_voxels)
    points[1234] = 0.0
    with pytest.raises(ValueError, match="point 4321 is no voxel"):
        build(points, DEVICE, True)


def test_no_points():
    for points, mask in ((np.zeros((0, 3), np.int32), None), (np.zeros((4, 3), np.int32), np.zeros(4, np.int32))):
        with pytest.raises(RuntimeError, match="there are no points"):
            build(points, DEVICE, True, mask=mask)


def test_rebuilds():
    rng = np.random.default_rng(14)
    sets = [(rng.random((400, 3)) * size).astype(np.float32) for size in (14.0, 4.0, 10.0)]
    most = {"max_leaf_nodes": 1000, "max_lower_nodes": 8, "max_upper_nodes": 8, "max_active_voxels": 1000}
    volumes = [build(sets[0], device, True, rebuildable=True, **most) for device in ("cpu", DEVICE)]
    for points in sets[1:]:
        for volume, device in zip(volumes, ("cpu", DEVICE), strict=True):
            volume.rebuild(wp.array(points, dtype=wp.vec3, device=device))
        for of in (wp.Volume.get_tiles, wp.Volume.get_voxels):  # behind the nodes, bytes may be former ones
            expected, found = (of(volume).numpy() for volume in volumes)
            np.testing.assert_array_equal(found, expected)


def test_points_in_another_stream():
    points = (np.random.default_rng(15).random((5000, 3)) * 50.0).astype(np.float32)
    with wp.ScopedStream(wp.Stream(DEVICE)):
        array = wp.zeros(5000, dtype=wp.vec3, device=DEVICE)
        wp.copy(array, wp.array(points, dtype=wp.vec3, device=DEVICE))
        found = wp.Volume.allocate_by_voxels(array, 0.25, device=DEVICE).array().numpy()
    np.testing.assert_array_equal(found, build(points, "cpu", True).array().numpy())


def test_a_mask_of_another_length_is_an_error_and_everything_stays_usable():
    points = np.random.default_rng(16).random((2000, 3)).astype(np.float32)
    array = wp.array(points, dtype=wp.vec3, device=DEVICE)
    with pytest.raises(RuntimeError, match="point_mask is an array of int32 with shape"):
        wp.Volume.allocate_by_tiles(array, 0.25, device=DEVICE, point_mask=wp.zeros(3, dtype=int, device=DEVICE))
    check(points, True)
