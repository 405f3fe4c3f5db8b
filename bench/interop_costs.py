"""The cost of other libraries' arrays, for docs/interop.md: converting them, and giving them to launches.

python bench/interop_costs.py

Microseconds of the calling thread's CPU time, the least of several rounds, so that other work on the machine does not
count. Kernels are empty and arrays have 10 elements: only the way in and out remains.
"""

import time

import jax
import numpy as np
import paddle
import torch
import warp as wp


@wp.kernel
def five(a: wp.array[float], b: wp.array[float], c: wp.array[float], d: wp.array[float], e: wp.array[float]):
    pass


@wp.kernel
def three(a: wp.array[float], b: wp.array[float], c: wp.array[float]):
    pass


@wp.kernel
def copied(a: wp.array[float], b: wp.array[float]):
    i = wp.tid()
    b[i] = a[i]


def cost(work, calls=4000, rounds=15):
    """Microseconds of one call."""
    least = float("inf")
    for _ in range(rounds):
        begin = time.thread_time()
        for _ in range(calls):
            work()
        least = min(least, time.thread_time() - begin)
    return 1e6 * least / calls


def rows():
    ours = wp.zeros(10)
    arrays = {
        "Weft": ours,
        "NumPy": np.zeros(10, np.float32),
        "PyTorch": torch.zeros(10),
        "JAX": jax.numpy.zeros(10),
        "Paddle": paddle.zeros([10]),
    }
    for name, array in arrays.items():
        inputs = [array] * 3
        yield f"launch with 3 arrays of {name}", cost(lambda inputs=inputs: wp.launch(three, 1, inputs))
    numpy_array, tensor, jax_array, paddle_tensor = list(arrays.values())[1:]
    yield "wp.from_numpy(x), a copy", cost(lambda: wp.from_numpy(numpy_array))
    yield "wp.array(x, copy=False)", cost(lambda: wp.array(numpy_array, copy=False))
    yield "a.numpy()", cost(ours.numpy)
    yield "wp.from_torch(t)", cost(lambda: wp.from_torch(tensor))
    yield "wp.from_torch(t, return_ctype=True)", cost(lambda: wp.from_torch(tensor, return_ctype=True))
    yield "wp.to_torch(a)", cost(lambda: wp.to_torch(ours))
    yield "wp.from_jax(x)", cost(lambda: wp.from_jax(jax_array))
    yield "wp.to_jax(a)", cost(lambda: wp.to_jax(ours))
    yield "wp.from_paddle(t)", cost(lambda: wp.from_paddle(paddle_tensor))
    yield "wp.to_paddle(a)", cost(lambda: wp.to_paddle(ours))
    yield "wp.from_dlpack(t)", cost(lambda: wp.from_dlpack(tensor))
    yield "torch.from_dlpack(a)", cost(lambda: torch.from_dlpack(ours))
    for name, convert, given in (("torch", wp.from_torch, tensor), ("Paddle", wp.from_paddle, paddle_tensor)):
        again = [given] * 5
        converted = [convert(x) for x in again]
        wrapped = [convert(x, return_ctype=True) for x in again]
        yield f"5 of {name}, converted, and a launch", cost(lambda: wp.launch(five, 1, [convert(x) for x in again]))
        yield (
            f"5 of {name}, return_ctype, and a launch",
            cost(lambda: wp.launch(five, 1, [convert(x, return_ctype=True) for x in again])),
        )
        yield f"5 of {name} in a launch", cost(lambda: wp.launch(five, 1, again))
        yield f"5 of {name}, converted before, in a launch", cost(lambda: wp.launch(five, 1, converted))
        yield f"5 of {name}, return_ctype before, in a launch", cost(lambda: wp.launch(five, 1, wrapped))
    kernel = jax.jit(lambda x: wp.jax_kernel(copied)(x)[0])
    kernel(jax_array)
    yield "jax_kernel in a jitted function", cost(lambda: kernel(jax_array))
    native = jax.jit(lambda x: x + 1.0)
    native(jax_array)
    yield "a jitted function of JAX's own", cost(lambda: native(jax_array))


if __name__ == "__main__":
    for name, microseconds in rows():
        print(f"{name:45} {microseconds:6.2f} us")
