"""wp.Volume as an object: files, bytes, building, rebuilding, and its properties."""

import io
import os
import struct
import zlib

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.own_launches("a launch with other numbers has no volume, or stores into it again")


def dense(shape=(10, 10, 10), seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def points(rows, dtype=wp.int32):
    return wp.array(np.array(rows), dtype=dtype)


def values_of(volume, shape):
    @wp.kernel
    def read(id: wp.uint64, out: wp.array3d(dtype=float)):
        i, j, k = wp.tid()
        out[i, j, k] = wp.volume_lookup_f(id, i, j, k)

    out = wp.zeros(shape, dtype=float)
    wp.launch(read, dim=shape, inputs=[volume.id], outputs=[out])
    return out.numpy()


# ---- files ----


@pytest.mark.parametrize("codec", ["none", "zip", "blosc"])
@pytest.mark.seed("S-VOL-001", "S-VOL-003", "S-VOL-004", "P-83")
def test_a_file_gives_back_the_volume(tmp_path, codec):
    values = dense()
    volume = wp.Volume.load_from_numpy(values, min_world=(1, 2, 3), voxel_size=0.25, bg_value=-1.0)
    path = tmp_path / "mygrid.nvdb"
    assert volume.save_to_nvdb(path, codec=codec) is path
    with open(path, "rb") as file:
        again = wp.Volume.load_from_nvdb(file, device=wp.get_device())
    for loaded in (again, wp.Volume.load_from_nvdb(path.read_bytes()), wp.Volume.load_from_nvdb(str(path))):
        np.testing.assert_array_equal(values_of(loaded, (10, 10, 10)), values)
        info = loaded.get_grid_info()
        assert info.type_str == "float" and (info.grid_index, info.grid_count) == (0, 1)
        np.testing.assert_allclose(info.translation, (1, 2, 3))
        np.testing.assert_allclose(np.array(info.transform_matrix).reshape(3, 3), np.eye(3) * 0.25)
        assert loaded.get_voxel_size() == (0.25, 0.25, 0.25)
    if codec == "zip":
        assert zlib.decompress(path.read_bytes()[16 + 176 + 1 + 8 :])[:8] == b"NanoVDB1"


@pytest.mark.parametrize("checksum", [2**64 - 1, 0x12345678_9ABCDEF0, 0x0003FFFF_04000000 | 32 << 21])
def test_grids_alone_may_begin_as_files_do(tmp_path, checksum):
    """Until version 32.8 NanoVDB wrote the first eight bytes of a file at the front of a grid, too."""
    values = dense()
    path = wp.Volume.load_from_numpy(values).save_to_nvdb(tmp_path / "grid.nvdb", "none")
    grid = bytearray(path.read_bytes()[16 + 176 + 1 :])
    grid[:8] = b"NanoVDB0"
    struct.pack_into("<QI", grid, 8, checksum, 32 << 21 | 6 << 10)
    if checksum != 2**64 - 1:
        with pytest.raises(RuntimeError, match="checksum"):
            wp.Volume.load_from_nvdb(bytes(grid))
        return
    np.testing.assert_array_equal(values_of(wp.Volume.load_from_nvdb(bytes(grid)), (10, 10, 10)), values)
    several = wp.Volume.load_from_nvdb(bytes(grid) + path.read_bytes())
    np.testing.assert_array_equal(values_of(several.load_next_grid(), (10, 10, 10)), values)


@pytest.mark.parametrize("codec", ["zip", "blosc"])
def test_files_may_leave_the_sizes_of_blocks_out_of_the_size_of_a_grid(tmp_path, codec):
    """As some writers do: the grid is said to take 8 bytes less than it takes."""
    first, second = dense(), dense(seed=1)
    content = b""
    for values in (first, second):
        path = wp.Volume.load_from_numpy(values).save_to_nvdb(tmp_path / "grid.nvdb", codec)
        one = bytearray(path.read_bytes())
        (stated,) = struct.unpack_from("<Q", one, 24)
        assert stated == len(one) - 16 - 176 - 1
        struct.pack_into("<Q", one, 24, stated - 8)
        content += one
    volume = wp.Volume.load_from_nvdb(content)
    np.testing.assert_array_equal(values_of(volume, (10, 10, 10)), first)
    np.testing.assert_array_equal(values_of(volume.load_next_grid(), (10, 10, 10)), second)
    for wrong in (stated - 16, stated + 8, stated - 7):
        struct.pack_into("<Q", one, 24, wrong)
        with pytest.raises(RuntimeError, match=f"said to take {wrong} bytes of the file, and takes {stated}"):
            wp.Volume.load_from_nvdb(bytes(one))


def test_what_kernels_stored_is_saved(tmp_path):
    @wp.kernel
    def fill(id: wp.uint64):
        i, j, k = wp.tid()
        wp.volume_store_f(id, i, j, k, float(i + 10 * j + 100 * k))

    volume = wp.Volume.allocate([0, 0, 0], [9, 9, 9], 1.0)
    wp.launch(fill, dim=(10, 10, 10), inputs=[volume.id])
    volume.save_to_nvdb(tmp_path / "stored.nvdb", "zip")
    again = wp.Volume.load_from_nvdb(io.BytesIO((tmp_path / "stored.nvdb").read_bytes()))
    i, j, k = np.meshgrid(*[np.arange(10)] * 3, indexing="ij")
    np.testing.assert_array_equal(values_of(again, (10, 10, 10)), i + 10 * j + 100 * k)


@pytest.mark.seed("S-VOL-005")
def test_a_file_may_have_several_grids(tmp_path):
    content = b""
    for n, value in enumerate((1.0, 2.0, 3.0)):
        volume = wp.Volume.allocate([0, 0, 0], [7, 7, 7], 1.0 + n, bg_value=value)
        volume.save_to_nvdb(tmp_path / "one.nvdb", ["none", "zip", "none"][n])
        content += (tmp_path / "one.nvdb").read_bytes()
    first = wp.Volume.load_from_nvdb(content)
    second = first.load_next_grid()
    third = second.load_next_grid()
    assert third.load_next_grid() is None
    assert [v.get_grid_info().grid_index for v in (first, second, third)] == [0, 1, 2]
    assert first.get_grid_info().grid_count == 3
    assert [v.get_voxel_size()[0] for v in (first, second, third)] == [1, 2, 3]
    del first, second  # the last keeps their memory
    assert values_of(third, (1, 1, 1))[0, 0, 0] == 3


@pytest.mark.seed("S-VOL-013")
def test_files_that_are_none_are_refused(tmp_path):
    wp.Volume.load_from_numpy(dense()).save_to_nvdb(tmp_path / "whole.nvdb")
    whole = (tmp_path / "whole.nvdb").read_bytes()

    def changed(at, value):
        return whole[:at] + value + whole[at + len(value) :]

    for content, text in (
        (b"", "it is empty"),
        (b"x" * 400, "there is no 'NanoVDB0' or 'NanoVDB2' at byte 0"),
        (whole[:5000], "a grid is said to have"),
        (changed(8, (31 << 21).to_bytes(4, "little")), "the format's version is 31, and 32 is expected"),
        (changed(14, b"\x07"), "its codec has the number 7"),
        (changed(len(whole) - 40, b"\xff"), "its nodes do not fit its checksum"),
    ):
        with pytest.raises(RuntimeError, match=text):
            wp.Volume.load_from_nvdb(content)
    with pytest.raises(TypeError, match="expected an open binary file, bytes, or a path"):
        wp.Volume.load_from_nvdb(3)
    with pytest.raises(ValueError, match="there is no codec 'gzip'"):
        wp.Volume.load_from_numpy(dense()).save_to_nvdb(tmp_path / "x.nvdb", "gzip")


def test_files_damaged_by_chance_are_refused_or_harmless(tmp_path):
    wp.Volume.allocate_by_voxels(points([[0, 0, 0], [1, 2, 3], [100, 5, 5]]), 1.0).save_to_nvdb(tmp_path / "v.nvdb")
    whole = bytearray((tmp_path / "v.nvdb").read_bytes())
    whole[16 + 177 + 8 : 16 + 177 + 16] = b"\xff" * 8  # no checksum
    rng = np.random.default_rng(7)
    refused = used = 0
    for _ in range(300):
        content = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(0, 1200 if rng.random() < 0.8 else len(content)))
            content[at] = int(rng.integers(0, 256))
        try:
            volume = wp.Volume.load_from_nvdb(bytes(content))
        except RuntimeError:
            refused += 1
            continue
        used += 1
        if volume.get_voxel_count() < 10**6:
            values_of(volume, (2, 2, 2))
            volume.get_voxels()
    assert refused > 25 and used > 50


