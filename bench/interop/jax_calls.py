"""The cost of a kernel as a function of JAX: a call under `jax.jit`, and 16 million elements.

`call` is a call of a jitted function with three small arrays, a kernel or JAX's own sum. `saxpy` is one of 16 Mi
elements under jit, in place: JAX gives the memory of an argument away. `launch` is the same kernel by `wp.launch` over
memory of JAX's, `launch own` with a `y` of Weft's, which lies in huge pages; `saxpy new` writes into a result that XLA
takes fresh from the system each time. These are timed in turn, so that a machine that slows down slows all.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

VARIANTS = ("call", "saxpy", "launch", "launch own", "saxpy new")
SMALL, LARGE = 64, 1 << 24


def with_warp(options):
    import jax
    import jax.numpy as jnp

    wp = measure.import_warp("weft")

    @wp.kernel
    def add(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float), d: wp.array(dtype=float)):
        i = wp.tid()
        d[i] = a[i] + b[i] + c[i]

    @wp.kernel
    def saxpy(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = 2.0 * x[i] + y[i]

    @wp.kernel
    def sums(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
        i = wp.tid()
        z[i] = 2.0 * x[i] + y[i]

    small = [jnp.full(SMALL, float(i)) for i in range(3)]
    call = jax.jit(wp.jax_kernel(add))
    np.testing.assert_array_equal(call(*small)[0], np.full(SMALL, 3.0))
    report(options, "call", call_times(call, small, options))

    x, state = jnp.ones(LARGE), InPlace(jax.jit(wp.jax_kernel(saxpy, in_out_argnames=["y"]), donate_argnums=1), jnp)
    memory = jnp.zeros(LARGE)  # of JAX's, which would not let it be written
    theirs = wp.array(ptr=memory.unsafe_buffer_pointer(), shape=LARGE, dtype=float, device="cpu")
    launches = {"launch": [wp.from_jax(x), theirs], "launch own": [wp.from_jax(x), wp.zeros(LARGE, dtype=float)]}
    fresh = jax.jit(wp.jax_kernel(sums))
    runs = {"saxpy": lambda: state.run(x), "saxpy new": lambda: fresh(x, x)[0].block_until_ready()}
    for name, arrays in launches.items():
        runs[name] = lambda arrays=arrays: wp.launch(saxpy, dim=LARGE, inputs=arrays)
    for run in runs.values():
        run()
    assert float(state.y[-1]) == 2.0 and all(arrays[1].numpy()[-1] == 2.0 for arrays in launches.values())
    assert float(fresh(x, x)[0][-1]) == 3.0
    times = {name: [] for name in runs}
    for _ in range(max(int(options.seconds / 0.02), 5)):
        for name, run in runs.items():
            times[name] += measure.time_repeats(run, 0.0, least=1)
    for name, found in times.items():
        report(options, name, found)


def with_jax(options):
    import jax
    import jax.numpy as jnp

    small = [jnp.full(SMALL, float(i)) for i in range(3)]
    call = jax.jit(lambda a, b, c: [a + b + c])
    np.testing.assert_array_equal(call(*small)[0], np.full(SMALL, 3.0))
    report(options, "call", call_times(call, small, options))

    x, state = jnp.ones(LARGE), InPlace(jax.jit(lambda x, y: [2.0 * x + y], donate_argnums=1), jnp)
    report(options, "saxpy", measure.time_repeats(lambda: state.run(x), options.seconds))
    fresh = jax.jit(lambda x, y: 2.0 * x + y)
    fresh(x, x)
    report(options, "saxpy new", measure.time_repeats(lambda: fresh(x, x).block_until_ready(), options.seconds))


class InPlace:
    """A jitted function that takes the memory of `y` and gives it back."""

    def __init__(self, function, jnp):
        self.function, self.y = function, jnp.zeros(LARGE)

    def run(self, x):
        (self.y,) = self.function(x, self.y)
        self.y.block_until_ready()


def call_times(call, arguments, options):
    names = {"call": call, "a": arguments[0], "b": arguments[1], "c": arguments[2]}
    return measure.time_statement("call(a, b, c)[0].block_until_ready()", names, options.seconds)


def report(options, variant, times):
    if variant in (options.variant or VARIANTS):
        measure.report("jax", variant, options, times)


if __name__ == "__main__":
    options = measure.arguments(__doc__, VARIANTS, ("weft", "jax")).parse_args()
    try:
        (with_warp if options.implementation == "weft" else with_jax)(options)
    except Exception as error:
        measure.report_failure("jax", "all", options, error)
        sys.exit(1)
