"""Arrays of other libraries as arguments of launches, with no conversion."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest
import warp as wp

from tests.interop.conftest import framework

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")


@wp.kernel
def saxpy(a: float, x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def double_grid(x: wp.array2d[float], out: wp.array2d[float]):
    i, j = wp.tid()
    out[i, j] = 2.0 * x[i, j]


@wp.kernel
def lengths(v: wp.array[wp.vec3], m: wp.array[wp.mat22], out: wp.array[float]):
    i = wp.tid()
    out[i] = wp.length_sq(v[i]) + 100.0 * wp.determinant(m[i])


@wp.kernel
def double_any(x: wp.array(dtype=Any), out: wp.array(dtype=Any)):
    i = wp.tid()
    out[i] = x[i] + x[i]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_generic_kernels_take_arrays_of_every_library(library, dtype):
    wide = contextlib.nullcontext()
    if library.name == "jax" and dtype == "float64":
        wide = importlib.import_module("jax").enable_x64(True)
    with wide:
        x = library.array(np.arange(5).astype(dtype))
        out = wp.zeros(5, dtype=getattr(wp, dtype))
        wp.launch(double_any, dim=5, inputs=[x, out])
        assert out.list() == [0, 2, 4, 6, 8]


def test_generic_kernels_write_to_tensors(writable_library):
    x, out = (writable_library.array(np.arange(5, dtype=np.float32)) for _ in range(2))
    wp.launch(double_any, dim=5, inputs=[x], outputs=[out])
    assert writable_library.numbers(out).tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_generic_kernels_take_tensors_of_bfloat16_and_of_vectors():
    torch = pytest.importorskip("torch")
    x, out = torch.ones(3, dtype=torch.bfloat16), torch.zeros(3, dtype=torch.bfloat16)
    wp.launch(double_any, dim=3, inputs=[x, out])
    assert out.dtype == torch.bfloat16 and out.tolist() == [2.0] * 3
    found = torch.zeros(2)

    @wp.kernel
    def sizes(v: wp.array(dtype=wp.types.vector(length=Any, dtype=Any)), out: wp.array(dtype=Any)):
        i = wp.tid()
        out[i] = wp.length(v[i])

    wp.launch(sizes, dim=2, inputs=[torch.tensor([[3.0, 4.0], [0.0, 2.0]]), found])
    assert found.tolist() == [5.0, 2.0]


def test_a_tensor_of_numbers_that_weft_has_not_is_named_in_a_generic_launch():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="complex"):
        wp.launch(double_any, dim=3, inputs=[torch.zeros(3, dtype=torch.complex64), torch.zeros(3)])


@pytest.mark.seed("S-DIR-001", "S-DIR-002", "S-DIR-003", "S-DIR-004", "S-DIR-006", "P-02", "P-06")
def test_a_kernel_writes_to_the_callers_array(writable_library):
    n = 1000
    x = writable_library.array(np.arange(n, dtype=np.float32))
    for outputs in ("inputs", "outputs"):
        y = writable_library.array(np.ones(n, dtype=np.float32))
        if outputs == "inputs":
            wp.launch(saxpy, dim=n, inputs=[1.0, x, y], device="cpu")
        else:
            wp.launch(saxpy, dim=n, inputs=[1.0, x], outputs=[y], device="cpu")
        np.testing.assert_array_equal(writable_library.numbers(y), np.arange(n) + 1)


@pytest.mark.seed("S-DIR-002")
def test_arrays_of_every_library_are_read(library):
    x = library.array(np.arange(12, dtype=np.float32).reshape(3, 4))
    out = wp.zeros((3, 4))
    wp.launch(double_grid, dim=(3, 4), inputs=[x, out])
    np.testing.assert_array_equal(out.numpy(), 2 * np.arange(12).reshape(3, 4))


def test_a_recorded_launch_keeps_and_rereads_the_memory(writable_library):
    x = writable_library.array(np.ones(4, np.float32))
    y = writable_library.array(np.zeros(4, np.float32))
    command = wp.launch(saxpy, dim=4, inputs=[2.0, x, y], record_cmd=True)
    command.launch()
    command.launch()
    np.testing.assert_array_equal(writable_library.numbers(y), [4, 4, 4, 4])
    command.set_param_by_name("y", writable_library.array(np.full(4, 10.0, np.float32)))
    command.launch()
    np.testing.assert_array_equal(writable_library.numbers(y), [4, 4, 4, 4])


@pytest.mark.seed("S-DIR-007")
def test_trailing_dimensions_become_components_and_strides_count(library):
    rng = np.random.default_rng(3)
    wide = rng.normal(size=(6, 5)).astype(np.float32)
    planes = rng.normal(size=(6, 2, 2)).astype(np.float32)
    expected = (wide[:, 1:4] ** 2).sum(axis=1) + 100 * np.linalg.det(planes)
    v = library.array(wide)[:, 1:4]  # rows with gaps between them, but for JAX, which copies
    out = wp.zeros(6)
    wp.launch(lengths, dim=6, inputs=[v, library.array(planes), out])
    np.testing.assert_allclose(out.numpy(), expected, rtol=2e-4)


@pytest.mark.seed("S-DIR-007")
def test_transposed_grids_are_read_as_they_lie(writable_library):
    x = writable_library.array(np.arange(12, dtype=np.float32).reshape(3, 4))
    out = wp.zeros((4, 3))
    wp.launch(double_grid, dim=(4, 3), inputs=[x.T, out])
    np.testing.assert_array_equal(out.numpy(), 2 * np.arange(12).reshape(3, 4).T)


@pytest.mark.seed("S-DIR-007")
def test_what_does_not_fit_is_named(library):
    good = wp.zeros(4)
    name = {"numpy": "numpy.ndarray", "torch": "torch.Tensor", "paddle": "Tensor", "jax": "ArrayImpl"}[library.name]
    half = library.array(np.zeros(4, np.float16))
    grid = library.array(np.zeros((4, 2), np.float32))
    for wrong, message in (
        (
            half,
            r"its numbers are float16, expected float32\. help: convert it .* annotate the parameter as array\[float16",
        ),
        (grid, "it has 2 dimensions, expected 1"),
        (library.array(np.zeros(4, bool)), "its numbers are bool, expected float32"),
        (library.array(np.zeros(4, np.complex64)), "expected bool, integers of 8 to 64 bits"),
    ):
        with pytest.raises(RuntimeError, match=rf"argument 2 'x' of kernel 'saxpy' is .*{name}.*{message}"):
            wp.launch(saxpy, dim=4, inputs=[1.0, wrong, good])
    with pytest.raises(RuntimeError, match=r"argument 1 'v' of kernel 'lengths'.*inner dimensions must be \(3,\)"):
        wp.launch(lengths, dim=4, inputs=[grid, None, good])


def test_components_with_gaps_are_refused(writable_library):
    rows = writable_library.array(np.zeros((4, 6), np.float32))[:, ::2]
    with pytest.raises(RuntimeError, match=r"argument 1 'v'.*do not lie side by side.*contiguous"):
        wp.launch(lengths, dim=4, inputs=[rows, None, wp.zeros(4)])


def test_empty_arrays_go_in(library):
    wp.launch(saxpy, dim=0, inputs=[1.0, library.array(np.zeros(0, np.float32)), wp.zeros(0)])
    out = wp.zeros(3)

    @wp.kernel
    def extent(x: wp.array[float], y: wp.array[float]):
        y[wp.tid()] = float(x.shape[0]) + 5.0

    wp.launch(extent, dim=3, inputs=[library.array(np.zeros(0, np.float32)), out])
    assert out.list() == [5.0, 5.0, 5.0]


def test_bfloat16_and_bool():
    torch, jnp = pytest.importorskip("torch"), pytest.importorskip("jax.numpy")

    @wp.kernel
    def pick(x: wp.array[wp.bfloat16], take: wp.array[wp.bool], y: wp.array[float]):
        i = wp.tid()
        if take[i]:
            y[i] = float(x[i])

    expected = [1.5, 0.0, -2.0]
    for x, take in (
        (torch.tensor([1.5, 2.5, -2.0], dtype=torch.bfloat16), torch.tensor([True, False, True])),
        (jnp.array([1.5, 2.5, -2.0], dtype=jnp.bfloat16), jnp.array([True, False, True])),
    ):
        y = wp.zeros(3)
        wp.launch(pick, dim=3, inputs=[x, take, y])
        assert y.list() == expected


@pytest.mark.seed("S-DIR-006")
def test_what_is_read_only_is_not_written():
    jax_array = framework("jax").array(np.ones(4, np.float32))
    frozen = np.ones(4, np.float32)
    frozen.flags.writeable = False
    x = np.ones(4, np.float32)
    for target, found in (
        (jax_array, "ArrayImpl"),
        (frozen, "numpy.ndarray"),
        (memoryview(b"\0" * 16).cast("f"), "memoryview"),
    ):
        wp.launch(saxpy, dim=4, inputs=[1.0, target, x])
        with pytest.raises(
            ValueError,
            match=rf"argument 3 'y' of kernel 'saxpy' is .*{found}.*the kernel writes to it: its memory is read-only",
        ):
            wp.launch(saxpy, dim=4, inputs=[1.0, x, target])
        with pytest.raises(ValueError, match="its memory is read-only"):
            wp.launch(saxpy, dim=4, inputs=[1.0, x, target], record_cmd=True)
    np.testing.assert_array_equal(frozen, 1)
    np.testing.assert_array_equal(np.asarray(jax_array), 1)


@pytest.mark.seed("S-DIR-006")
def test_an_object_with_array_only_is_read_through_a_copy():
    class Copying:
        def __init__(self, values):
            self.values = values

        def __array__(self, dtype=None, copy=None):
            return np.array(self.values, dtype=np.float32)

    y = np.zeros(3, np.float32)
    wp.launch(saxpy, dim=3, inputs=[2.0, Copying([1, 2, 3]), y])
    assert y.tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match="argument 3 'y'.*a copy that __array__ made"):
        wp.launch(saxpy, dim=3, inputs=[2.0, y, Copying([1, 2, 3])])


@pytest.mark.seed("S-DIR-005")
def test_a_tensor_that_requires_a_gradient_is_read_and_not_written():
    torch, paddle = pytest.importorskip("torch"), pytest.importorskip("paddle")
    x = torch.ones(3, requires_grad=True)
    y = torch.zeros(3)
    out = wp.zeros(3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(saxpy, dim=3, inputs=[2.0, x, y])
        wp.launch(saxpy, dim=3, inputs=[2.0, y, out])
    assert y.tolist() == [2, 2, 2]
    tape.backward(grads={out: wp.ones(3)})
    assert x.grad is None  # the protocols carry no gradients
    z = paddle.zeros([3])
    z.stop_gradient = False
    for tensor, help in ((x, "tensor.detach"), (torch.nn.Parameter(torch.ones(3)), "from_torch"), (z, "from_paddle")):
        with pytest.raises(ValueError, match=rf"argument 3 'y'.*requires a gradient.*{help}"):
            wp.launch(saxpy, dim=3, inputs=[2.0, y, tensor])
    assert x.tolist() == [1, 1, 1]


def test_tensors_without_memory_are_refused():
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.zeros(3)
    for tensor in (torch.zeros(3, device="meta"), fake, torch.zeros(3).to_sparse()):
        with pytest.raises(RuntimeError, match="argument 2 'x' of kernel 'saxpy' is ") as error:
            wp.launch(saxpy, dim=3, inputs=[1.0, tensor, wp.zeros(3)])
        assert "\n" not in str(error.value)


def test_cuda_memory_is_refused_with_the_reason():
    class OnGpu:
        __cuda_array_interface__ = {"shape": (3,), "typestr": "<f4", "data": (4096, False), "version": 3}

    class OnGpuByDlpack:
        def __dlpack__(self, **options):
            raise BufferError("nobody has a device")

    for found, message in (
        (OnGpu(), "on a CUDA device, and there is none here"),
        (OnGpuByDlpack(), "nobody has a device"),
    ):
        with pytest.raises(RuntimeError, match=f"argument 2 'x' of kernel 'saxpy' is .*{message}"):
            wp.launch(saxpy, dim=3, inputs=[1.0, found, wp.zeros(3)])
    with pytest.raises(RuntimeError, match="data is .*there is none here"):
        wp.array(OnGpu())


def test_ctypes_arrays_and_buffers_go_in():
    numbers = (ctypes.c_float * 3)(1, 2, 3)
    y = np.zeros(3, np.float32)
    wp.launch(saxpy, dim=3, inputs=[1.0, numbers, y])
    wp.launch(saxpy, dim=3, inputs=[1.0, y, numbers])
    assert list(numbers) == [2, 4, 6]


@wp.struct
class Row:
    numbers: wp.array(dtype=float)


@wp.kernel
def keep_row(numbers: wp.array(dtype=float), rows: wp.array(dtype=Row)):
    row = Row()
    row.numbers = numbers
    rows[wp.tid()] = row


@wp.kernel
def sum_rows(rows: wp.array(dtype=Row), out: wp.array(dtype=float)):
    i = wp.tid()
    for k in range(rows[i].numbers.shape[0]):
        out[i] += rows[i].numbers[k]


def test_memory_that_a_kernel_keeps_stays(library):
    numbers = library.array(np.arange(5, dtype=np.float32))
    gone = weakref.ref(numbers)
    rows, out = wp.zeros(2, dtype=Row), wp.zeros(2)
    wp.launch(keep_row, dim=2, inputs=[numbers, rows])
    del numbers
    gc.collect()
    assert gone() is not None or not library.is_writable  # those that are read through a buffer stay as a buffer
    wp.launch(sum_rows, dim=2, inputs=[rows, out])
    np.testing.assert_array_equal(out.numpy(), [10, 10])


@wp.kernel
def count_up(steps: int, x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    for _ in range(steps):
        y[i] = wp.sin(y[i]) + x[i]


def test_arguments_stay_when_their_list_is_emptied_meanwhile(writable_library):
    n = 100_000
    x, y = (writable_library.array(np.zeros(n, dtype=np.float32)) for _ in range(2))
    gone = weakref.ref(x)
    arguments = [2000, x, y]
    seen = []

    def empty():
        time.sleep(0.02)
        arguments.clear()
        seen.append(gone() is not None)

    wp.launch(count_up, dim=n, inputs=[1, x, y])  # compiled before
    del x, y
    thread = threading.Thread(target=empty)
    thread.start()
    wp.launch(count_up, dim=n, inputs=arguments)
    thread.join()
    gc.collect()
    assert seen == [True] and arguments == [] and gone() is None


def test_nothing_is_kept_after_a_launch(library):
    x = library.array(np.ones(4, np.float32))
    gone = weakref.ref(x)
    wp.launch(saxpy, dim=4, inputs=[1.0, x, wp.zeros(4)])
    del x
    gc.collect()
    assert gone() is None


def test_arrays_are_made_of_arrays_of_every_library(library):
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    x = library.array(values)
    copy = wp.array(x, dtype=wp.vec3)
    np.testing.assert_array_equal(copy.numpy(), values)
    copy.fill_(wp.vec3(0.0))
    np.testing.assert_array_equal(library.numbers(x), values)
    shared = wp.array(x, dtype=wp.vec3, copy=False)
    assert shared.shape == (4,) and shared.numpy().flags.writeable == library.is_writable
    if library.is_writable:
        shared.fill_(wp.vec3(5.0))
        np.testing.assert_array_equal(library.numbers(x), np.full((4, 3), 5))
    np.testing.assert_array_equal(wp.array(x, dtype=wp.float64).numpy(), library.numbers(x))
    wp.zeros((4, 3)).assign(library.numbers(x))
