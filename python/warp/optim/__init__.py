"""Optimizers that change arrays in place, by gradients that tapes have found.

import warp.optim

optimizer = wp.optim.Adam([positions, masses], lr=0.01)
for _ in range(100):
    tape.reset()
    with tape:
        loss = simulate(positions, masses)
    tape.backward(loss)
    optimizer.step([positions.grad, masses.grad])
"""

from warp.optim.adam import Adam
from warp.optim.sgd import SGD

__all__ = ["SGD", "Adam"]
