"""Devices by name, and the default device as a context."""

from warp._weft import (
    Device,
    get_cuda_device,
    get_cuda_device_count,
    get_cuda_devices,
    get_device,
    get_devices,
    get_preferred_device,
    is_cpu_available,
    is_cuda_available,
    is_device_available,
    set_device,
    synchronize,
    synchronize_device,
)

__all__ = [
    "Device",
    "DeviceLike",
    "ScopedDevice",
    "get_cuda_device",
    "get_cuda_device_count",
    "get_cuda_devices",
    "get_device",
    "get_devices",
    "get_preferred_device",
    "is_cpu_available",
    "is_cuda_available",
    "is_device_available",
    "set_device",
    "synchronize",
    "synchronize_device",
]

DeviceLike = Device | str | None
"""The values of an argument ``device``: a device, its name, or None for the default device. For annotations."""


class ScopedDevice:
    """Makes a device the default, in all threads, inside a ``with`` block.

    Args:
        device: a device, its name, or None to leave the default as it is.

    The block's ``as`` name is the Device. One object can be entered again after it was left, also inside itself.
    """

    def __init__(self, device=None):
        self.device = None if device is None else get_device(device)
        self._outer = []

    def __enter__(self):
        self._outer.append(get_device())
        if self.device is not None:
            set_device(self.device)
        return get_device()

    def __exit__(self, exc_type, exc_value, traceback):
        set_device(self._outer.pop())


def _compile_arch(device: Device) -> int | None:
    """The CUDA architecture that kernels are compiled for on the device, as 90 for 9.0; None for the CPU."""
    return device.arch if device.is_cuda else None


def _output_format(device: Device, preferred_cuda_output: str | None = None) -> str | None:
    """The form in which the driver gets kernels of a CUDA device: always "ptx"; None for the CPU."""
    return "ptx" if device.is_cuda else None


Device.get_cuda_compile_arch = _compile_arch
Device.get_cuda_output_format = _output_format
