"""The contract on devices, arrays and launches with GPUs: the halves that a CPU cannot show."""

import gc

import numpy as np
import pytest
import warp as wp
from cuda_array_kernels import DEVICE, Shown, saxpy

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]


# ---- start and devices ----
@pytest.mark.seed("S-INI-002", "S-INI-003", "S-INI-004", "S-INI-008")
@pytest.mark.parametrize("start", ["", "wp.init(); wp.init()", "wp.context.init(); wp.init()"])
def test_a_program_starts_by_itself_or_when_it_is_told_to(run, start):
    printed = run(f"""
        for name, value in dict(verify_fp=False, print_launches=False, verbose=False, enable_backward=True,
                                cuda_path=None, host_path=None, host_compiler=None).items():
            setattr(wp.config, name, value)
        {start}

        @wp.kernel
        def double(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = 2.0 * x[i]

        x = wp.array([1.0, 2.0], dtype=float, device="cuda")
        wp.launch(double, dim=2, inputs=[x], device="cuda")
        wp.init()
        print(x.numpy().tolist(), isinstance(x.device, wp.context.Device))
    """)
    assert printed == "[2.0, 4.0] True\n"


@pytest.mark.seed("S-INI-006")
def test_debug_mode_names_kernel_array_and_index_on_the_device(run):
    """In a kernel that release mode has compiled before, and whose process goes on."""
    printed = run("""
        @wp.kernel
        def beyond(values: wp.array(dtype=float), n: int):
            i = wp.tid()
            values[i + n] = values[i + n] + 1.0

        x = wp.zeros(4, device="cuda:0")
        wp.launch(beyond, dim=4, inputs=[x, 0], device="cuda:0")
        wp.config.mode = "debug"
        try:
            wp.launch(beyond, dim=2, inputs=[x, 3], device="cuda:0")
            wp.synchronize()
        except IndexError as error:
            print(error)
        wp.launch(beyond, dim=4, inputs=[x, 0], device="cuda:0")
        print(x.numpy()[:3].tolist())
    """)
    said, after = printed.rstrip().rsplit("\n", 1)
    assert "index 4 is out of bounds" in said and "'values'" in said and "kernel 'beyond', thread (1,)" in said, said
    assert after == "[2.0, 2.0, 2.0]"


@pytest.mark.seed("S-INI-010", "S-INI-011")
def test_devices_and_their_names_are_interchangeable():
    device = wp.get_device(DEVICE)
    assert wp.get_device(device) is device and device == DEVICE and str(device) == DEVICE and device != "cpu"
    assert hash(device) == hash(DEVICE) and {device: 1}[DEVICE] == 1 and device.is_cuda and not device.is_cpu
    a = wp.ones(3, device=device)
    assert a.device is device and a.to(DEVICE) is a and wp.zeros_like(a, device="cpu").device == "cpu"
    y = wp.zeros(3, device=a.device)
    wp.launch(saxpy, dim=3, inputs=[2.0, a, y], device=a.device)
    assert y.list() == [2.0] * 3
    with wp.ScopedDevice(device):
        assert wp.get_device() is device and wp.zeros(1).device is device
    with pytest.raises(ValueError, match="there is no device 'cuda:99': the last one is 'cuda:"):
        wp.get_device("cuda:99")


@pytest.mark.seed("S-INI-012", "D-17")
def test_the_default_device_is_the_first_gpu(run):
    printed = run("""
        print(wp.get_device(), wp.zeros(3).device, wp.get_preferred_device())
        wp.set_device("cpu")
        print(wp.get_device(), wp.get_device("cuda"), wp.zeros(3).device)
    """)
    assert printed == "cuda:0 cuda:0 cuda:0\ncpu cuda:0 cpu\n"


@pytest.mark.seed("S-INI-012")
def test_launches_without_a_device_run_on_the_gpu(run):
    printed = run("""
        @wp.kernel
        def double(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = 2.0 * x[i]

        x = wp.array(np.arange(4), dtype=float)
        wp.launch(double, dim=4, inputs=[x])
        print(x.device, x.numpy().tolist())
        try:
            wp.launch(double, dim=4, inputs=[wp.zeros(4, device="cpu")])
        except RuntimeError as error:
            print(error)
    """)
    first, rest = printed.split("\n", 1)
    assert first == "cuda:0 [0.0, 2.0, 4.0, 6.0]" and "on 'cpu', the launch is on 'cuda:0'" in rest


