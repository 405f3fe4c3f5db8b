"""Which balls, and which light, make this picture? Inverse rendering by gradients through a ray marcher.

    python -m warp.examples.still_life

Each pixel marches a ray through the distance field of a few balls that melt into each other, as far at a time as the
field says is free, until it meets them or passes; then it marches on towards the light for the shadow. The outline is
soft: a ray that passes a ball closely takes some of its colour, so that the picture changes smoothly with the balls.
Differences between picture and target come back through both loops to the centre, radius and colour of every ball
and to the direction and strength of the light: one launch, one gradient.
"""

from __future__ import annotations

import time

import numpy as np

import warp as wp
from warp.examples import _descent, _show

MELT = 9.0  # the greater, the less the balls melt into each other
OUTLINE = 0.05  # width of the soft outline
MARCH = 40  # steps of a ray, at most
NEAR = 2.0e-4  # a ray that is as near as this has met
FAR = 9.0
EYE = (0.0, 1.9, 4.6)
LOOK_AT = (0.0, 0.55, 0.0)


@wp.struct
class Scene:
    centres: wp.array[wp.vec3]
    radii: wp.array[float]
    colours: wp.array[wp.vec3]
    light: wp.array[wp.vec3]  # one: its direction is where the light comes from, its length how strong it is


@wp.func
def melted(scene: Scene, p: wp.vec3) -> float:
    """Distance to the balls, a soft minimum of the distances to each of them."""
    total = float(0.0)
    for k in range(scene.radii.shape[0]):
        total += wp.exp(-MELT * (wp.length(p - scene.centres[k]) - scene.radii[k]))
    return -wp.log(total + 1.0e-30) / MELT


@wp.func
def surface(scene: Scene, p: wp.vec3):
    """Normal and colour, blended as the distances are."""
    total = float(1.0e-30)
    normal = wp.vec3(0.0, 0.0, 0.0)
    colour = wp.vec3(0.0, 0.0, 0.0)
    for k in range(scene.radii.shape[0]):
        away = p - scene.centres[k]
        weight = wp.exp(-MELT * (wp.length(away) - scene.radii[k]))
        total += weight
        normal += weight * wp.normalize(away)
        colour += weight * scene.colours[k]
    return wp.normalize(normal), colour / total


@wp.func
def nearest_on_ray(scene: Scene, eye: wp.vec3, direction: wp.vec3):
    """The least distance of a ray from the balls, and its parameter t there."""
    t = float(2.0)
    nearest = float(1.0e3)
    at = float(2.0)
    for _ in range(MARCH):
        d = melted(scene, eye + t * direction)
        if d < nearest:
            nearest = d
            at = t
        if d < NEAR or t > FAR:
            break
        t += d
    return nearest, at


@wp.func
def lit(scene: Scene, p: wp.vec3, towards: wp.vec3) -> float:
    """Share of the light that reaches p; less if the way to the light passes the balls closely."""
    share = float(1.0)
    t = float(0.06)
    for _ in range(24):
        d = melted(scene, p + t * towards)
        share = wp.min(share, 0.5 + 4.0 * d / t)
        if share < 0.0 or t > 5.0:
            break
        t += wp.clamp(d, 0.04, 0.4)
    return wp.smoothstep(0.0, 1.0, share)


