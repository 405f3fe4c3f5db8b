"""NumPy: arrays as buffers, compared with NumPy's own arrays; structured types; conversions without a copy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")

# Names and values of Python's header for buffers.
FLAGS = {
    "simple": 0,
    "writable": 0x1,
    "format": 0x4,
    "nd": 0x8,
    "strides": 0x18,
    "c_contiguous": 0x38,
    "f_contiguous": 0x58,
    "any_contiguous": 0x98,
    "indirect": 0x118,
    "full": 0x11D,
    "any_contiguous | writable | format": 0x9D,
}


class Buffer(ctypes.Structure):
    """Py_buffer."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


def asked(source, flags):
    """The answer of an object to a request for its buffer; None if it refuses."""
    get = ctypes.pythonapi.PyObject_GetBuffer
    get.argtypes = [ctypes.py_object, ctypes.POINTER(Buffer), ctypes.c_int]
    buffer = Buffer()
    try:
        get(source, ctypes.byref(buffer), flags)
    except (BufferError, ValueError):
        return None
    dims = range(buffer.ndim)
    lists = [[pointer[i] for i in dims] if pointer else None for pointer in (buffer.shape, buffer.strides)]
    found = (buffer.buf, buffer.len, buffer.itemsize, bool(buffer.readonly), *lists)
    release = ctypes.pythonapi.PyBuffer_Release
    release.argtypes = [ctypes.POINTER(Buffer)]
    release(ctypes.byref(buffer))
    return found


def views(a):
    """Views of an array of shape (4, 6), of both kinds: Weft's transpose is NumPy's."""
    return {
        "all": a,
        "rows": a[1:3],
        "a row": a[2],
        "a column": a[:, 1],
        "every other row": a[::2],
        "backwards": a[0][::-1],
        "a part": a[1:3, 2:4],
        "transposed": a.transpose(),
        "a part of it": a.transpose()[1:3],
        "one column": a[:, 3:4],
        "nothing": a[2:2],
    }


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("name", views(np.zeros((4, 6))))
def test_buffers_answer_as_those_of_numpy(name, flags):
    numbers = np.arange(24, dtype=np.float32).reshape(4, 6)
    ours, theirs = views(wp.array(numbers, copy=False))[name], views(numbers)[name]
    found, expected = asked(ours, FLAGS[flags]), asked(theirs, FLAGS[flags])
    if name == "nothing" or not expected:
        assert (found is None) == (expected is None)
    else:
        assert found[:4] == expected[:4]
        if expected[5] is not None and 1 not in expected[4]:  # a stride over one element means nothing
            assert found[4:] == expected[4:]


@pytest.mark.parametrize("flags", [name for name in FLAGS if "writable" in name])
def test_buffers_of_read_only_memory_are_not_given_for_writing(flags):
    numbers = np.zeros(3, dtype=np.float32)
    numbers.flags.writeable = False
    a = wp.array(numbers, copy=False)
    assert asked(a, FLAGS[flags]) is None and asked(numbers, FLAGS[flags]) is None
    assert asked(a, FLAGS["full"] & ~1) == asked(numbers, FLAGS["full"] & ~1)


@pytest.mark.seed("S-NPY-001", "S-NPY-003", "S-USE-001")
def test_views_on_the_cpu_are_the_memory_itself():
    a = wp.array(np.arange(12, dtype=np.float32).reshape(3, 4), requires_grad=True)
    for view in (a.numpy(), np.asarray(a), np.array(a, copy=False), np.asarray(memoryview(a)), np.from_dlpack(a)):
        assert view.__array_interface__["data"][0] == a.ptr and view.shape == (3, 4)
        view[1, 2] += 1.0
    assert a.numpy()[1, 2] == 6.0 + 5.0
    assert a.grad.numpy().sum() == 0.0 and type(a.numpy()) is np.ndarray  # no gradient goes with it
    assert np.array(a).__array_interface__["data"][0] != a.ptr


@pytest.mark.seed("S-NPY-002")
@pytest.mark.parametrize(
    "name", "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()
)
def test_types_go_both_ways(name):
    dtype, of_numpy = getattr(wp, name), np.dtype(name).type
    assert wp.dtype_to_numpy(dtype) is of_numpy
    assert wp.dtype_from_numpy(of_numpy) is wp.dtype_from_numpy(np.dtype(name)) is dtype
    assert wp.zeros(2, dtype=dtype).numpy().dtype == name and wp.from_numpy(np.zeros(2, dtype=name)).dtype is dtype


