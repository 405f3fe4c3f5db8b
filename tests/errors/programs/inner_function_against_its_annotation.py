import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    def choose(k: int) -> float:
        return k  # error: 'choose' returns int32 here, and is annotated with float32

    x[0] = choose(n)
