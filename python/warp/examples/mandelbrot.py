"""The Mandelbrot set with smooth colours: one loop per pixel, each of another length.

python -m warp.examples.mandelbrot
"""

from __future__ import annotations

import time

import warp as wp
from warp.examples import _show


@wp.kernel
def escape_time(centre: wp.vec2, width: float, limit: int, counts: wp.array2d[float]):
    """Iterations until |z| > 256, with a fraction that makes the count continuous; 0 inside the set."""
    row, column = wp.tid()
    rows = counts.shape[0]
    columns = counts.shape[1]
    c_re = centre[0] + width * (float(column) / float(columns) - 0.5)
    c_im = centre[1] + width * (float(row) - 0.5 * float(rows)) / float(columns)

    re = float(0.0)
    im = float(0.0)
    n = int(0)
    while re * re + im * im <= 65536.0 and n < limit:
        re_next = re * re - im * im + c_re
        im = 2.0 * re * im + c_im
        re = re_next
        n += 1

    smooth = float(0.0)
    if n < limit:
        smooth = float(n) + 1.0 - wp.log2(0.5 * wp.log2(re * re + im * im))
    counts[row, column] = smooth


@wp.func
def colour_of(n: float) -> wp.vec3:
    t = wp.sqrt(wp.max(n, 0.0)) * 0.55
    colour = wp.vec3(0.5 + 0.5 * wp.cos(t + 3.1), 0.5 + 0.5 * wp.cos(t + 2.5), 0.5 + 0.5 * wp.cos(t + 1.7))
    return wp.where(n > 0.0, wp.cw_mul(colour, colour), wp.vec3(0.0, 0.0, 0.0))


@wp.kernel
def paint(counts: wp.array2d[float], samples: int, picture: wp.array2d[wp.vec3]):
    """Mean colour of the samples of each pixel; near the set, neighbouring counts are unlike each other."""
    row, column = wp.tid()
    total = wp.vec3(0.0, 0.0, 0.0)
    for i in range(samples):
        for j in range(samples):
            total += colour_of(counts[row * samples + i, column * samples + j])
    picture[row, column] = total / float(samples * samples)


def render(
    size: int, samples: int = 3, centre=(-0.7436447860, 0.1318252536), width: float = 0.0035, limit: int = 1500
) -> wp.array:
    """A picture of `size` pixels each way, `samples` counts each way in each of them."""
    counts = wp.empty((size * samples, size * samples), dtype=float)
    picture = wp.empty((size, size), dtype=wp.vec3)
    wp.launch(escape_time, dim=counts.shape, inputs=[centre, width, limit], outputs=[counts])
    wp.launch(paint, dim=picture.shape, inputs=[counts, samples], outputs=[picture])
    return picture


def main() -> None:
    options = _show.arguments(__doc__, size=1024, samples=3)
    start = time.perf_counter()
    render(options.size, options.samples)
    first = time.perf_counter() - start
    start = time.perf_counter()
    picture = render(options.size, options.samples)
    print(
        f"first picture, compiling included: {1e3 * first:.0f} ms; again: {1e3 * (time.perf_counter() - start):.1f} ms"
    )
    _show.save_png(options.out / "mandelbrot.png", picture.numpy())


if __name__ == "__main__":
    main()
