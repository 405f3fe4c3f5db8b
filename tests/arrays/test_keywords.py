"""Keywords of the methods of arrays, `deleter`, and handles for other processes."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import warp as wp


def test_methods_take_their_parameters_by_name():
    a = wp.zeros((2, 3))
    assert a.fill_(value=2.0).numpy().tolist() == [[2.0] * 3] * 2
    assert a.assign(src=np.ones((2, 3), np.float32)).numpy().tolist() == [[1.0] * 3] * 2
    assert a.astype(dtype=int).dtype is wp.int32
    assert a.reshape(shape=(3, 2)).shape == (3, 2) and a.view(dtype=wp.int32).dtype is wp.int32
    assert a.transpose(axes=(1, 0)).shape == (3, 2)
    assert a.to(device=a.device, requires_grad=False) is a


@pytest.mark.parametrize("name, parameter", [("fill_", "value"), ("assign", "src"), ("astype", "dtype")])
def test_a_missing_or_an_unknown_parameter_is_named(name, parameter):
    method = getattr(wp.zeros(3), name)
    with pytest.raises(TypeError, match=rf"array.{name}\(\).*'{parameter}'"):
        method()
    with pytest.raises(TypeError, match=rf"array.{name}\(\).*'values'"):
        method(values=1)


@pytest.mark.host_memory("is about memory of the program")
def test_deleter_is_the_function_that_was_given():
    memory = (ctypes.c_float * 4)()
    freed = []

    def free(address, size):
        freed.append((address, size))

    address = ctypes.addressof(memory)
    a = wp.array(ptr=address, dtype=float, shape=4, deleter=free, device="cpu")
    assert a.deleter is free and a[1:].deleter is free
    assert wp.zeros(3).deleter is None and wp.array(ptr=address, dtype=float, shape=4, device="cpu").deleter is None
    assert wp.array(ptr=address, dtype=float, shape=4, deleter=free, owner=False, device="cpu").deleter is None
    del a
    assert freed == [(address, 16)]


def test_handles_are_for_memory_of_cuda_devices():
    a = wp.zeros(3, device="cpu")
    with pytest.raises(
        RuntimeError, match=r"array.ipc_handle\(\): handles are for memory of CUDA devices, and this is 'cpu'"
    ):
        a.ipc_handle()
    with pytest.raises(RuntimeError, match=r"from_ipc_handle\(\): handles are for memory of CUDA devices"):
        wp.from_ipc_handle(b"0" * 64, dtype=wp.float32, shape=(3,), device="cpu")
