"""Which splash makes this picture? The initial surface of a pool, found so that its waves spell a word a while later.

    python -m warp.examples.shape_wave

The shallow-water equations of a pool of even depth H, linear, on a staggered grid with walls all around (surface height
η and velocities u, v):

    du/dt = -g ∂η/∂x,   dv/dt = -g ∂η/∂y,   dη/dt = -H (∂u/∂x + ∂v/∂y)

A tape records all steps, and the gradient of the distance to the picture comes back through them to every cell of the
first surface. Adam, a method of descent, takes it from there.
"""

from __future__ import annotations

import math
import time

import numpy as np

import warp as wp
from warp.examples import _show

GRAVITY = 9.81  # m/s²
DEPTH = 1.0  # m
SPACING = 1.0  # m, edge of a cell


@wp.kernel
def accelerate(
    pull: float,
    surface: wp.array2d[float],
    u: wp.array2d[float],
    v: wp.array2d[float],
    u_new: wp.array2d[float],
    v_new: wp.array2d[float],
):
    """Velocities on the left (u) and upper (v) face of each cell; none through the walls. `pull` is g dt / spacing."""
    i, j = wp.tid()
    here = surface[i, j]
    u_new[i, j] = wp.where(j > 0, u[i, j] - pull * (here - surface[i, wp.max(j - 1, 0)]), 0.0)
    v_new[i, j] = wp.where(i > 0, v[i, j] - pull * (here - surface[wp.max(i - 1, 0), j]), 0.0)


@wp.kernel
def carry(
    flow: float,
    surface: wp.array2d[float],
    u: wp.array2d[float],
    v: wp.array2d[float],
    surface_new: wp.array2d[float],
):
    """Heights from what flows through the four faces. `flow` is H dt / spacing."""
    i, j = wp.tid()
    rows = surface.shape[0]
    columns = surface.shape[1]
    right = wp.where(j + 1 < columns, u[i, wp.min(j + 1, columns - 1)], 0.0)
    below = wp.where(i + 1 < rows, v[wp.min(i + 1, rows - 1), j], 0.0)
    surface_new[i, j] = surface[i, j] - flow * (right - u[i, j] + below - v[i, j])


@wp.kernel
def distance(surface: wp.array2d[float], target: wp.array2d[float], loss: wp.array[float]):
    i, j = wp.tid()
    difference = surface[i, j] - target[i, j]
    wp.atomic_add(loss, 0, difference * difference)


class Pool:
    """`size` cells each way, watched for `steps` steps."""

    def __init__(self, target: np.ndarray, steps: int):
        self.size, self.steps = target.shape[0], steps
        self.dt = 0.6 * SPACING / math.sqrt(2.0 * GRAVITY * DEPTH)
        shape = target.shape
        self.target = wp.array(target.astype(np.float32))
        self.first = wp.zeros(shape, dtype=float, requires_grad=True)
        self.surface = [wp.zeros(shape, dtype=float, requires_grad=True) for _ in range(2)]
        self.u = [wp.zeros(shape, dtype=float, requires_grad=True) for _ in range(2)]
        self.v = [wp.zeros(shape, dtype=float, requires_grad=True) for _ in range(2)]
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def run(self) -> wp.array:
        """The surface after all steps."""
        shape = (self.size, self.size)
        pull, flow = GRAVITY * self.dt / SPACING, DEPTH * self.dt / SPACING
        wp.copy(self.surface[0], self.first)
        self.u[0].zero_()
        self.v[0].zero_()
        now, then = 0, 1
        for _ in range(self.steps):
            velocities = [self.u[now], self.v[now], self.u[then], self.v[then]]
            wp.launch(accelerate, dim=shape, inputs=[pull, self.surface[now], *velocities])
            moved = [flow, self.surface[now], self.u[then], self.v[then]]
            wp.launch(carry, dim=shape, inputs=moved, outputs=[self.surface[then]])
            now, then = then, now
        return self.surface[now]

    def gradient(self) -> tuple[float, np.ndarray]:
        """The mean squared distance to the target, and its gradient by each cell of the first surface."""
        with wp.Tape() as tape:
            self.loss.zero_()
            final = self.run()
            wp.launch(distance, dim=final.shape, inputs=[final, self.target, self.loss])
        tape.backward(self.loss)
        result = float(self.loss.numpy()[0]), self.first.grad.numpy().copy()
        tape.zero()
        return result


class Adam:
    """Descent with a step for each number, from averages of its gradient and of the gradient's square."""

    def __init__(self, size: tuple, rate: float):
        self.mean, self.square, self.count, self.rate = np.zeros(size), np.zeros(size), 0, rate

    def step(self, gradient: np.ndarray) -> np.ndarray:
        self.count += 1
        self.mean += 0.1 * (gradient - self.mean)
        self.square += 0.01 * (gradient**2 - self.square)
        mean = self.mean / (1.0 - 0.9**self.count)
        square = self.square / (1.0 - 0.99**self.count)
        return -self.rate * mean / (np.sqrt(square) + 1e-12)


def word(text: str, size: int) -> np.ndarray:
    """White letters on nothing, softened, with a mean of zero: water is neither made nor lost."""
    from PIL import Image, ImageDraw, ImageFilter, ImageFont

    picture = Image.new("L", (size, size))
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size * 0.3)
    left, top, right, bottom = draw.textbbox((0, 0), text, font=font)
    draw.text(((size - right - left) / 2, (size - bottom - top) / 2), text, fill=255, font=font)
    picture = picture.filter(ImageFilter.GaussianBlur(size / 100))
    heights = np.asarray(picture, dtype=np.float64) / 255.0
    return heights - heights.mean()


def fit(pool: Pool, iterations: int, rate: float = 0.05) -> list[float]:
    """Descends, and returns the loss of each iteration."""
    descent, losses = Adam((pool.size, pool.size), rate), []
    for _ in range(iterations):
        loss, gradient = pool.gradient()
        losses.append(loss)
        pool.first.assign((pool.first.numpy() + descent.step(gradient)).astype(np.float32))
    return losses


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    options = _show.arguments(__doc__.splitlines()[0], size=192, steps=120, iterations=80)
    steps, iterations = options.steps, options.iterations
    pool = Pool(word("WEFT", options.size), steps)
    start = time.perf_counter()
    losses = fit(pool, iterations)
    seconds = time.perf_counter() - start
    final = pool.run().numpy()

    figure, axes = plt.subplots(1, 4, figsize=(16, 4.2))
    first = pool.first.numpy()
    limit = float(np.abs(first).max())
    pictures = [
        ("the first surface that was found", first, limit),
        (f"{steps} steps later", final, 0.6),
        ("what it should be", pool.target.numpy(), 0.6),
    ]
    for axis, (title, heights, most) in zip(axes, pictures, strict=False):
        axis.imshow(heights, cmap="RdBu_r", vmin=-most, vmax=most)
        axis.set_title(title)
        axis.axis("off")
    axes[3].semilogy(losses)
    axes[3].set_title("squared distance")
    axes[3].set_xlabel("iteration")
    figure.tight_layout()
    path = options.out / "shape_wave.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"squared distance {losses[0]:.1f} -> {losses[-1]:.3f}")
    print(f"{iterations} gradients through {steps} steps: {seconds:.1f} s")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
