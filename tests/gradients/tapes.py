"""The start of tests of tapes: kernels that have to be undone, arrays of doubles, and one launch there and back."""

import numpy as np
import warp as wp


@wp.kernel
def square(x: wp.array[wp.float64]):
    i = wp.tid()
    x[i] = x[i] * x[i]


@wp.kernel
def multiply(a: wp.array[wp.float64], b: wp.array[wp.float64], c: wp.array[wp.float64]):
    i = wp.tid()
    c[i] = a[i] * b[i]


def doubles(values, **options):
    return wp.array(np.asarray(values, dtype=np.float64), dtype=wp.float64, **options)


def gradients(kernel, dim, inputs, outputs, seeds):
    """Those of the inputs that have one, as NumPy arrays, for one launch and these gradients of the outputs."""
    tape = wp.Tape()
    with tape:
        wp.launch(kernel, dim, inputs, outputs)
    seeds = (wp.array(seed, dtype=output.dtype) for output, seed in zip(outputs, seeds, strict=True))
    tape.backward(grads=dict(zip(outputs, seeds, strict=True)))
    return [value.grad.numpy() for value in inputs if isinstance(value, wp.array) and value.requires_grad]
