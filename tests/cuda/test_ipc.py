"""Memory and events of CUDA devices that processes share."""

import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]
DEVICE = "cuda:0"


@pytest.fixture
def plain():
    """Arrays are made outside of the pool, whose memory the driver does not share."""
    was_on = wp.is_mempool_enabled(DEVICE)
    wp.set_mempool_enabled(DEVICE, False)
    yield
    wp.set_mempool_enabled(DEVICE, was_on)


OTHER = """
    @wp.kernel
    def double(a: wp.array(dtype=float)):
        i = wp.tid()
        a[i] = 2.0 * a[i]

    handle = bytes.fromhex("{handle}")
    with wp.ScopedDevice("cuda:0"):
        a = wp.from_ipc_handle(handle, dtype=float, shape=(5,))
        rows = wp.from_ipc_handle(handle, dtype=float, shape=(2, 2), strides=(8, 4), device="cuda:0")
        assert rows.ptr == a.ptr and a.device.alias == "cuda:0"
        print(a.list(), rows.numpy().tolist())
        wp.launch(double, dim=5, inputs=[a])
        wp.synchronize()
        del a
        gc.collect()
        rows.fill_(7.0)
        wp.synchronize()
        for shape in (6000, (3000, 2)):
            try:
                wp.from_ipc_handle(handle, dtype=float, shape=shape)
            except ValueError as error:
                print("bytes" in str(error))
        del rows
        gc.collect()
        again = wp.from_ipc_handle(handle, dtype=float, shape=5)
        print(again.list())
"""


def test_another_process_sees_and_changes_the_memory(run, plain):
    assert wp.get_device(DEVICE).is_ipc_supported and not wp.get_device("cpu").is_ipc_supported
    a = wp.array([1.0, 2.0, 3.0, 4.0, 5.0], dtype=float, device=DEVICE)
    handle = a.ipc_handle()
    assert isinstance(handle, bytes) and len(handle) == 64 and a.ipc_handle() == handle
    wp.synchronize()
    said = run(OTHER.format(handle=handle.hex())).splitlines()
    assert said[0] == "[1.0, 2.0, 3.0, 4.0, 5.0] [[1.0, 2.0], [3.0, 4.0]]"
    assert said[1:3] == ["True", "True"]
    assert said[3] == "[7.0, 7.0, 7.0, 7.0, 10.0]"
    assert a.list() == [7.0, 7.0, 7.0, 7.0, 10.0]  # the other process's result


def test_what_has_no_handle_says_so(plain):
    a = wp.zeros(8, device=DEVICE)
    with pytest.raises(
        RuntimeError, match=r"array.ipc_handle\(\): a handle is for whole memory, .* begins 8 bytes behind"
    ):
        a[2:].ipc_handle()
    assert a[:2].ipc_handle() == a.ipc_handle()
    with pytest.raises(RuntimeError, match="a handle is for whole memory"):
        wp.zeros(0, device=DEVICE).ipc_handle()
    wp.set_mempool_enabled(DEVICE, True)
    with pytest.raises(
        RuntimeError, match=r"in memory of the pool of 'cuda:0', .*set_mempool_enabled\('cuda:0', False\)"
    ):
        wp.zeros(8, device=DEVICE).ipc_handle()


def test_handles_that_open_nothing_say_so(run, plain):
    a = wp.zeros(8, device=DEVICE)
    with pytest.raises(RuntimeError, match="the memory belongs to this process"):
        wp.from_ipc_handle(a.ipc_handle(), dtype=float, shape=8, device=DEVICE)
    with pytest.raises(ValueError, match="handle is 3 bytes, expected the 64 bytes"):
        wp.from_ipc_handle(b"abc", dtype=float, shape=8, device=DEVICE)
    with pytest.raises(ValueError, match="handle is 'abc', expected the 64 bytes"):
        wp.from_ipc_handle("abc", dtype=float, shape=8, device=DEVICE)
    with pytest.raises(RuntimeError, match="knows no memory of this handle"):
        wp.from_ipc_handle(b"x" * 64, dtype=float, shape=8, device=DEVICE)
    handle = a.ipc_handle().hex()
    del a  # whose memory goes
    wp.synchronize()
    said = run(
        f"""
        try:
            wp.from_ipc_handle(bytes.fromhex("{handle}"), dtype=float, shape=8, device="cuda:0")
        except RuntimeError as error:
            print(error)
        """
    )
    assert "knows no memory of this handle" in said


OTHER_WAITS = """
    @wp.kernel
    def double(a: wp.array(dtype=float)):
        i = wp.tid()
        a[i] = 2.0 * a[i]

    written = wp.event_from_ipc_handle(bytes.fromhex("{written}"), "cuda:0")
    doubled = wp.event_from_ipc_handle(bytes.fromhex("{doubled}"), "cuda:0")
    with wp.ScopedDevice("cuda:0"):
        a = wp.from_ipc_handle(bytes.fromhex("{memory}"), dtype=float, shape=5)
        wp.wait_event(written)
        wp.launch(double, dim=5, inputs=[a])
        wp.record_event(doubled)
        wp.wait_event(doubled)
        print(written.is_complete, a.list(), written.device, len(doubled.ipc_handle()))
"""


def test_events_order_the_work_of_two_processes(run, plain):
    a = wp.zeros(5, dtype=float, device=DEVICE)
    written, doubled = (wp.Event(DEVICE, interprocess=True) for _ in range(2))
    assert len(written.ipc_handle()) == 64 and written.ipc_handle() == written.ipc_handle() != doubled.ipc_handle()
    a.fill_(3.0)
    wp.get_stream(DEVICE).record_event(written)
    handles = {"written": written, "doubled": doubled, "memory": a}
    said = run(OTHER_WAITS.format(**{name: one.ipc_handle().hex() for name, one in handles.items()}))
    assert said.split("\n")[0] == "True [6.0, 6.0, 6.0, 6.0, 6.0] cuda:0 64"
    wp.get_stream(DEVICE).wait_event(doubled)
    assert a.list() == [6.0] * 5 and doubled.is_complete


def test_handles_of_no_event_say_so(run):
    with pytest.raises(RuntimeError, match=r"the event belongs to this process. help: wp.Event\(interprocess=True\)"):
        wp.Event(DEVICE).ipc_handle()
    event = wp.Event(DEVICE, interprocess=True)
    with pytest.raises(RuntimeError, match="the event belongs to this process: a handle is for other processes"):
        wp.event_from_ipc_handle(event.ipc_handle(), DEVICE)
    with pytest.raises(RuntimeError, match="events of 'cpu' cannot be shared"):
        wp.event_from_ipc_handle(event.ipc_handle(), "cpu")
    with pytest.raises(RuntimeError, match="'cuda:0' knows no event of this handle"):
        wp.event_from_ipc_handle(b"x" * 64, DEVICE)
    for wrong in (b"abc", "abc", 1):
        with pytest.raises(ValueError, match="expected the 64 bytes that Event.ipc_handle"):
            wp.event_from_ipc_handle(wrong, DEVICE)
    handle = event.ipc_handle().hex()
    del event
    said = run(
        f"""
        try:
            wp.event_from_ipc_handle(bytes.fromhex("{handle}"), "cuda:0")
        except RuntimeError as error:
            print(error)
        """
    )
    assert "knows no event of this handle" in said
