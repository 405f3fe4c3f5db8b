"""Samples of textures as they are defined, in NumPy and float64."""

import numpy as np

WRAP, CLAMP, MIRROR, BORDER = range(4)
CLOSEST, LINEAR = range(2)
DIVISORS = {"uint8": 255.0, "uint16": 65535.0, "int8": 127.0, "int16": 32767.0}


def as_floats(data):
    """Texels as samples give them."""
    divisor = DIVISORS.get(data.dtype.name)
    values = data.astype(np.float64)
    return values if divisor is None else np.maximum(values / divisor, -1.0)


def with_channels(data, dims):
    return data if data.ndim > dims else data[..., None]


def addressed(index, n, mode):
    """The index of a texel in the range, and whether it is inside."""
    if mode == WRAP:
        return index % n, np.ones(index.shape, bool)
    if mode == MIRROR:
        j = index % (2 * n)
        return np.where(j < n, j, 2 * n - 1 - j), np.ones(index.shape, bool)
    inside = (index >= 0) & (index < n)
    return np.clip(index, 0, n - 1), inside if mode == BORDER else np.ones(index.shape, bool)


def texel(values, indices, modes):
    """Texels of (..., channels) with these indices for u, v, w, each an array (count,)."""
    dims = len(indices)
    places, inside = [], True
    for axis, index in enumerate(indices):
        place, is_inside = addressed(index, values.shape[dims - 1 - axis], modes[axis])
        places.append(place)
        inside = inside & is_inside
    return np.where(inside[:, None], values[tuple(places[::-1])], 0.0)


def sample_level(values, coordinates, linear, modes, normalized):
    """Samples (count, channels) of one level; coordinates are (count, dims); those of float32 are scaled in it."""
    dims = coordinates.shape[1]
    extents = values.shape[:dims][::-1]
    x = [
        (coordinates[:, a] * np.float32(extents[a]) if normalized else coordinates[:, a]).astype(np.float64)
        for a in range(dims)
    ]
    if not linear:
        return texel(values, [np.floor(each).astype(np.int64) for each in x], modes)
    low = [np.floor(each - 0.5).astype(np.int64) for each in x]
    fraction = [each - 0.5 - first for each, first in zip(x, low, strict=True)]
    total = 0.0
    for corner in np.ndindex(*[2] * dims):
        weight = 1.0
        for axis in range(dims):
            weight = weight * (fraction[axis] if corner[axis] else 1.0 - fraction[axis])
        found = texel(values, [low[axis] + corner[axis] for axis in range(dims)], modes)
        total = total + weight[:, None] * found
    return total


def next_level(data, dims):
    """Means of two texels along each axis of more than one, without an odd last texel."""
    counts = [2 if data.shape[axis] > 1 else 1 for axis in range(dims)]
    shape = [max(data.shape[axis] // 2, 1) for axis in range(dims)]
    out = np.zeros((*shape, data.shape[-1]), data.dtype)
    for at in np.ndindex(*shape):
        block = data[tuple(slice(counts[a] * at[a], counts[a] * at[a] + counts[a]) for a in range(dims))]
        mean = block.reshape(-1, data.shape[-1]).astype(np.float64).mean(axis=0)
        out[at] = np.floor(mean + 0.5) if data.dtype.kind in "iu" else mean
    return out


def levels_of(data, dims, count=None):
    levels = [with_channels(data, dims)]
    while (count is None and max(levels[-1].shape[:dims]) > 1) or (count is not None and len(levels) < count):
        levels.append(next_level(levels[-1], dims))
    return levels


def sample(data, coordinates, linear=True, modes=(CLAMP,) * 3, normalized=True, lod=None, mips=None, mip_linear=True):
    """Samples (count, channels) of data (height, width[, channels]) and the like."""
    coordinates = np.asarray(coordinates)
    dims = coordinates.shape[1]
    if mips is None:
        values = as_floats(with_channels(data, dims))
        return sample_level(values, coordinates, linear, modes, normalized)
    levels = levels_of(data, dims, mips or None)
    all_ = np.stack([sample_level(as_floats(level), coordinates, linear, modes, normalized) for level in levels])
    last = len(levels) - 1
    at = np.clip(np.asarray(lod, np.float64), 0.0, last)
    row = np.arange(len(coordinates))
    if not mip_linear:
        return all_[np.floor(at + 0.5).astype(int), row]
    first = np.floor(at).astype(int)
    rest = (at - first)[:, None]
    return (1.0 - rest) * all_[first, row] + rest * all_[np.minimum(first + 1, last), row]


def with_channels_of(samples, wanted):
    """The first channels, and zeros for those that are not there."""
    missing = max(wanted - samples.shape[1], 0)
    return np.pad(samples, ((0, 0), (0, missing)))[:, :wanted]
