"""Compile time of a module of a hundred kernels of median size: 24 lines with their 6 parameters; the time is that of
the whole module.

Every kernel is one of four kinds with constants of its own, so that no two are alike.
"""

import numpy as np
import scenario

KERNELS = 100
POINTS = 8

HEAD = """import warp as wp


@wp.func
def weight(r: float, h: float):
    q = wp.max(1.0 - r / h, 0.0)
    return q * q * q


"""

KINDS = (
    # Neighbours in a row, with a branch.
    """
    i = wp.tid()
    p = x[i]
    force = wp.vec3(0.0, -9.81, 0.0)
    total = float(0.0)
    for k in range(n):
        d = p - x[(i + k) % n]
        r = wp.length(d)
        w = weight(r, {index}.5)
        total += w
        if r > 0.001:
            force += d * (w * h / r)
        else:
            total += 0.5
    v = u[i] + force * (h * {number}.25)
    p = p + v * h
    out[i] = wp.dot(v, v) * 0.5 + total + wp.dot(p, p)
""",
    # A rotation by axis and angle.
    """
    i = wp.tid()
    p = x[i]
    v = u[i]
    angle = wp.length(v) * h + {index}.0
    axis = wp.normalize(v + wp.vec3(0.0, 0.0, {number}.5))
    c = wp.cos(angle)
    s = wp.sin(angle)
    turned = p * c + wp.cross(axis, p) * s + axis * (wp.dot(axis, p) * (1.0 - c))
    energy = wp.dot(turned, v)
    if flags[i] > 2:
        energy = energy * 2.0
    elif flags[i] > 0:
        energy = wp.sqrt(wp.abs(energy))
    height = wp.dot(p, axis)
    limit = wp.clamp(energy, 0.0, {index}.5)
    out[i] = energy + limit + wp.exp(-height * height) * h
""",
    # Scalars and flags.
    """
    i = wp.tid()
    flag = flags[i]
    a = x[i][0]
    b = x[i][1]
    c = x[i][2] + {index}.0
    disc = b * b - 4.0 * a * c
    root = float(0.0)
    if disc > 0.0:
        root = (-b + wp.sqrt(disc)) / (2.0 * a + 0.01)
    count = int(0)
    while flag > 0:
        count += flag & 1
        flag = flag >> 1
    value = wp.sin(root) + float(count) * h * {number}.0
    j = wp.min(i + 1, n - 1)
    out[i] = value + u[j][0] - u[i][0]
""",
    # A matrix, a frame of axes.
    """
    i = wp.tid()
    p = x[i]
    v = u[i]
    e0 = wp.normalize(p + wp.vec3({index}.0, 0.0, 0.0))
    e1 = v - e0 * wp.dot(e0, v)
    e1 = wp.normalize(e1 + wp.vec3(0.0, 0.01, 0.0))
    e2 = wp.cross(e0, e1)
    frame = wp.matrix_from_cols(e0, e1, e2)
    local = wp.transpose(frame) * p
    inertia = wp.mat33(1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, {number}.5)
    world = frame * wp.cross(local, inertia * local)
    j = (i + {index}) % n
    power = wp.dot(wp.cross(x[j] - p, world), v)
    if flags[j] == 1:
        power = power * h
    out[i] = power + wp.length(world)
""",
)

SIGNATURE = """
@wp.kernel
def kernel_{index}(
    n: int,
    h: float,
    x: wp.array(dtype=wp.vec3),
    u: wp.array(dtype=wp.vec3),
    flags: wp.array(dtype=int),
    out: wp.array(dtype=float),
):"""


def source(number):
    texts = (SIGNATURE + KINDS[index % len(KINDS)] for index in range(KERNELS))
    return HEAD + "".join(
        text.replace("{index}", str(index)).replace("{number}", str(number + 1)) for index, text in enumerate(texts)
    )


def launch_warp(wp, loaded):
    numbers = np.random.default_rng(3)
    points, speeds = numbers.uniform(0.1, 1.0, (2, POINTS, 3)).astype(np.float32)
    flags = np.arange(POINTS, dtype=np.int32)
    x, u = wp.array(points, dtype=wp.vec3, device="cpu"), wp.array(speeds, dtype=wp.vec3, device="cpu")
    f = wp.array(flags, dtype=int, device="cpu")
    results = []
    for index in range(KERNELS):
        out = wp.zeros(POINTS, dtype=float, device="cpu")
        kernel = getattr(loaded, f"kernel_{index}")
        wp.launch(kernel, dim=POINTS, inputs=[POINTS, 0.1, x, u, f, out], device="cpu")
        results.append(out)

    number = int(loaded.__name__[-1]) + 1

    def check():
        for index, out in enumerate(results):
            assert np.isfinite(out.numpy()).all()
            if index % len(KINDS) == 2:
                np.testing.assert_allclose(out.numpy(), polynomial(points, speeds, flags, index, number), rtol=1e-4)

    return check


def polynomial(points, speeds, flags, index, number):
    """The third kind in NumPy."""
    a, b, c = points[:, 0], points[:, 1], points[:, 2] + index
    disc = b * b - 4 * a * c
    root = np.where(disc > 0, (-b + np.sqrt(np.maximum(disc, 0))) / (2 * a + 0.01), 0)
    next_one = np.minimum(np.arange(POINTS) + 1, POINTS - 1)
    bits = np.array([bin(flag).count("1") for flag in flags])
    return np.sin(root) + bits * 0.1 * number + speeds[next_one, 0] - speeds[:, 0]


if __name__ == "__main__":
    scenario.LATER = 1
    scenario.measure_compile(
        "compile hundred",
        __doc__,
        {"weft": source, "peer": source},
        {"weft": launch_warp, "peer": launch_warp},
    )
