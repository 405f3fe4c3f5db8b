"""The types of tiles: their spellings, attributes, equality, text and errors."""

from typing import Any, Literal

import numpy as np
import pytest
import warp as wp

ROWS, COLUMNS = 4, 8


@wp.struct
class Pair:
    key: int
    value: float


@pytest.mark.parametrize(
    "made",
    [
        wp.tile[float, 4, 8],
        wp.tile[wp.float32, 4, 8],
        wp.tile[np.float32, (4, 8)],
        wp.tile[float, ROWS, COLUMNS],
        wp.tile[float, [ROWS, COLUMNS]],
        wp.tile[float, Literal[4], Literal[8]],
        wp.tile[float, np.int64(4), np.int32(8)],
        wp.tile(dtype=float, shape=(4, 8)),
        wp.tile(float, [4, 8], storage="shared"),
    ],
    ids=repr,
)
def test_spellings_of_one_type_are_equal(made):
    expected = wp.tile[float, 4, 8]
    assert made == expected and hash(made) == hash(expected) and len({made, expected}) == 1
    assert made.dtype is wp.float32 and made.shape == (4, 8) and made._weft_tile_ == (wp.float32, (4, 8))
    assert repr(made) == "wp.tile[wp.float32, 4, 8]"


@pytest.mark.parametrize(
    "other", [wp.tile[float, 4], wp.tile[float, 8, 4], wp.tile[int, 4, 8], wp.tile[float], wp.tile[Any, 4, 8], 4, None]
)
def test_other_types_are_not_equal(other):
    assert wp.tile[float, 4, 8] != other


def test_attributes():
    made = wp.tile[wp.vec3, 2, 3, 4]
    assert (made.dtype, made.shape, made.ndim, made.size) == (wp.vec3, (2, 3, 4), 3, 24)
    assert (made.storage, made.layout, made.strides, made.owner) == ("register", "rowmajor", [12, 4, 1], True)
    columns = wp.tile(int, (2, 3), storage="shared", layout="colmajor", owner=False)
    assert (columns.storage, columns.layout, columns.strides, columns.owner) == ("shared", "colmajor", [1, 2], False)
    assert wp.tile(int, 5, strides=(2,)).strides == (2,) and wp.tile(int, 5).shape == (5,)


def test_a_type_without_a_shape_fits_any():
    made = wp.tile[float]
    assert made == wp.tile(float, Any) and made.shape is Any and made.strides is None
    assert made._weft_tile_ == (wp.float32, None) and repr(made) == "wp.tile[wp.float32]"
    for asked in ("size", "ndim"):
        with pytest.raises(AttributeError, match=rf"wp.tile\[wp.float32\].{asked}: the type fits tiles of any shape"):
            getattr(made, asked)


def test_element_types_may_be_open_or_structs():
    assert wp.tile[Any, 4].dtype is Any and repr(wp.tile[Any, 4]) == "wp.tile[Any, 4]"
    assert wp.tile[wp.types.Float, 4].dtype is wp.types.Float
    assert wp.tile[Pair].dtype is Pair and repr(wp.tile[Pair, 2]) == "wp.tile[Pair, 2]"
    assert wp.tile[wp.mat33].dtype is wp.mat33


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: wp.tile["float", 4], TypeError, "tile(): dtype must be a type such as float"),
        (lambda: wp.tile[3, 4], TypeError, "tile(): dtype must be a type such as float"),
        (lambda: wp.tile[float, 4.5], TypeError, "tile(): extent 0 of shape is 4.5, expected an int from 1 on"),
        (lambda: wp.tile[float, 2, Any], TypeError, "tile(): extent 1 of shape is typing.Any, expected an int"),
        (lambda: wp.tile[float, 2, True], TypeError, "tile(): extent 1 of shape is True, expected an int from 1 on"),
        (lambda: wp.tile[float, 2, 0], ValueError, "tile(): extent 1 of shape is 0, expected an int from 1 on"),
        (lambda: wp.tile[float, -1], ValueError, "tile(): extent 0 of shape is -1, expected an int from 1 on"),
        (lambda: wp.tile[float, Literal[1, 2]], TypeError, "tile(): extent 0 of shape is typing.Literal[1, 2]"),
        (lambda: wp.tile(float, ()), ValueError, "tile(): shape has no extents, expected at least one"),
        (lambda: wp.tile(float, 4, storage="stack"), ValueError, "storage is 'stack', expected 'register' or 'shared'"),
        (lambda: wp.tile(float, 4, layout="x"), ValueError, "layout is 'x', expected 'rowmajor' or 'colmajor'"),
        (lambda: wp.tile(1.0), TypeError, "shape"),
        (lambda: wp.tile_stack("x", 4), TypeError, "tile_stack(): dtype must be a type such as float"),
        (lambda: wp.tile_stack(float, 0), ValueError, "tile_stack(): capacity is 0, expected an int from 1 on"),
        (lambda: wp.tile_stack(4, float), TypeError, "tile_stack(): dtype must be a type"),
    ],
)
def test_errors_name_the_argument(make, error, text):
    with pytest.raises(error) as caught:
        make()
    assert text in str(caught.value)


def test_questions_about_tiles():
    assert wp.types.is_tile(wp.tile[float, 4]) and not wp.types.is_tile(wp.tile) and not wp.types.is_tile(wp.zeros(4))
    assert wp.types.type_is_tile(wp.tile) and not wp.types.type_is_tile(wp.tile[float, 4])
    assert not wp.types.type_is_tile(wp.array) and not wp.types.is_array(wp.tile[float, 4])
    assert wp.types.type_repr(wp.tile[float, 4]) == "tile(shape=(4,), dtype=float32)"
    assert wp.types.type_repr(wp.tile[wp.vec3, 2, 3]) == "tile(shape=(2, 3), dtype=vec3f)"
    assert wp.types.types_equal(wp.tile[float, 4], wp.tile[wp.float32, 5])
    assert not wp.types.types_equal(wp.tile[float, 4], wp.tile[int, 4])
    assert not wp.types.types_equal(wp.tile[float, 4], wp.array(dtype=float))


def test_stacks():
    made = wp.tile_stack(dtype=Pair, capacity=16)
    assert (made.dtype, made.capacity, made._weft_tile_stack_) == (Pair, 16, (Pair, 16))
    assert made == wp.tile_stack(Pair, 16) and made != wp.tile_stack(Pair, 8) and made != wp.tile_stack(int, 16)
    assert hash(made) == hash(wp.tile_stack(Pair, 16))
    assert repr(wp.tile_stack(float, 4)) == "wp.tile_stack(dtype=wp.float32, capacity=4)"


def test_queries_by_a_block_have_names():
    assert wp.BvhQueryTiled.__name__ == "BvhQueryTiled" and wp.MeshQueryAABBTiled.__module__ == "warp"
    assert isinstance(wp.BvhQueryTiled(), wp.BvhQueryTiled) and wp.BvhQueryTiled is not wp.MeshQueryAABBTiled
