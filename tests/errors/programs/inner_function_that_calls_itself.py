import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    def down(k: int):  # note: the function
        if k > 0:
            return down(k - 1)  # error: functions cannot call themselves, directly or through others: 'down' does  # help: use a loop
        return 0

    x[0] = float(down(n))
