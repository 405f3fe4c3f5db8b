import warp as wp


class O:
    pass


G = O()


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = G.a  # error: an object of the class 'O' has no attribute 'a'