# ---- bytes ----


@pytest.mark.seed("S-VOL-002")
def test_a_volume_of_an_array_of_bytes():
    values = dense()
    made = wp.Volume.load_from_numpy(values)
    data = made.array()
    assert data.dtype is wp.uint8 and data.shape == (made.get_grid_info().size_in_bytes,)
    copied, shared = wp.Volume(data), wp.Volume(data, copy=False)
    assert shared.array().ptr == data.ptr and copied.array().ptr != data.ptr
    addressed = wp.Volume.load_from_address(data.ptr, device=data.device)
    for volume in (copied, shared, addressed):
        np.testing.assert_array_equal(values_of(volume, (10, 10, 10)), values)

    @wp.kernel
    def store(id: wp.uint64):
        wp.volume_store_f(id, 0, 0, 0, 5.0)

    wp.launch(store, dim=1, inputs=[shared.id])
    changed = [values_of(v, (1, 1, 1))[0, 0, 0] == 5 for v in (made, copied, shared, addressed)]
    assert changed == [True, False, True, True]


def test_arrays_that_are_no_grid_are_refused():
    with pytest.raises(RuntimeError, match="there are 10 bytes, and a grid has at least 736"):
        wp.Volume(wp.zeros(10, dtype=wp.uint8))
    with pytest.raises(RuntimeError, match="they do not begin with 'NanoVDB0' or 'NanoVDB1'"):
        wp.Volume(wp.zeros(1000, dtype=wp.uint8))
    with pytest.raises(RuntimeError, match=r"expected|a contiguous array \(n,\) of uint8"):
        wp.Volume(wp.zeros(1000, dtype=float))
    with pytest.raises(TypeError, match="data is bytes, expected an array of uint8"):
        wp.Volume(b"abc")