@wp.kernel
def render(scene: Scene, picture: wp.array2d[wp.vec3]):
    """Colour of one pixel, linear light."""
    row, column = wp.tid()
    high = float(picture.shape[0])
    eye = wp.vec3(EYE[0], EYE[1], EYE[2])
    forward = wp.normalize(wp.vec3(LOOK_AT[0], LOOK_AT[1], LOOK_AT[2]) - eye)
    right = wp.normalize(wp.cross(forward, wp.vec3(0.0, 1.0, 0.0)))
    up = wp.cross(right, forward)
    x = (float(column) + 0.5 - 0.5 * float(picture.shape[1])) / high
    y = (0.5 * high - float(row) - 0.5) / high
    direction = wp.normalize(forward + 0.8 * (x * right + y * up))
    strength = wp.length(scene.light[0])
    towards = scene.light[0] / strength

    behind = wp.lerp(wp.vec3(0.50, 0.55, 0.62), wp.vec3(0.16, 0.24, 0.38), wp.smoothstep(-0.1, 0.5, direction[1]))
    if direction[1] < -0.02:
        p = eye - eye[1] / direction[1] * direction
        reach = wp.max(towards[1], 0.0) * lit(scene, p, towards)
        square = (int(wp.floor(1.5 * p[0])) + int(wp.floor(1.5 * p[2]))) % 2
        tile = wp.where(square == 0, 0.5, 0.36) * wp.vec3(1.0, 0.97, 0.92)
        ground = (0.25 + strength * reach) * tile
        behind = wp.lerp(ground, behind, wp.smoothstep(4.0, 12.0, wp.length(p - eye)))

    nearest, at = nearest_on_ray(scene, eye, direction)
    p = eye + at * direction
    normal, colour = surface(scene, p)
    facing = wp.max(wp.dot(normal, towards), 0.0) * lit(scene, p + 0.03 * normal, towards)
    around = 0.18 + 0.14 * normal[1]
    half_way = wp.normalize(towards - direction)
    shine = 0.35 * strength * wp.pow(wp.max(wp.dot(normal, half_way), 0.0) + 1.0e-6, 40.0)
    ball = (around + strength * facing) * colour + shine * wp.vec3(1.0, 1.0, 1.0)
    over = wp.max(nearest - NEAR, 0.0) / OUTLINE
    picture[row, column] = wp.lerp(behind, ball, wp.exp(-over * over))


@wp.kernel
def compare(picture: wp.array2d[wp.vec3], target: wp.array2d[wp.vec3], loss: wp.array[float]):
    """Mean squared difference."""
    row, column = wp.tid()
    share = 1.0 / float(target.shape[0] * target.shape[1])
    wp.atomic_add(loss, 0, share * wp.length_sq(picture[row, column] - target[row, column]))


BALLS = 5
# rows: x, y, z, radius, red, green, blue; then the light
TRUTH = np.array(
    [
        (-1.05, 0.50, 0.10, 0.50, 0.80, 0.12, 0.08),
        (-0.30, 0.42, 0.75, 0.38, 0.95, 0.60, 0.08),
        (0.20, 0.75, -0.45, 0.70, 0.07, 0.30, 0.65),
        (0.85, 0.36, 0.55, 0.34, 0.12, 0.55, 0.20),
        (1.35, 0.48, -0.30, 0.44, 0.55, 0.15, 0.55),
    ]
)
LIGHT = np.array([-0.75, 1.0, 0.45])


def truth() -> np.ndarray:
    """The numbers of the target: centres, radii, colours, light."""
    return np.concatenate([TRUTH[:, :3].ravel(), TRUTH[:, 3], TRUTH[:, 4:].ravel(), LIGHT])


def first_guess() -> np.ndarray:
    """Grey balls of one size in two rows, and light from the other side."""
    back = np.arange(BALLS) % 2 == 0
    centres = np.stack([np.linspace(-1.3, 1.3, BALLS), np.full(BALLS, 0.45), np.where(back, -0.2, 0.5)], axis=1)
    return np.concatenate([centres.ravel(), np.full(BALLS, 0.35), np.full(3 * BALLS, 0.4), (0.5, 0.9, 0.5)])


def rates() -> np.ndarray:
    """First steps of the descent, for each number."""
    return np.repeat([0.02, 0.01, 0.02, 0.02], [3 * BALLS, BALLS, 3 * BALLS, 3])


