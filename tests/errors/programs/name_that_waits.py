import warp as wp


@wp.kernel
def kernel(x: wp.array[float]):
    t = wp.tile_load(x, shape=2)  # error: wp.tile_load(): tiles are not there yet, see docs/names.md#
    wp.tile_store(x, t)
