"""Arrays of other libraries on the emulated device: classes with the protocols of PyTorch, CuPy, Numba and JAX over
memory of Weft's arrays, whose libraries work in a stream of their own."""

import ctypes
from types import ModuleType, SimpleNamespace

CUDA = 2


class Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("ordinal", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


VIEW = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
UNUSED = ctypes.PYFUNCTYPE(ctypes.c_int)


class ExchangeApi(ctypes.Structure):
    """DLPack's C exchange API, version 1.3."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", UNUSED),
        ("from_object", UNUSED),
        ("to_object", UNUSED),
        ("view_of_object", VIEW),
        ("current_stream", STREAM),
    ]


def exchange_api(tensor_class):
    """The functions of a library's tensors, to be replaced in place."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ExchangeApi.from_address(pointer(tensor_class.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


class TensorLikeTorch:
    """A float32 tensor whose class has the C exchange API, and whose library works in ``current[ordinal]``."""

    current: dict[int, int] = {}
    asked: list[int] = []

    def __init__(self, array):
        self.array = array
        self._shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self._strides = (ctypes.c_int64 * array.ndim)(*(step // 4 for step in array.strides))

    @staticmethod
    @VIEW
    def _view(tensor, out):
        device = Device(CUDA, tensor.array.device.ordinal)
        out[0] = Tensor(
            tensor.array.ptr, device, tensor.array.ndim, DataType(2, 32, 1), tensor._shape, tensor._strides, 0
        )
        return 0

    @staticmethod
    @STREAM
    def _current(kind, ordinal, out):
        assert kind == CUDA
        TensorLikeTorch.asked.append(ordinal)
        out[0] = TensorLikeTorch.current.get(ordinal, 0)
        return 0

    _functions = ExchangeApi(1, 3, None, UNUSED(), UNUSED(), UNUSED(), _view.__func__, _current.__func__)


def _capsule(structure):
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(ctypes.addressof(structure), b"dlpack_exchange_api", None)


TensorLikeTorch.__dlpack_c_exchange_api__ = _capsule(TensorLikeTorch._functions)


class ArrayLikeCupy:
    """An array with ``__dlpack__``, which makes the consumer's stream wait for the current one of its module."""

    def __init__(self, array, other):
        self.array, self.other, self.asked = array, other, []

    def __dlpack_device__(self):
        return CUDA, self.array.device.ordinal

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append(stream)
        event = self.other.made("cuEventCreate", 0)
        self.other.call("cuEventRecord", event, ctypes.c_void_p(self._current()))
        self.other.call("cuStreamWaitEvent", ctypes.c_void_p(stream), event, 0)
        self.other.call("cuEventDestroy_v2", event)
        return self.array.__dlpack__(stream=-1, max_version=max_version)

    def _current(self):
        import cupy

        return cupy.cuda.get_current_stream().ptr


ArrayLikeCupy.__module__ = "cupy._core.core"


def module_like_cupy(stream):
    """A module in the place of CuPy, whose current stream on the device 0 is this one."""
    devices = [0]

    class CupyDevice:
        def __init__(self, ordinal):
            self.ordinal = ordinal

        def __enter__(self):
            devices.append(self.ordinal)

        def __exit__(self, *exception):
            devices.pop()

    def get_current_stream():
        return SimpleNamespace(ptr=stream.cuda_stream if devices[-1] == 0 else 0)

    cupy = ModuleType("cupy")
    cupy.cuda = SimpleNamespace(Device=CupyDevice, get_current_stream=get_current_stream)
    return cupy


class ArrayLikeNumba:
    """An array with ``__cuda_array_interface__`` of version 3, which names its stream."""

    def __init__(self, array, stream):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "version": 3, "stream": stream}
