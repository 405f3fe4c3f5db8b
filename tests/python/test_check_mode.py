"""wp.config.mode = "check": launches on the CPU raise where their threads race on the emulated device."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import warp as wp


@wp.struct
class Bodies:
    x: wp.array[float]
    v: wp.array[float]


@wp.kernel
def shifts(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[(i + 1) % x.shape[0]] + 1.0


@wp.kernel
def adds(index: wp.array[int], bodies: Bodies):
    i = wp.tid()
    bodies.v[index[i]] = bodies.v[index[i]] + bodies.x[i]


@wp.kernel
def moves(dt: float, bodies: Bodies, total: wp.array[float]):
    i = wp.tid()
    bodies.x[i] += dt * bodies.v[i]
    wp.atomic_add(total, 0, bodies.x[i])


@wp.kernel
def meshes(mesh: wp.uint64, x: wp.array[float]):
    x[wp.tid()] = wp.mesh_get_point(mesh, 0)[0]


@wp.kernel
def outside(x: wp.array[float]):
    x[x.shape[0]] = 1.0


def outcome(kernel, dim, inputs):
    try:
        wp.launch(kernel, dim, inputs=inputs)
    except Exception as error:
        print(type(error).__name__, isinstance(error, wp.UsageError), " ".join(str(error).split())[:400])


wp.set_device("cpu")
wp.config.mode = "check"
x = wp.array(np.arange(40.0), dtype=float)
outcome(shifts, 40, [x])
print(x.numpy()[:3])
bodies = Bodies()
bodies.x, bodies.v = wp.ones(40), wp.full(40, 2.0, dtype=float)
outcome(adds, 40, [wp.zeros(40, dtype=int), bodies])
total = wp.zeros(1)
outcome(moves, 40, [0.5, bodies, total])
print(bodies.x.numpy()[:2], total.numpy())
outcome(shifts, 1, [bodies.x[::2]])
outcome(outside, 1, [x])
tape = wp.Tape()
y = wp.ones(3, requires_grad=True)
loss = wp.zeros(1, requires_grad=True)


@wp.kernel
def squares(y: wp.array[float], loss: wp.array[float]):
    i = wp.tid()
    wp.atomic_add(loss, 0, y[i] * y[i])


with tape:
    outcome(squares, 3, [y, loss])
tape.backward(loss)
print(y.grad.numpy())
mesh = wp.Mesh(wp.zeros(3, dtype=wp.vec3), wp.array([0, 1, 2], dtype=int))
for _ in range(2):
    outcome(meshes, 2, [mesh.id, x])
print(x.numpy()[:3])
outcome(shifts, 1, [np.zeros(3, np.float32)])
wp.config.mode = "release"
outcome(shifts, 1, [x])
print(x.numpy()[:3])
"""


def run(tmp_path, driver, text=PROGRAM):
    (tmp_path / "program.py").write_text(text)
    environment = {**os.environ, "WARP_CUDA_DRIVER": driver, "WARP_CACHE_PATH": str(tmp_path / "cache")}
    return subprocess.run(
        [sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, timeout=300, env=environment
    )


def test_races_are_exceptions_with_their_line(tmp_path):
    done = run(tmp_path, "emulated")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("UsageError True launch(): kernel 'shifts': race")
    line = PROGRAM.splitlines().index("    x[i] = x[(i + 1) % x.shape[0]] + 1.0") + 1
    assert f"program.py:{line}" in lines[0]
    assert lines[1] == "[0. 1. 2.]", "the launch did not take place"
    assert "kernel 'adds': race" in lines[2]
    assert lines[3] == "[2. 2.] [80.]"
    assert "IndexError" in lines[4] or "out of bounds" in lines[4]
    assert lines[5] == "[2. 2. 2.]"
    assert lines[6:] == ["[0. 0. 2.]", "[1. 0. 2.]"]
    assert "kernel 'shifts' is not checked" in done.stderr and "an argument is a ndarray" in done.stderr
    assert done.stderr.count("kernel 'meshes' is not checked, since the emulated device does not take it") == 1


def test_it_needs_the_emulated_device(tmp_path):
    done = run(tmp_path, "none")
    assert 'config.mode: "check" runs launches on the emulated CUDA device' in done.stdout
    assert "WARP_CUDA_DRIVER=emulated" in done.stdout


@pytest.mark.parametrize("mode", ["check", "debug", "release"])
def test_the_mode_can_be_set(mode, monkeypatch):
    import warp as wp

    monkeypatch.setattr(wp.config, "mode", mode)
    assert wp.config.mode == mode
