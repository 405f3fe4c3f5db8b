"""The special features of CUDA devices. `make test` runs this on the emulated one (WARP_CUDA_DRIVER=emulated), and the
suites of arrays, launches and gradients too, with --device cuda:0."""

import subprocess

import numpy as np
import pytest
import warp as wp
from cuda_programs import run
from cuda_tools import PTXAS, needs_ptxas

DEVICE = "cuda:0"


on_gpu = pytest.mark.gpu


@wp.kernel
def saxpy(a: float, x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


# ---- what comes with the compiler ----
WITH_SINE = """
import warp as wp
@wp.kernel
def sine(x: wp.array[float]):
    x[wp.tid()] = wp.sin(1.0)
x = wp.zeros(1, device="cuda")
wp.launch(sine, 1, inputs=[x], device="cuda")
print(x.numpy())
"""


@on_gpu
def test_libdevice_is_weft_s_own_unless_another_one_is_named(tmp_path):
    nowhere = {"WARP_CACHE_PATH": str(tmp_path), "CUDA_HOME": "/nowhere"}
    assert float(run(WITH_SINE, **nowhere).strip("[]\n")) == pytest.approx(np.sin(1.0), rel=2e-7)
    (tmp_path / "libdevice.10.bc").write_text("no bitcode")
    for file in ("/nowhere/libdevice.bc", tmp_path / "libdevice.10.bc"):
        text = run(WITH_SINE, **nowhere, WARP_LIBDEVICE=str(file))
        assert f"'{file}' cannot be read as libdevice" in text and "WARP_LIBDEVICE" in text


# ---- the driver ----
USE = "import warp as wp\nprint(wp.get_cuda_device_count())\nwp.zeros(1, device='cuda')"


@pytest.mark.parametrize(
    "driver, why",
    [
        ("none", "WARP_CUDA_DRIVER is 'none'"),
        ("emulator", "WARP_CUDA_DRIVER is 'emulator', expected 'emulated', 'none' or the path of a driver's library"),
        ("/nowhere/libcuda.so.1", "no CUDA driver was found: /nowhere/libcuda.so.1"),
    ],
)
def test_without_a_driver_there_is_one_clear_error(driver, why):
    text = run(USE, WARP_CUDA_DRIVER=driver)
    assert text.startswith("0\n") and "there is no device 'cuda': " + why in text


def test_a_library_that_is_no_driver_is_named():
    text = run(USE, WARP_CUDA_DRIVER=wp._weft.__file__)
    assert "has no function cuInit: it is too old or damaged" in text


def test_importing_asks_for_no_driver():
    maps = "open('/proc/self/maps').read()"
    code = f"import warp as wp\nwp.init()\nwp.zeros(2, device='cpu')\nwp.synchronize()\nprint('emulated' in {maps})"
    assert run(code, WARP_CUDA_DRIVER="emulated") == "False\n"
    assert run(code.replace("wp.zeros(2, device='cpu')", "wp.get_devices()"), WARP_CUDA_DRIVER="emulated") == "True\n"


@on_gpu
def test_devices_and_what_they_say():
    device = wp.get_device("cuda")
    assert device == DEVICE and device.is_cuda and not device.is_cpu and device.ordinal == 0 and device.arch >= 75
    assert wp.get_devices()[0] == "cpu" and wp.get_cuda_devices()[0] == device == wp.get_preferred_device()
    assert wp.is_cuda_available() and wp.get_cuda_device_count() == len(wp.get_cuda_devices())
    assert device.sm_count > 0 and device.total_memory > 0 and device.uuid.startswith("GPU-") and device.is_primary
    last = wp.get_cuda_devices()[-1]
    with pytest.raises(ValueError, match=f"there is no device 'cuda:99': the last one is '{last}'"):
        wp.get_device("cuda:99")


@on_gpu
def test_the_default_device_may_be_a_gpu():
    with wp.ScopedDevice("cuda:0"):
        x = wp.ones(5, dtype=float)
        wp.launch(saxpy, 5, inputs=[2.0, x, x])
        assert x.device == "cuda:0" and x.numpy().tolist() == [3.0] * 5
        # Two arrays that share memory, of which no thread reads what another one writes.
        x = wp.array(np.arange(15), dtype=float)
        wp.launch(saxpy, 5, inputs=[2.0, x[:10], x[5:]])
        assert x.numpy().tolist() == [*range(5), *(k + 2 * (k - 5) for k in range(5, 10)), *range(10, 15)]


@on_gpu
def test_a_forked_process_is_told_that_it_cannot_use_cuda():
    text = run("""
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of os.fork() in a process with threads, from Python 3.12 on
import warp as wp
x = wp.ones(3, device="cuda")
if os.fork() == 0:
    try:
        x.numpy()
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
print(x.list())
""")
    assert "was used before this process was forked" in text and "spawn" in text and text.endswith("[1.0, 1.0, 1.0]\n")


# ---- launches ----
@wp.kernel
def arithmetic(x: wp.array[float], y: wp.array[float], out: wp.array2d[float]):
    i = wp.tid()
    a, b = x[i], y[i]
    out[0, i] = a + b
    out[1, i] = a - b
    out[2, i] = a * b
    out[3, i] = a / b
    out[4, i] = wp.sqrt(wp.abs(a))
    out[5, i] = a * b + b
    out[6, i] = wp.dot(wp.vec3(a, b, a), wp.vec3(b, b, a)) - wp.floor(a) * wp.max(a, b)
    out[7, i] = float(int(a)) + wp.rint(b)


@on_gpu
def test_arithmetic_has_the_bits_of_the_cpu():
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 2**32, (2, 5000), dtype=np.uint32)  # every kind of number
    bits[:, ::2] = (rng.standard_normal((2, 2500)) * 100).astype(np.float32).view(np.uint32)
    results = []
    for device in ("cpu", DEVICE):
        x, y = (wp.array(row.view(np.float32), dtype=float, device=device) for row in bits)
        out = wp.zeros((8, 5000), dtype=float, device=device)
        wp.launch(arithmetic, 5000, inputs=[x, y, out], device=device)
        results.append(out.numpy())
    both_nan = np.isnan(results[0]) & np.isnan(results[1])
    assert np.array_equal(results[0].view(np.uint32)[~both_nan], results[1].view(np.uint32)[~both_nan])
    assert np.isfinite(results[0]).mean() > 0.7


