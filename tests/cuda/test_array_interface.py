"""__cuda_array_interface__: memory of other libraries in arrays and launches, and ours in theirs."""

import ctypes
from typing import Any

import numpy as np
import pytest
import warp as wp
from cuda_array_kernels import DEVICE, Shown, saxpy

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]


def class_without_a_usable_buffer():
    """A class whose instances have the buffer protocol and refuse it with a TypeError, as CuPy's arrays do. Python
    before 3.12 has no way to write one, so this asks the C API; PyObject_Size is the function, as it raises a TypeError
    and returns -1."""

    class Slot(ctypes.Structure):
        _fields_ = [("number", ctypes.c_int), ("function", ctypes.c_void_p)]

    class Specification(ctypes.Structure):
        _fields_ = [
            ("name", ctypes.c_char_p),
            ("size", ctypes.c_int),
            ("item_size", ctypes.c_int),
            ("flags", ctypes.c_uint),
            ("slots", ctypes.POINTER(Slot)),
        ]

    get_buffer, may_have_subclasses = 1, 1 << 10  # Py_bf_getbuffer, Py_TPFLAGS_BASETYPE
    raises = ctypes.cast(ctypes.pythonapi.PyObject_Size, ctypes.c_void_p)
    slots = (Slot * 2)(Slot(get_buffer, raises), Slot(0, None))
    name = ctypes.create_string_buffer(b"others.Refuses")
    specification = Specification(ctypes.cast(name, ctypes.c_char_p), 0, 0, may_have_subclasses, slots)
    make = ctypes.pythonapi.PyType_FromSpec
    make.argtypes, make.restype = [ctypes.POINTER(Specification)], ctypes.py_object
    return make(specification), name  # which the class may point to


REFUSES, NAME_OF_REFUSES = class_without_a_usable_buffer()


class ShownLikeCupy(Shown, REFUSES):
    """Interfaces that NumPy cannot read; each is an error of its own."""

    def __array__(self, *given, **named):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")


class ShownByDlpack(REFUSES):
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **named):
        return self.array.__dlpack__(**named)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@wp.kernel
def double_all(x: wp.array(dtype=Any)):
    i = wp.tid()
    x[i] = x[i] + x[i]


@pytest.mark.parametrize("kind", [Shown, ShownLikeCupy, ShownByDlpack])
def test_memory_of_others_goes_into_arrays_and_launches(kind):
    """Also if the object has the buffer protocol, and says by a TypeError that its memory is not the host's."""
    a = wp.array(np.arange(12), dtype=float, device=DEVICE)
    if kind is not Shown:
        with pytest.raises(TypeError, match="no len"):
            memoryview(kind(a))
    for copy in (False, True):
        b = wp.array(kind(a), device=DEVICE, copy=copy)
        assert b.ptr == a.ptr and b.list() == list(range(12)) and b.dtype is wp.float32
    every_other = wp.array(kind(a[::2]), device=DEVICE, copy=False)
    assert every_other.ptr == a.ptr and every_other.strides == (8,) and every_other.list() == [0, 2, 4, 6, 8, 10]
    with pytest.raises(RuntimeError, match="in memory of 'cuda:0', and the array is for 'cpu'. help: device='cuda:0'"):
        wp.array(kind(a), device="cpu", copy=False)
    x = wp.full(12, 1.0, dtype=float, device=DEVICE)
    wp.launch(saxpy, dim=12, inputs=[2.0, kind(x), kind(a)], device=DEVICE)
    assert a.list() == [k + 2.0 for k in range(12)]
    if kind is not ShownByDlpack:
        wp.launch(double_all, dim=6, inputs=[kind(a[::2])], device=DEVICE)
        assert a.list() == [(1 + (k % 2 == 0)) * (k + 2.0) for k in range(12)]


@pytest.mark.seed("S-USE-010")
def test_arrays_show_their_memory():
    a = wp.array(np.arange(12).reshape(3, 4), dtype=float, device=DEVICE)
    shown = a.T.__cuda_array_interface__
    assert shown["shape"] == (4, 3) and shown["strides"] == (4, 16) and shown["typestr"] == "<f4"
    assert shown["data"] == (a.ptr, False) and shown["version"] == 3 and a.__cuda_array_interface__["strides"] is None
    assert wp.zeros(2, dtype=wp.vec3, device=DEVICE).__cuda_array_interface__["shape"] == (2, 3)
    with pytest.raises(AttributeError, match="CPU"):
        a.__array_interface__
    with pytest.raises(AttributeError, match="'cpu'"):
        wp.zeros(2, device="cpu").__cuda_array_interface__
    assert np.array(a).tolist() == np.arange(12).reshape(3, 4).tolist()  # a copy


@pytest.mark.seed("S-ARR-018", "S-USE-004")
def test_an_array_of_shown_memory_is_no_copy():
    a = wp.array(np.arange(12).reshape(3, 4), dtype=float, device=DEVICE)
    b = wp.array(Shown(a.T), device=DEVICE)
    assert b.ptr == a.ptr and b.shape == (4, 3) and b.dtype is wp.float32 and b.device == DEVICE
    b.fill_(7.0)
    assert (a.numpy() == 7.0).all()
    b.zero_()
    assert not a.numpy().any()
    vectors = wp.array(Shown(wp.zeros((5, 3), device=DEVICE)), dtype=wp.vec3, device=DEVICE)  # keeps the memory
    assert vectors.shape == (5,) and vectors.dtype is wp.vec3 and vectors.list() == [wp.vec3(0.0, 0.0, 0.0)] * 5
    assert wp.array(Shown(wp.zeros(0, device=DEVICE)), device=DEVICE).shape == (0,)
    with pytest.raises(RuntimeError, match="in memory of 'cuda:0', and the array is for 'cpu'"):
        wp.array(Shown(a), device="cpu")
    lent = wp.array(Shown(a, data=(a.ptr, True)), device=DEVICE)
    with pytest.raises(RuntimeError, match="read"):
        lent.zero_()


