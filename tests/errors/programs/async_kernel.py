import warp as wp


@wp.kernel
async def kernel(x: wp.array[float], n: int):  # error: an async function cannot be compiled
    pass
