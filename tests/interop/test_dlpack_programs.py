"""The lines of the documents on DLPack, as printed there."""

from __future__ import annotations

import ctypes
import gc
import weakref

import jax
import numpy as np
import paddle
import pytest
import torch
import warp as wp

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")


def capsule_name(capsule) -> str:
    get = ctypes.pythonapi.PyCapsule_GetName
    get.restype, get.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return get(capsule).decode()


@pytest.mark.seed("P-28", "S-DLP-002", "S-DLP-008")
def test_external_arrays(library):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    external_array = library.array(values)

    warp_array = wp.from_dlpack(external_array)

    assert warp_array.dtype is wp.float32 and warp_array.shape == (2, 3) and warp_array.strides == (12, 4)
    np.testing.assert_array_equal(warp_array.numpy(), values)
    assert not warp_array.requires_grad and warp_array.grad is None
    if library.is_writable:
        warp_array.fill_(5.0)
        np.testing.assert_array_equal(library.numbers(external_array), np.full((2, 3), 5.0))
    else:
        assert warp_array.ptr == external_array.unsafe_buffer_pointer()


@pytest.mark.seed("S-DLP-008")
def test_no_gradients_are_carried():
    t = torch.ones(3, requires_grad=True)
    assert not wp.from_dlpack(t.detach()).requires_grad
    a = wp.ones(3, requires_grad=True)
    assert not torch.from_dlpack(a).requires_grad
    assert a.grad.list() == [0, 0, 0]


@pytest.mark.seed("P-29", "P-30", "P-31", "S-DLP-003", "S-JAX-004")
def test_our_array_in_three_frameworks():
    warp_array = wp.array([1.0, 2.0, 3.0], dtype=float)

    jax_array = jax.dlpack.from_dlpack(warp_array)
    torch_tensor = torch.utils.dlpack.from_dlpack(warp_array)
    paddle_tensor = paddle.utils.dlpack.from_dlpack(warp_array)

    assert jax_array.unsafe_buffer_pointer() == torch_tensor.data_ptr() == paddle_tensor.data_ptr() == warp_array.ptr
    warp_array.fill_(4.0)
    assert torch_tensor.tolist() == paddle_tensor.tolist() == jax_array.tolist() == [4, 4, 4]
    torch_tensor[1] = 5.0
    paddle_tensor[2] = 6.0
    assert warp_array.list() == [4, 5, 6]


@pytest.mark.seed("P-32", "P-33", "S-DLP-002", "D-13")
def test_capsules_and_arrays_of_frameworks():
    torch_tensor, paddle_tensor, jax_array = torch.ones(3), paddle.ones([3]), jax.numpy.ones(3)

    warp_array1 = wp.from_dlpack(jax_array)
    warp_array2 = wp.from_dlpack(torch.utils.dlpack.to_dlpack(torch_tensor))
    warp_array3 = wp.from_dlpack(paddle.utils.dlpack.to_dlpack(paddle_tensor))

    assert warp_array1.ptr == jax_array.unsafe_buffer_pointer() and warp_array1.list() == [1, 1, 1]
    for array, tensor in ((warp_array2, torch_tensor), (warp_array3, paddle_tensor)):
        assert array.ptr == tensor.data_ptr()
        array.fill_(7.0)
        assert tensor.tolist() == [7, 7, 7]
    for capsule in (torch.utils.dlpack.to_dlpack(torch_tensor), paddle.utils.dlpack.to_dlpack(paddle_tensor)):
        name = capsule_name(capsule)
        wp.from_dlpack(capsule)
        assert name in ("dltensor", "dltensor_versioned") and capsule_name(capsule) == f"used_{name}"


@pytest.mark.seed("P-34", "S-DLP-004")
def test_our_capsule_in_frameworks():
    """JAX takes objects only since release 0.7; the test of old releases has its line."""
    memory = np.array([1.0, 2.0], np.float32)
    gone = weakref.ref(memory)
    warp_array = wp.array(memory, copy=False)

    torch_tensor = torch.utils.dlpack.from_dlpack(wp.to_dlpack(warp_array))
    paddle_tensor = paddle.utils.dlpack.from_dlpack(wp.to_dlpack(warp_array))

    assert torch_tensor.data_ptr() == paddle_tensor.data_ptr() == warp_array.ptr == memory.ctypes.data
    del memory, warp_array
    gc.collect()
    torch_tensor[0] = 8.0
    assert paddle_tensor.tolist() == [8, 2] and gone() is not None
    del torch_tensor, paddle_tensor
    gc.collect()
    assert gone() is None
