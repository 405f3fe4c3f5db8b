"""The module warp.dlpack: its functions, and its structures beside what arrays say of themselves."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
import pytest
import warp as wp
import warp.dlpack as wd

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")

# Kind and bits of each scalar type, from the protocol's own text.
TYPES = {
    "bool": (6, 8),
    "int8": (0, 8),
    "uint8": (1, 8),
    "int16": (0, 16),
    "uint16": (1, 16),
    "int32": (0, 32),
    "uint32": (1, 32),
    "int64": (0, 64),
    "uint64": (1, 64),
    "float16": (2, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "bfloat16": (4, 16),
    "float8_e4m3fn": (10, 8),
    "float8_e5m2": (12, 8),
}


def address_in(capsule, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


@pytest.mark.seed("S-DLP-006", "D-07")
def test_the_module_has_the_names_and_imports_nothing():
    assert wd.from_dlpack is wp.from_dlpack and wd.to_dlpack is wp.to_dlpack and wp.dlpack is wd
    program = "import sys, warp.dlpack; print(sorted({'torch', 'jax', 'paddle', 'numba', 'cupy'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


@pytest.mark.seed("S-DLP-006")
@pytest.mark.parametrize("name", TYPES)
def test_every_scalar_type_has_its_number(name):
    dtype = getattr(wp, name)
    found = wd.dtype_to_dlpack(dtype)
    assert (found.code, found.bits, found.lanes) == (*TYPES[name], 1)
    assert wd.dtype_from_dlpack(wd.DLDataType(*TYPES[name], 1)) is dtype
    assert wd.dtype_is_compatible(found, dtype)


@pytest.mark.seed("S-DLP-006", "S-DLP-009")
def test_types_that_are_not_there():
    assert wd.dtype_to_dlpack(wp.vec3).bits == 32 and wd.dtype_to_dlpack(float).bits == 32
    codes = wd.DLDataTypeCode
    for found in ((codes.kDLComplex, 64, 1), (codes.kDLInt, 4, 1), (codes.kDLFloat, 32, 4), (77, 8, 1)):
        with pytest.raises(TypeError, match=r"dtype_from_dlpack\(\): Weft has no type for .*expected bool"):
            wd.dtype_from_dlpack(wd.DLDataType(*found))

    @wp.struct
    class Pair:
        a: int

    with pytest.raises(TypeError, match="an array of Pair has no form that other libraries know"):
        wd.dtype_to_dlpack(Pair)


@pytest.mark.seed("S-DLP-006")
def test_compatible_is_what_from_dlpack_takes():
    for found in TYPES:
        source = wp.zeros(3, dtype=getattr(wp, found))
        for asked in TYPES:
            dtype = getattr(wp, asked)
            try:
                wp.from_dlpack(wp.to_dlpack(source), dtype=dtype)
                is_taken = True
            except RuntimeError:
                is_taken = False
            assert wd.dtype_is_compatible(wd.DLDataType(*TYPES[found], 1), dtype) == is_taken, (found, asked)
    assert wd.dtype_is_compatible(wd.DLDataType(2, 32, 1), wp.mat33)
    assert not wd.dtype_is_compatible(wd.DLDataType(2, 64, 1), wp.mat33)
    assert not wd.dtype_is_compatible(wd.DLDataType(2, 32, 4), wp.float32)


@pytest.mark.seed("S-DLP-006")
def test_devices_go_both_ways():
    assert wp.ones(1).__dlpack_device__() == (1, 0)
    for device in ("cpu", wp.get_device("cpu")):
        found = wd.device_to_dlpack(device)
        assert (found.device_type, found.device_id) == (wd.DLDeviceType.kDLCPU, 0)
        assert wd.device_from_dlpack(found) == wp.get_device("cpu")
    assert wd.device_from_dlpack((wd.DLDeviceType.kDLCUDAHost, 0)) == wp.get_device("cpu")
    for pair, message in (
        ((wd.DLDeviceType.kDLMetal, 1), "the device is kDLMetal:1, expected kDLCPU"),
        ((99, 0), "the device is of kind 99:0"),
        ((wd.DLDeviceType.kDLCUDA, 71), "cuda:71"),
    ):
        with pytest.raises(RuntimeError, match=message):
            wd.device_from_dlpack(wd.DLDevice(*pair))


@pytest.mark.seed("S-DLP-006")
def test_the_structures_read_what_arrays_export():
    a = wp.zeros((4, 5), dtype=wp.vec3)[1:, ::2]
    for tensor in (
        wd.DLManagedTensor.from_address(address_in(one := a.__dlpack__(), b"dltensor")).dl_tensor,
        wd.DLManagedTensorVersioned.from_address(
            address_in(two := a.__dlpack__(max_version=(1, 0)), b"dltensor_versioned")
        ).dl_tensor,
    ):
        assert (tensor.data, tensor.ndim, tensor.byte_offset) == (a.ptr, 3, 0)
        assert tensor.shape[:3] == [*wd.shape_to_dlpack(a.shape), 3] == [3, 3, 3]
        assert tensor.strides[:3] == [*wd.strides_to_dlpack(a.strides, a.dtype), 1] == [15, 6, 1]
        assert (tensor.dtype.code, tensor.dtype.bits, tensor.device.device_type) == (2, 32, 1)
    versioned = wd.DLManagedTensorVersioned.from_address(address_in(two, b"dltensor_versioned"))
    assert versioned.version.major == 1 and versioned.flags == 0
    frozen = np.ones(2)
    frozen.flags.writeable = False
    capsule = wp.from_dlpack(frozen).__dlpack__(max_version=(1, 0))
    assert wd.DLManagedTensorVersioned.from_address(address_in(capsule, b"dltensor_versioned")).flags == 1
    with pytest.raises(RuntimeError, match="a stride of 6 bytes is no multiple of the numbers' 4"):
        wd.strides_to_dlpack((6,), wp.float32)


@pytest.mark.seed("S-DLP-006")
def test_a_tensor_written_in_python_becomes_an_array():
    numbers = (ctypes.c_double * 6)(*range(6))
    shape, strides = wd.shape_to_dlpack((3, 2)), wd.strides_to_dlpack((8, 24), wp.float64)
    freed = []
    managed = wd.DLManagedTensor()
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(freed.append)
    managed.deleter = ctypes.cast(deleter, ctypes.c_void_p)
    tensor = managed.dl_tensor
    tensor.data, tensor.ndim, tensor.byte_offset = ctypes.addressof(numbers), 2, 0
    tensor.device, tensor.dtype = wd.device_to_dlpack("cpu"), wd.dtype_to_dlpack(wp.float64)
    tensor.shape, tensor.strides = shape, strides
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = ctypes.create_string_buffer(b"dltensor")
    a = wd.from_dlpack(new(ctypes.addressof(managed), name, None))
    assert a.numpy().tolist() == [[0, 3], [1, 4], [2, 5]] and freed == []
    a[2, 1] = 9.0
    assert numbers[5] == 9.0
    del a
    assert freed == [ctypes.addressof(managed)]
