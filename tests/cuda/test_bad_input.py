"""A mistake on CUDA devices is a clear error, before anything runs, and everything goes on. docs/cuda.md lists
all cases and the test of each; here are those that have no place elsewhere."""

import re
import shutil
from pathlib import Path

import pytest
import warp as wp

pytestmark = pytest.mark.own_launches("counts launches, orders them or makes them fail")

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
@pytest.mark.parametrize("times_before", [0, 2])
def test_operators_and_maps_of_arrays_on_two_devices(times_before):
    """In the writer's words, also if the operator has had a kernel before."""
    here, there = wp.ones(3, dtype=float, device=DEVICE), wp.ones(3, dtype=float, device="cpu")

    def product(x: float, y: float):
        return x * y

    for _ in range(times_before):
        assert (here + here).list() == (there + there).list() == [2.0] * 3
        assert wp.map(product, here, here).list() == [1.0] * 3
    with pytest.raises(wp.UsageError, match=rf"a \+ b: 'b' is on 'cpu', and 'a' is on '{DEVICE}'"):
        here + there
    with pytest.raises(wp.UsageError, match=rf"a \+= b: 'b' is on '{DEVICE}', and 'a' is on 'cpu'"):
        there += here
    with pytest.raises(wp.UsageError, match=rf"map\(\): 'inputs\[1\]' is on '{DEVICE}', and 'inputs\[0\]' is on 'cpu'"):
        wp.map(product, there, here)
    with pytest.raises(wp.UsageError, match=rf"map\(\): 'out' is on 'cpu', and 'inputs\[0\]' is on '{DEVICE}'"):
        wp.map(product, here, here, out=there)
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
    """Without ScopedCapture it does not end by itself: errors say so, and capture_end() helps."""
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
    printed = run(
        "wp.config.cache_kernels = False\n" + PROGRAM,
        WARP_CUDA_DRIVER="emulated",  # which says so when it is told to
        WEFT_EMULATED_FAIL="cuModuleLoadDataEx:1:222",
    )
    text = "error launch(): the CUDA driver is too old for the code of a kernel on 'cuda:0': it is of CUDA "
    assert printed.startswith(text + "13.0")
    assert re.search(r"version of its PTX \(\d\.\d; .* help: a newer driver", printed)
    assert printed.endswith("done [3.0, 3.0]\n")
    # every driver says the same of a version that it does not know; the emulated one knows PTX up to 9.0
    texts = tmp_path / "ptx"
    texts.mkdir()
    run(PROGRAM, WEFT_KEEP_PTX=str(texts), WARP_CACHE_PATH=str(tmp_path / "cache"))
    for file in texts.glob("*.ptx"):
        file.write_text(re.sub(r"\.version \d+\.\d+", ".version 99.1", file.read_text()))
    printed = run(PROGRAM, WEFT_TAKE_PTX=str(texts))
    assert printed.count(text) == 2 and "version of its PTX (99.1;" in printed


# ---- captures that would not have the work ----


@on_gpu
@pytest.mark.parametrize(
    "copy",
    [
        lambda x, y: x.to(OTHER),
        lambda x, y: wp.copy(y, x),
        lambda x, y: wp.clone(x, device=OTHER),
        lambda x, y: wp.array(x, device=OTHER),
        lambda x, y: y.assign(x),
        lambda x, y: y.__setitem__(slice(0, 2), x[:2]),
    ],
    ids=["to", "copy", "clone", "array", "assign", "slice"],
)
def test_a_copy_that_another_gpu_would_do(two_gpus, copy):
    """It ran at once, and read what was there before the work of the capture."""
    x, y = wp.full(4, 7.0, dtype=float, device=DEVICE), wp.zeros(4, dtype=float, device=OTHER)
    with (
        pytest.raises(RuntimeError, match=f"a copy from '{DEVICE}' to '{OTHER}' is work of '{OTHER}', which the graph"),
        wp.ScopedCapture(device=DEVICE),
    ):
        wp.launch(add_one, 4, inputs=[x], device=DEVICE)
        copy(x, y)
    assert x.list() == [7.0] * 4 and y.list() == [0.0] * 4


@on_gpu
def test_a_copy_from_another_gpu_is_in_the_graph(two_gpus):
    """The work of the other one ends before the graph can run."""
    x, y = wp.zeros(4, dtype=float, device=DEVICE), wp.zeros(4, dtype=float, device=OTHER)
    y.fill_(3.0)
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.copy(x, y)
        wp.launch(add_one, 4, inputs=[x], device=DEVICE)
    for _ in range(2):
        wp.capture_launch(capture.graph)
        assert x.list() == [4.0] * 4


@on_gpu
def test_a_copy_that_a_capture_of_the_cpu_would_not_have():
    x, y = wp.zeros(1, dtype=float, device=DEVICE), wp.zeros(1, dtype=float, device="cpu")
    for to, source in ((x, y), (y, x)):
        with (
            pytest.raises(RuntimeError, match="a graph is being captured on 'cpu', and a copy from"),
            wp.ScopedCapture(device="cpu"),
        ):
            wp.copy(to, source)
    with wp.ScopedCapture(device="cpu"):  # numbers of Python are there
        assert wp.array([1.0, 2.0], dtype=float, device=DEVICE).list() == [1.0, 2.0]


