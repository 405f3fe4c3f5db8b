"""Memory of CUDA devices: pools, access between devices, pinned memory, and exhausted memory. On the
emulated devices, which stop a kernel that touches memory which is not open to it."""

import gc
import os

import numpy as np
import pytest
import warp as wp

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.usefixtures("two_gpus"),
    pytest.mark.own_launches("counts launches, orders them or makes them fail"),
]
DEVICE, OTHER = "cuda:0", "cuda:1"


@wp.kernel
def double(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = 2.0 * x[i]


# ---- pools ----


def test_the_pool_counts_what_arrays_use():
    wp.synchronize()
    before = wp.get_mempool_used_mem_current(DEVICE)
    x = wp.zeros(1000, dtype=float, device=DEVICE)
    assert wp.is_mempool_supported(DEVICE) and wp.is_mempool_enabled(DEVICE)
    assert x.memory_kind == wp.MemoryKind.CUDA_MEMPOOL
    assert wp.get_mempool_used_mem_current(DEVICE) - before == 4000
    assert wp.get_mempool_used_mem_high(DEVICE) >= wp.get_mempool_used_mem_current(DEVICE)
    del x
    wp.synchronize()
    assert wp.get_mempool_used_mem_current(DEVICE) == before
    assert wp.get_mempool_used_mem_high(DEVICE) >= before + 4000


def test_without_the_pool_memory_is_the_driver_s():
    wp.synchronize()
    before = wp.get_mempool_used_mem_current(DEVICE)
    pooled = wp.full(100, 1.0, device=DEVICE)
    with wp.ScopedMempool(DEVICE, False):
        assert not wp.is_mempool_enabled(DEVICE) and not wp.get_device(DEVICE).is_mempool_enabled
        plain = wp.full(100, 2.0, device=DEVICE)
        assert plain.memory_kind == wp.MemoryKind.CUDA_DEVICE
        assert pooled.memory_kind == wp.MemoryKind.CUDA_MEMPOOL
        wp.launch(double, 100, inputs=[pooled, plain], device=DEVICE)
    assert wp.is_mempool_enabled(DEVICE)
    assert plain.numpy().tolist() == [2.0] * 100
    del plain, pooled  # each goes back to where it came from
    wp.synchronize()
    assert wp.get_mempool_used_mem_current(DEVICE) <= before  # streams may have given theirs back


def test_pools_can_be_off_from_the_beginning(run):
    printed = run("""
        wp.config.enable_mempools_at_init = False
        x = wp.full(10, 3.0, device="cuda:0")
        print(wp.is_mempool_enabled("cuda:0"), x.memory_kind.name, x.numpy().sum(), wp.is_mempool_supported("cuda:0"))
        wp.set_mempool_enabled("cuda:0", True)
        print(wp.zeros(1, device="cuda:0").memory_kind.name)
    """)
    assert printed == "False CUDA_DEVICE 30.0 True\nCUDA_MEMPOOL\n"


def test_the_release_threshold_says_what_stays(run):
    printed = run("""
        device = wp.get_device("cuda:0")
        print(wp.get_mempool_release_threshold(device) == 2**64 - 1)
        x = wp.zeros(1 << 20, dtype=wp.uint8, device=device)
        wp.synchronize()
        free = device.free_memory
        del x
        wp.synchronize()
        print(device.free_memory - free)   # kept
        wp.set_mempool_release_threshold(device, 1 << 19)
        print(wp.get_mempool_release_threshold(device))
        wp.zeros(1, device=device).numpy()
        wp.synchronize()
        print((device.free_memory - free) >> 10)
        wp.set_mempool_release_threshold(device, 0.5)
        print(wp.get_mempool_release_threshold(device) / device.total_memory)
        wp.set_mempool_release_threshold(device, 0)
        wp.zeros(1, device=device).numpy()
        wp.synchronize()
        print(device.free_memory - free >= 1 << 20)
    """)
    assert printed == "True\n0\n524288\n512\n0.5\nTrue\n"


@pytest.mark.parametrize("wrong, error", [(-1, ValueError), (2.0**64, ValueError), ("1", TypeError), (True, TypeError)])
def test_a_wrong_release_threshold_is_an_error_and_changes_nothing(wrong, error):
    before = wp.get_mempool_release_threshold(DEVICE)
    with pytest.raises(error, match="threshold"):
        wp.set_mempool_release_threshold(DEVICE, wrong)
    assert wp.get_mempool_release_threshold(DEVICE) == before


def test_settings_of_the_cpu_are_errors_that_name_it():
    for wrong in (
        lambda: wp.set_mempool_enabled("cpu", True),
        lambda: wp.get_mempool_release_threshold("cpu"),
        lambda: wp.set_mempool_access_enabled("cpu", DEVICE, True),
        lambda: wp.set_peer_access_enabled(DEVICE, "cpu", True),
    ):
        with pytest.raises(ValueError, match="CUDA devices, and the CPU is none"):
            wrong()
    wp.set_peer_access_enabled(DEVICE, "cpu", False)
    with wp.ScopedMempool("cpu", False), wp.ScopedPeerAccess("cpu", DEVICE, False):
        assert not wp.is_mempool_enabled("cpu") and not wp.is_peer_access_supported("cpu", DEVICE)


def test_memory_by_an_allocator():
    device = wp.get_device(DEVICE)
    wp.synchronize()
    before = wp.get_mempool_used_mem_current(DEVICE)
    allocator = device.get_allocator()
    address = allocator.allocate(400)
    assert allocator.memory_kind == wp.MemoryKind.CUDA_MEMPOOL
    assert wp.get_mempool_used_mem_current(DEVICE) == before + 400
    x = wp.array(ptr=address, dtype=float, shape=100, device=DEVICE)
    x.fill_(5.0)
    assert x.numpy().sum() == 500.0
    allocator.deallocate(address, 400)
    wp.synchronize()
    assert wp.get_mempool_used_mem_current(DEVICE) == before


# ---- access between devices ----


def launch_with_memory_of_the_other(x):
    y = wp.zeros(len(x), dtype=float, device=OTHER)
    wp.synchronize()  # the devices do not wait for each other
    wp.launch(double, len(x), inputs=[x, y], device=OTHER)
    return y.numpy()


def test_memory_of_a_pool_is_open_where_the_program_opens_it():
    x = wp.array(np.arange(10), dtype=float, device=DEVICE)
    assert wp.is_mempool_access_supported(DEVICE, OTHER) and wp.is_mempool_access_enabled(DEVICE, DEVICE)
    assert not wp.is_mempool_access_enabled(DEVICE, OTHER) and not wp.can_access(OTHER, x)
    with pytest.raises(RuntimeError, match="'x' of kernel 'double' is .* on 'cuda:0', the launch is on 'cuda:1'"):
        launch_with_memory_of_the_other(x)
    with wp.ScopedPeerAccess(DEVICE, OTHER, True):  # is for other memory
        assert not wp.can_access(OTHER, x)
    with wp.ScopedMempoolAccess(DEVICE, OTHER, True):
        assert wp.is_mempool_access_enabled(DEVICE, OTHER) and not wp.is_mempool_access_enabled(OTHER, DEVICE)
        assert wp.can_access(OTHER, x) and not wp.can_access(DEVICE, wp.zeros(1, device=OTHER))
        np.testing.assert_array_equal(launch_with_memory_of_the_other(x), 2.0 * np.arange(10))
    assert not wp.is_mempool_access_enabled(DEVICE, OTHER)
    with pytest.raises(RuntimeError, match="the launch is on 'cuda:1'"):
        launch_with_memory_of_the_other(x)


def test_plain_memory_is_open_where_the_program_opens_it():
    with wp.ScopedMempool(DEVICE, False):
        x = wp.array(np.arange(10), dtype=float, device=DEVICE)
    assert wp.is_peer_access_supported(DEVICE, OTHER) and wp.is_peer_access_enabled(DEVICE, DEVICE)
    assert not wp.is_peer_access_enabled(DEVICE, OTHER)
    with wp.ScopedMempoolAccess(DEVICE, OTHER, True), pytest.raises(RuntimeError, match="the launch is on 'cuda:1'"):
        launch_with_memory_of_the_other(x)
    with wp.ScopedPeerAccess(DEVICE, OTHER, True):
        assert wp.is_peer_access_enabled(DEVICE, OTHER) and not wp.is_peer_access_enabled(OTHER, DEVICE)
        assert wp.get_device(OTHER).can_access(DEVICE) and not wp.get_device(DEVICE).can_access(OTHER)
        np.testing.assert_array_equal(launch_with_memory_of_the_other(x), 2.0 * np.arange(10))
        with wp.ScopedPeerAccess(DEVICE, OTHER, False):
            assert not wp.is_peer_access_enabled(DEVICE, OTHER)
        assert wp.is_peer_access_enabled(DEVICE, OTHER)
    assert not wp.is_peer_access_enabled(DEVICE, OTHER)


@pytest.mark.parametrize("pool, said", [(True, "cuMemPoolSetAccess"), (False, "cuCtxEnablePeerAccess")])
def test_the_emulated_device_stops_a_kernel_that_touches_closed_memory(run, pool, said):
    """A pointer that the launch does not know of."""
    printed = run(f"""
        @wp.kernel
        def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = 2.0 * x[i]

        with wp.ScopedMempool("cuda:0", {pool}):
            x = wp.ones(4, dtype=float, device="cuda:0")
        wp.synchronize()
        stolen = wp.array(ptr=x.ptr, dtype=float, shape=4, device="cuda:1")
        y = wp.zeros(4, dtype=float, device="cuda:1")
        wp.launch(double, 4, inputs=[stolen, y], device="cuda:1")
        try:
            wp.synchronize()
        except RuntimeError as error:
            print(error)
    """)
    assert "no peer access" in printed and said in printed and "on device 0, which is not open to it" in printed


@pytest.mark.parametrize("pool", [True, False])
def test_copies_between_devices_need_no_access_and_wait_for_each_other(pool):
    with wp.ScopedMempool(DEVICE, pool):
        x = wp.array(np.arange(24, dtype=np.float32).reshape(4, 6), device=DEVICE)
        scratch = wp.zeros(24, dtype=float, device=DEVICE)
    for _ in range(3):
        wp.launch(double, 24, inputs=[x.flatten(), scratch], device=DEVICE)
        wp.copy(x.flatten(), scratch)
    y = wp.zeros((4, 6), dtype=float, device=OTHER)
    wp.copy(y, x)
    x.fill_(-1.0)  # comes after the copy
    np.testing.assert_array_equal(y.numpy(), 8.0 * np.arange(24).reshape(4, 6))
    z = wp.zeros((6, 4), dtype=float, device=DEVICE)
    wp.copy(z.transpose()[::2], y[::2])
    np.testing.assert_array_equal(z.numpy().T[::2], y.numpy()[::2])
    assert not z.numpy().T[1::2].any()
    del x, y
    wp.synchronize()


# ---- pinned memory ----


def test_pinned_memory_is_the_host_s_and_the_device_reaches_it():
    x = wp.array(np.arange(5), dtype=float, device="cpu", pinned=True)
    assert x.pinned and x.memory_kind == wp.MemoryKind.PINNED and x.numpy().tolist() == [0, 1, 2, 3, 4]
    assert wp.zeros(3, device="cpu").memory_kind == wp.MemoryKind.HOST
    for made in (
        wp.empty(3, device="cpu", pinned=True),
        wp.zeros_like(x),
        wp.clone(x),
        wp.ones(3, device="cpu", pinned=True),
        wp.empty_like(wp.zeros(3, device="cpu"), pinned=True),
    ):
        assert made.pinned and made.memory_kind == wp.MemoryKind.PINNED
    assert not wp.zeros(3, device="cpu", pinned=True).numpy().any()
    on_device = wp.zeros(3, device=DEVICE, pinned=True)
    assert not on_device.pinned and on_device.memory_kind == wp.MemoryKind.CUDA_MEMPOOL
    wp.launch(double, 5, inputs=[x, x], device="cpu")  # memory of the CPU like any other
    assert x.numpy().tolist() == [0, 2, 4, 6, 8]


def test_copies_of_pinned_memory_take_place_in_the_order_of_the_stream():
    """The emulated streams are as late as they may be: numbers of the host count when the copy's turn has come."""
    there = wp.zeros(4, dtype=float, device=DEVICE)
    host = wp.full(4, 1.0, device="cpu", pinned=True)
    wp.synchronize()
    wp.copy(there, host)
    back = wp.full(4, -1.0, device="cpu", pinned=True)
    wp.copy(back, there)
    late = back.numpy().tolist() == [-1.0] * 4
    wp.synchronize()
    assert back.numpy().tolist() == [1.0] * 4
    if wp.get_device(DEVICE).is_emulated and os.environ.get("WEFT_EMULATED_STREAMS", "0") == "0":
        assert late


def test_a_graph_reads_pinned_memory_at_each_launch():
    """And other memory of the host at the capture."""
    pinned, plain = (wp.full(3, 1.0, dtype=float, device="cpu", pinned=is_pinned) for is_pinned in (True, False))
    x, y = (wp.zeros(3, dtype=float, device=DEVICE) for _ in range(2))
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.copy(x, pinned)
        wp.copy(y, plain)
    for number in (5.0, 6.0):
        pinned.fill_(number)
        plain.fill_(number)
        wp.capture_launch(capture.graph)
        assert x.list() == [number] * 3 and y.list() == [1.0] * 3
    del pinned  # the graph keeps it
    others = [wp.full(3, 9.0, dtype=float, device="cpu", pinned=True) for _ in range(4)]
    x.zero_()
    wp.capture_launch(capture.graph)
    assert x.list() == [6.0] * 3 and len(others) == 4


def test_other_copies_of_pinned_memory_are_done_when_they_return():
    host = wp.full(4, 1.0, device="cpu", pinned=True)
    there = host.to(DEVICE)
    host.fill_(2.0)
    assert there.numpy().tolist() == [1.0] * 4
    assert wp.clone(there, device="cpu", pinned=True).numpy().tolist() == [1.0] * 4
    ordinary = wp.full(4, 3.0, device="cpu")
    wp.copy(there, ordinary)  # the driver has read it
    ordinary.fill_(4.0)
    assert there.numpy().tolist() == [3.0] * 4


def test_pinned_memory_that_nobody_has_any_more_is_freed_after_its_copies():
    there = wp.zeros(1000, dtype=float, device=DEVICE)
    for i in range(5):
        host = wp.full(1000, float(i), device="cpu", pinned=True)
        wp.copy(there, host)
        del host
    assert there.numpy().tolist() == [4.0] * 1000


# ---- exhausted memory ----


BUSY = """
import time
import warp as wp
@wp.kernel
def wait(x: wp.array[int]):
    while x[0] < 1:
        x[1] = x[1] + 1
x = wp.zeros(2, dtype=int, device="cuda:0")
pinned = wp.zeros(4, dtype=float, device="cpu", pinned=True)
with wp.ScopedMempool("cuda:0", False):
    plain = wp.zeros(4, dtype=float, device="cuda:0")
wp.synchronize()
wp.launch(wait, 1, inputs=[x], device="cuda:0")
start = time.monotonic()
del pinned, plain
more = wp.zeros(4, dtype=float, device="cpu", pinned=True)
print("went on", flush=True)
import os; os._exit(0)
"""


def test_memory_is_given_back_while_a_kernel_runs_that_does_not_end(run):
    """The driver frees pinned and plain memory when all work is done: no thread waits for that, with Python's lock held
    and deaf to Ctrl-C."""
    assert "went on" in run(BUSY, WARP_CUDA_DRIVER="emulated")


def test_memory_that_is_given_back_while_something_runs_is_freed():
    x = wp.zeros(1 << 16, dtype=float, device=DEVICE)
    with wp.ScopedMempool(DEVICE, False):
        plain = [wp.zeros(1 << 20, dtype=float, device=DEVICE) for _ in range(3)]
    wp.synchronize_device(DEVICE)
    before = wp.get_device(DEVICE).free_memory
    x.fill_(1.0)
    del plain
    wp.synchronize_device(DEVICE)
    assert wp.get_device(DEVICE).free_memory >= before + (3 << 22)


def test_objects_that_are_dropped_while_the_device_works_do_not_gather():
    """There is work in the stream each time that a mesh is dropped: later work is no reason to keep it."""
    n = 300
    i, j = np.indices((n - 1, n - 1)).reshape(2, -1)
    corner = i * n + j
    faces = wp.array(np.stack([corner, corner + 1, corner + n], axis=1).reshape(-1), dtype=int, device=DEVICE)
    points = wp.array(np.random.default_rng(0).random((n * n, 3)), dtype=wp.vec3, device=DEVICE)
    x, y = (wp.zeros(1 << 16, dtype=float, device=DEVICE) for _ in range(2))

    def most_used(count):
        most = 0
        for _ in range(count):
            wp.launch(double, len(x), inputs=[x, y], device=DEVICE)
            mesh = wp.Mesh(points, faces)
            wp.launch(double, len(x), inputs=[x, y], device=DEVICE)
            del mesh
            most = max(most, wp.get_mempool_used_mem_current(DEVICE))
        return most

    def drain():
        for _ in range(2):  # the first call frees in the order of the stream
            wp.synchronize_device(DEVICE)

    most_used(1)  # makes the table of ids, too
    drain()
    before = wp.get_mempool_used_mem_current(DEVICE)
    one = most_used(1) - before
    assert one > 1 << 20
    assert most_used(20) - before < 8 * one
    drain()
    assert wp.get_mempool_used_mem_current(DEVICE) == before


def test_an_error_says_what_was_asked_for_and_what_is_there():
    total = wp.get_device(DEVICE).total_memory
    with pytest.raises(
        MemoryError, match=r"cannot allocate 8,796,093,022,208 bytes on 'cuda:0': .* bytes are free"
    ) as e:
        wp.zeros(1 << 40, dtype=wp.float64, device=DEVICE)
    assert f"of {total:,} bytes are free" in str(e.value) and "help: delete arrays" in str(e.value)
    assert wp.ones(4, device=DEVICE).numpy().sum() == 4.0


def test_memory_of_the_pool_and_garbage_are_given_back_first(run):
    printed = run(
        """
        device = wp.get_device("cuda:0")

        class Node:
            pass

        gc.disable()
        node = Node()
        node.me, node.x = node, wp.zeros(700_000, dtype=wp.uint8, device=device)
        del node                                       # only a cycle has it
        y = wp.zeros(700_000, dtype=wp.uint8, device=device)
        print("collected", y.numpy().sum())
        del y
        wp.synchronize()
        wp.set_mempool_enabled(device, False)          # what the pool keeps is nobody's
        z = wp.zeros(900_000, dtype=wp.uint8, device=device)
        print("trimmed", z.memory_kind.name)
        try:
            wp.zeros(900_000, dtype=wp.uint8, device=device)
        except MemoryError as error:
            print(str(error).split(". help")[0])
        del z
        print(wp.ones(900_000, dtype=wp.uint8, device=device).numpy().sum())
        """,
        WEFT_EMULATED_MEMORY="1000000",
    )
    assert printed == (
        "collected 0\ntrimmed CUDA_DEVICE\narray memory: cannot allocate 900,000 bytes on 'cuda:0': 100,000 of "
        "1,000,000 bytes are free\n900000\n"
    )


def test_a_launch_without_memory_for_its_reports_is_an_error_and_everything_goes_on(run):
    printed = run(
        """
        @wp.kernel
        def shout(x: wp.array(dtype=wp.uint8)):
            print(x[wp.tid()])

        x = wp.full(3_000_000, 7, dtype=wp.uint8, device="cuda:0")
        wp.synchronize()
        y = wp.zeros(500_000, dtype=wp.uint8, device="cuda:0")
        try:
            wp.launch(shout, 1, inputs=[x], device="cuda:0")
        except MemoryError as error:
            print("no room", "launch()" in str(error), "'cuda:0'" in str(error))
        del y
        wp.launch(shout, 1, inputs=[x], device="cuda:0")
        wp.synchronize()
        """,
        WEFT_EMULATED_MEMORY="4200000",
    )
    assert printed == "no room True True\n7\n"


def test_memory_that_is_kept_for_reports_is_given_back_first(run):
    printed = run(
        """
        @wp.kernel
        def shout(x: wp.array(dtype=wp.uint8)):
            print(x[wp.tid()])

        x = wp.full(10, 7, dtype=wp.uint8, device="cuda:0")
        for _ in range(3):                             # each has a megabyte for what it prints
            wp.launch(shout, 1, inputs=[x], device="cuda:0")
        wp.synchronize()
        y = wp.ones(3_500_000, dtype=wp.uint8, device="cuda:0")
        print(y.numpy().sum())
        del y
        wp.launch(shout, 1, inputs=[x], device="cuda:0")
        wp.synchronize()
        """,
        WEFT_EMULATED_MEMORY="4200000",
    )
    assert printed == "7\n7\n7\n3500000\n7\n"


# ---- how kernels are launched ----


def test_launch_bounds_are_in_the_code_and_hold_for_launches():
    @wp.kernel(launch_bounds=(128, 4))
    def bounded(x: wp.array[float]):
        i = wp.tid()
        x[i] = x[i] + wp.float32(wp.block_dim())

    @wp.kernel(launch_bounds=64)
    def small(x: wp.array[float]):
        i = wp.tid()
        x[i] = x[i] + 1.0

    ptx = bounded.listing("assembly", device=DEVICE)
    assert ".maxntid 128" in ptx and ".minnctapersm 4" in ptx
    assert ".maxntid 64" in small.listing("assembly", device=DEVICE)
    assert ".minnctapersm" not in small.listing("assembly", device=DEVICE)
    assert ".maxntid" not in double.listing("assembly", device=DEVICE)
    x = wp.zeros(500, dtype=float, device=DEVICE, requires_grad=True)
    wp.launch(bounded, 500, inputs=[x], device=DEVICE)  # in blocks that it allows
    assert (x.numpy() == 128.0).all()
    wp.launch(bounded, 500, inputs=[x], device=DEVICE, block_dim=32)
    assert (x.numpy() == 160.0).all()
    with pytest.raises(ValueError, match="block_dim is 256, and kernel 'bounded' was made for blocks of at most 128"):
        wp.launch(bounded, 500, inputs=[x], device=DEVICE, block_dim=256)
    wp.launch(bounded, 500, inputs=[wp.zeros(500, device="cpu")], device="cpu", block_dim=256)
    with wp.Tape() as tape:
        wp.launch(small, 500, inputs=[x], device=DEVICE)
    tape.backward(grads={x: wp.ones(500, dtype=float, device=DEVICE)})
    assert (x.numpy() == 161.0).all() and (x.grad.numpy() == 1.0).all()


def test_launch_bounds_are_a_part_of_the_hash():
    def make(bounds):
        @wp.kernel(launch_bounds=bounds, module="unique")
        def same(x: wp.array[float]):
            x[wp.tid()] = 1.0

        return same

    hashes = {make(bounds)._content_hash() for bounds in (None, 64, (64, 2), 128)}
    assert len(hashes) == 4
    for kernel in (make(None), make(64)):
        kernel.compile(DEVICE)
    assert ".maxntid 64" in make(64).listing("assembly", device=DEVICE)
    assert ".maxntid" not in make(None).listing("assembly", device=DEVICE)


def test_a_block_size_is_suggested():
    threads, blocks = wp.get_suggested_block_size(double, DEVICE)
    assert threads % 32 == 0 and 32 <= threads <= 1024 and blocks >= wp.get_device(DEVICE).sm_count

    @wp.kernel(launch_bounds=96)
    def small(x: wp.array[float]):
        x[wp.tid()] = 1.0

    assert wp.get_suggested_block_size(small, DEVICE)[0] <= 96
    assert wp.get_suggested_block_size(double, "cpu") == (1, 1)


def test_what_the_driver_is():
    major, minor = wp.get_cuda_driver_version()
    assert major >= 10 and 0 <= minor < 100 and wp.get_cuda_toolkit_version() is None
    archs = wp.get_cuda_supported_archs()
    assert archs == sorted(archs) and {75, 80, 90, 120} <= set(archs) and wp.get_device(DEVICE).arch in archs


def test_diagnostics_name_the_driver_and_the_devices(capsys):
    facts = wp.print_diagnostics()
    assert facts["cuda_enabled"] is True and facts["cuda_driver"] == wp.get_cuda_driver_version()
    assert facts["cuda_toolkit"] is None and DEVICE in [device["alias"] for device in facts["devices"]]
    printed = capsys.readouterr().out
    assert "cuda_enabled: True\n" in printed and f"cuda_driver: {wp.get_cuda_driver_version()}\n" in printed


# ---- without pools, in a capture ----


@wp.kernel
def add_one(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[i] + 1.0


@pytest.mark.parametrize("mode", list(wp.CaptureMode))
def test_a_capture_makes_arrays_without_the_pool(mode):
    """The driver gives plain memory beside the capture, which the graph keeps, and gets it back with the graph."""
    out = wp.zeros(100, dtype=float, device=DEVICE)
    wp.launch(add_one, 100, inputs=[out], device=DEVICE)
    with wp.ScopedMempool(DEVICE, False):
        for _ in range(3):
            wp.synchronize()
            before = wp.get_device(DEVICE).free_memory
            with wp.ScopedCapture(device=DEVICE, capture_mode=mode) as capture:
                made = wp.zeros(100, dtype=float, device=DEVICE)
                wp.launch(add_one, 100, inputs=[made], device=DEVICE)
                other = wp.full(100, 4.0, dtype=float, device=DEVICE)
                del made  # the next one may have its memory
                third = wp.array(np.full(100, 2.0, dtype=np.float32), device=DEVICE)
                wp.launch(add_one, 100, inputs=[third], device=DEVICE)
                wp.copy(out, other)
                wp.launch(add_one, 100, inputs=[out], device=DEVICE)
                wp.copy(out, third, count=50)
                del other, third
            for _ in range(2):
                wp.capture_launch(capture.graph)
                assert out.list() == [3.0] * 50 + [5.0] * 50
            del capture
            gc.collect()
            wp.synchronize()
            assert wp.get_device(DEVICE).free_memory == before
