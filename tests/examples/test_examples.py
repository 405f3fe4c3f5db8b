"""The examples' physics, on small grids, and that each runs from the command line and writes its pictures."""

import subprocess
import sys

import numpy as np
import pytest
import warp as wp
from warp.examples import gray_scott, karman, lagoon, mandelbrot, nbody
from warp.examples.__main__ import examples

pytestmark = pytest.mark.own_launches("its numbers keep threads apart")

RUNS = {
    "lagoon": (["--size", "128", "--pixels", "64", "--frames", "3", "--steps", "5"], ["lagoon.png", "lagoon.gif"]),
    "mandelbrot": (["--size", "64"], ["mandelbrot.png"]),
    "gray_scott": (["--size", "64", "--steps", "20"], ["gray_scott.png"]),
    "nbody": (["--stars", "64", "--steps", "7", "--pixels", "32"], ["nbody.png", "nbody.gif"]),
    "isosurface": (
        ["--size", "24", "--before", "5", "--frames", "2", "--steps", "5", "--pixels", "48"],
        ["isosurface.png", "isosurface_curvature.png", "isosurface.gif"],
    ),
    "cloth": (
        ["--cloths", "1", "--across", "12", "--frames", "2", "--substeps", "4", "--pixels", "48"],
        ["cloth.png", "cloth.gif"],
    ),
    "rigid": (
        ["--rings", "2", "--around", "6", "--frames", "2", "--substeps", "2", "--pixels", "48"],
        ["rigid.png", "rigid.gif"],
    ),
    "shape_wave": (
        ["--size", "32", "--steps", "8", "--iterations", "3"],
        ["shape_wave.png", "shape_wave.gif"],
    ),
    "throw": (
        ["--subdivisions", "1", "--steps", "300", "--iterations", "2", "--pixels", "48"],
        ["throw.png", "throw.gif"],
    ),
    "still_life": (["--high", "12", "--iterations", "5", "--pixels", "24"], ["still_life.png", "still_life.gif"]),
    "rocket": (["--rockets", "4", "--iterations", "5"], ["rocket.png"]),
    "mountain_lake": (["--size", "64", "--pixels", "32", "--samples", "1"], ["mountain_lake.png"]),
    "dam_break": (
        ["--particles", "300", "--seconds", "0.05", "--frames", "2", "--pixels", "48"],
        ["dam_break.png", "dam_break.gif"],
    ),
    "puzzle_ball": (["--size", "32", "--pixels", "32", "--samples", "1"], ["puzzle_ball.png"]),
    "sculpt": (
        ["--subdivisions", "2", "--samples", "300", "--iterations", "4", "--pixels", "48"],
        ["sculpt.png", "sculpt.gif"],
    ),
    "karman": (["--rows", "32", "--columns", "96", "--steps", "240"], ["karman.png", "karman.gif"]),
}


def test_every_example_has_a_run():
    assert RUNS.keys() == examples().keys()


@pytest.mark.parametrize("name", RUNS)
def test_example_writes_its_pictures(name, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="the examples write pictures with Pillow")
    options, files = RUNS[name]
    command = [sys.executable, "-m", f"warp.examples.{name}", "--out", str(tmp_path), *options]
    done = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True)
    assert "Warning" not in done.stdout + done.stderr
    for file in files:
        with image.open(tmp_path / file) as picture:
            pixels = np.asarray(picture.convert("RGB"))
        assert pixels.std() > 1.0, f"{file} is blank"


# ---- lagoon ----


def test_still_water_stays_still_and_level():
    water = lagoon.Lagoon(96)
    before = water.depth.numpy().copy()
    for _ in range(20):
        water.step()
        water.time = 0.0  # the paddle rests
    np.testing.assert_allclose(water.depth.numpy(), before, atol=2e-5)
    assert abs(water.u.numpy()).max() < 2e-4 and abs(water.v.numpy()).max() < 2e-4


def test_water_is_neither_made_nor_lost():
    water = lagoon.Lagoon(96)
    depth = water.depth.numpy()
    i, j = np.mgrid[0:96, 0:96]
    depth += np.where(depth > 1.0, 0.8 * np.exp(-((i - 48.0) ** 2 + (j - 20.0) ** 2) / 30.0), 0.0).astype(np.float32)
    water.depth.assign(depth)
    before = depth.astype(np.float64).sum()
    for _ in range(60):
        water.step()
        water.time = 0.0
    after = water.depth.numpy().astype(np.float64)
    assert after.min() >= 0.0
    assert abs(after.sum() / before - 1.0) < 2e-5
    assert abs(water.u.numpy()).max() > 0.01  # the hump has become waves


@pytest.mark.minutes_on_cuda
def test_a_wave_runs_at_the_speed_of_shallow_water():
    water = lagoon.Lagoon(256)
    flat = np.full((256, 256), 10.0, dtype=np.float32)
    water.floor.assign(-flat)
    hump = 0.05 * np.exp(-((np.arange(256) - 100.0) ** 2) / 50.0)
    water.depth.assign((flat + hump[None, :]).astype(np.float32))
    seconds = 0.0
    while seconds < 8.0:
        water.step()
        water.time = 0.0
        seconds += water.dt
    surface = water.depth.numpy()[128] - 10.0
    crest = 100 + np.argmax(surface[100:])
    expected = 100 + seconds * np.sqrt(lagoon.GRAVITY * 10.0)
    assert abs(crest - expected) < 3.0  # cells of one metre