@pytest.mark.seed("S-INI-013")
def test_gpus_by_their_ordinals():
    devices = wp.get_cuda_devices()
    if len(devices) < 2:
        pytest.skip("needs two CUDA devices")
    second = wp.array([1.0, 2.0], dtype=float, device="cuda:1")
    assert second.device == "cuda:1" == devices[1] and second.device.ordinal == 1
    y = wp.zeros(2, device="cuda:1")
    wp.launch(saxpy, dim=2, inputs=[3.0, second, y], device="cuda:1")
    assert y.numpy().tolist() == [3.0, 6.0]
    moved = y.to("cuda:0")
    assert moved.device == DEVICE and moved.list() == [3.0, 6.0]
    with wp.ScopedDevice("cuda:1"):
        assert wp.get_device("cuda") == "cuda:1" and wp.zeros(1, device="cuda").device == "cuda:1"
    with pytest.raises(RuntimeError, match="'x' of kernel 'saxpy' is .* on 'cuda:1', the launch is on 'cuda:0'"):
        wp.launch(saxpy, dim=2, inputs=[1.0, second, moved], device=DEVICE)


@pytest.mark.seed("D-18")
def test_cuda_without_a_number_is_the_current_gpu():
    device = wp.get_device("cuda")
    assert device == "cuda" and device == DEVICE and device is wp.get_device(DEVICE) and device.alias == DEVICE
    x, y = wp.ones(4, device="cuda"), wp.zeros(4, device=DEVICE)
    assert x.device == y.device and x.to(DEVICE) is x and y.to("cuda") is y
    for name in ("cuda", DEVICE, device):
        wp.launch(saxpy, dim=4, inputs=[1.0, x, y], device=name)
    assert y.list() == [3.0] * 4
    with wp.ScopedDevice("cuda"):
        assert wp.get_device() is device
    assert wp.get_device("cpu") != "cuda"


@pytest.mark.seed("D-18")
def test_cuda_without_a_number_is_the_default_device_where_that_is_a_gpu(second):
    first = wp.get_device(DEVICE)
    with wp.ScopedDevice(second):
        assert wp.get_device("cuda") is wp.get_device(second) and wp.get_device(second) == "cuda" != first
        assert first != "cuda" and wp.zeros(1).device == "cuda" and wp.zeros(1, device="cuda").device == second


# ---- launches ----
@pytest.mark.seed("S-KRN-004")
@pytest.mark.parametrize("count", [0, 1, 31, 255, 256, 257, 100_003])
def test_any_number_of_threads(count):
    @wp.kernel
    def fill(x: wp.array[int]):
        i = wp.tid()
        x[i] = i + 1

    a = wp.zeros(count + 1, dtype=int, device=DEVICE)
    wp.launch(fill, dim=count, inputs=[a], device=DEVICE)
    np.testing.assert_array_equal(a.numpy(), [*range(1, count + 1), 0])


@pytest.mark.large
@pytest.mark.seed("S-KRN-004")
def test_more_threads_than_32_bits_count():
    @wp.kernel
    def last(found: wp.array[wp.int64], n: wp.int64):
        i, j = wp.tid()
        at = wp.int64(i) * wp.int64(1 << 16) + wp.int64(j)
        if at >= n - wp.int64(2):
            wp.atomic_add(found, 0, at)

    rows = (1 << 15) + 1
    n = rows << 16
    found = wp.zeros(1, dtype=wp.int64, device=DEVICE)
    wp.launch(last, dim=(rows, 1 << 16), inputs=[found, n], device=DEVICE)
    assert found.list() == [2 * n - 3]


@pytest.mark.seed("S-LCH-009")
def test_a_launch_returns_before_its_work_is_done(run):
    """A fault of the kernel is raised by the next wait, and not by the launch."""
    # An address that no allocation has. A little beyond an array there may be other memory of the device.
    printed = run("""
        @wp.kernel
        def beyond(x: wp.array(dtype=float)):
            x[wp.tid()] = 1.0

        x = wp.array(ptr=4096, shape=4, dtype=float, device="cuda")
        wp.launch(beyond, dim=4, inputs=[x], device="cuda")
        print("launched")
        try:
            wp.synchronize()
        except RuntimeError as error:
            print("found")
    """)
    assert printed == "launched\nfound\n"


