"""Devices by name, and the default device."""

import threading
from pathlib import Path

import pytest
import warp as wp

pytestmark = pytest.mark.cpu_only("is about a process without a GPU: its default device, what it logs and answers")


@pytest.mark.seed("S-INI-010")
def test_devices_compare_equal_to_their_names():
    device = wp.get_device("cpu")
    assert device == "cpu" and device != "cuda:0" and device == wp.zeros(1).device
    assert str(device) == "cpu" and hash(device) == hash("cpu") and {device: 1}["cpu"] == 1
    assert isinstance(device, wp.Device) and device.is_cpu and not device.is_cuda
    assert device.alias == "cpu" and device.name
    assert wp.zeros(1, device=device).device == device
    assert wp.get_device(device) is device


def test_the_cpu_is_called_what_the_system_calls_it():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = {line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")}
    assert wp.get_device("cpu").name in (names or {"x86_64", "aarch64", "cpu"})


@pytest.mark.seed("S-INI-011", "S-INI-012", "D-17")
def test_the_default_device():
    assert wp.get_device() == "cpu"
    wp.set_device("cpu")
    assert wp.get_device(None) == "cpu" and wp.zeros(1).device == wp.get_device()
    assert wp.get_preferred_device() == (wp.get_cuda_devices() or ["cpu"])[0]


@pytest.mark.seed("S-INI-013")
@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:1"])
def test_a_missing_cuda_device_is_named(name):
    for use in (
        wp.get_device,
        wp.set_device,
        lambda device: wp.zeros(3, device=device),
        wp.synchronize_device,
        wp.ScopedDevice,
    ):
        with pytest.raises(RuntimeError, match=f"'{name}'.*CUDA"):
            use(name)
    assert not wp.is_device_available(name)


@pytest.mark.parametrize("wrong", ["gpu", "", "cpu:1", 3, 1.5])
def test_other_names_are_errors(wrong):
    with pytest.raises((ValueError, TypeError)):
        wp.get_device(wrong)


def test_scoped_device():
    with wp.ScopedDevice("cpu") as device:
        assert device == "cpu"
        with wp.ScopedDevice(None) as same:
            assert same == "cpu"
    seen = []
    thread = threading.Thread(target=lambda: seen.append(wp.get_device()))
    thread.start()
    thread.join()
    assert seen == ["cpu"]


def test_counts_and_lists():
    assert wp.is_cpu_available()
    assert wp.get_devices()[0] == "cpu"
    assert wp.get_cuda_device_count() == len(wp.get_cuda_devices())
    assert wp.is_cuda_available() == bool(wp.get_cuda_devices())
    wp.synchronize()
    wp.synchronize_device()
    wp.synchronize_device("cpu")


def test_the_cpu_has_what_cuda_devices_have():
    device = wp.get_device("cpu")
    flags = "is_uva is_mempool_supported is_mempool_enabled is_ipc_supported is_primary is_capturing"
    assert [getattr(device, name) for name in flags.split()] == [False] * 6
    assert (device.arch, device.sm_count, device.max_shared_memory_per_block) == (0, 0, 0)
    assert (device.uuid, device.pci_bus_id, device.context) == (None, None, None)
    assert device.total_memory > device.free_memory > 0
    assert device.can_access("cpu") and wp.can_access("cpu", wp.zeros(1))
    assert repr(device) == "'cpu'"
    assert device.has_stream and device.stream == wp.get_stream(device)
    with pytest.raises(TypeError, match="expected a wp.array"):
        wp.can_access("cpu", 3)


def test_memory_from_the_allocator_of_a_device():
    allocator = wp.get_device("cpu").get_allocator()
    address = allocator.allocate(1000)
    assert address % 64 == 0 and allocator.memory_kind == wp.MemoryKind.HOST
    a = wp.array(ptr=address, shape=250, dtype=float)
    a.fill_(2.0)
    assert a.numpy().sum() == 500.0
    allocator.deallocate(address, 1000)
    assert wp.get_device("cpu").get_allocator(pinned=True).memory_kind == wp.MemoryKind.PINNED


def test_memory_pools_are_of_cuda_devices():
    assert not wp.is_mempool_supported("cpu") and not wp.is_mempool_enabled("cpu")
    assert not wp.is_mempool_access_supported("cpu", "cpu")
    wp.set_mempool_enabled("cpu", False)
    for ask in (
        lambda: wp.set_mempool_enabled("cpu", True),
        lambda: wp.get_mempool_release_threshold("cpu"),
        lambda: wp.set_mempool_release_threshold("cpu", 0),
        lambda: wp.get_mempool_used_mem_high("cpu"),
        lambda: wp.set_peer_access_enabled("cpu", "cpu", True),
        lambda: wp.ScopedMempool("cpu", True).__enter__(),
        lambda: wp.ScopedPeerAccess("cpu", "cpu", True).__enter__(),
    ):
        with pytest.raises(ValueError, match="CUDA devices, and the CPU is none"):
            ask()


def test_conditions_outside_of_a_graph():
    said = []
    for value in (2, 0):
        condition = wp.array([value], dtype=int)
        wp.capture_if(condition, on_true=lambda n: said.append(n), on_false=lambda n: said.append(-n), n=7)
    wp.capture_if(wp.array([0], dtype=int), on_true=said.clear)
    assert said == [7, -7]
    count = wp.array([4], dtype=int)
    wp.capture_while(count, lambda: count.assign(count.numpy() - 1))
    assert count.list() == [0]
    for wrong in (3, wp.zeros(1), wp.zeros(0, dtype=int)):
        with pytest.raises(TypeError, match="expected an array of int32 with an element"):
            wp.capture_while(wrong, said.clear)
    with pytest.raises(TypeError, match="while_body is None, expected a function"):
        wp.capture_while(count, None)


def test_cpus_have_no_clusters(device):
    @wp.kernel(cluster_dim=2)
    def kernel(x: wp.array[float]):
        x[0] = 1.0

    assert wp.get_cuda_max_cluster_dim(kernel, device) == 1
    assert wp.get_cuda_max_cluster_dim(kernel, device, block_dim=64, dynamic_smem_bytes=0) == 1
    with pytest.raises(TypeError, match="expected a kernel, got 3"):
        wp.get_cuda_max_cluster_dim(3, device)
    with pytest.raises(ValueError, match="cuda:99"):
        wp.get_cuda_max_cluster_dim(kernel, "cuda:99")


def test_questions_about_cuda():
    assert wp.get_cuda_driver_version() is None and wp.get_cuda_toolkit_version() is None
    assert wp.get_cuda_supported_archs() == [] and wp.is_conditional_graph_supported() is False

    @wp.kernel
    def kernel(x: wp.array[float]):
        x[0] = 1.0

    assert wp.get_suggested_block_size(kernel, "cpu") == (1, 1)
    with pytest.raises(TypeError, match="expected a kernel, got 3"):
        wp.get_suggested_block_size(3)
    facts = wp.print_diagnostics()
    assert facts["cuda_enabled"] is False and facts["cuda_driver"] is facts["cuda_toolkit"] is None
    with pytest.raises(RuntimeError, match="'mine' cannot name a context: there is no CUDA device"):
        wp.map_cuda_device("mine", 1)
    with pytest.raises(RuntimeError, match="'cuda:0' names no context"):
        wp.unmap_cuda_device("cuda:0")
    with pytest.raises(IndexError, match="there is no device 'cuda:0'"):
        wp.get_cuda_device(0)


def test_enumerations_are_ints():
    assert wp.TextureFilterMode.LINEAR == 1 and wp.TextureAddressMode.BORDER == 3
    assert wp.CaptureMode(1) is wp.CaptureMode.THREAD_LOCAL and wp.MemoryKind["HOST"] == 1
    assert [mode.name for mode in wp.DeterministicMode] == ["NOT_GUARANTEED", "RUN_TO_RUN", "GPU_TO_GPU"]
    assert wp.config.LaunchArrayAccessMode.STRICT == 2
