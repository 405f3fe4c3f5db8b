"""References of rotations: by SciPy, and by 4x4 matrices."""

import itertools

import numpy as np
from oracle_algebra import product, skew
from oracle_inputs import rigid
from scipy.spatial.transform import Rotation


def rotation(q):
    q = np.asarray(q, dtype=np.float64)
    size = np.linalg.norm(q, axis=-1, keepdims=True)
    usable = np.isfinite(size) & (size > 1e-6)
    with np.errstate(all="ignore"):
        return Rotation.from_quat(np.where(usable, q / size, [0, 0, 0, 1]))


def like(q, reference):
    """q or -q, whichever is closer to the reference."""
    return q * np.where(np.sum(q * reference, axis=1, keepdims=True) < 0, -1, 1)


def canonical(q):
    """As the table gives a quaternion made of a matrix: the greatest component positive, w if w is not the least."""
    greatest = np.argmax(np.abs(q), axis=1)
    trace_is_positive = 4 * q[:, 3] ** 2 >= 1
    lead = np.where(trace_is_positive, 3, np.where(greatest == 3, 3, greatest))
    return q * np.where(q[np.arange(len(q)), lead] < 0, -1, 1)[:, None]


def axis_angle(q, *_):
    vector = rotation(q).as_rotvec()
    angle = np.linalg.norm(vector, axis=1)
    return vector / np.where(angle > 0, angle, 1)[:, None], angle


def slerp(a, b, t):
    """a times a power of the rotation conj(a) b, of quaternions of any length."""
    a, b, t = (np.asarray(x, np.float64) for x in (a, b, t))
    turn = rotation(hamilton(a * [-1, -1, -1, 1], b)).as_rotvec() * t[:, None]
    return hamilton(a, Rotation.from_rotvec(turn).as_quat(canonical=False))


def turned(q, v):
    """q v q* by products of quaternions, and what quat_rotate adds for quaternions of another length than 1."""
    q, v = np.asarray(q, np.float64), np.asarray(v, np.float64)
    product = hamilton(hamilton(q, np.concatenate([v, np.zeros((len(v), 1))], axis=1)), q * [-1, -1, -1, 1])
    return product[:, :3] + (np.sum(q * q, axis=1, keepdims=True) - 1) * v


def turning_matrix(q):
    return np.stack([turned(q, np.tile(axis, (len(q), 1))) for axis in np.eye(3)], axis=2)


def quaternions(rng, types, rows):
    """Of any length, half of them 1; other arguments are ordinary numbers."""
    arrays = [rng.normal(size=(rows, *kind.shape)) for kind in types]
    for kind, values in zip(types, arrays):
        if kind.kind in ("quaternion", "transform"):
            values[::2, -4:] /= np.linalg.norm(values[::2, -4:], axis=1, keepdims=True)
            values[0, -4:], values[1, -4:] = [0, 0, 0, 2], 0
    return [values.astype(kind.numpy) for kind, values in zip(types, arrays)]


def twist(axis, q):
    """Of q about the axis: the twist t for which the rest, q * t^-1, turns about an axis at a right angle."""
    along = np.sum(axis * q[:, :3], axis=1)
    angle = 2 * np.arctan2(along, q[:, 3])
    return np.concatenate([axis * np.sin(angle / 2)[:, None], np.cos(angle / 2)[:, None]], axis=1)


def twist_angle(axis, q):
    """In [-2 pi, 2 pi]: twice that of the complex number which the twist is."""
    return 2 * np.angle(q[:, 3] + 1j * np.sum(axis * q[:, :3], axis=1))


def matrix4(t):
    m = np.zeros((len(t), 4, 4))
    m[:, :3, :3] = turning_matrix(t[:, 3:])
    m[:, :3, 3] = t[:, :3]
    m[:, 3, 3] = 1
    return m


def composed(p, q, s):
    m = matrix4(np.concatenate([p, q], axis=1).astype(np.float64))
    m[:, :3, :3] *= np.asarray(s, np.float64)[:, None, :]
    return m


def decomposed(m):
    m = np.asarray(m, np.float64)
    linear = m[:, :3, :3]
    scale = np.linalg.norm(linear, axis=1)
    scale[:, 0] *= np.where(np.linalg.det(linear) < 0, -1, 1)
    return m[:, :3, 3], canonical(Rotation.from_matrix(linear / scale[:, None, :]).as_quat()), scale


