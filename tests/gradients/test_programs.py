"""A second set of programs as users write them: rollouts in place, scratch arrays, loops that break, structs, slices,
atomics, matrices. Each against central differences, by reverse mode, forward mode and second derivatives."""

import numpy as np
import warp as wp
import warp.utils
from differences import check_program
from program_values import Real, output, uniform
from tapes import doubles


# ---- loops that leave ----
@wp.kernel
def newton(a: wp.array[Real], y: wp.array[Real], most: int):
    i = wp.tid()
    x = a[i]
    for _ in range(most):
        step = (x * x * x + x - a[i]) / (Real(3.0) * x * x + Real(1.0))
        x = x - step
        if wp.abs(step) < Real(1e-13):
            break
    y[i] = x


def test_newton_steps_until_they_are_small():
    def program(a):
        y = output(5)
        wp.launch(newton, dim=5, inputs=[a, y, 50])
        return y

    check_program(program, [uniform(5, low=-3.0, high=3.0)], twice=False)


@wp.kernel
def march(origin: wp.array[wp.vec3d], radius: wp.array[Real], depth: wp.array[Real]):
    i = wp.tid()
    ray = wp.normalize(wp.vec3d(Real(0.1) * Real(i), Real(0.05), Real(1.0)))
    t = Real(0.0)
    for _ in range(200):
        p = origin[i] + ray * t
        d = wp.length(p) - radius[0]
        if d < Real(1e-4):
            depth[i] = t + d
            return
        t += Real(0.7) * d
        if t > Real(6.0):
            break
    depth[i] = Real(6.0) + Real(0.01) * wp.dot(origin[i], ray)


def test_rays_that_hit_return_early_and_others_break():
    def program(origin, radius):
        depth = output(6)
        wp.launch(march, dim=6, inputs=[origin, radius, depth])
        return depth

    origin = uniform(6, 3, low=-0.3, high=0.3) - [0.0, 0.0, 2.0]
    origin[4:] += [3.0, 0.0, 0.0]
    check_program(program, [origin, np.array([0.8])], dtypes={0: wp.vec3d}, rtol=1e-5, atol=1e-6)


@wp.kernel
def collatz(x: wp.array[Real], n: wp.array[int], y: wp.array[Real]):
    i = wp.tid()
    k = n[i]
    s = x[i]
    while k != 1:
        if k % 2 == 0:
            k = k / 2
            s = s * Real(0.9) + Real(0.01) * s * s
            continue
        k = 3 * k + 1
        inner = int(0)
        while True:
            s = wp.sin(s + x[i])
            inner += 1
            if inner >= k % 4:
                break
    y[i] = s


def test_loops_in_loops_with_continue_and_break():
    def program(x, n):
        y = output(5)
        wp.launch(collatz, dim=5, inputs=[x, n, y])
        return y

    check_program(program, [uniform(5), np.array([6, 7, 1, 9, 12], dtype=np.int32)])


@wp.kernel
def recurrent(x: wp.array2d[Real], w: wp.array2d[Real], y: wp.array[Real]):
    i = wp.tid()
    h = wp.zeros(shape=3, dtype=Real)
    fresh = wp.zeros(shape=3, dtype=Real)
    for t in range(x.shape[1]):
        for a in range(3):
            s = x[i, t] * w[3, a]
            for b in range(3):
                s += w[a, b] * h[b]
            fresh[a] = wp.tanh(s)
        for a in range(3):
            h[a] = fresh[a]
    y[i] = h[0] * h[1] + h[2]


def test_a_recurrent_network_with_arrays_of_its_own():
    def program(x, w):
        y = output(2)
        wp.launch(recurrent, dim=2, inputs=[x, w, y])
        return y

    check_program(program, [uniform(2, 5), uniform(4, 3)], rtol=1e-5)


# ---- one array in many roles ----
@wp.kernel
def running_product(a: wp.array[Real]):
    for k in range(1, a.shape[0]):
        a[k] = a[k] * wp.cos(a[k - 1])


def test_a_thread_that_goes_over_its_own_results():
    def program(x):
        a = wp.clone(x, requires_grad=True)
        wp.launch(running_product, dim=1, inputs=[a])
        return a

    check_program(program, [uniform(7)])


