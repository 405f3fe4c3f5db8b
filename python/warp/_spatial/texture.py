"""wp.Texture1D, Texture2D and Texture3D: regular grids of texels that kernels sample by wp.texture_sample()."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import warp._weft as _weft
from warp._devices.enums import TextureAddressMode, TextureFilterMode, TextureResourceFlags
from warp._spatial.texture_arguments import (
    AXES,
    address_modes,
    channel_count,
    checked_data,
    enum_value,
    integer,
    level_count,
    no_texels,
    texel_format,
    texels_of,
)
from warp._weft import array, named_type, usage_error
from warp.errors import NotImplementedYetError

__all__ = ["GLTextureResource", "Texture", "Texture1D", "Texture2D", "Texture3D"]


def _once(initialise: Any) -> Any:
    """An __init__ that does nothing to a texture that Texture() has made, and Python calls it for again."""

    @functools.wraps(initialise)
    def __init__(self: Texture, *arguments: Any, **options: Any) -> None:
        if self._memory is None:
            initialise(self, *arguments, **options)

    return __init__


class Texture(_weft.StructValue):
    """The base of Texture1D, Texture2D and Texture3D: a regular grid of texels in memory of a device.

    ``wp.Texture(2, data)`` is ``wp.Texture2D(data)``. See there.
    """

    _dims = 0
    _memory: Any = None

    def __new__(cls, *arguments: Any, **options: Any):
        if cls is not Texture:
            return super().__new__(cls)
        ndim = options.pop("ndim") if "ndim" in options else arguments[0] if arguments else None
        kinds = {1: Texture1D, 2: Texture2D, 3: Texture3D}
        if ndim not in kinds:
            raise usage_error(f"Texture(): ndim is {ndim!r}, expected 1, 2 or 3", ValueError)
        return kinds[ndim](*arguments[1:], **options)

    def _start(
        self,
        data: Any,
        sizes: tuple[Any, ...],
        num_channels: Any,
        dtype: Any,
        filter_mode: Any,
        address_mode: Any,
        own_modes: tuple[Any, ...],
        normalized_coords: Any,
        num_mip_levels: Any,
        mip_filter_mode: Any,
        device: Any,
        surface_access: Any,
        cuda_array: Any,
    ) -> None:
        dims = self._dims
        api = f"Texture{dims}D()"
        names = AXES[:dims]
        if cuda_array:
            raise NotImplementedYetError(f"{api}: textures of other programs' CUDA arrays are not there yet")
        sizes = tuple(integer(size, api, name) for size, name in zip(sizes, names, strict=True))
        if data is not None:
            data, dtype, extents, channels = checked_data(data, dims, api)
            for name, size, extent in zip(names, sizes, extents, strict=True):
                if size not in (0, extent):
                    raise usage_error(f"{api}: {name} is {size}, and that of data {extent}", ValueError)
            if device is None and isinstance(data, array):
                device = data.device
        else:
            for name, size in zip(names, sizes, strict=True):
                if size < 1:
                    raise usage_error(f"{api}: {name} is {size}, expected 1 or more, or data", ValueError)
            if dtype is None:
                raise usage_error(f"{api}: dtype is missing: it is needed without data", ValueError)
            extents, dtype = sizes, texel_format(dtype, api)
            channels = channel_count(integer(num_channels, api, "num_channels"), api)
        is_words = dtype in (named_type("uint32"), named_type("int32"))
        if filter_mode is None:
            filter_mode = TextureFilterMode.CLOSEST if is_words else TextureFilterMode.LINEAR
        filters = [enum_value(TextureFilterMode, filter_mode, api, "filter_mode")]
        filters.append(
            filters[0]
            if mip_filter_mode is None
            else enum_value(TextureFilterMode, mip_filter_mode, api, "mip_filter_mode")
        )
        if is_words and TextureFilterMode.LINEAR in filters:
            raise usage_error(
                f"{api}: texels of {_weft.type_name(dtype)} are not interpolated. help: "
                "filter_mode=wp.TextureFilterMode.CLOSEST",
                ValueError,
            )
        modes = address_modes(dims, address_mode, list(own_modes), api)
        levels = level_count(num_mip_levels, extents, data is not None, api)
        device = _weft.get_device(device)
        if data is not None:
            texels = texels_of(data, dtype, extents, channels, levels, device)
        else:
            texels = no_texels(math.prod(extents) * channels, dtype, device)
        self._adopt(texels, extents, channels, levels, modes, filters, bool(normalized_coords), api)

    def _adopt(
        self,
        texels: array,
        extents: tuple[int, ...],
        channels: int,
        levels: int,
        modes: list[int],
        filters: list[int],
        is_normalized: bool,
        api: str,
    ) -> None:
        _weft.StructValue.__init__(self)
        rest = 3 - self._dims
        self._memory = _weft._make_texture(
            self,
            texels,
            [*extents, *[1] * rest],
            channels,
            levels,
            [*modes, *[int(TextureAddressMode.CLAMP)] * rest],
            *filters,
            is_normalized,
            api,
        )

    # ---- asking ----

    def _settings(self) -> tuple[Any, ...]:
        """Texels, channels, levels, address modes, filter, filter between levels, whether normalized."""
        settings = _weft._texture_settings(self)
        if settings is None:
            name = type(self).__name__
            raise usage_error(
                f"{name}: this is no texture, or one that is gone. help: a texture has to live as long as arrays and "
                "kernels use it",
                RuntimeError,
            )
        return settings

    @property
    def id(self) -> int:
        """The number by which kernels find the texture; 0 for none."""
        return _weft._texture_id(self)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._dims

    @property
    def width(self) -> int:
        """Texels along u; 0 if this is no texture."""
        return _weft._texture_extents(self)[0]

    @property
    def num_channels(self) -> int:
        """Numbers in each texel: 1, 2 or 4."""
        return self._settings()[1]

    @property
    def dtype(self) -> Any:
        """The type of these numbers."""
        return self._settings()[0].dtype

    @property
    def device(self) -> Any:
        """The device it is on."""
        return self._settings()[0].device

    @property
    def filter_mode(self) -> TextureFilterMode:
        """How samples are made from texels."""
        return TextureFilterMode(self._settings()[4])

    @property
    def mip_filter_mode(self) -> TextureFilterMode:
        """How samples are made from levels."""
        return TextureFilterMode(self._settings()[5])

    @property
    def address_mode_u(self) -> TextureAddressMode:
        """The values outside of the texture along u."""
        return TextureAddressMode(self._settings()[3][0])

    @property
    def normalized_coords(self) -> bool:
        """Whether the texture extends from 0 to 1 along each axis, and not to the number of its texels."""
        return self._settings()[6]

    @property
    def num_mip_levels(self) -> int:
        """The number of levels; 1 for a texture without smaller copies of itself."""
        return self._settings()[2]

    @property
    def is_mipmapped(self) -> bool:
        """Whether there are several levels."""
        return self.num_mip_levels > 1

    @property
    def cuda_texture(self) -> int:
        """The handle of a CUDA texture object. Raises RuntimeError on the CPU."""
        return self._cuda_object("cuda_texture", "texture objects")

    @property
    def cuda_surface(self) -> int:
        """The handle of a CUDA surface object. Raises RuntimeError on the CPU."""
        return self._cuda_object("cuda_surface", "surface objects")

    def _cuda_object(self, member: str, kind: str) -> int:
        device = self.device
        name = f"{type(self).__name__}.{member}"
        if not device.is_cuda:
            raise usage_error(f"{name}: the texture is on '{device.alias}', which has no {kind}", RuntimeError)
        raise NotImplementedYetError(f"{name}: {kind} are not there yet; kernels sample the texels in memory")

    # ---- copying ----

    def _texels(self, api: str) -> array:
        """The texels as an array (height, width, channels), and the like in other dimensions, that shares them."""
        texels, channels, levels = self._settings()[:3]
        if levels != 1:
            raise usage_error(
                f"{api}: the texture has {levels} levels, and only those of one level are copied", RuntimeError
            )
        extents = _weft._texture_extents(self)[: self._dims]
        shape = (*extents[::-1], channels)
        return texels[: math.prod(shape)].reshape(shape)

    def _fitting(self, other: Any, texels: array, api: str, name: str) -> Any:
        """The other side of a copy, with an axis of channels."""
        if isinstance(other, Texture):
            other = other._texels(api)
        if not isinstance(other, (np.ndarray, array)):
            raise usage_error(
                f"{api}: {name} is {type(other).__name__}, expected an array, an array of NumPy or a texture", TypeError
            )
        shape, has_one = texels.shape, texels.shape[-1] == 1
        try:
            found = _weft.type_name(other.dtype)
        except Exception:
            found = str(other.dtype)
        is_fitting = tuple(other.shape) == shape or (has_one and tuple(other.shape) == shape[:-1])
        if not is_fitting or found != _weft.type_name(texels.dtype):
            raise usage_error(
                f"{api}: {name} has the shape {tuple(other.shape)} of {found}, expected "
                f"{shape[:-1] if has_one else shape} of {_weft.type_name(texels.dtype)}",
                ValueError,
            )
        return other

    def copy_from(self, src: Any) -> None:
        """Copies texels to the texture.

        Args:
            src: an array, an array of NumPy or a texture of the same shape, (height, width) or with a last axis of
                channels, and of the same type.

        Raises:
            ValueError: another shape or type.
            RuntimeError: the texture has several levels.
        """
        api = f"{type(self).__name__}.copy_from()"
        texels = self._texels(api)
        given = self._fitting(src, texels, api, "src")
        if isinstance(given, np.ndarray):
            given = array(np.ascontiguousarray(given), dtype=texels.dtype, device="cpu")
        _weft._before_texels_are_written(self)
        _weft.copy(texels.reshape(given.shape), given)

    def copy_to(self, dst: Any) -> None:
        """Copies the texels to an array, an array of NumPy or another texture; see copy_from()."""
        api = f"{type(self).__name__}.copy_to()"
        texels = self._texels(api)
        if isinstance(dst, Texture):
            dst.copy_from(self)
            return
        to = self._fitting(dst, texels, api, "dst")
        texels = texels.reshape(to.shape)
        if isinstance(to, np.ndarray):
            to[...] = texels.numpy()
        else:
            _weft.copy(to, texels)

    def __copy__(self) -> Texture:
        return self

    def __deepcopy__(self, memo: Any) -> Texture:
        return self

    def __reduce__(self) -> Any:
        if self.id == 0:
            return _none, (type(self),)
        texels, channels, levels, modes, *filters, is_normalized = self._settings()
        extents = _weft._texture_extents(self)[: self._dims]
        return _restored, (
            type(self),
            texels.numpy(),
            self.device.alias,
            extents,
            channels,
            levels,
            modes[: self._dims],
            filters,
            is_normalized,
        )

    def __del__(self) -> None:
        """Does nothing: the memory is freed with the last reference. Programs for release 1.19 may call it."""

    def __repr__(self) -> str:
        name = type(self).__name__
        settings = _weft._texture_settings(self)
        if settings is None:
            return f"<{name}: none>"
        texels, channels = settings[:2]
        extents = " x ".join(str(extent) for extent in _weft._texture_extents(self)[: self._dims])
        kind = _weft.type_name(texels.dtype)
        return f"<{name} {extents}, {channels} channel{'s' * (channels > 1)} of {kind} on '{texels.device.alias}'>"


def _none(kind: type) -> Texture:
    made = kind.__new__(kind)
    _weft.StructValue.__init__(made)
    return made


def _restored(
    kind: type,
    texels: np.ndarray,
    device: str,
    extents: Any,
    channels: int,
    levels: int,
    modes: Any,
    filters: Any,
    is_normalized: bool,
) -> Texture:
    made = kind.__new__(kind)
    where = device if _weft.is_device_available(device) else None
    of = array(texels, dtype=named_type(texels.dtype.name), device=where)
    made._adopt(of, extents, channels, levels, list(modes), list(filters), is_normalized, f"{kind.__name__}")
    return made


_ARGUMENTS = """

    Texels are copied from `data`: later changes of it do not show. Without data, the sizes, `num_channels` and `dtype`
    are needed, and copy_from() gives the texels. The texture lives as long as this object: keep it while arrays,
    structs in arrays or kernels use it. In kernels its extents are {members}.

    Args:
        data: an array of NumPy or Weft of numbers, {shape}, with a last axis of 1, 2 or 4 channels or without, of
            uint8, uint16, uint32, int8, int16, int32, float16 or float32. Samples of 8- and 16-bit integers are divided
            by 255, 65535, 127 or 32767; those of 32 bits become floats.
        {sizes}: the size without data.
        num_channels, dtype: of the texels without data; ignored beside it.
        filter_mode: a wp.TextureFilterMode; LINEAR by default, and CLOSEST for integers of 32 bits.
        address_mode: a wp.TextureAddressMode for all axes, or one for each in the order {axes}. {overrides}
        normalized_coords: whether coordinates from 0 to 1 cover the texture; otherwise, from 0 to the number of texels.
        num_mip_levels: how many levels there are, each half the size of the one before and made of its means; 0: all.
        mip_filter_mode: how wp.texture_sample() takes a `lod` between levels; by default as filter_mode.
        device: the device; None is that of an array of Weft, or the default one.
        surface_access: accepted.
        cuda_array: accepted if it is 0.

    Raises:
        ValueError: 3 channels, texels of float64, another shape, modes that there are not.
        TypeError: data is a list, or an array of vectors.

    **Gradient**: of samples with respect to coordinates and `lod`; texels are constants."""


class Texture1D(Texture):
    __doc__ = "A row of texels for wp.texture_sample()." + _ARGUMENTS.format(
        members="`t.width`",
        shape="(width,)",
        sizes="width",
        axes="u",
        overrides="`address_mode_u` stands before it.",
    )
    _dims = 1

    @_once
    def __init__(
        self,
        data: Any = None,
        width: int = 0,
        num_channels: int = 0,
        dtype: Any = None,
        filter_mode: Any = None,
        address_mode: Any = TextureAddressMode.CLAMP,
        address_mode_u: Any = None,
        normalized_coords: bool = True,
        num_mip_levels: int = 1,
        mip_filter_mode: Any = None,
        device: Any = None,
        surface_access: bool = False,
        cuda_array: int = 0,
    ):
        self._start(
            data,
            (width,),
            num_channels,
            dtype,
            filter_mode,
            address_mode,
            (address_mode_u,),
            normalized_coords,
            num_mip_levels,
            mip_filter_mode,
            device,
            surface_access,
            cuda_array,
        )


class Texture2D(Texture):
    __doc__ = "A grid of texels in two dimensions for wp.texture_sample()." + _ARGUMENTS.format(
        members="`t.width` and `t.height`",
        shape="(height, width)",
        sizes="width, height",
        axes="u, v",
        overrides="`address_mode_u` and `address_mode_v` stand before it.",
    )
    _dims = 2

    @_once
    def __init__(
        self,
        data: Any = None,
        width: int = 0,
        height: int = 0,
        num_channels: int = 0,
        dtype: Any = None,
        filter_mode: Any = None,
        address_mode: Any = TextureAddressMode.CLAMP,
        address_mode_u: Any = None,
        address_mode_v: Any = None,
        normalized_coords: bool = True,
        num_mip_levels: int = 1,
        mip_filter_mode: Any = None,
        device: Any = None,
        surface_access: bool = False,
        cuda_array: int = 0,
    ):
        self._start(
            data,
            (width, height),
            num_channels,
            dtype,
            filter_mode,
            address_mode,
            (address_mode_u, address_mode_v),
            normalized_coords,
            num_mip_levels,
            mip_filter_mode,
            device,
            surface_access,
            cuda_array,
        )

    @property
    def height(self) -> int:
        """Texels along v; 0 if this is no texture."""
        return _weft._texture_extents(self)[1]

    @property
    def address_mode_v(self) -> TextureAddressMode:
        """The values outside of the texture along v."""
        return TextureAddressMode(self._settings()[3][1])


class Texture3D(Texture):
    __doc__ = "A grid of texels in three dimensions for wp.texture_sample()." + _ARGUMENTS.format(
        members="`t.width`, `t.height` and `t.depth`",
        shape="(depth, height, width)",
        sizes="width, height, depth",
        axes="u, v, w",
        overrides="`address_mode_u`, `address_mode_v` and `address_mode_w` stand before it.",
    )
    _dims = 3

    @_once
    def __init__(
        self,
        data: Any = None,
        width: int = 0,
        height: int = 0,
        depth: int = 0,
        num_channels: int = 0,
        dtype: Any = None,
        filter_mode: Any = None,
        address_mode: Any = TextureAddressMode.CLAMP,
        address_mode_u: Any = None,
        address_mode_v: Any = None,
        address_mode_w: Any = None,
        normalized_coords: bool = True,
        num_mip_levels: int = 1,
        mip_filter_mode: Any = None,
        device: Any = None,
        surface_access: bool = False,
        cuda_array: int = 0,
    ):
        self._start(
            data,
            (width, height, depth),
            num_channels,
            dtype,
            filter_mode,
            address_mode,
            (address_mode_u, address_mode_v, address_mode_w),
            normalized_coords,
            num_mip_levels,
            mip_filter_mode,
            device,
            surface_access,
            cuda_array,
        )

    @property
    def height(self) -> int:
        """Texels along v; 0 if this is no texture."""
        return _weft._texture_extents(self)[1]

    @property
    def depth(self) -> int:
        """Texels along w; 0 if this is no texture."""
        return _weft._texture_extents(self)[2]

    @property
    def address_mode_v(self) -> TextureAddressMode:
        """The values outside of the texture along v."""
        return TextureAddressMode(self._settings()[3][1])

    @property
    def address_mode_w(self) -> TextureAddressMode:
        """The values outside of the texture along w."""
        return TextureAddressMode(self._settings()[3][2])


for _kind in (Texture1D, Texture2D, Texture3D):
    _weft._texture_class(_kind, _kind._dims)


class GLTextureResource:
    """A texture of OpenGL for CUDA kernels: not available.

    Weft does not share memory with OpenGL. The class is there so that programs can be imported; making an object of it
    raises RuntimeError.
    """

    def __init__(
        self,
        gl_tex_id: int,
        gl_tex_target: int,
        device: Any = None,
        flags: int = TextureResourceFlags.NONE,
    ):
        device = _weft.get_device(device)
        enum_value(TextureResourceFlags, flags, "GLTextureResource()", "flags")
        if not device.is_cuda:
            raise usage_error(
                f"GLTextureResource(): device '{device.alias}' shares no textures with OpenGL, only CUDA devices do",
                RuntimeError,
            )
        raise NotImplementedYetError("GLTextureResource(): textures of OpenGL are not there yet")