def products_of_components(m):
    """The matrix 4 q q^T, of a rotation matrix."""
    n = np.zeros((len(m), 4, 4))
    diagonal = m[:, [0, 1, 2], [0, 1, 2]]
    trace = np.sum(diagonal, axis=1)
    n[:, :3, :3] = m + m.transpose(0, 2, 1)
    n[:, [0, 1, 2], [0, 1, 2]] = 1 + 2 * diagonal - trace[:, None]
    n[:, 3, :3] = n[:, :3, 3] = m[:, [2, 0, 1], [1, 2, 0]] - m[:, [1, 2, 0], [2, 0, 1]]
    n[:, 3, 3] = 1 + trace
    return n


def leading_component(m):
    """Which row of these products is taken: w, or the greatest of the diagonal."""
    diagonal = m[:, [0, 1, 2], [0, 1, 2]]
    return np.where(np.sum(diagonal, axis=1) >= 0, 3, np.argmax(diagonal, axis=1))


def from_matrix(m):
    m = np.asarray(m[:, :3, :3], np.float64)
    row = products_of_components(m)[np.arange(len(m)), leading_component(m)]
    return row / np.linalg.norm(row, axis=1, keepdims=True)


def from_matrix4(m):
    """A transform from m @ 4x4 products: its matrix entries tell position and rotation."""
    return np.concatenate([m[:, :3, 3], from_matrix(m)], axis=1)


