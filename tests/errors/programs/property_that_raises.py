import warp as wp


class O:
    @property
    def a(self):
        raise ValueError('boo')


G = O()


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = G.a  # error: reading the attribute failed: ValueError: boo
