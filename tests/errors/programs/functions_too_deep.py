import warp as wp


def deeper(inner):
    @wp.func
    def f(a: float):
        return inner(a)  # error: functions call each other more than 200 deep here

    return f


@wp.func
def deepest(a: float):
    return a


outer = deepest
for _level in range(300):
    outer = deeper(outer)


@wp.kernel
def kernel(x: wp.array[float], n: int):
    x[wp.tid()] = outer(1.0)
