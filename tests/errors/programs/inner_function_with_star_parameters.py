import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    def largest(*values):  # error: 'largest' has *values, which kernels and their functions cannot have
        return max(values)

    x[0] = largest(x[0], 1.0)