@pytest.mark.parametrize(
    "changes, error",
    [
        ({"data": (0, False)}, "has the address 0, and elements"),
        ({"mask": np.zeros(12, bool)}, "it has a mask, and arrays have none"),
        ({"strides": (16, 3)}, "no multiples of 4 bytes, the size of its numbers"),
    ],
)
def test_shown_memory_that_no_kernel_could_read(changes, error):
    a = wp.zeros((3, 4), dtype=float, device=DEVICE)
    with pytest.raises(RuntimeError, match=error):
        wp.array(Shown(a, **changes), device=DEVICE)
    moved = Shown(a, data=(a.ptr + 2, False), shape=(2, 4))
    with pytest.raises(RuntimeError, match="no multiples of 4 bytes"):
        wp.array(moved, device=DEVICE)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"typestr": "<c8"}, "its numbers are '<c8'"),
        ({"typestr": ">f4"}, "its numbers are '>f4'"),
        ({"shape": "x"}, "has 'x' for 'shape', expected a tuple of integers"),
        ({"data": 5}, "has 5 for 'data', expected"),
        ({"strides": (4,)}, "strides of another length"),
        ({"data": (4096, False)}, "no CUDA device has memory at its address"),
    ],
)
def test_a_wrong_interface_is_named(change, message):
    a = wp.zeros((3, 2), device=DEVICE)
    with pytest.raises((TypeError, RuntimeError), match=message.replace("(", r"\(")):
        wp.array(Shown(a, **change), device=DEVICE)


@pytest.mark.seed("S-DIR-007")
def test_shown_memory_is_checked_as_arrays_are():
    @wp.kernel
    def lengths(v: wp.array[wp.vec3], out: wp.array[float]):
        i = wp.tid()
        out[i] = wp.length(v[i])

    numbers = np.arange(24, dtype=np.float32).reshape(4, 6)
    rows, out = wp.array(numbers, device=DEVICE), wp.zeros(2, device=DEVICE)
    wp.launch(lengths, dim=2, inputs=[Shown(rows[::2, 1:4]), Shown(out)], device=DEVICE)
    np.testing.assert_allclose(out.numpy(), np.linalg.norm(numbers[::2, 1:4], axis=1), rtol=1e-6)
    for wrong, message in (
        (rows[:, :2], r"its shape is \(4, 2\), its inner dimensions must be \(3,\)"),
        (rows[:, ::2], "do not lie side by side"),
        (rows[0], "it has 1 dimensions, expected 1 and 1 of the element"),
        (wp.zeros((4, 3), dtype=wp.float64, device=DEVICE), "float64"),
    ):
        with pytest.raises((RuntimeError, TypeError), match=f"argument 1 'v' of kernel 'lengths' .*{message}"):
            wp.launch(lengths, dim=2, inputs=[Shown(wrong), out], device=DEVICE)


@pytest.mark.seed("S-LCH-007")
def test_shown_memory_is_an_argument_on_its_own_device_only():
    x, y = wp.ones(4, device=DEVICE), wp.zeros(4, device=DEVICE)
    wp.launch(saxpy, dim=4, inputs=[2.0, Shown(x), Shown(y)], device=DEVICE)
    assert y.list() == [2.0] * 4
    with pytest.raises(RuntimeError, match="'x' of kernel 'saxpy' is .* in memory of 'cuda:0', the launch is on 'cpu'"):
        wp.launch(saxpy, dim=4, inputs=[2.0, Shown(x), np.zeros(4, np.float32)], device="cpu")
    with pytest.raises(RuntimeError, match="'x' of kernel 'saxpy' is .* in memory of 'cpu', the launch is on 'cuda:0'"):
        wp.launch(saxpy, dim=4, inputs=[2.0, memoryview(np.zeros(4, np.float32)), y], device=DEVICE)
    if len(wp.get_cuda_devices()) > 1:
        with pytest.raises(RuntimeError, match="in memory of 'cuda:0', the launch is on 'cuda:1'"):
            wp.launch(saxpy, dim=4, inputs=[2.0, Shown(x), wp.zeros(4, device="cuda:1")], device="cuda:1")
    assert y.list() == [2.0] * 4


@pytest.mark.seed("S-LCH-007")
def test_tensors_are_arguments_on_their_own_device_only(monkeypatch, second):
    """Those of PyTorch. Its build for the CPU describes memory of a GPU, too, which is all that a launch looks at."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    x, y = wp.ones(4, device=DEVICE), wp.zeros(4, device=DEVICE)
    here, there = torch.ones(4), wp.to_torch(x)
    assert there.device == torch.device(DEVICE) and there.data_ptr() == x.ptr
    wp.launch(saxpy, dim=4, inputs=[2.0, there, wp.to_torch(y)], device=DEVICE)
    assert y.list() == [2.0] * 4
    said = "argument 2 'x' of kernel 'saxpy' is .*Tensor.* in memory of '{}', the launch is on '{}'. help: wp.array"
    other = wp.zeros(4, device=second)
    for tensor, device, result in (
        (here, DEVICE, y),
        (there, "cpu", torch.zeros(4)),
        (there, second, other),
        (wp.to_torch(other), DEVICE, y),
    ):
        with pytest.raises(RuntimeError, match=said.format(wp.device_from_torch(tensor.device), device)):
            wp.launch(saxpy, dim=4, inputs=[1.0, tensor, result], device=device)
    assert y.list() == [2.0] * 4 and other.list() == [0.0] * 4