@wp.kernel
def scratch_step(x: wp.array[Real], scratch: wp.array[Real], y: wp.array[Real], power: int):
    i = wp.tid()
    scratch[i] = x[i]
    for _ in range(power):
        scratch[i] = scratch[i] * x[i]
    y[i] = y[i] + scratch[i]


def test_one_scratch_array_for_all_launches():
    def program(x):
        scratch, y = output(4), output(4)
        for power in range(4):
            wp.launch(scratch_step, dim=4, inputs=[x, scratch, y, power])
        return y

    check_program(program, [uniform(4)])


@wp.kernel
def neighbours(x: wp.array[Real], y: wp.array[Real]):
    i = wp.tid()
    y[i] = x[i] * y[i] + wp.sin(x[wp.max(i - 1, 0)])


def test_slices_and_every_second_element():
    def program(x):
        a = wp.clone(x, requires_grad=True)
        wp.launch(neighbours, dim=3, inputs=[a[:3], a[5:]])
        wp.launch(neighbours, dim=4, inputs=[a[::2], a[1::2]])
        wp.launch(neighbours, dim=2, inputs=[a[6:4:-1], a[:2]])
        return a

    check_program(program, [uniform(8)])


@wp.kernel
def fill_rows(x: wp.array2d[Real], y: wp.array2d[Real]):
    i = wp.tid()
    row = x[i]
    out = y[i]
    for j in range(row.shape[0]):
        out[j] = row[j] * row[(j + 1) % row.shape[0]]


def test_rows_transposes_and_copies_with_offsets():
    def program(x):
        y = output((3, 4))
        wp.launch(fill_rows, dim=3, inputs=[x, y])
        z = output((4, 3))
        wp.copy(z, y.transpose().contiguous())
        flat = wp.clone(z.reshape((12,)), requires_grad=True)
        wp.copy(flat, y.reshape((12,)), dest_offset=2, src_offset=1, count=5)
        flat[8:10] = y[1, :2]
        return flat * flat

    check_program(program, [uniform(3, 4)])


@wp.kernel
def only_some(x: wp.array[Real], y: wp.array[Real]):
    i = wp.tid()
    if x[i] < Real(0.0):
        return
    if i % 3 != 2:
        y[i] = wp.sqrt(x[i])


def test_threads_that_write_nothing_leave_what_was_there():
    def program(x, y):
        y = wp.clone(y, requires_grad=True)
        wp.launch(only_some, dim=7, inputs=[x, y])
        wp.launch(only_some, dim=7, inputs=[y, y])
        return y

    x = uniform(7, low=0.2) * np.array([1, -1, 1, 1, -1, 1, 1])
    check_program(program, [x, uniform(7, low=0.2)])


# ---- atomics ----
@wp.kernel
def splat(x: wp.array[Real], mass: wp.array[Real], grid: wp.array[Real]):
    i = wp.tid()
    cell = int(wp.floor(x[i]))
    f = x[i] - Real(cell)
    wp.atomic_add(grid, cell, mass[i] * (Real(1.0) - f))
    wp.atomic_add(grid, cell + 1, mass[i] * f)


@wp.kernel
def gather(x: wp.array[Real], grid: wp.array[Real], y: wp.array[Real]):
    i = wp.tid()
    cell = int(wp.floor(x[i]))
    f = x[i] - Real(cell)
    y[i] = (grid[cell] * (Real(1.0) - f) + grid[cell + 1] * f) * grid[cell]


def test_particles_to_a_grid_and_back():
    def program(x, mass):
        grid, y = output(6), output(9)
        wp.launch(splat, dim=9, inputs=[x, mass, grid])
        wp.launch(gather, dim=9, inputs=[x, grid, y])
        return y

    check_program(program, [np.floor(uniform(9, low=0, high=5)) + uniform(9, low=0.1, high=0.9), uniform(9)])


@wp.kernel
def soft_parts(x: wp.array[Real], top: wp.array[Real], parts: wp.array[Real], total: wp.array[Real]):
    i = wp.tid()
    parts[i] = wp.exp(x[i] - top[0])
    wp.atomic_add(total, 0, parts[i])


