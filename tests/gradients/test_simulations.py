"""Gradients of simulations of several steps: in place, in two buffers, in structs."""

import numpy as np
import pytest
import warp as wp
import warp.utils
from differences import check_program
from program_values import Real, output, uniform
from tapes import doubles


# ---- simulations ----
@wp.kernel
def fall(x: wp.array[wp.vec2d], v: wp.array[wp.vec2d], dt: Real):
    i = wp.tid()
    v[i] = v[i] + wp.vec2d(Real(0.0), Real(-9.8)) * dt
    if x[i][1] + v[i][1] * dt < Real(0.0):
        v[i] = wp.vec2d(v[i][0] * Real(0.9), Real(-0.6) * v[i][1])
    x[i] = x[i] + v[i] * dt


def test_a_rollout_in_place_with_a_bounce():
    def program(x, v):
        x, v = wp.clone(x, requires_grad=True), wp.clone(v, requires_grad=True)
        for _ in range(12):
            wp.launch(fall, dim=3, inputs=[x, v, 0.05])
        return x

    x = np.stack([uniform(3), uniform(3, low=0.2, high=0.6)], axis=1)
    check_program(program, [x, uniform(3, 2)], dtypes={0: wp.vec2d, 1: wp.vec2d})


@wp.kernel
def spring_forces(
    x: wp.array[wp.vec3d],
    pairs: wp.array2d[int],
    rest: wp.array[Real],
    stiffness: wp.array[Real],
    f: wp.array[wp.vec3d],
):
    s = wp.tid()
    i, j = pairs[s, 0], pairs[s, 1]
    d = x[j] - x[i]
    pull = d / wp.length(d) * (stiffness[0] * (wp.length(d) - rest[s]))
    wp.atomic_add(f, i, pull)
    wp.atomic_sub(f, j, pull)


@wp.kernel
def move(x: wp.array[wp.vec3d], v: wp.array[wp.vec3d], f: wp.array[wp.vec3d], dt: Real):
    i = wp.tid()
    v[i] = (v[i] + f[i] * dt) * Real(0.98)
    x[i] = x[i] + v[i] * dt
    f[i] = wp.vec3d()


def test_springs_whose_forces_are_summed_in_a_scratch_array_and_cleared_by_a_kernel():
    pairs = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]], dtype=np.int32)

    def program(x, pairs, rest, stiffness):
        x = wp.clone(x, requires_grad=True)
        v, f = wp.zeros_like(x, requires_grad=True), wp.zeros_like(x, requires_grad=True)
        for _ in range(6):
            wp.launch(spring_forces, dim=5, inputs=[x, pairs, rest, stiffness, f])
            wp.launch(move, dim=4, inputs=[x, v, f, 0.1])
        return x

    values = [uniform(4, 3), pairs, uniform(5, low=0.5), np.array([2.0])]
    check_program(program, values, dtypes={0: wp.vec3d}, rtol=1e-5)


def test_forces_that_the_host_clears_between_steps():
    pairs = np.array([[0, 1], [1, 2]], dtype=np.int32)

    def program(x, pairs, rest):
        x, f = wp.clone(x, requires_grad=True), output(3, wp.vec3d)
        v, stiffness = wp.zeros_like(x, requires_grad=True), doubles([3.0])
        for _ in range(4):
            f.zero_()
            wp.launch(spring_forces, dim=2, inputs=[x, pairs, rest, stiffness, f])
            wp.launch(move, dim=3, inputs=[x, v, f, 0.1])
        return x

    check_program(program, [uniform(3, 3), pairs, uniform(2, low=0.5)], dtypes={0: wp.vec3d}, rtol=1e-5)


@wp.kernel
def diffuse(u: wp.array2d[Real], w: wp.array2d[Real], rate: wp.array[Real]):
    i, j = wp.tid()
    n, m = u.shape[0], u.shape[1]
    sides = u[(i + 1) % n, j] + u[(i + n - 1) % n, j] + u[i, (j + 1) % m] + u[i, (j + m - 1) % m]
    w[i, j] = u[i, j] + rate[0] * (sides - Real(4.0) * u[i, j]) + Real(0.1) * u[i, j] * u[i, j]


@pytest.mark.parametrize("steps", [1, 4, 5])
def test_two_buffers_that_change_places(steps):
    def program(start, rate):
        a, b = wp.clone(start, requires_grad=True), wp.zeros_like(start, requires_grad=True)
        for _ in range(steps):
            wp.launch(diffuse, dim=a.shape, inputs=[a, b, rate])
            a, b = b, a
        return a

    check_program(program, [uniform(4, 5), np.array([0.15])])


@wp.struct
class State:
    x: wp.array[Real]
    v: wp.array[Real]


@wp.kernel
def swing(before: State, after: State, length: wp.array[Real]):
    i = wp.tid()
    a = -wp.sin(before.x[i]) / length[i]
    after.v[i] = before.v[i] + Real(0.1) * a
    after.x[i] = before.x[i] + Real(0.1) * after.v[i]


def test_structs_of_arrays_that_change_places():
    def program(x, v, length):
        states = [State(), State()]
        states[0].x, states[0].v = wp.clone(x, requires_grad=True), wp.clone(v, requires_grad=True)
        states[1].x, states[1].v = wp.zeros_like(x, requires_grad=True), wp.zeros_like(v, requires_grad=True)
        for _ in range(7):
            wp.launch(swing, dim=3, inputs=[*states, length])
            states.reverse()
        return states[0].x

    check_program(program, [uniform(3), uniform(3), uniform(3, low=0.5, high=1.5)])


@wp.struct
class Particle:
    x: wp.vec2d
    v: wp.vec2d
    mass: Real
    kind: int


@wp.kernel
def load_particles(x: wp.array[wp.vec2d], m: wp.array[Real], p: wp.array[Particle]):
    i = wp.tid()
    p[i].x = x[i]
    p[i].v = wp.vec2d(x[i][1], -x[i][0])
    p[i].mass = m[i]
    p[i].kind = i % 2


@wp.kernel
def push(p: wp.array[Particle], dt: Real):
    i = wp.tid()
    q = p[i]
    if q.kind == 1:
        q.v *= Real(0.5)
    q.v.x -= q.x.x / q.mass * dt
    q.x += q.v * dt
    q.mass *= Real(1.0) - dt
    p[i] = q


@wp.kernel
def unload(p: wp.array[Particle], y: wp.array[wp.vec2d]):
    i = wp.tid()
    y[i] = p[i].x * p[i].mass


def test_an_array_of_structs_that_steps_in_place():
    def program(x, m):
        p, y = output(4, Particle), output(4, wp.vec2d)
        wp.launch(load_particles, dim=4, inputs=[x, m, p])
        for _ in range(5):
            wp.launch(push, dim=4, inputs=[p, 0.1])
        wp.launch(unload, dim=4, inputs=[p, y])
        return y

    check_program(program, [uniform(4, 2), uniform(4, low=0.5, high=2.0)], dtypes={0: wp.vec2d})
