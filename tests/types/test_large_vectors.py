"""Vectors and matrices that are too large for registers, indexed by computed numbers."""

import numpy as np
import pytest
import warp as wp

vec40 = wp.types.vector(length=40, dtype=float)
mat78 = wp.types.matrix(shape=(7, 8), dtype=wp.float64)
THREADS = 37


def counting(lanes):
    @wp.kernel(module_options={"lanes": lanes})
    def histogram(data: wp.array2d(dtype=int), least: int, best: wp.array(dtype=int), total: wp.array(dtype=vec40)):
        i = wp.tid()
        counts = vec40(0.0)
        for k in range(data.shape[1]):
            at = data[i, k]
            if at < least:
                continue
            before = counts
            counts[at] = counts[at] + 1.0
            if before[at] >= 3.0:
                counts = before
                break
        largest = int(0)
        for k in range(40):
            if counts[k] > counts[largest]:
                largest = k
        best[i] = largest
        total[i] = counts

    return histogram


def counted(data, least):
    best, totals = [], []
    for row in data:
        counts = np.zeros(40)
        for at in row:
            if at < least:
                continue
            if counts[at] >= 3:
                break
            counts[at] += 1
        best.append(int(np.argmax(counts)))
        totals.append(counts)
    return best, totals


@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_a_large_vector_is_a_variable_in_loops_and_branches(lanes):
    data = np.random.default_rng(5).integers(0, 40, (THREADS, 60), dtype=np.int32)
    data[:, 20:30] = data[:, 20:21]
    best, total = wp.zeros(THREADS, dtype=int), wp.zeros(THREADS, dtype=vec40)
    wp.launch(counting(lanes), dim=THREADS, inputs=[wp.array(data), 4, best, total])
    expected_best, expected_total = counted(data, 4)
    np.testing.assert_array_equal(best.numpy(), expected_best)
    np.testing.assert_array_equal(total.numpy(), expected_total)


@pytest.mark.parametrize("lanes", [1, 8])
def test_rows_and_entries_of_a_large_matrix_are_chosen_at_run_time(lanes):
    @wp.kernel(module_options={"lanes": lanes})
    def shuffled(order: wp.array2d(dtype=int), out: wp.array(dtype=mat78)):
        i = wp.tid()
        m = mat78(wp.float64(0.0))
        for k in range(order.shape[1]):
            r = order[i, k]
            m[r, k] = wp.float64(10 * r + k)
            m[6 - r] = m[r] * wp.float64(2.0)
        out[i] = m + m

    order = np.random.default_rng(6).integers(0, 7, (THREADS, 8), dtype=np.int32)
    out = wp.zeros(THREADS, dtype=mat78)
    wp.launch(shuffled, dim=THREADS, inputs=[wp.array(order), out])
    expected = np.zeros((THREADS, 7, 8))
    for i in range(THREADS):
        for k in range(8):
            r = order[i, k]
            expected[i, r, k] = 10 * r + k
            expected[i, 6 - r] = expected[i, r] * 2
    np.testing.assert_array_equal(out.numpy(), 2 * expected)


@pytest.mark.parametrize("lanes", [1, 4, 16])
@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3)])
def test_parts_at_known_places_of_a_large_matrix_that_is_also_indexed_at_run_time(lanes, shape):
    matrix = wp.types.matrix(shape=shape, dtype=float)
    row = wp.types.vector(length=shape[1], dtype=float)

    @wp.kernel(module="unique", module_options={"lanes": lanes})
    def k(data: wp.array(dtype=matrix), at: wp.array2d[int], out: wp.array(dtype=matrix), r: wp.array2d(dtype=row),
          e: wp.array2d[float]):  # fmt: skip
        i = wp.tid()
        m = data[i]
        m[at[i, 0], at[i, 1]] = 100.0
        e[i, 0] = m[0, 2]
        e[i, 1] = m[2, 1]
        e[i, 2] = m[1, 2]
        r[i, 0] = m[1]
        m[1, 0] = 50.0
        m[2, 1] = m[0, 1] + 60.0
        m[0] = m[2]
        m[at[i, 0], at[i, 1]] += 1000.0
        r[i, 1] = m[2]
        out[i] = m

    rng = np.random.default_rng(8)
    data = rng.integers(0, 10, (THREADS, *shape)).astype(np.float32)
    at = np.stack([rng.integers(0, shape[0], THREADS), rng.integers(0, shape[1], THREADS)], axis=1).astype(np.int32)
    out, r, e = wp.zeros(THREADS, dtype=matrix), wp.zeros((THREADS, 2), dtype=row), wp.zeros((THREADS, 3))
    wp.launch(k, dim=THREADS, inputs=[wp.array(data, dtype=matrix), wp.array(at), out, r, e])
    rows, entries = np.zeros((THREADS, 2, shape[1])), np.zeros((THREADS, 3))
    for i, m in enumerate(data):
        m[tuple(at[i])] = 100.0
        entries[i] = m[0, 2], m[2, 1], m[1, 2]
        rows[i, 0] = m[1]
        m[1, 0] = 50.0
        m[2, 1] = m[0, 1] + 60.0
        m[0] = m[2]
        m[tuple(at[i])] += 1000.0
        rows[i, 1] = m[2]
    np.testing.assert_array_equal(e.numpy(), entries)
    np.testing.assert_array_equal(r.numpy(), rows)
    np.testing.assert_array_equal(out.numpy(), data)