@wp.kernel
def coordinates(out: wp.array4d[wp.vec4i], d: int):
    i, j, k, l = wp.tid()
    out[i, j, k, l] = wp.vec4i(i, j, k, l)


@on_gpu
@pytest.mark.parametrize(
    "dim",
    [
        (1, 1, 1, 1),
        (2, 3, 5, 7),
        (7, 1, 64, 3),
        (1, 1000, 1, 1),
        (3, 1, 1, 333),
        (4, 4, 4, 4),
        (9, 2, 2, 5),
        (2, 64, 1, 2),
    ],
)
def test_coordinates_of_every_grid(dim):
    out = wp.full(dim, wp.vec4i(-1, -1, -1, -1), dtype=wp.vec4i, device=DEVICE)
    wp.launch(coordinates, dim, inputs=[out, 0], device=DEVICE)
    np.testing.assert_array_equal(out.numpy(), np.moveaxis(np.indices(dim), 0, -1))


@wp.kernel
def count(total: wp.array[int], block: wp.array[int]):
    wp.atomic_add(total, 0, 1)
    block[0] = wp.block_dim()


@on_gpu
@pytest.mark.parametrize("block_dim, max_blocks", [(256, 0), (1, 0), (32, 1), (1024, 2), (7, 3)])
def test_blocks_of_any_shape_run_all_threads(block_dim, max_blocks):
    total, block = wp.zeros(1, dtype=int, device=DEVICE), wp.zeros(1, dtype=int, device=DEVICE)
    wp.launch(count, 1000, inputs=[total, block], device=DEVICE, block_dim=block_dim, max_blocks=max_blocks)
    assert total.numpy()[0] == 1000 and block.numpy()[0] == block_dim


