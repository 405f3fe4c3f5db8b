"""Enumerations that arguments and attributes take."""

import enum

from warp.config import DeterministicMode

__all__ = [
    "CaptureMode",
    "DeterministicMode",
    "MemoryKind",
    "TextureAddressMode",
    "TextureFilterMode",
    "TextureResourceFlags",
]


class CaptureMode(enum.IntEnum):
    """Which calls of other threads a capture on a CUDA device forbids."""

    GLOBAL = 0
    THREAD_LOCAL = 1
    RELAXED = 2


class MemoryKind(enum.IntEnum):
    """The kind of memory that an array has."""

    UNKNOWN = 0
    HOST = 1
    PINNED = 2
    CUDA_DEVICE = 3
    CUDA_MEMPOOL = 4
    CUDA_MANAGED = 5


class TextureAddressMode(enum.IntEnum):
    """The values that a texture gives outside of its borders."""

    WRAP = 0
    CLAMP = 1
    MIRROR = 2
    BORDER = 3


class TextureFilterMode(enum.IntEnum):
    """How a texture interpolates."""

    CLOSEST = 0
    LINEAR = 1


class TextureResourceFlags(enum.IntEnum):
    """How a texture of a graphics library will be used."""

    NONE = 0
    READ_ONLY = 1
    WRITE_DISCARD = 2
    SURFACE_LDST = 4
    TEXTURE_GATHER = 8
