"""Launches on CUDA devices of so many threads that one thread has several elements
(codegen/cuda/thread_coarsening.cpp): each
element is done once, with the results of one thread for each, for any shape and any rest at its ends.
"""

import numpy as np
import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]
DEVICE = "cuda:0"


def enough():
    """So many elements are more than four for each thread that the device has room for."""
    return 4 * 2048 * wp.get_device(DEVICE).sm_count


def values(shape, dtype=np.float32):
    count = int(np.prod(shape))
    return (np.arange(count) * 7919 % 251).astype(dtype).reshape(shape)


@wp.kernel
def count_1d(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = y[i] + x[i]


@wp.kernel
def count_2d(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
    i, j = wp.tid()
    y[i, j] = y[i, j] + x[i, j] + float(i % 3)


@wp.kernel
def count_3d(x: wp.array3d(dtype=float), y: wp.array3d(dtype=float)):
    i, j, k = wp.tid()
    y[i, j, k] = y[i, j, k] + x[i, j, k] + float(i % 3) + float(j % 5)


@wp.kernel
def count_4d(x: wp.array4d(dtype=float), y: wp.array4d(dtype=float)):
    i, j, k, l = wp.tid()
    y[i, j, k, l] = y[i, j, k, l] + x[i, j, k, l] + float(i % 3) + float(j % 5) + float(l % 7)


COUNTS = {1: count_1d, 2: count_2d, 3: count_3d, 4: count_4d}
ADDED = {1: [], 2: [(0, 3)], 3: [(0, 3), (1, 5)], 4: [(0, 3), (1, 5), (3, 7)]}  # (axis, base of its coordinate)


def check_counts(shape, block_dim=256, launches=2):
    x = values(shape)
    added = x.copy()
    grid = np.indices(shape)
    for axis, base in ADDED[len(shape)]:
        added += grid[axis] % base
    y = wp.zeros(shape, dtype=float, device=DEVICE)
    kernel = COUNTS[len(shape)]
    for _ in range(launches):
        wp.launch(kernel, shape, inputs=[wp.array(x, device=DEVICE), y], device=DEVICE, block_dim=block_dim)
    np.testing.assert_array_equal(y.numpy(), launches * added)


@pytest.mark.parametrize("block_dim", [256, 100, 32, 1024])
@pytest.mark.parametrize("more", [-1, 0, 1, 3, 257, 1023])
def test_threads_of_one_axis_do_each_element_once(block_dim, more):
    check_counts((enough() + more,), block_dim)


@pytest.mark.parametrize(
    "shape",
    [
        lambda n: (n // 512, 512),
        lambda n: (n // 509 + 3, 509),  # rows are left over, and threads idle at their ends
        lambda n: (n // 64 + 1, 64),  # blocks of fewer threads
        lambda n: (n // 48 + 2, 48),
        lambda n: (n // 3 + 1, 3),  # rows too short to have blocks of their own
        lambda n: (3, n // 3 + 1),
        lambda n: (1, n),
        lambda n: (n, 1),
        lambda n: (n // 10000 + 1, 13, 1000),
        lambda n: (5, n // 1000, 251),
        lambda n: (n // 256, 1, 256),
        lambda n: (n // 2000 + 1, 2, 3, 400),
        lambda n: (1, 3, n // 300, 128),
        lambda n: (n // 256, 1, 1, 256),
    ],
)
def test_threads_of_several_axes_do_each_element_once(shape):
    check_counts(shape(enough()))


@pytest.mark.parametrize("block_dim", [32, 96, 1024])
def test_blocks_of_the_size_that_the_launch_says(block_dim):
    n = enough()
    check_counts((n // 500 + 1, 500), block_dim)
    check_counts((n // 1024 + 1, 1024), block_dim)
    check_counts((n // 3000 + 2, 5, 700), block_dim)


def test_more_rows_than_blocks_may_be_on_an_axis():
    check_counts((4 * 65535 + 1, 32), block_dim=32, launches=1)


def test_few_blocks_take_all_elements():
    n = enough() + 77
    y = wp.zeros(n, dtype=float, device=DEVICE)
    wp.launch(count_1d, n, inputs=[wp.ones(n, dtype=float, device=DEVICE), y], device=DEVICE, max_blocks=5)
    np.testing.assert_array_equal(y.numpy(), 1.0)


# ---- kernels that begin with a test ----


@wp.kernel
def laplacian(u: wp.array3d(dtype=float), result: wp.array3d(dtype=float)):
    i, j, k = wp.tid()
    if i > 0 and i < u.shape[0] - 1 and j > 0 and j < u.shape[1] - 1 and k > 0 and k < u.shape[2] - 1:
        result[i, j, k] = (
            u[i - 1, j, k]
            + u[i + 1, j, k]
            + u[i, j - 1, k]
            + u[i, j + 1, k]
            + u[i, j, k - 1]
            + u[i, j, k + 1]
            - 6.0 * u[i, j, k]
        )


@pytest.mark.parametrize("shape", [lambda n: (n // 8000, 80, 100), lambda n: (17, n // 4000, 253)])
def test_a_stencil_with_a_border(shape):
    u = values(shape(enough()))
    if u.size < enough():
        u = values((u.shape[0] * 2 + 1, *u.shape[1:]))
    result = wp.full(u.shape, -1.0, dtype=float, device=DEVICE)
    wp.launch(laplacian, u.shape, inputs=[wp.array(u, device=DEVICE), result], device=DEVICE)
    expected = np.full_like(u, -1.0)
    inside = -6.0 * u[1:-1, 1:-1, 1:-1]
    for axis in range(3):
        for first, last in ((0, -2), (2, None)):
            part = [slice(1, -1)] * 3
            part[axis] = slice(first, last)
            inside = inside + u[tuple(part)]
    expected[1:-1, 1:-1, 1:-1] = inside
    np.testing.assert_array_equal(result.numpy(), expected)


@wp.kernel
def up_to(x: wp.array(dtype=float), y: wp.array(dtype=float), n: int):
    i = wp.tid()
    if i >= n:
        return
    y[i] = y[i] + x[i]


@pytest.mark.parametrize("left_out", [0, 1, 300, 5000])
def test_threads_behind_the_end_return(left_out):
    n = enough() + 12
    y = wp.zeros(n - left_out, dtype=float, device=DEVICE)
    x = wp.array(values(n - left_out), device=DEVICE)
    wp.launch(up_to, n, inputs=[x, y, n - left_out], device=DEVICE)
    np.testing.assert_array_equal(y.numpy(), x.numpy())


@wp.kernel
def in_tests(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    if v > 3.0:
        if i % 7 != 0:
            y[i] = y[i] + v


@wp.kernel
def behind_a_store(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = y[i] + 1.0
    if x[i] > 3.0:
        y[i] = y[i] + x[i]


@wp.kernel
def chosen(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    if v > 100.0:
        v = 2.0 * v
    else:
        v = v - 1.0
    y[i] = y[i] + v


@pytest.mark.parametrize(
    "kernel, expected",
    [
        (in_tests, lambda x, i: np.where((x > 3) & (i % 7 != 0), x, 0)),
        (behind_a_store, lambda x, i: np.where(x > 3, x + 1, 1)),
        (chosen, lambda x, i: np.where(x > 100, 2 * x, x - 1)),
    ],
    ids=lambda p: getattr(p, "key", ""),
)
def test_elements_that_take_different_ways(kernel, expected):
    n = enough() + 5
    x, y = wp.array(values(n), device=DEVICE), wp.zeros(n, dtype=float, device=DEVICE)
    wp.launch(kernel, n, inputs=[x, y], device=DEVICE)
    np.testing.assert_array_equal(y.numpy(), expected(x.numpy(), np.arange(n)))


# ---- elements of other types ----


@wp.struct
class Particle:
    position: wp.vec3
    kind: wp.int8
    mass: wp.float64


@wp.kernel
def move(p: wp.array(dtype=Particle), out: wp.array(dtype=wp.vec3), step: float):
    i = wp.tid()
    q = p[i]
    out[i] = q.position * step + wp.vec3(float(q.kind), float(q.mass), 0.0)


def test_coarsened_kernels_of_structs_equal_numpy():
    n = enough() + 9
    p = np.zeros(n, dtype=Particle.numpy_dtype())
    p["position"] = values((n, 3))
    p["kind"] = np.arange(n) % 100
    p["mass"] = np.arange(n) % 1000
    out = wp.zeros(n, dtype=wp.vec3, device=DEVICE)
    wp.launch(move, n, inputs=[wp.array(p, dtype=Particle, device=DEVICE), out, 2.0], device=DEVICE)
    expected = 2.0 * p["position"]
    expected[:, 0] += p["kind"]
    expected[:, 1] += p["mass"]
    np.testing.assert_array_equal(out.numpy(), expected)


@pytest.mark.parametrize("dtype", [wp.int8, wp.uint16, wp.int64, wp.float16, wp.float64, wp.vec2d, wp.vec4])
def test_numbers_and_vectors(dtype):
    n = enough() + 131
    x = np.arange(4 * n).reshape(n, 4)[:, : wp.types.type_length(dtype)] % 50
    x = x.astype(wp.dtype_to_numpy(wp.types.type_scalar_type(dtype)))
    one = wp.array(x.squeeze(), dtype=dtype, device=DEVICE)

    @wp.kernel
    def doubled(x: wp.array(dtype=dtype), y: wp.array(dtype=dtype)):
        i = wp.tid()
        y[i] = x[i] + x[i]

    two = wp.zeros(n, dtype=dtype, device=DEVICE)
    wp.launch(doubled, n, inputs=[one, two], device=DEVICE)
    np.testing.assert_array_equal(two.numpy(), 2 * one.numpy())


def test_arrays_with_gaps_and_arrays_that_are_one():
    n = enough() + 3
    whole = wp.array(values(2 * n), device=DEVICE)
    y = wp.zeros(n, dtype=float, device=DEVICE)
    wp.launch(count_1d, n, inputs=[whole[::2], y], device=DEVICE)
    np.testing.assert_array_equal(y.numpy(), whole.numpy()[::2])
    wp.launch(count_1d, n, inputs=[y, y], device=DEVICE)
    np.testing.assert_array_equal(y.numpy(), 2 * whole.numpy()[::2])


# ---- with what else stands on launches ----


@wp.kernel
def smooth(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
    i, j = wp.tid()
    y[i, j] = y[i, j] + x[i, j] * x[i, j + 1]


def test_coarsened_adjoints_equal_numpy():
    rows, columns = enough() // 300 + 1, 301
    x = wp.array(values((rows, columns)) / 64.0, dtype=float, device=DEVICE, requires_grad=True)
    y = wp.zeros((rows, columns - 1), dtype=float, device=DEVICE, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(smooth, y.shape, inputs=[x, y], device=DEVICE)
    seed = values(y.shape) / 32.0
    tape.backward(grads={y: wp.array(seed, device=DEVICE)})
    given = x.numpy()
    expected = np.zeros_like(given)
    expected[:, :-1] += seed * given[:, 1:]
    expected[:, 1:] += seed * given[:, :-1]
    np.testing.assert_array_equal(x.grad.numpy(), expected)  # small multiples of powers of two: exact


def test_coarsened_launches_in_a_graph_equal_numpy():
    n = enough() + 1
    x, y = wp.ones(n, dtype=float, device=DEVICE), wp.zeros(n, dtype=float, device=DEVICE)
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.launch(count_1d, n, inputs=[x, y], device=DEVICE)
        wp.launch(count_1d, n, inputs=[y, x], device=DEVICE)
    for _ in range(2):
        wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(y.numpy(), 3.0)
    np.testing.assert_array_equal(x.numpy(), 5.0)


@wp.kernel(launch_bounds=(128, 2))
def bounded(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = y[i] + x[i]


def test_kernels_with_launch_bounds():
    n = enough() + 130
    y = wp.zeros(n, dtype=float, device=DEVICE)
    wp.launch(bounded, n, inputs=[wp.ones(n, dtype=float, device=DEVICE), y], device=DEVICE, block_dim=128)
    np.testing.assert_array_equal(y.numpy(), 1.0)


def test_debug_mode_names_the_element_that_is_beyond(run):
    printed = run("""
        wp.config.mode = "debug"
        n = 4 * 2048 * wp.get_device("cuda:0").sm_count

        @wp.kernel
        def add(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = x[i] + 1.0

        try:
            wp.launch(add, dim=n + 1, inputs=[wp.zeros(n, device="cuda:0")], device="cuda:0")
            wp.synchronize()
        except Exception as error:
            print(f"index {n}" in str(error), "'x'" in str(error))
    """)
    assert printed == "True True\n"


@wp.kernel
def set_gradient(x: wp.array(dtype=float)):
    i = wp.tid()
    x.grad[i] = 1.0


@wp.kernel
def behind_an_address(address: wp.uint64, n: int, out: wp.array(dtype=float)):
    i = wp.tid()
    a = wp.array(ptr=address, shape=(n,), dtype=float)
    out[i] = a[i % n] + 1.0


def test_arrays_that_are_none_are_errors():
    """As in small launches: the question is asked for each element, and the device goes on."""
    n = enough() + 3
    plain, out = wp.zeros(n, dtype=float, device=DEVICE), wp.zeros(n, dtype=float, device=DEVICE)
    for kernel, inputs, message in (
        (set_gradient, [plain], "the array 'x' has no gradient"),
        (behind_an_address, [wp.uint64(0), 5, out], "'a' is None"),
    ):
        with pytest.raises(wp.UsageError, match=message):
            wp.launch(kernel, n, inputs=inputs, device=DEVICE)
            wp.synchronize_device(DEVICE)
    x = wp.zeros(n, dtype=float, device=DEVICE, requires_grad=True)
    wp.launch(set_gradient, n, inputs=[x], device=DEVICE)
    np.testing.assert_array_equal(x.grad.numpy(), 1.0)
    wp.launch(behind_an_address, n, inputs=[wp.uint64(x.grad.ptr), 5, out], device=DEVICE)
    np.testing.assert_array_equal(out.numpy(), 2.0)