@on_gpu
@pytest.mark.parametrize("shape", [{"block_dim": 0}, {"block_dim": None}, {"block_dim": 64.5}, {"max_blocks": -1}])
def test_the_device_chooses_blocks_of_no_size(shape):
    total, block = wp.zeros(1, dtype=int, device=DEVICE), wp.zeros(1, dtype=int, device=DEVICE)
    wp.launch(count, 1000, inputs=[total, block], device=DEVICE, **shape)
    assert total.numpy()[0] == 1000
    if shape.get("block_dim"):
        assert block.numpy()[0] == 64


@on_gpu
@pytest.mark.parametrize("wrong, kind", [({"block_dim": 2048}, ValueError), ({"max_blocks": "2"}, TypeError)])
def test_blocks_that_cannot_be_are_errors(wrong, kind):
    total, block = wp.zeros(1, dtype=int, device=DEVICE), wp.zeros(1, dtype=int, device=DEVICE)
    with pytest.raises(kind, match=rf"{next(iter(wrong))} is .*, expected an int of at most \d+ on 'cuda:0'"):
        wp.launch(count, 10, inputs=[total, block], device=DEVICE, **wrong)


Long = wp.types.vector(length=1000, dtype=wp.float64)


@wp.kernel
def pick(long: Long, x: wp.array[wp.float64], out: wp.array[wp.float64]):
    i = wp.tid()
    out[i] = long[i] * x[i]


@on_gpu
def test_more_arguments_than_fit_the_parameters_of_a_kernel():
    x = wp.full(1000, 2.0, dtype=wp.float64, device=DEVICE)
    out = wp.zeros(1000, dtype=wp.float64, device=DEVICE)
    wp.launch(pick, 1000, inputs=[Long(*range(1000)), x, out], device=DEVICE)
    assert out.numpy().tolist() == [2.0 * i for i in range(1000)]


@on_gpu
def test_arrays_of_the_other_device_are_an_error_before_anything_runs():
    here, there = wp.ones(3, device="cpu"), wp.ones(3, device=DEVICE)
    with pytest.raises(RuntimeError, match="on 'cpu', the launch is on 'cuda:0'"):
        wp.launch(saxpy, 3, inputs=[1.0, there, here], device=DEVICE)
    with pytest.raises(RuntimeError, match="on 'cuda:0', the launch is on 'cpu'"):
        wp.launch(saxpy, 3, inputs=[1.0, there, here], device="cpu")
    assert there.numpy().tolist() == here.numpy().tolist() == [1.0] * 3


@on_gpu
def test_builtins_called_from_python_do_not_take_arrays_of_a_gpu():
    sorted_numbers = wp.array(np.arange(0.0, 20.0), dtype=float, device=DEVICE)
    why = r"lower_bound\(\): argument 1 is an array on 'cuda:0', .*help: pass array.to\('cpu'\)"
    for _ in range(2):  # also if the overload is known
        with pytest.raises(RuntimeError, match=why):
            wp.lower_bound(sorted_numbers, 4.5)
        assert wp.lower_bound(sorted_numbers.to("cpu"), 4.5) == 5


# ---- streams ----
@on_gpu
def test_streams_and_events_order_work():
    stream = wp.Stream(DEVICE)
    x, y = wp.zeros(1000, device=DEVICE), wp.ones(1000, device=DEVICE)
    wp.synchronize_device(DEVICE)
    begin, end = wp.Event(DEVICE, enable_timing=True), wp.Event(DEVICE, enable_timing=True)
    with wp.ScopedStream(stream):
        wp.record_event(begin)
        for _ in range(5):
            wp.launch(saxpy, 1000, inputs=[2.0, y, x], device=DEVICE)
        wp.record_event(end)
    wp.wait_event(end)
    wp.launch(saxpy, 1000, inputs=[1.0, x, y], device=DEVICE)
    assert y.numpy().tolist() == [11.0] * 1000
    assert wp.get_event_elapsed_time(begin, end) >= 0.0


