"""DLPack: arrays and capsules of other libraries in place, and the protocol's structures for ctypes.

The structures have the names and the fields of DLPack's own header. ``from_dlpack`` and ``to_dlpack`` are those of the
module ``warp``; nothing here needs another library.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Sequence
from typing import Any

import warp._weft as _weft
from warp._weft import Device, from_dlpack, get_device, to_dlpack

__all__ = [
    "DLDataType",
    "DLDataTypeCode",
    "DLDevice",
    "DLDeviceType",
    "DLManagedTensor",
    "DLManagedTensorVersioned",
    "DLPackVersion",
    "DLTensor",
    "device_from_dlpack",
    "device_to_dlpack",
    "dtype_from_dlpack",
    "dtype_is_compatible",
    "dtype_to_dlpack",
    "from_dlpack",
    "shape_to_dlpack",
    "strides_to_dlpack",
    "to_dlpack",
]


class DLDeviceType(enum.IntEnum):
    """Whose memory it is. The host reads and writes ``kDLCUDAHost`` (pinned) and ``kDLCUDAManaged`` memory too."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
    kDLTrn = 18


class DLDataTypeCode(enum.IntEnum):
    """The kind of numbers; their bits are beside it in `DLDataType`."""

    kDLInt = 0
    kDLUInt = 1
    kDLFloat = 2
    kDLOpaqueHandle = 3
    kDLBfloat = 4
    kDLComplex = 5
    kDLBool = 6
    kDLFloat8_e4m3fn = 10
    kDLFloat8_e5m2 = 12


class DLDevice(ctypes.Structure):
    """A device: its kind, a `DLDeviceType`, and its number."""

    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    """A type of numbers: its kind, a `DLDataTypeCode`; bits; lanes, which are 1 but for vectors of a processor."""

    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    """A view of memory. Strides count numbers, not bytes."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    """The contents of a capsule named ``dltensor``; ``deleter`` is called with its address."""

    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class DLPackVersion(ctypes.Structure):
    """The version of DLPack that a structure follows."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class DLManagedTensorVersioned(ctypes.Structure):
    """The contents of a capsule named ``dltensor_versioned``. Bit 0 of ``flags``: read-only; bit 1: a copy."""

    _fields_ = [
        ("version", DLPackVersion),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    ]


# ---- devices ----


def device_to_dlpack(wp_device: Any) -> DLDevice:
    """A device, or its name, as DLPack has it.

    Raises:
        UsageError: there is no such device, or DLPack has no number for it.
    """
    return DLDevice(*_weft.zeros(0, device=get_device(wp_device)).__dlpack_device__())


def device_from_dlpack(dl_device: DLDevice) -> Device:
    """The device whose memory DLPack's device means. Pinned and managed memory is the host's too.

    Args:
        dl_device: a `DLDevice`, or the pair that ``__dlpack_device__()`` gives.

    Raises:
        UsageError: it is a device that this machine or this build has not.
    """
    pair = (dl_device.device_type, dl_device.device_id) if isinstance(dl_device, DLDevice) else tuple(dl_device)
    kind, number = pair
    if kind in (DLDeviceType.kDLCPU, DLDeviceType.kDLCUDAHost, DLDeviceType.kDLCUDAManaged):
        return get_device("cpu")
    if kind == DLDeviceType.kDLCUDA:
        return get_device(f"cuda:{number}")
    name = DLDeviceType(kind).name if kind in set(DLDeviceType) else f"of kind {kind}"
    raise _weft.usage_error(
        f"device_from_dlpack(): the device is {name}:{number}, expected kDLCPU, kDLCUDA, or memory that the host"
        " reads (kDLCUDAHost, kDLCUDAManaged)",
        RuntimeError,
    )


# ---- types of numbers ----


def _tensor_of(capsule: Any) -> DLTensor:
    """The tensor in a capsule without a version, valid as long as the capsule is."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return DLManagedTensor.from_address(pointer(capsule, b"dltensor")).dl_tensor


def _parts(dl_dtype: DLDataType) -> tuple[int, int, int]:
    return dl_dtype.code, dl_dtype.bits, dl_dtype.lanes


def dtype_to_dlpack(wp_dtype: Any) -> DLDataType:
    """A scalar type, or that of the components of a vector or matrix type, as DLPack has it.

    Raises:
        TypeError: DLPack has no such type (structs).
    """
    capsule = to_dlpack(_weft.zeros(0, dtype=wp_dtype, device="cpu"))  # the description of an array of them
    return DLDataType(*_parts(_tensor_of(capsule).dtype))


def dtype_from_dlpack(dl_dtype: DLDataType) -> Any:
    """Weft's scalar type for a type of DLPack.

    Raises:
        TypeError: Weft has no such type (complex numbers, fewer than 8 bits, more than one lane, ...).
    """
    for scalar in _weft.scalar_types():
        if _parts(dtype_to_dlpack(scalar)) == _parts(dl_dtype):
            return scalar
    code, bits, lanes = _parts(dl_dtype)
    name = DLDataTypeCode(code).name if code in set(DLDataTypeCode) else f"code {code}"
    raise _weft.usage_error(
        f"dtype_from_dlpack(): Weft has no type for {name} of {bits} bits in {lanes} lanes: expected bool, integers of"
        " 8 to 64 bits, or floats of 8 to 64 bits, in one lane",
        TypeError,
    )


def dtype_is_compatible(dl_dtype: DLDataType, wp_dtype: Any) -> bool:
    """Whether ``from_dlpack(..., dtype=wp_dtype)`` takes numbers of this type: the same, or integers of one size, or
    bytes for bool. Of vector and matrix types the components count.

    Raises:
        TypeError: DLPack has no such ``wp_dtype`` (structs).
    """
    code, bits, lanes = _parts(dl_dtype)
    asked = dtype_to_dlpack(wp_dtype)
    if (code, bits, lanes) == _parts(asked):
        return True
    integers = {DLDataTypeCode.kDLInt, DLDataTypeCode.kDLUInt}
    if bits == 8:
        integers.add(DLDataTypeCode.kDLBool)
    return lanes == 1 and bits == asked.bits and {code, asked.code} <= integers


# ---- shapes ----


def shape_to_dlpack(shape: Sequence[int]) -> Any:
    """A shape as DLPack has it: an array of 64-bit integers for ``DLTensor.shape``."""
    return (ctypes.c_int64 * len(shape))(*shape)


def strides_to_dlpack(strides: Sequence[int], dtype: Any) -> Any:
    """Strides in bytes, as ``array.strides`` has them, as DLPack has them: in numbers, for ``DLTensor.strides``.

    Args:
        strides: in bytes.
        dtype: of the elements. Those of vectors and matrices are counted in components.

    Raises:
        UsageError: a stride is no multiple of the numbers' bytes.
    """
    size = dtype_to_dlpack(dtype).bits // 8
    for stride in strides:
        if stride % size:
            raise _weft.usage_error(
                f"strides_to_dlpack(): a stride of {stride} bytes is no multiple of the numbers' {size}", RuntimeError
            )
    return (ctypes.c_int64 * len(strides))(*(stride // size for stride in strides))
