"""Two chemicals that feed on each other and spread: the Gray-Scott model grows corals, spots and mazes.

    python -m warp.examples.gray_scott

    du/dt = 0.16 ∇²u - u v² + f (1 - u),    dv/dt = 0.08 ∇²v + u v² - (f + k) v

after J. E. Pearson, "Complex Patterns in a Simple System", Science 261 (1993). Patterns live along the curve
k = sqrt(f) / 2 - f, on which the uniform mixture loses its balance. The feed rate f grows from the lower edge to the
upper one and the kill rate k passes through the curve from left to right, so that one run shows a map of the patterns.
"""

from __future__ import annotations

import time

import warp as wp
from warp.examples import _show

FEED = (0.014, 0.066)  # bottom, top
KILL = (-0.0018, 0.0034)  # left, right: from the curve


@wp.func
def laplacian(a: wp.array2d[float], i: int, j: int):
    """Five-point stencil on a torus."""
    rows = a.shape[0]
    columns = a.shape[1]
    above = wp.where(i > 0, i - 1, rows - 1)
    below = wp.where(i + 1 < rows, i + 1, 0)
    left = wp.where(j > 0, j - 1, columns - 1)
    right = wp.where(j + 1 < columns, j + 1, 0)
    return a[above, j] + a[below, j] + a[i, left] + a[i, right] - 4.0 * a[i, j]


@wp.kernel
def seed(number: int, u: wp.array2d[float], v: wp.array2d[float]):
    """Everything is fed; here and there a drop of the second chemical."""
    i, j = wp.tid()
    drops = wp.rand_init(number, (i // 16) * 4096 + j // 16)
    u[i, j] = 1.0
    v[i, j] = 0.0
    if wp.randf(drops) < 0.2:
        grain = wp.rand_init(number + 1, i * u.shape[1] + j)
        u[i, j] = 0.5
        v[i, j] = 0.25 + 0.1 * wp.randf(grain)


@wp.kernel
def react(
    dt: float,
    feed: wp.vec2,
    kill: wp.vec2,
    u: wp.array2d[float],
    v: wp.array2d[float],
    u_new: wp.array2d[float],
    v_new: wp.array2d[float],
):
    i, j = wp.tid()
    f = wp.lerp(feed[1], feed[0], float(i) / float(u.shape[0]))
    k = 0.5 * wp.sqrt(f) - f + wp.lerp(kill[0], kill[1], float(j) / float(u.shape[1]))
    a = u[i, j]
    b = v[i, j]
    reaction = a * b * b
    u_new[i, j] = a + dt * (0.16 * laplacian(u, i, j) - reaction + f * (1.0 - a))
    v_new[i, j] = b + dt * (0.08 * laplacian(v, i, j) + reaction - (f + k) * b)


@wp.kernel
def shade(v: wp.array2d[float], picture: wp.array2d[wp.vec3]):
    """The second chemical as a relief, lit from the upper left."""
    i, j = wp.tid()
    b = v[i, j]
    right = v[i, wp.min(j + 1, v.shape[1] - 1)]
    below = v[wp.min(i + 1, v.shape[0] - 1), j]
    normal = wp.normalize(wp.vec3(8.0 * (b - right), 8.0 * (b - below), 1.0))
    light = wp.max(wp.dot(normal, wp.normalize(wp.vec3(-0.5, -0.6, 0.6))), 0.0)
    t = wp.smoothstep(0.02, 0.38, b)
    colour = wp.lerp(wp.vec3(0.01, 0.05, 0.09), wp.vec3(0.95, 0.55, 0.25), t)
    picture[i, j] = colour * (0.35 + 0.9 * light)


def run(size: int, steps: int, feed=FEED, kill=KILL, show: bool = False) -> tuple[wp.array, wp.array]:
    u, v = wp.empty((size, size), dtype=float), wp.empty((size, size), dtype=float)
    u_new, v_new = wp.empty_like(u), wp.empty_like(v)
    wp.launch(seed, dim=(size, size), inputs=[7], outputs=[u, v])
    for _ in _show.progress(steps, "gray-scott") if show else range(steps):
        wp.launch(react, dim=(size, size), inputs=[1.0, feed, kill, u, v], outputs=[u_new, v_new])
        u, u_new, v, v_new = u_new, u, v_new, v
    return u, v


def main() -> None:
    options = _show.arguments(__doc__, size=768, steps=9000)
    start = time.perf_counter()
    _, v = run(options.size, options.steps, show=True)
    seconds = time.perf_counter() - start
    print(f"{options.steps} steps of {options.size}² cells in {seconds:.1f} s: {options.steps / seconds:.0f} steps/s")
    picture = wp.empty((options.size, options.size), dtype=wp.vec3)
    wp.launch(shade, dim=picture.shape, inputs=[v], outputs=[picture])
    _show.save_png(options.out / "gray_scott.png", picture.numpy())


if __name__ == "__main__":
    main()
