import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    def choose(k):
        if k > 0:
            return k  # note: it returns int32 here
        return x[0]  # error: 'choose' returns float32 here and int32 elsewhere

    x[0] = float(choose(n))
