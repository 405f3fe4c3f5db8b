"""Our own counterparts of the seeds' programs with PyTorch and Paddle, beside the same
programs in the framework alone. The samples themselves run in tests/documents/test_tensor_documents.py."""

from __future__ import annotations

import random

import numpy as np
import paddle
import pytest
import torch
import warp as wp

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")


@wp.kernel
def loss_kernel(xs: wp.array(dtype=float, ndim=2), l: wp.array(dtype=float)):
    tid = wp.tid()
    wp.atomic_add(l, 0, xs[tid, 0] ** 2.0 + xs[tid, 1] ** 2.0)


@wp.kernel
def saxpy(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


POINTS = np.random.default_rng(7).normal(size=(100, 2)).astype(np.float32)


class Torch:
    def __init__(self):
        self.convert, self.back = wp.from_torch, wp.to_torch

    def points(self):
        return torch.tensor(POINTS, requires_grad=True), torch.zeros(1, requires_grad=True)

    def adam(self, parameters):
        return torch.optim.Adam(parameters, lr=0.1)

    def numbers(self, tensor):
        return tensor.detach().numpy()

    def arange(self, n):
        return torch.arange(n, dtype=torch.float32, device=wp.device_to_torch("cpu")), torch.ones(n)


class Paddle:
    def __init__(self):
        self.convert, self.back = wp.from_paddle, wp.to_paddle

    def points(self):
        made = [paddle.to_tensor(values, place="cpu") for values in (POINTS, np.zeros(1, np.float32))]
        for tensor in made:
            tensor.stop_gradient = False
        return made

    def adam(self, parameters):
        return paddle.optimizer.Adam(learning_rate=0.1, parameters=parameters)

    def numbers(self, tensor):
        return tensor.numpy()

    def arange(self, n):
        x = paddle.arange(n, dtype=paddle.float32).to(device=wp.device_to_paddle("cpu"))
        return x, paddle.ones([n], dtype=paddle.float32).to(device=wp.device_to_paddle("cpu"))


@pytest.fixture(params=[Torch, Paddle])
def tensors(request):
    return request.param()


def descended(steps: int) -> list[float]:
    """The losses before each step of Adam, by its formulas in double precision."""
    x = POINTS.astype(np.float64)
    m, v, losses = np.zeros_like(x), np.zeros_like(x), []
    for step in range(1, steps + 1):
        losses.append(float((x**2).sum()))
        m, v = 0.9 * m + 0.1 * 2 * x, 0.999 * v + 0.001 * 4 * x**2
        x = x - 0.1 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    return losses


@pytest.mark.seed("S-TOR-013", "P-10", "P-12", "P-36")
def test_an_optimizer_moves_the_array_over_its_tensor(tensors):
    xs, l = tensors.points()
    opt = tensors.adam([xs])
    wp_xs, wp_l = tensors.convert(xs), tensors.convert(l)
    tape = wp.Tape()
    with tape:
        wp.launch(loss_kernel, dim=len(xs), inputs=[wp_xs], outputs=[wp_l], device=wp_xs.device)
    losses = []
    for _ in range(200):
        wp_l.zero_()
        wp.launch(loss_kernel, dim=len(xs), inputs=[wp_xs], outputs=[wp_l], device=wp_xs.device)
        losses.append(l.item())
        tape.zero()
        tape.backward(loss=wp_l)
        opt.step()
    assert 90 < losses[0] < 260 and losses[50] < 1 and losses[100] < 0.01 and losses[199] < 1e-6
    np.testing.assert_allclose(losses[:40], descended(40), rtol=2e-3)
    assert wp_xs.ptr == xs.data_ptr()


@pytest.mark.seed("S-TOR-013", "S-PAD-005", "P-11", "P-13", "P-37", "P-38")
def test_an_optimizer_moves_the_tensor_over_an_array(tensors):
    xs = wp.array(POINTS, dtype=wp.float32, requires_grad=True)
    l = wp.zeros(1, dtype=wp.float32, requires_grad=True)
    opt = tensors.adam([tensors.back(xs)])
    tape = wp.Tape()
    with tape:
        wp.launch(loss_kernel, dim=len(xs), inputs=[xs], outputs=[l], device=xs.device)
    losses = []
    for _ in range(200):
        l.zero_()
        wp.launch(loss_kernel, dim=len(xs), inputs=[xs], outputs=[l], device=xs.device)
        losses.append(float(l.numpy()[0]))
        tape.zero()
        tape.backward(loss=l)
        opt.step()
    assert 90 < losses[0] < 260 and losses[50] < 1 and losses[100] < 0.01 and losses[199] < 1e-6
    np.testing.assert_allclose(losses[:40], descended(40), rtol=2e-3)


@pytest.mark.seed("P-16", "P-17", "P-18", "P-19")
@pytest.mark.seed("P-39", "P-40", "P-41", "P-42", "S-PAD-007")
@pytest.mark.parametrize("way", ["each time", "once", "structures", "direct"])
def test_saxpy_ten_times(tensors, way):
    n = 100
    x, y = tensors.arange(n)
    inputs = [tensors.convert(x), tensors.convert(y), 1.0]
    for _ in range(10):
        if way == "each time":
            inputs = [tensors.convert(x), tensors.convert(y), 1.0]
        elif way == "structures":
            inputs = [tensors.convert(x, return_ctype=True), tensors.convert(y, return_ctype=True), 1.0]
        elif way == "direct":
            inputs = [x, y, 1.0]
        wp.launch(saxpy, dim=n, inputs=inputs, device="cpu")
    np.testing.assert_array_equal(tensors.numbers(y), 10.0 * np.arange(n) + 1.0)


@pytest.mark.seed("P-06")
def test_tensors_on_whatever_device_is_here():
    device = random.choice(["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))])
    x = torch.arange(64, dtype=torch.float32, device=device)
    y = torch.ones(64, dtype=torch.float32, device=device)
    wp.launch(saxpy, dim=64, inputs=[x, y, 1.0], device=device)
    assert torch.equal(y, x + 1.0)


# ---- Rosenbrock's function ----


@wp.func
def rosenbrock(x: float, y: float):
    return (1.0 - x) ** 2.0 + 100.0 * (y - x**2.0) ** 2.0


@wp.kernel
def eval_rosenbrock(xs: wp.array(dtype=wp.vec2), z: wp.array(dtype=float)):
    i = wp.tid()
    x = xs[i]
    z[i] = rosenbrock(x[0], x[1])


class ByAdjointLaunch(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xy, num_points):
        ctx.xy = wp.from_torch(xy, dtype=wp.vec2, requires_grad=True)
        ctx.num_points = num_points
        ctx.z = wp.zeros(num_points, requires_grad=True)
        wp.launch(kernel=eval_rosenbrock, dim=ctx.num_points, inputs=[ctx.xy], outputs=[ctx.z])
        return wp.to_torch(ctx.z)

    @staticmethod
    def backward(ctx, adj_z):
        ctx.z.grad = wp.from_torch(adj_z)
        wp.launch(
            kernel=eval_rosenbrock,
            dim=ctx.num_points,
            inputs=[ctx.xy],
            outputs=[ctx.z],
            adj_inputs=[ctx.xy.grad],
            adj_outputs=[ctx.z.grad],
            adjoint=True,
        )
        return (wp.to_torch(ctx.xy.grad), None)


class ByTape(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xy, num_points):
        ctx.xy = wp.from_torch(xy, dtype=wp.vec2, requires_grad=True)
        ctx.z = wp.zeros(num_points, requires_grad=True)
        ctx.tape = wp.Tape()
        with ctx.tape:
            wp.launch(kernel=eval_rosenbrock, dim=num_points, inputs=[ctx.xy], outputs=[ctx.z])
        return wp.to_torch(ctx.z)

    @staticmethod
    def backward(ctx, adj_z):
        ctx.tape.backward(grads={ctx.z: wp.from_torch(adj_z)})
        return (wp.to_torch(ctx.xy.grad), None)


@torch.library.custom_op("weft_tests::rosenbrock", mutates_args=())
def operator(xy: torch.Tensor, num_points: int) -> torch.Tensor:
    wp_xy = wp.from_torch(xy, dtype=wp.vec2)
    wp_z = wp.zeros(num_points, dtype=wp.float32)
    wp.launch(kernel=eval_rosenbrock, dim=num_points, inputs=[wp_xy], outputs=[wp_z])
    return wp.to_torch(wp_z)


@operator.register_fake
def _(xy, num_points):
    return torch.empty(num_points, dtype=torch.float32)


@torch.library.custom_op("weft_tests::rosenbrock_backward", mutates_args=())
def operator_backward(xy: torch.Tensor, num_points: int, z: torch.Tensor, adj_z: torch.Tensor) -> torch.Tensor:
    wp_xy = wp.from_torch(xy, dtype=wp.vec2, requires_grad=True)
    wp_z, wp_adj_z = wp.from_torch(z, requires_grad=False), wp.from_torch(adj_z, requires_grad=False)
    wp.launch(
        kernel=eval_rosenbrock,
        dim=num_points,
        inputs=[wp_xy],
        outputs=[wp_z],
        adj_inputs=[wp_xy.grad],
        adj_outputs=[wp_adj_z],
        adjoint=True,
    )
    return wp.to_torch(wp_xy.grad)


@operator_backward.register_fake
def _(xy, num_points, z, adj_z):
    return torch.empty_like(xy)


def _backward(ctx, adj_z):
    return operator_backward(ctx.xy, ctx.num_points, ctx.z, adj_z), None


def _setup(ctx, inputs, output):
    ctx.xy, ctx.num_points = inputs
    ctx.z = output


operator.register_autograd(_backward, setup_context=_setup)


def compiled_operator(xy, count):
    # inductor finds the C++ compiler that builds Weft; this graph has nothing that it would have to compile.
    return torch.compile(lambda: operator(xy, count), fullgraph=True)()


def compiled_function(xy, count):
    return torch.compile(lambda: ByAdjointLaunch.apply(xy, count), backend="eager")()


RUNS = {
    "adjoint launch": ByAdjointLaunch.apply,
    "tape": ByTape.apply,
    "operator": operator,
    "compiled operator": compiled_operator,
    "compiled function": compiled_function,
}


def exact_gradient(xy: np.ndarray) -> np.ndarray:
    x, y = xy.astype(np.float64).T
    inner = y - x**2
    return np.stack([-2 * (1 - x) - 400 * x * inner, 200 * inner], axis=1)


@pytest.mark.seed("S-TOR-006", "S-TOR-010", "S-TOR-011", "S-TOR-012", "S-TOR-018", "P-14", "P-15", "P-99", "P-101")
@pytest.mark.parametrize("name", RUNS)
def test_the_gradient_of_one_step_is_exact(name):
    torch.compiler.reset()
    start = np.random.default_rng(42).normal(size=(1500, 2))
    xy = torch.tensor(start, dtype=torch.float32, requires_grad=True)
    for _ in range(2):
        xy.grad = None
        z = RUNS[name](xy, len(xy))
        z.backward(torch.ones_like(z))
        np.testing.assert_allclose(xy.grad.numpy(), exact_gradient(xy.detach().numpy()), rtol=2e-4, atol=2e-3)


@pytest.mark.seed("P-14", "P-15")
@pytest.mark.parametrize("name", ["adjoint launch", "operator"])
def test_adam_goes_the_way_that_torch_alone_goes(name):
    start = np.random.default_rng(42).normal(size=(1500, 2))
    ours, theirs = (torch.tensor(start, dtype=torch.float32, requires_grad=True) for _ in range(2))
    optimizers = [torch.optim.Adam([xy], lr=5e-2) for xy in (ours, theirs)]
    for _ in range(300):
        for opt in optimizers:
            opt.zero_grad()
        z = RUNS[name](ours, len(ours))
        z.backward(torch.ones_like(z))
        ((1 - theirs[:, 0]) ** 2 + 100 * (theirs[:, 1] - theirs[:, 0] ** 2) ** 2).sum().backward()
        for opt in optimizers:
            opt.step()
    assert torch.allclose(ours, theirs, atol=0.01)


@pytest.mark.seed("S-TOR-012")
@pytest.mark.parametrize("requires_grad", [False, True])
def test_both_operators_pass_torchs_own_checks(requires_grad):
    xy = torch.randn(10, 2, requires_grad=requires_grad)
    torch.library.opcheck(operator, (xy, 10))
    torch.library.opcheck(operator_backward, (torch.randn(10, 2), 10, torch.randn(10), torch.randn(10)))


@pytest.mark.seed("P-100", "S-TOR-016")
def test_operations_of_the_framework_on_an_array(tensors):
    a = wp.array([1.0, -2.0, 3.0], dtype=float, requires_grad=True)
    t = tensors.back(a)
    ((t**3) * 2.0).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), 6.0 * a.numpy() ** 2)
    ((t**3) * 2.0).sum().backward()  # adds
    np.testing.assert_allclose(a.grad.numpy(), 12.0 * a.numpy() ** 2)
