"""Operators of PyTorch with tensors on emulated CUDA devices; test_torch_cuda.py runs it in a process of its own.

Prints the name of each check, and its error if it fails.
"""

import contextlib
import ctypes
import gc
import io
import re
import runpy
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import numpy as np
import torch_on_emulated_device as emulated
import warp as wp

torch = emulated.begin(sys.argv[1])

from emulated_driver import other_library  # noqa: E402
from stream_kernels import read, triple, write  # noqa: E402
from test_torch_op import CASES, SMOOTH_TWICE, arguments, as_tuple  # noqa: E402

DEVICE = "cuda:0"
COUNT = 1000


@wp.kernel
def bits(x: wp.array[wp.uint32], y: wp.array[wp.uint32], z: wp.array[wp.vec2]):
    i = wp.tid()
    y[i] = x[i] ^ wp.uint32(1)
    z[i] = wp.vec2(float(i), 1.0)


@wp.kernel
def sum_of(x: wp.array[float], y: wp.array[float], total: wp.array[float]):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i] * x[i] * y[i])


@wp.kernel
def tells(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    if i == 0:
        print(x[i])
    y[i] = x[i]


triple_op, tells_op = wp.torch_op(triple), wp.torch_op(tells)
sum_op = wp.torch_op(sum_of, output_dims=1)


def to(tensor, device=DEVICE, requires_grad=None):
    made = wp.to_torch(wp.array(tensor.detach().numpy(), device=device), requires_grad=False)
    return made.requires_grad_(tensor.requires_grad if requires_grad is None else requires_grad)


def back(tensor):
    wp.synchronize_device(str(tensor.device))
    return torch.from_numpy(wp.from_torch(tensor.detach(), requires_grad=False).numpy().copy())


def close(found, expected):
    for one, other in zip(as_tuple(found), as_tuple(expected), strict=True):
        torch.testing.assert_close(back(one), other.detach(), rtol=1e-10, atol=1e-12)


def zeros(device=DEVICE):
    return to(torch.zeros(COUNT), device)


class SideStream:
    """A stream of PyTorch that nothing orders with ours, and that lives for ever, as its streams do."""

    def __enter__(self):
        self.other = other_library()
        self.handle = self.other.made("cuStreamCreate", 1)
        self.stream = wp.Stream(DEVICE, cuda_stream=self.handle.value)
        return self

    def put(self, kernel, *inputs):
        with wp.ScopedStream(self.stream, sync_enter=False):
            wp.launch(kernel, COUNT, inputs=[*inputs], device=DEVICE)

    def __exit__(self, *exception):
        wp.synchronize_device(DEVICE)


def array_of(tensor):
    return wp.from_torch(tensor.detach(), requires_grad=False)


# ---- checks ----


def values_and_gradients():
    for ours, theirs, shapes in CASES.values():
        given = arguments(shapes)
        there = [to(one) for one in given]
        found, expected = as_tuple(ours(*there)), as_tuple(theirs(*given))
        assert all(str(one.device) == DEVICE for one in found)
        close(found, expected)
        seeds = arguments([one.shape for one in expected], requires_grad=False)
        gradients = torch.autograd.grad(found, there, [to(one) for one in seeds])
        assert all(str(one.device) == DEVICE for one in gradients)
        close(gradients, torch.autograd.grad(expected, given, seeds))
        close(tuple(there), tuple(given))  # inputs are as they were


def second_derivatives():
    for name in SMOOTH_TWICE:
        ours, theirs, shapes = CASES[name]
        given = arguments(shapes)
        found = []
        for function, arrays, convert in ((ours, [to(one) for one in given], to), (theirs, given, lambda one: one)):
            outputs = as_tuple(function(*arrays))
            seeds = [convert(one) for one in arguments([one.shape for one in outputs], requires_grad=False)]
            first = torch.autograd.grad(outputs, arrays, seeds, create_graph=True)
            vectors = [convert(one) for one in arguments([one.shape for one in first], requires_grad=False)]
            found.append(torch.autograd.grad(first, arrays, vectors))
        close(*found)


def gradients_are_accumulated():
    x = to(torch.arange(4.0), requires_grad=True)
    seed = to(torch.ones(4))
    triple_op(x).backward(seed)
    (triple_op(x) * triple_op(x)).backward(seed)
    np.testing.assert_allclose(back(x.grad).numpy(), 3.0 + 18.0 * np.arange(4.0))


def on_the_device_of_the_tensors():
    x = to(torch.arange(4.0), "cuda:1", requires_grad=True)
    emulated.calls.clear()
    y = triple_op(x)
    assert str(y.device) == "cuda:1" and emulated.calls == ["cuda:1"]  # in memory of PyTorch
    y.backward(to(torch.ones(4), "cuda:1"))
    assert str(x.grad.device) == "cuda:1" and back(x.grad).tolist() == [3.0] * 4
    assert triple_op(torch.arange(4.0)).tolist() == [0.0, 3.0, 6.0, 9.0]


def types_of_the_results():
    op = wp.torch_op(bits, num_outputs=2)
    y, z = op(to(torch.tensor([5, 6], dtype=torch.int32)))
    assert y.dtype is torch.int32 and back(y).tolist() == [4, 7] and tuple(z.shape) == (2, 2)


def operators_of_the_library():
    """As compiled programs call them."""
    x = to(torch.arange(4.0), requires_grad=True)
    (y,) = torch.ops.weft.launch(triple_op.number, [x], [0], [4, 4])
    y.backward(to(torch.ones(4)))
    assert back(y).tolist() == [0.0, 3.0, 6.0, 9.0] and back(x.grad).tolist() == [3.0] * 4


def compiled_programs():
    function = torch.compile(lambda x: triple_op(triple_op(x)), fullgraph=True, backend="aot_eager")
    x = to(torch.arange(4.0), requires_grad=True)
    y = function(x)
    y.backward(to(torch.ones(4)))
    assert back(y).tolist() == [0.0, 9.0, 18.0, 27.0] and back(x.grad).tolist() == [9.0] * 4


def in_the_current_stream():
    with SideStream() as side, emulated.stream(side.handle.value):
        x, y, z = zeros(), zeros(), zeros()
        wp.synchronize_device(DEVICE)
        side.put(write, array_of(x), 7.0)
        waits = [side.other.driver.weftEmulatedCalls(b"cuStreamWaitEvent")]
        found = triple_op(x)
        waits.append(side.other.driver.weftEmulatedCalls(b"cuStreamWaitEvent"))
        side.put(read, array_of(found), array_of(y))
        wp.synchronize_stream(side.stream)
        assert set(array_of(y).numpy()) == {21.0} and waits[0] == waits[1]
        # The gradient too
        wp.synchronize_device(DEVICE)
        seed = zeros().requires_grad_(False)
        wp.synchronize_device(DEVICE)
        x.requires_grad_(True)
        side.put(write, array_of(seed), 2.0)
        (slope,) = torch.autograd.grad(triple_op(x), x, seed)
        side.put(read, array_of(slope), array_of(z))
        wp.synchronize_stream(side.stream)
        assert set(array_of(z).numpy()) == {6.0}


def the_benchmark_of_tensors_runs():
    module = "warp.examples.benchmarks.benchmark_interop_torch"
    before, sys.argv = sys.argv, [module, "--rounds", "3", "--device", DEVICE]
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            runpy.run_module(module, run_name="__main__")
    finally:
        sys.argv = before
    ways = ["from_torch(...)", "from_torch(..., return_ctype=True)", "direct from torch"]
    kinds = ["default", "float32", "vec3f", "mat22f"]
    lines = [re.sub(r"^ *\d+ ms", "ms", line) for line in out.getvalue().splitlines()]
    assert lines == [line for kind in kinds for line in [f"dtype={kind}", *(f"ms  {way}" for way in ways)]], lines


def nothing_waits():
    names = [b"cuStreamSynchronize", b"cuStreamQuery", b"cuCtxSynchronize", b"cuEventSynchronize"]
    with SideStream() as side, emulated.stream(side.handle.value):
        x, seed = zeros().requires_grad_(True), zeros()
        one = x.detach().new_empty(1).fill_(1.0)
        torch.autograd.grad(triple_op(x), x, seed)  # compiles
        torch.autograd.grad(sum_op(x, x), x, one)
        wp.synchronize_device(DEVICE)
        before = [side.other.driver.weftEmulatedCalls(name) for name in names]
        torch.autograd.grad(triple_op(x), x, seed)
        torch.autograd.grad(sum_op(x, x), x, one)
        assert side.other.driver.weftEmulatedCalls(b"cuLaunchKernel") > 0
        assert [side.other.driver.weftEmulatedCalls(name) for name in names] == before


def prints_come_with_the_call():
    with SideStream() as side, emulated.stream(side.handle.value):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            tells_op(to(torch.full((4,), 6.5)))
        assert said.getvalue().split() == ["6.5"]


def a_graph_of_the_library():
    """A capture of PyTorch, of launches that need memory for their adjoint."""
    with SideStream() as side, emulated.stream(side.handle.value):
        x, y, seed = zeros().requires_grad_(True), zeros(), zeros()
        slope, total = zeros(), to(torch.zeros(1))
        one = x.detach().new_empty(1).fill_(1.0)
        torch.autograd.grad(sum_op(triple_op(x), y), x, one)  # compiles
        wp.synchronize_device(DEVICE)
        side.other.begin(side.handle)
        found = sum_op(triple_op(x), y)
        (gradient,) = torch.autograd.grad(found, x, one)
        total.copy_(found.detach())
        slope.copy_(gradient)
        graph = side.other.end(side.handle)
        assert set(array_of(slope).numpy()) == {0.0}
        del found, gradient, seed
        gc.collect()
        for value in (2.0, 5.0):
            array_of(x).fill_(value)
            array_of(y).fill_(0.5)
            wp.synchronize_device(DEVICE)
            side.other.launch(graph, side.handle)
            wp.synchronize_device(DEVICE)
            assert array_of(total).numpy()[0] == COUNT * 9.0 * value * value * 0.5
            assert set(array_of(slope).numpy()) == {9.0 * value}
        side.other.call("cuGraphExecDestroy", graph)


def bad_input():
    x, far = to(torch.arange(4.0)), to(torch.arange(4.0), "cuda:1")
    near = torch.arange(4.0)
    for first, second, wrong in ((x, far, "cuda:1"), (x, near, "cpu"), (near, x, "cuda:0")):
        try:
            sum_op(first, second)
        except RuntimeError as error:
            text = str(error)
            assert f"it is on '{wrong}', and the first tensor is on '{first.device}'" in text and "help" in text, text
        else:
            raise AssertionError("tensors of two devices became one launch")
    assert back(triple_op(x)).tolist() == [0.0, 3.0, 6.0, 9.0]


def results_live_as_long_as_they_are_used():
    """Memory of PyTorch, which is freed with the tensor, and no other time."""
    other = other_library()

    def alive():
        gc.collect()
        wp.synchronize_device(DEVICE)
        other.call("cuCtxSynchronize")
        return other.driver.weftEmulatedAlive(b"allocations")

    x = to(torch.arange(4.0), requires_grad=True)
    triple_op(x)
    before = alive()
    results = [triple_op(x) for _ in range(5)]
    assert alive() == before + 5
    assert all(back(one).tolist() == [0.0, 3.0, 6.0, 9.0] for one in results)
    del results
    assert alive() == before
    torch.autograd.grad(triple_op(x), x, to(torch.ones(4)))
    assert alive() == before


CHECKS = [
    values_and_gradients,
    second_derivatives,
    gradients_are_accumulated,
    on_the_device_of_the_tensors,
    prints_come_with_the_call,
    types_of_the_results,
    operators_of_the_library,
    compiled_programs,
    in_the_current_stream,
    nothing_waits,
    the_benchmark_of_tensors_runs,
    a_graph_of_the_library,
    bad_input,
    results_live_as_long_as_they_are_used,
]

if __name__ == "__main__":
    ctypes.CDLL(sys.argv[1])
    for check in CHECKS:
        try:
            check()
        except Exception:
            print(f"{check.__name__}: failed\n{traceback.format_exc()}", flush=True)
        else:
            print(f"{check.__name__}: passed", flush=True)
