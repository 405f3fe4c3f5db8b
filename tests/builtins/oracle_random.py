"""References of random numbers, noise and closest points."""

import itertools

import numpy as np
import scipy.special
from oracle_inputs import mixed


def pcg(v):
    v = np.asarray(v, dtype=np.uint32)
    with np.errstate(over="ignore"):
        state = v * np.uint32(747796405) + np.uint32(2891336453)
        word = ((state >> ((state >> np.uint32(28)) + np.uint32(4))) ^ state) * np.uint32(277803737)
    return (word >> np.uint32(22)) ^ word


def draws(count, formula):
    """(value, new state) of a formula of `count` numbers, uniform in [0, 1), and of further arguments."""

    def reference(state, *arguments):
        state = state.astype(np.uint32)
        numbers = []
        for _ in range(count):
            state = pcg(state)
            numbers.append((state >> np.uint32(8)).astype(np.longdouble) / 2**24)
        return formula(*numbers, *arguments), state

    return reference


def bits_in_range(state, low, high):
    state = pcg(state)
    low_bits, high_bits = low.astype(np.uint32), high.astype(np.uint32)
    with np.errstate(all="ignore"):
        span = high_bits - low_bits
        rest = np.where(span == 0, 0, state % np.where(span == 0, 1, span))
        return (low_bits + rest).astype(np.uint32).view(low.dtype), state


def ring(u):
    return np.stack([np.cos(2 * np.pi * u), np.sin(2 * np.pi * u)], axis=-1)


def disk(u, v):
    return np.sqrt(u)[:, None] * ring(v)


def sphere(z, u):
    return np.concatenate([np.sqrt(np.maximum(1 - z * z, 0))[:, None] * ring(u), z[:, None]], axis=1)


def poisson(state, lam):
    """By products of uniform numbers (Knuth) below 10, else by transformed rejection (Hoermann, 1993)."""
    counts = np.zeros(len(state), dtype=np.uint32)
    states = np.zeros(len(state), dtype=np.uint32)
    for row, mean in enumerate(lam.astype(np.float64)):
        drawn = [state[row]]

        def unit():
            drawn[0] = pcg(drawn[0])
            return float(np.float32(drawn[0] >> np.uint32(8)) * np.float32(2**-24))

        counts[row], states[row] = (rejected if mean >= 10 else multiplied)(unit, mean), drawn[0]
    return counts, states


def multiplied(unit, mean):
    product, count = unit(), 0
    while product > np.exp(-mean):
        product, count = product * unit(), count + 1
    return count


def rejected(unit, mean):
    b = 0.931 + 2.53 * np.sqrt(mean)
    a = -0.059 + 0.02483 * b
    while True:
        u, v = unit() - 0.5, unit()
        s = 0.5 - abs(u)
        k = np.floor((2 * a / s + b) * u + mean + 0.43)
        if s >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        if k < 0 or (s < 0.013 and v > s):
            continue
        bound = np.log(v) + np.log(1.1239 + 1.1328 / (b - 3.4)) - np.log(a / s**2 + b)
        if bound <= k * np.log(mean) - mean - scipy.special.gammaln(k + 1):
            return k


def poisson_inputs(rng, types, rows):
    state, lam = mixed(rng, types, rows)
    return [
        state,
        np.where(rng.random(rows) < 0.8, rng.uniform(0, 20, rows), rng.uniform(20, 1000, rows)).astype(np.float32),
    ]


def hash_of_corner(state, corner):
    """Of a corner of the lattice, (rows, dimensions) int."""
    h = pcg(state)
    for k in range(corner.shape[1]):
        with np.errstate(over="ignore"):
            h = pcg(h + (corner[:, k] & 0xFFFFFFFF).astype(np.uint32))
    return h


