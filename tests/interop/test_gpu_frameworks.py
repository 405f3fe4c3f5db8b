"""PyTorch and CuPy on a GPU: one process, one context, shared memory, streams, graphs and gradients.

They need builds of these for CUDA, so only `make gpu-check` on a machine that has them runs this file. Other files show
the same with stand-ins everywhere (test_cuda_streams.py, test_cuda_order.py, cuda/test_graphs.py).
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
    if module is None or (name == "torch" and not module.cuda.is_available()):
        pytest.skip("needs a GPU, and PyTorch and CuPy for it")
    return module


@pytest.fixture
def torch():
    return framework("torch")


@pytest.fixture
def cupy():
    return framework("cupy")


@wp.kernel
def add_one(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[i] + 1.0


@wp.kernel
def wave(x: wp.array[float], scale: float, y: wp.array[float]):
    i = wp.tid()
    y[i] = scale * wp.sin(x[i])


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


# ---- CuPy ----


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
