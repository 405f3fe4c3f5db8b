"""wp.Volume: sparse grids in the NanoVDB format, which kernels sample, look up and write."""

from __future__ import annotations

import math
import numbers
import os
from typing import Any, NamedTuple

import numpy as np

import warp._weft as _weft
from warp._weft import array, named_type, usage_error

__all__ = ["Volume"]

_VALUES = "int32, uint32, int64, int16, uint8, float32, float64, vec3f, vec3d, vec4f or vec4d"
_LEAF = 8  # voxels along an edge of a tile


# ---- arguments ----


def _numbers(given: Any, count: int, api: str, name: str) -> list[float]:
    """So many numbers, of a tuple, a list, an array or a vector."""
    try:
        values = [float(part) for part in np.asarray(given, dtype=np.float64).reshape(-1)]
    except (TypeError, ValueError):
        values = []
    if len(values) != count:
        raise usage_error(f"{api}: {name} is {given!r}, expected {count} numbers", ValueError)
    return values


def _matrix(voxel_size: Any, transform: Any, api: str) -> list[float]:
    """The matrix from index space to the world, row by row."""
    if (voxel_size is None) == (transform is None):
        found = "both were" if transform is not None else "none was"
        raise usage_error(f"{api}: {found} given of voxel_size and transform, expected one of them", ValueError)
    if transform is not None:
        return _numbers(transform, 9, api, "transform")
    is_one = isinstance(voxel_size, numbers.Real) or np.ndim(voxel_size) == 0
    sizes = [float(voxel_size)] * 3 if is_one else _numbers(voxel_size, 3, api, "voxel_size")
    if not all(math.isfinite(size) and size > 0 for size in sizes):
        raise usage_error(f"{api}: voxel_size is {voxel_size!r}, expected finite numbers above 0", ValueError)
    return [sizes[0], 0.0, 0.0, 0.0, sizes[1], 0.0, 0.0, 0.0, sizes[2]]


def _background(given: Any, api: str) -> tuple[Any, Any] | None:
    """The type of a volume's values and the value outside of its tiles, of `bg_value`; None for an index grid."""
    if given is None:
        return None
    dtype: Any = None
    if isinstance(given, bool):
        pass
    elif isinstance(given, (int, np.int32)):
        dtype, given = named_type("int32"), int(given)
    elif isinstance(given, float) and not isinstance(given, np.float64):
        dtype = named_type("float32")
    elif isinstance(given, np.generic):
        dtype = named_type(given.dtype.name)
        given = given.item()
    elif isinstance(given, (list, tuple, np.ndarray)):
        dtype = {3: named_type("vec3f"), 4: named_type("vec4f")}.get(len(given))
        given = dtype(*(float(part) for part in given)) if dtype else given
    else:
        dtype = type(given)
    if dtype is None or dtype is str or not _weft._is_volume_type(dtype):
        raise usage_error(
            f"{api}: bg_value is {given!r} of type {type(given).__name__}, expected a value of {_VALUES}, or None for "
            "an index grid",
            TypeError,
        )
    return dtype, given


def _array(given: Any, api: str, name: str) -> array:
    if not isinstance(given, array):
        raise usage_error(
            f"{api}: {name} is {type(given).__name__}, expected an array: (n,) of vec3i, vec3f or vec3d, or (n, 3) of "
            "int32, float32 or float64",
            TypeError,
        )
    return given


def _into(out: Any, made: array, api: str) -> array:
    """`made`, written to the array that the caller has given for it."""
    if out is None:
        return made
    rows = made.shape[0]
    is_rows = isinstance(out, array) and out.ndim == 2 and out.dtype is named_type("int32") and out.shape[1] == 3
    is_vectors = isinstance(out, array) and out.ndim == 1 and out.dtype is named_type("vec3i")
    if not (is_rows or is_vectors) or out.shape[0] < rows:
        found = f"an array of {_weft.type_name(out.dtype)} with shape {out.shape}" if isinstance(out, array) else out
        raise usage_error(
            f"{api}: out is {found!s}, expected an array of {rows} rows at least: (n, 3) of int32, or (n,) of vec3i",
            RuntimeError,
        )
    out[:rows] = made if is_rows else array(made, dtype=named_type("vec3i"), device=made.device)
    return out


