"""wp.tid() with more or fewer names than the launch has dimensions."""

import re

import numpy as np
import pytest
import warp as wp
from kept_warnings import Warnings


@wp.func
def leading():
    i = wp.tid()
    return i


@wp.kernel
def one(seen: wp.array[int]):
    i = wp.tid()
    wp.atomic_add(seen, i, 1)


@wp.kernel
def two(seen: wp.array2d[int]):
    i, j = wp.tid()
    wp.atomic_add(seen, i, j, 1)


@wp.kernel
def three(seen: wp.array3d[int]):
    i, j, k = wp.tid()
    wp.atomic_add(seen, i, j, k, 1)


@wp.kernel
def four(seen: wp.array4d[int]):
    i, j, k, l = wp.tid()
    wp.atomic_add(seen, i, j, k, l, 1)


KERNELS = {1: one, 2: two, 3: three, 4: four}
EXTENTS = [(7,), (1,), (300,), (2, 3), (5, 1), (1, 40), (0, 3), (3, 0)]
EXTENTS += [(3, 1, 5), (2, 3, 4), (4, 1, 1), (2, 3, 2, 3), (2, 1, 3, 1)]


@pytest.mark.parametrize("names", KERNELS)
@pytest.mark.parametrize("dim", EXTENTS, ids=str)
def test_names_are_the_leading_coordinates_and_the_others_zero(names, dim):
    expected = np.zeros(tuple(max(n, 1) for n in (*dim, 1, 1, 1, 1)[:names]), dtype=np.int32)
    for thread in np.ndindex(*dim):
        expected[(*thread, 0, 0, 0, 0)[:names]] += 1
    seen = wp.zeros(expected.shape, dtype=int)
    wp.launch(KERNELS[names], dim=dim, inputs=[seen])
    np.testing.assert_array_equal(seen.numpy(), expected)
    command = wp.launch(KERNELS[names], dim=1, inputs=[seen], record_cmd=True)
    command.set_dim(dim)
    command.launch()
    np.testing.assert_array_equal(seen.numpy(), 2 * expected)


def test_calls_of_different_numbers_of_names_in_one_kernel():
    @wp.kernel
    def both(seen: wp.array3d[int], same: wp.array[int]):
        i = wp.tid()
        j, k = wp.tid()
        wp.atomic_add(seen, leading(), j, k, 1)
        if i != j:
            same[0] = 0

    for dim in [(3,), (3, 2), (3, 2, 4)]:
        seen, same = wp.zeros((3, 3, 4), dtype=int), wp.ones(1, dtype=int)
        wp.launch(both, dim=dim, inputs=[seen, same])
        expected = np.zeros((3, 3, 4), dtype=np.int32)
        for thread in np.ndindex(*dim):
            i, j = (*thread, 0)[:2]
            expected[i, i, j] += 1
        np.testing.assert_array_equal(seen.numpy(), expected)
        assert same.numpy()[0] == 1


def test_a_call_in_a_function_gives_the_leading_coordinate():
    @wp.kernel
    def through_a_function(seen: wp.array[int]):
        wp.atomic_add(seen, leading(), 1)

    seen = wp.zeros(3, dtype=int)
    wp.launch(through_a_function, dim=(3, 7), inputs=[seen])
    assert seen.numpy().tolist() == [7, 7, 7]
    wp.launch(through_a_function, dim=3, inputs=[seen])
    assert seen.numpy().tolist() == [8, 8, 8]


def test_a_kernel_without_tid_runs_once_for_each_thread():
    @wp.kernel
    def count(total: wp.array[int]):
        wp.atomic_add(total, 0, 1)

    total = wp.zeros(1, dtype=int)
    wp.launch(count, dim=(3, 4, 5, 6), inputs=[total])
    assert total.numpy()[0] == 360


