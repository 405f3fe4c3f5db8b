"""The examples that follow gradients: slopes are those of central differences, and descent reaches its aim."""

import numpy as np
import pytest
import warp as wp
from scipy.ndimage import minimum_filter
from warp.examples import _descent, lagoon, rocket, shape_wave, still_life, throw

pytestmark = pytest.mark.own_launches("its numbers keep threads apart")


def slope_along(loss, at, direction, step):
    """The slope of a loss along a direction, by central differences of the fourth order."""
    values = [loss(at + n * step * direction) for n in (-2, -1, 1, 2)]
    return (values[0] - 8.0 * values[1] + 8.0 * values[2] - values[3]) / (12.0 * step)


def test_descent_finds_the_bottom_of_a_bowl_and_returns_the_best():
    def bowl(x):
        return float(((x - 3.0) ** 2).sum()), 2.0 * (x - 3.0)

    found, losses = _descent.descend(bowl, np.array([[0.0, 5.0]]), 200, 0.2, "bowl")
    np.testing.assert_allclose(found, 3.0, atol=0.02)
    assert losses[0] == 13.0 and len(losses) == 200
    assert bowl(found)[0] == min(losses)


# ---- shape_wave ----


@pytest.fixture(scope="module")
def splash():
    return shape_wave.Splash(shape_wave.word("W", 32), 12)


def test_the_slope_of_the_splash_through_all_steps_of_the_lagoon(splash):
    rng = np.random.default_rng(5)
    at = 0.05 * rng.standard_normal(splash.shape)
    _, gradient = splash.gradient(at)
    # the splash is softened over two cells each way, and poured into deep water
    deepest_near = minimum_filter(splash.water.floor.numpy(), 5)
    assert (gradient[deepest_near >= -shape_wave.DEEP] == 0.0).all() and (gradient == 0.0).any()
    assert abs(gradient).max() > 0.01
    for _ in range(3):
        direction = rng.standard_normal(splash.shape)
        expected = slope_along(lambda x: splash.gradient(x)[0], at, direction, 2e-3)
        np.testing.assert_allclose((gradient * direction).sum(), expected, rtol=0.02)


def test_no_splash_is_the_lagoon_as_it_is(splash):
    splash.gradient(np.zeros(splash.shape))
    water = lagoon.Lagoon(splash.size)
    for _ in range(splash.steps):
        water.step()
    np.testing.assert_array_equal(splash.water.depth.numpy(), water.depth.numpy())


@pytest.mark.minutes_on_cuda
def test_descent_finds_a_splash_whose_waves_make_the_picture():
    splash = shape_wave.Splash(shape_wave.word("WE", 64), 30)
    _, losses = _descent.descend(splash.gradient, np.zeros(splash.shape), 40, 0.04, "splash")
    assert min(losses) < 0.15 * losses[0]


# ---- throw ----


def test_the_slope_of_a_throw_through_floor_and_wall():
    thrower = throw.Thrower(1, 600)

    def loss(how):
        thrower.missed(how)
        return float(thrower.loss.numpy()[0])

    at = throw.FIRST_GUESS
    _, gradient = thrower.gradient(at)
    path = thrower.x.numpy()
    assert path[..., 1].min() < -1e-3 and path[..., 0].max() > throw.WALL + 1e-3  # it touched both
    # the velocity across is smooth; up and down and along, a particle more or less touches
    across = np.array([(0.0, 0.0, 1.0), (0.0, 0.0, 0.0)])
    np.testing.assert_allclose(gradient[0, 2], slope_along(loss, at, across, 2e-3), rtol=0.05)


def test_the_slope_of_a_throw_in_the_air_is_that_of_a_parabola():
    thrower = throw.Thrower(1, 600)
    how = np.array([(1.0, 9.0, 0.5), (0.0, 0.0, 0.0)])  # high, and it lands after the end
    loss, gradient = thrower.gradient(how)
    fall = 0.5 * 9.81 * throw.SECONDS * (throw.SECONDS + thrower.dt)
    end = np.array(throw.START) + throw.SECONDS * how[0] - (0.0, fall, 0.0)
    np.testing.assert_allclose(loss, ((end - throw.RING) ** 2).sum(), rtol=1e-4)
    np.testing.assert_allclose(gradient[0], 2.0 * throw.SECONDS * (end - throw.RING), rtol=1e-3, atol=1e-3)