@on_gpu
def test_graphs_and_conditions_of_another_device_in_a_capture(two_gpus):
    """They were done at once, and the condition's answer stayed."""
    x, y = wp.zeros(1, dtype=float, device=DEVICE), wp.zeros(1, dtype=float, device=OTHER)
    here, there = wp.zeros(1, dtype=int, device=DEVICE), wp.zeros(1, dtype=int, device=OTHER)
    with wp.ScopedCapture(device=OTHER) as other:
        wp.launch(add_one, 1, inputs=[y], device=OTHER)
    with pytest.raises(RuntimeError, match=f"the graph is of '{OTHER}', and a graph is being captured on '{DEVICE}'"):
        with wp.ScopedCapture(device=DEVICE):
            wp.capture_launch(other.graph)
    if wp.is_conditional_graph_supported():
        with pytest.raises(RuntimeError, match=f"the graph is of '{OTHER}'"), wp.ScopedCapture(device=DEVICE):
            wp.capture_if(here, other.graph)
    for name, condition in (("capture_if", wp.capture_if), ("capture_while", wp.capture_while)):
        with pytest.raises(RuntimeError, match=f"{name}\\(\\): the condition is of '{OTHER}'"):
            with wp.ScopedCapture(device=DEVICE):
                condition(there, lambda: wp.launch(add_one, 1, inputs=[x], device=DEVICE))
    assert x.list() == y.list() == [0.0]


@on_gpu
def test_launches_on_another_device_are_no_part_of_a_capture(two_gpus):
    """As CUDA has it: they are done at once."""
    x, y = wp.zeros(1, dtype=float, device=DEVICE), wp.zeros(1, dtype=float, device=OTHER)
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.launch(add_one, 1, inputs=[x], device=DEVICE)
        wp.launch(add_one, 1, inputs=[y], device=OTHER)
    assert x.list() == [0.0] and y.list() == [1.0]
    wp.capture_launch(capture.graph)
    assert x.list() == [1.0] and y.list() == [1.0]


# ---- structs ----


@wp.struct
class Holder:
    a: wp.array[float]


@wp.kernel
def of_first(holders: wp.array[Holder], y: wp.array[float]):
    i = wp.tid()
    y[i] = holders[0].a[i] + 1.0


@on_gpu
@pytest.mark.parametrize("other", ["cpu", OTHER])
def test_structs_whose_arrays_are_elsewhere(two_gpus, other):
    """Kernels would follow addresses of another device."""
    holder = Holder()
    holder.a = wp.array([1.0, 2.0], dtype=float, device=DEVICE)
    there = wp.zeros(2, dtype=Holder, device=other)

    def set_element():
        there[0] = holder

    def set_slice():
        there[0:1] = holder

    stores = [lambda: wp.array([holder], dtype=Holder, device=other), set_element, set_slice]
    for store in [*stores, lambda: there.fill_(holder)]:
        with pytest.raises(RuntimeError, match=f"the struct holds an array on '{DEVICE}', and is stored on '{other}'"):
            store()
    here = wp.array([holder], dtype=Holder, device=DEVICE)
    copies = [lambda: here.to(other), lambda: wp.copy(there, here, count=1), lambda: wp.clone(here, device=other)]
    for copy in copies:
        with pytest.raises(RuntimeError, match=f"hold arrays on '{DEVICE}', and are copied to '{other}'"):
            copy()
    y = wp.zeros(2, dtype=float, device=DEVICE)
    wp.launch(of_first, 2, inputs=[here, y], device=DEVICE)
    assert y.list() == [2.0, 3.0] and here.list()[0].a.list() == [1.0, 2.0]


# ---- events ----


@on_gpu
def test_what_is_no_event():
    stream, other = wp.Stream(DEVICE), wp.Stream(DEVICE)
    with pytest.raises(TypeError, match=r"Stream.record_event\(\): event is int 5, expected a wp.Event or None"):
        stream.record_event(5)
    with pytest.raises(TypeError, match=r"Stream.wait_stream\(\): event is int 5, expected a wp.Event or None"):
        stream.wait_stream(other, 5)


@on_gpu
def test_meshes_and_trees_of_arrays_on_two_devices_are_refused():
    corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    points = {on: wp.array(corners, dtype=wp.vec3, device=on) for on in (DEVICE, "cpu")}
    indices = {on: wp.array([0, 1, 2], dtype=int, device=on) for on in points}
    for here, there in ((DEVICE, "cpu"), ("cpu", DEVICE)):
        mesh = wp.Mesh(points[here], indices[here])
        for make, name, beside in (
            (lambda: wp.Mesh(points[here], indices[there]), "indices", "points"),
            (lambda: wp.Mesh(points[here], indices[here], velocities=points[there]), "velocities", "points"),
            (lambda: wp.Mesh(points[here], indices[here], groups=indices[there]), "groups", "points"),
            (lambda: wp.Bvh(points[here], points[there]), "uppers", "lowers"),
            (lambda: wp.Bvh(points[here], points[here], groups=indices[there]), "groups", "lowers"),
            (lambda: setattr(mesh, "points", points[there]), "points", "the mesh"),
            (lambda: setattr(mesh, "velocities", points[there]), "velocities", "points"),
        ):
            with pytest.raises(
                RuntimeError, match=rf"{name} is on '{there}', and {beside} on '{here}'. help: {name}.to"
            ):
                make()
        assert mesh.points is points[here] and mesh.velocities is None
