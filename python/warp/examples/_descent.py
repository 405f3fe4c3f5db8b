"""The common part of examples that follow a gradient: descent, and the figure that shows its result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from warp.examples import _show

DARK, LIGHT = "#10141c", "#e6e9ef"


class Adam:
    """Descent with a step for each number, from averages of its gradient and of the gradient's square."""

    def __init__(self, shape: tuple[int, ...], rate: float | np.ndarray):
        self.mean, self.square, self.count, self.rate = np.zeros(shape), np.zeros(shape), 0, rate

    def step(self, gradient: np.ndarray) -> np.ndarray:
        """The step to add to the numbers whose gradient this is."""
        self.count += 1
        self.mean += 0.1 * (gradient - self.mean)
        self.square += 0.01 * (gradient**2 - self.square)
        mean = self.mean / (1.0 - 0.9**self.count)
        square = self.square / (1.0 - 0.99**self.count)
        return -self.rate * mean / (np.sqrt(square) + 1e-12)


def descend(
    gradient: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    iterations: int,
    rate: float | np.ndarray,
    title: str,
) -> tuple[np.ndarray, list[float]]:
    """Follows the gradient from ``start`` with steps that get shorter.

    Args:
        gradient: gives the loss and its gradient at numbers of the shape of ``start``.
        rate: how far a number goes at most in the first step; for each number, or one for all.

    Returns:
        The numbers with the least loss, and the loss of each iteration; the first is that of ``start``.
    """
    now = np.array(start, dtype=np.float64)
    adam, losses, best = Adam(now.shape, rate), [], now.copy()
    for iteration in _show.progress(iterations, title):
        loss, slope = gradient(now)
        if not losses or loss < min(losses):
            best = now.copy()
        losses.append(loss)
        now += (1.0 - 0.9 * iteration / iterations) * adam.step(slope)
    return best, losses


def pyplot():
    """matplotlib's pyplot, which draws to files, dark."""
    try:
        import matplotlib
    except ImportError:
        raise SystemExit(
            "this example draws its figure with matplotlib: pip install 'weft-lang[examples]' (or matplotlib)"
        ) from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "figure.facecolor": DARK,
            "axes.facecolor": DARK,
            "savefig.facecolor": DARK,
            "text.color": LIGHT,
            "axes.labelcolor": LIGHT,
            "axes.edgecolor": "#5a6272",
            "xtick.color": "#a4acbb",
            "ytick.color": "#a4acbb",
            "axes.titlesize": 13,
        }
    )
    return plt


def show(axis, picture: np.ndarray, title: str, **options) -> None:
    """A picture with its name above: sRGB bytes, or numbers with a colour map among the options."""
    axis.imshow(picture, **options)
    axis.set_title(title)
    axis.axis("off")


def show_losses(axis, losses: list[float], title: str) -> None:
    """The loss of each iteration, on a logarithmic axis."""
    axis.semilogy(losses, color="#ffb454", linewidth=2)
    axis.set_title(title)
    axis.set_xlabel("iteration")
    axis.grid(alpha=0.15)


def save(path: Path, figure) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"wrote {path}")
