"""PyTorch, JAX, Paddle, CuPy and Numba on a GPU: one process, one context, shared memory, streams, graphs, gradients.

They need builds of these for CUDA, so only `make gpu-check` on a machine that has them runs this file. The same is
shown with stand-ins everywhere (test_cuda_streams.py, test_cuda_order.py, test_cuda_launch_order.py,
test_torch_cuda.py, test_jax_cuda.py, cuda/test_graphs.py).
"""

import importlib.util

import numpy as np
import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.cpu_only("needs a GPU, and other frameworks for it: `make gpu-check`")]
DEVICE = "cuda:0"
COUNT = 1 << 20


def framework(name):
    """The module, if this machine has a GPU and a build of it that uses it."""
    is_here = wp.is_cuda_available() and not wp.get_device(DEVICE).is_emulated and importlib.util.find_spec(name)
    module = importlib.import_module(name) if is_here else None
    uses_gpu = {
        "torch": lambda: module.cuda.is_available(),
        "paddle": lambda: module.device.is_compiled_with_cuda(),
        "jax": lambda: module.default_backend() == "gpu",
        "numba": lambda: importlib.import_module("numba.cuda").is_available(),
    }
    if module is None or not uses_gpu.get(name, lambda: True)():
        pytest.skip("needs a GPU, and a build of the framework for it")
    return module


@pytest.fixture
def torch():
    return framework("torch")


@pytest.fixture
def cupy():
    return framework("cupy")