# ---- mandelbrot ----


def test_escape_times_agree_with_numpy():
    size, limit, width, centre = 48, 60, 3.0, (-0.5, 0.0)
    counts = wp.empty((size, size), dtype=float)
    wp.launch(mandelbrot.escape_time, dim=(size, size), inputs=[centre, width, limit], outputs=[counts])
    column, row = np.meshgrid(np.arange(size), np.arange(size))
    c = (centre[0] + width * (column / size - 0.5)) + 1j * (centre[1] + width * (row - 0.5 * size) / size)
    z, n = np.zeros_like(c), np.zeros(c.shape)
    for _ in range(limit):
        inside = abs(z) ** 2 <= 65536.0
        z = np.where(inside, z * z + c, z)
        n += inside
    with np.errstate(all="ignore"):
        smooth = np.where(n < limit, n + 1.0 - np.log2(0.5 * np.log2(abs(z) ** 2)), 0.0)
    close = np.isclose(counts.numpy(), smooth, rtol=1e-3, atol=1e-2)
    assert close.mean() > 0.98  # single against double precision differs at the boundary only
    assert ((counts.numpy() == 0.0) == (n == limit)).mean() > 0.99


# ---- gray_scott ----


def test_reaction_agrees_with_numpy():
    size, steps = 96, 12
    u, v = gray_scott.run(size, 0)
    a, b = u.numpy().astype(np.float64), v.numpy().astype(np.float64)
    assert b.max() > 0.2
    f = (gray_scott.FEED[1] + (gray_scott.FEED[0] - gray_scott.FEED[1]) * np.arange(size) / size)[:, None]
    offset = (gray_scott.KILL[0] + (gray_scott.KILL[1] - gray_scott.KILL[0]) * np.arange(size) / size)[None, :]
    k = 0.5 * np.sqrt(f) - f + offset

    def laplacian(x):
        return np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) + np.roll(x, -1, 1) - 4.0 * x

    for _ in range(steps):
        r = a * b * b
        a, b = a + 0.16 * laplacian(a) - r + f * (1.0 - a), b + 0.08 * laplacian(b) + r - (f + k) * b
    u, v = gray_scott.run(size, steps)
    np.testing.assert_allclose(u.numpy(), a, atol=2e-6)
    np.testing.assert_allclose(v.numpy(), b, atol=2e-6)


# ---- nbody ----


def test_attraction_agrees_with_numpy():
    galaxies = nbody.Galaxies(150)
    x, mass = galaxies.x.numpy().astype(np.float64), galaxies.mass.numpy().astype(np.float64)
    d = x[None] - x[:, None]
    r2 = (d**2).sum(axis=2) + nbody.SOFTENING**2
    expected = (d * (mass / r2**1.5)[..., None]).sum(axis=1)
    np.testing.assert_allclose(galaxies.a.numpy(), expected, rtol=2e-4, atol=2e-5)


def test_energy_and_momentum_are_kept():
    galaxies = nbody.Galaxies(400)
    energy, mass = galaxies.energy(), galaxies.mass.numpy()[:, None].astype(np.float64)
    momentum = (mass * galaxies.v.numpy()).sum(axis=0)
    for _ in range(100):
        galaxies.step(0.004)
    assert abs(galaxies.energy() / energy - 1.0) < 2e-3
    np.testing.assert_allclose((mass * galaxies.v.numpy()).sum(axis=0), momentum, atol=2e-5)


# ---- karman ----


def test_streaming_and_collision_agree_with_numpy():
    street = karman.Street(32, 96)
    f = street.f.numpy().astype(np.float64)
    solid = street.solid.numpy().astype(bool)
    dx, dy, opposite = (np.array(list(v)) for v in (karman.DX, karman.DY, karman.OPPOSITE))
    weight = np.array(list(karman.WEIGHT))

    def equilibrium(rho, ux, uy):
        along = dx[:, None, None] * ux + dy[:, None, None] * uy
        return weight[:, None, None] * rho * (1 + 3 * along + 4.5 * along**2 - 1.5 * (ux**2 + uy**2))

    rows, columns = np.mgrid[0:32, 0:96]
    for _ in range(15):
        street.step()
        g = np.empty_like(f)
        for k in range(9):
            i, j = (rows - dy[k]) % 32, np.clip(columns - dx[k], 0, 95)
            g[k] = np.where(solid[i, j], f[opposite[k]], f[k][i, j])
        rho = g.sum(axis=0)
        ux, uy = (g * dx[:, None, None]).sum(axis=0) / rho, (g * dy[:, None, None]).sum(axis=0) / rho
        rho[:, 0], ux[:, 0], uy[:, 0] = 1.0, karman.SPEED, 0.0
        g[:, :, 0] = equilibrium(rho, ux, uy)[:, :, 0]
        f = g + street.omega * (equilibrium(rho, ux, uy) - g)
    np.testing.assert_allclose(street.f.numpy(), f, atol=2e-6)
