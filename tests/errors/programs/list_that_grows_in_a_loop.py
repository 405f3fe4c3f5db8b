import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    values = [0.0]
    for k in range(n):
        values.append(x[k])  # error: 'values' becomes a list of
    x[0] = values[0]
