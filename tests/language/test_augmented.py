"""`a[i] += x` in memory: an atomic, so that no thread's part is lost, and plain if no other thread has the element."""

import numpy as np
import pytest
import warp as wp

THREADS = 10_000


@wp.struct
class Body:
    mass: float
    velocity: wp.vec3
    counts: wp.vec2i
    pose: wp.transform
    turn: wp.quat


@wp.struct
class Store:
    total: wp.array(dtype=float)
    rows: wp.array2d(dtype=int)
    other: wp.array(dtype=float)


# ---- elements that many threads share ----

SCALARS = [wp.int32, wp.uint32, wp.int64, wp.uint64, wp.int8, wp.uint16, wp.float32, wp.float64]


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("dtype", SCALARS, ids=lambda t: t.__name__)
def test_sums_of_scalars_lose_nothing(dtype, debug):
    @wp.kernel(module="unique", module_options={"mode": "debug" if debug else "release"})
    def add(s: wp.array(dtype=dtype), several: wp.array(dtype=dtype)):
        i = wp.tid()
        s[0] += dtype(1)
        s[1] -= dtype(3)
        s[2] += 2
        several[i % 7] += dtype(i % 5)

    s, several = wp.full(3, 5, dtype=dtype), wp.zeros(7, dtype=dtype)
    wp.launch(add, dim=THREADS, inputs=[s, several])
    numbers = s.numpy().dtype
    expected = np.array([5 + THREADS, 5 - 3 * THREADS, 5 + 2 * THREADS]).astype(np.int64).astype(numbers)
    np.testing.assert_array_equal(s.numpy(), expected)
    i = np.arange(THREADS)
    np.testing.assert_array_equal(several.numpy(), np.bincount(i % 7, i % 5, 7).astype(np.int64).astype(numbers))


@pytest.mark.parametrize("dtype", [wp.float16, wp.bfloat16], ids=lambda t: t.__name__)
def test_sums_of_half_precision_lose_nothing(dtype):
    @wp.kernel(module="unique")
    def add(s: wp.array(dtype=dtype), v: wp.array(dtype=wp.types.vector(2, dtype))):
        i = wp.tid()
        if i % 100 == 0:
            s[i % 2] += dtype(1.0)
            v[0].y -= dtype(1.0)

    s, v = wp.zeros(2, dtype=dtype), wp.zeros(1, dtype=wp.types.vector(2, dtype))
    wp.launch(add, dim=THREADS, inputs=[s, v])
    assert [float(x) for x in s.list()] == [100.0, 0.0]
    assert [float(x) for x in v.list()[0]] == [0.0, -100.0]


@wp.kernel
def add_parts(v: wp.array(dtype=wp.vec3), m: wp.array(dtype=wp.mat22), q: wp.array(dtype=wp.quatd)):
    i = wp.tid()
    v[0] += wp.vec3(1.0, 2.0, 3.0)
    v[1].x += 1.0
    v[1][1] += 2.0
    v[1][i % 3] += 1.0
    v[2].xy += wp.vec2(1.0, 2.0)
    v[2][1:3] -= wp.vec2(1.0, 2.0)
    m[0][1, 1] += 1.0
    m[0][0] += wp.vec2(1.0, 3.0)
    m[0][i % 2, 0] += 1.0
    m[1] -= wp.mat22(1.0, 2.0, 3.0, 4.0)
    q[0] += wp.quatd(wp.float64(1.0), wp.float64(2.0), wp.float64(3.0), wp.float64(4.0))
    q[1].w -= wp.float64(1.0)


def test_sums_of_vectors_and_their_components_lose_nothing():
    v, m, q = wp.zeros(3, dtype=wp.vec3), wp.zeros(2, dtype=wp.mat22), wp.zeros(2, dtype=wp.quatd)
    wp.launch(add_parts, dim=3 * THREADS, inputs=[v, m, q])
    n = THREADS
    np.testing.assert_array_equal(v.numpy(), [[3 * n, 6 * n, 9 * n], [4 * n, 7 * n, n], [3 * n, 3 * n, -6 * n]])
    half = 3 * n // 2
    np.testing.assert_array_equal(
        m.numpy(), [[[3 * n + half, 9 * n], [half, 3 * n]], [[-3 * n, -6 * n], [-9 * n, -12 * n]]]
    )
    np.testing.assert_array_equal(q.numpy(), [[3 * n, 6 * n, 9 * n, 12 * n], [0, 0, 0, -3 * n]])