def any_matrices(rng, types, rows):
    """Rotations, and matrices that are none, for which rounding cannot change the row that is taken."""
    found = rigid(rng, types, rows)[0].astype(np.float64)
    others = rng.normal(size=(rows // 2, 3, 3))
    diagonal = np.sort(others[:, [0, 1, 2], [0, 1, 2]], axis=1)
    others[(np.abs(np.sum(diagonal, axis=1)) < 0.1) | (diagonal[:, 2] - diagonal[:, 1] < 0.1)] = np.diag([1, -2, -3])
    found[: rows // 2, :3, :3] = others
    return [found.astype(types[0].numpy)]


def transform_product(a, b):
    q = (rotation(a[:, 3:]), rotation(b[:, 3:]))
    found = (q[0] * q[1]).as_quat()
    exact = hamilton(a[:, 3:], b[:, 3:])
    position = (matrix4(a) @ matrix4(b))[:, :3, 3]
    return np.concatenate([position, like(found, exact)], axis=1)


def hamilton(a, b):
    """Through the 4x4 matrix of left multiplication, x y z w."""
    x, y, z, w = a.T
    m = np.stack([w, -z, y, x, z, w, -x, y, -y, x, w, z, -x, -y, -z, w], axis=-1).reshape(-1, 4, 4)
    return product(m, b)


def transform_inverse(t):
    inverted = np.linalg.inv(matrix4(t))
    return np.concatenate([inverted[:, :3, 3], t[:, 3:] * [-1, -1, -1, 1]], axis=1)


def apply4(m, v, w):
    v = np.concatenate([v, np.full_like(v[:, :1], w)], axis=1)
    return product(m, v)[:, :3]


def spatial_cross_matrix(a):
    """[w x, 0; v x, w x] for the twist (w, v)."""
    m = np.zeros((len(a), 6, 6), dtype=a.dtype)
    m[:, :3, :3] = m[:, 3:, 3:] = skew(a[:, :3])
    m[:, 3:, :3] = skew(a[:, 3:])
    return m


def twist_matrix(t):
    """[R, 0; p x R, R]"""
    t = np.asarray(t, np.float64)
    m = np.zeros((len(t), 6, 6))
    r = rotation(t[:, 3:]).as_matrix()
    m[:, :3, :3] = m[:, 3:, 3:] = r
    m[:, 3:, :3] = skew(t[:, :3]) @ r
    return m


def wrench_matrix(t):
    """The inverse transpose of the twists' matrix: power is the same in both frames."""
    return np.linalg.inv(twist_matrix(t)).transpose(0, 2, 1)


def like_rpy(roll, pitch, yaw):
    found = Rotation.from_euler("xyz", np.stack([roll, pitch, yaw], axis=1).astype(np.float64)).as_quat()
    halves = [np.float64(a) / 2 for a in (roll, pitch, yaw)]
    w = np.prod(np.cos(halves), axis=0) + np.prod(np.sin(halves), axis=0)
    return found * np.where(found[:, 3] * w < 0, -1, 1)[:, None]


def away_from_the_poles(rng, types, rows):
    angles = np.stack([rng.uniform(-3, 3, rows), rng.uniform(-1.2, 1.2, rows), rng.uniform(-3, 3, rows)], axis=1)
    return [Rotation.from_euler("xyz", angles).as_quat().astype(types[0].numpy)]


def axis_orders(rng, rows):
    """Axes i != j != k."""
    orders = [o for o in itertools.product(range(3), repeat=3) if o[0] != o[1] != o[2]]
    return np.array(orders, dtype=np.int32)[rng.integers(0, len(orders), rows)].T


def from_euler(e, i, j, k):
    """The axes stand still, and each has its angle at its own place."""
    rows = np.arange(len(e))
    return by_turns(np.float64(np.stack([e[rows, i], e[rows, j], e[rows, k]], axis=1)), i, j, k)


def by_turns(angles, i, j, k):
    """The first angle is that about axis i: SciPy's small letters. The sign is that of a product of half turns."""
    found = np.zeros((len(angles), 4))
    for row in range(len(angles)):
        order = "".join("xyz"[a[row]] for a in (i, j, k))
        found[row] = Rotation.from_euler(order, angles[row]).as_quat()
    half_turns = []
    for axis, angle in zip((i, j, k), angles.T):
        q = np.zeros((len(angles), 4))
        q[np.arange(len(angles)), axis] = np.sin(angle / 2)
        q[:, 3] = np.cos(angle / 2)
        half_turns.append(q)
    return like(found, hamilton(half_turns[2], hamilton(half_turns[1], half_turns[0])))


def to_euler(q, i, j, k):
    """SciPy's angles, each at the place of its axis. Of the angles that differ by full turns the first and the last are
    the difference and the sum of two numbers in [-pi, pi], which the sign of the quaternion decides."""
    found = np.zeros((len(q), 3))
    for row in range(len(q)):
        axes = i[row], j[row], k[row]
        x, y, z, w = (float(q[row, n]) for n in (i[row], j[row], 3 - i[row] - j[row], 3))
        sign = np.sign(np.linalg.det(np.eye(3)[[i[row], j[row], 3 - i[row] - j[row]]]))
        z *= sign
        a, b, c, d = (w, x, y, z) if axes[0] == axes[2] else (w - y, x + z, y + w, z - x)
        half_sum, half_difference = np.arctan2(b, a), np.arctan2(d, c)
        near = half_sum - half_difference, (half_sum + half_difference) * (1 if axes[0] == axes[2] else sign)
        first, second, third = rotation(q[row]).as_euler("".join("xyz"[axis] for axis in axes))
        found[row, i[row]] = first + 2 * np.pi * np.round((near[0] - first) / (2 * np.pi))
        found[row, j[row]] = second
        found[row, 3 - i[row] - j[row]] = third + 2 * np.pi * np.round((near[1] - third) / (2 * np.pi))
    return found


def euler_inputs(rng, types, rows):
    return [rng.uniform(-3, 3, (rows, 3)).astype(types[0].numpy), *axis_orders(rng, rows)]


def away_from_lock(rng, types, rows):
    """Rotations whose middle angle is far from where the other two turn about one line."""
    orders = axis_orders(rng, rows)
    angles = rng.uniform(-3, 3, (rows, 3))
    angles[:, 1] = np.where(orders[0] == orders[2], rng.uniform(0.3, 2.8, rows), rng.uniform(-1.2, 1.2, rows))
    return [by_turns(angles, *orders).astype(types[0].numpy), *orders]


def between(a, b):
    """By axis and angle; the angle from sine and cosine."""
    a, b = (np.float64(v) / np.linalg.norm(np.float64(v), axis=1, keepdims=True) for v in (a, b))
    axis = np.cross(a, b)
    sine = np.linalg.norm(axis, axis=1, keepdims=True)
    angle = np.arctan2(sine[:, 0], np.sum(a * b, axis=1))
    return Rotation.from_rotvec(axis / sine * angle[:, None]).as_quat(canonical=True)
