import numpy as np
import warp as wp


@wp.kernel
def kernel(x: wp.array[float]):
    i = wp.tid()
    x[i] = np.maximum(x[i], 0.0)  # error: cannot  # help: the built-in function is wp.max
