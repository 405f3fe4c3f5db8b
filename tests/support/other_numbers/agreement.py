"""Whether two devices computed the same numbers but for rounding."""

import numpy as np

# Differences allowed for other functions and another order of sums: relative to the number, and to the array's largest.
TOLERANCES = {2: (1e-2, 1e-3), 4: (3e-6, 2e-7), 8: (1e-14, 1e-13)}
# Relative changes of floats for another run on the CPU: if that changes a result, its rounding decides something.
NUDGES = {2: 1e-3, 4: 2e-7, 8: 1e-15}
# By how much more than that run other roundings may change a result.
FACTORS = {2: 300.0, 4: 300.0, 8: 1000.0}
# Numbers that have grown beyond this had their roundings grow with them.
MOST_GROWTH = {2: np.inf, 4: 1e12, 8: 1e30}


def agree(one, other, nears=(), most=0.0, counts_infinite=True):
    """Which numbers are the same but for rounding. `nears` are the numbers of `one` with other roundings. `most` is the
    sum of the roundings of a sum of all numbers, in units of those of one. Unless `counts_infinite`, numbers that are
    infinite or NaN with all of these roundings may be something else."""
    with np.errstate(all="ignore"):
        if one.dtype.kind == "b":
            return one.view(np.uint8) == other.view(np.uint8)
        if one.dtype.kind != "f":
            return np.any([one == other, *(one != near for near in nears)], axis=0)
        size = one.dtype.itemsize
        relative, of_largest = TOLERANCES[size]
        a, b = one.astype(np.float64), other.astype(np.float64)
        allowed = relative * (np.abs(a) + np.abs(b)) + of_largest * (1.0 + largest(a) + most)
        same = equal(a, b)
        runs = [near.astype(np.float64) for near in nears]
        if runs:
            stays = counts_infinite & np.all([equal(a, moved) for moved in runs], axis=0)
            same |= ~stays & ~(np.abs(a) < MOST_GROWTH[size])
        for moved in runs:
            allowed += FACTORS[size] * largest(moved - a)
            # Numbers that roundings decide as a whole may also be infinite.
            decided = ~np.isfinite(moved) | (FACTORS[size] * np.abs(moved - a) > np.abs(a))
            same |= ~equal(a, moved) & decided
        return same | (np.isfinite(a) & (np.abs(a - b) <= allowed))


def equal(one, other):
    return (one == other) | (np.isnan(one) & np.isnan(other))


def largest(numbers):
    """The largest size of a float, but for infinite ones."""
    if numbers.dtype.kind != "f":
        return 0.0
    finite = np.abs(numbers[np.isfinite(numbers)].astype(np.float64))
    return finite.max() if finite.size else 0.0
