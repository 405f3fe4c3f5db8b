import warp as wp


G = {}


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = G['a']  # error: static(): 'G['a']' failed: KeyError: 'a'