@wp.kernel
def greatest(x: wp.array[Real], top: wp.array[Real]):
    wp.atomic_max(top, 0, x[wp.tid()])


@wp.kernel
def divide(parts: wp.array[Real], total: wp.array[Real], y: wp.array[Real]):
    i = wp.tid()
    y[i] = parts[i] / total[0]


def test_softmax_by_three_launches():
    def program(x):
        top, total, parts, y = wp.full(1, -1e3, dtype=Real), output(1), output(5), output(5)
        wp.launch(greatest, dim=5, inputs=[x, top])
        wp.launch(soft_parts, dim=5, inputs=[x, top, parts, total])
        wp.launch(divide, dim=5, inputs=[parts, total, y])
        return y

    check_program(program, [uniform(5, low=-2.0, high=2.0)])


@wp.kernel
def count_and_place(x: wp.array[Real], counter: wp.array[int], y: wp.array[Real]):
    i = wp.tid()
    if x[i] > Real(0.0):
        slot = wp.atomic_add(counter, 0, 1)
        y[slot] = x[i] * x[i]


def test_what_is_packed_by_tickets():
    """The order is that of the launch that ran; the sum does not depend on it."""
    x = doubles([0.5, -1.0, 2.0, -0.1, 3.0], requires_grad=True)
    counter, y = wp.zeros(1, dtype=int), output(5)
    with wp.Tape() as tape:
        wp.launch(count_and_place, dim=5, inputs=[x, counter, y])
    tape.backward(grads={y: doubles(np.ones(5))})
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 0.0, 4.0, 0.0, 6.0])


# ---- functions, matrices, rotations ----
@wp.struct
class Hit:
    distance: Real
    normal: wp.vec3d


@wp.func
def plane(p: wp.vec3d, height: Real):
    h = Hit()
    h.distance = p[1] - height
    h.normal = wp.vec3d(Real(0.0), Real(1.0), Real(0.0))
    return h


@wp.func
def ball(p: wp.vec3d, radius: Real):
    h = Hit()
    h.distance = wp.length(p) - radius
    h.normal = wp.normalize(p)
    return h


@wp.func
def nearest(p: wp.vec3d, height: Real, radius: Real):
    a = plane(p, height)
    b = ball(p, radius)
    if a.distance < b.distance:
        return a.distance, a.normal
    return b.distance, b.normal


@wp.kernel
def shade(p: wp.array[wp.vec3d], sizes: wp.array[Real], y: wp.array[Real]):
    i = wp.tid()
    d, n = nearest(p[i], sizes[0], sizes[1])
    y[i] = d * wp.dot(n, wp.vec3d(Real(0.3), Real(0.8), Real(0.5))) + d * d


def test_functions_that_return_structs_and_several_values():
    def program(p, sizes):
        y = output(6)
        wp.launch(shade, dim=6, inputs=[p, sizes, y])
        return y

    check_program(program, [uniform(6, 3), np.array([-0.4, 0.5])], dtypes={0: wp.vec3d})


@wp.kernel
def elastic(f: wp.array[wp.mat33d], y: wp.array[Real]):
    i = wp.tid()
    a = f[i] + wp.identity(n=3, dtype=Real) * Real(2.0)
    c = wp.transpose(a) @ a
    y[i] = (
        wp.trace(c)
        + wp.log(wp.determinant(c))
        + wp.ddot(wp.inverse(a), c)
        + (a @ wp.vec3d(a[0, 1], a[1, 2], a[2, 0]))[1]
    )


def test_an_elastic_energy_of_matrices_is_differentiated():
    def program(f):
        y = output(3)
        wp.launch(elastic, dim=3, inputs=[f, y])
        return y

    check_program(program, [uniform(3, 3, 3, low=-0.4, high=0.4)], dtypes={0: wp.mat33d}, rtol=1e-5)


@wp.kernel
def arm(angles: wp.array2d[Real], lengths: wp.array[Real], tip: wp.array[wp.vec3d]):
    i = wp.tid()
    q = wp.quat_identity(dtype=Real)
    p = wp.vec3d()
    for j in range(lengths.shape[0]):
        axis = wp.vec3d(Real(0.0), Real(0.0), Real(1.0))
        if j % 2 == 1:
            axis = wp.vec3d(Real(0.0), Real(1.0), Real(0.0))
        q = q * wp.quat_from_axis_angle(axis, angles[i, j])
        p = p + wp.quat_rotate(q, wp.vec3d(lengths[j], Real(0.0), Real(0.0)))
    tip[i] = p


