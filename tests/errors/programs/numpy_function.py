import numpy as np
import warp as wp


@wp.kernel
def kernel(x: wp.array[float]):
    i = wp.tid()
    x[i] = np.sin(x[i])  # error: cannot  # help: the built-in function is wp.sin
