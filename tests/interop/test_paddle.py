"""Paddle: tensors in place, gradients in one memory."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import paddle
import pytest
import warp as wp

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")


@wp.kernel
def square_loss(x: wp.array[float], loss: wp.array[float]):
    wp.atomic_add(loss, 0, x[wp.tid()] * x[wp.tid()])


@wp.kernel
def add_to(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[i] + y[i]


def requiring(values) -> paddle.Tensor:
    tensor = paddle.to_tensor(np.asarray(values, np.float32), place="cpu")
    tensor.stop_gradient = False
    return tensor


@pytest.mark.seed("S-PAD-001", "S-PAD-008", "P-35")
def test_tensors_and_arrays_share_memory_both_ways():
    w = wp.array([1.0, 2.0, 3.0], dtype=float, device="cpu")
    t = wp.to_paddle(w)
    assert t.tolist() == [1.0, 2.0, 3.0] and t.data_ptr() == w.ptr
    t[0] = 5.0
    assert w.list() == [5.0, 2.0, 3.0]
    back = wp.from_paddle(t)
    back.fill_(7.0)
    assert t.tolist() == [7.0, 7.0, 7.0]


@pytest.mark.seed("D-07")
def test_the_module_has_all_helpers():
    import warp
    import warp.paddle

    names = """device_from_paddle device_to_paddle dtype_from_paddle dtype_to_paddle from_paddle to_paddle
        stream_from_paddle stream_to_paddle""".split()
    assert all(getattr(warp.paddle, name) is getattr(warp, name) for name in names)
    assert sorted([*names, "dtype_is_compatible"]) == sorted(warp.paddle.__all__)


@pytest.mark.seed("S-PAD-001")
def test_a_tensor_straight_in_a_launch_is_written_in_place():
    # Release 1.19 aborts the process here, or writes to a copy.
    x, y = paddle.arange(1000, dtype="float32"), paddle.ones([1000])
    address = y.data_ptr()
    for _ in range(3):
        wp.launch(add_to, dim=1000, inputs=[x, y], device="cpu")
    np.testing.assert_array_equal(y.numpy(), 3.0 * np.arange(1000) + 1.0)
    assert y.data_ptr() == address


@pytest.mark.seed("S-PAD-001", "S-PAD-004")
def test_a_gradient_is_made_and_shared():
    t = requiring([1.0, 2.0, 3.0])
    assert t.grad is None
    a, loss = wp.from_paddle(t), wp.zeros(1, requires_grad=True)
    assert a.requires_grad and t.grad.data_ptr() == a.grad.ptr
    with wp.Tape() as tape:
        wp.launch(square_loss, dim=3, inputs=[a, loss])
    tape.backward(loss)
    assert t.grad.tolist() == [2.0, 4.0, 6.0]
    tape.zero()
    assert t.grad.tolist() == [0.0, 0.0, 0.0]
    assert not wp.from_paddle(paddle.ones([3])).requires_grad
    assert not wp.from_paddle(t, requires_grad=False).requires_grad
    with paddle.no_grad():
        other = requiring([1.0])
        assert wp.from_paddle(other).requires_grad and other.grad is None
    assert wp.from_paddle(t * 2.0).requires_grad


@pytest.mark.seed("S-PAD-001")
def test_options_of_from_paddle():
    t = paddle.arange(12, dtype="float32").reshape([3, 2, 2])
    for dtype, shape in ((wp.vec2, (3, 2)), (wp.mat22, (3,)), (None, (3, 2, 2))):
        a = wp.from_paddle(t, dtype=dtype)
        assert a.shape == shape and a.ptr == t.data_ptr()
        back = wp.to_paddle(a)
        assert back.shape == [3, 2, 2] and back.data_ptr() == t.data_ptr()
    for gradient in (paddle.full([3, 2, 2], 2.0), wp.full((3, 2), wp.vec2(2.0), dtype=wp.vec2)):
        a = wp.from_paddle(t, dtype=wp.vec2, grad=gradient)
        address = gradient.data_ptr() if isinstance(gradient, paddle.Tensor) else gradient.ptr
        assert a.requires_grad and a.grad.ptr == address
    with pytest.raises(ValueError, match="grad is .*list"):
        wp.from_paddle(t, grad=[1.0])
    with pytest.raises(RuntimeError, match="its inner dimensions must be"):
        wp.from_paddle(paddle.zeros([4, 3]), dtype=wp.vec2)
    with pytest.raises(RuntimeError, match="do not lie side by side"):
        wp.from_paddle(paddle.zeros([3, 4]).T, dtype=wp.vec3)
    with pytest.raises(RuntimeError, match="its numbers are float32"):
        wp.from_paddle(t, dtype=wp.float64)
    for wrong in (np.zeros(3), [1.0], None):
        with pytest.raises(TypeError, match="expected a tensor of"):
            wp.from_paddle(wrong)


@pytest.mark.seed("S-TOR-016", "P-100")
def test_a_tensor_of_an_array_with_a_gradient_is_a_leaf_of_autograd():
    a = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    t = wp.to_paddle(a)
    assert t.is_leaf and not t.stop_gradient and t.grad.data_ptr() == a.grad.ptr
    (t**2).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), [2, 4, 6])
    assert wp.to_paddle(a, requires_grad=False).stop_gradient
    assert not wp.to_paddle(wp.ones(3), requires_grad=True).stop_gradient


@pytest.mark.seed("S-PAD-002", "S-PAD-006")
def test_devices_by_their_names_in_paddle():
    cpu = wp.get_device("cpu")
    assert wp.device_to_paddle(warp_device="cpu") == wp.device_to_paddle(cpu) == "cpu"
    for place in ("cpu", paddle.CPUPlace(), paddle.ones([1]).to("cpu").place):
        assert wp.device_from_paddle(place) is cpu
    assert paddle.ones([2]).to(device=wp.device_to_paddle(cpu)).tolist() == [1.0, 1.0]
    for wrong in ("nonsense", "xpu:0", "gpu:x", 3.5, None, np.zeros(1)):
        with pytest.raises(RuntimeError, match="Weft has no device for"):
            wp.device_from_paddle(wrong)


@pytest.mark.seed("S-PAD-002", "S-PAD-006")
@pytest.mark.parametrize("name", ["gpu", "gpu:0"])
def test_a_gpu_that_is_not_here_is_named(name):
    with pytest.raises(RuntimeError, match="cuda"):
        wp.device_from_paddle(name)


SAME_NAME = "bool int8 int16 int32 int64 uint8 float16 float32 float64 bfloat16 float8_e4m3fn float8_e5m2".split()


@pytest.mark.seed("S-PAD-002", "S-TOR-009")
def test_every_scalar_type_has_its_type_in_paddle():
    from warp.paddle import dtype_is_compatible

    pairs = {name: name for name in SAME_NAME} | {"uint16": "int16", "uint32": "int32", "uint64": "int64"}
    assert {t.__name__ for t in wp._weft.scalar_types()} == set(pairs)
    for ours, theirs in pairs.items():
        dtype, expected = getattr(wp, ours), getattr(paddle, theirs)
        assert wp.dtype_to_paddle(dtype) is expected and wp.dtype_from_paddle(expected) is getattr(wp, theirs)
        a = wp.zeros(3, dtype=dtype)
        t = wp.to_paddle(a)
        assert t.dtype == expected and t.data_ptr() == a.ptr
        assert wp.from_paddle(t, dtype=dtype).dtype is dtype
        assert dtype_is_compatible(expected, dtype)
    assert not dtype_is_compatible(paddle.float32, wp.float64) and dtype_is_compatible(paddle.float32, wp.vec3)
    for wrong in (paddle.complex64, "float32", wp.float32, None):
        with pytest.raises(TypeError, match="Weft has no type for"):
            wp.dtype_from_paddle(wrong)
    with pytest.raises(TypeError):
        wp.dtype_to_paddle(wp.vec3)


@pytest.mark.seed("S-PAD-003", "S-STM-002", "S-STM-005", "P-98")
def test_the_cpu_has_no_streams_to_share():
    for ask in (wp.stream_from_paddle, wp.stream_to_paddle):
        for device in (None, "cpu"):
            with pytest.raises(RuntimeError, match=rf"{ask.__name__}\(\): device 'cpu' has no streams"):
                ask(device)


@pytest.mark.seed("S-CTY-002", "S-CTY-003")
def test_structures_for_launches():
    x, y = requiring(np.arange(100)), paddle.ones([100])
    structure = wp.from_paddle(x, return_ctype=True)
    assert structure.data == x.data_ptr() and structure.grad == x.grad.data_ptr()
    wp.launch(add_to, dim=100, inputs=[structure], outputs=[wp.from_paddle(y, return_ctype=True)])
    np.testing.assert_array_equal(y.numpy(), np.arange(100) + 1.0)
    with pytest.raises(TypeError, match="array_t"):
        wp.to_paddle(structure)


def test_a_wrapped_array_keeps_its_tensor():
    t = paddle.arange(1000, dtype="float32")
    reference, a = weakref.ref(t), wp.from_paddle(t)
    del t
    gc.collect()
    paddle.zeros([1000])
    assert reference() is not None and a.numpy()[-1] == 999.0
    del a
    gc.collect()
    assert reference() is None


def test_tensors_that_cannot_be_arrays():
    with pytest.raises(TypeError, match="complex64"):
        wp.from_paddle(paddle.ones([4], dtype="complex64"))
    with pytest.raises(TypeError, match="from_paddle"):
        wp.from_paddle(paddle.eye(3).to_sparse_coo(2))
    assert wp.from_paddle(paddle.zeros([0, 3])).shape == (0, 3)
    assert wp.from_paddle(paddle.zeros([0, 3]), dtype=wp.vec3).shape == (0,)
    assert wp.from_paddle(paddle.to_tensor(3.0)).list() == [3.0]
    t = requiring(np.zeros(4))
    with pytest.raises(ValueError, match="requires a gradient"):
        wp.launch(add_to, dim=4, inputs=[paddle.ones([4]), t])
    assert t.tolist() == [0.0] * 4
    with pytest.raises(TypeError, match="its numbers are float64"):
        wp.launch(add_to, dim=4, inputs=[paddle.ones([4], dtype="float64"), paddle.ones([4])])


def test_an_array_of_a_tensor_may_retain_its_gradient():
    t = requiring(np.ones(3, np.float32))
    assert wp.from_paddle(t, retain_grad=True).retain_grad and not wp.from_paddle(t).retain_grad
    assert not wp.from_paddle(paddle.ones([3]), retain_grad=False).retain_grad
    with pytest.raises(ValueError, match="retain_grad=True is for an array with a gradient"):
        wp.from_paddle(paddle.ones([3]), retain_grad=True)