def test_a_robot_arm():
    def program(angles, lengths):
        tip = output(3, wp.vec3d)
        wp.launch(arm, dim=3, inputs=[angles, lengths, tip])
        return tip

    check_program(program, [uniform(3, 4, low=-2.0, high=2.0), uniform(4, low=0.5)])


@wp.kernel
def solve(a: wp.array3d[Real], b: wp.array2d[Real], x: wp.array2d[Real]):
    """Elimination in a matrix of the thread, under computed indices."""
    i = wp.tid()
    m = wp.mat33d()
    r = wp.vec3d()
    for j in range(3):
        r[j] = b[i, j]
        for k in range(3):
            m[j, k] = a[i, j, k]
        m[j, j] += Real(3.0)
    for p in range(3):
        for j in range(p + 1, 3):
            factor = m[j, p] / m[p, p]
            for k in range(p, 3):
                m[j, k] -= factor * m[p, k]
            r[j] -= factor * r[p]
    for back in range(3):
        j = 2 - back
        s = r[j]
        for k in range(j + 1, 3):
            s -= m[j, k] * x[i, k]
        x[i, j] = s / m[j, j]


def test_elimination_with_results_that_are_read_again():
    def program(a, b):
        x = output((2, 3))
        wp.launch(solve, dim=2, inputs=[a, b, x])
        return x

    check_program(program, [uniform(2, 3, 3), uniform(2, 3)], rtol=1e-5)


@wp.kernel
def bubble(a: wp.array2d[Real]):
    i = wp.tid()
    for j in range(a.shape[1]):
        for k in range(a.shape[1] - 1 - j):
            if a[i, k] > a[i, k + 1]:
                kept = a[i, k]
                a[i, k] = a[i, k + 1]
                a[i, k + 1] = kept


def test_sorting_in_place():
    def program(x):
        a = wp.clone(x, requires_grad=True)
        wp.launch(bubble, dim=3, inputs=[a])
        return a * a

    check_program(program, [uniform(3, 5)])


@wp.func
def safe_root(x: Real):
    return wp.sqrt(x)


@wp.func_grad(safe_root)
def safe_root_gradient(x: Real, adj: Real):
    wp.adjoint[x] += Real(0.5) * adj / wp.max(wp.sqrt(x), Real(1e-6))


@wp.kernel
def rooted(x: wp.array[Real], y: wp.array[Real]):
    i = wp.tid()
    s = x[i]
    for _ in range(3):
        s = safe_root(s + Real(0.5))
    y[i] = s


def test_a_derivative_of_ones_own_in_a_loop():
    def program(x):
        y = output(4)
        wp.launch(rooted, dim=4, inputs=[x, y])
        return y

    check_program(program, [uniform(4, low=0.1)])


# ---- whole arrays ----
@wp.kernel
def bend(x: wp.array2d[Real], y: wp.array2d[Real]):
    i, j = wp.tid()
    y[i, j] = wp.tanh(x[i, j])


def test_two_layers_of_products():
    def program(x, a, b):
        hidden, bent = output((4, 5)), output((4, 5))
        wp.matmul(x, a, hidden, hidden)
        wp.launch(bend, dim=(4, 5), inputs=[hidden, bent])
        return bent @ b

    check_program(program, [uniform(4, 3), uniform(3, 5), uniform(5, 2)])


@wp.func
def _scaled(a: Real, b: Real):
    return a * b + wp.cos(a)


def test_gathers_scans_sums_and_operators():
    def program(x):
        sums, total = output(4), output(1)
        wp.utils.array_scan(wp.map(wp.sin, x[[3, 0, 3, 1]]), sums)
        wp.utils.array_sum(sums * sums, out=total)
        sums *= x[:4]
        y = wp.map(_scaled, sums, x[1:])
        y[2:3] = total
        return y

    check_program(program, [uniform(5)])


