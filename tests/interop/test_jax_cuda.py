"""Kernels as functions of JAX on a CUDA device. JAX is built for the CPU here: it makes programs for CUDA, and the test
calls the handlers as XLA does (xla_frames.py), over memory and lazy streams of the emulated device."""

import ctypes
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import warp as wp
from emulated_driver import other_library
from jax.sharding import PartitionSpec as P
from jax_programs import CASES, agree
from stream_kernels import read, triple, write
from xla_frames import INITIALIZE, Xla, XlaError, calls_on_cuda

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]
DEVICE, OTHER = "cuda:0", "cuda:1"
COUNT = 1000


@wp.kernel
def counted(x: wp.array[float], bins: wp.array[float]):
    i = wp.tid()
    wp.atomic_add(bins, i % 2, x[i])


@wp.kernel
def captured(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = 5.0 * x[i]


@wp.kernel
def decayed(rate: float, x: wp.array[float]):
    i = wp.tid()
    x[i] = rate * x[i] * x[i]


@wp.kernel
def tells(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    if i == 0:
        print(x[i])
    y[i] = x[i]


@pytest.fixture(scope="module")
def handlers():
    return wp._weft.xla_handlers(True)


@pytest.fixture
def other():
    return other_library()


@pytest.fixture
def theirs(other):
    """The stream of XLA, which nothing orders with ours, and which lives for ever."""
    handle = other.made("cuStreamCreate", 1)
    stream = wp.Stream(DEVICE, cuda_stream=handle.value)
    yield stream
    wp.synchronize_device(DEVICE)


def put(stream, kernel, *arguments):
    with wp.ScopedStream(stream, sync_enter=False):
        wp.launch(kernel, COUNT, inputs=[*arguments], device=DEVICE)


def numbers(stream, y):
    wp.synchronize_stream(stream)
    found = set(y.numpy())
    wp.synchronize_device(DEVICE)
    return found


def on(device, values):
    return wp.array(np.asarray(values), device=device)


def ready(*arrays):
    wp.synchronize()
    return arrays


def called(handlers, xla, name, number, arguments, results):
    """The results, of these shapes and types, of one call."""
    device = f"cuda:{xla.ordinal}"
    given = [on(device, one) for one in arguments]
    litter = [on(device, np.full(one.shape, 99, dtype=one.dtype)) for one in results]
    ready()
    xla.call(handlers[name]["execute"], number, given, litter)
    wp.synchronize_device(device)
    for array, before in zip(given, arguments, strict=True):
        np.testing.assert_array_equal(array.numpy(), before)  # arguments are as they were
    return [one.numpy() for one in litter]


# ---- values and gradients ----


@pytest.mark.seed("S-JAX-015")
@pytest.mark.parametrize("device", [DEVICE, OTHER])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_values_and_gradients_are_those_of_the_formula(handlers, case, device, second):
    """On the device that XLA names, which need not be the default one."""
    x, y = case.arguments()
    function, xla = case.function(), Xla(ordinal=int(device[-1]))
    expected = case.formula(x, y)
    ((name, number),) = calls_on_cuda(function, x, y)
    assert name == "weft_captured_launch"
    agree([jnp.asarray(one) for one in called(handlers, xla, name, number, [x, y], expected)], expected)
    seeds = [jnp.cos(1.0 + jnp.arange(one.size, dtype=one.dtype)).reshape(one.shape) for one in expected]
    slopes = jax.vjp(case.formula, x, y)[1](seeds)
    names = calls_on_cuda(lambda x, y: jax.vjp(function, x, y)[1](seeds), x, y)
    assert names[-1][0] == "weft_adjoint"
    found = called(handlers, xla, "weft_adjoint", names[-1][1], [x, y, *seeds], slopes)
    agree([jnp.asarray(one) for one in found], list(slopes))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_samples_of_vmap_are_launches_of_their_own(handlers, case):
    """Of five numbers each: all but the first begin at no multiple of 16 bytes."""
    x, y = case.arguments(4)
    function, xla = case.function(), Xla()
    expected = jax.vmap(case.formula)(x, y)
    ((name, number),) = calls_on_cuda(jax.vmap(function), x, y)
    agree([jnp.asarray(one) for one in called(handlers, xla, name, number, [x, y], expected)], expected)
    seeds = [jnp.cos(1.0 + jnp.arange(one.size, dtype=one.dtype)).reshape(one.shape) for one in expected]
    slopes = jax.vjp(jax.vmap(case.formula), x, y)[1](seeds)
    found = called(handlers, xla, "weft_adjoint", number, [x, y, *seeds], slopes)
    agree([jnp.asarray(one) for one in found], list(slopes))


def test_forward_mode_and_second_derivatives(handlers):
    case = CASES[0]
    x, y = case.arguments()
    function, xla = case.function(), Xla(ordinal=1)
    moves = jnp.sin(1.0 + x), jnp.cos(2.0 + y)
    expected = jax.jvp(lambda *a: case.formula(*a)[0], (x, y), moves)[1]
    names = calls_on_cuda(lambda x, y: jax.jvp(lambda *a: function(*a)[0], (x, y), moves), x, y)
    number = dict(names)["weft_call"]
    agree(
        [jnp.asarray(one) for one in called(handlers, xla, "weft_call", number, [x, y, *moves], [expected])], [expected]
    )

    def slopes(of):
        return lambda x, y: jax.vjp(lambda *a: of(*a)[0], x, y)[1](jnp.ones_like(x))

    bent = jax.jvp(slopes(case.formula), (x, y), moves)[1]
    names = calls_on_cuda(lambda x, y: jax.jvp(slopes(function), (x, y), moves)[1], x, y)
    number = [number for name, number in names if name == "weft_call"][0]
    found = called(handlers, xla, "weft_call", number, [x, y, jnp.ones_like(x), *moves], list(bent))
    agree([jnp.asarray(one) for one in found], list(bent))


def test_arguments_that_are_inputs_and_outputs(handlers):
    function = wp.jax_kernel(decayed, in_out_argnames=["x"])
    x = jnp.arange(1.0, 6.0)
    ((name, number),) = calls_on_cuda(lambda x: function(0.5, x), x)
    (found,) = called(handlers, Xla(), name, number, [x], [x])
    np.testing.assert_allclose(found, 0.5 * x * x)
    (slope,) = called(handlers, Xla(), "weft_adjoint", number, [x, jnp.ones(5)], [x])
    np.testing.assert_allclose(slope, x)
    shared = on(DEVICE, x)  # XLA may give both in one memory
    ready()
    Xla().call(handlers[name]["execute"], number, [shared], [shared])
    np.testing.assert_allclose(ready(shared)[0].numpy(), 0.5 * x * x)


# ---- several devices ----


@wp.kernel
def doubled(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = a[i] * 2.0


@wp.kernel
def product(a: wp.array2d[float], b: wp.array2d[float], c: wp.array2d[float]):
    i, j = wp.tid()
    total = float(0.0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[k, j]
    c[i, j] = total


def sharded(function, in_specs, out_specs, is_checked):
    mesh = jax.sharding.AbstractMesh((2,), ("x",))
    return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=is_checked)


@pytest.mark.seed("P-24", "P-25", "S-DST-001", "S-DST-002", "S-DST-004")
@pytest.mark.parametrize("is_checked", [False, True])
def test_each_gpu_computes_its_shard(handlers, is_checked, second):
    """The program that JAX makes for two GPUs has one call, which each of them makes with the shape of its shard."""
    kernel, shapes = wp.jax_kernel(doubled), []

    def operator(a):
        shapes.append(a.shape)
        return kernel(a)[0]

    a = jnp.arange(10.0, dtype=jnp.float32)
    ((name, number),) = calls_on_cuda(sharded(operator, (P("x"),), P("x"), is_checked), a)
    assert shapes[-1] == (5,)
    parts = [
        called(handlers, Xla(ordinal=i), name, number, [part], [part])[0] for i, part in enumerate(jnp.split(a, 2))
    ]
    np.testing.assert_array_equal(np.concatenate(parts), 2.0 * np.arange(10))


@pytest.mark.seed("P-27", "S-DST-004", "S-DST-005", "S-DST-006")
def test_each_gpu_multiplies_its_rows(handlers, second):
    kernel = wp.jax_kernel(product, launch_dims=(8, 6))
    a = jnp.arange(64.0, dtype=jnp.float32).reshape(16, 4)
    b = jnp.arange(24.0, dtype=jnp.float32).reshape(4, 6)
    of = sharded(lambda a, b: kernel(a, b)[0], (P("x", None), P(None, None)), P("x", None), True)
    ((name, number),) = calls_on_cuda(of, a, b)
    rows = [
        called(handlers, Xla(ordinal=i), name, number, [part, b], [jnp.zeros((8, 6))])[0]
        for i, part in enumerate(jnp.split(a, 2))
    ]
    np.testing.assert_array_equal(np.concatenate(rows), np.asarray(a) @ np.asarray(b))


# ---- streams ----


@pytest.mark.seed("S-JAX-015")
@pytest.mark.parametrize("has_ordinal", [True, False])
def test_a_launch_is_in_the_stream_of_xla(handlers, other, theirs, has_ordinal):
    """Also if the table of XLA has no device: that of the memory is it."""
    ((name, number),) = calls_on_cuda(wp.jax_kernel(triple), jnp.zeros(COUNT))
    xla = Xla(theirs.cuda_stream, has_ordinal=has_ordinal)
    x, y, z = ready(*(wp.zeros(COUNT, dtype=float, device=DEVICE) for _ in range(3)))
    execute = handlers[name]["execute"]
    xla.call(execute, number, [x], [y])  # compiles
    wp.synchronize_device(DEVICE)
    put(theirs, write, x, 7.0)
    names = [b"cuStreamSynchronize", b"cuStreamQuery", b"cuCtxSynchronize", b"cuEventSynchronize", b"cuStreamWaitEvent"]
    before = [other.driver.weftEmulatedCalls(name) for name in names]
    described = [((COUNT,), "float32", one.ptr) for one in (x, y)]
    xla.call(execute, number, described[:1], described[1:])
    assert [other.driver.weftEmulatedCalls(name) for name in names] == before
    put(theirs, read, y, z)
    assert numbers(theirs, z) == {21.0}


def test_a_gradient_is_in_the_stream_of_xla(handlers, theirs):
    ((name, number),) = calls_on_cuda(wp.jax_kernel(triple), jnp.zeros(COUNT))
    xla = Xla(theirs.cuda_stream)
    x, seed, slope, z = ready(*(wp.zeros(COUNT, dtype=float, device=DEVICE) for _ in range(4)))
    described = [((COUNT,), "float32", one.ptr) for one in (x, seed, slope)]
    put(theirs, write, seed, 2.0)
    xla.call(handlers["weft_adjoint"]["execute"], number, described[:2], described[2:])
    put(theirs, read, slope, z)
    assert numbers(theirs, z) == {6.0}


# ---- graphs ----


def test_handlers_tell_xla_which_may_be_captured(handlers):
    found = {name: {stage: Xla().traits(one) for stage, one in stages.items()} for name, stages in handlers.items()}
    assert found == {
        "weft_launch": {"execute": 0, "initialize": 0},
        "weft_captured_launch": {"execute": 1, "initialize": 1},
        "weft_adjoint": {"execute": 0},
        "weft_call": {"execute": 0},
        "weft_captured_call": {"execute": 1},
    }
    assert all(Xla().traits(stages) == 0 for stages in wp._weft.xla_handlers(False)["weft_launch"].values())


def test_only_kernels_that_report_nothing_are_captured():
    x = jnp.zeros(4)
    assert calls_on_cuda(wp.jax_kernel(triple), x)[0][0] == "weft_captured_launch"
    assert calls_on_cuda(wp.jax_kernel(tells), x)[0][0] == "weft_launch"


@pytest.mark.parametrize("kernel", [captured, counted], ids=lambda kernel: kernel.key)
def test_a_graph_of_xla_has_the_launch(handlers, other, theirs, kernel):
    """The code is loaded in the stage before. A graph clears what the kernel adds to, each time."""
    handle = ctypes.c_void_p(theirs.cuda_stream)
    options = {"output_dims": 2} if kernel is counted else {}
    ((name, number),) = calls_on_cuda(wp.jax_kernel(kernel, **options), jnp.zeros(COUNT))
    x = wp.zeros(COUNT, dtype=float, device=DEVICE)
    y = wp.zeros(2 if options else COUNT, dtype=float, device=DEVICE)
    xla = Xla(theirs.cuda_stream)
    described = [(one.shape, "float32", one.ptr) for one in ready(x, y)]

    def loaded():
        names = (b"cuModuleLoadDataEx", b"cuModuleGetFunction")
        return sum(other.driver.weftEmulatedCalls(name) for name in names)

    before = loaded()
    xla.call(handlers[name]["initialize"], number, described[:1], described[1:], stage=INITIALIZE)
    assert loaded() > before
    before = loaded()
    wp.synchronize_device(DEVICE)
    other.begin(handle)
    xla.call(handlers[name]["execute"], number, described[:1], described[1:])
    graph = other.end(handle)
    assert loaded() == before
    for value in (2.0, 5.0):
        x.fill_(value)
        wp.synchronize_device(DEVICE)
        other.launch(graph, handle)
        assert set(y.numpy()) == {value * COUNT / 2 if options else 5.0 * value}
    other.call("cuGraphExecDestroy", graph)


# ---- Python functions ----


@pytest.mark.parametrize("mode", ["NONE", "JAX"])
def test_a_python_function_works_on_the_device_and_in_the_stream_of_xla(handlers, theirs, second, mode):
    seen = []

    def two_steps(x: wp.array[float], factor: float, y: wp.array[float]):
        seen.append((str(wp.get_device()), wp.get_stream().cuda_stream, str(x.device)))
        made = wp.zeros(x.shape, dtype=float)
        wp.launch(triple, x.shape, inputs=[x], outputs=[made])
        with wp.ScopedDevice(DEVICE):
            assert str(wp.get_device()) == DEVICE
        wp.launch(triple, x.shape, inputs=[made], outputs=[y])

    function = wp.jax_callable(two_steps, graph_mode=wp.JaxCallableGraphMode[mode])
    ((name, number),) = calls_on_cuda(lambda x: function(x, 1.0), jnp.zeros(COUNT))
    assert name == {"NONE": "weft_call", "JAX": "weft_captured_call"}[mode]
    x, y, z = ready(*(wp.zeros(COUNT, dtype=float, device=DEVICE) for _ in range(3)))
    described = [((COUNT,), "float32", one.ptr) for one in (x, y)]
    put(theirs, write, x, 7.0)
    Xla(theirs.cuda_stream).call(handlers[name]["execute"], number, described[:1], described[1:])
    put(theirs, read, y, z)
    assert numbers(theirs, z) == {63.0} and seen == [(DEVICE, theirs.cuda_stream, DEVICE)]
    (found,) = called(handlers, Xla(ordinal=1), name, number, [np.ones(COUNT, np.float32)], [jnp.ones(COUNT)])
    assert set(found) == {9.0} and seen[1][0] == seen[1][2] == OTHER and str(wp.get_device()) != OTHER


def test_a_graph_of_xla_has_the_launches_of_a_python_function(handlers, other, theirs):
    handle = ctypes.c_void_p(theirs.cuda_stream)

    def through_memory(x: wp.array[float], y: wp.array[float]):
        made = wp.full(x.shape, 1.0, dtype=float)
        wp.launch(triple, x.shape, inputs=[x], outputs=[made])
        wp.launch(read, x.shape, inputs=[made], outputs=[y])

    ((name, number),) = calls_on_cuda(wp.jax_callable(through_memory), jnp.zeros(COUNT))
    x, y = ready(*(wp.zeros(COUNT, dtype=float, device=DEVICE) for _ in range(2)))
    described = [((COUNT,), "float32", one.ptr) for one in (x, y)]
    xla = Xla(theirs.cuda_stream)
    xla.call(handlers[name]["execute"], number, described[:1], described[1:])  # compiles, and is no graph
    wp.synchronize_device(DEVICE)
    other.begin(handle)
    xla.call(handlers[name]["execute"], number, described[:1], described[1:])
    graph = other.end(handle)
    for value in (2.0, 5.0):
        x.fill_(value)
        wp.synchronize_device(DEVICE)
        other.launch(graph, handle)
        assert set(y.numpy()) == {3.0 * value}
    other.call("cuGraphExecDestroy", graph)


@wp.kernel
def add(x: wp.array[float], to: wp.array[float]):
    i = wp.tid()
    to[i] = to[i] + x[i]


WARP, STAGED, EX = (wp.JaxCallableGraphMode[mode] for mode in ("WARP", "WARP_STAGED", "WARP_STAGED_EX"))


class Calls:
    """Calls of a Python function in the way of XLA, which gives it other buffers each time."""

    def __init__(self, handlers, theirs, **options):
        self.runs = 0

        def function(x: wp.array[float], factor: float, kept: wp.array[float], y: wp.array[float]):
            self.runs += 1
            made = wp.full(x.shape, factor, dtype=float)
            wp.launch(triple, x.shape, inputs=[x], outputs=[made])
            wp.launch(triple, x.shape, inputs=[made], outputs=[y])
            wp.launch(add, x.shape, inputs=[made], outputs=[kept])

        self.function = wp.jax_callable(function, num_outputs=2, in_out_argnames=["kept"], **options)
        ((name, self.number),) = calls_on_cuda(
            lambda x, k: self.function(x, 1.0, k), jnp.zeros(COUNT), jnp.zeros(COUNT)
        )
        assert name == "weft_call"
        self.execute, self.xla, self.theirs = handlers[name]["execute"], Xla(theirs.cuda_stream), theirs

    def buffers(self):
        return ready(*(wp.zeros(COUNT, dtype=float, device=DEVICE) for _ in range(4)))

    def check(self, buffers, value, runs):
        x, kept, out, y = buffers
        found = ready(*(wp.zeros(COUNT, dtype=float, device=DEVICE) for _ in range(2)))
        for array, number in zip(buffers, (value, 100.0, -1.0, -1.0), strict=True):
            put(self.theirs, write, array, number)
        described = [((COUNT,), "float32", one.ptr) for one in (x, kept, out, y)]
        self.xla.call(self.execute, self.number, described[:2], described[2:])
        for array, to in zip((out, y), found, strict=True):
            put(self.theirs, read, array, to)
        assert [numbers(self.theirs, one) for one in found] == [{100.0 + 3.0 * value}, {9.0 * value}]
        assert self.runs == runs


def test_graphs_of_ours_are_launched_for_the_same_buffers(handlers, theirs):
    calls = Calls(handlers, theirs, graph_mode=WARP, graph_cache_max=2)
    one, two, three = (calls.buffers() for _ in range(3))
    for buffers, runs in ((one, 1), (one, 1), (two, 2), (one, 2), (three, 3), (one, 3), (two, 4), (two, 4)):
        calls.check(buffers, 1.0 + runs, runs)
    wp.clear_jax_callable_graph_cache(calls.function)
    calls.check(two, 2.0, 5)
    wp.clear_jax_callable_graph_cache()
    calls.check(two, 3.0, 6)


@pytest.mark.parametrize("mode", [STAGED, EX])
def test_a_staged_graph_serves_all_buffers(handlers, theirs, mode):
    calls = Calls(handlers, theirs, graph_mode=mode)
    for value in (1.0, 2.0, 3.0):
        calls.check(calls.buffers(), value, 1)


def test_arguments_that_are_not_staged_need_a_graph_for_each_buffer(handlers, theirs):
    calls = Calls(handlers, theirs, graph_mode=STAGED, stage_in_argnames=["x", "kept"], stage_out_argnames=["kept"])
    one, two = calls.buffers(), calls.buffers()
    calls.check(one, 1.0, 1)
    calls.check([*two[:3], one[3]], 2.0, 1)
    calls.check(two, 3.0, 2)


def test_errors_while_a_graph_of_ours_is_captured_reach_xla(handlers, theirs):
    fails = [True]

    def reads(x: wp.array[float], y: wp.array[float]):
        if fails[0]:
            x.numpy()
        wp.launch(triple, x.shape, inputs=[x], outputs=[y])

    ((name, number),) = calls_on_cuda(wp.jax_callable(reads, graph_mode=WARP), jnp.zeros(COUNT))
    x, y, z = ready(*(wp.zeros(COUNT, dtype=float, device=DEVICE) for _ in range(3)))
    described = [((COUNT,), "float32", one.ptr) for one in (x, y)]
    put(theirs, write, x, 7.0)
    with pytest.raises(XlaError, match=r"(?s)function 'reads': .*a graph is being captured"):
        Xla(theirs.cuda_stream).call(handlers[name]["execute"], number, described[:1], described[1:])
    fails[0] = False
    for _ in range(2):
        Xla(theirs.cuda_stream).call(handlers[name]["execute"], number, described[:1], described[1:])
        put(theirs, read, y, z)
        assert numbers(theirs, z) == {21.0}


# ---- bad input ----


def test_errors_reach_xla_and_everything_goes_on(handlers):
    ((name, number),) = calls_on_cuda(wp.jax_kernel(triple), jnp.zeros(4))
    x, y = ready(on(DEVICE, np.arange(4.0, dtype=np.float32)), wp.zeros(4, dtype=float, device=DEVICE))
    execute = handlers[name]["execute"]
    with pytest.raises(XlaError, match="JAX runs on 'cuda:9', and there is none here"):
        Xla(ordinal=9).call(execute, number, [x], [y])
    lost = Xla()
    lost.fails = True
    with pytest.raises(XlaError, match="the stream is lost"):
        lost.call(execute, number, [x], [y])
    assert not lost.errors  # Weft has freed XLA's own error
    with pytest.raises(XlaError, match="whose kernel is not known in this process"):
        Xla().call(execute, 12345, [x], [y])
    Xla().call(execute, number, [x], [y])
    assert ready(y)[0].list() == [0.0, 3.0, 6.0, 9.0]


def test_prints_of_a_kernel_come_with_the_call(handlers, theirs, capfd):
    ((name, number),) = calls_on_cuda(wp.jax_kernel(tells), jnp.zeros(4))
    x, y = ready(wp.full(4, 6.5, dtype=float, device=DEVICE), wp.zeros(4, dtype=float, device=DEVICE))
    Xla(theirs.cuda_stream).call(handlers[name]["execute"], number, [x], [y])
    assert capfd.readouterr().out.split() == ["6.5"]


def test_a_fault_of_a_kernel_is_an_error_of_the_call(handlers):
    @wp.kernel(module_options={"mode": "debug"})
    def outside(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = x[i + 1]

    ((name, number),) = calls_on_cuda(wp.jax_kernel(outside), jnp.zeros(4))
    assert name == "weft_launch"
    x, y = ready(wp.zeros(4, dtype=float, device=DEVICE), wp.zeros(4, dtype=float, device=DEVICE))
    with pytest.raises(XlaError, match="index 4 is out of bounds"):
        Xla().call(handlers[name]["execute"], number, [x], [y])
    wp.synchronize_device(DEVICE)


def test_a_kernel_that_was_redefined_is_not_compiled_for_another_device(handlers):
    @wp.func
    def factor():
        return 2.0

    @wp.kernel
    def scaled(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = factor() * x[i]

    ((name, number),) = calls_on_cuda(wp.jax_kernel(scaled), jnp.zeros(4))

    @wp.func
    def factor():  # noqa: F811
        return 3.0

    x, y = ready(wp.zeros(4, dtype=float, device=DEVICE), wp.zeros(4, dtype=float, device=DEVICE))
    try:
        Xla().call(handlers[name]["execute"], number, [x], [y])
    except XlaError as error:
        assert re.search("has been redefined since JAX traced it", str(error))


# ---- arrays ----


class LikeJax:
    """An array of JAX on a CUDA device: its class is of jaxlib, and it makes the consumer's stream wait."""

    def __init__(self, array, stream, other):
        self.array, self.stream, self.other = array, stream, other

    def __dlpack_device__(self):
        return 2, self.array.device.ordinal

    def __dlpack__(self, *, stream=None, max_version=None):
        event = self.other.made("cuEventCreate", 0)
        self.other.call("cuEventRecord", event, ctypes.c_void_p(self.stream.cuda_stream))
        self.other.call("cuStreamWaitEvent", ctypes.c_void_p(stream), event, 0)
        self.other.call("cuEventDestroy_v2", event)
        return self.array.__dlpack__(stream=-1, max_version=max_version)


class_of_jaxlib = type("jaxlib._jax.ArrayImpl", (LikeJax,), {})


@pytest.mark.seed("S-DIR-002")
def test_an_array_of_jax_is_an_argument_and_read_only(other, theirs):
    x, y = ready(*(wp.zeros(COUNT, dtype=float, device=DEVICE) for _ in range(2)))
    put(theirs, write, x, 7.0)
    array = class_of_jaxlib(x, theirs, other)
    wp.launch(read, COUNT, inputs=[array, y], device=DEVICE)
    assert numbers(wp.get_stream(DEVICE), y) == {7.0}
    with pytest.raises(ValueError, match="its memory is read-only .a JAX array"):
        wp.launch(write, COUNT, inputs=[array, 1.0], device=DEVICE)
    taken = wp.from_dlpack(array)
    assert taken.ptr == x.ptr and str(taken.device) == DEVICE


def test_jax_takes_an_array_by_dlpack(monkeypatch):
    """By its own function, which names its stream to the array."""
    given = []
    monkeypatch.setattr(jax.dlpack, "from_dlpack", lambda array, copy: given.append((array, copy)) or "made")
    x = wp.zeros(64, dtype=float, device=DEVICE)[1:]
    assert wp.to_jax(x) == "made" and given == [(x, False)]
    with pytest.raises(RuntimeError, match="JAX computes with 32 bits unless told otherwise"):
        wp.to_jax(wp.zeros(4, dtype=wp.float64, device=DEVICE))
