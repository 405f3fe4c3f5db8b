import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    print("{} }".format(n))  # error: the format has a brace without a partner; '{{' and '}}' show braces