def test_a_parameter_that_is_both_read_and_the_result():
    @wp.kernel
    def relax(a: wp.array[Real], b: wp.array[Real]):
        i = wp.tid()
        b[i] = Real(0.5) * (a[i] + b[i] * b[i])

    def program(x, y):
        y = wp.clone(y, requires_grad=True)
        wp.launch(relax, dim=4, inputs=[x, y])
        wp.launch(relax, dim=4, inputs=[y, y])
        y += x
        y *= y
        return y

    check_program(program, [uniform(4), uniform(4)])


# ---- tapes ----
def test_several_losses_of_one_recording():
    x = doubles([0.5, -0.25, 1.0], requires_grad=True)
    parts, first, second = output(3), output(1), output(1)

    @wp.kernel
    def both(x: wp.array[Real], parts: wp.array[Real], first: wp.array[Real], second: wp.array[Real]):
        i = wp.tid()
        parts[i] = x[i] * x[i]
        wp.atomic_add(first, 0, parts[i])
        wp.atomic_add(second, 0, wp.sin(x[i]))

    with wp.Tape() as tape:
        wp.launch(both, dim=3, inputs=[x, parts, first, second])
    tape.backward(first)
    np.testing.assert_allclose(x.grad.numpy(), 2.0 * x.numpy())
    tape.zero()
    tape.backward(second)
    np.testing.assert_allclose(x.grad.numpy(), np.cos(x.numpy()))
    tape.zero()
    tape.backward(grads={first: doubles([2.0]), second: doubles([3.0]), parts: doubles([1.0, 0.0, 0.0])})
    expected = 4.0 * x.numpy() + 3.0 * np.cos(x.numpy()) + np.array([1.0, 0.0, 0.0])
    np.testing.assert_allclose(x.grad.numpy(), expected)


def test_a_tape_inside_of_what_another_tape_calls():
    """The inner solve is differentiated by its own tape, in the backward pass of the outer one."""
    a, x, y = doubles([3.0], requires_grad=True), doubles([0.0], requires_grad=True), doubles([0.0], requires_grad=True)

    @wp.kernel
    def cube(s: wp.array[Real], t: wp.array[Real]):
        t[0] = s[0] * s[0] * s[0]

    def back():
        with wp.Tape() as inner:
            wp.launch(cube, dim=1, inputs=[a, x])
        gradient = wp.clone(x.grad)
        inner.backward(grads={x: gradient})
        x.grad.zero_()

    tape = wp.Tape()
    with tape:
        wp.launch(cube, dim=1, inputs=[a, x], record_tape=False)
        tape.record_func(back, [a, x])
        wp.launch(cube, dim=1, inputs=[x, y])
    tape.backward(y)
    assert a.grad.numpy()[0] == 3.0 * 27.0**2 * 27.0


def test_two_tapes_one_after_the_other():
    x, y, z = (doubles([2.0, 3.0], requires_grad=True) for _ in range(3))

    @wp.kernel
    def square_of(s: wp.array[Real], t: wp.array[Real]):
        i = wp.tid()
        t[i] = s[i] * s[i]

    with wp.Tape() as first:
        wp.launch(square_of, dim=2, inputs=[x, y])
    with wp.Tape() as second:
        wp.launch(square_of, dim=2, inputs=[y, z])
    second.backward(grads={z: doubles([1.0, 1.0])})
    first.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 4.0 * x.numpy() ** 3)


def test_a_recorded_command_with_other_arrays_each_time():
    x, y, z = (doubles([2.0, 3.0], requires_grad=True) for _ in range(3))

    @wp.kernel
    def scale(s: wp.array[Real], t: wp.array[Real], by: Real):
        i = wp.tid()
        t[i] = by * s[i] * s[i]

    command = wp.launch(scale, dim=2, inputs=[x, y, 2.0], record_cmd=True)
    with wp.Tape() as tape:
        command.launch()
        command.set_param_at_index(0, y)
        command.set_param_at_index(1, z)
        command.set_param_at_index(2, 3.0)
        command.launch()
    tape.backward(grads={z: doubles([1.0, 1.0])})
    np.testing.assert_array_equal(x.grad.numpy(), 3.0 * 4.0 * 4.0 * x.numpy() ** 3)
