"""Several threads that go back at once."""

import numpy as np
import pytest
import warp as wp
from run_in_threads import run_in_threads

pytestmark = pytest.mark.own_launches("counts launches, orders them or makes them fail")


@wp.kernel
def scaled(x: wp.array(dtype=wp.float32), factor: float, y: wp.array(dtype=wp.float32)):
    i = wp.tid()
    y[i] = factor * x[i]


def in_threads(*functions):
    run_in_threads(lambda function: function(), functions)


def test_two_passes_into_one_gradient_add_up():
    """Each element of the gradient is one thread's own in each pass, and is added to without atomics."""
    n, passes = 1 << 20, 40
    x = wp.ones(n, dtype=wp.float32, requires_grad=True)
    seed = wp.ones(n, dtype=wp.float32)

    def going_back(factor):
        y = wp.zeros(n, dtype=wp.float32, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(scaled, dim=n, inputs=[x, factor], outputs=[y])

        def run():
            for _ in range(passes):
                tape.backward(grads={y: seed})

        return run

    in_threads(going_back(1.0), going_back(2.0))
    np.testing.assert_array_equal(x.grad.numpy(), np.full(n, 3.0 * passes, np.float32))


def test_passes_with_operations_on_whole_arrays_add_up():
    rng = np.random.default_rng(3)
    a = rng.integers(-3, 4, (160, 160)).astype(np.float64)
    x = wp.array(a, dtype=wp.float64, requires_grad=True)
    seed, nothing = wp.ones((160, 160), dtype=wp.float64), wp.zeros((160, 160), dtype=wp.float64)

    def going_back(b):
        factor = wp.array(b, dtype=wp.float64)
        y = wp.zeros((160, 160), dtype=wp.float64, requires_grad=True)
        with wp.Tape() as tape:
            wp.matmul(x, factor, nothing, y)

        def run():
            for _ in range(30):
                tape.backward(grads={y: seed})

        return run

    factors = [rng.integers(-3, 4, (160, 160)).astype(np.float64) for _ in range(2)]
    in_threads(*[going_back(b) for b in factors])
    np.testing.assert_array_equal(x.grad.numpy(), 30 * sum(np.ones((160, 160)) @ b.T for b in factors))


def test_passes_into_gradients_of_their_own_run_beside_each_other():
    """Rows of one gradient: memory that meets nowhere."""
    n = 1 << 18
    x = wp.ones((2, n), dtype=wp.float32, requires_grad=True)
    seed = wp.ones(n, dtype=wp.float32)

    def going_back(row):
        y = wp.zeros(n, dtype=wp.float32, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(scaled, dim=n, inputs=[x[row], float(row + 1)], outputs=[y])

        def run():
            for _ in range(20):
                tape.backward(grads={y: seed})

        return run

    in_threads(going_back(0), going_back(1))
    np.testing.assert_array_equal(x.grad.numpy(), np.repeat([[20.0], [40.0]], n, axis=1).astype(np.float32))
