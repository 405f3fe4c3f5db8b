"""Which splash makes this picture? The first surface of the lagoon, found so that its waves spell a word later.

    python -m warp.examples.shape_wave

The simulation is `warp.examples.lagoon` as it is: upwind fluxes, dry land, the paddle at the left. A tape records all
steps, and the gradient of the distance to the picture comes back through them to the height of the water in every cell
at the start. Descent takes it from there. The tape keeps the arrays that later steps overwrite; their size is printed.
"""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np

import warp as wp
from warp.examples import _descent, _show, lagoon

DEEP = 3.0  # m; shallower water is left alone, and does not count
HEIGHT = 0.4  # m, of the letters


@wp.kernel
def soften(rough: wp.array2d[float], soft: wp.array2d[float]):
    """Means of each cell and its neighbours, the nearer counting more."""
    i, j = wp.tid()
    total = float(0.0)
    for di in range(-1, 2):
        for dj in range(-1, 2):
            weight = float((2 - abs(di)) * (2 - abs(dj))) / 16.0
            row = wp.clamp(i + di, 0, rough.shape[0] - 1)
            total += weight * rough[row, wp.clamp(j + dj, 0, rough.shape[1] - 1)]
    soft[i, j] = total


@wp.kernel
def pour(
    floor: wp.array2d[float],
    splash: wp.array2d[float],
    depth: wp.array2d[float],
):
    """The first depths: still water, and the splash over deep water."""
    i, j = wp.tid()
    still = wp.max(-floor[i, j], 0.0)
    depth[i, j] = wp.where(still > DEEP, wp.max(still + splash[i, j], 0.5), still)


@wp.kernel
def distance(floor: wp.array2d[float], depth: wp.array2d[float], target: wp.array2d[float], loss: wp.array[float]):
    """Squared differences of the surface and the picture, over deep water."""
    i, j = wp.tid()
    level = depth[i, j] + floor[i, j]
    if floor[i, j] < -DEEP:
        wp.atomic_add(loss, 0, (level - target[i, j]) * (level - target[i, j]))


class Splash:
    """A lagoon of `size` cells each way, watched for `steps` steps."""

    def __init__(self, target: np.ndarray, steps: int):
        self.size, self.steps = target.shape[0], steps
        self.shape = target.shape
        self.target = wp.array(target.astype(np.float32))
        # The unknown, and the same softened: ripples of a cell or two would die out on the way and mean nothing.
        self.splash = [wp.zeros(self.shape, dtype=float, requires_grad=True) for _ in range(3)]
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.water = lagoon.Lagoon(self.size, requires_grad=True)
        self.copied = 0  # bytes that the last tape kept

    def begin(self) -> None:
        """The lagoon at the start, with the splash on it."""
        self.water.time = 0.0
        for still in (self.water.u, self.water.v, self.water.foam):
            still.zero_()
        for rough, soft in pairwise(self.splash):
            wp.launch(soften, dim=self.shape, inputs=[rough], outputs=[soft])
        wp.launch(pour, dim=self.shape, inputs=[self.water.floor, self.splash[-1]], outputs=[self.water.depth])

    def run(self) -> None:
        self.begin()
        for _ in range(self.steps):
            self.water.step()

    def surface(self) -> np.ndarray:
        """Heights of the water, NaN for water that is too shallow to count."""
        floor = self.water.floor.numpy()
        return np.where(floor < -DEEP, self.water.depth.numpy() + floor, np.nan)

    def gradient(self, splash: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum of squared differences from the target, and its gradient by the height of the splash in each cell."""
        self.splash[0].assign(splash.astype(np.float32))
        with wp.Tape() as tape:
            self.loss.zero_()
            self.run()
            inputs = [self.water.floor, self.water.depth, self.target]
            wp.launch(distance, dim=self.shape, inputs=inputs, outputs=[self.loss])
        tape.backward(self.loss)
        self.copied = tape.memory.peak_bytes
        result = float(self.loss.numpy()[0]), self.splash[0].grad.numpy().astype(np.float64)
        tape.zero()
        return result


def word(text: str, size: int) -> np.ndarray:
    """Letters one below the other in the open water, softened, as heights; a little below the rest between them."""
    from PIL import Image, ImageDraw, ImageFilter, ImageFont

    picture = Image.new("L", (size, size))
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(1.1 * size / len(text))
    for n, letter in enumerate(text):
        place = (0.25 * size, (n + 0.5) * size / len(text))
        draw.text(place, letter, fill=255, font=font, anchor="mm", stroke_width=size / 150)
    picture = picture.filter(ImageFilter.GaussianBlur(size / 90))
    return HEIGHT * np.asarray(picture, dtype=np.float64) / 255.0


def main() -> None:
    options = _show.arguments(__doc__, size=192, steps=80, iterations=45)
    plt = _descent.pyplot()
    steps, iterations = options.steps, options.iterations
    pool = Splash(word("WEFT", options.size), steps)
    start = time.perf_counter()
    found, losses = _descent.descend(pool.gradient, np.zeros(pool.shape), iterations, 0.04, "splash")
    seconds = time.perf_counter() - start
    print(f"{iterations} gradients through {steps} steps of {options.size}² cells: {seconds:.1f} s")
    print(
        f"sum of squared differences {losses[0]:.1f} -> {min(losses):.2f} m²; copies kept: {pool.copied / 1e6:.0f} MB"
    )

    pool.splash[0].assign(found.astype(np.float32))
    frames = []
    pool.begin()
    first = pool.surface()
    for step in range(steps + steps // 2):
        if step % 2 == 0:
            frames.append(_show.to_bytes(pool.water.picture(options.size).numpy()))
        if step == steps:
            final, shaded = pool.surface(), _show.to_bytes(pool.water.picture(options.size).numpy())
            frames += [shaded] * 20  # for the eye to read
        pool.water.step()

    figure, axes = plt.subplots(1, 5, figsize=(22, 4.6), layout="constrained")
    seconds_later = f"{steps * pool.water.dt:.1f} s"
    colours = plt.get_cmap("RdBu_r").with_extremes(bad="#3d4a33")
    maps = {"the splash that was found": first, f"the surface {seconds_later} later": final, "target": None}
    for axis, (title, heights) in zip(axes, maps.items(), strict=False):
        heights = np.where(np.isnan(first), np.nan, pool.target.numpy()) if heights is None else heights
        limit = float(np.nanquantile(np.abs(first), 0.999)) if heights is first else HEIGHT
        _descent.show(axis, heights, title, cmap=colours, vmin=-limit, vmax=limit)
    _descent.show(axes[3], shaded, "the lagoon then")
    _descent.show_losses(axes[4], losses, "squared distance, m²")
    _descent.save(options.out / "shape_wave.png", figure)
    _show.save_gif(options.out / "shape_wave.gif", frames, frame_ms=60)


if __name__ == "__main__":
    main()