# ---- building ----


@pytest.mark.seed("S-VOL-011")
def test_the_type_of_the_background_is_that_of_the_values():
    for background, dtype, text in (
        (0.0, wp.float32, "float"),
        (3, wp.int32, "int32"),
        (np.float64(1), wp.float64, "double"),
        (np.int64(1), wp.int64, "int64"),
        (np.uint32(1), wp.uint32, "uint32"),
        (wp.float64(2.0), wp.float64, "double"),
        ((1, 2, 3), wp.vec3f, "Vec3f"),
        (wp.vec3d(1.0, 2.0, 3.0), wp.vec3d, "Vec3d"),
        ((1, 2, 3, 4), wp.vec4f, "Vec4f"),
        (wp.vec4d(1.0, 2.0, 3.0, 4.0), wp.vec4d, "Vec4d"),
        (None, None, "Index"),
    ):
        volume = wp.Volume.allocate_by_tiles(points([[0, 0, 0]]), 1.0, bg_value=background)
        assert (volume.dtype, volume.get_grid_info().type_str) == (dtype, text)
        assert volume.is_index == (background is None)
    for background in (True, "x", (1, 2), wp.vec2(1.0, 2.0), wp.float16(1.0)):
        with pytest.raises(TypeError, match="expected a value of int32, uint32"):
            wp.Volume.allocate_by_tiles(points([[0, 0, 0]]), 1.0, bg_value=background)


