"""Tensors of torch that have no memory as DLPack tells it, or another meaning: errors, and nothing is written."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
import warp as wp

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later"),
]  # torch's about its sparse and quantized tensors


@wp.kernel
def add_to(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[i] + y[i]


class Wrapper(torch.Tensor):
    """Numbers that only its own code knows."""

    @staticmethod
    def __new__(cls, inside):
        tensor = torch.Tensor._make_wrapper_subclass(cls, inside.size(), dtype=inside.dtype)
        tensor.inside = inside
        return tensor

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return NotImplemented


def fake():
    with torch._subclasses.fake_tensor.FakeTensorMode():
        return torch.ones(4)


# Each with what the error says.
MAKES = {
    "sparse": (lambda: torch.ones(4).to_sparse(), "storage"),
    "sparse rows": (lambda: torch.eye(4).to_sparse_csr(), "storage"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8), "not supported"),
    "meta": (lambda: torch.ones(4, device="meta"), "meta"),
    "fake": (fake, "no memory"),
    "wrapper": (lambda: Wrapper(torch.ones(4)), "no memory"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "torch.Tensor"),
    "mkldnn": (lambda: torch.ones(4).to_mkldnn(), "storage"),
    "zeros without memory": (lambda: torch._efficientzerotensor((4,), dtype=torch.float32), "no memory"),
    "complex": (lambda: torch.ones(4, dtype=torch.complex64), "complex64"),
    "conjugated": (lambda: torch.ones(4, dtype=torch.complex64).conj(), "complex64"),
    "imaginary part of conjugated": (lambda: torch.ones(4, dtype=torch.complex64).conj().imag, "negated"),
    "negated": (lambda: torch._neg_view(torch.arange(4.0)), "negated"),
    "slice of negated": (lambda: torch._neg_view(torch.arange(8.0))[::2], "negated"),
}


@pytest.mark.parametrize("name", MAKES)
def test_what_has_no_plain_memory_is_refused(name):
    make, message = MAKES[name]
    tensor, other = make(), torch.zeros(4)
    with pytest.raises((TypeError, RuntimeError), match=message):
        wp.from_torch(tensor)
    for inputs in ([tensor, other], [other, tensor]):
        with pytest.raises((TypeError, RuntimeError), match=rf"of kernel 'add_to' is (.|\n)*{message}"):
            wp.launch(add_to, dim=4, inputs=inputs)
    with pytest.raises((TypeError, RuntimeError)):
        wp.array(tensor, dtype=float)
    assert not other.any()


def test_a_negated_view_is_fine_once_it_is_resolved():
    t = torch.tensor([1.0 + 2.0j, 3.0 + 4.0j]).conj().imag
    np.testing.assert_array_equal(wp.from_torch(t.resolve_neg()).numpy(), [-2.0, -4.0])
    assert wp.from_torch(torch.tensor([1.0 + 2.0j]).imag).list() == [2.0]


@pytest.mark.parametrize("transform", ["vmap", "grad", "jvp", "functionalize", "vmap of grad"])
def test_launches_inside_of_transforms_are_errors(transform):
    written = torch.zeros(4)

    def launches(x):
        wp.launch(add_to, dim=4, inputs=[x, written])
        return x.sum()

    def writes(x):
        y = x * 1.0
        wp.launch(add_to, dim=4, inputs=[torch.ones(4), y])
        return y.sum()

    def converts(x):
        wp.launch(add_to, dim=4, inputs=[wp.from_torch(x), written])
        return x.sum()

    func = torch.func
    runs = {
        "vmap": lambda f: func.vmap(f)(torch.ones(3, 4)),
        "grad": lambda f: func.grad(f)(torch.ones(4)),
        "jvp": lambda f: func.jvp(f, (torch.ones(4),), (torch.ones(4),)),
        "functionalize": lambda f: func.functionalize(f)(torch.ones(4)),
        "vmap of grad": lambda f: func.vmap(func.grad(f))(torch.ones(3, 4)),
    }
    for function in (launches, writes, converts):
        with pytest.raises((TypeError, RuntimeError)):
            runs[transform](function)
        assert not written.any()


@pytest.mark.parametrize("make", [torch.nn.Parameter, lambda t: t.as_subclass(type("Named", (torch.Tensor,), {}))])
def test_subclasses_with_plain_memory_are_read(make):
    y = torch.zeros(4)
    wp.launch(add_to, dim=4, inputs=[make(torch.arange(4.0)), y])
    assert y.tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "make", [lambda: torch.zeros(4, requires_grad=True), lambda: torch.zeros(4, requires_grad=True) * 2.0]
)
def test_what_requires_a_gradient_is_not_written(make):
    tensor = make()
    with pytest.raises(
        ValueError, match=r"argument 2 'y' of kernel 'add_to'.*requires a gradient.*help: tensor.detach"
    ):
        wp.launch(add_to, dim=4, inputs=[torch.ones(4), tensor])
    assert not tensor.any()
    wp.launch(add_to, dim=4, inputs=[torch.ones(4), tensor.detach()])
    assert tensor.tolist() == [1.0] * 4


def test_numbers_of_other_widths_are_named():
    for dtype in (torch.float64, torch.bfloat16, torch.int32, torch.bool):
        with pytest.raises(TypeError, match=f"its numbers are {str(dtype)[6:]}, expected float32"):
            wp.launch(add_to, dim=4, inputs=[torch.ones(4).to(dtype), torch.ones(4)])
    with pytest.raises(TypeError, match="it has 2 dimensions, expected 1"):
        wp.launch(add_to, dim=4, inputs=[torch.ones(4, 4), torch.ones(4)])


def test_bytes_of_bool_and_bfloat16_are_shared():
    flags = torch.tensor([True, False, True])
    a = wp.from_torch(flags)
    a.fill_(True)
    assert a.dtype is wp.bool and flags.all()
    halves = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    b = wp.from_torch(halves)
    assert b.dtype is wp.bfloat16 and [float(x) for x in b.list()] == [1.5, -2.0]
    b.fill_(3.0)
    assert halves.tolist() == [3.0, 3.0]


def test_nothing_in_no_elements():
    empty = torch.zeros(0, 3, requires_grad=True)
    a = wp.from_torch(empty, dtype=wp.vec3)
    assert a.shape == (0,) and a.grad.shape == (0,) and wp.to_torch(a).shape == (0, 3)
    wp.launch(add_to, dim=0, inputs=[torch.zeros(0), torch.zeros(0)])


def test_strides_of_any_kind_are_read_as_they_lie():
    base = torch.arange(24.0).reshape(4, 6)
    for t in (base[:, ::2], base.T, base[1:3, 2:4], torch.arange(3.0).expand(4, 3)):
        np.testing.assert_array_equal(wp.from_torch(t).numpy(), t.numpy())
        np.testing.assert_array_equal(wp.to_torch(wp.from_torch(t)).numpy(), t.numpy())


@pytest.mark.large
def test_arrays_over_two_gibibytes():
    count = (1 << 31) + 16
    t = torch.zeros(count, dtype=torch.uint8)
    t[-1] = 7
    a = wp.from_torch(t)
    assert a.shape == (count,) and a.numpy()[-1] == 7
    a[-2:].fill_(5)
    assert t[-2:].tolist() == [5, 5] and wp.to_torch(a)[-1] == 5
    last = wp.from_torch(t.reshape(2, -1))[1]
    assert last.numpy()[-1] == 5


@pytest.mark.parametrize(("name", "package"), [("torch", "torch"), ("paddle", "paddlepaddle")])
def test_without_the_framework_everything_but_its_functions_works(name, package):
    code = f"""
        import sys
        sys.modules[{name!r}] = None
        class Hidden:
            def find_spec(self, module, path=None, target=None):
                if module.partition(".")[0] == {name!r}:
                    raise ModuleNotFoundError("No module named {name}", name={name!r})
        del sys.modules[{name!r}]
        sys.meta_path.insert(0, Hidden())
        import warp as wp
        import warp.{name}
        a = wp.zeros(3)
        asks = (lambda: wp.to_{name}(a), lambda: wp.from_{name}(a), lambda: wp.dtype_to_{name}(wp.float32),
                lambda: wp.device_from_{name}("cpu"), lambda: wp.stream_from_{name}())
        for ask in asks:
            try:
                ask()
            except ImportError as error:
                print(error)
        """
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines() == [f"{name} is not installed in this Python. help: pip install {package}"] * 5


def test_importing_warp_imports_no_framework():
    code = "import sys, warp, warp.torch, warp.paddle; print(sorted({'torch', 'paddle', 'jax'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "[]\n"
