"""Volumes on CUDA devices: the CPU's values bit for bit, every way to make them, tapes, graphs, and errors."""

import gc
import pickle

import numpy as np
import pytest
import warp as wp
from numpy.testing import assert_array_equal

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("compares devices by itself")]

DEVICE = "cuda:0"


def dense(shape=(12, 9, 17), seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def voxels(count=40, reach=90, seed=1):
    return np.random.default_rng(seed).integers(-reach, reach, (count, 3)).astype(np.int32)


@wp.kernel
def read(id: wp.uint64, out: wp.array3d(dtype=float)):
    i, j, k = wp.tid()
    out[i, j, k] = wp.volume_lookup_f(id, i, j, k)


@wp.kernel
def store(id: wp.uint64, value: float):
    i, j, k = wp.tid()
    wp.volume_store_f(id, i, j, k, value * float(1 + i + 10 * j + 100 * k))


@wp.kernel
def sample(id: wp.uint64, at: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = wp.volume_sample_f(id, at[i], wp.Volume.LINEAR)


def values_of(volume, shape=(4, 4, 4)):
    out = wp.zeros(shape, dtype=float, device=volume.device)
    wp.launch(read, dim=shape, inputs=[volume.id, out], device=volume.device)
    return out.numpy()


def bytes_of(volume):
    return volume.array().numpy()


# ---- values ----


KINDS = {  # of values: the type of places, that of slopes
    wp.float32: (wp.vec3f, wp.vec3f),
    wp.float64: (wp.vec3d, wp.vec3d),
    wp.vec3f: (wp.vec3f, wp.mat33f),
    wp.vec3d: (wp.vec3d, wp.mat33d),
}


def numbers_of(dtype, count, seed):
    shape = (count, 3) if dtype in (wp.vec3f, wp.vec3d) else (count,)
    return dense(shape, seed, np.float64 if dtype in (wp.float64, wp.vec3d) else np.float32)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("spread", ["near", "far"])
def test_samples_and_slopes_have_the_bits_of_the_cpu(dtype, spread):
    """Tiles near each other have a table of cells; those that are far from each other are found in the tree."""
    place_type, slope_type = KINDS[dtype]

    @wp.kernel(module="unique")
    def fill(id: wp.uint64, corners: wp.array2d(dtype=int), values: wp.array(dtype=dtype)):
        t, i, j, k = wp.tid()
        value = values[((t * 8 + i) * 8 + j) * 8 + k]
        wp.volume_store(id, corners[t, 0] + i, corners[t, 1] + j, corners[t, 2] + k, value)

    @wp.kernel(module="unique")
    def ask(
        id: wp.uint64,
        at: wp.array(dtype=place_type),
        out: wp.array2d(dtype=dtype),
        slopes: wp.array2d(dtype=slope_type),
    ):
        i = wp.tid()
        p = at[i]
        slope = slope_type()
        for mode in range(2):
            out[i, mode] = wp.volume_sample(id, p, mode, dtype=dtype)
            out[i, 2 + mode] = wp.volume_sample_grad(id, p, mode, slope, dtype=dtype)
            slopes[i, mode] = slope
        out[i, 4] = wp.volume_lookup(id, int(p[0]), int(p[1]), int(p[2]), dtype=dtype)

    corners = np.array([[0, 0, 0], [8, 0, 0], [0, 8, 8], [-8, 0, 8]], dtype=np.int32)
    if spread == "far":
        corners[2:] = [[5000, -6000, 72], [-8, 100000, 8]]
    values, found = numbers_of(dtype, 4 * 512, 5), []
    places = np.random.default_rng(2).uniform(-1, 9, (4, 100, 3)) + corners[:, None]
    for device in ("cpu", DEVICE):
        with wp.ScopedDevice(device):
            tiles = wp.array(corners, dtype=int)
            volume = wp.Volume.allocate_by_tiles(tiles, 0.5, dtype(*[0.25] * (3 if values.ndim == 2 else 1)))
            wp.launch(fill, dim=(4, 8, 8, 8), inputs=[volume.id, tiles, wp.array(values, dtype=dtype)])
            out, slopes = wp.zeros((400, 5), dtype=dtype), wp.zeros((400, 2), dtype=slope_type)
            at = wp.array(places.reshape(-1, 3), dtype=place_type)
            wp.launch(ask, dim=400, inputs=[volume.id, at, out, slopes])
            found.append((bytes_of(volume), out.numpy(), slopes.numpy()))
    assert np.ptp(found[0][1]) > 1 and np.ptp(found[0][2]) > 1
    for one, other in zip(*found, strict=True):
        assert_array_equal(one, other)


@wp.kernel
def weigh(id: wp.uint64, at: wp.array(dtype=wp.vec3), beside: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    x = wp.volume_world_to_index(id, at[i])
    out[i] = wp.volume_sample_f(id, x, wp.Volume.LINEAR) * beside[i]


@wp.kernel
def weigh_beside(id: wp.uint64, at: wp.array(dtype=wp.vec3), beside: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    x = wp.volume_world_to_index(id, at[i])
    out[i] = wp.volume_sample_index(id, x, wp.Volume.LINEAR, beside, 0.5)


@pytest.mark.parametrize("kernel", [weigh, weigh_beside])
def test_adjoints_and_tangents_have_the_bits_of_the_cpu(kernel):
    places, along, found = dense((100, 3), 3), dense((100, 3), 4), []
    for device in ("cpu", DEVICE):
        with wp.ScopedDevice(device):
            if kernel is weigh:
                volume = wp.Volume.load_from_numpy(dense(), voxel_size=0.5)
            else:
                matrix = [0.5, 0.1, 0.0, 0.0, 0.25, 0.0, 0.2, 0.0, 0.5]
                volume = wp.Volume.allocate_by_voxels(wp.array(voxels(300, reach=6), dtype=int), transform=matrix)
            at = wp.array(places, dtype=wp.vec3, requires_grad=True)
            beside = wp.array(dense((volume.get_voxel_count(),), 6), requires_grad=True)
            out = wp.zeros(100, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(kernel, dim=100, inputs=[volume.id, at, beside, out])
            out.grad.fill_(1.0)
            tape.backward()
            tangent = wp.zeros(100)
            wp.jvp(
                kernel,
                dim=100,
                inputs=[volume.id, at, beside],
                outputs=[out],
                input_tangents=[None, wp.array(along, dtype=wp.vec3), None],
                output_tangents=[tangent],
            )
            found.append((out.numpy(), at.grad.numpy(), tangent.numpy(), beside.grad.numpy()))
    assert all(np.ptp(one) > 0 for one in found[0])
    for one, other in zip(found[0][:3], found[1][:3], strict=True):
        assert_array_equal(one, other)
    np.testing.assert_allclose(found[0][3], found[1][3], rtol=1e-5, atol=1e-6)  # sums in another order


# ---- making ----


def test_volumes_of_both_devices_have_the_same_bytes(tmp_path):
    values = dense()
    box = wp.Volume.load_from_numpy(values, voxel_size=0.5, device="cpu")
    path = box.save_to_nvdb(tmp_path / "box.nvdb", "zip")
    rows = voxels()
    mask = np.arange(len(rows), dtype=np.int32) % 3
    places = (rows * 0.5 + 0.1).astype(np.float32)
    for make in (
        lambda: wp.Volume.load_from_numpy(values, voxel_size=0.5),
        lambda: wp.Volume.load_from_nvdb(path),
        lambda: wp.Volume(box.array().to(wp.get_device())),
        lambda: wp.Volume.allocate((-9, 0, 0), (20, 9, 3), 0.5, bg_value=(1.0, 2.0, 3.0)),
        lambda: wp.Volume.allocate_by_tiles(wp.array(rows, dtype=int), 0.5, 7, point_mask=wp.array(mask)),
        lambda: wp.Volume.allocate_by_tiles(wp.array(places, dtype=wp.vec3), 0.5, None),
        lambda: wp.Volume.allocate_by_voxels(wp.array(rows, dtype=wp.vec3i), 0.5, point_mask=wp.array(mask)),
        lambda: wp.Volume.allocate_by_voxels(wp.array(places, dtype=wp.float64), 0.5, rebuildable=True),
    ):
        with wp.ScopedDevice("cpu"):
            here = make()
        with wp.ScopedDevice(DEVICE):
            there = make()
        assert (here.device, there.device) == ("cpu", DEVICE) and there.array().device == DEVICE
        assert_array_equal(bytes_of(there)[: there.get_grid_info().size_in_bytes], bytes_of(here))
        for ask in (wp.Volume.get_tiles, wp.Volume.get_voxels):
            assert ask(there).device == DEVICE
            assert_array_equal(ask(there).numpy(), ask(here).numpy())
        assert there.get_grid_info() == here.get_grid_info() and there.get_active_stats() == here.get_active_stats()


def test_a_volume_goes_to_the_other_device_and_into_files(tmp_path):
    volume = wp.Volume.allocate([0, 0, 0], [9, 9, 9], 1.0, device=DEVICE)
    wp.launch(store, dim=(10, 10, 10), inputs=[volume.id, 1.5], device=DEVICE)
    values = values_of(volume, (10, 10, 10))
    i, j, k = np.indices((10, 10, 10))
    assert_array_equal(values, np.float32(1.5) * (1 + i + 10 * j + 100 * k).astype(np.float32))
    path = volume.save_to_nvdb(tmp_path / "stored.nvdb", "zip")
    for other in (
        wp.Volume(volume.array().to("cpu")),
        wp.Volume.load_from_nvdb(path, device="cpu"),
        wp.Volume.load_from_nvdb(path, device=DEVICE),
        wp.Volume.load_from_address(volume.array().ptr, device=DEVICE),
        pickle.loads(pickle.dumps(volume)),
    ):
        assert_array_equal(values_of(other, (10, 10, 10)), values)


def test_several_grids_of_a_file(tmp_path):
    content = b""
    for value in (1.0, 2.0):
        volume = wp.Volume.allocate([0, 0, 0], [7, 7, 7], 1.0, bg_value=value, device=DEVICE)
        content += volume.save_to_nvdb(tmp_path / "one.nvdb").read_bytes()
    first = wp.Volume.load_from_nvdb(content, device=DEVICE)
    second = first.load_next_grid()
    assert (second.device, second.load_next_grid()) == (DEVICE, None)
    assert (values_of(first).max(), values_of(second).max()) == (1, 2)
    del first  # the second one has the memory, too
    gc.collect()
    assert values_of(second).max() == 2


def test_a_rebuild_with_points_and_status_on_the_device():
    def tiles(*rows):
        return wp.array(rows, dtype=wp.vec3i, device=DEVICE)

    volume = wp.Volume.allocate_by_tiles(tiles((0, 0, 0), (64, 0, 0)), 1.0, bg_value=2.0, rebuildable=True)
    wp.launch(store, dim=(2, 2, 2), inputs=[volume.id, 1.0], device=DEVICE)
    ids = wp.array([0, volume.id], dtype=wp.uint64, device=DEVICE)
    status, place = wp.zeros(1, dtype=wp.uint32, device=DEVICE), (volume.id, volume.array().ptr)
    volume.rebuild(tiles((0, 0, 0), (5000, 0, 0)), status=status)
    assert status.list() == [wp.Volume.REBUILD_SUCCESS] and (volume.id, volume.array().ptr) == place
    assert volume.get_tiles().numpy().tolist() == [[0, 0, 0], [5000, 0, 0]]
    assert_array_equal(values_of(volume), 2.0)

    @wp.kernel(module="unique")
    def store_by_array(ids: wp.array(dtype=wp.uint64)):
        wp.volume_store_f(ids[1], 5001, 2, 3, 9.0)
        wp.volume_store_f(ids[1], 64, 0, 0, 9.0)  # no tile there any more

    wp.launch(store_by_array, dim=1, inputs=[ids], device=DEVICE)
    wp.launch(sample, 1, [volume.id, wp.array([[5001, 2, 3]], dtype=wp.vec3, device=DEVICE), (out := wp.zeros(1))])
    assert out.list() == [9.0]
    volume.rebuild(tiles((0, 0, 0), (64, 0, 0), (128, 0, 0)), status=status)
    assert status.list() == [wp.Volume.REBUILD_LEAF_CAPACITY_EXCEEDED | wp.Volume.REBUILD_VOXEL_CAPACITY_EXCEEDED]


# ---- life ----


def test_a_volume_that_is_gone_is_empty_and_waits_for_its_launches():
    volume = wp.Volume.load_from_numpy(np.full((8, 8, 8), 3.0, np.float32), device=DEVICE)
    id, at = volume.id, wp.full(10, wp.vec3(1.5, 2.5, 3.5), dtype=wp.vec3, device=DEVICE)
    out = [wp.zeros(10, device=DEVICE) for _ in range(3)]
    wp.launch(sample, 10, [id, at, out[0]], device=DEVICE)
    del volume
    gc.collect()
    wp.synchronize()
    others = [wp.Volume.load_from_numpy(np.full((8, 8, 8), 5.0, np.float32), device=DEVICE) for _ in range(2)]
    wp.launch(sample, 10, [id, at, out[1]], device=DEVICE)
    assert all(other.id != id for other in others)
    assert (out[0].list(), out[1].list()) == ([3.0] * 10, [0.0] * 10)


def test_an_id_of_the_other_device_is_an_error():
    here, there = (wp.Volume.load_from_numpy(dense(), device=device) for device in ("cpu", DEVICE))
    for volume, device in ((here, DEVICE), (there, "cpu")):
        with pytest.raises(RuntimeError, match=f"is the id of a volume on .*, and the launch is on '{device}'"):
            wp.launch(read, (1, 1, 1), [volume.id, wp.zeros((1, 1, 1), device=device)], device=device)


def test_bytes_that_are_no_volume_are_refused_by_the_function_that_was_called():
    volume = wp.Volume.load_from_numpy(dense(), device=DEVICE)
    data, host = volume.array(), volume.array().to("cpu")
    for make, text in (
        (
            lambda: wp.Volume(wp.zeros(1000, dtype=wp.uint8, device=DEVICE)),
            r"Volume\(\): the bytes are no NanoVDB grid",
        ),
        (lambda: wp.Volume(data[8:], copy=False), r"Volume\(\): a grid begins at a multiple of 32 bytes"),
        (lambda: wp.Volume(data[::2], copy=False), r"Volume\(\): the bytes of a grid are a contiguous array"),
        (lambda: wp.Volume.load_from_address(data.ptr + 8, device=DEVICE), "a grid begins at a multiple of 32 bytes"),
        (lambda: wp.Volume.load_from_address(host.ptr, device=DEVICE), rf"cannot be read as memory of '{DEVICE}'"),
        (
            lambda: wp.Volume.load_from_address(host.ptr, 4096, device=DEVICE),
            r"4096 bytes at address \d+ cannot be read",
        ),
        (
            lambda: wp.Volume.load_from_address(data.ptr, device="cpu"),
            rf"is memory of '{DEVICE}', which 'cpu' cannot read. help: device='{DEVICE}'",
        ),
        (lambda: wp.Volume.load_from_address(data.ptr, data.size, device="cpu"), rf"is memory of '{DEVICE}'"),
        (lambda: wp.Volume.load_from_address(data.ptr, data.size - 1, device=DEVICE), "says that it has"),
    ):
        with pytest.raises(RuntimeError, match=text) as caught:
            make()
        assert str(caught.value).startswith("Volume"), caught.value
    assert_array_equal(bytes_of(volume), host.numpy())


# ---- tapes and graphs ----


def loss_and_gradient(change):
    """Samples of ones, of which a store makes others behind the launch; the gradient is that of the ones."""
    with wp.ScopedDevice(DEVICE):
        ramp = np.broadcast_to(np.arange(8, dtype=np.float32)[:, None, None], (8, 8, 8))
        volume = wp.Volume.load_from_numpy(ramp)
        at = wp.array([[1.5, 2.5, 3.5], [4.5, 2.5, 3.5]], dtype=wp.vec3, requires_grad=True)
        out = wp.zeros(2, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(sample, dim=2, inputs=[volume.id, at, out])
        change(volume)
        out.grad.fill_(1.0)
        tape.backward()
        return out.list(), at.grad.numpy().tolist()


def test_a_tape_keeps_the_volume_of_its_launch_from_graphs_that_store():
    expected = loss_and_gradient(lambda volume: None)
    assert expected == ([1.5, 4.5], [[1, 0, 0], [1, 0, 0]])
    graphs = []

    def store_in_graph(volume, captured_inside=False):
        with wp.ScopedCapture() as capture:
            wp.launch(store, dim=(8, 8, 8), inputs=[volume.id, 2.0])
        graph = capture.graph
        if captured_inside:
            with wp.ScopedCapture() as outer:
                wp.capture_launch(graph)
            graph = outer.graph
        before = values_of(volume)
        for _ in range(2):
            wp.capture_launch(graph)
        assert (values_of(volume) != before).all()
        graphs.append(graph)

    assert loss_and_gradient(store_in_graph) == expected
    assert loss_and_gradient(lambda volume: store_in_graph(volume, captured_inside=True)) == expected
    assert loss_and_gradient(lambda volume: wp.launch(store, (8, 8, 8), [volume.id, 2.0])) == expected


def test_a_graph_stores_into_a_volume_and_reads_it():
    with wp.ScopedDevice(DEVICE):
        volume = wp.Volume.allocate([0, 0, 0], [7, 7, 7], 1.0)
        out, at = wp.zeros(1), wp.array([[1, 2, 3]], dtype=wp.vec3)
        with wp.ScopedCapture() as capture:
            wp.launch(store, dim=(8, 8, 8), inputs=[volume.id, 2.0])
            wp.launch(sample, dim=1, inputs=[volume.id, at, out])
        assert out.list() == [0.0]
        wp.launch(store, dim=(8, 8, 8), inputs=[volume.id, -1.0])
        del volume
        gc.collect()
        for _ in range(2):
            wp.capture_launch(capture.graph)
            assert out.list() == [2.0 * 322]


def test_volumes_and_captures(tmp_path):
    with wp.ScopedDevice(DEVICE):
        points = wp.array([[0, 0, 0]], dtype=wp.vec3i)
        volume = wp.Volume.allocate_by_tiles(points, 1.0, rebuildable=True)
        path = volume.save_to_nvdb(tmp_path / "grid.nvdb")
        with wp.ScopedCapture():
            for refused in (
                lambda: wp.Volume.allocate_by_tiles(points, 1.0),
                lambda: wp.Volume.load_from_numpy(dense()),
                lambda: wp.Volume(volume.array()),
                lambda: volume.rebuild(points),
                lambda: volume.save_to_nvdb(tmp_path / "other.nvdb"),
            ):
                with pytest.raises(RuntimeError, match=r"Volume.*\(\): a graph is being captured"):
                    refused()
            loaded, tiles, all_voxels = wp.Volume.load_from_nvdb(path), volume.get_tiles(), volume.get_voxels()
        assert tiles.numpy().tolist() == [[0, 0, 0]]
        assert_array_equal(all_voxels.numpy(), np.stack(np.indices((8, 8, 8)), axis=-1).reshape(-1, 3))
        assert_array_equal(values_of(loaded), 0.0)


def test_volumes_on_two_gpus(two_gpus):
    values = dense((8, 8, 8))
    here, there = (wp.Volume.load_from_numpy(values, device=device) for device in (DEVICE, "cuda:1"))
    for volume in (here, there, wp.Volume(here.array().to("cuda:1")), wp.Volume(there.array().to(DEVICE))):
        assert_array_equal(values_of(volume, (8, 8, 8)), values)
    out = wp.zeros((8, 8, 8), dtype=float, device=DEVICE)
    with pytest.raises(RuntimeError, match=f"is the id of a volume on 'cuda:1', and the launch is on '{DEVICE}'"):
        wp.launch(read, (8, 8, 8), [there.id, out], device=DEVICE)


def test_a_volume_in_another_stream():
    with wp.ScopedDevice(DEVICE):
        stream = wp.Stream()
        with wp.ScopedStream(stream):
            volume = wp.Volume.load_from_numpy(dense((8, 8, 8)))
            wp.launch(store, dim=(8, 8, 8), inputs=[volume.id, 3.0])
            found = values_of(volume, (8, 8, 8))
            tiles = volume.get_tiles().numpy()
        i, j, k = np.indices((8, 8, 8))
        assert_array_equal(found, 3.0 * (1 + i + 10 * j + 100 * k))
        assert tiles.tolist() == [[0, 0, 0]]
