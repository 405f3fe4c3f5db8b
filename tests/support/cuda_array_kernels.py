"""Kernels of the tests of arrays on CUDA devices."""

import warp as wp

DEVICE = "cuda:0"


@wp.kernel
def saxpy(a: float, x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


# ---- __cuda_array_interface__ ----
class Shown:
    """Memory of an array, as another library shows it."""

    def __init__(self, array, **changes):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changes}
