import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    match n:
        case len(k):  # error: a pattern takes a type: a struct, a type of numbers, vectors or arrays; not the built-in function 'len'
            x[0] = float(k)