@wp.func
def add_to_first(a: wp.array(dtype=wp.Any), x: wp.Any):
    a[0] += x


@wp.kernel
def add_to_fields(
    bodies: wp.array(dtype=Body),
    store: Store,
    rows: wp.array2d(dtype=int),
    numbers: wp.array(dtype=wp.float64),
    chosen: wp.array(dtype=int),
):
    i = wp.tid()
    bodies[0].mass += 1.0
    bodies[1].mass -= 0.5
    bodies[0].velocity.y += 2.0
    bodies[1].velocity -= wp.vec3(1.0, 2.0, 3.0)
    bodies[0].counts += wp.vec2i(1, 2)
    bodies[0].pose.p += wp.vec3(1.0, 2.0, 3.0)
    bodies[1].pose.q.x += 4.0
    bodies[0].turn.w += 1.0
    bodies[1].turn += wp.quat(1.0, 2.0, 3.0, 4.0)
    store.total[1] += 1.0
    store.rows[1, 0] += i
    row = rows[1]
    row[0] += 1
    rows[0][2] += 2
    add_to_first(numbers, wp.float64(1.0))
    add_to_first(chosen, 3)
    end = rows[0, 1:]
    end[0] -= 1
    either = chosen if i % 2 == 0 else rows[1]
    either[1] += 1


