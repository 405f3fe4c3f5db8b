import warp as wp


@wp.struct
class Dual:
    x: float


@wp.kernel
def kernel(x: wp.array[float]):
    i = wp.tid()
    d = Dual(x[i]) * Dual(2.0)  # error: '*' does not take Dual and Dual  # help: @wp.func def mul(a: Dual, b: ...)
    x[i] = d.x
