"""Computed negative indices count from the end: in reads, writes, atomics, views, vectors and matrices alike."""

import numpy as np
import pytest
import warp as wp

N = 37  # several groups of lanes, and a rest


@wp.kernel
def shifted(a: wp.array[float], by: int, out: wp.array[float]):
    i = wp.tid()
    out[i] = a[i - by]


@wp.kernel
def backwards(a: wp.array[float], by: int, out: wp.array[float]):
    i = wp.tid()
    out[i] = a[by - i]


@wp.kernel
def strided(a: wp.array[float], by: int, out: wp.array[float]):
    i = wp.tid()
    out[i] = a[2 * i - by]


@wp.kernel
def gathered(a: wp.array[float], at: wp.array[int], out: wp.array[float]):
    i = wp.tid()
    out[i] = a[at[i]]


@wp.kernel
def scattered(a: wp.array[float], at: wp.array[int], out: wp.array[float]):
    i = wp.tid()
    out[at[i]] = a[i]


@wp.kernel
def stored(a: wp.array[float], by: int, out: wp.array[float]):
    i = wp.tid()
    out[i - by] = a[i]


@wp.kernel
def stored_backwards(a: wp.array[float], by: int, out: wp.array[float]):
    i = wp.tid()
    out[by - i] = a[i]


@wp.kernel
def added(a: wp.array[float], at: wp.array[int], out: wp.array[float]):
    i = wp.tid()
    wp.atomic_add(out, at[i], a[i])


def numbers(n=N):
    return np.random.default_rng(n).integers(1, 100, n).astype(np.float32)