@pytest.mark.seed("S-LCH-014")
def test_a_kernel_is_compiled_for_each_device_when_it_is_first_launched_there():
    @wp.kernel
    def square(x: wp.array[float]):
        i = wp.tid()
        x[i] = x[i] * x[i]

    for device in ("cpu", DEVICE, "cpu", wp.get_device(DEVICE)):
        x = wp.array([1.0, 2.0, 3.0], dtype=float, device=device)
        wp.launch(square, dim=3, inputs=[x], device=device)
        assert x.device == device and x.numpy().tolist() == [1.0, 4.0, 9.0]


@wp.struct
class Holder:
    x: wp.array[float]


@wp.kernel
def read_field(holder: Holder, y: wp.array[float]):
    i = wp.tid()
    y[i] = holder.x[i]


@pytest.fixture
def access_mode():
    yield lambda name: setattr(wp.config, "launch_array_access_mode", wp.config.LaunchArrayAccessMode[name])
    wp.config.launch_array_access_mode = wp.config.LaunchArrayAccessMode.RELAXED


@pytest.mark.seed("D-23", "S-LCH-006")
@pytest.mark.parametrize("mode", ["RELAXED", "CHECKED", "STRICT"])
def test_an_array_of_another_device_is_an_error_in_every_mode(access_mode, second, mode):
    access_mode(mode)
    assert wp.config.launch_array_access_mode.name == mode
    y = wp.zeros(4, device=DEVICE)
    holder = Holder()
    for found in (wp.ones(4, device="cpu"), wp.ones(4, device="cpu", pinned=True), wp.ones(4, device=second)):
        holder.x = found
        name = found.device.alias
        for launch, message in (
            (
                lambda: wp.launch(saxpy, dim=4, inputs=[1.0, found, y], device=DEVICE),
                "argument 2 'x' of kernel 'saxpy'",
            ),
            (lambda: wp.launch(saxpy, dim=4, inputs=[1.0, y], outputs=[found], device=DEVICE), "argument 3 'y'"),
            (lambda: wp.launch(saxpy, dim=4, inputs=[1.0, found, y], device=DEVICE, record_cmd=True), "argument 2 'x'"),
            (lambda: wp.launch(read_field, dim=4, inputs=[holder, y], device=DEVICE), "argument 1 'holder'"),
            (
                lambda: wp.launch(
                    saxpy, dim=4, inputs=[1.0, y, y], adj_inputs=[0.0, found, None], adj_outputs=[], adjoint=True
                ),
                "'x' of kernel 'saxpy'",
            ),
        ):
            with wp.ScopedDevice(DEVICE), pytest.raises(RuntimeError) as error:
                launch()
            said = str(error.value)
            assert message in said and f"on '{name}'" in said and f"launch is on '{DEVICE}'" in said, said
            assert "STRICT" not in said
    assert y.list() == [0.0] * 4 and found.list() == [1.0] * 4
    with pytest.raises(RuntimeError, match="'x' of kernel 'saxpy' is .* on 'cuda:0', the launch is on 'cpu'"):
        wp.launch(saxpy, dim=4, inputs=[1.0, y, wp.zeros(4, device="cpu")], device="cpu")


@pytest.mark.seed("D-23")
def test_an_option_says_whether_memory_that_is_open_is_taken(access_mode, second):
    x, y = wp.full(4, 2.0, device=DEVICE), wp.zeros(4, device=second)
    holder = Holder()
    holder.x = x
    wp.synchronize()  # the devices do not wait for each other
    with wp.ScopedMempoolAccess(DEVICE, second, True):
        for mode in ("RELAXED", "CHECKED"):
            access_mode(mode)
            wp.launch(saxpy, dim=4, inputs=[3.0, x, y], device=second)
        assert y.list() == [12.0] * 4
        wp.launch(read_field, dim=4, inputs=[holder, y], device=second)
        assert y.list() == [2.0] * 4
        access_mode("STRICT")
        for kernel, arguments in ((saxpy, [3.0, x, y]), (read_field, [holder, y])):
            with pytest.raises(RuntimeError, match=f"on '{second}', and wp.config.launch_array_access_mode is STRICT"):
                wp.launch(kernel, dim=4, inputs=arguments, device=second)
    assert y.list() == [2.0] * 4
    for wrong in (True, 2, "STRICT", None):
        with pytest.raises(ValueError, match="expected a member of wp.config.LaunchArrayAccessMode"):
            wp.config.launch_array_access_mode = wrong