def test_the_ball_stays_whole_and_loses_energy_only():
    thrower = throw.Thrower()
    thrower.missed(np.array([(5.0, -1.7, -1.4), (0.0, 0.0, 0.0)]))
    x, v = thrower.x.numpy().astype(np.float64), thrower.v.numpy().astype(np.float64)
    radii = np.linalg.norm(x[-1, :-1] - x[-1].mean(axis=0), axis=1)
    assert abs(radii / throw.RADIUS - 1.0).max() < 0.2
    energy = (0.5 * (v**2).sum(axis=2) + 9.81 * x[..., 1]).mean(axis=1)
    assert energy[-1] < energy[0]


def test_the_sphere_of_the_ball_is_closed_and_round():
    points, triangles = throw.sphere(2)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1.0, rtol=1e-12)
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    assert {tuple(e) for e in edges} == {tuple(e) for e in edges[:, ::-1]} and len(set(map(tuple, edges))) == len(edges)
    a, b, c = (points[triangles[:, n]] for n in range(3))
    assert 0.9 < np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0 / (4.0 / 3.0 * np.pi) < 1.0


@pytest.mark.minutes_on_cuda
def test_the_throw_hits_the_ring():
    thrower = throw.Thrower(1, 600)
    assert thrower.missed(throw.FIRST_GUESS) > 1.5
    how, losses = _descent.descend(thrower.gradient, throw.FIRST_GUESS, 60, 0.12, "throws")
    assert thrower.missed(how) < 0.3
    assert min(losses) < 0.02 * losses[0]


# ---- still_life ----


@pytest.mark.parametrize(
    ("kind", "first", "end"), [("centres", 0, 15), ("radii", 15, 20), ("colours", 20, 35), ("light", 35, 38)]
)
def test_the_slope_of_pixels_by_balls_and_light(kind, first, end):
    studio = still_life.Studio(still_life.truth(), 36)
    rng = np.random.default_rng(3)
    at = still_life.truth() + 0.03 * rng.standard_normal(still_life.truth().size)
    direction = np.zeros(at.size)
    direction[first:end] = rng.standard_normal(end - first)

    # every pixel's slope by forward mode, unless a ray leaves one ball for another, or a march to the light takes a
    # step more, it is that of central differences
    towards = still_life.Studio(at, 36)
    towards.arrange(direction)
    studio.arrange(at)
    slopes = wp.zeros_like(studio.picture)
    forward = {"input_tangents": [towards.scene], "output_tangents": [slopes]}
    wp.jvp(still_life.render, dim=slopes.shape, inputs=[studio.scene], outputs=[studio.picture], **forward)
    slopes = slopes.numpy().astype(np.float64)
    expected = slope_along(lambda x: studio.take(x, 36).astype(np.float64), at, direction, 2e-4)
    close = np.abs(slopes - expected).max(axis=2) < 0.03 * (0.1 + np.abs(expected).max(axis=2))
    assert close.mean() > 0.95 and np.abs(slopes).max() > 0.1

    # the gradient that comes back is the transpose of that
    weights = rng.standard_normal(slopes.shape).astype(np.float32)
    studio.arrange(at)
    with wp.Tape() as tape:
        wp.launch(still_life.render, dim=studio.picture.shape, inputs=[studio.scene], outputs=[studio.picture])
    tape.backward(grads={studio.picture: wp.array(weights, dtype=wp.vec3)})
    gradient = np.concatenate([part.grad.numpy().ravel() for part in studio.parts])
    size = np.abs(weights * slopes).sum()
    assert abs((gradient * direction).sum() - (weights * slopes).sum()) < 1e-4 * size


def test_a_ball_is_where_the_camera_sees_it():
    alone = still_life.truth()
    alone[3 * still_life.BALLS : 4 * still_life.BALLS] = 0.01  # all but the blue one shrink to nothing
    alone[3 * still_life.BALLS + 2] = 0.7
    studio = still_life.Studio(alone, 48)
    with_ball = studio.take(alone, 48).copy()
    alone[3 * still_life.BALLS + 2] = 0.01
    changed = np.abs(with_ball - studio.take(alone, 48)).max(axis=2) > 0.1
    eye, aim = np.array(still_life.EYE), np.array(still_life.LOOK_AT)
    forward = (aim - eye) / np.linalg.norm(aim - eye)
    right = np.cross(forward, (0.0, 1.0, 0.0)) / np.linalg.norm(np.cross(forward, (0.0, 1.0, 0.0)))
    away = still_life.TRUTH[2, :3] - eye
    column = 32.0 + 48.0 * (away @ right) / (away @ forward) / 0.8
    row = 24.0 - 48.0 * (away @ np.cross(right, forward)) / (away @ forward) / 0.8
    assert changed[int(row), int(column)]
    assert not changed[int(row), int(column) + 13] and changed[int(row), int(column) + 6]