@wp.kernel
def squares(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    wp.atomic_add(out, i, a[i] * a[i])


@wp.kernel
def neighbours(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    left, right = wp.max(i - 1, 0), wp.min(i + 1, a.shape[0] - 1)
    wp.atomic_add(out, i, a[left] * a[right] + a[i])


def _gradient(kernel, dim, a, seed):
    x, out = wp.array(a, dtype=float, requires_grad=True), wp.zeros(len(a), requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=dim, inputs=[x, out])
    tape.backward(grads={out: wp.array(seed, dtype=float)})
    return out.numpy(), x.grad.numpy()


@pytest.mark.parametrize("rest", [(), (1,), (3,), (16,), (37,), (5, 7)], ids=str)
@pytest.mark.parametrize("n", [1, 4, 33, 3000])
def test_gradients_of_elements_that_threads_share_add_up(n, rest):
    rng = np.random.default_rng(n)
    a, seed = rng.integers(-4, 5, n).astype(np.float32), rng.integers(-4, 5, n).astype(np.float32)
    threads = int(np.prod(rest, dtype=int))
    out, gradient = _gradient(squares, (n, *rest), a, seed)
    np.testing.assert_array_equal(out, threads * a * a)
    np.testing.assert_array_equal(gradient, threads * 2.0 * a * seed)
    left, right = np.maximum(np.arange(n) - 1, 0), np.minimum(np.arange(n) + 1, n - 1)
    expected = seed.astype(float)
    np.add.at(expected, left, seed * a[right])
    np.add.at(expected, right, seed * a[left])
    out, gradient = _gradient(neighbours, (n, *rest), a, seed)
    np.testing.assert_array_equal(out, threads * (a[left] * a[right] + a))
    np.testing.assert_array_equal(gradient, threads * expected)


@pytest.mark.parametrize("dim", [(6,), (6, 1), (6, 1, 1)], ids=str)
def test_names_beyond_the_dimensions_are_zero_in_gradients_too(dim):
    @wp.kernel
    def product(a: wp.array2d[float], out: wp.array2d[float]):
        i, j = wp.tid()
        out[i, j] = a[i, j] * a[i, j + 1]

    a = wp.array(np.arange(1.0, 13.0).reshape(6, 2), dtype=float, requires_grad=True)
    out = wp.zeros((6, 2), requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(product, dim=dim, inputs=[a, out])
    tape.backward(grads={out: wp.ones((6, 2))})
    np.testing.assert_array_equal(a.grad.numpy(), a.numpy()[:, ::-1])
    assert (out.numpy()[:, 1] == 0).all()


def test_overwriting_by_the_leading_coordinate_takes_the_gradient_once():
    """Every thread of a row stores the same number: which of them counts is not known, that one does is."""

    @wp.kernel
    def store(a: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        out[i] = 3.0 * a[i]

    a, out = wp.ones(5, requires_grad=True), wp.zeros(5, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(store, dim=(5, 1), inputs=[a, out])
    tape.backward(grads={out: wp.ones(5)})
    assert a.grad.numpy().tolist() == [3.0] * 5
    assert out.numpy().tolist() == [3.0] * 5


def test_what_atomics_gave_is_kept_for_each_thread():
    @wp.kernel
    def append(a: wp.array[float], count: wp.array[int], out: wp.array[float]):
        i = wp.tid()
        at = wp.atomic_add(count, 0, 1)
        out[at] = a[i] * float(1 + at % 2)

    a = wp.array(np.arange(1.0, 5.0), dtype=float, requires_grad=True)
    count, out = wp.zeros(1, dtype=int), wp.zeros(12, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(append, dim=(4, 3), inputs=[a, count, out])
    seed = np.arange(1.0, 13.0, dtype=np.float32)
    tape.backward(grads={out: wp.array(seed, dtype=float)})
    assert np.isclose(np.dot(a.grad.numpy(), a.numpy()), np.dot(out.numpy(), seed))  # homogeneous of degree 1


def test_debug_mode_names_the_whole_thread():
    @wp.kernel(module_options={"mode": "debug"})
    def outside(a: wp.array[float]):
        i = wp.tid()
        a[i] = 1.0

    with pytest.raises(IndexError, match=r"thread \(3, 0\)"):
        wp.launch(outside, dim=(4, 2), inputs=[wp.zeros(3)])


def test_a_launch_without_dim_has_the_dimensions_of_the_names():
    seen = wp.zeros((2, 3), dtype=int)
    wp.launch(two, dim=(2, 3, 4), inputs=[seen])
    wp.launch(two, inputs=[seen])
    assert (seen.numpy() == 5).all()


@pytest.mark.host_memory("is about lanes of the CPU", on="cuda")
def test_an_extent_of_one_at_the_end_does_not_take_the_lanes(capfd, monkeypatch):
    @wp.kernel(module="unique")
    def root(a: wp.array2d[float]):
        i, j = wp.tid()
        a[i, j] = wp.sqrt(wp.sqrt(a[i, j]))

    monkeypatch.setattr(wp.config, "log_level", wp.LOG_DEBUG)
    monkeypatch.setattr(wp.config, "cache_kernels", False)
    lanes = []
    for dim in [(1000, 64), (1000, 1), (1000, 1, 1)]:
        a = wp.full((1000, 64), 16.0, dtype=float)
        wp.launch(root, dim=dim, inputs=[a])
        np.testing.assert_array_equal(a.numpy()[:, : dim[1]], 2.0)
        np.testing.assert_array_equal(a.numpy()[:, dim[1] :], 16.0)
        lanes += re.findall(r", (\d+) lane", capfd.readouterr().out)
    assert len(lanes) == 2  # the code of the second launch serves the third
    assert lanes[0] == lanes[1] != "1"


# ---- launches with fewer dimensions ----


def test_debug_mode_refuses_a_launch_with_fewer_dimensions_than_names(device):
    @wp.kernel(module_options={"mode": "debug"}, module="unique")
    def k(x: wp.array2d[float]):
        i, j = wp.tid()
        x[i, j] = 1.0

    x = wp.zeros((4, 5), device=device)
    for _ in range(2):
        with pytest.raises(wp.UsageError) as error:
            wp.launch(k, 4, inputs=[x], device=device)
        text = str(error.value)
        assert "dim (4,) has 1 extent, and kernel 'k' unpacks wp.tid() to 2 names: the last would be 0" in text
        assert "i, j = wp.tid()" in text and "dim=(4, 1) says that 0 is meant" in text
    assert not x.numpy().any()
    wp.launch(k, (4, 1), inputs=[x], device=device)
    assert x.numpy().sum() == 4.0
    command = wp.launch(k, (4, 5), inputs=[x], device=device, record_cmd=True)
    with pytest.raises(wp.UsageError, match="unpacks wp.tid"):
        command.set_dim(4)


@pytest.fixture
def warnings_of_weft():
    with Warnings() as found:
        yield found


def test_a_launch_that_writes_one_column_is_told_once(warnings_of_weft, device):
    @wp.kernel(module="unique")
    def k(x: wp.array[float], y: wp.array2d[float]):
        i, j = wp.tid()
        y[i, j] = x[i] + float(j)

    x, y = wp.ones(4, device=device), wp.zeros((4, 5), device=device)
    for _ in range(3):
        wp.launch(k, 4, inputs=[x, y], device=device)
    assert y.numpy().sum() == 4.0
    (message,) = warnings_of_weft
    assert "dim (4,) has 1 extent, and kernel 'k' unpacks wp.tid() to 2 names" in message
    assert "test_tid.py:" in message
    assert "of 'y', which has shape (4, 5), only index 0 along axis 1 is written" in message
    assert "dim=(4, 1) says that 0 is meant" in message


def test_launches_that_mean_zero_are_told_nothing(warnings_of_weft):
    @wp.kernel(module="unique")
    def first(x: wp.array2d[float], y: wp.array2d[float]):
        i, j = wp.tid()
        y[i, j] = x[i, 3 - j]

    @wp.kernel(module="unique")
    def rows(x: wp.array[float], y: wp.array2d[float]):
        i, j = wp.tid()
        for k in range(5):
            y[i, k] = x[i + j]

    @wp.kernel(module="unique")
    def whole(y: wp.array2d[float]):
        i, j = wp.tid()
        y[i, j] = 1.0

    x, wide, narrow = wp.ones(4), wp.zeros((4, 5)), wp.zeros((4, 1))
    wp.launch(first, 4, inputs=[wide, narrow])
    wp.launch(rows, 4, inputs=[x, wide])
    wp.launch(whole, (4, 1), inputs=[wide])
    wp.launch(whole, 4, inputs=[narrow])
    assert warnings_of_weft == []