def test_types_that_numpy_lends_from_ml_dtypes():
    import ml_dtypes

    for name, bits in (("bfloat16", np.uint16), ("float8_e4m3fn", np.uint8), ("float8_e5m2", np.uint8)):
        dtype = getattr(wp, name)
        assert wp.dtype_from_numpy(np.dtype(getattr(ml_dtypes, name))) is dtype and wp.dtype_to_numpy(dtype) is bits
        a = wp.array(np.array([1.0, -2.0], dtype=getattr(ml_dtypes, name)))
        assert a.dtype is dtype and [float(x) for x in a.list()] == [1.0, -2.0]


@wp.struct
class Particle:
    position: wp.vec3
    mass: float
    alive: wp.bool


@wp.kernel
def move(particles: wp.array[Particle], dt: float):
    i = wp.tid()
    p = particles[i]
    if p.alive:
        p.position = p.position + wp.vec3(dt, 0.0, 0.0) * p.mass
        particles[i] = p


@pytest.mark.seed("S-NPY-001")
def test_structured_arrays_are_shared_and_go_into_launches():
    records = np.zeros(3, dtype=Particle.numpy_dtype())
    records["mass"], records["alive"] = [1.0, 2.0, 3.0], [True, False, True]
    a = wp.array(records, dtype=Particle, copy=False)
    wp.launch(move, dim=3, inputs=[a, 0.5])
    assert records["position"][:, 0].tolist() == [0.5, 0.0, 1.5]
    assert np.shares_memory(a.numpy(), records) and a.numpy().dtype == records.dtype
    back = wp.from_numpy(a.numpy(), dtype=Particle)
    assert back.dtype is Particle and back.numpy().tobytes() == records.tobytes()


# ---- bad input ----


@wp.kernel
def copy_numbers(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[i]


def test_arrays_with_negative_strides_are_read_and_written_in_their_order():
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, dtype=np.float32)
    wp.launch(copy_numbers, dim=5, inputs=[x[::-1], y])
    assert y.tolist() == [4, 3, 2, 1, 0]
    wp.launch(copy_numbers, dim=5, inputs=[x, y[::-1]])
    assert y.tolist() == [4, 3, 2, 1, 0]
    for a in (wp.array(x[::-1], copy=False), wp.from_dlpack(x[::-1]), wp.array(x)[::-1]):
        assert a.numpy().tolist() == list(a.list()) == [4, 3, 2, 1, 0]


def test_byte_order_and_alignment_are_checked():
    swapped = np.arange(3, dtype=">f4")
    odd = np.frombuffer(bytearray(13), dtype=np.uint8)[1:].view(np.float32)
    for wrong, message in ((swapped, "in native byte order"), (odd, "its memory is not aligned")):
        with pytest.raises(TypeError, match=f"argument 1 'x' of kernel 'copy_numbers'.*{message}"):
            wp.launch(copy_numbers, dim=3, inputs=[wrong, wp.zeros(3)])


@pytest.mark.large
@pytest.mark.parametrize("name", ["numpy", "torch", "dlpack"])
def test_arrays_of_more_than_two_gigabytes(name):
    count = (1 << 31) + 5  # of one byte, so that offsets pass 31 bits

    @wp.kernel
    def ends(x: wp.array[wp.uint8], last: wp.int64, y: wp.array[wp.uint8]):
        y[0] = x[last]
        x[last - wp.int64(1)] = wp.uint8(9)

    numbers = np.zeros(count, dtype=np.uint8)
    numbers[-1] = 7
    if name == "torch":
        import torch

        passed = torch.from_numpy(numbers)
    else:
        passed = numbers if name == "numpy" else wp.from_dlpack(numbers)
    y = wp.zeros(1, dtype=wp.uint8)
    wp.launch(ends, dim=1, inputs=[passed, count - 1, y])
    assert y.list() == [7] and numbers[-2] == 9

    columns = np.zeros((3, 1 << 30), dtype=np.uint8)[:, ::2]  # strides beyond 31 bits
    columns[2, -1] = 5
    a = wp.from_dlpack(columns)
    assert a.strides == (1 << 30, 2) and a[2, (1 << 29) - 1] == 5
