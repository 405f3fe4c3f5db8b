"""tools/clients/tile_stand_ins.py: kernels with loops compute what those with tiles do. Nothing is installed here."""

import types

import numpy as np
import warp as wp


def test_a_block_of_a_symmetric_matrix_is_factorized_and_solved(tool):
    rng = np.random.default_rng(3)
    worlds, n, blocks = 3, 7, 2
    matrices = rng.normal(size=(worlds, blocks, n, n))
    matrices = matrices @ matrices.swapaxes(2, 3) + n * np.eye(n)
    # Elements of the matrix as they are stored; one pair of each block has none, which reads as 0.
    matrices[:, :, 0, 5] = matrices[:, :, 5, 0] = 0.0
    right = rng.normal(size=(worlds, blocks * n))
    stored = matrices.reshape(worlds, -1)
    element = np.arange(stored.shape[1], dtype=np.int32).reshape(blocks, n, n)
    element[:, 0, 5] = element[:, 5, 0] = stored.shape[1]
    start = np.arange(blocks, dtype=np.int32) * n
    address = np.zeros(blocks * n, dtype=np.int32)
    address[start] = [n * n, 0]
    x, factor = wp.zeros((worlds, blocks * n)), wp.zeros((worlds, blocks * n * n))
    kernel = tool("tile_stand_ins").factorize_and_solve(types.SimpleNamespace(size=n))
    arrays = [wp.array(stored, dtype=float), wp.array(element.ravel(), dtype=int), wp.array(start, dtype=int)]
    inputs = [wp.array(address, dtype=int), *arrays, wp.array(right, dtype=float), x, factor]
    wp.launch(kernel, dim=(worlds, blocks, 1), inputs=inputs)
    for block in range(blocks):
        rows = slice(block * n, (block + 1) * n)
        expected = np.linalg.solve(matrices[:, block], right[:, rows, None])[..., 0]
        np.testing.assert_allclose(x.numpy()[:, rows], expected, rtol=1e-4, atol=1e-5)
        at = address[start[block]]
        upper = np.triu(factor.numpy()[:, at : at + n * n].reshape(worlds, n, n))
        np.testing.assert_allclose(upper.swapaxes(1, 2) @ upper, matrices[:, block], rtol=1e-4, atol=1e-4)


def make_sum(scale):
    @wp.kernel(module="unique")
    def kernel(x: wp.array[wp.vec2], out: wp.array[float]):
        i, tid = wp.tid()
        own = x[i] * float(tid + scale)
        own_tile = wp.tile(own, preserve_type=True)
        own_sum = wp.tile_reduce(wp.add, own_tile)
        _syncthreads()  # noqa: F821
        both = own_sum[0]
        out[i] = both[0] + both[1]

    return kernel


def test_sums_over_a_block_of_one_thread_are_its_numbers(tool):
    kernel = tool("tile_stand_ins").without_sums_of_blocks(make_sum)(2)
    x, out = wp.array([[1.0, 2.0], [3.0, 5.0]], dtype=wp.vec2), wp.zeros(2)
    wp.launch(kernel, dim=(2, 1), inputs=[x, out])
    assert out.numpy().tolist() == [6.0, 16.0]