@pytest.mark.seed("S-VOL-011")
def test_tiles_around_points():
    rows = [[0, 0, 0], [8, 8, 8], [1, 2, 3], [-1, 0, 5000]]
    volume = wp.Volume.allocate_by_tiles(points(rows), voxel_size=0.5, bg_value=-1.0)
    tiles = [[-8, 0, 5000], [0, 0, 0], [8, 8, 8]]
    assert volume.get_tiles().numpy().tolist() == tiles
    assert (volume.get_tile_count(), volume.get_voxel_count()) == (3, 3 * 512)
    assert volume.get_active_stats() == (3 * 512, 3, 2, 2)
    out = wp.zeros(4, dtype=wp.vec3i)
    assert volume.get_tiles(out=out) is out
    assert out.numpy().tolist() == [*tiles, [0, 0, 0]]
    with pytest.raises(RuntimeError, match="expected an array of 3 rows at least"):
        volume.get_tiles(out=wp.zeros(2, dtype=wp.vec3i))
    masked = wp.Volume.allocate_by_tiles(points(rows), 0.5, point_mask=wp.array([0, 1, 0, 0], dtype=wp.int32))
    assert masked.get_tiles().numpy().tolist() == [[8, 8, 8]]


@pytest.mark.parametrize("dtype", [wp.vec3, wp.vec3d, wp.float32, wp.float64])
@pytest.mark.seed("S-VOL-011")
def test_points_in_the_world_are_the_nearest_voxels(dtype):
    places = [[0.25, 0.75, 1.25], [-0.25, -0.75, -1.25], [0.24, 0.26, -0.26]]
    volume = wp.Volume.allocate_by_voxels(points(places, dtype), 0.5)
    assert volume.get_voxels().numpy().tolist() == [[0, -1, -2], [0, 1, -1], [1, 2, 3]]
    moved = wp.Volume.allocate_by_voxels(points(places, dtype), 0.5, translation=(10, 0, 0))
    assert moved.get_voxels().numpy().tolist() == [[-20, -1, -2], [-20, 1, -1], [-19, 2, 3]]
    tiles = wp.Volume.allocate_by_tiles(points([[3.74, 3.75, 3.76], [-0.24, -0.26, -4.3]], dtype), 0.5)
    assert tiles.get_tiles().numpy().tolist() == [[0, -8, -16], [0, 8, 8]]


def test_boxes_of_tiles():
    def tiles(*arguments, **named):
        return wp.Volume.allocate(*arguments, **named).get_tiles().numpy()

    assert tiles([0, 0, 0], [7, 7, 7], (0.5, 1, 2)).tolist() == [[0, 0, 0]]
    assert len(tiles([0, 0, 0], [9, 9, 9], 0.5)) == 8
    assert len(tiles([0, 0, 0], [9, 9, 9], 0.5, points_in_world_space=True)) == 27
    assert tiles([-1, 0, 0], [0, 0, 0], 1.0).tolist() == [[-8, 0, 0], [0, 0, 0]]
    with pytest.raises(ValueError, match="expected min <= max"):
        tiles([50, 0, 0], [0, 9, 9], 0.5)


def test_arguments_that_make_no_volume_are_refused():
    one = points([[0, 0, 0]])
    for arguments, error, text in (
        ({}, ValueError, "none was given of voxel_size and transform"),
        ({"voxel_size": 1.0, "transform": np.eye(3)}, ValueError, "both were given"),
        ({"voxel_size": 0.0}, ValueError, "expected finite numbers above 0"),
        ({"voxel_size": (1, -1, 1)}, ValueError, "expected finite numbers above 0"),
        ({"transform": np.ones((3, 3))}, ValueError, "has no inverse"),
        ({"transform": np.eye(2)}, ValueError, "expected 9 numbers"),
        ({"voxel_size": 1.0, "translation": (1, 2)}, ValueError, "expected 3 numbers"),
    ):
        with pytest.raises(error, match=text):
            wp.Volume.allocate_by_tiles(one, **arguments)
    for wrong, error in (
        ([[0, 0, 0]], TypeError),
        (wp.zeros((3, 2), dtype=wp.int32), RuntimeError),
        (wp.zeros((3, 3), dtype=wp.int64), RuntimeError),
        (wp.zeros((6, 3), dtype=wp.int32)[::2], RuntimeError),
    ):
        with pytest.raises(error, match=r"expected (an|a contiguous) array"):
            wp.Volume.allocate_by_tiles(wrong, 1.0)
    with pytest.raises(RuntimeError, match="there are no points"):
        wp.Volume.allocate_by_voxels(wp.zeros((0, 3), dtype=wp.int32), 1.0)
    with pytest.raises(ValueError, match="point 1 is no voxel: it is not finite"):
        wp.Volume.allocate_by_voxels(points([[0, 0, 0], [np.nan, 0, 0]], wp.vec3), 1.0)
    with pytest.raises(ValueError, match=r"expected the shape \(ni, nj, nk, 3\)"):
        wp.Volume.load_from_numpy(np.zeros((4, 4, 4)), bg_value=(0, 0, 0))


