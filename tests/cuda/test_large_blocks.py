"""Launches of large blocks: a block has 65536 registers, so that each of 1024 threads can have 64."""

import numpy as np
import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]
DEVICE = "cuda:0"
VALUES = 120
Many = wp.types.vector(length=VALUES, dtype=float)


@wp.kernel
def many_values(x: wp.array[float], y: wp.array[float]):
    """All values are alive between the two loops."""
    i = wp.tid()
    v = Many()
    for k in range(wp.static(VALUES)):
        v[k] = x[i + k]
    total = float(0.0)
    for k in range(wp.static(VALUES)):
        total = total * 0.5 + v[wp.static(VALUES) - 1 - k] * v[k]
    y[i] = total


def expected(x, count):
    v = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), VALUES)[:count]
    total = np.zeros(count)
    for k in range(VALUES):
        total = total * 0.5 + v[:, VALUES - 1 - k] * v[:, k]
    return total


@pytest.mark.parametrize("block_dim", [32, 256, 257, 512, 768, 1024])
def test_kernels_of_many_registers_run_in_blocks_of_every_size(block_dim):
    count = 3000
    x = np.random.default_rng(1).random(count + VALUES - 1).astype(np.float32)
    y = wp.zeros(count, dtype=float, device=DEVICE)
    wp.launch(many_values, count, inputs=[wp.array(x, device=DEVICE), y], device=DEVICE, block_dim=block_dim)
    np.testing.assert_allclose(y.numpy(), expected(x, count), rtol=1e-5)


def test_a_graph_has_large_blocks_of_a_kernel_that_was_never_launched():
    @wp.kernel(module="unique")
    def doubled(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = 2.0 * x[i]

    x, y = wp.array(np.arange(5000, dtype=np.float32), device=DEVICE), wp.zeros(5000, dtype=float, device=DEVICE)
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.launch(doubled, 5000, inputs=[x, y], device=DEVICE, block_dim=1024)
    wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(y.numpy(), 2 * np.arange(5000))
