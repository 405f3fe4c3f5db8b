"""What goes wrong on CUDA devices is a clear error, before anything runs, and everything goes on. docs/cuda.md lists
all cases and where each is tested; here are those that have no place elsewhere."""

import re
import shutil
from pathlib import Path

import pytest
import warp as wp

DEVICE, OTHER = "cuda:0", "cuda:1"
on_gpu = pytest.mark.gpu


@wp.kernel
def add_one(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[i] + 1.0


@wp.kernel
def add(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = y[i] + x[i]


# ---- devices that do not fit ----


@on_gpu
def test_arrays_of_two_gpus(two_gpus):
    here, there = wp.ones(3, dtype=float, device=DEVICE), wp.ones(3, dtype=float, device=OTHER)
    for arrays, device in (((here, there), DEVICE), ((there, here), DEVICE), ((here, there), OTHER)):
        wrong = OTHER if device == DEVICE else DEVICE
        with pytest.raises(RuntimeError, match=f"on '{wrong}', the launch is on '{device}'"):
            wp.launch(add, 3, inputs=[*arrays], device=device)
        with pytest.raises(RuntimeError, match=f"on '{wrong}', the launch is on '{device}'"):
            wp.launch(add, 3, inputs=[*arrays], device=device, record_cmd=True)
    assert here.list() == there.list() == [1.0] * 3


@on_gpu
def test_a_stream_of_another_device(two_gpus):
    x, theirs, cpu = wp.ones(3, dtype=float, device=DEVICE), wp.Stream(OTHER), wp.Stream("cpu")
    for stream, alias in ((theirs, OTHER), (cpu, "cpu")):
        with pytest.raises(RuntimeError, match=f"the stream is of '{alias}', not of '{DEVICE}'"):
            wp.launch(add_one, 3, inputs=[x], device=DEVICE, stream=stream)
        with pytest.raises(RuntimeError, match=f"the stream is of '{alias}'"):
            wp.set_stream(stream, DEVICE)
        with pytest.raises(RuntimeError, match=f"is of '{alias}'"):
            wp.capture_begin(device=DEVICE, stream=stream)
    assert x.list() == [1.0] * 3


@on_gpu
def test_a_graph_on_another_gpu(two_gpus):
    x = wp.zeros(3, dtype=float, device=DEVICE)
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.launch(add_one, 3, inputs=[x], device=DEVICE)
    for stream, alias in ((wp.Stream(OTHER), OTHER), (wp.Stream("cpu"), "cpu")):
        with pytest.raises(RuntimeError, match=f"captured on '{DEVICE}', the stream is of '{alias}'"):
            wp.capture_launch(capture.graph, stream=stream)
    with wp.ScopedDevice(OTHER):
        wp.capture_launch(capture.graph)  # in a stream of its own device
    assert x.list() == [1.0] * 3


# ---- captures that stay open ----


@on_gpu
def test_an_exception_that_leaves_a_capture_open():
    """Without ScopedCapture nobody ends it: what cannot be done then says so, and capture_end() helps."""
    x, stream = wp.zeros(3, dtype=float, device=DEVICE), wp.Stream(DEVICE)

    def broken():
        wp.capture_begin(stream=stream)
        wp.launch(add_one, 3, inputs=[x], stream=stream)
        raise ZeroDivisionError

    wp.launch(add_one, 3, inputs=[x], device=DEVICE)
    wp.synchronize()
    with pytest.raises(ZeroDivisionError):
        broken()
    assert stream.is_capturing
    with pytest.raises(RuntimeError, match="is being captured already. help: capture_end"):
        wp.capture_begin(stream=stream)
    with pytest.raises(RuntimeError, match="a graph is being captured"):
        wp.synchronize_stream(stream)
    wp.launch(add_one, 3, inputs=[x], device=DEVICE)  # other streams go on
    assert x.list() == [2.0] * 3
    graph = wp.capture_end(stream=stream)
    assert not stream.is_capturing
    wp.capture_launch(graph, stream=stream)
    wp.synchronize_stream(stream)
    assert x.list() == [3.0] * 3


@on_gpu
def test_a_capture_that_was_left_open_goes_with_its_stream():
    x = wp.zeros(3, dtype=float, device=DEVICE)
    wp.launch(add_one, 3, inputs=[x], device=DEVICE)
    stream = wp.Stream(DEVICE)
    wp.capture_begin(stream=stream)
    wp.launch(add_one, 3, inputs=[x], stream=stream)
    del stream
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.launch(add_one, 3, inputs=[x], device=DEVICE)
    wp.capture_launch(capture.graph)
    assert x.list() == [2.0] * 3


@on_gpu
def test_what_a_lost_capture_has_made_is_freed_after_it_was_filled():
    stream = wp.Stream(DEVICE)
    wp.synchronize()
    used = wp.get_mempool_used_mem_current(DEVICE)
    with pytest.raises(ZeroDivisionError), wp.ScopedCapture(stream=stream):
        with wp.ScopedStream(stream, sync_enter=False):
            made = wp.zeros(1000, dtype=float, device=DEVICE)
            wp.launch(add_one, 1000, inputs=[made], device=DEVICE)
            del made
        raise ZeroDivisionError
    wp.synchronize()
    assert wp.get_mempool_used_mem_current(DEVICE) == used
    assert wp.ones(3, dtype=float, device=DEVICE).list() == [1.0] * 3


# ---- drivers ----


USE = """
try:
    x = wp.zeros(3, dtype=float, device="cuda")
    print(x.list())
except RuntimeError as error:
    print(type(error).__name__, error)
print(wp.ones(2, dtype=float, device="cpu").list())
"""


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "no functions"])
def test_a_damaged_library_of_the_driver(run, damage, tmp_path):
    whole = Path(wp._weft.__file__).with_name("weft-emulated-cuda.so")
    file = tmp_path / "libcuda.so.1"
    if damage == "empty":
        file.write_bytes(b"")
    elif damage == "text":
        file.write_text("this is no library")
    elif damage == "cut":
        file.write_bytes(whole.read_bytes()[: whole.stat().st_size // 3])
    else:
        shutil.copy(wp._weft.__file__, file)
    printed = run(USE, WARP_CUDA_DRIVER=str(file))
    assert printed.splitlines()[-1] == "[1.0, 1.0]" and "there is no device 'cuda': " in printed
    assert ("no CUDA driver was found: " if damage != "no functions" else "it is too old or damaged") in printed
    assert str(file) in printed


PROGRAM = """
@wp.kernel
def triple(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 3.0 * x[i]

x = wp.ones(2, dtype=float, device="cuda:0")
for attempt in range(2):
    try:
        wp.launch(triple, 2, inputs=[x], device="cuda:0")
        print("done", x.list())
    except RuntimeError as error:
        print("error", error)
"""


@on_gpu
def test_a_driver_that_is_too_old_for_the_code(run, tmp_path):
    """It says that it does not know the version of the PTX."""
    # without the cache, as a driver that links the text for it has known its version
    printed = run("wp.config.cache_kernels = False\n" + PROGRAM, WEFT_EMULATED_FAIL="cuModuleLoadDataEx:1:222")
    text = "error launch(): the CUDA driver is too old for the code of a kernel on 'cuda:0': it is of CUDA 13.0"
    assert printed.startswith(text) and re.search(r"version of its PTX \(\d\.\d; .* help: a newer driver", printed)
    assert printed.endswith("done [3.0, 3.0]\n")
    # the emulated driver knows PTX up to 9.0, and says the same of a later one
    texts = tmp_path / "ptx"
    texts.mkdir()
    run(PROGRAM, WEFT_KEEP_PTX=str(texts), WARP_CACHE_PATH=str(tmp_path / "cache"))
    for file in texts.glob("*.ptx"):
        file.write_text(re.sub(r"\.version \d+\.\d+", ".version 99.1", file.read_text()))
    printed = run(PROGRAM, WEFT_TAKE_PTX=str(texts))
    assert printed.count(text) == 2 and "version of its PTX (99.1;" in printed
