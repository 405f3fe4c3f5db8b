"""More than 2^31 elements along a dimension: untouched memory costs nothing, nor do strides of 0."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest
import warp as wp

N = 2**31 + 16


def bytes_of_zeros(dtype: Any = wp.uint8) -> wp.array:
    """N elements, of which only those take memory that are written."""
    room = mmap.mmap(-1, N * wp.types.type_size_in_bytes(dtype), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
    return wp.array(np.frombuffer(room, dtype=wp.dtype_to_numpy(dtype)), copy=False, device="cpu")


def one_many_times(dtype: Any = wp.float32, shape: tuple = (N,), device: Any = None) -> wp.array:
    """One element at N places."""
    whole = wp.ones(1, dtype=dtype, device=device)
    a = wp.array(ptr=whole.ptr, dtype=dtype, shape=shape, strides=(0,) * len(shape), device=device)
    a.memory = whole
    return a


@wp.struct
class Holder:
    a: wp.array(dtype=float)


@wp.kernel
def extents(a: wp.array2d(dtype=float), out: wp.array(dtype=wp.int64)):
    out[0] = wp.int64(a.shape[0])
    out[1] = wp.int64(a.shape[1])
    out[2] = wp.int64(len(a))
    out[3] = wp.int64(a.size)
    out[4] = wp.int64(a.shape[0] - 1)
    out[5] = wp.int64(a[5:].shape[0])
    out[6] = wp.int64(a[0:5].shape[0])
    out[7] = wp.int64(a[-7:].shape[0])
    out[8] = wp.int64(a[::2].shape[0])
    out[9] = wp.int64(a[::-1].shape[0])
    out[10] = wp.int64(wp.min(a.shape[0], a.shape[1]))


def test_extents_are_right_in_64_bits():
    out = wp.zeros(11, dtype=wp.int64)
    wp.launch(extents, 1, [one_many_times(shape=(N, 2)), out])
    assert out.list() == [N, 2, N, 2 * N, N - 1, N - 5, 5, 7, N // 2, N, 2]
    wp.launch(extents, 1, [wp.zeros((9, 2)), out])
    assert out.list() == [9, 2, 9, 18, 8, 4, 5, 7, 5, 9, 2]


@wp.kernel
def extents_within(holder: Holder, out: wp.array(dtype=wp.int64)):
    out[0] = wp.int64(holder.a.shape[0])


def test_extents_of_arrays_in_structs_are_right():
    holder = Holder()
    holder.a = one_many_times()
    out = wp.zeros(1, dtype=wp.int64)
    wp.launch(extents_within, 1, [holder, out])
    assert out[0] == N


@wp.kernel
def short_extent(a: wp.array(dtype=float), out: wp.array(dtype=int)):
    out[0] = a.shape[0]


@wp.kernel
def short_length_of_a_part(a: wp.array(dtype=float), out: wp.array(dtype=int)):
    out[0] = len(a[3:])


@wp.kernel
def short_extent_within(holder: Holder, out: wp.array(dtype=int)):
    out[0] = holder.a.shape[0]


@pytest.mark.parametrize("kernel", [short_extent, short_length_of_a_part])
def test_an_extent_that_does_not_fit_an_int32_is_an_error_at_its_line(kernel):
    out = wp.zeros(1, dtype=int)
    wp.launch(kernel, 1, [wp.zeros(7), out])
    assert out[0] in (7, 4)
    with pytest.raises(ValueError) as caught:
        wp.launch(kernel, 1, [one_many_times(), out])
    text = str(caught.value)
    assert "takes the extent of an array as an int32, and parameter 1 has 2147483664 elements along dimension 0" in text
    assert "out[0] = " in text and "help: write wp.int64(a.shape[...])" in text


def test_an_extent_within_a_struct_that_does_not_fit_is_an_error():
    holder = Holder()
    holder.a = one_many_times()
    with pytest.raises(ValueError, match="takes the extent of an array as an int32"):
        wp.launch(short_extent_within, 1, [holder, wp.zeros(1, dtype=int)])


@wp.kernel
def short_extent_of_another(a: wp.array(dtype=float), b: wp.array(dtype=float), out: wp.array(dtype=int)):
    if b[-1] == 1.0:
        out[0] = a.shape[0]


def test_extents_that_fit_stay_int32_beside_a_huge_array():
    out = wp.zeros(1, dtype=int)
    wp.launch(short_extent_of_another, 1, [wp.zeros(7), one_many_times(), out])
    assert out[0] == 7


@wp.kernel
def from_the_end(a: wp.array(dtype=wp.uint8), at: wp.array(dtype=int), out: wp.array(dtype=wp.uint8)):
    i = wp.tid()
    out[i] = a[at[i]]


@wp.kernel
def of_a_part(a: wp.array(dtype=wp.uint8), out: wp.array(dtype=wp.uint8)):
    c = a[10:]
    out[0] = c[-1]
    out[1] = c[-2]
    c[-3] = wp.uint8(9)
    d = a[::-1]
    out[2] = d[0]
    e = a[-5:]
    out[3] = e[4]
    n = a.shape[0]
    out[4] = a[n - 1]
    out[5] = a[wp.max(n - 2, 0)]


@pytest.mark.parametrize("mode", ["release", "debug"])
def test_indices_count_from_the_end_of_huge_arrays(mode):
    a = bytes_of_zeros()
    tail = a[N - 8 :]
    tail.assign(np.arange(1, 9, dtype=np.uint8))
    out = wp.zeros(40, dtype=wp.uint8, device="cpu")
    options = {"mode": mode}
    first, second = (
        wp.Kernel(k.func, options=options, module=wp.get_module(f"huge_{mode}")) for k in (from_the_end, of_a_part)
    )
    wp.launch(first, 40, [a, wp.array(-1 - np.arange(40) % 8, dtype=int, device="cpu"), out], device="cpu")
    assert out.list() == [8 - i % 8 for i in range(40)]
    out.zero_()
    wp.launch(second, 1, [a, out], device="cpu")
    assert out.list()[:6] == [8, 7, 8, 8, 8, 7] and tail.list() == [1, 2, 3, 4, 5, 9, 7, 8]


@wp.kernel
def last_by_a_loop(a: wp.array(dtype=wp.uint8), out: wp.array(dtype=wp.int64)):
    n = a.shape[0]
    for i in range(n - 4, n):
        out[0] += wp.int64(a[i])
        out[1] = wp.int64(i)
    if n > 5:
        out[2] = wp.int64(n) // wp.int64(2)


def test_loops_over_the_end_of_a_huge_array():
    a = bytes_of_zeros()
    a[N - 4 :].fill_(3)
    out = wp.zeros(3, dtype=wp.int64, device="cpu")
    wp.launch(last_by_a_loop, 1, [a, out], device="cpu")
    assert out.list() == [12, N - 1, N // 2]


def test_views_of_huge_arrays_on_the_host():
    a = bytes_of_zeros()
    assert len(a) == a.size == N and a.shape == (N,)
    a[N - 1 :].fill_(5)
    assert a[-1] == 5 and a[N - 1] == 5 and a[N - 2] == 0 and a[::-1][0] == 5
    assert a[2**31 :].shape == (16,) and a[2**31 :].list()[-1] == 5
    assert a.reshape((2, N // 2)).shape == (2, N // 2) and a.reshape((2, N // 2))[1, -1] == 5
    assert a[:: N - 1].list() == [0, 5]
    assert a.numpy().shape == (N,) and a.numpy()[-1] == 5
    assert memoryview(a).shape == (N,) and np.from_dlpack(a)[-1] == 5
    b = wp.zeros(4, dtype=wp.uint8, device="cpu")
    wp.copy(b, a, 1, N - 2, 2)
    assert b.list() == [0, 0, 5, 0]
    wp.copy(a, b, N - 4, 2, 2)
    assert a[N - 4 :].list() == [5, 0, 0, 5]


def test_huge_arrays_go_to_tensors():
    torch = pytest.importorskip("torch")
    a = bytes_of_zeros()
    a[-1] = 7
    t = wp.to_torch(a)
    assert t.shape == (N,) and t[-1] == 7 and t.data_ptr() == a.ptr
    assert wp.from_torch(t).shape == (N,) and torch.from_dlpack(a).shape == (N,)


def test_adjoints_of_kernels_with_huge_arrays():
    @wp.kernel
    def weigh(a: wp.array(dtype=float), x: wp.array(dtype=float), out: wp.array(dtype=float)):
        i = wp.tid()
        wp.atomic_add(out, 0, x[i] * x[i] * a[-1] * float(wp.int64(a.shape[0]) / wp.int64(2**31)))

    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    out = wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(weigh, 3, [one_many_times(), x], [out])
    tape.backward(out)
    assert out[0] == 14.0 and x.grad.list() == [2.0, 4.0, 6.0]


# ---- views in memory ----


@wp.struct
class Outer:
    holders: wp.array(dtype=Holder)


@wp.kernel
def extents_in_elements(holders: wp.array(dtype=Holder), out: wp.array(dtype=wp.int64)):
    i = wp.tid()
    out[i] = wp.int64(holders[i].a.shape[0]) + wp.int64(holders[i].a[-1])


@wp.kernel
def extents_far_in_elements(outers: wp.array(dtype=Outer), out: wp.array(dtype=wp.int64)):
    i = wp.tid()
    out[i] = wp.int64(outers[0].holders[i].a.shape[0]) + wp.int64(outers[0].holders[i].a[-1])


@wp.kernel
def short_extent_in_elements(holders: wp.array(dtype=Holder), out: wp.array(dtype=int)):
    i = wp.tid()
    out[i] = holders[i].a.shape[0]


@wp.kernel
def put_into_elements(a: wp.array(dtype=float), holders: wp.array(dtype=Holder)):
    one = Holder()
    one.a = a
    holders[wp.tid()] = one


def holders_of(*arrays: wp.array) -> wp.array:
    holders = wp.zeros(len(arrays), dtype=Holder)
    for i, a in enumerate(arrays):
        one = Holder()
        one.a = a
        holders[i] = one
    return holders


def test_extents_of_views_in_elements_are_right():
    small, huge = wp.ones(7), one_many_times()
    first, out = holders_of(small, small), wp.zeros(2, dtype=wp.int64)
    wp.launch(extents_in_elements, 2, [first, out])
    assert out.list() == [8, 8]
    for holders in (holders_of(small, huge), wp.clone(holders_of(small, huge))):
        wp.launch(extents_in_elements, 2, [holders, out])
        assert out.list() == [8, N + 1]


def test_extents_of_views_in_elements_of_elements_are_right():
    outer, out, huge = Outer(), wp.zeros(2, dtype=wp.int64), one_many_times()
    outer.holders = holders_of(wp.ones(7), huge)
    outers = wp.zeros(1, dtype=Outer)
    outers[0] = outer
    wp.launch(extents_far_in_elements, 2, [outers, out])
    assert out.list() == [8, N + 1]


def test_extents_of_views_that_kernels_store_are_right():
    holders, huge, out = wp.zeros(2, dtype=Holder), one_many_times(), wp.zeros(2, dtype=wp.int64)
    wp.launch(put_into_elements, 2, [huge, holders])
    wp.launch(extents_in_elements, 2, [holders, out])
    assert out.list() == [N + 1, N + 1]


def test_an_extent_in_elements_that_does_not_fit_is_an_error():
    small, huge, out = wp.ones(7), one_many_times(), wp.zeros(2, dtype=int)
    holders = holders_of(small, huge)
    with pytest.raises(ValueError) as caught:
        wp.launch(short_extent_in_elements, 2, [holders, out])
    text = str(caught.value)
    assert "takes the extent of an array as an int32" in text and "out[i] = holders[i].a.shape[0]" in text
    assert f"an array in an element of parameter 1 has {N} elements along a dimension" in text
    wp.launch(short_extent_in_elements, 2, [holders_of(small, small), out])
    assert out.list() == [7, 7]


# ---- all elements: seconds, and gigabytes ----


@wp.kernel
def count_up(a: wp.array(dtype=wp.uint8)):
    i, j = wp.tid()
    at = wp.int64(i) * wp.int64(16) + wp.int64(j)
    if at < wp.int64(a.shape[0]):
        a[at] = wp.uint8(at % wp.int64(251))


@pytest.mark.large
def test_every_thread_of_a_huge_launch_has_its_element():
    a = wp.zeros(N, dtype=wp.uint8, device="cpu")
    wp.launch(count_up, (N // 16, 16), [a], device="cpu")
    found = a.numpy()
    for start in range(0, N, 251 * 2**20):
        part = found[start : start + 251 * 2**20]
        assert (part == np.resize(np.arange(251, dtype=np.uint8), len(part))).all()


@pytest.mark.large
def test_sums_fills_and_copies_of_huge_arrays():
    a = wp.full(N, 1, dtype=wp.uint8, device="cpu")
    assert int(np.count_nonzero(a.numpy())) == N
    b = wp.clone(a)
    b[N - 1 :].fill_(3)
    wp.copy(a, b)
    assert a[-1] == 3 and a[0] == 1
    a[::-1].assign(b)
    assert a[0] == 3 and a[-1] == 1
    assert a.astype(wp.int8)[0] == 3
    a.zero_()
    assert not a.numpy().any()


@pytest.mark.large
def test_sums_and_scans_of_huge_arrays():
    a = one_many_times(wp.int32, device="cpu")
    assert wp.utils.array_sum(a) == N  # sums of integers are int64
    total = wp.utils.array_sum(one_many_times(wp.float64, device="cpu"))
    assert total == float(N)
    out = wp.empty(N, dtype=wp.int32, device="cpu")
    wp.utils.array_scan(a, out, inclusive=True)
    assert out[2**31 - 2] == 2**31 - 1 and out[-1] == N - 2**32
