"""JAX: arrays, devices and dtypes. Arrays of JAX are read in C++ (bindings/interop/jax_array)."""

from __future__ import annotations

from typing import Any

import numpy as np

import warp._weft as _weft
from warp._devices.devices import Device, DeviceLike, get_device, get_devices
from warp._interop.library import import_library
from warp._weft import from_jax
from warp.types import type_name

__all__ = [
    "array_type",
    "device_from_jax",
    "device_to_jax",
    "dtype_from_jax",
    "dtype_to_jax",
    "from_jax",
    "to_jax",
    "why_no_array",
]

UsageError = _weft.UsageError


def array_type() -> type:
    """The class of arrays that hold numbers."""
    return type(import_library("jax").numpy.zeros(0))


def why_no_array(found: Any) -> str:
    """The error text of from_jax() for an object that is no array of JAX with numbers."""
    jax = import_library("jax")
    if isinstance(found, jax.core.Tracer):
        return (
            "jax_array is traced: inside of jax.jit, grad or vmap it has no numbers yet. help: wp.jax_kernel or "
            "wp.jax_callable run kernels there"
        )
    return f"jax_array is {type(found).__module__}.{type(found).__qualname__}, expected an array of JAX"


def to_jax(warp_array: Any = None, *, wp_array: Any = None) -> Any:
    """A JAX array over the memory of an array, without a copy; it keeps the memory alive.

    JAX assumes that its arrays never change. Later writes to the memory may or may not show in the JAX array: write
    only once JAX is done with it.

    Args:
        warp_array: the array, also by the name ``wp_array``. Vectors and matrices add their dimensions at the end;
            unsigned integers stay unsigned. It has to lie without gaps, in any order of its dimensions, and on the CPU
            to begin at a multiple of 64 bytes, as whole arrays do.

    Raises:
        UsageError: a TypeError if it is no array. A RuntimeError if it is one of structs, if JAX cannot use its memory
            in place (``wp.clone()`` makes memory that it can), or if its numbers have 64 bits and the option
            ``jax_enable_x64`` is off.
    """
    jax = import_library("jax")
    array = wp_array if warp_array is None else warp_array
    capsule = _weft.capsule_for_jax(array, jax.config.jax_enable_x64)
    try:
        if capsule is None:  # JAX orders its stream and ours
            return jax.dlpack.from_dlpack(array, copy=False)
        return _Maker.instance().array(capsule)
    except jax.errors.JaxRuntimeError as error:
        raise UsageError(
            f"to_jax(): the array has the shape {array.shape} and strides of {array.strides} bytes, and JAX uses "
            f"memory in place only if it has no gaps. help: to_jax(wp.clone(array)) copies\n{error}"
        ) from None
    except RuntimeError as error:
        if capsule is not None:
            raise
        raise UsageError(
            f"to_jax(): the array is on '{array.device}', and JAX cannot take it. help: a JAX for CUDA, or "
            f"array.to('cpu')\n{error}"
        ) from None


class _Maker:
    """Makes arrays of JAX from capsules."""

    _instance: _Maker | None = None

    @classmethod
    def instance(cls) -> _Maker:
        if cls._instance is None:
            cls._instance = cls(_quick_function())
        return cls._instance

    def __init__(self, quick: Any) -> None:
        self.jax = import_library("jax")
        self.device = self.jax.local_devices(backend="cpu")[0]
        self.quick = quick

    def array(self, capsule: Any) -> Any:
        if self.quick is not None:
            return self.quick(capsule, self.device, None, False, 1)
        return self.jax.dlpack.from_dlpack(_Producer(capsule), copy=False)


class _Producer:
    """A DLPack producer of one capsule, for jax.dlpack.from_dlpack()."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _quick_function() -> Any:
    """The function behind jax.dlpack.from_dlpack(), at an eighth of its cost; None if its signature has changed."""
    function = getattr(import_library("jaxlib._jax"), "dlpack_managed_tensor_to_buffer", None)
    form = getattr(function, "__doc__", None) or ""
    names = ("dlpack", "device", "stream", "copy", "dl_device_type")
    places = [form.find(f"{name}: ") for name in names]
    return function if -1 not in places and places == sorted(places) else None


def copied_to_jax(one: Any) -> Any:
    """``array.__jax_array__()``: a copy, since the memory of an array may change, and one of JAX may not."""
    jax = import_library("jax")
    if not one.device.is_cpu:
        return to_jax(_weft.clone(one))
    numbers = np.asarray(one)
    return jax.numpy.array(numbers) if numbers.dtype.names is None else to_jax(one)


def device_to_jax(warp_device: DeviceLike = None) -> Any:
    """The ``jax.Device`` of a device, of its name, or of the default device. Starts JAX's backend.

    Raises:
        UsageError: JAX has no such device, or Weft has not.
    """
    device = get_device(warp_device)
    backend, ordinal = ("cpu", 0) if device.is_cpu else ("cuda", device.ordinal)
    found = import_library("jax").local_devices(backend=backend)
    if ordinal >= len(found):
        raise UsageError(f"device_to_jax(): JAX has no device for '{device}'; it has {found}")
    return found[ordinal]


def device_from_jax(jax_device: Any) -> Device:
    """The device of a ``jax.Device``: ``"cpu"`` for each device that JAX makes of the CPU.

    Raises:
        UsageError: a TypeError if it is no device of JAX, a RuntimeError if Weft has none such.
    """
    platform = getattr(jax_device, "platform", None)
    if platform == "cpu":
        return get_device("cpu")
    if platform in ("gpu", "cuda"):
        return get_device(f"cuda:{jax_device.local_hardware_id}")
    if isinstance(platform, str):
        raise UsageError(f"device_from_jax(): there is no device for {jax_device!r} of JAX; there are {get_devices()}")
    raise _weft.usage_error(f"device_from_jax(): got {jax_device!r}, expected a jax.Device", TypeError)


def dtype_to_jax(warp_dtype: Any) -> Any:
    """JAX's scalar type, ``jax.numpy.float32`` and the like, for a scalar type. Unsigned ones stay unsigned.

    Raises:
        UsageError: a TypeError if it is no scalar type.
    """
    info = _weft.type_info(warp_dtype)
    if info is None or info["kind"] != "scalar":
        raise _weft.usage_error(f"dtype_to_jax(): got {warp_dtype!r}, expected a scalar type", TypeError)
    return getattr(import_library("jax").numpy, type_name(info["scalar"]))


def dtype_from_jax(jax_dtype: Any) -> Any:
    """The scalar type for a dtype or a scalar type of JAX.

    Raises:
        UsageError: a TypeError if Weft has none such (complex numbers, integers of 4 bits).
    """
    import_library("jax")
    dtype = getattr(jax_dtype, "dtype", jax_dtype)
    if not isinstance(dtype, np.dtype) and isinstance(jax_dtype, type) and issubclass(jax_dtype, np.generic):
        dtype = np.dtype(jax_dtype)
    info = _weft.type_info(dtype) if isinstance(dtype, np.dtype) and dtype.isnative else None
    if info is None:
        raise _weft.usage_error(f"dtype_from_jax(): there is no Weft type for {jax_dtype!r}", TypeError)
    return info["scalar"]