def test_the_gradient_goes_through_a_large_vector():
    @wp.kernel
    def chosen(at: wp.array2d(dtype=int), x: wp.array2d(dtype=float), out: wp.array(dtype=float)):
        i = wp.tid()
        v = vec40(0.0)
        for k in range(at.shape[1]):
            v[at[i, k]] = v[at[i, k]] * 0.5 + x[i, k] * x[i, k]
        s = float(0.0)
        for k in range(at.shape[1]):
            s += v[at[i, k]] * float(k)
        out[i] = s

    numbers = np.random.default_rng(7)
    at = numbers.integers(0, 40, (THREADS, 12), dtype=np.int32)
    x = wp.array(numbers.uniform(-1, 1, (THREADS, 12)).astype(np.float32), requires_grad=True)
    out = wp.zeros(THREADS, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(chosen, dim=THREADS, inputs=[wp.array(at), x, out])
    tape.backward(grads={out: wp.ones(THREADS, dtype=float)})
    expected = np.zeros((THREADS, 12))
    for i in range(THREADS):
        weight = np.zeros(40)
        np.add.at(weight, at[i], np.arange(12.0))
        for k in reversed(range(12)):
            expected[i, k] = weight[at[i, k]] * 2 * x.numpy()[i, k]
            weight[at[i, k]] *= 0.5
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("lanes", [1, 8])
def test_two_large_vectors_exchange_their_values_in_a_loop(lanes):
    @wp.kernel(module_options={"lanes": lanes})
    def exchanged(times: int, first: wp.array2d[float], second: wp.array2d[float]):
        i = wp.tid()
        a = vec40(1.0)
        b = vec40(2.0)
        a[i] = 3.0
        for _k in range(times + i):
            kept = a
            a = b
            b = kept
        for k in range(40):
            first[i, k] = a[k]
            second[i, k] = b[k]

    first, second = wp.zeros((THREADS, 40)), wp.zeros((THREADS, 40))
    wp.launch(exchanged, dim=THREADS, inputs=[2, first, second])
    for i in range(THREADS):
        a, b = np.ones(40), np.full(40, 2.0)
        a[i] = 3.0
        if i % 2:
            a, b = b, a
        np.testing.assert_array_equal(first.numpy()[i], a)
        np.testing.assert_array_equal(second.numpy()[i], b)


@wp.struct
class Counts:
    of: wp.types.vector(length=10000, dtype=float)
    least: float


@pytest.mark.parametrize("mode", ["release", "debug"])
def test_a_vector_of_thousands_of_numbers_is_a_variable_too(mode):
    @wp.kernel(module_options={"mode": mode})
    def counted(data: wp.array[int], least: float, best: wp.array[int]):
        i = wp.tid()
        counts = Counts()
        counts.least = least
        for k in range(data.shape[0]):
            counts.of[(data[k] + i) % 10000] += 1.0
        largest = int(0)
        for k in range(10000):
            if counts.of[k] > counts.of[largest] and counts.of[k] > counts.least:
                largest = k
        best[i] = largest

    data = np.random.default_rng(9).integers(0, 10000, 500, dtype=np.int32)
    data[::50] = 1234
    best = wp.zeros(3, dtype=int)
    wp.launch(counted, dim=3, inputs=[wp.array(data), 2.0, best])
    np.testing.assert_array_equal(best.numpy(), [1234, 1235, 1236])


def test_a_component_outside_is_an_error_in_debug_mode():
    @wp.kernel(module_options={"mode": "debug"})
    def outside(at: int, out: wp.array(dtype=float)):
        v = vec40(1.0)
        v[at] = 2.0
        out[0] = v[0]

    with pytest.raises(Exception, match="40"):
        wp.launch(outside, dim=1, inputs=[41, wp.zeros(1, dtype=float)])
        wp.synchronize()


def of_the_largest(count, lanes):
    largest = wp.types.vector(length=65536, dtype=wp.float64)

    @wp.kernel(module="unique", module_options={"lanes": lanes})
    def kept(n: int, out: wp.array(dtype=wp.float64)):
        i = wp.tid()
        a = largest()
        b = largest()
        c = largest()
        for k in range(n):
            a[k] = wp.float64(k + i)
            b[2 * k] = a[k]
            c[3 * k] = b[k]
        s = wp.float64(0.0)
        for k in range(n):
            s += a[k] + b[k] * c[k]
        if wp.static(count > 3):
            d = b
            e = c
            d[i] = s
            e[i] = d[n]
            out[i] = a[n] + b[n] + c[n] + d[i + 1] + e[i]
        else:
            out[i] = s

    return kept


@pytest.mark.parametrize("lanes", [1, 16])
def test_the_largest_vectors_have_room_on_the_stack_with_any_number_of_lanes(lanes):
    out = wp.zeros(20, dtype=wp.float64)
    if not wp.get_device().is_cpu:
        with pytest.raises(
            ValueError, match=r"'kept' needs 157\d{4} bytes of local memory.*there are 524288"
        ) as caught:
            wp.launch(of_the_largest(3, lanes), dim=20, inputs=[50, out])
        assert isinstance(caught.value, wp.UsageError)
        return
    wp.launch(of_the_largest(3, lanes), dim=20, inputs=[50, out])
    for i in range(20):
        b, c = np.zeros(150), np.zeros(150)
        for k in range(50):
            b[2 * k] = k + i
            c[3 * k] = b[k]
        assert out.numpy()[i] == sum(k + i for k in range(50)) + b[:50] @ c[:50]


def test_too_many_of_them_are_an_error_that_says_how_much_they_need():
    with pytest.raises(wp.CompileError, match="vectors and matrices of 'kept' need 2621440 bytes.*there are 2097152"):
        wp.launch(of_the_largest(5, 1), dim=20, inputs=[50, wp.zeros(20, dtype=wp.float64)])


vec300 = wp.types.vector(length=300, dtype=float)
mat30_10 = wp.types.matrix(shape=(30, 10), dtype=float)


@wp.kernel(module_options={"mode": "debug"})
def writes_outside(at: int, out: wp.array(dtype=float)):
    v = vec300(1.0)
    v[at] = 2.0
    out[0] = v[0]


@wp.kernel(module_options={"mode": "debug"})
def reads_outside(at: int, out: wp.array(dtype=float)):
    m = mat30_10(1.0)
    out[0] = m[1, at]


@pytest.mark.parametrize(("kernel", "extent"), [(writes_outside, 300), (reads_outside, 10)])
def test_a_component_outside_of_hundreds_is_the_same_error(kernel, extent):
    wp.launch(kernel, dim=1, inputs=[extent - 1, wp.zeros(1, dtype=float)])
    wp.synchronize()
    with pytest.raises(Exception, match=f"index {extent} is out of bounds for axis . of a value .*float32"):
        wp.launch(kernel, dim=1, inputs=[extent, wp.zeros(1, dtype=float)])
        wp.synchronize()


@wp.kernel
def from_parameter(values: vec40, matrix: mat78, at: wp.array(dtype=int), out: wp.array2d(dtype=wp.float64)):
    i = wp.tid()
    changed = values
    changed[at[i]] = -1.0
    out[i, 0] = wp.float64(values[at[i]])
    out[i, 1] = wp.float64(changed[at[i]] + changed[0])
    out[i, 2] = matrix[at[i] % 7, at[i] % 8]


def test_parameters_are_indexed_by_computed_numbers():
    at = np.arange(THREADS) + 1
    out = wp.zeros((THREADS, 3), dtype=wp.float64)
    numbers = np.arange(56.0).reshape(7, 8)
    wp.launch(
        from_parameter, THREADS, inputs=[vec40(*range(100, 140)), mat78(*numbers.ravel()), wp.array(at, dtype=int), out]
    )
    expected = np.stack([100.0 + at, np.full(THREADS, 99.0), numbers[at % 7, at % 8]], axis=1)
    np.testing.assert_array_equal(out.numpy(), expected)


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("dtype", [wp.float32, wp.float64, wp.float16, wp.int8, wp.int64])
@pytest.mark.parametrize("count", [17, 20, 32, 50, 63])
def test_neighbouring_vectors_are_read_and_written_whole(count, dtype, lanes):
    vector = wp.types.vector(length=count, dtype=dtype)

    @wp.kernel(module="unique", module_options={"lanes": lanes})
    def combine(a: wp.array(dtype=vector), b: wp.array(dtype=vector), out: wp.array(dtype=vector)):
        i = wp.tid()
        out[i] = a[i] * dtype(3) - b[i]

    numbers = np.arange(THREADS * count).reshape(THREADS, count)
    a, b = (numbers % 30).astype(wp.dtype_to_numpy(dtype)), (numbers % 7).astype(wp.dtype_to_numpy(dtype))
    out = wp.zeros(THREADS + 1, dtype=vector)
    wp.launch(combine, THREADS, [wp.array(a, dtype=vector), wp.array(b, dtype=vector), out])
    np.testing.assert_array_equal(out.numpy()[:THREADS], a * 3 - b)
    assert not out.numpy()[THREADS].any()
