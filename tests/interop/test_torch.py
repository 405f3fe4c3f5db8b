"""PyTorch: tensors in place, gradients in one memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import warp as wp


@wp.kernel
def square_loss(x: wp.array[float], loss: wp.array[float]):
    wp.atomic_add(loss, 0, x[wp.tid()] * x[wp.tid()])


@pytest.mark.seed("S-TOR-001", "P-09")
def test_tensors_and_arrays_share_memory_both_ways():
    w = wp.array([1.0, 2.0, 3.0], dtype=float)
    t = wp.to_torch(w)
    assert t.tolist() == [1.0, 2.0, 3.0] and t.data_ptr() == w.ptr
    t[0] = 5.0
    assert w.list() == [5.0, 2.0, 3.0]
    back = wp.from_torch(t)
    back.fill_(7.0)
    assert t.tolist() == [7.0, 7.0, 7.0]


@pytest.mark.seed("S-TOR-003", "S-TOR-006")
def test_a_gradient_is_made_and_shared():
    t = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    a, loss = wp.from_torch(t), wp.zeros(1, requires_grad=True)
    assert a.requires_grad and t.grad.data_ptr() == a.grad.ptr
    with wp.Tape() as tape:
        wp.launch(square_loss, dim=3, inputs=[a, loss])
    tape.backward(loss)
    assert t.grad.tolist() == [2.0, 4.0, 6.0]
    tape.zero()
    assert t.grad.tolist() == [0.0, 0.0, 0.0]
    with torch.no_grad():
        other = torch.ones(3, requires_grad=True)
        assert wp.from_torch(other).requires_grad and other.grad is None
    computed = t * 2.0
    assert wp.from_torch(computed).requires_grad
    assert not wp.from_torch(t, requires_grad=False).requires_grad


@pytest.mark.seed("S-TOR-016")
def test_a_tensor_of_an_array_with_a_gradient_is_a_leaf_of_autograd():
    a = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    t = wp.to_torch(a)
    assert t.is_leaf and t.requires_grad and t.grad.data_ptr() == a.grad.ptr
    (t**2).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), [2, 4, 6])
    assert not wp.to_torch(a, requires_grad=False).requires_grad
