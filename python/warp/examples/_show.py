"""The common part of the examples: arguments, a progress bar, and writing pictures."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

SECONDS_BETWEEN_LINES = 5.0  # of progress, if there is no terminal


def arguments(documentation: str | None, **defaults: int | float | str) -> argparse.Namespace:
    """Command line of an example: ``--out`` and one option per keyword, with its default. Help shows the first line of
    the documentation."""
    parser = argparse.ArgumentParser(description=(documentation or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the pictures")
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help=f"default {value}")
    options = parser.parse_args()
    _pillow()  # which is missing now or after minutes
    return options


def progress(count: int, title: str) -> Iterator[int]:
    """Counts to ``count`` and shows on standard error how far it is: a bar on a terminal, elsewhere a line every few
    seconds."""
    start = shown = time.perf_counter()
    drawn = sys.stderr.isatty()
    for i in range(count + 1):
        now = time.perf_counter()
        if drawn:
            done = i / max(count, 1)
            bar = "█" * int(30 * done) + "░" * (30 - int(30 * done))
            text = f"\r{title} {bar} {100 * done:3.0f} %  {now - start:5.1f} s"
            print(text, end="" if i < count else "\n", file=sys.stderr, flush=True)
        elif now - shown > SECONDS_BETWEEN_LINES:
            print(f"{title}: {i} of {count}, {now - start:.0f} s", file=sys.stderr, flush=True)
            shown = now
        if i < count:
            yield i


def to_bytes(image: np.ndarray) -> np.ndarray:
    """(h, w, 3) linear light in 0..1 to sRGB bytes."""
    clipped = np.clip(image, 0.0, 1.0)
    srgb = np.where(clipped <= 0.0031308, 12.92 * clipped, 1.055 * clipped ** (1 / 2.4) - 0.055)
    return (srgb * 255.0 + 0.5).astype(np.uint8)


def _pillow():
    try:
        from PIL import Image
    except ImportError:
        raise SystemExit(
            "the examples write pictures with Pillow: pip install 'weft-lang[examples]' (or pillow)"
        ) from None
    return Image


def save_png(path: Path, image: np.ndarray) -> None:
    """Writes an (h, w, 3) picture, linear floats or sRGB bytes."""
    pixels = image if image.dtype == np.uint8 else to_bytes(image)
    path.parent.mkdir(parents=True, exist_ok=True)
    _pillow().fromarray(pixels).save(path)
    print(f"wrote {path}")


def save_gif(path: Path, frames: list[np.ndarray], frame_ms: int = 40) -> None:
    """Writes sRGB byte frames as an animation with one palette, chosen from frames across the whole of it."""
    image = _pillow()
    path.parent.mkdir(parents=True, exist_ok=True)
    sample = np.concatenate([frame[::2, ::2] for frame in frames[:: max(1, len(frames) // 8)]])
    palette = image.fromarray(sample).quantize(256, method=image.Quantize.FASTOCTREE, dither=image.Dither.NONE)
    pages = [image.fromarray(f).quantize(palette=palette, dither=image.Dither.FLOYDSTEINBERG) for f in frames]
    pages[0].save(path, save_all=True, append_images=pages[1:], duration=frame_ms, loop=0, optimize=False)
    print(f"wrote {path}")
