"""PyTorch: tensors in place, gradients in one memory."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch
import warp as wp

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")


@wp.kernel
def square_loss(x: wp.array[float], loss: wp.array[float]):
    wp.atomic_add(loss, 0, x[wp.tid()] * x[wp.tid()])


@wp.kernel
def add_to(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[i] + y[i]


@pytest.mark.seed("S-TOR-001", "P-09")
def test_tensors_and_arrays_share_memory_both_ways():
    w = wp.array([1.0, 2.0, 3.0], dtype=float)
    t = wp.to_torch(w)
    assert t.tolist() == [1.0, 2.0, 3.0] and t.data_ptr() == w.ptr
    t[0] = 5.0
    assert w.list() == [5.0, 2.0, 3.0]
    back = wp.from_torch(t)
    back.fill_(7.0)
    assert t.tolist() == [7.0, 7.0, 7.0]


@pytest.mark.seed("S-TOR-003", "S-TOR-006")
def test_a_gradient_is_made_and_shared():
    t = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    a, loss = wp.from_torch(t), wp.zeros(1, requires_grad=True)
    assert a.requires_grad and t.grad.data_ptr() == a.grad.ptr
    with wp.Tape() as tape:
        wp.launch(square_loss, dim=3, inputs=[a, loss])
    tape.backward(loss)
    assert t.grad.tolist() == [2.0, 4.0, 6.0]
    tape.zero()
    assert t.grad.tolist() == [0.0, 0.0, 0.0]
    with torch.no_grad():
        other = torch.ones(3, requires_grad=True)
        assert wp.from_torch(other).requires_grad and other.grad is None
    computed = t * 2.0
    assert wp.from_torch(computed).requires_grad
    assert not wp.from_torch(t, requires_grad=False).requires_grad


@pytest.mark.seed("S-TOR-016")
def test_a_tensor_of_an_array_with_a_gradient_is_a_leaf_of_autograd():
    a = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    t = wp.to_torch(a)
    assert t.is_leaf and t.requires_grad and t.grad.data_ptr() == a.grad.ptr
    (t**2).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), [2, 4, 6])
    assert not wp.to_torch(a, requires_grad=False).requires_grad


@pytest.mark.seed("S-TOR-002", "P-08", "D-07")
def test_the_module_of_earlier_releases_has_all_helpers():
    import warp
    import warp.torch

    w = warp.array([1.0, 2.0, 3.0], dtype=float, device="cpu")
    t = warp.to_torch(w)
    back = warp.from_torch(t)
    assert back.list() == t.tolist() == [1.0, 2.0, 3.0] and back.ptr == w.ptr == t.data_ptr()
    names = """device_from_torch device_to_torch dtype_from_torch dtype_to_torch from_torch to_torch stream_from_torch
        stream_to_torch""".split()
    assert all(getattr(warp.torch, name) is getattr(wp, name) for name in names)
    assert sorted([*names, "dtype_is_compatible"]) == sorted(warp.torch.__all__)


@pytest.mark.seed("S-TOR-004", "S-TOR-005", "S-TOR-007")
def test_trailing_dimensions_become_components_both_ways():
    t = torch.arange(12.0).reshape(3, 2, 2)
    for dtype, shape in ((wp.vec2, (3, 2)), (wp.mat22, (3,)), (wp.float32, (3, 2, 2)), (None, (3, 2, 2))):
        a = wp.from_torch(t, dtype=dtype)
        assert a.shape == shape and a.dtype is (dtype or wp.float32) and a.ptr == t.data_ptr()
        back = wp.to_torch(a)
        assert back.shape == t.shape and torch.equal(back, t) and back.data_ptr() == t.data_ptr()
    points = wp.zeros(5, dtype=wp.vec2, requires_grad=True)
    assert wp.to_torch(points).shape == wp.to_torch(points).grad.shape == (5, 2)
    single = wp.from_torch(torch.tensor([1.0, 2.0, 3.0]), dtype=wp.vec3)
    assert single.shape == (1,) and single.list() == [wp.vec3(1.0, 2.0, 3.0)]


@pytest.mark.seed("S-TOR-005", "S-TOR-009")
@pytest.mark.parametrize(
    ("make", "dtype", "message"),
    [
        (lambda: torch.zeros(4, 3), wp.vec2, r"shape is \(4, 3\), its inner dimensions must be \(2,\)"),
        (lambda: torch.zeros(3, 4).T, wp.vec3, "do not lie side by side"),
        (lambda: torch.zeros(2), wp.mat22, "too short"),
        (lambda: torch.zeros(4), wp.float64, "its numbers are float32"),
        (lambda: torch.zeros(4), wp.int32, "its numbers are float32"),
        (lambda: torch.zeros(4, dtype=torch.int32), wp.int64, "its numbers are int32"),
        (lambda: torch.zeros((1,) * 5), None, "at most 4"),
    ],
)
def test_tensors_that_do_not_fit_are_runtime_errors(make, dtype, message):
    with pytest.raises(RuntimeError, match=message):
        wp.from_torch(make(), dtype=dtype)


@pytest.mark.seed("S-TOR-007")
def test_a_tensor_requires_a_gradient_as_its_array_or_as_asked():
    plain, with_gradient = wp.ones(3), wp.ones(3, requires_grad=True)
    assert not wp.to_torch(plain).requires_grad and wp.to_torch(with_gradient).requires_grad
    asked = wp.to_torch(plain, requires_grad=True)
    assert asked.requires_grad and asked.is_leaf and asked.grad is None
    assert not wp.to_torch(with_gradient, requires_grad=False).requires_grad


@pytest.mark.seed("S-TOR-004", "S-TOR-017")
def test_a_gradient_can_be_given_as_array_or_tensor():
    t = torch.arange(6.0).reshape(3, 2)
    for gradient in (torch.full((3, 2), 2.0), wp.full(3, wp.vec2(2.0), dtype=wp.vec2)):
        a = wp.from_torch(t, dtype=wp.vec2, grad=gradient)
        address = gradient.data_ptr() if isinstance(gradient, torch.Tensor) else gradient.ptr
        assert a.requires_grad and a.grad.dtype is wp.vec2 and a.grad.ptr == address
    assert not wp.from_torch(t, grad=torch.zeros(3, 2), requires_grad=False).requires_grad
    with pytest.raises(ValueError, match="grad is .*list"):
        wp.from_torch(t, grad=[1.0, 2.0])
    with pytest.raises(RuntimeError):
        wp.from_torch(t, grad=torch.zeros(4, 2))


@pytest.mark.seed("S-TOR-008")
def test_devices_by_their_names_in_torch():
    cpu = wp.get_device("cpu")
    assert wp.device_to_torch(warp_device="cpu") == wp.device_to_torch(cpu) == wp.device_to_torch(None) == "cpu"
    for name in ("cpu", "cpu:0", torch.device("cpu"), torch.zeros(1).device):
        assert wp.device_from_torch(name) is cpu
    assert torch.zeros(2, device=wp.device_to_torch(wp.get_device())).device.type == "cpu"
    with pytest.raises(RuntimeError, match="Weft has no device for 'meta'"):
        wp.device_from_torch("meta")
    for wrong in ("nonsense", 3.5, None):
        with pytest.raises(RuntimeError, match="is no device of PyTorch"):
            wp.device_from_torch(wrong)
    with pytest.raises(RuntimeError):
        wp.device_to_torch("nonsense")


@pytest.mark.seed("S-TOR-008")
@pytest.mark.parametrize("name", ["cuda", "cuda:0"])
def test_a_cuda_device_that_is_not_here_is_named(name):
    with pytest.raises(RuntimeError, match="cuda"):
        wp.device_from_torch(name)
    with pytest.raises(RuntimeError, match="cuda"):
        wp.device_to_torch(name)


SAME_NAME = "bool int8 int16 int32 int64 uint8 float16 float32 float64 bfloat16 float8_e4m3fn float8_e5m2".split()


@pytest.mark.seed("S-TOR-008", "S-TOR-009")
def test_every_scalar_type_has_its_type_in_torch():
    pairs = {name: name for name in SAME_NAME} | {"uint16": "int16", "uint32": "int32", "uint64": "int64"}
    assert {t.__name__ for t in wp._weft.scalar_types()} == set(pairs)
    for ours, theirs in pairs.items():
        dtype = getattr(wp, ours)
        assert wp.dtype_to_torch(dtype) is getattr(torch, theirs)
        assert wp.dtype_from_torch(getattr(torch, theirs)) is getattr(wp, theirs)
        a = wp.zeros(3, dtype=dtype)
        t = wp.to_torch(a)
        assert t.dtype is getattr(torch, theirs) and t.data_ptr() == a.ptr
        assert wp.from_torch(t, dtype=dtype).dtype is dtype and wp.from_torch(t).dtype is getattr(wp, theirs)
    assert wp.dtype_to_torch(float) is torch.float32 and wp.dtype_to_torch(int) is torch.int32
    assert wp.dtype_from_torch(torch.uint16) is wp.uint16
    for wrong in (torch.complex64, torch.complex128, torch.qint8, "float32", wp.float32, None):
        with pytest.raises(TypeError, match="Weft has no type for"):
            wp.dtype_from_torch(wrong)
    for wrong in (wp.vec3, wp.mat22, "float32", torch.float32):
        with pytest.raises(TypeError):
            wp.dtype_to_torch(wrong)


@pytest.mark.seed("S-TOR-002", "S-TOR-009")
def test_which_dtypes_stand_for_each_other():
    from warp.torch import dtype_is_compatible

    types = [getattr(torch, name) for name in SAME_NAME]
    for theirs in types:
        for ours in wp._weft.scalar_types():
            t = torch.zeros(3, dtype=theirs)
            answer = dtype_is_compatible(theirs, ours)
            if answer:
                assert wp.from_torch(t, dtype=ours).dtype is ours
            else:
                with pytest.raises(RuntimeError, match="its numbers are"):
                    wp.from_torch(t, dtype=ours)
    assert dtype_is_compatible(torch.float32, wp.vec3) and not dtype_is_compatible(torch.float64, wp.mat33)
    with pytest.raises(TypeError):
        dtype_is_compatible(torch.complex64, wp.float32)


def test_arrays_of_structs_cannot_become_tensors():
    @wp.struct
    class Ball:
        radius: float

    with pytest.raises(RuntimeError, match="only scalars, vectors and matrices"):
        wp.to_torch(wp.zeros(3, dtype=Ball))


@pytest.mark.seed("S-STM-001", "P-98")
def test_the_cpu_has_no_streams_to_share():
    for ask in (wp.stream_from_torch, wp.stream_to_torch):
        for device in (None, "cpu"):
            with pytest.raises(RuntimeError, match=rf"{ask.__name__}\(\): device 'cpu' has no streams"):
                ask(device)
    with pytest.raises(RuntimeError, match="has no streams"):
        wp.stream_from_torch(torch.device("cpu"))
    with pytest.raises(RuntimeError, match="is no device of PyTorch"):
        wp.stream_from_torch("nonsense")


@pytest.mark.seed("S-TOR-015")
def test_a_wrapped_array_keeps_its_tensor():
    t = torch.arange(1000.0)
    reference, a = weakref.ref(t), wp.from_torch(t)
    del t
    gc.collect()
    torch.zeros(1000)  # would get the memory if it were free
    assert reference() is not None and a.numpy()[-1] == 999.0
    del a
    gc.collect()
    assert reference() is None
    w = wp.full(1000, 3.0)
    t = wp.to_torch(w)
    del w
    gc.collect()
    assert t.sum() == 3000.0


@pytest.mark.seed("S-CTY-001", "S-CTY-003", "S-CTY-004", "S-CTY-005")
def test_structures_for_launches_go_to_launches_only():
    n = 100
    x, y = torch.arange(float(n)), torch.ones(n)
    for inputs, outputs in (
        ([wp.from_torch(x, return_ctype=True), wp.from_torch(y, return_ctype=True)], []),
        ([wp.from_torch(x, return_ctype=True)], [wp.from_torch(y, return_ctype=True)]),
        ([wp.from_torch(x), wp.from_torch(y, return_ctype=True)], []),
        ([x], [wp.from_torch(y, return_ctype=True)]),
    ):
        y.fill_(1.0)
        wp.launch(add_to, dim=n, inputs=inputs, outputs=outputs)
        assert torch.equal(y, x + 1.0)
    structure = wp.from_torch(x, return_ctype=True)
    assert structure.data == x.data_ptr() and structure.ndim == 1 and structure.shape[0] == n
    for use in (wp.to_torch, wp.clone, wp.to_paddle, wp.to_dlpack, lambda s: wp.copy(wp.zeros(n), s)):
        with pytest.raises(TypeError, match="array_t"):
            use(structure)


@wp.kernel
def keep_if_positive(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    if x[i] > x[i] - x[i]:
        y[i] = x[i]


@pytest.mark.seed("S-CTY-001")
def test_structures_go_into_launches_of_every_kind(monkeypatch):
    x, y = torch.tensor([1.0, -2.0, 3.0]), torch.zeros(3)
    a, b = wp.from_torch(x, return_ctype=True), wp.from_torch(y, return_ctype=True)
    wp.launch(keep_if_positive, dim=3, inputs=[a, b])  # generic
    assert y.tolist() == [1.0, 0.0, 3.0]
    with pytest.raises(TypeError, match=r"argument 2 'y' of kernel 'add_to' is array.int32.*expected array.float32"):
        wp.launch(add_to, dim=3, inputs=[a, wp.from_torch(torch.zeros(3, dtype=torch.int32), return_ctype=True)])
    with pytest.raises(TypeError, match="it has 2 dimensions, expected 1"):
        wp.launch(add_to, dim=3, inputs=[wp.from_torch(torch.zeros(3, 3), return_ctype=True), b])
    command = wp.launch(add_to, dim=3, inputs=[a, b], record_cmd=True)
    command.launch()
    assert y.tolist() == [2.0, -2.0, 6.0]
    with wp.ScopedCapture() as capture:
        wp.launch(add_to, dim=3, inputs=[wp.from_torch(torch.ones(3), return_ctype=True), b])
    assert y.tolist() == [2.0, -2.0, 6.0]
    gc.collect()
    wp.capture_launch(capture.graph)
    assert y.tolist() == [3.0, -1.0, 7.0]
    monkeypatch.setattr(wp.config, "verify_fp", True)
    x[1] = float("nan")
    with pytest.raises(RuntimeError, match="'y'"):
        wp.launch(add_to, dim=3, inputs=[a, wp.from_torch(torch.zeros(3), return_ctype=True)])


def test_a_structure_on_a_tape_is_one_array():
    """Whether a launch makes the array in it or a tape did before, its writes are counted."""
    t = torch.tensor([1.0, 2.0, 3.0])
    a, scale = wp.from_torch(t, return_ctype=True), wp.full(3, 2.0, requires_grad=True)
    y = wp.zeros(3, requires_grad=True)
    wp.launch(add_to, dim=3, inputs=[wp.ones(3), a])  # without a tape: 2, 3, 4
    with wp.Tape() as tape:
        wp.launch(product, dim=3, inputs=[a, scale], outputs=[y])
        wp.launch(add_to, dim=3, inputs=[wp.ones(3), a])
    assert t.tolist() == [3.0, 4.0, 5.0]
    tape.backward(grads={y: wp.ones(3)})
    assert scale.grad.list() == [2.0, 3.0, 4.0]


@wp.kernel
def product(x: wp.array[float], z: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[i] * z[i]


@pytest.mark.seed("S-CTY-003")
def test_a_structure_keeps_its_tensor():
    for asks in (False, True):
        t = torch.full((500,), 2.0)
        structure, reference = wp.from_torch(t, return_ctype=True), weakref.ref(t)
        t.own = structure  # a cycle
        if asks:
            wp.launch(add_to, dim=500, inputs=[structure, wp.zeros(500)], record_cmd=True)
        del t
        gc.collect()
        y = wp.zeros(500)
        wp.launch(add_to, dim=500, inputs=[structure, y])
        assert y.list() == [2.0] * 500 and reference() is not None
        del structure
        gc.collect()
        assert reference() is None or asks  # an array's memory is no part of cycles
        if asks:
            del reference().own
            gc.collect()
            assert reference() is None


@pytest.mark.seed("S-CTY-003")
def test_a_structure_keeps_data_and_gradient_alive():
    t = torch.full((500,), 2.0, requires_grad=True)
    structure = wp.from_torch(t, return_ctype=True)
    assert structure.grad == t.grad.data_ptr()
    references = weakref.ref(t), weakref.ref(t.grad)
    loss = wp.zeros(1, requires_grad=True)
    gradient = t.grad
    del t
    gc.collect()
    with wp.Tape() as tape:
        wp.launch(square_loss, dim=500, inputs=[structure], outputs=[loss])
    tape.backward(loss)
    assert loss.numpy()[0] == 2000.0 and gradient.tolist() == [4.0] * 500
    del gradient, structure, tape
    gc.collect()
    assert [reference() for reference in references] == [None, None]
    x = torch.zeros(4, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="strides|laid out|shape"):
        wp.from_torch(x, grad=torch.zeros(2, 4).T, return_ctype=True)


@pytest.mark.seed("S-TOR-006")
def test_a_gradient_is_not_attached_where_torch_would_add_it_again():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x, ctx.loss = wp.from_torch(x, requires_grad=True), wp.zeros(1, requires_grad=True)
            wp.launch(square_loss, dim=len(x), inputs=[ctx.x], outputs=[ctx.loss])
            return wp.to_torch(ctx.loss, requires_grad=False)

        @staticmethod
        def backward(ctx, gradient):
            wp.launch(
                square_loss,
                dim=len(ctx.x),
                inputs=[ctx.x],
                outputs=[ctx.loss],
                adj_inputs=[ctx.x.grad],
                adj_outputs=[wp.from_torch(gradient)],
                adjoint=True,
            )
            return wp.to_torch(ctx.x.grad)

    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    Square.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_an_array_of_a_tensor_may_retain_its_gradient():
    t = torch.ones(3, requires_grad=True)
    assert wp.from_torch(t, retain_grad=True).retain_grad and not wp.from_torch(t).retain_grad
    assert not wp.from_torch(torch.ones(3), retain_grad=False).retain_grad
    with pytest.raises(ValueError, match="retain_grad=True is for an array with a gradient"):
        wp.from_torch(torch.ones(3), retain_grad=True)