@pytest.mark.minutes_on_cuda
def test_balls_and_light_are_recovered_from_their_picture():
    studio = still_life.Studio(still_life.truth(), 48)
    near = still_life.truth() + np.random.default_rng(2).uniform(-0.06, 0.06, still_life.truth().size)
    found, losses = _descent.descend(studio.gradient, near, 120, 0.5 * still_life.rates(), "still life")
    assert min(losses) < 0.01 * losses[0]
    assert abs(found - still_life.truth()).max() < 0.03


@pytest.mark.minutes_on_cuda
def test_grey_balls_take_their_colours():
    studio = still_life.Studio(still_life.truth(), 48)
    _, losses = _descent.descend(studio.gradient, still_life.first_guess(), 100, still_life.rates(), "still life")
    assert min(losses) < 0.2 * losses[0]


# ---- rocket ----


def flight(start, controls, steps, dt):
    """One flight in NumPy, in double precision; where it ends, and its loss."""
    x, y, angle, vx, vy, spin = (float(start[name]) for name in ("x", "y", "angle", "vx", "vy", "spin"))
    fuel = below = 0.0
    for step in range(steps):
        place = step / steps * (len(controls) - 1)
        k = min(int(place), len(controls) - 2)
        between = controls[k] + (place - k) * (controls[k + 1] - controls[k])
        thrust, steering = 1.0 / (1.0 + np.exp(-between[0])), np.tanh(between[1])
        push, speed = rocket.STRONGEST * thrust, np.sqrt(vx * vx + vy * vy + 1e-6)
        swivel = rocket.SWIVEL * steering
        ax, ay = push * np.sin(angle + swivel) - rocket.DRAG * speed * vx, push * np.cos(angle + swivel)
        ay -= rocket.DRAG * speed * vy + rocket.GRAVITY
        turn = -push * np.sin(swivel) * rocket.ARM / rocket.GYRATION - rocket.SPIN_DRAG * spin
        vx, vy, spin = vx + dt * ax, vy + dt * ay, spin + dt * turn
        x, y, angle = x + dt * vx, y + dt * vy, angle + dt * spin
        fuel += dt * thrust
        below += dt * y * y if y < 0.0 else 0.0
    end = x * x + y * y + 2.0 * (vx * vx + vy * vy) + 200.0 * (angle**2 + spin**2)
    return (x, y), end + 4.0 * below + 0.02 * fuel


def test_flights_agree_with_numpy_and_so_do_their_slopes():
    squadron = rocket.Squadron(3, 9, 120)
    rng = np.random.default_rng(4)
    controls = squadron.first_guess() + 0.3 * rng.standard_normal((3, 9, 2))
    start = squadron.start.numpy()

    def loss(at):
        return np.mean([flight(start[n], at[n], 120, squadron.dt)[1] for n in range(3)])

    found, gradient = squadron.gradient(controls)
    np.testing.assert_allclose(found, loss(controls), rtol=1e-4)
    ends = squadron.paths(controls)[:, -1]
    expected = [flight(start[n], controls[n], 120, squadron.dt)[0] for n in range(3)]
    np.testing.assert_allclose(np.stack([ends["x"], ends["y"]], 1), expected, rtol=1e-4, atol=1e-2)
    for _ in range(4):
        direction = rng.standard_normal(controls.shape)
        expected = slope_along(loss, controls, direction, 1e-4)
        np.testing.assert_allclose((gradient * direction).sum(), expected, rtol=1e-3)


@pytest.mark.minutes_on_cuda
def test_all_rockets_land():
    squadron = rocket.Squadron(12, 25, 200)
    controls, losses = _descent.descend(squadron.gradient, squadron.first_guess(), 2500, 0.05, "rockets")
    away, speed, tilt = rocket.landing(squadron.paths(controls))
    assert away < 1.0 and speed < 1.0 and tilt < 2.0
    assert min(losses) < 1e-3 * losses[0]
