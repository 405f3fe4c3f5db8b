"""Arrays that kernels make and views that they take: addresses, shapes known at run time, rows of indexed arrays."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected


def launched(function, dim, *arguments):
    wp.launch(wp.kernel(function, module="unique"), dim=dim, inputs=list(arguments))


def counting(*shape, dtype=float, **options):
    return wp.array(np.arange(np.prod(shape)).reshape(shape), dtype=dtype, **options)


# ---- addresses ----


def test_the_address_of_an_array_in_a_kernel():
    def kernel(a: wp.array2d[wp.vec3], i: int, out: wp.array[wp.uint64]):
        out[0] = a.ptr
        out[1] = a[i].ptr
        out[2] = a[1:, 1].ptr

    a, out = wp.zeros((3, 2), dtype=wp.vec3), wp.zeros(3, dtype=wp.uint64)
    launched(kernel, 1, a, 2, out)
    assert (out.numpy() - np.uint64(a.ptr)).tolist() == [0, 48, 36]


def test_views_have_shapes_known_at_run_time():
    def kernel(a: wp.array[float], n: int, m: int, out: wp.array[float]):
        i = wp.tid()
        grid = wp.array(ptr=a.ptr + wp.uint64(4), shape=(n, m), dtype=float)
        pairs = wp.array(ptr=a.ptr, shape=(n,), dtype=wp.vec2)
        out[i] = grid[i, m - 1] + 100.0 * pairs[i][1] + float(1000 * grid.shape[1])
        grid[i, 0] = -1.0

    a, out = counting(7), wp.zeros(2)
    launched(kernel, 2, a, 2, 3, out)
    assert out.list() == [3103.0, 3306.0]
    assert a.list() == [0.0, -1.0, 2.0, 3.0, -1.0, 5.0, 6.0]
    a = counting(7)
    launched(kernel, 2, a, 2, 1, out)  # the last column is the first
    assert out.list() == [1101.0, 1302.0]
    assert a.list() == [0.0, -1.0, -1.0, 3.0, 4.0, 5.0, 6.0]


def test_views_behind_functions_branches_and_loops():
    @wp.func
    def row(p: wp.uint64, i: int, m: int):
        return wp.array(ptr=p + wp.uint64(4 * i * m), shape=(m,), dtype=float)

    def kernel(a: wp.array[float], b: wp.array[float], m: int, out: wp.array[float]):
        i = wp.tid()
        p = a.ptr
        if i % 2 == 1:
            p = b.ptr
        chosen = row(p, i, m)
        s = float(0.0)
        for j in range(m):
            s += chosen[j]
        out[i] = s

    a, b, out = counting(40), wp.array(-np.arange(40.0), dtype=float), wp.zeros(20)
    launched(kernel, 20, a, b, 2, out)
    assert out.list() == [(4 * i + 1) * (-1.0) ** i for i in range(20)]


def test_gradients_go_through_views_at_the_address_of_an_array():
    @wp.kernel
    def kernel(a: wp.array[float], n: int, m: int, out: wp.array[float]):
        i = wp.tid()
        p = a.ptr + wp.uint64(4)
        grid = wp.array(ptr=p, shape=(n, m), dtype=float)
        pairs = wp.array(ptr=p - wp.uint64(4), shape=(n,), dtype=wp.vec2)
        s = float(0.0)
        for j in range(m):
            s += grid[i, j] * grid[i, j] * float(j + 1)
        out[i] = s + 10.0 * pairs[i][0] * a[0]

    numbers = np.random.default_rng(5).random(7).astype(np.float32)
    a = wp.array(numbers, dtype=float, requires_grad=True)
    out = wp.zeros(2, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=2, inputs=[a, 2, 3, out])
    grid = numbers[1:].reshape(2, 3)
    weights = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(
        out.numpy(), (grid**2 * weights).sum(axis=1) + 10 * numbers[[0, 2]] * numbers[0], rtol=1e-5
    )
    tape.backward(grads={out: wp.array([1.0, 2.0], dtype=float)})
    expected = np.zeros(7)
    expected[1:] = (2 * grid * weights * [[1.0], [2.0]]).ravel()
    expected[0] += 10 * (2 * numbers[0] + 2 * numbers[2])
    expected[2] += 10 * 2 * numbers[0]
    np.testing.assert_allclose(a.grad.numpy(), expected, rtol=1e-5)


def test_gradients_of_what_views_write():
    @wp.kernel
    def kernel(x: wp.array[float], n: int, y: wp.array[float]):
        i = wp.tid()
        grid = wp.array(ptr=y.ptr, shape=(n, 2), dtype=float)
        grid[i, 1] = x[i] * x[i]
        y[2 * i] = grid[i, 1] * 3.0
        wp.atomic_add(grid, i, 0, x[i])

    x, y = wp.array([2.0, 3.0], dtype=float, requires_grad=True), wp.zeros(4, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=2, inputs=[x, 2, y])
    assert y.list() == [14.0, 4.0, 30.0, 9.0]
    tape.backward(grads={y: wp.array([1.0, 10.0, 2.0, 20.0], dtype=float)})
    assert x.grad.list() == [(3 * 4 + 1) + 10 * 4, 2 * (3 * 6 + 1) + 20 * 6]


def test_tangents_go_through_views():
    @wp.kernel
    def kernel(a: wp.array[float], n: int, out: wp.array[float]):
        i = wp.tid()
        pairs = wp.array(ptr=a.ptr, shape=(n,), dtype=wp.vec2)
        out[i] = pairs[i][0] * pairs[i][1]

    a, out, tangent = counting(4), wp.zeros(2), wp.zeros(2)
    direction = wp.array([1.0, 10.0, 100.0, 1000.0], dtype=float)
    wp.jvp(kernel, dim=2, inputs=[a, 2], outputs=[out], input_tangents=[direction, None], output_tangents=[tangent])
    assert out.list() == [0.0, 6.0] and tangent.list() == [1.0, 2300.0]


def test_views_that_would_lose_a_gradient_are_refused():
    def at_one_of_two(a: wp.array[float], b: wp.array[float], out: wp.array[float]):
        p = a.ptr
        if out.shape[0] > 1:
            p = b.ptr
        view = wp.array(ptr=p, shape=(2,), dtype=float)
        out[0] = view[1]

    def of_another_type(a: wp.array[float], b: wp.array[float], out: wp.array[float]):
        view = wp.array(ptr=a.ptr, shape=(1,), dtype=wp.float64)
        out[0] = float(view[0])

    for function, message in ((at_one_of_two, "not that of one array"), (of_another_type, "shows float64 in an array")):
        kernel = wp.Kernel(function)
        with pytest.raises(wp.CompileError, match=message), wp.Tape():
            wp.launch(kernel, dim=1, inputs=[wp.ones(2, requires_grad=True) for _ in range(3)])
        # Arrays without gradients have nothing to lose.
        out = wp.zeros(2, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(kernel, dim=1, inputs=[wp.ones(2), wp.ones(2), out])
        tape.backward(grads={out: wp.ones(2)})


def test_bits_of_an_array_have_no_gradient():
    @wp.kernel
    def kernel(a: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        bits = wp.array(ptr=a.ptr, shape=(4,), dtype=int)
        if bits[i] >= 0:
            out[i] = 2.0 * a[i]

    numbers = np.array([1.0, -1.0, 0.0, 0.0], dtype=np.float32)
    numbers.view(np.int32)[3] = -1
    a, out = wp.array(numbers, requires_grad=True), wp.zeros(4, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=4, inputs=[a, out])
    tape.backward(grads={out: wp.array([1.0, 2.0, 3.0, 4.0], dtype=float)})
    assert a.grad.list() == [2.0, 0.0, 6.0, 0.0]


def test_a_view_at_the_address_of_an_array_of_the_thread_shows_its_elements():
    def kernel(out: wp.array[float]):
        own = wp.zeros(shape=(3,), dtype=float)
        view = wp.array(ptr=own.ptr, shape=(3,), dtype=float)
        own[1] = float(wp.tid())
        out[wp.tid()] = view[1]

    out = wp.zeros(9)
    launched(kernel, 9, out)
    assert out.list() == list(range(9))


# ---- arrays of the thread as parameters ----


def test_fixedarray_annotates_parameters_and_results():
    @wp.func
    def add_to_second(a: wp.fixedarray(shape=(3,), dtype=float), x: float):
        a[1] = a[1] + x
        return a[1]

    @wp.func
    def filled(x: float) -> wp.fixedarray(shape=3, dtype=float):
        made = wp.zeros(shape=(3,), dtype=float)
        made[2] = x
        return made

    def kernel(x: wp.array[float], out: wp.array2d[float]):
        i = wp.tid()
        own = filled(x[i])
        out[i, 0] = add_to_second(own, 2.0 * x[i])
        for j in range(3):
            out[i, 1 + j] = own[j]

    x, out = wp.array(np.arange(20.0), dtype=float), wp.zeros((20, 4))
    launched(kernel, 20, x, out)
    n = np.arange(20.0)
    np.testing.assert_array_equal(out.numpy(), np.stack([2 * n, 0 * n, 2 * n, n], axis=1))
    annotation = wp.fixedarray(shape=(3, 4), dtype=float)
    assert (annotation.shape, annotation.ndim, annotation.dtype) == ((3, 4), 2, wp.float32)
    assert isinstance(annotation, wp.fixedarray) and not isinstance(wp.array2d[float], wp.fixedarray)
    assert not isinstance(wp.zeros(3), wp.fixedarray)


# ---- '*' of a slice ----


def test_a_slice_of_known_length_is_unpacked():
    def kernel(a: wp.array2d[float], v: wp.array[wp.vec3], out: wp.array2d[wp.vec3]):
        i = wp.tid()
        out[i, 0] = wp.vec3(*a[i, :3])
        out[i, 1] = wp.vec3(*a[i][1:4])
        out[i, 2] = wp.vec3(1.0, *a[i, -2:])
        out[i, 3] = wp.vec3(*a[i, 4:0:-2], 7.0)
        out[i, 4] = wp.cross(*v[:2])
        out[i, 5] = wp.vec3(*a[i, -1:-4:-1])

    a = counting(3, 5)
    v = wp.array([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0)], dtype=wp.vec3)
    out = wp.zeros((3, 6), dtype=wp.vec3)
    launched(kernel, 3, a, v, out)
    for i, row in enumerate(a.numpy()):
        expected = [row[:3], row[1:4], [1.0, *row[-2:]], [*row[4:0:-2], 7.0], [0.0, 0.0, 1.0], row[-1:-4:-1]]
        np.testing.assert_array_equal(out.numpy()[i], expected)


def test_rows_are_unpacked_and_gradients_pass():
    @wp.func
    def sum_of_products(a: wp.array[float], b: wp.array[float], n: int):
        s = float(0.0)
        for j in range(n):
            s += a[j] * b[j]
        return s

    @wp.kernel
    def kernel(a: wp.array2d[float], out: wp.array[float]):
        out[0] = sum_of_products(*a[1:3], 2) + wp.length_sq(wp.vec2(*a[0, :2]))

    a, out = counting(3, 2, requires_grad=True), wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=1, inputs=[a, out])
    assert out.list() == [2 * 4 + 3 * 5 + 1]
    tape.backward(grads={out: wp.ones(1)})
    np.testing.assert_array_equal(a.grad.numpy(), [[0, 2], [4, 5], [2, 3]])


@pytest.mark.parametrize(
    "slice_text, message",
    [
        ("a[i:3]", "known at compile time"),
        ("a[1:]", "depends on the array"),
        ("a[:-1]", "depends on the array"),
        ("a[0:4:0]", "step of a slice must not be 0"),
        ("b[:2, 0]", "one dimension of an array, behind indices"),
        ("b[:2, :2]", "one dimension of an array, behind indices"),
        ("a[0:3000]", "at most 2048"),
    ],
)
def test_slices_that_cannot_be_unpacked(slice_text, message, tmp_path):
    source = tmp_path / "program.py"
    source.write_text(
        "import warp as wp\n@wp.kernel\ndef kernel(a: wp.array[float], b: wp.array2d[float], i: int):\n"
        f"    wp.printf('%f', wp.vec2(*{slice_text})[0])\n"
    )
    scope = {}
    exec(compile(source.read_text(), source, "exec"), scope)
    with pytest.raises(wp.CompileError, match=message):
        wp.launch(scope["kernel"], dim=1, inputs=[wp.zeros(3), wp.zeros((3, 3)), 0])


# ---- rows of indexed arrays ----


def test_fewer_indices_give_an_indexed_array_of_the_rest():
    @wp.func
    def last(x: wp.indexedarray[float]):
        return x[-1] + 1000.0 * float(x.shape[0])

    def kernel(x: wp.indexedarray[float, 3], out: wp.array[float]):
        plane = x[1]
        row = plane[2]
        out[0] = row[0]
        out[1] = x[1][2][1]
        out[2] = x[1, 2][1]
        out[3] = float(10 * plane.shape[0] + plane.shape[1])
        out[4] = last(row)
        out[5] = last(x[0, 1])
        x[0][1][0] = -1.0
        x[0, 2][1] += 100.0
        wp.atomic_add(x[1], 0, 1, 1000.0)

    base = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    data, out = wp.array(base), wp.zeros(6)
    rows, columns = [1, 0, 2], [3, 0]
    launched(kernel, 1, wp.indexedarray(data, [None, rows, columns]), out)
    chosen = base[:, rows][:, :, columns]
    assert out.list() == [
        chosen[1, 2, 0], chosen[1, 2, 1], chosen[1, 2, 1], 32.0, chosen[1, 2, 1] + 2000, chosen[0, 1, 1] + 2000
    ]  # fmt: skip
    base[0, rows[1], columns[0]] = -1.0
    base[0, rows[2], columns[1]] += 100.0
    base[1, rows[0], columns[1]] += 1000.0
    np.testing.assert_array_equal(data.numpy(), base)


def test_gradients_of_rows_of_an_indexed_array():
    @wp.kernel
    def kernel(x: wp.indexedarray[float, 2], out: wp.array[float]):
        i = wp.tid()
        row = x[i]
        out[i] = row[0] * row[1]

    data, out = counting(3, 4, requires_grad=True), wp.zeros(2, requires_grad=True)
    chosen = wp.indexedarray(data, [[2, 0], [1, 3]])
    with wp.Tape() as tape:
        wp.launch(kernel, dim=2, inputs=[chosen, out])
    tape.backward(grads={out: wp.array([1.0, 2.0], dtype=float)})
    np.testing.assert_array_equal(data.grad.numpy(), [[0, 6, 0, 2], [0, 0, 0, 0], [0, 11, 0, 9]])


def test_a_row_is_no_element():
    def kernel(x: wp.indexedarray[float, 2]):
        x[0] = 1.0

    with pytest.raises(IndexError, match="an index is missing"):
        launched(kernel, 1, wp.indexedarray(wp.zeros((2, 2)), [[0], [1]]))
