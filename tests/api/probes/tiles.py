"""TILES, sections 1.1 and 1.5: launches of blocks, and the types of tiles."""

from typing import Any, Literal

import numpy as np
import warp as wp


@wp.kernel
def _count(seen: wp.array3d(dtype=int), lanes: wp.array(dtype=int)):
    i, j, k = wp.tid()
    wp.atomic_add(seen, i, j, k, 1)
    wp.atomic_max(lanes, 0, wp.block_dim())


def _launched(dim, block_dim, **options):
    seen, lanes = wp.zeros((2, 3, 2), dtype=int), wp.zeros(1, dtype=int)
    result = wp.launch_tiled(_count, dim=dim, inputs=[seen], outputs=[lanes], block_dim=block_dim, **options)
    return result, seen.numpy().tolist(), lanes.numpy().tolist()


def one_dimension_of_blocks():
    return _launched(2, 8)


def two_dimensions_of_blocks():
    return _launched((2, 3), 64), _launched([2, 3], 64)


def three_dimensions_of_blocks():
    return _launched((2, 3, 2), 256)


def no_blocks():
    return _launched(0, 8), _launched((2, 0), 8)


def kernel_by_name():
    seen, lanes = wp.zeros((2, 3, 2), dtype=int), wp.zeros(1, dtype=int)
    wp.launch_tiled(kernel=_count, dim=2, inputs=[seen, lanes], block_dim=8, device="cpu", stream=None)
    return seen.numpy().tolist()


def block_dim_of_the_device():
    return _launched(2, None), _launched(2, 0), _launched(2, -3)


def block_dim_as_a_float():
    return _launched(2, 8.5)


def block_dim_that_is_too_large():
    return _launched(2, 2048)


def block_dim_of_a_plain_launch_that_is_too_large():
    seen, lanes = wp.zeros((2, 3, 2), dtype=int), wp.zeros(1, dtype=int)
    wp.launch(_count, dim=2, inputs=[seen, lanes], block_dim=2048)


def block_dim_as_text():
    return _launched(2, "8")


def most_blocks():
    return _launched(2, 8, max_blocks=1), _launched(2, 8, max_blocks=0)


def four_dimensions_of_blocks():
    return _launched((1, 1, 1, 1), 8)


def blocks_as_text():
    return _launched("x", 8)


def blocks_below_zero():
    return _launched(-1, 8)


def blocks_by_position():
    wp.launch_tiled(_count, 2, [wp.zeros((2, 3, 2), dtype=int), wp.zeros(1, dtype=int)], block_dim=8)


def no_dim():
    wp.launch_tiled(_count, inputs=[wp.zeros((2, 3, 2), dtype=int), wp.zeros(1, dtype=int)], block_dim=8)


def no_block_dim():
    wp.launch_tiled(_count, dim=2, inputs=[wp.zeros((2, 3, 2), dtype=int), wp.zeros(1, dtype=int)])


def no_kernel():
    wp.launch_tiled(dim=2, inputs=[wp.zeros((2, 3, 2), dtype=int), wp.zeros(1, dtype=int)], block_dim=8)


def recorded_command():
    seen, lanes = wp.zeros((2, 3, 2), dtype=int), wp.zeros(1, dtype=int)
    command = wp.launch_tiled(_count, dim=2, inputs=[seen, lanes], block_dim=8, record_cmd=True)
    before = seen.numpy().sum()
    command.launch()
    first = seen.numpy().tolist()
    command.set_dim(1)
    command.launch()
    return before, first, seen.numpy().tolist(), command.block_dim, command.max_blocks


def gradient_of_a_launch():
    @wp.kernel
    def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i] * x[i]

    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    y = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch_tiled(square, dim=3, inputs=[x], outputs=[y], block_dim=8)
    tape.backward(grads={y: wp.ones(3, dtype=float)})
    return x.grad


# ---- types ----


def _told(tile):
    return tile.dtype is wp.float32, tile.shape, tile.storage, tile.layout, list(tile.strides), tile.size, tile.owner


def members_of_a_type():
    return _told(wp.tile[float, 2, 3]), _told(wp.tile[wp.float32, (2, 3)])


def type_by_keywords():
    return _told(wp.tile(dtype=float, shape=(2, 3))), _told(wp.tile(dtype=float, shape=(4,), storage="shared"))


def extents_as_literals():
    return wp.tile[float, Literal[8], Literal[4]].shape


def type_of_any_shape():
    return wp.tile[float].shape is Any, wp.tile[float].strides, hasattr(wp.tile[float], "size")


def type_of_any_element():
    return wp.tile[Any, 4].dtype is Any, wp.tile[Any, 4].shape


def extent_as_a_float():
    return wp.tile[float, 4.5]


def type_without_a_shape():
    return wp.tile(dtype=float)


def questions_about_types():
    tile = wp.tile[float, 4]
    is_tile, type_is_tile = wp.types.is_tile, wp.types.type_is_tile
    return isinstance(tile, wp.tile), is_tile(tile), is_tile(wp.tile), type_is_tile(tile), type_is_tile(wp.tile)


def equal_types():
    equal = wp.types.types_equal
    tile = wp.tile[float, 4]
    return equal(tile, wp.tile[wp.float32, 5]), equal(tile, wp.tile[int, 4]), equal(tile, wp.array(dtype=float))


def types_as_text():
    return wp.types.type_repr(wp.tile[float, 4]), wp.types.type_repr(wp.tile[wp.vec3, 2, 3])


def type_of_a_stack():
    stack = wp.tile_stack(dtype=float, capacity=np.int64(4).item())
    return stack.dtype is wp.float32, stack.capacity


def stack_without_elements():
    return wp.tile_stack(float, 0)