# ---- rebuilding ----


@pytest.mark.seed("D-27")
def test_volumes_are_read_from_files_and_written_to(tmp_path):
    @wp.kernel
    def store(id: wp.uint64):
        i, j, k = wp.tid()
        wp.volume_store_f(id, i, j, k, float(100 * i + 10 * j + k))

    given = dense((8, 8, 8))
    wp.Volume.load_from_numpy(given).save_to_nvdb(tmp_path / "given.nvdb")
    with open(tmp_path / "given.nvdb", "rb") as file:
        read = wp.Volume.load_from_nvdb(file)
    np.testing.assert_array_equal(values_of(read, (8, 8, 8)), given)
    made = wp.Volume.allocate_by_tiles(points([[0, 0, 0]]), 1.0, rebuildable=True)
    for volume in (read, made):
        wp.launch(store, dim=(8, 8, 8), inputs=[volume.id])
        expected = np.add.outer(np.add.outer(np.arange(8) * 100, np.arange(8) * 10), np.arange(8))
        np.testing.assert_array_equal(values_of(volume, (8, 8, 8)), expected)
    made.rebuild(points([[8, 0, 0]]))
    assert not values_of(made, (8, 8, 8)).any() and made.get_tiles().numpy().tolist() == [[8, 0, 0]]


@pytest.mark.parametrize("kind", ["tiles", "voxels"])
def test_a_volume_is_rebuilt_in_place(kind):
    allocate = wp.Volume.allocate_by_tiles if kind == "tiles" else wp.Volume.allocate_by_voxels
    volume = allocate(points([[0, 0, 0], [8, 8, 8], [1, 2, 3], [1, 2, 3]]), 0.5, rebuildable=True)
    voxels = 4 * 512 if kind == "tiles" else 4
    assert volume.is_rebuildable and volume.get_rebuild_info() == (kind, voxels, 4, 4, 4)
    before = volume.id, volume.array().ptr
    status = wp.zeros(1, dtype=wp.uint32)
    assert volume.rebuild(points([[5, 5, 5], [80, 0, 0]]), status=status) is status
    assert status.numpy()[0] == wp.Volume.REBUILD_SUCCESS
    assert (volume.id, volume.array().ptr) == before
    assert volume.get_tiles().numpy().tolist() == [[0, 0, 0], [80, 0, 0]]
    assert volume.get_voxel_count() == (1024 if kind == "tiles" else 2)

    far = (np.arange(30).reshape(10, 3) * 5000).astype(np.int32)
    volume.rebuild(points(far), status=status)
    assert status.numpy()[0] == 1 | 2 | 4 | 8
    volume.rebuild(points([[0.0, 0.0, np.inf]], wp.vec3), status=status)
    assert status.numpy()[0] == wp.Volume.REBUILD_INVALID_INPUT
    assert volume.get_tiles().numpy().tolist() == [[0, 0, 0], [80, 0, 0]]
    with pytest.raises(RuntimeError, match="10 leaves of 4"):
        volume.rebuild(points(far))
    with pytest.raises(RuntimeError, match="status is an array of float32"):
        volume.rebuild(points([[0, 0, 0]]), status=wp.zeros(1, dtype=float))


def test_rebuilt_values_are_the_background():
    @wp.kernel
    def store(id: wp.uint64):
        wp.volume_store_f(id, 0, 0, 0, 5.0)

    volume = wp.Volume.allocate_by_tiles(points([[0, 0, 0]]), 1.0, bg_value=2.0, rebuildable=True)
    wp.launch(store, dim=1, inputs=[volume.id])
    volume.rebuild(points([[3, 3, 3]]))
    assert values_of(volume, (1, 1, 1))[0, 0, 0] == 2