@pytest.mark.parametrize("by", [0, 1, 3, 8, 17, N])
def test_affine_indices(by):
    a, i = numbers(), np.arange(N)
    out = wp.zeros(N)
    wp.launch(shifted, dim=N, inputs=[a, by, out])
    np.testing.assert_array_equal(out.numpy(), a[i - by])
    wp.launch(backwards, dim=N, inputs=[a, by - 1, out])
    np.testing.assert_array_equal(out.numpy(), a[by - 1 - i])
    wp.launch(strided, dim=N // 2, inputs=[a, by, out])
    np.testing.assert_array_equal(out.numpy()[: N // 2], a[2 * i[: N // 2] - by])
    out.zero_()
    wp.launch(stored, dim=N, inputs=[a, by, out])
    np.testing.assert_array_equal(out.numpy()[i - by], a)
    wp.launch(stored_backwards, dim=N, inputs=[a, by - 1, out])
    np.testing.assert_array_equal(out.numpy()[by - 1 - i], a)


@pytest.mark.parametrize("dtype", [wp.int8, wp.int16, wp.int32, wp.int64], ids=lambda dtype: dtype.__name__)
def test_indices_from_an_array(dtype):
    @wp.kernel(module="unique")
    def through(a: wp.array[float], at: wp.array[dtype], out: wp.array[float]):
        i = wp.tid()
        out[i] = a[at[i]]
        a[at[i]] = -a[at[i]]

    a = numbers()
    at = np.random.default_rng(0).permutation(N) - 17
    x, out = wp.array(a, dtype=float), wp.zeros(N)
    wp.launch(through, dim=N, inputs=[x, wp.array(at, dtype=dtype), out])
    np.testing.assert_array_equal(out.numpy(), a[at])
    np.testing.assert_array_equal(x.numpy(), -a)


def test_scatter_and_atomics():
    a, at = numbers(), np.random.default_rng(1).integers(-N, N, N)
    positions = wp.array(np.random.default_rng(2).permutation(N) - N, dtype=int)
    out = wp.zeros(N)
    wp.launch(scattered, dim=N, inputs=[a, positions, out])
    np.testing.assert_array_equal(out.numpy()[positions.numpy()], a)
    out.zero_()
    wp.launch(added, dim=N, inputs=[a, wp.array(at, dtype=int), out])
    expected = np.zeros(N, np.float32)
    np.add.at(expected, at, a)
    np.testing.assert_array_equal(out.numpy(), expected)


def test_every_atomic_counts_from_the_end():
    @wp.kernel
    def all_of_them(at: int, a: wp.array2d[int]):
        wp.atomic_add(a, at, at, 1)
        wp.atomic_sub(a, at, at - 1, 1)
        wp.atomic_min(a, at, at - 2, -5)
        wp.atomic_max(a, at - 1, at, 5)
        wp.atomic_and(a, at - 1, at - 1, 0)
        wp.atomic_or(a, at - 1, at - 2, 6)
        wp.atomic_xor(a, at - 2, at, 3)
        wp.atomic_exch(a, at - 2, at - 1, 9)
        wp.atomic_cas(a, at - 2, at - 2, 1, 4)

    a = wp.ones((3, 3), dtype=int)
    wp.launch(all_of_them, dim=1, inputs=[-1, a])
    assert a.numpy()[::-1, ::-1].tolist() == [[2, 0, -5], [5, 0, 7], [2, 9, 4]]


def test_rows_slices_components_and_fields():
    @wp.struct
    class Body:
        mass: float
        velocity: wp.vec3

    @wp.kernel
    def all_forms(j: int, m: wp.array2d[float], v: wp.array[wp.vec3], bodies: wp.array[Body], out: wp.array[float]):
        row = m[j]
        out[0] = row[j]
        out[1] = m[j, j]
        out[2] = m[j][j - 1]
        column = m[:, j]
        out[3] = column[j]
        part = m[1:, 0]
        out[4] = part[j]
        out[5] = v[j][j]
        out[6] = bodies[j].velocity[j - 1]
        m[j - 1, j] = 50.0
        v[j - 1][j] = 60.0
        bodies[j].velocity[j] = 70.0
        bodies[j - 1].mass = 80.0

    m = wp.array(np.arange(12.0).reshape(3, 4), dtype=float)
    v = wp.array(np.arange(9.0).reshape(3, 3), dtype=wp.vec3)
    bodies, out = wp.zeros(4, dtype=Body), wp.zeros(7)
    bodies[3] = Body()
    one = Body()
    one.velocity = wp.vec3(1.0, 2.0, 3.0)
    bodies = wp.array([Body(), Body(), Body(), one], dtype=Body)
    wp.launch(all_forms, dim=1, inputs=[-1, m, v, bodies, out])
    assert out.numpy().tolist() == [11.0, 11.0, 10.0, 11.0, 8.0, 8.0, 2.0]
    assert m.numpy()[1, 3] == 50.0 and v.numpy()[1, 2] == 60.0
    assert bodies.numpy()[3]["velocity"].tolist() == [1.0, 2.0, 70.0] and bodies.numpy()[2]["mass"] == 80.0


def test_vectors_matrices_and_quaternions():
    @wp.kernel
    def parts(j: int, out: wp.array[float]):
        v = wp.vec4(1.0, 2.0, 3.0, 4.0)
        m = wp.mat33(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
        q = wp.quat(1.0, 2.0, 3.0, 4.0)
        t = wp.transform(wp.vec3(1.0, 2.0, 3.0), q)
        out[0] = v[j]
        out[1] = m[j, j - 1]
        out[2] = m[j][j]
        out[3] = q[j]
        out[4] = t[j]
        out[5] = m[j, 0:2][1]
        v[j - 1] = 10.0
        m[j - 2, j] = 20.0
        m[j] = wp.vec3(30.0, 31.0, 32.0)
        out[6] = v[2]
        out[7] = m[0, 2]
        out[8] = m[2, 1]

    out = wp.zeros(9)
    wp.launch(parts, dim=1, inputs=[-1, out])
    assert out.numpy().tolist() == [4.0, 8.0, 9.0, 4.0, 4.0, 8.0, 10.0, 20.0, 31.0]


def test_local_arrays_and_arrays_in_structs():
    @wp.struct
    class Holder:
        values: wp.array[float]

    @wp.kernel
    def use(h: Holder, out: wp.array[float]):
        i = wp.tid()
        own = wp.zeros(shape=(4,), dtype=float)
        for k in range(4):
            own[-1 - k] = float(k + i)
        out[i] = own[i % 4 - 4] + h.values[-1 - i]

    h = Holder()
    h.values = wp.array(np.arange(N) * 100.0, dtype=float)
    out = wp.zeros(N)
    wp.launch(use, dim=N, inputs=[h, out])
    i = np.arange(N)
    np.testing.assert_array_equal(out.numpy(), (3 - i % 4) + i + 100.0 * (N - 1 - i))


def test_debug_mode_knows_both_ends():
    @wp.kernel(module_options={"mode": "debug"})
    def read(a: wp.array[float], j: int, out: wp.array[float]):
        out[0] = a[j]

    @wp.kernel(module_options={"mode": "debug"})
    def part(j: int, out: wp.array[float]):
        out[0] = wp.vec3(1.0, 2.0, 3.0)[j]

    a, out = wp.array([1.0, 2.0, 3.0], dtype=float), wp.zeros(1)
    for j in range(-3, 3):
        for kernel, inputs in ((read, [a, j, out]), (part, [j, out])):
            wp.launch(kernel, dim=1, inputs=inputs)
            assert out.numpy()[0] == [1.0, 2.0, 3.0][j]
    for j in (-4, 3, -2147483648, 2147483647):
        for kernel, inputs in ((read, [a, j, out]), (part, [j, out])):
            with pytest.raises(IndexError, match=f"index {j} is out of bounds.*size 3"):
                wp.launch(kernel, dim=1, inputs=inputs)


@pytest.mark.parametrize(
    "kernel", [shifted, backwards, strided, gathered, scattered, stored, added], ids=lambda k: k.key
)
def test_gradients_through_negative_indices_equal_numpy(kernel):
    n = N // 2 if kernel is strided else N
    rng = np.random.default_rng(3)
    at = rng.permutation(N) - 20 if kernel is scattered else rng.integers(-N, N, N)
    second = wp.array(at, dtype=int) if kernel in (gathered, scattered, added) else 9
    x, out = wp.array(numbers(), dtype=float, requires_grad=True), wp.zeros(N, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=n, inputs=[x, second, out])
    seed = rng.integers(-5, 5, N).astype(np.float32)
    tape.backward(grads={out: wp.array(seed, dtype=float)})
    # Each kernel is a matrix of zeros and ones: its columns, one by one.
    for column in range(N):
        unit, image = wp.array(np.eye(N)[column], dtype=float), wp.zeros(N)
        wp.launch(kernel, dim=n, inputs=[unit, second, image])
        assert x.grad.numpy()[column] == np.dot(image.numpy(), seed)


@wp.kernel
def loops(a: wp.array[wp.float64], at: wp.array[int], n: int, out: wp.array2d[wp.float64]):
    i = wp.tid()
    start = at[i]
    upward, downward, gathered, last = wp.float64(0.0), wp.float64(0.0), wp.float64(0.0), wp.float64(0.0)
    for k in range(start, start + n):
        upward += wp.float64(k) * a[k] * a[k - 2]
    for k in range(start + n, start - 1, -2):
        downward = downward * wp.float64(0.5) + a[k]
    for k in range(start, start + n):
        if a[at[k]] > wp.float64(80.0):
            break
        gathered += a[at[k]]
        last = a[k]
    m = start
    while m < start + n:
        a[m] = a[m] + wp.float64(1.0) + last
        m += 3
    out[i, 0] = upward
    out[i, 1] = downward
    out[i, 2] = gathered
    out[i, 3] = last


def loops_in_python(a, at, n, out):
    for i in range(len(out)):
        start, downward, gathered, last = int(at[i]), 0.0, 0.0, 0.0
        k = np.arange(start, start + n)
        for j in range(start + n, start - 1, -2):
            downward = downward * 0.5 + a[j]
        upward = (k * a[k] * a[k - 2]).sum()
        for j in k:
            if a[at[j]] > 80.0:
                break
            gathered += a[at[j]]
            last = a[j]
        for j in range(start, start + n, 3):
            a[j] += 1.0 + last
        out[i] = upward, downward, gathered, last


@pytest.mark.parametrize("lowest, n", [(-N // 2, 5), (-2, 3), (3, 4), (0, 0), (-9, 20)])
def test_loops_whose_start_may_be_negative(lowest, n):
    rng = np.random.default_rng(n)
    a, at = numbers().astype(np.float64), rng.integers(lowest, N // 2 - 5, N).astype(np.int32)
    x, out = wp.array(a, dtype=wp.float64), wp.zeros((N, 4), dtype=wp.float64)
    expected = np.zeros((N, 4))
    loops_in_python(a, at, n, expected)
    wp.config.serial = True
    try:
        wp.launch(loops, dim=N, inputs=[x, wp.array(at, dtype=int), n, out])
    finally:
        wp.config.serial = False
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-13)
    np.testing.assert_allclose(x.numpy(), a, rtol=1e-13)


@wp.kernel
def sums_of_rows(
    first: wp.array[int], column: wp.array[int], a: wp.array[float], x: wp.array[float], out: wp.array[float]
):
    i = wp.tid()
    total = float(0.0)
    for k in range(first[i], first[i + 1]):
        total += a[k] * x[column[k]]
    out[i] = total


@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_rows_of_a_matrix_whose_entries_count_from_the_end(part):
    rng = np.random.default_rng(5)
    first = np.concatenate([[0], np.cumsum(rng.integers(0, 13, N))]).astype(np.int32)
    count = first[-1]
    shift = -int(count * part)
    a, x = rng.integers(1, 9, count).astype(np.float32), rng.integers(1, 9, N).astype(np.float32)
    column = rng.integers(-N, N, count).astype(np.int32)
    seed = rng.integers(1, 9, N).astype(np.float32)
    arrays = [wp.array(v, dtype=float, requires_grad=True) for v in (a, x, np.zeros(N))]
    with wp.Tape() as tape:
        wp.launch(
            sums_of_rows, dim=N, inputs=[wp.array(first + shift, dtype=int), wp.array(column, dtype=int), *arrays]
        )
    tape.backward(grads={arrays[2]: wp.array(seed, dtype=float)})
    out, of_a, of_x = np.zeros(N), np.zeros(count), np.zeros(N)
    for i in range(N):
        for k in range(first[i] + shift, first[i + 1] + shift):
            out[i] += a[k] * x[column[k]]
            of_a[k] += seed[i] * x[column[k]]
            of_x[column[k]] += seed[i] * a[k]
    np.testing.assert_array_equal(arrays[2].numpy(), out)
    np.testing.assert_array_equal(arrays[0].grad.numpy(), of_a)
    np.testing.assert_array_equal(arrays[1].grad.numpy(), of_x)


def test_indices_that_conditions_keep_in_range_are_not_counted_from_the_end():
    @wp.kernel
    def guarded(a: wp.array[float], at: wp.array[int], n: int, out: wp.array[float]):
        i = wp.tid()
        j = at[i]
        if j >= 0:
            out[i] += a[j]
        if i > 0:
            out[i] += a[i - 1]
        if i < 2 or j < 3:
            return
        out[i] += a[j - 3] + a[i - 2]
        for k in range(1, i):
            out[i] += a[k - 1] + a[i - k] + a[i - 1 - k]
        m = j
        while m >= 4:
            out[i] += a[m] + a[m - 4]
            m -= 2
        for k in range(a.shape[0] - 1, -1, -1):
            out[i] += a[k]
        out[i] += a[wp.max(j - 100, 0)] + a[i % 7] + a[(i * 3 + 1) / 2] + a[wp.min(i, a.shape[0] - 1 - 0 * i)]
        first = 0
        last = a.shape[0]
        while first < last:
            middle = (first + last) / 2
            if a[middle] < 3.0:
                first = middle + 1
            else:
                last = middle
        out[i] += float(first)

    text = guarded.listing("ir")
    assert "select" not in text.split("min")[0], text


def test_indices_that_may_be_negative_keep_their_test():
    @wp.kernel
    def unknown(a: wp.array[float], at: wp.array[int], n: int, out: wp.array[float]):
        i = wp.tid()
        j = at[i]
        if j > -2:
            out[i] += a[j]
        if n < 5:
            out[i] += a[n]
        h = (i + 1) * 73856093
        out[i] += a[h % 8]
        k = 5
        for _ in range(n):
            k = k - 1
        out[i] += a[k]
        s = 1
        for _ in range(n):
            s = s * 3 + 1
        out[i] += a[s % 8]

    assert unknown.listing("ir").count("select") == 5


def test_hashes_that_overflow():
    @wp.kernel
    def hashed(a: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        h = (i * 73856093) ^ ((i + 3) * 19349663)
        out[i] = a[h % 8]

    a, out = np.arange(8.0, dtype=np.float32), wp.zeros(N)
    wp.launch(hashed, dim=N, inputs=[a, out])
    i = np.arange(N, dtype=np.int64)
    h = ((i * 73856093).astype(np.int32) ^ ((i + 3) * 19349663).astype(np.int32)).astype(np.int64)
    np.testing.assert_array_equal(out.numpy(), a[np.fmod(h, 8)])
