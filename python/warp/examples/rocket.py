"""Rockets learn to land: thrust and steering over time, found by gradients through the whole flight.

    python -m warp.examples.rocket

Each thread flies one rocket from a start of its own, in a loop of a few hundred steps: thrust along its axis, an engine
that swivels, drag and gravity. The controls are numbers at a few times, with straight lines between them. The loss of a
flight is how far from upright and at rest on the pad it ends, and a little for fuel and for hitting the ground before;
its gradient comes back through the loop to every control of every rocket at once, one launch for all.

Units: metres, seconds, radians.
"""

from __future__ import annotations

import time

import numpy as np

import warp as wp
from warp.examples import _descent, _show

GRAVITY = 9.81
STRONGEST = 22.0  # acceleration at full thrust
SWIVEL = 0.3  # greatest angle of the engine
ARM = 4.0  # from the engine to the centre of mass
GYRATION = 9.0  # moment of inertia over mass
DRAG = 0.012  # of the air, per metre
SPIN_DRAG = 0.15  # per second
SECONDS = 12.0  # of a flight


@wp.struct
class Rocket:
    """Place and angle of the axis from upright, with their velocities."""

    x: float
    y: float
    angle: float
    vx: float
    vy: float
    spin: float


@wp.func
def control(controls: wp.array2d[wp.vec2], rocket: int, at: float):
    """Thrust (0 to 1) and steering (-1 to 1) at a time between 0 and 1."""
    last = controls.shape[1] - 1
    place = at * float(last)
    k = wp.min(int(place), last - 1)
    between = wp.lerp(controls[rocket, k], controls[rocket, k + 1], place - float(k))
    # Descent works on unbounded numbers; these functions map them to the engine's range.
    return 1.0 / (1.0 + wp.exp(-between[0])), wp.tanh(between[1])


@wp.func
def fly(r: Rocket, thrust: float, steering: float, dt: float) -> Rocket:
    """One step: velocities first, then places."""
    push = STRONGEST * thrust
    direction = r.angle + SWIVEL * steering
    speed = wp.sqrt(r.vx * r.vx + r.vy * r.vy + 1.0e-6)
    after = Rocket()
    after.vx = r.vx + dt * (push * wp.sin(direction) - DRAG * speed * r.vx)
    after.vy = r.vy + dt * (push * wp.cos(direction) - DRAG * speed * r.vy - GRAVITY)
    after.spin = r.spin - dt * (push * wp.sin(SWIVEL * steering) * ARM / GYRATION + SPIN_DRAG * r.spin)
    after.x = r.x + dt * after.vx
    after.y = r.y + dt * after.vy
    after.angle = r.angle + dt * after.spin
    return after


@wp.kernel
def flights(
    dt: float,
    steps: int,
    start: wp.array[Rocket],
    controls: wp.array2d[wp.vec2],
    path: wp.array2d[Rocket],
    losses: wp.array[float],
):
    """Flies each rocket; `path` records its states, unless it is empty."""
    i = wp.tid()
    r = start[i]
    fuel = float(0.0)
    below = float(0.0)
    for step in range(steps):
        thrust, steering = control(controls, i, float(step) / float(steps))
        r = fly(r, thrust, steering, dt)
        fuel += dt * thrust
        if r.y < 0.0:
            below += dt * r.y * r.y
        if path.shape[0] > 0:
            path[i, step] = r
    away = r.x * r.x + r.y * r.y
    fast = r.vx * r.vx + r.vy * r.vy
    tilted = r.angle * r.angle + r.spin * r.spin
    losses[i] = away + 2.0 * fast + 200.0 * tilted + 4.0 * below + 0.02 * fuel


@wp.kernel
def add_up(losses: wp.array[float], total: wp.array[float]):
    i = wp.tid()
    wp.atomic_add(total, 0, losses[i] / float(losses.shape[0]))