# ---- what kernels say ----
@wp.kernel
def talk(x: wp.array[float], n: int):
    i = wp.tid()
    if i < n:
        wp.printf(
            "%d: %.2f of %5.1f%% %u %x\n",
            i,
            x[i],
            wp.float64(x[i]),
            wp.uint32(0xFFFFFFFF),
            wp.uint64(1) << wp.uint64(40),
        )


@on_gpu
def test_prints_come_when_the_device_is_synchronized(capsys):
    x = wp.array([0.5, 1.25, -3.0], dtype=float, device=DEVICE)
    wp.launch(talk, 3, inputs=[x, 3], device=DEVICE)
    wp.synchronize_device(DEVICE)
    lines = sorted(capsys.readouterr().out.splitlines())
    assert lines[0] == "0: 0.50 of   0.5% 4294967295 10000000000" and lines[2].startswith("2: -3.00 of  -3.0%")
    assert len(lines) == 3


@wp.kernel
def print_all(x: wp.array[int]):
    i = wp.tid()
    print(i)


@on_gpu
def test_what_is_printed_beyond_the_room_for_it_is_said(capsys):
    wp.launch(print_all, 100_000, inputs=[wp.zeros(1, dtype=int, device=DEVICE)], device=DEVICE)
    wp.synchronize()
    *lines, last = capsys.readouterr().out.splitlines()
    assert "printed more than the 1048576 bytes" in last
    numbers = [int(line) for line in lines]
    assert len(set(numbers)) == len(numbers) > 40_000 and all(0 <= n < 100_000 for n in numbers)


@wp.kernel(module_options={"mode": "debug"})
def beyond(x: wp.array2d[float], j: int):
    i, k = wp.tid()
    x[i, k + j] = 1.0


@on_gpu
def test_an_index_out_of_range_names_the_line_and_the_thread():
    x = wp.zeros((3, 4), device=DEVICE)
    with pytest.raises(
        IndexError, match=r"(?s)index 4 is out of bounds for axis 1 of 'x', which has size 4.*thread \(\d, 3\)"
    ):
        wp.launch(beyond, (3, 4), inputs=[x, 1], device=DEVICE)
    wp.launch(beyond, (3, 3), inputs=[x, 1], device=DEVICE)  # and everything goes on
    assert x.numpy().sum() == 9.0


@wp.kernel
def refuse(x: wp.array[int]):
    i = wp.tid()
    if x[i] > 2:
        raise ValueError(f"element {i} is {x[i]}")


@on_gpu
def test_what_a_kernel_raises_is_raised():
    wp.launch(refuse, 5, inputs=[wp.array([0, 1, 2, 7, 2], dtype=int, device=DEVICE)], device=DEVICE)
    with pytest.raises(ValueError, match="element 3 is 7"):
        wp.synchronize()


# ---- memory ----
@on_gpu
def test_memory_that_is_not_there_is_an_error_and_everything_goes_on():
    with pytest.raises(MemoryError, match="cuda:0"):
        wp.zeros(1 << 40, dtype=wp.float64, device=DEVICE)
    assert wp.ones(4, device=DEVICE).numpy().sum() == 4.0


@on_gpu
@pytest.mark.parametrize("dtype", [wp.uint8, wp.float16, float, wp.float64, wp.vec3, wp.mat33d])
def test_strided_copies_and_fills(dtype):
    rng = np.random.default_rng(3)
    shape = (6, 7, 5)
    whole = wp.zeros(shape, dtype=dtype)
    scalar = whole.numpy().dtype
    base = (rng.random(whole.numpy().shape) * 100).astype(scalar)
    there = wp.array(base, dtype=dtype, device=DEVICE)
    for key in (np.s_[::2], np.s_[1:4, ::3], np.s_[::-1, 2], np.s_[:, :, 4], np.s_[3, 1:, ::2]):
        np.testing.assert_array_equal(there[key].numpy(), base[key])
        copy = wp.zeros(there[key].shape, dtype=dtype, device=DEVICE)
        wp.copy(copy, there[key])
        np.testing.assert_array_equal(copy.numpy(), base[key])
    target = wp.zeros(shape, dtype=dtype, device=DEVICE)
    target[::2, 1] = there[::2, 2]
    expected = np.zeros_like(base)
    expected[::2, 1] = base[::2, 2]
    target[1, ::3].fill_(7)
    expected[1, ::3] = 7
    np.testing.assert_array_equal(target.numpy(), expected)
    moved = there.transpose((2, 0, 1)).contiguous()
    np.testing.assert_array_equal(moved.numpy(), np.moveaxis(base, 2, 0))