# ---- arrays ----
@pytest.mark.seed("S-USE-001", "S-NPY-001", "S-NPY-003")
def test_numpy_of_a_device_array_is_a_copy():
    a = wp.zeros(4, device=DEVICE)
    copy = a.numpy()
    copy[1] = 5.0
    assert a.list() == [0.0] * 4 and copy.tolist() == [0.0, 5.0, 0.0, 0.0]
    wp.launch(saxpy, dim=4, inputs=[1.0, wp.ones(4, device=DEVICE), a], device=DEVICE)
    assert a.numpy().tolist() == [1.0] * 4  # the launch is waited for


@pytest.mark.seed("S-ARR-008", "S-USE-005", "P-47")
def test_data_of_numpy_goes_to_the_device_and_back():
    r = np.random.default_rng(0).random(1024)
    a = wp.array(r, dtype=float, device="cuda")
    assert a.device == DEVICE and a.dtype is wp.float32
    expected = r.astype(np.float32)
    r[:] = 0.0
    np.testing.assert_array_equal(a.numpy(), expected)
    assert a.to("cuda") is a and a.to(DEVICE) is a
    here = a.to("cpu")
    assert here.device == "cpu" and here.to("cuda").device == DEVICE
    a.zero_()
    np.testing.assert_array_equal(here.numpy(), expected)


@pytest.mark.seed("S-USE-006", "P-49", "P-50")
def test_copies_between_all_pairs_of_devices():
    devices = ["cpu", *wp.get_cuda_devices()]
    for source in devices:
        for target in devices:
            src = wp.array(np.arange(10), dtype=float, device=source)
            dest = wp.zeros(12, device=target)
            wp.copy(dest, src)
            assert dest.list() == [*range(10), 0, 0] and src.to(target).list() == list(range(10))
            dest.zero_()
            wp.copy(dest, src, dest_offset=3, src_offset=5, count=2)
            assert dest.list() == [0, 0, 0, 5, 6] + [0] * 7
            wide = wp.zeros((2, 10), device=target)
            wp.copy(wide[1], src[::-1])
            assert wide.numpy()[1].tolist() == list(range(10))[::-1] and not wide.numpy()[0].any()


@pytest.mark.seed("S-ARR-004", "S-ARR-005", "S-ARR-014")
@pytest.mark.parametrize("target", ["cpu", DEVICE])
@pytest.mark.parametrize("source", ["cpu", DEVICE])
def test_arrays_are_made_on_the_device_that_is_named(source, target):
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
    a = wp.array(numbers, dtype=wp.vec3, device=source, requires_grad=True)
    for make, expected in ((wp.clone, numbers), (wp.zeros_like, 0.0 * numbers), (wp.empty_like, None)):
        made = make(a, device=target)
        assert made.device == target and made.dtype is wp.vec3 and made.shape == (2,) and made.ptr != a.ptr
        assert made.requires_grad and made.grad.device == target and make(a).device == source
        if expected is not None:
            np.testing.assert_array_equal(made.numpy(), expected)
    flat = wp.array(a, dtype=float, device=target)
    assert flat.device == target and flat.shape == (2, 3) and flat.ptr != a.ptr
    np.testing.assert_array_equal(flat.numpy(), numbers)
    whole = wp.array(wp.array([1.75, -2.5], dtype=float, device=source), dtype=int, device=target)
    assert whole.device == target and whole.list() == [1, -2]
    made = wp.zeros(shape=(2, 3), dtype=wp.vec3, device=target, requires_grad=True)
    assert made.device == made.grad.device == target and not made.numpy().any() and not made.grad.numpy().any()


@pytest.mark.seed("S-USE-007")
def test_a_copy_is_done_in_the_stream_that_is_named():
    stream, x, y = wp.Stream(DEVICE), wp.ones(4, device=DEVICE), wp.zeros(4, device=DEVICE)
    wp.synchronize_device(DEVICE)
    wp.launch(saxpy, dim=4, inputs=[2.0, x, x], stream=stream)
    wp.copy(y, x, dest_offset=1, src_offset=1, count=2, stream=stream)
    wp.synchronize_stream(stream)
    assert y.list() == [0.0, 3.0, 3.0, 0.0]