def test_limits_of_rebuilding():
    one = points([[0, 0, 0], [100, 0, 0]])
    volume = wp.Volume.allocate_by_tiles(one, 1.0, rebuildable=True, max_tiles=10, max_lower_nodes=2, max_upper_nodes=1)
    assert volume.get_rebuild_info() == ("tiles", 5120, 10, 2, 1)
    status = wp.zeros(1, dtype=wp.uint32)
    wp.Volume.allocate_by_tiles(one, 1.0, rebuildable=True, max_tiles=1, status=status)
    assert status.numpy()[0] == 1 | 8
    plain = wp.Volume.allocate_by_tiles(one, 1.0)
    assert not plain.is_rebuildable and plain.get_rebuild_info() == (None, 0, 0, 0, 0)
    with pytest.raises(RuntimeError, match="not allocated with rebuildable=True"):
        plain.rebuild(one)


# ---- life ----


def test_memory_of_volumes_is_given_back():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    values = dense((128, 128, 128))
    for _ in range(10):  # a device may free memory late
        wp.Volume.load_from_numpy(values)
    before = resident()
    for _ in range(30):
        wp.Volume.load_from_numpy(values)
    assert resident() - before < 5 * values.nbytes


@pytest.mark.seed("S-VOL-001", "S-VOL-011")
def test_a_volume_on_another_device(device):
    values = dense()
    volume = wp.Volume.load_from_numpy(values, bg_value=-1.0, device=device)
    assert volume.device == device and volume.array().device == device

    @wp.kernel
    def read(id: wp.uint64, out: wp.array3d(dtype=float)):
        i, j, k = wp.tid()
        out[i, j, k] = wp.volume_sample_f(id, wp.vec3(float(i), float(j), float(k)), wp.Volume.LINEAR)

    out = wp.zeros((10, 10, 10), dtype=float, device=device)
    wp.launch(read, dim=out.shape, inputs=[volume.id], outputs=[out], device=device)
    np.testing.assert_array_equal(out.numpy(), values)
    assert volume.get_tiles().numpy().tolist()[1] == [0, 0, 8]
    assert volume.get_tiles().device == device


def test_arrays_that_travel_with_a_grid():
    rows = np.arange(15, dtype=np.float32).reshape(5, 3)
    grid = wp.Volume.allocate([0, 0, 0], [7, 7, 7], 1.0).array().numpy().tobytes()
    # After the nodes: where the data is from its description on, how many values of how many bytes, their type (Vec3f).
    about = struct.pack("<qQIIII256s", 288, 5, 12, 0, 0, 6, b"positions")
    content = bytearray(grid + about + rows.tobytes())
    content += bytes(-len(content) % 32)
    struct.pack_into("<Q", content, 32, len(content))
    struct.pack_into("<qI", content, 640, len(grid), 1)
    volume = wp.Volume(wp.array(np.frombuffer(content, np.uint8)))
    assert volume.get_feature_array_count() == 1
    info = volume.get_feature_array_info(0)
    assert info == ("positions", volume.array().ptr + len(grid) + 288, 12, 5, "Vec3f")
    values = volume.feature_array(0)
    assert values.dtype is wp.vec3f and values.ptr == info.ptr
    np.testing.assert_array_equal(values.numpy(), rows)
    np.testing.assert_array_equal(volume.feature_array(0, dtype=float).numpy(), rows.reshape(-1))
    with pytest.raises(TypeError, match="5 values of 12 bytes, which vec4f with 16 bytes does not divide"):
        volume.feature_array(0, dtype=wp.vec4f)
    for ask in (volume.feature_array, volume.get_feature_array_info):
        for index in (1, -1):
            with pytest.raises(RuntimeError, match=f"has 1 feature arrays, and none with the number {index}"):
                ask(index)


@pytest.mark.parametrize("kind", [wp.Volume, wp.Mesh, wp.Bvh, wp.HashGrid])
def test_finalizers_may_be_called(kind):
    kind.__new__(kind).__del__()
    if kind is wp.Volume:
        volume = wp.Volume.load_from_numpy(dense())
        volume.__del__()
        np.testing.assert_array_equal(values_of(volume, (10, 10, 10)), dense())
