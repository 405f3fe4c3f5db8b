"""Shape, strides, ndim, size, ptr and the like of an array can be set if the result is a view of its memory."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp


@wp.kernel
def read_rows(a: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    out[i, j] = a[i, j]


@wp.kernel
def add_rows(a: wp.array2d(dtype=float), out: wp.array(dtype=float)):
    i, j = wp.tid()
    wp.atomic_add(out, 0, a[i, j] * float(i + 1))


def numbers(*shape: int) -> wp.array:
    return wp.array(np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape))


def rows_of(a: wp.array) -> list:
    out = wp.zeros(a.shape)
    wp.launch(read_rows, a.shape, [a], [out])
    return out.numpy().tolist()


def test_a_stride_of_zero_shows_one_row_many_times():
    a = numbers(4, 3)
    a.strides = (0, 4)
    assert a.shape == (4, 3) and a.strides == (0, 4) and not a.is_contiguous
    assert a.numpy().tolist() == rows_of(a) == [[0.0, 1.0, 2.0]] * 4


def test_an_array_becomes_a_batch_of_worlds():
    """As programs for many worlds write it: a leading axis of stride 0."""
    for worlds in (1, 5):
        a = numbers(3)
        a.strides = (0,) + a.strides
        a.ndim += 1
        a.shape = (worlds,) + a.shape
        assert (a.shape, a.strides, a.ndim, a.size) == ((worlds, 3), (0, 4), 2, 3 * worlds)
        assert a.numpy().tolist() == rows_of(a) == [[0.0, 1.0, 2.0]] * worlds


def test_the_batch_grows_by_its_shape():
    a = numbers(1, 3)
    a.strides = (0, *a.strides[1:])
    a.shape = (6, *a.shape[1:])
    assert rows_of(a) == [[0.0, 1.0, 2.0]] * 6


@pytest.mark.parametrize(
    "order", [("strides", "ndim", "shape"), ("ndim", "shape", "strides"), ("ndim", "strides", "shape")]
)
def test_shape_strides_and_ndim_may_be_set_in_any_order(order):
    a = numbers(3)
    for name in order:
        setattr(a, name, {"strides": (0, 4), "ndim": 2, "shape": (2, 3)}[name])
    assert (a.shape, a.strides, a.ndim) == ((2, 3), (0, 4), 2)
    assert rows_of(a) == [[0.0, 1.0, 2.0]] * 2


def test_the_shape_of_packed_elements_reshapes():
    a = numbers(4, 3)
    a.shape = (3, 4)
    assert a.strides == (16, 4) and a.numpy().tolist() == np.arange(12.0).reshape(3, 4).tolist()
    a.shape = 12
    assert a.shape == (12,) and a.ndim == 1
    a.shape = (2, 2, 3)
    assert a.shape == (2, 2, 3) and a.strides == (24, 12, 4)


def test_a_smaller_shape_shows_the_first_elements():
    a = numbers(4, 3)
    a.shape = (2, 2)
    assert a.strides == (12, 4) and a.numpy().tolist() == [[0.0, 1.0], [3.0, 4.0]]
    b = numbers(6)
    b.size = 4
    assert b.shape == (4,) and b.list() == [0.0, 1.0, 2.0, 3.0]
    b.size = 6
    assert b.list() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    b.shape = (0,)
    assert b.size == 0 and b.ptr is None
    b.shape = (6,)
    assert b.list() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_negative_strides_need_memory_before_the_first_element():
    a = numbers(6)
    with pytest.raises(ValueError, match=r"the shape \(6,\) with strides of \(-4,\) bytes reaches from byte -20 to 4"):
        a.strides = (-4,)
    a.shape, address = (1,), a.ptr
    a.ptr = address + 20
    assert a.ptr == address + 20 and a.list() == [5.0]
    a.strides = (-8,)
    a.shape = (3,)
    assert a.list() == [5.0, 3.0, 1.0]


@pytest.mark.parametrize(
    "name, value, message",
    [
        (
            "shape",
            (5, 3),
            r"array.shape: the shape \(5, 3\) with strides of \(12, 4\) bytes reaches from byte 0 to 60, and",
        ),
        ("shape", (-1, 3), "negative"),
        ("strides", (2**62, 4), r"and the memory of the array has 48 bytes. help: wp.empty\(\) and wp.copy\(\) make"),
        ("strides", (12, 3), r"are in bytes, expected multiples of 4, the alignment of float32"),
        ("strides", (1, 1, 1, 1, 1), "arrays have 1 to 4 dimensions, got 5"),
        ("ndim", 7, "arrays have 1 to 4 dimensions, got 7"),
        ("size", 7, "array.size: follows from the shape, and is set to int 7"),
        ("ptr", 64, "and the memory of the array has 48 bytes"),
        ("capacity", 3, "is the size of the memory, 48 bytes, and is set to int 3"),
        ("is_contiguous", False, "follows from shape and strides: it is True, and is set to bool False"),
        ("pinned", True, "says how the memory was allocated: it is False"),
        ("shape", "ab", "must be"),
        ("strides", None, "must be"),
    ],
)
def test_what_is_no_view_of_the_memory_is_an_error_and_changes_nothing(name, value, message):
    a = numbers(4, 3)
    before = (a.shape, a.strides, a.ptr)
    with pytest.raises((ValueError, TypeError, AttributeError, OverflowError), match=message):
        setattr(a, name, value)
    assert (a.shape, a.strides, a.ptr) == before and a.numpy()[1, 0] == 3.0


def test_what_is_so_already_may_be_set():
    a = numbers(4, 3)
    for name in ("shape", "strides", "ndim", "size", "ptr", "device", "capacity", "is_contiguous", "pinned"):
        setattr(a, name, getattr(a, name))
    a.device = str(a.device)
    a.strides = (0, 4)
    a.is_contiguous = False  # programs say so after they have set strides
    assert rows_of(a) == [[0.0, 1.0, 2.0]] * 4


def test_another_device_is_an_error_that_names_the_copy():
    a = wp.zeros(3, device="cpu")
    with pytest.raises((AttributeError, RuntimeError, ValueError)):
        a.device = "cuda:88"
    with pytest.raises(RuntimeError, match="got float 3.5"):
        a.device = 3.5


def test_an_array_in_the_middle_of_a_change_is_not_used():
    a = numbers(3)
    a.strides = (0, 4)
    message = (
        r"in the middle of a change: shape is \(3,\), strides are \(0, 4\), ndim is 1. help: set shape, strides and"
    )
    for use in (
        lambda: a.numpy(),
        lambda: a[0],
        lambda: wp.launch(read_rows, (1, 1), [a], [numbers(1, 1)]),
        lambda: a.fill_(1.0),
        lambda: memoryview(a),
    ):
        with pytest.raises((ValueError, TypeError, BufferError), match=message):
            use()
    a.strides = (4,)
    assert a.list() == [0.0, 1.0, 2.0]


def test_a_change_that_fails_at_its_end_leaves_the_array_as_it_was():
    a = numbers(3)
    a.strides = (400, 4)
    with pytest.raises(ValueError, match="reaches from byte 0 to 412"):
        a.shape = (2, 3)
    assert a.shape == (3,) and a.strides == (4,) and a.list() == [0.0, 1.0, 2.0]


def test_the_gradient_has_the_new_layout_too():
    a = wp.array(np.arange(3, dtype=np.float32), requires_grad=True)
    a.strides = (0,) + a.strides
    a.ndim += 1
    a.shape = (2,) + a.shape
    assert a.grad.shape == (2, 3) and a.grad.strides == (0, 4)
    out = wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(add_rows, a.shape, [a], [out])
    tape.backward(out)
    assert a.grad.numpy()[0].tolist() == [3.0, 3.0, 3.0]


def test_a_layout_is_not_changed_while_a_tape_records_its_array():
    a = wp.array(np.ones((2, 3), np.float32), requires_grad=True)
    with wp.Tape(), pytest.raises(RuntimeError, match="a tape is recording, and the array has a gradient"):
        a.strides = (0, 4)
    with pytest.raises(AttributeError, match="an array with a gradient, which lies elsewhere"):
        a.ptr += 4


def test_views_keep_their_own_layout():
    a = numbers(4, 3)
    row = a[1]
    a.strides = (0, 4)
    assert row.list() == [3.0, 4.0, 5.0] and a[1].list() == [0.0, 1.0, 2.0]


def test_annotations_keep_their_shape_as_before():
    annotation = wp.array(dtype=float)
    annotation.shape = (7,)
    assert annotation.shape == (7,)
    with pytest.raises(TypeError, match="this is the annotation"):
        annotation.strides = (4,)