# ---- PTX ----
@wp.func
def steps(x: float, n: int):
    s = x
    for k in range(n):
        s = s * 0.5 + wp.sin(s) * float(k)
        if s > 10.0:
            break
    return s


@wp.kernel
def varied(x: wp.array[float], m: wp.array2d[wp.mat33], n: int, out: wp.array[wp.float16], total: wp.array[wp.float64]):
    i = wp.tid()
    v = m[i, 0] * wp.vec3(x[i], 1.0, wp.exp(x[i]))
    out[i] = wp.float16(steps(v[n % 3], n))
    wp.atomic_max(total, 0, wp.float64(wp.length(v)))
    wp.atomic_add(out, 0, wp.float16(1.0))


def ptx_of(kernel, **options):
    return kernel.listing("assembly", device=DEVICE, **options)


@on_gpu
@needs_ptxas
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("kernel", [saxpy, coordinates, talk, refuse, varied, pick], ids=lambda k: k.key)
def test_ptxas_takes_the_code(kernel, adjoint, tmp_path):
    text = tmp_path / "kernel.ptx"
    text.write_text(ptx_of(kernel, adjoint=adjoint, line_info=True))
    command = [
        PTXAS,
        f"--gpu-name=sm_{wp.get_device(DEVICE).arch}",
        str(text),
        "-o",
        str(tmp_path / "kernel.cubin"),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@on_gpu
def test_simple_code_is_what_it_should_be():
    text = ptx_of(saxpy)
    copies = 5  # a thread has one element or four
    assert text.count("ld.global.b32") == text.count("ld.global.nc.b32") == text.count("st.global.b32") == copies
    assert "fma.rn.f32" in text
    assert ".local" not in text and "weft_lib" not in text
    assert "div." not in ptx_of(coordinates) and "rem." not in ptx_of(coordinates)
    code = ptx_of(arithmetic)
    for operation in ("mul", "add", "sub", "div", "sqrt"):
        assert f"{operation}.rn.f32" in code
        assert f"{operation}.f32" not in code and f"{operation}.approx" not in code


def conversion(source, target):
    @wp.kernel
    def convert(x: wp.array(dtype=source), y: wp.array(dtype=target)):
        i = wp.tid()
        y[i] = target(x[i])

    return convert


@on_gpu
@pytest.mark.parametrize("source", [wp.float16, wp.bfloat16, wp.float32, wp.float64])
def test_floats_become_integers_as_on_the_cpu(source):
    """Not a number, infinite, and beyond all integers, too: instructions of GPUs differ there by their types."""
    numbers = [np.nan, np.inf, -np.inf, -1.5, -0.5, 0.5, 300.7, 6e4, -6e4, 5e9, -5e9, 1e19, -1e19, 3e20]
    if source is wp.float16:
        numbers = [value for value in numbers if not 65504 < abs(value) < np.inf]
    for target in (wp.int8, wp.uint8, wp.int16, wp.uint16, wp.int32, wp.uint32, wp.int64, wp.uint64):
        found = {}
        for device in ("cpu", DEVICE):
            x = wp.array(numbers, dtype=source, device=device)
            y = wp.zeros(len(numbers), dtype=target, device=device)
            wp.launch(conversion(source, target), len(numbers), inputs=[x, y], device=device)
            found[device] = y.list()
        assert found["cpu"] == found[DEVICE], target