def noise(state, point, *periods):
    """Perlin's noise as one sum over the corners: weight times (gradient . offset)."""
    point = (point[:, None] if point.ndim == 1 else point).astype(np.float64)
    d = point.shape[1]
    base = np.floor(point)
    t = point - base
    blend = t**3 * (10 - 15 * t + 6 * t**2)
    bits = 24 if d == 1 else 32 // d
    total = np.zeros(len(point))
    for steps in itertools.product((0, 1), repeat=d):
        corner = base.astype(np.int64) + steps
        if periods:
            corner = corner % np.stack(periods, axis=1)
        h = hash_of_corner(state, corner).astype(np.int64)
        parts = (h[:, None] >> bits * np.arange(d)) & (2**bits - 1)
        gradient = ((parts + 0.5) / 2**bits * 2 - 1) * 2 / d
        weight = np.prod(np.where(steps, blend, 1 - blend), axis=1)
        total += weight * np.sum(gradient * (t - steps), axis=1)
    return total


def slope(state, point, axis):
    step = np.zeros(point.shape[1])
    step[axis] = 1e-4
    values = [noise(state, point + k * step) for k in (-2, -1, 1, 2)]
    return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / 12e-4


def curlnoise(state, point, octaves=None, lacunarity=None, gain=None):
    """By finite differences of the potentials."""
    rows, d = point.shape
    octaves = np.ones(rows) if octaves is None else octaves
    lacunarity = np.full(rows, 2.0) if lacunarity is None else lacunarity
    gain = np.full(rows, 0.5) if gain is None else gain
    total = np.zeros((rows, min(d, 3)))
    for k in range(int(octaves.max())):
        state = pcg(state)
        p = point.astype(np.float64) * (lacunarity**k)[:, None]
        if d == 2:
            velocity = [slope(state, p, 1), -slope(state, p, 0)]
        else:
            with np.errstate(over="ignore"):
                x, y, z = ([slope(state + np.uint32(m), p, axis) for axis in range(3)] for m in range(3))
            velocity = [z[1] - y[2], x[2] - z[0], y[0] - x[1]]
        total += np.where(k < octaves, gain**k, 0)[:, None] * np.stack(velocity, axis=1)
    return total


def closest_points(p1, q1, p2, q2, epsilon):
    """Of the inner point of both lines and the best point for each end of a segment: the closest pair."""
    d1, d2, r = q1 - p1, q2 - p2, p1 - p2
    a, b, c, e, f = ((x * y).sum(axis=1) for x, y in ((d1, d1), (d1, d2), (d1, r), (d2, d2), (d2, r)))
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = [(b * f - c * e) / (a * e - b * b), (a * f - b * c) / (a * e - b * b)]
        pairs = [inner]
        for end in (0.0, 1.0):
            pairs.append([np.full_like(a, end), np.clip((b * end + f) / e, 0, 1)])
            pairs.append([np.clip((b * end - c) / a, 0, 1), np.full_like(a, end)])
    best = np.full((len(a), 3), np.inf, dtype=a.dtype)
    for s, t in pairs:
        distance = np.sqrt(((r + s[:, None] * d1 - t[:, None] * d2) ** 2).sum(axis=1))
        is_better = (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1) & (distance < best[:, 2])
        best[is_better] = np.stack([s, t, distance], axis=1)[is_better]
    return best


def segments(rng, types, rows):
    points = [rng.uniform(-2, 2, (rows, 3)) for _ in range(4)]
    # No two in nearly one direction, none short.
    points[1] = points[0] + rng.uniform(0.5, 2, (rows, 3)) * [1, 1, -1]
    points[3] = points[2] + rng.uniform(0.5, 2, (rows, 3)) * [-1, 1, 1]
    return [p.astype(t.numpy) for p, t in zip(points, types)] + [np.full(rows, 1e-6, dtype=types[4].numpy)]


def noise_inputs(rng, types, rows):
    arrays = mixed(rng, types, rows)
    arrays[1] = rng.uniform(-20, 20, arrays[1].shape).astype(np.float32)
    arrays[1][:8] = np.round(arrays[1][:8])  # corners
    if types[2:] and types[2].scalar == "int32":
        arrays[2:] = [rng.integers(1, 9, rows).astype(np.int32) for _ in arrays[2:]]
    elif types[2:]:
        arrays[2:] = [rng.integers(0, 4, rows).astype(np.uint32), np.full(rows, 2, np.float32)] + [
            rng.uniform(0.1, 1, rows).astype(np.float32)
        ]
    return arrays


def range_inputs(rng, types, rows):
    state, low, high = mixed(rng, types, rows)
    return [state, np.minimum(low, high), np.maximum(low, high)]