class Studio:
    """A scene, its picture and the target's."""

    def __init__(self, target: np.ndarray, high: int):
        shape = (high, high * 4 // 3)
        self.scene = Scene()
        self.scene.centres = wp.zeros(BALLS, dtype=wp.vec3, requires_grad=True)
        self.scene.radii = wp.zeros(BALLS, dtype=float, requires_grad=True)
        self.scene.colours = wp.zeros(BALLS, dtype=wp.vec3, requires_grad=True)
        self.scene.light = wp.zeros(1, dtype=wp.vec3, requires_grad=True)
        self.parts: list[wp.array] = [self.scene.centres, self.scene.radii, self.scene.colours, self.scene.light]
        self.picture = wp.zeros(shape, dtype=wp.vec3, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.target = wp.array(self.take(target, high), dtype=wp.vec3)

    def arrange(self, numbers: np.ndarray) -> None:
        begin = 0
        for part in self.parts:
            count = part.numpy().size
            part.assign(numbers[begin : begin + count].astype(np.float32).reshape(part.numpy().shape))
            begin += count

    def take(self, numbers: np.ndarray, high: int) -> np.ndarray:
        """A picture (high, 4/3 high, 3) of the scene that these numbers describe."""
        self.arrange(numbers)
        picture = wp.empty((high, high * 4 // 3), dtype=wp.vec3)
        wp.launch(render, dim=picture.shape, inputs=[self.scene], outputs=[picture])
        return picture.numpy()

    def gradient(self, numbers: np.ndarray) -> tuple[float, np.ndarray]:
        """Mean squared difference from the target, and its gradient by all numbers of the scene."""
        self.arrange(numbers)
        with wp.Tape() as tape:
            self.loss.zero_()
            wp.launch(render, dim=self.picture.shape, inputs=[self.scene], outputs=[self.picture])
            wp.launch(compare, dim=self.picture.shape, inputs=[self.picture, self.target], outputs=[self.loss])
        tape.backward(self.loss)
        slope = np.concatenate([part.grad.numpy().ravel() for part in self.parts]).astype(np.float64)
        tape.zero()
        return float(self.loss.numpy()[0]), slope


def main() -> None:
    options = _show.arguments(__doc__, high=72, iterations=250, pixels=240)
    plt = _descent.pyplot()
    studio = Studio(truth(), options.high)
    frames = []

    def gradient(numbers: np.ndarray) -> tuple[float, np.ndarray]:
        frames.append(_show.to_bytes(studio.take(numbers, options.pixels)) if len(frames) % 4 == 0 else None)
        return studio.gradient(numbers)

    start = time.perf_counter()
    found, losses = _descent.descend(gradient, first_guess(), options.iterations, rates(), "still life")
    seconds = time.perf_counter() - start
    wrong = np.abs(found - truth())
    print(f"{options.iterations} gradients of {options.high} × {options.high * 4 // 3} pixels: {seconds:.1f} s")
    print(f"mean squared difference {losses[0]:.4f} -> {min(losses):.1e}")
    print(
        f"the balls' centres are found to {wrong[: 3 * BALLS].max():.3f}, their radii to "
        f"{wrong[3 * BALLS : 4 * BALLS].max():.3f}, their colours to {wrong[4 * BALLS : 7 * BALLS].max():.3f}"
    )

    figure, axes = plt.subplots(1, 4, figsize=(21, 4.4), width_ratios=(1, 1, 1, 0.85), layout="constrained")
    pictures = {"first guess": first_guess(), f"after {options.iterations} gradients": found, "target": truth()}
    for axis, (title, numbers) in zip(axes, pictures.items(), strict=False):
        _descent.show(axis, _show.to_bytes(studio.take(numbers, 3 * options.pixels)), title)
    _descent.show_losses(axes[3], losses, "mean squared difference")
    _descent.save(options.out / "still_life.png", figure)
    shown = [frame for frame in frames if frame is not None]
    _show.save_gif(options.out / "still_life.gif", [*shown, *shown[-1:] * 15], frame_ms=60)


if __name__ == "__main__":
    main()