class Volume:
    """A sparse grid of values, in the NanoVDB format.

    Voxels lie in tiles of 8 x 8 x 8; outside of its tiles, a volume has its background value. In index space, voxel
    (i, j, k) lies at (i, j, k); a matrix and a translation lead from there to the world. Kernels take ``volume.id`` as
    wp.uint64 and call wp.volume_sample_f, wp.volume_lookup_f, wp.volume_store_f and their relatives.

    Values are of float32, float64, int16, int32, int64, uint8, uint32, vec3f, vec3d, vec4f or vec4d. Volumes that are
    loaded may also be of bool, float16 and quantised floats, which kernels read as uint8 and float32. An index grid has
    numbers instead: the places of its voxels in arrays beside it (wp.volume_sample_index).

    Args:
        data: the bytes of a grid, (n,) uint8; of several, the first (load_next_grid() gives the next). The volume is on
            the array's device.
        copy: False shares the array's memory, which then has to begin at a multiple of 32 bytes.

    Raises:
        RuntimeError: the bytes are no grid. Every offset and count in them is checked.

    **Gradient**: of samples with respect to the place, and to the array of wp.volume_sample_index. Values in a volume
    are constants.

    A volume lives as long as the Python object: a kernel that uses the id of one that is gone finds an empty volume,
    whose values are 0.
    """

    CLOSEST = 0
    LINEAR = 1
    CUBIC = 2

    REBUILD_SUCCESS = 0
    REBUILD_LEAF_CAPACITY_EXCEEDED = 1
    REBUILD_LOWER_CAPACITY_EXCEEDED = 2
    REBUILD_UPPER_CAPACITY_EXCEEDED = 4
    REBUILD_VOXEL_CAPACITY_EXCEEDED = 8
    REBUILD_INVALID_INPUT = 16

    class GridInfo(NamedTuple):
        """The contents of a grid's header. From index space to the world: x -> transform_matrix x + translation."""

        name: str
        size_in_bytes: int
        grid_index: int
        grid_count: int
        type_str: str
        translation: Any
        transform_matrix: Any

    class ActiveStats(NamedTuple):
        """How many voxels, tiles and inner nodes a grid has."""

        voxel_count: int
        leaf_node_count: int
        lower_node_count: int
        upper_node_count: int

    class FeatureArrayInfo(NamedTuple):
        """An array that travels with a grid; ptr is the address of its first byte."""

        name: str
        ptr: int
        value_size: int
        value_count: int
        type_str: str

    class RebuildInfo(NamedTuple):
        """The source of a volume that can be rebuilt ("tiles" or "voxels"), and its capacity."""

        kind: str | None
        max_voxel_count: int
        max_leaf_node_count: int
        max_lower_node_count: int
        max_upper_node_count: int

    def __init__(self, data: array, copy: bool = True):
        api = "Volume()"
        if not isinstance(data, array):
            raise usage_error(f"{api}: data is {type(data).__name__}, expected an array of uint8", TypeError)
        self._volume = _weft._Volume(_weft.clone(data) if copy else data, api)

    def __del__(self) -> None:
        """Does nothing: the memory is freed with the last reference. Programs for release 1.19 may call it."""

    @classmethod
    def _of(cls, inside: Any) -> Volume:
        volume = cls.__new__(cls)
        volume._volume = inside
        return volume

    # ---- making ----

    @classmethod
    def load_from_nvdb(cls, file_or_buffer: Any, device: Any = None) -> Volume:
        """The first grid of a .nvdb file; load_next_grid() gives the others.

        Args:
            file_or_buffer: an open binary file, its bytes, or its path.
            device: the device that uses the volume; None is the default one.

        Files may be uncompressed, or compressed by zlib or blosc.

        Raises:
            RuntimeError: no file of NanoVDB of version 32, damaged, or compressed by blosc without that library.
        """
        api = "Volume.load_from_nvdb()"
        if isinstance(file_or_buffer, (str, os.PathLike)):
            with open(file_or_buffer, "rb") as file:
                content = file.read()
        else:
            content = file_or_buffer.read() if hasattr(file_or_buffer, "read") else file_or_buffer
        if not isinstance(content, (bytes, bytearray, memoryview)):
            raise usage_error(
                f"{api}: file_or_buffer gives {type(content).__name__}, expected an open binary file, bytes, or a path",
                TypeError,
            )
        return cls._of(_weft._read_nvdb(bytes(content), device))

    @classmethod
    def load_from_address(cls, grid_ptr: int, buffer_size: int = 0, device: Any = None) -> Volume:
        """A grid in memory that the caller owns and has to keep for as long as the volume is used.

        Args:
            grid_ptr: the address of its first byte, a multiple of 32.
            buffer_size: how many bytes may be read there; 0: the size in the grid's header.
            device: whose memory that is; None is the default one.
        """
        api = "Volume.load_from_address()"
        device = _weft._volume_device(device, api)
        size = buffer_size
        if size == 0:
            header = array(ptr=grid_ptr, dtype=named_type("uint8"), shape=(40,), device=device, copy=False)
            size = _weft._stated_volume_size(header, api)
        data = array(ptr=grid_ptr, dtype=named_type("uint8"), shape=(size,), device=device, copy=False)
        return cls._of(_weft._Volume(data, api))

    @classmethod
    def load_from_numpy(
        cls,
        ndarray: np.ndarray,
        min_world: Any = (0.0, 0.0, 0.0),
        voxel_size: Any = 1.0,
        bg_value: Any = 0.0,
        device: Any = None,
    ) -> Volume:
        """A volume of the values of a dense array, the first of which is voxel (0, 0, 0).

        Args:
            ndarray: (ni, nj, nk), or (ni, nj, nk, 3) or (.., 4) for vectors; converted to the type of bg_value.
            min_world: position of voxel (0, 0, 0) in the world.
            voxel_size: edge of a voxel in world units, or one for each axis.
            bg_value: value outside; its type is that of the volume: a Python float means float32, an int int32, three
                or four numbers vec3f or vec4f.
            device: the device that uses the volume; None is the default one.

        Raises:
            UsageError (a ValueError): the shape of ndarray does not fit the type of bg_value, or an extent is 0; (a
                TypeError): volumes have no values of bg_value's type.
        """
        api = "Volume.load_from_numpy()"
        background = _background(bg_value, api)
        values = np.asarray(ndarray)
        components = () if background is None or not hasattr(background[0], "_shape_") else (background[0]._length_,)
        if background is None or values.shape[3:] != components or values.ndim < 3 or 0 in values.shape:
            wanted = "(ni, nj, nk" + "".join(f", {n}" for n in components) + ")"
            raise usage_error(
                f"{api}: the array has the shape {values.shape}, and bg_value is {bg_value!r}; expected the shape "
                f"{wanted}, none of them 0",
                ValueError,
            )
        extent = values.shape[:3]
        scalar = _weft.empty(1, dtype=background[0], device="cpu").numpy().dtype
        content = (np.ascontiguousarray(values, dtype=scalar).tobytes(), extent)
        tiles = cls._tiles_of_box((0, 0, 0), [(n - 1) // _LEAF for n in extent])
        return cls._build(api, "ndarray", tiles, None, background, voxel_size, None, min_world, device, values=content)

    @classmethod
    def allocate(
        cls,
        min: Any,
        max: Any,
        voxel_size: Any,
        bg_value: Any = 0.0,
        translation: Any = (0.0, 0.0, 0.0),
        points_in_world_space: bool = False,
        device: Any = None,
    ) -> Volume:
        """A volume with all tiles of a box of voxels, each value bg_value.

        Args:
            min, max: the box's corners, both inside: voxels, or places in the world if points_in_world_space.
            voxel_size: edge of a voxel in world units, or one for each axis.
            bg_value: value inside and outside; its type is that of the volume (load_from_numpy); None for an index
                grid.
            translation: position of voxel (0, 0, 0) in the world.
            device: the device that uses the volume; None is the default one.

        Raises:
            UsageError (a ValueError): min is greater than max along an axis; (a TypeError): volumes have no values of
                bg_value's type.
        """
        api = "Volume.allocate()"
        low, high = _numbers(min, 3, api, "min"), _numbers(max, 3, api, "max")
        if points_in_world_space:
            matrix, start = _matrix(voxel_size, None, api), _numbers(translation, 3, api, "translation")
            low = [math.floor((low[n] - start[n]) / matrix[4 * n] + 0.5) for n in range(3)]
            high = [math.floor((high[n] - start[n]) / matrix[4 * n] + 0.5) for n in range(3)]
        first = [math.floor(x) // _LEAF for x in low]
        last = [math.floor(x) // _LEAF for x in high]
        if any(b < a for a, b in zip(first, last, strict=True)):
            raise usage_error(f"{api}: min is {min!r} and max {max!r}, expected min <= max for each axis", ValueError)
        tiles = cls._tiles_of_box(first, last)
        return cls._build(api, "min", tiles, None, _background(bg_value, api), voxel_size, None, translation, device)

    @staticmethod
    def _tiles_of_box(first: Any, last: Any) -> array:
        """A voxel of each tile from `first` to `last`, which count tiles."""
        along = [np.arange(a, b + 1) for a, b in zip(first, last, strict=True)]
        tiles = np.stack(np.meshgrid(*along, indexing="ij"), axis=-1)
        return array((tiles.reshape(-1, 3) * _LEAF).astype(np.int32), dtype=named_type("int32"), device="cpu")

    @classmethod
    def allocate_by_tiles(
        cls,
        tile_points: array,
        voxel_size: Any = None,
        bg_value: Any = 0.0,
        translation: Any = (0.0, 0.0, 0.0),
        device: Any = None,
        transform: Any = None,
        rebuildable: bool = False,
        max_tiles: int | None = None,
        max_lower_nodes: int | None = None,
        max_upper_nodes: int | None = None,
        status: array | None = None,
        point_mask: array | None = None,
    ) -> Volume:
        """A volume with the tiles in which these points are, each value bg_value.

        Args:
            tile_points: voxels, (n,) vec3i or (n, 3) int32, or places in the world, (n,) vec3f or vec3d or (n, 3)
                float32 or float64; any number of them in one tile.
            voxel_size: edge of a voxel in world units, or one for each axis; or
            transform: the 3 x 3 matrix from index space to the world.
            bg_value: value inside and outside; its type is that of the volume (load_from_numpy); None for an index
                grid.
            translation: position of voxel (0, 0, 0) in the world.
            rebuildable: keeps room for rebuild(), for so many tiles and inner nodes; None: as many as there are points.
            status: (1,) uint32 that gets the failures, as REBUILD_... bits; without it they are errors.
            point_mask: (n,) int32; points whose number is 0 are left out.

        Tiles stand in the order of the tree; the order of the points has no effect.
        """
        api = "Volume.allocate_by_tiles()"
        limits = (None, max_tiles, max_lower_nodes, max_upper_nodes) if rebuildable else None
        background = _background(bg_value, api)
        points = _array(tile_points, api, "tile_points")
        return cls._build(
            api,
            "tile_points",
            points,
            point_mask,
            background,
            voxel_size,
            transform,
            translation,
            points.device if device is None else device,
            limits,
            status,
        )

    @classmethod
    def allocate_by_voxels(
        cls,
        voxel_points: array,
        voxel_size: Any = None,
        translation: Any = (0.0, 0.0, 0.0),
        device: Any = None,
        transform: Any = None,
        rebuildable: bool = False,
        max_active_voxels: int | None = None,
        max_leaf_nodes: int | None = None,
        max_lower_nodes: int | None = None,
        max_upper_nodes: int | None = None,
        status: array | None = None,
        point_mask: array | None = None,
    ) -> Volume:
        """An index grid of the voxels nearest to these points: wp.volume_lookup_index() gives each a number of its own.

        Arguments as in allocate_by_tiles().
        """
        api = "Volume.allocate_by_voxels()"
        limits = (max_active_voxels, max_leaf_nodes, max_lower_nodes, max_upper_nodes) if rebuildable else None
        points = _array(voxel_points, api, "voxel_points")
        return cls._build(
            api,
            "voxel_points",
            points,
            point_mask,
            None,
            voxel_size,
            transform,
            translation,
            points.device if device is None else device,
            limits,
            status,
            by_voxels=True,
        )

    @classmethod
    def _build(
        cls,
        api: str,
        name: str,
        points: array,
        mask: Any,
        background: Any,
        voxel_size: Any,
        transform: Any,
        translation: Any,
        device: Any,
        limits: Any = None,
        status: Any = None,
        by_voxels: bool = False,
        values: Any = None,
    ) -> Volume:
        matrix = _matrix(voxel_size, transform, api)
        moved = _numbers(translation, 3, api, "translation")
        return cls._of(
            _weft._build_volume(
                points, mask, by_voxels, background, matrix, moved, limits, status, device, api, name, values
            )
        )

    def rebuild(self, points: array, status: array | None = None, point_mask: array | None = None) -> array | None:
        """Another grid of these points in the same memory and under the same id; values are the background.

        Args:
            points, point_mask: as in allocate_by_tiles() or allocate_by_voxels(), whichever made the volume.
            status: (1,) uint32 that gets the failures, as REBUILD_... bits; the volume then stays as it was. Without
                it they are errors.

        Returns `status`. No launch may use the volume meanwhile.
        """
        self._volume.rebuild(_array(points, "Volume.rebuild()", "points"), point_mask, status)
        return status

    # ---- using ----

    @property
    def id(self) -> int:
        """The number that kernels take, as wp.uint64."""
        return self._volume.id

    @property
    def device(self) -> Any:
        """The device it is on."""
        return self._volume.device

    @property
    def dtype(self) -> Any:
        """The type of its values as kernels read them; None for index grids."""
        return self._volume.dtype

    @property
    def is_index(self) -> bool:
        """Whether its voxels have numbers instead of values."""
        return self._volume.type in ("Index", "OnIndex")

    @property
    def is_rebuildable(self) -> bool:
        """Whether rebuild() may be called."""
        return self._volume.room is not None

    def array(self) -> array:
        """The bytes of the grid and of those that follow it, (n,) uint8: the volume's own memory."""
        return self._volume.bytes

    def load_next_grid(self) -> Volume | None:
        """The next of the grids that were loaded together, as a volume of its own; None after the last."""
        following = self._volume.next_grid()
        return None if following is None else self._of(following)

    def save_to_nvdb(self, path: Any, codec: str = "none") -> Any:
        """Writes the grid to a .nvdb file, with a checksum of its values, and returns the path.

        Args:
            path: of the file, which is replaced.
            codec: 'none', 'zip' (zlib), or 'blosc' if that library is installed.
        """
        content = self._volume.file(codec)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def get_tiles(self, out: array | None = None) -> array:
        """The first voxel of each tile, (n, 3) int32, in the order of the tree; in `out` if that is given."""
        return _into(out, self._volume.tiles, "Volume.get_tiles()")

    def get_voxels(self, out: array | None = None) -> array:
        """The voxels that have a number (wp.volume_lookup_index), (n, 3) int32, in the order of these numbers: of index
        grids the active voxels, of others those of all tiles."""
        return _into(out, self._volume.voxels, "Volume.get_voxels()")

    def get_tile_count(self) -> int:
        """How many tiles there are."""
        return self._volume.nodes[0]

    def get_voxel_count(self) -> int:
        """How many voxels have a number."""
        return self._volume.voxel_count

    def get_voxel_size(self) -> tuple[float, float, float]:
        """The lengths of a voxel's three edges in world units."""
        return tuple(self._volume.voxel_size)

    def get_grid_info(self) -> Volume.GridInfo:
        """The contents of the grid's header."""
        v = self._volume
        return Volume.GridInfo(
            v.name,
            v.size_bytes,
            v.index,
            v.count,
            v.type,
            named_type("vec3f")(*v.translation),
            named_type("mat33f")(*v.matrix),
        )

    def get_active_stats(self) -> Volume.ActiveStats:
        """How many voxels, tiles and inner nodes there are."""
        return Volume.ActiveStats(self._volume.voxel_count, *self._volume.nodes)

    def get_rebuild_info(self) -> Volume.RebuildInfo:
        """The capacity of rebuild(); zeros if it may not be called."""
        room = self._volume.room
        if room is None:
            return Volume.RebuildInfo(None, 0, 0, 0, 0)
        return Volume.RebuildInfo("voxels" if room[0] else "tiles", *room[1:])

    def get_feature_array_count(self) -> int:
        """How many arrays travel with the grid (NanoVDB's blind data)."""
        return self._volume.feature_count

    def get_feature_array_info(self, feature_index: int) -> Volume.FeatureArrayInfo:
        """One of these arrays: its name, address, and contents."""
        return Volume.FeatureArrayInfo(*self._volume.feature_info(feature_index))

    def feature_array(self, feature_index: int, dtype: Any = None) -> array:
        """One of these arrays, a view of the volume's memory; bytes if kernels have no such type.

        Args:
            feature_index: from 0.
            dtype: another type to read the bytes of the values as.
        """
        return self._volume.feature_array(feature_index, dtype)

    def __reduce__(self) -> tuple:
        from warp._arrays.pickling import reduce_volume

        return reduce_volume(self)

    def __repr__(self) -> str:
        v = self._volume
        return f"<Volume '{v.name}' of {v.type}, {v.nodes[0]} tiles on '{v.device.alias}'>"