@pytest.fixture
def jax(monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the others need memory, too
    return framework("jax")


@pytest.fixture
def paddle():
    return framework("paddle")


@pytest.fixture
def numba():
    return framework("numba")


@wp.kernel
def add_one(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[i] + 1.0


@wp.kernel
def wave(x: wp.array[float], scale: float, y: wp.array[float]):
    i = wp.tid()
    y[i] = scale * wp.sin(x[i])


@wp.kernel
def wave_of(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = wp.sin(x[i])


@wp.kernel
def wave_of_floats(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = wp.sin(x[i])


# ---- PyTorch ----


def test_tensors_and_arrays_share_memory(torch):
    t = torch.arange(COUNT, dtype=torch.float32, device="cuda")
    x = wp.from_torch(t)
    assert x.device == DEVICE and x.ptr == t.data_ptr()
    wp.launch(add_one, COUNT, inputs=[x])
    torch.testing.assert_close(t, torch.arange(COUNT, dtype=torch.float32, device="cuda") + 1.0)
    back = wp.to_torch(wp.full(7, 3.0, dtype=float, device=DEVICE))
    assert back.device == torch.device(DEVICE) and back.tolist() == [3.0] * 7
    wp.launch(add_one, COUNT, inputs=[t], device=DEVICE)  # a tensor as it is
    assert t[-1].item() == COUNT + 1
    points = wp.from_torch(torch.zeros((5, 3), device="cuda"), dtype=wp.vec3)
    assert points.shape == (5,) and points.dtype is wp.vec3


def test_work_in_the_default_streams_is_in_order(torch):
    """PyTorch's default stream is the legacy one, which ours waits for, and which waits for ours."""
    a = torch.randn((2048, 2048), device="cuda") / 64.0
    for turn in range(20):
        t = torch.zeros(COUNT, device="cuda")
        product = a
        for _ in range(10):
            product = product @ a
        t += turn + 0.0 * product.reshape(-1)[:COUNT].nan_to_num(0.0, 0.0, 0.0)
        wp.launch(add_one, COUNT, inputs=[t], device=DEVICE)
        assert (t == turn + 1.0).all().item()


def test_work_in_a_stream_of_torch(torch):
    theirs = torch.cuda.Stream()
    ours = wp.stream_from_torch(theirs)
    assert ours.cuda_stream == theirs.cuda_stream
    torch.cuda.synchronize()
    with torch.cuda.stream(theirs):
        t = torch.zeros(COUNT, device="cuda")
        for _ in range(50):
            t.mul_(0.5)
            wp.launch(add_one, COUNT, inputs=[wp.from_torch(t)], stream=wp.stream_from_torch())
        expected = 2.0 * (1.0 - 0.5**50)
        assert torch.allclose(t, torch.full_like(t, expected))


def test_torch_works_in_a_stream_of_ours(torch):
    stream = wp.Stream(DEVICE)
    theirs = wp.stream_to_torch(stream)
    assert theirs.cuda_stream == stream.cuda_stream
    x = wp.zeros(COUNT, dtype=float, device=DEVICE)
    t = wp.to_torch(x)
    wp.synchronize()
    for _ in range(50):
        wp.launch(add_one, COUNT, inputs=[x], stream=stream)
        with torch.cuda.stream(theirs):
            t.mul_(0.5)
    wp.synchronize_stream(stream)
    np.testing.assert_allclose(x.numpy(), 1.0 - 0.5**50)


def test_a_graph_of_torch_has_our_launches(torch):
    t = torch.zeros(COUNT, device="cuda")
    wp.launch(add_one, COUNT, inputs=[t], device=DEVICE)  # loads the module
    t.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        t.mul_(0.5)
        wp.launch(add_one, COUNT, inputs=[t], stream=wp.stream_from_torch())
    assert t[0].item() == 0.0
    for _ in range(60):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.allclose(t, torch.full_like(t, 2.0))


def test_a_graph_of_ours_has_work_of_torch(torch):
    stream = wp.Stream(DEVICE)
    x = wp.zeros(COUNT, dtype=float, device=DEVICE)
    t = wp.to_torch(x)
    wp.load_module(device=DEVICE)
    wp.synchronize()
    with wp.ScopedCapture(stream=stream) as capture:
        wp.launch(add_one, COUNT, inputs=[x], stream=stream)
        with torch.cuda.stream(wp.stream_to_torch(stream)):
            t.mul_(0.5)
    for _ in range(60):
        wp.capture_launch(capture.graph, stream=stream)
    wp.synchronize_stream(stream)
    np.testing.assert_allclose(x.numpy(), 1.0)


def test_gradients_are_shared(torch):
    t = torch.linspace(0.0, 3.0, 1000, device="cuda", requires_grad=True)
    x, y = wp.from_torch(t), wp.zeros(1000, dtype=float, device=DEVICE, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(wave, 1000, inputs=[x, 2.0], outputs=[y])
    tape.backward(grads={y: wp.ones(1000, dtype=float, device=DEVICE)})
    torch.testing.assert_close(t.grad, 2.0 * torch.cos(t.detach()))


def test_a_function_of_autograd(torch):
    class Wave(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            ctx.x = wp.from_torch(t)
            ctx.y = wp.empty(len(t), dtype=float, device=DEVICE, requires_grad=True)
            wp.launch(wave, len(t), inputs=[ctx.x, 3.0], outputs=[ctx.y])
            return wp.to_torch(ctx.y, requires_grad=False)

        @staticmethod
        def backward(ctx, adjoint):
            gradient = wp.zeros_like(ctx.x)
            wp.launch(
                wave, len(adjoint), inputs=[ctx.x, 3.0], outputs=[ctx.y],
                adj_inputs=[gradient, None], adj_outputs=[wp.from_torch(adjoint.contiguous())], adjoint=True,
            )  # fmt: skip
            return wp.to_torch(gradient)

    t = torch.linspace(0.0, 3.0, 1000, device="cuda", requires_grad=True)
    (Wave.apply(t) ** 2).sum().backward()
    expected = 18.0 * torch.sin(t.detach()) * torch.cos(t.detach())
    torch.testing.assert_close(t.grad, expected, rtol=1e-4, atol=1e-5)


def test_dlpack_both_ways(torch):
    x = wp.array(np.arange(10), dtype=float, device=DEVICE)
    t = torch.from_dlpack(x)
    assert t.data_ptr() == x.ptr and t.tolist() == list(range(10))
    t += 1.0
    assert x.list() == list(range(1, 11))
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        made = torch.zeros(COUNT, device="cuda")
        for _ in range(20):
            made += 1.0
        y = wp.from_dlpack(made)
    wp.launch(add_one, COUNT, inputs=[y])
    assert y.numpy()[-1] == 21.0


def test_memory_of_both_comes_and_goes(torch):
    """Memory that one gives back the other can take, and if there is none an error leaves everything usable."""
    size = wp.get_device(DEVICE).free_memory // 2
    wp.set_mempool_release_threshold(DEVICE, 0)
    for _ in range(2):
        x = wp.empty(size, dtype=wp.uint8, device=DEVICE)
        del x
        wp.synchronize()
        t = torch.empty(size, dtype=torch.uint8, device="cuda")
        with pytest.raises(RuntimeError, match="memory"):
            wp.empty(2 * size, dtype=wp.uint8, device=DEVICE)
        del t
        torch.cuda.empty_cache()
    assert wp.full(3, 1.0, device=DEVICE).list() == [1.0] * 3


def test_a_launch_is_in_order_with_the_current_stream(torch):
    """Without a word about streams: work of milliseconds lies before each launch."""
    side = torch.cuda.Stream()
    t = torch.zeros(COUNT, device="cuda")
    torch.cuda.synchronize()
    for turn in range(10):
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            t.mul_(0.5)
            wp.launch(add_one, COUNT, inputs=[t], device=DEVICE)
            found = t.clone()
        side.synchronize()
        assert torch.allclose(found, torch.full_like(found, 2.0 - 0.5**turn))


def test_a_graph_of_torch_has_launches_that_name_no_stream(torch):
    t = torch.zeros(COUNT, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        t.mul_(0.5)
        wp.launch(add_one, COUNT, inputs=[t], device=DEVICE)
    assert t[0].item() == 0.0
    for _ in range(60):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.allclose(t, torch.full_like(t, 2.0))


def test_an_operator_has_gradients(torch):
    op = wp.torch_op(wave_of)
    t = torch.linspace(0.0, 3.0, 1000, device="cuda", dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(op, t) and torch.autograd.gradgradcheck(op, t)
    compiled = torch.compile(lambda x: op(op(x)).sum(), fullgraph=True)
    (found,) = torch.autograd.grad(compiled(t), t)
    (expected,) = torch.autograd.grad(torch.sin(torch.sin(t)).sum(), t)
    torch.testing.assert_close(found, expected)


def test_an_operator_works_in_the_current_stream(torch):
    op, side = wp.torch_op(wave_of), torch.cuda.Stream()
    t = torch.zeros(COUNT, device="cuda", dtype=torch.float64, requires_grad=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        for turn in range(10):
            torch.cuda._sleep(20_000_000)
            with torch.no_grad():
                t.fill_(float(turn))
            y = op(t)
            (slope,) = torch.autograd.grad(y.sum(), t)
            torch.testing.assert_close(y, torch.sin(t))
            torch.testing.assert_close(slope, torch.cos(t))
            del y, slope  # their memory is used again


def test_a_graph_of_torch_has_operators_and_their_gradients(torch):
    op = wp.torch_op(wave_of)
    t = torch.zeros(COUNT, device="cuda", dtype=torch.float64, requires_grad=True)
    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm):
        torch.autograd.grad(op(t).sum(), t)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(t)
        (slope,) = torch.autograd.grad(y.sum(), t)
    for value in (0.5, 2.0):
        with torch.no_grad():
            t.fill_(value)
        graph.replay()
        torch.testing.assert_close(y, torch.sin(t))
        torch.testing.assert_close(slope, torch.cos(t))


# ---- JAX ----


def test_kernels_in_programs_of_jax(jax):
    numpy = jax.numpy
    function = wp.jax_kernel(wave_of_floats)
    x = numpy.linspace(0.0, 3.0, 1000)
    program = jax.jit(lambda x: function(2.0 * x)[0] * 3.0)
    assert program(x).devices() == x.devices()
    for _ in range(5):  # XLA captures at a later run
        np.testing.assert_allclose(program(x), 3.0 * numpy.sin(2.0 * x), rtol=1e-5, atol=1e-5)
    slope = jax.jit(jax.grad(lambda x: program(x).sum()))(x)
    np.testing.assert_allclose(slope, 6.0 * numpy.cos(2.0 * x), rtol=1e-4, atol=1e-4)
    samples = x.reshape(8, 125)
    np.testing.assert_allclose(jax.jit(jax.vmap(function))(samples)[0], numpy.sin(samples), rtol=1e-5, atol=1e-5)
    moved = jax.jvp(program, (x,), (numpy.ones_like(x),))[1]
    np.testing.assert_allclose(moved, 6.0 * numpy.cos(2.0 * x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["NONE", "JAX"])
def test_python_functions_in_programs_of_jax(jax, mode):
    def twice(x: wp.array[float], y: wp.array[float]):
        made = wp.zeros(x.shape, dtype=float)
        wp.launch(wave_of_floats, x.shape, inputs=[x], outputs=[made])
        wp.launch(wave_of_floats, x.shape, inputs=[made], outputs=[y])

    program = jax.jit(wp.jax_callable(twice, graph_mode=wp.JaxCallableGraphMode[mode]))
    for turn in range(5):
        x = jax.numpy.linspace(float(turn), 3.0, 1000)
        np.testing.assert_allclose(program(x)[0], jax.numpy.sin(jax.numpy.sin(x)), rtol=1e-5, atol=1e-5)


def test_arrays_of_jax(jax):
    x = jax.numpy.arange(1000.0) * 2.0
    y = wp.zeros(1000, dtype=float, device=DEVICE)
    wp.launch(wave_of_floats, 1000, inputs=[x], outputs=[y], device=DEVICE)
    np.testing.assert_allclose(y.numpy(), jax.numpy.sin(x), rtol=1e-4, atol=1e-4)
    assert wp.from_jax(x).device == DEVICE
    shared = wp.to_jax(y)
    assert shared.unsafe_buffer_pointer() == y.ptr
    np.testing.assert_array_equal(shared + 0.0, y.numpy())


# ---- Paddle ----


def test_tensors_of_paddle(paddle):
    p = paddle.arange(1000, dtype="float32")
    assert "gpu" in str(p.place)
    x = wp.from_paddle(p)
    assert x.device == DEVICE and x.ptr == p.data_ptr()
    wp.launch(add_one, 1000, inputs=[x], device=DEVICE)
    wp.launch(add_one, 1000, inputs=[p], device=DEVICE)
    np.testing.assert_array_equal(p.numpy(), np.arange(1000) + 2.0)
    back = wp.to_paddle(wp.full(7, 3.0, dtype=float, device=DEVICE))
    assert back.tolist() == [3.0] * 7


def test_a_stream_of_paddle_is_in_order_with_launches(paddle):
    side = paddle.device.Stream(DEVICE.replace("cuda", "gpu"))
    p = paddle.zeros([COUNT], dtype="float32")
    paddle.device.synchronize()
    with paddle.device.stream_guard(side):
        for _ in range(50):
            p = p * 0.5
            wp.launch(add_one, COUNT, inputs=[p], device=DEVICE)
        found = p.numpy()
    np.testing.assert_allclose(found, 2.0, rtol=1e-6)


# ---- Numba ----


def test_arrays_of_numba(numba):
    from numba import cuda

    stream = cuda.stream()
    theirs = cuda.to_device(np.arange(1000, dtype=np.float32), stream=stream)  # it names its stream
    wp.launch(add_one, 1000, inputs=[theirs], device=DEVICE)
    np.testing.assert_array_equal(theirs.copy_to_host(stream=stream), np.arange(1000) + 1.0)
    ours = wp.ones(10, dtype=float, device=DEVICE)
    assert cuda.as_cuda_array(ours).copy_to_host().tolist() == [1.0] * 10


# ---- CuPy ----


def test_the_current_stream_of_cupy_is_in_order_with_launches(cupy):
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        y = cupy.zeros(COUNT, dtype=cupy.float32)
        for _ in range(50):
            y *= 0.5
            wp.launch(add_one, COUNT, inputs=[y], device=DEVICE)
        cupy.testing.assert_allclose(y, 2.0, rtol=1e-6)


def test_arrays_of_cupy(cupy):
    theirs = cupy.arange(1000, dtype=cupy.float32)
    wp.launch(add_one, 1000, inputs=[theirs], device=DEVICE)
    cupy.testing.assert_array_equal(theirs, cupy.arange(1000, dtype=cupy.float32) + 1.0)
    x = wp.array(np.arange(6), dtype=float, device=DEVICE)
    shared = cupy.asarray(x)
    assert shared.data.ptr == x.ptr
    shared *= 2.0
    assert x.list() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        y = cupy.zeros(COUNT, dtype=cupy.float32)
        for _ in range(50):
            y *= 0.5
            wp.launch(add_one, COUNT, inputs=[y], stream=wp.Stream(DEVICE, cuda_stream=stream.ptr))
        cupy.testing.assert_allclose(y, 2.0)


def test_both_of_them_in_one_process(torch, cupy):
    x = wp.array(np.arange(100), dtype=float, device=DEVICE)
    t, c = wp.to_torch(x), cupy.asarray(x)
    assert t.sum().item() == float(c.sum()) == float(np.arange(100).sum())