class Squadron:
    """`count` rockets with starts all over the sky, and `knots` pairs of controls for each."""

    def __init__(self, count: int = 24, knots: int = 25, steps: int = 300):
        rng = np.random.default_rng(7)
        self.count, self.knots, self.steps, self.dt = count, knots, steps, SECONDS / steps
        self.start = wp.zeros(count, dtype=Rocket)
        fields = self.start.numpy()
        side = np.where(np.arange(count) % 2 == 0, -1.0, 1.0)
        fields["x"] = side * rng.uniform(40.0, 190.0, count)
        fields["y"] = rng.uniform(110.0, 210.0, count)
        fields["angle"] = rng.uniform(-1.2, 1.2, count)
        fields["vx"] = rng.uniform(-12.0, 12.0, count)
        fields["vy"] = rng.uniform(-18.0, 4.0, count)
        fields["spin"] = rng.uniform(-0.4, 0.4, count)
        self.start.assign(fields)
        self.controls = wp.zeros((count, knots), dtype=wp.vec2, requires_grad=True)
        self.losses = wp.zeros(count, dtype=float, requires_grad=True)
        self.total = wp.zeros(1, dtype=float, requires_grad=True)
        self.no_path = wp.empty((0, 0), dtype=Rocket)

    def first_guess(self) -> np.ndarray:
        """(count, knots, 2): thrust that carries a rocket's weight, straight on."""
        hover = GRAVITY / STRONGEST
        return np.full((self.count, self.knots, 2), (np.log(hover / (1.0 - hover)), 0.0))

    def gradient(self, controls: np.ndarray) -> tuple[float, np.ndarray]:
        """Mean loss of the flights, and its gradient by all controls."""
        self.controls.assign(controls.astype(np.float32))
        with wp.Tape() as tape:
            self.total.zero_()
            inputs = [self.dt, self.steps, self.start, self.controls, self.no_path]
            wp.launch(flights, dim=self.count, inputs=inputs, outputs=[self.losses])
            wp.launch(add_up, dim=self.count, inputs=[self.losses], outputs=[self.total])
        tape.backward(self.total)
        result = float(self.total.numpy()[0]), self.controls.grad.numpy().astype(np.float64)
        tape.zero()
        return result

    def paths(self, controls: np.ndarray) -> np.ndarray:
        """The state of each rocket after each step, a structured array (count, steps)."""
        self.controls.assign(controls.astype(np.float32))
        path = wp.empty((self.count, self.steps), dtype=Rocket)
        inputs = [self.dt, self.steps, self.start, self.controls, path]
        wp.launch(flights, dim=self.count, inputs=inputs, outputs=[self.losses])
        return path.numpy()


def landing(paths: np.ndarray) -> tuple[float, float, float]:
    """Greatest distance from the pad, speed, and angle in degrees at the end, of all rockets."""
    end = paths[:, -1]
    return (
        float(np.hypot(end["x"], end["y"]).max()),
        float(np.hypot(end["vx"], end["vy"]).max()),
        float(np.degrees(np.abs(end["angle"]).max())),
    )


def draw_flights(plt, axis, paths: np.ndarray, title: str) -> None:
    """Stacks that brighten with time, and rockets along them."""
    from matplotlib.collections import LineCollection

    colours = plt.get_cmap("turbo")(np.linspace(0.08, 0.92, len(paths)))
    size = 1.7  # drawn larger than they are
    body = size * np.array([(-0.9, -ARM), (-0.9, 3.0), (0.0, 5.0), (0.9, 3.0), (0.9, -ARM)])
    for path, colour in zip(paths, colours):
        points = np.stack([path["x"], path["y"]], 1)
        fade = np.tile(colour, (len(points) - 1, 1))
        fade[:, 3] = np.linspace(0.08, 0.9, len(fade))
        axis.add_collection(LineCollection(np.stack([points[:-1], points[1:]], 1), colors=fade, linewidths=1.4))
        for step in (*range(0, len(path) - 1, max(1, len(path) // 4)), len(path) - 1):
            s, c = np.sin(path["angle"][step]), np.cos(path["angle"][step])
            turned = body @ np.array([[c, -s], [s, c]]) + points[step]
            axis.fill(*turned.T, color=colour, alpha=0.35 + 0.65 * step / len(path), linewidth=0)
    ground = -size * ARM
    axis.axhspan(-40.0, ground, color="#2a2f38", zorder=0)
    axis.plot([-16.0, 16.0], [ground, ground], color="#ffb454", linewidth=4, solid_capstyle="butt")
    axis.set(xlim=(-215, 215), ylim=(-25, 245), aspect="equal", xlabel="m", title=title)


def main() -> None:
    options = _show.arguments(__doc__, rockets=24, knots=25, steps=300, iterations=3000)
    plt = _descent.pyplot()
    squadron = Squadron(options.rockets, options.knots, options.steps)
    guess = squadron.first_guess()
    before = squadron.paths(guess).copy()
    start = time.perf_counter()
    controls, losses = _descent.descend(squadron.gradient, guess, options.iterations, 0.05, "rockets")
    seconds = time.perf_counter() - start
    after = squadron.paths(controls)
    away, speed, tilt = landing(after)
    print(f"loss {losses[0]:.0f} -> {min(losses):.3f} in {options.iterations} gradients, {seconds:.1f} s")
    print(
        f"all {options.rockets} rockets end within {away:.2f} m of the pad, at most {speed:.2f} m/s, {tilt:.1f}° tilted"
    )

    figure, axes = plt.subplots(1, 3, figsize=(19, 5.4), width_ratios=(1.6, 1.6, 1.0), layout="constrained")
    draw_flights(plt, axes[0], before, "before: thrust that carries the weight")
    draw_flights(plt, axes[1], after, f"after {options.iterations} gradients")
    _descent.show_losses(axes[2], losses, "mean loss of a flight")
    _descent.save(options.out / "rocket.png", figure)


if __name__ == "__main__":
    main()