def test_fields_rows_and_arrays_of_structs_lose_nothing():
    bodies, rows = wp.zeros(2, dtype=Body), wp.zeros((2, 3), dtype=int)
    store = Store()
    store.total, store.rows, store.other = wp.zeros(2, dtype=float), wp.zeros((2, 2), dtype=int), wp.zeros(1)
    numbers, chosen = wp.zeros(1, dtype=wp.float64), wp.zeros(2, dtype=int)
    wp.launch(add_to_fields, dim=THREADS, inputs=[bodies, store, rows, numbers, chosen])
    n = THREADS
    found = bodies.numpy()
    np.testing.assert_array_equal(found["mass"], [n, -0.5 * n])
    np.testing.assert_array_equal(found["velocity"], [[0, 2 * n, 0], [-n, -2 * n, -3 * n]])
    np.testing.assert_array_equal(found["counts"], [[n, 2 * n], [0, 0]])
    np.testing.assert_array_equal(found["pose"], [[n, 2 * n, 3 * n, 0, 0, 0, 0], [0, 0, 0, 4 * n, 0, 0, 0]])
    np.testing.assert_array_equal(found["turn"], [[0, 0, 0, n], [n, 2 * n, 3 * n, 4 * n]])
    np.testing.assert_array_equal(store.total.numpy(), [0, n])
    np.testing.assert_array_equal(store.rows.numpy(), [[0, 0], [n * (n - 1) // 2, 0]])
    np.testing.assert_array_equal(rows.numpy(), [[0, -n, 2 * n], [n, n // 2, 0]])
    np.testing.assert_array_equal(numbers.numpy(), [n])
    np.testing.assert_array_equal(chosen.numpy(), [3 * n, n // 2])


Bytes = wp.types.matrix((2, 2), wp.uint8)


@wp.kernel
def combine_bits(a: wp.array(dtype=int), v: wp.array(dtype=wp.vec2i), m: wp.array(dtype=Bytes)):
    i = wp.tid()
    bit = 1 << (i % 31)
    a[0] |= bit
    a[1] &= ~(bit & 0xFF)
    a[2] ^= i
    v[0] |= wp.vec2i(bit, i)
    v[1] &= wp.vec2i(~(bit & 0xFF), -2)
    v[2].y ^= i
    m[0] ^= Bytes(wp.uint8(i & 255), wp.uint8(1), wp.uint8(i & 7), wp.uint8(0))


def test_bits_of_integers_and_vectors():
    a, v = wp.array([0, -1, 0], dtype=int), wp.array([(0, 0), (-1, -1), (0, 0)], dtype=wp.vec2i)
    m = wp.zeros(1, dtype=Bytes)
    wp.launch(combine_bits, dim=THREADS - 1, inputs=[a, v, m])
    i = np.arange(THREADS - 1)
    every = np.bitwise_or.reduce(i)
    parity = np.bitwise_xor.reduce(i)
    np.testing.assert_array_equal(a.numpy(), [2**31 - 1, ~0xFF, parity])
    np.testing.assert_array_equal(v.numpy(), [[2**31 - 1, every], [~0xFF, -2], [0, parity]])
    low = np.bitwise_xor.reduce(i & 255), np.bitwise_xor.reduce(i & 7)
    np.testing.assert_array_equal(m.numpy(), [[[low[0], 1], [low[1], 0]]])


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_atomic_functions_on_the_bits_of_vectors_give_the_old_ones(name):
    function = getattr(wp, f"atomic_{name}")

    @wp.kernel(module="unique")
    def combine(v: wp.array(dtype=wp.vec2i), old: wp.array(dtype=wp.vec2i)):
        old[wp.tid()] = function(v, wp.tid(), wp.vec2i(12, 5))

    v, old = wp.array([(10, 3), (7, 1)], dtype=wp.vec2i), wp.zeros(2, dtype=wp.vec2i)
    wp.launch(combine, dim=2, inputs=[v, old])
    np.testing.assert_array_equal(old.numpy(), [[10, 3], [7, 1]])
    expected = getattr(np, f"bitwise_{name}")(np.array([[10, 3], [7, 1]]), [[12, 5]])
    np.testing.assert_array_equal(v.numpy(), expected)


def test_the_bits_of_floats_are_an_error():
    @wp.kernel(module="unique")
    def combine(v: wp.array(dtype=wp.vec2)):
        wp.atomic_or(v, 0, wp.vec2(1.0, 2.0))

    with pytest.raises(Exception, match="expected integers, or vectors or matrices of them"):
        wp.launch(combine, dim=1, inputs=[wp.zeros(1, dtype=wp.vec2)])


@wp.kernel
def add_through_indices(x: wp.indexedarray(dtype=float), y: wp.indexedarray(dtype=wp.vec3)):
    i = wp.tid()
    x[i] += 1.0
    y[i].z -= 2.0


def test_indexed_arrays_may_show_an_element_often():
    base, vectors = wp.zeros(3, dtype=float), wp.zeros(3, dtype=wp.vec3)
    index = wp.array(np.arange(THREADS, dtype=np.int32) % 2, dtype=int)
    wp.launch(add_through_indices, dim=THREADS, inputs=[base[index], vectors[index]])
    np.testing.assert_array_equal(base.numpy(), [THREADS / 2, THREADS / 2, 0])
    np.testing.assert_array_equal(vectors.numpy()[:, 2], [-THREADS, -THREADS, 0])


def test_other_operators_and_bools_stay_as_they_were():
    @wp.kernel(module="unique")
    def change(a: wp.array(dtype=float), n: wp.array(dtype=int), flags: wp.array(dtype=bool)):
        i = wp.tid()
        a[i] *= 3.0
        a[i] /= 2.0
        n[i] //= 2
        n[i] %= 3
        n[i] <<= 1
        flags[i] |= i % 2 == 0

    a, n, flags = wp.full(10, 4.0), wp.array(np.arange(10), dtype=int), wp.zeros(10, dtype=bool)
    wp.launch(change, dim=10, inputs=[a, n, flags])
    np.testing.assert_array_equal(a.numpy(), np.full(10, 6.0))
    np.testing.assert_array_equal(n.numpy(), np.arange(10) // 2 % 3 << 1)
    np.testing.assert_array_equal(flags.numpy(), np.arange(10) % 2 == 0)


# ---- elements of one thread, or of what looks like one ----


@wp.kernel
def add_own(a: wp.array(dtype=float), x: wp.array(dtype=float)):
    i = wp.tid()
    a[i] += x[i]


@wp.kernel
def add_own_of_grid(a: wp.array2d(dtype=float)):
    i, j = wp.tid()
    a[i, j] += 1.0


@pytest.mark.host_memory("wraps the memory of NumPy arrays")
def test_a_broadcast_array_shows_one_element_to_many_threads():
    memory = np.zeros(4, dtype=np.float32)
    same = wp.array(ptr=memory.ctypes.data, shape=(THREADS,), strides=(0,), dtype=float)
    wp.launch(add_own, dim=THREADS, inputs=[same, wp.ones(THREADS, dtype=float)])
    assert memory[0] == THREADS
    columns = wp.array(ptr=memory.ctypes.data, shape=(THREADS, 4), strides=(0, 4), dtype=float)
    wp.launch(add_own_of_grid, dim=(THREADS, 4), inputs=[columns])
    np.testing.assert_array_equal(memory, [2 * THREADS, THREADS, THREADS, THREADS])


@pytest.mark.host_memory("wraps the memory of NumPy arrays")
def test_rows_that_overlap_share_elements():
    memory = np.zeros(THREADS + 3, dtype=np.float32)
    windows = wp.array(ptr=memory.ctypes.data, shape=(THREADS, 4), strides=(4, 4), dtype=float)
    wp.launch(add_own_of_grid, dim=(THREADS, 4), inputs=[windows])
    np.testing.assert_array_equal(memory, np.convolve(np.ones(THREADS), np.ones(4)))


@wp.kernel
def add_to_both(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    a[i] += 1.0
    b[i] += 1.0


@wp.kernel
def add_to_arrays_of_a_struct(s: Store):
    i = wp.tid()
    s.total[i] += 1.0
    s.other[i] += 1.0


@pytest.mark.parametrize("shift", [0, 1, 7])
@pytest.mark.host_memory("wraps the memory of NumPy arrays")
def test_views_that_overlap_share_elements(shift):
    expected = np.zeros(THREADS + shift)
    expected[:THREADS] += 1
    expected[shift:] += 1
    a = wp.zeros(THREADS + shift, dtype=float)
    for _ in range(20):
        a.zero_()
        wp.launch(add_to_both, dim=THREADS, inputs=[a[:THREADS], a[shift:]])
        np.testing.assert_array_equal(a.numpy(), expected)
        a.zero_()
        s = Store()
        s.total, s.other, s.rows = a[:THREADS], a[shift:], wp.zeros((1, 1), dtype=int)
        wp.launch(add_to_arrays_of_a_struct, dim=THREADS, inputs=[s])
        np.testing.assert_array_equal(a.numpy(), expected)


@pytest.mark.host_memory("wraps the memory of NumPy arrays")
def test_columns_of_one_array_are_added_to_each_other():
    both = wp.array(np.arange(2000, dtype=np.float32).reshape(1000, 2), dtype=float)
    wp.launch(add_own, dim=1000, inputs=[both[:, 0], both[:, 1]])
    i = np.arange(1000, dtype=np.float32)
    np.testing.assert_array_equal(both.numpy(), np.stack([4 * i + 1, 2 * i + 1], 1))


@wp.kernel
def add_to_neighbours(a: wp.array(dtype=int), m: wp.array2d(dtype=int), pairs: wp.array(dtype=int)):
    i, j = wp.tid()
    a[i] += 1
    m[i, j] += 1
    m[i + 1, j] += 10
    pairs[2 * i] += j
    pairs[2 * i + 1] -= j


def test_elements_that_some_threads_share():
    n, k = 300, 40
    a, m, pairs = wp.zeros(n, dtype=int), wp.zeros((n + 1, k), dtype=int), wp.zeros(2 * n, dtype=int)
    wp.launch(add_to_neighbours, dim=(n, k), inputs=[a, m, pairs])
    np.testing.assert_array_equal(a.numpy(), np.full(n, k))
    expected = np.full((n + 1, k), 11)
    expected[0], expected[n] = 1, 10
    np.testing.assert_array_equal(m.numpy(), expected)
    total = k * (k - 1) // 2
    np.testing.assert_array_equal(pairs.numpy(), np.tile([total, -total], n))


@wp.kernel
def add_in_loops(a: wp.array(dtype=float), x: wp.array2d(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    for j in range(x.shape[1]):
        if x[i, j] < 0.0:
            break
        a[i] += x[i, j]
        out[i] += a[i]
    a[i] -= 1.0
    out[i] = out[i] * 2.0


def test_loops_that_add_and_read_what_they_added():
    x = np.random.default_rng(1).integers(-3, 40, (500, 30)).astype(np.float32)
    a, out = wp.ones(500, dtype=float), wp.zeros(500, dtype=float)
    wp.launch(add_in_loops, dim=500, inputs=[a, wp.array(x), out])
    expected, sums = np.ones(500), np.zeros(500)
    for i in range(500):
        for value in x[i]:
            if value < 0:
                break
            expected[i] += value
            sums[i] += expected[i]
    np.testing.assert_array_equal(a.numpy(), expected - 1)
    np.testing.assert_array_equal(out.numpy(), 2 * sums)


@wp.kernel
def change_in_order(v: wp.array(dtype=wp.vec3), b: wp.array(dtype=Body)):
    i = wp.tid()
    v[i] = wp.vec3(1.0, 2.0, 3.0)
    v[i] += wp.vec3(1.0, 1.0, 1.0)
    v[i].y *= v[i].x
    v[i].y -= v[i].z
    v[i][i % 3] += 10.0
    v[i] -= v[i] * 0.5
    b[i].velocity += v[i]
    b[i].velocity.z += b[i].velocity.x
    b[i].mass += wp.length_sq(b[i].velocity)


def test_parts_of_own_elements_change_in_the_order_of_the_program():
    v, b = wp.zeros(100, dtype=wp.vec3), wp.zeros(100, dtype=Body)
    wp.launch(change_in_order, dim=100, inputs=[v, b])
    expected = np.tile([2.0, 2.0, 4.0], (100, 1))
    expected[np.arange(100), np.arange(100) % 3] += 10
    expected /= 2
    np.testing.assert_array_equal(v.numpy(), expected)
    expected[:, 2] += expected[:, 0]
    np.testing.assert_array_equal(b.numpy()["velocity"], expected)
    np.testing.assert_array_equal(b.numpy()["mass"], (expected**2).sum(1))


def test_arrays_made_in_the_kernel_are_plain():
    @wp.kernel(module="unique")
    def count(n: wp.array(dtype=int), out: wp.array2d(dtype=int)):
        i = wp.tid()
        bins = wp.zeros(shape=4, dtype=int)
        for k in range(10):
            bins[(n[i] + k * k) % 4] += k
        for k in range(4):
            out[i, k] = bins[k]

    n, out = wp.array(np.arange(50), dtype=int), wp.zeros((50, 4), dtype=int)
    wp.launch(count, dim=50, inputs=[n, out])
    assert " = atomic." not in count.listing("ir")
    k = np.arange(10)
    for i in range(50):
        np.testing.assert_array_equal(out.numpy()[i], np.bincount((i + k * k) % 4, k, 4))


@wp.kernel
def add_negative_zeros(a: wp.array(dtype=float), n: wp.array(dtype=int)):
    i = wp.tid()
    a[i] += -0.0
    a[n[i]] -= 0.0


def test_adding_nothing_keeps_the_sign_of_zero():
    a = wp.array(np.array([-0.0, 0.0, 1.0, -0.0], dtype=np.float32))
    wp.launch(add_negative_zeros, dim=4, inputs=[a, wp.array([3, 2, 1, 0], dtype=int)])
    np.testing.assert_array_equal(np.signbit(a.numpy()), [True, False, False, True])


@wp.kernel
def bump_twice(a: wp.array(dtype=int), calls: wp.array(dtype=int)):
    i = wp.tid()
    a[wp.atomic_add(calls, 0, 1) % 8] += 1


def test_the_place_is_found_once():
    a, calls = wp.zeros(8, dtype=int), wp.zeros(1, dtype=int)
    wp.launch(bump_twice, dim=8 * 100, inputs=[a, calls])
    assert calls.numpy()[0] == 800
    np.testing.assert_array_equal(a.numpy(), np.full(8, 100))