@pytest.mark.seed("S-MUL-003")
def test_products_of_arrays_on_two_devices_are_errors():
    here, there = wp.ones((2, 2), device="cpu"), wp.ones((2, 2), device=DEVICE)
    for arrays in ([here, there, there, there], [there, here, there, there], [there, there, there, here]):
        with pytest.raises(RuntimeError, match="'cpu'.*'cuda:0'|'cuda:0'.*'cpu'"):
            wp.matmul(*arrays)
    with pytest.raises(RuntimeError, match="'cpu'.*'cuda:0'|'cuda:0'.*'cpu'"):
        there @ here
    assert here.list() == there.list() == [1.0] * 4


@pytest.mark.seed("S-USE-008", "S-USE-009")
def test_members_of_an_array():
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    a = wp.array(values, device=DEVICE, requires_grad=True)
    assert (a.shape, a.strides, a.ndim, a.size, a.length, len(a)) == ((2, 3), (12, 4), 2, 6, 2, 2)
    assert a.dtype is wp.float32 and a.device == DEVICE and a.vars == {} and a.is_contiguous and not a.pinned
    assert a.capacity >= 24 and a.ptr == a.__cuda_array_interface__["data"][0] and a.requires_grad
    assert str(a) == str(values) and a.list() == values.ravel().tolist()
    for view, expected in (
        (a.flatten(), values.ravel()),
        (a.reshape((3, 2)), values.reshape(3, 2)),
        (a.transpose(), values.T),
        (a.transpose((1, 0)), values.T),
        (a.T, values.T),
        (a.view(wp.int32), values.view(np.int32)),
        (a.view(wp.vec3), values),
        (a[1, 1:], values[1, 1:]),
        (a[:, 0], values[:, 0]),
    ):
        np.testing.assert_array_equal(view.numpy(), expected)
        assert view.device == DEVICE and a.ptr <= view.ptr < a.ptr + 24
    turned = a.T.contiguous()
    assert turned.is_contiguous and not a.T.is_contiguous and a.contiguous() is a and turned.ptr != a.ptr
    np.testing.assert_array_equal(turned.numpy(), values.T)
    np.testing.assert_array_equal(a.astype(wp.int32).numpy(), values.astype(np.int32))
    assert a.astype(wp.int32).device == DEVICE and not a.grad.numpy().any() and a.grad.device == DEVICE
    assert a.fill_(2.5) is a and a.list() == [2.5] * 6
    a.assign(values)
    np.testing.assert_array_equal(a.numpy(), values)
    a.zero_()
    assert a.list() == [0.0] * 6 and a.to("cpu").list() == [0.0] * 6
    a.requires_grad = False
    assert a.grad is None


@pytest.mark.seed("S-USE-015")
def test_what_an_array_gives_out_keeps_its_memory(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # its build for the CPU describes such memory, too

    def made(*shape):
        return wp.full(shape, 3.0, device=DEVICE)

    given = {
        "view": made(9)[2:],
        "flat": made(3, 3).flatten(),
        "view of a view": made(3, 3).T[1],
        "gradient": wp.ones(9, device=DEVICE, requires_grad=True).grad,
        "capsule": wp.to_dlpack(made(9)),
        "object": wp.from_dlpack(made(9)),
        "shown": wp.array(Shown(made(9)), device=DEVICE),
        "tensor": wp.to_torch(made(9)),
        "array of a tensor": wp.from_torch(wp.to_torch(made(9))),
        "field": Holder(),
    }
    given["field"].x = made(9)
    given["gradient"].fill_(3.0)
    numbers = made(9).numpy()
    gc.collect()
    taken = [wp.full(9, -1.0, device=DEVICE) for _ in range(200)]  # would take the place of memory that was freed
    given["capsule"], given["tensor"] = wp.from_dlpack(given["capsule"]), wp.from_torch(given["tensor"])
    given["field"] = given["field"].x
    for name, one in given.items():
        assert set(one.list()) == {3.0}, name
    assert (numbers == 3.0).all() and len(taken) == 200
